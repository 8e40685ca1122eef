/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Messages of protocol buffers, as far as TensorBoard's events need them: fields are appended to bytes. */

void gtorch_proto_add_int (GByteArray *message, guint field, gint64 value);
void gtorch_proto_add_double (GByteArray *message, guint field, gdouble value);
void gtorch_proto_add_float (GByteArray *message, guint field, gfloat value);
void gtorch_proto_add_bytes (GByteArray *message, guint field, gconstpointer data, gsize n_bytes);
void gtorch_proto_add_string (GByteArray *message, guint field, const gchar *text);
/* A message inside, which is freed. */
void gtorch_proto_add_message (GByteArray *message, guint field, GByteArray *inner);
/* A packed list. */
void gtorch_proto_add_doubles (GByteArray *message, guint field, const gdouble *values, gsize n);

/* The checksums CRC-32C (Castagnoli) and CRC-32 (of PNG files). */
guint32 gtorch_crc32c (gconstpointer data, gsize n_bytes);
guint32 gtorch_crc32 (guint32 crc, gconstpointer data, gsize n_bytes);

/* A record of a file of TFRecord: its length and a masked checksum, the data and a masked checksum. */
GBytes *gtorch_tfrecord_new (const GByteArray *data);

/* A PNG file of 8 bits for each of 1 (grey), 3 (red, green, blue) or 4 channels. */
GBytes *gtorch_png_encode (const guint8 *pixels, guint32 width, guint32 height, guint n_channels,
                           GError **error);

G_END_DECLS
