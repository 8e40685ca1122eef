/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-lbfgs.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "nn/gtorch-spread-private.h"
#include "optim/gtorch-lbfgs-private.h"
#include "optim/gtorch-setting-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchLBFGS:
 *
 * Steps in the direction that an approximation of the inverse Hessian matrix gives, made from the changes of
 * the gradient in the last steps: the L-BFGS method.
 *
 * A step needs a function that computes the loss and its gradients, which it calls several times: it is made
 * by [method@Optimizer.step_closure], not by [method@Optimizer.step]. All parameters are in one group, and
 * have one device; of complex ones the real and imaginary parts are optimized. Memory is needed for two
 * vectors of all parameters for each of the #GTorchLBFGS:history-size last steps. The state of the optimizer
 * belongs to the first parameter.
 *
 * ```c
 * static GTorchTensor *
 * closure (gpointer data, GError **error)
 * {
 *   Model *self = data;
 *   GTorchTensor *loss;
 *
 *   if (!gtorch_optimizer_zero_grad (self->optimizer, TRUE, error))
 *     return NULL;
 *   loss = model_compute_loss (self, error);
 *   if (loss != NULL && !gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error))
 *     g_clear_object (&loss);
 *   return loss;
 * }
 *
 * loss = gtorch_optimizer_step_closure (self->optimizer, closure, self, &error);
 * ```
 *
 * Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization, Mathematical
 * Programming 45, 1989; Nocedal and Wright, Numerical Optimization, algorithms 7.4 and 7.5
 *
 * Since: 0.1
 */
G_DEFINE_TYPE (GTorchLBFGS, gtorch_lbfgs, GTORCH_TYPE_OPTIMIZER)

static const GTorchField fields[] = {
  /**
   * GTorchLBFGS:max-iter:
   *
   * The greatest number of iterations in a step, at least 1.
   *
   * Since: 0.1
   */
  { "max-iter", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchLBFGS, max_iter), 20, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchLBFGS:max-eval:
   *
   * The number of calls of the function after which a step ends, at least 1, or %GTORCH_NONE for one and a
   * quarter of #GTorchLBFGS:max-iter.
   *
   * Since: 0.1
   */
  { "max-eval", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchLBFGS, max_eval), GTORCH_NONE, NULL,
    GTORCH_SETTING_FIELD, .is_optional = TRUE },
  /**
   * GTorchLBFGS:tolerance-grad:
   *
   * A step ends if no element of the gradient is greater than this.
   *
   * Since: 0.1
   */
  { "tolerance-grad", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchLBFGS, tolerance_grad), 1e-7, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchLBFGS:tolerance-change:
   *
   * A step ends if the loss, or all parameters, change by less than this in an iteration.
   *
   * Since: 0.1
   */
  { "tolerance-change", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchLBFGS, tolerance_change), 1e-9,
    NULL, GTORCH_SETTING_FIELD },
  /**
   * GTorchLBFGS:history-size:
   *
   * The number of iterations that the approximation remembers, at least 1.
   *
   * Since: 0.1
   */
  { "history-size", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchLBFGS, history_size), 100, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchLBFGS:line-search-fn:
   *
   * How the length of an iteration's step is found.
   *
   * Since: 0.1
   */
  { "line-search-fn", GTORCH_FIELD_ENUM, GTORCH_FIELD (GTorchLBFGS, line_search_fn), 0,
    gtorch_line_search_get_type, GTORCH_SETTING_FIELD },
  /**
   * GTorchLBFGS:maximize:
   *
   * Whether to maximize instead of minimizing.
   *
   * Since: 0.1
   */
  { "maximize", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchLBFGS, maximize), 0, NULL,
    GTORCH_SETTING_FIELD },
};

GType
gtorch_line_search_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_LINE_SEARCH_NONE, "GTORCH_LINE_SEARCH_NONE", "none" },
        { GTORCH_LINE_SEARCH_STRONG_WOLFE, "GTORCH_LINE_SEARCH_STRONG_WOLFE", "strong-wolfe" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchLineSearch", values));
    }
  return type;
}

#define NUMBER(kind, name, ...)                                                        \
  {                                                                                    \
#name, #name, GTORCH_FIELD_##kind, G_STRUCT_OFFSET(GTorchLBFGS, name), __VA_ARGS__ \
  }

static const GTorchSetting numbers[] = {
  { "lr", "lr", GTORCH_FIELD_DOUBLE, GTORCH_SETTING_LR, 1, 0, INFINITY, INFINITY },
  NUMBER (INT64, max_iter, 20, 1, INFINITY, INFINITY),
  NUMBER (INT64, max_eval, GTORCH_NONE, 1, INFINITY, INFINITY, .is_optional = TRUE),
  NUMBER (DOUBLE, tolerance_grad, 1e-7, 0, INFINITY, INFINITY),
  NUMBER (DOUBLE, tolerance_change, 1e-9, 0, INFINITY, INFINITY),
  NUMBER (INT64, history_size, 100, 1, INFINITY, INFINITY),
  NUMBER (ENUM, line_search_fn, 0, 0, GTORCH_LINE_SEARCH_STRONG_WOLFE, INFINITY,
          .type = gtorch_line_search_get_type),
  NUMBER (BOOL, maximize, 0, 0, 1, INFINITY),
};

static const GTorchSettings settings = { "lbfgs", numbers, G_N_ELEMENTS (numbers) };

static gboolean
check_groups (GTorchOptimizer *optimizer, GError **error)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (optimizer);
  const guint n = g_list_model_get_n_items (groups);

  if (n > 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lbfgs: there are %u groups of parameters, it must be one"), n);
      return FALSE;
    }
  return TRUE;
}

static gboolean
check_param (const GTorchImpl *param, const GTorchImpl *first, GError **error)
{
  if (gtorch_dtype_kind (param->dtype) < GTORCH_KIND_FLOAT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("lbfgs: a parameter is of %s, all must be floating-point numbers"),
                   gtorch_dtype_get_name (param->dtype));
      return FALSE;
    }
  if (gtorch_impl_device (param) != gtorch_impl_device (first))
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                           _ ("lbfgs: the parameters are on several devices, it must be one"));
      return FALSE;
    }
  return TRUE;
}

static gboolean
gtorch_lbfgs_check (GTorchOptimizer *optimizer, GError **error)
{
  g_autoptr (GPtrArray) params = NULL;
  guint i;

  if (!gtorch_optimizer_check_plain (optimizer, "lbfgs", error) || !check_groups (optimizer, error))
    return FALSE;
  params = gtorch_optimizer_dup_params (optimizer);
  if (!gtorch_spread_check_whole ("lbfgs", params, error))
    return FALSE;
  for (i = 0; i < params->len; i++)
    if (!check_param (gtorch_tensor_unwrap (params->pdata[i]),
                      gtorch_tensor_unwrap (params->pdata[0]), error))
      return FALSE;
  return TRUE;
}

static void
gtorch_lbfgs_class_init (GTorchLBFGSClass *klass)
{
  GTorchOptimizerClass *optimizer_class = GTORCH_OPTIMIZER_CLASS (klass);

  GTORCH_FIELDS (klass, fields);
  optimizer_class->settings = &settings;
  optimizer_class->check = gtorch_lbfgs_check;
  optimizer_class->step_closure = gtorch_lbfgs_step_closure;
  optimizer_class->has_own_shapes = gtorch_lbfgs_step_closure;
}

static void
gtorch_lbfgs_init (GTorchLBFGS *self)
{
}

/**
 * gtorch_lbfgs_new:
 * @params: a list of tensors
 * @learning_rate: the learning rate
 * @error: return location for an error
 *
 * Creates an optimizer with one group of parameters. The other settings are properties.
 *
 * Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a setting does not allow a
 *   step, %GTORCH_ERROR_DTYPE if a parameter is not of floating-point numbers, or
 *   %GTORCH_ERROR_DEVICE_MISMATCH if the parameters are on several devices
 *
 * Since: 0.1
 */
GTorchLBFGS *
gtorch_lbfgs_new (GListModel *params, gdouble learning_rate, GError **error)
{
  g_return_val_if_fail (G_IS_LIST_MODEL (params), NULL);
  return gtorch_optimizer_start (g_object_new (GTORCH_TYPE_LBFGS, NULL), "lbfgs", params,
                                 learning_rate, 0, error);
}
