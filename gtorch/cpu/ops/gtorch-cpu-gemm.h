/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* A product c (m x n, rows ldc apart) = alpha a (m x k) b (k x n) + beta c. c is not read if beta is 0.
 * Strides are in elements. */
typedef struct
{
  gint64 m, n, k;
  gconstpointer a;
  gint64 a_row, a_col;
  gconstpointer b;
  gint64 b_row, b_col;
  gpointer c;
  gint64 ldc;
  gdouble alpha, beta;
} GTorchGemm;

#define GTORCH_GEMM_WORKSPACE (4 * 1024 * 1024) /* bytes, 64-aligned */
#define GTORCH_GEMM_PANEL     4096              /* bytes of a row of b that are packed at a time */

GTORCH_ISA_DECLARE (void, gtorch_gemm_f32, (const GTorchGemm *g, gpointer workspace));
GTORCH_ISA_DECLARE (void, gtorch_gemm_f64, (const GTorchGemm *g, gpointer workspace));

/* The inner part of a convolution: c[i][q] = bias[i] + sum over p of a[i][p] b[table[p] + q] for m rows i
 * and n positions q. Of each `pitch` positions the first `width` are kept, the others are between the rows
 * of a padded image. The rows of c are c_row apart and contain only kept positions. b is read up to
 * GTORCH_CONV_SLACK elements past its end. */
typedef struct
{
  gint64 m, k, n;
  gconstpointer a; /* m x k */
  gconstpointer b;
  const gint64 *table;
  gconstpointer bias; /* or NULL */
  gpointer c;
  gint64 c_row;
  gint64 pitch, width;
} GTorchConvSpan;

#define GTORCH_CONV_SLACK 32

GTORCH_ISA_DECLARE (void, gtorch_conv_span_f32, (const GTorchConvSpan *span));
GTORCH_ISA_DECLARE (void, gtorch_conv_span_f64, (const GTorchConvSpan *span));

/* The gradient of a filter's elements for GTORCH_CONV_LANES channels, each of which has filters of its own:
 * sums[p][l] += sum over i < n of upper[i][l] image[table[p] + i step + l] for n_taps elements p and the
 * lanes l. The sum over i is complete before it is added. */
#define GTORCH_CONV_LANES 16

GTORCH_ISA_DECLARE (void, gtorch_conv_taps_f32,
                    (const float *upper, const float *image, const gint64 *table, gint64 n_taps,
                     gint64 n, gint64 step, float *sums));
GTORCH_ISA_DECLARE (void, gtorch_conv_taps_f64,
                    (const double *upper, const double *image, const gint64 *table, gint64 n_taps,
                     gint64 n, gint64 step, double *sums));

/* Returns this thread's workspace, or NULL. */
gpointer gtorch_cpu_gemm_workspace (void);
/* Multiplies in a compute dtype, in this thread. */
void gtorch_cpu_gemm_serial (guint dtype, const GTorchGemm *g);
/* Multiplies in a compute dtype, split over threads. */
void gtorch_cpu_gemm (guint dtype, const GTorchGemm *g);
/* A matrix that many products have as b, packed once: panels of columns one after the other. Such a product
 * gives each row of c the same bits whatever other rows are computed with it. */
typedef struct
{
  guint dtype;
  gint64 k, n;
  gpointer elements; /* k n of them */
} GTorchPanels;

/* Returns whether processors have products by panels for this compute dtype. */
gboolean gtorch_cpu_panels_exist (guint dtype);
/* Packs b, whose rows and columns are b_row and b_col elements apart, into the memory of the panels. */
void gtorch_cpu_panels_pack (const GTorchPanels *self, gconstpointer b, gint64 b_row, gint64 b_col);
/* Computes m rows of c = a b + beta c, whose rows are k and ldc elements apart, in this thread or, with
 * `threads`, split over threads by panels. */
void gtorch_cpu_panels_multiply (const GTorchPanels *self, gconstpointer a, gint64 m, gdouble beta,
                                 gpointer c, gint64 ldc, gboolean threads);
/* Multiplies the last two dimensions of a and b; the leading dimensions are batches and are broadcast. All
 * dtypes are the same compute dtype; c is contiguous and has the broadcast shape. */
void gtorch_cpu_gemm_batches (guint dtype, const GTorchImpl *a, const GTorchImpl *b, GTorchImpl *c,
                              gdouble alpha, gdouble beta);

/* Computes c = alpha a b + beta c for batches of matrices of any dtype. If alpha is 0, a and b are
 * not read, nor is c if beta is 0, so that not even a NaN in them has an effect. */
gboolean gtorch_cpu_multiply (GTorchOpCall *call, GTorchImpl *a, GTorchImpl *b, GTorchImpl *c,
                              gdouble alpha, gdouble beta, GError **error);

G_END_DECLS
