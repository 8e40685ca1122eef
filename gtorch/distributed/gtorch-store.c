/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-store.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-property-private.h"
#include "distributed/gtorch-store-private.h"

#define MISSING_WAIT G_TIME_SPAN_SECOND /* to find out which key is missing */

/**
 * GTorchStore:
 *
 * Keys and values that the processes of a job share.
 *
 * Processes that compute together find each other by a store: each writes what the others need, and waits
 * for what they write. [class@TcpStore] is for processes of one or several hosts, [class@FileStore] for
 * those of one file system, [class@HashStore] for the threads of one process, and [class@PrefixStore] is a
 * part of another store. Keys are texts of at most 4096 bytes, values bytes, at most 64 MiB.
 *
 * ```c
 * g_autoptr (GTorchStore) store = gtorch_hash_store_new ();
 * g_autoptr (GBytes) greeting = g_bytes_new_static ("hello", 5);
 * g_autoptr (GBytes) value = NULL;
 *
 * gtorch_store_set (store, "greeting", greeting, NULL, &error);
 * value = gtorch_store_get (store, "greeting", NULL, &error); // waits until somebody has set it
 * ```
 *
 * A store may be used by several threads at a time. Functions that wait end with %G_IO_ERROR_TIMED_OUT
 * after [property@Store:timeout], and with %G_IO_ERROR_CANCELLED when they are cancelled; in a program
 * with a main loop [method@Store.get_async] and its like wait without blocking it.
 *
 * Since: 0.1
 */

typedef struct
{
  gdouble timeout;
} GTorchStorePrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchStore, gtorch_store, G_TYPE_OBJECT)

typedef GTorchStore Self;

static const GTorchField fields[] = {
  /**
   * GTorchStore:timeout:
   *
   * For how many seconds functions wait for a key; infinite for as long as it takes.
   *
   * Since: 0.1
   */
  { "timeout", GTORCH_PROPERTY_DOUBLE (gtorch_store_get_timeout, gtorch_store_set_timeout),
    .value = 300, .low = 0, .high = (gdouble) INFINITY, .flags = GTORCH_FIELD_SETTING },
};

static void
gtorch_store_class_init (GTorchStoreClass *klass)
{
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_store_init (GTorchStore *self)
{
}

static GTorchStorePrivate *
priv_of (GTorchStore *self)
{
  return gtorch_store_get_instance_private (self);
}

/**
 * gtorch_store_get_timeout:
 * @self: a store
 *
 * Gets for how many seconds functions wait for a key.
 *
 * Returns: the time in seconds, 300 unless it was set
 *
 * Since: 0.1
 */
gdouble
gtorch_store_get_timeout (GTorchStore *self)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self), 0);
  return priv_of (self)->timeout;
}

/**
 * gtorch_store_set_timeout:
 * @self: a store
 * @timeout: a time in seconds, 0 or more; infinite for as long as it takes
 * @error: return location for an error
 *
 * Sets for how many seconds functions wait for a key. Calls that wait already keep their time.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_set_timeout (GTorchStore *self, gdouble timeout, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self), FALSE);
  if (!(timeout >= 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store: the timeout is %g seconds; it is 0 or more"), timeout);
      return FALSE;
    }
  if (gtorch_property_set_double (&priv_of (self)->timeout, timeout))
    g_object_notify (G_OBJECT (self), "timeout");
  return TRUE;
}

gboolean
gtorch_store_check_wait (gdouble timeout, GError **error)
{
  if (!isnan (timeout))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("store_wait: the timeout is not a number"));
  return FALSE;
}

gint64
gtorch_store_deadline (gdouble timeout)
{
  const gint64 now = g_get_monotonic_time ();

  return timeout < 1e9 ? now + (gint64) (timeout * G_USEC_PER_SEC) : G_MAXINT64;
}

const gchar *
gtorch_store_command_name (GTorchStoreCommand command)
{
  static const gchar *const names[] = { "store_set",        "store_get",        "store_add",
                                        "store_wait",       "store_check",      "store_compare_set",
                                        "store_delete_key", "store_count_keys", "store_append" };

  G_STATIC_ASSERT (G_N_ELEMENTS (names) == GTORCH_STORE_N_COMMANDS);
  return names[command];
}

void
gtorch_store_timed_out (const GTorchStoreRequest *request, GError **error)
{
  const guint n = g_strv_length ((gchar **) request->keys);

  if (n > 1)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                 _ ("%s: the time is over, and of the key “%s” and %u others not all are there"),
                 gtorch_store_command_name (request->command), request->keys[0], n - 1);
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                 _ ("%s: the time is over, and the key “%s” is not there"),
                 gtorch_store_command_name (request->command), n > 0 ? request->keys[0] : "");
}

gboolean
gtorch_store_refuse_incomplete (GTorchStore *self, const GTorchStoreRequest *request,
                                GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: this %s was made without what it needs"),
               gtorch_store_command_name (request->command), G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

void
gtorch_store_reply_clear (GTorchStoreReply *reply)
{
  g_clear_pointer (&reply->value, g_bytes_unref);
}

/* What does not come from a program is checked by gtorch_store_parse_request (). */
static gboolean
check_request (const GTorchStoreRequest *request, GError **error)
{
  const gchar *name = gtorch_store_command_name (request->command);
  guint n;

  for (n = 0; request->keys[n] != NULL; n++)
    {
      const gchar *key = request->keys[n];

      if (strlen (key) > GTORCH_STORE_MAX_KEY || !g_utf8_validate (key, -1, NULL))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: a key of %zu bytes is none; keys are UTF-8 and have at most %d "
                          "bytes"),
                       name, strlen (key), GTORCH_STORE_MAX_KEY);
          return FALSE;
        }
    }
  if (n > GTORCH_STORE_MAX_KEYS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are %u keys; at most %d are allowed"), name, n,
                   GTORCH_STORE_MAX_KEYS);
      return FALSE;
    }
  if (request->value != NULL && g_bytes_get_size (request->value) > GTORCH_STORE_MAX_VALUE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the value of the key “%s” has %zu bytes; at most %d are allowed"), name,
                   request->keys[0], g_bytes_get_size (request->value), GTORCH_STORE_MAX_VALUE);
      return FALSE;
    }
  return TRUE;
}

/* The first key that is not there, of those that were waited for. */
static void
name_missing (GTorchStore *self, GTorchStoreRun run, const GTorchStoreRequest *request,
              GError **error)
{
  const gint64 deadline = g_get_monotonic_time () + MISSING_WAIT;
  guint i;

  for (i = 0; request->keys[i] != NULL; i++)
    {
      const gchar *const key[] = { request->keys[i], NULL };
      g_auto (GTorchStoreReply) reply = { 0 };

      if (!run (self, &(GTorchStoreRequest){ GTORCH_STORE_CHECK, key }, deadline, &reply, NULL,
                NULL))
        return;
      if (reply.number != 0)
        continue;
      g_clear_error (error);
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                   _ ("%s: the time is over, and of %u keys “%s” is not there"),
                   gtorch_store_command_name (request->command),
                   g_strv_length ((gchar **) request->keys), key[0]);
      return;
    }
}

gboolean
gtorch_store_run (GTorchStore *self, const GTorchStoreRequest *request, gint64 deadline,
                  GTorchStoreReply *reply, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) local = NULL;
  const GTorchStoreRun run = (GTorchStoreRun) GTORCH_STORE_GET_CLASS (self)->run;

  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !check_request (request, error))
    return FALSE;
  if (run == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: %s has no keys: stores are the library's own classes"),
                   gtorch_store_command_name (request->command), G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (run (self, request, deadline, reply, cancellable, &local))
    return TRUE;
  if (request->command == GTORCH_STORE_WAIT && g_strv_length ((gchar **) request->keys) > 1
      && g_error_matches (local, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
    name_missing (self, run, request, &local);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
run_now (GTorchStore *self, const GTorchStoreRequest *request, GTorchStoreReply *reply,
         GCancellable *cancellable, GError **error)
{
  return gtorch_store_run (self, request, gtorch_store_deadline (priv_of (self)->timeout), reply,
                           cancellable, error);
}

/**
 * gtorch_store_set:
 * @self: a store
 * @key: a key
 * @value: the value
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Sets the value of a key, whether the key has one already or not.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_set (GTorchStore *self, const gchar *key, GBytes *value, GCancellable *cancellable,
                  GError **error)
{
  const gchar *const keys[] = { key, NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && key != NULL && value != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_SET, keys, value }, &reply, cancellable,
                  error);
}

/**
 * gtorch_store_get:
 * @self: a store
 * @key: a key
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Gets the value of a key, and waits for it for at most [property@Store:timeout].
 *
 * Returns: (transfer full): the value, or %NULL with @error set: %G_IO_ERROR_TIMED_OUT if nobody has set it
 *
 * Since: 0.1
 */
GBytes *
gtorch_store_get (GTorchStore *self, const gchar *key, GCancellable *cancellable, GError **error)
{
  const gchar *const keys[] = { key, NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && key != NULL, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_GET, keys }, &reply, cancellable, error))
    return NULL;
  return g_steal_pointer (&reply.value);
}

/**
 * gtorch_store_append:
 * @self: a store
 * @key: a key
 * @value: what is added
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Adds bytes to the end of the value of a key; a key that has none gets them as its value.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_append (GTorchStore *self, const gchar *key, GBytes *value, GCancellable *cancellable,
                     GError **error)
{
  const gchar *const keys[] = { key, NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && key != NULL && value != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_APPEND, keys, value }, &reply,
                  cancellable, error);
}

/**
 * gtorch_store_add:
 * @self: a store
 * @key: a key
 * @amount: what is added
 * @sum: (out) (optional): the sum
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Adds to the number that is the value of a key, in one step; a key without a value counts as 0.
 *
 * The value is the text of a decimal number.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if the value is not a number
 *
 * Since: 0.1
 */
gboolean
gtorch_store_add (GTorchStore *self, const gchar *key, gint64 amount, gint64 *sum,
                  GCancellable *cancellable, GError **error)
{
  const gchar *const keys[] = { key, NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && key != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (!run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_ADD, keys, .number = amount }, &reply,
                cancellable, error))
    return FALSE;
  if (sum != NULL)
    *sum = reply.number;
  return TRUE;
}

/**
 * gtorch_store_compare_set:
 * @self: a store
 * @key: a key
 * @expected: (nullable): what the key should have; %NULL or no bytes if it should have nothing
 * @desired: the new value
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Sets the value of a key if it is @expected, in one step.
 *
 * Returns: (transfer full): the value after the call, which is @desired if it was set; where the key has no
 *   value and one was expected, @expected; or %NULL with @error set
 *
 * Since: 0.1
 */
GBytes *
gtorch_store_compare_set (GTorchStore *self, const gchar *key, GBytes *expected, GBytes *desired,
                          GCancellable *cancellable, GError **error)
{
  const gchar *const keys[] = { key, NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && key != NULL && desired != NULL, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_COMPARE_SET, keys, desired, expected },
                &reply, cancellable, error))
    return NULL;
  return g_steal_pointer (&reply.value);
}

/**
 * gtorch_store_wait:
 * @self: a store
 * @keys: (array zero-terminated=1): keys
 * @timeout: for how many seconds to wait, 0 or more; negative for [property@Store:timeout]
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Waits until all of some keys have values.
 *
 * Returns: %TRUE, or %FALSE with @error set: %G_IO_ERROR_TIMED_OUT if one is still missing
 *
 * Since: 0.1
 */
gboolean
gtorch_store_wait (GTorchStore *self, const gchar *const *keys, gdouble timeout,
                   GCancellable *cancellable, GError **error)
{
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && keys != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (!gtorch_store_check_wait (timeout, error))
    return FALSE;
  return gtorch_store_run (self, &(GTorchStoreRequest){ GTORCH_STORE_WAIT, keys },
                           gtorch_store_deadline (timeout < 0 ? priv_of (self)->timeout : timeout),
                           &reply, cancellable, error);
}

/**
 * gtorch_store_check:
 * @self: a store
 * @keys: (array zero-terminated=1): keys
 * @are_there: (out): whether all of them have values
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Tells whether all of some keys have values. Does not wait for them.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_check (GTorchStore *self, const gchar *const *keys, gboolean *are_there,
                    GCancellable *cancellable, GError **error)
{
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && keys != NULL && are_there != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (!run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_CHECK, keys }, &reply, cancellable,
                error))
    return FALSE;
  *are_there = reply.number != 0;
  return TRUE;
}

/**
 * gtorch_store_delete_key:
 * @self: a store
 * @key: a key
 * @was_there: (out) (optional): whether the key had a value
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Removes a key and its value.
 *
 * Returns: %TRUE, also if there was no such key, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_delete_key (GTorchStore *self, const gchar *key, gboolean *was_there,
                         GCancellable *cancellable, GError **error)
{
  const gchar *const keys[] = { key, NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && key != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (!run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_DELETE, keys }, &reply, cancellable,
                error))
    return FALSE;
  if (was_there != NULL)
    *was_there = reply.number != 0;
  return TRUE;
}

/**
 * gtorch_store_count_keys:
 * @self: a store
 * @n_keys: (out): how many keys there are
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Counts the keys of a store, those that the library keeps there itself included. A [class@PrefixStore]
 * counts those of the whole store.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_count_keys (GTorchStore *self, gint64 *n_keys, GCancellable *cancellable,
                         GError **error)
{
  static const gchar *const keys[] = { NULL };
  g_auto (GTorchStoreReply) reply = { 0 };

  g_return_val_if_fail (GTORCH_IS_STORE (self) && n_keys != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (!run_now (self, &(GTorchStoreRequest){ GTORCH_STORE_COUNT, keys }, &reply, cancellable,
                error))
    return FALSE;
  *n_keys = reply.number;
  return TRUE;
}
