/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Resampling: images of other sizes. An element of the result is a weighted sum over a box of elements of the
 * input, whose weights are products of those along each dimension. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_resample_init (GTorchResample *self, GTorchOpCall *call, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  const gboolean backward = call->op->id == GTORCH_OP_RESAMPLE_BACKWARD;
  const GTorchImpl *input = call->inputs[0];
  const gint64 *small = backward ? attrs[1].list.data : input->shape;
  const gint64 *result = backward ? input->shape : attrs[1].list.data;
  const guint n = attrs[0].i;
  guint i;

  if (input->n_dims != n + 2 || attrs[1].list.n != n + 2
      || memcmp (small, result, 2 * sizeof (gint64)) != 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("images of shape %s cannot become those of shape %s"),
                         gtorch_impl_shape_str (input),
                         gtorch_shape_str (attrs[1].list.data, attrs[1].list.n));
      return FALSE;
    }
  *self = (GTorchResample){ .n = n,
                            .method = attrs[2].i,
                            .align_corners = attrs[3].i,
                            .in = { 1, 1, 1 },
                            .out = { 1, 1, 1 },
                            .n_in = 1,
                            .n_out = 1 };
  for (i = 3 - n; i < 3; i++)
    {
      const gint64 in = small[i + n - 1], out = result[i + n - 1];

      if (in < 1 || out < 1 || __builtin_mul_overflow (self->n_in, in, &self->n_in)
          || __builtin_mul_overflow (self->n_out, out, &self->n_out))
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("images of shape %s cannot become those of shape %s"),
                             gtorch_shape_str (small, n + 2), gtorch_shape_str (result, n + 2));
          return FALSE;
        }
      self->in[i] = in;
      self->out[i] = out;
      if (self->align_corners)
        self->scale[i] = out > 1 ? (gdouble) (in - 1) / (gdouble) (out - 1) : 0;
      else if (!gtorch_is_none_double (attrs[4 + i].d))
        self->scale[i] = 1 / attrs[4 + i].d;
      else
        self->scale[i] = (gdouble) in / (gdouble) out;
    }
  return TRUE;
}

gboolean
gtorch_shape_resample (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *size = &call->attrs[1];
  GTorchResample geometry;

  call->compute = call->inputs[0]->dtype;
  if (!gtorch_call_check_dtype (call, call->compute, error)
      || !gtorch_resample_init (&geometry, call, error))
    return FALSE;
  if (geometry.method > GTORCH_RESAMPLER_NEAREST_EXACT
      && gtorch_dtype_kind (call->compute) != GTORCH_KIND_FLOAT
      && (call->compute != GTORCH_DTYPE_UINT8 || geometry.n != 2
          || !gtorch_device_is_host (gtorch_impl_device (call->inputs[0]))))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("dtype %s: only modes that take the nearest element are for integers, "
                            "and on the CPU bilinear and bicubic for uint8"),
                         gtorch_dtype_get_name (call->compute));
      return FALSE;
    }
  return gtorch_shape_check (call->op->name, size->list.data, size->list.n, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, size->list.data, size->list.n, error);
}

/* --- weights --- */

guint
gtorch_resample_max_taps (const GTorchResample *self, guint d)
{
  const gdouble radius = self->method == GTORCH_RESAMPLER_LINEAR_SMOOTH ? 1 : 2;

  if (self->method <= GTORCH_RESAMPLER_NEAREST_EXACT)
    return 1;
  if (self->method < GTORCH_RESAMPLER_LINEAR_SMOOTH)
    return self->method == GTORCH_RESAMPLER_LINEAR ? 2 : 4;
  return (guint) MIN (self->in[d], 2 * ceil (radius * MAX (self->scale[d], 1)) + 1);
}

/* The weights of cubic convolution at the distances 1 + t, t, 1 - t and 2 - t. */
static void
cubic_weights (gdouble t, gdouble *weights)
{
  const gdouble a = -0.75;
  const gdouble x[] = { t + 1, t, 1 - t, 2 - t };

  weights[0] = ((a * x[0] - 5 * a) * x[0] + 8 * a) * x[0] - 4 * a;
  weights[1] = ((a + 2) * x[1] - (a + 3)) * x[1] * x[1] + 1;
  weights[2] = ((a + 2) * x[2] - (a + 3)) * x[2] * x[2] + 1;
  weights[3] = ((a * x[3] - 5 * a) * x[3] + 8 * a) * x[3] - 4 * a;
}

/* The weights of a smooth mean at a distance. */
static gdouble
smooth_weight (guint method, gdouble x)
{
  const gdouble a = -0.5;

  x = fabs (x);
  if (method == GTORCH_RESAMPLER_LINEAR_SMOOTH)
    return x < 1 ? 1 - x : 0;
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static guint
smooth_taps (const GTorchResample *self, guint d, gint64 o, gint64 *first, gdouble *weights)
{
  const gdouble radius = self->method == GTORCH_RESAMPLER_LINEAR_SMOOTH ? 1 : 2;
  const gdouble width = MAX (self->scale[d], 1), center = self->scale[d] * ((gdouble) o + 0.5);
  const gint64 begin = MAX ((gint64) (center - radius * width + 0.5), 0);
  const gint64 end = MIN ((gint64) (center + radius * width + 0.5), self->in[d]);
  gdouble sum = 0;
  gint64 i;

  *first = MIN (begin, self->in[d] - 1);
  for (i = *first; i < end; i++)
    sum += weights[i - *first] = smooth_weight (self->method, ((gdouble) i - center + 0.5) / width);
  for (i = *first; i < end && sum != 0; i++)
    weights[i - *first] /= sum;
  return (guint) MAX (end - *first, 0);
}

guint
gtorch_resample_taps (const GTorchResample *self, guint d, gboolean is_single, gint64 o,
                      gint64 *first, gdouble *weights)
{
  const gint64 last = self->in[d] - 1;
  /* positions are computed as precisely as the elements, and rounded as elsewhere */
  const gdouble scale = is_single ? (gfloat) self->scale[d] : self->scale[d];
  const gdouble half = self->align_corners || self->method == GTORCH_RESAMPLER_NEAREST ? 0 : 0.5;
  gdouble at = is_single ? (gfloat) ((gfloat) scale * ((gfloat) o + (gfloat) half)) - (gfloat) half
                         : scale * ((gdouble) o + half) - half;
  gdouble all[4], t;
  gint64 base, i;

  if (self->method >= GTORCH_RESAMPLER_LINEAR_SMOOTH)
    return smooth_taps (self, d, o, first, weights);
  if (self->method != GTORCH_RESAMPLER_CUBIC)
    at = MAX (at, 0);
  if (self->method == GTORCH_RESAMPLER_NEAREST_EXACT)
    at += 0.5;
  if (self->method == GTORCH_RESAMPLER_LINEAR && self->in[d] == self->out[d])
    at = (gdouble) o;
  base = MIN ((gint64) floorf ((gfloat) at), last);
  t = CLAMP (at - (gdouble) base, 0, 1);
  *first = base;
  weights[0] = 1;
  if (self->method <= GTORCH_RESAMPLER_NEAREST_EXACT)
    return 1;
  if (self->method == GTORCH_RESAMPLER_LINEAR)
    {
      if (base == last)
        return 1;
      weights[0] = 1 - t;
      weights[1] = t;
      return 2;
    }
  /* elements beyond the edge are those at the edge */
  cubic_weights (t, all);
  *first = CLAMP (base - 1, 0, last);
  memset (weights, 0, 4 * sizeof *weights);
  for (i = 0; i < 4; i++)
    weights[CLAMP (base - 1 + i, 0, last) - *first] += all[i];
  return (guint) (CLAMP (base + 2, 0, last) - *first + 1);
}

/* --- interpolate --- */

typedef struct
{
  const gchar *name;
  guint n_dims; /* that it is for, or 0 */
  GTorchResampler method;
} Mode;

/* clang-format off */
static const Mode modes[] = {
  [GTORCH_RESAMPLING_NEAREST]       = { "nearest",       0, GTORCH_RESAMPLER_NEAREST },
  [GTORCH_RESAMPLING_NEAREST_EXACT] = { "nearest-exact", 0, GTORCH_RESAMPLER_NEAREST_EXACT },
  [GTORCH_RESAMPLING_LINEAR]        = { "linear",        1, GTORCH_RESAMPLER_LINEAR },
  [GTORCH_RESAMPLING_BILINEAR]      = { "bilinear",      2, GTORCH_RESAMPLER_LINEAR },
  [GTORCH_RESAMPLING_BICUBIC]       = { "bicubic",       2, GTORCH_RESAMPLER_CUBIC },
  [GTORCH_RESAMPLING_TRILINEAR]     = { "trilinear",     3, GTORCH_RESAMPLER_LINEAR },
  [GTORCH_RESAMPLING_AREA]          = { "area",          0, GTORCH_RESAMPLER_NEAREST },
};
/* clang-format on */

static gboolean G_GNUC_PRINTF (3, 4)
    refuse (GError **error, GTorchError code, const gchar *text, ...)
{
  g_autofree gchar *message = NULL;
  va_list args;

  va_start (args, text);
  message = g_strdup_vprintf (text, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, "interpolate: %s", message);
  return FALSE;
}

static gboolean
check_mode (const GTorchImpl *input, GTorchResampling mode, gboolean align_corners,
            gboolean antialias, GError **error)
{
  const guint n = input->n_dims - 2;

  if ((guint) mode >= G_N_ELEMENTS (modes))
    return refuse (error, GTORCH_ERROR_INVALID, _ ("%d is no GTorchResampling"), (int) mode);
  if (input->n_dims < 3 || input->n_dims > 5)
    return refuse (error, GTORCH_ERROR_SHAPE,
                   _ ("the input has shape %s, it must have 3 to 5 dimensions"),
                   gtorch_impl_shape_str (input));
  if (modes[mode].n_dims != 0 && modes[mode].n_dims != n)
    return refuse (error, GTORCH_ERROR_SHAPE,
                   _ ("the mode %s is for inputs with %u dimensions, the input has shape %s"),
                   modes[mode].name, modes[mode].n_dims + 2, gtorch_impl_shape_str (input));
  if (align_corners && modes[mode].n_dims == 0)
    return refuse (error, GTORCH_ERROR_INVALID,
                   _ ("align_corners is for the modes linear, bilinear, bicubic and trilinear, not "
                      "for %s"),
                   modes[mode].name);
  if (antialias && modes[mode].n_dims != 2)
    return refuse (error, GTORCH_ERROR_INVALID,
                   _ ("antialias is for the modes bilinear and bicubic, not for %s"),
                   modes[mode].name);
  return TRUE;
}

/* Finds the shape of the result, and makes factors none where positions follow from the sizes. */
static gboolean
find_shape (const GTorchImpl *input, const gint64 *size, gsize n_size, gboolean recompute,
            gdouble *factors, gint64 *shape, GError **error)
{
  const guint n = input->n_dims - 2;
  guint n_given = 0, i;

  for (i = 3 - n; i < 3; i++)
    n_given += !gtorch_is_none_double (factors[i]);
  if (n_size == 0 && n_given == 0)
    return refuse (error, GTORCH_ERROR_INVALID, _ ("either size or scale_factor must be given"));
  if (n_size > 0 && recompute)
    return refuse (error, GTORCH_ERROR_INVALID,
                   _ ("recompute_scale_factor is for a scale_factor, not for the size %s"),
                   gtorch_shape_str (size, MIN (n_size, GTORCH_MAX_DIMS)));
  if (n_size > 1 && n_size != n)
    return refuse (error, GTORCH_ERROR_INVALID, _ ("size must hold 1 or %u numbers, it is %s"), n,
                   gtorch_shape_str (size, MIN (n_size, GTORCH_MAX_DIMS)));
  if (n_size == 0 && n_given < n)
    return refuse (error, GTORCH_ERROR_INVALID, _ ("a dimension has no scale_factor"));
  memcpy (shape, input->shape, input->n_dims * sizeof (gint64));
  for (i = 3 - n; i < 3; i++)
    {
      gint64 *one = &shape[i + n - 1];
      const gdouble wanted = (gdouble) *one * factors[i];

      if (n_size == 0 && !(factors[i] > 0 && wanted < 0x1p53))
        return refuse (error, GTORCH_ERROR_INVALID,
                       _ ("scale_factor must be a positive number, and sizes less than 2^53, it is "
                          "%g"),
                       factors[i]);
      *one = n_size > 0 ? size[n_size == 1 ? 0 : i + n - 3] : (gint64) floor (wanted);
      if (recompute)
        factors[i] = GTORCH_NONE_DOUBLE;
    }
  for (i = 2; i < input->n_dims; i++)
    if (shape[i] < 1 || input->shape[i] < 1)
      return refuse (error, GTORCH_ERROR_SHAPE,
                     _ ("images of shape %s cannot become those of shape %s: sizes must be "
                        "positive"),
                     gtorch_impl_shape_str (input), gtorch_shape_str (shape, input->n_dims));
  return TRUE;
}

GTorchImpl *
gtorch_op_interpolate (GTorchImpl *input, const gint64 *size, gsize n_size, gdouble scale_factor,
                       GTorchResampling mode, gboolean align_corners,
                       gboolean recompute_scale_factor, gboolean antialias, gdouble scale_height,
                       gdouble scale_width, GError **error)
{
  static const gchar *const names[] = { "scale_factor", "scale_height", "scale_width" };
  gdouble factors[3] = { scale_factor, scale_height, scale_width };
  gint64 shape[5];
  guint n, method, i;

  if (!check_mode (input, mode, align_corners, antialias, error))
    return NULL;
  n = input->n_dims - 2;
  for (i = 0; i < 3; i++)
    if (!gtorch_is_none_double (factors[i]) && !(factors[i] > 0))
      {
        refuse (error, GTORCH_ERROR_INVALID,
                _ ("%s must be a positive number, and sizes less than 2^53, it is %g"), names[i],
                factors[i]);
        return NULL;
      }
  for (i = 0; i < 3 && n_size > 0; i++)
    if (!gtorch_is_none_double (factors[i]))
      {
        refuse (error, GTORCH_ERROR_INVALID, _ ("size %s and %s %g: only one of both may be given"),
                gtorch_shape_str (size, MIN (n_size, GTORCH_MAX_DIMS)), names[i], factors[i]);
        return NULL;
      }
  for (i = 1; i < 3; i++)
    if (gtorch_is_none_double (factors[i]))
      factors[i] = scale_factor;
    else if (i < 3 - n)
      {
        refuse (error, GTORCH_ERROR_INVALID,
                _ ("scale_height is %g, but the input of shape %s has no height"), scale_height,
                gtorch_impl_shape_str (input));
        return NULL;
      }
  if (!find_shape (input, size, n_size, recompute_scale_factor, factors, shape, error))
    return NULL;
  if (mode == GTORCH_RESAMPLING_AREA)
    return gtorch_op_adaptive_mean_pool (input, n, shape + 2, n, error);
  method = modes[mode].method;
  if (antialias)
    method = method == GTORCH_RESAMPLER_LINEAR ? GTORCH_RESAMPLER_LINEAR_SMOOTH
                                               : GTORCH_RESAMPLER_CUBIC_SMOOTH;
  return gtorch_op_resample (input, n, shape, input->n_dims, method, align_corners, factors[0],
                             factors[1], factors[2], error);
}

GTorchImpl *
gtorch_op_upsample_bilinear (GTorchImpl *input, const gint64 *size, gsize n_size,
                             gdouble scale_factor, GError **error)
{
  return gtorch_op_interpolate (input, size, n_size, scale_factor, GTORCH_RESAMPLING_BILINEAR, TRUE,
                                FALSE, FALSE, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, error);
}
