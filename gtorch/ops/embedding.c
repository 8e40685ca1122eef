/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"

static gboolean
check (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *indices = call->inputs[1];

  call->compute = call->inputs[0]->dtype;
  if (gtorch_dtype_kind (indices->dtype) == GTORCH_KIND_INT)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("indices must be integers, they are %s"),
                     gtorch_dtype_get_name (indices->dtype));
  return FALSE;
}

gboolean
gtorch_shape_embedding (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *weight = call->inputs[0], *indices = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS + 1];

  if (!check (call, error))
    return FALSE;
  if (weight->n_dims != 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the weight must have 2 dimensions, its shape is %s"),
                         gtorch_impl_shape_str (weight));
      return FALSE;
    }
  memcpy (shape, indices->shape, indices->n_dims * sizeof (gint64));
  shape[indices->n_dims] = weight->shape[1];
  return gtorch_shape_check (call->op->name, shape, indices->n_dims + 1, weight->dtype, error)
         && gtorch_call_set_output (call, 0, weight->dtype, shape, indices->n_dims + 1, error);
}

gboolean
gtorch_shape_embedding_backward (GTorchOpCall *call, GError **error)
{
  const gint64 *size = call->attrs[0].list.data;
  const GTorchImpl *upper = call->inputs[0], *indices = call->inputs[1];

  if (!check (call, error))
    return FALSE;
  if (call->attrs[0].list.n != 2 || upper->n_dims != indices->n_dims + 1
      || upper->shape[indices->n_dims] != size[1])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient %s does not belong to a weight of shape %s"),
                         gtorch_impl_shape_str (upper),
                         gtorch_shape_str (size, call->attrs[0].list.n));
      return FALSE;
    }
  return gtorch_shape_check (call->op->name, size, 2, upper->dtype, error)
         && gtorch_call_set_output (call, 0, upper->dtype, size, 2, error);
}

gboolean
gtorch_embedding_padding (const gchar *op, const GTorchImpl *weight, gint64 padding_idx,
                          gint64 *index, GError **error)
{
  const gint64 rows = weight->n_dims > 0 ? weight->shape[0] : 0;

  *index = padding_idx == GTORCH_NONE ? -1 : padding_idx;
  if (padding_idx == GTORCH_NONE)
    return TRUE;
  if (padding_idx < -rows || padding_idx >= rows)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("%s: padding_idx %" PRId64 " is out of range for %" PRId64 " rows"), op,
                   padding_idx, rows);
      return FALSE;
    }
  if (padding_idx < 0)
    *index += rows;
  return TRUE;
}

gboolean
gtorch_embedding_limit (const gchar *op, GTorchImpl *weight, GTorchImpl *indices, gdouble max_norm,
                        gdouble norm_type, GError **error)
{
  const gint64 all = -1, last = -1;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *flat, *rows, *norms, *most, *rest, *one, *factors, *is_greater, *scaled;

  if (gtorch_is_none_double (max_norm))
    return TRUE;
  if (gtorch_dtype_kind (weight->dtype) != GTORCH_KIND_FLOAT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: max_norm is for weights of floating-point dtypes, not of %s"), op,
                   gtorch_dtype_get_name (weight->dtype));
      return FALSE;
    }
  flat = GTORCH_FORMULA_OP (&f, reshape, indices, &all, 1);
  rows = GTORCH_FORMULA_OP (&f, native_embedding, weight, flat, -1, FALSE);
  flat = GTORCH_FORMULA_OP (&f, to_dtype, flat, GTORCH_DTYPE_INT64);
  norms = GTORCH_FORMULA_OP (&f, norm, rows, norm_type, &last, 1, TRUE);
  most = gtorch_formula_number (&f, max_norm);
  rest =
      gtorch_formula_number (&f, 1e-7); /* keeps the result below max_norm in spite of rounding */
  one = gtorch_formula_number (&f, 1);
  is_greater = GTORCH_FORMULA_OP (&f, gt, norms, most);
  norms = GTORCH_FORMULA_OP (&f, add, norms, rest, 1);
  factors = GTORCH_FORMULA_OP (&f, div, most, norms);
  factors = GTORCH_FORMULA_OP (&f, where, is_greater, factors, one);
  scaled = GTORCH_FORMULA_OP (&f, mul, rows, factors);
  /* equal indices write equal rows */
  return !f.failed && gtorch_op_index_copy_inplace (weight, 0, flat, scaled, error);
}

GTorchImpl *
gtorch_composite_embedding (GTorchImpl *weight, GTorchImpl *indices, gint64 padding_idx,
                            gboolean scale_grad_by_freq, gdouble max_norm, gdouble norm_type,
                            GError **error)
{
  gint64 index;

  if (!gtorch_embedding_padding ("embedding", weight, padding_idx, &index, error)
      || !gtorch_embedding_limit ("embedding", weight, indices, max_norm, norm_type, error))
    return NULL;
  return gtorch_op_native_embedding (weight, indices, index, scale_grad_by_freq, error);
}

GTorchImpl *
gtorch_op_embedding_grad (GTorchImpl *upper, GTorchImpl *indices, const gint64 *size, gsize n_size,
                          gint64 padding_idx, gboolean by_frequency, GError **error)
{
  const gint64 all = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *grad, *flat, *ones, *none, *counts;

  if (!by_frequency)
    return gtorch_op_embedding_backward (upper, indices, size, n_size, padding_idx, error);
  grad = GTORCH_FORMULA_OP (&f, embedding_backward, upper, indices, size, n_size, padding_idx);
  flat = GTORCH_FORMULA_OP (&f, reshape, indices, &all, 1);
  flat = GTORCH_FORMULA_OP (&f, to_dtype, flat, GTORCH_DTYPE_INT64);
  ones = GTORCH_FORMULA_OP (&f, ones_like, flat, GTORCH_DTYPE_NONE);
  none = GTORCH_FORMULA_OP (&f, new_zeros, flat, size, 1, GTORCH_DTYPE_NONE);
  counts = GTORCH_FORMULA_OP (&f, scatter_add, none, 0, flat, ones);
  counts = GTORCH_FORMULA_OP (&f, clamp_int, counts, 1, G_MAXINT64);
  counts = GTORCH_FORMULA_OP (&f, unsqueeze, counts, -1);
  grad = GTORCH_FORMULA_OP (&f, div, grad, counts);
  return gtorch_formula_take (&f, grad);
}
