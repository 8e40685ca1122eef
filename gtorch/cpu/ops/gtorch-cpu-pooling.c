/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pooling, and its gradients, over images. gtorch-cpu-max-pool.c has the maxima. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/ops/gtorch-cpu-pool.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"

typedef GTorchCpuPool Pool;

#define MAX_GRADIENT(T)                                                  \
  for (; begin < end; begin++)                                           \
    for (i = 0; i < small; i++)                                          \
      ((T *) pool->y)[begin * big + pool->indices[begin * small + i]] += \
          ((const T *) pool->x)[begin * small + i];

static void
max_gradients (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  gint64 big = pool->windows.n_in, small = pool->windows.n_out, i;

  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MAX_GRADIENT (float)
  else
    MAX_GRADIENT (double)
}

/* Finds the window of one result along one dimension and returns how many elements count for the mean. */
static gint64
window (const Pool *pool, guint d, gint64 o, gint64 *first, gint64 *last)
{
  gint64 counted;

  if (pool->windows.adaptive)
    {
      *first = o * pool->windows.in[d] / pool->windows.out[d];
      *last = ((o + 1) * pool->windows.in[d] + pool->windows.out[d] - 1) / pool->windows.out[d];
      return *last - *first;
    }
  *first = o * pool->windows.stride[d] - pool->windows.padding[d];
  *last = MIN (*first + pool->windows.kernel[d], pool->windows.in[d] + pool->windows.padding[d]);
  counted = *last - *first;
  *first = MAX (*first, 0);
  *last = MIN (*last, pool->windows.in[d]);
  return pool->windows.include_pad ? counted : *last - *first;
}

/* Windows may have millions of elements, so sums of float32 are kept in float64; those of integers are taken
 * modulo 2^64. Rows that are adjacent are added as one. */
static inline void
add_row_f32 (gdouble *sum, const gfloat *x, gint64 n)
{
  GTORCH_ISA_CALL (gtorch_row_total_f32) (x, n, sum);
}

static inline void
add_row_f64 (gdouble *sum, const gdouble *x, gint64 n)
{
  GTORCH_ISA_CALL (gtorch_row_total_f64) (x, n, sum);
}

static void
add_row_i64 (guint64 *sum, const gint64 *x, gint64 n)
{
  gint64 i;

  for (i = 0; i < n; i++)
    *sum += (guint64) x[i];
}

static inline gdouble
divide (gdouble sum, gint64 divisor)
{
  return sum / (gdouble) divisor;
}

/* Cuts the fraction off. */
static inline gint64
divide_integer (guint64 sum, gint64 divisor)
{
  return divisor == -1 ? (gint64) (0 - sum) : (gint64) sum / divisor;
}

#define LONG_ROW 16

/* Computes rows of results: `begin` and `end` count those of all images. */
#define MEANS_OF(T, SUM, DIVIDE, name)                                          \
  for (; begin < end; begin++)                                                  \
    {                                                                           \
      const gint64 plane = begin / w->out[1], image = plane / w->out[0];        \
      const T *big = (const T *) pool->x + image * w->n_in;                     \
      T *small = (T *) pool->y + begin * w->out[2];                             \
      gint64 n = window (pool, 0, plane % w->out[0], &z0, &z1);                 \
                                                                                \
      n *= window (pool, 1, begin % w->out[1], &y0, &y1);                       \
      for (ox = 0; ox < w->out[2]; ox++)                                        \
        {                                                                       \
          const gint64 counted = n * window (pool, 2, ox, &x0, &x1);            \
          SUM sum = 0;                                                          \
                                                                                \
          for (z = z0; z < z1; z++)                                             \
            for (i = y0; i < y1; i++)                                           \
              {                                                                 \
                const T *row = big + (z * height + i) * width;                  \
                                                                                \
                if (x1 - x0 == width)                                           \
                  {                                                             \
                    add_row_##name (&sum, row, (y1 - i) * width);               \
                    break;                                                      \
                  }                                                             \
                if (x1 - x0 >= LONG_ROW)                                        \
                  add_row_##name (&sum, row + x0, x1 - x0);                     \
                else                                                            \
                  for (j = x0; j < x1; j++)                                     \
                    sum += (SUM) row[j];                                        \
              }                                                                 \
          small[ox] = (T) DIVIDE (sum, w->divisor != 0 ? w->divisor : counted); \
        }                                                                       \
    }

static void
mean_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  const GTorchWindows *w = &pool->windows;
  const gint64 height = w->in[1], width = w->in[2];
  gint64 ox, z, i, j, z0, z1, y0, y1, x0, x1;

  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MEANS_OF (gfloat, gdouble, divide, f32)
  else if (pool->dtype == GTORCH_DTYPE_FLOAT64)
    MEANS_OF (gdouble, gdouble, divide, f64)
  else
    MEANS_OF (gint64, guint64, divide_integer, i64)
}

#define MEAN_GRADIENTS(T)                                                              \
  for (; begin < end; begin++)                                                         \
    {                                                                                  \
      const T *small = (const T *) pool->x + begin * w->n_out;                         \
      T *big = (T *) pool->y + begin * w->n_in;                                        \
                                                                                       \
      for (oz = 0; oz < w->out[0]; oz++)                                               \
        for (oy = 0, nz = window (pool, 0, oz, &z0, &z1); oy < w->out[1]; oy++)        \
          for (ox = 0, ny = nz * window (pool, 1, oy, &y0, &y1); ox < w->out[2]; ox++) \
            {                                                                          \
              const gint64 n = ny * window (pool, 2, ox, &x0, &x1);                    \
              const T share = *small++ * (1 / (T) (w->divisor != 0 ? w->divisor : n)); \
                                                                                       \
              for (z = z0; z < z1; z++)                                                \
                for (i = y0; i < y1; i++)                                              \
                  for (j = x0; j < x1; j++)                                            \
                    big[(z * height + i) * width + j] += share;                        \
            }                                                                          \
    }

static void
mean_gradients (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  const GTorchWindows *w = &pool->windows;
  const gint64 height = w->in[1], width = w->in[2];
  gint64 oz, oy, ox, z, i, j, nz, ny, z0, z1, y0, y1, x0, x1;

  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MEAN_GRADIENTS (gfloat)
  else
    MEAN_GRADIENTS (gdouble)
}

/* Checks that the indices are within an image: the caller may have changed them since the forward pass. */
static gboolean
are_in_images (GTorchOpCall *call, const GTorchImpl *indices, gint64 plane, GError **error)
{
  const gint64 *index = gtorch_impl_data (indices);
  gint64 i;

  for (i = 0; i < indices->numel; i++)
    if (index[i] < 0 || index[i] >= plane)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                           _ ("index %" PRId64 " is out of range for %" PRId64 " elements"),
                           index[i], plane);
        return FALSE;
      }
  return TRUE;
}

static gboolean
run (GTorchOpCall *call, GTorchRangeFunc func, gboolean backward, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  Pool pool = { .dtype = gtorch_dtype_infos[call->compute].compute };
  gint64 plane, rows = 1;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) indices = NULL;

  if (!gtorch_windows_init (&pool.windows, call, error))
    return FALSE;
  if (output->numel == 0)
    return TRUE;
  plane = pool.windows.n_in;
  x = gtorch_cpu_pack (call->inputs[0], pool.dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (output, pool.dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  pool.x = gtorch_impl_data (x);
  pool.y = gtorch_impl_data (y);
  if (call->n_outputs > 1)
    {
      indices = gtorch_cpu_pack_output (call->outputs[1], GTORCH_DTYPE_INT64, error);
      if (indices == NULL)
        return FALSE;
      pool.indices = gtorch_impl_data (indices);
    }
  if (call->n_inputs > 1)
    {
      indices = gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error);
      if (indices == NULL || !are_in_images (call, indices, plane, error))
        return FALSE;
      pool.indices = gtorch_impl_data (indices);
    }
  if (backward)
    memset (pool.y, 0, gtorch_impl_n_bytes (y));
  if (func == mean_rows || func == gtorch_cpu_max_values)
    rows = pool.windows.out[0] * pool.windows.out[1];
  gtorch_parallel_for ((backward ? y : x)->numel / plane * rows,
                       1 + GTORCH_CPU_GRAIN / 2 / (plane / rows + 1), func, &pool);
  if (pool.failed)
    {
      gtorch_scratch_set_error (pool.windows.out[2], sizeof (gint64), error);
      return FALSE;
    }
  gtorch_cpu_unpack (y, output);
  if (call->n_outputs > 1)
    gtorch_cpu_unpack (indices, call->outputs[1]);
  return TRUE;
}

gboolean
gtorch_cpu_max_pool (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, call->n_outputs > 1 ? gtorch_cpu_max_images : gtorch_cpu_max_values, FALSE,
              error);
}

gboolean
gtorch_cpu_mean_pool (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, mean_rows, FALSE, error);
}

gboolean
gtorch_cpu_max_pool_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, max_gradients, TRUE, error);
}

gboolean
gtorch_cpu_mean_pool_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, mean_gradients, TRUE, error);
}
