/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The three kernel bodies of all element-wise operations. Op has the types C (compute type) and O (result
 * type), the number of inputs N, and run (inputs, attrs); M is the type in memory. */

#include "gtorch-walk.cuh"

template <typename M, int V> struct alignas (sizeof (M) * V) gt_vector { M at[V]; };

template <typename Op, int N = Op::N> struct gt_apply;
template <typename Op> struct gt_apply<Op, 1>
{
  GT_DEVICE typename Op::O
  run (const typename Op::C *x, const GtAttr *attrs)
  {
    return Op::run (x[0], attrs);
  }
};
template <typename Op> struct gt_apply<Op, 2>
{
  GT_DEVICE typename Op::O
  run (const typename Op::C *x, const GtAttr *attrs)
  {
    return Op::run (x[0], x[1], attrs);
  }
};
template <typename Op> struct gt_apply<Op, 3>
{
  GT_DEVICE typename Op::O
  run (const typename Op::C *x, const GtAttr *attrs)
  {
    return Op::run (x[0], x[1], x[2], attrs);
  }
};

template <typename T>
GT_DEVICE T
gt_number (const GtNumber &n)
{
  return *(const T *) &n;
}

/* Processes vectors that have 16 bytes in the widest operand. The offset of a block's first vector is added
 * to the pointers once, so that threads count in 32 bits. */
template <typename Op, typename M, typename S>
static __device__ __forceinline__ void
gt_contiguous (const GtContiguous &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / (sizeof (M) > sizeof (S) ? sizeof (M) : sizeof (S));
  constexpr uint32_t ALL = GT_THREADS * GT_VECTORS;
  const uint64_t n_vectors = p.n / V, begin = (uint64_t) blockIdx.x * ALL;
  const uint32_t n = begin + ALL <= n_vectors ? ALL
                     : begin < n_vectors      ? (uint32_t) (n_vectors - begin)
                                              : 0;
  gt_vector<S, V> *const to = (gt_vector<S, V> *) p.data[0] + begin;
  gt_vector<M, V> x[Op::N][GT_VECTORS];

#pragma unroll
  for (int k = 0; k < Op::N; k++)
    if (p.numbers & (2u << k))
      ;
    else
      {
        const gt_vector<M, V> *const from = (const gt_vector<M, V> *) p.data[k + 1] + begin;

#pragma unroll
        for (int u = 0; u < GT_VECTORS; u++)
          if (threadIdx.x + u * GT_THREADS < n)
            x[k][u] = from[threadIdx.x + u * GT_THREADS];
      }

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    {
      gt_vector<S, V> y;

      if (threadIdx.x + u * GT_THREADS >= n)
        break;
#pragma unroll
      for (int v = 0; v < V; v++)
        {
          C in[Op::N];

#pragma unroll
          for (int k = 0; k < Op::N; k++)
            in[k] = p.numbers & (2u << k) ? gt_number<C> (p.number[k])
                                          : gt_convert<C>::from (x[k][u].at[v]);
          y.at[v] = gt_convert<S>::from (gt_apply<Op>::run (in, p.attrs));
        }
      to[threadIdx.x + u * GT_THREADS] = y;
    }

  /* the remaining elements, which do not fill a vector */
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % V)
    {
      const uint64_t i = n_vectors * V + threadIdx.x;
      C in[Op::N];

#pragma unroll
      for (int k = 0; k < Op::N; k++)
        in[k] = p.numbers & (2u << k) ? gt_number<C> (p.number[k])
                                      : gt_convert<C>::from (((const M *) p.data[k + 1])[i]);
      ((S *) p.data[0])[i] = gt_convert<S>::from (gt_apply<Op>::run (in, p.attrs));
    }
}

template <typename Op, typename M, typename S>
static __device__ __forceinline__ void
gt_rows (const GtRows &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / (sizeof (M) > sizeof (S) ? sizeof (M) : sizeof (S));
  const uint32_t first = blockIdx.x * (GT_THREADS * GT_VECTORS) + threadIdx.x;
  gt_vector<M, V> x[Op::N][GT_VECTORS];

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    {
      const uint32_t i = first + u * GT_THREADS;
      const uint32_t row = gt_divide (i, p.inner), column = i - row * p.inner.divisor;

      if (i >= (uint32_t) p.base.n)
        break;
#pragma unroll
      for (int k = 0; k < Op::N; k++)
        {
          if (p.base.numbers & (2u << k))
            continue;
          if (p.column_strides[k + 1])
            x[k][u] = ((const gt_vector<M, V> *)
                           p.base.data[k + 1])[(uint64_t) row * p.row_strides[k + 1] + column];
          else
            {
              const M one = ((const M *) p.base.data[k + 1])[(uint64_t) row * p.row_strides[k + 1]];

#pragma unroll
              for (int v = 0; v < V; v++)
                x[k][u].at[v] = one;
            }
        }
    }
#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    {
      const uint32_t i = first + u * GT_THREADS;
      gt_vector<S, V> y;

      if (i >= (uint32_t) p.base.n)
        break;
#pragma unroll
      for (int v = 0; v < V; v++)
        {
          C in[Op::N];

#pragma unroll
          for (int k = 0; k < Op::N; k++)
            in[k] = p.base.numbers & (2u << k) ? gt_number<C> (p.base.number[k])
                                               : gt_convert<C>::from (x[k][u].at[v]);
          y.at[v] = gt_convert<S>::from (gt_apply<Op>::run (in, p.base.attrs));
        }
      ((gt_vector<S, V> *) p.base.data[0])[i] = y;
    }
}

/* The value of GTorchDType for elements of this type, as they are stored. */
template <typename T> struct gt_stored
{
  static constexpr int dtype = GT_NONE;
};
#define GT_STORED(T, value)             \
  template <> struct gt_stored<T>       \
  {                                     \
    static constexpr int dtype = value; \
  };
GT_STORED (guint8, GT_BOOL)
GT_STORED (float, GT_FLOAT32)
GT_STORED (double, GT_FLOAT64)
GT_STORED (gint32, GT_INT32)
GT_STORED (gint64, GT_INT64)
GT_STORED (GTorchComplex64, GT_COMPLEX64)
GT_STORED (GTorchComplex128, GT_COMPLEX128)

/* Processes operands of any layouts, all loads of a thread before its first result, so that they are under
 * way together. If no operand is converted, the accesses are those of the type itself. */
template <typename Op>
static __device__ __forceinline__ void
gt_strided (const GtStrided &p)
{
  typedef typename Op::C C;
  typedef typename Op::O O;
  bool plain = p.dtypes[0] == gt_stored<O>::dtype;
  int32_t offsets[GT_STEPS][Op::N + 1];
  C in[GT_STEPS][Op::N];

#pragma unroll
  for (int k = 0; k < Op::N; k++)
    plain = plain && (p.base.numbers & (2u << k) || p.dtypes[k + 1] == gt_stored<C>::dtype);
  gt_walk (p, offsets);
#pragma unroll
  for (int k = 0; k < Op::N; k++)
    {
      const char *const from = (const char *) p.base.data[k + 1];

      if (p.base.numbers & (2u << k))
#pragma unroll
        for (int u = 0; u < GT_STEPS; u++)
          in[u][k] = gt_number<C> (p.base.number[k]);
      else if (plain)
#pragma unroll
        for (int u = 0; u < GT_STEPS; u++)
          in[u][k] = *(const C *) (from + offsets[u][k + 1]);
      else
#pragma unroll
        for (int u = 0; u < GT_STEPS; u++)
          in[u][k] = gt_load<C> (from + offsets[u][k + 1], p.dtypes[k + 1]);
    }
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    {
      void *const at = (char *) p.base.data[0] + offsets[u][0];

      if (gt_step_at (u) >= (uint32_t) p.base.n)
        break;

      const O y = gt_apply<Op>::run (in[u], p.base.attrs);

      if (!plain)
        gt_store<O> (at, p.dtypes[0], y);
      else if (gt_stored<O>::dtype == GT_BOOL)
        *(gt_bool *) at = gt_convert<gt_bool>::from (y);
      else
        *(O *) at = y;
    }
}

/* Declares the kernels of an operation, whose Op is gt_op_<name>_<compute dtype>. */
#define GT_VECTOR_KERNELS(op, compute, memory, M, S)              \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)       \
      gt_##op##_##memory (const __grid_constant__ GtContiguous p) \
  {                                                               \
    gt_contiguous<gt_op_##op##_##compute, M, S> (p);              \
  }

#define GT_ROW_KERNELS(op, compute, memory, M, S)               \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)     \
      gt_##op##_##memory##_r (const __grid_constant__ GtRows p) \
  {                                                             \
    gt_rows<gt_op_##op##_##compute, M, S> (p);                  \
  }

#define GT_STRIDED_KERNEL(op, compute)                              \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)         \
      gt_##op##_##compute##_s (const __grid_constant__ GtStrided p) \
  {                                                                 \
    gt_strided<gt_op_##op##_##compute> (p);                         \
  }
