/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Complex numbers from their parts, or from absolute values and angles. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-isa.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-pool.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef struct
{
  const char *re, *im;
  char *to;
  gboolean is_f32;
} Parts;

#define JOIN(T)                          \
  {                                      \
    const T *re = (const T *) parts->re; \
    const T *im = (const T *) parts->im; \
    T *to = (T *) parts->to;             \
                                         \
    for (i = begin; i < end; i++)        \
      {                                  \
        to[2 * i] = re[i];               \
        to[2 * i + 1] = im[i];           \
      }                                  \
  }

static GTORCH_VECTORIZED void
join_parts (gint64 begin, gint64 end, gpointer user_data)
{
  const Parts *parts = user_data;
  gint64 i;

  if (parts->is_f32)
    JOIN (gfloat)
  else
    JOIN (gdouble)
}

/* Returns whether the parts lie in memory as the numbers do. */
static gboolean
is_plain (const GTorchOpCall *call)
{
  const GTorchImpl *output = call->outputs[0];
  guint i;

  for (i = 0; i < 2; i++)
    if (!call->inputs[i]->is_contiguous || !gtorch_impl_same_shape (call->inputs[i], output)
        || call->inputs[i]->dtype != gtorch_dtype_infos[output->dtype].real)
      return FALSE;
  return output->is_contiguous;
}

gboolean
gtorch_cpu_complex (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint i;

  if (is_plain (call))
    {
      Parts parts = { gtorch_impl_data (call->inputs[0]), gtorch_impl_data (call->inputs[1]),
                      gtorch_impl_data (call->outputs[0]),
                      call->outputs[0]->dtype == GTORCH_DTYPE_COMPLEX64 };

      gtorch_parallel_for (call->outputs[0]->numel, GTORCH_CPU_GRAIN, join_parts, &parts);
      return TRUE;
    }
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) part = gtorch_complex_part (call->outputs[0], i);

      if (part->numel > 0)
        gtorch_cpu_copy (part, call->inputs[i]);
    }
  return TRUE;
}

#define BLOCK 512

typedef struct
{
  GTorchLoop functions[2], mul;
  gint64 size; /* of a part, in bytes */
} Polar;

static void
polar_line (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Polar *polar = user_data;
  gdouble parts[2][BLOCK];
  gint64 i, j, m;
  guint k;

  for (i = 0; i < n; i += m)
    {
      char *to = data[0] + i * strides[0];
      const Parts joined = { (char *) parts[0], (char *) parts[1], to,
                             polar->size == sizeof (gfloat) };

      m = MIN (n - i, BLOCK);
      for (k = 0; k < 2; k++)
        {
          char *const angles[] = { (char *) parts[k], data[2] + i * strides[2] };
          char *const products[] = { angles[0], data[1] + i * strides[1], angles[0] };
          const gint64 to_factors[] = { polar->size, strides[2] };
          const gint64 to_products[] = { polar->size, strides[1], polar->size };

          polar->functions[k](angles, to_factors, m, NULL);
          polar->mul (products, to_products, m, NULL);
        }
      if (strides[0] == 2 * polar->size)
        join_parts (0, m, (gpointer) &joined);
      else
        for (j = 0; j < m; j++, to += strides[0])
          for (k = 0; k < 2; k++)
            memcpy (to + k * polar->size, (char *) parts[k] + j * polar->size, polar->size);
    }
}

gboolean
gtorch_cpu_polar (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *operands[] = { call->outputs[0], call->inputs[0], call->inputs[1] };
  const guint dtype = operands[1]->dtype;
  const Polar polar = { { gtorch_cpu_loop (gtorch_ops[GTORCH_OP_COS].loop, dtype),
                          gtorch_cpu_loop (gtorch_ops[GTORCH_OP_SIN].loop, dtype) },
                        gtorch_cpu_loop (gtorch_ops[GTORCH_OP_MUL].loop, dtype),
                        gtorch_dtype_size (dtype) };
  GTorchIter iter;

  gtorch_iter_init (&iter, operands, 3, operands[0]->shape, operands[0]->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, polar_line, (gpointer) &polar);
  return TRUE;
}
