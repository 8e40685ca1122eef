/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-read-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "io/gtorch-safetensors-private.h"

#define FIRST_STEP 65536

static void
too_long (const gchar *who, gsize max_bytes, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("%s: the file has more than the %zu bytes that are allowed"), who, max_bytes);
}

static GBytes *
read_all (const gchar *who, GInputStream *stream, gsize expected, gsize max_bytes,
          GCancellable *cancellable, GError **error)
{
  gsize allocated = MIN (expected, max_bytes) + 1, n = 0, n_read;
  guint8 *data = g_try_malloc (allocated), *larger;

  while (data != NULL)
    {
      if (!gtorch_stream_read_all (stream, data + n, allocated - n, &n_read, cancellable, error))
        {
          g_free (data);
          return NULL;
        }
      n += n_read;
      if (n < allocated)
        return g_bytes_new_take (data, n);
      if (n > max_bytes)
        {
          g_free (data);
          too_long (who, max_bytes, error);
          return NULL;
        }
      allocated = MIN (allocated * 2, max_bytes + 1);
      larger = g_try_realloc (data, allocated);
      if (larger == NULL)
        g_free (data);
      data = larger;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               _ ("%s: %zu bytes could not be allocated"), who, allocated);
  return NULL;
}

GBytes *
gtorch_read_stream (const gchar *who, GInputStream *stream, gsize max_bytes,
                    GCancellable *cancellable, GError **error)
{
  return read_all (who, stream, FIRST_STEP, max_bytes, cancellable, error);
}

GBytes *
gtorch_read_file (const gchar *who, GFile *file, gsize max_bytes, GCancellable *cancellable,
                  GError **error)
{
  g_autoptr (GInputStream) stream = gtorch_file_open (file, cancellable, error);
  g_autoptr (GFileInfo) info = NULL;
  gsize expected = FIRST_STEP;

  if (stream == NULL)
    return NULL;
  if (G_IS_FILE_INPUT_STREAM (stream))
    info = g_file_input_stream_query_info (G_FILE_INPUT_STREAM (stream),
                                           G_FILE_ATTRIBUTE_STANDARD_SIZE, cancellable, NULL);
  if (info != NULL && g_file_info_has_attribute (info, G_FILE_ATTRIBUTE_STANDARD_SIZE))
    {
      guint64 size = g_file_info_get_attribute_uint64 (info, G_FILE_ATTRIBUTE_STANDARD_SIZE);

      if (size > max_bytes)
        {
          too_long (who, max_bytes, error);
          return NULL;
        }
      if (size > 0) /* files of the kernel say 0 */
        expected = size;
    }
  return read_all (who, stream, expected, max_bytes, cancellable, error);
}
