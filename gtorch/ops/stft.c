/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The Fourier transforms of the parts of a signal, and the way back. Parts are a view of the signal, and are
 * added by the gradient of that view; everything is differentiated through the operations. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-host-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* The least sum of squares of windows by which is divided. */
#define LEAST_OVERLAP 1e-11

static gboolean
is_complex (const GTorchImpl *self)
{
  return self != NULL && gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX;
}

/* Fills in what is not given, and checks it. */
static gboolean
check_parts (const gchar *op, gint64 n_fft, gint64 *hop_length, gint64 *win_length,
             const GTorchImpl *window, GError **error)
{
  if (*hop_length == GTORCH_NONE)
    *hop_length = n_fft / 4;
  if (*win_length == GTORCH_NONE)
    *win_length = n_fft;
  if (n_fft < 1 || *hop_length < 1 || *win_length < 1 || *win_length > n_fft)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: n_fft %" PRId64 ", hop_length %" PRId64 " and win_length %" PRId64
                      " must be at least 1, and the window not longer than n_fft"),
                   op, n_fft, *hop_length, *win_length);
      return FALSE;
    }
  if (!gtorch_shape_check (op, &n_fft, 1, GTORCH_DTYPE_COMPLEX128, error))
    return FALSE;
  if (window == NULL || (window->n_dims == 1 && window->shape[0] == *win_length))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: a window of shape %s must be a row of win_length %" PRId64 " elements"), op,
               gtorch_impl_shape_str (window), *win_length);
  return FALSE;
}

/* Returns the window in the middle of n_fft elements; ones if it is NULL. */
static GTorchImpl *
window_of (GTorchFormula *formula, GTorchImpl *window, gint64 win_length, gint64 n_fft,
           GTorchImpl *like)
{
  const gint64 left = (n_fft - win_length) / 2;
  const gint64 ends[] = { left, n_fft - win_length - left };

  if (window == NULL)
    window = GTORCH_FORMULA_OP (formula, new_ones, like, &win_length, 1,
                                gtorch_dtype_infos[like->dtype].real);
  if (win_length == n_fft)
    return window;
  return GTORCH_FORMULA_OP (formula, pad, window, ends, 2, GTORCH_PAD_MODE_CONSTANT, 0);
}

static GTorchImpl *
finish (const gchar *op, GTorchFormula *formula, GTorchImpl *result)
{
  if (formula->failed)
    gtorch_error_set_op (formula->error, op);
  return gtorch_formula_take (formula, result);
}

/* --- there --- */

static gboolean
check_signal (const GTorchImpl *self, const GTorchImpl *window, gboolean center,
              GTorchPadMode pad_mode, gboolean onesided, gboolean align_to_window, GError **error)
{
  if (gtorch_dtype_kind (self->dtype) < GTORCH_KIND_FLOAT)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("stft: not defined for dtype %s"),
                 gtorch_dtype_get_name (self->dtype));
  else if (self->n_dims != 1 && self->n_dims != 2)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("stft: shape %s must be that of a signal or of a row of signals"),
                 gtorch_impl_shape_str (self));
  else if (onesided && (is_complex (self) || is_complex (window)))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("stft: the result has all frequencies if the signal or the window is complex: "
                    "onesided must not be true"));
  else if ((gint) pad_mode < GTORCH_PAD_MODE_CONSTANT || pad_mode > GTORCH_PAD_MODE_CIRCULAR)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("stft: pad_mode %d is no way to add elements"), (gint) pad_mode);
  else if (align_to_window && center)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("stft: center and align_to_window exclude each other"));
  else
    return TRUE;
  return FALSE;
}

GTorchImpl *
gtorch_op_stft (GTorchImpl *self, gint64 n_fft, gint64 hop_length, gint64 win_length,
                GTorchImpl *window, gboolean center, GTorchPadMode pad_mode, gboolean normalized,
                gboolean onesided, gboolean return_complex, gboolean align_to_window,
                GError **error)
{
  const GTorchFFTNorm norm = normalized ? GTORCH_FFT_NORM_ORTHO : GTORCH_FFT_NORM_BACKWARD;
  const gboolean is_row = self->n_dims == 1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *x = self;
  gint64 ends[2] = { 0 };

  if (!check_parts ("stft", n_fft, &hop_length, &win_length, window, error)
      || !check_signal (self, window, center, pad_mode, onesided, align_to_window, error))
    return NULL;
  if (gtorch_dtype_size (self->dtype) == 2)
    x = OP (to_dtype, x, GTORCH_DTYPE_FLOAT32);
  if (is_row)
    x = OP (unsqueeze, x, 0);
  if (center)
    ends[0] = ends[1] = n_fft / 2;
  else if (align_to_window)
    {
      ends[0] = (n_fft - win_length) / 2;
      ends[1] = n_fft - win_length - ends[0];
    }
  if (ends[0] > 0 || ends[1] > 0)
    x = OP (pad, x, ends, 2, center ? pad_mode : GTORCH_PAD_MODE_CONSTANT, 0);
  if (!f.failed && x->shape[1] < n_fft)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("stft: a signal of %" PRId64 " elements is shorter than n_fft %" PRId64),
                   x->shape[1], n_fft);
      return NULL;
    }
  x = OP (unfold, x, 1, n_fft, hop_length);
  if (window != NULL || win_length < n_fft)
    {
      GTorchImpl *whole = f.failed ? NULL : window_of (&f, window, win_length, n_fft, x);

      x = OP (mul, x, whole);
    }
  x = onesided ? OP (fft_rfft, x, GTORCH_NONE, -1, norm) : OP (fft_fft, x, GTORCH_NONE, -1, norm);
  x = OP (transpose, x, 1, 2);
  if (is_row)
    x = OP (select, x, 0, 0);
  if (!return_complex)
    x = OP (view_as_real, x);
  return finish ("stft", &f, x);
}

/* --- and back --- */

static gboolean
check_transforms (const GTorchImpl *self, gint64 n_fft, gint64 hop_length, gint64 win_length,
                  const GTorchImpl *window, gboolean onesided, gint64 length,
                  gboolean return_complex, GError **error)
{
  const gint64 wanted = onesided ? n_fft / 2 + 1 : n_fft;

  if (!is_complex (self))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("istft: transforms of dtype %s must be complex"),
                 gtorch_dtype_get_name (self->dtype));
  else if ((self->n_dims != 2 && self->n_dims != 3) || self->numel == 0
           || self->shape[self->n_dims - 2] != wanted)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("istft: shape %s must be that of parts with %" PRId64
                    " frequencies each, [%" PRId64 ", parts], or of a row of these"),
                 gtorch_impl_shape_str (self), wanted, wanted);
  else if (hop_length > win_length)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("istft: with hop_length %" PRId64 " and win_length %" PRId64
                    " there is nothing between the windows"),
                 hop_length, win_length);
  else if (length != GTORCH_NONE && length < 1)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("istft: the length %" PRId64 " must be at least 1"), length);
  else if (return_complex ? onesided : is_complex (window))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 return_complex ? _ ("istft: a complex result needs all frequencies: onesided must "
                                     "not be true with return_complex")
                                : _ ("istft: a complex window needs return_complex"));
  else
    return TRUE;
  return FALSE;
}

/* Refuses sums by which cannot be divided; this waits for the device. */
static gboolean
check_overlap (GTorchFormula *formula, GTorchImpl *sums)
{
  GTorchImpl *size = GTORCH_FORMULA_OP (formula, abs, sums);
  GTorchImpl *least = GTORCH_FORMULA_OP (formula, min, size);
  g_autoptr (GTorchImpl) host =
      formula->failed ? NULL : gtorch_impl_to_host ("istft", least, formula->error);
  gdouble value;

  if (host == NULL)
    {
      formula->failed = TRUE;
      return FALSE;
    }
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, &value);
  if (value > LEAST_OVERLAP)
    return TRUE;
  g_set_error (formula->error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("istft: the squares of the windows add up to %g at some element, by which cannot "
                  "be divided"),
               value);
  formula->failed = TRUE;
  return FALSE;
}

GTorchImpl *
gtorch_op_istft (GTorchImpl *self, gint64 n_fft, gint64 hop_length, gint64 win_length,
                 GTorchImpl *window, gboolean center, gboolean normalized, gboolean onesided,
                 gint64 length, gboolean return_complex, GError **error)
{
  const GTorchFFTNorm norm = normalized ? GTORCH_FFT_NORM_ORTHO : GTORCH_FFT_NORM_BACKWARD;
  const gboolean is_row = self->n_dims == 2;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *x = self, *whole, *square, *sums;
  gint64 shape[3], covered, begin, end;

  if (!check_parts ("istft", n_fft, &hop_length, &win_length, window, error)
      || !check_transforms (self, n_fft, hop_length, win_length, window, onesided, length,
                            return_complex, error))
    return NULL;
  shape[0] = 1;
  shape[1] = self->shape[self->n_dims - 1];
  shape[2] = n_fft;
  begin = center ? n_fft / 2 : 0;
  if (__builtin_mul_overflow (hop_length, shape[1] - 1, &covered)
      || __builtin_add_overflow (covered, n_fft, &covered)
      || __builtin_add_overflow (begin, length != GTORCH_NONE ? length : 0, &end))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("istft: a signal of length %" PRId64 " and parts with hop_length %" PRId64
                      " would have too many elements"),
                   length != GTORCH_NONE ? length : 0, hop_length);
      return NULL;
    }
  if (length == GTORCH_NONE)
    end = covered - begin;
  if (MIN (end, covered) <= begin)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("istft: of %" PRId64 " elements, none stays without the ends"), covered);
      return NULL;
    }

  if (is_row)
    x = OP (unsqueeze, x, 0);
  x = OP (transpose, x, 1, 2);
  if (!return_complex && !onesided)
    x = OP (slice, x, -1, 0, n_fft / 2 + 1, 1);
  x = return_complex ? OP (fft_ifft, x, GTORCH_NONE, -1, norm) : OP (fft_irfft, x, n_fft, -1, norm);
  whole = f.failed ? NULL : window_of (&f, window, win_length, n_fft, x);
  x = OP (mul, x, whole);
  square = OP (mul, whole, whole);
  square = OP (expand, square, shape, 3);
  shape[1] = covered;
  sums = OP (unfold_backward, square, shape, 2, 1, n_fft, hop_length);
  shape[0] = f.failed ? 1 : x->shape[0];
  x = OP (unfold_backward, x, shape, 2, 1, n_fft, hop_length);
  x = OP (slice, x, 1, begin, MIN (end, covered), 1);
  sums = OP (slice, sums, 1, begin, MIN (end, covered), 1);
  if (!f.failed && check_overlap (&f, sums))
    {
      x = OP (div, x, sums);
      if (end > covered)
        x = OP (pad, x, ((const gint64[]){ 0, end - covered }), 2, GTORCH_PAD_MODE_CONSTANT, 0);
    }
  if (is_row)
    x = OP (select, x, 0, 0);
  return finish ("istft", &f, x);
}
