/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A backend in one file: docs/writing-a-backend.md explains it.
 *
 * Its one device, "plain:0", has memory of its own. The addresses that tensors see are those of memory of
 * the host, moved so far that no processor can read them: code that takes the device's memory for the
 * host's does not live to see a result. Operations are those of the CPU, on the addresses moved back. A
 * queue is a thread of the host.
 *
 * GTORCH_TEST_LACKS names an operation that the device does not have. */

#include "config.h"

#include "plain-device.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/gtorch-cpu-device.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "memory/gtorch-allocator-private.h"
#include "memory/gtorch-storage-private.h"
#include "stream/gtorch-stream-private.h"

#define DISTANCE ((guintptr) 1 << 62)
#define ALIGNED  64
#define CAPACITY ((guint64) 1 << 32)

typedef GTorchDevice PlainDevice;
typedef GTorchDeviceClass PlainDeviceClass;

GType plain_device_get_type (void);
G_DEFINE_TYPE (PlainDevice, plain_device, GTORCH_TYPE_DEVICE)

/* The storage has the address itself, too, which tools that look for lost memory have to find. */
typedef struct
{
  GTorchStorage parent;
  gpointer host;
} PlainStorage;

static GMutex lock; /* of what follows */
static gint64 n_allocated, n_storages, n_made, peak, n_peak;

static gpointer
to_host (gconstpointer data)
{
  return data != NULL ? (char *) data - DISTANCE : NULL;
}

/* --- memory --- */

static GTorchStorage *
plain_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  GTorchStorage *storage;
  gpointer data = NULL;
  gboolean has_room;

  g_mutex_lock (&lock);
  has_room = n_bytes <= CAPACITY - n_allocated;
  if (has_room)
    {
      n_allocated += n_bytes;
      n_storages++;
      n_made++;
      peak = MAX (peak, n_allocated);
      n_peak = MAX (n_peak, n_storages);
    }
  g_mutex_unlock (&lock);
  if (!has_room || posix_memalign (&data, ALIGNED, MAX (n_bytes, 1)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   "%" G_GSIZE_FORMAT " bytes cannot be allocated on %s", n_bytes,
                   gtorch_device_name (device));
      return NULL;
    }
  memset (data, 0xa5, n_bytes); /* nobody is to count on zeros */
  storage = (GTorchStorage *) g_new0 (PlainStorage, 1);
  ((PlainStorage *) storage)->host = data;
  storage->ref_count = 1;
  storage->device = device;
  storage->data = (char *) data + DISTANCE;
  storage->n_bytes = n_bytes;
  return storage;
}

static void
plain_free (GTorchDevice *device, GTorchStorage *storage)
{
  g_mutex_lock (&lock);
  n_allocated -= storage->n_bytes;
  n_storages--;
  g_mutex_unlock (&lock);
  free (to_host (storage->data));
  g_free (storage);
}

static gboolean
plain_get_memory_info (GTorchDevice *device, guint64 *available, guint64 *total, GError **error)
{
  g_mutex_lock (&lock);
  *total = CAPACITY;
  if (available != NULL)
    *available = CAPACITY - n_allocated;
  g_mutex_unlock (&lock);
  return TRUE;
}

static void
set_counter (GTorchCounter *counter, gint64 current, gint64 most)
{
  counter->current = current;
  counter->peak = most;
}

static void
plain_sync_stats (GTorchDevice *device, GTorchMemoryStats *stats, gboolean restart_peaks)
{
  GTorchCounter *all = stats->counters[GTORCH_POOL_ALL];

  g_mutex_lock (&lock);
  if (restart_peaks)
    {
      peak = n_allocated;
      n_peak = n_storages;
    }
  set_counter (&all[GTORCH_STAT_ALLOCATION], n_storages, n_peak);
  set_counter (&all[GTORCH_STAT_ACTIVE], n_storages, n_peak);
  set_counter (&all[GTORCH_STAT_ALLOCATED_BYTES], n_allocated, peak);
  set_counter (&all[GTORCH_STAT_ACTIVE_BYTES], n_allocated, peak);
  set_counter (&all[GTORCH_STAT_REQUESTED_BYTES], n_allocated, peak);
  set_counter (&all[GTORCH_STAT_RESERVED_BYTES], n_allocated, peak);
  all[GTORCH_STAT_ALLOCATION].added = n_made;
  g_mutex_unlock (&lock);
}

/* --- copies --- */

static gpointer
host_address (const GTorchImpl *impl)
{
  gpointer data = gtorch_impl_data (impl);

  return gtorch_impl_device (impl)->backend == &plain_backend ? to_host (data) : data;
}

/* Waits for whoever writes to the tensors and, since a thread has no order with others, for the current
 * stream. */
static gboolean
wait_for (GTorchDevice *device, GTorchImpl *impl, GError **error)
{
  GTorchStream *stream = gtorch_stream_peek_current (device);

  return (stream == NULL || gtorch_stream_synchronize (stream, NULL, error))
         && gtorch_impl_sync (impl, error);
}

static gboolean
plain_copy (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src, gboolean non_blocking,
            GError **error)
{
  if (!wait_for (device, src, error) || !wait_for (device, dst, error))
    return FALSE;
  if (src->numel > 0)
    memcpy (host_address (dst), host_address (src), src->numel * gtorch_dtype_size (src->dtype));
  return TRUE;
}

/* --- operations --- */

static void
keep (GTorchStorage *storage)
{
}

/* A tensor on the host with the elements of one of the device. */
static GTorchImpl *
view_on_host (GTorchImpl *impl)
{
  GTorchStorage *storage;
  GTorchImpl *view;

  if (impl == NULL || gtorch_impl_device (impl)->backend != &plain_backend)
    return impl != NULL ? gtorch_impl_ref (impl) : NULL;
  storage = gtorch_storage_new_foreign (gtorch_device_cpu (), to_host (impl->storage->data),
                                        impl->storage->n_bytes, keep, NULL);
  view = gtorch_impl_new_strided (storage, impl->dtype, impl->offset, impl->shape, impl->strides,
                                  impl->n_dims);
  gtorch_storage_unref (storage);
  view->is_number = impl->is_number;
  return view;
}

/* Computes a call as the CPU does. */
static gboolean
run_on_host (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchOpCall on_host = *call;
  g_autofree GTorchImpl **inputs = g_new0 (GTorchImpl *, call->n_inputs + 1);
  gboolean result;
  guint i, j;

  for (i = 0; i < call->n_inputs; i++)
    {
      for (j = 0; j < i && call->inputs[j] != call->inputs[i]; j++)
        ;
      inputs[i] =
          j < i && inputs[j] != NULL ? gtorch_impl_ref (inputs[j]) : view_on_host (call->inputs[i]);
    }
  for (i = 0; i < call->n_outputs; i++)
    {
      for (j = 0; j < call->n_inputs && call->inputs[j] != call->outputs[i]; j++)
        ;
      on_host.outputs[i] = j < call->n_inputs && inputs[j] != NULL
                               ? gtorch_impl_ref (inputs[j])
                               : view_on_host (call->outputs[i]);
    }
  on_host.inputs = inputs;
  on_host.device = gtorch_device_cpu ();
  result = gtorch_backend_cpu.runs[call->op->id](&on_host, NULL, error);
  gtorch_impl_clear (inputs, call->n_inputs);
  gtorch_impl_clear (on_host.outputs, call->n_outputs);
  return result;
}

/* --- the device --- */

static const GTorchDeviceInfo *
plain_get_info (GTorchDevice *device)
{
  static const GTorchDeviceInfo info = { .name = "Plain device", .n_multiprocessors = 1 };

  return &info;
}

static void
plain_device_class_init (PlainDeviceClass *class)
{
  GTorchDeviceClass *klass = (GTorchDeviceClass *) class;

  klass->get_info = plain_get_info;
  klass->alloc = plain_alloc;
  klass->free = plain_free;
  klass->get_memory_info = plain_get_memory_info;
  klass->sync_stats = plain_sync_stats;
  klass->launch = gtorch_cpu_launch;
  klass->new_stream = gtorch_cpu_stream_new;
  klass->record_stream = gtorch_cpu_stream_record;
  klass->copy = plain_copy;
}

static void
plain_device_init (PlainDevice *self)
{
}

static guint
plain_count (const gchar **reason)
{
  return 1;
}

static GTorchDevice *
plain_get (guint index, GError **error)
{
  static GTorchDevice *device;

  if (g_once_init_enter (&device))
    {
      GTorchDevice *made = g_object_new (plain_device_get_type (), NULL);

      g_assert_true (gtorch_device_set_backend (made, &plain_backend, index, NULL));
      g_once_init_leave (&device, made);
    }
  return device;
}

static GTorchRun runs[1024];

GTorchBackend plain_backend = {
  .prefix = "plain",
  .type = GTORCH_DEVICE_TYPE_PRIVATE,
  .runs = runs,
  .in_caller = TRUE,
  .autocast_dtype = GTORCH_DTYPE_BFLOAT16,
  .autocast_like = GTORCH_DEVICE_TYPE_CPU,
  .count = plain_count,
  .get = plain_get,
};

void
plain_backend_add (void)
{
  const gchar *lacking = g_getenv ("GTORCH_TEST_LACKS");
  guint i;

  g_assert_cmpuint (gtorch_n_ops, <=, G_N_ELEMENTS (runs));
  for (i = 0; i < gtorch_n_ops; i++)
    if (gtorch_backend_cpu.runs[i] != NULL && g_strcmp0 (gtorch_ops[i].name, lacking) != 0)
      runs[i] = run_on_host;
  gtorch_backend_add (&plain_backend);
}
