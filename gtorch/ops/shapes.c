/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mirroring, joining and combining, composed of views and copies. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-text-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "tensor/gtorch-recorder-private.h"

static gboolean
has_dims (const gchar *op, const GTorchImpl *self, guint least, GError **error)
{
  if (self->n_dims >= least)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: shape %s must have at least %u dimensions"), op,
               gtorch_impl_shape_str (self), least);
  return FALSE;
}

GTorchImpl *
gtorch_op_fliplr (GTorchImpl *self, GError **error)
{
  return has_dims ("fliplr", self, 2, error)
             ? gtorch_op_flip (self, (const gint64[]){ 1 }, 1, error)
             : NULL;
}

GTorchImpl *
gtorch_op_flipud (GTorchImpl *self, GError **error)
{
  return has_dims ("flipud", self, 1, error)
             ? gtorch_op_flip (self, (const gint64[]){ 0 }, 1, error)
             : NULL;
}

GTorchImpl *
gtorch_op_rot90 (GTorchImpl *self, gint64 k, const gint64 *dims, gsize n, GError **error)
{
  g_autoptr (GTorchImpl) flipped = NULL;
  guint64 mask;

  if (n != 2 || self->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("rot90: dims %s of shape %s: there must be two different dimensions"),
                   gtorch_shape_str (dims, MIN (n, GTORCH_MAX_DIMS)), gtorch_impl_shape_str (self));
      return NULL;
    }
  if (!gtorch_normalize_dims ("rot90", dims, 2, self->n_dims, &mask, error))
    return NULL;
  k &= 3;
  if (k == 0)
    return gtorch_op_clone (self, error);
  if (k == 2)
    return gtorch_op_flip (self, dims, 2, error);
  flipped = gtorch_op_flip (self, dims + (k == 1 ? 1 : 0), 1, error);
  return flipped != NULL ? gtorch_op_transpose (flipped, dims[0], dims[1], error) : NULL;
}

GTorchImpl *
gtorch_op_sum_to_size (GTorchImpl *self, const gint64 *size, gsize n, GError **error)
{
  g_autoptr (GTorchImpl) sum = NULL;
  gint64 dims[GTORCH_MAX_DIMS];
  gboolean fits = n <= self->n_dims;
  guint i, n_sum = 0, lead = self->n_dims - n;

  for (i = 0; fits && i < self->n_dims; i++)
    {
      if (i < lead || (size[i - lead] == 1 && self->shape[i] != 1))
        dims[n_sum++] = i;
      else
        fits = size[i - lead] == self->shape[i];
    }
  if (!fits)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("sum_to_size: shape %s cannot be broadcast to shape %s"),
                   gtorch_shape_str (size, MIN (n, GTORCH_MAX_DIMS)), gtorch_impl_shape_str (self));
      return NULL;
    }
  /* the sum of a single integer or bool is one of int64, too */
  if (n_sum == 0 && (n > 0 || gtorch_dtype_kind (self->dtype) >= GTORCH_KIND_FLOAT))
    return gtorch_impl_itself (self, error);
  sum = gtorch_op_sum (self, dims, n_sum, TRUE, GTORCH_DTYPE_NONE, error);
  return sum != NULL ? gtorch_op_reshape (sum, size, n, error) : NULL;
}

/* --- joining --- */

/* Joins the tensors that function makes of these. */
static GTorchImpl *
join_all (const gchar *op, GTorchImpl *const *tensors, gsize n, gint64 dim,
          GTorchImpl *(*function) (GTorchImpl *, GError **), GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  gsize i;

  if (n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the list of tensors is empty"), op);
      return NULL;
    }
  for (i = 0; i < n; i++)
    {
      GTorchImpl *part = function (tensors[i], error);

      if (part == NULL)
        return NULL;
      g_ptr_array_add (parts, part);
    }
  return gtorch_op_cat ((GTorchImpl **) parts->pdata, n, dim, error);
}

static GTorchImpl *
as_column (GTorchImpl *self, GError **error)
{
  return self->n_dims > 1 ? gtorch_impl_ref (self)
                          : gtorch_op_reshape (self, (const gint64[]){ self->numel, 1 }, 2, error);
}

static GTorchImpl *
as_row (GTorchImpl *self, GError **error)
{
  return gtorch_op_reshape (self, (const gint64[]){ -1 }, 1, error);
}

GTorchImpl *
gtorch_op_column_stack (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return join_all ("column_stack", tensors, n, 1, as_column, error);
}

GTorchImpl *
gtorch_op_dstack (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return join_all ("dstack", tensors, n, 2, gtorch_op_atleast_3d, error);
}

GTorchImpl *
gtorch_op_row_stack (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return gtorch_op_vstack (tensors, n, error);
}

GTorchImpl *
gtorch_op_concat (GTorchImpl *const *tensors, gsize n, gint64 dim, GError **error)
{
  return gtorch_op_cat (tensors, n, dim, error);
}

GTorchImpl *
gtorch_op_concatenate (GTorchImpl *const *tensors, gsize n, gint64 dim, GError **error)
{
  return gtorch_op_cat (tensors, n, dim, error);
}

/* Returns the matrix with zeros on its left, until it has left more columns, and on its right, until it
 * has width columns. */
static GTorchImpl *
widened (GTorchImpl *matrix, gint64 left, gint64 width, GError **error)
{
  gint64 n = matrix->shape[0], right = width - left - matrix->shape[1];
  g_autoptr (GTorchImpl) before =
      gtorch_op_new_zeros (matrix, (const gint64[]){ n, left }, 2, GTORCH_DTYPE_NONE, error);
  g_autoptr (GTorchImpl) after =
      before != NULL
          ? gtorch_op_new_zeros (matrix, (const gint64[]){ n, right }, 2, GTORCH_DTYPE_NONE, error)
          : NULL;

  return after != NULL ? gtorch_op_cat ((GTorchImpl *[]){ before, matrix, after }, 3, 1, error)
                       : NULL;
}

/* Writes the matrices, which are of one dtype and on one device, to zeros. */
static GTorchImpl *
place_blocks (GPtrArray *matrices, gint64 height, gint64 width, GError **error)
{
  const gint64 shape[] = { height, width };
  g_autoptr (GTorchImpl) all =
      gtorch_op_new_zeros (matrices->pdata[0], shape, 2, GTORCH_DTYPE_NONE, error);
  gint64 top = 0, left = 0;
  guint i;

  for (i = 0; all != NULL && i < matrices->len; i++)
    {
      GTorchImpl *matrix = matrices->pdata[i];
      g_autoptr (GTorchImpl) strip = gtorch_op_narrow (all, 0, top, matrix->shape[0], error);
      g_autoptr (GTorchImpl) block =
          strip != NULL ? gtorch_op_narrow (strip, 1, left, matrix->shape[1], error) : NULL;

      if (block == NULL || !gtorch_op_copy_inplace (block, matrix, FALSE, error))
        return NULL;
      top += matrix->shape[0];
      left += matrix->shape[1];
    }
  return g_steal_pointer (&all);
}

GTorchImpl *
gtorch_op_block_diag (GTorchImpl *const *tensors, gsize n, GError **error)
{
  g_autoptr (GPtrArray) strips =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) matrices =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  gint64 width = 0, height = 0, left = 0;
  gboolean alike = TRUE;
  gsize i;

  for (i = 0; i < n; i++)
    {
      GTorchImpl *tensor = tensors[i];
      gint64 columns = tensor->n_dims == 2 ? tensor->shape[1] : tensor->numel;

      if (tensor->n_dims > 2 || __builtin_add_overflow (width, columns, &width))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("block_diag: tensor %u has shape %s: there may be two dimensions at "
                          "most, and the result must fit into memory"),
                       (guint) i, gtorch_impl_shape_str (tensor));
          return NULL;
        }
    }
  for (i = 0; i < n; i++)
    {
      GTorchImpl *matrix = gtorch_op_atleast_2d (tensors[i], error);

      if (matrix == NULL)
        return NULL;
      g_ptr_array_add (matrices, matrix);
      alike = alike && matrix->dtype == tensors[0]->dtype
              && gtorch_impl_device (matrix) == gtorch_impl_device (tensors[0])
              && !(gtorch_is_grad_enabled () && gtorch_impl_requires_grad (matrix))
              && !__builtin_add_overflow (height, matrix->shape[0], &height);
    }
  if (n == 0)
    return gtorch_op_zeros ((const gint64[]){ 1, 0 }, 2, GTORCH_DTYPE_NONE, NULL, error);
  if (alike)
    return place_blocks (matrices, height, width, error);
  /* joined, since each write would take a gradient of the whole result apart */
  for (i = 0; i < n; i++)
    {
      GTorchImpl *matrix = matrices->pdata[i];
      GTorchImpl *strip = widened (matrix, left, width, error);

      if (strip == NULL)
        return NULL;
      g_ptr_array_add (strips, strip);
      left += matrix->shape[1];
    }
  return gtorch_op_cat ((GTorchImpl **) strips->pdata, n, 0, error);
}

/* --- positions of a known number --- */

/* Numbers the elements that are true, and scatters their positions to the places of these numbers, of which
 * the last collects those that are too many or false. */
static GTorchImpl *
first_positions (GTorchImpl *row, gint64 size, GError **error)
{
  GTorchDevice *device = gtorch_impl_device (row);
  const gint64 length = size + 1;
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) last = gtorch_impl_new_int (size);
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) is_true = gtorch_op_ne (row, zero, error);
  g_autoptr (GTorchImpl) count =
      is_true != NULL ? gtorch_op_cumsum (is_true, 0, GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) number = count != NULL ? gtorch_op_sub (count, one, 1, error) : NULL;
  g_autoptr (GTorchImpl) kept = number != NULL ? gtorch_op_lt (number, last, error) : NULL;
  g_autoptr (GTorchImpl) taken = kept != NULL ? gtorch_op_logical_and (kept, is_true, error) : NULL;
  g_autoptr (GTorchImpl) place =
      taken != NULL ? gtorch_op_where (taken, number, last, error) : NULL;
  g_autoptr (GTorchImpl) each =
      place != NULL ? gtorch_op_arange (0, row->numel, 1, GTORCH_DTYPE_INT64, device, error) : NULL;
  g_autoptr (GTorchImpl) none =
      each != NULL ? gtorch_op_full (&length, 1, -1, GTORCH_DTYPE_INT64, device, error) : NULL;
  g_autoptr (GTorchImpl) all =
      none != NULL ? gtorch_op_scatter (none, 0, place, each, error) : NULL;

  return all != NULL ? gtorch_op_slice (all, 0, 0, size, 1, error) : NULL;
}

GTorchImpl *
gtorch_op_nonzero_static (GTorchImpl *self, gint64 size, gint64 fill_value, GError **error)
{
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) positions = NULL;
  g_autoptr (GTorchImpl) zero = NULL;
  g_autoptr (GTorchImpl) fill = NULL;
  g_autoptr (GTorchImpl) missing = NULL;
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) filled = NULL;
  g_autoptr (GTorchImpl) table = NULL;
  g_autoptr (GPtrArray) coordinates = NULL;
  const gint64 shape[2] = { size, self->n_dims };

  if (size < 0 || size == G_MAXINT64)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("nonzero_static: a size of %" PRId64
                      " is not possible: it must be at least 0"),
                   size);
      return NULL;
    }
  if (self->storage == NULL)
    return gtorch_op_view_as_is (self, error); /* fails with the right error */
  if (!gtorch_shape_check ("nonzero_static", shape, 2, GTORCH_DTYPE_INT64, error))
    return NULL;
  if (self->numel == 0 || self->n_dims == 0 || size == 0)
    return gtorch_op_full_int (shape, 2, fill_value, GTORCH_DTYPE_INT64, gtorch_impl_device (self),
                               error);
  row = as_row (self, error);
  positions = row != NULL ? first_positions (row, size, error) : NULL;
  if (positions == NULL)
    return NULL;
  coordinates = gtorch_op_unravel_index (positions, self->shape, self->n_dims, error);
  table = coordinates != NULL
              ? gtorch_op_stack ((GTorchImpl **) coordinates->pdata, coordinates->len, 1, error)
              : NULL;
  zero = gtorch_impl_new_int (0);
  fill = gtorch_impl_new_int (fill_value);
  missing = table != NULL ? gtorch_op_lt (positions, zero, error) : NULL;
  column = missing != NULL ? gtorch_op_unsqueeze (missing, 1, error) : NULL;
  return column != NULL ? gtorch_op_where (column, fill, table, error) : NULL;
}

/* --- memory that is not written --- */

/* Returns a view of the row of elements, which has extent of them, or NULL; frees the row. */
static GTorchImpl *
lay_out (GTorchImpl *row, const gint64 *size, const gint64 *stride, gsize n, GError **error)
{
  GTorchImpl *view = row != NULL ? gtorch_op_as_strided (row, size, n, stride, n, 0, error) : NULL;

  g_clear_pointer (&row, gtorch_impl_unref);
  return view;
}

static gboolean
find_extent (const gchar *op, const gint64 *size, gsize n_size, const gint64 *stride,
             gsize n_stride, gint64 *extent, GError **error)
{
  gboolean valid = n_size == n_stride && n_size <= GTORCH_MAX_DIMS, is_empty = FALSE;
  gint64 part;
  gsize i;

  *extent = 1;
  for (i = 0; valid && i < n_size; i++)
    {
      valid = size[i] >= 0 && stride[i] >= 0;
      is_empty |= size[i] == 0;
      if (valid && size[i] > 0)
        valid = !__builtin_mul_overflow (size[i] - 1, stride[i], &part)
                && !__builtin_add_overflow (*extent, part, extent);
    }
  if (is_empty)
    *extent = 0;
  if (valid)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: size %s and stride %s must be of one length, not negative, and stay within "
                  "memory"),
               op, gtorch_shape_str (size, MIN (n_size, GTORCH_MAX_DIMS)),
               gtorch_shape_str (stride, MIN (n_stride, GTORCH_MAX_DIMS)));
  return FALSE;
}

GTorchImpl *
gtorch_op_empty_strided (const gint64 *size, gsize n_size, const gint64 *stride, gsize n_stride,
                         GTorchDType dtype, GTorchDevice *device, GError **error)
{
  gint64 extent;

  if (!find_extent ("empty_strided", size, n_size, stride, n_stride, &extent, error))
    return NULL;
  return lay_out (gtorch_op_empty (&extent, 1, dtype, device, error), size, stride, n_size, error);
}

GTorchImpl *
gtorch_op_new_empty_strided (GTorchImpl *self, const gint64 *size, gsize n_size,
                             const gint64 *stride, gsize n_stride, GTorchDType dtype,
                             GError **error)
{
  gint64 extent;

  if (!find_extent ("new_empty_strided", size, n_size, stride, n_stride, &extent, error))
    return NULL;
  return lay_out (gtorch_op_new_empty (self, &extent, 1, dtype, error), size, stride, n_size,
                  error);
}

GTorchImpl *
gtorch_op_empty_permuted (const gint64 *size, gsize n, const gint64 *layout, gsize n_layout,
                          GTorchDType dtype, GTorchDevice *device, GError **error)
{
  g_autoptr (GTorchImpl) memory = NULL;
  gint64 outer[GTORCH_MAX_DIMS], places[GTORCH_MAX_DIMS];
  guint64 mask = 0;
  gboolean valid = n == n_layout && n <= GTORCH_MAX_DIMS;
  gsize i;

  for (i = 0; valid && i < n; i++)
    {
      valid = layout[i] >= 0 && layout[i] < (gint64) n && !(mask >> layout[i] & 1);
      if (valid)
        {
          mask |= G_GUINT64_CONSTANT (1) << layout[i];
          outer[i] = size[layout[i]];
          places[layout[i]] = i;
        }
    }
  if (!valid)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("empty_permuted: physical_layout %s must name each dimension of size %s "
                      "once"),
                   gtorch_shape_str (layout, MIN (n_layout, GTORCH_MAX_DIMS)),
                   gtorch_shape_str (size, MIN (n, GTORCH_MAX_DIMS)));
      return NULL;
    }
  memory = gtorch_op_empty (outer, n, dtype, device, error);
  return memory != NULL ? gtorch_op_permute (memory, places, n, error) : NULL;
}
