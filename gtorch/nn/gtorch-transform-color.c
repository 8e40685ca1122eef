/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Transforms of images, [..., C, H, W]: values. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-dtype-private.h"
#include "nn/gtorch-transform-private.h"

/* The number that stands for white, or 0 with an error. */
static gdouble
white (GTorchModule *self, guint dtype, GError **error)
{
  if (gtorch_dtype_is_floating_point (dtype))
    return 1;
  if (dtype == GTORCH_DTYPE_UINT8)
    return 255;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: images are of uint8 or floating-point numbers, not of %s"),
               gtorch_module_type_name (self), gtorch_dtype_infos[dtype].name);
  return 0;
}

static gboolean
check_channels (GTorchModule *self, GTorchImpl *image, gboolean one_too, GError **error)
{
  gint64 n;

  if (!gtorch_transform_check (self, image, 3, error))
    return FALSE;
  n = image->shape[image->n_dims - 3];
  if (n == 3 || (one_too && n == 1))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               one_too ? _ ("%s: the shape is %s, but there must be 1 or 3 channels")
                       : _ ("%s: the shape is %s, but there must be 3 channels"),
               gtorch_module_type_name (self), gtorch_impl_shape_str (image));
  return FALSE;
}

static GTorchTensor *
finish (GTorchFormula *f, GTorchImpl *image)
{
  GTorchImpl *result = gtorch_formula_take (f, image);

  return result != NULL ? gtorch_tensor_wrap (result) : NULL;
}

static GTorchImpl *
scaled (GTorchFormula *f, GTorchImpl *image, gdouble factor)
{
  GTorchImpl *number = gtorch_formula_number (f, factor);

  return GTORCH_FORMULA_OP (f, mul, image, number);
}

/* --- dtypes --- */

static GTorchImpl *
convert (GTorchFormula *f, GTorchImpl *image, guint dtype)
{
  gboolean from_float = gtorch_dtype_is_floating_point (image->dtype);

  if (image->dtype == dtype)
    return image;
  /* so that each of the 256 numbers stands for as many as another one */
  if (dtype == GTORCH_DTYPE_UINT8)
    image = scaled (f, image, 256 - 1e-3);
  image = GTORCH_FORMULA_OP (f, to_dtype, image, dtype);
  return from_float ? image : scaled (f, image, 1.0 / 255);
}

GTorchTensor *
gtorch_layer_convert_image (GTorchModule *self, GTorchTensor *input, gint dtype, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input);

  if (dtype <= GTORCH_DTYPE_NONE || dtype >= GTORCH_N_DTYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: there is no dtype %d"),
                   gtorch_module_type_name (self), dtype);
      return NULL;
    }
  if (white (self, image->dtype, error) == 0 || white (self, dtype, error) == 0)
    return NULL;
  return finish (&f, convert (&f, image, dtype));
}

/* --- channels --- */

static GTorchImpl *
channel_numbers (GTorchFormula *f, GTorchFactors *factors, GTorchImpl *image)
{
  gsize n;
  const gdouble *values = gtorch_factors_get_values (factors, &n);
  GTorchImpl *numbers[3], *list;
  gint64 shape[] = { n, 1, 1 };

  for (gsize i = 0; i < n; i++)
    numbers[i] = GTORCH_FORMULA_OP (f, scalar_tensor, values[i], image->dtype, image->device);
  list = GTORCH_FORMULA_OP (f, stack, numbers, n, 0);
  return GTORCH_FORMULA_OP (f, reshape, list, shape, 3);
}

GTorchTensor *
gtorch_layer_normalize_image (GTorchModule *self, GTorchTensor *input, GTorchFactors *mean,
                              GTorchFactors *std, gboolean inplace, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input), *centered, *means, *deviations;

  if (!gtorch_transform_check (self, image, 3, error))
    return NULL;
  if (mean == NULL || std == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: mean and std must be given"),
                   gtorch_module_type_name (self));
      return NULL;
    }
  if (!gtorch_dtype_is_floating_point (image->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: images must be of floating-point numbers, not of %s; "
                      "ConvertImageDtype makes them so"),
                   gtorch_module_type_name (self), gtorch_dtype_infos[image->dtype].name);
      return NULL;
    }
  for (guint i = 0; i < 2; i++)
    {
      gsize n = gtorch_factors_get_length (i == 0 ? mean : std);

      if (n != 1 && (gint64) n != image->shape[image->n_dims - 3])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: %zu numbers for the channels of images of shape %s"),
                       gtorch_module_type_name (self), n, gtorch_impl_shape_str (image));
          return NULL;
        }
    }
  means = channel_numbers (&f, mean, image);
  deviations = channel_numbers (&f, std, image);
  if (f.failed)
    return NULL;
  if (inplace)
    return gtorch_op_sub_inplace (image, means, 1, error)
                   && gtorch_op_div_inplace (image, deviations, error)
               ? g_object_ref (input)
               : NULL;
  centered = GTORCH_FORMULA_OP (&f, sub, image, means, 1);
  return finish (&f, GTORCH_FORMULA_OP (&f, div, centered, deviations));
}

static GTorchImpl *
luminance (GTorchFormula *f, GTorchImpl *image)
{
  static const gdouble weights[] = { 0.2989, 0.587, 0.114 };
  GTorchImpl *sum = NULL;

  for (gint i = 0; i < 3; i++)
    {
      GTorchImpl *channel = scaled (f, GTORCH_FORMULA_OP (f, narrow, image, -3, i, 1), weights[i]);

      sum = i == 0 ? channel : GTORCH_FORMULA_OP (f, add, sum, channel, 1);
    }
  return sum;
}

GTorchTensor *
gtorch_layer_grayscale (GTorchModule *self, GTorchTensor *input, gint64 n_channels, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *image = gtorch_tensor_unwrap (input), *gray;
  gint64 shape[GTORCH_MAX_DIMS];

  if (!check_channels (self, image, TRUE, error) || white (self, image->dtype, error) == 0)
    return NULL;
  if (n_channels == 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: num_output_channels must be 1 or 3"), gtorch_module_type_name (self));
      return NULL;
    }
  gray = image->shape[image->n_dims - 3] == 1 ? image : luminance (&f, image);
  gray = GTORCH_FORMULA_OP (&f, to_dtype, gray, image->dtype);
  memcpy (shape, image->shape, image->n_dims * sizeof *shape);
  shape[image->n_dims - 3] = n_channels;
  return finish (&f, GTORCH_FORMULA_OP (&f, expand, gray, shape, image->n_dims));
}

/* --- jitter --- */

/* image * ratio + other * (1 - ratio), within the numbers of an image. */
static GTorchImpl *
blend (GTorchFormula *f, GTorchImpl *image, GTorchImpl *other, gdouble ratio)
{
  gdouble high = gtorch_dtype_is_floating_point (image->dtype) ? 1 : 255;
  GTorchImpl *result = scaled (f, image, ratio);

  if (other != NULL && result != NULL)
    result = GTORCH_FORMULA_OP (f, add, result, other, 1 - ratio);
  result = GTORCH_FORMULA_OP (f, clamp, result, 0, high);
  return GTORCH_FORMULA_OP (f, to_dtype, result, image->dtype);
}

static GTorchImpl *
gray_of (GTorchFormula *f, GTorchImpl *image)
{
  GTorchImpl *gray = image;

  if (image->shape[image->n_dims - 3] == 3)
    {
      gray = luminance (f, image);
      if (!gtorch_dtype_is_floating_point (image->dtype))
        gray = GTORCH_FORMULA_OP (f, floor, gray);
    }
  return gray != NULL && !gtorch_dtype_is_floating_point (gray->dtype)
             ? GTORCH_FORMULA_OP (f, to_dtype, gray, GTORCH_DTYPE_FLOAT32)
             : gray;
}

/* A channel by way of the distances to the six corners of the hue, as 1 - the part that is missing:
 * v - v s max (0, min (k, 4 - k, 1)) with k = (n + 6 h) mod 6, n = 5, 3, 1. */
static GTorchImpl *
hue_channel (GTorchFormula *f, GTorchImpl *h, GTorchImpl *s, GTorchImpl *v, gdouble n)
{
  GTorchImpl *six = gtorch_formula_number (f, 6), *start = gtorch_formula_number (f, n);
  GTorchImpl *four = gtorch_formula_number (f, 4);
  GTorchImpl *turned = scaled (f, h, 6);
  GTorchImpl *moved = GTORCH_FORMULA_OP (f, add, turned, start, 1);
  GTorchImpl *k = GTORCH_FORMULA_OP (f, remainder, moved, six);
  GTorchImpl *back = GTORCH_FORMULA_OP (f, sub, four, k, 1);
  GTorchImpl *least = GTORCH_FORMULA_OP (f, minimum, k, back);
  GTorchImpl *part = GTORCH_FORMULA_OP (f, clamp, least, 0, 1);
  GTorchImpl *most = GTORCH_FORMULA_OP (f, mul, v, s);
  GTorchImpl *missing = GTORCH_FORMULA_OP (f, mul, most, part);

  return GTORCH_FORMULA_OP (f, sub, v, missing, 1);
}

/* The hue, in turns; `range` is the difference of the greatest and the least channel, 1 where they are
 * equal. */
static GTorchImpl *
find_hue (GTorchFormula *f, GTorchImpl *image, GTorchImpl *most, GTorchImpl *range)
{
  GTorchImpl *two = gtorch_formula_number (f, 2), *four = gtorch_formula_number (f, 4);
  GTorchImpl *r = GTORCH_FORMULA_OP (f, narrow, image, -3, 0, 1);
  GTorchImpl *g = GTORCH_FORMULA_OP (f, narrow, image, -3, 1, 1);
  GTorchImpl *below = GTORCH_FORMULA_OP (f, sub, most, image, 1);
  GTorchImpl *distances = GTORCH_FORMULA_OP (f, div, below, range);
  GTorchImpl *rc = GTORCH_FORMULA_OP (f, narrow, distances, -3, 0, 1);
  GTorchImpl *gc = GTORCH_FORMULA_OP (f, narrow, distances, -3, 1, 1);
  GTorchImpl *bc = GTORCH_FORMULA_OP (f, narrow, distances, -3, 2, 1);
  GTorchImpl *h_r = GTORCH_FORMULA_OP (f, sub, bc, gc, 1);
  GTorchImpl *rc_2 = GTORCH_FORMULA_OP (f, add, rc, two, 1);
  GTorchImpl *h_g = GTORCH_FORMULA_OP (f, sub, rc_2, bc, 1);
  GTorchImpl *gc_4 = GTORCH_FORMULA_OP (f, add, gc, four, 1);
  GTorchImpl *h_b = GTORCH_FORMULA_OP (f, sub, gc_4, rc, 1);
  GTorchImpl *is_g = GTORCH_FORMULA_OP (f, eq, most, g);
  GTorchImpl *is_r = GTORCH_FORMULA_OP (f, eq, most, r);
  GTorchImpl *h_gb = GTORCH_FORMULA_OP (f, where, is_g, h_g, h_b);
  GTorchImpl *h = GTORCH_FORMULA_OP (f, where, is_r, h_r, h_gb);

  return scaled (f, h, 1.0 / 6);
}

static GTorchImpl *
turn_hue (GTorchFormula *f, GTorchImpl *original, gdouble turn)
{
  static const gint64 channels = -3;
  guint dtype = original->dtype;
  GTorchImpl *image = convert (f, original, GTORCH_DTYPE_FLOAT32);
  GTorchImpl *one = gtorch_formula_number (f, 1), *amount = gtorch_formula_number (f, turn);
  GTorchImpl *most = GTORCH_FORMULA_OP (f, amax, image, &channels, 1, TRUE);
  GTorchImpl *least = GTORCH_FORMULA_OP (f, amin, image, &channels, 1, TRUE);
  GTorchImpl *range = GTORCH_FORMULA_OP (f, sub, most, least, 1);
  GTorchImpl *is_gray = GTORCH_FORMULA_OP (f, eq, most, least);
  GTorchImpl *divisor = GTORCH_FORMULA_OP (f, where, is_gray, one, most);
  GTorchImpl *s = GTORCH_FORMULA_OP (f, div, range, divisor);
  GTorchImpl *safe = GTORCH_FORMULA_OP (f, where, is_gray, one, range);
  GTorchImpl *h = find_hue (f, image, most, safe);
  GTorchImpl *moved = GTORCH_FORMULA_OP (f, add, h, amount, 1);
  GTorchImpl *result[3];

  h = GTORCH_FORMULA_OP (f, remainder, moved, one);
  for (guint i = 0; i < 3; i++)
    result[i] = hue_channel (f, h, s, most, 5 - 2.0 * i);
  image = GTORCH_FORMULA_OP (f, cat, result, 3, -3);
  return image != NULL ? convert (f, image, dtype) : NULL;
}

enum
{
  BRIGHTNESS,
  CONTRAST,
  SATURATION,
  HUE,
  N_CHANGES
};

static GTorchImpl *
change (GTorchFormula *f, GTorchImpl *image, guint kind, gdouble factor)
{
  gint64 dims[] = { -3, -2, -1 };
  GTorchImpl *gray;
  gboolean has_colour = image->shape[image->n_dims - 3] == 3;

  switch (kind)
    {
    case BRIGHTNESS:
      return blend (f, image, NULL, factor);
    case CONTRAST:
      gray = gray_of (f, image);
      gray = GTORCH_FORMULA_OP (f, mean, gray, dims, 3, TRUE, GTORCH_DTYPE_NONE);
      return blend (f, image, gray, factor);
    case SATURATION:
      return has_colour ? blend (f, image, gray_of (f, image), factor) : image;
    default:
      return has_colour ? turn_hue (f, image, factor) : image;
    }
}

GTorchTensor *
gtorch_layer_color_jitter (GTorchModule *self, GTorchTensor *input, GTorchFactors *brightness,
                           GTorchFactors *contrast, GTorchFactors *saturation, GTorchFactors *hue,
                           GError **error)
{
  GTorchFactors *factors[] = { brightness, contrast, saturation, hue };
  guint order[] = { BRIGHTNESS, CONTRAST, SATURATION, HUE };
  GTorchImpl *image = gtorch_tensor_unwrap (input);
  g_autoptr (GTorchTensor) result = g_object_ref (input);
  gdouble u[2 * N_CHANGES];

  if (!check_channels (self, image, TRUE, error) || white (self, image->dtype, error) == 0
      || !gtorch_transform_draw (u, 2 * N_CHANGES, error))
    return NULL;
  for (guint i = N_CHANGES - 1; i > 0; i--)
    {
      guint j = MIN ((guint) (u[N_CHANGES + i] * (i + 1)), i), other = order[i];

      order[i] = order[j];
      order[j] = other;
    }
  for (guint i = 0; i < N_CHANGES; i++)
    {
      g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
      guint kind = order[i];
      gdouble range[2];
      GTorchTensor *changed;

      if (factors[kind] == NULL)
        continue;
      gtorch_transform_range (factors[kind], 0, 0, range);
      if (gtorch_factors_get_length (factors[kind]) == 1)
        {
          gdouble x = range[0];

          range[0] = kind == HUE ? -x : MAX (1 - x, 0);
          range[1] = kind == HUE ? x : 1 + x;
        }
      changed = finish (&f, change (&f, gtorch_tensor_unwrap (result), kind,
                                    range[0] + u[kind] * (range[1] - range[0])));
      if (changed == NULL)
        return NULL;
      g_object_unref (result);
      result = changed;
    }
  return g_steal_pointer (&result);
}
