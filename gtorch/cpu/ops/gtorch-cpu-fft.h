/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* Fourier transforms of lines of a strided tensor. Strides and steps are counted in real numbers, of which a
 * complex one is two. */

typedef enum
{
  GTORCH_FFT_C2C,
  GTORCH_FFT_R2C, /* forwards; the n / 2 + 1 results that the others are conjugates of */
  GTORCH_FFT_C2R, /* backwards, from n / 2 + 1 elements */
} GTorchFFTForm;

typedef struct
{
  GTorchFFTForm form;
  guint dtype; /* of the real numbers: float32 or float64 */
  gboolean inverse;
  gdouble scale;
  gint64 n; /* the length: real elements where there are such */
  gconstpointer in;
  gpointer out;             /* for C2C it may be `in`, with equal strides */
  gint64 in_step, out_step; /* from element to element of a line */
  guint n_dims;             /* of the lines */
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 in_strides[GTORCH_MAX_DIMS];
  gint64 out_strides[GTORCH_MAX_DIMS];
} GTorchFFT;

/* Fails if there is no memory for it. */
gboolean gtorch_cpu_fft (const GTorchFFT *fft, GError **error);

G_END_DECLS
