/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers. */

#include "config.h"

#include <string.h>

#include "cuda/driver/gtorch-cuda-driver-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "optim/gtorch-step-call-private.h"

/* Puts `n_taken` parameters from `first` on into p. */
static void
gather (const GTorchOpCall *call, GTorchImpl *const *packed, guint n, guint first, guint n_taken,
        GtManySteps *p)
{
  const GTorchStep *row = gtorch_step_call_row (call);
  guint size = gtorch_dtype_size (packed[0]->dtype), kinds[GTORCH_STEP_MAX_KINDS], i, state;

  gtorch_step_call_find_kinds (call, kinds);
  p->blocks = 0;
  for (i = 0; i < n_taken; i++)
    {
      GtStep *step = &p->steps[i];
      guint place = 0, kept, k;
      guintptr address;

      memset (step->data, 0, sizeof step->data);
      step->count = NULL;
      step->data[place++] = gtorch_impl_data (packed[first + i]);
      for (state = 0; state < row->n_states; state++)
        {
          gpointer data =
              kinds[state] != 0 ? gtorch_impl_data (packed[kinds[state] * n + first + i]) : NULL;

          if (row->states[state].is_count)
            step->count = data;
          else if (!row->states[state].is_number)
            step->data[place++] = data;
        }
      step->data[place] = gtorch_impl_data (packed[GTORCH_STEP_GRAD * n + first + i]);
      for (kept = place + 1, state = 0; state < row->n_states; state++)
        if (row->states[state].is_number && !row->states[state].is_count)
          step->data[kept++] = gtorch_impl_data (packed[kinds[state] * n + first + i]);
      for (address = 0, k = 0; k <= place; k++)
        address |= (guintptr) step->data[k];
      step->n = packed[first + i]->numel;
      step->is_aligned = (address & 15) == 0;
      step->block = p->blocks;
      p->blocks += (step->n * size + GT_STEP_BYTES - 1) / GT_STEP_BYTES;
    }
  p->n = n_taken;
}

/* The counts are incremented last: the step reads what was kept after the one before. */
static gboolean
launch (const GTorchOpCall *call, GTorchCudaLane *lane, const GtManySteps *p, GError **error)
{
  const gchar *row = gtorch_step_call_row (call)->name;
  const gint64 threads = (gint64) p->blocks * GT_STEP_THREADS;
  const gboolean counts = gtorch_step_call_find_count (call) != 0;
  const GtSteps *few = (const GtSteps *) p;

  G_STATIC_ASSERT (G_STRUCT_OFFSET (GtSteps, steps) == G_STRUCT_OFFSET (GtManySteps, steps));
  if (p->n > GT_STEP_TENSORS)
    return gtorch_cuda_run_form (&gtorch_kernels_step_many, call->compute, row, lane, threads, p,
                                 error)
           && (!counts
               || gtorch_cuda_run (&gtorch_kernels_step_many_counts, GTORCH_DTYPE_FLOAT64, lane,
                                   p->n, p, error));
  return gtorch_cuda_run_form (&gtorch_kernels_step, call->compute, row, lane, threads, few, error)
         && (!counts
             || gtorch_cuda_run (&gtorch_kernels_step_counts, GTORCH_DTYPE_FLOAT64, lane, p->n, few,
                                 error));
}

gboolean
gtorch_cuda_optim_steps (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint most = gtorch_cuda_driver_takes_many () ? GT_STEP_MANY_TENSORS : GT_STEP_TENSORS;
  guint n = gtorch_step_call_n_params (call), total = n * gtorch_step_call_n_kinds (call), i, taken;
  /* where the parameters are few, the end of the struct is not there */
  g_autofree GtManySteps *p =
      g_malloc0 (n > GT_STEP_TENSORS ? sizeof (GtManySteps) : sizeof (GtSteps));
  g_autofree GTorchImpl **packed = g_new0 (GTorchImpl *, total);
  g_autoptr (GTorchImpl) cell = NULL;
  g_autoptr (GTorchImpl) skip = NULL;
  gboolean ok = TRUE;

  G_STATIC_ASSERT (GT_STEP_NUMBERS == GTORCH_STEP_MAX_NUMBERS);
  G_STATIC_ASSERT (GT_STEP_KINDS == GTORCH_STEP_STATES + GTORCH_STEP_MAX_STATES);
  p->first = call->attrs[3].i;
  p->row = call->attrs[0].i;
  gtorch_step_call_get_numbers (call, p->d);
  if (call->inputs[GTORCH_STEP_LR_CELL] != NULL)
    ok = (cell = gtorch_cuda_pack (call->inputs[GTORCH_STEP_LR_CELL], GTORCH_DTYPE_FLOAT64, lane,
                                   error))
         != NULL;
  if (ok && call->inputs[GTORCH_STEP_SKIP] != NULL)
    ok = (skip =
              gtorch_cuda_pack (call->inputs[GTORCH_STEP_SKIP], GTORCH_DTYPE_FLOAT32, lane, error))
         != NULL;
  for (i = 0; ok && i < total; i++)
    {
      GTorchImpl *impl = gtorch_step_call_operand (call, n, i / n, i % n);

      packed[i] = gtorch_cuda_pack (impl, impl->dtype, lane, error);
      ok = packed[i] != NULL;
    }
  p->cell = cell != NULL ? gtorch_impl_data (cell) : NULL;
  p->found = skip != NULL ? gtorch_impl_data (skip) : NULL;
  for (i = 0; ok && i < n; i += taken)
    {
      taken = MIN (n - i, most);
      gather (call, packed, n, i, taken, p);
      ok = launch (call, lane, p, error);
    }
  for (i = 0; ok && i < total; i++)
    if (i / n != GTORCH_STEP_GRAD)
      ok = gtorch_cuda_unpack (packed[i], gtorch_step_call_operand (call, n, i / n, i % n), lane,
                               error);
  gtorch_impl_clear (packed, total);
  return ok;
}
