/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

static gboolean
read_pair (GTorchOpCall *call, const gchar *name, const GTorchAttr *attr, gint64 low, gint64 *pair,
           GError **error)
{
  const gint64 *list = attr->list.data;
  gsize n = attr->list.n;

  if (n != 1 && n != 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%s must hold 1 or 2 numbers, it holds %u"), name, (guint) n);
      return FALSE;
    }
  pair[0] = list[0];
  pair[1] = list[n - 1];
  if (MIN (pair[0], pair[1]) < low || MAX (pair[0], pair[1]) > G_MAXINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%s must be from %d to %d, it is %s"), name, (int) low, G_MAXINT32,
                         gtorch_shape_str (pair, 2));
      return FALSE;
    }
  return TRUE;
}

/* Tells whether the call is a gradient, whose first attribute is the shape of the images. */
static gboolean
is_backward (const GTorchOpCall *call)
{
  return call->op->id == GTORCH_OP_MAX_POOL2D_BACKWARD
         || call->op->id == GTORCH_OP_AVG_POOL2D_BACKWARD
         || call->op->id == GTORCH_OP_ADAPTIVE_AVG_POOL2D_BACKWARD;
}

/* Computes the sizes of windows and results for an input shape. */
static gboolean
windows_init (GTorchWindows *windows, GTorchOpCall *call, const gint64 *shape, guint n_dims,
              gboolean ceil_mode, GError **error)
{
  guint i;

  if (n_dims != 3 && n_dims != 4)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("images of shape %s must have 3 or 4 dimensions"),
                         gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  for (i = 0; i < 2; i++)
    {
      gint64 n = windows->in[i] = shape[n_dims - 2 + i], rest;

      if (windows->adaptive)
        {
          if (n > 0)
            continue;
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("images of shape %s have no elements"),
                             gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
      if (windows->padding[i] > windows->kernel[i] / 2)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                             _ ("padding %" G_GINT64_FORMAT
                                " is more than half of the window's size %" G_GINT64_FORMAT),
                             windows->padding[i], windows->kernel[i]);
          return FALSE;
        }
      rest = n + 2 * windows->padding[i] - windows->dilation[i] * (windows->kernel[i] - 1) - 1;
      windows->out[i] = rest < 0 ? 0 : rest / windows->stride[i] + 1;
      if (ceil_mode && rest >= 0 && rest % windows->stride[i] != 0
          && windows->out[i] * windows->stride[i] < n + windows->padding[i])
        windows->out[i]++;
      if (windows->out[i] < 1)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("windows of %s do not fit into images of shape %s"),
                             gtorch_shape_str (windows->kernel, 2),
                             gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
    }
  return TRUE;
}

/* Reads the attributes kernel_size, stride and padding. */
static gboolean
read_windows (GTorchWindows *windows, GTorchOpCall *call, const GTorchAttr *attrs, GError **error)
{
  windows->dilation[0] = windows->dilation[1] = 1;
  if (!read_pair (call, "kernel_size", &attrs[0], 1, windows->kernel, error)
      || !read_pair (call, "padding", &attrs[2], 0, windows->padding, error))
    return FALSE;
  if (attrs[1].list.n == 0)
    {
      memcpy (windows->stride, windows->kernel, sizeof windows->stride);
      return TRUE;
    }
  return read_pair (call, "stride", &attrs[1], 1, windows->stride, error);
}

gboolean
gtorch_windows_init (GTorchWindows *windows, GTorchOpCall *call, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  const gint64 *shape = call->inputs[0]->shape;
  guint n_dims = call->inputs[0]->n_dims;

  if (is_backward (call))
    {
      shape = attrs[0].list.data;
      n_dims = attrs[0].list.n;
      attrs++;
    }
  memset (windows, 0, sizeof *windows);
  if (call->op->id == GTORCH_OP_MAX_POOL2D_WITH_INDICES
      || call->op->id == GTORCH_OP_MAX_POOL2D_BACKWARD)
    return read_windows (windows, call, attrs, error)
           && read_pair (call, "dilation", &attrs[3], 1, windows->dilation, error)
           && windows_init (windows, call, shape, n_dims, attrs[4].i, error);
  if (call->op->id == GTORCH_OP_ADAPTIVE_AVG_POOL2D
      || call->op->id == GTORCH_OP_ADAPTIVE_AVG_POOL2D_BACKWARD)
    {
      windows->adaptive = TRUE;
      return read_pair (call, "output_size", &attrs[0], 0, windows->out, error)
             && windows_init (windows, call, shape, n_dims, FALSE, error);
    }
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

static gboolean
set_outputs (const GTorchWindows *windows, GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[4];
  guint i;

  call->compute = self->dtype;
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  memcpy (shape + self->n_dims - 2, windows->out, sizeof windows->out);
  if (!gtorch_call_check_dtype (call, self->dtype, error)
      || !gtorch_shape_check (call->op->name, shape, self->n_dims, self->dtype, error))
    return FALSE;
  for (i = 0; i < call->n_outputs; i++)
    if (!gtorch_call_set_output (call, i, i == 0 ? self->dtype : GTORCH_DTYPE_INT64, shape,
                                 self->n_dims, error))
      return FALSE;
  return TRUE;
}

static gboolean
shape_forward (GTorchOpCall *call, GError **error)
{
  GTorchWindows windows;

  return gtorch_windows_init (&windows, call, error) && set_outputs (&windows, call, error);
}

static gboolean
shape_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *upper = call->inputs[0];
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;
  GTorchWindows windows;

  if (!gtorch_windows_init (&windows, call, error))
    return FALSE;
  if (upper->n_dims != n_dims || memcmp (upper->shape, shape, (n_dims - 2) * sizeof (gint64)) != 0
      || memcmp (upper->shape + n_dims - 2, windows.out, sizeof windows.out) != 0
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
         && gtorch_call_set_output (call, 0, upper->dtype, shape, n_dims, error);
}

gboolean
gtorch_shape_max_pool2d_with_indices (GTorchOpCall *call, GError **error)
{
  return shape_forward (call, error);
}

gboolean
gtorch_shape_avg_pool2d (GTorchOpCall *call, GError **error)
{
  return shape_forward (call, error);
}

gboolean
gtorch_shape_adaptive_avg_pool2d (GTorchOpCall *call, GError **error)
{
  return shape_forward (call, error);
}

gboolean
gtorch_shape_max_pool2d_backward (GTorchOpCall *call, GError **error)
{
  return shape_backward (call, error);
}

gboolean
gtorch_shape_avg_pool2d_backward (GTorchOpCall *call, GError **error)
{
  return shape_backward (call, error);
}

gboolean
gtorch_shape_adaptive_avg_pool2d_backward (GTorchOpCall *call, GError **error)
{
  return shape_backward (call, error);
}

GTorchImpl *
gtorch_op_max_pool2d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                      const gint64 *stride, gsize n_stride, const gint64 *padding, gsize n_padding,
                      const gint64 *dilation, gsize n_dilation, gboolean ceil_mode, GError **error)
{
  GTorchImpl *values = NULL;

  gtorch_op_max_pool2d_with_indices (self, kernel_size, n_kernel_size, stride, n_stride, padding,
                                     n_padding, dilation, n_dilation, ceil_mode, &values, NULL,
                                     error);
  return values;
}
