/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The bytes of TensorBoard's files: protocol buffers, records with checksums, and pictures. */

#include "config.h"

#include "train/gtorch-event-records-private.h"

#include <gio/gio.h>
#include <string.h>

/* --- protocol buffers --- */

enum
{
  WIRE_VARINT = 0,
  WIRE_64 = 1,
  WIRE_LENGTH = 2,
  WIRE_32 = 5,
};

static void
add_varint (GByteArray *message, guint64 value)
{
  guint8 bytes[10];
  guint n = 0;

  do
    {
      bytes[n++] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
      value >>= 7;
    }
  while (value > 0);
  g_byte_array_append (message, bytes, n);
}

static void
add_key (GByteArray *message, guint field, guint wire)
{
  add_varint (message, field << 3 | wire);
}

static guint64
double_bits (gdouble value)
{
  guint64 bits;

  memcpy (&bits, &value, sizeof bits);
  return GUINT64_TO_LE (bits);
}

void
gtorch_proto_add_int (GByteArray *message, guint field, gint64 value)
{
  add_key (message, field, WIRE_VARINT);
  add_varint (message, (guint64) value);
}

void
gtorch_proto_add_double (GByteArray *message, guint field, gdouble value)
{
  const guint64 bits = double_bits (value);

  add_key (message, field, WIRE_64);
  g_byte_array_append (message, (const guint8 *) &bits, sizeof bits);
}

void
gtorch_proto_add_float (GByteArray *message, guint field, gfloat value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof bits);
  bits = GUINT32_TO_LE (bits);
  add_key (message, field, WIRE_32);
  g_byte_array_append (message, (const guint8 *) &bits, sizeof bits);
}

void
gtorch_proto_add_bytes (GByteArray *message, guint field, gconstpointer data, gsize n_bytes)
{
  add_key (message, field, WIRE_LENGTH);
  add_varint (message, n_bytes);
  g_byte_array_append (message, data, n_bytes);
}

void
gtorch_proto_add_string (GByteArray *message, guint field, const gchar *text)
{
  gtorch_proto_add_bytes (message, field, text, strlen (text));
}

void
gtorch_proto_add_message (GByteArray *message, guint field, GByteArray *inner)
{
  gtorch_proto_add_bytes (message, field, inner->data, inner->len);
  g_byte_array_unref (inner);
}

void
gtorch_proto_add_doubles (GByteArray *message, guint field, const gdouble *values, gsize n)
{
  add_key (message, field, WIRE_LENGTH);
  add_varint (message, n * sizeof (gdouble));
  for (gsize i = 0; i < n; i++)
    {
      const guint64 bits = double_bits (values[i]);

      g_byte_array_append (message, (const guint8 *) &bits, sizeof bits);
    }
}

/* --- checksums --- */

typedef struct
{
  gsize is_made;
  guint32 rows[256];
} Table;

static const guint32 *
table_of (Table *table, guint32 polynomial)
{
  if (g_once_init_enter (&table->is_made))
    {
      for (guint i = 0; i < 256; i++)
        {
          guint32 row = i;

          for (guint bit = 0; bit < 8; bit++)
            row = row >> 1 ^ (row & 1 ? polynomial : 0);
          table->rows[i] = row;
        }
      g_once_init_leave (&table->is_made, 1);
    }
  return table->rows;
}

static guint32
checksum (const guint32 *rows, guint32 crc, const guint8 *data, gsize n_bytes)
{
  crc = ~crc;
  while (n_bytes-- > 0)
    crc = crc >> 8 ^ rows[(crc ^ *data++) & 0xff];
  return ~crc;
}

guint32
gtorch_crc32c (gconstpointer data, gsize n_bytes)
{
  static Table table;

  return checksum (table_of (&table, 0x82f63b78), 0, data, n_bytes);
}

guint32
gtorch_crc32 (guint32 crc, gconstpointer data, gsize n_bytes)
{
  static Table table;

  return checksum (table_of (&table, 0xedb88320), crc, data, n_bytes);
}

/* --- records --- */

static void
add_masked (GByteArray *bytes, gconstpointer data, gsize n_bytes)
{
  guint32 crc = gtorch_crc32c (data, n_bytes);

  crc = GUINT32_TO_LE ((crc >> 15 | crc << 17) + 0xa282ead8u);
  g_byte_array_append (bytes, (const guint8 *) &crc, sizeof crc);
}

GBytes *
gtorch_tfrecord_new (const GByteArray *data)
{
  const guint64 length = GUINT64_TO_LE ((guint64) data->len);
  GByteArray *record = g_byte_array_sized_new (data->len + 16);

  g_byte_array_append (record, (const guint8 *) &length, sizeof length);
  add_masked (record, &length, sizeof length);
  g_byte_array_append (record, data->data, data->len);
  add_masked (record, data->data, data->len);
  return g_byte_array_free_to_bytes (record);
}

/* --- pictures --- */

static void
add_big (GByteArray *bytes, guint32 number)
{
  number = GUINT32_TO_BE (number);
  g_byte_array_append (bytes, (const guint8 *) &number, sizeof number);
}

static void
add_chunk (GByteArray *png, const gchar *kind, gconstpointer data, gsize n_bytes)
{
  guint32 crc = gtorch_crc32 (0, kind, 4);

  add_big (png, n_bytes);
  g_byte_array_append (png, (const guint8 *) kind, 4);
  if (n_bytes > 0)
    g_byte_array_append (png, data, n_bytes);
  crc = gtorch_crc32 (crc, data, n_bytes);
  add_big (png, crc);
}

GBytes *
gtorch_png_encode (const guint8 *pixels, guint32 width, guint32 height, guint n_channels,
                   GError **error)
{
  static const guint8 kinds[] = { 0, 0, 0, 2, 6 };
  static const guint8 signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
  g_autoptr (GConverter) deflate =
      G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_ZLIB, -1));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, deflate);
  g_autoptr (GByteArray) head = g_byte_array_new ();
  g_autoptr (GByteArray) png = g_byte_array_new ();
  g_autoptr (GBytes) data = NULL;
  const gsize row = (gsize) width * n_channels;
  const guint8 no_filter = 0;

  for (guint32 y = 0; y < height; y++)
    if (!g_output_stream_write_all (stream, &no_filter, 1, NULL, NULL, error)
        || !g_output_stream_write_all (stream, pixels + y * row, row, NULL, NULL, error))
      return NULL;
  if (!g_output_stream_close (stream, NULL, error))
    return NULL;
  data = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
  add_big (head, width);
  add_big (head, height);
  g_byte_array_append (head, (const guint8[]){ 8, kinds[n_channels], 0, 0, 0 }, 5);
  g_byte_array_append (png, signature, sizeof signature);
  add_chunk (png, "IHDR", head->data, head->len);
  add_chunk (png, "IDAT", g_bytes_get_data (data, NULL), g_bytes_get_size (data));
  add_chunk (png, "IEND", NULL, 0);
  return g_byte_array_free_to_bytes (g_steal_pointer (&png));
}
