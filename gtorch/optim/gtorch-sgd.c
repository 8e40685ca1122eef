/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-sgd.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "gtorch-optimizer-private.h"
#include "gtorch-tensor-ops.h"
#include "gtorch-tensor-private.h"

/**
 * GTorchSGD:
 *
 * Stochastic gradient descent, with momentum if wanted.
 *
 * Source: Sutskever et al., On the importance of initialization and momentum in deep learning,
 * ICML 2013; with PyTorch's form of the momentum.
 *
 * Since: 0.1
 */
struct _GTorchSGD
{
  GTorchOptimizer parent_instance;
  gdouble momentum;
  gdouble dampening;
  gboolean nesterov;
  gboolean maximize;
};

#define FLAGS GTORCH_SETTING_FLAGS

enum
{
  PROP_0,
  PROP_MOMENTUM,
  PROP_DAMPENING,
  PROP_NESTEROV,
  PROP_MAXIMIZE,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchSGD, gtorch_sgd, GTORCH_TYPE_OPTIMIZER)

static void
gtorch_sgd_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  GTorchSGD *self = (GTorchSGD *) object;

  switch (prop_id)
    {
    case PROP_MOMENTUM:
      g_value_set_double (value, self->momentum);
      break;
    case PROP_DAMPENING:
      g_value_set_double (value, self->dampening);
      break;
    case PROP_NESTEROV:
      g_value_set_boolean (value, self->nesterov);
      break;
    case PROP_MAXIMIZE:
      g_value_set_boolean (value, self->maximize);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
    }
}

static void
gtorch_sgd_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  GTorchSGD *self = (GTorchSGD *) object;

  switch (prop_id)
    {
    case PROP_MOMENTUM:
      self->momentum = g_value_get_double (value);
      break;
    case PROP_DAMPENING:
      self->dampening = g_value_get_double (value);
      break;
    case PROP_NESTEROV:
      self->nesterov = g_value_get_boolean (value);
      break;
    case PROP_MAXIMIZE:
      self->maximize = g_value_get_boolean (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      return;
    }
  gtorch_optimizer_changed (GTORCH_OPTIMIZER (object), pspec);
}

typedef struct
{
  const GTorchSGD *self;
  gboolean first;
} Run;

static gboolean
run (const GTorchOptimStep *step, GTorchImpl *const *operands, guint n, guint kinds, gpointer data,
     GError **error)
{
  const Run *how = data;
  const GTorchSGD *self = how->self;

  return gtorch_op_sgd_steps_inplace (operands[0], step->cell, step->skip, operands + 1,
                                      n * kinds - 1, kinds,
                                      gtorch_param_group_get_learning_rate (step->group),
                                      self->momentum, self->dampening,
                                      gtorch_param_group_get_weight_decay (step->group),
                                      self->nesterov, self->maximize, how->first, error);
}

/* Those that have a buffer, or those that get one now. Counts tell the device which step is the first where
 * the host does not: in graphs, and where steps may be skipped. */
static gboolean
step_params (GTorchOptimizer *optimizer, const GTorchOptimStep *step, gboolean first,
             gboolean has_counts, GError **error)
{
  GTorchSGD *self = GTORCH_SGD (optimizer);
  Run how = { self, first };
  guint kinds = self->momentum == 0 ? 2 : (has_counts ? 4 : 3), i;
  g_autofree GTorchImpl **operands = g_new (GTorchImpl *, step->n * kinds);

  for (i = 0; i < step->n; i++)
    {
      operands[i] = gtorch_tensor_unwrap (step->params[i]);
      operands[step->n + i] = gtorch_tensor_unwrap (step->grads[i]);
      if (kinds > 2)
        {
          GTorchTensor *buffer = gtorch_optim_ensure_state (optimizer, step->params[i],
                                                            "momentum_buffer", FALSE, 0, error);

          if (buffer == NULL)
            return FALSE;
          operands[2 * step->n + i] = gtorch_tensor_unwrap (buffer);
        }
      if (kinds > 3)
        {
          GTorchTensor *count = gtorch_optim_ensure_state (optimizer, step->params[i], "step", TRUE,
                                                           first ? 0 : 1, error);

          if (count == NULL)
            return FALSE;
          operands[3 * step->n + i] = gtorch_tensor_unwrap (count);
        }
    }
  return gtorch_optim_run (step, operands, kinds, run, &how, error);
}

static gboolean
gtorch_sgd_check (GTorchOptimizer *optimizer, GError **error)
{
  GTorchSGD *self = GTORCH_SGD (optimizer);

  if (!gtorch_optim_check_number ("sgd", "the momentum", self->momentum, 0, G_MAXDOUBLE, error)
      || !gtorch_optim_check_number ("sgd", "the dampening", self->dampening, -G_MAXDOUBLE,
                                     G_MAXDOUBLE, error))
    return FALSE;
  if (!self->nesterov || (self->momentum > 0 && self->dampening == 0))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("sgd: nesterov needs a momentum and no dampening, they are %g and %g"),
               self->momentum, self->dampening);
  return FALSE;
}

static gboolean
needs_count (const GTorchOptimStep *step, guint kind)
{
  return (kind & 2) != 0 || step->cell != NULL || step->skip != NULL;
}

static gboolean
make_states (GTorchOptimizer *optimizer, const GTorchOptimStep *step, guint i, gboolean first,
             gboolean has_count, GError **error)
{
  return (!first
          || gtorch_optim_ensure_state (optimizer, step->params[i], "momentum_buffer", FALSE, 0,
                                        error)
                 != NULL)
         && (!has_count
             || gtorch_optim_ensure_state (optimizer, step->params[i], "step", TRUE, first ? 0 : 1,
                                           error)
                    != NULL);
}

static gboolean
gtorch_sgd_step_params (GTorchOptimizer *optimizer, const GTorchOptimStep *step, GError **error)
{
  GTorchSGD *self = GTORCH_SGD (optimizer);
  g_autofree GTorchTensor **sorted = NULL;
  g_autofree guint *kinds = NULL;
  guint kind, i;

  if (self->momentum == 0)
    return step_params (optimizer, step, FALSE, FALSE, error);

  /* by whether they have a buffer, and whether a count */
  sorted = g_new (GTorchTensor *, 2 * step->n);
  kinds = g_new (guint, step->n);
  for (i = 0; i < step->n; i++)
    {
      GTorchTensor *param = step->params[i];

      kinds[i] = gtorch_optimizer_get_state (optimizer, param, "momentum_buffer") == NULL ? 1 : 0;
      kinds[i] |= gtorch_optimizer_get_state (optimizer, param, "step") != NULL ? 2 : 0;
    }
  /* before the first of them is changed: then there is nothing left to be made */
  for (i = 0; i < step->n; i++)
    if (!make_states (optimizer, step, i, kinds[i] & 1, needs_count (step, kinds[i]), error))
      return FALSE;
  for (kind = 0; kind < 4; kind++)
    {
      gboolean first = kind & 1;
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
      if (part.n > 0 && !step_params (optimizer, &part, first, needs_count (step, kind), error))
        return FALSE;
    }
  return TRUE;
}

static void
gtorch_sgd_class_init (GTorchSGDClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_sgd_get_property;
  object_class->set_property = gtorch_sgd_set_property;
  GTORCH_OPTIMIZER_CLASS (klass)->step_param = gtorch_optimizer_step_one;
  GTORCH_OPTIMIZER_CLASS (klass)->step_params = gtorch_sgd_step_params;
  GTORCH_OPTIMIZER_CLASS (klass)->check = gtorch_sgd_check;

  /**
   * GTorchSGD:momentum:
   *
   * How much of the last step is kept.
   *
   * Since: 0.1
   */
  props[PROP_MOMENTUM] =
      g_param_spec_double ("momentum", NULL, NULL, -INFINITY, INFINITY, 0, FLAGS);
  /**
   * GTorchSGD:dampening:
   *
   * How much of a gradient is left out of the momentum.
   *
   * Since: 0.1
   */
  props[PROP_DAMPENING] =
      g_param_spec_double ("dampening", NULL, NULL, -INFINITY, INFINITY, 0, FLAGS);
  /**
   * GTorchSGD:nesterov:
   *
   * Whether the step looks ahead along the momentum.
   *
   * Since: 0.1
   */
  props[PROP_NESTEROV] = g_param_spec_boolean ("nesterov", NULL, NULL, FALSE, FLAGS);
  /**
   * GTorchSGD:maximize:
   *
   * Whether to go up instead of down.
   *
   * Since: 0.1
   */
  props[PROP_MAXIMIZE] = g_param_spec_boolean ("maximize", NULL, NULL, FALSE, FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_sgd_init (GTorchSGD *self)
{
}

/**
 * gtorch_sgd_new:
 * @params: a list of tensors, such as [method@Module.get_parameters] gives
 * @learning_rate: how far a step goes
 * @momentum: how much of the last step is kept, 0 for none
 * @error: return location for an error
 *
 * Makes an optimizer with one group of parameters. The other settings are properties.
 *
 * Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a value is
 *   negative or not finite
 *
 * Since: 0.1
 */
GTorchSGD *
gtorch_sgd_new (GListModel *params, gdouble learning_rate, gdouble momentum, GError **error)
{
  g_autoptr (GTorchParamGroup) group = gtorch_param_group_new (params, learning_rate, 0, error);
  g_autoptr (GTorchSGD) self = NULL;

  if (group == NULL)
    return NULL;
  self = g_object_new (GTORCH_TYPE_SGD, "momentum", momentum, NULL);
  if (!gtorch_sgd_check (GTORCH_OPTIMIZER (self), error)
      || !gtorch_optimizer_add_param_group (GTORCH_OPTIMIZER (self), group, error))
    return NULL;
  return g_steal_pointer (&self);
}
