/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gates of recurrent networks, and their gradients. The file includes itself, once for each type. */

#ifndef T

#include "config.h"

#include "cpu/gtorch-cpu-loops.h"
#include "cpu/ops/gtorch-cpu-recurrent.h"

#define T       float
#define NAME(n) n##_f32
#include "gtorch-isa-recurrent.c"
#undef T
#undef NAME
#define T       double
#define NAME(n) n##_f64
#include "gtorch-isa-recurrent.c"

#else

/* Without gates, the new state takes the place of its sum. Rows are computed one by one, since the last
 * numbers of a loop may have another function than those in whole vectors. */
void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_tanh)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->hidden;
  T *y = rows->y, *h = rows->h;

  for (gint64 r = 0; r < rows->rows; r++, y += n, h += n)
#pragma omp simd
    for (gint64 i = 0; i < n; i++)
      h[i] = y[i] = tanh (y[i]);
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_relu)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->rows * rows->hidden;
  T *y = rows->y, *h = rows->h;

  /* NaN stays */
#pragma omp simd
  for (gint64 i = 0; i < n; i++)
    h[i] = y[i] = y[i] < 0 ? 0 : y[i];
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_lstm)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->hidden;

  for (gint64 r = 0; r < rows->rows; r++)
    {
      T *in = (T *) rows->gates + r * rows->gates_stride, *keep = in + n, *value = keep + n;
      T *out = value + n, *cell = out + n;
      T *c = (T *) rows->c + r * n, *y = (T *) rows->y + r * n;

#pragma omp simd
      for (gint64 i = 0; i < n; i++)
        {
          const T a = gt_sigmoid (in[i]), b = gt_sigmoid (keep[i]), v = tanh (value[i]);
          const T o = gt_sigmoid (out[i]), next = b * c[i] + a * v;

          in[i] = a;
          keep[i] = b;
          value[i] = v;
          out[i] = o;
          cell[i] = c[i] = next;
          y[i] = o * tanh (next);
        }
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_gru)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->hidden;

  for (gint64 r = 0; r < rows->rows; r++)
    {
      T *reset = (T *) rows->gates + r * rows->gates_stride, *keep = reset + n, *value = keep + n;
      T *product = value + n;
      const T *p = (const T *) rows->products + r * 3 * n;
      T *h = (T *) rows->h + r * n, *y = (T *) rows->y + r * n;

#pragma omp simd
      for (gint64 i = 0; i < n; i++)
        {
          const T a = reset[i] + p[i], b = keep[i] + p[n + i], q = p[2 * n + i];
          const T s = gt_sigmoid (a), z = gt_sigmoid (b), v = tanh (value[i] + s * q);

          reset[i] = s;
          keep[i] = z;
          value[i] = v;
          product[i] = q;
          h[i] = y[i] = v + z * (h[i] - v);
        }
    }
}

/* --- gradients --- */

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_tanh_grad)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->rows * rows->hidden;
  const T *upper = rows->upper, *y = rows->y;
  T *grad = rows->grad_gates;

#pragma omp simd
  for (gint64 i = 0; i < n; i++)
    grad[i] = upper[i] * (1 - y[i] * y[i]);
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_relu_grad)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->rows * rows->hidden;
  const T *upper = rows->upper, *y = rows->y;
  T *grad = rows->grad_gates;

#pragma omp simd
  for (gint64 i = 0; i < n; i++)
    grad[i] = y[i] <= 0 ? 0 : upper[i];
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_lstm_grad)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->hidden;

  for (gint64 r = 0; r < rows->rows; r++)
    {
      const T *in = (const T *) rows->gates + r * rows->gates_stride, *keep = in + n;
      const T *value = keep + n, *out = value + n, *cell = out + n;
      const T *former = (const T *) rows->former + r * rows->former_stride;
      const T *upper = (const T *) rows->upper + r * n;
      T *grad = (T *) rows->grad_gates + r * 4 * n, *c = (T *) rows->c + r * n;

#pragma omp simd
      for (gint64 i = 0; i < n; i++)
        {
          const T a = in[i], b = keep[i], v = value[i], o = out[i], u = upper[i];
          const T t = tanh (cell[i]), d = c[i] + u * o * (1 - t * t);

          grad[i] = d * v * a * (1 - a);
          grad[n + i] = d * former[i] * b * (1 - b);
          grad[2 * n + i] = d * a * (1 - v * v);
          grad[3 * n + i] = u * t * o * (1 - o);
          c[i] = d * b;
        }
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_recurrent_gru_grad)) (const GTorchRecurrentRows *rows)
{
  const gint64 n = rows->hidden;

  for (gint64 r = 0; r < rows->rows; r++)
    {
      const T *reset = (const T *) rows->gates + r * rows->gates_stride, *keep = reset + n;
      const T *value = keep + n, *product = value + n;
      const T *former = (const T *) rows->former + r * rows->former_stride;
      T *upper = (T *) rows->upper + r * n;
      T *grad = (T *) rows->grad_gates + r * 3 * n, *inner = (T *) rows->grad_products + r * 3 * n;

#pragma omp simd
      for (gint64 i = 0; i < n; i++)
        {
          const T s = reset[i], z = keep[i], v = value[i], u = upper[i];
          const T of_value = u * (1 - z) * (1 - v * v);
          const T of_keep = u * (former[i] - v) * z * (1 - z);
          const T of_reset = of_value * product[i] * s * (1 - s);

          grad[i] = inner[i] = of_reset;
          grad[n + i] = inner[n + i] = of_keep;
          grad[2 * n + i] = of_value;
          inner[2 * n + i] = of_value * s;
          upper[i] = u * z;
        }
    }
}

#endif
