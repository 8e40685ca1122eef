/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-inner-types-private.h>
#include <gtorch/device/gtorch-device.h>

G_BEGIN_DECLS

/* The contract between the library and a backend, which makes one type of device work.
 * docs/writing-a-backend.md explains it with the backend of the tests as its example.
 *
 * A backend has a GTorchBackend, by which devices are found, and a subclass of GTorchDevice that fills in
 * the tables below. Optional members may be NULL: without graphs, graphs record the calls and call the
 * operations again on replay; without pools, pools are built on top of alloc. A backend whose work is done
 * by the host uses the queues of cpu/gtorch-cpu-device.h. */

#define GTORCH_N_DEVICE_TYPES 3

/* The number of devices that a process may use, the CPU (slot 0) among them; a thread has a current stream
 * of each. */
#define GTORCH_MAX_DEVICES 18

struct _GTorchMemoryStats;
struct _GTorchDeviceSample;
struct _GTorchGraphBackend;
struct _GTorchPoolBackend;
struct _GTorchSharedEvents;
struct _GTorchShareBackend;

/* To be called with each queue (gtorch_stream_get_queue ()) after whose present work the further work of the
 * stream now comes. */
typedef void (*GTorchJoinedFunc) (GTorchStream *stream, gpointer queue);

/* --- identity --- */

/* What gtorch_get_build_info () tells. */
typedef struct
{
  const gchar *key, *value;
  gchar *(*dup) (void); /* instead of the value */
} GTorchFact;

/* How the devices of a type are found. */
typedef struct
{
  const gchar *prefix; /* "cuda": a device is called "cuda:1", the CPU is called "cpu" */
  GTorchDeviceType type;
  const GTorchRun *runs; /* by the id of the operation */
  /* By the id of the operation, too. For an entry that is NULL the CPU's function is called, which reads the
   * values on the host (optional: all are). */
  const GTorchQuery *queries;
  gboolean in_caller;    /* the calling thread does the work of the default stream */
  gboolean copies_alone; /* copy () between the device and pinned memory need not wait */
  guint8 autocast_dtype; /* default dtype of mixed precision */
  guint8 autocast_like;  /* GTorchDeviceType whose casts, listed in the rows, this type follows */
  guint8 dlpack_type;    /* the DLDeviceType of DLPack; 0: none */
  const GTorchFact
      *facts; /* how it was built and what it found, ended by an entry of 0 (optional) */

  /* Returns the number of devices. Where it is 0, sets *reason (unless reason is NULL) to a translated
   * static string. Must not do anything that breaks a child forked later. */
  guint (*count) (const gchar **reason);
  /* Returns the device, which lives as long as the process; index is below the count. Fails if the process
   * can no longer use the device, for example after a fork. */
  GTorchDevice *(*get) (guint index, GError **error);
  /* Returns whether operations work on the device (optional: NULL means that they do). */
  gboolean (*is_usable) (GTorchDevice *device, GError **error);
} GTorchBackend;

/* Facts about a device; the ones that a backend does not know are 0 or NULL. */
typedef struct
{
  const gchar *name; /* of the product, such as "NVIDIA H200" */
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

struct _GTorchDeviceClass
{
  GObjectClass parent_class;

  /* Returns the facts, which the device owns. */
  const GTorchDeviceInfo *(*get_info) (GTorchDevice *device);
  /* Fills in what the backend knows about the load of the device (optional). May block; called in any
   * thread. */
  gboolean (*take_sample) (GTorchDevice *device, struct _GTorchDeviceSample *sample,
                           GError **error);

  /* --- memory --- */

  /* Returns a storage of n_bytes, aligned to at least 64 bytes, whose fields other than data and n_bytes
   * are 0; NULL with OUT_OF_MEMORY. Must not wait for the device. */
  GTorchStorage *(*alloc) (GTorchDevice *device, gsize n_bytes, GError **error);
  /* Frees the memory and the storage. Enqueued work may still use the memory. */
  void (*free) (GTorchDevice *device, GTorchStorage *storage);
  /* Returns a storage that wraps memory allocated elsewhere. free_func is called, in any thread, when
   * nothing uses the memory any more. is_managed: the host can access the memory as well (optional: NULL if
   * nobody else can allocate memory of the device). */
  GTorchStorage *(*adopt) (GTorchDevice *device, gpointer data, gsize n_bytes, gboolean is_managed,
                           GDestroyNotify free_func, gpointer free_data, GError **error);
  /* Gets the size of the device's memory, and how much of it is free for all programs. With available NULL
   * it must neither fail nor touch the device. */
  gboolean (*get_memory_info) (GTorchDevice *device, guint64 *available, guint64 *total,
                               GError **error);
  /* Brings the statistics up to date, and restarts the allocator's own peaks if restart_peaks is set.
   * Called with the statistics locked. For allocators that do not write into the statistics themselves
   * (optional). */
  void (*sync_stats) (GTorchDevice *device, struct _GTorchMemoryStats *stats,
                      gboolean restart_peaks);
  /* Returns cached memory to the system (optional: NULL if nothing is cached). */
  void (*empty_cache) (GTorchDevice *device);
  const struct _GTorchPoolBackend *pools;   /* memory/gtorch-memory-pool-private.h (optional) */
  const struct _GTorchShareBackend *shares; /* memory/gtorch-share-private.h (optional) */

  /* --- queues --- */

  /* Runs the call on the stream, or enqueues it. The caller may free what the call points to when this
   * returns. */
  gboolean (*launch) (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                      GError **error);
  /* Returns a stream (stream/gtorch-stream-private.h). Priority 0 is normal, negative priorities go first.
   * If handle is not NULL, the stream wraps the native queue *handle, or the driver's default queue if
   * *handle is NULL; a backend without such queues fails with NOT_SUPPORTED. */
  GTorchStream *(*new_stream) (GTorchDevice *device, gint priority, const gpointer *handle,
                               GError **error);
  /* Gets the range of priorities (optional: NULL means that 0 is the only one). */
  void (*get_priorities) (GTorchDevice *device, gint *least, gint *greatest);
  /* Keeps the memory from being reused until the work now enqueued on the stream is done. */
  gboolean (*record_stream) (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                             GError **error);
  /* Makes the further work of the stream, or the host if stream is NULL, wait for work of other streams
   * that may write to the storage (optional: NULL where the timelines take care of it). */
  gboolean (*order_storage) (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                             GTorchJoinedFunc joined, GError **error);
  /* Waits for all streams, and sets is_over once their work is done, even if it failed (optional: waits for
   * all timelines of the device). */
  gboolean (*synchronize) (GTorchDevice *device, GCancellable *cancellable, gboolean *is_over,
                           GError **error);
  const struct _GTorchSharedEvents *shared_events; /* stream/gtorch-fence-private.h (optional) */

  /* --- copies --- */

  /* Copies between this device and another or the host, ordered with the current streams. Both tensors are
   * contiguous and have the same shape and dtype. */
  gboolean (*copy) (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src, gboolean non_blocking,
                    GError **error);
  /* Reads the elements of a contiguous tensor, ordered with the current stream, and waits for them. Not
   * called during a capture (optional: by default copy is used). */
  gboolean (*read) (GTorchDevice *device, GTorchImpl *src, gpointer to, GError **error);
  /* Returns whether the device can access the memory of the peer, and enables the access if enable is set
   * (optional: NULL means that it cannot). */
  gboolean (*access_peer) (GTorchDevice *device, GTorchDevice *peer, gboolean enable,
                           GError **error);

  /* --- graphs --- */

  const struct _GTorchGraphBackend *graphs; /* graph/gtorch-capture-private.h (optional) */
};

#define GTORCH_DEVICE_GET_CLASS(object) \
  (G_TYPE_INSTANCE_GET_CLASS ((object), GTORCH_TYPE_DEVICE, GTorchDeviceClass))

/* All backends by type; the last slot is for a backend that a program adds. */
extern const GTorchBackend *gtorch_backends[GTORCH_N_DEVICE_TYPES];

/* Adds a backend of type GTORCH_DEVICE_TYPE_PRIVATE. Must be called before any of its devices is
 * looked up. */
void gtorch_backend_add (const GTorchBackend *backend);
/* Sets backend and index of a new device and allocates a slot for it. Returns FALSE if there are too many
 * devices. */
gboolean gtorch_device_set_backend (GTorchDevice *device, const GTorchBackend *backend, guint index,
                                    GError **error);
/* Returns the device with the index, or NULL with an error that contains the name that the program asked
 * for and the reason. */
GTorchDevice *gtorch_backend_find (const GTorchBackend *backend, guint64 index, const gchar *name,
                                   GError **error);
/* Tells the device manager that the number of devices, which was only an estimate so far, is now known. */
void gtorch_device_manager_recount (void);
/* Marks the device as unusable and takes the reason; only the first reason is kept. */
void gtorch_device_fail (GTorchDevice *device, GError *reason);

G_END_DECLS
