/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-adam.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "gtorch-optimizer-private.h"
#include "gtorch-tensor-ops.h"
#include "gtorch-tensor-private.h"

/**
 * GTorchAdam:
 *
 * Adam: steps of the size of the mean gradient over the root of its mean square.
 *
 * Source: Kingma, Ba, Adam: a method for stochastic optimization, arXiv:1412.6980; amsgrad: Reddi,
 * Kale, Kumar, On the convergence of Adam and beyond, ICLR 2018.
 *
 * Since: 0.1
 */
struct _GTorchAdam
{
  GTorchOptimizer parent_instance;
  gdouble beta1;
  gdouble beta2;
  gdouble eps;
  gboolean amsgrad;
  gboolean maximize;
};

/**
 * GTorchAdamW:
 *
 * Adam whose weight decay shrinks the parameters themselves instead of adding to their gradients.
 *
 * Source: Loshchilov, Hutter, Decoupled weight decay regularization, arXiv:1711.05101
 *
 * Since: 0.1
 */
struct _GTorchAdamW
{
  GTorchAdam parent_instance;
};

#define FLAGS GTORCH_SETTING_FLAGS

enum
{
  PROP_0,
  PROP_BETA1,
  PROP_BETA2,
  PROP_EPS,
  PROP_AMSGRAD,
  PROP_MAXIMIZE,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchAdam, gtorch_adam, GTORCH_TYPE_OPTIMIZER)

static void
gtorch_adam_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  GTorchAdam *self = (GTorchAdam *) object;

  switch (prop_id)
    {
    case PROP_BETA1:
      g_value_set_double (value, self->beta1);
      break;
    case PROP_BETA2:
      g_value_set_double (value, self->beta2);
      break;
    case PROP_EPS:
      g_value_set_double (value, self->eps);
      break;
    case PROP_AMSGRAD:
      g_value_set_boolean (value, self->amsgrad);
      break;
    case PROP_MAXIMIZE:
      g_value_set_boolean (value, self->maximize);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
    }
}

static void
gtorch_adam_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  GTorchAdam *self = (GTorchAdam *) object;

  switch (prop_id)
    {
    case PROP_BETA1:
      self->beta1 = g_value_get_double (value);
      break;
    case PROP_BETA2:
      self->beta2 = g_value_get_double (value);
      break;
    case PROP_EPS:
      self->eps = g_value_get_double (value);
      break;
    case PROP_AMSGRAD:
      self->amsgrad = g_value_get_boolean (value);
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

G_DEFINE_TYPE (GTorchAdamW, gtorch_adam_w, GTORCH_TYPE_ADAM)

static gboolean
run (const GTorchOptimStep *step, GTorchImpl *const *operands, guint n, guint kinds, gpointer data,
     GError **error)
{
  const GTorchAdam *self = data;

  return gtorch_op_adam_steps_inplace (operands[0], step->cell, step->skip, operands + 1,
                                       n * kinds - 1, kinds,
                                       gtorch_param_group_get_learning_rate (step->group),
                                       self->beta1, self->beta2, self->eps,
                                       gtorch_param_group_get_weight_decay (step->group),
                                       GTORCH_IS_ADAM_W (data), self->maximize, error);
}

static gboolean
gtorch_adam_step_params (GTorchOptimizer *optimizer, const GTorchOptimStep *step, GError **error)
{
  const gchar *const names[] = { "exp_avg", "exp_avg_sq", "step", "max_exp_avg_sq" };
  GTorchAdam *self = GTORCH_ADAM (optimizer);
  guint kinds = self->amsgrad ? 6 : 5, i, kind;
  g_autofree GTorchImpl **operands = g_new (GTorchImpl *, step->n * kinds);

  for (i = 0; i < step->n; i++)
    {
      operands[i] = gtorch_tensor_unwrap (step->params[i]);
      operands[step->n + i] = gtorch_tensor_unwrap (step->grads[i]);
      for (kind = 2; kind < kinds; kind++)
        {
          GTorchTensor *state = gtorch_optim_ensure_state (optimizer, step->params[i],
                                                           names[kind - 2], kind == 4, 0, error);

          if (state == NULL)
            return FALSE;
          operands[kind * step->n + i] = gtorch_tensor_unwrap (state);
        }
    }
  return gtorch_optim_run (step, operands, kinds, run, self, error);
}

/* With 1, or what rounds to it in float32, the correction of the bias divides by 0. */
static gboolean
check_beta (const gchar *name, gdouble beta, GError **error)
{
  if (beta >= 0 && (gfloat) beta < 1)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("adam: %s is %g, it must be at least 0 and below 1"), name, beta);
  return FALSE;
}

static gboolean
gtorch_adam_check (GTorchOptimizer *optimizer, GError **error)
{
  GTorchAdam *self = GTORCH_ADAM (optimizer);

  return check_beta ("beta1", self->beta1, error) && check_beta ("beta2", self->beta2, error)
         && gtorch_optim_check_number ("adam", "eps", self->eps, 0, G_MAXDOUBLE, error);
}

static void
gtorch_adam_class_init (GTorchAdamClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_adam_get_property;
  object_class->set_property = gtorch_adam_set_property;
  GTORCH_OPTIMIZER_CLASS (klass)->step_param = gtorch_optimizer_step_one;
  GTORCH_OPTIMIZER_CLASS (klass)->step_params = gtorch_adam_step_params;
  GTORCH_OPTIMIZER_CLASS (klass)->check = gtorch_adam_check;

  /**
   * GTorchAdam:beta1:
   *
   * How much of the mean of the gradients is kept.
   *
   * Since: 0.1
   */
  props[PROP_BETA1] = g_param_spec_double ("beta1", NULL, NULL, -INFINITY, INFINITY, 0.9, FLAGS);
  /**
   * GTorchAdam:beta2:
   *
   * How much of the mean of their squares is kept.
   *
   * Since: 0.1
   */
  props[PROP_BETA2] = g_param_spec_double ("beta2", NULL, NULL, -INFINITY, INFINITY, 0.999, FLAGS);
  /**
   * GTorchAdam:eps:
   *
   * What keeps the division from zero.
   *
   * Since: 0.1
   */
  props[PROP_EPS] = g_param_spec_double ("eps", NULL, NULL, -INFINITY, INFINITY, 1e-8, FLAGS);
  /**
   * GTorchAdam:amsgrad:
   *
   * Whether to divide by the largest mean of squares so far.
   *
   * Since: 0.1
   */
  props[PROP_AMSGRAD] = g_param_spec_boolean ("amsgrad", NULL, NULL, FALSE, FLAGS);
  /**
   * GTorchAdam:maximize:
   *
   * Whether to go up instead of down.
   *
   * Since: 0.1
   */
  props[PROP_MAXIMIZE] = g_param_spec_boolean ("maximize", NULL, NULL, FALSE, FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_adam_init (GTorchAdam *self)
{
  self->beta1 = 0.9;
  self->beta2 = 0.999;
  self->eps = 1e-8;
}

static void
gtorch_adam_w_class_init (GTorchAdamWClass *klass)
{
}

static void
gtorch_adam_w_init (GTorchAdamW *self)
{
}

static GTorchOptimizer *
optimizer_new (GType type, GListModel *params, gdouble learning_rate, gdouble weight_decay,
               GError **error)
{
  g_autoptr (GTorchParamGroup) group =
      gtorch_param_group_new (params, learning_rate, weight_decay, error);
  g_autoptr (GTorchOptimizer) self = NULL;

  if (group == NULL)
    return NULL;
  self = g_object_new (type, NULL);
  if (!gtorch_optimizer_add_param_group (self, group, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_adam_new:
 * @params: a list of tensors, such as [method@Module.get_parameters] gives
 * @learning_rate: how far a step goes
 * @error: return location for an error
 *
 * Makes an optimizer with one group of parameters. The other settings are properties.
 *
 * Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if the learning rate
 *   is negative or not finite
 *
 * Since: 0.1
 */
GTorchAdam *
gtorch_adam_new (GListModel *params, gdouble learning_rate, GError **error)
{
  return (GTorchAdam *) optimizer_new (GTORCH_TYPE_ADAM, params, learning_rate, 0, error);
}

/**
 * gtorch_adam_w_new:
 * @params: a list of tensors, such as [method@Module.get_parameters] gives
 * @learning_rate: how far a step goes
 * @weight_decay: by how much of the learning rate parameters shrink at each step
 * @error: return location for an error
 *
 * Makes an optimizer with one group of parameters. The other settings are properties.
 *
 * Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a value is
 *   negative or not finite
 *
 * Since: 0.1
 */
GTorchAdamW *
gtorch_adam_w_new (GListModel *params, gdouble learning_rate, gdouble weight_decay, GError **error)
{
  return (GTorchAdamW *) optimizer_new (GTORCH_TYPE_ADAM_W, params, learning_rate, weight_decay,
                                        error);
}
