/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists of tensors that are made one from each of another list, or one for each dimension. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-dtype-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

GTorchImpl *
gtorch_impl_itself (GTorchImpl *self, GError **error)
{
  return self->storage != NULL ? gtorch_impl_ref (self) : gtorch_op_view_as_is (self, error);
}

/* Releases the list if the tensor is NULL. */
static gboolean
list_add (GPtrArray **list, GTorchImpl *tensor)
{
  if (tensor != NULL)
    g_ptr_array_add (*list, tensor);
  else
    g_clear_pointer (list, g_ptr_array_unref);
  return tensor != NULL;
}

static GPtrArray *
apply (GTorchImpl *const *tensors, gsize n, GTorchImpl *(*function) (GTorchImpl *, GError **),
       GError **error)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  gsize i;

  for (i = 0; i < n; i++)
    {
      GTorchImpl *made = function (tensors[i], error);

      if (made == tensors[i]) /* each of the results has a history of its own */
        {
          gtorch_impl_unref (made);
          made = gtorch_op_view_as_is (tensors[i], error);
        }
      if (!list_add (&list, made))
        break;
    }
  return list;
}

/* Takes the list of views and gives one of copies. */
static GPtrArray *
copies_of (GPtrArray *views, GError **error)
{
  GPtrArray *list = NULL;

  if (views == NULL)
    return NULL;
  list = apply ((GTorchImpl **) views->pdata, views->len, gtorch_op_clone, error);
  g_ptr_array_unref (views);
  return list;
}

/* --- at least so many dimensions --- */

/* Gives the tensor the shape with as many elements; a tensor that has enough dimensions is as it is. */
static GTorchImpl *
with_shape (GTorchImpl *self, const gint64 *shape, guint n_dims, GError **error)
{
  return self->n_dims >= n_dims ? gtorch_impl_itself (self, error)
                                : gtorch_op_reshape (self, shape, n_dims, error);
}

GTorchImpl *
gtorch_op_atleast_1d (GTorchImpl *self, GError **error)
{
  return with_shape (self, (const gint64[]){ 1 }, 1, error);
}

GTorchImpl *
gtorch_op_atleast_2d (GTorchImpl *self, GError **error)
{
  return with_shape (self, (const gint64[]){ 1, self->numel }, 2, error);
}

GTorchImpl *
gtorch_op_atleast_3d (GTorchImpl *self, GError **error)
{
  if (self->n_dims == 2)
    return gtorch_op_unsqueeze (self, 2, error);
  return with_shape (self, (const gint64[]){ 1, self->numel, 1 }, 3, error);
}

GPtrArray *
gtorch_op_atleast_1d_list (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return apply (tensors, n, gtorch_op_atleast_1d, error);
}

GPtrArray *
gtorch_op_atleast_2d_list (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return apply (tensors, n, gtorch_op_atleast_2d, error);
}

GPtrArray *
gtorch_op_atleast_3d_list (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return apply (tensors, n, gtorch_op_atleast_3d, error);
}

/* --- copies of lists of views --- */

GPtrArray *
gtorch_op_unbind_copy (GTorchImpl *self, gint64 dim, GError **error)
{
  return copies_of (gtorch_op_unbind (self, dim, error), error);
}

GPtrArray *
gtorch_op_split_copy (GTorchImpl *self, gint64 split_size, gint64 dim, GError **error)
{
  return copies_of (gtorch_op_split (self, split_size, dim, error), error);
}

GPtrArray *
gtorch_op_split_with_sizes_copy (GTorchImpl *self, const gint64 *split_sizes, gsize n, gint64 dim,
                                 GError **error)
{
  return copies_of (gtorch_op_split_with_sizes (self, split_sizes, n, dim, error), error);
}

GPtrArray *
gtorch_op_unsafe_chunk (GTorchImpl *self, gint64 chunks, gint64 dim, GError **error)
{
  return gtorch_op_chunk (self, chunks, dim, error);
}

GPtrArray *
gtorch_op_unsafe_split (GTorchImpl *self, gint64 split_size, gint64 dim, GError **error)
{
  return gtorch_op_split (self, split_size, dim, error);
}

GPtrArray *
gtorch_op_unsafe_split_with_sizes (GTorchImpl *self, const gint64 *split_sizes, gsize n, gint64 dim,
                                   GError **error)
{
  return gtorch_op_split_with_sizes (self, split_sizes, n, dim, error);
}

/* --- lists with a tensor for each of the dimensions --- */

GPtrArray *
gtorch_op_broadcast_tensors (GTorchImpl *const *tensors, gsize n, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  GPtrArray *list;
  guint n_dims = 0;
  gsize i;

  for (i = 0; i < n; i++)
    if (!gtorch_broadcast_shapes ("broadcast_tensors", shape, n_dims, tensors[i]->shape,
                                  tensors[i]->n_dims, shape, &n_dims, error))
      return NULL;
  list = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  for (i = 0; i < n; i++)
    if (!list_add (&list, gtorch_op_expand (tensors[i], shape, n_dims, error)))
      break;
  return list;
}

/* Returns positions / stride % size. */
static GTorchImpl *
coordinate (GTorchImpl *positions, gint64 stride, gint64 size, GError **error)
{
  g_autoptr (GTorchImpl) divisor = gtorch_impl_new_int (stride);
  g_autoptr (GTorchImpl) modulus = gtorch_impl_new_int (size);
  g_autoptr (GTorchImpl) quotient = gtorch_op_floor_divide (positions, divisor, error);

  return quotient != NULL ? gtorch_op_remainder (quotient, modulus, error) : NULL;
}

GPtrArray *
gtorch_op_unravel_index (GTorchImpl *indices, const gint64 *shape, gsize n, GError **error)
{
  gint64 strides[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) positions = NULL;
  GPtrArray *list;
  gboolean valid = n <= GTORCH_MAX_DIMS;
  gint64 numel = 1;
  gsize i;

  for (i = n; valid && i-- > 0;)
    {
      strides[i] = numel;
      valid = shape[i] > 0 && !__builtin_mul_overflow (numel, shape[i], &numel);
    }
  if (!valid || gtorch_dtype_kind (indices->dtype) != GTORCH_KIND_INT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("unravel_index: positions of dtype %s in a tensor of shape %s: positions "
                      "must "
                      "be integers, and sizes positive, at most %d, with a product that fits into "
                      "64 bits"),
                   gtorch_dtype_get_name (indices->dtype),
                   gtorch_shape_str (shape, MIN (n, GTORCH_MAX_DIMS)), GTORCH_MAX_DIMS);
      return NULL;
    }
  positions = gtorch_op_to_dtype (indices, GTORCH_DTYPE_INT64, error);
  if (positions == NULL)
    return NULL;
  list = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  for (i = 0; i < n; i++)
    if (!list_add (&list, coordinate (positions, strides[i], shape[i], error)))
      break;
  return list;
}
