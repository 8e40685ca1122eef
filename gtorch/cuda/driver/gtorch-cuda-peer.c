/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Access of one GPU to the memory of another. For memory from cuMemAlloc() it is enabled per context, for
 * arenas per page and device. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/memory/gtorch-cuda-share-private.h"
#include "base/gtorch-fork-private.h"

static GMutex lock; /* protects enabling */
GTORCH_FORK_LOCK (lock);
static gint tried[GTORCH_CUDA_MAX_DEVICES][GTORCH_CUDA_MAX_DEVICES]; /* atomic */

static guint
device_bit (GTorchCudaDevice *device)
{
  return 1u << device->parent_instance.index;
}

static gboolean
can_access_peer (GTorchDevice *device, GTorchDevice *peer)
{
  int can = 0;

  return peer->type == GTORCH_DEVICE_TYPE_CUDA
         && gtorch_cuda.cuDeviceCanAccessPeer (&can, GTORCH_CUDA_DEVICE (device)->handle,
                                               GTORCH_CUDA_DEVICE (peer)->handle)
                == CUDA_SUCCESS
         && can;
}

typedef struct
{
  GTorchCudaDevice *reader;
  CUresult result;
} Opening;

static void
open_arena (GTorchCudaArena *arena, gpointer data)
{
  Opening *opening = data;

  if (opening->result == CUDA_SUCCESS)
    opening->result = gtorch_cuda_arena_allow (arena, opening->reader);
}

/* Lets the reader access the owner's arenas. Pages that are mapped later honour `readers`; pages that are
 * already mapped are changed one by one. */
static gboolean
open_arenas (GTorchCudaDevice *owner, GTorchCudaDevice *reader, GError **error)
{
  Opening opening = { reader, CUDA_SUCCESS };

  __atomic_or_fetch (&owner->readers, device_bit (reader), __ATOMIC_SEQ_CST);
  gtorch_cuda_foreach_arena (owner, open_arena, &opening);
  if (opening.result == CUDA_SUCCESS)
    opening.result = gtorch_cuda_shares_allow (owner, reader);
  if (opening.result == CUDA_SUCCESS)
    return TRUE;
  __atomic_and_fetch (&owner->readers, ~device_bit (reader), __ATOMIC_SEQ_CST);
  return gtorch_cuda_check (opening.result, "cuMemSetAccess", error);
}

static gboolean
enable (GTorchCudaDevice *self, GTorchCudaDevice *peer, GError **error)
{
  CUresult result;

  if (!gtorch_cuda_device_activate (peer, error) || !open_arenas (peer, self, error)
      || !gtorch_cuda_device_activate (self, error))
    return FALSE;
  result = gtorch_cuda.cuCtxEnablePeerAccess (peer->context, 0);
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
      && !gtorch_cuda_check (result, "cuCtxEnablePeerAccess", error))
    return FALSE;
  __atomic_or_fetch (&self->peers, device_bit (peer), __ATOMIC_SEQ_CST);
  return TRUE;
}

gboolean
gtorch_cuda_access_peer (GTorchDevice *device, GTorchDevice *peer, gboolean enables, GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  gboolean result;

  if (!enables)
    return can_access_peer (device, peer);
  if (!gtorch_cuda_driver_load (error))
    return FALSE;
  if (!can_access_peer (device, peer))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("enable_peer: %s cannot use the memory of %s"), gtorch_device_name (device),
                   gtorch_device_name (peer));
      return FALSE;
    }
  g_mutex_lock (&lock);
  result = (self->peers & device_bit (GTORCH_CUDA_DEVICE (peer))) != 0
           || enable (self, GTORCH_CUDA_DEVICE (peer), error);
  g_mutex_unlock (&lock);
  if (!result)
    g_prefix_error (error, "enable_peer: %s, %s: ", gtorch_device_name (device),
                    gtorch_device_name (peer));
  return result;
}

void
gtorch_cuda_try_peer (GTorchCudaDevice *device, GTorchCudaDevice *peer)
{
  gint *done = &tried[device->parent_instance.index][peer->parent_instance.index];

  if (g_atomic_int_get (done))
    return;
  g_atomic_int_set (done, TRUE);
  if (can_access_peer ((GTorchDevice *) device, (GTorchDevice *) peer))
    gtorch_cuda_access_peer ((GTorchDevice *) device, (GTorchDevice *) peer, TRUE, NULL);
}
