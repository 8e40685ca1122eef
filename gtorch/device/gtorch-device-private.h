/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-wait.h>
#include <gtorch/device/gtorch-device.h>
#include <gtorch/base/gtorch-inner-types-private.h>

G_BEGIN_DECLS

#define GTORCH_N_DEVICE_TYPES 2

/* The CPU is slot 0, CUDA device i is slot 1 + i: where a thread keeps its current streams. */
#define GTORCH_MAX_DEVICES 17

struct _GTorchDevice
{
  GObject parent_instance;
  guint8 type; /* GTorchDeviceType */
  gint16 index;
  guint16 slot;
  const gchar *string;          /* "cpu", "cuda:1" */
  GTorchStream *default_stream; /* atomically */
  GTorchStream *no_stream;      /* stands for the default one while that cannot be made */
  GTorchGenerator *generator;
  gint matmul_precision; /* GTorchPrecision; atomically */
  gint conv_precision;
  gboolean benchmark; /* atomically, as … */
  gboolean deterministic;
  gint wait_policy; /* GTorchWaitPolicy */
  GTorchAllocator *allocator;
  GThread *owner;        /* where memory-pressure is emitted */
  GMainContext *context; /* … and error */
  GError *failure;       /* atomically; set once: why nothing works on it any more */
  guint64 pressure_threshold;
  guint64 pressure_mark; /* atomically: emit when that much is allocated */
};

struct _GTorchMemoryStats;
struct _GTorchPool;
struct _GTorchDeviceSample;
struct _GTorchGraphBackend;
struct _GTorchSharedEvents;

typedef struct
{
  gint major, minor;
  guint n_multiprocessors;
  guint threads_per_multiprocessor;
  guint warp_size;
  gsize max_shared_memory;
  gsize l2_size;
  const gchar *pci_id;
  const gchar *uuid;
  gboolean integrated;
  const gchar *driver_version;
} GTorchDeviceInfo;

/* The contract of a backend. Its devices are made once and live as long as the process. Streams are
 * subclasses of GTorchStream (gtorch-stream-private.h). */
struct _GTorchDeviceClass
{
  GObjectClass parent_class;

  /* The product's name, for people. Owned by the device. */
  const gchar *(*get_name) (GTorchDevice *device);
  /* What else is to be said of it (optional). Owned by the device. */
  const GTorchDeviceInfo *(*get_info) (GTorchDevice *device);
  /* Called when the device becomes the thread's current one (optional). */
  gboolean (*make_current) (GTorchDevice *device, GError **error);

  /* A storage with room for n_bytes, at least 64-byte aligned, with everything but data, n_bytes and device
   * zero. NULL with OUT_OF_MEMORY. Must not wait for the device. */
  GTorchStorage *(*alloc) (GTorchDevice *device, gsize n_bytes, GError **error);
  /* Takes the storage, too. Work that was launched on it is still allowed to be under way. */
  void (*free) (GTorchDevice *device, GTorchStorage *storage);
  /* The same from a pool (optional: gtorch-memory-pool.c does it). free gives it back. */
  GTorchStorage *(*alloc_in) (GTorchDevice *device, struct _GTorchPool *pool, gsize n_bytes,
                              gboolean captured, GError **error);
  /* Of those: the pool of what was allocated in a capture, else NULL; gives back what nobody has, to be
   * waited for; the last reference is gone. */
  struct _GTorchPool *(*get_pool) (GTorchStorage *storage);
  void (*trim_pool) (GTorchDevice *device, struct _GTorchPool *pool);
  void (*drop_pool) (GTorchDevice *device, struct _GTorchPool *pool);
  /* A storage of memory that others have allocated. free_func is called, in any thread, when nothing uses it
   * any more. is_managed: it is the host's as well (optional: nobody else has memory of the device). */
  GTorchStorage *(*adopt) (GTorchDevice *device, gpointer data, gsize n_bytes, gboolean is_managed,
                           GDestroyNotify free_func, gpointer free_data, GError **error);
  /* How many bytes of memory the device has. */
  guint64 (*get_total_memory) (GTorchDevice *device);
  /* How much of it nobody has, and all, as whoever gives it away says now. */
  gboolean (*get_memory_info) (GTorchDevice *device, guint64 *available, guint64 *total,
                               GError **error);
  /* Optional, for allocators that do not write into the statistics themselves: brings them up to date;
   * begins again with its own peaks. Both with the statistics locked. */
  void (*sync_stats) (GTorchDevice *device, struct _GTorchMemoryStats *stats);
  void (*reset_peak) (GTorchDevice *device);
  /* Gives memory back that nobody holds. */
  void (*empty_cache) (GTorchDevice *device);

  /* Copies between this device and another (or the CPU), in order of the current streams. Shapes are equal,
   * dtypes too, both contiguous (optional for the CPU). */
  gboolean (*copy) (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src, gboolean non_blocking,
                    GError **error);
  /* Gets the elements of a contiguous tensor, in order of the current stream, and waits for them. Nothing
   * captures (optional: copy does it). */
  gboolean (*read) (GTorchDevice *device, GTorchImpl *src, gpointer to, GError **error);
  /* Runs the call on the stream, or enqueues it. What the call points to may go when this returns. */
  gboolean (*launch) (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                      GError **error);

  /* priority 0 is normal, negative ones go first. */
  GTorchStream *(*new_stream) (GTorchDevice *device, gint priority, GError **error);
  /* Of a queue that was not made here; NULL: the one that others use by default (optional). */
  GTorchStream *(*new_external_stream) (GTorchDevice *device, gpointer handle, GError **error);
  void (*get_priorities) (GTorchDevice *device, gint *least, gint *greatest);
  /* Keeps the memory as it is until what the stream has now is done. */
  gboolean (*record_stream) (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                             GError **error);
  /* Waits for the work of other streams than the current one that may write to the storage (optional). */
  gboolean (*wait_storage) (GTorchDevice *device, GTorchStorage *storage, GError **error);
  /* The same without waiting: the stream's further work comes after it, and is known to use the storage
   * (optional: the host waits instead). */
  gboolean (*order_storage) (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                             GError **error);
  /* Waits for all streams (optional: all timelines of the device). */
  gboolean (*synchronize) (GTorchDevice *device, GCancellable *cancellable, GError **error);
  /* The wait policy is another one now (optional). */
  void (*wait_policy_changed) (GTorchDevice *device, GTorchWaitPolicy policy);
  /* Events that other processes can have (optional: there are none). */
  const struct _GTorchSharedEvents *shared_events;
  /* Captures of its own (optional: operations are kept and run again). */
  const struct _GTorchGraphBackend *graphs;
  /* Direct access to the other's memory (optional: no). */
  gboolean (*can_access_peer) (GTorchDevice *device, GTorchDevice *peer);
  gboolean (*enable_peer) (GTorchDevice *device, GTorchDevice *peer, GError **error);
  /* Fills in what it knows of the device's doings (optional). May take its time; in any thread. */
  gboolean (*take_sample) (GTorchDevice *device, struct _GTorchDeviceSample *sample,
                           GError **error);
};

#define GTORCH_DEVICE_GET_CLASS(object) \
  (G_TYPE_INSTANCE_GET_CLASS ((object), GTORCH_TYPE_DEVICE, GTorchDeviceClass))

/* What gtorch-device-manager.c knows of a kind of device. */
typedef struct
{
  const gchar *prefix;
  GTorchDeviceType type;
  guint (*count) (void);                              /* makes no context, harms no later child */
  GTorchDevice *(*get) (guint index, GError **error); /* transfer none; index below count */
  const gchar *(*reason) (void);                      /* why count () is 0, translated */
  /* Would operations work on it? NULL: then always. */
  gboolean (*is_usable) (GTorchDevice *device, GError **error);
} GTorchBackend;

extern const GTorchBackend gtorch_backend_cpu;
extern const GTorchBackend gtorch_backend_cuda;

/* Allocates without regard to captures; gtorch_call_set_output () has that. */
GTorchStorage *gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
void gtorch_device_free (GTorchDevice *device, GTorchStorage *storage);
/* The default stream, made if it is not there; NULL with an error if it cannot be made just now. */
GTorchStream *gtorch_device_make_default_stream (GTorchDevice *device, GError **error);
/* Takes the reason why the device cannot be used any more; only the first one counts. */
void gtorch_device_fail (GTorchDevice *device, GError *reason);
/* As if it had not; for tests. */
void gtorch_device_forget_failure (GTorchDevice *device);

/* FALSE with the first reason for a device that has failed. */
static inline gboolean
gtorch_device_works (GTorchDevice *device, GError **error)
{
  const GError *failure = __atomic_load_n (&device->failure, __ATOMIC_ACQUIRE);

  if (G_LIKELY (failure == NULL))
    return TRUE;
  g_propagate_error (error, g_error_copy (failure));
  return FALSE;
}

/* "cpu", "cuda:1", for messages. */
const gchar *gtorch_device_name (GTorchDevice *device);
/* Asks the application to drop what it can; for allocators, without a lock held. TRUE if anybody was
 * asked. */
gboolean gtorch_device_memory_pressure (GTorchDevice *device, guint64 n_bytes);
/* The elements of src on another device, contiguous: written to `into` if that is given, which must then be
 * contiguous and of src's shape and dtype. A new reference. */
GTorchImpl *gtorch_copy_to_device (GTorchImpl *src, GTorchDevice *device, gboolean non_blocking,
                                   GTorchImpl *into, GError **error);
/* For backends: what was only guessed when devices were counted is known now. */
void gtorch_device_manager_recount (void);
/* NULL until one is set. */
GTorchDevice *gtorch_peek_default_device (void);
/* The one with the number 0. */
GTorchDevice *gtorch_device_find_first (GTorchDeviceType type, GError **error);
/* The one without a number, which stands for whichever is current. */
GTorchDevice *gtorch_device_get_follower (GTorchDeviceType type, GError **error);
/* The current device of the type of one without a number; gtorch_device_resolved () calls it. */
GTorchDevice *gtorch_device_follow (GTorchDevice *device);

/* The device that this one stands for in this thread. Each public function does this with the devices
 * that it is given; what is private has never anything to do with one that has no number. NULL stays
 * NULL. */
static inline GTorchDevice *
gtorch_device_resolved (GTorchDevice *device)
{
  return device == NULL || G_LIKELY (device->index >= 0) ? device : gtorch_device_follow (device);
}

/* The same; NULL: the device that this thread has chosen last. */
GTorchDevice *gtorch_device_or_current (GTorchDevice *device);
/* The same; NULL: the default device. */
GTorchDevice *gtorch_device_or_default (GTorchDevice *device);
gboolean gtorch_device_can_be_current (GTorchDevice *device, GError **error);
void gtorch_device_install_math_properties (GObjectClass *klass);
void gtorch_device_install_wait_property (GObjectClass *klass);
/* The longest that a thread spins in a callback of a main loop: a tenth of a frame. */
#define GTORCH_MAIN_LOOP_SPIN_US 1600
/* What the environment asks for. */
GTorchWaitPolicy gtorch_default_wait_policy (void);
void gtorch_device_install_info_properties (GObjectClass *klass);

G_END_DECLS
