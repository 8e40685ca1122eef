/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers. */

#include "config.h"

#include <string.h>

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "optim/gtorch-step-call-private.h"

/* Puts the parameters from `first` on into p, as many as one launch takes, and returns how many they are. */
static guint
gather (const GTorchOpCall *call, GTorchImpl *const *packed, guint n, guint first, GtSteps *p)
{
  const GTorchStep *row = gtorch_step_call_row (call);
  guint size = gtorch_dtype_size (packed[0]->dtype), kinds[GTORCH_STEP_MAX_KINDS], i, state;

  gtorch_step_call_find_kinds (call, kinds);
  p->blocks = 0;
  for (i = 0; i < GT_STEP_TENSORS && first + i < n; i++)
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
  p->n = i;
  return i;
}

gboolean
gtorch_cuda_optim_steps (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  guint n = gtorch_step_call_n_params (call), total = n * gtorch_step_call_n_kinds (call), i, taken;
  g_autofree GTorchImpl **packed = g_new0 (GTorchImpl *, total);
  g_autoptr (GTorchImpl) cell = NULL;
  g_autoptr (GTorchImpl) skip = NULL;
  GtSteps p = { .first = call->attrs[3].i, .row = call->attrs[0].i };
  gboolean ok = TRUE;

  G_STATIC_ASSERT (GT_STEP_NUMBERS == GTORCH_STEP_MAX_NUMBERS);
  G_STATIC_ASSERT (GT_STEP_KINDS == GTORCH_STEP_STATES + GTORCH_STEP_MAX_STATES);
  gtorch_step_call_get_numbers (call, p.d);
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
  p.cell = cell != NULL ? gtorch_impl_data (cell) : NULL;
  p.found = skip != NULL ? gtorch_impl_data (skip) : NULL;
  for (i = 0; ok && i < n; i += taken)
    {
      taken = gather (call, packed, n, i, &p);
      /* The counts are incremented last: the step reads what was kept after the one before. */
      ok = gtorch_cuda_run_form (&gtorch_kernels_step, call->compute,
                                 gtorch_step_call_row (call)->name, lane,
                                 (gint64) p.blocks * GT_STEP_THREADS, &p, error)
           && (gtorch_step_call_find_count (call) == 0
               || gtorch_cuda_run (&gtorch_kernels_step_counts, GTORCH_DTYPE_FLOAT64, lane, taken,
                                   &p, error));
    }
  for (i = 0; ok && i < total; i++)
    if (i / n != GTORCH_STEP_GRAD)
      ok = gtorch_cuda_unpack (packed[i], gtorch_step_call_operand (call, n, i / n, i % n), lane,
                               error);
  gtorch_impl_clear (packed, total);
  return ok;
}
