/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations that choose elements by truth values, or compute them from their position. */

#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"
#include "gtorch-shape-ops-params.h"

/* clang-format off */
#define EACH_ELEMENT(M)                                                          \
  M (f32, float) M (f64, double) M (f16, gt_f16) M (bf16, gt_bf16)               \
  M (i8, gint8) M (u8, guint8) M (i16, gint16) M (i32, gint32) M (i64, gint64)   \
  M (bool, gt_bool) M (c64, GTorchComplex64) M (c128, GTorchComplex128)
/* clang-format on */

/* --- where, whose operands are the output, the condition, a and b; first with any strides --- */
template <typename T>
static __device__ __forceinline__ void
where_strided (const GtStrided &p)
{
  int32_t at[GT_STEPS][4];
  bool chosen[GT_STEPS];
  T x[GT_STEPS];

  gt_walk (p, at);
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    chosen[u] = *((const guint8 *) p.base.data[1] + at[u][1]) != 0;
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    x[u] = *(const T *) (chosen[u] ? (const char *) p.base.data[2] + at[u][2]
                                   : (const char *) p.base.data[3] + at[u][3]);
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    if (gt_step_at (u) < (uint32_t) p.base.n)
      *(T *) ((char *) p.base.data[0] + at[u][0]) = x[u];
}

#define WHERE(size, T) \
  GT_KERNEL (gt_where_##size, GtStrided, GT_THREADS) { where_strided<T> (p); }
GT_EACH_SIZE (WHERE)

/* Computes where for contiguous operands; a and b may also have one element (bits 2 and 3 of p.numbers). As
 * many elements are processed at once as the widest load holds. */
template <typename T>
static __device__ __forceinline__ void
where_flat (const GtContiguous &p)
{
  constexpr int V = 16 / sizeof (T);
  typedef gt_vector<T, V> Vector;
  typedef gt_vector<guint8, V> Mask;
  const uint64_t i = (uint64_t) blockIdx.x * (GT_THREADS * GT_VECTORS) + threadIdx.x;
  const uint64_t n = p.n / V;
  const bool one_a = p.numbers >> 2 & 1, one_b = p.numbers >> 3 & 1;
  Vector a[GT_VECTORS], b[GT_VECTORS];
  Mask m[GT_VECTORS];

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    if (i + u * GT_THREADS < n)
      {
        m[u] = ((const Mask *) p.data[1])[i + u * GT_THREADS];
        if (!one_a)
          a[u] = ((const Vector *) p.data[2])[i + u * GT_THREADS];
        if (!one_b)
          b[u] = ((const Vector *) p.data[3])[i + u * GT_THREADS];
      }
  if (one_a || one_b)
    {
      const T x = *(const T *) p.data[2], y = *(const T *) p.data[3];

#pragma unroll
      for (int u = 0; u < GT_VECTORS; u++)
#pragma unroll
        for (int k = 0; k < V; k++)
          {
            a[u].at[k] = one_a ? x : a[u].at[k];
            b[u].at[k] = one_b ? y : b[u].at[k];
          }
    }
#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    if (i + u * GT_THREADS < n)
      {
#pragma unroll
        for (int k = 0; k < V; k++)
          a[u].at[k] = m[u].at[k] ? a[u].at[k] : b[u].at[k];
        ((Vector *) p.data[0])[i + u * GT_THREADS] = a[u];
      }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % V)
    {
      const uint64_t k = n * V + threadIdx.x;

      ((T *) p.data[0])[k] = ((const guint8 *) p.data[1])[k]
                                 ? ((const T *) p.data[2])[one_a ? 0 : k]
                                 : ((const T *) p.data[3])[one_b ? 0 : k];
    }
}

#define WHERE_FLAT(size, T) \
  GT_KERNEL (gt_where_flat_##size, GtContiguous, GT_THREADS) { where_flat<T> (p); }
WHERE_FLAT (1, uint8_t)
WHERE_FLAT (2, uint16_t)
WHERE_FLAT (4, uint32_t)
WHERE_FLAT (8, uint64_t)

/* Computes where for a contiguous output, and operands that are contiguous or constant along the output's
 * rows. Bits 2 and 3 of numbers tell that a or b is the output itself, so that elements chosen from it need
 * not be written. Vectors of which no element is chosen are not read. */
template <typename T>
static __device__ __forceinline__ void
where_rows (const GtRows &p)
{
  constexpr int V = 16 / sizeof (T);
  typedef gt_vector<T, V> Vector;
  typedef gt_vector<guint8, V> Mask;
  const uint32_t first = blockIdx.x * (GT_THREADS * GT_VECTORS) + threadIdx.x;

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    {
      const uint32_t i = first + u * GT_THREADS;
      const uint32_t row = gt_divide (i, p.inner), column = i - row * p.inner.divisor;
      bool any = false, all = true;
      Vector x[2];
      Mask m;

      if (i >= (uint32_t) p.base.n)
        return;
      if (p.column_strides[1])
        {
          m = ((const Mask *) p.base.data[1])[(uint64_t) row * p.row_strides[1] + column];
#pragma unroll
          for (int v = 0; v < V; v++)
            {
              any |= m.at[v] != 0;
              all &= m.at[v] != 0;
            }
        }
      else
        {
          const guint8 one = ((const guint8 *) p.base.data[1])[(uint64_t) row * p.row_strides[1]];

          any = all = one != 0;
#pragma unroll
          for (int v = 0; v < V; v++)
            m.at[v] = one;
        }
      if ((all && p.base.numbers & 4) || (!any && p.base.numbers & 8))
        continue;
#pragma unroll
      for (int k = 0; k < 2; k++)
        if (k == 0 ? any : !all)
          {
            if (p.column_strides[k + 2])
              x[k] = ((const Vector *)
                          p.base.data[k + 2])[(uint64_t) row * p.row_strides[k + 2] + column];
            else
              {
                const T one =
                    ((const T *) p.base.data[k + 2])[(uint64_t) row * p.row_strides[k + 2]];

#pragma unroll
                for (int v = 0; v < V; v++)
                  x[k].at[v] = one;
              }
          }
#pragma unroll
      for (int v = 0; v < V; v++)
        x[0].at[v] = m.at[v] ? x[0].at[v] : x[1].at[v];
      ((Vector *) p.base.data[0])[i] = x[0];
    }
}

#define WHERE_ROWS(size, T) \
  GT_KERNEL (gt_where_rows_##size, GtRows, GT_THREADS) { where_rows<T> (p); }
WHERE_ROWS (1, uint8_t)
WHERE_ROWS (2, uint16_t)
WHERE_ROWS (4, uint32_t)
WHERE_ROWS (8, uint64_t)

/* --- elements computed from their position --- */

template <typename T>
static __device__ __forceinline__ void
progression (const GtProgression &p)
{
  for (GT_LOOP (i, p.n))
    {
      if (p.is_integer)
        {
          ((T *) p.y)[i] = gt_convert<T>::from ((gint64) (p.first + i * p.by));
          continue;
        }
      const double x =
          p.has_last && i + 1 == p.n && i > 0 ? p.last : __dadd_rn (p.start, __dmul_rn (i, p.step));

      ((T *) p.y)[i] = gt_convert<T>::from (p.has_base ? pow (p.base, x) : x);
    }
}

template <typename T>
static __device__ __forceinline__ void
eye (const GtEye &p)
{
  for (GT_LOOP (i, p.n))
    ((T *) p.y)[i * (p.columns + 1)] = gt_convert<T>::from (1);
}

#define MADE(name, T)                                                            \
  GT_KERNEL (gt_progression_##name, GtProgression, 1024) { progression<T> (p); } \
  GT_KERNEL (gt_eye_##name, GtEye, 1024) { eye<T> (p); }
EACH_ELEMENT (MADE)

/* As many elements of a row at a time as the widest load holds; what is outside is not read. */
template <typename T>
static __device__ __forceinline__ void
triangle_wide (const GtTriangle &p)
{
  constexpr int V = 16 / sizeof (T);
  typedef gt_vector<T, V> Vector;
  const T zero = {};

  for (GT_LOOP (i, p.n / V))
    {
      int64_t part, row;
      gt_split (gt_split (i, p.columns / V, &part), p.rows, &row);
      /* how many elements of the part are below the diagonal, which the lower triangle includes */
      const int64_t edge = row + p.diagonal + p.is_lower - part * V;
      Vector v = {};

      if (p.is_lower ? edge > 0 : edge < V)
        v = ((const Vector *) p.x)[i];
#pragma unroll
      for (int k = 0; k < V; k++)
        if ((k < edge) != (bool) p.is_lower)
          v.at[k] = zero;
      ((Vector *) p.y)[i] = v;
    }
}

template <typename T>
static __device__ __forceinline__ void
triangle (const GtTriangle &p)
{
  const T zero = {};

  for (GT_LOOP (i, p.n))
    {
      int64_t column, row;
      gt_split (gt_split (i, p.columns, &column), p.rows, &row);
      const bool out = p.is_lower ? column - row > p.diagonal : column - row < p.diagonal;
      ((T *) p.y)[i] = out ? zero : ((const T *) p.x)[i];
    }
}

#define TRIANGLE(size, T)                               \
  GT_KERNEL (gt_triangle_##size, GtTriangle, 1024)      \
  {                                                     \
    p.is_wide ? triangle_wide<T> (p) : triangle<T> (p); \
  }
GT_EACH_SIZE (TRIANGLE)

GT_KERNEL (gt_one_hot_i64, GtOneHot, 1024)
{
  for (GT_LOOP (i, p.n))
    {
      const int64_t at = p.index[i];

      if (at < 0 || at >= p.classes)
        gt_report (p.report, p.op, at, p.classes);
      else
        p.y[i * p.classes + at] = 1;
    }
}

/* Returns the sum of min (i, most) over the integers i from 0 to m - 1. */
GT_DEVICE int64_t
up_to (int64_t m, int64_t most)
{
  if (m <= 0)
    return 0;
  return m <= most + 1 ? m * (m - 1) / 2 : most * (most + 1) / 2 + (m - most - 1) * most;
}

GT_KERNEL (gt_triangle_indices_i64, GtTriangleIndices, 1024)
{
  const int64_t columns = p.columns, start = p.diagonal + (p.is_lower ? 1 : 0);
  const int64_t before = up_to (start, columns);

  for (GT_LOOP (i, p.n))
    {
      int64_t row = 0, end = p.rows, count = 0;

      while (end - row > 1)
        {
          const int64_t middle = row + (end - row) / 2;
          const int64_t left = up_to (middle + start, columns) - before;
          const int64_t those = p.is_lower ? left : middle * columns - left;

          if (those <= i)
            {
              row = middle;
              count = those;
            }
          else
            end = middle;
        }
      p.y[i] = row;
      p.y[p.n + i] =
          i - count + (p.is_lower ? 0 : min (max (row + p.diagonal, (int64_t) 0), columns));
    }
}

/* --- nonzero --- */

/* Counts the true flags of each part. */
GT_KERNEL (gt_count_flags_bool, GtCountFlags, 1024)
{
  __shared__ int64_t shared[32];

  for (int64_t part = blockIdx.x; part * p.part < p.n; part += gridDim.x)
    {
      const int64_t end = min ((part + 1) * p.part, p.n);
      int64_t count = 0;

      for (int64_t i = part * p.part + threadIdx.x; i < end; i += blockDim.x)
        count += p.flags[i] != 0;
      count = gt_row_reduce (count, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        p.counts[part] = count;
      __syncthreads ();
    }
}

/* Computes exclusive sums and the total, in one block. */
GT_KERNEL (gt_sum_before_i64, GtSumBefore, 1024)
{
  __shared__ int64_t sums[1024];
  int64_t *x = p.x, base = 0;

  for (int64_t first = 0; first < p.n; first += blockDim.x)
    {
      const int64_t i = first + threadIdx.x, own = i < p.n ? x[i] : 0;

      sums[threadIdx.x] = own;
      __syncthreads ();
      for (int step = 1; step < blockDim.x; step *= 2)
        {
          const int64_t other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;

          __syncthreads ();
          sums[threadIdx.x] += other;
          __syncthreads ();
        }
      if (i < p.n)
        x[i] = base + sums[threadIdx.x] - own;
      base += sums[blockDim.x - 1];
      __syncthreads ();
    }
  if (threadIdx.x == 0)
    x[p.n] = base;
}

/* Lists the positions of true flags; each warp has a part. */
GT_KERNEL (gt_find_flags_bool, GtFindFlags, 1024)
{
  const int lane = threadIdx.x % 32;

  for (int64_t part = ((int64_t) blockIdx.x * blockDim.x + threadIdx.x) / 32; part * p.part < p.n;
       part += (int64_t) gridDim.x * blockDim.x / 32)
    {
      const int64_t end = min ((part + 1) * p.part, p.n);
      int64_t at = p.before[part];

      for (int64_t i = part * p.part; i < end; i += 32)
        {
          const bool mine = i + lane < end && p.flags[i + lane] != 0;
          const unsigned int all = __ballot_sync (~0u, mine);

          if (mine)
            {
              int64_t *to = p.y + (at + __popc (all & ((1u << lane) - 1))) * p.n_dims;
              int64_t rest = i + lane, k;

              for (int64_t d = p.n_dims - 1; d >= 0; d--)
                {
                  rest = gt_split (rest, p.shape[d], &k);
                  to[d] = k;
                }
            }
          at += __popc (all);
        }
    }
}

/* --- conjugates --- */
#define CONJ(name, T)                               \
  GT_KERNEL (gt_conj_##name, GtConj, 1024)          \
  {                                                 \
    for (GT_LOOP (i, p.n))                          \
      {                                             \
        const T x = ((const T *) p.x)[i];           \
        ((T *) p.y)[i] = T (x.real (), -x.imag ()); \
      }                                             \
  }
CONJ (c64, GTorchComplex64)
CONJ (c128, GTorchComplex128)

/* --- complex numbers from their parts, as many at a time as the widest load holds; if `polar`, from absolute
 * values and angles --- */
template <bool polar, typename T>
GT_DEVICE void
unite_two (T a, T b, T *y)
{
  T sine, cosine;

  if (polar)
    {
      if (sizeof (T) == 4)
        sincosf (b, (float *) &sine, (float *) &cosine);
      else
        sincos (b, (double *) &sine, (double *) &cosine);
    }
  y[0] = polar ? a * cosine : a;
  y[1] = polar ? a * sine : b;
}

template <bool polar, typename T>
static __device__ __forceinline__ void
unite (const GtUnite &p)
{
  constexpr int V = 16 / sizeof (T);
  typedef gt_vector<T, V> Vector;

  for (GT_LOOP (i, p.n / V))
    {
      const Vector re = ((const Vector *) p.re)[i], im = ((const Vector *) p.im)[i];
      Vector low, high;

#pragma unroll
      for (int k = 0; k < V / 2; k++)
        {
          unite_two<polar> (re.at[k], im.at[k], low.at + 2 * k);
          unite_two<polar> (re.at[V / 2 + k], im.at[V / 2 + k], high.at + 2 * k);
        }
      ((Vector *) p.y)[2 * i] = low;
      ((Vector *) p.y)[2 * i + 1] = high;
    }
  if (blockIdx.x == 0 && threadIdx.x < p.n % V)
    {
      const int64_t i = p.n / V * V + threadIdx.x;

      unite_two<polar> (((const T *) p.re)[i], ((const T *) p.im)[i], (T *) p.y + 2 * i);
    }
}

#define UNITE(name, T)                                                \
  GT_KERNEL (gt_unite_##name, GtUnite, 1024) { unite<false, T> (p); } \
  GT_KERNEL (gt_unite_##name##_polar, GtUnite, 1024) { unite<true, T> (p); }
UNITE (f32, float)
UNITE (f64, double)

/* --- cross products --- */
template <typename T, typename C>
static __device__ __forceinline__ void
cross (const GtCross &p)
{
  for (GT_LOOP (i, p.n))
    {
      int64_t column = 0, row = i;
      C a[3], b[3];

      if (p.inner > 1)
        row = gt_split (i, p.inner, &column);

      const int64_t at = 3 * row * p.inner + column;

#pragma unroll
      for (int k = 0; k < 3; k++)
        {
          a[k] = gt_get<C, T> (p.a, at + k * p.inner);
          b[k] = gt_get<C, T> (p.b, at + k * p.inner);
        }
#pragma unroll
      for (int k = 0; k < 3; k++)
        gt_put<T> (p.y, at + k * p.inner,
                   a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3]);
    }
}

#define CROSS(name, T, C) \
  GT_KERNEL (gt_cross_##name, GtCross, 1024) { cross<T, C> (p); }
GT_EACH_FLOAT (CROSS)
GT_EACH_INTEGER (CROSS)
CROSS (c64, GTorchComplex64, GTorchComplex64)
CROSS (c128, GTorchComplex128, GTorchComplex128)
