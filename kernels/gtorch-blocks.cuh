/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Blocks of a tensor that are addressed by index. */

#include "gtorch-plain.cuh"

#define GT_NOWHERE INT64_MIN

/* Returns the address in the indexed tensor of element e of the dense one; NULL if its block is skipped. */
GT_DEVICE char *
gt_find_block (const GtBlocks &p, int64_t e)
{
  int64_t in, b, pre = gt_split (gt_split (e, p.inner, &in), p.n_index, &b), at;
  const int64_t offset = p.offsets[b];
  char *where = (char *) p.indexed + offset;

  if (offset == GT_NOWHERE)
    return NULL;
  for (int d = (int) p.n_inner_dims - 1; d > 0; d--)
    {
      in = gt_split (in, p.inner_shape[d], &at);
      where += at * p.inner_strides[d];
    }
  if (p.n_inner_dims > 0)
    where += in * p.inner_strides[0];
  for (int d = (int) p.n_pre_dims - 1; d > 0; d--)
    {
      pre = gt_split (pre, p.pre_shape[d], &at);
      where += at * p.pre_strides[d];
    }
  if (p.n_pre_dims > 0)
    where += pre * p.pre_strides[0];
  return where;
}

/* Notes that write i goes to the slot, whose owner is the last write to it. */
GT_DEVICE void
gt_claim (void *owner, bool wide, int64_t slot, int64_t i)
{
  if (wide)
    atomicMax ((long long *) owner + slot, (long long) i);
  else
    atomicMax ((int32_t *) owner + slot, (int32_t) i);
}

GT_DEVICE bool
gt_owns (const void *owner, bool wide, int64_t slot, int64_t i)
{
  return (wide ? ((const int64_t *) owner)[slot] : ((const int32_t *) owner)[slot]) == i;
}
