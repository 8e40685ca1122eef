/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The one number of EXIF that tells how to hold a picture. What is malformed has none. */

#include "config.h"

#include <string.h>

#include "vision/gtorch-image-private.h"

typedef struct
{
  const guint8 *data;
  gsize n;
  gboolean is_big_endian;
} Tiff;

static guint
get_16 (const Tiff *tiff, gsize at)
{
  const guint8 *bytes = tiff->data + at;

  if (at + 2 > tiff->n)
    return 0;
  return tiff->is_big_endian ? bytes[0] << 8 | bytes[1] : bytes[1] << 8 | bytes[0];
}

static gsize
get_32 (const Tiff *tiff, gsize at)
{
  gsize first = get_16 (tiff, at), second = get_16 (tiff, at + 2);

  return tiff->is_big_endian ? first << 16 | second : second << 16 | first;
}

static guint
read_tiff (const guint8 *data, gsize n)
{
  Tiff tiff = { data, n, FALSE };
  gsize at;
  guint n_entries;

  if (n < 8 || (memcmp (data, "II", 2) != 0 && memcmp (data, "MM", 2) != 0))
    return 1;
  tiff.is_big_endian = data[0] == 'M';
  at = get_32 (&tiff, 4);
  if (at > n)
    return 1;
  n_entries = get_16 (&tiff, at);
  for (at += 2; n_entries > 0 && at + 12 <= n; n_entries--, at += 12)
    if (get_16 (&tiff, at) == 0x0112)
      {
        guint value = get_16 (&tiff, at + 8);

        return value >= 1 && value <= 8 ? value : 1;
      }
  return 1;
}

guint
gtorch_exif_orientation (const guint8 *jpeg, gsize n_bytes)
{
  gsize at = 2;

  while (at + 4 <= n_bytes && jpeg[at] == 0xff)
    {
      guint8 marker = jpeg[at + 1];
      gsize length = jpeg[at + 2] << 8 | jpeg[at + 3];

      if (marker == 0xff)
        {
          at++;
          continue;
        }
      /* the beginning of the data */
      if (marker == 0xda || length < 2 || length > n_bytes - at - 2)
        return 1;
      if (marker == 0xe1 && length >= 8 && memcmp (jpeg + at + 4, "Exif\0\0", 6) == 0)
        return read_tiff (jpeg + at + 10, length - 8);
      at += 2 + length;
    }
  return 1;
}
