/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The negative log likelihood loss. */

#include "gtorch-nll-loss-params.h"
#include "gtorch-plain.cuh"

template <typename T, typename C>
GT_DEVICE double
nll_of (const GtNll &p, int64_t i, double *total)
{
  const int64_t target = p.target[i];
  int64_t in, outer = gt_split (i, p.inner, &in), base = outer * p.classes * p.inner + in;
  const double *weight = p.weight;
  double loss, w;

  if (target == p.ignored)
    return 0;
  if (target < 0 || target >= p.classes)
    {
      gt_report (p.report, p.op, target, p.classes);
      return 0;
    }
  w = weight != NULL ? weight[target] : 1;
  *total += w;
  loss = -(1 - p.smoothing) * w * gt_get<C, T> (p.x, base + target * p.inner);
  if (p.smoothing > 0)
    for (int64_t c = 0; c < p.classes; c++)
      loss -= p.smoothing / p.classes * (weight != NULL ? weight[c] : 1)
              * gt_get<C, T> (p.x, base + c * p.inner);
  return loss;
}

template <typename T, typename C>
static __device__ __forceinline__ void
nll_each (const GtNll &p)
{
  double total = 0;

  for (GT_LOOP (i, p.n))
    gt_put<T> (p.loss, i, nll_of<T, C> (p, i, &total));
}

/* Computes the sum or the weighted mean of all losses, in one block. */
template <typename T, typename C>
static __device__ __forceinline__ void
nll_all (const GtNll &p)
{
  __shared__ double shared[32];
  double total = 0, sum = 0;

  for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x)
    sum += nll_of<T, C> (p, i, &total);
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
  total = gt_row_reduce (total, gt_sum_of (), shared);
  if (threadIdx.x == 0)
    gt_put<T> (p.loss, 0, p.is_mean ? sum / total : sum);
}

/* Computes the total weight of the targets, by which the mean divides, in one block. */
GT_KERNEL (gt_nll_total_f64, GtNll, 1024)
{
  __shared__ double shared[32];
  const double *weight = p.weight;
  double total = 0;

  for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x)
    {
      const int64_t target = p.target[i];

      if (target == p.ignored)
        continue;
      if (target < 0 || target >= p.classes)
        gt_report (p.report, p.op, target, p.classes);
      else
        total += weight != NULL ? weight[target] : 1;
    }
  total = gt_row_reduce (total, gt_sum_of (), shared);
  if (threadIdx.x == 0)
    *(double *) p.loss = total;
}

/* Computes the gradient of x. */
template <typename T, typename C>
static __device__ __forceinline__ void
nll_grad (const GtNllGrad &p)
{
  const double *weight = p.weight;
  const double scale = p.total != NULL ? 1 / *p.total : 1;

  for (GT_LOOP (e, p.n * p.classes))
    {
      int64_t in, c, outer = gt_split (gt_split (e, p.inner, &in), p.classes, &c);
      const int64_t i = outer * p.inner + in, target = p.target[i];
      double value = 0;

      if (target != p.ignored)
        {
          const double g = -scale * (double) gt_get<C, T> (p.g, p.is_single ? 0 : i);
          const double w = weight != NULL ? weight[c] : 1;

          value = g * (p.smoothing / p.classes) * w;
          if (p.smoothing <= 0)
            value = 0;
          if (c == target)
            value += g * (1 - p.smoothing) * w;
        }
      gt_put<T> (p.grad, e, value);
    }
}

#define EACH(dtype, T, C)                                              \
  GT_KERNEL (gt_nll_each_##dtype, GtNll, 1024) { nll_each<T, C> (p); } \
  GT_KERNEL (gt_nll_all_##dtype, GtNll, 1024) { nll_all<T, C> (p); }   \
  GT_KERNEL (gt_nll_grad_##dtype, GtNllGrad, 1024) { nll_grad<T, C> (p); }
GT_EACH_FLOAT (EACH)
