/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-spectral-norm.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-computed-private.h"
#include "nn/gtorch-conv-transpose.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parametrize-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* The steps that a new parametrization makes, so that its first results are near enough. */
#define FIRST_ITERATIONS 15

/**
 * GTorchSpectralNorm:
 *
 * A parametrization that divides a weight by its largest singular value, as a matrix with a row for each
 * index of one dimension. A vector is divided by its norm.
 *
 * The singular value is estimated by the power method, which makes some steps at each use in training mode.
 * Its vectors are the buffers `_u` and `_v`, which are part of the state.
 *
 * ```c
 * gtorch_module_parametrize_spectral_norm (layer, "weight", 1, 1e-12, GTORCH_NONE, &error);
 * ```
 *
 * Source: T. Miyato and others: Spectral normalization for generative adversarial networks. ICLR 2018.
 *
 * Since: 0.1
 */

struct _GTorchSpectralNorm
{
  GTorchModule parent_instance;
  gint64 n_power_iterations, dim;
  gdouble eps;
};

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchSpectralNorm:n-power-iterations:
   *
   * The number of steps at each use in training mode.
   *
   * Since: 0.1
   */
  { "n-power-iterations", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchSpectralNorm, n_power_iterations), .value = 1, .flags = GTORCH_FIELD_FIXED, .text = GTORCH_FIELD_NAMED },
  /**
   * GTorchSpectralNorm:dim:
   *
   * The dimension whose indices are the rows of the matrix.
   *
   * Since: 0.1
   */
  { "dim", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchSpectralNorm, dim), .flags = GTORCH_FIELD_FIXED, .text = GTORCH_FIELD_NAMED },
  /**
   * GTorchSpectralNorm:eps:
   *
   * The least norm by which vectors are divided.
   *
   * Since: 0.1
   */
  { "eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchSpectralNorm, eps), .value = 1e-12, .flags = GTORCH_FIELD_FIXED, .text = GTORCH_FIELD_NAMED },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchSpectralNorm, gtorch_spectral_norm, GTORCH_TYPE_MODULE)

/* --- the power method --- */

GTorchImpl *
gtorch_spectral_matrix (GTorchImpl *weight, gint64 dim, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  gint64 dims[GTORCH_MAX_DIMS];
  guint n = 0;
  GTorchImpl *turned = weight;

  if (!gtorch_computed_check_dim ("spectral_norm", &dim, weight->n_dims, error))
    return NULL;
  dims[n++] = dim;
  for (guint i = 0; i < weight->n_dims; i++)
    if (i != (guint) dim)
      dims[n++] = i;
  if (dim != 0)
    turned = OP (permute, weight, dims, n);
  if (weight->n_dims == 1)
    return gtorch_formula_take (&f, OP (unsqueeze, turned, 1));
  return gtorch_formula_take (&f, OP (flatten, turned, 1, -1));
}

GTorchImpl *
gtorch_spectral_draw (GTorchImpl *matrix, gint64 n, gdouble eps, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  const gint64 first = 0;
  GTorchImpl *drawn = OP (new_empty, matrix, &n, 1, GTORCH_DTYPE_NONE);

  if (drawn == NULL || !gtorch_op_normal_inplace (drawn, 0, 1, NULL, error))
    return NULL;
  return gtorch_formula_take (&f, OP (normalize, drawn, 2, &first, 1, eps));
}

static gboolean
step (GTorchImpl *matrix, GTorchImpl *from, GTorchImpl *to, gdouble eps, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 first = 0;
  GTorchImpl *next = OP (mv, matrix, from);

  next = OP (normalize, next, 2, &first, 1, eps);
  return !f.failed && gtorch_op_copy_inplace (to, next, FALSE, error);
}

gboolean
gtorch_spectral_iterate (GTorchImpl *matrix, GTorchImpl *u, GTorchImpl *v, gint64 n,
                         gboolean u_first, gdouble eps, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  GTorchImpl *turned = gtorch_formula_adjoint (&f, matrix);

  if (f.failed)
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    if (!(u_first ? step (matrix, v, u, eps, error) : step (turned, u, v, eps, error))
        || !(u_first ? step (turned, u, v, eps, error) : step (matrix, v, u, eps, error)))
      return FALSE;
  return TRUE;
}

/* The vectors are copied, since the next use changes them before the backward pass of this one. */
GTorchImpl *
gtorch_spectral_divide (GTorchImpl *weight, GTorchImpl *matrix, GTorchImpl *u, GTorchImpl *v,
                        GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *left = OP (clone, u), *right = OP (clone, v), *sigma;

  sigma = OP (mv, matrix, right);
  sigma = OP (vdot, left, sigma);
  return gtorch_formula_take (&f, OP (div, weight, sigma));
}

/* --- the class --- */

static GTorchTensor *
gtorch_spectral_norm_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchSpectralNorm *self = (GTorchSpectralNorm *) module;
  GTorchImpl *weight = gtorch_tensor_unwrap (input);
  g_autoptr (GTorchTensor) u = NULL;
  g_autoptr (GTorchTensor) v = NULL;
  g_autoptr (GTorchImpl) matrix = NULL;
  const gint64 first = 0;

  if (weight->n_dims == 1)
    return gtorch_tensor_wrap (gtorch_op_normalize (weight, 2, &first, 1, self->eps, error));
  u = gtorch_module_dup_source (module, "", "_u", error);
  v = u != NULL ? gtorch_module_dup_source (module, "", "_v", error) : NULL;
  matrix = v != NULL ? gtorch_spectral_matrix (weight, self->dim, error) : NULL;
  if (matrix == NULL
      || (gtorch_module_get_training (module)
          && !gtorch_spectral_iterate (matrix, gtorch_tensor_unwrap (u), gtorch_tensor_unwrap (v),
                                       self->n_power_iterations, TRUE, self->eps, error)))
    return NULL;
  return gtorch_tensor_wrap (gtorch_spectral_divide (weight, matrix, gtorch_tensor_unwrap (u),
                                                     gtorch_tensor_unwrap (v), error));
}

/* A value is taken for one whose largest singular value is 1. */
static GPtrArray *
gtorch_spectral_norm_right_inverse (GTorchModule *module, GTorchTensor *value, GError **error)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (found, g_object_ref (value));
  return found;
}

static void
gtorch_spectral_norm_class_init (GTorchSpectralNormClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_spectral_norm_forward;
  GTORCH_MODULE_CLASS (klass)->right_inverse = gtorch_spectral_norm_right_inverse;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_spectral_norm_init (GTorchSpectralNorm *self)
{
}

static gboolean
check_settings (GTorchImpl *weight, gint64 n, gint64 *dim, gdouble eps, GError **error)
{
  if (!gtorch_computed_check_dim ("spectral_norm", dim, weight->n_dims, error))
    return FALSE;
  if (n >= 1 && n <= G_MAXINT32 && eps >= 0)
    return TRUE;
  if (n < 1 || n > G_MAXINT32)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("spectral_norm: n_power_iterations must be at least 1 and have 32 bits, it is "
                    "%" PRId64),
                 n);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("spectral_norm: eps must be at least 0, it is %g"), eps);
  return FALSE;
}

/* Registers the vectors of the power method as prefix_u and prefix_v. */
static gboolean
add_vectors (GTorchModule *self, const gchar *prefix, GTorchImpl *matrix, gdouble eps,
             guint iterations, GError **error)
{
  g_autofree gchar *u_name = g_strconcat (prefix, "_u", NULL);
  g_autofree gchar *v_name = g_strconcat (prefix, "_v", NULL);
  GTorchImpl *u = gtorch_spectral_draw (matrix, matrix->shape[0], eps, error);
  GTorchImpl *v = u != NULL ? gtorch_spectral_draw (matrix, matrix->shape[1], eps, error) : NULL;
  g_autoptr (GTorchTensor) u_tensor = gtorch_tensor_wrap (u);
  g_autoptr (GTorchTensor) v_tensor = gtorch_tensor_wrap (v);

  return v != NULL && gtorch_spectral_iterate (matrix, u, v, iterations, TRUE, eps, error)
         && gtorch_module_register_buffer (self, u_name, u_tensor, TRUE, error)
         && gtorch_module_register_buffer (self, v_name, v_tensor, TRUE, error);
}

/**
 * gtorch_spectral_norm_new:
 * @weight: the weight that is to be divided, of any shape with a dimension
 * @n_power_iterations: the number of steps at each use in training mode
 * @dim: the dimension whose indices are the rows of the matrix; negative ones count from the end
 * @eps: the least norm by which vectors are divided
 * @error: return location for an error
 *
 * Creates a [class@SpectralNorm], which has made 15 steps of the power method from random vectors.
 *
 * Returns: (transfer full): a new module; %NULL with %GTORCH_ERROR_INDEX if there is no such dimension, or
 *   %GTORCH_ERROR_INVALID if @n_power_iterations is not positive or @eps is negative
 *
 * Since: 0.1
 */
GTorchSpectralNorm *
gtorch_spectral_norm_new (GTorchTensor *weight, gint64 n_power_iterations, gint64 dim, gdouble eps,
                          GError **error)
{
  g_autoptr (GTorchSpectralNorm) self = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchImpl) matrix = NULL;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (weight), NULL);
  impl = gtorch_tensor_unwrap (weight);
  if (!check_settings (impl, n_power_iterations, &dim, eps, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_SPECTRAL_NORM, "n-power-iterations", n_power_iterations, "dim",
                       dim, "eps", eps, NULL);
  if (impl->n_dims == 1)
    return g_steal_pointer (&self);
  guard = gtorch_no_grad ();
  matrix = gtorch_spectral_matrix (impl, dim, error);
  if (matrix == NULL
      || !add_vectors (GTORCH_MODULE (self), "", matrix, eps, FIRST_ITERATIONS, error))
    return NULL;
  return g_steal_pointer (&self);
}

gint64
gtorch_computed_output_dim (GTorchModule *module)
{
  return GTORCH_IS_CONV_TRANSPOSE (module) ? 1 : 0;
}

/**
 * gtorch_module_parametrize_spectral_norm:
 * @self: a module
 * @name: the name of a parameter of this module
 * @n_power_iterations: the number of steps at each use in training mode, normally 1
 * @eps: the least norm by which vectors are divided, normally 1e-12
 * @dim: the dimension whose indices are the rows of the matrix; [const@NONE]: 1 for a transposed convolution,
 *   otherwise 0
 * @error: return location for an error
 *
 * Parametrizes a weight by a [class@SpectralNorm].
 *
 * Source: PyTorch's `torch.nn.utils.parametrizations.spectral_norm`.
 *
 * Returns: %TRUE; %FALSE with the errors of [ctor@SpectralNorm.new] and
 *   [method@Module.register_parametrization]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_parametrize_spectral_norm (GTorchModule *self, const gchar *name,
                                         gint64 n_power_iterations, gdouble eps, gint64 dim,
                                         GError **error)
{
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchSpectralNorm) norm = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  weight = gtorch_module_get_tensor (self, name, error);
  if (weight != NULL)
    norm = gtorch_spectral_norm_new (weight, n_power_iterations,
                                     dim == GTORCH_NONE ? gtorch_computed_output_dim (self) : dim,
                                     eps, error);
  return norm != NULL
         && gtorch_module_register_parametrization (self, name, GTORCH_MODULE (norm), FALSE, error);
}

/* --- with weight_orig, weight_u and weight_v --- */

/**
 * gtorch_module_apply_spectral_norm:
 * @self: a module
 * @name: the name of a parameter of this module
 * @n_power_iterations: the number of steps at each use in training mode, normally 1
 * @eps: the least norm by which vectors are divided, normally 1e-12
 * @dim: the dimension whose indices are the rows of the matrix; [const@NONE]: 1 for a transposed convolution,
 *   otherwise 0
 * @error: return location for an error
 *
 * Lets a weight be the parameter `weight_orig`, divided by its largest singular value, which the power method
 * estimates with the buffers `weight_u` and `weight_v`. It is the older form of
 * [method@Module.parametrize_spectral_norm], with the names of states that were saved by it. The weight is
 * computed whenever it is used, not by a hook.
 *
 * Source: PyTorch's `torch.nn.utils.spectral_norm`.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if there is no parameter of the name,
 *   %GTORCH_ERROR_INDEX if there is no such dimension, or %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_module_apply_spectral_norm (GTorchModule *self, const gchar *name, gint64 n_power_iterations,
                                   gdouble eps, gint64 dim, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchImpl) matrix = NULL;
  g_autoptr (GTorchComputed) computed = NULL;
  g_autofree gchar *original = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  weight = gtorch_module_dup_computable (self, name, FALSE, error);
  if (weight == NULL)
    return FALSE;
  if (dim == GTORCH_NONE)
    dim = gtorch_computed_output_dim (self);
  if (!check_settings (gtorch_tensor_unwrap (weight), n_power_iterations, &dim, eps, error))
    return FALSE;
  guard = gtorch_no_grad ();
  matrix = gtorch_spectral_matrix (gtorch_tensor_unwrap (weight), dim, error);
  original = g_strconcat (name, "_orig", NULL);
  if (matrix == NULL || !add_vectors (self, name, matrix, eps, 0, error)
      || !gtorch_module_register_parameter (self, original, GTORCH_PARAMETER (weight), error))
    return FALSE;
  computed = gtorch_computed_new (GTORCH_COMPUTED_SPECTRAL_NORM, dim, n_power_iterations, eps);
  gtorch_module_put_computed (self, name, computed);
  return TRUE;
}

/**
 * gtorch_module_remove_spectral_norm:
 * @self: a module
 * @name: the name of a weight to which [method@Module.apply_spectral_norm] was applied
 * @error: return location for an error
 *
 * Makes the weight, with the value that it has, a parameter again, instead of `weight_orig`, `weight_u` and
 * `weight_v`. No further step is made.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if the weight has no norm of this kind
 *
 * Since: 0.1
 */
gboolean
gtorch_module_remove_spectral_norm (GTorchModule *self, const gchar *name, GError **error)
{
  static const gchar *const suffixes[] = { "_orig", "_u", "_v", NULL };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return gtorch_module_settle_computed (self, name, GTORCH_COMPUTED_SPECTRAL_NORM, "spectral_norm",
                                        suffixes, error);
}
