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
 * the tables below. What is optional may be NULL. A backend that leaves out graphs gets graphs that keep
 * the calls and make them again, one that leaves out pools gets pools on top of alloc, and one whose work
 * is done by the host uses the queues of cpu/gtorch-cpu-device.h. */

#define GTORCH_N_DEVICE_TYPES 3

/* The devices that a process may use: where a thread keeps its current stream of each. The CPU has slot 0. */
#define GTORCH_MAX_DEVICES 18

struct _GTorchMemoryStats;
struct _GTorchDeviceSample;
struct _GTorchGraphBackend;
struct _GTorchPoolBackend;
struct _GTorchSharedEvents;

/* --- identity --- */

/* How the devices of a type are found. */
typedef struct
{
  const gchar *prefix; /* "cuda": a device is called "cuda:1", the CPU is called "cpu" */
  GTorchDeviceType type;
  const GTorchRun *runs; /* by the id of the operation */
  gboolean in_caller;    /* work on the default stream is done by the thread that calls */
  guint8 autocast_dtype; /* to which regions of mixed precision cast unless they say otherwise */
  guint8 dlpack_type;    /* the number that DLPack has for the type; 0: none */

  /* Returns how many devices there are; 0 with the reason, translated and for ever, if that is asked for.
   * Must not harm a child that is forked later. */
  guint (*count) (const gchar **reason);
  /* Returns the device, which lives as long as the process; index is below the count. Fails if the process
   * can no longer use it, as after a fork. */
  GTorchDevice *(*get) (guint index, GError **error);
  /* Returns whether operations work on the device (optional: they do). */
  gboolean (*is_usable) (GTorchDevice *device, GError **error);
} GTorchBackend;

/* Facts about a device; those that a backend does not know are 0 or NULL. */
typedef struct
{
  const gchar *name; /* of the product */
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

  /* Owned by the device. */
  const GTorchDeviceInfo *(*get_info) (GTorchDevice *device);
  /* Fills in what the backend knows of the load of the device (optional). May block; called in any thread. */
  gboolean (*take_sample) (GTorchDevice *device, struct _GTorchDeviceSample *sample,
                           GError **error);

  /* --- memory --- */

  /* Returns a storage with room for n_bytes, at least 64-byte aligned, whose other fields than data and
   * n_bytes are 0; NULL with OUT_OF_MEMORY. Must not wait for the device. */
  GTorchStorage *(*alloc) (GTorchDevice *device, gsize n_bytes, GError **error);
  /* Frees the memory and the storage. Work that uses it may still be under way. */
  void (*free) (GTorchDevice *device, GTorchStorage *storage);
  /* Returns a storage of memory that somebody else has allocated. free_func is called, in any thread, when
   * nothing uses it any more. is_managed: the memory is the host's as well (optional: nobody else has
   * memory of the device). */
  GTorchStorage *(*adopt) (GTorchDevice *device, gpointer data, gsize n_bytes, gboolean is_managed,
                           GDestroyNotify free_func, gpointer free_data, GError **error);
  /* Returns how many bytes the device has, and how many are available to all programs. With available NULL
   * it must not fail, nor touch the device. */
  gboolean (*get_memory_info) (GTorchDevice *device, guint64 *available, guint64 *total,
                               GError **error);
  /* For allocators that do not write into the statistics themselves: brings them up to date, and starts
   * its own peaks again if restart_peaks is set. Called with the statistics locked (optional). */
  void (*sync_stats) (GTorchDevice *device, struct _GTorchMemoryStats *stats,
                      gboolean restart_peaks);
  /* Gives unused memory back to the system (optional: nothing is kept). */
  void (*empty_cache) (GTorchDevice *device);
  const struct _GTorchPoolBackend *pools; /* memory/gtorch-memory-pool-private.h (optional) */

  /* --- queues --- */

  /* Runs the call on the stream, or enqueues it. What the call points to may go when this returns. */
  gboolean (*launch) (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                      GError **error);
  /* Returns a stream (stream/gtorch-stream-private.h). Priority 0 is normal, negative ones go first. With
   * handle set the stream stands for a queue that the program has made, NULL for the driver's default one;
   * a backend without such queues fails with NOT_SUPPORTED. */
  GTorchStream *(*new_stream) (GTorchDevice *device, gint priority, const gpointer *handle,
                               GError **error);
  /* The range of priorities (optional: there is only 0). */
  void (*get_priorities) (GTorchDevice *device, gint *least, gint *greatest);
  /* Keeps the memory as it is until the present work of the stream is done. */
  gboolean (*record_stream) (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                             GError **error);
  /* Lets the further work of the stream, or for NULL the host, wait for the work of other streams that may
   * write to the storage (optional: timelines know of it). */
  gboolean (*order_storage) (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                             GError **error);
  /* Waits for all streams (optional: waits for all timelines of the device). */
  gboolean (*synchronize) (GTorchDevice *device, GCancellable *cancellable, GError **error);
  const struct _GTorchSharedEvents *shared_events; /* stream/gtorch-fence-private.h (optional) */

  /* --- copies --- */

  /* Copies between this device and another or the host, in order of the current streams. Both tensors are
   * contiguous, and have the same shape and dtype. */
  gboolean (*copy) (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src, gboolean non_blocking,
                    GError **error);
  /* Reads the elements of a contiguous tensor, in order of the current stream, and waits for them. Not
   * called in captures (optional: copy does it). */
  gboolean (*read) (GTorchDevice *device, GTorchImpl *src, gpointer to, GError **error);
  /* Returns whether the device can use the memory of the other, and if enable is set lets it (optional: it
   * cannot). */
  gboolean (*access_peer) (GTorchDevice *device, GTorchDevice *peer, gboolean enable,
                           GError **error);

  /* --- graphs --- */

  const struct _GTorchGraphBackend *graphs; /* graph/gtorch-capture-private.h (optional) */
};

#define GTORCH_DEVICE_GET_CLASS(object) \
  (G_TYPE_INSTANCE_GET_CLASS ((object), GTORCH_TYPE_DEVICE, GTorchDeviceClass))

/* All backends by their type; the last place is for one that a program adds. */
extern const GTorchBackend *gtorch_backends[GTORCH_N_DEVICE_TYPES];

/* Adds a backend of type GTORCH_DEVICE_TYPE_PRIVATE, before any of its devices is asked for. */
void gtorch_backend_add (const GTorchBackend *backend);
/* For a new device of a backend: says which one it is, and finds a slot for it. FALSE if there are too
 * many. */
gboolean gtorch_device_set_backend (GTorchDevice *device, const GTorchBackend *backend, guint index,
                                    GError **error);
/* Returns the device with the index; NULL with an error that has the name by which the program asked, and
 * the reason. */
GTorchDevice *gtorch_backend_find (const GTorchBackend *backend, guint64 index, const gchar *name,
                                   GError **error);
/* Tells the device manager that the number of devices, which was only guessed, is known now. */
void gtorch_device_manager_recount (void);
/* Takes the reason why the device cannot be used any more; only the first one counts. */
void gtorch_device_fail (GTorchDevice *device, GError *reason);

G_END_DECLS
