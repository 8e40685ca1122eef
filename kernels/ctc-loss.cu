/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Connectionist temporal classification: gtorch/ops/ctc-loss.c explains it. A block has an example and goes
 * from step to step; its threads have the states. */

#include "gtorch-ctc-loss-params.h"
#include "gtorch-plain.cuh"

/* An example: its labels, and how many steps and states it has. */
struct Example
{
  const int64_t *labels;
  int64_t steps, states;
};

GT_DEVICE Example
example_of (const GtCtc &p, int64_t b)
{
  return { p.targets + p.lengths[2 * p.n + b], p.lengths[b], 2 * p.lengths[p.n + b] + 1 };
}

/* Returns the class of a state; labels that are reported to be out of range count as blanks. */
GT_DEVICE int64_t
class_of (const GtCtc &p, const Example &example, int64_t s)
{
  const int64_t c = s % 2 == 0 ? p.blank : example.labels[s / 2];

  return c < 0 || c >= p.classes ? p.blank : c;
}

template <typename C>
GT_DEVICE C
log_sum (C a, C b, C c)
{
  const C most = max (max (a, b), c);

  return isinf (most) ? most : most + log (exp (a - most) + exp (b - most) + exp (c - most));
}

template <typename C>
static __device__ __forceinline__ void
ctc_alpha (const GtCtc &p)
{
  const C none = -INFINITY;

  for (int64_t b = blockIdx.x; b < p.n; b += gridDim.x)
    {
      const Example example = example_of (p, b);
      C *alpha = (C *) p.alpha + b * p.steps * p.states;

      for (int64_t i = threadIdx.x; i < example.states / 2; i += blockDim.x)
        if (example.labels[i] < 0 || example.labels[i] >= p.classes)
          gt_report (p.report, p.op, example.labels[i], p.classes);
      for (int64_t t = 0; t < p.steps; t++)
        {
          const C *x = (const C *) p.x + (t * p.n + b) * p.classes;
          const C *before = alpha + (t - 1) * p.states;

          for (int64_t s = threadIdx.x; s < p.states; s += blockDim.x)
            {
              C value = none;

              if (t < example.steps && s < example.states)
                {
                  const int64_t c = class_of (p, example, s);

                  if (t == 0)
                    value = s < 2 ? 0 : none;
                  else
                    value =
                        log_sum (before[s], s > 0 ? before[s - 1] : none,
                                 s > 1 && c != class_of (p, example, s - 2) ? before[s - 2] : none);
                  value += x[c];
                }
              alpha[t * p.states + s] = value;
            }
          __syncthreads ();
        }
      if (threadIdx.x == 0)
        {
          C sum = example.states == 1 ? 0 : none;

          if (example.steps > 0)
            {
              const C *last = alpha + (example.steps - 1) * p.states + example.states - 1;

              sum = log_sum (last[0], example.states > 1 ? last[-1] : none, none);
            }
          ((C *) p.loss)[b] = sum == 0 ? 0 : -sum;
        }
    }
}

/* Sets the gradient as if the steps had no path: that of the sum over the probabilities of the classes. */
template <typename C>
static __device__ __forceinline__ void
ctc_fill (const GtCtc &p)
{
  for (GT_LOOP (e, p.steps * p.n * p.classes))
    {
      int64_t c, b;
      const int64_t t = gt_split (gt_split (e, p.classes, &c), p.n, &b);
      const C g = ((const C *) p.upper)[b];
      C value = 0;

      if (t < p.lengths[b] && g != 0)
        value = isinf (((const C *) p.loss)[b]) ? (C) NAN : g * exp (((const C *) p.x)[e]);
      ((C *) p.grad)[e] = value;
    }
}

/* Links the places of each label, so that one thread can add up what belongs to one class. */
GT_DEVICE void
link_labels (const Example &example, int64_t *next)
{
  const int64_t n = example.states / 2;

  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    {
      int64_t first = 0, later = i + 1;

      while (first < i && example.labels[first] != example.labels[i])
        first++;
      while (later < n && example.labels[later] != example.labels[i])
        later++;
      next[i] = 2 * later + (first == i);
    }
}

/* Takes the probabilities of being in the states from the gradient. */
template <typename C>
static __device__ __forceinline__ void
ctc_grad (const GtCtc &p)
{
  __shared__ C shared[32];
  const C none = -INFINITY;

  for (int64_t b = blockIdx.x; b < p.n; b += gridDim.x)
    {
      const Example example = example_of (p, b);
      const int64_t n = example.states;
      const C g = ((const C *) p.upper)[b], loss = ((const C *) p.loss)[b];
      C *beta = (C *) p.beta + 2 * b * p.states, *shares = (C *) p.shares + b * p.states;
      int64_t *next = p.next + b * (p.states / 2);

      if (g == 0 || isinf (loss))
        continue;
      link_labels (example, next);
      for (int64_t t = example.steps - 1; t >= 0; t--)
        {
          const int64_t row = (t * p.n + b) * p.classes;
          const C *x = (const C *) p.x + row;
          const C *alpha = (const C *) p.alpha + (b * p.steps + t) * p.states;
          const C *later = beta + (t % 2 == 0 ? p.states : 0);
          C *now = beta + (t % 2 == 0 ? 0 : p.states), *grad = (C *) p.grad + row;
          C blanks = 0;

          for (int64_t s = threadIdx.x; s < n; s += blockDim.x)
            {
              const int64_t c = class_of (p, example, s);
              C value, both;

              if (t == example.steps - 1)
                value = s >= n - 2 ? 0 : none;
              else
                value =
                    log_sum (later[s], s + 1 < n ? later[s + 1] : none,
                             s + 2 < n && c != class_of (p, example, s + 2) ? later[s + 2] : none);
              now[s] = value += x[c];
              both = alpha[s] + value;
              value = both == none ? 0 : exp (both - x[c] + loss);
              if (c == p.blank)
                blanks += value;
              shares[s] = value;
            }
          __syncthreads ();
          blanks = gt_row_reduce (blanks, gt_sum_of (), shared);
          if (threadIdx.x == 0)
            grad[p.blank] -= g * blanks;
          for (int64_t i = threadIdx.x; i < n / 2; i += blockDim.x)
            {
              const int64_t c = class_of (p, example, 2 * i + 1);
              C sum = 0;

              if (next[i] % 2 == 0 || c == p.blank)
                continue;
              for (int64_t k = i; k < n / 2; k = next[k] / 2)
                sum += shares[2 * k + 1];
              grad[c] -= g * sum;
            }
          __syncthreads ();
        }
    }
}

#define EACH(dtype, C)                                                \
  GT_KERNEL (gt_ctc_alpha_##dtype, GtCtc, 1024) { ctc_alpha<C> (p); } \
  GT_KERNEL (gt_ctc_fill_##dtype, GtCtc, 1024) { ctc_fill<C> (p); }   \
  GT_KERNEL (gt_ctc_grad_##dtype, GtCtc, 1024) { ctc_grad<C> (p); }
EACH (f32, float)
EACH (f64, double)
