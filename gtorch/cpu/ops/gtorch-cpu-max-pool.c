/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Max pooling. Which element is the largest cannot be predicted, so nothing here branches on it: a row of
 * results takes one element of each of its windows after the other. The usual windows of two by two are
 * processed four at a time. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-pool.h"
#include "base/gtorch-dtype.h"
#include "device/gtorch-scratch-private.h"

typedef GTorchCpuPool Pool;

/* Computes one result: the last NaN, or the first of the largest elements. */
#define MAX_IN_WINDOW(T)                                                                         \
  G_STMT_START                                                                                   \
  {                                                                                              \
    const T *x = (const T *) pool->x + image * pool->windows.in[0] * pool->windows.in[1];        \
    gint64 y0 = oy * pool->windows.stride[0] - pool->windows.padding[0];                         \
    gint64 x0 = ox * pool->windows.stride[1] - pool->windows.padding[1];                         \
    gint64 y1 = MIN (y0 + (pool->windows.kernel[0] - 1) * pool->windows.dilation[0] + 1,         \
                     pool->windows.in[0]);                                                       \
    gint64 x1 = MIN (x0 + (pool->windows.kernel[1] - 1) * pool->windows.dilation[1] + 1,         \
                     pool->windows.in[1]);                                                       \
    gint64 result = (image * pool->windows.out[0] + oy) * pool->windows.out[1] + ox, at = -1, i, \
           j;                                                                                    \
    T best = 0;                                                                                  \
                                                                                                 \
    while (y0 < 0)                                                                               \
      y0 += pool->windows.dilation[0];                                                           \
    while (x0 < 0)                                                                               \
      x0 += pool->windows.dilation[1];                                                           \
    for (i = y0; i < y1; i += pool->windows.dilation[0])                                         \
      for (j = x0; j < x1; j += pool->windows.dilation[1])                                       \
        {                                                                                        \
          T v = x[i * pool->windows.in[1] + j];                                                  \
          if (at < 0 || v > best || v != v)                                                      \
            {                                                                                    \
              best = v;                                                                          \
              at = i * pool->windows.in[1] + j;                                                  \
            }                                                                                    \
        }                                                                                        \
    ((T *) pool->y)[result] = best;                                                              \
    pool->indices[result] = at;                                                                  \
  }                                                                                              \
  G_STMT_END

static void
max_in_window (const Pool *pool, gint64 image, gint64 oy, gint64 ox)
{
  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MAX_IN_WINDOW (gfloat);
  else
    MAX_IN_WINDOW (gdouble);
}

typedef gfloat Four __attribute__ ((vector_size (16)));
typedef gint32 Choice __attribute__ ((vector_size (16)));
typedef gint64 Places __attribute__ ((vector_size (16)));

#define EVEN(a, b)           __builtin_shufflevector (a, b, 0, 2, 4, 6)
#define ODD(a, b)            __builtin_shufflevector (a, b, 1, 3, 5, 7)
#define LOW(a, b)            __builtin_shufflevector (a, b, 0, 4, 1, 5)
#define HIGH(a, b)           __builtin_shufflevector (a, b, 2, 6, 3, 7)
#define CHOOSE(choice, a, b) (((choice) & (Choice) (a)) | (~(choice) & (Choice) (b)))

/* Computes four adjacent windows of 2 by 2. `at` is the place of the first element, `below` the distance to
 * the element below. Returns FALSE if there is, or may be, a NaN. */
static inline gboolean
max_in_four (const gfloat *x, gint64 at, gint64 below, gfloat *y, gint64 *found)
{
  const Choice places = (gint32) at + (Choice){ 0, 2, 4, 6 }, none = { 0 };
  Four v[4], a, b, c, d, top, bottom, sum;
  Choice right, under, place, bad;
  Places any;

  memcpy (v, x + at, sizeof v / 2);
  memcpy (v + 2, x + at + below, sizeof v / 2);
  a = EVEN (v[0], v[1]);
  b = ODD (v[0], v[1]);
  c = EVEN (v[2], v[3]);
  d = ODD (v[2], v[3]);
  sum = a + b + c + d;
  bad = sum != sum;
  any = (Places) bad;
  if ((any[0] | any[1]) != 0)
    return FALSE;
  right = b > a;
  top = (Four) CHOOSE (right, b, a);
  place = places - right;
  right = d > c;
  bottom = (Four) CHOOSE (right, d, c);
  under = bottom > top;
  place = CHOOSE (under, places + (gint32) below - right, place);
  top = (Four) CHOOSE (under, bottom, top);
  memcpy (y, &top, sizeof top);
  v[0] = (Four) LOW (place, none);
  v[1] = (Four) HIGH (place, none);
  memcpy (found, v, sizeof v / 2); /* little-endian: the upper halves are 0 */
  return TRUE;
}

/* Returns whether windows are two by two and do not overlap. */
static gboolean
is_simple (const Pool *pool)
{
  guint d;

  for (d = 0; d < 2; d++)
    if (pool->windows.kernel[d] != 2 || pool->windows.stride[d] != 2
        || pool->windows.padding[d] != 0 || pool->windows.dilation[d] != 1
        || 2 * pool->windows.out[d] > pool->windows.in[d])
      return FALSE;
  return G_BYTE_ORDER == G_LITTLE_ENDIAN && pool->dtype == GTORCH_DTYPE_FLOAT32;
}

static void
max_in_row_of_fours (const Pool *pool, gint64 image, gint64 oy)
{
  const gfloat *x = (const gfloat *) pool->x + image * pool->windows.in[0] * pool->windows.in[1];
  gint64 result = (image * pool->windows.out[0] + oy) * pool->windows.out[1], ox, k;

  for (ox = 0; ox < pool->windows.out[1]; ox += 4)
    if (ox + 4 > pool->windows.out[1]
        || !max_in_four (x, 2 * (oy * pool->windows.in[1] + ox), pool->windows.in[1],
                         (gfloat *) pool->y + result + ox, pool->indices + result + ox))
      for (k = ox; k < MIN (ox + 4, pool->windows.out[1]); k++)
        max_in_window (pool, image, oy, k);
}

/* GCC vectorises at -O3 only; Clang does at -O2, and lacks the attribute. */
#ifdef __clang__
#define GTORCH_VECTORIZED
#else
#define GTORCH_VECTORIZED __attribute__ ((optimize ("O3")))
#endif

/* Computes a row of results, one element of each window after the other. Places are counted in P. */
#define MAX_IN_ROW(T, P, name)                                                                     \
  static inline __attribute__ ((always_inline)) void name##_pass (const T *x, P step, P at, P n,   \
                                                                  T *best, P *place)               \
  {                                                                                                \
    P k;                                                                                           \
                                                                                                   \
    _Pragma ("GCC ivdep") for (k = 0; k < n; k++)                                                  \
    {                                                                                              \
      const T v = x[k * step], former = best[k];                                                   \
      const P own = at + k * step, taken = -(P) ((v > former) | (v != v));                         \
                                                                                                   \
      best[k] = taken ? v : former;                                                                \
      place[k] = (own & taken) | (place[k] & ~taken);                                              \
    }                                                                                              \
  }                                                                                                \
                                                                                                   \
  static GTORCH_VECTORIZED void name (const Pool *pool, gint64 image, gint64 oy, gpointer scratch) \
  {                                                                                                \
    const T *x = (const T *) pool->x + image * pool->windows.in[0] * pool->windows.in[1];          \
    const gint64 result = (image * pool->windows.out[0] + oy) * pool->windows.out[1];              \
    const P step = pool->windows.stride[1];                                                        \
    T *best = (T *) pool->y + result;                                                              \
    P *place = scratch;                                                                            \
    gint64 first = oy * pool->windows.stride[0] - pool->windows.padding[0], i, j, ox;              \
                                                                                                   \
    while (first < 0)                                                                              \
      first += pool->windows.dilation[0];                                                          \
    for (ox = 0; ox < pool->windows.out[1]; ox++)                                                  \
      {                                                                                            \
        gint64 left = ox * pool->windows.stride[1] - pool->windows.padding[1];                     \
                                                                                                   \
        if (left < 0)                                                                              \
          left += (pool->windows.dilation[1] - 1 - left) / pool->windows.dilation[1]               \
                  * pool->windows.dilation[1];                                                     \
        best[ox] = -INFINITY;                                                                      \
        place[ox] = first * pool->windows.in[1] + left;                                            \
      }                                                                                            \
    for (i = 0; i < pool->windows.kernel[0]; i++)                                                  \
      for (j = 0; j < pool->windows.kernel[1]; j++)                                                \
        {                                                                                          \
          const gint64 row = oy * pool->windows.stride[0] - pool->windows.padding[0]               \
                             + i * pool->windows.dilation[0];                                      \
          const gint64 left = j * pool->windows.dilation[1] - pool->windows.padding[1];            \
          const gint64 begin = left < 0 ? (-left + step - 1) / step : 0;                           \
          const gint64 end =                                                                       \
              left < pool->windows.in[1]                                                           \
                  ? MIN ((pool->windows.in[1] - 1 - left) / step + 1, pool->windows.out[1])        \
                  : 0;                                                                             \
          const gint64 at = row * pool->windows.in[1] + left + begin * step;                       \
                                                                                                   \
          if (row < 0 || row >= pool->windows.in[0] || begin >= end)                               \
            continue;                                                                              \
          if (step == 1)                                                                           \
            name##_pass (x + at, 1, at, end - begin, best + begin, place + begin);                 \
          else if (step == 2)                                                                      \
            name##_pass (x + at, 2, at, end - begin, best + begin, place + begin);                 \
          else                                                                                     \
            name##_pass (x + at, step, at, end - begin, best + begin, place + begin);              \
        }                                                                                          \
    for (ox = 0; ox < pool->windows.out[1]; ox++)                                                  \
      pool->indices[result + ox] = place[ox];                                                      \
  }

MAX_IN_ROW (gfloat, gint32, max_in_row_f32)
MAX_IN_ROW (gdouble, gint64, max_in_row_f64)

void
gtorch_cpu_max_pool (gint64 begin, gint64 end, gpointer user_data)
{
  Pool *pool = user_data;
  const gboolean is_f32 = pool->dtype == GTORCH_DTYPE_FLOAT32, simple = is_simple (pool);
  const gboolean fits =
      pool->windows.in[0] <= G_MAXINT32 / MAX (pool->windows.in[1], 1); /* places fit in gint32 */
  g_autofree gint64 *scratch = gtorch_scratch_new (pool->windows.out[1], sizeof (gint64), NULL);
  gint64 image, oy, ox;

  if (scratch == NULL)
    {
      g_atomic_int_set (&pool->failed, TRUE);
      return;
    }
  for (image = begin; image < end; image++)
    for (oy = 0; oy < pool->windows.out[0]; oy++)
      if (simple && fits)
        max_in_row_of_fours (pool, image, oy);
      else if (!is_f32)
        max_in_row_f64 (pool, image, oy, scratch);
      else if (fits)
        max_in_row_f32 (pool, image, oy, scratch);
      else
        for (ox = 0; ox < pool->windows.out[1]; ox++)
          max_in_window (pool, image, oy, ox);
}
