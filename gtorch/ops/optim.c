/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers, each over any number of parameters. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-optim.h"
#include "cuda/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

/* --- what is where among the operands --- */

#define LR_CELL 1
#define SKIP    2
#define OTHERS  3

/* Of the list, in its order; counts are of float64, the others are like their parameter. */
enum
{
  PARAM,
  GRAD,
  SGD_BUFFER,
  SGD_COUNT,
  ADAM_AVG = SGD_BUFFER,
  ADAM_SQ,
  ADAM_COUNT,
  ADAM_MOST,
  MAX_KINDS,
};

static guint
n_kinds (const GTorchOpCall *call)
{
  return (guint) call->attrs[0].i;
}

static guint
n_params (const GTorchOpCall *call)
{
  return (call->n_inputs - OTHERS + 1) / n_kinds (call);
}

static guint
place_of (const GTorchOpCall *call, guint kind, guint i)
{
  guint at = kind * n_params (call) + i;

  return at == 0 ? 0 : at + OTHERS - 1;
}

/* NULL if there are none of the kind. */
static GTorchImpl *
operand (const GTorchOpCall *call, guint kind, guint i)
{
  return kind < n_kinds (call) ? call->inputs[place_of (call, kind, i)] : NULL;
}

static gboolean
is_count (const GTorchOpCall *call, guint kind)
{
  return kind == (call->op->id == GTORCH_OP_ADAM_STEPS ? ADAM_COUNT : SGD_COUNT);
}

gboolean
gtorch_writes_optim_steps (const GTorchOpCall *call, guint i)
{
  guint n = n_params (call);

  return i >= OTHERS && ((i - OTHERS + 1) / n) != GRAD;
}

/* A parameter, its gradient and its state must be alike. */
gboolean
gtorch_shape_optim_steps (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint n = n_params (call), kind, i;

  for (kind = 0; kind < n_kinds (call); kind++)
    for (i = 0; i < n; i++)
      {
        const GTorchImpl *param = operand (call, PARAM, i), *other = operand (call, kind, i);

        if (is_count (call, kind))
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

static gdouble
learning_rate (const GTorchOpCall *call)
{
  const GTorchImpl *cell = call->inputs[LR_CELL];

  return cell != NULL ? *(const gdouble *) gtorch_impl_data (cell) : call->attrs[1].d;
}

static gdouble *
count_of (const GTorchOpCall *call, guint kind, guint i)
{
  GTorchImpl *count = operand (call, kind, i);

  return count != NULL ? gtorch_impl_data (count) : NULL;
}

static void
run (GTorchOpCall *call, guint i, const guint *kinds, guint n, GTorchIterFunc func, gpointer step)
{
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { NULL };
  GTorchIter iter;
  guint k;

  for (k = 0; k < n; k++)
    {
      operands[k] = operand (call, kinds[k], i);
      if (operands[k] == NULL) /* is not touched */
        operands[k] = operands[1];
    }
  if (operands[0]->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, n, operands[0]->shape, operands[0]->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, func, step);
}

gboolean
gtorch_cpu_sgd_steps (GTorchOpCall *call, GError **error)
{
  const guint kinds[] = { PARAM, GRAD, SGD_BUFFER };
  const GTorchAttr *attrs = call->attrs;
  GTorchSGDStep step = {
    .dtype = call->compute,
    .has_buffer = n_kinds (call) > SGD_BUFFER,
    .lr = learning_rate (call),
    .momentum = attrs[2].d,
    .dampening = attrs[3].d,
    .weight_decay = attrs[4].d,
    .nesterov = attrs[5].i,
    .maximize = attrs[6].i,
  };
  guint i;

  for (i = 0; !is_skipped (call) && i < n_params (call); i++)
    {
      gdouble *count = count_of (call, SGD_COUNT, i);

      step.first = count != NULL ? *count == 0 : attrs[7].i;
      run (call, i, kinds, G_N_ELEMENTS (kinds), GTORCH_ISA_CALL (gtorch_sgd_loop), &step);
      if (count != NULL)
        *count += 1;
    }
  return TRUE;
}

gboolean
gtorch_cpu_adam_steps (GTorchOpCall *call, GError **error)
{
  const guint kinds[] = { PARAM, GRAD, ADAM_AVG, ADAM_SQ, ADAM_MOST };
  const GTorchAttr *attrs = call->attrs;
  GTorchAdamStep step = {
    .dtype = call->compute,
    .amsgrad = n_kinds (call) > ADAM_MOST,
    .lr = learning_rate (call),
    .beta1 = attrs[2].d,
    .beta2 = attrs[3].d,
    .eps = attrs[4].d,
    .weight_decay = attrs[5].d,
    .decoupled = attrs[6].i,
    .maximize = attrs[7].i,
  };
  guint i;

  for (i = 0; !is_skipped (call) && i < n_params (call); i++)
    {
      gdouble *count = count_of (call, ADAM_COUNT, i);

      *count += 1;
      step.correction1 = 1 - pow (step.beta1, *count);
      step.correction2_sqrt = sqrt (1 - pow (step.beta2, *count));
      run (call, i, kinds, G_N_ELEMENTS (kinds), GTORCH_ISA_CALL (gtorch_adam_loop), &step);
    }
  return TRUE;
}

/* --- on GPUs --- */

/* As many parameters as a launch takes, from `first` on. */
static guint
gather (GTorchImpl *const *packed, guint n_kinds, guint n, guint first, gboolean is_adam,
        GtSteps *p)
{
  guint size = gtorch_dtype_size (packed[0]->dtype), i, kind;

  p->blocks = 0;
  for (i = 0; i < GT_STEP_TENSORS && first + i < n; i++)
    {
      GtStep *step = &p->steps[i];
      void *data[MAX_KINDS] = { NULL };
      guintptr address = 0;

      for (kind = 0; kind < n_kinds; kind++)
        {
          data[kind] = gtorch_impl_data (packed[kind * n + first + i]);
          if (kind != (is_adam ? ADAM_COUNT : SGD_COUNT))
            address |= (guintptr) data[kind];
        }
      step->param = data[PARAM];
      step->grad = data[GRAD];
      step->first = data[2];
      step->second = is_adam ? data[ADAM_SQ] : NULL;
      step->count = data[is_adam ? ADAM_COUNT : SGD_COUNT];
      step->most = is_adam ? data[ADAM_MOST] : NULL;
      step->n = packed[first + i]->numel;
      step->is_aligned = (address & 15) == 0;
      step->block = p->blocks;
      p->blocks += (step->n * size + GT_STEP_BYTES - 1) / GT_STEP_BYTES;
    }
  p->n = i;
  return i;
}

static gboolean
cuda_steps (GTorchOpCall *call, GTorchCudaLane *lane, gboolean is_adam, GtSteps *p, GError **error)
{
  const gchar *name = is_adam ? "adam_steps" : "sgd_steps";
  guint n = n_params (call), kinds = n_kinds (call), total = n * kinds, i, taken;
  g_autofree GTorchImpl **packed = g_new0 (GTorchImpl *, total);
  g_autoptr (GTorchImpl) cell = NULL;
  g_autoptr (GTorchImpl) skip = NULL;
  gboolean ok = TRUE;

  if (call->inputs[LR_CELL] != NULL)
    ok = (cell = gtorch_cuda_pack (call->inputs[LR_CELL], GTORCH_DTYPE_FLOAT64, lane, error))
         != NULL;
  if (ok && call->inputs[SKIP] != NULL)
    ok = (skip = gtorch_cuda_pack (call->inputs[SKIP], GTORCH_DTYPE_FLOAT32, lane, error)) != NULL;
  for (i = 0; ok && i < total; i++)
    {
      GTorchImpl *impl = operand (call, i / n, i % n);

      packed[i] = gtorch_cuda_pack (impl, impl->dtype, lane, error);
      ok = packed[i] != NULL;
    }
  p->cell = cell != NULL ? gtorch_impl_data (cell) : NULL;
  p->found = skip != NULL ? gtorch_impl_data (skip) : NULL;
  for (i = 0; ok && i < n; i += taken)
    {
      taken = gather (packed, kinds, n, i, is_adam, p);
      /* Adam's corrections are of the step that this is; the first of SGD has made none before. */
      if (is_adam)
        ok = gtorch_cuda_run_struct (GTORCH_CUDA_FAMILY_OPTIM, "step_counts", GTORCH_DTYPE_FLOAT64,
                                     lane, taken, p, error);
      ok = ok
           && gtorch_cuda_run_struct (GTORCH_CUDA_FAMILY_OPTIM, name, call->compute, lane,
                                      (gint64) p->blocks * GT_STEP_THREADS, p, error);
      if (!is_adam && kinds > SGD_COUNT)
        ok = ok
             && gtorch_cuda_run_struct (GTORCH_CUDA_FAMILY_OPTIM, "step_counts",
                                        GTORCH_DTYPE_FLOAT64, lane, taken, p, error);
    }
  for (i = 0; ok && i < total; i++)
    if (i / n != GRAD)
      ok = gtorch_cuda_unpack (packed[i], operand (call, i / n, i % n), lane, error);
  gtorch_impl_clear (packed, total);
  return ok;
}

gboolean
gtorch_cuda_sgd_steps (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr *a = call->attrs;
  gboolean first = a[7].i && n_kinds (call) <= SGD_COUNT;
  GtSteps p = {
    .d = { a[1].d, a[2].d, first ? 1 : 1 - a[3].d, a[4].d, first ? 0 : a[2].d },
    .nesterov = a[5].i,
    .maximize = a[6].i,
  };

  return cuda_steps (call, lane, FALSE, &p, error);
}

gboolean
gtorch_cuda_adam_steps (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr *a = call->attrs;
  GtSteps p = {
    .d = { a[1].d, a[2].d, a[3].d, a[4].d, a[5].d },
    .decoupled = a[6].i,
    .maximize = a[7].i,
  };

  return cuda_steps (call, lane, TRUE, &p, error);
}
