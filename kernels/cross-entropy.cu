/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The cross entropy of class indices: each pass reads the scores once. */

#include "gtorch-cross-entropy-params.h"
#include "gtorch-rows.cuh"

/* Get and put an element of a floating-point dtype. */
GT_DEVICE double
get (const void *x, int64_t i, int64_t dtype)
{
  return dtype == GT_FLOAT32   ? gt_get<double, float> (x, i)
         : dtype == GT_FLOAT64 ? gt_get<double, double> (x, i)
         : dtype == GT_FLOAT16 ? gt_get<double, gt_f16> (x, i)
                               : gt_get<double, gt_bf16> (x, i);
}

GT_DEVICE void
put (void *x, int64_t i, int64_t dtype, double value)
{
  if (dtype == GT_FLOAT32)
    gt_put<float> (x, i, value);
  else if (dtype == GT_FLOAT64)
    gt_put<double> (x, i, value);
  else if (dtype == GT_FLOAT16)
    gt_put<gt_f16> (x, i, value);
  else
    gt_put<gt_bf16> (x, i, value);
}

/* What a loss is made of; with SMOOTH, also the sums of the weighted scores and of the weights. */
template <typename T, typename C, bool SMOOTH> struct gt_scores : gt_exp_sum<T, C>
{
  const double *weight;
  double all, total;

  __device__ __forceinline__
  gt_scores (const double *weight)
      : gt_exp_sum<T, C>{ (C) -INFINITY, 0 }, weight (weight), all (0), total (0)
  {
  }

  template <int N>
  __device__ __forceinline__ void
  take (const T *v, int64_t at)
  {
    gt_exp_sum<T, C>::template take<N> (v, at);
    if (SMOOTH)
#pragma unroll
      for (int i = 0; i < N; i++)
        {
          const double w = weight != NULL ? weight[at + i] : 1;

          all += w * gt_convert<double>::from (v[i]);
          total += w;
        }
  }
};

/* Returns whether the example counts. */
GT_DEVICE bool
gt_counts (int64_t target, int64_t classes, int64_t ignored)
{
  return target != ignored && target >= 0 && target < classes;
}

/* Writes the loss of a row whose scores were taken, by one thread. */
template <typename T, typename C, bool SMOOTH>
static __device__ __forceinline__ void
finish (const GtCrossEntropy &p, int64_t row, int64_t base, int64_t target,
        const gt_scores<T, C, SMOOTH> &s)
{
  double loss = 0, logsumexp = 0;

  if (gt_counts (target, p.classes, p.ignored))
    {
      const double most = s.most, rest = log ((double) s.sum);
      const double w = p.weight != NULL ? p.weight[target] : 1;

      /* the differences first: most + rest may have fewer digits */
      loss = (1 - p.smoothing) * w
             * ((most - (double) gt_get<C, T> (p.x, base + target * p.inner)) + rest);
      if (SMOOTH)
        loss += p.smoothing / p.classes * ((most * s.total - s.all) + s.total * rest);
      logsumexp = most + rest;
    }
  else if (target != p.ignored)
    gt_report (p.report, p.op, target, p.classes);
  put (p.loss, row, p.dtype, loss);
  p.logsumexp[row] = logsumexp;
}

template <typename T, typename C, bool SMOOTH>
static __device__ __forceinline__ void
entropy_rows (const GtCrossEntropy &p)
{
  __shared__ C shared[32];
  __shared__ double wide[32];
  const int64_t n = p.classes;

  for (GT_ROW_LOOP (row, p.rows))
    {
      gt_scores<T, C, SMOOTH> s (p.weight);
      const int64_t target = p.target[row];

      if (gt_counts (target, n, p.ignored))
        {
          gt_pass<SMOOTH ? 1 : 4> ((const T *) p.x + row * n, n, true, s);
          s.reduce (shared);
          if (SMOOTH)
            {
              s.all = gt_row_reduce (s.all, gt_sum_of (), wide);
              s.total = gt_row_reduce (s.total, gt_sum_of (), wide);
            }
        }
      if (threadIdx.x == 0)
        finish (p, row, row * n, target, s);
    }
}

template <typename T, typename C, bool SMOOTH>
static __device__ __forceinline__ void
entropy_columns (const GtCrossEntropy &p)
{
  for (GT_LOOP (row, p.rows))
    {
      gt_scores<T, C, SMOOTH> s (p.weight);
      int64_t in, outer = gt_split (row, p.inner, &in), base = outer * p.classes * p.inner + in;
      const int64_t target = p.target[row];

      if (gt_counts (target, p.classes, p.ignored))
#pragma unroll 4
        for (int64_t c = 0; c < p.classes; c++)
          s.template take<1> ((const T *) p.x + base + c * p.inner, c);
      finish (p, row, base, target, s);
    }
}

/* Adds up in one block. */
GT_KERNEL (gt_cross_entropy_total_f64, GtCrossEntropyTotal, 1024)
{
  __shared__ double shared[32];
  double sum = 0, total = 0, all = 0;

  for (int64_t i = threadIdx.x; i < p.rows; i += blockDim.x)
    {
      const int64_t target = p.target[i];

      if (p.is_single)
        sum += p.loss[i];
      if (gt_counts (target, p.classes, p.ignored))
        total += p.weight != NULL ? p.weight[target] : 1;
    }
  if (p.weight != NULL)
    for (int64_t i = threadIdx.x; i < p.classes; i += blockDim.x)
      all += p.weight[i];
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
  total = gt_row_reduce (total, gt_sum_of (), shared);
  all = gt_row_reduce (all, gt_sum_of (), shared);
  if (threadIdx.x != 0)
    return;
  p.totals[0] = total;
  p.totals[1] = p.weight != NULL ? all : (double) p.classes;
  if (p.is_single)
    put (p.result, 0, p.dtype, p.is_mean ? sum / total : sum);
}

/* What the gradient of a row is made of: scale * exp (x - logsumexp) - share * weight, and less by `own` at
 * the target. The logarithm is in two parts, since one C may be too short for large scores. */
template <typename T, typename C, bool SMOOTH> struct gt_slopes
{
  const double *weight;
  T *grad;
  int64_t stride, target;
  C shift, rest, scale, own;
  double share;

  __device__ __forceinline__
  gt_slopes (const GtCrossEntropyGrad &p, int64_t row, int64_t base, int64_t stride)
      : weight (p.weight), grad ((T *) p.grad + base), stride (stride), target (p.target[row]),
        shift (0), rest (0), scale (0), own (0), share (0)
  {
    if (!gt_counts (target, p.classes, p.ignored))
      return;
    const double upper =
        get (p.upper, p.is_single ? 0 : row, p.dtype) * (p.is_mean ? 1 / p.totals[0] : 1);
    const double w = (1 - p.smoothing) * (weight != NULL ? weight[target] : 1);
    const double all = p.logsumexp[row];

    shift = (C) all;
    rest = (C) (all - (double) shift);
    share = upper * p.smoothing / p.classes;
    scale = (C) (upper * w + share * p.totals[1]);
    own = (C) (upper * w);
  }

  __device__ __forceinline__ bool
  is_zero () const
  {
    return scale == 0 && own == 0 && share == 0;
  }

  template <int N>
  __device__ __forceinline__ void
  take (const T *v, int64_t at)
  {
    const int64_t to = target - at;
    gt_vector<T, N> y;

#pragma unroll
    for (int i = 0; i < N; i++)
      {
        C g = scale * gt_exp_for<T> ((gt_convert<C>::from (v[i]) - shift) - rest);

        if (SMOOTH)
          g -= (C) (share * (weight != NULL ? weight[at + i] : 1));
        y.at[i] = gt_convert<T>::from (to == i ? g - own : g);
      }
    *(gt_vector<T, N> *) (grad + at * stride) = y;
  }
};

template <typename T, typename C, bool SMOOTH>
static __device__ __forceinline__ void
entropy_grad_rows (const GtCrossEntropyGrad &p)
{
  const int64_t n = p.classes;
  const bool is_alike = (((uintptr_t) p.x ^ (uintptr_t) p.grad) & 15) == 0;

  for (GT_ROW_LOOP (row, p.rows))
    {
      gt_slopes<T, C, SMOOTH> s (p, row, row * n, 1);

      if (s.is_zero ())
        gt_clear_row (s.grad, n);
      else
        gt_pass<SMOOTH ? 1 : 2> ((const T *) p.x + row * n, n, is_alike, s);
    }
}

template <typename T, typename C, bool SMOOTH>
static __device__ __forceinline__ void
entropy_grad_columns (const GtCrossEntropyGrad &p)
{
  for (GT_LOOP (row, p.rows))
    {
      int64_t in, outer = gt_split (row, p.inner, &in), base = outer * p.classes * p.inner + in;
      gt_slopes<T, C, SMOOTH> s (p, row, base, p.inner);

      const bool is_zero = s.is_zero ();

#pragma unroll 4
      for (int64_t c = 0; c < p.classes; c++)
        if (is_zero)
          s.grad[c * p.inner] = gt_convert<T>::from (0.f);
        else
          s.template take<1> ((const T *) p.x + base + c * p.inner, c);
    }
}

#define EACH(dtype, T, C)                                                      \
  GT_KERNEL (gt_cross_entropy_##dtype##_rows, GtCrossEntropy, 512, 2)          \
  {                                                                            \
    if (p.smoothing > 0)                                                       \
      entropy_rows<T, C, true> (p);                                            \
    else                                                                       \
      entropy_rows<T, C, false> (p);                                           \
  }                                                                            \
  GT_KERNEL (gt_cross_entropy_##dtype##_columns, GtCrossEntropy, 256)          \
  {                                                                            \
    if (p.smoothing > 0)                                                       \
      entropy_columns<T, C, true> (p);                                         \
    else                                                                       \
      entropy_columns<T, C, false> (p);                                        \
  }                                                                            \
  GT_KERNEL (gt_cross_entropy_grad_##dtype##_rows, GtCrossEntropyGrad, 512, 2) \
  {                                                                            \
    if (p.smoothing > 0)                                                       \
      entropy_grad_rows<T, C, true> (p);                                       \
    else                                                                       \
      entropy_grad_rows<T, C, false> (p);                                      \
  }                                                                            \
  GT_KERNEL (gt_cross_entropy_grad_##dtype##_columns, GtCrossEntropyGrad, 256) \
  {                                                                            \
    if (p.smoothing > 0)                                                       \
      entropy_grad_columns<T, C, true> (p);                                    \
    else                                                                       \
      entropy_grad_columns<T, C, false> (p);                                   \
  }
GT_EACH_FLOAT (EACH)
