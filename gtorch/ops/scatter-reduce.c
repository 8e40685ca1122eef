/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reductions of elements that indices send to the same target. Sums and means are composed of
 * scatter_add; products and extremes of scatter_fold, which starts with the values of self. If self is
 * excluded, the neutral element is written to the targets first. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tensor/gtorch-recorder-private.h"
#include "gtorch-ops-private.h"

/* --- gradients --- */

/* Returns the gradient of the elements of src, assuming that src is 1 where mask is true: grad times the
 * product of the other elements. */
static GTorchImpl *
product_without (GTorchGradContext *context, GTorchImpl *grad, GTorchImpl *mask, GError **error)
{
  GTorchImpl *self = context->inputs[0], *index = context->inputs[1], *src = context->inputs[2];
  gint64 dim = context->attrs[0].i;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) without = gtorch_op_masked_fill (src, mask, one, error);
  g_autoptr (GTorchImpl) others =
      without != NULL
          ? gtorch_op_scatter_fold (self, dim, index, without, GTORCH_INDEX_REDUCTION_PROD, error)
          : NULL;
  g_autoptr (GTorchImpl) product = others != NULL ? gtorch_op_mul (grad, others, error) : NULL;

  return product != NULL ? gtorch_op_gather (product, dim, index, error) : NULL;
}

/* Returns a mask that is true for the first zero of src for each target. */
static GTorchImpl *
find_first (GTorchGradContext *context, GTorchImpl *is_zero, GError **error)
{
  GTorchImpl *self = context->inputs[0], *index = context->inputs[1], *src = context->inputs[2];
  gint64 dim = context->attrs[0].i;
  g_autoptr (GTorchImpl) last = gtorch_impl_new_int (src->numel);
  g_autoptr (GTorchImpl) row =
      gtorch_op_arange (0, src->numel, 1, GTORCH_DTYPE_INT64, gtorch_impl_device (src), error);
  g_autoptr (GTorchImpl) places =
      row != NULL ? gtorch_op_reshape (row, src->shape, src->n_dims, error) : NULL;
  g_autoptr (GTorchImpl) of_zeros =
      places != NULL ? gtorch_op_where (is_zero, places, last, error) : NULL;
  g_autoptr (GTorchImpl) begin = of_zeros != NULL
                                     ? gtorch_op_new_full (self, self->shape, self->n_dims,
                                                           src->numel, GTORCH_DTYPE_INT64, error)
                                     : NULL;
  g_autoptr (GTorchImpl) least =
      begin != NULL
          ? gtorch_op_scatter_fold (begin, dim, index, of_zeros, GTORCH_INDEX_REDUCTION_AMIN, error)
          : NULL;
  g_autoptr (GTorchImpl) gathered =
      least != NULL ? gtorch_op_gather (least, dim, index, error) : NULL;

  return gathered != NULL ? gtorch_op_eq (of_zeros, gathered, error) : NULL;
}

/* Returns, for each element of src, how many zeros have the same target. */
static GTorchImpl *
count_zeros (GTorchGradContext *context, GTorchImpl *is_zero, GError **error)
{
  GTorchImpl *self = context->inputs[0], *index = context->inputs[1];
  gint64 dim = context->attrs[0].i;
  g_autoptr (GTorchImpl) ones = gtorch_op_to_dtype (is_zero, GTORCH_DTYPE_INT64, error);
  g_autoptr (GTorchImpl) none = ones != NULL ? gtorch_op_new_zeros (self, self->shape, self->n_dims,
                                                                    GTORCH_DTYPE_INT64, error)
                                             : NULL;
  g_autoptr (GTorchImpl) counts =
      none != NULL ? gtorch_op_scatter_add (none, dim, index, ones, error) : NULL;

  return counts != NULL ? gtorch_op_gather (counts, dim, index, error) : NULL;
}

/* Handles zeros of src if the gradient is to be differentiated. With two zeros for one target, the
 * gradient of each is 0, but its derivative is not: it needs the product without the first and the
 * product without the second. With more zeros that derivative is 0, too. */
static GTorchImpl *
choose_of_zeros (GTorchGradContext *context, GTorchImpl *grad, GTorchImpl *is_zero,
                 GTorchImpl *zeros, GTorchImpl *of_rest, GError **error)
{
  g_autoptr (GTorchImpl) two = gtorch_impl_new_int (2);
  g_autoptr (GTorchImpl) first = find_first (context, is_zero, error);
  g_autoptr (GTorchImpl) is_first =
      first != NULL ? gtorch_op_logical_and (first, is_zero, error) : NULL;
  g_autoptr (GTorchImpl) later = is_first != NULL ? gtorch_op_ne (is_zero, is_first, error) : NULL;
  g_autoptr (GTorchImpl) of_two = later != NULL ? gtorch_op_eq (zeros, two, error) : NULL;
  g_autoptr (GTorchImpl) is_second =
      of_two != NULL ? gtorch_op_logical_and (later, of_two, error) : NULL;
  g_autoptr (GTorchImpl) of_first =
      is_second != NULL ? product_without (context, grad, is_first, error) : NULL;
  g_autoptr (GTorchImpl) of_second =
      of_first != NULL ? product_without (context, grad, is_second, error) : NULL;
  g_autoptr (GTorchImpl) chosen =
      of_second != NULL ? gtorch_op_where (is_second, of_second, of_rest, error) : NULL;

  return chosen != NULL ? gtorch_op_where (is_first, of_first, chosen, error) : NULL;
}

static GTorchImpl *
prod_backward_to_src (GTorchGradContext *context, GTorchImpl *grad, GError **error)
{
  GTorchImpl *self = context->inputs[0], *index = context->inputs[1], *src = context->inputs[2];
  GTorchImpl *const sources[] = { grad, self, src };
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) is_zero = gtorch_op_eq (src, zero, error);
  g_autoptr (GTorchImpl) zeros = is_zero != NULL ? count_zeros (context, is_zero, error) : NULL;
  g_autoptr (GTorchImpl) product =
      zeros != NULL ? gtorch_op_mul (grad, context->outputs[0], error) : NULL;
  g_autoptr (GTorchImpl) gathered =
      product != NULL ? gtorch_op_gather (product, context->attrs[0].i, index, error) : NULL;
  g_autoptr (GTorchImpl) divisor =
      gathered != NULL ? gtorch_op_masked_fill (src, is_zero, one, error) : NULL;
  g_autoptr (GTorchImpl) of_rest =
      divisor != NULL ? gtorch_op_div (gathered, divisor, error) : NULL;
  g_autoptr (GTorchImpl) only = NULL;
  g_autoptr (GTorchImpl) single = NULL;
  g_autoptr (GTorchImpl) of_single = NULL;

  if (of_rest == NULL)
    return NULL;
  if (gtorch_autograd_wanted (sources, 3))
    return choose_of_zeros (context, grad, is_zero, zeros, of_rest, error);
  if ((only = gtorch_op_eq (zeros, one, error)) == NULL
      || (single = gtorch_op_logical_and (is_zero, only, error)) == NULL
      || (of_single = product_without (context, grad, single, error)) == NULL)
    return NULL;
  return gtorch_op_where (single, of_single, of_rest, error);
}

/* Where self is 0, its gradient is the product of the others. Among the elements of src for one target,
 * a single 0 has the product of the others as its gradient, and all others 0; if there is a second 0,
 * all have 0. */
static gboolean
prod_backward (GTorchGradContext *context, GTorchImpl *grad, GError **error)
{
  GTorchImpl *self = context->inputs[0], *index = context->inputs[1], *src = context->inputs[2];
  gint64 dim = context->attrs[0].i;
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);

  if (context->needs[0])
    {
      g_autoptr (GTorchImpl) is_zero = gtorch_op_eq (self, zero, error);
      g_autoptr (GTorchImpl) filled =
          is_zero != NULL ? gtorch_op_masked_fill (self, is_zero, one, error) : NULL;
      g_autoptr (GTorchImpl) others =
          filled != NULL
              ? gtorch_op_scatter_fold (filled, dim, index, src, GTORCH_INDEX_REDUCTION_PROD, error)
              : NULL;
      g_autoptr (GTorchImpl) product = others != NULL ? gtorch_op_mul (grad, others, error) : NULL;

      context->result[0] = product != NULL ? gtorch_op_div (product, filled, error) : NULL;
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    {
      context->result[2] = prod_backward_to_src (context, grad, error);
      if (context->result[2] == NULL)
        return FALSE;
    }
  return TRUE;
}

/* Divides the gradient of an extreme equally among the elements that are equal to it. */
static gboolean
extreme_backward (GTorchGradContext *context, GTorchImpl *grad, GError **error)
{
  GTorchImpl *self = context->inputs[0], *index = context->inputs[1], *src = context->inputs[2];
  GTorchImpl *result = context->outputs[0];
  gint64 dim = context->attrs[0].i;
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) values = gtorch_op_gather (result, dim, index, error);
  g_autoptr (GTorchImpl) of_src = values != NULL ? gtorch_op_eq (src, values, error) : NULL;
  g_autoptr (GTorchImpl) of_self = of_src != NULL ? gtorch_op_eq (self, result, error) : NULL;
  g_autoptr (GTorchImpl) some =
      of_self != NULL ? gtorch_op_to_dtype (of_self, GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) more =
      some != NULL ? gtorch_op_to_dtype (of_src, GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) counts =
      more != NULL ? gtorch_op_scatter_add (some, dim, index, more, error) : NULL;
  g_autoptr (GTorchImpl) share = counts != NULL ? gtorch_op_div (grad, counts, error) : NULL;

  if (share == NULL)
    return FALSE;
  if (context->needs[0])
    {
      context->result[0] = gtorch_op_where (of_self, share, zero, error);
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    {
      g_autoptr (GTorchImpl) gathered = gtorch_op_gather (share, dim, index, error);

      context->result[2] =
          gathered != NULL ? gtorch_op_where (of_src, gathered, zero, error) : NULL;
      if (context->result[2] == NULL)
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_grad_scatter_fold (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0];

  return context->attrs[1].i == GTORCH_INDEX_REDUCTION_PROD
             ? prod_backward (context, grad, error)
             : extreme_backward (context, grad, error);
}

/* --- public operations --- */

/* Returns the neutral element of a reduction. */
static GTorchImpl *
neutral (guint dtype, GTorchIndexReduction reduce)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];
  gboolean greatest = reduce == GTORCH_INDEX_REDUCTION_AMIN;

  if (reduce == GTORCH_INDEX_REDUCTION_PROD)
    return gtorch_impl_new_int (1);
  if (reduce != GTORCH_INDEX_REDUCTION_AMAX && !greatest)
    return gtorch_impl_new_int (0);
  if (info->kind != GTORCH_KIND_INT)
    return gtorch_impl_new_number (greatest ? INFINITY : -INFINITY);
  if (info->size == 8)
    return gtorch_impl_new_int (greatest ? G_MAXINT64 : G_MININT64);
  return gtorch_impl_new_int (greatest ? info->max : info->min);
}

/* Divides sums by the number of elements that went into each. */
static GTorchImpl *
divide (GTorchImpl *sums, gint64 dim, GTorchImpl *index, gboolean include_self, GError **error)
{
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) begin =
      include_self
          ? gtorch_op_ones_like (sums, GTORCH_DTYPE_INT64, error)
          : gtorch_op_new_zeros (sums, sums->shape, sums->n_dims, GTORCH_DTYPE_INT64, error);
  g_autoptr (GTorchImpl) each =
      begin != NULL ? gtorch_op_ones_like (index, GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) counts =
      each != NULL ? gtorch_op_scatter_add (begin, dim, index, each, error) : NULL;
  g_autoptr (GTorchImpl) divisors = counts != NULL ? gtorch_op_maximum (counts, one, error) : NULL;
  g_autoptr (GTorchImpl) typed = NULL;

  if (divisors == NULL)
    return NULL;
  if (gtorch_dtype_kind (sums->dtype) >= GTORCH_KIND_FLOAT)
    return gtorch_op_div (sums, divisors, error);
  typed = gtorch_op_floor_divide (sums, divisors, error);
  return typed != NULL ? gtorch_op_to_dtype (typed, sums->dtype, error) : NULL;
}

static gboolean
check (const gchar *name, GTorchImpl *self, GTorchIndexReduction reduce, GError **error)
{
  guint kind = gtorch_dtype_kind (self->dtype);

  if ((guint) reduce > GTORCH_INDEX_REDUCTION_AMIN)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %d is not a reduction"), name,
                 (gint) reduce);
  else if (kind != GTORCH_KIND_INT && kind != GTORCH_KIND_FLOAT)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: not defined for dtype %s"), name,
                 gtorch_dtype_get_name (self->dtype));
  else
    return TRUE;
  return FALSE;
}

/* Reduces bools as numbers, whose sum is the greatest here and whose product the least. */
static GTorchImpl *
reduce_bools (GTorchImpl *self, gint64 dim, GTorchImpl *index, GTorchImpl *src,
              GTorchIndexReduction reduce, gboolean include_self, GError **error)
{
  g_autoptr (GTorchImpl) numbers = gtorch_op_to_dtype (self, GTORCH_DTYPE_UINT8, error);
  g_autoptr (GTorchImpl) others =
      numbers != NULL ? gtorch_op_to_dtype (src, GTORCH_DTYPE_UINT8, error) : NULL;
  g_autoptr (GTorchImpl) made = NULL;

  if (reduce == GTORCH_INDEX_REDUCTION_SUM)
    reduce = GTORCH_INDEX_REDUCTION_AMAX;
  else if (reduce == GTORCH_INDEX_REDUCTION_PROD)
    reduce = GTORCH_INDEX_REDUCTION_AMIN;
  if (others != NULL)
    made = gtorch_op_scatter_reduce (numbers, dim, index, others, reduce, include_self, error);
  return made != NULL ? gtorch_op_to_dtype (made, GTORCH_DTYPE_BOOL, error) : NULL;
}

GTorchImpl *
gtorch_op_scatter_reduce (GTorchImpl *self, gint64 dim, GTorchImpl *index, GTorchImpl *src,
                          GTorchIndexReduction reduce, gboolean include_self, GError **error)
{
  g_autoptr (GTorchImpl) start = NULL;
  g_autoptr (GTorchImpl) used = gtorch_impl_ref (src);
  g_autoptr (GTorchImpl) sums = NULL;
  guint i;

  if (self->dtype == GTORCH_DTYPE_BOOL && src->dtype == GTORCH_DTYPE_BOOL
      && (guint) reduce <= GTORCH_INDEX_REDUCTION_AMIN && reduce != GTORCH_INDEX_REDUCTION_MEAN)
    return reduce_bools (self, dim, index, src, reduce, include_self, error);
  if (!check ("scatter_reduce", self, reduce, error))
    return NULL;
  if (include_self)
    start = gtorch_impl_ref (self);
  else
    {
      g_autoptr (GTorchImpl) value = neutral (self->dtype, reduce);

      start = gtorch_op_scatter (self, dim, index, value, error);
    }
  for (i = 0; start != NULL && i < index->n_dims && index->n_dims == src->n_dims; i++)
    if (index->shape[i] < used->shape[i])
      {
        g_autoptr (GTorchImpl) whole = g_steal_pointer (&used);

        used = gtorch_op_slice (whole, i, 0, index->shape[i], 1, error);
        if (used == NULL)
          return NULL;
      }
  if (start == NULL)
    return NULL;
  if (reduce != GTORCH_INDEX_REDUCTION_SUM && reduce != GTORCH_INDEX_REDUCTION_MEAN)
    return gtorch_op_scatter_fold (start, dim, index, used, reduce, error);
  sums = gtorch_op_scatter_add (start, dim, index, used, error);
  if (sums == NULL || reduce == GTORCH_INDEX_REDUCTION_SUM)
    return g_steal_pointer (&sums);
  return divide (sums, dim, index, include_self, error);
}

gboolean
gtorch_op_scatter_reduce_inplace (GTorchImpl *self, gint64 dim, GTorchImpl *index, GTorchImpl *src,
                                  GTorchIndexReduction reduce, gboolean include_self,
                                  GError **error)
{
  /* the values that the gradient needs must outlive the in-place change */
  g_autoptr (GTorchImpl) before =
      gtorch_impl_requires_grad (self) ? gtorch_op_clone (self, error) : gtorch_impl_ref (self);
  g_autoptr (GTorchImpl) result =
      before != NULL
          ? gtorch_op_scatter_reduce (before, dim, index, src, reduce, include_self, error)
          : NULL;

  return result != NULL && gtorch_op_copy_inplace (self, result, FALSE, error);
}

/* Expands a one-dimensional index to the shape of source. */
static GTorchImpl *
spread_index (GTorchImpl *self, gint64 raw_dim, GTorchImpl *index, GTorchImpl *source,
              GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS], line[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) shaped = NULL;
  guint dim, i;

  if (!gtorch_normalize_dim ("index_reduce", raw_dim, self->n_dims, &dim, error))
    return NULL;
  if (index->n_dims > 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("index_reduce: the index of shape %s must have one dimension"),
                   gtorch_impl_shape_str (index));
      return NULL;
    }
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  for (i = 0; i < self->n_dims; i++)
    line[i] = 1;
  if (self->n_dims > 0)
    shape[dim] = line[dim] = index->numel;
  if (!gtorch_same_shape (source->shape, source->n_dims, shape, self->n_dims)
      || (self->n_dims == 0 && index->numel != 1))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("index_reduce: source of shape %s does not fit: for %" PRId64
                      " indices of dimension %u of shape %s it must be of shape %s"),
                   gtorch_impl_shape_str (source), index->numel, dim, gtorch_impl_shape_str (self),
                   gtorch_shape_str (shape, self->n_dims));
      return NULL;
    }
  shaped = gtorch_op_reshape (index, line, self->n_dims, error);
  return shaped != NULL ? gtorch_op_expand (shaped, shape, self->n_dims, error) : NULL;
}

GTorchImpl *
gtorch_op_index_reduce (GTorchImpl *self, gint64 dim, GTorchImpl *index, GTorchImpl *source,
                        GTorchIndexReduction reduce, gboolean include_self, GError **error)
{
  g_autoptr (GTorchImpl) each = spread_index (self, dim, index, source, error);

  return each != NULL
             ? gtorch_op_scatter_reduce (self, dim, each, source, reduce, include_self, error)
             : NULL;
}

gboolean
gtorch_op_index_reduce_inplace (GTorchImpl *self, gint64 dim, GTorchImpl *index, GTorchImpl *source,
                                GTorchIndexReduction reduce, gboolean include_self, GError **error)
{
  g_autoptr (GTorchImpl) each = spread_index (self, dim, index, source, error);

  return each != NULL
         && gtorch_op_scatter_reduce_inplace (self, dim, each, source, reduce, include_self, error);
}
