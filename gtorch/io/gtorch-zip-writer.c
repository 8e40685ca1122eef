/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Writing zip archives to streams that need not seek: a member's size and check sum are known before its
 * header is written. The date of all members is that of the format's beginning, so that equal content makes
 * equal files. */

#include "config.h"

#include "io/gtorch-zip-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#define ALIGNMENT  64
#define CHUNK      (4 * 1024 * 1024)
#define FIRST_DATE 0x21 /* the first of January, 1980 */

GTorchZipWriter *
gtorch_zip_writer_new (const gchar *op, GOutputStream *stream)
{
  GTorchZipWriter *self = g_new0 (GTorchZipWriter, 1);

  self->op = op;
  self->stream = stream;
  self->directory = g_byte_array_new ();
  return self;
}

void
gtorch_zip_writer_free (GTorchZipWriter *self)
{
  g_byte_array_unref (self->directory);
  g_free (self);
}

static void
put (GByteArray *to, guint64 value, guint n)
{
  guint8 bytes[8];

  for (guint i = 0; i < n; i++)
    bytes[i] = value >> (8 * i);
  g_byte_array_append (to, bytes, n);
}

static gboolean
write_all (GTorchZipWriter *self, gconstpointer data, gsize n, GCancellable *cancellable,
           GError **error)
{
  for (gsize done = 0; done < n; done += CHUNK)
    if (g_cancellable_set_error_if_cancelled (cancellable, error)
        || !g_output_stream_write_all (self->stream, (const gchar *) data + done,
                                       MIN (n - done, CHUNK), NULL, cancellable, error))
      return FALSE;
  self->position += n;
  return TRUE;
}

static GBytes *
deflate (GBytes *head, GBytes *data, GCancellable *cancellable, GError **error)
{
  g_autoptr (GConverter) converter =
      G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_RAW, -1));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, converter);
  GBytes *parts[] = { head, data };

  for (guint i = 0; i < 2; i++)
    {
      gsize n;
      const gchar *at = g_bytes_get_data (parts[i], &n);

      for (gsize done = 0; done < n; done += CHUNK)
        if (!g_output_stream_write_all (stream, at + done, MIN (n - done, CHUNK), NULL, cancellable,
                                        error))
          return NULL;
    }
  if (!g_output_stream_close (stream, cancellable, error))
    return NULL;
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

/* What local header and directory have alike. */
static void
put_description (GByteArray *to, guint version, const gchar *name, gboolean compress, guint32 crc,
                 guint64 packed, guint64 size, gsize n_extra)
{
  put (to, version, 2);
  put (to, 1 << 11, 2); /* the name is UTF-8 */
  put (to, compress ? 8 : 0, 2);
  put (to, 0, 2);
  put (to, FIRST_DATE, 2);
  put (to, crc, 4);
  put (to, MIN (packed, G_MAXUINT32), 4);
  put (to, MIN (size, G_MAXUINT32), 4);
  put (to, strlen (name), 2);
  put (to, n_extra, 2);
}

gboolean
gtorch_zip_writer_add (GTorchZipWriter *self, const gchar *name, GBytes *head, GBytes *data,
                       gboolean compress, GCancellable *cancellable, GError **error)
{
  g_autoptr (GByteArray) header = g_byte_array_new ();
  g_autoptr (GByteArray) extra = g_byte_array_new ();
  g_autoptr (GBytes) packed = compress ? deflate (head, data, cancellable, error) : NULL;
  guint64 size = g_bytes_get_size (head) + g_bytes_get_size (data), position = self->position;
  guint64 n_packed = packed != NULL ? g_bytes_get_size (packed) : size;
  guint32 crc = gtorch_zip_crc (0, g_bytes_get_data (head, NULL), g_bytes_get_size (head));
  gboolean is_large = size >= G_MAXUINT32 || n_packed >= G_MAXUINT32;
  guint64 start;

  if (compress && packed == NULL)
    return FALSE;
  if (strlen (name) > G_MAXUINT16)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the name “%s” has %zu bytes: there can be %d"), self->op,
                   gtorch_name_str (name), strlen (name), G_MAXUINT16);
      return FALSE;
    }
  crc = gtorch_zip_crc (crc, g_bytes_get_data (data, NULL), g_bytes_get_size (data));
  if (is_large)
    {
      put (extra, 1, 2);
      put (extra, 16, 2);
      put (extra, size, 8);
      put (extra, n_packed, 8);
    }
  start = position + 30 + strlen (name) + extra->len + 4;
  if (!compress)
    {
      /* the field that PyTorch uses for the same end */
      guint fill = (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;

      g_byte_array_append (extra, (const guint8 *) "FB", 2);
      put (extra, fill, 2);
      for (guint i = 0; i < fill; i++)
        put (extra, 0, 1);
    }
  g_byte_array_append (header, (const guint8 *) "PK\3\4", 4);
  put_description (header, is_large ? 45 : 20, name, compress, crc,
                   is_large ? G_MAXUINT32 : n_packed, is_large ? G_MAXUINT32 : size, extra->len);
  g_byte_array_append (header, (const guint8 *) name, strlen (name));
  g_byte_array_append (header, extra->data, extra->len);
  if (!write_all (self, header->data, header->len, cancellable, error))
    return FALSE;
  if (packed != NULL)
    {
      if (!write_all (self, g_bytes_get_data (packed, NULL), n_packed, cancellable, error))
        return FALSE;
    }
  else if (!write_all (self, g_bytes_get_data (head, NULL), g_bytes_get_size (head), cancellable,
                       error)
           || !write_all (self, g_bytes_get_data (data, NULL), g_bytes_get_size (data), cancellable,
                          error))
    return FALSE;

  is_large = is_large || position >= G_MAXUINT32;
  g_byte_array_append (self->directory, (const guint8 *) "PK\1\2", 4);
  put (self->directory, is_large ? 45 : 20, 2);
  put_description (self->directory, is_large ? 45 : 20, name, compress, crc,
                   is_large ? G_MAXUINT32 : n_packed, is_large ? G_MAXUINT32 : size,
                   is_large ? 28 : 0);
  put (self->directory, 0, 2); /* no comment */
  put (self->directory, 0, 8); /* part 0, no attributes */
  put (self->directory, is_large ? G_MAXUINT32 : position, 4);
  g_byte_array_append (self->directory, (const guint8 *) name, strlen (name));
  if (is_large)
    {
      put (self->directory, 1, 2);
      put (self->directory, 24, 2);
      put (self->directory, size, 8);
      put (self->directory, n_packed, 8);
      put (self->directory, position, 8);
    }
  self->n_members++;
  return TRUE;
}

gboolean
gtorch_zip_writer_close (GTorchZipWriter *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GByteArray) end = g_byte_array_new ();
  guint64 start = self->position, size = self->directory->len, n = self->n_members;

  if (!write_all (self, self->directory->data, size, cancellable, error))
    return FALSE;
  if (n >= G_MAXUINT16 || start >= G_MAXUINT32 || size >= G_MAXUINT32)
    {
      guint64 place = self->position;

      g_byte_array_append (end, (const guint8 *) "PK\6\6", 4);
      put (end, 44, 8);
      put (end, 45, 2);
      put (end, 45, 2);
      put (end, 0, 8);
      put (end, n, 8);
      put (end, n, 8);
      put (end, size, 8);
      put (end, start, 8);
      g_byte_array_append (end, (const guint8 *) "PK\6\7", 4);
      put (end, 0, 4);
      put (end, place, 8);
      put (end, 1, 4);
    }
  g_byte_array_append (end, (const guint8 *) "PK\5\6", 4);
  put (end, 0, 4);
  put (end, MIN (n, G_MAXUINT16), 2);
  put (end, MIN (n, G_MAXUINT16), 2);
  put (end, MIN (size, G_MAXUINT32), 4);
  put (end, MIN (start, G_MAXUINT32), 4);
  put (end, 0, 2);
  return write_all (self, end->data, end->len, cancellable, error)
         && g_output_stream_flush (self->stream, cancellable, error);
}
