/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What linear algebra needs beside cuSOLVER and cuBLAS. */

#include "gtorch-linalg-params.h"
#include "gtorch-plain.cuh"

/* One thread makes the exchanges of a matrix, which depend on each other. */
GT_KERNEL (gt_pivot_order_i64, GtPivots, 1024)
{
  for (GT_LOOP (b, p.count))
    {
      int64_t *order = p.order + b * p.n;

      for (int64_t i = 0; i < p.n; i++)
        order[i] = i + p.first;
      for (int64_t i = 0; i < p.n_pivots; i++)
        {
          const int64_t other = p.pivots[b * p.n_pivots + i] - 1, row = order[i];

          if (other < 0 || other >= p.n)
            gt_report (p.report, p.op, other, p.n);
          else
            {
              order[i] = order[other];
              order[other] = row;
            }
        }
    }
}

GT_KERNEL (gt_addresses_i64, GtAddresses, 1024)
{
  for (GT_LOOP (i, p.count))
    ((char **) p.addresses)[i] = p.first + i * p.step;
}
