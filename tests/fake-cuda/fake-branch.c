/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The kernel that sets the conditions of branches. */

#include "config.h"

#include <string.h>

#include "fake-cuda-private.h"
#include "kernels/gtorch-kernel-params.h"

static CUresult
run_branch (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
            const FakeDevice *device)
{
  const GtBranch *p = parameter;
  const guint8 *predicate = fake_memory_at ((guintptr) p->predicate, 1, device);

  if (predicate == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (grid->grid[0] != 1 || grid->block[0] != 1) /* several threads would set the condition */
    return CUDA_ERROR_LAUNCH_FAILED;
  return fake_condition_set (p->handle, *predicate != 0);
}

gboolean
fake_branch_parse (FakeKernel *kernel, const gchar *text)
{
  if (strcmp (text, "branch") != 0)
    return FALSE;
  kernel->run = run_branch;
  kernel->n_bytes = sizeof (GtBranch);
  return TRUE;
}
