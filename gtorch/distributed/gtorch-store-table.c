/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The keys and values of a store. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-store-private.h"

struct _GTorchStoreTable
{
  GHashTable *values; /* gchar * -> GBytes */
};

GTorchStoreTable *
gtorch_store_table_new (void)
{
  GTorchStoreTable *table = g_new (GTorchStoreTable, 1);

  table->values =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_bytes_unref);
  return table;
}

void
gtorch_store_table_free (GTorchStoreTable *table)
{
  g_hash_table_unref (table->values);
  g_free (table);
}

gboolean
gtorch_store_command_changes (GTorchStoreCommand command)
{
  return command == GTORCH_STORE_SET || command == GTORCH_STORE_ADD
         || command == GTORCH_STORE_COMPARE_SET || command == GTORCH_STORE_DELETE
         || command == GTORCH_STORE_APPEND;
}

static gboolean
has_all (GTorchStoreTable *table, const gchar *const *keys)
{
  for (; *keys != NULL; keys++)
    if (!g_hash_table_contains (table->values, *keys))
      return FALSE;
  return TRUE;
}

/* Takes the value. */
static void
put (GTorchStoreTable *table, const gchar *key, GBytes *value)
{
  g_hash_table_replace (table->values, g_strdup (key), value);
}

static gboolean
add (GTorchStoreTable *table, const gchar *key, gint64 amount, gint64 *sum, GError **error)
{
  GBytes *old = g_hash_table_lookup (table->values, key);
  gint64 number = 0;
  gchar *text;

  if (old != NULL)
    {
      gsize size;
      const gchar *data = g_bytes_get_data (old, &size);
      g_autofree gchar *digits = g_strndup (data, size);

      if (strlen (digits) != size
          || !g_ascii_string_to_signed (digits, 10, G_MININT64, G_MAXINT64, &number, NULL))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("store_add: the value of the key “%s” is not a decimal number of 64 "
                          "bits"),
                       key);
          return FALSE;
        }
    }
  if (__builtin_add_overflow (number, amount, sum))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store_add: %" PRId64 " + %" PRId64
                      ", for the key “%s”, does not fit into 64 bits"),
                   number, amount, key);
      return FALSE;
    }
  text = g_strdup_printf ("%" G_GINT64_FORMAT, *sum);
  put (table, key, g_bytes_new_take (text, strlen (text)));
  return TRUE;
}

static gboolean
append (GTorchStoreTable *table, const gchar *key, GBytes *value, GError **error)
{
  GBytes *old = g_hash_table_lookup (table->values, key);
  GByteArray *joined;

  if (old == NULL)
    {
      put (table, key, g_bytes_ref (value));
      return TRUE;
    }
  if (g_bytes_get_size (old) + g_bytes_get_size (value) > GTORCH_STORE_MAX_VALUE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store_append: the value of the key “%s” would have %zu bytes; at most %d "
                      "are allowed"),
                   key, g_bytes_get_size (old) + g_bytes_get_size (value), GTORCH_STORE_MAX_VALUE);
      return FALSE;
    }
  joined = g_byte_array_sized_new (g_bytes_get_size (old) + g_bytes_get_size (value));
  g_byte_array_append (joined, g_bytes_get_data (old, NULL), g_bytes_get_size (old));
  g_byte_array_append (joined, g_bytes_get_data (value, NULL), g_bytes_get_size (value));
  put (table, key, g_byte_array_free_to_bytes (joined));
  return TRUE;
}

/* As PyTorch's: a key that is not there is set only if nothing is expected, and what is there, or what is
 * expected where there is nothing, is returned. */
static void
compare_set (GTorchStoreTable *table, const GTorchStoreRequest *request, GTorchStoreReply *reply)
{
  const gchar *key = request->keys[0];
  GBytes *old = g_hash_table_lookup (table->values, key);
  GBytes *expected = request->expected;
  const gboolean expects_nothing = expected == NULL || g_bytes_get_size (expected) == 0;
  GBytes *result;

  if (old == NULL ? expects_nothing : expected != NULL && g_bytes_equal (old, expected))
    {
      put (table, key, g_bytes_ref (request->value));
      result = request->value;
    }
  else
    result = old != NULL ? old : expected;
  reply->value = g_bytes_ref (result);
}

GTorchStoreAnswer
gtorch_store_table_apply (GTorchStoreTable *table, const GTorchStoreRequest *request,
                          GTorchStoreReply *reply, GError **error)
{
  const gchar *key = request->keys[0];
  gboolean result = TRUE;

  switch (request->command)
    {
    case GTORCH_STORE_SET:
      put (table, key, g_bytes_ref (request->value));
      break;
    case GTORCH_STORE_GET:
      if (!g_hash_table_contains (table->values, key))
        return GTORCH_STORE_PENDING;
      reply->value = g_bytes_ref (g_hash_table_lookup (table->values, key));
      break;
    case GTORCH_STORE_ADD:
      result = add (table, key, request->number, &reply->number, error);
      break;
    case GTORCH_STORE_WAIT:
      if (!has_all (table, request->keys))
        return GTORCH_STORE_PENDING;
      break;
    case GTORCH_STORE_CHECK:
      reply->number = has_all (table, request->keys);
      break;
    case GTORCH_STORE_COMPARE_SET:
      compare_set (table, request, reply);
      break;
    case GTORCH_STORE_DELETE:
      reply->number = g_hash_table_remove (table->values, key);
      break;
    case GTORCH_STORE_COUNT:
      reply->number = g_hash_table_size (table->values);
      break;
    case GTORCH_STORE_APPEND:
      result = append (table, key, request->value, error);
      break;
    case GTORCH_STORE_N_COMMANDS:
    default:
      g_assert_not_reached ();
    }
  return result ? GTORCH_STORE_ANSWERED : GTORCH_STORE_FAILED;
}
