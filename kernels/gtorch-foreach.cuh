/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of many tensors in one launch: changes in place, and norms. */

#pragma once

#include "gtorch-steps.cuh"

/* --- changes in place --- */

/* Op::element () changes one array. */
template <typename T, typename Op, typename Steps>
GT_DEVICE void
change_each (Op op, const Steps &p)
{
  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);

      op.at[0] = (T *) s.data[0];
      each_element<T> (op, s, block);
      op.end (p);
    }
}

template <typename T, typename C> struct gt_unscale
{
  static constexpr int N = 1, N_WRITTEN = 1;
  T *at[N];
  C factor;
  bool is_finite;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    const C y = gt_convert<C>::from (*x[0]);

    is_finite = is_finite && isfinite (y);
    *x[0] = gt_convert<T>::from (y * factor);
  }

  template <typename Steps>
  __device__ __forceinline__ void
  end (const Steps &p) const
  {
    if (!is_finite)
      *p.found = 1;
  }
};

/* Multiplies gradients by the inverse of the scale p.cell, which is rounded to float32 once. */
template <typename T, typename C, typename Steps>
GT_DEVICE void
amp_unscale (const Steps &p)
{
  const float factor = (float) (1 / (double) *(const float *) p.cell);

  change_each<T> (gt_unscale<T, C>{ {}, (C) factor, true }, p);
}

template <typename T, typename C> struct gt_mul_each
{
  static constexpr int N = 1, N_WRITTEN = 1;
  T *at[N];
  C factor;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    *x[0] = gt_convert<T>::from (gt_convert<C>::from (*x[0]) * factor);
  }

  template <typename Steps>
  __device__ __forceinline__ void
  end (const Steps &p) const
  {
  }
};

/* p.first tells whether the factor p.cell is float64. */
template <typename T, typename C, typename Steps>
GT_DEVICE void
foreach_mul (const Steps &p)
{
  const C factor = p.first ? (C) * (const double *) p.cell : (C) * (const float *) p.cell;

  change_each<T> (gt_mul_each<T, C>{ {}, factor }, p);
}

template <typename T, typename C> struct gt_clamp_each
{
  static constexpr int N = 1, N_WRITTEN = 1;
  T *at[N];
  C limit;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    const C y = gt_convert<C>::from (*x[0]);

    *x[0] = gt_convert<T>::from (y < -limit ? -limit : y > limit ? limit : y);
  }

  template <typename Steps>
  __device__ __forceinline__ void
  end (const Steps &p) const
  {
  }
};

template <typename T, typename C, typename Steps>
GT_DEVICE void
foreach_clamp (const Steps &p)
{
  change_each<T> (gt_clamp_each<T, C>{ {}, (C) p.d[0] }, p);
}

/* --- norms --- */

enum
{
  GT_NORM_COUNT,
  GT_NORM_SUM,
  GT_NORM_SQUARES,
  GT_NORM_GREATEST,
  GT_NORM_LEAST,
  GT_NORM_POWERS,
};

template <int KIND> struct gt_norm_join
{
  template <typename C>
  __device__ __forceinline__ C
  operator() (C a, C b) const
  {
    if (KIND == GT_NORM_GREATEST)
      return b > a || b != b ? b : a;
    if (KIND == GT_NORM_LEAST)
      return b < a || b != b ? b : a;
    return a + b;
  }
};

template <typename T, typename C, int KIND> struct gt_norm_part
{
  static constexpr int N = 1, N_WRITTEN = 0;
  T *at[N];
  C acc, ord;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    const C y = fabs (gt_convert<C>::from (*x[0]));

    if (KIND == GT_NORM_COUNT)
      acc += y != 0;
    else if (KIND == GT_NORM_SQUARES)
      acc += y * y;
    else if (KIND == GT_NORM_POWERS)
      acc += pow (y, ord);
    else
      acc = gt_norm_join<KIND> () (acc, y);
  }
};

/* Writes the result of each block to p.cell. */
template <typename T, typename C, int KIND, typename Steps>
GT_DEVICE void
norm_parts_of (const Steps &p)
{
  __shared__ C shared[32];

  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);
      gt_norm_part<T, C, KIND> op = { { (T *) s.data[0] },
                                      KIND == GT_NORM_LEAST ? (C) INFINITY : (C) 0,
                                      (C) p.d[0] };

      each_element<T> (op, s, block);
      op.acc = gt_row_reduce (op.acc, gt_norm_join<KIND> (), shared);
      if (threadIdx.x == 0)
        ((double *) p.cell)[block] = op.acc;
    }
}

/* Joins the results of the blocks of each tensor. */
template <int KIND, typename Steps>
GT_DEVICE void
norm_join_of (const Steps &p)
{
  __shared__ double shared[32];
  const double *parts = (const double *) p.cell;

  for (uint32_t i = blockIdx.x; i < p.n; i += gridDim.x)
    {
      const GtStep &s = p.steps[i];
      const uint32_t end = i + 1 < p.n ? p.steps[i + 1].block : p.blocks;
      double acc = KIND == GT_NORM_LEAST && end > s.block ? INFINITY : 0;

      for (uint32_t j = s.block + threadIdx.x; j < end; j += blockDim.x)
        acc = gt_norm_join<KIND> () (acc, parts[j]);
      acc = gt_row_reduce (acc, gt_norm_join<KIND> (), shared);
      if (threadIdx.x == 0)
        *s.count = KIND == GT_NORM_SQUARES  ? sqrt (acc)
                   : KIND == GT_NORM_POWERS ? pow (acc, 1 / p.d[0])
                                            : acc;
    }
}

/* Calls F for the degree p.d[0]. */
#define GT_EACH_DEGREE(F)   \
  if (p.d[0] == 2)          \
    F (GT_NORM_SQUARES);    \
  else if (p.d[0] == 1)     \
    F (GT_NORM_SUM);        \
  else if (p.d[0] == 0)     \
    F (GT_NORM_COUNT);      \
  else if (!isinf (p.d[0])) \
    F (GT_NORM_POWERS);     \
  else if (p.d[0] > 0)      \
    F (GT_NORM_GREATEST);   \
  else                      \
    F (GT_NORM_LEAST)

template <typename T, typename C, typename Steps>
GT_DEVICE void
norm_parts (const Steps &p)
{
#define PARTS(kind) norm_parts_of<T, C, kind> (p)
  GT_EACH_DEGREE (PARTS);
#undef PARTS
}

template <typename Steps>
GT_DEVICE void
norm_join (const Steps &p)
{
#define JOIN(kind) norm_join_of<kind> (p)
  GT_EACH_DEGREE (JOIN);
#undef JOIN
}
