/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums, means and maxima of rows of a table. A thread has some columns of a bag. */

#include "gtorch-embedding-bag-params.h"
#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"

#define MEAN 1
#define MAX  2

/* Returns where a bag begins, within the indices; reports offsets that do not ascend from 0 to n. */
GT_DEVICE int64_t
begin_of (const GtBags &p, int64_t b)
{
  const int64_t offset = b < p.n_offsets ? p.offsets[b] : p.n;
  const int64_t least = b > 0 ? p.offsets[b - 1] : 0, most = b > 0 ? p.n : 0;

  if (offset < least || offset > most)
    gt_report (p.report, p.op, offset, p.n);
  return min (max (offset, (int64_t) 0), p.n);
}

/* Says which bag an index belongs to, -1 for none. */
GT_DEVICE void
number_index (const GtBags &p, int64_t i, int64_t bag)
{
  const int64_t index = p.indices[i];

  if (index < 0 || index >= p.rows)
    gt_report (p.report, p.op, index, p.rows);
  p.numbers[i] = index == p.padding ? -1 : bag;
}

/* Rows that are loaded at a time, so that their latencies overlap */
#define AHEAD 4

/* V: columns of a thread, which are loaded at once */
template <typename T, typename C, int V>
static __device__ __forceinline__ void
bags (const GtBags &p)
{
  const int64_t parts = max (p.columns / V, (int64_t) 1); /* the bags are numbered in any case */

  for (GT_LOOP (e, p.bags * parts))
    {
      int64_t part, n = 0, places[V];
      const int64_t b = gt_split (e, parts, &part);
      const int64_t begin = begin_of (p, b), end = begin_of (p, b + 1);
      C sums[V] = {};

#pragma unroll
      for (int v = 0; v < V; v++)
        places[v] = -1;
      for (int64_t i = begin + part; !p.is_long && i < end; i += parts)
        number_index (p, i, b);
      for (int64_t i = end + part; !p.is_long && b == p.bags - 1 && i < p.n; i += parts)
        number_index (p, i, -1);
      for (int64_t i = begin; i < end; i += AHEAD)
        {
          int64_t indices[AHEAD];
          gt_vector<T, V> x[AHEAD];

#pragma unroll
          for (int k = 0; k < AHEAD; k++)
            indices[k] = i + k < end ? p.indices[i + k] : -1;
#pragma unroll
          for (int k = 0; k < AHEAD; k++)
            {
              if (indices[k] == p.padding || indices[k] >= p.rows)
                indices[k] = -1;
              if (indices[k] >= 0 && p.columns > 0)
                x[k] = ((const gt_vector<T, V> *) p.weight)[indices[k] * parts + part];
            }
#pragma unroll
          for (int k = 0; k < AHEAD; k++)
            {
              C factor = 1;

              if (indices[k] < 0)
                continue;
              n++;
              if (p.columns == 0)
                continue;
              if (p.factors != NULL)
                factor = gt_get<C, T> (p.factors, i + k);
#pragma unroll
              for (int v = 0; v < V; v++)
                {
                  const C value = gt_convert<C>::from (x[k].at[v]);

                  if (p.mode != MAX)
                    sums[v] += p.factors != NULL ? factor * value : value;
                  else if (n == 1 || value > sums[v])
                    {
                      sums[v] = value;
                      places[v] = indices[k];
                    }
                }
            }
        }
      if (part == 0)
        p.sizes[b] = n;
#pragma unroll
      for (int v = 0; v < V && p.columns > 0; v++)
        {
          gt_put<T> (p.output, e * V + v, p.mode == MEAN && n > 1 ? sums[v] / (C) n : sums[v]);
          if (p.mode == MAX)
            p.places[e * V + v] = places[v];
        }
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
bags_of (const GtBags &p)
{
  if (p.is_wide)
    bags<T, C, 16 / sizeof (T)> (p);
  else
    bags<T, C, 1> (p);
}

#define EACH(dtype, T, C) \
  GT_KERNEL (gt_bags_##dtype, GtBags, 256) { bags_of<T, C> (p); }
GT_EACH_FLOAT (EACH)

/* Numbers all indices, for bags that are so long that those who sum them would take long. */
GT_KERNEL (gt_bag_numbers_i64, GtBags, 256)
{
  for (GT_LOOP (i, p.n))
    {
      int64_t low = 0, high = p.bags; /* the first bag that begins behind the index */

      while (low < high)
        {
          const int64_t middle = (low + high) / 2;

          if (p.offsets[middle] <= i)
            low = middle + 1;
          else
            high = middle;
        }
      number_index (p, i, p.n_offsets > p.bags && i >= p.offsets[p.bags] ? -1 : low - 1);
    }
}
