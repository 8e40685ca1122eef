/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Complex numbers from their parts. */

#include "config.h"

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
