/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Cross products. */

#include "config.h"

#include <complex.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/gtorch-cpu-threads.h"
#include "gtorch-ops-private.h"

/* Tensors of shape [vectors / inner, 3, inner]. */
typedef struct
{
  const void *a, *b;
  void *y;
  gint64 inner;
} Vectors;

/* Integers wrap around. */
#define CROSS(name, T)                                                             \
  static void cross_##name (gint64 begin, gint64 end, gpointer user_data)          \
  {                                                                                \
    const Vectors *p = user_data;                                                  \
    const gint64 step = p->inner;                                                  \
    gint64 at = begin / step, column = begin % step, i = begin;                    \
                                                                                   \
    for (; i < end; at++, column = 0)                                              \
      {                                                                            \
        const gint64 n = MIN (step - column, end - i), k = 3 * at * step + column; \
        const T *a = (const T *) p->a + k, *b = (const T *) p->b + k;              \
        T *y = (T *) p->y + k;                                                     \
        gint64 j;                                                                  \
                                                                                   \
        for (j = 0; j < n; j++)                                                    \
          {                                                                        \
            const T a0 = a[j], a1 = a[j + step], a2 = a[j + 2 * step];             \
            const T b0 = b[j], b1 = b[j + step], b2 = b[j + 2 * step];             \
                                                                                   \
            y[j] = a1 * b2 - a2 * b1;                                              \
            y[j + step] = a2 * b0 - a0 * b2;                                       \
            y[j + 2 * step] = a0 * b1 - a1 * b0;                                   \
          }                                                                        \
        i += n;                                                                    \
      }                                                                            \
  }
CROSS (f32, gfloat)
CROSS (f64, gdouble)
CROSS (u32, guint32)
CROSS (u64, guint64)
CROSS (c64, float _Complex)
CROSS (c128, double _Complex)

static GTorchRangeFunc
cross_of (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      return cross_f32;
    case GTORCH_DTYPE_FLOAT64:
      return cross_f64;
    case GTORCH_DTYPE_COMPLEX64:
      return cross_c64;
    case GTORCH_DTYPE_COMPLEX128:
      return cross_c128;
    default:
      return gtorch_dtype_size (dtype) == 4 ? cross_u32 : cross_u64;
    }
}

gboolean
gtorch_cpu_cross_product (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const guint dtype = gtorch_dtype_infos[output->dtype].compute, n_dims = output->n_dims;
  g_autoptr (GTorchImpl) a = gtorch_cpu_pack (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) b = a != NULL ? gtorch_cpu_pack (call->inputs[1], dtype, error) : NULL;
  g_autoptr (GTorchImpl) y = b != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  Vectors p = { .inner = 1 };
  guint d;

  if (y == NULL)
    return FALSE;
  if (output->numel == 0)
    return TRUE;
  for (d = (guint) ((call->attrs[0].i + n_dims) % n_dims) + 1; d < n_dims; d++)
    p.inner *= output->shape[d];
  p.a = gtorch_impl_data (a);
  p.b = gtorch_impl_data (b);
  p.y = gtorch_impl_data (y);
  gtorch_parallel_for (output->numel / 3, GTORCH_CPU_GRAIN, cross_of (dtype), &p);
  gtorch_cpu_unpack (y, output);
  return TRUE;
}
