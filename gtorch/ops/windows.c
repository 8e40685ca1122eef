/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Windows for the analysis of signals. All of them are functions of the position, which are computed in
 * float64 and then rounded, on the device where the window is wanted. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&window->f, name, __VA_ARGS__)

/* A window that is being made: `period` is the distance of positions with equal values. */
typedef struct
{
  GTorchFormula f;
  const gchar *op;
  gint64 n;
  gdouble period;
  GTorchDType dtype;
  GTorchDevice *device;
} Window;

#define WINDOW_INIT(op_name, length, symmetric, wanted, where, location)             \
  {                                                                                  \
    .f = GTORCH_FORMULA_INIT (location), .op = op_name, .n = length,                 \
    .period = (gdouble) (length) - ((symmetric) ? 1 : 0),                            \
    .dtype = (wanted) != GTORCH_DTYPE_NONE ? (wanted) : gtorch_get_default_dtype (), \
    .device = where                                                                  \
  }

static inline void
window_clear (Window *window)
{
  gtorch_formula_clear (&window->f);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Window, window_clear)

static gboolean
window_check (Window *window)
{
  if (window->n < 0)
    {
      g_set_error (window->f.error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: a window cannot have %" PRId64 " elements"), window->op, window->n);
      return FALSE;
    }
  if (window->dtype < GTORCH_N_DTYPES && gtorch_dtype_is_floating_point (window->dtype))
    return gtorch_shape_check (window->op, &window->n, 1, GTORCH_DTYPE_FLOAT64, window->f.error);
  g_set_error (window->f.error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: the dtype must be a floating-point one"), window->op);
  return FALSE;
}

/* Checks a parameter that must be a number greater than 0. */
static gboolean
window_check_positive (Window *window, const gchar *name, gdouble value)
{
  if (value > 0)
    return TRUE;
  g_set_error (window->f.error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %s is %g and must be greater than 0"), window->op, name, value);
  return FALSE;
}

/* Computes (position + offset) factor. */
static GTorchImpl *
window_scale (Window *window, gdouble offset, gdouble factor)
{
  GTorchImpl *positions =
      OP (arange, 0, (gdouble) window->n, 1, GTORCH_DTYPE_FLOAT64, window->device);
  GTorchImpl *number = gtorch_formula_number (&window->f, offset);
  GTorchImpl *moved = OP (add, positions, number, 1);

  number = gtorch_formula_number (&window->f, factor);
  return OP (mul, moved, number);
}

static GTorchImpl *
window_finish (Window *window, GTorchImpl *values)
{
  GTorchImpl *result = values;

  if (window->dtype != GTORCH_DTYPE_FLOAT64)
    result = OP (to_dtype, values, window->dtype);
  if (window->f.failed)
    gtorch_error_set_op (window->f.error, window->op);
  return gtorch_formula_take (&window->f, result);
}

/* Makes what windows of one or no elements are: their only element is 1. */
static GTorchImpl *
window_of_ones (Window *window)
{
  GTorchImpl *result = OP (ones, &window->n, 1, window->dtype, window->device);

  if (window->f.failed)
    gtorch_error_set_op (window->f.error, window->op);
  return gtorch_formula_take (&window->f, result);
}

/* Makes the sum of a[0] - a[1] cos (t) + a[2] cos (2 t) - …, with t from 0 to 2 pi. */
static GTorchImpl *
window_of_cosines (Window *window, const gdouble *a, guint n)
{
  GTorchImpl *sum = NULL;
  guint i;

  if (!window_check (window))
    return NULL;
  if (window->n <= 1)
    return window_of_ones (window);
  for (i = 0; i < n; i++)
    {
      GTorchImpl *t = window_scale (window, 0, i * 2 * G_PI / window->period);
      GTorchImpl *wave = OP (cos, t);
      GTorchImpl *factor = gtorch_formula_number (&window->f, i % 2 != 0 ? -a[i] : a[i]);
      GTorchImpl *term = OP (mul, wave, factor);

      sum = sum != NULL ? OP (add, sum, term, 1) : term;
    }
  return window_finish (window, sum);
}

static GTorchImpl *
window_of_bartlett (Window *window)
{
  GTorchImpl *t, *one;

  if (!window_check (window))
    return NULL;
  if (window->n <= 1)
    return window_of_ones (window);
  t = window_scale (window, -window->period / 2, 2 / window->period);
  t = OP (abs, t);
  one = gtorch_formula_number (&window->f, 1);
  return window_finish (window, OP (sub, one, t, 1));
}

/* With s = beta sqrt (1 - t²), i0 (s) / i0 (beta) is the quotient of the functions without their growth,
 * times exp (s - beta). */
static GTorchImpl *
window_of_kaiser (Window *window, gdouble beta)
{
  GTorchImpl *t, *number, *s, *growth, *value, *whole;

  if (!window_check (window))
    return NULL;
  if (window->n <= 1)
    return window_of_ones (window);
  t = window_scale (window, -window->period / 2, 2 / window->period);
  t = OP (mul, t, t);
  number = gtorch_formula_number (&window->f, 1);
  t = OP (sub, number, t, 1);
  t = OP (clamp, t, 0, INFINITY);
  t = OP (sqrt, t);
  number = gtorch_formula_number (&window->f, fabs (beta));
  s = OP (mul, t, number);
  growth = OP (sub, s, number, 1);
  growth = OP (exp, growth);
  value = OP (special_i0e, s);
  whole = OP (full, NULL, 0, fabs (beta), GTORCH_DTYPE_FLOAT64, window->device);
  whole = OP (special_i0e, whole);
  value = OP (div, value, whole);
  return window_finish (window, OP (mul, value, growth));
}

static const gdouble blackman[] = { 0.42, 0.5, 0.08 };
static const gdouble nuttall[] = { 0.3635819, 0.4891775, 0.1365995, 0.0106411 };

/* --- those of torch --- */

#define WINDOW(name, n, symmetric) \
  g_auto (Window) window = WINDOW_INIT (name, n, symmetric, dtype, device, error)

GTorchImpl *
gtorch_op_bartlett_window (gint64 window_length, gboolean periodic, GTorchDType dtype,
                           GTorchDevice *device, GError **error)
{
  WINDOW ("bartlett_window", window_length, !periodic);

  return window_of_bartlett (&window);
}

GTorchImpl *
gtorch_op_blackman_window (gint64 window_length, gboolean periodic, GTorchDType dtype,
                           GTorchDevice *device, GError **error)
{
  WINDOW ("blackman_window", window_length, !periodic);

  return window_of_cosines (&window, blackman, G_N_ELEMENTS (blackman));
}

GTorchImpl *
gtorch_op_hamming_window (gint64 window_length, gboolean periodic, gdouble alpha, gdouble beta,
                          GTorchDType dtype, GTorchDevice *device, GError **error)
{
  WINDOW ("hamming_window", window_length, !periodic);

  return window_of_cosines (&window, (const gdouble[]){ alpha, beta }, 2);
}

GTorchImpl *
gtorch_op_hann_window (gint64 window_length, gboolean periodic, GTorchDType dtype,
                       GTorchDevice *device, GError **error)
{
  WINDOW ("hann_window", window_length, !periodic);

  return window_of_cosines (&window, (const gdouble[]){ 0.5, 0.5 }, 2);
}

GTorchImpl *
gtorch_op_kaiser_window (gint64 window_length, gboolean periodic, gdouble beta, GTorchDType dtype,
                         GTorchDevice *device, GError **error)
{
  WINDOW ("kaiser_window", window_length, !periodic);

  return window_of_kaiser (&window, beta);
}

/* --- those of torch.signal --- */

GTorchImpl *
gtorch_op_signal_windows_bartlett (gint64 M, gboolean sym, GTorchDType dtype, GTorchDevice *device,
                                   GError **error)
{
  WINDOW ("signal_windows_bartlett", M, sym);

  return window_of_bartlett (&window);
}

GTorchImpl *
gtorch_op_signal_windows_blackman (gint64 M, gboolean sym, GTorchDType dtype, GTorchDevice *device,
                                   GError **error)
{
  WINDOW ("signal_windows_blackman", M, sym);

  return window_of_cosines (&window, blackman, G_N_ELEMENTS (blackman));
}

GTorchImpl *
gtorch_op_signal_windows_cosine (gint64 M, gboolean sym, GTorchDType dtype, GTorchDevice *device,
                                 GError **error)
{
  WINDOW ("signal_windows_cosine", M, sym);
  GTorchImpl *t;

  if (!window_check (&window))
    return NULL;
  if (M <= 1)
    return window_of_ones (&window);
  t = window_scale (&window, 0.5, G_PI / (window.period + 1));
  return window_finish (&window, GTORCH_FORMULA_OP (&window.f, sin, t));
}

GTorchImpl *
gtorch_op_signal_windows_exponential (gint64 M, gdouble center, gdouble tau, gboolean sym,
                                      GTorchDType dtype, GTorchDevice *device, GError **error)
{
  WINDOW ("signal_windows_exponential", M, sym);
  const gboolean is_given = !gtorch_is_none_double (center);
  GTorchImpl *t;

  if (!window_check (&window) || !window_check_positive (&window, "tau", tau))
    return NULL;
  if (is_given && (sym || !isfinite (center)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("signal_windows_exponential: center is %g: only a window that is not "
                      "symmetric has one, which must be finite"),
                   center);
      return NULL;
    }
  if (M == 0)
    return window_of_ones (&window);
  if (!is_given)
    center = M > 1 ? window.period / 2 : 0;
  t = window_scale (&window, -center, 1 / tau);
  t = GTORCH_FORMULA_OP (&window.f, abs, t);
  t = GTORCH_FORMULA_OP (&window.f, neg, t);
  return window_finish (&window, GTORCH_FORMULA_OP (&window.f, exp, t));
}

GTorchImpl *
gtorch_op_signal_windows_gaussian (gint64 M, gdouble std, gboolean sym, GTorchDType dtype,
                                   GTorchDevice *device, GError **error)
{
  WINDOW ("signal_windows_gaussian", M, sym);
  GTorchImpl *t;

  if (!window_check (&window) || !window_check_positive (&window, "std", std))
    return NULL;
  if (M <= 1)
    return window_of_ones (&window);
  t = window_scale (&window, -window.period / 2, G_SQRT2 / 2 / std);
  t = GTORCH_FORMULA_OP (&window.f, mul, t, t);
  t = GTORCH_FORMULA_OP (&window.f, neg, t);
  return window_finish (&window, GTORCH_FORMULA_OP (&window.f, exp, t));
}

/* Every second coefficient is subtracted: it is multiplied by cos (pi j). */
GTorchImpl *
gtorch_op_signal_windows_general_cosine (gint64 M, GTorchImpl *a, gboolean sym, GTorchDType dtype,
                                         GTorchDevice *device, GError **error)
{
  static const gint64 last = -1;
  g_auto (Window) made = WINDOW_INIT ("signal_windows_general_cosine", M, sym, dtype,
                                      device != NULL ? device : gtorch_impl_device (a), error);
  Window *window = &made;
  GTorchImpl *factors, *orders, *signs, *t, *number;

  if (!window_check (window))
    return NULL;
  if (!gtorch_dtype_is_floating_point (a->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("signal_windows_general_cosine: not defined for coefficients of dtype %s"),
                   gtorch_dtype_get_name (a->dtype));
      return NULL;
    }
  if (a->n_dims != 1 || a->numel == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("signal_windows_general_cosine: coefficients of shape %s must be a row of at "
                      "least one"),
                   gtorch_impl_shape_str (a));
      return NULL;
    }
  if (M <= 1)
    return window_of_ones (window);
  factors = OP (to, a, GTORCH_DTYPE_FLOAT64, window->device, FALSE, FALSE);
  orders = OP (arange, 0, (gdouble) a->numel, 1, GTORCH_DTYPE_FLOAT64, window->device);
  number = gtorch_formula_number (&window->f, G_PI);
  signs = OP (mul, orders, number);
  signs = OP (cos, signs);
  factors = OP (mul, factors, signs);
  t = window_scale (window, 0, 2 * G_PI / window->period);
  t = OP (unsqueeze, t, -1);
  t = OP (mul, t, orders);
  t = OP (cos, t);
  t = OP (mul, t, factors);
  return window_finish (window, OP (sum, t, &last, 1, FALSE, GTORCH_DTYPE_NONE));
}

GTorchImpl *
gtorch_op_signal_windows_general_hamming (gint64 M, gdouble alpha, gboolean sym, GTorchDType dtype,
                                          GTorchDevice *device, GError **error)
{
  WINDOW ("signal_windows_general_hamming", M, sym);

  return window_of_cosines (&window, (const gdouble[]){ alpha, 1 - alpha }, 2);
}

GTorchImpl *
gtorch_op_signal_windows_hamming (gint64 M, gboolean sym, GTorchDType dtype, GTorchDevice *device,
                                  GError **error)
{
  WINDOW ("signal_windows_hamming", M, sym);

  return window_of_cosines (&window, (const gdouble[]){ 0.54, 0.46 }, 2);
}

GTorchImpl *
gtorch_op_signal_windows_hann (gint64 M, gboolean sym, GTorchDType dtype, GTorchDevice *device,
                               GError **error)
{
  WINDOW ("signal_windows_hann", M, sym);

  return window_of_cosines (&window, (const gdouble[]){ 0.5, 0.5 }, 2);
}

GTorchImpl *
gtorch_op_signal_windows_kaiser (gint64 M, gdouble beta, gboolean sym, GTorchDType dtype,
                                 GTorchDevice *device, GError **error)
{
  WINDOW ("signal_windows_kaiser", M, sym);

  if (beta < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("signal_windows_kaiser: beta is %g and must not be negative"), beta);
      return NULL;
    }
  return window_of_kaiser (&window, beta);
}

GTorchImpl *
gtorch_op_signal_windows_nuttall (gint64 M, gboolean sym, GTorchDType dtype, GTorchDevice *device,
                                  GError **error)
{
  WINDOW ("signal_windows_nuttall", M, sym);

  return window_of_cosines (&window, nuttall, G_N_ELEMENTS (nuttall));
}
