/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pooling over windows of one to three dimensions: the geometry, and the shapes of results. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Reads a list of one number, which is for all dimensions, or of one for each. A number may be GTORCH_NONE if
 * that has a meaning. */
static gboolean
read_list (const GTorchWindows *windows, GTorchOpCall *call, const gchar *name,
           const GTorchAttr *attr, gint64 low, gboolean may_be_none, gint64 *sizes, GError **error)
{
  const gint64 *list = attr->list.data;
  gsize n = attr->list.n;
  guint i;

  if (n != 1 && n != windows->n)
    {
      if (windows->n == 1)
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("%s must hold one number, it holds %u"), name, (guint) n);
      else
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("%s must hold 1 or %u numbers, it holds %u"), name, windows->n,
                           (guint) n);
      return FALSE;
    }
  sizes += 3 - windows->n;
  for (i = 0; i < windows->n; i++)
    {
      sizes[i] = list[n == 1 ? 0 : i];
      if (may_be_none && sizes[i] == GTORCH_NONE)
        continue;
      if (sizes[i] >= low && sizes[i] <= G_MAXINT32)
        continue;
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%s must be from %d to %d, it is %s"), name, (int) low, G_MAXINT32,
                         gtorch_shape_str (list, n));
      return FALSE;
    }
  return TRUE;
}

/* Tells whether the call is a gradient, which has the shape of the images as an attribute. */
static gboolean
is_backward (const GTorchOpCall *call)
{
  return call->op->id == GTORCH_OP_MAX_POOL_BACKWARD || call->op->id == GTORCH_OP_MEAN_POOL_BACKWARD
         || call->op->id == GTORCH_OP_ADAPTIVE_MAX_POOL_BACKWARD
         || call->op->id == GTORCH_OP_ADAPTIVE_MEAN_POOL_BACKWARD;
}

static gboolean
is_adaptive (const GTorchOpCall *call)
{
  return call->op->id == GTORCH_OP_ADAPTIVE_MAX_POOL || call->op->id == GTORCH_OP_ADAPTIVE_MEAN_POOL
         || call->op->id == GTORCH_OP_ADAPTIVE_MAX_POOL_BACKWARD
         || call->op->id == GTORCH_OP_ADAPTIVE_MEAN_POOL_BACKWARD;
}

static gboolean
is_max (const GTorchOpCall *call)
{
  return call->op->id == GTORCH_OP_MAX_POOL || call->op->id == GTORCH_OP_MAX_POOL_VALUES
         || call->op->id == GTORCH_OP_MAX_POOL_BACKWARD;
}

/* Computes how many windows a dimension of n elements has. */
static gint64
count_windows (const GTorchWindows *windows, guint d, gint64 n, gboolean ceil_mode)
{
  const gint64 rest =
      n + 2 * windows->padding[d] - windows->dilation[d] * (windows->kernel[d] - 1) - 1;
  const gint64 whole = rest < 0 ? 0 : rest / windows->stride[d] + 1;

  /* a last window that exceeds the image must not begin beyond it */
  return whole
         + (ceil_mode && rest >= 0 && rest % windows->stride[d] != 0
            && whole * windows->stride[d] < n + windows->padding[d]);
}

/* Computes the sizes of windows and results for an input shape. */
static gboolean
windows_init (GTorchWindows *windows, GTorchOpCall *call, const gint64 *shape, guint n_dims,
              gboolean ceil_mode, GError **error)
{
  const guint n = windows->n;
  guint i;

  if (n_dims != n + 1 && n_dims != n + 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("images of shape %s must have %u or %u dimensions"),
                         gtorch_shape_str (shape, n_dims), n + 1, n + 2);
      return FALSE;
    }
  windows->n_in = windows->n_out = 1;
  for (i = 3 - n; i < 3; i++)
    {
      gint64 size = windows->in[i] = shape[n_dims - 3 + i];

      if (size < 1)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("images of shape %s have no elements"),
                             gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
      if (windows->adaptive && windows->out[i] == GTORCH_NONE)
        windows->out[i] = size;
      if (!windows->adaptive && windows->padding[i] > windows->kernel[i] / 2)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                             _ ("padding %" PRId64
                                " is more than half of the window's size %" PRId64),
                             windows->padding[i], windows->kernel[i]);
          return FALSE;
        }
      if (!windows->adaptive)
        windows->out[i] = count_windows (windows, i, size, ceil_mode);
      if (!windows->adaptive && windows->out[i] < 1)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("windows of %s do not fit into images of shape %s"),
                             gtorch_shape_str (windows->kernel + 3 - n, n),
                             gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
      windows->n_in *= size; /* no more than the elements of the image */
    }
  return TRUE;
}

/* Reads the attributes kernel_size, stride and padding. */
static gboolean
read_windows (GTorchWindows *windows, GTorchOpCall *call, const GTorchAttr *attrs, GError **error)
{
  if (!read_list (windows, call, "kernel_size", &attrs[0], 1, FALSE, windows->kernel, error)
      || !read_list (windows, call, "padding", &attrs[2], 0, FALSE, windows->padding, error))
    return FALSE;
  if (attrs[1].list.n == 0)
    {
      memcpy (windows->stride, windows->kernel, sizeof windows->stride);
      return TRUE;
    }
  return read_list (windows, call, "stride", &attrs[1], 1, FALSE, windows->stride, error);
}

static gboolean
read_attributes (GTorchWindows *windows, GTorchOpCall *call, const gint64 *shape, guint n_dims,
                 const GTorchAttr *attrs, GError **error)
{
  windows->adaptive = is_adaptive (call);
  if (windows->adaptive)
    return read_list (windows, call, "output_size", &attrs[0], 0, TRUE, windows->out, error)
           && windows_init (windows, call, shape, n_dims, FALSE, error);
  if (is_max (call))
    return read_windows (windows, call, attrs, error)
           && read_list (windows, call, "dilation", &attrs[3], 1, FALSE, windows->dilation, error)
           && windows_init (windows, call, shape, n_dims, attrs[4].i, error);
  windows->include_pad = attrs[4].i;
  windows->divisor = attrs[5].i == GTORCH_NONE ? 0 : attrs[5].i;
  if (attrs[5].i == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("divisor_override must not be 0"));
      return FALSE;
    }
  return read_windows (windows, call, attrs, error)
         && windows_init (windows, call, shape, n_dims, attrs[3].i, error);
}

gboolean
gtorch_windows_init (GTorchWindows *windows, GTorchOpCall *call, GError **error)
{
  const gboolean backward = is_backward (call);
  const GTorchAttr *attrs = call->attrs;
  const gint64 *shape = backward ? attrs[1].list.data : call->inputs[0]->shape;
  guint n_dims = backward ? attrs[1].list.n : call->inputs[0]->n_dims, i;

  *windows = (GTorchWindows){ .n = attrs[0].i };
  for (i = 0; i < 3; i++)
    windows->kernel[i] = windows->stride[i] = windows->dilation[i] = windows->in[i] =
        windows->out[i] = 1;
  if (!read_attributes (windows, call, shape, n_dims, attrs + (backward ? 2 : 1), error))
    return FALSE;
  for (i = 0; i < 3; i++)
    if (__builtin_mul_overflow (windows->n_out, windows->out[i], &windows->n_out))
      {
        gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                           _ ("a result of %s elements for each image is too large"),
                           gtorch_shape_str (windows->out + 3 - windows->n, windows->n));
        return FALSE;
      }
  return TRUE;
}

/* Results are laid out as images of a batch are. */
static gboolean
have_channels_last (const GTorchWindows *windows, const GTorchImpl *images)
{
  return windows->n > 1 && images->n_dims == windows->n + 2
         && gtorch_impl_is_channels_last (images);
}

static gboolean
shape_forward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[5];
  GTorchWindows windows;
  guint i;

  if (!gtorch_windows_init (&windows, call, error))
    return FALSE;
  call->compute = self->dtype;
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  memcpy (shape + self->n_dims - windows.n, windows.out + 3 - windows.n,
          windows.n * sizeof (gint64));
  if (!gtorch_call_check_dtype (call, self->dtype, error)
      || !gtorch_shape_check (call->op->name, shape, self->n_dims, self->dtype, error))
    return FALSE;
  for (i = 0; i < call->n_outputs; i++)
    if (!gtorch_call_set_images (call, i, i == 0 ? self->dtype : GTORCH_DTYPE_INT64, shape,
                                 self->n_dims, have_channels_last (&windows, self), error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_shape_max_pool (GTorchOpCall *call, GError **error)
{
  return shape_forward (call, error);
}

gboolean
gtorch_shape_mean_pool (GTorchOpCall *call, GError **error)
{
  return shape_forward (call, error);
}

gboolean
gtorch_shape_pool_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *upper = call->inputs[0];
  const gint64 *shape = call->attrs[1].list.data;
  guint n_dims = call->attrs[1].list.n, n;
  GTorchWindows windows;

  if (!gtorch_windows_init (&windows, call, error))
    return FALSE;
  n = windows.n;
  if (upper->n_dims != n_dims || memcmp (upper->shape, shape, (n_dims - n) * sizeof (gint64)) != 0
      || memcmp (upper->shape + n_dims - n, windows.out + 3 - n, n * sizeof (gint64)) != 0
      || (call->n_inputs > 1 && !gtorch_impl_same_shape (upper, call->inputs[1])))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient %s does not belong to images of shape %s"),
                         gtorch_impl_shape_str (upper), gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  call->compute = upper->dtype;
  return gtorch_call_check_dtype (call, upper->dtype, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, upper->dtype, error)
         && gtorch_call_set_images (call, 0, upper->dtype, shape, n_dims,
                                    have_channels_last (&windows, upper)
                                        || (call->n_inputs > 1
                                            && have_channels_last (&windows, call->inputs[1])),
                                    error);
}

/* The gradient follows from the places of the elements; without one they need not be found. */
static GTorchImpl *
max_pool (GTorchImpl *self, gint64 dims, const gint64 *kernel_size, gsize n_kernel_size,
          const gint64 *stride, gsize n_stride, const gint64 *padding, gsize n_padding,
          const gint64 *dilation, gsize n_dilation, gboolean ceil_mode, GError **error)
{
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) indices = NULL;

  if (!gtorch_autograd_wanted (&self, 1))
    {
      values =
          gtorch_op_max_pool_values (self, dims, kernel_size, n_kernel_size, stride, n_stride,
                                     padding, n_padding, dilation, n_dilation, ceil_mode, error);
      if (values == NULL)
        gtorch_error_set_op (error, "max_pool");
      return g_steal_pointer (&values);
    }
  gtorch_op_max_pool (self, dims, kernel_size, n_kernel_size, stride, n_stride, padding, n_padding,
                      dilation, n_dilation, ceil_mode, &values, &indices, error);
  return g_steal_pointer (&values);
}

GTorchImpl *
gtorch_op_max_pool1d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                      const gint64 *stride, gsize n_stride, const gint64 *padding, gsize n_padding,
                      const gint64 *dilation, gsize n_dilation, gboolean ceil_mode, GError **error)
{
  return max_pool (self, 1, kernel_size, n_kernel_size, stride, n_stride, padding, n_padding,
                   dilation, n_dilation, ceil_mode, error);
}

GTorchImpl *
gtorch_op_max_pool2d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                      const gint64 *stride, gsize n_stride, const gint64 *padding, gsize n_padding,
                      const gint64 *dilation, gsize n_dilation, gboolean ceil_mode, GError **error)
{
  return max_pool (self, 2, kernel_size, n_kernel_size, stride, n_stride, padding, n_padding,
                   dilation, n_dilation, ceil_mode, error);
}

GTorchImpl *
gtorch_composite_max_pool3d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                             const gint64 *stride, gsize n_stride, const gint64 *padding,
                             gsize n_padding, const gint64 *dilation, gsize n_dilation,
                             gboolean ceil_mode, GError **error)
{
  return max_pool (self, 3, kernel_size, n_kernel_size, stride, n_stride, padding, n_padding,
                   dilation, n_dilation, ceil_mode, error);
}

gboolean
gtorch_op_max_pool1d_with_indices (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                                   const gint64 *stride, gsize n_stride, const gint64 *padding,
                                   gsize n_padding, const gint64 *dilation, gsize n_dilation,
                                   gboolean ceil_mode, GTorchImpl **values, GTorchImpl **indices,
                                   GError **error)
{
  return gtorch_op_max_pool (self, 1, kernel_size, n_kernel_size, stride, n_stride, padding,
                             n_padding, dilation, n_dilation, ceil_mode, values, indices, error);
}

gboolean
gtorch_op_max_pool2d_with_indices (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                                   const gint64 *stride, gsize n_stride, const gint64 *padding,
                                   gsize n_padding, const gint64 *dilation, gsize n_dilation,
                                   gboolean ceil_mode, GTorchImpl **values, GTorchImpl **indices,
                                   GError **error)
{
  return gtorch_op_max_pool (self, 2, kernel_size, n_kernel_size, stride, n_stride, padding,
                             n_padding, dilation, n_dilation, ceil_mode, values, indices, error);
}

gboolean
gtorch_op_max_pool3d_with_indices (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                                   const gint64 *stride, gsize n_stride, const gint64 *padding,
                                   gsize n_padding, const gint64 *dilation, gsize n_dilation,
                                   gboolean ceil_mode, GTorchImpl **values, GTorchImpl **indices,
                                   GError **error)
{
  return gtorch_op_max_pool (self, 3, kernel_size, n_kernel_size, stride, n_stride, padding,
                             n_padding, dilation, n_dilation, ceil_mode, values, indices, error);
}

gboolean
gtorch_op_adaptive_max_pool1d_with_indices (GTorchImpl *self, const gint64 *output_size,
                                            gsize n_output_size, GTorchImpl **values,
                                            GTorchImpl **indices, GError **error)
{
  return gtorch_op_adaptive_max_pool (self, 1, output_size, n_output_size, values, indices, error);
}

gboolean
gtorch_op_adaptive_max_pool2d_with_indices (GTorchImpl *self, const gint64 *output_size,
                                            gsize n_output_size, GTorchImpl **values,
                                            GTorchImpl **indices, GError **error)
{
  return gtorch_op_adaptive_max_pool (self, 2, output_size, n_output_size, values, indices, error);
}

gboolean
gtorch_composite_adaptive_max_pool3d_with_indices (GTorchImpl *self, const gint64 *output_size,
                                                   gsize n_output_size, GTorchImpl **values,
                                                   GTorchImpl **indices, GError **error)
{
  return gtorch_op_adaptive_max_pool (self, 3, output_size, n_output_size, values, indices, error);
}

/* One window that covers everything is an ordinary mean, which reads whole lines. */
static gboolean
is_one_window (const GTorchImpl *self, guint n_dims, const gint64 *output_size, gsize n)
{
  guint i;

  if ((n != 1 && n != n_dims) || (self->n_dims != n_dims + 1 && self->n_dims != n_dims + 2)
      || self->numel == 0)
    return FALSE;
  for (i = 0; i < n; i++)
    if (output_size[i] != 1)
      return FALSE;
  return TRUE;
}

GTorchImpl *
gtorch_op_adaptive_mean (GTorchImpl *self, gint64 dims, const gint64 *output_size,
                         gsize n_output_size, GError **error)
{
  const gint64 last[] = { -3, -2, -1 };

  if (is_one_window (self, dims, output_size, n_output_size))
    return gtorch_op_mean (self, last + 3 - dims, dims, TRUE, GTORCH_DTYPE_NONE, error);
  return gtorch_op_adaptive_mean_pool (self, dims, output_size, n_output_size, error);
}
