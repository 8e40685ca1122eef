/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Additions of floats to blocks that several indices may name: the values for one block are added in the
 * order of the indices, so that every run has the same sums. Products and extremes are computed likewise. */

#include "gtorch-blocks.cuh"
#include "gtorch-segments-params.h"

#define AHEAD 8 /* number of elements that are loaded together */

template <typename C> struct limits
{
  GT_DEVICE C
  least ()
  {
    return -INFINITY;
  }
  GT_DEVICE C
  greatest ()
  {
    return INFINITY;
  }
};
template <> struct limits<int64_t>
{
  GT_DEVICE int64_t
  least ()
  {
    return INT64_MIN;
  }
  GT_DEVICE int64_t
  greatest ()
  {
    return INT64_MAX;
  }
};

struct sum
{
  template <typename C>
  GT_DEVICE C
  start ()
  {
    return C (0);
  }
  template <typename C>
  GT_DEVICE C
  join (C a, C b)
  {
    return a + b;
  }
};

struct product
{
  template <typename C>
  GT_DEVICE C
  start ()
  {
    return C (1);
  }
  template <typename C>
  GT_DEVICE C
  join (C a, C b)
  {
    if constexpr (sizeof (C) == 8 && C (0.5) == C (0))
      return (C) ((uint64_t) a * (uint64_t) b); /* may wrap around */
    else
      return a * b;
  }
};

struct greatest
{
  template <typename C>
  GT_DEVICE C
  start ()
  {
    return limits<C>::least ();
  }
  template <typename C>
  GT_DEVICE C
  join (C a, C b)
  {
    return gt_maximum (a, b);
  }
};

struct smallest
{
  template <typename C>
  GT_DEVICE C
  start ()
  {
    return limits<C>::greatest ();
  }
  template <typename C>
  GT_DEVICE C
  join (C a, C b)
  {
    return gt_minimum (a, b);
  }
};

GT_DEVICE int64_t
key (const GtSegments &p, int64_t j)
{
  return p.wide ? ((const int64_t *) p.keys)[j] : ((const int32_t *) p.keys)[j];
}

template <typename F, typename T, typename C>
GT_DEVICE void
put_to (const GtSegments &p, int64_t pre, int64_t at, int64_t in, C value)
{
  T *to = (T *) gt_find_block (p.b, (pre * p.b.n_index + at) * p.b.inner + in);

  if (to != NULL)
    *to = gt_convert<T>::from (F::join (gt_convert<C>::from (*to), value));
}

/* Folds the segments of sorted indices, one column of one tile per thread. */
template <typename F, typename T, typename C>
static __device__ __forceinline__ void
segments (const GtSegments &p)
{
  const int64_t n = p.b.n_index;

  for (GT_LOOP (w, p.n_pre * p.tiles * p.b.inner))
    {
      int64_t in, tile, pre = gt_split (gt_split (w, p.b.inner, &in), p.tiles, &tile);
      const int64_t begin = tile * p.tile, end = min (begin + p.tile, n);
      int64_t current = key (p, begin), at[AHEAD];
      bool goes_on = begin > 0 && key (p, begin - 1) == current;
      C value = F::template start<C> (), x[AHEAD];
      int64_t last = 0;

      for (int64_t j = begin; j < end; j += AHEAD)
        {
#pragma unroll
          for (int u = 0; u < AHEAD; u++)
            at[u] = j + u < end ? p.at[j + u] : 0;
#pragma unroll
          for (int u = 0; u < AHEAD; u++)
            x[u] = gt_get<C, T> (p.b.dense, ((pre * n + at[u]) * p.b.inner + in) * p.b.step);
#pragma unroll
          for (int u = 0; u < AHEAD; u++)
            {
              if (j + u >= end)
                break;
              const int64_t k = key (p, j + u);

              if (k != current)
                {
                  if (goes_on)
                    ((C *) p.first)[w] = value;
                  else if (current >= 0)
                    put_to<F, T, C> (p, pre, last, in, value);
                  goes_on = false;
                  current = k;
                  value = F::template start<C> ();
                }
              value = F::join (value, x[u]);
              last = at[u];
            }
        }
      if (goes_on)
        ((C *) p.first)[w] = value;
      else if (end < n && key (p, end) == current)
        ((C *) p.last)[w] = value;
      else if (current >= 0)
        put_to<F, T, C> (p, pre, last, in, value);
    }
}

template <typename C>
GT_DEVICE C
shuffle_xor (C x, int mask)
{
  uint32_t words[sizeof (C) / 4];
  C y;

  memcpy (words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < sizeof (C) / 4; i++)
    words[i] = __shfl_xor_sync (~0u, words[i], mask);
  memcpy (&y, words, sizeof y);
  return y;
}

/* Folds segments that continue in further tiles: in the thread of the tile where they begin or, if there
 * are many tiles and few columns, in that thread's warp. W is the type in which the parts are folded; for a
 * long product whose factors are all slightly above 1, the roundings of C would all go in one direction. */
template <typename F, typename T, typename C, typename W = C>
static __device__ __forceinline__ void
join (const GtSegments &p)
{
  const int64_t n = p.b.n_index, all = p.n_pre * p.tiles * p.b.inner;
  const int lane = threadIdx.x % 32;

  for (int64_t base = (int64_t) blockIdx.x * blockDim.x + threadIdx.x - lane; base < all;
       base += (int64_t) gridDim.x * blockDim.x)
    {
      const int64_t w = base + lane;
      int64_t in = 0, tile = 0, pre = 0, last = 0, end = 0;
      bool begins = false;
      W value = F::template start<W> ();

      if (w < all)
        {
          pre = gt_split (gt_split (w, p.b.inner, &in), p.tiles, &tile);
          const int64_t begin = tile * p.tile;

          end = begin + p.tile;
          if (end < n)
            {
              const int64_t current = key (p, end - 1);

              begins = current >= 0 && key (p, end) == current
                       && !(begin > 0 && key (p, begin - 1) == current);
              if (begins)
                {
                  int64_t low = end, high = n; /* low belongs to the block, high does not */

                  while (high - low > 1)
                    {
                      const int64_t middle = low + (high - low) / 2;

                      if (key (p, middle) == current)
                        low = middle;
                      else
                        high = middle;
                    }
                  last = low / p.tile;
                  value = ((const C *) p.last)[w];
                }
            }
        }
      const bool is_long = begins && last - tile > 64 && p.b.inner < 32;

      for (unsigned int rest = __ballot_sync (~0u, is_long); rest != 0; rest &= rest - 1)
        {
          const int owner = __ffs (rest) - 1;
          const int64_t first = __shfl_sync (~0u, tile, owner) + 1 + lane;
          const int64_t final = __shfl_sync (~0u, last, owner);
          const int64_t row = __shfl_sync (~0u, pre, owner) * p.tiles;
          const int64_t column = __shfl_sync (~0u, in, owner);
          W part = F::template start<W> ();

#pragma unroll 8
          for (int64_t t = first; t <= final; t += 32)
            part = F::join (part, (W) ((const C *) p.first)[(row + t) * p.b.inner + column]);
#pragma unroll
          for (int d = 16; d > 0; d /= 2)
            part = F::join (part, shuffle_xor (part, d));
          if (lane == owner)
            value = F::join (value, part);
        }
      if (begins && !is_long)
#pragma unroll 8
        for (int64_t t = tile + 1; t <= last; t++)
          value = F::join (value, (W) ((const C *) p.first)[(pre * p.tiles + t) * p.b.inner + in]);
      if (begins)
        put_to<F, T, C> (p, pre, p.at[end - 1], in, (C) value);
    }
}

#define SUM(name, T, C)                                                            \
  GT_KERNEL (gt_segments_sum_##name, GtSegments, 256) { segments<sum, T, C> (p); } \
  GT_KERNEL (gt_segments_join_sum_##name, GtSegments, 256) { join<sum, T, C> (p); }
GT_EACH_FLOAT (SUM)
SUM (c64, GTorchComplex64, GTorchComplex64)
SUM (c128, GTorchComplex128, GTorchComplex128)

/* Other dtypes are converted to these three by the host. */
#define FOLDS(name, T, W)                                                                   \
  GT_KERNEL (gt_segments_prod_##name, GtSegments, 256) { segments<product, T, T> (p); }     \
  GT_KERNEL (gt_segments_join_prod_##name, GtSegments, 256) { join<product, T, T, W> (p); } \
  GT_KERNEL (gt_segments_amax_##name, GtSegments, 256) { segments<greatest, T, T> (p); }    \
  GT_KERNEL (gt_segments_join_amax_##name, GtSegments, 256) { join<greatest, T, T> (p); }   \
  GT_KERNEL (gt_segments_amin_##name, GtSegments, 256) { segments<smallest, T, T> (p); }    \
  GT_KERNEL (gt_segments_join_amin_##name, GtSegments, 256) { join<smallest, T, T> (p); }
FOLDS (f32, float, double)
FOLDS (f64, double, double)
FOLDS (i64, gint64, gint64)

/* --- recurrences --- */
#define RECURRENCE(name, T)                                                     \
  GT_KERNEL (gt_recurrence_##name, GtRecurrence, 1024)                          \
  {                                                                             \
    for (GT_LOOP (line, p.lines))                                               \
      {                                                                         \
        const int64_t hop = p.reverse != 0 ? -p.inner : p.inner;                \
        int64_t column, at = gt_split (line, p.inner, &column) * p.n * p.inner; \
        T e = (T) p.start;                                                      \
                                                                                \
        at += column + (p.reverse != 0 ? (p.n - 1) * p.inner : 0);              \
        for (int64_t i = 0; i < p.n; i++, at += hop)                            \
          {                                                                     \
            const T x = ((const T *) p.x)[at], f = ((const T *) p.f)[at];       \
                                                                                \
            ((T *) p.y)[at] = e;                                                \
            e = x + f * e;                                                      \
          }                                                                     \
      }                                                                         \
  }
RECURRENCE (f32, float)
RECURRENCE (f64, double)
RECURRENCE (c64, GTorchComplex64)
RECURRENCE (c128, GTorchComplex128)
