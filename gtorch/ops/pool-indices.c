/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Taking elements of images by their indices, for the second derivative of max pooling, and writing them
 * there, which undoes max pooling in part. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"

GTorchImpl *
gtorch_op_pool_take (GTorchImpl *self, GTorchImpl *indices, gint64 dims, GError **error)
{
  g_autoptr (GTorchImpl) images = gtorch_op_flatten (self, -dims, -1, error);
  g_autoptr (GTorchImpl) places =
      images != NULL ? gtorch_op_flatten (indices, -dims, -1, error) : NULL;
  g_autoptr (GTorchImpl) taken =
      places != NULL ? gtorch_op_gather (images, -1, places, error) : NULL;

  return taken != NULL ? gtorch_op_reshape (taken, indices->shape, indices->n_dims, error) : NULL;
}

/* Returns number d of a list that holds n numbers, or one for all dimensions. */
static gint64
number (const gint64 *list, gsize n, guint d)
{
  return list[n == 1 ? 0 : d];
}

static gboolean
check_list (const gchar *op, const gchar *name, const gint64 *list, gsize n, guint dims, gint64 low,
            GError **error)
{
  gboolean valid = n == 1 || n == dims;
  gsize i;

  for (i = 0; valid && i < n; i++)
    valid = list[i] >= low && list[i] <= G_MAXINT32;
  if (!valid)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: %s must hold one number, or one for each dimension, from %d to %d; it is "
                    "%s"),
                 op, name, (int) low, G_MAXINT32,
                 gtorch_shape_str (list, MIN (n, GTORCH_MAX_DIMS)));
  return valid;
}

/* Checks the tensors, and finds the shape of the result. */
static gboolean
unpooled_shape (const gchar *op, guint dims, const GTorchImpl *self, const GTorchImpl *indices,
                const gint64 *kernel, gsize n_kernel, const gint64 *stride, gsize n_stride,
                const gint64 *padding, gsize n_padding, const gint64 *size, gsize n_size,
                gint64 *shape, GError **error)
{
  guint d;

  if ((self->n_dims != dims + 1 && self->n_dims != dims + 2)
      || !gtorch_impl_same_shape (self, indices))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: elements of shape %s and indices of shape %s: both must have the same "
                      "%u or %u dimensions"),
                   op, gtorch_impl_shape_str (self), gtorch_impl_shape_str (indices), dims + 1,
                   dims + 2);
      return FALSE;
    }
  if (indices->dtype != GTORCH_DTYPE_INT64)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: indices must be of dtype int64, they are of %s"), op,
                   gtorch_dtype_get_name (indices->dtype));
      return FALSE;
    }
  if (!check_list (op, "kernel_size", kernel, n_kernel, dims, 1, error)
      || (n_stride > 0 && !check_list (op, "stride", stride, n_stride, dims, 1, error))
      || !check_list (op, "padding", padding, n_padding, dims, 0, error))
    return FALSE;
  if (n_size == dims + 2)
    {
      size += 2;
      n_size = dims;
    }
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  for (d = 0; d < dims; d++)
    {
      const gint64 step =
          n_stride > 0 ? number (stride, n_stride, d) : number (kernel, n_kernel, d);
      gint64 *one = &shape[self->n_dims - dims + d], usual;

      if (__builtin_mul_overflow (*one - 1, step, &usual))
        usual = G_MAXINT64 / 2;
      usual += number (kernel, n_kernel, d) - 2 * number (padding, n_padding, d);
      *one = n_size > 0 && n_size == dims ? size[d] : usual;
      if (*one > usual - step && *one<usual + step && * one> 0 && (n_size == 0 || n_size == dims))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: output_size %s: there must be %u numbers, number %u greater than "
                      "%" PRId64 " and less than %" PRId64),
                   op, gtorch_shape_str (size, MIN (n_size, GTORCH_MAX_DIMS)), dims, d + 1,
                   MAX (usual - step, 0), usual + step);
      return FALSE;
    }
  return gtorch_shape_check (op, shape, self->n_dims, self->dtype, error);
}

static GTorchImpl *
unpool (const gchar *op, guint dims, GTorchImpl *self, GTorchImpl *indices, const gint64 *kernel,
        gsize n_kernel, const gint64 *stride, gsize n_stride, const gint64 *padding,
        gsize n_padding, const gint64 *size, gsize n_size, GError **error)
{
  gint64 shape[5];
  g_autoptr (GTorchImpl) zeros = NULL;
  g_autoptr (GTorchImpl) images = NULL;
  g_autoptr (GTorchImpl) places = NULL;
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) written = NULL;

  if (!unpooled_shape (op, dims, self, indices, kernel, n_kernel, stride, n_stride, padding,
                       n_padding, size, n_size, shape, error))
    return NULL;
  zeros = gtorch_op_new_zeros (self, shape, self->n_dims, GTORCH_DTYPE_NONE, error);
  images = zeros != NULL ? gtorch_op_flatten (zeros, -(gint64) dims, -1, error) : NULL;
  places = images != NULL ? gtorch_op_flatten (indices, -(gint64) dims, -1, error) : NULL;
  values = places != NULL ? gtorch_op_flatten (self, -(gint64) dims, -1, error) : NULL;
  written = values != NULL ? gtorch_op_scatter (images, -1, places, values, error) : NULL;
  return written != NULL ? gtorch_op_reshape (written, shape, self->n_dims, error) : NULL;
}

GTorchImpl *
gtorch_composite_max_unpool1d (GTorchImpl *self, GTorchImpl *indices, const gint64 *kernel_size,
                               gsize n_kernel_size, const gint64 *stride, gsize n_stride,
                               const gint64 *padding, gsize n_padding, const gint64 *output_size,
                               gsize n_output_size, GError **error)
{
  return unpool ("max_unpool1d", 1, self, indices, kernel_size, n_kernel_size, stride, n_stride,
                 padding, n_padding, output_size, n_output_size, error);
}

GTorchImpl *
gtorch_composite_max_unpool2d (GTorchImpl *self, GTorchImpl *indices, const gint64 *kernel_size,
                               gsize n_kernel_size, const gint64 *stride, gsize n_stride,
                               const gint64 *padding, gsize n_padding, const gint64 *output_size,
                               gsize n_output_size, GError **error)
{
  return unpool ("max_unpool2d", 2, self, indices, kernel_size, n_kernel_size, stride, n_stride,
                 padding, n_padding, output_size, n_output_size, error);
}

GTorchImpl *
gtorch_composite_max_unpool3d (GTorchImpl *self, GTorchImpl *indices, const gint64 *kernel_size,
                               gsize n_kernel_size, const gint64 *stride, gsize n_stride,
                               const gint64 *padding, gsize n_padding, const gint64 *output_size,
                               gsize n_output_size, GError **error)
{
  return unpool ("max_unpool3d", 3, self, indices, kernel_size, n_kernel_size, stride, n_stride,
                 padding, n_padding, output_size, n_output_size, error);
}
