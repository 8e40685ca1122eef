/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Max pooling with windows at places that are drawn. The elements of all windows are gathered, and the
 * greatest are taken. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

typedef struct
{
  const gchar *op;
  guint dims;
  gint64 kernel[3], input[3], output[3];
} Windows;

static gboolean
read_sizes (Windows *self, const GTorchImpl *input, const gint64 *kernel, gsize n_kernel,
            const gint64 *size, gsize n_size, gdouble ratio, GError **error)
{
  const gboolean has_ratio = !gtorch_is_none_double (ratio);

  if (input->n_dims != self->dims + 1 && input->n_dims != self->dims + 2)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: shape %s must have %u or %u dimensions"), self->op,
                 gtorch_impl_shape_str (input), self->dims + 1, self->dims + 2);
  else if ((n_kernel != 1 && n_kernel != self->dims)
           || (n_size != 0 && n_size != 1 && n_size != self->dims))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: kernel_size and output_size must have 1 or %u numbers"), self->op,
                 self->dims);
  else if ((n_size > 0) == has_ratio || (has_ratio && !(ratio > 0 && ratio < 1)))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: either output_size or an output_ratio between 0 and 1 must be given"),
                 self->op);
  else
    {
      for (guint d = 0; d < self->dims; d++)
        {
          self->input[d] = input->shape[input->n_dims - self->dims + d];
          self->kernel[d] = kernel[n_kernel == 1 ? 0 : d];
          self->output[d] =
              has_ratio ? (gint64) ((gdouble) self->input[d] * ratio) : size[n_size == 1 ? 0 : d];
          if (self->kernel[d] >= 1 && self->output[d] >= 1 && self->kernel[d] <= self->input[d]
              && self->output[d] <= self->input[d] - self->kernel[d] + 1)
            continue;
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: %" PRId64 " windows of %" PRId64 " do not fit into %" PRId64
                          " elements"),
                       self->op, self->output[d], self->kernel[d], self->input[d]);
          return FALSE;
        }
      return TRUE;
    }
  return FALSE;
}

/* Returns where the windows of a dimension begin, [N, C, n] for n windows, as floor ((i + u) a) - floor (u a)
 * for random numbers u; the last one ends with the input. */
static GTorchImpl *
starts (const Windows *windows, guint d, GTorchImpl *samples, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 n = windows->output[d], last = windows->input[d] - windows->kernel[d];
  /* PyTorch has the numbers of images in the order of width and height */
  const gint64 at = windows->dims == 2 ? 1 - (gint64) d : (gint64) d;
  GTorchImpl *drawn = OP (narrow, samples, 2, at, 1), *parts[2], *step, *first;

  parts[0] = OP (zeros_like, drawn, GTORCH_DTYPE_NONE);
  step = gtorch_formula_number (&f, (gdouble) last);
  parts[1] = OP (add, parts[0], step, 1);
  if (n > 1)
    {
      step = gtorch_formula_number (&f, (gdouble) last / (gdouble) (n - 1));
      first = OP (mul, drawn, step);
      first = OP (floor, first);
      parts[0] = OP (arange_int, 0, n - 1, 1, samples->dtype, gtorch_impl_device (samples));
      parts[0] = OP (add, drawn, parts[0], 1);
      parts[0] = OP (mul, parts[0], step);
      parts[0] = OP (floor, parts[0]);
      parts[0] = OP (sub, parts[0], first, 1);
      parts[1] = OP (cat, parts, 2, 2);
    }
  return gtorch_formula_take (&f, OP (to_dtype, parts[1], GTORCH_DTYPE_INT64));
}

/* Returns the positions of the elements of all windows in their image, [N, C, windows …, elements]. */
static GTorchImpl *
positions (const Windows *windows, GTorchImpl *samples, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *sum = NULL;

  for (guint d = 0; d < windows->dims; d++)
    {
      gint64 shape[8] = { samples->shape[0], samples->shape[1], 1, 1, 1, 1, 1, 1 };
      gint64 inner[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
      GTorchImpl *begin, *within, *stride;
      gdouble step = 1;

      shape[2 + d] = windows->output[d];
      inner[2 + windows->dims + d] = windows->kernel[d];
      for (guint i = d + 1; i < windows->dims; i++)
        step *= (gdouble) windows->input[i];
      begin = gtorch_formula_keep (&f, f.failed ? NULL : starts (windows, d, samples, error));
      begin = OP (reshape, begin, shape, 2 + 2 * windows->dims);
      within = OP (arange_int, 0, windows->kernel[d], 1, GTORCH_DTYPE_INT64,
                   gtorch_impl_device (samples));
      within = OP (reshape, within, inner, 2 + 2 * windows->dims);
      begin = OP (add, begin, within, 1);
      stride = gtorch_formula_keep (&f, gtorch_impl_new_int ((gint64) step));
      begin = OP (mul, begin, stride);
      sum = sum == NULL ? begin : OP (add, sum, begin, 1);
    }
  return gtorch_formula_take (&f, OP (flatten, sum, -(gint64) windows->dims, -1));
}

static GTorchImpl *
samples_for (const Windows *windows, GTorchImpl *input, GTorchImpl *given,
             GTorchGenerator *generator, GError **error)
{
  const gint64 shape[] = { input->shape[0], input->shape[1], windows->dims };

  if (given == NULL)
    return gtorch_op_rand (shape, 3, input->dtype, gtorch_impl_device (input), generator, error);
  if (generator != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: random_samples and a generator are given: nothing is drawn beside "
                      "random_samples, only one of both may be given"),
                   windows->op);
      return NULL;
    }
  if (given->n_dims == 3 && memcmp (given->shape, shape, sizeof shape) == 0
      && given->dtype == input->dtype)
    return gtorch_impl_ref (given);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: random_samples have shape %s and dtype %s, and must have [%" PRId64
                  ", %" PRId64 ", %u] and %s"),
               windows->op, gtorch_impl_shape_str (given), gtorch_dtype_get_name (given->dtype),
               shape[0], shape[1], windows->dims, gtorch_dtype_get_name (input->dtype));
  return NULL;
}

static gboolean
pool (Windows *windows, GTorchImpl *self, const gint64 *kernel, gsize n_kernel, const gint64 *size,
      gsize n_size, gdouble ratio, GTorchImpl *given, GTorchGenerator *generator,
      GTorchImpl **values, GTorchImpl **indices, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  gboolean is_single = self->n_dims == windows->dims + 1;
  GTorchImpl *input = self, *samples, *places, *flat, *found, *most = NULL, *which = NULL;

  if (!read_sizes (windows, self, kernel, n_kernel, size, n_size, ratio, error))
    return FALSE;
  if (is_single)
    input = OP (unsqueeze, self, 0);
  samples =
      gtorch_formula_keep (&f,
                           f.failed ? NULL : samples_for (windows, input, given, generator, error));
  places = gtorch_formula_keep (&f, f.failed ? NULL : positions (windows, samples, error));
  flat = OP (flatten, input, 2, -1);
  found = OP (flatten, places, 2, -1);
  found = OP (gather, flat, 2, found);
  found = f.failed ? NULL : OP (reshape, found, places->shape, places->n_dims);
  if (f.failed || !gtorch_op_max_dim (found, -1, FALSE, &most, &which, error))
    return FALSE;
  gtorch_formula_keep (&f, most);
  gtorch_formula_keep (&f, which);
  which = OP (unsqueeze, which, -1);
  which = OP (gather, places, -1, which);
  which = OP (select, which, -1, 0);
  if (is_single)
    {
      most = OP (select, most, 0, 0);
      which = OP (select, which, 0, 0);
    }
  if (f.failed)
    return FALSE;
  *values = gtorch_impl_ref (most);
  *indices = gtorch_impl_ref (which);
  return TRUE;
}

gboolean
gtorch_op_fractional_max_pool2d_with_indices (GTorchImpl *self, const gint64 *kernel_size,
                                              gsize n_kernel_size, const gint64 *output_size,
                                              gsize n_output_size, gdouble output_ratio,
                                              GTorchImpl *random_samples,
                                              GTorchGenerator *generator, GTorchImpl **values,
                                              GTorchImpl **indices, GError **error)
{
  Windows windows = { "fractional_max_pool2d_with_indices", 2, { 0 }, { 0 }, { 0 } };

  return pool (&windows, self, kernel_size, n_kernel_size, output_size, n_output_size, output_ratio,
               random_samples, generator, values, indices, error);
}

GTorchImpl *
gtorch_op_fractional_max_pool2d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                                 const gint64 *output_size, gsize n_output_size,
                                 gdouble output_ratio, GTorchImpl *random_samples,
                                 GTorchGenerator *generator, GError **error)
{
  Windows windows = { "fractional_max_pool2d", 2, { 0 }, { 0 }, { 0 } };
  g_autoptr (GTorchImpl) indices = NULL;
  GTorchImpl *values = NULL;

  return pool (&windows, self, kernel_size, n_kernel_size, output_size, n_output_size, output_ratio,
               random_samples, generator, &values, &indices, error)
             ? values
             : NULL;
}

gboolean
gtorch_op_fractional_max_pool3d_with_indices (GTorchImpl *self, const gint64 *kernel_size,
                                              gsize n_kernel_size, const gint64 *output_size,
                                              gsize n_output_size, gdouble output_ratio,
                                              GTorchImpl *random_samples,
                                              GTorchGenerator *generator, GTorchImpl **values,
                                              GTorchImpl **indices, GError **error)
{
  Windows windows = { "fractional_max_pool3d_with_indices", 3, { 0 }, { 0 }, { 0 } };

  return pool (&windows, self, kernel_size, n_kernel_size, output_size, n_output_size, output_ratio,
               random_samples, generator, values, indices, error);
}

GTorchImpl *
gtorch_op_fractional_max_pool3d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                                 const gint64 *output_size, gsize n_output_size,
                                 gdouble output_ratio, GTorchImpl *random_samples,
                                 GTorchGenerator *generator, GError **error)
{
  Windows windows = { "fractional_max_pool3d", 3, { 0 }, { 0 }, { 0 } };
  g_autoptr (GTorchImpl) indices = NULL;
  GTorchImpl *values = NULL;

  return pool (&windows, self, kernel_size, n_kernel_size, output_size, n_output_size, output_ratio,
               random_samples, generator, &values, &indices, error)
             ? values
             : NULL;
}
