/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-muon.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-field-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-spread-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-setting-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchMuon:
 *
 * Momentum whose steps for matrices are made orthogonal: all their singular values become about 1.
 *
 * It is meant for the weights of hidden layers; all parameters must be matrices. The iteration is computed
 * in bfloat16.
 *
 * Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024; match_rms_adamw: Liu
 * et al., Muon is scalable for LLM training, arXiv:2502.16982
 *
 * Since: 0.1
 */
struct _GTorchMuon
{
  GTorchOptimizer parent_instance;
  gdouble momentum;
  gboolean nesterov;
  gdouble ns_a, ns_b, ns_c, eps;
  gint64 ns_steps;
  gint adjust_lr_fn;
};

G_DEFINE_TYPE (GTorchMuon, gtorch_muon, GTORCH_TYPE_OPTIMIZER)

static const GTorchField fields[] = {
  /**
   * GTorchMuon:momentum:
   *
   * The decay rate of the momentum.
   *
   * Since: 0.1
   */
  { "momentum", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchMuon, momentum), 0.95, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:nesterov:
   *
   * Whether to use Nesterov momentum.
   *
   * Since: 0.1
   */
  { "nesterov", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMuon, nesterov), 1, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:ns-a:
   *
   * The coefficient of the matrix in the iteration.
   *
   * Since: 0.1
   */
  { "ns-a", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchMuon, ns_a), 3.4445, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:ns-b:
   *
   * The coefficient of its third power.
   *
   * Since: 0.1
   */
  { "ns-b", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchMuon, ns_b), -4.775, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:ns-c:
   *
   * The coefficient of its fifth power.
   *
   * Since: 0.1
   */
  { "ns-c", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchMuon, ns_c), 2.0315, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:eps:
   *
   * The least norm by which a matrix is divided.
   *
   * Since: 0.1
   */
  { "eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchMuon, eps), 1e-7, NULL, GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:ns-steps:
   *
   * The number of iterations, below 100.
   *
   * Since: 0.1
   */
  { "ns-steps", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchMuon, ns_steps), 5, NULL,
    GTORCH_SETTING_FIELD },
  /**
   * GTorchMuon:adjust-lr-fn:
   *
   * How the learning rate is adapted to the shape of a matrix.
   *
   * Since: 0.1
   */
  { "adjust-lr-fn", GTORCH_FIELD_ENUM, GTORCH_FIELD (GTorchMuon, adjust_lr_fn), 0,
    gtorch_adjust_lr_get_type, GTORCH_SETTING_FIELD },
};

GType
gtorch_adjust_lr_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_ADJUST_LR_ORIGINAL, "GTORCH_ADJUST_LR_ORIGINAL", "original" },
        { GTORCH_ADJUST_LR_MATCH_RMS_ADAMW, "GTORCH_ADJUST_LR_MATCH_RMS_ADAMW", "match-rms-adamw" },
        { GTORCH_ADJUST_LR_SPECTRAL_UNCLAMPED, "GTORCH_ADJUST_LR_SPECTRAL_UNCLAMPED",
          "spectral-unclamped" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchAdjustLR", values));
    }
  return type;
}

/* --- settings --- */

#define NUMBER(kind, name, arg, ...)                                                \
  {                                                                                 \
#name, arg, GTORCH_FIELD_##kind, G_STRUCT_OFFSET(GTorchMuon, name), __VA_ARGS__ \
  }

static const GTorchSetting numbers[] = {
  { "lr", "lr", GTORCH_FIELD_DOUBLE, GTORCH_SETTING_LR, 1e-3, 0, INFINITY, INFINITY },
  { "weight_decay", "weight_decay", GTORCH_FIELD_DOUBLE, GTORCH_SETTING_DECAY, 0.1, 0, INFINITY,
    INFINITY },
  NUMBER (DOUBLE, momentum, "momentum", 0.95, 0, INFINITY, INFINITY),
  NUMBER (BOOL, nesterov, "nesterov", 1, 0, 1, INFINITY),
  NUMBER (DOUBLE, ns_a, "ns_coefficients", 3.4445, -INFINITY, INFINITY, INFINITY),
  NUMBER (DOUBLE, ns_b, "ns_coefficients", -4.775, -INFINITY, INFINITY, INFINITY),
  NUMBER (DOUBLE, ns_c, "ns_coefficients", 2.0315, -INFINITY, INFINITY, INFINITY),
  NUMBER (DOUBLE, eps, "eps", 1e-7, 0, INFINITY, INFINITY),
  NUMBER (INT64, ns_steps, "ns_steps", 5, 0, 99, INFINITY),
  NUMBER (ENUM, adjust_lr_fn, "adjust_lr_fn", 0, 0, GTORCH_ADJUST_LR_SPECTRAL_UNCLAMPED, INFINITY,
          .type = gtorch_adjust_lr_get_type),
};

static const GTorchSettings settings = { "muon", numbers, G_N_ELEMENTS (numbers) };

static gboolean
check_param (const GTorchImpl *param, GError **error)
{
  if (param->n_dims != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("muon: a parameter has shape %s, all must be matrices"),
                   gtorch_impl_shape_str (param));
      return FALSE;
    }
  if (!gtorch_dtype_is_floating_point (param->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("muon: a parameter is of %s, all must be real floating-point numbers"),
                   gtorch_dtype_get_name (param->dtype));
      return FALSE;
    }
  return TRUE;
}

static gboolean
gtorch_muon_check (GTorchOptimizer *optimizer, GError **error)
{
  g_autoptr (GPtrArray) params = NULL;
  guint i;

  if (!gtorch_optimizer_check_plain (optimizer, "muon", error))
    return FALSE;
  params = gtorch_optimizer_dup_params (optimizer);
  if (!gtorch_spread_check_whole ("muon", params, error))
    return FALSE;
  for (i = 0; i < params->len; i++)
    if (!check_param (gtorch_tensor_unwrap (params->pdata[i]), error))
      return FALSE;
  return TRUE;
}

/* --- steps --- */

/* One iteration: a x + b (x xT) x + c (x xT)2 x. */
static GTorchImpl *
iterate (const GTorchMuon *self, GTorchImpl *x, GError **error)
{
  g_autoptr (GTorchImpl) transposed = gtorch_op_transpose (x, 0, 1, error);
  g_autoptr (GTorchImpl) gram = transposed != NULL ? gtorch_op_matmul (x, transposed, error) : NULL;
  g_autoptr (GTorchImpl) update =
      gram != NULL ? gtorch_op_addmm (gram, gram, gram, self->ns_b, self->ns_c, error) : NULL;

  return update != NULL ? gtorch_op_addmm (x, update, x, self->ns_a, 1, error) : NULL;
}

/* Divides the matrix by its norm, so that no singular value is greater than 1. */
static GTorchImpl *
normalize (const GTorchMuon *self, GTorchImpl *x, GError **error)
{
  g_autoptr (GTorchImpl) norm =
      gtorch_op_linalg_vector_norm (x, 2, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);

  if (norm == NULL || !gtorch_op_clamp_inplace (norm, self->eps, INFINITY, error))
    return NULL;
  return gtorch_op_div (x, norm, error);
}

/* Takes the matrix with its rows along its columns if it has more rows. */
static GTorchImpl *
lay (GTorchImpl *x, gboolean is_tall, GError **error)
{
  return is_tall ? gtorch_op_transpose (x, 0, 1, error) : gtorch_impl_ref (x);
}

static GTorchImpl *
orthogonalize (const GTorchMuon *self, GTorchImpl *update, GError **error)
{
  const gboolean is_tall = update->shape[0] > update->shape[1];
  g_autoptr (GTorchImpl) rounded = gtorch_op_to_dtype (update, GTORCH_DTYPE_BFLOAT16, error);
  g_autoptr (GTorchImpl) wide = rounded != NULL ? lay (rounded, is_tall, error) : NULL;
  g_autoptr (GTorchImpl) x = wide != NULL ? normalize (self, wide, error) : NULL;
  g_autoptr (GTorchImpl) whole = NULL;
  gint64 i;

  for (i = 0; x != NULL && i < self->ns_steps; i++)
    {
      GTorchImpl *next = iterate (self, x, error);

      gtorch_impl_unref (x);
      x = next;
    }
  whole = x != NULL ? lay (x, is_tall, error) : NULL;
  return whole != NULL ? gtorch_op_to_dtype (whole, update->dtype, error) : NULL;
}

static gdouble
adjust (const GTorchMuon *self, const GTorchImpl *param, gdouble lr)
{
  const gdouble rows = (gdouble) param->shape[0], columns = (gdouble) param->shape[1];

  switch (self->adjust_lr_fn)
    {
    case GTORCH_ADJUST_LR_MATCH_RMS_ADAMW:
      return lr * 0.2 * sqrt (MAX (rows, columns));
    case GTORCH_ADJUST_LR_SPECTRAL_UNCLAMPED:
      return lr * sqrt (rows / columns);
    default:
      return lr * sqrt (MAX (1, rows / columns));
    }
}

static gboolean
gtorch_muon_step_param (GTorchOptimizer *optimizer, GTorchParamGroup *group, GTorchTensor *param,
                        GTorchTensor *grad, GError **error)
{
  GTorchMuon given;
  const GTorchMuon *self = &given;
  const gdouble lr = gtorch_param_group_get_learning_rate (group),
                shrink = 1 - lr * gtorch_param_group_get_weight_decay (group);
  GTorchImpl *weights = gtorch_tensor_unwrap (param), *gradient = gtorch_tensor_unwrap (grad);
  GTorchTensor *state =
      gtorch_optim_ensure_state (optimizer, param, "momentum_buffer", FALSE, 0, error);
  g_autoptr (GTorchImpl) factor = gtorch_impl_new_number (shrink);
  g_autoptr (GTorchImpl) update = NULL;
  g_autoptr (GTorchImpl) step = NULL;
  GTorchImpl *buffer;

  if (state == NULL || weights->numel == 0)
    return state != NULL;
  gtorch_param_group_fill (group, optimizer, &given);
  buffer = gtorch_tensor_unwrap (state);
  if (!gtorch_op_lerp_inplace (buffer, gradient, 1 - self->momentum, error))
    return FALSE;
  update = self->nesterov ? gtorch_op_lerp (gradient, buffer, self->momentum, error)
                          : gtorch_impl_ref (buffer);
  step = update != NULL ? orthogonalize (self, update, error) : NULL;
  return step != NULL && gtorch_op_mul_inplace (weights, factor, error)
         && gtorch_op_add_inplace (weights, step, -adjust (self, weights, lr), error);
}

static void
gtorch_muon_class_init (GTorchMuonClass *klass)
{
  GTorchOptimizerClass *optimizer_class = GTORCH_OPTIMIZER_CLASS (klass);

  GTORCH_FIELDS (klass, fields);
  optimizer_class->settings = &settings;
  optimizer_class->check = gtorch_muon_check;
  optimizer_class->step_param = gtorch_muon_step_param;
}

static void
gtorch_muon_init (GTorchMuon *self)
{
}

/**
 * gtorch_muon_new:
 * @params: a list of tensors, which are matrices
 * @learning_rate: the learning rate
 * @weight_decay: the strength of the weight decay
 * @error: return location for an error
 *
 * Creates an optimizer with one group of parameters. The other settings are properties.
 *
 * Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a setting does not allow a
 *   step, %GTORCH_ERROR_SHAPE if a parameter is no matrix, or %GTORCH_ERROR_DTYPE if it is not of real
 *   numbers
 *
 * Since: 0.1
 */
GTorchMuon *
gtorch_muon_new (GListModel *params, gdouble learning_rate, gdouble weight_decay, GError **error)
{
  g_return_val_if_fail (G_IS_LIST_MODEL (params), NULL);
  return gtorch_optimizer_start (g_object_new (GTORCH_TYPE_MUON, NULL), "muon", params,
                                 learning_rate, weight_decay, error);
}
