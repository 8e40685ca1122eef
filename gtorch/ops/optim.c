/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-optim.h"
#include "gtorch-ops-private.h"

/* The parameter, its gradient and its state must be alike. */
gboolean
gtorch_shape_optim_step (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint i, n = call->op->id == GTORCH_OP_ADAM_STEP ? 5 : 3;

  for (i = 1; i < n; i++)
    {
      const GTorchImpl *input = call->inputs[i];

      if (input == NULL)
        continue;
      if (!gtorch_impl_same_shape (self, input))
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("tensor %u has shape %s, the parameter %s"), i,
                             gtorch_impl_shape_str (input), gtorch_impl_shape_str (self));
          return FALSE;
        }
      if (self->dtype != input->dtype)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                             _ ("tensor %u has dtype %s, the parameter %s"), i,
                             gtorch_dtype_get_name (input->dtype),
                             gtorch_dtype_get_name (self->dtype));
          return FALSE;
        }
    }
  if (n == 5 && (call->inputs[5]->dtype != GTORCH_DTYPE_FLOAT64 || call->inputs[5]->numel != 1))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("the step count must be one float64"));
      return FALSE;
    }
  call->compute = self->dtype;
  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

static void
run (GTorchOpCall *call, guint n, GTorchIterFunc func, gpointer step)
{
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { call->outputs[0] };
  GTorchIter iter;
  guint i;

  for (i = 1; i < n; i++)
    operands[i] = call->inputs[i] != NULL ? call->inputs[i] : call->inputs[1];
  if (operands[0]->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, n, operands[0]->shape, operands[0]->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, func, step);
}

gboolean
gtorch_cpu_sgd_step (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  GTorchSGDStep step = {
    .dtype = call->outputs[0]->dtype,
    .has_buffer = call->inputs[2] != NULL,
    .lr = attrs[0].d,
    .momentum = attrs[1].d,
    .dampening = attrs[2].d,
    .weight_decay = attrs[3].d,
    .nesterov = attrs[4].i,
    .maximize = attrs[5].i,
    .first = attrs[6].i,
  };

  run (call, 3, GTORCH_ISA_CALL (gtorch_sgd_loop), &step);
  return TRUE;
}

gboolean
gtorch_cpu_adam_step (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  gdouble *count = gtorch_impl_data (call->inputs[5]);
  GTorchAdamStep step = {
    .dtype = call->outputs[0]->dtype,
    .amsgrad = call->inputs[4] != NULL,
    .lr = attrs[0].d,
    .beta1 = attrs[1].d,
    .beta2 = attrs[2].d,
    .eps = attrs[3].d,
    .weight_decay = attrs[4].d,
    .decoupled = attrs[5].i,
    .maximize = attrs[6].i,
  };

  *count += 1;
  step.correction1 = 1 - pow (step.beta1, *count);
  step.correction2_sqrt = sqrt (1 - pow (step.beta2, *count));
  run (call, 5, GTORCH_ISA_CALL (gtorch_adam_loop), &step);
  return TRUE;
}
