/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-weight-norm.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-computed-private.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parametrize-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchWeightNorm:
 *
 * A parametrization that separates the length of the vectors of a weight from their direction: g v / ‖v‖,
 * where the norms are those of the slices along one dimension.
 *
 * Its forward takes g, the lengths, and v, of the shape of the weight.
 * [method@Module.parametrize_weight_norm] puts it on a layer.
 *
 * ```c
 * g_autoptr (GTorchWeightNorm) norm = gtorch_weight_norm_new (0);
 *
 * gtorch_module_register_parametrization (layer, "weight", GTORCH_MODULE (norm), FALSE, &error);
 * ```
 *
 * Source: T. Salimans, D. Kingma: Weight normalization. NIPS 2016.
 *
 * Since: 0.1
 */

struct _GTorchWeightNorm
{
  GTorchModule parent_instance;
  gint64 dim;
};

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchWeightNorm:dim:
   *
   * The dimension along whose slices the norms are; [const@NONE]: there is one norm, of the whole tensor, as
   * there is for -1.
   *
   * Since: 0.1
   */
  { "dim", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchWeightNorm, dim), .is_optional = TRUE, .flags = GTORCH_FIELD_FIXED, .text = GTORCH_FIELD_NAMED },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchWeightNorm, gtorch_weight_norm, GTORCH_TYPE_MODULE)

GTorchImpl *
gtorch_norm_except_dim (GTorchImpl *x, gint64 dim, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  gint64 dims[GTORCH_MAX_DIMS];
  gsize n = 0;

  if (dim == GTORCH_NONE || dim == -1)
    return gtorch_op_norm (x, 2, NULL, 0, FALSE, error);
  if (!gtorch_computed_check_dim ("weight_norm", &dim, x->n_dims, error))
    return NULL;
  for (guint i = 0; i < x->n_dims; i++)
    if (i != (guint) dim)
      dims[n++] = i;
  return gtorch_formula_take (&f, n == 0 ? OP (abs, x) : OP (norm, x, 2, dims, n, TRUE));
}

GTorchImpl *
gtorch_weight_norm_compute (GTorchImpl *g, GTorchImpl *v, gint64 dim, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *factor = gtorch_formula_keep (&f, gtorch_norm_except_dim (v, dim, error));

  factor = OP (div, g, factor);
  return gtorch_formula_take (&f, OP (mul, v, factor));
}

static GTorchTensor *
gtorch_weight_norm_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                 GError **error)
{
  GTorchWeightNorm *self = (GTorchWeightNorm *) module;

  if (n_inputs != 2)
    return gtorch_module_refuse_inputs (module, n_inputs, error);
  return gtorch_tensor_wrap (gtorch_weight_norm_compute (gtorch_tensor_unwrap (inputs[0]),
                                                         gtorch_tensor_unwrap (inputs[1]),
                                                         self->dim, error));
}

static GPtrArray *
gtorch_weight_norm_right_inverse (GTorchModule *module, GTorchTensor *value, GError **error)
{
  GTorchWeightNorm *self = (GTorchWeightNorm *) module;
  GTorchImpl *g = gtorch_norm_except_dim (gtorch_tensor_unwrap (value), self->dim, error);
  GPtrArray *found;

  if (g == NULL)
    return NULL;
  found = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (found, gtorch_tensor_wrap (g));
  g_ptr_array_add (found, g_object_ref (value));
  return found;
}

static void
gtorch_weight_norm_class_init (GTorchWeightNormClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_weight_norm_forward_many;
  GTORCH_MODULE_CLASS (klass)->right_inverse = gtorch_weight_norm_right_inverse;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_weight_norm_init (GTorchWeightNorm *self)
{
}

/**
 * gtorch_weight_norm_new:
 * @dim: the dimension along whose slices the norms are, 0 for the weight of a linear layer or a convolution,
 *   or [const@NONE] for one norm of the whole tensor
 *
 * Creates a [class@WeightNorm].
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchWeightNorm *
gtorch_weight_norm_new (gint64 dim)
{
  return g_object_new (GTORCH_TYPE_WEIGHT_NORM, "dim", dim, NULL);
}

/**
 * gtorch_module_parametrize_weight_norm:
 * @self: a module
 * @name: the name of a parameter of this module
 * @dim: the dimension along whose slices the norms are, or [const@NONE] for one norm of the whole tensor
 * @error: return location for an error
 *
 * Parametrizes a weight by a [class@WeightNorm]: the lengths are the parameter
 * `parametrizations.weight.original0`, the directions `original1`.
 *
 * Source: PyTorch's `torch.nn.utils.parametrizations.weight_norm`.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INDEX if there is no such dimension, and with the errors of
 *   [method@Module.register_parametrization]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_parametrize_weight_norm (GTorchModule *self, const gchar *name, gint64 dim,
                                       GError **error)
{
  g_autoptr (GTorchWeightNorm) norm = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  norm = gtorch_weight_norm_new (dim);
  return gtorch_module_register_parametrization (self, name, GTORCH_MODULE (norm), TRUE, error);
}

/* --- with weight_g and weight_v --- */

static GTorchParameter *
new_parameter (GTorchImpl *impl, GError **error)
{
  g_autoptr (GTorchTensor) tensor = NULL;

  if (impl == NULL)
    return NULL;
  tensor = gtorch_tensor_wrap (impl);
  return gtorch_parameter_new (tensor, TRUE, error);
}

/**
 * gtorch_module_apply_weight_norm:
 * @self: a module
 * @name: the name of a parameter of this module
 * @dim: the dimension along whose slices the norms are, or [const@NONE] for one norm of the whole tensor
 * @error: return location for an error
 *
 * Lets a weight be computed from its lengths, the parameter `weight_g`, and its directions, `weight_v`, which
 * become parameters of the module itself. It is the older form of [method@Module.parametrize_weight_norm],
 * with the names of states that were saved by it. The weight is computed whenever it is used, not by a hook.
 *
 * Source: PyTorch's `torch.nn.utils.weight_norm`.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if there is no parameter of the name,
 *   %GTORCH_ERROR_INVALID if it is computed already or has no elements yet, or %GTORCH_ERROR_INDEX if there
 *   is no such dimension
 *
 * Since: 0.1
 */
gboolean
gtorch_module_apply_weight_norm (GTorchModule *self, const gchar *name, gint64 dim, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchParameter) g = NULL;
  g_autoptr (GTorchParameter) v = NULL;
  g_autoptr (GTorchComputed) computed = NULL;
  g_autofree gchar *g_name = NULL;
  g_autofree gchar *v_name = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  weight = gtorch_module_dup_computable (self, name, FALSE, error);
  if (weight == NULL)
    return FALSE;
  guard = gtorch_no_grad ();
  g = new_parameter (gtorch_norm_except_dim (gtorch_tensor_unwrap (weight), dim, error), error);
  v = g != NULL ? new_parameter (gtorch_op_clone (gtorch_tensor_unwrap (weight), error), error)
                : NULL;
  g_name = g_strconcat (name, "_g", NULL);
  v_name = g_strconcat (name, "_v", NULL);
  if (v == NULL || !gtorch_module_register_parameter (self, g_name, g, error)
      || !gtorch_module_register_parameter (self, v_name, v, error))
    return FALSE;
  computed = gtorch_computed_new (GTORCH_COMPUTED_WEIGHT_NORM, dim, 0, 0);
  gtorch_module_put_computed (self, name, computed);
  return TRUE;
}

/**
 * gtorch_module_remove_weight_norm:
 * @self: a module
 * @name: the name of a weight to which [method@Module.apply_weight_norm] was applied
 * @error: return location for an error
 *
 * Makes the weight, with the value that it has, a parameter again, instead of `weight_g` and `weight_v`.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if the weight has no norm of this kind
 *
 * Since: 0.1
 */
gboolean
gtorch_module_remove_weight_norm (GTorchModule *self, const gchar *name, GError **error)
{
  static const gchar *const suffixes[] = { "_g", "_v", NULL };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return gtorch_module_settle_computed (self, name, GTORCH_COMPUTED_WEIGHT_NORM, "weight_norm",
                                        suffixes, error);
}
