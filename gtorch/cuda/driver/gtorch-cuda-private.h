/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-driver-private.h>
#include <gtorch/memory/gtorch-allocator-private.h>
#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

typedef GTorchQueue GTorchCudaLane; /* the queue of a GPU */

struct _GTorchIter;
struct _GTorchPool;
typedef struct _GTorchCudaArena GTorchCudaArena;
typedef struct _GTorchCudaBlock GTorchCudaBlock;
typedef struct _GTorchCudaDevice GTorchCudaDevice;
typedef struct _GTorchCudaMagazine GTorchCudaMagazine;
typedef struct _GTorchCudaStream GTorchCudaStream;

/* --- devices (gtorch-cuda-device.c) --- */
#define GTORCH_CUDA_MAX_DEVICES 16
#define GTORCH_CUDA_N_SUMS      3 /* number of sums that a magazine keeps */

struct _GTorchCudaDevice
{
  GTorchDevice parent_instance;
  CUdevice handle;
  CUcontext context; /* the primary context; NULL until it is needed */
  gchar name[256];
  GTorchDeviceInfo info;
  gint n_multiprocessors;
  gboolean has_vmm;
  guint peers;   /* bit i: may use the memory of CUDA device i; atomic */
  guint readers; /* bit i: CUDA device i may use this one's memory, also future pages; atomic */
  guint64 total_memory;
  gchar pci_id[32];
  gchar uuid[48];
  GMutex lock;             /* protects the fields up to async_pool */
  GCond settled;           /* signals that no thread waits for the context any more */
  guint n_settling;        /* threads that wait for the context; no capture begins meanwhile */
  GPtrArray *lanes;        /* GTorchCudaLane, in the order of their index */
  GTorchCudaLane *newest;  /* head of a list of all lanes; atomic, read without the lock */
  GPtrArray *arenas;       /* all arenas, of lanes and of pools */
  GPtrArray *dead_pools;   /* pools whose memory could not be freed yet */
  GArray *dead_graphs;     /* freed graphs that the device may still be executing */
  GTorchCudaBlock *held;   /* freed while a capture had several lanes; linked by list_next */
  GTorchCudaBlock *limbo;  /* freed blocks that other lanes may still use; linked by list_next */
  CUstream signal;         /* wakes main loops; made on first use */
  CUmemoryPool async_pool; /* the driver's memory pool, if it is the backend */
  GMutex release_lock;     /* protects released */
  GArray *released;        /* GTorchCudaReleased */
  GMutex event_lock;       /* protects the next three fields; also taken by driver threads */
  GArray *events[2];       /* unused CUevents: without, with timing */
  GArray *retired;         /* CUevents to destroy when the driver may be called */
  GArray *sleepers;        /* Sleepers of waiting threads; made on first use */
  GTorchCudaMagazine *magazines;    /* of all threads; locked with the statistics, as is rooms */
  gint64 rooms[GTORCH_CUDA_N_SUMS]; /* the magazines' rooms, added up */
  gpointer report;                  /* GtReport in pinned memory, made on first use; atomic */
};

#define GTORCH_CUDA_DEVICE(device) ((GTorchCudaDevice *) (device))

GType gtorch_cuda_device_get_type (void);
/* Makes the device's context current, and creates it first if there is none. */
gboolean gtorch_cuda_device_activate (GTorchCudaDevice *device, GError **error);
/* --- NVIDIA's management library (gtorch-cuda-nvml.c) --- */
gboolean gtorch_cuda_take_sample (GTorchDevice *device, struct _GTorchDeviceSample *sample,
                                  GError **error);
gchar *gtorch_cuda_nvml_dup_version (GError **error);
/* Returns how many GPUs the driver will show this program, without initialising it; -1 if that is unknown. */
gint gtorch_cuda_nvml_count (void);

/* --- the memory of other GPUs (gtorch-cuda-peer.c) --- */
gboolean gtorch_cuda_access_peer (GTorchDevice *device, GTorchDevice *peer, gboolean enables,
                                  GError **error);
/* Enables peer access if copies gain by it; tries only once. */
void gtorch_cuda_try_peer (GTorchCudaDevice *device, GTorchCudaDevice *peer);

/* --- events shared with other processes (gtorch-cuda-ipc.c) --- */
extern const struct _GTorchSharedEvents gtorch_cuda_shared_events;
void gtorch_cuda_shared_event_unref (gpointer event);
/* Makes a fence that wraps an event of the device; the caller fills in the other fields. */
GTorchFence *gtorch_cuda_fence_new (GTorchCudaDevice *device, CUevent event);

CUevent gtorch_cuda_event_get (GTorchCudaDevice *device, gboolean timing, GError **error);
void gtorch_cuda_event_put (GTorchCudaDevice *device, CUevent event, gboolean timing);
/* Returns FALSE with an error that a kernel reported; called after a wait (gtorch-cuda-report.c). */
gboolean gtorch_cuda_check_report (GTorchCudaDevice *device, GError **error);

/* Returns the device if it was requested before, else NULL. */
GTorchCudaDevice *gtorch_cuda_device_peek (guint index);

/* --- memory (gtorch-cuda-arena.c, gtorch-cuda-allocator.c) --- */

/* The memory of one storage, or an unmapped hole in the addresses of an arena. */
struct _GTorchCudaBlock
{
  GTorchStorage storage; /* must be first: an allocated block is its storage */
  GTorchCudaArena *arena;
  gsize offset, size;           /* in the arena; multiples of 512 */
  GTorchCudaBlock *prev, *next; /* neighbours by address */
  GTorchCudaBlock *list_prev, *list_next;
  guint8 state;
  guint segment; /* the segment's index, in the first block of a segment */
  /* a GTORCH_BLOCK_… state; protected by the lock of the statistics or of a magazine: readers take all */
  guint8 use;
  gsize requested;        /* protected like use, as are the fields below */
  GTorchMemorySite *site; /* the place that allocated the block, or NULL */
  gboolean is_oversize;   /* counted as an oversize allocation */
  gboolean in_oversize;   /* the segment that begins with this block is counted as oversize */
  guint64 uses;           /* bit i: lane i, other than the arena's own, has used the block */
  CUevent *events;        /* the events that a block in limbo waits for, NULL-terminated */
};

/* The granularity of an arena's mappings, and the size from which on a storage gets a single mapping. */
#define GTORCH_CUDA_PAGE      (G_GUINT64_CONSTANT (2) << 20)
#define GTORCH_CUDA_ONE_PIECE (G_GUINT64_CONSTANT (64) << 20)

/* A page of memory between two arenas. It stays counted in the pool of the former one. */
typedef struct
{
  CUmemGenericAllocationHandle handle;
  gsize size;
  guint pool;
  gboolean is_oversize;
} GTorchCudaPage;

/* Makes an arena of reserved addresses for one lane and pool, where pages are mapped as needed. The caller
 * locks arenas. The statistics count pages and free memory between used blocks. */
GTorchCudaArena *gtorch_cuda_arena_new (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool,
                                        GError **error);
/* Makes an arena of separate segments. With `direct`, freed memory is not cached. */
GTorchCudaArena *gtorch_cuda_arena_new_segments (GTorchCudaDevice *device, GTorchCudaLane *lane,
                                                 guint pool, gboolean direct);
static inline GTorchCudaLane *
gtorch_cuda_arena_get_lane (const GTorchCudaArena *arena)
{
  return *(GTorchCudaLane *const *) arena;
}

guint gtorch_cuda_arena_get_pool (GTorchCudaArena *arena);
GMutex *gtorch_cuda_arena_get_lock (GTorchCudaArena *arena);
/* Takes a block from free memory; returns NULL if there is no room. */
GTorchCudaBlock *gtorch_cuda_arena_take (GTorchCudaArena *arena, gsize n_bytes);
/* Maps pages for at least n_bytes in one piece. */
CUresult gtorch_cuda_arena_grow (GTorchCudaArena *arena, gsize n_bytes);
void gtorch_cuda_arena_give (GTorchCudaArena *arena, GTorchCudaBlock *block);
/* Waits for the lane and releases free pages; returns how many bytes were released. */
gsize gtorch_cuda_arena_trim (GTorchCudaArena *arena);
/* Returns whether the arena is made of pages. */
gboolean gtorch_cuda_arena_has_pages (GTorchCudaArena *arena);
/* Returns how many bytes are in free pages of at least this size. */
gsize gtorch_cuda_arena_get_spare (GTorchCudaArena *arena, gsize least);
/* Waits for the lane and moves free pages of at least this size to lent (GTorchCudaPage) until n_bytes are
 * reached. */
void gtorch_cuda_arena_lend (GTorchCudaArena *arena, gsize n_bytes, gsize least, GArray *lent);
/* Maps the lent pages in one piece; releases those that cannot be mapped. */
void gtorch_cuda_arena_adopt (GTorchCudaArena *arena, GArray *lent);
/* Returns the size of the largest free block. */
gsize gtorch_cuda_arena_largest (GTorchCudaArena *arena);
gsize gtorch_cuda_arena_get_mapped (GTorchCudaArena *arena);
/* Lets another GPU access the mapped pages. */
CUresult gtorch_cuda_arena_allow (GTorchCudaArena *arena, GTorchCudaDevice *reader);
/* Implements GTorchAllocator.list_blocks for one arena. */
void gtorch_cuda_arena_list (GTorchCudaArena *arena, GArray *blocks);
/* Checks all invariants of the lists; for tests. */
gboolean gtorch_cuda_arena_is_sound (GTorchCudaArena *arena);

/* Makes an arena of the configured backend and adds it to the device, whose lock must be held. With
 * `direct`, freed memory is not cached. `owner` is a private pool or NULL; `captured`: for captures. */
GTorchCudaArena *gtorch_cuda_make_arena (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool,
                                         gboolean direct, struct _GTorchPool *owner,
                                         gboolean captured, GError **error);
/* Waits for the device, and returns all free memory to its arenas. */
void gtorch_cuda_wait_all (GTorchCudaDevice *device);
GTorchStorage *gtorch_cuda_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
/* Returns the size of the block that n_bytes need. */
gsize gtorch_cuda_round (GTorchCudaDevice *device, gsize n_bytes, gboolean *is_small);
/* Allocates from an arena of the current lane; `size` is n_bytes rounded. */
GTorchStorage *gtorch_cuda_alloc_from (GTorchCudaDevice *device, GTorchCudaLane *lane,
                                       GTorchCudaArena *arena, gsize n_bytes, gsize size,
                                       GError **error);
void gtorch_cuda_free (GTorchDevice *device, GTorchStorage *storage);
/* Calls func for each arena of the device, with the device's lock held. */
void gtorch_cuda_foreach_arena (GTorchCudaDevice *device,
                                void (*func) (GTorchCudaArena *arena, gpointer data),
                                gpointer data);
void gtorch_cuda_list_blocks (GTorchDevice *device, GArray *blocks);
void gtorch_cuda_empty_cache (GTorchDevice *device);
void gtorch_cuda_settle (GTorchDevice *device);

void gtorch_cuda_note_use (GTorchStorage *storage, GTorchCudaLane *lane);
/* Notes that work on the lane uses the storage, so that the memory is not reused before that work ends. */
static inline void
gtorch_cuda_use_storage (GTorchStorage *storage, GTorchCudaLane *lane)
{
  GTorchCudaBlock *block = (GTorchCudaBlock *) storage;

  if (G_UNLIKELY (storage->free_func != NULL || gtorch_cuda_arena_get_lane (block->arena) != lane))
    gtorch_cuda_note_use (storage, lane);
}

/* Returns whether work on the lane, or if it is NULL on any lane except `but`, has used the storage. */
gboolean gtorch_cuda_is_used (GTorchStorage *storage, GTorchCudaLane *lane, GTorchCudaLane *but);

/* --- copies from and to pinned memory of the host (gtorch-host-allocator.c) --- */

/* Orders further work on the lane after the copies from and to the storage that are in progress. */
gboolean gtorch_host_order (GTorchStorage *storage, GTorchCudaLane *lane, GError **error);
/* Notes that the last work of the stream is a copy from or to the storage, whose users wait for it. */
gboolean gtorch_host_note_copy (GTorchStorage *storage, GTorchStream *stream, GError **error);
/* Excludes the memory from reuse for ever, as the end of the work on it is unknown. gtorch_host_get_lost ()
 * returns how many bytes were lost in total. */
void gtorch_host_lose (GTorchStorage *storage);
guint64 gtorch_host_get_lost (void);

/* --- the work that a device was given (gtorch-cuda-failure.c) --- */

#define GTORCH_CUDA_N_NOTES 128

/* The note of a piece of work; its fields are accessed atomically. */
typedef struct
{
  guint64 number;
  const gchar *what; /* name of the operation; NULL if nothing was enqueued */
} GTorchCudaNote;

/* Begins a piece of work. All code that enqueues work runs between this call and gtorch_cuda_note_end (). */
void gtorch_cuda_note_begin (GTorchCudaLane *lane, const gchar *what);
/* Begins another piece of work with the same name, after the first one was waited for. */
void gtorch_cuda_note_next (GTorchCudaLane *lane);
/* Ends the piece of work and returns the result unchanged. */
gboolean gtorch_cuda_note_end (GTorchCudaLane *lane, gboolean result);
/* Marks the pieces of work up to this number as done. */
void gtorch_cuda_note_done (GTorchCudaLane *lane, guint64 number);

/* --- streams (gtorch-cuda-stream.c) --- */

/* A queue of the driver with its memory, called a lane. It is never destroyed, as the driver may be gone by
 * then; a stream takes one, and a later stream reuses it. */
struct _GTorchQueue
{
  CUstream handle;
  GTorchCudaDevice *device;
  guint index; /* index in device->lanes, and of its bit in a block's uses (at most 63) */
  gint priority;
  gboolean is_foreign;                /* whether the program made the queue */
  gint n_users;                       /* number of streams that use the queue; atomic */
  GTorchCudaArena *small, *large;     /* made on first use */
  GTorchCudaArena *direct[2];         /* the arenas used while caching is off */
  struct _GTorchCudaCapture *capture; /* atomic; written under the device's lock, as is before */
  CUevent before;                     /* recorded after the work that precedes the capture */
  GTorchStorage *workspace;           /* workspace of cuBLASLt; made on first use */
  gpointer bounce;                    /* pinned buffer for small results; made on first use */
  gboolean bounce_is_taken;           /* atomic */
  GTorchCudaLane *next;               /* the next older lane of the device */
  guint64 enqueued, done; /* atomic: number of pieces of work noted; number known to be done */
  GTorchCudaNote notes[GTORCH_CUDA_N_NOTES]; /* piece n is at n modulo GTORCH_CUDA_N_NOTES */
  GTorchSite *sites; /* one for each note; sites and cell exist only with GTORCH_CHECK=errors */
  guint32 *cell;     /* number of the last piece that the device completed, in pinned memory */
};

struct _GTorchCudaStream
{
  GTorchStream parent_instance;
  GTorchCudaLane *lane;
  GArray *joined; /* with auto-sync: number of pieces waited for (guint64), by lane index */
};

#define GTORCH_CUDA_STREAM(stream) ((GTorchCudaStream *) (stream))
#define GTORCH_IS_CUDA_STREAM(stream) \
  (G_TYPE_CHECK_INSTANCE_TYPE ((stream), gtorch_cuda_stream_get_type ()))

GType gtorch_cuda_stream_get_type (void);
GTorchStream *gtorch_cuda_stream_new (GTorchDevice *device, gint priority, const gpointer *handle,
                                      GError **error);
void gtorch_cuda_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest);
gboolean gtorch_cuda_order_storage (GTorchDevice *device, GTorchStorage *storage,
                                    GTorchStream *stream, GTorchJoinedFunc joined, GError **error);
gboolean gtorch_cuda_record_stream (GTorchDevice *device, GTorchStorage *storage,
                                    GTorchStream *stream, GError **error);
gboolean gtorch_cuda_synchronize (GTorchDevice *device, GCancellable *cancellable,
                                  gboolean *is_over, GError **error);
/* Makes the device's context current; FALSE if the stream has no queue. */
gboolean gtorch_cuda_stream_prepare (GTorchStream *stream, GError **error);
/* Returns the lane of the calling thread's current stream; NULL with an error if there is none. */
GTorchCudaLane *gtorch_cuda_current_lane (GTorchDevice *device, GError **error);

/* Returns the number of the lane's last piece of work. */
static inline guint64
gtorch_cuda_lane_enqueued (GTorchCudaLane *lane)
{
  return __atomic_load_n (&lane->enqueued, __ATOMIC_RELAXED);
}

/* Waits for the work of the lane, and returns FALSE if that or one of its kernels has failed. */
gboolean gtorch_cuda_lane_synchronize (GTorchCudaLane *lane, const gchar *what, GError **error);
/* Copies n_bytes from the GPU to `to` and waits for the copy. */
gboolean gtorch_cuda_read (GTorchCudaLane *lane, gpointer to, gconstpointer from, gsize n_bytes,
                           GError **error);

static inline guint64
gtorch_cuda_lane_bit (const GTorchCudaLane *lane)
{
  return G_GUINT64_CONSTANT (1) << MIN (lane->index, 63);
}

/* --- kernels (gtorch-cuda-kernel.c) --- */

/* These functions open one of NVIDIA's libraries other than the driver, and look up a symbol in it. */
gpointer gtorch_cuda_library_open (const gchar *soname, GError **error);
gpointer gtorch_cuda_library_symbol (gpointer library, const gchar *soname, const gchar *name,
                                     GError **error);

/* The kernels of one source file, in one embedded image. */
typedef struct
{
  const gchar *name;
  const void *image; /* NULL: this build was made without kernels */
  CUlibrary library;
  GMutex lock;
} GTorchCudaFamily;

/* One kernel, which takes one struct by value. The variables are static and filled on the first launch. */
typedef struct
{
  CUkernel kernel;
  gsize n_bytes; /* size of the parameter struct; 0 if not queried yet */
  CUfunction functions[GTORCH_CUDA_MAX_DEVICES]; /* the functions, by index of the device */
} GTorchCudaKernel;
/* Finds the kernel `name` in the family. */
gboolean gtorch_cuda_kernel_get (GTorchCudaKernel *self, GTorchCudaFamily *family,
                                 const gchar *name, GError **error);

/* Declares the image that was built from kernels/<name>.cu; its address is NULL if there is none. */
#define GTORCH_CUDA_IMAGE(name) \
  extern const guint8 gtorch_fatbin_##name[] __attribute__ ((weak, visibility ("hidden")));

/* The kernels of pointwise and reduce operations, indexed by GTorchOpClass.loop. */
typedef struct
{
  const gchar *name;
  GTorchCudaFamily *family;
} GTorchCudaLoop;

extern const GTorchCudaLoop gtorch_cuda_pointwise_kernels[], gtorch_cuda_reduce_kernels[];
/* The kernels found so far, by loop, dtype and form; the arrays are generated. */
#define GTORCH_CUDA_N_LOOP_FORMS 3
extern GTorchCudaKernel gtorch_cuda_pointwise_loaded[][GTORCH_N_DTYPES][GTORCH_CUDA_N_LOOP_FORMS],
    gtorch_cuda_reduce_loaded[][GTORCH_N_DTYPES][GTORCH_CUDA_N_LOOP_FORMS];
/* Suffixes of kernel names by dtype, such as "f32". */
extern const gchar *const gtorch_cuda_dtype_suffixes[];

typedef struct
{
  guint grid[3], block[3], shared;
} GTorchCudaLaunch;

gboolean gtorch_cuda_kernel_launch (GTorchCudaKernel *self, GTorchCudaLane *lane,
                                    const GTorchCudaLaunch *launch, gconstpointer parameters,
                                    GError **error);

/* Finds the kernel by its name, unless it was found before, and launches it along one dimension. */
gboolean gtorch_cuda_kernel_run (GTorchCudaKernel *self, GTorchCudaFamily *family,
                                 const gchar *name, GTorchCudaLane *lane, guint64 blocks,
                                 guint threads, gconstpointer parameters, GError **error);

/* Returns the smallest power of 2 that is at least n, but at most `most`. */
static inline guint
gtorch_cuda_power_of_two (guint64 n, guint most)
{
  guint result = 1;

  while (result < n && result < most)
    result *= 2;
  return result;
}

/* --- operations --- */
gboolean gtorch_cuda_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                             GError **error);
gboolean gtorch_cuda_copy_here (GTorchImpl *dst, GTorchImpl *src, GTorchCudaLane *lane,
                                GError **error);
gboolean gtorch_cuda_fill_with (GTorchImpl *dst, guint dtype, gconstpointer value,
                                GTorchCudaLane *lane, GError **error);
/* Implement GTorchDeviceClass.read and .copy. */
gboolean gtorch_cuda_read_tensor (GTorchDevice *device, GTorchImpl *src, gpointer to,
                                  GError **error);
gboolean gtorch_cuda_copy (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src,
                           gboolean non_blocking, GError **error);

G_END_DECLS
