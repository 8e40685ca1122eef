/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Softmax and normalisation over rows of few elements. A vector holds one element of each of several rows,
 * so no sum goes across a vector. The rows are transposed into buffers, where those that are missing from
 * the last group are zeros: what is computed for a row does not depend on its place. The file includes
 * itself, once for each type. */

#ifndef T

#include "config.h"

#include "cpu/gtorch-cpu-loops.h"
#include "cpu/ops/gtorch-cpu-narrow.h"
#include "cpu/ops/gtorch-cpu-rows.h"

enum
{
  GROUP = 16, /* rows that are processed together */
};

#define T       float
#define NAME(n) n##_f32
#include "gtorch-isa-narrow.c"
#undef T
#undef NAME
#define T       double
#define NAME(n) n##_f64
#include "gtorch-isa-narrow.c"

#else

typedef T NAME (Group)[GTORCH_NARROW][GROUP] __attribute__ ((aligned (64)));

#define EACH_ROW _Pragma ("omp simd") for (gint32 r = 0; r < GROUP; r++)

static inline void
NAME (take) (NAME (Group) group, const T *x, gint64 rows, gint64 n)
{
  const gint32 width = (gint32) n;

  if (rows >= GROUP)
    for (gint32 i = 0; i < width; i++)
      EACH_ROW group[i][r] = x[r * width + i];
  else
    for (gint32 i = 0; i < width; i++)
      for (gint32 r = 0; r < GROUP; r++)
        group[i][r] = r < rows ? x[r * width + i] : 0;
}

static inline void
NAME (give) (NAME (Group) group, T *y, gint64 rows, gint64 n)
{
  for (gint64 r = 0; r < MIN (rows, GROUP); r++)
    for (gint64 i = 0; i < n; i++)
      y[r * n + i] = group[i][r];
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_narrow_norm)) (const T *x, const T *weight, const T *bias, T *y,
                                               T *mean, T *rstd, gint64 rows, gint64 n, T eps)
{
  NAME (Group) group;

  for (; rows > 0; rows -= GROUP, x += GROUP * n, y += GROUP * n, mean += GROUP, rstd += GROUP)
    {
      double sum[GROUP] = { 0 }, squares[GROUP] = { 0 };
      T shift[GROUP], scale[GROUP];

      NAME (take) (group, x, rows, n);
      for (gint64 i = 0; i < n; i++)
        EACH_ROW sum[r] += (double) group[i][r];
      EACH_ROW shift[r] = (T) (sum[r] / (double) n);
      for (gint64 i = 0; i < n; i++)
        EACH_ROW
        {
          const T part = group[i][r] - shift[r];

          squares[r] += (double) (part * part);
        }
      EACH_ROW scale[r] = 1 / sqrt ((T) squares[r] / (T) n + eps);
      for (gint64 i = 0; i < n; i++)
        {
          const T w = weight != NULL ? weight[i] : 1, b = bias != NULL ? bias[i] : 0;

          EACH_ROW group[i][r] = (group[i][r] - shift[r]) * scale[r] * w + b;
        }
      NAME (give) (group, y, rows, n);
      for (gint64 r = 0; r < MIN (rows, GROUP); r++)
        {
          mean[r] = shift[r];
          rstd[r] = scale[r];
        }
    }
}

/* Any result may be NULL. The rows of the last group that are missing have a scale of 0, so they add 0. */
void
GTORCH_ISA_SYMBOL (NAME (gtorch_narrow_norm_grad)) (const T *g, const T *x, const T *weight,
                                                    const T *mean, const T *rstd, T *grad_x,
                                                    T *grad_weight, T *grad_bias, gint64 rows,
                                                    gint64 n)
{
  NAME (Group) upper, centred;

  for (; rows > 0; rows -= GROUP, x += GROUP * n, g += GROUP * n, mean += GROUP, rstd += GROUP)
    {
      double sum[GROUP] = { 0 }, dot[GROUP] = { 0 };
      T shift[GROUP] = { 0 }, scale[GROUP] = { 0 };

      NAME (take) (upper, g, rows, n);
      NAME (take) (centred, x, rows, n);
      for (gint64 r = 0; r < MIN (rows, GROUP); r++)
        {
          shift[r] = mean[r];
          scale[r] = rstd[r];
        }
      for (gint64 i = 0; i < n; i++)
        {
          const T w = weight != NULL ? weight[i] : 1;
          T of_weight[GROUP], of_bias[GROUP];

          EACH_ROW
          {
            const T normal = (centred[i][r] - shift[r]) * scale[r];

            of_weight[r] = upper[i][r] * normal;
            of_bias[r] = upper[i][r];
            centred[i][r] = normal;
            upper[i][r] *= w;
            sum[r] += (double) upper[i][r];
            dot[r] += (double) (upper[i][r] * normal);
          }
          for (gint32 half = GROUP / 2; half > 0; half /= 2)
            for (gint32 r = 0; r < half; r++)
              {
                of_weight[r] += of_weight[r + half];
                of_bias[r] += of_bias[r + half];
              }
          if (grad_weight != NULL)
            grad_weight[i] += of_weight[0];
          if (grad_bias != NULL)
            grad_bias[i] += of_bias[0];
        }
      if (grad_x == NULL)
        continue;
      for (gint64 i = 0; i < n; i++)
        EACH_ROW
        {
          const T part = (T) (sum[r] / (double) n), along = (T) (dot[r] / (double) n);

          upper[i][r] = scale[r] * (upper[i][r] - part - centred[i][r] * along);
        }
      NAME (give) (upper, grad_x, rows, n);
      grad_x += GROUP * n;
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_narrow_softmax)) (const T *x, T *y, gint64 rows, gint64 n,
                                                  gboolean log_form)
{
  NAME (Group) group;

  for (; rows > 0; rows -= GROUP, x += GROUP * n, y += GROUP * n)
    {
      T max[GROUP], factor[GROUP];
      double sum[GROUP] = { 0 };

      NAME (take) (group, x, rows, n);
      EACH_ROW max[r] = -(T) INFINITY;
      for (gint64 i = 0; i < n; i++)
        EACH_ROW max[r] = group[i][r] > max[r] ? group[i][r] : max[r];
      for (gint64 i = 0; i < n; i++)
        EACH_ROW
        {
          const T shifted = group[i][r] - max[r], e = exp (shifted);

          sum[r] += (double) e;
          group[i][r] = log_form ? shifted : e;
        }
      if (log_form)
        EACH_ROW factor[r] = log ((T) sum[r]);
      else
        EACH_ROW factor[r] = 1 / (T) sum[r];
      for (gint64 i = 0; i < n; i++)
        if (log_form)
          EACH_ROW group[i][r] -= factor[r];
        else
          EACH_ROW group[i][r] *= factor[r];
      NAME (give) (group, y, rows, n);
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_narrow_log_sum)) (const T *x, T *max, T *rest, gint64 rows,
                                                  gint64 n)
{
  NAME (Group) group;

  for (; rows > 0; rows -= GROUP, x += GROUP * n)
    {
      T most[GROUP], logs[GROUP];
      double all[GROUP] = { 0 };

      NAME (take) (group, x, rows, n);
      EACH_ROW most[r] = -(T) INFINITY;
      for (gint64 i = 0; i < n; i++)
        EACH_ROW most[r] = group[i][r] > most[r] ? group[i][r] : most[r];
      for (gint64 i = 0; i < n; i++)
        EACH_ROW all[r] += (double) exp (group[i][r] - most[r]);
      EACH_ROW logs[r] = log ((T) all[r]);
      for (gint64 r = 0; r < MIN (rows, GROUP); r++)
        {
          *max++ = most[r];
          *rest++ = logs[r];
        }
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_narrow_scaled_exp)) (const T *x, T *y, const T *shift,
                                                     const T *rest, const T *scale, gint64 rows,
                                                     gint64 n)
{
  NAME (Group) group;

  for (; rows > 0; rows -= GROUP, x += GROUP * n, y += GROUP * n)
    {
      T s[GROUP] = { 0 }, t[GROUP] = { 0 }, factor[GROUP] = { 0 };

      NAME (take) (group, x, rows, n);
      for (gint64 r = 0; r < MIN (rows, GROUP); r++)
        {
          s[r] = *shift++;
          t[r] = *rest++;
          factor[r] = *scale++;
        }
      for (gint64 i = 0; i < n; i++)
        EACH_ROW
        {
          const T e = factor[r] * exp ((group[i][r] - s[r]) - t[r]);

          group[i][r] = factor[r] == 0 ? 0 : e;
        }
      NAME (give) (group, y, rows, n);
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_narrow_softmax_grad)) (const T *g, const T *y, T *out, gint64 rows,
                                                       gint64 n, gboolean log_form)
{
  NAME (Group) upper, group;

  for (; rows > 0; rows -= GROUP, g += GROUP * n, y += GROUP * n, out += GROUP * n)
    {
      double sum[GROUP] = { 0 };

      NAME (take) (upper, g, rows, n);
      NAME (take) (group, y, rows, n);
      for (gint64 i = 0; i < n; i++)
        if (log_form)
          EACH_ROW sum[r] += (double) upper[i][r];
        else
          EACH_ROW sum[r] += (double) (upper[i][r] * group[i][r]);
      for (gint64 i = 0; i < n; i++)
        if (log_form)
          EACH_ROW upper[i][r] -= exp (group[i][r]) * (T) sum[r];
        else
          EACH_ROW upper[i][r] = group[i][r] * (upper[i][r] - (T) sum[r]);
      NAME (give) (upper, out, rows, n);
    }
}

#undef EACH_ROW

#endif
