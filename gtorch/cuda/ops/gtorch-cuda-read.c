/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reads elements to the host. Small amounts are first copied to pinned memory, as the driver is slow with
 * pageable memory. */

#include "config.h"

#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"

#define BOUNCE 4096 /* bytes */

/* Takes the lane's bounce buffer, which is only an optimisation; returns NULL while another thread has it,
 * or if it cannot be allocated. */
static gpointer
take_bounce (GTorchCudaLane *lane)
{
  if (__atomic_exchange_n (&lane->bounce_is_taken, TRUE, __ATOMIC_ACQUIRE))
    return NULL;
  if (G_UNLIKELY (lane->bounce == NULL)
      && gtorch_cuda.cuMemHostAlloc (&lane->bounce, BOUNCE, CU_MEMHOSTALLOC_PORTABLE)
             != CUDA_SUCCESS)
    {
      lane->bounce = NULL;
      __atomic_store_n (&lane->bounce_is_taken, FALSE, __ATOMIC_RELEASE);
      return NULL;
    }
  return lane->bounce;
}

gboolean
gtorch_cuda_read (GTorchCudaLane *lane, gpointer to, gconstpointer from, gsize n_bytes,
                  GError **error)
{
  gpointer bounce;
  gboolean result;
  GTORCH_CUDA_APART;

  if (!gtorch_cuda_allow_wait (lane, "read", error)
      || !gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  bounce = n_bytes <= BOUNCE ? take_bounce (lane) : NULL;
  gtorch_cuda_note_begin (lane, "copy");
  result = gtorch_cuda_check (gtorch_cuda.cuMemcpyDtoHAsync (bounce != NULL ? bounce : to,
                                                             (CUdeviceptr) (guintptr) from, n_bytes,
                                                             lane->handle),
                              "cuMemcpyDtoHAsync", error);
  result =
      gtorch_cuda_note_end (lane, result) && gtorch_cuda_lane_synchronize (lane, "read", error);
  if (bounce != NULL)
    {
      if (result)
        memcpy (to, bounce, n_bytes);
      __atomic_store_n (&lane->bounce_is_taken, FALSE, __ATOMIC_RELEASE);
    }
  return result;
}
