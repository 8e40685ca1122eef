/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations that exchange channels and pixels, and the bilinear form. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"

/* Splits dimensions, orders them anew and merges them. */
static GTorchImpl *
rearrange (GTorchImpl *self, const gint64 *split, const gint64 *order, guint n_split,
           const gint64 *merged, guint n_merged, GError **error)
{
  g_autoptr (GTorchImpl) parts = gtorch_op_reshape (self, split, n_split, error);
  g_autoptr (GTorchImpl) turned =
      parts != NULL ? gtorch_op_permute (parts, order, n_split, error) : NULL;

  return turned != NULL ? gtorch_op_reshape (turned, merged, n_merged, error) : NULL;
}

/* With these limits no product of sizes overflows. */
#define MAX_FACTOR 65535
#define MAX_SIZE   G_MAXINT32

static gboolean
check_image (const gchar *op, GTorchImpl *self, gint64 factor, GError **error)
{
  if (self->n_dims < 3 || self->n_dims + 2 > GTORCH_MAX_DIMS)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: shape %s must have from 3 to %d dimensions"), op,
                 gtorch_impl_shape_str (self), GTORCH_MAX_DIMS - 2);
  else if (factor < 1 || factor > MAX_FACTOR)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the factor is %" PRId64 ", it must be from 1 to %d"), op, factor,
                 MAX_FACTOR);
  else if (self->shape[self->n_dims - 3] > MAX_SIZE || self->shape[self->n_dims - 2] > MAX_SIZE
           || self->shape[self->n_dims - 1] > MAX_SIZE)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: shape %s has more than 2^31 - 1 channels, rows or columns"), op,
                 gtorch_impl_shape_str (self));
  else
    return TRUE;
  return FALSE;
}

GTorchImpl *
gtorch_op_pixel_shuffle (GTorchImpl *self, gint64 upscale_factor, GError **error)
{
  const gint64 r = upscale_factor;
  gint64 split[GTORCH_MAX_DIMS], order[GTORCH_MAX_DIMS], merged[GTORCH_MAX_DIMS];
  const guint n = self->n_dims;
  const guint c = n - 3;

  if (!check_image ("pixel_shuffle", self, r, error))
    return NULL;
  if (self->shape[c] % (r * r) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("pixel_shuffle: %" PRId64 " channels of shape %s are no multiple "
                      "of the square of the factor %" PRId64),
                   self->shape[c], gtorch_impl_shape_str (self), r);
      return NULL;
    }
  for (guint i = 0; i < c; i++)
    {
      split[i] = merged[i] = self->shape[i];
      order[i] = i;
    }
  /* C r r H W */
  merged[c] = split[c] = self->shape[c] / (r * r);
  split[c + 1] = split[c + 2] = r;
  split[c + 3] = self->shape[c + 1];
  split[c + 4] = self->shape[c + 2];
  order[c] = c;
  order[c + 1] = c + 3;
  order[c + 2] = c + 1;
  order[c + 3] = c + 4;
  order[c + 4] = c + 2;
  merged[c + 1] = self->shape[c + 1] * r;
  merged[c + 2] = self->shape[c + 2] * r;
  return rearrange (self, split, order, n + 2, merged, n, error);
}

GTorchImpl *
gtorch_op_pixel_unshuffle (GTorchImpl *self, gint64 downscale_factor, GError **error)
{
  const gint64 r = downscale_factor;
  gint64 split[GTORCH_MAX_DIMS], order[GTORCH_MAX_DIMS], merged[GTORCH_MAX_DIMS];
  const guint n = self->n_dims;
  const guint c = n - 3;

  if (!check_image ("pixel_unshuffle", self, r, error))
    return NULL;
  if (self->shape[c + 1] % r != 0 || self->shape[c + 2] % r != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("pixel_unshuffle: height and width of shape %s must be multiples of the "
                      "factor %" PRId64),
                   gtorch_impl_shape_str (self), r);
      return NULL;
    }
  for (guint i = 0; i < c; i++)
    {
      split[i] = merged[i] = self->shape[i];
      order[i] = i;
    }
  /* C H r W r */
  split[c] = self->shape[c];
  merged[c + 1] = split[c + 1] = self->shape[c + 1] / r;
  merged[c + 2] = split[c + 3] = self->shape[c + 2] / r;
  split[c + 2] = split[c + 4] = r;
  merged[c] = self->shape[c] * r * r;
  order[c] = c;
  order[c + 1] = c + 2;
  order[c + 2] = c + 4;
  order[c + 3] = c + 1;
  order[c + 4] = c + 3;
  return rearrange (self, split, order, n + 2, merged, n, error);
}

GTorchImpl *
gtorch_op_channel_shuffle (GTorchImpl *self, gint64 groups, GError **error)
{
  gint64 split[GTORCH_MAX_DIMS], order[GTORCH_MAX_DIMS];
  const guint n = self->n_dims;

  if (n < 3 || n + 1 > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("channel_shuffle: shape %s must have from 3 to %d dimensions"),
                   gtorch_impl_shape_str (self), GTORCH_MAX_DIMS - 1);
      return NULL;
    }
  if (groups < 1 || self->shape[1] % groups != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("channel_shuffle: %" PRId64 " groups of %" PRId64
                      " channels: there must be groups, of equal size"),
                   groups, self->shape[1]);
      return NULL;
    }
  for (guint i = 0; i < n + 1; i++)
    {
      split[i] = i == 0 ? self->shape[0] : self->shape[i - 1];
      order[i] = i;
    }
  split[1] = groups;
  split[2] = self->shape[1] / groups;
  order[1] = 2;
  order[2] = 1;
  return rearrange (self, split, order, n + 1, self->shape, n, error);
}

static gboolean
check_bilinear (GTorchImpl *input1, GTorchImpl *input2, GTorchImpl *weight, GTorchImpl *bias,
                GError **error)
{
  const guint n = input1->n_dims;

  if (n > 0 && n == input2->n_dims && weight->n_dims == 3
      && gtorch_same_shape (input1->shape, n - 1, input2->shape, n - 1)
      && input1->shape[n - 1] == weight->shape[1] && input2->shape[n - 1] == weight->shape[2]
      && (bias == NULL || gtorch_same_shape (bias->shape, bias->n_dims, weight->shape, 1)))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("bilinear: inputs %s and %s, weight %s and bias %s must be [*, in1], [*, in2], "
                  "[out, in1, in2] and [out]"),
               gtorch_impl_shape_str (input1), gtorch_impl_shape_str (input2),
               gtorch_impl_shape_str (weight), bias != NULL ? gtorch_impl_shape_str (bias) : "-");
  return FALSE;
}

GTorchImpl *
gtorch_composite_bilinear (GTorchImpl *input1, GTorchImpl *input2, GTorchImpl *weight,
                           GTorchImpl *bias, GError **error)
{
  g_autoptr (GTorchImpl) left = NULL;
  g_autoptr (GTorchImpl) right = NULL;
  g_autoptr (GTorchImpl) matrix = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  g_autoptr (GTorchImpl) shaped = NULL;
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  const guint n = input1->n_dims;
  gint64 shape[GTORCH_MAX_DIMS], n_rows = 1, n_out;

  if (!check_bilinear (input1, input2, weight, bias, error))
    return NULL;
  for (guint i = 0; i + 1 < n; i++)
    n_rows *= shape[i] = input1->shape[i];
  n_out = shape[n - 1] = weight->shape[0];
  /* [rows, in1] · [in1, out · in2], then each [out, in2] · [in2, 1] */
  left = gtorch_op_reshape (input1, (const gint64[]){ n_rows, weight->shape[1] }, 2, error);
  turned = left != NULL ? gtorch_op_permute (weight, (const gint64[]){ 1, 0, 2 }, 3, error) : NULL;
  matrix = turned != NULL
               ? gtorch_op_reshape (turned,
                                    (const gint64[]){ weight->shape[1], n_out * weight->shape[2] },
                                    2, error)
               : NULL;
  product = matrix != NULL ? gtorch_op_mm (left, matrix, error) : NULL;
  shaped = product != NULL
               ? gtorch_op_reshape (product, (const gint64[]){ n_rows, n_out, weight->shape[2] }, 3,
                                    error)
               : NULL;
  right =
      shaped != NULL
          ? gtorch_op_reshape (input2, (const gint64[]){ n_rows, weight->shape[2], 1 }, 3, error)
          : NULL;
  column = right != NULL ? gtorch_op_bmm (shaped, right, error) : NULL;
  output = column != NULL ? gtorch_op_reshape (column, shape, n, error) : NULL;
  if (output == NULL || bias == NULL)
    return g_steal_pointer (&output);
  return gtorch_op_add (output, bias, 1, error);
}
