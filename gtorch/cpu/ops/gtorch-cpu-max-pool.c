/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Max pooling. Which element is the largest cannot be predicted, so nothing here branches on it: a row of
 * results takes one element of each of its windows after the other. The usual windows of two by two are
 * processed four at a time. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-pool.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "base/gtorch-dtype.h"
#include "device/gtorch-scratch-private.h"

typedef GTorchCpuPool Pool;

/* Finds the elements of the window of one result along one dimension. */
static void
find_elements (const GTorchWindows *windows, guint d, gint64 o, gint64 *first, gint64 *end)
{
  if (windows->adaptive)
    {
      *first = o * windows->in[d] / windows->out[d];
      *end = ((o + 1) * windows->in[d] + windows->out[d] - 1) / windows->out[d];
      return;
    }
  *first = o * windows->stride[d] - windows->padding[d];
  *end = MIN (*first + (windows->kernel[d] - 1) * windows->dilation[d] + 1, windows->in[d]);
  if (*first < 0)
    *first += (windows->dilation[d] - 1 - *first) / windows->dilation[d] * windows->dilation[d];
}

/* Finds the first element of a part of a row that is larger than the best one so far, or NaN. */
static inline gint64
beyond_f32 (const gfloat *x, gint64 n, gfloat best)
{
  gint64 first;

  GTORCH_ISA_CALL (gtorch_row_beyond_f32) (x, n, best, &first);
  return first;
}

static inline gint64
beyond_f64 (const gdouble *x, gint64 n, gdouble best)
{
  gint64 first;

  GTORCH_ISA_CALL (gtorch_row_beyond_f64) (x, n, best, &first);
  return first;
}

#define BEYOND(T, name)                             \
  static gint64 name (const T *x, gint64 n, T best) \
  {                                                 \
    gint64 i;                                       \
                                                    \
    for (i = 0; i < n && x[i] <= best; i++)         \
      ;                                             \
    return i;                                       \
  }
BEYOND (gint32, beyond_i32)
BEYOND (gint64, beyond_i64)

#define LONG_ROW 16

/* Computes one result: the last NaN, or the first of the largest elements. Few elements of long rows are
 * larger than all before. */
#define MAX_IN_WINDOW(T, name)                                                                   \
  G_STMT_START                                                                                   \
  {                                                                                              \
    const T *x = (const T *) pool->x + image * w->n_in;                                          \
    T best = 0;                                                                                  \
                                                                                                 \
    for (z = first[0]; z < end[0]; z += w->dilation[0])                                          \
      for (y = first[1]; y < end[1]; y += w->dilation[1])                                        \
        for (i = first[2], row = (z * w->in[1] + y) * w->in[2]; i < end[2]; i += w->dilation[2]) \
          {                                                                                      \
            T v;                                                                                 \
                                                                                                 \
            if (is_long && at >= 0)                                                              \
              i += beyond_##name (x + row + i, end[2] - i, best);                                \
            if (i >= end[2])                                                                     \
              break;                                                                             \
            v = x[row + i];                                                                      \
            if (at < 0 || v > best || v != v)                                                    \
              {                                                                                  \
                best = v;                                                                        \
                at = row + i;                                                                    \
              }                                                                                  \
          }                                                                                      \
    ((T *) pool->y)[result] = best;                                                              \
  }                                                                                              \
  G_STMT_END

static void
max_in_window (const Pool *pool, gint64 image, gint64 oz, gint64 oy, gint64 ox)
{
  const GTorchWindows *w = &pool->windows;
  const gint64 result = image * w->n_out + (oz * w->out[1] + oy) * w->out[2] + ox;
  gint64 first[3], end[3], at = -1, z, y, i, row;
  gboolean is_long;

  find_elements (w, 0, oz, &first[0], &end[0]);
  find_elements (w, 1, oy, &first[1], &end[1]);
  find_elements (w, 2, ox, &first[2], &end[2]);
  is_long = w->dilation[2] == 1 && end[2] - first[2] >= LONG_ROW;
  switch (pool->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      MAX_IN_WINDOW (gfloat, f32);
      break;
    case GTORCH_DTYPE_FLOAT64:
      MAX_IN_WINDOW (gdouble, f64);
      break;
    case GTORCH_DTYPE_INT32:
      MAX_IN_WINDOW (gint32, i32);
      break;
    default:
      MAX_IN_WINDOW (gint64, i64);
    }
  pool->indices[result] = at;
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
  const GTorchWindows *w = &pool->windows;
  guint d;

  for (d = 1; d < 3; d++)
    if (w->kernel[d] != 2 || w->stride[d] != 2 || w->padding[d] != 0 || w->dilation[d] != 1
        || 2 * w->out[d] > w->in[d])
      return FALSE;
  return G_BYTE_ORDER == G_LITTLE_ENDIAN && w->n == 2 && pool->dtype == GTORCH_DTYPE_FLOAT32;
}

static void
max_in_row_of_fours (const Pool *pool, gint64 image, gint64 oy)
{
  const GTorchWindows *w = &pool->windows;
  const gfloat *x = (const gfloat *) pool->x + image * w->n_in;
  gint64 result = image * w->n_out + oy * w->out[2], ox, k;

  for (ox = 0; ox < w->out[2]; ox += 4)
    if (ox + 4 > w->out[2]
        || !max_in_four (x, 2 * (oy * w->in[2] + ox), w->in[2], (gfloat *) pool->y + result + ox,
                         pool->indices + result + ox))
      for (k = ox; k < MIN (ox + 4, w->out[2]); k++)
        max_in_window (pool, image, 0, oy, k);
}

/* Computes a row of results, one element of each window after the other. Places are counted in P. */
#define MAX_IN_ROW(T, P, name)                                                                   \
  static inline __attribute__ ((always_inline)) void name##_pass (const T *x, P step, P at, P n, \
                                                                  T *best, P *place)             \
  {                                                                                              \
    P k;                                                                                         \
                                                                                                 \
    _Pragma ("GCC ivdep") for (k = 0; k < n; k++)                                                \
    {                                                                                            \
      const T v = x[k * step], former = best[k];                                                 \
      const P own = at + k * step, taken = -(P) ((v > former) | (v != v));                       \
                                                                                                 \
      best[k] = taken ? v : former;                                                              \
      place[k] = (own & taken) | (place[k] & ~taken);                                            \
    }                                                                                            \
  }                                                                                              \
                                                                                                 \
  static GTORCH_VECTORIZED void name (const Pool *pool, gint64 image, gint64 oz, gint64 oy,      \
                                      gpointer scratch)                                          \
  {                                                                                              \
    const GTorchWindows *w = &pool->windows;                                                     \
    const T *x = (const T *) pool->x + image * w->n_in;                                          \
    const gint64 result = image * w->n_out + (oz * w->out[1] + oy) * w->out[2];                  \
    const P step = w->stride[2];                                                                 \
    T *best = (T *) pool->y + result;                                                            \
    P *place = scratch;                                                                          \
    const gint64 padding = w->padding[2], dilation = w->dilation[2], n_out = w->out[2];          \
    gint64 first[2], end[2], base, z, y, j, ox;                                                  \
                                                                                                 \
    find_elements (w, 0, oz, &first[0], &end[0]);                                                \
    find_elements (w, 1, oy, &first[1], &end[1]);                                                \
    base = (first[0] * w->in[1] + first[1]) * w->in[2];                                          \
    for (ox = 0; ox < n_out; ox++)                                                               \
      {                                                                                          \
        gint64 left = ox * step - padding;                                                       \
                                                                                                 \
        if (left < 0)                                                                            \
          left += (dilation - 1 - left) / dilation * dilation;                                   \
        best[ox] = -INFINITY;                                                                    \
        place[ox] = base + left;                                                                 \
      }                                                                                          \
    for (z = first[0]; z < end[0]; z += w->dilation[0])                                          \
      for (y = first[1]; y < end[1]; y += w->dilation[1])                                        \
        for (j = 0; j < w->kernel[2]; j++)                                                       \
          {                                                                                      \
            const gint64 left = j * dilation - padding;                                          \
            const gint64 begin = left < 0 ? (-left + step - 1) / step : 0;                       \
            const gint64 stop =                                                                  \
                left < w->in[2] ? MIN ((w->in[2] - 1 - left) / step + 1, n_out) : 0;             \
            const gint64 at = (z * w->in[1] + y) * w->in[2] + left + begin * step;               \
                                                                                                 \
            if (begin >= stop)                                                                   \
              continue;                                                                          \
            if (step == 1)                                                                       \
              name##_pass (x + at, 1, at, stop - begin, best + begin, place + begin);            \
            else if (step == 2)                                                                  \
              name##_pass (x + at, 2, at, stop - begin, best + begin, place + begin);            \
            else                                                                                 \
              name##_pass (x + at, step, at, stop - begin, best + begin, place + begin);         \
          }                                                                                      \
    for (ox = 0; ox < n_out; ox++)                                                               \
      pool->indices[result + ox] = place[ox];                                                    \
  }

MAX_IN_ROW (gfloat, gint32, max_in_row_f32)
MAX_IN_ROW (gdouble, gint64, max_in_row_f64)

#define VALUES_IN_ROW(T, name, LEAST)                                                              \
  static void values_in_row_##name (const Pool *pool, gint64 image, gint64 oz, gint64 oy)          \
  {                                                                                                \
    const GTorchWindows *w = &pool->windows;                                                       \
    const T *x = (const T *) pool->x + image * w->n_in;                                            \
    T *best = (T *) pool->y + image * w->n_out + (oz * w->out[1] + oy) * w->out[2];                \
    const gint64 step = w->stride[2], padding = w->padding[2], dilation = w->dilation[2];          \
    const gboolean in_pairs = step == 2 && w->kernel[2] == 2 && dilation == 1 && padding == 0      \
                              && 2 * w->out[2] <= w->in[2];                                        \
    gint64 first[2], end[2], z, y, j, ox;                                                          \
                                                                                                   \
    find_elements (w, 0, oz, &first[0], &end[0]);                                                  \
    find_elements (w, 1, oy, &first[1], &end[1]);                                                  \
    for (ox = 0; ox < w->out[2]; ox++)                                                             \
      best[ox] = LEAST;                                                                            \
    for (z = first[0]; z < end[0]; z += w->dilation[0])                                            \
      for (y = first[1]; y < end[1]; y += w->dilation[1])                                          \
        if (in_pairs)                                                                              \
          GTORCH_ISA_CALL (gtorch_pool_max_pairs_##name)                                           \
    (x + (z * w->in[1] + y) * w->in[2], w->out[2], best);                                          \
    else for (j = 0; j < w->kernel[2]; j++)                                                        \
    {                                                                                              \
      const gint64 left = j * dilation - padding;                                                  \
      const gint64 begin = left < 0 ? (-left + step - 1) / step : 0;                               \
      const gint64 stop = left < w->in[2] ? MIN ((w->in[2] - 1 - left) / step + 1, w->out[2]) : 0; \
                                                                                                   \
      if (begin < stop)                                                                            \
        GTORCH_ISA_CALL (gtorch_pool_max_##name)                                                   \
      (x + (z * w->in[1] + y) * w->in[2] + left + begin * step, step, stop - begin, best + begin); \
    }                                                                                              \
  }

VALUES_IN_ROW (gfloat, f32, -INFINITY)
VALUES_IN_ROW (gdouble, f64, -INFINITY)
VALUES_IN_ROW (gint32, i32, G_MININT32)
VALUES_IN_ROW (gint64, i64, G_MININT64)

void
gtorch_cpu_max_values (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  const GTorchWindows *w = &pool->windows;
  gint64 row;

  for (row = begin; row < end; row++)
    {
      const gint64 oy = row % w->out[1], plane = row / w->out[1];
      const gint64 oz = plane % w->out[0], image = plane / w->out[0];

      switch (pool->dtype)
        {
        case GTORCH_DTYPE_FLOAT32:
          values_in_row_f32 (pool, image, oz, oy);
          break;
        case GTORCH_DTYPE_FLOAT64:
          values_in_row_f64 (pool, image, oz, oy);
          break;
        case GTORCH_DTYPE_INT32:
          values_in_row_i32 (pool, image, oz, oy);
          break;
        default:
          values_in_row_i64 (pool, image, oz, oy);
        }
    }
}

void
gtorch_cpu_max_images (gint64 begin, gint64 end, gpointer user_data)
{
  Pool *pool = user_data;
  const GTorchWindows *w = &pool->windows;
  const gboolean is_f32 = pool->dtype == GTORCH_DTYPE_FLOAT32, simple = is_simple (pool);
  const gboolean fits = w->n_in <= G_MAXINT32; /* places fit in gint32 */
  const gboolean in_rows = !w->adaptive && (is_f32 ? fits : pool->dtype == GTORCH_DTYPE_FLOAT64);
  g_autofree gint64 *scratch = gtorch_scratch_new (w->out[2], sizeof (gint64), NULL);
  gint64 image, oz, oy, ox;

  if (scratch == NULL)
    {
      g_atomic_int_set (&pool->failed, TRUE);
      return;
    }
  for (image = begin; image < end; image++)
    for (oz = 0; oz < w->out[0]; oz++)
      for (oy = 0; oy < w->out[1]; oy++)
        if (simple && fits)
          max_in_row_of_fours (pool, image, oy);
        else if (in_rows && is_f32)
          max_in_row_f32 (pool, image, oz, oy, scratch);
        else if (in_rows)
          max_in_row_f64 (pool, image, oz, oy, scratch);
        else
          for (ox = 0; ox < w->out[2]; ox++)
            max_in_window (pool, image, oz, oy, ox);
}
