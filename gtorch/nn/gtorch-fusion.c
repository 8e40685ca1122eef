/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fusing a layer with the batch norm behind it: in evaluation mode, both together are one layer with other
 * weights. */

#include "config.h"

#include "nn/gtorch-fusion.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-module-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* The tensors that both layers have. Those of a layer without one are NULL. */
typedef struct
{
  GTorchTensor *weight, *bias, *mean, *var, *scale, *shift;
  gdouble eps;
  guint dim; /* that of the outputs in the weight */
} Fusion;

static void
fusion_clear (Fusion *self)
{
  g_clear_object (&self->weight);
  g_clear_object (&self->bias);
  g_clear_object (&self->mean);
  g_clear_object (&self->var);
  g_clear_object (&self->scale);
  g_clear_object (&self->shift);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fusion, fusion_clear)

static gboolean
check (const gchar *who, const Fusion *fusion, GError **error)
{
  const GTorchImpl *weight = gtorch_tensor_unwrap (fusion->weight);
  const GTorchTensor *const others[] = { fusion->bias, fusion->mean, fusion->var, fusion->scale,
                                         fusion->shift };

  if (weight->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the weight has shape %s, and needs 2 dimensions or more"), who,
                   gtorch_impl_shape_str (weight));
      return FALSE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    {
      const GTorchImpl *impl =
          others[i] != NULL ? gtorch_tensor_unwrap ((GTorchTensor *) others[i]) : NULL;

      if (impl == NULL
          || (impl->n_dims == 1
              && (impl->shape[0] == weight->shape[fusion->dim] || (i > 0 && impl->shape[0] == 1))))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s does not fit a weight of shape %s, which has %" PRId64
                      " outputs"),
                   who, gtorch_impl_shape_str (impl), gtorch_impl_shape_str (weight),
                   weight->shape[fusion->dim]);
      return FALSE;
    }
  return TRUE;
}

static GTorchParameter *
to_parameter (GTorchImpl *impl, GTorchTensor *like)
{
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (impl));

  return gtorch_parameter_new (tensor, like == NULL || gtorch_tensor_get_requires_grad (like),
                               NULL);
}

static gboolean
fuse (const gchar *who, const Fusion *fusion, GTorchParameter **weight, GTorchParameter **bias,
      GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  gint64 shape[GTORCH_MAX_DIMS];
  GTorchImpl *scale, *fused, *shift, *eps, *w;
  guint dtype;

  if (!check (who, fusion, error))
    return FALSE;
  w = gtorch_tensor_unwrap (fusion->weight);
  dtype = fusion->bias != NULL ? gtorch_tensor_unwrap (fusion->bias)->dtype : w->dtype;
  for (guint i = 0; i < w->n_dims; i++)
    shape[i] = i == fusion->dim ? -1 : 1;
  eps = gtorch_formula_number (&f, fusion->eps);
  scale = OP (add, gtorch_tensor_unwrap (fusion->var), eps, 1);
  scale = OP (rsqrt, scale);
  if (fusion->scale != NULL)
    scale = OP (mul, gtorch_tensor_unwrap (fusion->scale), scale);
  if (fusion->bias != NULL)
    shift = OP (sub, gtorch_tensor_unwrap (fusion->bias), gtorch_tensor_unwrap (fusion->mean), 1);
  else
    shift = OP (neg, gtorch_tensor_unwrap (fusion->mean));
  shift = OP (mul, shift, scale);
  if (fusion->shift != NULL)
    shift = OP (add, shift, gtorch_tensor_unwrap (fusion->shift), 1);
  shift = OP (expand, shift, &w->shape[fusion->dim], 1);
  shift = OP (to_dtype, shift, dtype);
  scale = OP (reshape, scale, shape, w->n_dims);
  fused = OP (mul, w, scale);
  fused = OP (to_dtype, fused, w->dtype);
  if (f.failed)
    return FALSE;
  *weight = to_parameter (fused, fusion->weight);
  *bias = to_parameter (shift, fusion->bias);
  return TRUE;
}

static GTorchTensor *
ref_nullable (GTorchTensor *tensor)
{
  return tensor != NULL ? g_object_ref (tensor) : NULL;
}

#define CHECK_TENSORS(w, b)                                              \
  g_return_val_if_fail (GTORCH_IS_TENSOR (w), FALSE);                    \
  g_return_val_if_fail (b == NULL || GTORCH_IS_TENSOR (b), FALSE);       \
  g_return_val_if_fail (GTORCH_IS_TENSOR (bn_rm), FALSE);                \
  g_return_val_if_fail (GTORCH_IS_TENSOR (bn_rv), FALSE);                \
  g_return_val_if_fail (bn_w == NULL || GTORCH_IS_TENSOR (bn_w), FALSE); \
  g_return_val_if_fail (bn_b == NULL || GTORCH_IS_TENSOR (bn_b), FALSE); \
  g_return_val_if_fail (weight != NULL, FALSE);                          \
  g_return_val_if_fail (bias != NULL, FALSE)

/**
 * gtorch_fuse_conv_bn_weights:
 * @conv_w: the weight of a convolution
 * @conv_b: (nullable): its bias, [C]
 * @bn_rm: the running mean of a batch norm, [C]
 * @bn_rv: its running variance, [C]
 * @bn_eps: what it adds to the variance
 * @bn_w: (nullable): its weight, [C]
 * @bn_b: (nullable): its bias, [C]
 * @transpose: whether the convolution is a transposed one
 * @weight: (out) (transfer full): the weight of a convolution that computes both
 * @bias: (out) (transfer full): its bias
 * @error: return location for an error
 *
 * Computes the weights of a convolution followed by a batch norm in evaluation mode.
 *
 * Source: PyTorch's `torch.nn.utils.fusion`.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if the shapes do not fit
 *
 * Since: 0.1
 */
gboolean
gtorch_fuse_conv_bn_weights (GTorchTensor *conv_w, GTorchTensor *conv_b, GTorchTensor *bn_rm,
                             GTorchTensor *bn_rv, gdouble bn_eps, GTorchTensor *bn_w,
                             GTorchTensor *bn_b, gboolean transpose, GTorchParameter **weight,
                             GTorchParameter **bias, GError **error)
{
  g_auto (Fusion) fusion = { NULL };

  CHECK_TENSORS (conv_w, conv_b);
  fusion = (Fusion){ g_object_ref (conv_w),
                     ref_nullable (conv_b),
                     g_object_ref (bn_rm),
                     g_object_ref (bn_rv),
                     ref_nullable (bn_w),
                     ref_nullable (bn_b),
                     bn_eps,
                     transpose ? 1 : 0 };
  return fuse ("fuse_conv_bn_weights", &fusion, weight, bias, error);
}

/**
 * gtorch_fuse_linear_bn_weights:
 * @linear_w: the weight of a linear layer
 * @linear_b: (nullable): its bias, [C]
 * @bn_rm: the running mean of a batch norm, [C] or [1]
 * @bn_rv: its running variance, [C] or [1]
 * @bn_eps: what it adds to the variance
 * @bn_w: (nullable): its weight, [C] or [1]
 * @bn_b: (nullable): its bias, [C] or [1]
 * @weight: (out) (transfer full): the weight of a linear layer that computes both
 * @bias: (out) (transfer full): its bias
 * @error: return location for an error
 *
 * Computes the weights of a linear layer followed by a batch norm in evaluation mode.
 *
 * Source: PyTorch's `torch.nn.utils.fusion`.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if the shapes do not fit
 *
 * Since: 0.1
 */
gboolean
gtorch_fuse_linear_bn_weights (GTorchTensor *linear_w, GTorchTensor *linear_b, GTorchTensor *bn_rm,
                               GTorchTensor *bn_rv, gdouble bn_eps, GTorchTensor *bn_w,
                               GTorchTensor *bn_b, GTorchParameter **weight, GTorchParameter **bias,
                               GError **error)
{
  g_auto (Fusion) fusion = { NULL };

  CHECK_TENSORS (linear_w, linear_b);
  fusion = (Fusion){ g_object_ref (linear_w),
                     ref_nullable (linear_b),
                     g_object_ref (bn_rm),
                     g_object_ref (bn_rv),
                     ref_nullable (bn_w),
                     ref_nullable (bn_b),
                     bn_eps,
                     0 };
  return fuse ("fuse_linear_bn_weights", &fusion, weight, bias, error);
}

/* --- layers --- */

static gboolean
check_layers (const gchar *who, GTorchModule *layer, GTorchModule *bn, gboolean is_known,
              GError **error)
{
  const gboolean is_norm =
      GTORCH_IS_BATCH_NORM1D (bn) || GTORCH_IS_BATCH_NORM2D (bn) || GTORCH_IS_BATCH_NORM3D (bn);

  if (!is_known || !is_norm)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: a %s and a %s cannot be fused: a layer and a batch norm are wanted"), who,
                 gtorch_module_type_name (layer), gtorch_module_type_name (bn));
  else if (gtorch_module_get_training (layer) || gtorch_module_get_training (bn))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: both layers must be in evaluation mode"), who);
  else
    return gtorch_module_is_usable (layer, error) && gtorch_module_is_usable (bn, error);
  return FALSE;
}

static GTorchModule *
fuse_layers (const gchar *who, GTorchModule *layer, GTorchModule *bn, guint dim, GError **error)
{
  g_auto (Fusion) fusion = { NULL };
  g_autoptr (GTorchModule) copy = NULL;
  g_autoptr (GTorchParameter) weight = NULL;
  g_autoptr (GTorchParameter) bias = NULL;

  g_object_get (bn, "eps", &fusion.eps, NULL);
  fusion.dim = dim;
  fusion.weight = gtorch_module_get_tensor (layer, "weight", error);
  if (fusion.weight == NULL)
    return NULL;
  fusion.bias = gtorch_module_dup_parameter (layer, 1);
  fusion.scale = gtorch_module_dup_parameter (bn, 0);
  fusion.shift = gtorch_module_dup_parameter (bn, 1);
  fusion.mean = gtorch_module_dup_buffer (bn, 0);
  fusion.var = gtorch_module_dup_buffer (bn, 1);
  if (fusion.mean == NULL || fusion.var == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the batch norm has no running mean and variance"), who);
      return NULL;
    }
  if (!fuse (who, &fusion, &weight, &bias, error))
    return NULL;
  copy = gtorch_module_copy (layer, error);
  if (copy == NULL || !gtorch_module_register_parameter (copy, "weight", weight, error)
      || !gtorch_module_register_parameter (copy, "bias", bias, error))
    return NULL;
  return g_steal_pointer (&copy);
}

/**
 * gtorch_fuse_conv_bn_eval:
 * @conv: a convolution, or a transposed one, in evaluation mode
 * @bn: a batch norm in evaluation mode, which is applied to what @conv computes
 * @transpose: whether @conv is a transposed convolution
 * @error: return location for an error
 *
 * Makes a convolution that computes what both compute one after the other.
 *
 * ```c
 * g_autoptr (GTorchModule) both =
 *     gtorch_fuse_conv_bn_eval (GTORCH_MODULE (conv), GTORCH_MODULE (bn), FALSE, &error);
 * ```
 *
 * Source: PyTorch's `torch.nn.utils.fusion`.
 *
 * Returns: (transfer full): a new convolution; %NULL with %GTORCH_ERROR_INVALID if these are other layers, or
 *   in training mode, or @bn has no running mean, %GTORCH_ERROR_SHAPE if the numbers of channels differ, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if the class of @conv is one of another language
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_fuse_conv_bn_eval (GTorchModule *conv, GTorchModule *bn, gboolean transpose, GError **error)
{
  gboolean is_known;

  g_return_val_if_fail (GTORCH_IS_MODULE (conv), NULL);
  g_return_val_if_fail (GTORCH_IS_MODULE (bn), NULL);
  is_known = transpose
                 ? GTORCH_IS_CONV_TRANSPOSE (conv)
                 : GTORCH_IS_CONV1D (conv) || GTORCH_IS_CONV2D (conv) || GTORCH_IS_CONV3D (conv);
  if (!check_layers ("fuse_conv_bn_eval", conv, bn, is_known, error))
    return NULL;
  if (transpose)
    {
      gint64 groups;

      g_object_get (conv, "groups", &groups, NULL);
      if (groups != 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("%s: a transposed convolution with %" PRId64 " groups cannot be fused"),
                       "fuse_conv_bn_eval", groups);
          return NULL;
        }
    }
  return fuse_layers ("fuse_conv_bn_eval", conv, bn, transpose ? 1 : 0, error);
}

/**
 * gtorch_fuse_linear_bn_eval:
 * @linear: a [class@Linear] in evaluation mode
 * @bn: a batch norm in evaluation mode, which is applied to what @linear computes; it has as many features,
 *   or one
 * @error: return location for an error
 *
 * Makes a linear layer that computes what both compute one after the other.
 *
 * Source: PyTorch's `torch.nn.utils.fusion`.
 *
 * Returns: (transfer full): a new layer; %NULL with %GTORCH_ERROR_INVALID if these are other layers, or in
 *   training mode, or @bn has no running mean, %GTORCH_ERROR_SHAPE if the numbers of features differ, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if the class of @linear is one of another language
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_fuse_linear_bn_eval (GTorchModule *linear, GTorchModule *bn, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (linear), NULL);
  g_return_val_if_fail (GTORCH_IS_MODULE (bn), NULL);
  if (!check_layers ("fuse_linear_bn_eval", linear, bn, GTORCH_IS_LINEAR (linear), error))
    return NULL;
  return fuse_layers ("fuse_linear_bn_eval", linear, bn, 0, error);
}
