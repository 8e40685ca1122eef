/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GPUs as a backend. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/gtorch-cuda-private.h"

typedef GTorchDeviceClass GTorchCudaDeviceClass;

G_DEFINE_TYPE (GTorchCudaDevice, gtorch_cuda_device, GTORCH_TYPE_DEVICE)

static GMutex devices_lock;
static GTorchCudaDevice *devices[GTORCH_CUDA_MAX_DEVICES];

static const gchar *
gtorch_cuda_device_get_name (GTorchDevice *device)
{
  return GTORCH_CUDA_DEVICE (device)->name;
}

gboolean
gtorch_cuda_device_activate (GTorchCudaDevice *self, GError **error)
{
  CUcontext current = NULL;

  if (G_UNLIKELY (gtorch_cuda_is_forked ()))
    return gtorch_cuda_driver_load (error);
  if (G_UNLIKELY (g_atomic_pointer_get (&self->context) == NULL))
    {
      CUcontext context = NULL;
      unsigned int flags = 0;
      int active = 0;
      gboolean done;

      g_mutex_lock (&devices_lock);
      done = self->context != NULL;
      if (!done)
        {
          /* A thread that waits shall sleep, unless somebody has already decided otherwise. */
          gtorch_cuda.cuDevicePrimaryCtxGetState (self->handle, &flags, &active);
          if (!active)
            gtorch_cuda.cuDevicePrimaryCtxSetFlags (self->handle, CU_CTX_SCHED_BLOCKING_SYNC);
          done = gtorch_cuda_check (gtorch_cuda.cuDevicePrimaryCtxRetain (&context, self->handle),
                                    "cuDevicePrimaryCtxRetain", error);
          if (done)
            g_atomic_pointer_set (&self->context, context);
        }
      g_mutex_unlock (&devices_lock);
      if (!done)
        {
          g_prefix_error (error, "%s: ", gtorch_device_name ((GTorchDevice *) self));
          return FALSE;
        }
    }
  gtorch_cuda.cuCtxGetCurrent (&current);
  return current == self->context
         || gtorch_cuda_check (gtorch_cuda.cuCtxSetCurrent (self->context), "cuCtxSetCurrent",
                               error);
}

static gboolean
gtorch_cuda_device_make_current (GTorchDevice *device, GError **error)
{
  return gtorch_cuda_driver_load (error);
}

CUevent
gtorch_cuda_event_get (GTorchCudaDevice *self, gboolean timing, GError **error)
{
  GArray *events = self->events[timing];
  CUevent event = NULL;

  g_mutex_lock (&self->event_lock);
  if (events->len > 0)
    {
      event = g_array_index (events, CUevent, events->len - 1);
      g_array_set_size (events, events->len - 1);
    }
  g_mutex_unlock (&self->event_lock);
  if (event == NULL)
    gtorch_cuda_check (gtorch_cuda.cuEventCreate (&event,
                                                  CU_EVENT_BLOCKING_SYNC
                                                      | (timing ? 0 : CU_EVENT_DISABLE_TIMING)),
                       "cuEventCreate", error);
  return event;
}

/* An event is never destroyed: this may run where the driver must not be called. */
void
gtorch_cuda_event_put (GTorchCudaDevice *self, CUevent event, gboolean timing)
{
  g_mutex_lock (&self->event_lock);
  g_array_append_val (self->events[timing], event);
  g_mutex_unlock (&self->event_lock);
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

static void
gtorch_cuda_device_class_init (GTorchCudaDeviceClass *klass)
{
  klass->get_name = gtorch_cuda_device_get_name;
  klass->make_current = gtorch_cuda_device_make_current;
  klass->alloc = gtorch_cuda_alloc;
  klass->free = gtorch_cuda_free;
  klass->get_memory_info = gtorch_cuda_memory_info;
  klass->reset_peak = gtorch_cuda_reset_peak;
  klass->empty_cache = gtorch_cuda_empty_cache;
  klass->copy = gtorch_cuda_copy;
  klass->launch = gtorch_cuda_launch;
  klass->new_stream = gtorch_cuda_stream_new;
  klass->synchronize = gtorch_cuda_synchronize;
  klass->can_access_peer = can_access_peer;
}

static void
gtorch_cuda_device_init (GTorchCudaDevice *self)
{
  self->parent_instance.type = GTORCH_DEVICE_TYPE_CUDA;
  g_mutex_init (&self->lock);
  self->lanes = g_ptr_array_new ();
  g_mutex_init (&self->event_lock);
  self->events[0] = g_array_new (FALSE, FALSE, sizeof (CUevent));
  self->events[1] = g_array_new (FALSE, FALSE, sizeof (CUevent));
}

static gint
attribute (CUdevice handle, CUdevice_attribute attribute)
{
  gint value = 0;

  gtorch_cuda.cuDeviceGetAttribute (&value, attribute, handle);
  return value;
}

static GTorchCudaDevice *
device_new (guint index, GError **error)
{
  GTorchCudaDevice *self;
  CUdevice handle;
  size_t total = 0;

  if (!gtorch_cuda_check (gtorch_cuda.cuDeviceGet (&handle, index), "cuDeviceGet", error))
    return NULL;
  self = g_object_new (gtorch_cuda_device_get_type (), NULL);
  self->handle = handle;
  self->parent_instance.index = index;
  self->parent_instance.slot = 1 + index;
  self->parent_instance.string = g_strdup_printf ("cuda:%u", index);
  gtorch_cuda.cuDeviceGetName (self->name, sizeof self->name, handle);
  gtorch_cuda.cuDeviceTotalMem (&total, handle);
  self->total_memory = total;
  gtorch_cuda.cuDeviceGetPCIBusId (self->pci_id, sizeof self->pci_id, handle);
  gtorch_cuda.cuDeviceGetUuid (&self->uuid, handle);
  self->major = attribute (handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  self->minor = attribute (handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  self->n_multiprocessors = attribute (handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  self->threads_per_multiprocessor =
      attribute (handle, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  self->max_shared = attribute (handle, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  self->l2_bytes = attribute (handle, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  self->has_vmm = attribute (handle, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  return self;
}

static guint
cuda_count (void)
{
  static gsize once;
  static guint n;

  if (g_once_init_enter (&once))
    {
      gint count = 0;

      if (gtorch_cuda_driver_load (NULL) && gtorch_cuda.cuDeviceGetCount (&count) == CUDA_SUCCESS)
        n = MIN (count, GTORCH_CUDA_MAX_DEVICES);
      g_once_init_leave (&once, 1);
    }
  return n;
}

static GTorchDevice *
cuda_get (guint index, GError **error)
{
  GTorchDevice *device;

  if (!gtorch_cuda_driver_load (error))
    return NULL;
  g_mutex_lock (&devices_lock);
  if (devices[index] == NULL)
    devices[index] = device_new (index, error);
  device = (GTorchDevice *) devices[index];
  g_mutex_unlock (&devices_lock);
  return device;
}

static const gchar *
cuda_reason (void)
{
  static gsize text;

  if (g_once_init_enter (&text))
    {
      g_autoptr (GError) error = NULL;

      gtorch_cuda_driver_load (&error);
      g_once_init_leave (&text, (gsize) g_strdup (error != NULL ? error->message + strlen ("cuda: ")
                                                                : _ ("there is no CUDA device")));
    }
  return (const gchar *) text;
}

const GTorchBackend gtorch_backend_cuda = {
  .prefix = "cuda",
  .type = GTORCH_DEVICE_TYPE_CUDA,
  .count = cuda_count,
  .get = cuda_get,
  .reason = cuda_reason,
};
