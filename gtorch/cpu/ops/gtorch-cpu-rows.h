/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* Single-threaded kernels over rows of n contiguous elements, and over columns: n rows, stride apart, of
 * width elements each (at most GTORCH_ROWS_TILE). */
#define GTORCH_ROWS_TILE 64

#define GTORCH_ROWS_DECLARE(name, args_f32, args_f64)       \
  GTORCH_ISA_DECLARE (void, gtorch_##name##_f32, args_f32); \
  GTORCH_ISA_DECLARE (void, gtorch_##name##_f64, args_f64)

/* Calls the kernel of a dtype, float32 or float64. */
#define GTORCH_ROWS_CALL(dtype, name, ...)                 \
  G_STMT_START                                             \
  {                                                        \
    if ((dtype) == GTORCH_DTYPE_FLOAT32)                   \
      GTORCH_ISA_CALL (gtorch_##name##_f32) (__VA_ARGS__); \
    else                                                   \
      GTORCH_ISA_CALL (gtorch_##name##_f64) (__VA_ARGS__); \
  }                                                        \
  G_STMT_END

#define GTORCH_ROWS_ARGS(T) (const T *x, T *y, gint64 rows, gint64 n, gboolean log)
GTORCH_ROWS_DECLARE (softmax_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) (const T *x, T *y, gint64 n, gint64 stride, gint64 width, gboolean log)
GTORCH_ROWS_DECLARE (softmax_columns, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) (const T *g, const T *y, T *out, gint64 rows, gint64 n, gboolean log)
GTORCH_ROWS_DECLARE (softmax_grad_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) \
  (const T *g, const T *y, T *out, gint64 n, gint64 stride, gint64 width, gboolean log)
GTORCH_ROWS_DECLARE (softmax_grad_columns, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS

/* log (sum (exp (row))) */
#define GTORCH_ROWS_ARGS(T) (const T *x, T *y, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (logsumexp_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* Computes the greatest element of each row or column and log (sum (exp (x - max))). */
#define GTORCH_ROWS_ARGS(T) (const T *x, T *max, T *rest, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (log_sum_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) (const T *x, T *max, T *rest, gint64 n, gint64 stride, gint64 width)
GTORCH_ROWS_DECLARE (log_sum_columns, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* Computes scale * exp ((x - shift) - rest) with three numbers for each row or column; a scale of 0 gives
 * 0. */
#define GTORCH_ROWS_ARGS(T) \
  (const T *x, T *y, const T *shift, const T *rest, const T *scale, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (scaled_exp_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T)                                                                  \
  (const T *x, T *y, const T *shift, const T *rest, const T *scale, gint64 n, gint64 stride, \
   gint64 width)
GTORCH_ROWS_DECLARE (scaled_exp_columns, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* Computes each row's sum of the squared distances from the mean and, unless mean is NULL, the mean. */
#define GTORCH_ROWS_ARGS(T) (const T *x, T *spread, T *mean, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (moments_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS

/* weight and bias may be NULL. */
#define GTORCH_ROWS_ARGS(T) \
  (const T *x, const T *weight, const T *bias, T *y, T *mean, T *rstd, gint64 rows, gint64 n, T eps)
GTORCH_ROWS_DECLARE (layer_norm_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* Adds to grad_weight and grad_bias; any result may be NULL. */
#define GTORCH_ROWS_ARGS(T)                                                          \
  (const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *grad_x, \
   T *grad_weight, T *grad_bias, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (layer_norm_grad_rows, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS

/* One channel of a batch: `rows` rows of n elements, stride apart. */
#define GTORCH_ROWS_ARGS(T) \
  (const T *x, gint64 rows, gint64 n, gint64 stride, double *mean, double *var)
GTORCH_ROWS_DECLARE (channel_moments, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* y = (x - mean) * scale + shift */
#define GTORCH_ROWS_ARGS(T) \
  (const T *x, T *y, gint64 rows, gint64 n, gint64 stride, double mean, double scale, double shift)
GTORCH_ROWS_DECLARE (channel_scale, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* Computes the sums of g and of g (x - mean). */
#define GTORCH_ROWS_ARGS(T)                                                                \
  (const T *g, const T *x, gint64 rows, gint64 n, gint64 stride, double mean, double *sum, \
   double *dot)
GTORCH_ROWS_DECLARE (channel_dots, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
/* out = g * a + (x - mean) * b + c */
#define GTORCH_ROWS_ARGS(T)                                                                     \
  (const T *g, const T *x, T *out, gint64 rows, gint64 n, gint64 stride, double mean, double a, \
   double b, double c)
GTORCH_ROWS_DECLARE (channel_grad, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS

#define GTORCH_ROWS_ARGS(T) (const T *x, gint64 n, double *total)
GTORCH_ROWS_DECLARE (row_total, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) (const T *x, gint64 n, T best, gint64 *first)
GTORCH_ROWS_DECLARE (row_beyond, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS

G_END_DECLS
