/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Padding, and copies in which a part is replaced. Both write into views of a new tensor; the engine
 * differentiates that like other changes in place. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"

/* Writes src to part, a view of copy, and returns copy. Takes both references; they may be NULL. */
static GTorchImpl *
with_part (const gchar *op, GTorchImpl *copy, GTorchImpl *part, GTorchImpl *src, GError **error)
{
  gboolean written = FALSE;

  if (part != NULL && !gtorch_impl_same_shape (part, src))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: src has shape %s, the part that it replaces %s: both must be the same"),
                 op, gtorch_impl_shape_str (src), gtorch_impl_shape_str (part));
  else if (part != NULL)
    written = gtorch_op_copy_inplace (part, src, FALSE, error);
  g_clear_pointer (&part, gtorch_impl_unref);
  if (!written)
    g_clear_pointer (&copy, gtorch_impl_unref);
  return copy;
}

GTorchImpl *
gtorch_op_diagonal_scatter (GTorchImpl *self, GTorchImpl *src, gint64 offset, gint64 dim1,
                            gint64 dim2, GError **error)
{
  GTorchImpl *copy = gtorch_op_clone (self, error);
  GTorchImpl *part = copy != NULL ? gtorch_op_diagonal (copy, offset, dim1, dim2, error) : NULL;

  return with_part ("diagonal_scatter", copy, part, src, error);
}

GTorchImpl *
gtorch_op_select_scatter (GTorchImpl *self, GTorchImpl *src, gint64 dim, gint64 index,
                          GError **error)
{
  GTorchImpl *copy = gtorch_op_clone (self, error);
  GTorchImpl *part = copy != NULL ? gtorch_op_select (copy, dim, index, error) : NULL;

  return with_part ("select_scatter", copy, part, src, error);
}

GTorchImpl *
gtorch_op_slice_scatter (GTorchImpl *self, GTorchImpl *src, gint64 dim, gint64 start, gint64 end,
                         gint64 step, GError **error)
{
  GTorchImpl *copy = gtorch_op_clone (self, error);
  GTorchImpl *part = copy != NULL ? gtorch_op_slice (copy, dim, start, end, step, error) : NULL;

  return with_part ("slice_scatter", copy, part, src, error);
}

/* Copies all of the storage, so that what as_strided finds beside self is there, too. */
static GTorchImpl *
clone_with_strides (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) copy = NULL;
  gint64 length;

  if (self->storage == NULL || gtorch_impl_overlaps_itself (self))
    return gtorch_op_clone (self, error);
  length = self->storage->n_bytes / gtorch_dtype_size (self->dtype);
  whole = gtorch_op_as_strided (self, &length, 1, (const gint64[]){ 1 }, 1, 0, error);
  copy = whole != NULL ? gtorch_op_clone (whole, error) : NULL;
  return copy != NULL ? gtorch_op_as_strided (copy, self->shape, self->n_dims, self->strides,
                                              self->n_dims, self->offset, error)
                      : NULL;
}

GTorchImpl *
gtorch_op_as_strided_scatter (GTorchImpl *self, GTorchImpl *src, const gint64 *size, gsize n,
                              const gint64 *stride, gsize n_stride, gint64 storage_offset,
                              GError **error)
{
  GTorchImpl *copy = clone_with_strides (self, error);
  GTorchImpl *part =
      copy != NULL ? gtorch_op_as_strided (copy, size, n, stride, n_stride, storage_offset, error)
                   : NULL;

  return with_part ("as_strided_scatter", copy, part, src, error);
}

/* --- padding --- */

/* Checks the list, and computes the shape of the result. */
static gboolean
padded_shape (const gchar *op, const GTorchImpl *self, const gint64 *pad, gsize n, gint64 *shape,
              GError **error)
{
  gboolean valid = n % 2 == 0 && n / 2 <= self->n_dims;
  guint i;

  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  for (i = 0; valid && i < n / 2; i++)
    {
      gint64 *size = &shape[self->n_dims - 1 - i];

      valid = !__builtin_add_overflow (*size, pad[2 * i], size)
              && !__builtin_add_overflow (*size, pad[2 * i + 1], size) && *size >= 0;
    }
  if (valid)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: pad %s of shape %s: there must be two numbers for each of the last "
                  "dimensions, and no size may become negative"),
               op, gtorch_shape_str (pad, MIN (n, 2 * GTORCH_MAX_DIMS)),
               gtorch_impl_shape_str (self));
  return FALSE;
}

/* Returns the part of whole in which the elements that pad keeps of the other tensor are, if sign is 1 that
 * of the result, if it is -1 that of the tensor that is padded. */
static GTorchImpl *
kept_part (GTorchImpl *whole, const gint64 *pad, gsize n, gint sign, GError **error)
{
  GTorchImpl *part = gtorch_impl_ref (whole);
  guint i;

  for (i = 0; part != NULL && i < n / 2; i++)
    {
      guint dim = whole->n_dims - 1 - i;
      gint64 begin = MAX (sign * pad[2 * i], 0);
      gint64 end = whole->shape[dim] - MAX (sign * pad[2 * i + 1], 0);
      GTorchImpl *view = part;

      if (begin == 0 && end == whole->shape[dim])
        continue;
      part = gtorch_op_slice (view, dim, begin, MAX (end, 0), 1, error);
      gtorch_impl_unref (view);
    }
  return part;
}

static GTorchImpl *
pad_constant (const gchar *op, GTorchImpl *self, const gint64 *pad, gsize n, gdouble value,
              GError **error)
{
  g_autoptr (GTorchImpl) source = NULL;
  GTorchImpl *result, *part;
  gint64 shape[GTORCH_MAX_DIMS];

  if (!padded_shape (op, self, pad, n, shape, error))
    return NULL;
  source = kept_part (self, pad, n, -1, error);
  result = source != NULL
               ? gtorch_op_new_full (self, shape, self->n_dims, value, GTORCH_DTYPE_NONE, error)
               : NULL;
  part = result != NULL ? kept_part (result, pad, n, 1, error) : NULL;
  return with_part (op, result, part, source, error);
}

GTorchImpl *
gtorch_op_constant_pad_nd (GTorchImpl *self, const gint64 *pad, gsize n, gdouble value,
                           GError **error)
{
  return pad_constant ("constant_pad_nd", self, pad, n, value, error);
}

/* Returns the elements that are added at one end of the dimension. */
static GTorchImpl *
outer_part (GTorchImpl *self, guint dim, gint64 count, gboolean at_end, GTorchPadMode mode,
            GError **error)
{
  gint64 size = self->shape[dim], begin, shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) part = NULL;
  const gint64 along = dim;

  if (mode == GTORCH_PAD_MODE_CIRCULAR)
    begin = at_end ? 0 : size - count;
  else if (mode == GTORCH_PAD_MODE_REFLECT)
    begin = at_end ? size - 1 - count : 1;
  else
    begin = at_end ? size - 1 : 0;
  part = gtorch_op_slice (self, dim, begin, begin + (mode == GTORCH_PAD_MODE_REPLICATE ? 1 : count),
                          1, error);
  if (part == NULL || mode == GTORCH_PAD_MODE_CIRCULAR)
    return g_steal_pointer (&part);
  if (mode == GTORCH_PAD_MODE_REFLECT)
    return gtorch_op_flip (part, &along, 1, error);
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[dim] = count;
  return gtorch_op_expand (part, shape, self->n_dims, error);
}

/* Pads one dimension: first adds what is to be added, then takes away what is to be taken away. In the
 * circular mode it is the other way round: what was taken away does not come again at the other end. */
static GTorchImpl *
pad_dim (GTorchImpl *self, guint dim, gint64 before, gint64 after, GTorchPadMode mode,
         GError **error)
{
  gint64 size = self->shape[dim], most = MAX (before, after);
  g_autoptr (GTorchImpl) joined = NULL;
  GTorchImpl *parts[3];
  guint n = 0;

  if (mode == GTORCH_PAD_MODE_CIRCULAR && most > 0 && MIN (before, after) < 0)
    {
      joined =
          gtorch_op_slice (self, dim, MAX (-before, 0), MAX (size - MAX (-after, 0), 0), 1, error);
      return joined != NULL ? pad_dim (joined, dim, MAX (before, 0), MAX (after, 0), mode, error)
                            : NULL;
    }
  if (most > 0
      && (size == 0 || (mode == GTORCH_PAD_MODE_REFLECT && most >= size)
          || (mode == GTORCH_PAD_MODE_CIRCULAR && most > size)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("pad: %" PRId64 " and %" PRId64
                      " elements at the ends of dimension %u of shape %s: there may be fewer than "
                      "its size if they are mirrored, as many as its size if they come from the "
                      "other end, and any number of copies of an element"),
                   before, after, dim, gtorch_impl_shape_str (self));
      return NULL;
    }
  if (most <= 0)
    joined = gtorch_impl_ref (self);
  else
    {
      parts[n++] =
          before > 0 ? outer_part (self, dim, before, FALSE, mode, error) : gtorch_impl_ref (self);
      if (parts[0] != NULL && before > 0)
        parts[n++] = gtorch_impl_ref (self);
      if (parts[0] != NULL && after > 0
          && (parts[n] = outer_part (self, dim, after, TRUE, mode, error)) != NULL)
        n++;
      if (n == 1u + (before > 0) + (after > 0))
        joined = gtorch_op_cat (parts, n, dim, error);
      while (n > 0)
        if (parts[--n] != NULL)
          gtorch_impl_unref (parts[n]);
    }
  if (joined == NULL || (before >= 0 && after >= 0))
    return g_steal_pointer (&joined);
  return gtorch_op_slice (joined, dim, MAX (-before, 0), joined->shape[dim] - MAX (-after, 0), 1,
                          error);
}

GTorchImpl *
gtorch_op_pad (GTorchImpl *input, const gint64 *pad, gsize n, GTorchPadMode mode, gdouble value,
               GError **error)
{
  g_autoptr (GTorchImpl) result = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint i;

  if ((guint) mode > GTORCH_PAD_MODE_CIRCULAR)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("pad: %d is no GTorchPadMode"),
                   (gint) mode);
      return NULL;
    }
  if (mode == GTORCH_PAD_MODE_CONSTANT)
    return pad_constant ("pad", input, pad, n, value, error);
  if (value != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("pad: a value of %g is given: only the constant mode has one"), value);
      return NULL;
    }
  if (!padded_shape ("pad", input, pad, n, shape, error))
    return NULL;
  if (n < 2 || n > 6 || (input->n_dims != n / 2 + 1 && input->n_dims != n / 2 + 2))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("pad: %u numbers for shape %s: in this mode there must be 2, 4 or 6, and "
                      "one or two dimensions before those that are padded"),
                   (guint) n, gtorch_impl_shape_str (input));
      return NULL;
    }
  result = gtorch_impl_ref (input);
  for (i = 0; i < n / 2; i++)
    {
      GTorchImpl *padded =
          pad_dim (result, input->n_dims - 1 - i, pad[2 * i], pad[2 * i + 1], mode, error);

      gtorch_impl_unref (result);
      result = padded;
      if (result == NULL)
        return NULL;
    }
  return result != input ? g_steal_pointer (&result) : gtorch_op_clone (input, error);
}
