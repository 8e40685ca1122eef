/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* Fourier transforms of lines of a strided tensor. Strides and steps are counted in real numbers; a complex
 * number is two of them. */

typedef enum
{
  GTORCH_FFT_C2C,
  GTORCH_FFT_R2C, /* forward; n / 2 + 1 results, whose conjugates are the rest */
  GTORCH_FFT_C2R, /* inverse, from n / 2 + 1 elements */
} GTorchFFTForm;

typedef struct
{
  GTorchFFTForm form;
  guint dtype; /* dtype of the real numbers: float32 or float64 */
  gboolean inverse;
  gdouble scale;
  gint64 n; /* length; in real elements for R2C and C2R */
  gconstpointer in;
  gpointer out;             /* may equal `in` for C2C with equal strides */
  gint64 in_step, out_step; /* from one element of a line to the next */
  guint n_dims;             /* dimensions of the array of lines */
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 in_strides[GTORCH_MAX_DIMS];
  gint64 out_strides[GTORCH_MAX_DIMS];
} GTorchFFT;

/* Fails only if an allocation fails. */
gboolean gtorch_cpu_fft (const GTorchFFT *fft, GError **error);

G_END_DECLS
