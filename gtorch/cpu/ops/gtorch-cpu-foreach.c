/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of many tensors at once. */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-optim.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"

/* --- norms --- */

#define PART 16384 /* elements whose powers are summed at once */

typedef struct
{
  GTorchImpl *packed;
  gint64 first; /* index of its first part */
} Operand;

typedef struct
{
  const Operand *operands;
  guint n;
  gdouble ord, *parts;
} Norms;

static gint64
n_parts (const GTorchImpl *impl)
{
  return (impl->numel + PART - 1) / PART;
}

static void
find_parts (gint64 begin, gint64 end, gpointer data)
{
  const Norms *norms = data;
  guint at = norms->n - 1;

  while (norms->operands[at].first > begin)
    at--;
  for (gint64 i = begin; i < end; i++)
    {
      const GTorchImpl *impl;
      gint64 from;

      while (at + 1 < norms->n && norms->operands[at + 1].first <= i)
        at++;
      impl = norms->operands[at].packed;
      from = (i - norms->operands[at].first) * PART;
      norms->parts[i] = GTORCH_ISA_CALL (
          gtorch_norm_loop) ((const char *) gtorch_impl_data (impl)
                                 + from * gtorch_dtype_size (impl->dtype),
                             MIN (PART, impl->numel - from), impl->dtype, norms->ord);
    }
}

static gdouble
join (const gdouble *parts, gint64 n, gdouble ord)
{
  gdouble all = n > 0 ? parts[0] : 0;

  for (gint64 i = 1; i < n; i++)
    if (!isinf (ord))
      all += parts[i];
    else if (isnan (parts[i]) || (ord > 0 ? parts[i] > all : parts[i] < all))
      all = parts[i];
  return ord == 0 || ord == 1 || isinf (ord) ? all : ord == 2 ? sqrt (all) : pow (all, 1 / ord);
}

gboolean
gtorch_cpu_foreach_norm (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  gdouble *output = gtorch_impl_data (call->outputs[0]);
  const guint n = call->n_inputs;
  g_autofree Operand *operands = g_new0 (Operand, n);
  g_autofree gdouble *parts = NULL;
  Norms norms = { .operands = operands, .n = n, .ord = call->attrs[0].d };
  gint64 total = 0;
  gboolean ok = TRUE;

  for (guint i = 0; ok && i < n; i++)
    {
      operands[i].packed = gtorch_cpu_pack (call->inputs[i], call->inputs[i]->dtype, error);
      operands[i].first = total;
      total += n_parts (call->inputs[i]);
      ok = operands[i].packed != NULL;
    }
  if (ok)
    ok = (parts = gtorch_scratch_new (total, sizeof (gdouble), error)) != NULL;
  norms.parts = parts;
  if (ok)
    gtorch_parallel_for (total, GTORCH_CPU_GRAIN / PART, find_parts, &norms);
  for (guint i = 0; i < n; i++)
    {
      if (ok)
        output[i] = join (parts + operands[i].first, n_parts (operands[i].packed), norms.ord);
      g_clear_pointer (&operands[i].packed, gtorch_impl_unref);
    }
  return ok;
}

/* --- changes in place --- */

static void
run_each (GTorchImpl *const *impls, guint n, GTorchIterFunc loop, GTorchForeachStep *step)
{
  for (guint i = 0; i < n; i++)
    {
      GTorchImpl *impl = impls[i];
      GTorchIter iter;

      if (impl->numel == 0)
        continue;
      step->dtype = impl->dtype;
      gtorch_iter_init (&iter, &impl, 1, impl->shape, impl->n_dims);
      gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, loop, step);
    }
}

gboolean
gtorch_cpu_foreach_mul (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const GTorchImpl *factor = call->inputs[1];
  GTorchForeachStep step = { .number = factor->dtype == GTORCH_DTYPE_FLOAT64
                                           ? *(const gdouble *) gtorch_impl_data (factor)
                                           : *(const gfloat *) gtorch_impl_data (factor) };

  run_each (call->inputs, 1, GTORCH_ISA_CALL (gtorch_foreach_mul_loop), &step);
  run_each (call->inputs + 2, call->n_inputs - 2, GTORCH_ISA_CALL (gtorch_foreach_mul_loop), &step);
  return TRUE;
}

gboolean
gtorch_cpu_foreach_clamp (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchForeachStep step = { .number = call->attrs[0].d };

  run_each (call->inputs, call->n_inputs, GTORCH_ISA_CALL (gtorch_foreach_clamp_loop), &step);
  return TRUE;
}
