/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers, each for any number of parameters, as described by the rows of
 * optim/steps.toml. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-optim.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "optim/gtorch-step-private.h"

/* --- the layout of the operands --- */

#define LR_CELL 1
#define SKIP    2
#define OTHERS  3

/* The kinds of operands, in the order of the list. The states that are present follow from STATES on, in
 * the order of the row. */
enum
{
  PARAM,
  GRAD,
  STATES,
};

static const GTorchStep *
step_of (const GTorchOpCall *call)
{
  return &gtorch_steps[call->attrs[0].i];
}

static gboolean
has_state (const GTorchOpCall *call, guint state)
{
  return (call->attrs[1].i >> state & 1) != 0;
}

static guint
n_kinds (const GTorchOpCall *call)
{
  return STATES + __builtin_popcount ((guint) call->attrs[1].i);
}

static guint
n_params (const GTorchOpCall *call)
{
  return (call->n_inputs - OTHERS + 1) / n_kinds (call);
}

/* Finds the kind of each state of the row; 0 if the state is not present. */
static void
find_kinds (const GTorchOpCall *call, guint *kinds)
{
  guint kind = STATES, state;

  for (state = 0; state < step_of (call)->n_states; state++)
    kinds[state] = has_state (call, state) ? kind++ : 0;
}

#define MAX_STATES (GTORCH_STEP_MAX_STATES + 1) /* includes the count */

static GTorchImpl *
operand (const GTorchOpCall *call, guint n, guint kind, guint i)
{
  guint at = kind * n + i;

  return call->inputs[at == 0 ? 0 : at + OTHERS - 1];
}

/* Returns the kind of the counts, 0 if there are none. */
static guint
find_count (const GTorchOpCall *call)
{
  guint kinds[MAX_STATES], state;

  find_kinds (call, kinds);
  for (state = 0; state < step_of (call)->n_states; state++)
    if (step_of (call)->states[state].is_count)
      return kinds[state];
  return 0;
}

gboolean
gtorch_writes_optim_steps (const GTorchOpCall *call, guint i)
{
  guint n = n_params (call);

  return i >= OTHERS && ((i - OTHERS + 1) / n) != GRAD;
}

/* Checks that each parameter, its gradient and its states have the same shape, dtype and device. */
gboolean
gtorch_shape_optim_steps (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint n = n_params (call), kinds = n_kinds (call), count = find_count (call), kind, i;

  for (kind = 0; kind < kinds; kind++)
    for (i = 0; i < n; i++)
      {
        const GTorchImpl *param = operand (call, n, PARAM, i), *other = operand (call, n, kind, i);

        if (kind == count && count != 0)
          {
            if (!gtorch_call_check_number (call, other, GTORCH_DTYPE_FLOAT64,
                                           _ ("a count of steps"), error))
              return FALSE;
            continue;
          }
        if (!gtorch_impl_same_shape (param, other))
          {
            gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                               _ ("tensor %u of parameter %u has shape %s, the parameter %s"), kind,
                               i, gtorch_impl_shape_str (other), gtorch_impl_shape_str (param));
            return FALSE;
          }
        if (self->dtype != other->dtype)
          {
            gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                               _ ("tensor %u of parameter %u has dtype %s, the first parameter %s"),
                               kind, i, gtorch_dtype_get_name (other->dtype),
                               gtorch_dtype_get_name (self->dtype));
            return FALSE;
          }
      }
  call->compute = self->dtype;
  return gtorch_call_check_number (call, call->inputs[LR_CELL], GTORCH_DTYPE_FLOAT64,
                                   _ ("the learning rate"), error)
         && gtorch_call_check_number (call, call->inputs[SKIP], GTORCH_DTYPE_FLOAT32, _ ("skip"),
                                      error)
         && gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

/* --- on CPUs --- */

static gboolean
is_skipped (const GTorchOpCall *call)
{
  const GTorchImpl *skip = call->inputs[SKIP];

  return skip != NULL && *(const gfloat *) gtorch_impl_data (skip) != 0;
}

/* Copies the numbers of the step and returns how many there are. */
static guint
get_numbers (const GTorchOpCall *call, gdouble *numbers)
{
  const GTorchAttr *attr = &call->attrs[2];

  memcpy (numbers, attr->list.data, attr->list.n * sizeof (gdouble));
  return attr->list.n;
}

/* Runs func on the operands of parameter i. kinds[STATES] and later are the kinds of the states, 0 where
 * one is not present. */
static void
run_loop (GTorchOpCall *call, guint n_all, guint i, const guint *kinds, guint n,
          GTorchIterFunc func, gpointer run)
{
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { NULL };
  GTorchIter iter;
  guint k;

  for (k = 0; k < n;
       k++) /* the loop does not access a state that is not present: the gradient stands in */
    operands[k] = operand (call, n_all, k >= STATES && kinds[k] == 0 ? GRAD : kinds[k], i);
  if (operands[0]->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, n, operands[0]->shape, operands[0]->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, func, run);
}

gboolean
gtorch_cpu_optim_steps (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const GTorchStepLoop *loop = &GTORCH_ISA_CALL (gtorch_step_loops)[call->attrs[0].i];
  guint all[MAX_STATES], kinds[STATES + GTORCH_STEP_MAX_STATES] = { PARAM, GRAD };
  guint n = n_params (call), count = find_count (call), n_operands = STATES, state, i;
  gdouble numbers[GTORCH_STEP_MAX_NUMBERS];
  GTorchStepRun run = { .dtype = call->compute };

  if (is_skipped (call))
    return TRUE;
  find_kinds (call, all);
  for (state = 0; state < step_of (call)->n_states; state++)
    if (!step_of (call)->states[state].is_count)
      {
        run.states |= all[state] != 0 ? 1u << (n_operands - STATES) : 0;
        kinds[n_operands++] = all[state];
      }
  get_numbers (call, numbers);
  if (call->inputs[LR_CELL] != NULL)
    numbers[0] = *(const gdouble *) gtorch_impl_data (call->inputs[LR_CELL]);
  for (i = 0; i < n; i++)
    {
      gdouble *t = count != 0 ? gtorch_impl_data (operand (call, n, count, i)) : NULL;

      if (t != NULL)
        *t += 1;
      if (t != NULL || i == 0) /* without counts all parameters share the same numbers */
        loop->prepare (numbers, t != NULL ? *t : 0, t != NULL ? *t == 1 : call->attrs[3].i,
                       run.once);
      run_loop (call, n, i, kinds, n_operands, loop->run, &run);
    }
  return TRUE;
}

/* --- on GPUs --- */

/* Puts the parameters from `first` on into p, as many as one launch takes, and returns how many they are. */
static guint
gather (const GTorchOpCall *call, GTorchImpl *const *packed, guint n, guint first, GtSteps *p)
{
  const GTorchStep *row = step_of (call);
  guint size = gtorch_dtype_size (packed[0]->dtype), kinds[MAX_STATES], i, state;

  find_kinds (call, kinds);
  p->blocks = 0;
  for (i = 0; i < GT_STEP_TENSORS && first + i < n; i++)
    {
      GtStep *step = &p->steps[i];
      guint place = 0, k;
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
          else
            step->data[place++] = data;
        }
      step->data[place] = gtorch_impl_data (packed[GRAD * n + first + i]);
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
  guint n = n_params (call), total = n * n_kinds (call), i, taken;
  g_autofree GTorchImpl **packed = g_new0 (GTorchImpl *, total);
  g_autoptr (GTorchImpl) cell = NULL;
  g_autoptr (GTorchImpl) skip = NULL;
  GtSteps p = { .first = call->attrs[3].i };
  gboolean ok = TRUE;

  G_STATIC_ASSERT (GT_STEP_NUMBERS == GTORCH_STEP_MAX_NUMBERS);
  G_STATIC_ASSERT (GT_STEP_KINDS == STATES + GTORCH_STEP_MAX_STATES);
  get_numbers (call, p.d);
  if (call->inputs[LR_CELL] != NULL)
    ok = (cell = gtorch_cuda_pack (call->inputs[LR_CELL], GTORCH_DTYPE_FLOAT64, lane, error))
         != NULL;
  if (ok && call->inputs[SKIP] != NULL)
    ok = (skip = gtorch_cuda_pack (call->inputs[SKIP], GTORCH_DTYPE_FLOAT32, lane, error)) != NULL;
  for (i = 0; ok && i < total; i++)
    {
      GTorchImpl *impl = operand (call, n, i / n, i % n);

      packed[i] = gtorch_cuda_pack (impl, impl->dtype, lane, error);
      ok = packed[i] != NULL;
    }
  p.cell = cell != NULL ? gtorch_impl_data (cell) : NULL;
  p.found = skip != NULL ? gtorch_impl_data (skip) : NULL;
  for (i = 0; ok && i < n; i += taken)
    {
      taken = gather (call, packed, n, i, &p);
      /* The counts are incremented first: the step reads the count that includes itself. */
      ok = (find_count (call) == 0
            || gtorch_cuda_run (&gtorch_kernels_step_counts, GTORCH_DTYPE_FLOAT64, lane, taken, &p,
                                error))
           && gtorch_cuda_run_form (&gtorch_kernels_step, call->compute, step_of (call)->name, lane,
                                    (gint64) p.blocks * GT_STEP_THREADS, &p, error);
    }
  for (i = 0; ok && i < total; i++)
    if (i / n != GRAD)
      ok = gtorch_cuda_unpack (packed[i], operand (call, n, i / n, i % n), lane, error);
  gtorch_impl_clear (packed, total);
  return ok;
}
