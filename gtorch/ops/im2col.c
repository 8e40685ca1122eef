/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The windows of images as columns, and their sum. Both consist of unfold and its gradient, one dimension
 * after the other; of a dilated window, which unfold takes whole, a slice leaves each element that counts. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"

typedef struct
{
  gint64 kernel[2], dilation[2], padding[2], stride[2];
  gint64 window[2];            /* the length of a dilated window */
  gint64 padded[2], places[2]; /* of a padded image, and of its windows */
} Columns;

static gboolean
read_pair (const gchar *op, const gchar *name, const gint64 *list, gsize n, gint64 least,
           gint64 *result, GError **error)
{
  gsize i;

  if (n != 1 && n != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %s must hold 1 or %u numbers, it holds %u"), op, name, 2u, (guint) n);
      return FALSE;
    }
  for (i = 0; i < 2; i++)
    {
      result[i] = list[n == 1 ? 0 : i];
      if (result[i] >= least && result[i] <= G_MAXINT32)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %s must be from %" PRId64 " to %d, it is %" PRId64), op, name, least,
                   G_MAXINT32, result[i]);
      return FALSE;
    }
  return TRUE;
}

static gboolean
columns_init (Columns *columns, const gchar *op, const gint64 *image, GError **error)
{
  guint i;

  for (i = 0; i < 2; i++)
    {
      columns->window[i] = columns->dilation[i] * (columns->kernel[i] - 1) + 1;
      if (__builtin_add_overflow (image[i], 2 * columns->padding[i], &columns->padded[i])
          || columns->padded[i] < columns->window[i])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: a window of %" PRId64 " with dilation %" PRId64
                          " does not fit into %" PRId64 " with padding %" PRId64),
                       op, columns->kernel[i], columns->dilation[i], image[i], columns->padding[i]);
          return FALSE;
        }
      columns->places[i] = (columns->padded[i] - columns->window[i]) / columns->stride[i] + 1;
    }
  return TRUE;
}

/* Takes the windows along a dimension, and of each the elements that the dilation leaves. */
static GTorchImpl *
windows (GTorchImpl *self, const Columns *columns, guint which, GError **error)
{
  g_autoptr (GTorchImpl) all =
      gtorch_op_unfold (self, 2 + which, columns->window[which], columns->stride[which], error);

  if (all == NULL || columns->dilation[which] == 1)
    return g_steal_pointer (&all);
  return gtorch_op_slice (all, -1, 0, columns->window[which], columns->dilation[which], error);
}

GTorchImpl *
gtorch_op_im2col (GTorchImpl *input, const gint64 *kernel_size, gsize n_kernel_size,
                  const gint64 *dilation, gsize n_dilation, const gint64 *padding, gsize n_padding,
                  const gint64 *stride, gsize n_stride, GError **error)
{
  static const gint64 order[] = { 0, 1, 4, 5, 2, 3 };
  const guint n = input->n_dims;
  g_autoptr (GTorchImpl) batch = NULL;
  g_autoptr (GTorchImpl) image = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) both = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  Columns columns;
  gint64 shape[3], pad[4];

  if ((n != 3 && n != 4) || input->shape[n - 1] < 1 || input->shape[n - 2] < 1
      || input->shape[n - 3] < 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s is not [N, C, H, W] or [C, H, W] with elements"), "im2col",
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  if (!read_pair ("im2col", "kernel_size", kernel_size, n_kernel_size, 1, columns.kernel, error)
      || !read_pair ("im2col", "dilation", dilation, n_dilation, 1, columns.dilation, error)
      || !read_pair ("im2col", "padding", padding, n_padding, 0, columns.padding, error)
      || !read_pair ("im2col", "stride", stride, n_stride, 1, columns.stride, error)
      || !columns_init (&columns, "im2col", input->shape + n - 2, error))
    return NULL;
  pad[0] = pad[1] = columns.padding[1];
  pad[2] = pad[3] = columns.padding[0];
  batch = n == 3 ? gtorch_op_unsqueeze (input, 0, error) : gtorch_impl_ref (input);
  if (batch != NULL)
    image = pad[0] + pad[2] > 0 ? gtorch_op_constant_pad_nd (batch, pad, 4, 0, error)
                                : gtorch_impl_ref (batch);
  rows = image != NULL ? windows (image, &columns, 0, error) : NULL;
  both = rows != NULL ? windows (rows, &columns, 1, error) : NULL;
  turned = both != NULL ? gtorch_op_permute (both, order, 6, error) : NULL;
  if (turned == NULL)
    return NULL;
  shape[0] = turned->shape[0];
  shape[1] = turned->shape[1] * columns.kernel[0] * columns.kernel[1];
  shape[2] = columns.places[0] * columns.places[1];
  return gtorch_op_reshape (turned, shape + (n == 3), n - 1, error);
}

/* Adds windows, in the last dimension, in their places along a dimension of `size`. */
static GTorchImpl *
add_windows (GTorchImpl *self, const Columns *columns, guint which, const gint64 *size,
             GError **error)
{
  const guint last = self->n_dims - 1;
  gint64 whole[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) spread = NULL;
  guint i;

  if (columns->dilation[which] > 1)
    {
      for (i = 0; i < last; i++)
        whole[i] = self->shape[i];
      whole[last] = columns->window[which];
      spread = gtorch_op_slice_backward (self, whole, last + 1, last, 0, columns->window[which],
                                         columns->dilation[which], error);
      if (spread == NULL)
        return NULL;
    }
  return gtorch_op_unfold_backward (spread != NULL ? spread : self, size, last, 2 + which,
                                    columns->window[which], columns->stride[which], error);
}

static gboolean
check_columns (const GTorchImpl *input, const Columns *columns, GError **error)
{
  const gint64 taps = columns->kernel[0] * columns->kernel[1];
  const gint64 places = columns->places[0] * columns->places[1];
  const gint64 *last = input->shape + input->n_dims - 2;

  if (last[0] > 0 && last[0] % taps == 0 && last[1] == places)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: shape %s must have a multiple of %" PRId64
                  " rows and a column for each of %" PRId64 " windows"),
               "col2im", gtorch_impl_shape_str (input), taps, places);
  return FALSE;
}

GTorchImpl *
gtorch_op_col2im (GTorchImpl *input, const gint64 *output_size, gsize n_output_size,
                  const gint64 *kernel_size, gsize n_kernel_size, const gint64 *dilation,
                  gsize n_dilation, const gint64 *padding, gsize n_padding, const gint64 *stride,
                  gsize n_stride, GError **error)
{
  static const gint64 order[] = { 0, 1, 4, 5, 2, 3 };
  const gboolean batched = input->n_dims == 3;
  g_autoptr (GTorchImpl) parts = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) image = NULL;
  g_autoptr (GTorchImpl) low = NULL;
  g_autoptr (GTorchImpl) batch = NULL;
  gint64 image_size[2], shape[6], size[5];
  Columns columns;

  if (input->n_dims != 2 && input->n_dims != 3)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s is not [N, C · h · w, L] or [C · h · w, L]"), "col2im",
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  if (!read_pair ("col2im", "output_size", output_size, n_output_size, 1, image_size, error)
      || !read_pair ("col2im", "kernel_size", kernel_size, n_kernel_size, 1, columns.kernel, error)
      || !read_pair ("col2im", "dilation", dilation, n_dilation, 1, columns.dilation, error)
      || !read_pair ("col2im", "padding", padding, n_padding, 0, columns.padding, error)
      || !read_pair ("col2im", "stride", stride, n_stride, 1, columns.stride, error)
      || !columns_init (&columns, "col2im", image_size, error)
      || !check_columns (input, &columns, error))
    return NULL;
  shape[0] = size[0] = batched ? input->shape[0] : 1;
  shape[1] = size[1] = input->shape[input->n_dims - 2] / (columns.kernel[0] * columns.kernel[1]);
  shape[2] = size[4] = columns.kernel[0];
  shape[3] = columns.kernel[1];
  shape[4] = size[2] = columns.places[0];
  shape[5] = columns.places[1];
  size[3] = columns.padded[1];
  parts = gtorch_op_reshape (input, shape, 6, error);
  turned = parts != NULL ? gtorch_op_permute (parts, order, 6, error) : NULL;
  rows = turned != NULL ? add_windows (turned, &columns, 1, size, error) : NULL;
  size[2] = columns.padded[0];
  image = rows != NULL ? add_windows (rows, &columns, 0, size, error) : NULL;
  low =
      image != NULL ? gtorch_op_narrow (image, 2, columns.padding[0], image_size[0], error) : NULL;
  batch = low != NULL ? gtorch_op_narrow (low, 3, columns.padding[1], image_size[1], error) : NULL;
  if (batch == NULL)
    return NULL;
  return batched ? gtorch_op_contiguous (batch, error) : gtorch_op_select (batch, 0, 0, error);
}
