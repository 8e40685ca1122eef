/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Element-wise operations that are composed of others, and checks of the arguments of pointwise ones. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_shape_celu (GTorchOpCall *call, GError **error)
{
  if (call->attrs[0].d != 0)
    return gtorch_shape_pointwise (call, error);
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("alpha is 0, and must not be"));
  return FALSE;
}

gboolean
gtorch_shape_polygamma (GTorchOpCall *call, GError **error)
{
  if (call->attrs[0].i >= 0 && call->attrs[0].i <= 170) /* 171! is beyond float64 */
    return gtorch_shape_pointwise (call, error);
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("n is %" PRId64 ", and must be between 0 and 170"), call->attrs[0].i);
  return FALSE;
}

GTorchImpl *
gtorch_op_positive (GTorchImpl *self, GError **error)
{
  if (self->dtype != GTORCH_DTYPE_BOOL)
    return gtorch_op_view_as_is (self, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("positive: elements of dtype %s have no sign"),
               gtorch_dtype_get_name (self->dtype));
  return NULL;
}

GTorchImpl *
gtorch_op_times (GTorchImpl *self, gdouble factor, GError **error)
{
  g_autoptr (GTorchImpl) number = NULL;

  if (factor == 1 && self->storage != NULL) /* what was released is an error of mul */
    return gtorch_impl_ref (self);
  number = gtorch_impl_new_number (factor);
  return gtorch_op_mul (self, number, error);
}

GTorchImpl *
gtorch_op_float_power (GTorchImpl *self, GTorchImpl *exponent, GError **error)
{
  const gboolean is_complex = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX
                              || gtorch_dtype_kind (exponent->dtype) == GTORCH_KIND_COMPLEX;
  const guint dtype = is_complex ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchImpl) base = gtorch_op_to_dtype (self, dtype, error);
  g_autoptr (GTorchImpl) power = base != NULL ? gtorch_op_to_dtype (exponent, dtype, error) : NULL;

  return power != NULL ? gtorch_op_pow (base, power, error) : NULL;
}

gboolean
gtorch_shape_frexp_parts (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  guint dtype;

  return gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT32, self->shape, self->n_dims, error);
}

gboolean
gtorch_op_frexp (GTorchImpl *self, GTorchImpl **mantissa, GTorchImpl **exponent, GError **error)
{
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) power = NULL;
  g_autoptr (GTorchImpl) second = NULL;

  if (gtorch_dtype_kind (self->dtype) == GTORCH_KIND_FLOAT && !gtorch_autograd_wanted (&self, 1)
      && gtorch_impl_has_op (self, GTORCH_OP_FREXP_PARTS))
    {
      if (!gtorch_op_frexp_parts (self, &first, &second, error))
        gtorch_error_set_op (error, "frexp");
    }
  else if ((first = gtorch_op_frexp_mantissa (self, error)) != NULL
           && (power = gtorch_op_frexp_exponent (self, error)) != NULL)
    second = gtorch_op_to_dtype (power, GTORCH_DTYPE_INT32, error);
  if (second == NULL)
    return FALSE;
  if (mantissa != NULL)
    *mantissa = g_steal_pointer (&first);
  if (exponent != NULL)
    *exponent = g_steal_pointer (&second);
  return TRUE;
}

/* --- numbers that are not finite --- */

static gdouble
number_or (gdouble number, gdouble otherwise)
{
  return gtorch_is_none_double (number) ? otherwise : number;
}

GTorchImpl *
gtorch_op_nan_to_num (GTorchImpl *self, gdouble nan, gdouble posinf, gdouble neginf, GError **error)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[self->dtype];

  if (info->kind < GTORCH_KIND_FLOAT)
    return gtorch_op_clone (self, error);
  if (info->kind == GTORCH_KIND_COMPLEX)
    {
      g_autoptr (GTorchImpl) parts = gtorch_op_view_as_real (self, error);
      g_autoptr (GTorchImpl) finite =
          parts != NULL ? gtorch_op_nan_to_num (parts, nan, posinf, neginf, error) : NULL;

      return finite != NULL ? gtorch_op_view_as_complex (finite, error) : NULL;
    }
  return gtorch_op_replace_nonfinite (self, number_or (nan, 0), number_or (posinf, info->max),
                                      number_or (neginf, info->min), error);
}

gboolean
gtorch_op_nan_to_num_inplace (GTorchImpl *self, gdouble nan, gdouble posinf, gdouble neginf,
                              GError **error)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[self->dtype];

  if (info->kind < GTORCH_KIND_FLOAT)
    return TRUE;
  if (info->kind == GTORCH_KIND_COMPLEX)
    {
      g_autoptr (GTorchImpl) parts = gtorch_op_view_as_real (self, error);

      return parts != NULL && gtorch_op_nan_to_num_inplace (parts, nan, posinf, neginf, error);
    }
  return gtorch_op_replace_nonfinite_inplace (self, number_or (nan, 0),
                                              number_or (posinf, info->max),
                                              number_or (neginf, info->min), error);
}

/* --- logit --- */

GTorchImpl *
gtorch_op_logit (GTorchImpl *self, gdouble eps, GError **error)
{
  GTorchImpl *result = gtorch_is_none_double (eps) ? gtorch_op_native_logit (self, error)
                                                   : gtorch_op_limited_logit (self, eps, error);

  if (result == NULL)
    gtorch_error_set_op (error, "logit");
  return result;
}

gboolean
gtorch_op_logit_inplace (GTorchImpl *self, gdouble eps, GError **error)
{
  gboolean is_done = gtorch_is_none_double (eps)
                         ? gtorch_op_native_logit_inplace (self, error)
                         : gtorch_op_limited_logit_inplace (self, eps, error);

  if (!is_done)
    gtorch_error_set_op (error, "logit");
  return is_done;
}

/* --- comparison --- */

/* Integers are compared exactly, and their difference in double precision. */
GTorchImpl *
gtorch_composite_isclose (GTorchImpl *self, GTorchImpl *other, gdouble rtol, gdouble atol,
                          gboolean equal_nan, GError **error)
{
  g_autoptr (GTorchImpl) left = NULL;
  g_autoptr (GTorchImpl) right = NULL;
  g_autoptr (GTorchImpl) same = NULL;
  g_autoptr (GTorchImpl) near = NULL;

  if (gtorch_dtype_kind (self->dtype) >= GTORCH_KIND_FLOAT
      || gtorch_dtype_kind (other->dtype) >= GTORCH_KIND_FLOAT)
    return gtorch_op_is_close (self, other, rtol, atol, equal_nan, error);
  same = gtorch_op_eq (self, other, error);
  left = same != NULL ? gtorch_op_to_dtype (self, GTORCH_DTYPE_FLOAT64, error) : NULL;
  right = left != NULL ? gtorch_op_to_dtype (other, GTORCH_DTYPE_FLOAT64, error) : NULL;
  if (right == NULL)
    return NULL;
  near = gtorch_op_is_close (left, right, rtol, atol, equal_nan, error);
  return near != NULL ? gtorch_op_logical_or (same, near, error) : NULL;
}

GTorchImpl *
gtorch_op_equal (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  g_autoptr (GTorchImpl) same = NULL;

  if (!gtorch_impl_same_shape (self, other))
    return gtorch_op_full (NULL, 0, 0, GTORCH_DTYPE_BOOL, gtorch_impl_device (self), error);
  same = gtorch_op_eq (self, other, error);
  return same != NULL ? gtorch_op_all (same, NULL, 0, FALSE, error) : NULL;
}

/* Looks each element up in the sorted others: that at the first place where it could be inserted is the
 * only one that can equal it. */
static GTorchImpl *
find_in (GTorchImpl *elements, GTorchImpl *others, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GTorchImpl) row = gtorch_op_reshape (others, &all, 1, error);
  g_autoptr (GTorchImpl) sorted = NULL;
  g_autoptr (GTorchImpl) order = NULL;
  g_autoptr (GTorchImpl) place = NULL;
  g_autoptr (GTorchImpl) inside = NULL;
  g_autoptr (GTorchImpl) found = NULL;

  if (row == NULL || !gtorch_op_sort (row, 0, FALSE, FALSE, &sorted, &order, error)
      || (place = gtorch_op_search_places (sorted, elements, FALSE, error)) == NULL
      || (inside = gtorch_op_clamp_int (place, G_MININT64, others->numel - 1, error)) == NULL
      || (found = gtorch_op_take (sorted, inside, error)) == NULL)
    return NULL;
  return gtorch_op_eq (found, elements, error);
}

GTorchImpl *
gtorch_op_isin (GTorchImpl *elements, GTorchImpl *test_elements, gboolean assume_unique,
                gboolean invert, GError **error)
{
  const guint dtype = gtorch_dtype_promote (elements->dtype, test_elements->dtype);
  g_autoptr (GTorchImpl) wanted = NULL;
  g_autoptr (GTorchImpl) others = NULL;
  g_autoptr (GTorchImpl) found = NULL;

  if (test_elements->numel == 0)
    return gtorch_op_full_like (elements, invert, GTORCH_DTYPE_BOOL, error);
  wanted = gtorch_op_to_dtype (elements, dtype, error);
  others = wanted != NULL ? gtorch_op_to_dtype (test_elements, dtype, error) : NULL;
  found = others != NULL ? find_in (wanted, others, error) : NULL;
  return found != NULL && invert ? gtorch_op_logical_not (found, error) : g_steal_pointer (&found);
}

/* --- activations --- */

GTorchImpl *
gtorch_op_glu (GTorchImpl *self, gint64 dim, GError **error)
{
  g_autoptr (GTorchImpl) value = NULL;
  g_autoptr (GTorchImpl) gate = NULL;
  guint along;
  gint64 half;

  if (!gtorch_normalize_dim ("glu", dim, self->n_dims, &along, error))
    return NULL;
  if (self->n_dims == 0 || self->shape[along] % 2 != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("glu: dim %u of shape %s must be of even size"), along,
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  half = self->shape[along] / 2;
  value = gtorch_op_narrow (self, along, 0, half, error);
  gate = value != NULL ? gtorch_op_narrow (self, along, half, half, error) : NULL;
  return gate != NULL ? gtorch_op_gated (value, gate, error) : NULL;
}

GTorchImpl *
gtorch_composite_prelu (GTorchImpl *self, GTorchImpl *weight, GError **error)
{
  const gint64 channels = self->n_dims > 1 ? self->shape[1] : 1;
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) wide = NULL;
  guint i;

  if (weight->n_dims > 1 || (weight->numel != 1 && weight->numel != channels))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("prelu: a weight of shape %s does not fit an input of shape %s: it must have "
                      "one element, or %" PRId64),
                   gtorch_impl_shape_str (weight), gtorch_impl_shape_str (self), channels);
      return NULL;
    }
  for (i = 0; i < self->n_dims; i++)
    shape[i] = i == 1 ? weight->numel : 1;
  if (self->n_dims == 1)
    shape[0] = weight->numel;
  wide = gtorch_op_reshape (weight, shape, self->n_dims, error);
  return wide != NULL ? gtorch_op_prelu_broadcast (self, wide, error) : NULL;
}

GTorchImpl *
gtorch_op_rrelu (GTorchImpl *self, gdouble lower, gdouble upper, gboolean training,
                 GTorchGenerator *generator, GError **error)
{
  const gdouble limit = gtorch_dtype_infos[self->dtype].max;
  g_autoptr (GTorchImpl) plain = NULL;
  g_autoptr (GTorchImpl) slope = NULL;

  if (!(lower <= upper) || !(lower >= -limit) || !(upper <= limit))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("rrelu: the range from %g to %g is empty, or beyond that of dtype %s"), lower,
                   upper, gtorch_dtype_get_name (self->dtype));
      return NULL;
    }
  if (!training)
    return gtorch_op_leaky_relu (self, (lower + upper) / 2, error);
  plain = gtorch_impl_alias (self);
  slope = gtorch_op_uniform (plain, lower, upper, generator, error);
  return slope != NULL ? gtorch_op_prelu_broadcast (self, slope, error) : NULL;
}

/* --- special functions --- */

GTorchImpl *
gtorch_op_mvlgamma (GTorchImpl *self, gint64 p, GError **error)
{
  static const gint64 last = -1;
  const guint dtype = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_FLOAT
                          ? self->dtype
                          : gtorch_get_default_dtype ();
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) steps = NULL;
  g_autoptr (GTorchImpl) moved = NULL;
  g_autoptr (GTorchImpl) parts = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) constant = NULL;

  if (p < 1 || p > G_MAXUINT16)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("mvlgamma: p is %" PRId64 ", and must be between 1 and %d"), p, G_MAXUINT16);
      return NULL;
    }
  constant = gtorch_impl_new_number (0.25 * p * (p - 1.0) * log (G_PI));
  if ((column = gtorch_op_unsqueeze (self, -1, error)) == NULL
      || (steps =
              gtorch_op_arange (-(p - 1) / 2.0, 0.25, 0.5, dtype, gtorch_impl_device (self), error))
             == NULL
      || (moved = gtorch_op_add (column, steps, 1, error)) == NULL
      || (parts = gtorch_op_lgamma (moved, error)) == NULL
      || (sum = gtorch_op_sum (parts, &last, 1, FALSE, GTORCH_DTYPE_NONE, error)) == NULL)
    return NULL;
  return gtorch_op_add (sum, constant, 1, error);
}

gboolean
gtorch_op_mvlgamma_inplace (GTorchImpl *self, gint64 p, GError **error)
{
  g_autoptr (GTorchImpl) result = gtorch_op_mvlgamma (self, p, error);

  if (result == NULL || result->dtype == self->dtype)
    return result != NULL && gtorch_op_copy_inplace (self, result, FALSE, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("mvlgamma: a result of dtype %s cannot be written to a tensor of dtype %s"),
               gtorch_dtype_get_name (result->dtype), gtorch_dtype_get_name (self->dtype));
  return FALSE;
}
