/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums, means and maxima of rows of a table. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_shape_native_embedding_bag (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *weight = call->inputs[0], *indices = call->inputs[1];
  const gint64 shape[] = { call->attrs[1].i, weight->shape[1] };
  const guint n_places = call->attrs[0].i == GTORCH_BAG_MODE_MAX ? 2 : 1;

  call->compute = weight->dtype;
  return gtorch_call_check_dtype (call, weight->dtype, error)
         && gtorch_shape_check (call->op->name, shape, 2, weight->dtype, error)
         && gtorch_call_set_output (call, 0, weight->dtype, shape, 2, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT64, indices->shape, 1, error)
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT64, shape, 1, error)
         && gtorch_call_set_output (call, 3, GTORCH_DTYPE_INT64, shape, n_places, error);
}

static gboolean
check_integers (const gchar *name, const GTorchImpl *impl, GError **error)
{
  if (gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_INT)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("embedding_bag: %s must be integers, they are %s"), name,
               gtorch_dtype_get_name (impl->dtype));
  return FALSE;
}

static gboolean
check_shapes (const GTorchImpl *weight, const GTorchImpl *indices, const GTorchImpl *offsets,
              GError **error)
{
  const gboolean fits =
      offsets == NULL ? indices->n_dims == 2 : indices->n_dims == 1 && offsets->n_dims == 1;

  if (weight->n_dims != 2)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("embedding_bag: the weight must have 2 dimensions, its shape is %s"),
                 gtorch_impl_shape_str (weight));
  else if (!fits && offsets == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("embedding_bag: indices of shape %s without offsets: they must be [B, N]"),
                 gtorch_impl_shape_str (indices));
  else if (!fits)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("embedding_bag: indices of shape %s and offsets of shape %s: both must have "
                    "one dimension"),
                 gtorch_impl_shape_str (indices), gtorch_impl_shape_str (offsets));
  return weight->n_dims == 2 && fits && check_integers ("indices", indices, error)
         && (offsets == NULL || check_integers ("offsets", offsets, error));
}

static gboolean
check_factors (const GTorchImpl *weight, const GTorchImpl *indices, const GTorchImpl *factors,
               GTorchBagMode mode, GError **error)
{
  if (factors == NULL)
    return TRUE;
  if (mode != GTORCH_BAG_MODE_SUM)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("embedding_bag: per_sample_weights are for sums only"));
      return FALSE;
    }
  if (!gtorch_impl_same_shape (indices, factors))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("embedding_bag: per_sample_weights of shape %s must have that of the "
                      "indices, %s"),
                   gtorch_impl_shape_str (factors), gtorch_impl_shape_str (indices));
      return FALSE;
    }
  if (factors->dtype == weight->dtype)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("embedding_bag: per_sample_weights are of %s and the weight of %s: both must be "
                  "equal"),
               gtorch_dtype_get_name (factors->dtype), gtorch_dtype_get_name (weight->dtype));
  return FALSE;
}

static gboolean
check_mode (GTorchBagMode mode, gboolean by_frequency, const GTorchImpl *offsets,
            gboolean include_last_offset, GError **error)
{
  if ((guint) mode > GTORCH_BAG_MODE_MAX)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("embedding_bag: %d is no mode"),
                 (gint) mode);
  else if (by_frequency && mode == GTORCH_BAG_MODE_MAX)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("embedding_bag: scale_grad_by_freq is not for maxima"));
  else if (include_last_offset && offsets != NULL && offsets->numel == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("embedding_bag: offsets of shape [0] do not include the last one"));
  else
    return TRUE;
  return FALSE;
}

/* Returns n times the step, for each row of indices. */
static GTorchImpl *
offsets_of_rows (GTorchFormula *f, GTorchImpl *indices)
{
  GTorchImpl *step = gtorch_formula_keep (f, gtorch_impl_new_int (indices->shape[1]));
  GTorchImpl *rows = GTORCH_FORMULA_OP (f, arange_int, 0, indices->shape[0], 1, GTORCH_DTYPE_INT64,
                                        gtorch_impl_device (indices));

  return GTORCH_FORMULA_OP (f, mul, rows, step);
}

GTorchImpl *
gtorch_composite_embedding_bag (GTorchImpl *weight, GTorchImpl *indices, GTorchImpl *offsets,
                                gboolean scale_grad_by_freq, GTorchBagMode mode,
                                GTorchImpl *per_sample_weights, gboolean include_last_offset,
                                gint64 padding_idx, gdouble max_norm, gdouble norm_type,
                                GError **error)
{
  const gint64 all = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchImpl) output = NULL;
  g_autoptr (GTorchImpl) numbers = NULL;
  g_autoptr (GTorchImpl) sizes = NULL;
  g_autoptr (GTorchImpl) places = NULL;
  GTorchImpl *flat, *starts, *factors = NULL;
  gint64 padding, bags;

  if (!check_mode (mode, scale_grad_by_freq, offsets, include_last_offset, error)
      || !check_shapes (weight, indices, offsets, error)
      || !check_factors (weight, indices, per_sample_weights, mode, error)
      || !gtorch_embedding_padding ("embedding_bag", weight, padding_idx, &padding, error)
      || !gtorch_embedding_limit ("embedding_bag", weight, indices, max_norm, norm_type, error))
    return NULL;
  bags = offsets == NULL ? indices->shape[0] : offsets->shape[0] - (include_last_offset ? 1 : 0);
  flat = GTORCH_FORMULA_OP (&f, reshape, indices, &all, 1);
  if (bags == 0)
    { /* no row is looked up, but the indices are checked */
      GTorchImpl *rows = GTORCH_FORMULA_OP (&f, native_embedding, weight, flat, padding, FALSE);

      return f.failed ? NULL : gtorch_op_narrow (rows, 0, 0, 0, error);
    }
  starts = offsets != NULL ? offsets : offsets_of_rows (&f, indices);
  if (per_sample_weights != NULL)
    factors = GTORCH_FORMULA_OP (&f, reshape, per_sample_weights, &all, 1);
  if (f.failed
      || !gtorch_op_native_embedding_bag (weight, flat, starts, factors, mode, bags, padding,
                                          scale_grad_by_freq, &output, &numbers, &sizes, &places,
                                          error))
    return NULL;
  return g_steal_pointer (&output);
}

/* Returns the gradients of the rows at the indices, of which those without a bag have 0. `factors` are for
 * each index, or NULL. */
static GTorchImpl *
gradients_of_rows (GTorchFormula *f, GTorchImpl *upper, GTorchImpl *numbers, GTorchImpl *factors)
{
  GTorchImpl *zero = gtorch_formula_keep (f, gtorch_impl_new_int (0));
  GTorchImpl *inside = GTORCH_FORMULA_OP (f, ge, numbers, zero);
  GTorchImpl *bags = GTORCH_FORMULA_OP (f, clamp_int, numbers, 0, G_MAXINT64);
  GTorchImpl *rows = GTORCH_FORMULA_OP (f, index_select, upper, 0, bags);

  if (factors != NULL)
    {
      factors = GTORCH_FORMULA_OP (f, unsqueeze, factors, -1);
      rows = GTORCH_FORMULA_OP (f, mul, rows, factors);
    }
  inside = GTORCH_FORMULA_OP (f, unsqueeze, inside, -1);
  return GTORCH_FORMULA_OP (f, where, inside, rows, zero);
}

/* Writes the gradients of the maxima to the rows that have them. */
static GTorchImpl *
gradients_of_maxima (GTorchFormula *f, GTorchImpl *upper, GTorchImpl *places, const gint64 *size)
{
  GTorchImpl *zero = gtorch_formula_keep (f, gtorch_impl_new_int (0));
  GTorchImpl *inside = GTORCH_FORMULA_OP (f, ge, places, zero);
  GTorchImpl *rows = GTORCH_FORMULA_OP (f, clamp_int, places, 0, G_MAXINT64);
  GTorchImpl *table = GTORCH_FORMULA_OP (f, new_zeros, upper, size, 2, GTORCH_DTYPE_NONE);

  if (size[0] == 0) /* all bags are empty */
    return table;
  upper = GTORCH_FORMULA_OP (f, where, inside, upper, zero);
  return GTORCH_FORMULA_OP (f, scatter_add, table, 0, rows, upper);
}

GTorchImpl *
gtorch_op_embedding_bag_grad (GTorchImpl *upper, GTorchImpl *indices, GTorchImpl *numbers,
                              GTorchImpl *sizes, GTorchImpl *places, GTorchImpl *per_sample_weights,
                              const gint64 *size, gsize n_size, GTorchBagMode mode,
                              gint64 padding_idx, gboolean by_frequency, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *rows, *divisor, *grad;

  if (mode == GTORCH_BAG_MODE_MAX)
    {
      grad = gradients_of_maxima (&f, upper, places, size);
      return gtorch_formula_take (&f, grad);
    }
  if (mode == GTORCH_BAG_MODE_MEAN)
    {
      divisor = GTORCH_FORMULA_OP (&f, clamp_int, sizes, 1, G_MAXINT64);
      divisor = GTORCH_FORMULA_OP (&f, unsqueeze, divisor, -1);
      upper = GTORCH_FORMULA_OP (&f, div, upper, divisor);
    }
  rows = gradients_of_rows (&f, upper, numbers, per_sample_weights);
  grad = GTORCH_FORMULA_OP (&f, embedding_grad, rows, indices, size, n_size, padding_idx,
                            by_frequency);
  return gtorch_formula_take (&f, grad);
}

GTorchImpl *
gtorch_op_embedding_bag_factors_grad (GTorchImpl *upper, GTorchImpl *weight, GTorchImpl *indices,
                                      GTorchImpl *numbers, GError **error)
{
  const gint64 last = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *rows = gradients_of_rows (&f, upper, numbers, NULL);
  GTorchImpl *looked_up = GTORCH_FORMULA_OP (&f, native_embedding, weight, indices, -1, FALSE);
  GTorchImpl *products = GTORCH_FORMULA_OP (&f, mul, rows, looked_up);
  GTorchImpl *sums = GTORCH_FORMULA_OP (&f, sum, products, &last, 1, FALSE, GTORCH_DTYPE_NONE);

  return gtorch_formula_take (&f, sums);
}
