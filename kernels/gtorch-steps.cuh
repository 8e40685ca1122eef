/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The loop of kernels that process many tensors in one launch: each block processes GT_STEP_BYTES of one
 * of them. */

#pragma once

#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

/* Returns the tensor of the block: the last one whose first block is not after it. Tensors without elements
 * have no blocks. */
template <typename Steps>
GT_DEVICE const GtStep &
step_of (const Steps &p, uint32_t block)
{
  uint32_t low = 0, high = p.n;

  while (high - low > 1)
    {
      const uint32_t middle = (low + high) / 2;

      if (p.steps[middle].block <= block)
        low = middle;
      else
        high = middle;
    }
  return p.steps[low];
}

/* Calls op.element () for the elements from begin to end, which are loaded and stored in vectors of V. Op
 * has N arrays of T, at[0] to at[N - 1], of which it changes the first N_WRITTEN; element () gets pointers
 * to the elements. */
template <typename T, int V, typename Op>
GT_DEVICE void
each_vector (Op &op, int64_t begin, int64_t end)
{
  typedef gt_vector<T, V> Vector;

  for (int64_t i = begin / V + threadIdx.x; i < end / V; i += GT_STEP_THREADS)
    {
      Vector x[Op::N];

#pragma unroll
      for (int k = 0; k < Op::N; k++)
        if (op.at[k] != NULL)
          x[k] = ((const Vector *) op.at[k])[i];
#pragma unroll
      for (int v = 0; v < V; v++)
        {
          T *element[Op::N];

#pragma unroll
          for (int k = 0; k < Op::N; k++)
            element[k] = &x[k].at[v];
          op.element (element);
        }
#pragma unroll
      for (int k = 0; k < Op::N_WRITTEN; k++)
        if (op.at[k] != NULL)
          ((Vector *) op.at[k])[i] = x[k];
    }
}

template <typename T, typename Op>
GT_DEVICE void
each_element (Op &op, const GtStep &s, uint32_t block)
{
  const int V = 16 / sizeof (T);
  const int64_t size = GT_STEP_BYTES / sizeof (T);
  const int64_t begin = (block - s.block) * size;
  const int64_t end = min (begin + size, (int64_t) s.n), whole = s.is_aligned ? end / V * V : begin;

  each_vector<T, V> (op, begin, whole);
  each_vector<T, 1> (op, whole, end);
}

/* Increments the parameters' counts of steps, and computes what else the row keeps for each of them; launched
 * after the kernels of the steps, which read both. `keep` is gt_keep_numbers () of the rows. */
template <typename Steps, typename Keep>
GT_DEVICE void
count_steps (const Steps &p, Keep keep)
{
  const uint32_t i = blockIdx.x * GT_STEP_THREADS + threadIdx.x;

  if (i >= p.n || (p.found != NULL && *p.found != 0))
    return;
  keep (p.d, p.row, p.steps[i], p.cell != NULL ? *(const double *) p.cell : p.d[0],
        *p.steps[i].count + 1);
  *p.steps[i].count += 1;
}

/* Performs the step of an optimizer. Op is generated from a row of steps.toml; its at[] are the parameter,
 * the states and the gradient. Each block computes the values that all elements share, in float64: the
 * learning rate and the count may be in memory, which a captured graph reads at each replay. Powers of the
 * count are slow, so one warp computes each of them. The count, and what else a row keeps for a parameter,
 * are still those of the step before. Steps is GtSteps or GtManySteps. */
template <typename T, typename Op, typename Steps>
GT_DEVICE void
run_steps (const Steps &p)
{
  __shared__ double powers[Op::N_POWERS > 0 ? Op::N_POWERS : 1];

  if (p.found != NULL && *p.found != 0)
    return;
  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);
      const double lr = p.cell != NULL ? *(const double *) p.cell : p.d[0];
      const double t = s.count != NULL ? *s.count + 1 : 0;
      Op op;

#pragma unroll
      for (int k = 0; k < Op::N; k++)
        op.at[k] = (T *) s.data[k];
      if (Op::N_POWERS > 0)
        {
          __syncthreads ();
          if (threadIdx.x % 32 == 0 && (int) threadIdx.x / 32 < Op::N_POWERS)
            powers[threadIdx.x / 32] = pow (Op::base (p.d, threadIdx.x / 32), t);
          __syncthreads ();
        }
      op.prepare (p.d, lr, t, s.count != NULL ? t == 1 : p.first != 0, powers,
                  (const double *const *) (s.data + Op::N));
      each_element<T> (op, s, block);
    }
}
