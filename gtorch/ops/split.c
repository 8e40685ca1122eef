/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Views composed of other views, and lists of views. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "tensor/gtorch-uninitialized-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

/* Creates a list for n views, or fails if there is no memory for the impls and their tensor objects. */
static GPtrArray *
list_new (const gchar *op, gint64 n, GError **error)
{
  if (gtorch_scratch_check (n, 2 * sizeof (GTorchImpl), error) && n <= G_MAXUINT32)
    return g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_clear_error (error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               _ ("%s: %" PRId64 " tensors are more than fit into memory"), op, n);
  return NULL;
}

/* Parts without elements take memory and time as others do, and a number alone would ask for any number of
 * them. */
#define MAX_EMPTY 65536

static gboolean
check_parts (const gchar *op, gint64 n, const GTorchImpl *self, guint dim, GError **error)
{
  if (n > 0 && n <= MAX (self->shape[dim], MAX_EMPTY))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %" PRId64
                  " parts of dimension %u of shape %s: there must be at least 1, and at most as "
                  "many as it has elements, or %d if some are empty"),
               op, n, dim, gtorch_impl_shape_str (self), MAX_EMPTY);
  return FALSE;
}

/* Appends view, or frees the list if view is NULL. */
static gboolean
list_add (GPtrArray **list, GTorchImpl *view)
{
  if (view != NULL)
    g_ptr_array_add (*list, view);
  else
    g_clear_pointer (list, g_ptr_array_unref);
  return view != NULL;
}

static gboolean
has_dim (const gchar *op, GTorchImpl *self, gint64 wanted, guint *dim, GError **error)
{
  if (self->n_dims > 0)
    return gtorch_normalize_dim (op, wanted, self->n_dims, dim, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: a tensor without dimensions cannot be cut"), op);
  return FALSE;
}

GPtrArray *
gtorch_op_unbind (GTorchImpl *self, gint64 wanted, GError **error)
{
  GPtrArray *list;
  gint64 i;
  guint dim;

  if (!has_dim ("unbind", self, wanted, &dim, error))
    return NULL;
  list = list_new ("unbind", self->shape[dim], error);
  for (i = 0; list != NULL && i < self->shape[dim]; i++)
    if (!list_add (&list, gtorch_op_select (self, dim, i, error)))
      break;
  return list;
}

static GPtrArray *
split_evenly (const gchar *op, GTorchImpl *self, gint64 size, guint dim, GError **error)
{
  gint64 start = 0, total = self->shape[dim];
  GPtrArray *list = list_new (op, total > 0 ? (total - 1) / size + 1 : 1, error);

  if (list == NULL)
    return NULL;
  do
    {
      gint64 end = size < total - start ? start + size : total;

      if (!list_add (&list, gtorch_op_slice (self, dim, start, end, 1, error)))
        break;
      start = end;
    }
  while (start < total);
  return list;
}

GPtrArray *
gtorch_op_split (GTorchImpl *self, gint64 split_size, gint64 wanted, GError **error)
{
  guint dim;

  if (!has_dim ("split", self, wanted, &dim, error))
    return NULL;
  if (split_size < 0 || (split_size == 0 && self->shape[dim] > 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("split: parts of size %" PRId64 " do not make up dimension %u of shape %s"),
                   split_size, dim, gtorch_impl_shape_str (self));
      return NULL;
    }
  return split_evenly ("split", self, split_size, dim, error);
}

GPtrArray *
gtorch_op_split_with_sizes (GTorchImpl *self, const gint64 *sizes, gsize n, gint64 wanted,
                            GError **error)
{
  GPtrArray *list;
  gint64 start = 0;
  gboolean valid = TRUE;
  guint dim;
  gsize i;

  if (!has_dim ("split_with_sizes", self, wanted, &dim, error))
    return NULL;
  for (i = 0; i < n && valid; i++)
    valid = sizes[i] >= 0 && !__builtin_add_overflow (start, sizes[i], &start);
  if (!valid || start != self->shape[dim])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("split_with_sizes: sizes %s do not make up dimension %u of shape %s"),
                   gtorch_shape_str (sizes, n), dim, gtorch_impl_shape_str (self));
      return NULL;
    }
  list = list_new ("split_with_sizes", n, error);
  for (i = 0, start = 0; list != NULL && i < n; start += sizes[i++])
    if (!list_add (&list, gtorch_op_slice (self, dim, start, start + sizes[i], 1, error)))
      break;
  return list;
}

GPtrArray *
gtorch_op_chunk (GTorchImpl *self, gint64 chunks, gint64 wanted, GError **error)
{
  GPtrArray *list;
  gint64 i;
  guint dim;

  if (!has_dim ("chunk", self, wanted, &dim, error))
    return NULL;
  if (chunks > 0 && self->shape[dim] > 0)
    return split_evenly ("chunk", self, (self->shape[dim] - 1) / chunks + 1, dim, error);
  if (!check_parts ("chunk", chunks, self, dim, error))
    return NULL;
  /* as many empty views as requested, as in PyTorch */
  list = list_new ("chunk", chunks, error);
  for (i = 0; list != NULL && i < chunks; i++)
    if (!list_add (&list, gtorch_op_slice (self, dim, 0, 0, 1, error)))
      break;
  return list;
}

/* --- sections and positions --- */

GPtrArray *
gtorch_op_tensor_split (GTorchImpl *self, gint64 sections, gint64 wanted, GError **error)
{
  GPtrArray *list;
  gint64 start = 0, least, longer, i;
  guint dim;

  if (!has_dim ("tensor_split", self, wanted, &dim, error))
    return NULL;
  if (!check_parts ("tensor_split", sections, self, dim, error))
    return NULL;
  least = self->shape[dim] / sections;
  longer = self->shape[dim] % sections;
  list = list_new ("tensor_split", sections, error);
  for (i = 0; list != NULL && i < sections; i++)
    {
      gint64 end = start + least + (i < longer);

      if (!list_add (&list, gtorch_op_slice (self, dim, start, end, 1, error)))
        break;
      start = end;
    }
  return list;
}

/* Cuts before each position. As the ends of slices do, negative positions count from the end, and those
 * beyond an end are moved to it. */
GPtrArray *
gtorch_op_tensor_split_indices (GTorchImpl *self, const gint64 *indices, gsize n, gint64 wanted,
                                GError **error)
{
  GPtrArray *list;
  gint64 start = 0;
  guint dim;
  gsize i;

  if (!has_dim ("tensor_split", self, wanted, &dim, error))
    return NULL;
  list = list_new ("tensor_split", n + 1, error);
  for (i = 0; list != NULL && i <= n; i++)
    {
      gint64 end = i < n ? indices[i] : G_MAXINT64;

      if (!list_add (&list, gtorch_op_slice (self, dim, start, end, 1, error)))
        break;
      start = end;
    }
  return list;
}

/* Checks what hsplit, vsplit and dsplit have in common. */
static gboolean
can_be_cut (const gchar *op, GTorchImpl *self, guint least, guint dim, const gint64 *sections,
            GError **error)
{
  if (self->n_dims < least)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s must have at least %u dimensions"), op,
                   gtorch_impl_shape_str (self), least);
      return FALSE;
    }
  if (sections != NULL && (*sections <= 0 || self->shape[dim] % *sections != 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: dimension %u of shape %s cannot be cut into %" PRId64 " equal parts"),
                   op, dim, gtorch_impl_shape_str (self), *sections);
      return FALSE;
    }
  return sections == NULL || check_parts (op, *sections, self, dim, error);
}

GPtrArray *
gtorch_op_hsplit (GTorchImpl *self, gint64 sections, GError **error)
{
  guint dim = self->n_dims > 1 ? 1 : 0;

  return can_be_cut ("hsplit", self, 1, dim, &sections, error)
             ? gtorch_op_tensor_split (self, sections, dim, error)
             : NULL;
}

GPtrArray *
gtorch_op_hsplit_indices (GTorchImpl *self, const gint64 *indices, gsize n, GError **error)
{
  guint dim = self->n_dims > 1 ? 1 : 0;

  return can_be_cut ("hsplit", self, 1, dim, NULL, error)
             ? gtorch_op_tensor_split_indices (self, indices, n, dim, error)
             : NULL;
}

GPtrArray *
gtorch_op_vsplit (GTorchImpl *self, gint64 sections, GError **error)
{
  return can_be_cut ("vsplit", self, 2, 0, &sections, error)
             ? gtorch_op_tensor_split (self, sections, 0, error)
             : NULL;
}

GPtrArray *
gtorch_op_vsplit_indices (GTorchImpl *self, const gint64 *indices, gsize n, GError **error)
{
  return can_be_cut ("vsplit", self, 2, 0, NULL, error)
             ? gtorch_op_tensor_split_indices (self, indices, n, 0, error)
             : NULL;
}

GPtrArray *
gtorch_op_dsplit (GTorchImpl *self, gint64 sections, GError **error)
{
  return can_be_cut ("dsplit", self, 3, 2, &sections, error)
             ? gtorch_op_tensor_split (self, sections, 2, error)
             : NULL;
}

GPtrArray *
gtorch_op_dsplit_indices (GTorchImpl *self, const gint64 *indices, gsize n, GError **error)
{
  return can_be_cut ("dsplit", self, 3, 2, NULL, error)
             ? gtorch_op_tensor_split_indices (self, indices, n, 2, error)
             : NULL;
}

GPtrArray *
gtorch_op_meshgrid (GTorchImpl *const *tensors, gsize n, gboolean ij, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS], one[GTORCH_MAX_DIMS];
  GPtrArray *list;
  gsize i, d;

  if (n == 0 || n > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("meshgrid: a grid has from 1 to %d dimensions, not %u"), GTORCH_MAX_DIMS,
                   (guint) n);
      return NULL;
    }
  for (i = 0; i < n; i++)
    {
      if (tensors[i]->n_dims > 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("meshgrid: tensor %u of shape %s must have one dimension"), (guint) i,
                       gtorch_impl_shape_str (tensors[i]));
          return NULL;
        }
      shape[i] = tensors[i]->numel;
    }
  list = list_new ("meshgrid", n, error);
  for (i = 0; list != NULL && i < n; i++)
    {
      g_autoptr (GTorchImpl) line = NULL;
      g_autoptr (GTorchImpl) grid = NULL;

      for (d = 0; d < n; d++)
        one[d] = d == i ? shape[i] : 1;
      line = gtorch_op_reshape (tensors[i], one, n, error);
      grid = line != NULL ? gtorch_op_expand (line, shape, n, error) : NULL;
      if (grid != NULL && !ij && n > 1)
        {
          GTorchImpl *turned = gtorch_op_transpose (grid, 0, 1, error);

          gtorch_impl_unref (grid);
          grid = turned;
        }
      if (!list_add (&list, g_steal_pointer (&grid)))
        break;
    }
  return list;
}

/* --- views composed of other views --- */

GTorchImpl *
gtorch_op_view_as (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  return gtorch_impl_check_memory (other, "view_as", error)
             ? gtorch_op_view (self, other->shape, other->n_dims, error)
             : NULL;
}

GTorchImpl *
gtorch_op_reshape_as (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  return gtorch_impl_check_memory (other, "reshape_as", error)
             ? gtorch_op_reshape (self, other->shape, other->n_dims, error)
             : NULL;
}

GTorchImpl *
gtorch_op_expand_as (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  return gtorch_impl_check_memory (other, "expand_as", error)
             ? gtorch_op_expand (self, other->shape, other->n_dims, error)
             : NULL;
}

GTorchImpl *
gtorch_op_movedim (GTorchImpl *self, const gint64 *source, gsize n, const gint64 *destination,
                   gsize n_destination, GError **error)
{
  gint64 dims[GTORCH_MAX_DIMS];
  guint64 from = 0, to = 0;
  guint i, next = 0, a, b;

  if (n != n_destination)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("movedim: source %s and destination %s must be of one length"),
                   gtorch_shape_str (source, n), gtorch_shape_str (destination, n_destination));
      return NULL;
    }
  if (n > 0
      && (!gtorch_normalize_dims ("movedim", source, n, self->n_dims, &from, error)
          || !gtorch_normalize_dims ("movedim", destination, n, self->n_dims, &to, error)))
    return NULL;
  for (i = 0; i < self->n_dims; i++)
    if (!(to & (G_GUINT64_CONSTANT (1) << i)))
      {
        while (from & (G_GUINT64_CONSTANT (1) << next))
          next++;
        dims[i] = next++;
      }
  for (i = 0; i < n && self->n_dims > 0; i++)
    {
      gtorch_normalize_dim ("movedim", source[i], self->n_dims, &a, NULL);
      gtorch_normalize_dim ("movedim", destination[i], self->n_dims, &b, NULL);
      dims[b] = a;
    }
  return gtorch_op_permute (self, dims, self->n_dims, error);
}

GTorchImpl *
gtorch_op_unflatten (GTorchImpl *self, gint64 wanted, const gint64 *sizes, gsize n, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 known = 1;
  gint inferred = -1;
  guint dim;
  gsize i;

  if (!has_dim ("unflatten", self, wanted, &dim, error))
    return NULL;
  if (n == 0 || n + self->n_dims - 1 > GTORCH_MAX_DIMS)
    goto wrong;
  memcpy (shape, self->shape, dim * sizeof (gint64));
  memcpy (shape + dim, sizes, n * sizeof (gint64));
  memcpy (shape + dim + n, self->shape + dim + 1, (self->n_dims - dim - 1) * sizeof (gint64));
  for (i = 0; i < n; i++)
    if (sizes[i] == -1 && inferred < 0)
      inferred = dim + i;
    else if (sizes[i] < 0 || __builtin_mul_overflow (known, sizes[i], &known))
      goto wrong;
  if (inferred >= 0 && known > 0 && self->shape[dim] % known == 0)
    {
      shape[inferred] = self->shape[dim] / known;
      known = self->shape[dim];
    }
  else if (inferred >= 0)
    goto wrong;
  if (known == self->shape[dim])
    return gtorch_op_view (self, shape, n + self->n_dims - 1, error);

wrong:
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("unflatten: sizes %s do not make up dimension %u of shape %s"),
               gtorch_shape_str (sizes, n), dim, gtorch_impl_shape_str (self));
  return NULL;
}

GTorchImpl *
gtorch_op_as_strided (GTorchImpl *self, const gint64 *size, gsize n, const gint64 *stride,
                      gsize n_stride, gint64 storage_offset, GError **error)
{
  gint64 offset = storage_offset == GTORCH_NONE ? self->offset : storage_offset;
  gint64 last = offset, reach, available;
  gboolean fits, empty = FALSE;
  gsize i;

  if (n != n_stride)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("as_strided: size %s and stride %s must be of one length"),
                   gtorch_shape_str (size, n), gtorch_shape_str (stride, n_stride));
      return NULL;
    }
  if (!gtorch_shape_check ("as_strided", size, n, self->dtype, error))
    return NULL;
  if (self->storage == NULL)
    return gtorch_op_view_as_is (self, error); /* fails with the right error */
  available = (gint64) (self->storage->n_bytes / gtorch_dtype_size (self->dtype));
  for (i = 0; i < n; i++)
    empty |= size[i] == 0;
  fits = offset >= 0;
  for (i = 0; i < n && fits; i++)
    fits = stride[i] >= 0
           && (empty
               || (!__builtin_mul_overflow (size[i] - 1, stride[i], &reach)
                   && !__builtin_add_overflow (last, reach, &last)));
  if (!fits || (empty ? last > available : last >= available))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("as_strided: size %s, stride %s and offset %" PRId64
                      " reach beyond the storage of %" PRId64 " elements"),
                   gtorch_shape_str (size, n), gtorch_shape_str (stride, n), offset, available);
      return NULL;
    }
  return gtorch_op_strided_view (self, size, n, stride, n, offset, self->strides, self->n_dims,
                                 self->offset, error);
}

gboolean
gtorch_shape_strided_view (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *size = &call->attrs[0];

  if (!gtorch_shape_check (call->op->name, size->list.data, size->list.n, call->inputs[0]->dtype,
                           error))
    return FALSE;
  call->outputs[0] = gtorch_impl_new_view (call->inputs[0], call->attrs[2].i, size->list.data,
                                           call->attrs[1].list.data, size->list.n);
  return TRUE;
}
