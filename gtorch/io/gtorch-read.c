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

GBytes *
gtorch_read_to_end (GInputStream *stream, gsize expected, gsize max_bytes, gsize *n,
                    GCancellable *cancellable, GError **error)
{
  const gsize most = max_bytes < G_MAXSIZE ? max_bytes + 1 : max_bytes;
  gsize allocated = expected < most ? expected + 1 : most, n_read;
  guint8 *data = g_try_malloc (allocated), *larger;

  *n = 0;
  while (data != NULL)
    {
      if (!gtorch_stream_read_all (stream, data + *n, allocated - *n, &n_read, cancellable, error))
        {
          *n = 0;
          break;
        }
      *n += n_read;
      if (*n < allocated)
        return g_bytes_new_take (data, *n);
      if (*n > max_bytes)
        break;
      allocated = allocated < most / 2 ? allocated * 2 : most;
      larger = g_try_realloc (data, allocated);
      if (larger == NULL)
        g_free (data);
      data = larger;
    }
  g_free (data);
  return NULL;
}

static GBytes *
read_all (const gchar *who, GInputStream *stream, gsize expected, gsize max_bytes,
          GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) local = NULL;
  gsize n;
  GBytes *bytes = gtorch_read_to_end (stream, expected, max_bytes, &n, cancellable, &local);

  if (bytes != NULL)
    return bytes;
  if (local != NULL)
    g_propagate_error (error, g_steal_pointer (&local));
  else if (n > max_bytes)
    too_long (who, max_bytes, error);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                 _ ("%s: there is no memory for the %zu bytes and more of the file"), who,
                 MAX (n, expected));
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
