/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Requests and replies of stores as bytes, and how both ends of a connection prove that they know the
 * token. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/random.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-store-private.h"

#define REQUEST "(yasmaymayx)"
#define REPLY \
  "(bmayxsus)" /* whether it failed; value, number; domain, code and message of the error */

static const guint8 magic[8] = { 'g', 't', 'o', 'r', 'c', 'h', 0, 1 };

static GVariant *
maybe_bytes (GBytes *bytes)
{
  GVariant *child =
      bytes == NULL ? NULL : g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, bytes, TRUE);

  return g_variant_new_maybe (G_VARIANT_TYPE_BYTESTRING, child);
}

/* Takes the floating variant. */
static GBytes *
frame (GVariant *variant)
{
  g_autoptr (GVariant) owned = g_variant_ref_sink (variant);
  g_autoptr (GVariant) swapped = NULL;
  const gsize size = g_variant_get_size (owned);
  guint32 header = GUINT32_TO_LE ((guint32) size);
  guint8 *data = g_malloc (GTORCH_STORE_HEADER + size);

  if (G_BYTE_ORDER == G_BIG_ENDIAN)
    {
      swapped = g_variant_byteswap (owned);
      g_variant_unref (g_steal_pointer (&owned));
      owned = g_variant_ref (swapped);
    }
  memcpy (data, &header, GTORCH_STORE_HEADER);
  memcpy (data + GTORCH_STORE_HEADER, g_variant_get_data (owned), size);
  return g_bytes_new_take (data, GTORCH_STORE_HEADER + size);
}

GBytes *
gtorch_store_frame_request (const GTorchStoreRequest *request)
{
  return frame (g_variant_new ("(y@as@may@mayx)", (guint8) request->command,
                               g_variant_new_strv (request->keys, -1), maybe_bytes (request->value),
                               maybe_bytes (request->expected), request->number));
}

GBytes *
gtorch_store_frame_reply (const GTorchStoreReply *reply, const GError *error)
{
  return frame (g_variant_new ("(b@mayxsus)", error != NULL,
                               maybe_bytes (error ? NULL : reply->value), error ? 0 : reply->number,
                               error ? g_quark_to_string (error->domain) : "",
                               error ? (guint32) error->code : 0, error ? error->message : ""));
}

gssize
gtorch_store_frame_length (const guint8 *header, GError **error)
{
  guint32 length;

  memcpy (&length, header, sizeof length);
  length = GUINT32_FROM_LE (length);
  if (length > 2u * GTORCH_STORE_MAX_VALUE + GTORCH_STORE_MAX_KEY * 1024u)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("store: a message claims to have %u bytes, more than any has"), length);
      return -1;
    }
  return length;
}

static GVariant *
parse (GBytes *body, const gchar *type, GError **error)
{
  g_autoptr (GVariant) variant =
      g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE (type), body, FALSE));

  if (G_BYTE_ORDER == G_BIG_ENDIAN)
    {
      g_autoptr (GVariant) swapped = g_variant_byteswap (variant);

      g_variant_unref (g_steal_pointer (&variant));
      variant = g_steal_pointer (&swapped);
    }
  if (!g_variant_is_normal_form (variant))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("store: a message of %zu bytes is malformed"), g_bytes_get_size (body));
      return NULL;
    }
  return g_steal_pointer (&variant);
}

static GBytes *
get_maybe_bytes (GVariant *tuple, gsize index)
{
  g_autoptr (GVariant) maybe = g_variant_get_child_value (tuple, index);
  g_autoptr (GVariant) child = g_variant_get_maybe (maybe);

  return child == NULL ? NULL : g_variant_get_data_as_bytes (child);
}

void
gtorch_store_parsed_clear (GTorchStoreParsed *parsed)
{
  g_free ((gpointer) parsed->request.keys);
  g_clear_pointer (&parsed->request.value, g_bytes_unref);
  g_clear_pointer (&parsed->request.expected, g_bytes_unref);
  g_clear_pointer (&parsed->variant, g_variant_unref);
  parsed->request.keys = NULL;
}

/* What the functions of the interface give. */
static gboolean
is_complete (const GTorchStoreRequest *request)
{
  const guint n = g_strv_length ((gchar **) request->keys);
  const GTorchStoreCommand command = request->command;
  guint i;

  if (command == GTORCH_STORE_COUNT                                   ? n != 0
      : command == GTORCH_STORE_WAIT || command == GTORCH_STORE_CHECK ? n > GTORCH_STORE_MAX_KEYS
                                                                      : n != 1)
    return FALSE;
  for (i = 0; i < n; i++)
    if (strlen (request->keys[i]) > GTORCH_STORE_MAX_KEY)
      return FALSE;
  if ((command == GTORCH_STORE_SET || command == GTORCH_STORE_COMPARE_SET
       || command == GTORCH_STORE_APPEND)
      != (request->value != NULL))
    return FALSE;
  if (command != GTORCH_STORE_COMPARE_SET && request->expected != NULL)
    return FALSE;
  return request->value == NULL || g_bytes_get_size (request->value) <= GTORCH_STORE_MAX_VALUE;
}

gboolean
gtorch_store_parse_request (GBytes *body, GTorchStoreParsed *parsed, GError **error)
{
  g_autoptr (GVariant) variant = parse (body, REQUEST, error);
  guint8 command;

  if (variant == NULL)
    return FALSE;
  g_variant_get_child (variant, 0, "y", &command);
  g_variant_get_child (variant, 1, "^a&s", &parsed->request.keys);
  parsed->request.command = command;
  parsed->request.value = get_maybe_bytes (variant, 2);
  parsed->request.expected = get_maybe_bytes (variant, 3);
  g_variant_get_child (variant, 4, "x", &parsed->request.number);
  parsed->variant = g_steal_pointer (&variant);
  if (command >= GTORCH_STORE_N_COMMANDS || !is_complete (&parsed->request))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("store: the request %u lacks arguments, or has ones that it cannot have"),
                   command);
      gtorch_store_parsed_clear (parsed);
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_store_parse_reply (GBytes *body, GTorchStoreReply *reply, GError **error)
{
  g_autoptr (GVariant) variant = parse (body, REPLY, error);
  const gchar *domain, *message;
  gboolean failed;
  guint32 code;

  if (variant == NULL)
    return FALSE;
  g_variant_get_child (variant, 0, "b", &failed);
  g_variant_get_child (variant, 2, "x", &reply->number);
  g_variant_get_child (variant, 3, "&s", &domain);
  g_variant_get_child (variant, 4, "u", &code);
  g_variant_get_child (variant, 5, "&s", &message);
  if (failed)
    {
      /* no quark is made of what another process says */
      const GQuark quark = g_quark_try_string (domain);

      g_set_error_literal (error, quark != 0 ? quark : GTORCH_ERROR,
                           quark != 0 ? (gint) code : GTORCH_ERROR_FAILED, message);
      return FALSE;
    }
  reply->value = get_maybe_bytes (variant, 1);
  return TRUE;
}

void
gtorch_store_greeting (guint8 *greeting)
{
  gsize done = 0;

  memcpy (greeting, magic, sizeof magic);
  while (done < GTORCH_STORE_GREETING - sizeof magic)
    {
      const gssize n = getrandom (greeting + sizeof magic + done,
                                  GTORCH_STORE_GREETING - sizeof magic - done, 0);

      if (n > 0)
        done += n;
    }
}

gboolean
gtorch_store_is_greeting (const guint8 *greeting)
{
  return memcmp (greeting, magic, sizeof magic) == 0;
}

void
gtorch_store_proof (const gchar *token, const gchar *side, const guint8 *server,
                    const guint8 *client, guint8 *proof)
{
  g_autoptr (GHmac) hmac = g_hmac_new (G_CHECKSUM_SHA256, (const guchar *) token, strlen (token));
  gsize size = GTORCH_STORE_PROOF;

  g_hmac_update (hmac, (const guchar *) side, -1);
  g_hmac_update (hmac, server, GTORCH_STORE_GREETING);
  g_hmac_update (hmac, client, GTORCH_STORE_GREETING);
  g_hmac_get_digest (hmac, proof, &size);
}

/* In a time that does not depend on where they differ. */
gboolean
gtorch_store_proofs_equal (const guint8 *a, const guint8 *b)
{
  guint8 difference = 0;
  guint i;

  for (i = 0; i < GTORCH_STORE_PROOF; i++)
    difference |= a[i] ^ b[i];
  return difference == 0;
}
