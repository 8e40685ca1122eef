/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The greatest element and its index: NaN counts as greatest, and of equal elements the first is taken. For
 * the least element, the bits are transformed to reverse the order (the sign of a float, all bits of an
 * integer). A thread keeps the greatest value and the vector that had it; the element is looked up at the
 * end. */

#include "gtorch-pointwise.cuh"

#define NONE  0xffffffffu
#define GROUP 4 /* number of vectors that a thread has in flight */

/* The type as which elements of type M are compared, and its lowest value. */
template <typename M> struct gt_order;
#define ORDER(M, C_, LOWEST, FLOATING)         \
  template <> struct gt_order<M>               \
  {                                            \
    typedef C_ C;                              \
    static constexpr bool floating = FLOATING; \
    static __device__ __forceinline__ C        \
    lowest ()                                  \
    {                                          \
      return LOWEST;                           \
    }                                          \
  };
ORDER (float, float, -INFINITY, true)
ORDER (double, double, -(double) INFINITY, true)
ORDER (gt_f16, float, -INFINITY, true)
ORDER (gt_bf16, float, -INFINITY, true)
ORDER (gint8, gint32, INT32_MIN, false)
ORDER (guint8, gint32, INT32_MIN, false)
ORDER (gint16, gint32, INT32_MIN, false)
ORDER (gint32, gint32, INT32_MIN, false)
ORDER (gint64, gint64, INT64_MIN, false)

GT_DEVICE float
greater (float a, float b)
{
  float c;

  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
GT_DEVICE double
greater (double a, double b)
{
  return a > b || a != a ? a : b;
}
GT_DEVICE gint32
greater (gint32 a, gint32 b)
{
  return max (a, b);
}
GT_DEVICE gint64
greater (gint64 a, gint64 b)
{
  return a > b ? a : b;
}

/* Returns whether a is greater than b, where NaN is greater than all numbers. */
template <typename C>
GT_DEVICE bool
beats (C a, C b)
{
  return !(a <= b) && b == b;
}

/* Returns an element, with its order reversed if p asks for it. */
template <typename M>
GT_DEVICE M
turned (M x, const GtExtreme &p)
{
  uint32_t words[2] = { 0, 0 };

  memcpy (words, &x, sizeof x);
  words[0] ^= p.flip[0];
  words[1] ^= p.flip[1];
  memcpy (&x, words, sizeof x);
  return x;
}

template <typename M, int V>
GT_DEVICE void
turn (gt_vector<M, V> *x, const GtExtreme &p)
{
  uint32_t *words = (uint32_t *) x;

  for (int w = 0; w < (int) sizeof *x / 4; w++)
    words[w] ^= p.flip[w % 2];
}

template <typename C> struct Best
{
  C value;
  uint32_t at; /* NONE if there is no element */
};

template <typename C>
GT_DEVICE void
take (Best<C> *best, C value, uint32_t at)
{
  const bool better = at != NONE
                      && (best->at == NONE || beats (value, best->value)
                          || (!beats (best->value, value) && at < best->at));

  best->value = better ? value : best->value;
  best->at = better ? at : best->at;
}

template <typename C>
GT_DEVICE Best<C>
of_lanes (Best<C> best, int width)
{
  for (int d = width / 2; d > 0; d /= 2)
    {
      const C value = __shfl_xor_sync (0xffffffffu, best.value, d);
      const uint32_t at = __shfl_xor_sync (0xffffffffu, best.at, d);

      take (&best, value, at);
    }
  return best;
}

/* Finds the extreme of n elements with `width` threads, of which this one is `lane`. The thread keeps the
 * greatest value and the first vector that had it, in which the element is looked up at the end. */
template <typename M>
GT_DEVICE Best<typename gt_order<M>::C>
of_row (const M *x, uint32_t n, uint32_t lane, uint32_t width, const GtExtreme &p)
{
  typedef typename gt_order<M>::C C;
  constexpr int V = 16 / sizeof (M);
  const uint32_t head = ((0 - (uintptr_t) x) & 15) / sizeof (M);
  const uint32_t first = head < n ? head : n;
  const uint32_t n_vectors = (n - first) / V;
  const gt_vector<M, V> *v = (const gt_vector<M, V> *) (x + first);
  Best<C> best = { gt_order<M>::lowest (), NONE };
  uint32_t i;

  for (i = lane; i < first; i += width)
    take (&best, gt_convert<C>::from (turned (x[i], p)), i);
  if (lane < n_vectors)
    {
      gt_vector<M, V> kept;
      C found = gt_order<M>::lowest ();
      uint32_t where = lane;
      bool none = true;

      for (uint32_t j = lane; j < n_vectors; j += GROUP * width)
        {
          gt_vector<M, V> in[GROUP];
          uint32_t from[GROUP];

#pragma unroll
          for (int u = 0; u < GROUP; u++)
            {
              /* beyond the end, the last vector again */
              from[u] = min (j + u * width, n_vectors - 1);
              in[u] = v[from[u]];
            }
#pragma unroll
          for (int u = 0; u < GROUP; u++)
            {
              C most;

              turn (&in[u], p);
#pragma unroll
              for (int k = 0; k < V; k++)
                {
                  const C y = gt_convert<C>::from (in[u].at[k]);

                  most = k == 0 ? y : greater (most, y);
                }
              if (none || beats (most, found))
                {
                  found = most;
                  where = from[u];
                  kept = in[u];
                  none = false;
                }
            }
        }
      i = 0;
#pragma unroll
      for (int k = V - 1; k >= 0; k--)
        {
          const C y = gt_convert<C>::from (kept.at[k]);

          if (y == found || (y != y && found != found))
            i = k;
        }
      take (&best, found, first + where * V + i);
    }
  for (i = first + n_vectors * V + lane; i < n; i += width)
    take (&best, gt_convert<C>::from (turned (x[i], p)), i);
  return best;
}

template <typename M>
GT_DEVICE void
write (const GtExtreme &p, uint64_t to, uint64_t from, uint64_t at)
{
  p.indices[to] = at;
  if (p.values != NULL)
    ((M *) p.values)[to] = ((const M *) p.src)[from];
}

template <typename M>
GT_DEVICE void
rows (const GtExtreme &p)
{
  typedef typename gt_order<M>::C C;
  __shared__ C values[8];
  __shared__ uint32_t at[8];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const M *x = (const M *) p.src;
  uint64_t row, begin;
  Best<C> best;

  if (p.n_splits == 0)
    {
      row = ((uint64_t) blockIdx.x * 256 + threadIdx.x) / p.width;
      best = of_row<M> (row < p.outer ? x + row * p.n : x, row < p.outer ? p.n : 0,
                        lane & (p.width - 1), p.width, p);
      best = of_lanes (best, p.width);
      if ((lane & (p.width - 1)) == 0 && row < p.outer)
        write<M> (p, row, row * p.n + best.at, best.at);
      return;
    }
  row = blockIdx.x / p.n_splits;
  begin = (blockIdx.x - row * p.n_splits) * p.part;
  best = of_row<M> (x + row * p.n + begin, p.part < p.n - begin ? p.part : p.n - begin, threadIdx.x,
                    256, p);
  best = of_lanes (best, 32);
  if (lane == 0)
    {
      values[warp] = best.value;
      at[warp] = best.at;
    }
  __syncthreads ();
  if (warp > 0)
    return;
  best.value = values[lane % 8];
  best.at = at[lane % 8];
  best = of_lanes (best, 8);
  if (lane > 0)
    return;
  if (p.n_splits == 1)
    write<M> (p, row, row * p.n + best.at, best.at);
  else
    {
      const uint64_t to = (blockIdx.x - row * p.n_splits) * p.outer + row;

      ((C *) p.partial)[to] = best.value;
      p.partial_at[to] = best.at;
    }
}

/* Reduces columns: `width` adjacent threads have V columns each; other threads of the block have other
 * rows. */
template <typename M>
GT_DEVICE void
columns (const GtExtreme &p)
{
  typedef typename gt_order<M>::C C;
  constexpr int V = sizeof (M) == 1 ? 8 : 16 / sizeof (M), U = sizeof (M) == 8 ? 8 : 4;
  __shared__ C values[256 * V];
  __shared__ uint32_t at[256 * V];
  const uint32_t across = threadIdx.x & (p.width - 1), down = threadIdx.x / p.width;
  const uint32_t height = 256 / p.width;
  const uint64_t tiles = (p.inner + p.width * V - 1) / (p.width * V);
  const uint64_t outer = blockIdx.x / tiles, column = (blockIdx.x - outer * tiles) * p.width * V;
  const uint64_t mine = column + across * V, begin = blockIdx.y * p.part;
  const uint32_t n = begin < p.n ? (uint32_t) (p.part < p.n - begin ? p.part : p.n - begin) : 0;
  const int filled = mine < p.inner ? (p.inner - mine < V ? (int) (p.inner - mine) : V) : 0;
  const M *x = (const M *) p.src + (outer * p.n + begin) * p.inner + mine;
  C best[V];
  uint32_t best_at[V];

#pragma unroll
  for (int k = 0; k < V; k++)
    {
      best[k] = gt_order<M>::lowest ();
      best_at[k] = down < n && k < filled ? down : NONE;
    }
  if (filled > 0)
    for (uint32_t i = down; i < n; i += U * height)
      {
        gt_vector<M, V> in[U];

#pragma unroll
        for (int u = 0; u < U; u++)
          if (i + u * height < n)
            {
              const M *from = x + (uint64_t) (i + u * height) * p.inner;

              if (p.vectors)
                in[u] = *(const gt_vector<M, V> *) from;
              else
#pragma unroll
                for (int k = 0; k < V; k++)
                  if (k < filled)
                    in[u].at[k] = from[k];
            }
#pragma unroll
        for (int u = 0; u < U; u++)
          if (i + u * height < n)
            {
              turn (&in[u], p);
#pragma unroll
              for (int k = 0; k < V; k++)
                {
                  const C y = gt_convert<C>::from (in[u].at[k]);
                  const bool better = beats (y, best[k]);

                  best[k] = better ? y : best[k];
                  best_at[k] = better ? i + u * height : best_at[k];
                }
            }
      }
#pragma unroll
  for (int k = 0; k < V; k++)
    {
      values[k * 256 + threadIdx.x] = best[k];
      at[k * 256 + threadIdx.x] = best_at[k];
    }
  __syncthreads ();
  for (uint32_t c = threadIdx.x; c < p.width * V && column + c < p.inner; c += 256)
    {
      const uint32_t first = c % V * 256 + c / V;
      const uint64_t to = outer * p.inner + column + c;
      Best<C> result = { gt_order<M>::lowest (), NONE };

      for (uint32_t d = 0; d < height; d++)
        take (&result, values[first + d * p.width], at[first + d * p.width]);
      if (p.n_splits == 1)
        write<M> (p, to, (outer * p.n + result.at) * p.inner + column + c, result.at);
      else
        {
          ((C *) p.partial)[blockIdx.y * p.outer * p.inner + to] = result.value;
          p.partial_at[blockIdx.y * p.outer * p.inner + to] = result.at;
        }
    }
}

/* Reduces columns with one thread for each result. */
template <typename M>
GT_DEVICE void
items (const GtExtreme &p)
{
  typedef typename gt_order<M>::C C;
  const uint64_t to = (uint64_t) blockIdx.x * 256 + threadIdx.x, outer = to / p.inner;
  const uint64_t first = outer * p.n * p.inner + (to - outer * p.inner);
  const M *x = (const M *) p.src + first;
  uint64_t at = 0;
  C best;

  if (to >= p.outer * p.inner)
    return;
  best = gt_convert<C>::from (turned (x[0], p));
#pragma unroll 4
  for (uint64_t i = 1; i < p.n; i++)
    {
      const C y = gt_convert<C>::from (turned (x[i * p.inner], p));
      const bool better = beats (y, best);

      best = better ? y : best;
      at = better ? i : at;
    }
  write<M> (p, to, first + at * p.inner, at);
}

/* Combines the extremes of the splits, which are outer * inner apart. A block has `width` results, and
 * several threads for each. */
template <typename M>
GT_DEVICE void
parts (const GtExtreme &p)
{
  typedef typename gt_order<M>::C C;
  __shared__ C values[256];
  __shared__ uint64_t at[256];
  const uint64_t n = p.outer * p.inner;
  const uint64_t to = (uint64_t) blockIdx.x * p.width + (threadIdx.x & (p.width - 1));
  const uint32_t height = 256 / p.width;
  const C *partial = (const C *) p.partial;
  C best = gt_order<M>::lowest ();
  uint64_t best_at = ~0ull;

  if (to < n)
#pragma unroll 4
    for (uint32_t k = threadIdx.x / p.width; k < p.n_splits; k += height)
      {
        const C y = partial[k * n + to];
        const uint64_t y_at = k * p.part + p.partial_at[k * n + to];
        const bool better = best_at == ~0ull || beats (y, best);

        best = better ? y : best;
        best_at = better ? y_at : best_at;
      }
  values[threadIdx.x] = best;
  at[threadIdx.x] = best_at;
  for (uint32_t d = 128; d >= p.width; d /= 2)
    {
      __syncthreads ();
      if (threadIdx.x < d)
        {
          const C y = values[threadIdx.x + d];
          const uint64_t y_at = at[threadIdx.x + d];

          if (y_at != ~0ull
              && (best_at == ~0ull || beats (y, best) || (!beats (best, y) && y_at < best_at)))
            {
              values[threadIdx.x] = best = y;
              at[threadIdx.x] = best_at = y_at;
            }
        }
    }
  if (threadIdx.x < p.width && to < n)
    {
      const uint64_t outer = to / p.inner;

      write<M> (p, to, (outer * p.n + best_at) * p.inner + (to - outer * p.inner), best_at);
    }
}

#define FORM(form, name, M)                                            \
  extern "C" __global__ void __launch_bounds__ (256)                   \
      gt_extreme_##form##_##name (const __grid_constant__ GtExtreme p) \
  {                                                                    \
    form<M> (p);                                                       \
  }
#define FORMS(name, M)    \
  FORM (rows, name, M)    \
  FORM (columns, name, M) \
  FORM (items, name, M)   \
  FORM (parts, name, M)
FORMS (f32, float)
FORMS (f64, double)
FORMS (f16, gt_f16)
FORMS (bf16, gt_bf16)
FORMS (i8, gint8)
FORMS (u8, guint8)
FORMS (i16, gint16)
FORMS (i32, gint32)
FORMS (i64, gint64)
