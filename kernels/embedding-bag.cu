/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums, means and maxima of rows of a table. A thread has a column of a bag. */

#include "gtorch-embedding-bag-params.h"
#include "gtorch-plain.cuh"

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

/* Says which bag the indices of a bag belong to, and that those behind the last one belong to none. */
GT_DEVICE void
number_bag (const GtBags &p, int64_t b, int64_t begin, int64_t end)
{
  int64_t size = 0;

  for (int64_t i = begin; i < end; i++)
    {
      const int64_t index = p.indices[i];

      if (index < 0 || index >= p.rows)
        gt_report (p.report, p.op, index, p.rows);
      p.numbers[i] = index == p.padding ? -1 : b;
      size += index != p.padding;
    }
  p.sizes[b] = size;
  if (b < p.bags - 1)
    return;
  for (int64_t i = end; i < p.n; i++)
    {
      if (p.indices[i] < 0 || p.indices[i] >= p.rows)
        gt_report (p.report, p.op, p.indices[i], p.rows);
      p.numbers[i] = -1;
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
bags (const GtBags &p)
{
  const int64_t columns = max (p.columns, (int64_t) 1); /* the bags are numbered in any case */

  for (GT_LOOP (e, p.bags * columns))
    {
      int64_t column, n = 0, place = -1;
      const int64_t b = gt_split (e, columns, &column);
      const int64_t begin = begin_of (p, b), end = begin_of (p, b + 1);
      C sum = 0;

      if (column == 0)
        number_bag (p, b, begin, end);
      if (p.columns == 0)
        continue;
      for (int64_t i = begin; i < end; i++)
        {
          const int64_t index = p.indices[i];
          C x;

          if (index == p.padding || index < 0 || index >= p.rows)
            continue;
          x = gt_get<C, T> (p.weight, index * p.columns + column);
          n++;
          if (p.mode != MAX)
            sum += p.factors != NULL ? gt_get<C, T> (p.factors, i) * x : x;
          else if (n == 1 || x > sum)
            {
              sum = x;
              place = index;
            }
        }
      gt_put<T> (p.output, e, p.mode == MEAN && n > 1 ? sum / (C) n : sum);
      if (p.mode == MAX)
        p.places[e] = place;
    }
}

#define EACH(dtype, T, C) \
  GT_KERNEL (gt_bags_##dtype, GtBags, 1024) { bags<T, C> (p); }
GT_EACH_FLOAT (EACH)
