/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/ops/gtorch-cpu-rows.h>

G_BEGIN_DECLS

/* The forms of the functions of gtorch-cpu-rows.h for many rows of few elements. */
#define GTORCH_NARROW             32
#define GTORCH_IS_NARROW(rows, n) ((rows) >= 8 && (n) <= GTORCH_NARROW)

#define GTORCH_ROWS_ARGS(T) (const T *x, T *y, gint64 rows, gint64 n, gboolean log)
GTORCH_ROWS_DECLARE (narrow_softmax, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) (const T *x, T *max, T *rest, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (narrow_log_sum, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) \
  (const T *x, T *y, const T *shift, const T *rest, const T *scale, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (narrow_scaled_exp, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) (const T *g, const T *y, T *out, gint64 rows, gint64 n, gboolean log)
GTORCH_ROWS_DECLARE (narrow_softmax_grad, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T) \
  (const T *x, const T *weight, const T *bias, T *y, T *mean, T *rstd, gint64 rows, gint64 n, T eps)
GTORCH_ROWS_DECLARE (narrow_norm, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS
#define GTORCH_ROWS_ARGS(T)                                                          \
  (const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *grad_x, \
   T *grad_weight, T *grad_bias, gint64 rows, gint64 n)
GTORCH_ROWS_DECLARE (narrow_norm_grad, GTORCH_ROWS_ARGS (float), GTORCH_ROWS_ARGS (double));
#undef GTORCH_ROWS_ARGS

G_END_DECLS
