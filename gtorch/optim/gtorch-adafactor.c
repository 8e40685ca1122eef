/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-adafactor.h"

#include <math.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none.h"
#include "elements/gtorch-tensor-bytes.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-spread-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-setting-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchAdafactor:
 *
 * Divides the gradient by the root of its running mean square, of which it keeps only the means of rows and
 * columns for matrices, and steps relative to the size of the parameter.
 *
 * The learning rate is the greatest relative step; the step count limits it, too.
 *
 * Source: Shazeer, Stern, Adafactor: adaptive learning rates with sublinear memory cost, arXiv:1804.04235
 *
 * Since: 0.1
 */
struct _GTorchAdafactor
{
  GTorchOptimizer parent_instance;
  gdouble beta2_decay, eps1, eps2, d;
  gboolean maximize;
};

G_DEFINE_TYPE (GTorchAdafactor, gtorch_adafactor, GTORCH_TYPE_OPTIMIZER)

static const GTorchField fields[] = {
  /**
   * GTorchAdafactor:beta2-decay:
   *
   * The power of the step count that is the weight of a new mean square.
   *
   * Since: 0.1
   */
  { "beta2-decay", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchAdafactor, beta2_decay), -0.8, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchAdafactor:eps1:
   *
   * The least mean square, squared; GTORCH_NONE_DOUBLE for the epsilon of the dtype.
   *
   * Since: 0.1
   */
  { "eps1", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchAdafactor, eps1), GTORCH_NONE_DOUBLE, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchAdafactor:eps2:
   *
   * The least size of a parameter.
   *
   * Since: 0.1
   */
  { "eps2", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchAdafactor, eps2), 1e-3, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchAdafactor:d:
   *
   * The size of an update from which on it is scaled down.
   *
   * Since: 0.1
   */
  { "d", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchAdafactor, d), 1, NULL, GTORCH_SETTING_FIELD },
  /**
   * GTorchAdafactor:maximize:
   *
   * Whether to maximise instead of minimise.
   *
   * Since: 0.1
   */
  { "maximize", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchAdafactor, maximize), 0, NULL,
    GTORCH_SETTING_FIELD },
};

#define NUMBER(kind, name, arg, ...)                                                     \
  {                                                                                      \
#name, arg, GTORCH_FIELD_##kind, G_STRUCT_OFFSET(GTorchAdafactor, name), __VA_ARGS__ \
  }

static const GTorchSetting numbers[] = {
  { "lr", "lr", GTORCH_FIELD_DOUBLE, GTORCH_SETTING_LR, 1e-2, 0, INFINITY, INFINITY },
  NUMBER (DOUBLE, beta2_decay, "beta2_decay", -0.8, -INFINITY, 0, INFINITY),
  NUMBER (DOUBLE, eps1, "eps", GTORCH_NONE_DOUBLE, 0, INFINITY, INFINITY, .is_optional = TRUE),
  NUMBER (DOUBLE, eps2, "eps", 1e-3, 0, INFINITY, INFINITY),
  NUMBER (DOUBLE, d, "d", 1, 1, INFINITY, INFINITY),
  { "weight_decay", "weight_decay", GTORCH_FIELD_DOUBLE, GTORCH_SETTING_DECAY, 0, 0, INFINITY,
    INFINITY },
  NUMBER (BOOL, maximize, "maximize", 0, 0, 1, INFINITY),
};

static const GTorchSettings settings = { "adafactor", numbers, G_N_ELEMENTS (numbers) };

static gboolean
gtorch_adafactor_check (GTorchOptimizer *optimizer, GError **error)
{
  g_autoptr (GPtrArray) params = NULL;

  if (!gtorch_optimizer_check_plain (optimizer, "adafactor", error))
    return FALSE;
  params = gtorch_optimizer_dup_params (optimizer);
  return gtorch_spread_check_whole ("adafactor", params, error);
}

/* --- steps --- */

static gdouble
epsilon_of (const GTorchAdafactor *self, guint dtype)
{
  if (self->eps1 != GTORCH_NONE_DOUBLE)
    return self->eps1;
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return 0x1p-52;
    case GTORCH_DTYPE_FLOAT16:
      return 0x1p-10;
    case GTORCH_DTYPE_BFLOAT16:
      return 0x1p-7;
    default:
      return 0x1p-23;
    }
}

/* The count is kept on the host, which needs it for each step. */
static gboolean
count_step (GTorchOptimizer *self, GTorchTensor *param, gdouble *t, GError **error)
{
  GTorchTensor *former = gtorch_optimizer_get_state (self, param, "step");
  g_autoptr (GTorchTensor) tensor = NULL;
  GError *failure = NULL;
  GTorchImpl *number;

  *t = 1 + (former != NULL ? gtorch_tensor_item_double (former, &failure) : 0);
  if (failure != NULL)
    {
      g_propagate_error (error, failure);
      return FALSE;
    }
  number = gtorch_impl_new_number (*t);
  number->is_number = FALSE;
  tensor = gtorch_tensor_wrap (number);
  gtorch_optimizer_set_state (self, param, "step", tensor);
  return TRUE;
}

/* Returns the running mean of the squares of the gradient, over one dimension or, for -3, of each element. */
static GTorchImpl *
mean_square (GTorchOptimizer *self, GTorchTensor *param, GTorchImpl *grad, const gchar *name,
             gint64 dim, gdouble weight, GError **error)
{
  g_autoptr (GTorchImpl) square = gtorch_op_square (grad, error);
  g_autoptr (GTorchImpl) mean = NULL;
  GTorchTensor *state = gtorch_optimizer_get_state (self, param, name);

  if (square == NULL)
    return NULL;
  mean = dim == -3 ? gtorch_impl_ref (square)
                   : gtorch_op_mean (square, &dim, 1, TRUE, GTORCH_DTYPE_NONE, error);
  if (mean != NULL && state == NULL)
    {
      g_autoptr (GTorchImpl) zeros = gtorch_op_full_like (mean, 0, GTORCH_DTYPE_NONE, error);
      g_autoptr (GTorchTensor) made =
          zeros != NULL ? gtorch_tensor_wrap (g_steal_pointer (&zeros)) : NULL;

      if (made == NULL)
        return NULL;
      gtorch_optimizer_set_state (self, param, name, made);
      state = gtorch_optimizer_get_state (self, param, name);
    }
  if (mean == NULL || !gtorch_op_lerp_inplace (gtorch_tensor_unwrap (state), mean, weight, error))
    return NULL;
  return gtorch_impl_ref (gtorch_tensor_unwrap (state));
}

/* Returns an estimate of the mean squares of all elements, in memory of its own. */
static GTorchImpl *
estimate (GTorchOptimizer *self, GTorchTensor *param, GTorchImpl *grad, gdouble weight, gdouble eps,
          GError **error)
{
  const gint64 rows = -2;
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  g_autoptr (GTorchImpl) mean = NULL;

  if (grad->n_dims < 2)
    {
      row = mean_square (self, param, grad, "variance", -3, weight, error);
      return row != NULL ? gtorch_op_clone (row, error) : NULL;
    }
  row = mean_square (self, param, grad, "row_var", -1, weight, error);
  column = row != NULL ? mean_square (self, param, grad, "col_var", -2, weight, error) : NULL;
  product = column != NULL ? gtorch_op_matmul (row, column, error) : NULL;
  mean = product != NULL ? gtorch_op_mean (row, &rows, 1, TRUE, GTORCH_DTYPE_NONE, error) : NULL;
  if (mean == NULL || !gtorch_op_clamp_inplace (mean, eps, INFINITY, error)
      || !gtorch_op_div_inplace (product, mean, error))
    return NULL;
  return g_steal_pointer (&product);
}

/* Returns the root of the mean square, times a factor and at least `least`: one number on the device. */
static GTorchImpl *
size_of (GTorchImpl *x, gdouble factor, gdouble least, GError **error)
{
  g_autoptr (GTorchImpl) norm =
      gtorch_op_linalg_vector_norm (x, 2, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (factor / sqrt ((gdouble) x->numel));

  if (norm == NULL || !gtorch_op_mul_inplace (norm, number, error)
      || !gtorch_op_clamp_inplace (norm, least, INFINITY, error))
    return NULL;
  return g_steal_pointer (&norm);
}

/* Adds the update times the relative step: the size of the parameter over that of the update. */
static gboolean
apply (const GTorchAdafactor *self, GTorchImpl *weights, GTorchImpl *update, gdouble relative,
       gdouble shrink, GError **error)
{
  g_autoptr (GTorchImpl) size = size_of (weights, 1, self->eps2, error);
  g_autoptr (GTorchImpl) divisor = size != NULL ? size_of (update, 1 / self->d, 1, error) : NULL;
  g_autoptr (GTorchImpl) factor = gtorch_impl_new_number (shrink);

  if (divisor == NULL || !gtorch_op_div_inplace (size, divisor, error)
      || !gtorch_op_mul_inplace (update, size, error))
    return FALSE;
  return gtorch_op_mul_inplace (weights, factor, error)
         && gtorch_op_add_inplace (weights, update, -relative, error);
}

static gboolean
gtorch_adafactor_step_param (GTorchOptimizer *optimizer, GTorchParamGroup *group,
                             GTorchTensor *param, GTorchTensor *grad, GError **error)
{
  GTorchAdafactor given;
  const GTorchAdafactor *self = &given;
  const gdouble lr = gtorch_param_group_get_learning_rate (group),
                shrink = 1 - lr * gtorch_param_group_get_weight_decay (group);
  GTorchImpl *weights = gtorch_tensor_unwrap (param);
  g_autoptr (GTorchImpl) gradient = NULL;
  g_autoptr (GTorchImpl) update = NULL;
  gdouble eps, t;

  gtorch_param_group_fill (group, optimizer, &given);
  eps = epsilon_of (self, weights->dtype);
  gradient = self->maximize ? gtorch_op_neg (gtorch_tensor_unwrap (grad), error)
                            : gtorch_impl_ref (gtorch_tensor_unwrap (grad));
  if (gradient == NULL || !count_step (optimizer, param, &t, error))
    return FALSE;
  update = estimate (optimizer, param, gradient, pow (t, self->beta2_decay), eps, error);
  return update != NULL && gtorch_op_clamp_inplace (update, eps * eps, INFINITY, error)
         && gtorch_op_rsqrt_inplace (update, error)
         && gtorch_op_mul_inplace (update, gradient, error)
         && (weights->numel == 0
             || apply (self, weights, update, MIN (lr, 1 / sqrt (t)), shrink, error));
}

static void
gtorch_adafactor_class_init (GTorchAdafactorClass *klass)
{
  GTorchOptimizerClass *optimizer_class = GTORCH_OPTIMIZER_CLASS (klass);

  GTORCH_FIELDS (klass, fields);
  optimizer_class->has_own_shapes = optimizer_class;
  optimizer_class->settings = &settings;
  optimizer_class->check = gtorch_adafactor_check;
  optimizer_class->step_param = gtorch_adafactor_step_param;
}

static void
gtorch_adafactor_init (GTorchAdafactor *self)
{
}

/**
 * gtorch_adafactor_new:
 * @params: a list of tensors, such as the result of [method@Module.get_parameters]
 * @learning_rate: the greatest relative step
 * @error: return location for an error
 *
 * Creates an optimizer with one group of parameters. The other settings are properties.
 *
 * Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a setting does not allow a
 *   step
 *
 * Since: 0.1
 */
GTorchAdafactor *
gtorch_adafactor_new (GListModel *params, gdouble learning_rate, GError **error)
{
  g_return_val_if_fail (G_IS_LIST_MODEL (params), NULL);
  return gtorch_optimizer_start (g_object_new (GTORCH_TYPE_ADAFACTOR, NULL), "adafactor", params,
                                 learning_rate, 0, error);
}
