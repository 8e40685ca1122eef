/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Medians, repeats given by a tensor, and products along chosen dimensions, composed of other operations. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "dispatch/gtorch-constants-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "tensor/gtorch-uninitialized-private.h"
#include "stream/gtorch-stream-private.h"
#include "base/gtorch-dtype-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "ops/gtorch-host-private.h"

/* The median is the lower one of two elements in the middle. If there is a NaN, it is the maximum, and so the
 * median. */
gboolean
gtorch_op_median_dim (GTorchImpl *self, gint64 wanted, gboolean keepdim, GTorchImpl **values,
                      GTorchImpl **indices, GError **error)
{
  g_autoptr (GTorchImpl) middle = NULL;
  g_autoptr (GTorchImpl) middle_index = NULL;
  g_autoptr (GTorchImpl) last = NULL;
  g_autoptr (GTorchImpl) last_index = NULL;
  g_autoptr (GTorchImpl) is_nan = NULL;
  g_autoptr (GTorchImpl) chosen = NULL;
  g_autoptr (GTorchImpl) chosen_index = NULL;
  gint64 n;
  guint dim;

  if (!gtorch_normalize_dim ("median_dim", wanted, self->n_dims, &dim, error))
    return FALSE;
  n = self->n_dims == 0 ? 1 : self->shape[dim];
  if (n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("median: dim %u of shape %s has no elements"), dim,
                   gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (!gtorch_op_kthvalue (self, (n + 1) / 2, dim, keepdim, &middle, &middle_index, error))
    return FALSE;
  if (gtorch_dtype_kind (self->dtype) < GTORCH_KIND_FLOAT)
    {
      chosen = g_steal_pointer (&middle);
      chosen_index = g_steal_pointer (&middle_index);
    }
  else
    {
      if (!gtorch_op_max_dim (self, dim, keepdim, &last, &last_index, error))
        return FALSE;
      is_nan = gtorch_op_isnan (last, error);
      chosen = is_nan != NULL ? gtorch_op_where (is_nan, last, middle, error) : NULL;
      chosen_index =
          chosen != NULL ? gtorch_op_where (is_nan, last_index, middle_index, error) : NULL;
    }
  if (chosen_index == NULL)
    return FALSE;
  if (values != NULL)
    *values = g_steal_pointer (&chosen);
  if (indices != NULL)
    *indices = g_steal_pointer (&chosen_index);
  return TRUE;
}

GTorchImpl *
gtorch_op_median (GTorchImpl *self, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) value = NULL;
  GTorchChange mode;
  gboolean success;

  gtorch_change_to_constants (&mode);
  row = gtorch_op_reshape (self, &all, 1, error);
  success = row != NULL && gtorch_op_median_dim (row, 0, FALSE, &value, NULL, error);
  gtorch_change_end (&mode);
  if (!success)
    return NULL;
  return gtorch_autograd_wanted (&self, 1) ? gtorch_op_with_gradient_of (value, self, error)
                                           : g_steal_pointer (&value);
}

/* --- repeats given by a tensor --- */

/* Returns the sum of the repeats, or -1 with an error. */
static gint64
count_repeats (GTorchImpl *repeats, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host ("repeat_interleave", repeats, error);
  g_autofree gint64 *numbers = NULL;
  gint64 i, total = 0;

  if (host == NULL)
    return -1;
  numbers = gtorch_scratch_new (repeats->numel, sizeof (gint64), error);
  if (numbers == NULL)
    {
      gtorch_error_set_op (error, "repeat_interleave");
      return -1;
    }
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, numbers);
  for (i = 0; i < repeats->numel; i++)
    if (numbers[i] < 0 || __builtin_add_overflow (total, numbers[i], &total))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("repeat_interleave: repeats[%" PRId64 "] is %" PRId64
                        ": numbers of repeats must be at least 0, and the result must fit into "
                        "memory"),
                     i, numbers[i]);
        return -1;
      }
  return total;
}

GTorchImpl *
gtorch_op_repeat_interleave_tensor (GTorchImpl *self, GTorchImpl *repeats, const gint64 *dim,
                                    gsize n_dim, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GTorchImpl) source =
      n_dim == 0 ? gtorch_op_reshape (self, &all, 1, error) : gtorch_impl_ref (self);
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) ends = NULL;
  g_autoptr (GTorchImpl) places = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  gint64 length, total;
  guint along;

  if (source == NULL)
    return NULL;
  if (!gtorch_impl_check_memory (source, "repeat_interleave", error))
    return NULL;
  if (!gtorch_normalize_dim ("repeat_interleave", n_dim > 0 ? dim[0] : 0, source->n_dims, &along,
                             error))
    return NULL;
  length = source->n_dims == 0 ? 1 : source->shape[along];
  if (gtorch_dtype_kind (repeats->dtype) != GTORCH_KIND_INT || repeats->n_dims > 1
      || (repeats->numel != 1 && repeats->numel != length))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("repeat_interleave: repeats of dtype %s and shape %s must be one integer, or "
                      "one for each of the %" PRId64 " elements of dim %u"),
                   gtorch_dtype_get_name (repeats->dtype), gtorch_impl_shape_str (repeats), length,
                   along);
      return NULL;
    }
  wide = gtorch_op_expand (repeats, &length, 1, error);
  total = wide != NULL ? count_repeats (wide, error) : -1;
  ends = total >= 0 ? gtorch_op_cumsum (wide, 0, GTORCH_DTYPE_NONE, error) : NULL;
  places = ends != NULL ? gtorch_op_arange (0, total, 1, GTORCH_DTYPE_INT64,
                                            gtorch_impl_device (source), error)
                        : NULL;
  index = places != NULL ? gtorch_op_search_places (ends, places, TRUE, error) : NULL;
  return index != NULL ? gtorch_op_index_select (source, along, index, error) : NULL;
}

/* --- products along chosen dimensions --- */

/* Views self as a matrix with the chosen dimensions last (or first), and appends the sizes of the others
 * to shape. */
static GTorchImpl *
as_matrix (GTorchImpl *self, const gint64 *dims, gsize n_dims, gboolean chosen_last, gint64 *shape,
           guint *n, GError **error)
{
  g_autoptr (GTorchImpl) turned = NULL;
  gint64 order[GTORCH_MAX_DIMS], rest[GTORCH_MAX_DIMS], inner = 1, outer = 1, matrix[2];
  gboolean is_chosen[GTORCH_MAX_DIMS] = { FALSE };
  guint i, dim, n_rest = 0;

  for (i = 0; i < n_dims; i++)
    {
      if (!gtorch_normalize_dim ("tensordot", dims[i], self->n_dims, &dim, error))
        return NULL;
      if (is_chosen[dim] || self->n_dims == 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("tensordot: dim %u of shape %s is given twice, or does not exist"), dim,
                       gtorch_impl_shape_str (self));
          return NULL;
        }
      is_chosen[dim] = TRUE;
      order[(chosen_last ? self->n_dims - n_dims : 0) + i] = dim;
      inner *= self->shape[dim];
    }
  for (dim = 0; dim < self->n_dims; dim++)
    if (!is_chosen[dim])
      {
        order[(chosen_last ? 0 : n_dims) + n_rest] = dim;
        rest[n_rest++] = self->shape[dim];
        outer *= self->shape[dim];
      }
  if (*n + n_rest > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("tensordot: the result would have more than %d dimensions"), GTORCH_MAX_DIMS);
      return NULL;
    }
  for (i = 0; i < n_rest; i++)
    shape[(*n)++] = rest[i];
  turned = gtorch_op_permute (self, order, self->n_dims, error);
  matrix[chosen_last ? 1 : 0] = inner;
  matrix[chosen_last ? 0 : 1] = outer;
  return turned != NULL ? gtorch_op_reshape (turned, matrix, 2, error) : NULL;
}

/* Sums over a dimension that is multiplied by one of size 1, and keeps it. */
static gboolean
sum_along (GTorchImpl **impl, guint dim, GError **error)
{
  const gint64 along = dim;
  GTorchImpl *sum = gtorch_op_sum (*impl, &along, 1, TRUE, (*impl)->dtype, error);

  if (sum == NULL)
    return FALSE;
  gtorch_impl_unref (*impl);
  *impl = sum;
  return TRUE;
}

GTorchImpl *
gtorch_composite_tensordot (GTorchImpl *self, GTorchImpl *other, const gint64 *dims_self,
                            gsize n_dims_self, const gint64 *dims_other, gsize n_dims_other,
                            GError **error)
{
  g_autoptr (GTorchImpl) first = gtorch_impl_ref (self);
  g_autoptr (GTorchImpl) second = gtorch_impl_ref (other);
  g_autoptr (GTorchImpl) left = NULL;
  g_autoptr (GTorchImpl) right = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint a, b, n = 0;
  gsize i;

  if (n_dims_self != n_dims_other || n_dims_self > self->n_dims || n_dims_other > other->n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("tensordot: %zu dimensions of shape %s and %zu of shape %s: there must be "
                      "equally many of both, and not more than "
                      "the shapes have"),
                   n_dims_self, gtorch_impl_shape_str (self), n_dims_other,
                   gtorch_impl_shape_str (other));
      return NULL;
    }
  for (i = 0; i < n_dims_self; i++)
    {
      if (!gtorch_normalize_dim ("tensordot", dims_self[i], self->n_dims, &a, error)
          || !gtorch_normalize_dim ("tensordot", dims_other[i], other->n_dims, &b, error))
        return NULL;
      if (self->shape[a] == other->shape[b])
        continue;
      if (self->shape[a] == 1 ? !sum_along (&second, b, error)
                              : other->shape[b] == 1 && !sum_along (&first, a, error))
        return NULL;
      if (self->shape[a] != 1 && other->shape[b] != 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("tensordot: dim %u of shape %s and dim %u of shape %s must be of one "
                          "size, or one of them of size 1"),
                       a, gtorch_impl_shape_str (self), b, gtorch_impl_shape_str (other));
          return NULL;
        }
    }
  left = as_matrix (first, dims_self, n_dims_self, TRUE, shape, &n, error);
  right =
      left != NULL ? as_matrix (second, dims_other, n_dims_other, FALSE, shape, &n, error) : NULL;
  product = right != NULL ? gtorch_op_mm (left, right, error) : NULL;
  return product != NULL ? gtorch_op_reshape (product, shape, n, error) : NULL;
}
