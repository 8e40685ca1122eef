/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers. */

#include "config.h"

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-optim.h"
#include "gtorch-ops-private.h"
#include "optim/gtorch-step-call-private.h"

#define BLOCK      256 /* elements that are copied to buffers at once */
#define N_OPERANDS (GTORCH_STEP_STATES + GTORCH_STEP_MAX_STATES)

void
gtorch_step_run (char *const *data, const gint64 *strides, gint64 n, const GTorchStepRun *run,
                 guint n_operands, GTorchStepBody f32, GTorchStepBody f64)
{
  const guint compute = gtorch_dtype_infos[run->dtype].compute;
  const gint64 size = gtorch_dtype_size (compute);
  const GTorchStepBody body = compute == GTORCH_DTYPE_FLOAT64 ? f64 : f32;
  const GTorchCast load = gtorch_cpu_cast (compute, run->dtype),
                   store = gtorch_cpu_cast (run->dtype, compute);
  gdouble buffers[N_OPERANDS][BLOCK] __attribute__ ((aligned (64)));
  char *block[N_OPERANDS];
  gboolean is_packed = compute == run->dtype;
  guint used = 3, k; /* bit k: operand k is present */
  gint64 i, m;

  used |= run->states << GTORCH_STEP_STATES;
  for (k = 0; k < n_operands; k++)
    {
      block[k] = (char *) buffers[k];
      is_packed &= strides[k] == size || !(used & 1u << k);
    }
  if (is_packed)
    {
      body (data, n, run);
      return;
    }
  for (i = 0; i < n; i += m)
    {
      m = MIN (n - i, BLOCK);
      for (k = 0; k < n_operands; k++)
        if (used & 1u << k)
          load (block[k], size, data[k] + i * strides[k], strides[k], m);
      body (block, m, run);
      for (k = 0; k < n_operands; k++)
        if (k != 1 && used & 1u << k) /* all but the gradient */
          store (data[k] + i * strides[k], strides[k], block[k], size, m);
    }
}

static gboolean
is_skipped (const GTorchOpCall *call)
{
  const GTorchImpl *skip = call->inputs[GTORCH_STEP_SKIP];

  return skip != NULL && *(const gfloat *) gtorch_impl_data (skip) != 0;
}

/* Runs func on the operands of parameter i. kinds[GTORCH_STEP_STATES] and later are the kinds of the
 * states, 0 where one is not present. */
static void
run_loop (GTorchOpCall *call, guint n_all, guint i, const guint *kinds, guint n,
          GTorchIterFunc func, gpointer run)
{
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { NULL };
  GTorchIter iter;
  guint k;

  for (k = 0; k < n;
       k++) /* the loop does not access a state that is not present: the gradient stands in */
    operands[k] =
        gtorch_step_call_operand (call, n_all,
                                  k >= GTORCH_STEP_STATES && kinds[k] == 0 ? GTORCH_STEP_GRAD
                                                                           : kinds[k],
                                  i);
  if (operands[0]->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, n, operands[0]->shape, operands[0]->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, func, run);
}

/* Copies what the row keeps for parameter i from its states, or back. */
static void
copy_kept (const GTorchOpCall *call, guint n, guint i, const guint *kinds, gdouble *kept,
           gboolean back)
{
  const GTorchStep *row = gtorch_step_call_row (call);
  guint state;

  for (state = 0; state < row->n_states; state++)
    if (row->states[state].is_number && !row->states[state].is_count)
      {
        gdouble *value = gtorch_impl_data (gtorch_step_call_operand (call, n, kinds[state], i));

        if (back)
          *value = *kept++;
        else
          *kept++ = *value;
      }
}

gboolean
gtorch_cpu_optim_steps (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const GTorchStepLoop *loop = &GTORCH_ISA_CALL (gtorch_step_loops)[call->attrs[0].i];
  guint all[GTORCH_STEP_MAX_KINDS],
      kinds[GTORCH_STEP_STATES + GTORCH_STEP_MAX_STATES] = { GTORCH_STEP_PARAM, GTORCH_STEP_GRAD };
  guint n = gtorch_step_call_n_params (call), count = gtorch_step_call_find_count (call),
        n_operands = GTORCH_STEP_STATES, state, i;
  gdouble numbers[GTORCH_STEP_MAX_NUMBERS];
  GTorchStepRun run = { .dtype = call->compute };

  if (is_skipped (call))
    return TRUE;
  gtorch_step_call_find_kinds (call, all);
  for (state = 0; state < gtorch_step_call_row (call)->n_states; state++)
    if (!gtorch_step_call_row (call)->states[state].is_number)
      {
        run.states |= all[state] != 0 ? 1u << (n_operands - GTORCH_STEP_STATES) : 0;
        kinds[n_operands++] = all[state];
      }
  gtorch_step_call_get_numbers (call, numbers);
  if (call->inputs[GTORCH_STEP_LR_CELL] != NULL)
    numbers[0] = *(const gdouble *) gtorch_impl_data (call->inputs[GTORCH_STEP_LR_CELL]);
  for (i = 0; i < n; i++)
    {
      gdouble *steps =
          count != 0 ? gtorch_impl_data (gtorch_step_call_operand (call, n, count, i)) : NULL;
      const gdouble t = steps != NULL ? *steps + 1 : 0;
      const gboolean first = steps != NULL ? t == 1 : call->attrs[3].i != 0;
      gdouble kept[GTORCH_STEP_MAX_STATES];

      copy_kept (call, n, i, all, kept, FALSE);
      if (steps != NULL || i == 0) /* without counts all parameters share the same numbers */
        loop->prepare (numbers, t, first, kept, run.once);
      run_loop (call, n, i, kinds, n_operands, loop->run, &run);
      if (loop->keep != NULL)
        {
          loop->keep (numbers, t, first, kept);
          copy_kept (call, n, i, all, kept, TRUE);
        }
      if (steps != NULL)
        *steps = t;
    }
  return TRUE;
}
