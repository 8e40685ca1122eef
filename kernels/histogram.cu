/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The counts of histograms. If there are few, each block has its own, which are added at its end. Integers
 * may be added in any order. */

#include "gtorch-histogram-params.h"
#include "gtorch-plain.cuh"

#define FEW_BINS 8192

/* Returns the number of an element's interval, -1 if it is in none. The last one has both its ends. */
template <typename C> struct Uniform
{
  static __device__ __forceinline__ int64_t
  find (const GtHistogram &p, C x)
  {
    const C low = (C) p.min, high = (C) p.max, width = (C) (p.max - p.min), bins = (C) p.bins;
    const C place = (x - low) * bins / width;

    if (!(x >= low && x <= high))
      return -1;
    return place < bins ? min ((int64_t) place, p.bins - 1) : p.bins - 1;
  }
};

template <typename C> struct Number
{
  static __device__ __forceinline__ int64_t
  find (const GtHistogram &p, C x)
  {
    return x < p.bins ? max ((int64_t) x, (int64_t) -1) : -1;
  }
};

template <template <typename> class Find, typename T, typename C>
static __device__ __forceinline__ void
count (const GtHistogram &p)
{
  __shared__ unsigned int counts[FEW_BINS];
  unsigned long long *out = (unsigned long long *) p.counts;
  const bool few = p.bins <= FEW_BINS;

  for (int64_t bin = threadIdx.x; few && bin < p.bins; bin += blockDim.x)
    counts[bin] = 0;
  __syncthreads ();
  for (GT_LOOP (i, p.n))
    {
      const int64_t bin = Find<C>::find (p, gt_get<C, T> (p.x, i));

      if (bin >= 0 && few)
        atomicAdd (&counts[bin], 1u);
      else if (bin >= 0)
        atomicAdd (&out[bin], 1ull);
    }
  __syncthreads ();
  for (int64_t bin = threadIdx.x; few && bin < p.bins; bin += blockDim.x)
    if (counts[bin] != 0)
      atomicAdd (&out[bin], (unsigned long long) counts[bin]);
}

#define EACH(dtype, T, C) \
  GT_KERNEL (gt_uniform_counts_##dtype, GtHistogram, 1024) { count<Uniform, T, C> (p); }
GT_EACH_FLOAT (EACH)

GT_KERNEL (gt_number_counts_i64, GtHistogram, 1024) { count<Number, gint64, gint64> (p); }
