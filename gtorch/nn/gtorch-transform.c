/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Transforms of images, [..., C, H, W]: places and sizes. Their rows are in layers/transforms.toml. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-factors.h"
#include "device/gtorch-device.h"
#include "elements/gtorch-tensor-bytes.h"
#include "nn/gtorch-transform-private.h"

gboolean
gtorch_transform_check (GTorchModule *self, GTorchImpl *image, guint least_dims, GError **error)
{
  if (image->n_dims >= least_dims && image->n_dims < GTORCH_MAX_DIMS
      && image->shape[image->n_dims - 1] > 0 && image->shape[image->n_dims - 2] > 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the shape is %s, but must be [..., height, width] with at least %u "
                  "dimensions, and not be empty"),
               gtorch_module_type_name (self), gtorch_impl_shape_str (image), least_dims);
  return FALSE;
}

/* Numbers from 0 to 1 (exclusive), of the default generator of the CPU. */
gboolean
gtorch_transform_draw (gdouble *numbers, guint n, GError **error)
{
  gint64 shape = n;
  g_autoptr (GTorchImpl) drawn =
      gtorch_op_rand (&shape, 1, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL, error);

  for (guint i = 0; drawn != NULL && i < n; i++)
    {
      g_autoptr (GTorchImpl) one = gtorch_op_select (drawn, 0, i, error);
      g_autoptr (GTorchTensor) tensor =
          one != NULL ? gtorch_tensor_wrap (g_steal_pointer (&one)) : NULL;
      GError *local = NULL;

      if (tensor == NULL)
        return FALSE;
      numbers[i] = gtorch_tensor_item_double (tensor, &local);
      if (local != NULL)
        {
          g_propagate_error (error, local);
          return FALSE;
        }
    }
  return drawn != NULL;
}

static gint64
draw_below (gdouble number, gint64 n)
{
  return MIN ((gint64) (number * n), n - 1);
}

void
gtorch_transform_range (GTorchFactors *factors, gdouble low, gdouble high, gdouble range[2])
{
  gsize n = 0;
  const gdouble *values = factors != NULL ? gtorch_factors_get_values (factors, &n) : NULL;

  range[0] = n > 0 ? values[0] : low;
  range[1] = n > 0 ? values[n - 1] : high;
}

static void
get_size (GTorchSize *size, gint64 *height, gint64 *width)
{
  gsize n;
  const gint64 *values = gtorch_size_get_values (size, &n);

  *height = values[0];
  *width = values[n - 1];
}

static GTorchImpl *
crop (GTorchFormula *f, GTorchImpl *image, gint64 top, gint64 left, gint64 height, gint64 width)
{
  GTorchImpl *rows = GTORCH_FORMULA_OP (f, narrow, image, -2, top, height);

  return GTORCH_FORMULA_OP (f, narrow, rows, -1, left, width);
}

static GTorchTensor *
finish (GTorchFormula *f, GTorchImpl *image)
{
  GTorchImpl *result = gtorch_formula_take (f, image);

  return result != NULL ? gtorch_tensor_wrap (result) : NULL;
}

/* --- size --- */

/* Images are put into one batch. Those of integers are computed in float32, but for bytes on the CPU. */
static GTorchImpl *
resize (GTorchFormula *f, GTorchImpl *image, gint64 height, gint64 width, gint mode,
        gboolean antialias)
{
  gboolean is_nearest =
      mode == GTORCH_RESAMPLING_NEAREST || mode == GTORCH_RESAMPLING_NEAREST_EXACT;
  gboolean is_native =
      image->dtype == GTORCH_DTYPE_UINT8 && gtorch_device_is_host (gtorch_impl_device (image));
  gboolean casts = !is_nearest && !is_native && !gtorch_dtype_is_floating_point (image->dtype);
  gint64 size[] = { height, width };
  guint n = image->n_dims;
  gint64 batch[4] = { 1, n > 2 ? image->shape[n - 3] : 1, image->shape[n - 2],
                      image->shape[n - 1] };
  gint64 shape[GTORCH_MAX_DIMS];
  guint dtype = image->dtype;
  GTorchImpl *result;

  if (batch[2] == height && batch[3] == width)
    return image;
  for (guint i = 0; i < n; i++)
    {
      shape[i] = image->shape[i];
      batch[0] *= i + 3 < n ? shape[i] : 1;
    }
  shape[n - 2] = height;
  shape[n - 1] = width;
  result = GTORCH_FORMULA_OP (f, reshape, image, batch, 4);
  if (casts)
    result = GTORCH_FORMULA_OP (f, to_dtype, result, GTORCH_DTYPE_FLOAT32);
  result =
      GTORCH_FORMULA_OP (f, interpolate, result, size, 2, GTORCH_NONE_DOUBLE, mode, FALSE, FALSE,
                         antialias && !is_nearest, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE);
  if (casts)
    {
      if (mode == GTORCH_RESAMPLING_BICUBIC && dtype == GTORCH_DTYPE_UINT8)
        result = GTORCH_FORMULA_OP (f, clamp, result, 0, 255);
      result = GTORCH_FORMULA_OP (f, round, result);
      result = GTORCH_FORMULA_OP (f, to_dtype, result, dtype);
    }
  return GTORCH_FORMULA_OP (f, reshape, result, shape, n);
}

static gboolean
check_mode (GTorchModule *self, gint mode, GError **error)
{
  if (mode == GTORCH_RESAMPLING_NEAREST || mode == GTORCH_RESAMPLING_NEAREST_EXACT
      || mode == GTORCH_RESAMPLING_BILINEAR || mode == GTORCH_RESAMPLING_BICUBIC)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: interpolation must be nearest, nearest-exact, bilinear or bicubic"),
               gtorch_module_type_name (self));
  return FALSE;
}

GTorchTensor *
gtorch_layer_resize (GTorchModule *self, GTorchTensor *input, GTorchSize *size, gint mode,
                     gint64 max_size, gboolean antialias, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);
  gint64 height, width, shorter, longer;

  if (!gtorch_transform_check (self, image, 2, error) || !check_mode (self, mode, error))
    return NULL;
  get_size (size, &height, &width);
  if (gtorch_size_get_length (size) == 1)
    {
      gint64 h = image->shape[image->n_dims - 2], w = image->shape[image->n_dims - 1];

      if (max_size != GTORCH_NONE && max_size <= height)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: max_size %" PRId64 " must be greater than the size "
                          "%" PRId64 " of the shorter edge"),
                       gtorch_module_type_name (self), max_size, height);
          return NULL;
        }
      shorter = height;
      longer = (gint64) ((gdouble) shorter * MAX (h, w) / MIN (h, w));
      if (max_size != GTORCH_NONE && longer > max_size)
        {
          shorter = MAX ((gint64) ((gdouble) max_size * shorter / longer), 1);
          longer = max_size;
        }
      height = h <= w ? shorter : longer;
      width = h <= w ? longer : shorter;
    }
  else if (max_size != GTORCH_NONE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: max_size is for a size of one number"), gtorch_module_type_name (self));
      return NULL;
    }
  return finish (&f, resize (&f, image, height, width, mode, antialias));
}

/* --- parts --- */

GTorchTensor *
gtorch_layer_center_crop (GTorchModule *self, GTorchTensor *input, GTorchSize *size, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);
  gint64 height, width, h, w;

  if (!gtorch_transform_check (self, image, 2, error))
    return NULL;
  get_size (size, &height, &width);
  h = image->shape[image->n_dims - 2];
  w = image->shape[image->n_dims - 1];
  if (height > h || width > w)
    {
      gint64 more_h = MAX (height - h, 0), more_w = MAX (width - w, 0);
      gint64 pad[] = { more_w / 2, (more_w + 1) / 2, more_h / 2, (more_h + 1) / 2 };

      image = GTORCH_FORMULA_OP (&f, pad, image, pad, 4, GTORCH_PAD_MODE_CONSTANT, 0);
      h += more_h;
      w += more_w;
    }
  /* Half an element is rounded to the even place, as Python's round () does. */
  return finish (&f, crop (&f, image, (gint64) rint ((h - height) / 2.0),
                           (gint64) rint ((w - width) / 2.0), height, width));
}

static GTorchImpl *
pad_image (GTorchFormula *f, GTorchImpl *image, GTorchSize *padding, gdouble fill, gint mode)
{
  gsize n;
  const gint64 *values = gtorch_size_get_values (padding, &n);
  gint64 pad[] = { values[0], values[n > 1 ? 2 : 0], values[n > 1 ? 1 : 0], values[n > 1 ? 3 : 0] };

  return GTORCH_FORMULA_OP (f, pad, image, pad, 4, mode, fill);
}

GTorchTensor *
gtorch_layer_pad_image (GTorchModule *self, GTorchTensor *input, GTorchSize *padding, gdouble fill,
                        gint mode, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);

  if (!gtorch_transform_check (self, image, 2, error))
    return NULL;
  return finish (&f, pad_image (&f, image, padding, fill, mode));
}

GTorchTensor *
gtorch_layer_random_crop (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                          GTorchSize *padding, gboolean pad_if_needed, gdouble fill, gint mode,
                          GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);
  gint64 height, width, h, w;
  gdouble numbers[2];

  if (!gtorch_transform_check (self, image, 2, error))
    return NULL;
  get_size (size, &height, &width);
  if (padding != NULL && (image = pad_image (&f, image, padding, fill, mode)) == NULL)
    return NULL;
  h = image->shape[image->n_dims - 2];
  w = image->shape[image->n_dims - 1];
  if (pad_if_needed && (h < height || w < width))
    {
      gint64 more_h = MAX (height - h, 0), more_w = MAX (width - w, 0);
      gint64 pad[] = { more_w, more_w, more_h, more_h };

      image = GTORCH_FORMULA_OP (&f, pad, image, pad, 4, mode, fill);
      h += 2 * more_h;
      w += 2 * more_w;
    }
  if (h < height || w < width)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: a part of %" PRId64 " × %" PRId64 " is larger than the image of %" PRId64
                      " × %" PRId64),
                   gtorch_module_type_name (self), height, width, h, w);
      return NULL;
    }
  if (!gtorch_transform_draw (numbers, 2, error))
    return NULL;
  return finish (&f, crop (&f, image, draw_below (numbers[0], h - height + 1),
                           draw_below (numbers[1], w - width + 1), height, width));
}

typedef struct
{
  gint64 top, left, height, width;
} Part;

/* A part of random area and proportions; after ten that do not fit, none. */
static gboolean
draw_part (gint64 h, gint64 w, const gdouble scale[2], const gdouble ratio[2], gboolean is_tall,
           Part *part, gboolean *is_found, GError **error)
{
  *is_found = FALSE;
  for (guint i = 0; i < 10 && !*is_found; i++)
    {
      gdouble u[4], area, aspect, low = log (ratio[0]), high = log (ratio[1]);
      gint64 longer, other;

      if (!gtorch_transform_draw (u, 4, error))
        return FALSE;
      area = (gdouble) h * w * (scale[0] + u[0] * (scale[1] - scale[0]));
      aspect = exp (low + u[1] * (high - low));
      longer = (gint64) rint (sqrt (area * aspect));
      other = (gint64) rint (sqrt (area / aspect));
      part->height = is_tall ? longer : other;
      part->width = is_tall ? other : longer;
      /* What is erased is smaller than the image. */
      if (part->width < 1 || part->height < 1 || part->width > w - is_tall
          || part->height > h - is_tall)
        continue;
      part->top = draw_below (u[2], h - part->height + 1);
      part->left = draw_below (u[3], w - part->width + 1);
      *is_found = TRUE;
    }
  return TRUE;
}

GTorchTensor *
gtorch_layer_random_resized_crop (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                                  GTorchFactors *scale, GTorchFactors *ratio, gint mode,
                                  gboolean antialias, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);
  gint64 height, width, h, w;
  gdouble scales[2], ratios[2];
  gboolean is_found;
  Part part;

  if (!gtorch_transform_check (self, image, 2, error) || !check_mode (self, mode, error))
    return NULL;
  get_size (size, &height, &width);
  h = image->shape[image->n_dims - 2];
  w = image->shape[image->n_dims - 1];
  gtorch_transform_range (scale, 0.08, 1, scales);
  gtorch_transform_range (ratio, 3.0 / 4, 4.0 / 3, ratios);
  if (!draw_part (h, w, scales, ratios, FALSE, &part, &is_found, error))
    return NULL;
  if (!is_found)
    {
      gdouble own = (gdouble) w / h;

      part.width = own > ratios[1] ? (gint64) rint (h * ratios[1]) : w;
      part.height = own < ratios[0] ? (gint64) rint (w / ratios[0]) : h;
      part.width = CLAMP (part.width, 1, w);
      part.height = CLAMP (part.height, 1, h);
      part.top = (h - part.height) / 2;
      part.left = (w - part.width) / 2;
    }
  image = crop (&f, image, part.top, part.left, part.height, part.width);
  return image != NULL ? finish (&f, resize (&f, image, height, width, mode, antialias)) : NULL;
}

GTorchTensor *
gtorch_layer_random_erasing (GTorchModule *self, GTorchTensor *input, gdouble p,
                             GTorchFactors *scale, GTorchFactors *ratio, gdouble value,
                             gboolean inplace, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input), *result, *region;
  gdouble scales[2], ratios[2], number;
  gboolean is_found;
  Part part;

  if (!gtorch_transform_check (self, image, 3, error) || !gtorch_transform_draw (&number, 1, error))
    return NULL;
  gtorch_transform_range (scale, 0.02, 0.33, scales);
  gtorch_transform_range (ratio, 0.3, 3.3, ratios);
  if (!draw_part (image->shape[image->n_dims - 2], image->shape[image->n_dims - 1], scales, ratios,
                  TRUE, &part, &is_found, error))
    return NULL;
  if (number >= p || !is_found)
    return g_object_ref (input);
  result = inplace ? image : GTORCH_FORMULA_OP (&f, clone, image);
  region = result != NULL ? crop (&f, result, part.top, part.left, part.height, part.width) : NULL;
  if (region == NULL || !gtorch_op_fill_inplace (region, value, error))
    return NULL;
  return inplace ? g_object_ref (input) : finish (&f, result);
}

GTorchTensor *
gtorch_layer_random_flip (GTorchModule *self, GTorchTensor *input, gdouble p, gint64 dim,
                          GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);
  gdouble number;

  if (!gtorch_transform_check (self, image, 2, error) || !gtorch_transform_draw (&number, 1, error))
    return NULL;
  if (number >= p)
    return g_object_ref (input);
  return finish (&f, GTORCH_FORMULA_OP (&f, flip, image, &dim, 1));
}
