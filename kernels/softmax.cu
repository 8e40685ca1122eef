/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* softmax and log_softmax, and their gradients, of [outer, n, inner]. */

#include "gtorch-rows.cuh"
#include "gtorch-softmax-params.h"

/* A row of 16-bit floats, which are kept unconverted in registers, so that more rows are in flight. */
template <typename T, int K> struct gt_narrow_row
{
  uint4 words[K];

  __device__ __forceinline__ void
  load (const void *from, int n_vectors)
  {
    const T least[2] = { gt_convert<T>::from (-INFINITY), gt_convert<T>::from (-INFINITY) };
    uint32_t fill;

    memcpy (&fill, least, 4);
#pragma unroll
    for (int k = 0; k < K; k++)
      words[k] = threadIdx.x + k * blockDim.x < n_vectors
                     ? ((const uint4 *) from)[threadIdx.x + k * blockDim.x]
                     : make_uint4 (fill, fill, fill, fill);
  }

  /* Converts a vector on each call, so that the result need not be kept in registers. */
  __device__ __forceinline__ void
  get (int k, float x[8])
  {
    gt_vector<T, 8> v;

    asm volatile("" : "+r"(words[k].x), "+r"(words[k].y), "+r"(words[k].z), "+r"(words[k].w));
    memcpy (&v, &words[k], 16);
#pragma unroll
    for (int i = 0; i < 8; i++)
      x[i] = gt_convert<float>::from (v.at[i]);
  }
};

template <typename T, int K>
static __device__ __forceinline__ void
softmax_narrow (const GtSoftmax &p)
{
  __shared__ float shared[32];
  const int64_t row = (int64_t) blockIdx.x * blockDim.y + threadIdx.y, n = p.n;
  gt_vector<T, 8> *to = (gt_vector<T, 8> *) ((T *) p.y + row * n);
  const int n_vectors = (int) (n / 8);
  gt_narrow_row<T, K> r;
  float most = -INFINITY, sum = 0, x[8];

  if (row >= p.rows)
    return;
  r.load ((const T *) p.x + row * n, n_vectors);
#pragma unroll
  for (int k = 0; k < K; k++)
    {
      r.get (k, x);
#pragma unroll
      for (int i = 0; i < 8; i++)
        most = fmaxf (most, x[i]);
    }
  most = gt_row_reduce (most, gt_max_of (), shared);
#pragma unroll
  for (int k = 0; k < K; k++)
    {
      r.get (k, x);
#pragma unroll
      for (int i = 0; i < 8; i++)
        sum += gt_quick_exp (x[i] - most);
    }
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
  const float shift = most + log (sum), scale = 1 / sum;
#pragma unroll
  for (int k = 0; k < K; k++)
    {
      gt_vector<T, 8> y;

      r.get (k, x);
#pragma unroll
      for (int i = 0; i < 8; i++)
        y.at[i] =
            gt_convert<T>::from (p.is_log ? x[i] - shift : gt_quick_exp (x[i] - most) * scale);
      if (threadIdx.x + k * blockDim.x < n_vectors)
        to[threadIdx.x + k * blockDim.x] = y;
    }
}

template <typename T, typename C, int V, int K>
static __device__ __forceinline__ void
softmax (const GtSoftmax &p)
{
  if constexpr (V == 8)
    {
      softmax_narrow<T, K> (p);
      return;
    }
  __shared__ C shared[32];
  const int64_t row = (int64_t) blockIdx.x * blockDim.y + threadIdx.y, n = p.n;
  gt_row<T, C, V, K> r;
  C most = -INFINITY, sum = 0;

  if (row >= p.rows)
    return;
  r.load ((const T *) p.x + row * n, n, (C) -INFINITY);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    most = r.x[i] > most ? r.x[i] : most;
  most = gt_row_reduce (most, gt_max_of (), shared);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    {
      const C e = exp (r.x[i] - most);

      sum += e;
      r.x[i] = p.is_log ? r.x[i] : e;
    }
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
  if (p.is_log)
    {
      const C shift = most + log (sum);

#pragma unroll
      for (int i = 0; i < V * K; i++)
        r.x[i] -= shift;
    }
  else
    {
      const C scale = 1 / sum;

#pragma unroll
      for (int i = 0; i < V * K; i++)
        r.x[i] *= scale;
    }
  r.store ((T *) p.y + row * n, n);
}

template <typename T, typename C, int V, int K>
static __device__ __forceinline__ void
softmax_grad (const GtSoftmax &p)
{
  __shared__ C shared[32];
  const int64_t row = (int64_t) blockIdx.x * blockDim.y + threadIdx.y, n = p.n;
  gt_row<T, C, V, K> g, y;
  C sum = 0;

  if (row >= p.rows)
    return;
  g.load ((const T *) p.g + row * n, n, 0);
  y.load ((const T *) p.x + row * n, n, 0);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    sum += p.is_log ? g.x[i] : g.x[i] * y.x[i];
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    g.x[i] = p.is_log ? g.x[i] - exp (y.x[i]) * sum : y.x[i] * (g.x[i] - sum);
  g.store ((T *) p.y + row * n, n);
}

/* Computes the elements of a long row, whose greatest one and sum are known. */
template <typename T, typename C> struct gt_softmax_row
{
  T *y;
  C most, factor; /* the logarithm of the sum if is_log, else its inverse */
  bool is_log;

  template <int N>
  __device__ __forceinline__ void
  take (const T *v, int64_t at)
  {
    gt_vector<T, N> to;

#pragma unroll
    for (int i = 0; i < N; i++)
      {
        const C x = gt_convert<C>::from (v[i]) - most;

        to.at[i] = gt_convert<T>::from (is_log ? x - factor : gt_exp_for<T> (x) * factor);
      }
    *(gt_vector<T, N> *) (y + at) = to;
  }
};

/* Processes rows of any length, reading them twice. */
template <typename T, typename C>
static __device__ __forceinline__ void
softmax_long (const GtSoftmax &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n;
  const bool is_alike = (((uintptr_t) p.x ^ (uintptr_t) p.y) & 15) == 0;

  for (GT_ROW_LOOP (row, p.rows))
    {
      const T *const x = (const T *) p.x + row * n;
      gt_exp_sum<T, C> s = { (C) -INFINITY, 0 };

      gt_pass<2> (x, n, true, s);
      s.reduce (shared);
      gt_softmax_row<T, C> to = { (T *) p.y + row * n, s.most, p.is_log ? log (s.sum) : 1 / s.sum,
                                  p.is_log != 0 };
      gt_pass<2> (x, n, is_alike, to);
    }
}

/* The sum that the gradient of a row takes away, and the gradient. */
template <typename T, typename C> struct gt_softmax_dot
{
  const T *y;
  C sum;
  bool is_log;

  template <int N>
  __device__ __forceinline__ void
  take (const T *v, int64_t at)
  {
    gt_vector<T, N> w;

    if (!is_log)
      w = *(const gt_vector<T, N> *) (y + at);
#pragma unroll
    for (int i = 0; i < N; i++)
      sum += gt_convert<C>::from (v[i]) * (is_log ? (C) 1 : gt_convert<C>::from (w.at[i]));
  }
};

template <typename T, typename C> struct gt_softmax_slopes
{
  const T *y;
  T *to;
  C sum;
  bool is_log;

  template <int N>
  __device__ __forceinline__ void
  take (const T *v, int64_t at)
  {
    const gt_vector<T, N> w = *(const gt_vector<T, N> *) (y + at);
    gt_vector<T, N> out;

#pragma unroll
    for (int i = 0; i < N; i++)
      {
        const C g = gt_convert<C>::from (v[i]), x = gt_convert<C>::from (w.at[i]);

        out.at[i] = gt_convert<T>::from (is_log ? g - gt_exp_for<T> (x) * sum : x * (g - sum));
      }
    *(gt_vector<T, N> *) (to + at) = out;
  }
};

template <typename T, typename C>
static __device__ __forceinline__ void
softmax_grad_long (const GtSoftmax &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n;
  const bool is_alike =
      ((((uintptr_t) p.x ^ (uintptr_t) p.y) | ((uintptr_t) p.x ^ (uintptr_t) p.g)) & 15) == 0;

  for (GT_ROW_LOOP (row, p.rows))
    {
      const T *const g = (const T *) p.g + row * n, *const y = (const T *) p.x + row * n;
      gt_softmax_dot<T, C> dot = { y, 0, p.is_log != 0 };

      gt_pass<2> (g, n, is_alike, dot);
      gt_softmax_slopes<T, C> to = { y, (T *) p.y + row * n,
                                     gt_row_reduce (dot.sum, gt_sum_of (), shared), p.is_log != 0 };
      gt_pass<2> (g, n, is_alike, to);
    }
}

/* Processes columns (inner > 1): one thread for each row; adjacent threads read adjacent elements. */
template <typename T, typename C>
static __device__ __forceinline__ void
softmax_columns (const GtSoftmax &p)
{
  const int64_t n = p.n, inner = p.inner;

  for (GT_LOOP (row, p.rows))
    {
      int64_t in, outer = gt_split (row, inner, &in);
      const T *x = (const T *) p.x + outer * n * inner + in;
      T *y = (T *) p.y + outer * n * inner + in;
      C most = -INFINITY, sum = 0;

      for (int64_t i = 0; i < n; i++)
        {
          const C v = gt_convert<C>::from (x[i * inner]);

          most = v > most ? v : most;
        }
      for (int64_t i = 0; i < n; i++)
        sum += exp (gt_convert<C>::from (x[i * inner]) - most);
      for (int64_t i = 0; i < n; i++)
        {
          const C v = gt_convert<C>::from (x[i * inner]) - most;

          y[i * inner] = gt_convert<T>::from (p.is_log ? v - log (sum) : exp (v) / sum);
        }
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
softmax_grad_columns (const GtSoftmax &p)
{
  const int64_t n = p.n, inner = p.inner;

  for (GT_LOOP (row, p.rows))
    {
      int64_t in, outer = gt_split (row, inner, &in), base = outer * n * inner + in;
      C sum = 0;

      for (int64_t i = 0; i < n; i++)
        sum += gt_get<C, T> (p.g, base + i * inner)
               * (p.is_log ? (C) 1 : gt_get<C, T> (p.x, base + i * inner));
      for (int64_t i = 0; i < n; i++)
        {
          const C g = gt_get<C, T> (p.g, base + i * inner);
          const C y = gt_get<C, T> (p.x, base + i * inner);

          gt_put<T> (p.y, base + i * inner, p.is_log ? g - exp (y) * sum : y * (g - sum));
        }
    }
}

/* Computes the logarithm of the sum of exponentials, with a block for each row. */
template <typename T, typename C>
static __device__ __forceinline__ void
logsumexp (const GtSoftmax &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n;

  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x)
    {
      C most = -INFINITY, sum = 0;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C v = gt_get<C, T> (p.x, row * n + i);

          most = v > most ? v : most;
        }
      most = gt_row_reduce (most, gt_max_of (), shared);
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C v = gt_get<C, T> (p.x, row * n + i);

          /* if all elements are -infinity, v - most is NaN */
          sum += v == most ? (C) 1 : exp (v - most);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        gt_put<T> (p.y, row, isinf (most) && sum == sum ? most : most + log (sum));
    }
}

/* Rows of 16-bit floats need few registers: even with the longest, two blocks are resident at once. */
#define ROWS(dtype, T, C, form, V, K)                                        \
  GT_KERNEL (gt_softmax_##dtype##_##form, GtSoftmax, 1024, (V) == 8 ? 2 : 1) \
  {                                                                          \
    softmax<T, C, V, K> (p);                                                 \
  }                                                                          \
  GT_KERNEL (gt_softmax_grad_##dtype##_##form, GtSoftmax, 1024) { softmax_grad<T, C, V, K> (p); }
GT_EACH_ROW (ROWS)

#define OTHERS(dtype, T, C)                                                                    \
  GT_KERNEL (gt_softmax_##dtype##_long, GtSoftmax, 1024) { softmax_long<T, C> (p); }           \
  GT_KERNEL (gt_softmax_grad_##dtype##_long, GtSoftmax, 1024) { softmax_grad_long<T, C> (p); } \
  GT_KERNEL (gt_logsumexp_##dtype, GtSoftmax, 1024) { logsumexp<T, C> (p); }                   \
  GT_KERNEL (gt_softmax_##dtype##_columns, GtSoftmax, 1024) { softmax_columns<T, C> (p); }     \
  GT_KERNEL (gt_softmax_grad_##dtype##_columns, GtSoftmax, 1024) { softmax_grad_columns<T, C> (p); }
GT_EACH_FLOAT (OTHERS)
