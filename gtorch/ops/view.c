/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Views: each shape function computes sizes and strides over the same storage. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-ops-private.h"

#define SELF(call) ((call)->inputs[0])

static gboolean
set_view (GTorchOpCall *call, gint64 offset, const gint64 *shape, const gint64 *strides,
          guint n_dims)
{
  call->outputs[0] = gtorch_impl_new_view (SELF (call), offset, shape, strides, n_dims);
  return TRUE;
}

static gboolean
too_many_dims (GTorchOpCall *call, gsize n_dims, GError **error)
{
  if (n_dims <= GTORCH_MAX_DIMS)
    return FALSE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("%zu dimensions are more than the %d that a tensor can have"), n_dims,
                     GTORCH_MAX_DIMS);
  return TRUE;
}

/* Replaces a -1 in shape by the size that makes up numel. */
static gboolean
infer_size (const gchar *op, GTorchImpl *self, const gint64 *wanted, gsize n_dims, gint64 *shape,
            GError **error)
{
  gint64 known = 1;
  gint inferred = -1;
  gsize i;

  for (i = 0; i < n_dims; i++)
    {
      shape[i] = wanted[i];
      if (wanted[i] == -1 && inferred < 0)
        inferred = i;
      else if (wanted[i] < 0 || __builtin_mul_overflow (known, wanted[i], &known))
        goto wrong;
    }
  if (inferred >= 0)
    {
      if (known == 0 || self->numel % known != 0)
        goto wrong;
      shape[inferred] = self->numel / known;
      known *= shape[inferred];
    }
  if (known == self->numel)
    return TRUE;

wrong:
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: shape %s does not fit the %" PRId64 " elements of a tensor of shape %s"), op,
               gtorch_shape_str (wanted, n_dims), self->numel, gtorch_impl_shape_str (self));
  return FALSE;
}

/* Computes the strides that view self as shape, or returns FALSE if there are none. Dimensions of self
 * that are contiguous with each other form groups; each group must be divided into whole dimensions of
 * shape. */
static gboolean
view_strides (GTorchImpl *self, const gint64 *shape, guint n_dims, gint64 *strides)
{
  gint64 group_stride, group_numel = 1, view_numel = 1;
  gint view_dim = (gint) n_dims - 1;
  gint i;

  if (self->numel == 0 || self->is_contiguous)
    {
      gtorch_contiguous_strides (shape, n_dims, strides);
      return TRUE;
    }
  group_stride = self->strides[self->n_dims - 1];
  for (i = (gint) self->n_dims - 1; i >= 0; i--)
    {
      group_numel *= self->shape[i];
      if (i > 0 && (self->shape[i - 1] == 1 || self->strides[i - 1] == group_numel * group_stride))
        continue;
      while (view_dim >= 0 && (view_numel < group_numel || shape[view_dim] == 1))
        {
          strides[view_dim] = view_numel * group_stride;
          view_numel *= shape[view_dim];
          view_dim--;
        }
      if (view_numel != group_numel)
        return FALSE;
      if (i > 0)
        {
          group_stride = self->strides[i - 1];
          group_numel = 1;
          view_numel = 1;
        }
    }
  return view_dim < 0;
}

gboolean
gtorch_shape_view (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *wanted = &call->attrs[0];
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];

  if (too_many_dims (call, wanted->list.n, error)
      || !infer_size ("view", SELF (call), wanted->list.data, wanted->list.n, shape, error)
      || !gtorch_shape_check ("view", shape, wanted->list.n, SELF (call)->dtype, error))
    return FALSE;
  if (!view_strides (SELF (call), shape, wanted->list.n, strides))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("a tensor of shape %s and strides %s cannot be viewed as %s without a "
                            "copy: use reshape"),
                         gtorch_impl_shape_str (SELF (call)),
                         gtorch_shape_str (SELF (call)->strides, SELF (call)->n_dims),
                         gtorch_shape_str (shape, wanted->list.n));
      return FALSE;
    }
  return set_view (call, SELF (call)->offset, shape, strides, wanted->list.n);
}

GTorchImpl *
gtorch_op_reshape (GTorchImpl *self, const gint64 *wanted, gsize n_dims, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) copy = NULL;

  if (self->storage == NULL || n_dims > GTORCH_MAX_DIMS)
    return gtorch_op_view (self, wanted, n_dims, error); /* fails with the right error */
  if (!infer_size ("reshape", self, wanted, n_dims, shape, error))
    return NULL;
  if (gtorch_same_shape (shape, n_dims, self->shape, self->n_dims))
    return gtorch_op_view_as_is (self, error);
  if (view_strides (self, shape, n_dims, strides))
    return gtorch_op_view (self, shape, n_dims, error);
  copy = gtorch_op_clone (self, error);
  return copy != NULL ? gtorch_op_view (copy, shape, n_dims, error) : NULL;
}

gboolean
gtorch_shape_view_as_is (GTorchOpCall *call, GError **error)
{
  call->outputs[0] = gtorch_impl_alias (SELF (call));
  call->outputs[0]->is_number = FALSE;
  return TRUE;
}

gboolean
gtorch_shape_permute (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  const GTorchAttr *dims = &call->attrs[0];
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint64 seen;
  guint i, dim;

  if (dims->list.n != self->n_dims)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("dims %s must name each of the %u dimensions of shape %s once"),
                         gtorch_shape_str (dims->list.data, dims->list.n), self->n_dims,
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (self->n_dims > 0
      && !gtorch_normalize_dims ("permute", dims->list.data, dims->list.n, self->n_dims, &seen,
                                 error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    {
      gtorch_normalize_dim ("permute", dims->list.data[i], self->n_dims, &dim, NULL);
      shape[i] = self->shape[dim];
      strides[i] = self->strides[dim];
    }
  return set_view (call, self->offset, shape, strides, self->n_dims);
}

gboolean
gtorch_grad_permute (GTorchGradContext *context, GError **error)
{
  const GTorchAttr *dims = &context->attrs[0];
  gint64 inverse[GTORCH_MAX_DIMS];
  gsize i;

  for (i = 0; i < dims->list.n; i++)
    inverse[dims->list.data[i] < 0 ? dims->list.data[i] + (gint64) dims->list.n
                                   : dims->list.data[i]] = i;
  context->result[0] = gtorch_op_permute (context->grads[0], inverse, dims->list.n, error);
  return context->result[0] != NULL;
}

static gboolean
exchange (GTorchOpCall *call, guint dim0, guint dim1)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];

  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  memcpy (strides, self->strides, self->n_dims * sizeof (gint64));
  if (self->n_dims > 0)
    {
      shape[dim0] = self->shape[dim1];
      shape[dim1] = self->shape[dim0];
      strides[dim0] = self->strides[dim1];
      strides[dim1] = self->strides[dim0];
    }
  return set_view (call, self->offset, shape, strides, self->n_dims);
}

gboolean
gtorch_shape_transpose (GTorchOpCall *call, GError **error)
{
  guint n_dims = SELF (call)->n_dims;
  guint dim0, dim1;

  return gtorch_normalize_dim ("transpose", call->attrs[0].i, n_dims, &dim0, error)
         && gtorch_normalize_dim ("transpose", call->attrs[1].i, n_dims, &dim1, error)
         && exchange (call, dim0, dim1);
}

gboolean
gtorch_shape_t (GTorchOpCall *call, GError **error)
{
  guint n_dims = SELF (call)->n_dims;

  if (n_dims > 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shape %s has more than two dimensions"),
                         gtorch_impl_shape_str (SELF (call)));
      return FALSE;
    }
  return exchange (call, 0, n_dims == 2 ? 1 : 0);
}

gboolean
gtorch_shape_expand (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  const GTorchAttr *wanted = &call->attrs[0];
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  gsize i, lead;

  if (too_many_dims (call, wanted->list.n, error))
    return FALSE;
  if (wanted->list.n < self->n_dims)
    goto wrong;
  lead = wanted->list.n - self->n_dims;
  for (i = 0; i < wanted->list.n; i++)
    {
      gint64 size = wanted->list.data[i];

      if (i < lead)
        {
          if (size < 0)
            goto wrong;
          shape[i] = size;
          strides[i] = 0;
          continue;
        }
      shape[i] = size == -1 ? self->shape[i - lead] : size;
      strides[i] = self->strides[i - lead];
      if (shape[i] != self->shape[i - lead])
        {
          if (self->shape[i - lead] != 1 || shape[i] < 0)
            goto wrong;
          strides[i] = 0;
        }
    }
  return gtorch_shape_check ("expand", shape, wanted->list.n, self->dtype, error)
         && set_view (call, self->offset, shape, strides, wanted->list.n);

wrong:
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("shape %s cannot become %s: only dimensions of size 1 and new leading ones "
                        "can grow"),
                     gtorch_impl_shape_str (self),
                     gtorch_shape_str (wanted->list.data, wanted->list.n));
  return FALSE;
}

gboolean
gtorch_shape_squeeze (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint64 mask;
  guint i, n = 0;

  if (!gtorch_normalize_dims ("squeeze", call->attrs[0].list.data, call->attrs[0].list.n,
                              self->n_dims, &mask, error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (self->shape[i] != 1 || !(mask & (G_GUINT64_CONSTANT (1) << i)))
      {
        shape[n] = self->shape[i];
        strides[n++] = self->strides[i];
      }
  return set_view (call, self->offset, shape, strides, n);
}

gboolean
gtorch_shape_unsqueeze (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS + 1], strides[GTORCH_MAX_DIMS + 1];
  guint i, dim;

  if (too_many_dims (call, self->n_dims + 1, error)
      || !gtorch_normalize_dim ("unsqueeze", call->attrs[0].i, self->n_dims + 1, &dim, error))
    return FALSE;
  for (i = 0; i <= self->n_dims; i++)
    {
      guint from = i < dim ? i : i - 1;

      shape[i] = i == dim ? 1 : self->shape[from];
      strides[i] = i == dim ? (dim < self->n_dims ? self->shape[dim] * self->strides[dim] : 1)
                            : self->strides[from];
    }
  return set_view (call, self->offset, shape, strides, self->n_dims + 1);
}

GTorchImpl *
gtorch_op_flatten (GTorchImpl *self, gint64 start_dim, gint64 end_dim, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint start, end, i, n = 0;

  if (!gtorch_normalize_dim ("flatten", start_dim, self->n_dims, &start, error)
      || !gtorch_normalize_dim ("flatten", end_dim, self->n_dims, &end, error))
    return NULL;
  if (start > end)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("flatten: start_dim %" PRId64 " comes after end_dim %" PRId64), start_dim,
                   end_dim);
      return NULL;
    }
  for (i = 0; i < start; i++)
    shape[n++] = self->shape[i];
  shape[n] = 1;
  for (i = start; i <= end && i < self->n_dims; i++)
    shape[n] *= self->shape[i];
  n++;
  for (i = end + 1; i < self->n_dims; i++)
    shape[n++] = self->shape[i];
  return gtorch_op_reshape (self, shape, n, error);
}

gboolean
gtorch_shape_select (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  gint64 index = call->attrs[1].i;
  guint dim, i, n = 0;

  if (self->n_dims == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                         _ ("a tensor without dimensions has no index %" PRId64), index);
      return FALSE;
    }
  if (!gtorch_normalize_dim ("select", call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (index < -self->shape[dim] || index >= self->shape[dim])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                         _ ("index %" PRId64 " is out of range for dimension %u of shape %s"),
                         index, dim, gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (index < 0)
    index += self->shape[dim];
  for (i = 0; i < self->n_dims; i++)
    if (i != dim)
      {
        shape[n] = self->shape[i];
        strides[n++] = self->strides[i];
      }
  return set_view (call, self->offset + index * self->strides[dim], shape, strides, n);
}

/* Clamps a slice by Python's rule: negative positions count from the end, then both are clamped to [0,
 * size]. */
static void
clamp_slice (gint64 size, gint64 *start, gint64 *end)
{
  if (*start < 0)
    *start = MAX (*start + size, 0);
  if (*end < 0)
    *end = MAX (*end + size, 0);
  *start = MIN (*start, size);
  *end = CLAMP (*end, *start, size);
}

gboolean
gtorch_shape_slice (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  gint64 start = call->attrs[1].i, end = call->attrs[2].i, step = call->attrs[3].i;
  guint dim;

  if (self->n_dims == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                         _ ("a tensor without dimensions cannot be sliced"));
      return FALSE;
    }
  if (!gtorch_normalize_dim ("slice", call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (step <= 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("step %" PRId64 " is not positive"),
                         step);
      return FALSE;
    }
  clamp_slice (self->shape[dim], &start, &end);
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  memcpy (strides, self->strides, self->n_dims * sizeof (gint64));
  shape[dim] = start == end ? 0 : (end - start - 1) / step + 1;
  if (__builtin_mul_overflow (strides[dim], step, &strides[dim]))
    strides[dim] = self->strides[dim]; /* with such a step at most one element is left */
  return set_view (call, self->offset + start * self->strides[dim], shape, strides, self->n_dims);
}

GTorchImpl *
gtorch_op_narrow (GTorchImpl *self, gint64 dim, gint64 start, gint64 length, GError **error)
{
  gint64 from = start;
  guint index;

  if (!gtorch_normalize_dim ("narrow", dim, self->n_dims, &index, error))
    return NULL;
  if (self->n_dims > 0 && from < 0)
    from += self->shape[index];
  if (self->n_dims == 0 || length < 0 || from < 0 || length > self->shape[index] - from)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("narrow: start %" PRId64 " and length %" PRId64
                      " exceed dimension %u of shape %s"),
                   start, length, index, gtorch_impl_shape_str (self));
      return NULL;
    }
  return gtorch_op_slice (self, index, from, from + length, 1, error);
}

gboolean
gtorch_shape_diagonal (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  gint64 offset = call->attrs[0].i, length, start = self->offset;
  guint dim1, dim2, i, n = 0;

  if (!gtorch_normalize_dim ("diagonal", call->attrs[1].i, self->n_dims, &dim1, error)
      || !gtorch_normalize_dim ("diagonal", call->attrs[2].i, self->n_dims, &dim2, error))
    return FALSE;
  if (dim1 == dim2 || self->n_dims < 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("two different dimensions of shape %s are needed"),
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (offset >= 0)
    length = MIN (self->shape[dim1], offset < self->shape[dim2] ? self->shape[dim2] - offset : 0);
  else
    length = MIN (offset > -self->shape[dim1] ? self->shape[dim1] + offset : 0, self->shape[dim2]);
  if (length > 0)
    start += offset >= 0 ? offset * self->strides[dim2] : -offset * self->strides[dim1];
  for (i = 0; i < self->n_dims; i++)
    if (i != dim1 && i != dim2)
      {
        shape[n] = self->shape[i];
        strides[n++] = self->strides[i];
      }
  shape[n] = length;
  strides[n++] = self->strides[dim1] + self->strides[dim2];
  return set_view (call, start, shape, strides, n);
}

gboolean
gtorch_shape_unfold (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = SELF (call);
  gint64 shape[GTORCH_MAX_DIMS + 1], strides[GTORCH_MAX_DIMS + 1];
  gint64 size = call->attrs[1].i, step = call->attrs[2].i;
  gint64 length;
  guint dim, n = self->n_dims;

  if (too_many_dims (call, n + 1, error)
      || !gtorch_normalize_dim ("unfold", call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  length = n > 0 ? self->shape[dim] : 1;
  if (size < 0 || size > length || step <= 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("windows of %" PRId64 " elements, %" PRId64
                            " apart, do not fit dimension %u of shape %s"),
                         size, step, dim, gtorch_impl_shape_str (self));
      return FALSE;
    }
  memcpy (shape, self->shape, n * sizeof (gint64));
  memcpy (strides, self->strides, n * sizeof (gint64));
  shape[n] = size;
  strides[n] = n > 0 ? self->strides[dim] : 1;
  if (n > 0)
    {
      shape[dim] = (length - size) / step + 1;
      if (shape[dim] > 1)
        strides[dim] *= step;
    }
  return gtorch_shape_check ("unfold", shape, n + 1, self->dtype, error)
         && set_view (call, self->offset, shape, strides, n + 1);
}
