/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Complex numbers as pairs of real ones. All operations are views; the parts of a new complex tensor are
 * written through them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

GTorchImpl *
gtorch_complex_part (GTorchImpl *impl, guint part)
{
  gint64 strides[GTORCH_MAX_DIMS];
  guint i;

  for (i = 0; i < impl->n_dims; i++)
    strides[i] = 2 * impl->strides[i];
  return gtorch_impl_new_strided (impl->storage, gtorch_dtype_infos[impl->dtype].real,
                                  2 * impl->offset + part, impl->shape, strides, impl->n_dims);
}

gboolean
gtorch_shape_real (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  call->outputs[0] = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX
                         ? gtorch_complex_part (self, 0)
                         : gtorch_impl_alias (self);
  return TRUE;
}

gboolean
gtorch_shape_imag (GTorchOpCall *call, GError **error)
{
  if (!gtorch_call_check_dtype (call, call->inputs[0]->dtype, error))
    return FALSE;
  call->outputs[0] = gtorch_complex_part (call->inputs[0], 1);
  return TRUE;
}

gboolean
gtorch_shape_view_as_real (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint i, n = self->n_dims;

  if (!gtorch_call_check_dtype (call, self->dtype, error))
    return FALSE;
  if (n == GTORCH_MAX_DIMS)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("a tensor of %u dimensions cannot have one more"), n);
      return FALSE;
    }
  for (i = 0; i < n; i++)
    {
      shape[i] = self->shape[i];
      strides[i] = 2 * self->strides[i];
    }
  shape[n] = 2;
  strides[n] = 1;
  call->outputs[0] = gtorch_impl_new_strided (self->storage, gtorch_dtype_infos[self->dtype].real,
                                              2 * self->offset, shape, strides, n + 1);
  return TRUE;
}

/* Tells whether the pairs lie in memory as the complex numbers of a strided tensor do. */
static gboolean
are_complex_in_memory (const GTorchImpl *self)
{
  guint i, n = self->n_dims;

  if (n == 0 || self->shape[n - 1] != 2 || self->strides[n - 1] != 1 || self->offset % 2 != 0)
    return FALSE;
  for (i = 0; i + 1 < n; i++)
    if (self->shape[i] > 1 && self->strides[i] % 2 != 0)
      return FALSE;
  return TRUE;
}

gboolean
gtorch_shape_view_as_complex (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 strides[GTORCH_MAX_DIMS];
  guint i, n = self->n_dims;

  if (!gtorch_call_check_dtype (call, self->dtype, error))
    return FALSE;
  if (n == 0 || self->shape[n - 1] != 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the last dimension of shape %s is not of size 2"),
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  for (i = 0; i + 1 < n; i++)
    strides[i] = self->shape[i] <= 1 ? 0 : self->strides[i] / 2;
  if (!are_complex_in_memory (self))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("pairs at offset %" PRId64
                            " with strides %s are no complex numbers in memory: the last stride "
                            "must be 1, the others and the offset even"),
                         self->offset, gtorch_shape_str (self->strides, n));
      return FALSE;
    }
  call->outputs[0] =
      gtorch_impl_new_strided (self->storage,
                               self->dtype == GTORCH_DTYPE_FLOAT32 ? GTORCH_DTYPE_COMPLEX64
                                                                   : GTORCH_DTYPE_COMPLEX128,
                               self->offset / 2, self->shape, strides, n - 1);
  return TRUE;
}

GTorchImpl *
gtorch_op_complex_of_pairs (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) real = NULL;
  g_autoptr (GTorchImpl) imag = NULL;

  if (are_complex_in_memory (self))
    return gtorch_op_view_as_complex (self, error);
  if ((real = gtorch_op_select (self, -1, 0, error)) == NULL
      || (imag = gtorch_op_select (self, -1, 1, error)) == NULL)
    return NULL;
  return gtorch_op_complex (real, imag, error);
}

/* --- from parts --- */

static gboolean
same_dtypes (const gchar *op, GTorchImpl *a, GTorchImpl *b, GError **error)
{
  if (a->dtype == b->dtype)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: the parts must have one dtype, not %s and %s"), op,
               gtorch_dtype_get_name (a->dtype), gtorch_dtype_get_name (b->dtype));
  return FALSE;
}

gboolean
gtorch_shape_complex (GTorchOpCall *call, GError **error)
{
  GTorchImpl *real = call->inputs[0], *imag = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims, dtype;

  if (!gtorch_call_check_dtype (call, real->dtype, error)
      || !gtorch_call_check_dtype (call, imag->dtype, error)
      || !same_dtypes (call->op->name, real, imag, error)
      || !gtorch_broadcast_shapes (call->op->name, real->shape, real->n_dims, imag->shape,
                                   imag->n_dims, shape, &n_dims, error))
    return FALSE;
  dtype = real->dtype == GTORCH_DTYPE_FLOAT32 ? GTORCH_DTYPE_COMPLEX64 : GTORCH_DTYPE_COMPLEX128;
  return gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
}

gboolean
gtorch_shape_polar (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_complex (call, error);
}

GTorchImpl *
gtorch_op_angle (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) floating = NULL;

  if (gtorch_dtype_kind (self->dtype) >= GTORCH_KIND_FLOAT)
    return gtorch_op_angle_of (self, error);
  floating = gtorch_op_to_dtype (self, gtorch_get_default_dtype (), error);
  return floating != NULL ? gtorch_op_angle_of (floating, error) : NULL;
}

/* With the direction d = z / |z|, the derivative of d along v is (v - d Re (conj (d) v)) / |z|. */
GTorchImpl *
gtorch_op_sgn_gradient (GTorchImpl *upper, GTorchImpl *self, GTorchImpl *direction, GError **error)
{
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  g_autoptr (GTorchImpl) length = NULL;
  g_autoptr (GTorchImpl) along = NULL;
  g_autoptr (GTorchImpl) across = NULL;
  g_autoptr (GTorchImpl) size = NULL;
  g_autoptr (GTorchImpl) is_zero = NULL;
  g_autoptr (GTorchImpl) divisor = NULL;
  g_autoptr (GTorchImpl) quotient = NULL;

  if (gtorch_dtype_kind (self->dtype) != GTORCH_KIND_COMPLEX)
    return gtorch_op_zeros_like (upper, GTORCH_DTYPE_NONE, error);
  if ((turned = gtorch_op_conj (direction, error)) == NULL
      || (product = gtorch_op_mul (turned, upper, error)) == NULL
      || (length = gtorch_op_real (product, error)) == NULL
      || (along = gtorch_op_mul (direction, length, error)) == NULL
      || (across = gtorch_op_sub (upper, along, 1, error)) == NULL
      || (size = gtorch_op_abs (self, error)) == NULL
      || (is_zero = gtorch_op_eq (self, zero, error)) == NULL
      || (divisor = gtorch_op_add (size, is_zero, 1, error)) == NULL
      || (quotient = gtorch_op_div (across, divisor, error)) == NULL)
    return NULL;
  return gtorch_op_where (is_zero, zero, quotient, error);
}

/* The gradient is grad i z / |z|², computed in real numbers, and 0 for z = 0. */
gboolean
gtorch_grad_angle_of (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0], *self = context->inputs[0];
  g_autoptr (GTorchImpl) re = NULL;
  g_autoptr (GTorchImpl) im = NULL;
  g_autoptr (GTorchImpl) re2 = NULL;
  g_autoptr (GTorchImpl) im2 = NULL;
  g_autoptr (GTorchImpl) square = NULL;
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_number (0);
  g_autoptr (GTorchImpl) is_zero = NULL;
  g_autoptr (GTorchImpl) divisor = NULL;
  g_autoptr (GTorchImpl) factor = NULL;
  g_autoptr (GTorchImpl) minus = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;

  if (gtorch_dtype_kind (context->input_metas[0].dtype) != GTORCH_KIND_COMPLEX)
    {
      context->result[0] = gtorch_op_zeros_like (grad, GTORCH_DTYPE_NONE, error);
      return context->result[0] != NULL;
    }
  if ((re = gtorch_op_real (self, error)) == NULL || (im = gtorch_op_imag (self, error)) == NULL
      || (re2 = gtorch_op_mul (re, re, error)) == NULL
      || (im2 = gtorch_op_mul (im, im, error)) == NULL
      || (square = gtorch_op_add (re2, im2, 1, error)) == NULL
      || (is_zero = gtorch_op_eq (square, zero, error)) == NULL
      || (divisor = gtorch_op_add (square, is_zero, 1, error)) == NULL
      || (factor = gtorch_op_div (grad, divisor, error)) == NULL
      || (minus = gtorch_op_neg (im, error)) == NULL
      || (x = gtorch_op_mul (minus, factor, error)) == NULL
      || (y = gtorch_op_mul (re, factor, error)) == NULL)
    return FALSE;
  context->result[0] = gtorch_op_complex (x, y, error);
  return context->result[0] != NULL;
}

/* The derivative of sinc (z) is (cos (pi z) - sinc (z)) / z, and 0 at 0. */
gboolean
gtorch_grad_sinc (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *grad = context->grads[0], *z = context->inputs[0];
  GTorchImpl *derivative, *zero, *pi, *is_zero, *divisor, *sinc;

  if (gtorch_dtype_kind (context->input_metas[0].dtype) != GTORCH_KIND_COMPLEX)
    derivative = OP (sinc_derivative, z, 1);
  else
    {
      zero = gtorch_formula_number (&f, 0);
      pi = gtorch_formula_number (&f, G_PI);
      is_zero = OP (eq, z, zero);
      divisor = OP (add, z, is_zero, 1);
      sinc = OP (sinc, z);
      derivative = OP (mul, z, pi);
      derivative = OP (cos, derivative);
      derivative = OP (sub, derivative, sinc, 1);
      derivative = OP (div, derivative, divisor);
      derivative = OP (conj, derivative);
    }
  derivative = OP (mul, grad, derivative);
  context->result[0] = gtorch_formula_take (&f, derivative);
  return context->result[0] != NULL;
}

/* With u = 1 / (1 + |z|), z u changes by u for z, and by -u^2 for |z|: the gradient is
 * u (grad - u Re (conj (grad) z) z / |z|). */
gboolean
gtorch_grad_softsign (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *grad = context->grads[0], *z = context->inputs[0];
  GTorchImpl *one, *u, *along, *direction, *part, *result;

  if (gtorch_dtype_kind (context->input_metas[0].dtype) != GTORCH_KIND_COMPLEX)
    result = OP (softsign_backward, grad, z);
  else
    {
      one = gtorch_formula_number (&f, 1);
      u = OP (abs, z);
      u = OP (add, u, one, 1);
      u = OP (reciprocal, u);
      along = OP (conj, grad);
      along = OP (mul, along, z);
      along = OP (real, along);
      direction = OP (sgn, z);
      part = OP (mul, along, u);
      part = OP (mul, direction, part);
      result = OP (sub, grad, part, 1);
      result = OP (mul, result, u);
    }
  context->result[0] = gtorch_formula_take (&f, result);
  return context->result[0] != NULL;
}
