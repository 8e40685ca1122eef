/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* First values of parameters that are more than numbers of one distribution: matrices with a structure, and
 * normal numbers within bounds. */

#include "config.h"

#include "nn/gtorch-init.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "device/gtorch-generator.h"
#include "dispatch/gtorch-grad-mode.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

static gboolean
check_dims (const gchar *who, const GTorchImpl *impl, guint least, guint most, GError **error)
{
  if (impl->n_dims >= least && impl->n_dims <= most)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               least == most ? _ ("%s: shape %s must have %u dimensions")
                             : _ ("%s: shape %s must have %u dimensions or more"),
               who, gtorch_impl_shape_str (impl), least);
  return FALSE;
}

/* Returns a matrix with columns of norm 1 that are perpendicular, each as likely as all others. */
static GTorchImpl *
draw_orthogonal (GTorchImpl *like, gint64 rows, gint64 columns, GTorchGenerator *generator,
                 GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 shape[] = { rows, columns };
  GTorchImpl *drawn = OP (new_empty, like, shape, 2, GTORCH_DTYPE_NONE), *signs;
  g_autoptr (GTorchImpl) q = NULL;
  g_autoptr (GTorchImpl) r = NULL;

  if (f.failed || !gtorch_op_normal_inplace (drawn, 0, 1, generator, error))
    return NULL;
  if (rows < columns)
    drawn = OP (swap_matrix, drawn);
  if (f.failed || !gtorch_op_linalg_qr (drawn, GTORCH_QR_MODE_REDUCED, &q, &r, error))
    return NULL;
  signs = OP (diagonal, r, 0, -2, -1);
  signs = OP (sgn, signs);
  drawn = OP (mul, q, signs);
  return gtorch_formula_take (&f, rows < columns ? OP (swap_matrix, drawn) : drawn);
}

/**
 * gtorch_init_orthogonal:
 * @tensor: a weight with at least two dimensions, of float32, float64 or complex numbers
 * @gain: a factor, see [func@init_calculate_gain]
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a weight with a random orthogonal matrix, times @gain. The dimensions from the second on are taken
 * for one; if there are more rows than columns the columns are perpendicular, otherwise the rows (Saxe et
 * al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks, 2013).
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has fewer than two dimensions, or
 *   %GTORCH_ERROR_DTYPE
 *
 * Since: 0.1
 */
gboolean
gtorch_init_orthogonal (GTorchTensor *tensor, gdouble gain, GTorchGenerator *generator,
                        GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *impl, *matrix, *factor;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  impl = gtorch_tensor_unwrap (tensor);
  if (!check_dims ("init_orthogonal", impl, 2, GTORCH_MAX_DIMS, error))
    return FALSE;
  if (impl->numel == 0)
    return TRUE;
  guard = gtorch_no_grad ();
  matrix =
      gtorch_formula_keep (&f, draw_orthogonal (impl, impl->shape[0], impl->numel / impl->shape[0],
                                                generator, error));
  factor = gtorch_formula_number (&f, gain);
  matrix = OP (mul, matrix, factor);
  matrix = OP (reshape, matrix, impl->shape, impl->n_dims);
  return !f.failed && gtorch_op_copy_inplace (impl, matrix, FALSE, error);
}

/* The share of the standard normal distribution that is below x. */
static gdouble
share_below (gdouble x)
{
  return 0.5 * erfc (-x / sqrt (2.0));
}

/* Numbers from the standard normal distribution between low and high, in float64. Those above 0 are drawn on
 * the other side, where the shares are small numbers and exact. */
static GTorchImpl *
draw_between (GTorchImpl *like, gdouble low, gdouble high, GTorchGenerator *generator,
              GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gboolean flipped = low > 0;
  const gdouble from = flipped ? -high : low, to = flipped ? -low : high;
  GTorchImpl *drawn = OP (new_empty, like, like->shape, like->n_dims, GTORCH_DTYPE_FLOAT64);

  if (f.failed
      || !gtorch_op_uniform_inplace (drawn, share_below (from), share_below (to), generator, error))
    return NULL;
  drawn = OP (special_ndtri, drawn);
  return gtorch_formula_take (&f, flipped ? OP (neg, drawn) : drawn);
}

/**
 * gtorch_init_trunc_normal:
 * @tensor: a tensor
 * @mean: the mean of the distribution before it is cut off
 * @std: its standard deviation, which is positive
 * @a: the least number
 * @b: the greatest one
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a tensor with numbers from the part between @a and @b of a normal distribution. They are the
 * quantiles of uniform numbers, so that none has to be drawn again.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if @std is not positive or @a is greater than @b, or
 *   %GTORCH_ERROR_DTYPE if @tensor is not of floating-point numbers
 *
 * Since: 0.1
 */
gboolean
gtorch_init_trunc_normal (GTorchTensor *tensor, gdouble mean, gdouble std, gdouble a, gdouble b,
                          GTorchGenerator *generator, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *impl, *drawn, *scale, *shift;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  impl = gtorch_tensor_unwrap (tensor);
  if (!(std > 0) || !isfinite (std) || !isfinite (mean) || !(a <= b))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("init_trunc_normal: mean %g, std %g and the bounds %g and %g: std must be "
                      "positive, and the bounds in order"),
                   mean, std, a, b);
      return FALSE;
    }
  if (!gtorch_dtype_is_floating_point (impl->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("init_trunc_normal: dtype %s is not one of floating-point numbers"),
                   gtorch_dtype_get_name (impl->dtype));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  scale = gtorch_formula_number (&f, std);
  shift = gtorch_formula_number (&f, mean);
  drawn = gtorch_formula_keep (&f, draw_between (impl, (a - mean) / std, (b - mean) / std,
                                                 generator, error));
  drawn = OP (mul, drawn, scale);
  drawn = OP (add, drawn, shift, 1);
  return !f.failed && gtorch_op_clamp_inplace (drawn, a, b, error)
         && gtorch_op_copy_inplace (impl, drawn, FALSE, error)
         && gtorch_op_clamp_inplace (impl, a, b, error);
}

/**
 * gtorch_init_sparse:
 * @tensor: a matrix
 * @sparsity: the share of each column that is zero, from 0 to 1
 * @std: the standard deviation of the other numbers
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a matrix with numbers from a normal distribution around 0, and random rows of each column with zeros
 * (Martens, Deep learning via Hessian-free optimization, 2010).
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor is no matrix, or %GTORCH_ERROR_INVALID if
 *   @sparsity is out of its range
 *
 * Since: 0.1
 */
gboolean
gtorch_init_sparse (GTorchTensor *tensor, gdouble sparsity, gdouble std, GTorchGenerator *generator,
                    GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *impl, *order, *zeros;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  impl = gtorch_tensor_unwrap (tensor);
  if (!check_dims ("init_sparse", impl, 2, 2, error))
    return FALSE;
  if (!(sparsity >= 0 && sparsity <= 1))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("init_sparse: sparsity must be from 0 to 1, it is %g"), sparsity);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  if (!gtorch_op_normal_inplace (impl, 0, std, generator, error))
    return FALSE;
  order = OP (rand, impl->shape, 2, GTORCH_DTYPE_FLOAT32, gtorch_impl_device (impl), generator);
  order = OP (argsort, order, 0, FALSE, FALSE);
  order = OP (narrow, order, 0, 0, (gint64) ceil (sparsity * (gdouble) impl->shape[0]));
  zeros = OP (zeros_like, impl, GTORCH_DTYPE_NONE);
  return !f.failed && gtorch_op_scatter_inplace (impl, 0, order, zeros, error);
}

/* Fills the diagonal of the first rows and columns of a matrix with ones. */
static gboolean
fill_diagonal (GTorchImpl *matrix, GError **error)
{
  g_autoptr (GTorchImpl) diagonal = gtorch_op_diagonal (matrix, 0, 0, 1, error);

  return diagonal != NULL && gtorch_op_fill_inplace (diagonal, 1, error);
}

/**
 * gtorch_init_eye:
 * @tensor: a matrix
 * @error: return location for an error
 *
 * Fills a matrix with zeros, and its diagonal with ones: a linear layer then passes on as many inputs as it
 * can.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor is no matrix
 *
 * Since: 0.1
 */
gboolean
gtorch_init_eye (GTorchTensor *tensor, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  impl = gtorch_tensor_unwrap (tensor);
  if (!check_dims ("init_eye", impl, 2, 2, error))
    return FALSE;
  guard = gtorch_no_grad ();
  return gtorch_op_fill_inplace (impl, 0, error) && fill_diagonal (impl, error);
}

/* Returns the matrix of the weights in the middle of the kernels, for the channels of one group. */
static GTorchImpl *
middle (GTorchImpl *weight, gint64 first, gint64 n, GError **error)
{
  g_autoptr (GTorchImpl) part = gtorch_op_narrow (weight, 0, first, n, error);

  while (part != NULL && part->n_dims > 2)
    {
      GTorchImpl *next = gtorch_op_select (part, 2, part->shape[2] / 2, error);

      gtorch_impl_unref (part);
      part = next;
    }
  return g_steal_pointer (&part);
}

/**
 * gtorch_init_dirac:
 * @tensor: the weight of a convolution, with 3 to 5 dimensions
 * @groups: the number of groups of the convolution
 * @error: return location for an error
 *
 * Fills the weight of a convolution so that each of its groups passes on as many of its input channels as it
 * can: with zeros, and ones in the middle of the kernels from a channel to the same one.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has another number of dimensions, or
 *   %GTORCH_ERROR_INVALID if the first one is not divisible by @groups
 *
 * Since: 0.1
 */
gboolean
gtorch_init_dirac (GTorchTensor *tensor, gint64 groups, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  impl = gtorch_tensor_unwrap (tensor);
  if (impl->n_dims < 3 || impl->n_dims > 5)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("init_dirac: shape %s must have 3 to 5 dimensions"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (groups < 1 || impl->shape[0] % groups != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("init_dirac: %" PRId64 " channels cannot be shared out to %" PRId64
                      " groups"),
                   impl->shape[0], groups);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  if (!gtorch_op_fill_inplace (impl, 0, error))
    return FALSE;
  for (gint64 i = 0; i < groups && impl->numel > 0; i++)
    {
      const gint64 n = impl->shape[0] / groups;
      g_autoptr (GTorchImpl) matrix = middle (impl, i * n, n, error);

      if (matrix == NULL || !fill_diagonal (matrix, error))
        return FALSE;
    }
  return TRUE;
}
