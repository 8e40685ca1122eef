/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operation of optimizers: a step for any number of parameters, as the rows of steps.toml describe
 * it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "optim/gtorch-step-call-private.h"

void
gtorch_step_call_find_kinds (const GTorchOpCall *call, guint *kinds)
{
  guint kind = GTORCH_STEP_STATES, state;

  for (state = 0; state < gtorch_step_call_row (call)->n_states; state++)
    kinds[state] = gtorch_step_call_has (call, state) ? kind++ : 0;
}

/* Returns a bit mask of the kinds that are numbers. */
static guint
find_numbers (const GTorchOpCall *call)
{
  guint kinds[GTORCH_STEP_MAX_KINDS], numbers = 0, state;

  gtorch_step_call_find_kinds (call, kinds);
  for (state = 0; state < gtorch_step_call_row (call)->n_states; state++)
    if (gtorch_step_call_row (call)->states[state].is_number && kinds[state] != 0)
      numbers |= 1u << kinds[state];
  return numbers;
}

guint
gtorch_step_call_find_count (const GTorchOpCall *call)
{
  guint kinds[GTORCH_STEP_MAX_KINDS], state;

  gtorch_step_call_find_kinds (call, kinds);
  for (state = 0; state < gtorch_step_call_row (call)->n_states; state++)
    if (gtorch_step_call_row (call)->states[state].is_count)
      return kinds[state];
  return 0;
}

guint
gtorch_step_call_get_numbers (const GTorchOpCall *call, gdouble *numbers)
{
  const GTorchAttr *attr = &call->attrs[2];

  memcpy (numbers, attr->list.data, attr->list.n * sizeof (gdouble));
  return attr->list.n;
}

gboolean
gtorch_writes_optim_steps (const GTorchOpCall *call, guint i)
{
  guint n = gtorch_step_call_n_params (call);

  return i >= GTORCH_STEP_OTHERS && ((i - GTORCH_STEP_OTHERS + 1) / n) != GTORCH_STEP_GRAD;
}

/* Checks that each parameter, its gradient and its states have the same shape, dtype and device. */
gboolean
gtorch_shape_optim_steps (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint n = gtorch_step_call_n_params (call), kinds = gtorch_step_call_n_kinds (call),
        numbers = find_numbers (call), kind, i;

  for (kind = 0; kind < kinds; kind++)
    for (i = 0; i < n; i++)
      {
        const GTorchImpl *param = gtorch_step_call_operand (call, n, GTORCH_STEP_PARAM, i),
                         *other = gtorch_step_call_operand (call, n, kind, i);

        if ((numbers & 1u << kind) != 0)
          {
            if (!gtorch_call_check_number (call, other, GTORCH_DTYPE_FLOAT64,
                                           N_ ("a number of a parameter"), error))
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
  return gtorch_call_check_number (call, call->inputs[GTORCH_STEP_LR_CELL], GTORCH_DTYPE_FLOAT64,
                                   N_ ("the learning rate"), error)
         && gtorch_call_check_number (call, call->inputs[GTORCH_STEP_SKIP], GTORCH_DTYPE_FLOAT32,
                                      "skip", error)
         && gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}
