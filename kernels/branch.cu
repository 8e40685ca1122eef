/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sets the condition of a branch of a graph. The driver provides the function that the kernel calls, and
 * links it when this file is loaded. */

#include "gtorch-kernel-params.h"

extern "C" __global__ void
gt_branch (const __grid_constant__ GtBranch p)
{
  cudaGraphSetConditional ((cudaGraphConditionalHandle) p.handle,
                           *(const uint8_t *) p.predicate != 0);
}
