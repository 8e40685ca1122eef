/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gates of recurrent networks, and their gradients: what the products of a step leave to do. */

#include "gtorch-recurrent-params.h"
#include "gtorch-plain.cuh"

template <typename C>
GT_DEVICE C
gate (C x)
{
  return 1 / (1 + exp (-x));
}

/* --- forward --- */

template <typename T, typename C>
GT_DEVICE void
put_state (const GtRecurrent &p, int64_t at, C y)
{
  gt_put<T> (p.y, at, y);
  if (p.h != NULL)
    gt_put<T> (p.h, at, y);
}

template <typename T, typename C>
GT_DEVICE void
recurrent_tanh (const GtRecurrent &p)
{
  for (GT_LOOP (at, p.rows * p.hidden))
    put_state<T> (p, at, (C) tanh (gt_get<C, T> (p.gates, at) + gt_get<C, T> (p.products, at)));
}

template <typename T, typename C>
GT_DEVICE void
recurrent_relu (const GtRecurrent &p)
{
  for (GT_LOOP (at, p.rows * p.hidden))
    {
      const C x = gt_get<C, T> (p.gates, at) + gt_get<C, T> (p.products, at);

      put_state<T> (p, at, x < 0 ? (C) 0 : x); /* NaN stays */
    }
}

template <typename T, typename C>
GT_DEVICE void
recurrent_lstm (const GtRecurrent &p)
{
  const int64_t n = p.hidden;

  for (GT_LOOP (at, p.rows * n))
    {
      int64_t i, row = gt_split (at, n, &i), g = row * 4 * n + i;
      const C in = gate (gt_get<C, T> (p.gates, g) + gt_get<C, T> (p.products, g));
      const C keep = gate (gt_get<C, T> (p.gates, g + n) + gt_get<C, T> (p.products, g + n));
      const C value =
          tanh (gt_get<C, T> (p.gates, g + 2 * n) + gt_get<C, T> (p.products, g + 2 * n));
      const C out = gate (gt_get<C, T> (p.gates, g + 3 * n) + gt_get<C, T> (p.products, g + 3 * n));
      const C next = keep * gt_get<C, T> (p.c, at) + in * value;

      gt_put<T> (p.c, at, next);
      put_state<T> (p, at, (C) (out * tanh (next)));
      if (p.saved != NULL)
        {
          const int64_t s = row * 5 * n + i;

          gt_put<T> (p.saved, s, in);
          gt_put<T> (p.saved, s + n, keep);
          gt_put<T> (p.saved, s + 2 * n, value);
          gt_put<T> (p.saved, s + 3 * n, out);
          gt_put<T> (p.saved, s + 4 * n, next);
        }
    }
}

template <typename T, typename C>
GT_DEVICE void
recurrent_gru (const GtRecurrent &p)
{
  const int64_t n = p.hidden;

  for (GT_LOOP (at, p.rows * n))
    {
      int64_t i, row = gt_split (at, n, &i), g = row * 3 * n + i;
      const C reset = gate (gt_get<C, T> (p.gates, g) + gt_get<C, T> (p.products, g));
      const C keep = gate (gt_get<C, T> (p.gates, g + n) + gt_get<C, T> (p.products, g + n));
      const C product = gt_get<C, T> (p.products, g + 2 * n);
      const C value = tanh (gt_get<C, T> (p.gates, g + 2 * n) + reset * product);

      put_state<T> (p, at, (C) (value + keep * (gt_get<C, T> (p.h, at) - value)));
      if (p.saved != NULL)
        {
          const int64_t s = row * 4 * n + i;

          gt_put<T> (p.saved, s, reset);
          gt_put<T> (p.saved, s + n, keep);
          gt_put<T> (p.saved, s + 2 * n, value);
          gt_put<T> (p.saved, s + 3 * n, product);
        }
    }
}

/* --- gradients --- */

template <typename T, typename C>
GT_DEVICE C
upper_of (const GtRecurrentGrad &p, int64_t at)
{
  return gt_get<C, T> (p.h, at) + (p.more != NULL ? gt_get<C, T> (p.more, at) : (C) 0);
}

template <typename T, typename C>
GT_DEVICE C
former_of (const GtRecurrentGrad &p, int64_t row, int64_t i)
{
  return row < p.n_known ? gt_get<C, T> (p.known, row * p.known_stride + i)
                         : gt_get<C, T> (p.first, row * p.hidden + i);
}

template <typename T, typename C>
GT_DEVICE void
recurrent_tanh_grad (const GtRecurrentGrad &p)
{
  for (GT_LOOP (at, p.rows * p.hidden))
    {
      const C y = gt_get<C, T> (p.y, at);

      gt_put<T> (p.grad, at, (C) (upper_of<T, C> (p, at) * (1 - y * y)));
    }
}

template <typename T, typename C>
GT_DEVICE void
recurrent_relu_grad (const GtRecurrentGrad &p)
{
  for (GT_LOOP (at, p.rows * p.hidden))
    gt_put<T> (p.grad, at, gt_get<C, T> (p.y, at) <= 0 ? (C) 0 : upper_of<T, C> (p, at));
}

template <typename T, typename C>
GT_DEVICE void
recurrent_lstm_grad (const GtRecurrentGrad &p)
{
  const int64_t n = p.hidden;

  for (GT_LOOP (at, p.rows * n))
    {
      int64_t i, row = gt_split (at, n, &i), s = row * 5 * n + i, g = row * 4 * n + i;
      const C in = gt_get<C, T> (p.saved, s), keep = gt_get<C, T> (p.saved, s + n);
      const C value = gt_get<C, T> (p.saved, s + 2 * n), out = gt_get<C, T> (p.saved, s + 3 * n);
      const C u = upper_of<T, C> (p, at), t = tanh (gt_get<C, T> (p.saved, s + 4 * n));
      const C d = gt_get<C, T> (p.c, at) + u * out * (1 - t * t);

      gt_put<T> (p.grad, g, (C) (d * value * in * (1 - in)));
      gt_put<T> (p.grad, g + n, (C) (d * former_of<T, C> (p, row, i) * keep * (1 - keep)));
      gt_put<T> (p.grad, g + 2 * n, (C) (d * in * (1 - value * value)));
      gt_put<T> (p.grad, g + 3 * n, (C) (u * t * out * (1 - out)));
      gt_put<T> (p.c, at, (C) (d * keep));
    }
}

template <typename T, typename C>
GT_DEVICE void
recurrent_gru_grad (const GtRecurrentGrad &p)
{
  const int64_t n = p.hidden;

  for (GT_LOOP (at, p.rows * n))
    {
      int64_t i, row = gt_split (at, n, &i), s = row * 4 * n + i, g = row * 3 * n + i;
      const C reset = gt_get<C, T> (p.saved, s), keep = gt_get<C, T> (p.saved, s + n);
      const C value = gt_get<C, T> (p.saved, s + 2 * n),
              product = gt_get<C, T> (p.saved, s + 3 * n);
      const C u = upper_of<T, C> (p, at);
      const C of_value = u * (1 - keep) * (1 - value * value);
      const C of_keep = u * (former_of<T, C> (p, row, i) - value) * keep * (1 - keep);
      const C of_reset = of_value * product * reset * (1 - reset);

      gt_put<T> (p.grad, g, of_reset);
      gt_put<T> (p.inner, g, of_reset);
      gt_put<T> (p.grad, g + n, of_keep);
      gt_put<T> (p.inner, g + n, of_keep);
      gt_put<T> (p.grad, g + 2 * n, of_value);
      gt_put<T> (p.inner, g + 2 * n, (C) (of_value * reset));
      gt_put<T> (p.h, at, (C) (u * keep));
    }
}

#define EACH(dtype, T, C)                                                               \
  GT_KERNEL (gt_recurrent_tanh_##dtype, GtRecurrent, 256) { recurrent_tanh<T, C> (p); } \
  GT_KERNEL (gt_recurrent_relu_##dtype, GtRecurrent, 256) { recurrent_relu<T, C> (p); } \
  GT_KERNEL (gt_recurrent_lstm_##dtype, GtRecurrent, 256) { recurrent_lstm<T, C> (p); } \
  GT_KERNEL (gt_recurrent_gru_##dtype, GtRecurrent, 256) { recurrent_gru<T, C> (p); }   \
  GT_KERNEL (gt_recurrent_tanh_grad_##dtype, GtRecurrentGrad, 256)                      \
  {                                                                                     \
    recurrent_tanh_grad<T, C> (p);                                                      \
  }                                                                                     \
  GT_KERNEL (gt_recurrent_relu_grad_##dtype, GtRecurrentGrad, 256)                      \
  {                                                                                     \
    recurrent_relu_grad<T, C> (p);                                                      \
  }                                                                                     \
  GT_KERNEL (gt_recurrent_lstm_grad_##dtype, GtRecurrentGrad, 256)                      \
  {                                                                                     \
    recurrent_lstm_grad<T, C> (p);                                                      \
  }                                                                                     \
  GT_KERNEL (gt_recurrent_gru_grad_##dtype, GtRecurrentGrad, 256) { recurrent_gru_grad<T, C> (p); }
GT_EACH_FLOAT (EACH)
