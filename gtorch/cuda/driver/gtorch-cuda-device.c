/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The backend for NVIDIA GPUs. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/memory/gtorch-cuda-adopt-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-magazine-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"
#include "cuda/memory/gtorch-cuda-share-private.h"
#include "cuda/driver/gtorch-cuda-facts-private.h"
#include "base/gtorch-fork-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-dlpack-private.h"

typedef GTorchDeviceClass GTorchCudaDeviceClass;

G_DEFINE_TYPE (GTorchCudaDevice, gtorch_cuda_device, GTORCH_TYPE_DEVICE)

static GMutex devices_lock;
GTORCH_FORK_LOCK (devices_lock);
static GTorchCudaDevice *devices[GTORCH_CUDA_MAX_DEVICES];

static const GTorchDeviceInfo *
gtorch_cuda_device_get_info (GTorchDevice *device)
{
  return &GTORCH_CUDA_DEVICE (device)->info;
}

GTorchCudaDevice *
gtorch_cuda_device_peek (guint index)
{
  return g_atomic_pointer_get (&devices[index]);
}

gboolean
gtorch_cuda_device_activate (GTorchCudaDevice *self, GError **error)
{
  CUcontext current = NULL;

  if (!gtorch_device_works ((GTorchDevice *) self, error))
    return FALSE;
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
          /* Threads that wait for the device sleep, unless the context already exists with other flags. */
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
gtorch_cuda_device_get_memory_info (GTorchDevice *device, guint64 *available, guint64 *total,
                                    GError **error)
{
  gsize left = 0, all = 0;

  *total = GTORCH_CUDA_DEVICE (device)->total_memory;
  if (available == NULL)
    return TRUE;
  if (!gtorch_device_works (device, error)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error)
      || !gtorch_cuda_check (gtorch_cuda.cuMemGetInfo (&left, &all), "cuMemGetInfo", error))
    return FALSE;
  *available = left;
  *total = all;
  return TRUE;
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
    gtorch_cuda_check (gtorch_cuda.cuEventCreate (&event, timing ? CU_EVENT_DEFAULT
                                                                 : CU_EVENT_DISABLE_TIMING),
                       "cuEventCreate", error);
  return event;
}

/* Returns the event to the device's unused ones. It is not destroyed, as the caller may be a thread that
 * must not call the driver. */
void
gtorch_cuda_event_put (GTorchCudaDevice *self, CUevent event, gboolean timing)
{
  g_mutex_lock (&self->event_lock);
  g_array_append_val (self->events[timing], event);
  g_mutex_unlock (&self->event_lock);
}

static void
gtorch_cuda_device_class_init (GTorchCudaDeviceClass *klass)
{
  klass->get_info = gtorch_cuda_device_get_info;
  klass->alloc = gtorch_cuda_alloc;
  klass->pools = &gtorch_cuda_pools;
  klass->free = gtorch_cuda_free;
  klass->get_memory_info = gtorch_cuda_device_get_memory_info;
  klass->sync_stats = gtorch_cuda_magazines_sync;
  klass->empty_cache = gtorch_cuda_empty_cache;
  klass->copy = gtorch_cuda_copy;
  klass->read = gtorch_cuda_read_tensor;
  klass->launch = gtorch_cuda_launch;
  klass->new_stream = gtorch_cuda_stream_new;
  klass->adopt = gtorch_cuda_adopt;
  klass->get_priorities = gtorch_cuda_stream_get_priorities;
  klass->record_stream = gtorch_cuda_record_stream;
  klass->shared_events = &gtorch_cuda_shared_events;
  klass->shares = &gtorch_cuda_shares;
  klass->graphs = &gtorch_cuda_graphs;
  klass->order_storage = gtorch_cuda_order_storage;
  klass->synchronize = gtorch_cuda_synchronize;
  klass->access_peer = gtorch_cuda_access_peer;
  klass->take_sample = gtorch_cuda_take_sample;
}

static void
gtorch_cuda_device_init (GTorchCudaDevice *self)
{
  self->parent_instance.type = GTORCH_DEVICE_TYPE_CUDA;
  gtorch_allocator_set_list_blocks (self->parent_instance.allocator, gtorch_cuda_list_blocks);
  self->parent_instance.allocator->settle = gtorch_cuda_settle;
  g_mutex_init (&self->lock);
  gtorch_fork_add_lock (&self->lock);
  g_cond_init (&self->settled);
  self->lanes = g_ptr_array_new ();
  self->arenas = g_ptr_array_new ();
  self->dead_pools = g_ptr_array_new ();
  gtorch_cuda_init_graphs (self);
  self->released = g_array_new (FALSE, FALSE, sizeof (GTorchCudaReleased));
  g_mutex_init (&self->release_lock);
  gtorch_fork_add_lock (&self->release_lock);
  g_mutex_init (&self->event_lock);
  gtorch_fork_add_lock (&self->event_lock);
  self->events[0] = g_array_new (FALSE, FALSE, sizeof (CUevent));
  self->events[1] = g_array_new (FALSE, FALSE, sizeof (CUevent));
  self->retired = g_array_new (FALSE, FALSE, sizeof (CUevent));
}

/* Formats a UUID as "GPU-", then the bytes in groups of 4, 2, 2, 2 and 6. */
static void
format_uuid (const CUuuid *uuid, gchar *text)
{
  GString *string = g_string_new ("GPU");
  guint i;

  for (i = 0; i < sizeof uuid->bytes; i++)
    g_string_append_printf (string, "%s%02x",
                            i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "",
                            (guint8) uuid->bytes[i]);
  strcpy (text, string->str);
  g_string_free (string, TRUE);
}

enum
{
  MAJOR,
  MINOR,
  MULTIPROCESSORS,
  THREADS,
  WARP,
  SHARED_MEMORY,
  L2,
  INTEGRATED,
  VMM,
  N_FACTS
};

static GTorchCudaDevice *
device_new (guint index, GError **error)
{
  static const CUdevice_attribute attributes[N_FACTS] = {
    [MAJOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    [MINOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    [MULTIPROCESSORS] = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    [THREADS] = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
    [WARP] = CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    [SHARED_MEMORY] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    [L2] = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    [INTEGRATED] = CU_DEVICE_ATTRIBUTE_INTEGRATED,
    [VMM] = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
  };
  static gsize driver;
  CUuuid uuid = { 0 };
  GTorchCudaDevice *self;
  CUdevice handle;
  size_t total = 0;
  gint facts[N_FACTS];
  guint i;

  /* Without the memory size or the number of multiprocessors, later computations would fail. */
  if (!gtorch_cuda_check (gtorch_cuda.cuDeviceGet (&handle, index), "cuDeviceGet", error)
      || !gtorch_cuda_check (gtorch_cuda.cuDeviceTotalMem (&total, handle), "cuDeviceTotalMem",
                             error))
    return NULL;
  /* Without its UUID, memory that it shares could not be told from that of others. */
  if (!gtorch_cuda_check (gtorch_cuda.cuDeviceGetUuid (&uuid, handle), "cuDeviceGetUuid", error))
    return NULL;
  for (i = 0; i < N_FACTS; i++)
    if (!gtorch_cuda_check (gtorch_cuda.cuDeviceGetAttribute (&facts[i], attributes[i], handle),
                            "cuDeviceGetAttribute", error))
      return NULL;
  self = g_object_new (gtorch_cuda_device_get_type (), NULL);
  self->handle = handle;
  if (!gtorch_device_set_backend ((GTorchDevice *) self, &gtorch_backend_cuda, index, error))
    {
      g_object_unref (self);
      return NULL;
    }
  self->total_memory = total;
  gtorch_cuda.cuDeviceGetName (self->name, sizeof self->name, handle);
  gtorch_cuda.cuDeviceGetPCIBusId (self->pci_id, sizeof self->pci_id, handle);
  format_uuid (&uuid, self->uuid);
  if (g_once_init_enter (&driver))
    g_once_init_leave (&driver, (gsize) gtorch_cuda_driver_dup_version ());
  self->n_multiprocessors = facts[MULTIPROCESSORS];
  self->info = (GTorchDeviceInfo){
    .name = self->name,
    .major = facts[MAJOR],
    .minor = facts[MINOR],
    .n_multiprocessors = facts[MULTIPROCESSORS],
    .threads_per_multiprocessor = facts[THREADS],
    .warp_size = facts[WARP],
    .max_shared_memory = facts[SHARED_MEMORY],
    .l2_size = facts[L2],
    .pci_id = self->pci_id,
    .uuid = self->uuid,
    .integrated = facts[INTEGRATED],
    .driver_version = (const gchar *) driver,
  };
  self->has_vmm = facts[VMM];
  return self;
}

static guint
count_with_driver (void)
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

/* Returns why there are no GPUs. */
static const gchar *
find_reason (void)
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

/* Counts the GPUs. A process that has initialised the driver cannot fork children that use it. Until
 * something else needs the driver, the management library is therefore asked for the number. */
static guint
count (void)
{
  static gsize once;
  static gint guess;

  if (gtorch_cuda_driver_is_tried ())
    return count_with_driver ();
  if (!gtorch_cuda_driver_find ())
    return 0;
  if (g_once_init_enter (&once))
    {
      guess = MIN (gtorch_cuda_nvml_count (), GTORCH_CUDA_MAX_DEVICES);
      g_once_init_leave (&once, 1);
    }
  return guess >= 0 ? (guint) guess : count_with_driver ();
}

static guint
cuda_count (const gchar **reason)
{
  guint n = count ();

  if (n == 0 && reason != NULL)
    *reason = find_reason ();
  return n;
}

static GTorchDevice *
cuda_get (guint index, GError **error)
{
  GTorchDevice *device;

  if (!gtorch_cuda_driver_load (error))
    return NULL;
  if (index >= count_with_driver ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                   _ ("device: the driver does not give device “cuda:%u” to this program"), index);
      return NULL;
    }
  g_mutex_lock (&devices_lock);
  if (devices[index] == NULL)
    g_atomic_pointer_set (&devices[index], device_new (index, error));
  device = (GTorchDevice *) devices[index];
  g_mutex_unlock (&devices_lock);
  return device;
}

/* Returns whether the GPU can be used: its compute mode allows it, and there are kernels for it, from the
 * build or the fake driver. */
static gboolean
cuda_is_usable (GTorchDevice *device, GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  g_auto (GStrv) archs = gtorch_get_arch_list ();
  g_autofree gchar *list = NULL;
  gint mode = CU_COMPUTEMODE_PROHIBITED;

  if (!gtorch_cuda_driver_load (error)
      || !gtorch_cuda_check (gtorch_cuda.cuDeviceGetAttribute (&mode,
                                                               CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
                                                               self->handle),
                             "cuDeviceGetAttribute", error))
    return FALSE;
  if (mode == CU_COMPUTEMODE_PROHIBITED)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                   _ ("the compute mode of %s prohibits its use"), gtorch_device_name (device));
      return FALSE;
    }
  if (gtorch_cuda_driver_get_image (NULL) != NULL
      || gtorch_archs_cover ((const gchar *const *) archs, self->info.major, self->info.minor))
    return TRUE;
  list = g_strjoinv (", ", archs);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s has compute capability %d.%d, and this build has kernels for %s"),
               gtorch_device_name (device), self->info.major, self->info.minor,
               archs[0] != NULL ? list : _ ("no GPU"));
  return FALSE;
}

const GTorchBackend gtorch_backend_cuda = {
  .prefix = "cuda",
  .type = GTORCH_DEVICE_TYPE_CUDA,
  .runs = gtorch_cuda_runs,
  .queries = gtorch_cuda_queries,
  .copies_alone = TRUE,
  .autocast_dtype = GTORCH_DTYPE_FLOAT16,
  .autocast_like = GTORCH_DEVICE_TYPE_CUDA,
  .dlpack_type = GTORCH_DL_CUDA,
  .count = cuda_count,
  .get = cuda_get,
  .facts = gtorch_cuda_facts,
  .is_usable = cuda_is_usable,
};
