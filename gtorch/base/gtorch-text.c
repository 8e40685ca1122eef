/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Texts for messages, and names that the program gives. */

#include "config.h"

#include "base/gtorch-text-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"

#define TEXT  256
#define SHOWN 60 /* bytes of a name */

typedef struct
{
  gchar texts[8][TEXT];
  guint next;
} Texts;

static gchar *
next_text (void)
{
  /* Not __thread: a library that is loaded late gets no more than about 1 kB of static TLS. */
  static GPrivate private = G_PRIVATE_INIT (g_free);
  Texts *ring = g_private_get (&private);

  if (ring == NULL)
    {
      ring = g_new0 (Texts, 1);
      g_private_set (&private, ring);
    }
  return ring->texts[ring->next++ % G_N_ELEMENTS (ring->texts)];
}

const gchar *
gtorch_name_str (const gchar *name)
{
  gsize length = strnlen (name, SHOWN + 1);
  gchar *buffer = next_text (), *end;
  g_autofree gchar *valid = NULL;

  if (length > SHOWN)
    for (length = SHOWN; length > SHOWN - 4 && (name[length] & 0xc0) == 0x80; length--)
      ;
  valid = g_utf8_make_valid (name, length); /* no byte becomes more than three */
  end = g_stpcpy (buffer, valid);
  if (name[length] != '\0')
    g_stpcpy (end, "…");
  return buffer;
}

gboolean
gtorch_name_check (const gchar *who, const gchar *name, GError **error)
{
  if (g_utf8_validate (name, -1, NULL))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the text “%s” is not UTF-8"), who,
               gtorch_name_str (name));
  return FALSE;
}

gboolean
gtorch_name_insert (const gchar *who, GHashTable *table, const gchar *name, gpointer value,
                    GError **error)
{
  if (g_hash_table_insert (table, (gpointer) name, value))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the name “%s” appears twice"),
               who, gtorch_name_str (name));
  return FALSE;
}

const gchar *
gtorch_shape_str (const gint64 *shape, gsize n_dims)
{
  gchar *buffer = next_text ();
  gsize i, length = 0;

  buffer[length++] = '[';
  for (i = 0; i < n_dims && length < 220; i++)
    length += g_snprintf (buffer + length, TEXT - length,
                          i == 0 ? "%" G_GINT64_FORMAT : ", %" G_GINT64_FORMAT, shape[i]);
  g_snprintf (buffer + length, TEXT - length, i < n_dims ? ", …]" : "]");
  return buffer;
}
