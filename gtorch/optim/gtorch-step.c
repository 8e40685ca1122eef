/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Optimizers that are rows: their settings, their state, and their step, which is one operation. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "optim/gtorch-step-private.h"

#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

static const GTorchStepClass *
class_of (GTorchOptimizer *self)
{
  return GTORCH_OPTIMIZER_GET_CLASS (self)->row;
}

const GTorchStep *
gtorch_step_find (GTorchOptimizer *self)
{
  const GTorchStepClass *row = gtorch_optimizer_is_fused (self) ? class_of (self) : NULL;

  return row != NULL ? &gtorch_steps[row->step] : NULL;
}

gboolean
gtorch_step_becomes_capturable (GTorchOptimizer *self)
{
  const GTorchStepClass *row = gtorch_optimizer_is_fused (self) ? class_of (self) : NULL;

  return row != NULL && row->becomes_capturable;
}

gdouble
gtorch_step_get_begin (GTorchOptimizer *self, GTorchParamGroup *group, const gchar *name)
{
  const GTorchStepClass *row = class_of (self);
  gdouble numbers[GTORCH_STEP_MAX_NUMBERS];
  guint i;

  if (row == NULL)
    return 0;
  gtorch_param_group_get_numbers (group, self, numbers);
  for (i = 0; i < gtorch_steps[row->step].n_states; i++)
    if (strcmp (gtorch_steps[row->step].states[i].name, name) == 0)
      return gtorch_steps[row->step].get_begin (numbers, i);
  return 0;
}

/* --- steps --- */

/* The arguments of a step of some parameters of a group. */
typedef struct
{
  const GTorchStep *step;
  guint index, states;
  gdouble numbers[GTORCH_STEP_MAX_NUMBERS]; /* of the group */
  gboolean first;
} Run;

static guint
count_bit (const GTorchStep *step)
{
  guint i;

  for (i = 0; i < step->n_states; i++)
    if (step->states[i].is_count)
      return 1u << i;
  return 0;
}

/* A module that was moved or converted has moved its parameters and their grads, but not the state of
 * optimizers. */
static gboolean
fits (GTorchOptimizer *self, GTorchTensor *param, GTorchTensor *tensor, const gchar *name,
      gboolean is_number, GError **error)
{
  const GTorchImpl *to = gtorch_tensor_unwrap (param), *impl = gtorch_tensor_unwrap (tensor);
  const gchar *who = class_of (self)->settings.who;
  GTorchError code;

  if (G_UNLIKELY (impl->device != to->device))
    code = GTORCH_ERROR_DEVICE_MISMATCH;
  else if (G_LIKELY (is_number || impl->dtype == to->dtype))
    return TRUE;
  else
    code = GTORCH_ERROR_DTYPE;
  if (name == NULL)
    g_set_error (error, GTORCH_ERROR, code,
                 _ ("%s: the grad of a parameter of shape %s is %s on %s, the parameter %s on %s"),
                 who, gtorch_impl_shape_str (to), gtorch_dtype_get_name (impl->dtype),
                 gtorch_device_name (impl->device), gtorch_dtype_get_name (to->dtype),
                 gtorch_device_name (to->device));
  else
    g_set_error (error, GTORCH_ERROR, code,
                 _ ("%s: the state “%s” of a parameter of shape %s is %s on %s, the parameter %s "
                    "on "
                    "%s by now: move and convert parameters before the first step, or have the "
                    "optimizer load its own state dict, which takes the state along"),
                 who, name, gtorch_impl_shape_str (to), gtorch_dtype_get_name (impl->dtype),
                 gtorch_device_name (impl->device), gtorch_dtype_get_name (to->dtype),
                 gtorch_device_name (to->device));
  return FALSE;
}

/* The parameter has been stepped without a count: this is not the first step. */
static GTorchTensor *
ensure (GTorchOptimizer *self, const Run *run, GTorchTensor *param, guint state, gboolean first,
        GError **error)
{
  const GTorchStepState *what = &run->step->states[state];
  gdouble value = what->is_count ? (run->step->counts_if_needed && !first ? 1 : 0)
                                 : run->step->get_begin (run->numbers, state);
  GTorchTensor *tensor;

  tensor = gtorch_optim_ensure_state (self, param, what->name, what->is_number, value, error);
  return tensor != NULL && fits (self, param, tensor, what->name, what->is_number, error) ? tensor
                                                                                          : NULL;
}

static gboolean
ensure_all (GTorchOptimizer *self, const Run *run, GTorchTensor *param, guint states,
            gboolean first, GError **error)
{
  guint i;

  for (i = 0; i < run->step->n_states; i++)
    if ((states & 1u << i) != 0 && ensure (self, run, param, i, first, error) == NULL)
      return FALSE;
  return TRUE;
}

static gboolean
call (const GTorchOptimStep *step, GTorchImpl *const *operands, guint n, guint kinds, gpointer data,
      GError **error)
{
  const Run *run = data;
  gint64 bits[GTORCH_STEP_MAX_NUMBERS];

  G_STATIC_ASSERT (sizeof bits == sizeof run->numbers);
  memcpy (bits, run->numbers, sizeof bits);
  return gtorch_op_optim_steps_inplace (operands[0], step->cell, step->skip, operands + 1,
                                        n * kinds - 1, run->index, run->states, bits,
                                        run->step->n_numbers, run->first, error);
}

/* Creates missing states before anything is changed. */
static gboolean
run_part (GTorchOptimizer *self, const GTorchOptimStep *step, Run *run, GError **error)
{
  guint kinds = 2, kind = 2, i, state;
  g_autofree GTorchImpl **operands = NULL;

  for (state = 0; state < run->step->n_states; state++)
    kinds += run->states >> state & 1;
  operands = g_new (GTorchImpl *, step->n * kinds);
  for (i = 0; i < step->n; i++)
    {
      if (!fits (self, step->params[i], step->grads[i], NULL, FALSE, error))
        return FALSE;
      operands[i] = gtorch_tensor_unwrap (step->params[i]);
      operands[step->n + i] = gtorch_tensor_unwrap (step->grads[i]);
    }
  for (state = 0; state < run->step->n_states; state++)
    {
      if ((run->states & 1u << state) == 0)
        continue;
      for (i = 0; i < step->n; i++)
        {
          GTorchTensor *tensor = ensure (self, run, step->params[i], state, run->first, error);

          if (tensor == NULL)
            return FALSE;
          operands[kind * step->n + i] = gtorch_tensor_unwrap (tensor);
        }
      kind++;
    }
  return gtorch_optim_run (step, operands, kinds, call, run, error);
}

enum
{
  IS_FIRST = 1,
  HAS_COUNT = 2,
  N_KINDS = 4,
};

/* The parameter has been stepped if it has one of these states. */
static guint
kind_of (GTorchOptimizer *self, const Run *run, GTorchTensor *param, guint states)
{
  guint kind = IS_FIRST, i;

  for (i = 0; i < run->step->n_states; i++)
    {
      const GTorchStepState *state = &run->step->states[i];

      if (!state->is_count && (states & 1u << i) == 0)
        continue;
      if (gtorch_optimizer_get_state (self, param, state->name) != NULL)
        kind = state->is_count ? kind | HAS_COUNT : kind & ~IS_FIRST;
    }
  return kind;
}

/* Counts tell the device which step is the first if the host does not know: in graphs, and where steps
 * may be skipped. So there may be parameters that have been stepped and others, and those with a count
 * and without. */
static gboolean
run_by_kind (GTorchOptimizer *self, const GTorchOptimStep *step, Run *run, GError **error)
{
  const guint states = run->states, count = count_bit (run->step);
  gboolean counts = step->cell != NULL || step->skip != NULL;
  g_autofree GTorchTensor **sorted = g_new (GTorchTensor *, 2 * step->n);
  g_autofree guint *kinds = g_new (guint, step->n);
  guint kind, i;

  for (i = 0; i < step->n; i++)
    kinds[i] = kind_of (self, run, step->params[i], states) | (counts ? HAS_COUNT : 0);
  /* before the first of them is changed: later steps then create nothing */
  for (i = 0; i < step->n; i++)
    if (!ensure_all (self, run, step->params[i], states | ((kinds[i] & HAS_COUNT) != 0 ? count : 0),
                     (kinds[i] & IS_FIRST) != 0, error))
      return FALSE;
  for (kind = 0; kind < N_KINDS; kind++)
    {
      GTorchOptimStep part = *step;

      part.params = sorted;
      part.grads = sorted + step->n;
      part.n = 0;
      for (i = 0; i < step->n; i++)
        if (kinds[i] == kind)
          {
            sorted[part.n] = step->params[i];
            sorted[step->n + part.n++] = step->grads[i];
          }
      run->first = (kind & IS_FIRST) != 0;
      run->states = states | ((kind & HAS_COUNT) != 0 ? count : 0);
      if (part.n > 0 && !run_part (self, &part, run, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
step_params (GTorchOptimizer *self, const GTorchOptimStep *step, GError **error)
{
  const GTorchStepClass *row = class_of (self);
  Run run = { .step = &gtorch_steps[row->step], .index = row->step };

  gtorch_param_group_get_numbers (step->group, self, run.numbers);
  run.states = run.step->get_states (run.numbers);
  if (run.step->counts_if_needed && run.states != 0)
    return run_by_kind (self, step, &run, error);
  return run_part (self, step, &run, error);
}

/* --- classes --- */

void
gtorch_step_class_init (GTorchOptimizerClass *klass, const GTorchStepClass *row)
{
  klass->row = row;
  klass->settings = &row->settings;
  klass->step_param = gtorch_optimizer_step_one;
  klass->step_params = step_params;
}

gpointer
gtorch_step_new (GType type, GListModel *params, gdouble learning_rate, gdouble weight_decay,
                 GError **error, ...)
{
  g_autoptr (GTorchParamGroup) group =
      gtorch_param_group_new (params, learning_rate, weight_decay, error);
  g_autoptr (GTorchOptimizer) self = NULL;
  const gchar *first;
  va_list args;

  if (group == NULL)
    return NULL;
  va_start (args, error);
  first = va_arg (args, const gchar *);
  self = (GTorchOptimizer *) g_object_new_valist (type, first, args);
  va_end (args);
  if (g_list_model_get_n_items (params) == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are no parameters to optimize"),
                   gtorch_steps[class_of (self)->step].name);
      return NULL;
    }
  if (!gtorch_optimizer_check (self, error)
      || !gtorch_optimizer_add_param_group (self, group, error))
    return NULL;
  gtorch_optimizer_set_default_rates (self, learning_rate, weight_decay);
  return g_steal_pointer (&self);
}
