/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layers that compute more than one operation. Their rows name these functions. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-layer-private.h"
#include "ops/gtorch-formula-private.h"
#include "elements/gtorch-tensor-bytes.h"

/* Ends what gtorch_composite_begin () has begun, so that errors name the operation. */
static GTorchImpl *
composite_end (const GTorchOpClass *former, GTorchImpl *output, GError **error)
{
  gtorch_composite_end (former, output != NULL, error);
  return output;
}

GTorchTensor *
gtorch_layer_identity (GTorchModule *self, GTorchTensor *input, GError **error)
{
  return g_object_ref (input);
}

/* --- activations that draw random numbers --- */
GTorchTensor *
gtorch_layer_dropout (GTorchModule *self, GTorchTensor *input, guint op, GTorchLayerDropout dropout,
                      gdouble p, gboolean inplace, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  const gboolean training = gtorch_module_get_training (self);
  const GTorchOpClass *former = gtorch_composite_begin (op, &impl, 1);
  g_autoptr (GTorchImpl) ones = NULL;
  g_autoptr (GTorchImpl) factors = NULL;

  if (!inplace)
    return gtorch_tensor_wrap (
        composite_end (former, dropout (impl, p, training, NULL, error), error));
  ones = gtorch_op_ones_like (impl, GTORCH_DTYPE_NONE, error);
  factors =
      composite_end (former, ones != NULL ? dropout (ones, p, training, NULL, error) : NULL, error);
  if (factors == NULL || (factors != ones && !gtorch_op_mul_inplace (impl, factors, error)))
    return NULL;
  return g_object_ref (input);
}

/* What replaces an element is no multiple of it, so the result is copied to the input. Backward passes need
 * the random factors, and not the former elements. */
GTorchTensor *
gtorch_layer_alpha_dropout (GTorchModule *self, GTorchTensor *input, guint op,
                            GTorchLayerDropout dropout, gdouble p, gboolean inplace, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  const GTorchOpClass *former = gtorch_composite_begin (op, &impl, 1);
  g_autoptr (GTorchImpl) output =
      composite_end (former, dropout (impl, p, gtorch_module_get_training (self), NULL, error),
                     error);

  if (output == NULL || !inplace)
    return gtorch_tensor_wrap (g_steal_pointer (&output));
  if (output != impl && !gtorch_op_copy_inplace (impl, output, FALSE, error))
    return NULL;
  return g_object_ref (input);
}

/* Returns 1 for each element above zero and a slope for each other one: what rrelu () multiplies by. */
static GTorchImpl *
slopes (GTorchImpl *input, gdouble lower, gdouble upper, gboolean training, GError **error)
{
  g_autoptr (GTorchImpl) minus = gtorch_impl_new_number (-1);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_number (0);
  g_autoptr (GTorchImpl) ones = gtorch_op_ones_like (input, GTORCH_DTYPE_NONE, error);
  g_autoptr (GTorchImpl) below = ones != NULL ? gtorch_op_mul (ones, minus, error) : NULL;
  g_autoptr (GTorchImpl) drawn =
      below != NULL ? gtorch_op_rrelu (below, lower, upper, training, NULL, error) : NULL;
  g_autoptr (GTorchImpl) slope = drawn != NULL ? gtorch_op_neg (drawn, error) : NULL;
  g_autoptr (GTorchImpl) above = slope != NULL ? gtorch_op_gt (input, zero, error) : NULL;

  return above != NULL ? gtorch_op_where (above, ones, slope, error) : NULL;
}

GTorchTensor *
gtorch_layer_rrelu (GTorchModule *self, GTorchTensor *input, gdouble lower, gdouble upper,
                    gboolean inplace, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  const gboolean training = gtorch_module_get_training (self);
  const GTorchOpClass *former = gtorch_composite_begin (GTORCH_OP_RRELU, &impl, 1);
  g_autoptr (GTorchImpl) factors = NULL;

  if (!inplace)
    return gtorch_tensor_wrap (
        composite_end (former, gtorch_op_rrelu (impl, lower, upper, training, NULL, error), error));
  factors = composite_end (former, slopes (impl, lower, upper, training, error), error);
  if (factors == NULL || !gtorch_op_mul_inplace (impl, factors, error))
    return NULL;
  return g_object_ref (input);
}

/* --- images of other sizes --- */

/* One factor is for all dimensions; of several, the operation takes the last two by names of their own. */
GTorchTensor *
gtorch_layer_interpolate (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                          GTorchFactors *factors, gint mode, gboolean align_corners,
                          gboolean recompute_scale_factor, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  const GTorchOpClass *former;
  gdouble all = GTORCH_NONE_DOUBLE, height = GTORCH_NONE_DOUBLE, width = GTORCH_NONE_DOUBLE;
  gsize n = 0, n_size = 0;
  const gint64 *numbers = size != NULL ? gtorch_size_get_values (size, &n_size) : NULL;
  const gdouble *values = factors != NULL ? gtorch_factors_get_values (factors, &n) : NULL;

  if (n > 1 && n + 2 != impl->n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: scale_factor has %zu numbers, so the input must have %zu dimensions, "
                      "its shape is %s"),
                   gtorch_module_type_name (self), n, n + 2, gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (n == 1 || n == 3)
    all = values[0];
  if (n > 1)
    {
      height = values[n - 2];
      width = values[n - 1];
    }
  former = gtorch_composite_begin (GTORCH_OP_INTERPOLATE, &impl, 1);
  return gtorch_tensor_wrap (
      composite_end (former,
                     gtorch_op_interpolate (impl, numbers, n_size, all, mode, align_corners,
                                            recompute_scale_factor, FALSE, height, width, error),
                     error));
}

/* --- batch normalisation --- */
gboolean
gtorch_layer_count_batch (GTorchModule *self, GError **error)
{
  g_autoptr (GTorchImpl) count = gtorch_module_dup_buffer_impl (self, 2);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);

  return count == NULL || gtorch_op_add_inplace (count, one, 1, error);
}

/* Returns the weight of this batch in the average: without a momentum, all batches have the same. */
gboolean
gtorch_layer_share_of_batch (GTorchModule *self, gdouble *momentum, GError **error)
{
  g_autoptr (GTorchTensor) count = gtorch_module_dup_buffer (self, 2);
  GError *local = NULL;
  gint64 n;

  if (!gtorch_is_none_double (*momentum))
    return TRUE;
  n = count != NULL ? gtorch_tensor_item_int (count, &local) : 0;
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  *momentum = 1 / ((gdouble) n + 1);
  return TRUE;
}

GTorchTensor *
gtorch_layer_batch_norm (GTorchModule *self, GTorchTensor *input, gint64 num_features,
                         gdouble momentum, gdouble eps, guint least_dims, guint most_dims,
                         const gchar *layout, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  g_autoptr (GTorchImpl) mean = gtorch_module_dup_buffer_impl (self, 0);
  g_autoptr (GTorchImpl) var = gtorch_module_dup_buffer_impl (self, 1);
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  const gboolean training = gtorch_module_get_training (self);
  const GTorchOpClass *former;
  GTorchImpl *output;

  if (impl->n_dims < least_dims || impl->n_dims > most_dims || impl->shape[1] != num_features)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s is not %s with %" PRId64 " channels"),
                   gtorch_module_type_name (self), gtorch_impl_shape_str (impl), layout,
                   num_features);
      return NULL;
    }
  if (!gtorch_module_take_parameter (self, 0, &weight, error)
      || !gtorch_module_take_parameter (self, 1, &bias, error))
    return NULL;
  if (training && mean != NULL && !gtorch_layer_share_of_batch (self, &momentum, error))
    return NULL;
  /* one of both is a mistake, which the operation refuses */
  former =
      gtorch_composite_begin (GTORCH_OP_BATCH_NORM, GTORCH_IMPLS (impl, mean, var, weight, bias));
  output = gtorch_op_batch_norm (impl, mean, var, weight, bias,
                                 training || (mean == NULL && var == NULL),
                                 gtorch_is_none_double (momentum) ? 0 : momentum, eps, error);
  output = composite_end (former, output, error);
  /* a failed batch does not count */
  if (output != NULL && training && mean != NULL && !gtorch_layer_count_batch (self, error))
    g_clear_pointer (&output, gtorch_impl_unref);
  return gtorch_tensor_wrap (output);
}

/* An example without a batch is one with a batch of 1. */
GTorchTensor *
gtorch_layer_instance_norm (GTorchModule *self, GTorchTensor *input, gint64 num_features,
                            gdouble momentum, gdouble eps, gboolean track_running_stats,
                            guint example_dims, const gchar *layout, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  const gboolean is_single = impl->n_dims == example_dims;
  const gboolean own = gtorch_module_get_training (self) || !track_running_stats;
  g_autoptr (GTorchImpl) mean = gtorch_module_dup_buffer_impl (self, 0);
  g_autoptr (GTorchImpl) var = gtorch_module_dup_buffer_impl (self, 1);
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  const GTorchOpClass *former;
  g_autoptr (GTorchImpl) batch = NULL;
  g_autoptr (GTorchImpl) output = NULL;

  if ((!is_single && impl->n_dims != example_dims + 1)
      || impl->shape[is_single ? 0 : 1] != num_features)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s is not %s with %" PRId64 " channels"),
                   gtorch_module_type_name (self), gtorch_impl_shape_str (impl), layout,
                   num_features);
      return NULL;
    }
  if (!gtorch_module_take_parameter (self, 0, &weight, error)
      || !gtorch_module_take_parameter (self, 1, &bias, error))
    return NULL;
  batch = is_single ? gtorch_op_unsqueeze (impl, 0, error) : gtorch_impl_ref (impl);
  if (batch == NULL)
    return NULL;
  former = gtorch_composite_begin (GTORCH_OP_INSTANCE_NORM,
                                   GTORCH_IMPLS (batch, mean, var, weight, bias));
  output = composite_end (former,
                          gtorch_op_instance_norm (batch, mean, var, weight, bias, own,
                                                   gtorch_is_none_double (momentum) ? 0 : momentum,
                                                   eps, error),
                          error);
  return gtorch_tensor_wrap (output != NULL && is_single ? gtorch_op_select (output, 0, 0, error)
                                                         : g_steal_pointer (&output));
}

GTorchTensor *
gtorch_layer_softmax2d (GTorchModule *self, GTorchTensor *input, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);

  if (impl->n_dims != 3 && impl->n_dims != 4)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s is not [N, C, H, W] or [C, H, W]"),
                   gtorch_module_type_name (self), gtorch_impl_shape_str (impl));
      return NULL;
    }
  return gtorch_tensor_wrap (gtorch_op_softmax (impl, -3, GTORCH_DTYPE_NONE, error));
}

/* Returns the sums of squares of the channels less than `reach` away. As in PyTorch, the first channel stays
 * in all sums from channel `reach` on. */
static GTorchImpl *
sum_squares (GTorchImpl *x, gint64 reach, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 shape[] = { x->shape[0], 1, x->shape[1], -1 };
  const gint64 kernel[] = { 2 * reach - 1, 1 }, stride[] = { 1, 1 }, padding[] = { reach - 1, 0 };
  GTorchImpl *squares = GTORCH_FORMULA_OP (&f, mul, x, x), *sums, *first, *parts[2];

  sums = GTORCH_FORMULA_OP (&f, reshape, squares, shape, 4);
  sums = GTORCH_FORMULA_OP (&f, avg_pool2d, sums, kernel, 2, stride, 2, padding, 2, FALSE, TRUE, 1);
  sums = GTORCH_FORMULA_OP (&f, reshape, sums, x->shape, 4);
  if (x->shape[1] > reach)
    {
      parts[0] = GTORCH_FORMULA_OP (&f, narrow, sums, 1, 0, reach);
      parts[1] = GTORCH_FORMULA_OP (&f, narrow, sums, 1, reach, x->shape[1] - reach);
      first = GTORCH_FORMULA_OP (&f, narrow, squares, 1, 0, 1);
      parts[1] = GTORCH_FORMULA_OP (&f, add, parts[1], first, 1);
      sums = GTORCH_FORMULA_OP (&f, cat, parts, 2, 1);
    }
  return gtorch_formula_take (&f, sums);
}

GTorchTensor *
gtorch_layer_cross_map (GTorchModule *self, GTorchTensor *input, gint64 size, gdouble alpha,
                        gdouble beta, gdouble k, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *impl = gtorch_tensor_unwrap (input), *sums, *number;

  if (impl->n_dims != 4)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE, _ ("%s: shape %s is not [N, C, H, W]"),
                   gtorch_module_type_name (self), gtorch_impl_shape_str (impl));
      return NULL;
    }
  sums = gtorch_formula_keep (&f, sum_squares (impl, MIN ((size + 1) / 2, MAX (impl->shape[1], 1)),
                                               error));
  number = gtorch_formula_number (&f, alpha / (gdouble) size);
  sums = GTORCH_FORMULA_OP (&f, mul, sums, number);
  number = gtorch_formula_number (&f, k);
  sums = GTORCH_FORMULA_OP (&f, add, sums, number, 1);
  number = gtorch_formula_number (&f, -beta);
  sums = GTORCH_FORMULA_OP (&f, pow, sums, number);
  return gtorch_tensor_wrap (gtorch_formula_take (&f, GTORCH_FORMULA_OP (&f, mul, impl, sums)));
}

GTorchTensor *
gtorch_layer_max_unpool (GTorchModule *self, GTorchTensor *input, GTorchTensor *indices,
                         GTorchImpl *output_size, GTorchLayerMaxUnpool max_unpool,
                         GTorchSize *kernel_size, GTorchSize *stride, GTorchSize *padding,
                         GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  const guint n = (guint) gtorch_size_get_length (kernel_size);
  gint64 size[GTORCH_MAX_DIMS];

  if (output_size != NULL
      && !gtorch_layer_read_size (self, output_size, impl->n_dims, n, size, error))
    return NULL;
  return gtorch_tensor_wrap (
      max_unpool (impl, gtorch_tensor_unwrap (indices), gtorch_layer_numbers (kernel_size), n,
                  gtorch_layer_numbers (stride), gtorch_size_get_length (stride),
                  gtorch_layer_numbers (padding), gtorch_size_get_length (padding),
                  output_size != NULL ? size : NULL, output_size != NULL ? n : 0, error));
}

/* --- convolution --- */
void
gtorch_layer_check_same_padding (GTorchModule *self, GTorchSize **padding, gint padding_rule,
                                 GTorchSize *stride)
{
  const gint64 zero = 0;

  if (padding_rule == GTORCH_PADDING_RULE_NUMBERS)
    return;
  g_clear_pointer (padding, gtorch_size_unref);
  *padding = gtorch_size_new (&zero, 1);
  for (gsize i = 0; padding_rule == GTORCH_PADDING_RULE_SAME && i < gtorch_size_get_length (stride);
       i++)
    if (gtorch_layer_numbers (stride)[i] != 1)
      {
        gtorch_module_set_error (self,
                                 g_error_new (GTORCH_ERROR, GTORCH_ERROR_INVALID,
                                              _ ("%s: padding 'same' needs a stride of 1, it is "
                                                 "%" PRId64),
                                              gtorch_module_type_name (self),
                                              gtorch_layer_numbers (stride)[i]));
        return;
      }
}

/* Returns the source index of each position from -before to n + after, in a dimension of size n. */
static GTorchImpl *
padded_indices (GTorchModule *self, gint64 n, gint64 before, gint64 after, gint mode,
                GTorchDevice *device, GError **error)
{
  const gint64 most = mode == GTORCH_PADDING_MODE_REFLECT ? n - 1 : n;
  g_autoptr (GTorchImpl) places = NULL;
  g_autoptr (GTorchImpl) step = NULL;
  g_autoptr (GTorchImpl) last = NULL;
  g_autoptr (GTorchImpl) size = NULL;

  if (n < 1 || (mode != GTORCH_PADDING_MODE_REPLICATE && MAX (before, after) > most))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: padding %" PRId64 " is too much for a dimension of %" PRId64),
                   gtorch_module_type_name (self), MAX (before, after), n);
      return NULL;
    }
  places = gtorch_op_arange_int (-before, n + after, 1, GTORCH_DTYPE_INT64, device, error);
  if (places == NULL || mode == GTORCH_PADDING_MODE_REPLICATE)
    return places != NULL ? gtorch_op_clamp_int (places, 0, n - 1, error) : NULL;
  if (mode == GTORCH_PADDING_MODE_CIRCULAR)
    {
      size = gtorch_impl_new_int (n);
      return gtorch_op_remainder (places, size, error);
    }
  /* (n - 1) - |(n - 1) - |i|| */
  last = gtorch_impl_new_int (n - 1);
  step = gtorch_op_abs (places, error);
  g_clear_pointer (&places, gtorch_impl_unref);
  places = step != NULL ? gtorch_op_sub (last, step, 1, error) : NULL;
  g_clear_pointer (&step, gtorch_impl_unref);
  step = places != NULL ? gtorch_op_abs (places, error) : NULL;
  return step != NULL ? gtorch_op_sub (last, step, 1, error) : NULL;
}

GTorchTensor *
gtorch_layer_conv (GTorchModule *self, GTorchTensor *input, GTorchSize *stride, GTorchSize *padding,
                   gint padding_rule, GTorchSize *dilation, gint64 groups, gint padding_mode,
                   GError **error)
{
  static const struct
  {
    GTorchImpl *(*run) (GTorchImpl *, GTorchImpl *, GTorchImpl *, const gint64 *, gsize,
                        const gint64 *, gsize, const gint64 *, gsize, gint64, GError **);
    guint op;
  } forms[] = { { gtorch_op_conv1d, GTORCH_OP_CONV1D },
                { gtorch_op_conv2d, GTORCH_OP_CONV2D },
                { gtorch_op_conv3d, GTORCH_OP_CONV3D } };
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  g_autoptr (GTorchImpl) impl = gtorch_impl_ref (gtorch_tensor_unwrap (input));
  g_autoptr (GTorchImpl) output = NULL;
  const gint64 zero = 0;
  gint64 before[GTORCH_MAX_DIMS], after[GTORCH_MAX_DIMS];
  const gint64 *steps = gtorch_layer_numbers (stride), *gaps = gtorch_layer_numbers (dilation);
  const guint n = (guint) gtorch_size_get_length (stride);
  const GTorchOpClass *former;
  gboolean is_explicit = FALSE;

  if (!gtorch_module_take_parameter (self, 0, &weight, error)
      || !gtorch_module_take_parameter (self, 1, &bias, error))
    return NULL;
  if (weight == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no weight"),
                   gtorch_module_type_name (self));
      return NULL;
    }
  for (guint i = 0; i < n; i++)
    {
      before[i] = after[i] =
          gtorch_layer_numbers (padding)[gtorch_size_get_length (padding) == 1 ? 0 : i];
      if (padding_rule == GTORCH_PADDING_RULE_SAME)
        {
          const gint64 total = gaps[i] * (weight->shape[weight->n_dims - n + i] - 1);

          before[i] = total / 2;
          after[i] = total - total / 2;
        }
      is_explicit |= padding_mode != GTORCH_PADDING_MODE_ZEROS && after[i] > 0;
    }
  if (is_explicit && (impl->n_dims == n + 1 || impl->n_dims == n + 2))
    for (guint i = 0; i < n; i++)
      {
        const guint dim = impl->n_dims - n + i;
        g_autoptr (GTorchImpl) indices = NULL;
        GTorchImpl *padded;

        if (after[i] == 0)
          continue;
        indices = padded_indices (self, impl->shape[dim], before[i], after[i], padding_mode,
                                  impl->device, error);
        padded = indices != NULL ? gtorch_op_index_select (impl, dim, indices, error) : NULL;
        if (padded == NULL)
          return NULL;
        gtorch_impl_unref (impl);
        impl = padded;
      }
  former = gtorch_composite_begin (forms[n - 1].op, GTORCH_IMPLS (impl, weight, bias));
  output = forms[n - 1].run (impl, weight, bias, steps, n, is_explicit ? &zero : after,
                             is_explicit ? 1 : n, gaps, n, groups, error);
  gtorch_composite_end (former, output != NULL, error);
  /* for an even kernel, symmetric padding adds one zero too many at the beginning */
  for (guint i = 0; output != NULL && !is_explicit && i < n; i++)
    if (before[i] != after[i])
      {
        const guint dim = output->n_dims - n + i;
        GTorchImpl *rest = gtorch_op_narrow (output, dim, 1, output->shape[dim] - 1, error);

        gtorch_impl_unref (output);
        output = rest;
      }
  return gtorch_tensor_wrap (g_steal_pointer (&output));
}

/* --- others --- */
/* An error is that of the construction, too. */
gboolean
gtorch_layer_clear_row (GTorchModule *self, gint64 row)
{
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) part = NULL;
  GError *error = NULL;

  if (row == GTORCH_NONE || gtorch_module_get_private (self)->error != NULL)
    return TRUE;
  if (gtorch_module_take_parameter (self, 0, &weight, &error))
    {
      if (weight == NULL)
        return TRUE;
      part = gtorch_op_select (weight, 0, row, &error);
      if (part != NULL && gtorch_op_zero_inplace (part, &error))
        return TRUE;
    }
  gtorch_module_set_error (self, error);
  return FALSE;
}

gint64
gtorch_layer_implicit_dim (gint64 dim, GTorchTensor *input)
{
  const guint n_dims = gtorch_tensor_unwrap (input)->n_dims;

  if (dim != GTORCH_NONE)
    return dim;
  return n_dims == 0 || n_dims == 1 || n_dims == 3 ? 0 : 1;
}
