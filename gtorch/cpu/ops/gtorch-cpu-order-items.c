/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-order.h"
#include "cpu/gtorch-cpu-half.h"
#include "base/gtorch-dtype-private.h"

static inline guint32
key_of_float (float x)
{
  guint32 bits;

  if (x != x)
    return G_MAXUINT32;
  x += 0.0f; /* -0 becomes 0 */
  memcpy (&bits, &x, 4);
  return bits ^ ((guint32) ((gint32) bits >> 31) | 0x80000000u);
}

static inline guint64
key_of_double (double x)
{
  guint64 bits;

  if (x != x)
    return G_MAXUINT64;
  x += 0.0;
  memcpy (&bits, &x, 8);
  return bits ^ ((guint64) ((gint64) bits >> 63) | (G_GUINT64_CONSTANT (1) << 63));
}

#define MAKE_ITEMS(U, K, SHIFT, T, KEY)                                 \
  for (i = 0; i < n; i++)                                               \
    {                                                                   \
      const T x = *(const T *) (data + i * stride);                     \
      items[i] = (U) (K) ((K) (KEY) ^ flip) << SHIFT | (U) (first + i); \
    }                                                                   \
  break;

void
gtorch_order_items_32 (guint dtype, const char *data, gint64 stride, gint64 first, gint64 n,
                       gboolean descending, gint64 base, guint64 *items)
{
  const guint32 flip = descending ? G_MAXUINT32 : 0;
  gint64 i;

  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      MAKE_ITEMS (guint64, guint32, 32, float, key_of_float (x))
    case GTORCH_DTYPE_FLOAT16:
      MAKE_ITEMS (guint64, guint32, 32, guint16, key_of_float (gt_half_to_float (x)))
    case GTORCH_DTYPE_BFLOAT16:
      MAKE_ITEMS (guint64, guint32, 32, guint16, key_of_float (gt_bfloat16_to_float (x)))
    case GTORCH_DTYPE_INT8:
      MAKE_ITEMS (guint64, guint32, 32, gint8, (gint32) x + 128)
    case GTORCH_DTYPE_INT16:
      MAKE_ITEMS (guint64, guint32, 32, gint16, (gint32) x + 32768)
    case GTORCH_DTYPE_INT64:
      MAKE_ITEMS (guint64, guint32, 32, guint64, (guint32) (x - (guint64) base))
    case GTORCH_DTYPE_INT32:
      MAKE_ITEMS (guint64, guint32, 32, guint32, x ^ 0x80000000u)
    default:
      MAKE_ITEMS (guint64, guint32, 32, guint8, x)
    }
}

void
gtorch_order_items_64 (guint dtype, const char *data, gint64 stride, gint64 first, gint64 n,
                       gboolean descending, gint64 base, GTorchWideItem *items)
{
  const guint64 flip = descending ? G_MAXUINT64 : 0;
  gint64 i;

  if (dtype != GTORCH_DTYPE_FLOAT64 && dtype != GTORCH_DTYPE_INT64)
    {
      for (i = 0; i < n; i++) /* the line is too long for positions of 32 bits */
        {
          guint64 item;

          gtorch_order_items_32 (dtype, data + i * stride, 0, 0, 1, descending, base, &item);
          items[i] = (GTorchWideItem) (item >> 32) << 64 | (GTorchWideItem) (first + i);
        }
      return;
    }
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      MAKE_ITEMS (GTorchWideItem, guint64, 64, double, key_of_double (x))
    default:
      MAKE_ITEMS (GTorchWideItem, guint64, 64, guint64, x ^ (G_GUINT64_CONSTANT (1) << 63))
    }
}

gboolean
gtorch_order_fits_32 (const gint64 *data, gint64 n, gint64 *base)
{
  gint64 low = G_MAXINT64, high = G_MININT64, i;

  for (i = 0; i < n; i++)
    {
      low = MIN (low, data[i]);
      high = MAX (high, data[i]);
    }
  *base = low;
  return n > 0 && (guint64) high - (guint64) low <= G_MAXUINT32;
}

#define SMALL 24
#define RADIX 256 /* fewer items are merge-sorted */

#define DEFINE_ORDER(suffix, U, BYTES)                                               \
  static void insertion_##suffix (U *items, gint64 n)                                \
  {                                                                                  \
    gint64 i, j;                                                                     \
                                                                                     \
    for (i = 1; i < n; i++)                                                          \
      {                                                                              \
        const U item = items[i];                                                     \
                                                                                     \
        for (j = i; j > 0 && items[j - 1] > item; j--)                               \
          items[j] = items[j - 1];                                                   \
        items[j] = item;                                                             \
      }                                                                              \
  }                                                                                  \
                                                                                     \
  static void merges_##suffix (U *items, U *spare, gint64 n)                         \
  {                                                                                  \
    U *from = items, *to = spare;                                                    \
    gint64 width, begin;                                                             \
                                                                                     \
    for (begin = 0; begin < n; begin += SMALL)                                       \
      insertion_##suffix (items + begin, MIN (SMALL, n - begin));                    \
    for (width = SMALL; width < n; width *= 2)                                       \
      {                                                                              \
        for (begin = 0; begin < n; begin += 2 * width)                               \
          {                                                                          \
            gint64 a = begin, b = MIN (begin + width, n), a_end = b;                 \
            gint64 b_end = MIN (begin + 2 * width, n), o;                            \
                                                                                     \
            for (o = begin; o < b_end; o++)                                          \
              {                                                                      \
                gboolean first = b == b_end || (a < a_end && from[a] < from[b]);     \
                                                                                     \
                to[o] = first ? from[a] : from[b];                                   \
                a += first;                                                          \
                b += !first;                                                         \
              }                                                                      \
          }                                                                          \
        {                                                                            \
          U *swap = from;                                                            \
          from = to;                                                                 \
          to = swap;                                                                 \
        }                                                                            \
      }                                                                              \
    if (from != items)                                                               \
      memcpy (items, from, n * sizeof (U));                                          \
  }                                                                                  \
                                                                                     \
  void gtorch_order_sort_##suffix (U *items, U *spare, gint64 n, gboolean ordered)   \
  {                                                                                  \
    gint64 counts[2 * BYTES][256];                                                   \
    U *from = items, *to = spare;                                                    \
    gint64 i;                                                                        \
    const guint start = ordered ? BYTES : 0;                                         \
    guint pass, d;                                                                   \
                                                                                     \
    if (n < RADIX)                                                                   \
      {                                                                              \
        merges_##suffix (items, spare, n);                                           \
        return;                                                                      \
      }                                                                              \
    memset (counts, 0, sizeof counts);                                               \
    for (i = 0; i < n; i++)                                                          \
      for (pass = start; pass < 2 * BYTES; pass++)                                   \
        counts[pass][(guint8) (items[i] >> (8 * pass))]++;                           \
    for (pass = start; pass < 2 * BYTES; pass++)                                     \
      {                                                                              \
        gint64 *at = counts[pass], sum = 0;                                          \
        const guint shift = 8 * pass;                                                \
        U *swap;                                                                     \
                                                                                     \
        if (at[(guint8) (from[0] >> shift)] == n)                                    \
          continue; /* all items have the same value in this byte */                 \
        for (d = 0; d < 256; d++)                                                    \
          {                                                                          \
            const gint64 count = at[d];                                              \
                                                                                     \
            at[d] = sum;                                                             \
            sum += count;                                                            \
          }                                                                          \
        for (i = 0; i < n; i++)                                                      \
          to[at[(guint8) (from[i] >> shift)]++] = from[i];                           \
        swap = from;                                                                 \
        from = to;                                                                   \
        to = swap;                                                                   \
      }                                                                              \
    if (from != items)                                                               \
      memcpy (items, from, n * sizeof (U));                                          \
  }                                                                                  \
                                                                                     \
  void gtorch_order_select_##suffix (U *items, gint64 n, gint64 k)                   \
  {                                                                                  \
    gint64 low = 0, high = n - 1, at = k - 1;                                        \
                                                                                     \
    while (high - low > SMALL)                                                       \
      {                                                                              \
        gint64 middle = low + (high - low) / 2, i = low - 1, j = high + 1;           \
        const U a = items[low], b = items[middle], c = items[high];                  \
        const U pivot = a < b ? (b < c ? b : MAX (a, c)) : (a < c ? a : MAX (b, c)); \
                                                                                     \
        for (;;)                                                                     \
          {                                                                          \
            U swap;                                                                  \
                                                                                     \
            while (items[++i] < pivot)                                               \
              ;                                                                      \
            while (items[--j] > pivot)                                               \
              ;                                                                      \
            if (i >= j)                                                              \
              break;                                                                 \
            swap = items[i];                                                         \
            items[i] = items[j];                                                     \
            items[j] = swap;                                                         \
          }                                                                          \
        if (at <= j)                                                                 \
          high = j;                                                                  \
        else                                                                         \
          low = j + 1;                                                               \
      }                                                                              \
    insertion_##suffix (items + low, high - low + 1);                                \
  }

DEFINE_ORDER (32, guint64, 4)
DEFINE_ORDER (64, GTorchWideItem, 8)
