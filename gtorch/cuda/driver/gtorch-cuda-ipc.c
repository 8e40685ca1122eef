/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Events that several processes share. A shared event keeps its driver event, so that an exported handle
 * stays valid; each recording replaces the previous one. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/driver/gtorch-cuda-private.h"

typedef struct
{
  gint ref_count;
  GTorchCudaDevice *device;
  CUevent event;
} SharedEvent;

/* Destroys retired events, which could not be destroyed when they were dropped, as that may happen in a
 * thread of the driver. If an event cannot be destroyed now, it is retried later, unless the device has
 * failed for good. */
static void
destroy_retired (GTorchCudaDevice *device)
{
  CUevent event;
  gboolean done;

  do
    {
      event = NULL;
      g_mutex_lock (&device->event_lock);
      if (device->retired->len > 0)
        {
          event = g_array_index (device->retired, CUevent, device->retired->len - 1);
          g_array_set_size (device->retired, device->retired->len - 1);
        }
      g_mutex_unlock (&device->event_lock);
      done = event == NULL
             || gtorch_cuda_check (gtorch_cuda.cuEventDestroy (event), "cuEventDestroy", NULL);
    }
  while (event != NULL && done);
  if (done)
    return;
  g_mutex_lock (&device->event_lock);
  g_array_append_val (device->retired, event);
  g_mutex_unlock (&device->event_lock);
}

static gpointer
shared_event_open (GTorchDevice *device, GBytes *bytes, GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  CUipcEventHandle handle;
  SharedEvent *shared;
  CUevent event;
  CUresult result;

  if (bytes != NULL && g_bytes_get_size (bytes) != sizeof handle)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("event: a handle has %zu bytes, not %zu"), sizeof handle,
                   g_bytes_get_size (bytes));
      return NULL;
    }
  if (!gtorch_cuda_device_activate (self, error))
    return NULL;
  destroy_retired (self);
  if (bytes != NULL)
    {
      memcpy (&handle, g_bytes_get_data (bytes, NULL), sizeof handle);
      result = gtorch_cuda.cuIpcOpenEventHandle (&event, handle);
    }
  else
    result = gtorch_cuda.cuEventCreate (&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  if (!gtorch_cuda_check (result, bytes != NULL ? "cuIpcOpenEventHandle" : "cuEventCreate", error))
    return NULL;
  shared = g_new0 (SharedEvent, 1);
  shared->ref_count = 1;
  shared->device = self;
  shared->event = event;
  return shared;
}

void
gtorch_cuda_shared_event_unref (gpointer event)
{
  SharedEvent *shared = event;

  if (!g_atomic_int_dec_and_test (&shared->ref_count))
    return;
  g_mutex_lock (&shared->device->event_lock);
  g_array_append_val (shared->device->retired, shared->event);
  g_mutex_unlock (&shared->device->event_lock);
  g_free (shared);
}

static GBytes *
shared_event_get_handle (gpointer event, GError **error)
{
  SharedEvent *shared = event;
  CUipcEventHandle handle;

  if (!gtorch_cuda_device_activate (shared->device, error)
      || !gtorch_cuda_check (gtorch_cuda.cuIpcGetEventHandle (&handle, shared->event),
                             "cuIpcGetEventHandle", error))
    return NULL;
  return g_bytes_new (&handle, sizeof handle);
}

static gboolean
shared_event_record (gpointer event, GTorchStream *stream, GError **error)
{
  SharedEvent *shared = event;

  if (stream->device != (GTorchDevice *) shared->device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("event: it is shared with other processes as an event of %s, and the "
                      "stream is on %s"),
                   gtorch_device_name ((GTorchDevice *) shared->device),
                   gtorch_device_name (stream->device));
      return FALSE;
    }
  return gtorch_cuda_stream_prepare (stream, error)
         && gtorch_cuda_check (gtorch_cuda.cuEventRecord (shared->event,
                                                          gtorch_stream_get_handle (stream)),
                               "cuEventRecord", error);
}

static GTorchFence *
shared_event_new_fence (gpointer event)
{
  SharedEvent *shared = event;
  GTorchFence *fence = gtorch_cuda_fence_new (shared->device, shared->event);

  g_atomic_int_inc (&shared->ref_count);
  fence->shared = shared;
  return fence;
}

const struct _GTorchSharedEvents gtorch_cuda_shared_events = {
  .open = shared_event_open,
  .get_handle = shared_event_get_handle,
  .record = shared_event_record,
  .new_fence = shared_event_new_fence,
  .unref = gtorch_cuda_shared_event_unref,
};
