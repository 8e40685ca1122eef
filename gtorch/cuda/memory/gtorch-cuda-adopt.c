/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Adopted memory: memory of a GPU that another library has allocated. As with a block of the allocator, the
 * lanes that use it are recorded. When a tensor drops it, free_func is called at once if their work is
 * done, and otherwise by a thread that waits for that work, so that the thread that drops a tensor never
 * waits. */

#include "config.h"

#include "cuda/memory/gtorch-cuda-adopt-private.h"

#include <glib/gi18n-lib.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"

typedef struct
{
  GTorchCudaDevice *device;
  guint64 uses; /* bits of the lanes that have used the memory; atomic */
  GDestroyNotify free_func;
  gpointer free_data;
  CUevent *events; /* events recorded after the work that used the memory, NULL-terminated */
} Adopted;

static GAsyncQueue *dropped; /* queue of Adopted that work still uses */

static void
adopted_finish (Adopted *adopted)
{
  adopted->free_func (adopted->free_data);
  g_free (adopted);
}

/* Waits for dropped memory and calls its free_func. Runs in a thread of the library, as free_func may call
 * CUDA, which threads of the driver must not do, and may take long. */
static gpointer
wait_for_dropped (gpointer data)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  while (TRUE)
    {
      Adopted *adopted = g_async_queue_pop (data);
      guint i;

      gtorch_cuda_device_activate (adopted->device, NULL);
      for (i = 0; adopted->events[i] != NULL; i++)
        {
          gtorch_cuda_event_wait (adopted->device, adopted->events[i], TRUE);
          gtorch_cuda_event_put (adopted->device, adopted->events[i], FALSE);
        }
      g_free (adopted->events);
      adopted_finish (adopted);
    }
  return NULL;
}

static GAsyncQueue *
get_queue (void)
{
  if (g_once_init_enter (&dropped))
    {
      GAsyncQueue *queue = g_async_queue_new ();

      g_thread_unref (g_thread_new ("gtorch-return", wait_for_dropped, queue));
      g_once_init_leave (&dropped, queue);
    }
  return dropped;
}

/* Records events after the unfinished work of the lanes in uses. Returns them NULL-terminated, or NULL if
 * all work is done. */
static CUevent *
mark_lanes (GTorchCudaDevice *device, guint64 uses)
{
  g_autoptr (GArray) events = g_array_new (TRUE, FALSE, sizeof (CUevent));
  guint i;
  GTORCH_CUDA_APART;

  if (uses == 0 || !gtorch_cuda_device_activate (device, NULL))
    return NULL;
  g_mutex_lock (&device->lock);
  for (i = 0; i < device->lanes->len; i++)
    {
      GTorchCudaLane *lane = device->lanes->pdata[i];
      CUevent event;

      if ((uses & gtorch_cuda_lane_bit (lane)) == 0)
        continue;
      if (gtorch_cuda_lane_capture (lane) == NULL && !gtorch_cuda_lane_is_closed (lane)
          && gtorch_cuda.cuStreamQuery (lane->handle) == CUDA_SUCCESS)
        continue;
      event = gtorch_cuda_lane_mark (lane, NULL);
      if (event == NULL)
        gtorch_cuda_lane_settle (lane); /* without an event, wait here */
      else if (gtorch_cuda.cuEventQuery (event) == CUDA_ERROR_NOT_READY)
        g_array_append_val (events, event);
      else
        gtorch_cuda_event_put (device, event, FALSE);
    }
  g_mutex_unlock (&device->lock);
  return events->len > 0 ? (CUevent *) g_array_steal (events, NULL) : NULL;
}

static void
free_adopted (GTorchStorage *storage)
{
  Adopted *adopted = storage->free_data;

  adopted->events =
      mark_lanes (adopted->device, __atomic_load_n (&adopted->uses, __ATOMIC_RELAXED));
  if (adopted->events != NULL)
    g_async_queue_push (get_queue (), adopted);
  else
    adopted_finish (adopted);
}

guint64 *
gtorch_cuda_adopted_uses (GTorchStorage *storage)
{
  return storage->free_func == free_adopted ? &((Adopted *) storage->free_data)->uses : NULL;
}

/* Returns the type of the memory at the address, or 0 if the driver does not know it; *index becomes the
 * GPU's. */
static CUmemorytype
find_memory (gsize address, gint *index)
{
  CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
  unsigned int type = 0;
  int ordinal = -1;
  void *values[] = { &type, &ordinal };

  if (gtorch_cuda.cuPointerGetAttributes (2, attributes, values, address) != CUDA_SUCCESS)
    return 0;
  *index = ordinal;
  return type;
}

gboolean
gtorch_cuda_is_host_memory (gconstpointer address)
{
  gint index;

  return find_memory ((gsize) address, &index) == CU_MEMORYTYPE_HOST;
}

GTorchStorage *
gtorch_cuda_adopt (GTorchDevice *device, gpointer data, gsize n_bytes, gboolean is_managed,
                   GDestroyNotify free_func, gpointer free_data, GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  gint index = -1;
  Adopted *adopted;

  if (!gtorch_cuda_device_activate (self, error))
    return NULL;
  if (n_bytes > 0)
    type = find_memory ((gsize) data, &index);
  if (n_bytes > 0
      && (type == 0 || (!is_managed && (type != CU_MEMORYTYPE_DEVICE || index != device->index))))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("from_dlpack: there is no memory of %s at address %p"),
                   gtorch_device_name (device), data);
      return NULL;
    }
  adopted = g_new0 (Adopted, 1);
  adopted->device = self;
  adopted->free_func = free_func;
  adopted->free_data = free_data;
  return gtorch_storage_new_foreign (device, data, n_bytes, free_adopted, adopted);
}
