/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers and the unscaling of gradients, over many tensors in one launch: each block works
 * on GT_STEP_BYTES of one of them. */

#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

#define GT_STEPS_KERNEL(name)                                    \
  extern "C" __global__ void __launch_bounds__ (GT_STEP_THREADS) \
      name (const __grid_constant__ GtSteps p)

/* The last whose blocks begin at or before this one: those without elements have none. */
GT_DEVICE const GtStep &
step_of (const GtSteps &p, uint32_t block)
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

/* Calls op for each element of what is the block's, with as many at a time as 16 bytes have if it may. Op has
 * N arrays of T, at[0] to at[N - 1], of which it changes the first N_WRITTEN; element () gets references. */
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

/* --- counts of steps, of which the corrections are made here: they may be in a captured graph --- */

GT_STEPS_KERNEL (gt_step_counts_f64)
{
  const uint32_t i = blockIdx.x * GT_STEP_THREADS + threadIdx.x;

  if (i < p.n && (p.found == NULL || *p.found == 0))
    *p.steps[i].count += 1;
}

/* --- SGD; d: lr, momentum, rest, decay, keep --- */

template <typename T, typename C> struct gt_sgd
{
  static constexpr int N = 3, N_WRITTEN = 2;
  T *at[N]; /* parameter, buffer, gradient */
  C lr, momentum, rest, decay, keep, sign;
  bool nesterov;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    const C y = gt_convert<C>::from (*x[0]);
    C g = sign * gt_convert<C>::from (*x[2]) + decay * y;

    if (at[1] != NULL)
      {
        const C b = (keep != 0 ? keep * gt_convert<C>::from (*x[1]) : (C) 0) + rest * g;

        *x[1] = gt_convert<T>::from (b);
        g = nesterov ? g + momentum * b : b;
      }
    *x[0] = gt_convert<T>::from (y - lr * g);
  }
};

template <typename T, typename C>
GT_DEVICE void
sgd_steps (const GtSteps &p)
{
  if (p.found != NULL && *p.found != 0)
    return;
  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);
      /* the first keeps nothing and takes all */
      const bool first = s.count != NULL && *s.count == 0;
      gt_sgd<T, C> op = { { (T *) s.param, (T *) s.first, (T *) s.grad } };

      op.lr = p.cell != NULL ? *(const double *) p.cell : p.d[0];
      op.momentum = p.d[1];
      op.rest = first ? 1 : p.d[2];
      op.decay = p.d[3];
      op.keep = first ? 0 : p.d[4];
      op.sign = p.maximize ? -1 : 1;
      op.nesterov = p.nesterov;
      each_element<T> (op, s, block);
    }
}

/* --- Adam; d: lr, beta1, beta2, eps, weight decay --- */

template <typename T, typename C> struct gt_adam
{
  static constexpr int N = 5, N_WRITTEN = 4;
  T *at[N]; /* parameter, mean, mean of squares, the greatest of these, gradient */
  C beta1, beta2, eps, rest1, rest2, decay, shrink, size, root, sign;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    const C y = shrink * gt_convert<C>::from (*x[0]);
    const C d = sign * gt_convert<C>::from (*x[4]) + decay * y;
    const C a = beta1 * gt_convert<C>::from (*x[1]) + rest1 * d;
    C b = beta2 * gt_convert<C>::from (*x[2]) + rest2 * d * d;

    *x[1] = gt_convert<T>::from (a);
    *x[2] = gt_convert<T>::from (b);
    if (at[3] != NULL)
      {
        const C before = gt_convert<C>::from (*x[3]);

        b = b > before ? b : before;
        *x[3] = gt_convert<T>::from (b);
      }
    *x[0] = gt_convert<T>::from (y - size * a / (sqrt (b) / root + eps));
  }
};

template <typename T, typename C>
GT_DEVICE void
adam_steps (const GtSteps &p)
{
  __shared__ double corrections[2];

  if (p.found != NULL && *p.found != 0)
    return;
  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);
      gt_adam<T, C> op = { { (T *) s.param, (T *) s.first, (T *) s.second, (T *) s.most,
                             (T *) s.grad } };
      const double lr = p.cell != NULL ? *(const double *) p.cell : p.d[0];

      /* two powers in float64 for the block, in two warps */
      __syncthreads ();
      if (threadIdx.x % 32 == 0 && threadIdx.x < 64)
        corrections[threadIdx.x / 32] = 1 - pow (p.d[1 + threadIdx.x / 32], *s.count);
      __syncthreads ();
      op.beta1 = p.d[1];
      op.beta2 = p.d[2];
      op.eps = p.d[3];
      op.rest1 = 1 - p.d[1];
      op.rest2 = 1 - p.d[2];
      op.decay = p.decoupled ? 0 : p.d[4];
      op.shrink = p.decoupled ? 1 - lr * p.d[4] : 1;
      op.size = lr / corrections[0];
      op.root = sqrt (corrections[1]);
      op.sign = p.maximize ? -1 : 1;
      each_element<T> (op, s, block);
    }
}

/* --- gradient scaler --- */

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
};

/* cell: the scale; the inverse is rounded to float32 once */
template <typename T, typename C>
GT_DEVICE void
amp_unscale (const GtSteps &p)
{
  const float factor = (float) (1 / (double) *(const float *) p.cell);

  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);
      gt_unscale<T, C> op = { { (T *) s.param }, (C) factor, true };

      each_element<T> (op, s, block);
      if (!op.is_finite)
        *p.found = 1;
    }
}

/* out: scale (float32), tracker (int32); in: found; d: growth, backoff; n[0]: interval */
GT_KERNEL (gt_amp_update_f32)
{
  float *scale = (float *) p.out[0];
  int32_t *tracker = (int32_t *) p.out[1];

  if (blockIdx.x != 0 || threadIdx.x != 0)
    return;
  if (*(const float *) p.in[0] != 0)
    {
      *scale = (float) (*scale * p.d[1]);
      *tracker = 0;
    }
  else if (*tracker + 1 == p.n[0])
    {
      const float more = (float) (*scale * p.d[0]);

      if (isfinite (more))
        *scale = more;
      *tracker = 0;
    }
  else
    *tracker += 1;
}

#define EACH(dtype, T, C)                                           \
  GT_STEPS_KERNEL (gt_sgd_steps_##dtype) { sgd_steps<T, C> (p); }   \
  GT_STEPS_KERNEL (gt_adam_steps_##dtype) { adam_steps<T, C> (p); } \
  GT_STEPS_KERNEL (gt_amp_unscale_##dtype) { amp_unscale<T, C> (p); }
GT_EACH_FLOAT (EACH)
