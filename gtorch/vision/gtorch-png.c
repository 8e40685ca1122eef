/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* PNG files of gray images (RFC 2083), which GdkPixbuf writes as coloured ones. */

#include "config.h"

#include <gio/gio.h>
#include <string.h>

#include "device/gtorch-scratch-private.h"
#include "io/gtorch-zip-private.h"
#include "vision/gtorch-image-private.h"

#define CHUNK 65536

static void
put_number (GByteArray *to, guint32 number)
{
  const guint32 big = GUINT32_TO_BE (number);

  g_byte_array_append (to, (const guint8 *) &big, sizeof big);
}

static void
put_part (GByteArray *to, const gchar *name, gconstpointer data, gsize n)
{
  const guint32 crc = gtorch_zip_crc (0, name, 4);

  put_number (to, n);
  g_byte_array_append (to, (const guint8 *) name, 4);
  if (n > 0)
    g_byte_array_append (to, data, n);
  put_number (to, gtorch_zip_crc (crc, data, n));
}

/* Compressed rows, each behind a byte that says how its numbers are filtered: 2, those above are taken
 * off. */
static GBytes *
compress (const guint8 *pixels, gint64 width, gint64 height, GError **error)
{
  g_autoptr (GConverter) converter =
      G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_ZLIB, -1));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, converter);
  g_autofree guint8 *row = gtorch_scratch_new (width + 1, 1, error);

  if (row == NULL)
    return NULL;
  row[0] = 2;
  for (gint64 y = 0; y < height; y++, pixels += width)
    {
      for (gint64 x = 0; x < width; x++)
        row[x + 1] = y > 0 ? pixels[x] - pixels[x - width] : pixels[x];
      if (!g_output_stream_write_all (stream, row, width + 1, NULL, NULL, error))
        return NULL;
    }
  if (!g_output_stream_close (stream, NULL, error))
    return NULL;
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

GBytes *
gtorch_png_encode_gray (const guint8 *pixels, gint64 width, gint64 height, GError **error)
{
  static const guint8 signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
  g_autoptr (GBytes) rows = compress (pixels, width, height, error);
  GByteArray *file;
  guint8 head[13] = { 0 };
  const guint32 size[] = { GUINT32_TO_BE ((guint32) width), GUINT32_TO_BE ((guint32) height) };
  const guint8 *data;
  gsize n;

  if (rows == NULL)
    return NULL;
  memcpy (head, size, sizeof size);
  head[8] =
      8; /* bits of a pixel; then gray, and the only kinds of compression, filters and order */
  file = g_byte_array_new ();
  g_byte_array_append (file, signature, sizeof signature);
  put_part (file, "IHDR", head, sizeof head);
  data = g_bytes_get_data (rows, &n);
  for (gsize at = 0; at < n; at += CHUNK)
    put_part (file, "IDAT", data + at, MIN (CHUNK, n - at));
  put_part (file, "IEND", NULL, 0);
  return g_byte_array_free_to_bytes (file);
}
