/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Softmax and normalisation over rows and columns. The file includes itself, once for each type. */

#ifndef T

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-loops.h"
#include "cpu/ops/gtorch-cpu-rows.h"

#define T       float
#define NAME(n) n##_f32
#include "gtorch-isa-rows.c"
#undef T
#undef NAME
#define T       double
#define NAME(n) n##_f64
#include "gtorch-isa-rows.c"

#else

/* Row reductions in a fixed number of lanes, so that their order does not depend on the processor. */
#define LANES 32

#define LANE_LOOP(INIT, X, STEP, COMBINE)                \
  T lane[LANES] __attribute__ ((aligned (64)));          \
  gint64 i;                                              \
  for (int l = 0; l < LANES; l++)                        \
    lane[l] = INIT;                                      \
  for (i = 0; i + LANES <= n; i += LANES)                \
    _Pragma ("omp simd") for (int l = 0; l < LANES; l++) \
    {                                                    \
      const T acc = lane[l], v = X (i + l);              \
      lane[l] = STEP;                                    \
    }                                                    \
  for (int l = 0; i + l < n; l++)                        \
    {                                                    \
      const T acc = lane[l], v = X (i + l);              \
      lane[l] = STEP;                                    \
    }                                                    \
  for (int w = LANES / 2; w > 0; w /= 2)                 \
    for (int l = 0; l < w; l++)                          \
      {                                                  \
        const T acc = lane[l], v = lane[l + w];          \
        lane[l] = COMBINE;                               \
      }                                                  \
  return lane[0];

static inline T
NAME (row_max) (const T *x, gint64 n)
{
#define X(i) x[i]
  LANE_LOOP (-(T) INFINITY, X, v > acc ? v : acc, v > acc ? v : acc)
#undef X
}

static inline T
NAME (row_sum) (const T *x, gint64 n)
{
#define X(i) x[i]
  LANE_LOOP (0, X, acc + v, acc + v)
#undef X
}

/* Returns the sum of the squared distances from mean. */
static inline T
NAME (row_spread) (const T *x, gint64 n, T mean)
{
#define X(i) (x[i] - mean)
  LANE_LOOP (0, X, acc + v * v, acc + v)
#undef X
}

static inline T
NAME (row_dot) (const T *x, const T *y, gint64 n)
{
#define X(i) (x[i] * y[i])
  LANE_LOOP (0, X, acc + v, acc + v)
#undef X
}

/* Returns the sum of x (y - mean). */
static inline T
NAME (row_dot_centred) (const T *x, const T *y, gint64 n, T mean)
{
#define X(i) (x[i] * (y[i] - mean))
  LANE_LOOP (0, X, acc + v, acc + v)
#undef X
}

#undef LANES
#undef LANE_LOOP

/* Computes y = exp (x - max) and returns the sum of y. */
static inline T
NAME (row_exp) (const T *x, T *y, gint64 n, T max)
{
  gint64 i;

#pragma omp simd
  for (i = 0; i < n; i++)
    y[i] = exp (x[i] - max);
  return NAME (row_sum) (y, n);
}

static inline T
NAME (row_exp_sum) (const T *x, gint64 n, T max)
{
  T buffer[512] __attribute__ ((aligned (64)));
  T sum = 0;
  gint64 i;

  for (i = 0; i < n; i += 512)
    sum += NAME (row_exp) (x + i, buffer, MIN (512, n - i), max);
  return sum;
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_softmax_rows)) (const T *x, T *y, gint64 rows, gint64 n,
                                                gboolean log_form)
{
  gint64 i;

  for (; rows > 0; rows--, x += n, y += n)
    {
      T max = NAME (row_max) (x, n);

      if (log_form)
        {
          T shift = log (NAME (row_exp_sum) (x, n, max));

#pragma omp simd
          for (i = 0; i < n; i++)
            y[i] = (x[i] - max) - shift;
        }
      else
        {
          T scale = 1 / NAME (row_exp) (x, y, n, max);

#pragma omp simd
          for (i = 0; i < n; i++)
            y[i] *= scale;
        }
    }
}

/* Gets the greatest of each column. */
static inline void
NAME (column_max) (const T *x, T *max, gint64 n, gint64 stride, gint64 width)
{
  gint64 i, c;

  for (c = 0; c < width; c++)
    max[c] = -(T) INFINITY;
  for (i = 0; i < n; i++)
#pragma omp simd
    for (c = 0; c < width; c++)
      max[c] = x[i * stride + c] > max[c] ? x[i * stride + c] : max[c];
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_softmax_columns)) (const T *x, T *y, gint64 n, gint64 stride,
                                                   gint64 width, gboolean log_form)
{
  T max[GTORCH_ROWS_TILE] __attribute__ ((aligned (64)));
  T sum[GTORCH_ROWS_TILE] __attribute__ ((aligned (64)));
  gint64 i, c;

  NAME (column_max) (x, max, n, stride, width);
  memset (sum, 0, width * sizeof (T));
  for (i = 0; i < n; i++)
#pragma omp simd
    for (c = 0; c < width; c++)
      {
        T e = exp (x[i * stride + c] - max[c]);

        y[i * stride + c] = e;
        sum[c] += e;
      }
#pragma omp simd
  for (c = 0; c < width; c++)
    sum[c] = log_form ? log (sum[c]) : 1 / sum[c];
  for (i = 0; i < n; i++)
    if (log_form)
#pragma omp simd
      for (c = 0; c < width; c++)
        y[i * stride + c] = (x[i * stride + c] - max[c]) - sum[c];
    else
#pragma omp simd
      for (c = 0; c < width; c++)
        y[i * stride + c] *= sum[c];
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_softmax_grad_rows)) (const T *g, const T *y, T *out, gint64 rows,
                                                     gint64 n, gboolean log_form)
{
  gint64 i;

  for (; rows > 0; rows--, g += n, y += n, out += n)
    if (log_form)
      {
        T sum = NAME (row_sum) (g, n);

#pragma omp simd
        for (i = 0; i < n; i++)
          out[i] = g[i] - exp (y[i]) * sum;
      }
    else
      {
        T sum = NAME (row_dot) (g, y, n);

#pragma omp simd
        for (i = 0; i < n; i++)
          out[i] = y[i] * (g[i] - sum);
      }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_softmax_grad_columns)) (const T *g, const T *y, T *out, gint64 n,
                                                        gint64 stride, gint64 width,
                                                        gboolean log_form)
{
  T sum[GTORCH_ROWS_TILE] __attribute__ ((aligned (64)));
  gint64 i, c;

  for (c = 0; c < width; c++)
    sum[c] = 0;
  for (i = 0; i < n; i++)
#pragma omp simd
    for (c = 0; c < width; c++)
      sum[c] += log_form ? g[i * stride + c] : g[i * stride + c] * y[i * stride + c];
  for (i = 0; i < n; i++)
    if (log_form)
#pragma omp simd
      for (c = 0; c < width; c++)
        out[i * stride + c] = g[i * stride + c] - exp (y[i * stride + c]) * sum[c];
    else
#pragma omp simd
      for (c = 0; c < width; c++)
        out[i * stride + c] = y[i * stride + c] * (g[i * stride + c] - sum[c]);
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_logsumexp_rows)) (const T *x, T *y, gint64 rows, gint64 n)
{
  for (; rows > 0; rows--, x += n, y++)
    {
      T max = NAME (row_max) (x, n);

      /* if all elements are -infinity, or one is +infinity, the shift would give NaN */
      if (max == (T) INFINITY || max == -(T) INFINITY)
        max = 0;
      *y = max + log (NAME (row_exp_sum) (x, n, max));
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_log_sum_rows)) (const T *x, T *max, T *rest, gint64 rows, gint64 n)
{
  for (; rows > 0; rows--, x += n)
    {
      *max = NAME (row_max) (x, n);
      *rest++ = log (NAME (row_exp_sum) (x, n, *max));
      max++;
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_log_sum_columns)) (const T *x, T *max, T *rest, gint64 n,
                                                   gint64 stride, gint64 width)
{
  T most[GTORCH_ROWS_TILE] __attribute__ ((aligned (64)));
  T all[GTORCH_ROWS_TILE] __attribute__ ((aligned (64)));
  gint64 i, c;

  NAME (column_max) (x, most, n, stride, width);
  memset (all, 0, width * sizeof (T));
  for (i = 0; i < n; i++)
#pragma omp simd
    for (c = 0; c < width; c++)
      all[c] += exp (x[i * stride + c] - most[c]);
#pragma omp simd
  for (c = 0; c < width; c++)
    {
      max[c] = most[c];
      rest[c] = log (all[c]);
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_scaled_exp_rows)) (const T *x, T *y, const T *shift, const T *rest,
                                                   const T *scale, gint64 rows, gint64 n)
{
  gint64 r, i;

  for (r = 0; r < rows; r++, x += n, y += n)
    if (scale[r] == 0)
      memset (y, 0, (gsize) n * sizeof (T));
    else
      {
        const T s = shift[r], t = rest[r], factor = scale[r];

#pragma omp simd
        for (i = 0; i < n; i++)
          y[i] = factor * exp ((x[i] - s) - t);
      }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_scaled_exp_columns)) (const T *x, T *y, const T *shift,
                                                      const T *rest, const T *scale, gint64 n,
                                                      gint64 stride, gint64 width)
{
  gint64 i, c;

  for (i = 0; i < n; i++)
#pragma omp simd
    for (c = 0; c < width; c++)
      {
        const T e = scale[c] * exp ((x[i * stride + c] - shift[c]) - rest[c]);

        y[i * stride + c] = scale[c] == 0 ? 0 : e;
      }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_moments_rows)) (const T *x, T *spread, T *mean, gint64 rows,
                                                gint64 n)
{
  gint64 i, r;

  for (r = 0; r < rows; r++, x += n)
    {
      double sum = 0, squares = 0;
      T centre;

      for (i = 0; i < n; i += 4096)
        sum += NAME (row_sum) (x + i, MIN (4096, n - i));
      centre = (T) (sum / (double) n);
      for (i = 0; i < n; i += 4096)
        squares += NAME (row_spread) (x + i, MIN (4096, n - i), centre);
      spread[r] = (T) squares;
      if (mean != NULL)
        mean[r] = centre;
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_layer_norm_rows)) (const T *x, const T *weight, const T *bias, T *y,
                                                   T *mean, T *rstd, gint64 rows, gint64 n, T eps)
{
  gint64 i, r;

  for (r = 0; r < rows; r++, x += n, y += n)
    {
      T spread, scale, shift;

      GTORCH_ISA_SYMBOL (NAME (gtorch_moments_rows)) (x, &spread, &mean[r], 1, n);
      scale = rstd[r] = 1 / sqrt (spread / (T) n + eps);
      shift = mean[r];
      if (weight != NULL && bias != NULL)
#pragma omp simd
        for (i = 0; i < n; i++)
          y[i] = (x[i] - shift) * scale * weight[i] + bias[i];
      else if (weight != NULL)
#pragma omp simd
        for (i = 0; i < n; i++)
          y[i] = (x[i] - shift) * scale * weight[i];
      else
#pragma omp simd
        for (i = 0; i < n; i++)
          y[i] = (x[i] - shift) * scale + (bias != NULL ? bias[i] : 0);
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_layer_norm_grad_rows)) (const T *g, const T *x, const T *weight,
                                                        const T *mean, const T *rstd, T *grad_x,
                                                        T *grad_weight, T *grad_bias, gint64 rows,
                                                        gint64 n)
{
  gint64 i, r;

  for (r = 0; r < rows; r++, x += n, g += n)
    {
      const T scale = rstd[r], shift = mean[r];

      if (grad_weight != NULL)
#pragma omp simd
        for (i = 0; i < n; i++)
          grad_weight[i] += g[i] * (x[i] - shift) * scale;
      if (grad_bias != NULL)
#pragma omp simd
        for (i = 0; i < n; i++)
          grad_bias[i] += g[i];
      if (grad_x != NULL)
        {
          T *out = grad_x + r * n;
          T sum, dot;

#pragma omp simd
          for (i = 0; i < n; i++)
            out[i] = weight != NULL ? g[i] * weight[i] : g[i];
          sum = NAME (row_sum) (out, n) / (T) n;
          dot = NAME (row_dot_centred) (out, x, n, shift) * scale * scale / (T) n;
#pragma omp simd
          for (i = 0; i < n; i++)
            out[i] = scale * (out[i] - sum - (x[i] - shift) * dot);
        }
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_channel_moments)) (const T *x, gint64 rows, gint64 n, gint64 stride,
                                                   double *mean, double *var)
{
  double sum = 0, squares = 0;
  T centre;
  gint64 r, i;

  for (r = 0; r < rows; r++)
    for (i = 0; i < n; i += 4096)
      sum += NAME (row_sum) (x + r * stride + i, MIN (4096, n - i));
  centre = (T) (sum / (double) (rows * n));
  for (r = 0; r < rows; r++)
    for (i = 0; i < n; i += 4096)
      squares += NAME (row_spread) (x + r * stride + i, MIN (4096, n - i), centre);
  *mean = centre;
  *var = squares / (double) (rows * n);
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_channel_scale)) (const T *x, T *y, gint64 rows, gint64 n,
                                                 gint64 stride, double mean, double scale,
                                                 double shift)
{
  const T a = (T) scale, b = (T) shift, m = (T) mean;
  gint64 r, i;

  for (r = 0; r < rows; r++, x += stride, y += stride)
#pragma omp simd
    for (i = 0; i < n; i++)
      y[i] = (x[i] - m) * a + b;
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_channel_dots)) (const T *g, const T *x, gint64 rows, gint64 n,
                                                gint64 stride, double mean, double *sum,
                                                double *dot)
{
  gint64 r;

  *sum = *dot = 0;
  for (r = 0; r < rows; r++, x += stride, g += stride)
    {
      *sum += NAME (row_sum) (g, n);
      *dot += NAME (row_dot_centred) (g, x, n, (T) mean);
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_channel_grad)) (const T *g, const T *x, T *out, gint64 rows,
                                                gint64 n, gint64 stride, double mean, double a,
                                                double b, double c)
{
  const T m = (T) mean, ga = (T) a, xb = (T) b, k = (T) c;
  gint64 r, i;

  for (r = 0; r < rows; r++, x += stride, g += stride, out += stride)
#pragma omp simd
    for (i = 0; i < n; i++)
      out[i] = g[i] * ga + (x[i] - m) * xb + k;
}

/* Adds float32 in float64, too. */
void
GTORCH_ISA_SYMBOL (NAME (gtorch_row_total)) (const T *x, gint64 n, double *total)
{
  double lane[32] __attribute__ ((aligned (64))) = { 0 };
  double sum = 0;
  gint64 i;

  for (i = 0; i + 32 <= n; i += 32)
#pragma omp simd
    for (int l = 0; l < 32; l++)
      lane[l] += (double) x[i + l];
  for (int w = 16; w > 0; w /= 2)
    for (int l = 0; l < w; l++)
      lane[l] += lane[l + w];
  for (; i < n; i++)
    sum += (double) x[i];
  *total += lane[0] + sum;
}

/* Finds the first element that is greater than best, or NaN; n if there is none. */
void
GTORCH_ISA_SYMBOL (NAME (gtorch_row_beyond)) (const T *x, gint64 n, T best, gint64 *first)
{
  gint64 i;

  for (i = 0; i + 64 <= n; i += 64)
    {
      gint32 any = 0;

#pragma omp simd reduction(| : any)
      for (int l = 0; l < 64; l++)
        any |= !(x[i + l] <= best);
      if (any != 0)
        break;
    }
  for (; i < n && x[i] <= best; i++)
    ;
  *first = i;
}

#endif
