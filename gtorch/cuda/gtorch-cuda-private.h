/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-driver-private.h>
#include <gtorch/gtorch-allocator-private.h>
#include <gtorch/gtorch-check-private.h>
#include <gtorch/gtorch-stream-private.h>

G_BEGIN_DECLS

struct _GTorchIter;
struct _GTorchPool;
typedef struct _GTorchCudaArena GTorchCudaArena;
typedef struct _GTorchCudaBlock GTorchCudaBlock;
typedef struct _GTorchCudaDevice GTorchCudaDevice;
typedef struct _GTorchCudaMagazine GTorchCudaMagazine;
typedef struct _GTorchCudaStream GTorchCudaStream;

/* --- devices (gtorch-cuda-device.c) --- */
#define GTORCH_CUDA_MAX_DEVICES 16
#define GTORCH_CUDA_N_SUMS      3 /* that magazines keep */

struct _GTorchCudaDevice
{
  GTorchDevice parent_instance;
  CUdevice handle;
  CUcontext context; /* the primary one; NULL until it is needed */
  gchar name[256];
  GTorchDeviceInfo info;
  gint n_multiprocessors;
  gboolean has_vmm;
  guint peers;   /* bit i: may use the memory of CUDA device i; atomically */
  guint readers; /* bit i: CUDA device i may use this one's memory, pages to come too; atomically */
  guint64 total_memory;
  gchar pci_id[32];
  gchar uuid[48];
  GMutex lock;             /* of what follows */
  GCond settled;           /* nobody waits for the context any more */
  guint n_settling;        /* threads that do; no capture begins meanwhile */
  GPtrArray *lanes;        /* GTorchCudaLane, in the order of their index */
  GTorchCudaLane *newest;  /* atomically: all of them, without the lock */
  GPtrArray *arenas;       /* all of them, of lanes and of pools */
  GPtrArray *dead_pools;   /* whose memory could not go back yet */
  GArray *dead_graphs;     /* … that the device may still be at */
  GTorchCudaBlock *held;   /* freed in a capture that may use them on several lanes; by list_next */
  GTorchCudaBlock *limbo;  /* freed, but other lanes may still use them; by list_next */
  CUstream signal;         /* wakes main loops; made late */
  CUmemoryPool async_pool; /* the driver's, if that is the backend */
  GMutex release_lock;     /* of what follows */
  GArray *released;        /* GTorchCudaReleased */
  GMutex event_lock;       /* of what follows; taken by the driver's threads too */
  GArray *events[2];       /* CUevents that nobody uses: without, with timing */
  GArray *retired;         /* CUevents to be destroyed when the driver may be called */
  GArray *sleepers;        /* what threads sleep with; made late (gtorch-cuda-wait.c) */
  GTorchCudaMagazine *magazines; /* of all threads; with what follows under the statistics' lock */
  gint64 rooms[GTORCH_CUDA_N_SUMS]; /* of all of them */
  gpointer report;                  /* GtReport in pinned memory, made late; atomically */
};

#define GTORCH_CUDA_DEVICE(device) ((GTorchCudaDevice *) (device))

GType gtorch_cuda_device_get_type (void);
/* Makes the context if there is none, and it the thread's current one. */
gboolean gtorch_cuda_device_activate (GTorchCudaDevice *device, GError **error);
/* --- NVIDIA's management library (gtorch-cuda-nvml.c) --- */
gboolean gtorch_cuda_take_sample (GTorchDevice *device, struct _GTorchDeviceSample *sample,
                                  GError **error);
gchar *gtorch_cuda_nvml_dup_version (GError **error);
/* How many GPUs the driver will show this program, without initialising it; -1 if that cannot be told. */
gint gtorch_cuda_nvml_count (void);

/* --- the memory of other GPUs (gtorch-cuda-peer.c) --- */
gboolean gtorch_cuda_can_access_peer (GTorchDevice *device, GTorchDevice *peer);
gboolean gtorch_cuda_enable_peer (GTorchDevice *device, GTorchDevice *peer, GError **error);
/* The same when a copy would gain by it; tried once. */
void gtorch_cuda_try_peer (GTorchCudaDevice *device, GTorchCudaDevice *peer);

/* --- events that other processes have, too (gtorch-cuda-ipc.c) --- */
extern const struct _GTorchSharedEvents gtorch_cuda_shared_events;
void gtorch_cuda_shared_event_unref (gpointer event);
/* A fence around an event of the device's; who calls it fills in the rest. */
GTorchFence *gtorch_cuda_fence_new (GTorchCudaDevice *device, CUevent event);

CUevent gtorch_cuda_event_get (GTorchCudaDevice *device, gboolean timing, GError **error);
void gtorch_cuda_event_put (GTorchCudaDevice *device, CUevent event, gboolean timing);
/* After waiting for the device: the error that a kernel has noted, if any (gtorch-cuda-report.c). */
gboolean gtorch_cuda_check_report (GTorchCudaDevice *device, GError **error);

/* The device if anybody has asked for it yet, else NULL. */
GTorchCudaDevice *gtorch_cuda_device_peek (guint index);

/* --- memory (gtorch-cuda-arena.c, gtorch-cuda-allocator.c) --- */

/* The memory behind one storage, or a hole in the addresses of an arena. */
struct _GTorchCudaBlock
{
  GTorchStorage storage; /* first: an allocated block is its storage */
  GTorchCudaArena *arena;
  gsize offset, size;           /* in the arena; multiples of 512 */
  GTorchCudaBlock *prev, *next; /* neighbours by address */
  GTorchCudaBlock *list_prev, *list_next;
  guint8 state;
  guint segment; /* of the first block of one: its place among them */
  /* GTORCH_BLOCK_ALLOCATED; under the statistics' lock or a magazine's: who only reads takes them all */
  guint8 use;
  gsize requested;        /* this and what follows likewise */
  GTorchMemorySite *site; /* where it was allocated; NULL */
  gboolean is_oversize;   /* counted as such */
  gboolean in_oversize;   /* the segment that it is the first block of */
  guint64 uses;           /* bit i: by lane i, not the arena's own */
  CUevent *events;        /* in limbo: what must be done, ended by NULL */
};

/* Arenas are filled with multiples of this; from the other size on with one piece for a storage. */
#define GTORCH_CUDA_PAGE      (G_GUINT64_CONSTANT (2) << 20)
#define GTORCH_CUDA_ONE_PIECE (G_GUINT64_CONSTANT (64) << 20)

/* Memory that no arena has: it stays counted in the pool where it was. */
typedef struct
{
  CUmemGenericAllocationHandle handle;
  gsize size;
  guint pool;
  gboolean is_oversize;
} GTorchCudaPage;

/* Addresses reserved for one lane and pool, filled with pages as they are needed. The caller locks. Pages
 * and what is free between used blocks are counted in the device's statistics. */
GTorchCudaArena *gtorch_cuda_arena_new (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool,
                                        GError **error);
/* Of separate segments. direct: nothing is kept. */
GTorchCudaArena *gtorch_cuda_arena_new_segments (GTorchCudaDevice *device, GTorchCudaLane *lane,
                                                 guint pool, gboolean direct);
static inline GTorchCudaLane *
gtorch_cuda_arena_get_lane (const GTorchCudaArena *arena)
{
  return *(GTorchCudaLane *const *) arena;
}

guint gtorch_cuda_arena_get_pool (GTorchCudaArena *arena);
GMutex *gtorch_cuda_arena_get_lock (GTorchCudaArena *arena);
/* From free pages; NULL if there is no room. */
GTorchCudaBlock *gtorch_cuda_arena_take (GTorchCudaArena *arena, gsize n_bytes);
/* Maps pages for at least n_bytes in one piece. */
CUresult gtorch_cuda_arena_grow (GTorchCudaArena *arena, gsize n_bytes);
void gtorch_cuda_arena_give (GTorchCudaArena *arena, GTorchCudaBlock *block);
/* Waits for the lane, and gives free pages back; how many bytes. */
gsize gtorch_cuda_arena_trim (GTorchCudaArena *arena);
/* It is made of pages. */
gboolean gtorch_cuda_arena_has_pages (GTorchCudaArena *arena);
/* How many bytes are in free pages of this size or larger. */
gsize gtorch_cuda_arena_get_spare (GTorchCudaArena *arena, gsize least);
/* Waits for the lane, and takes such pages away, GTorchCudaPages, until n_bytes are reached. */
void gtorch_cuda_arena_lend (GTorchCudaArena *arena, gsize n_bytes, gsize least, GArray *lent);
/* Maps them here, in one piece; what cannot be mapped goes to the driver. */
void gtorch_cuda_arena_adopt (GTorchCudaArena *arena, GArray *lent);
/* The size of the largest free block. */
gsize gtorch_cuda_arena_largest (GTorchCudaArena *arena);
gsize gtorch_cuda_arena_get_mapped (GTorchCudaArena *arena);
/* Lets another GPU use the pages that are there. */
CUresult gtorch_cuda_arena_allow (GTorchCudaArena *arena, GTorchCudaDevice *reader);
/* As GTorchAllocator.list_blocks. */
void gtorch_cuda_arena_list (GTorchCudaArena *arena, GArray *blocks);
/* Checks every rule that the lists must obey; for tests. */
gboolean gtorch_cuda_arena_is_sound (GTorchCudaArena *arena);

/* Of the configured kind, known to the device; with its lock held. direct: nothing is kept. owner: a
 * private pool; captured: for graphs. */
GTorchCudaArena *gtorch_cuda_make_arena (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool,
                                         gboolean direct, struct _GTorchPool *owner,
                                         gboolean captured, GError **error);
/* Waits for the device, and has all that is free in its arenas. */
void gtorch_cuda_wait_all (GTorchCudaDevice *device);
GTorchStorage *gtorch_cuda_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
/* How much n_bytes take. */
gsize gtorch_cuda_round (GTorchCudaDevice *device, gsize n_bytes, gboolean *is_small);
/* From the arena of the lane, the current one; size: n_bytes rounded. */
GTorchStorage *gtorch_cuda_alloc_from (GTorchCudaDevice *device, GTorchCudaLane *lane,
                                       GTorchCudaArena *arena, gsize n_bytes, gsize size,
                                       GError **error);
void gtorch_cuda_free (GTorchDevice *device, GTorchStorage *storage);
/* Calls func for each arena of the device, locked. */
void gtorch_cuda_foreach_arena (GTorchCudaDevice *device,
                                void (*func) (GTorchCudaArena *arena, gpointer data),
                                gpointer data);
void gtorch_cuda_list_blocks (GTorchDevice *device, GArray *blocks);
void gtorch_cuda_empty_cache (GTorchDevice *device);
void gtorch_cuda_settle (GTorchDevice *device);

void gtorch_cuda_note_use (GTorchStorage *storage, GTorchCudaLane *lane);
/* Notes that work on the stream uses the storage; its memory is not given to others before that is done. */
static inline void
gtorch_cuda_use_storage (GTorchStorage *storage, GTorchCudaLane *lane)
{
  GTorchCudaBlock *block = (GTorchCudaBlock *) storage;

  if (G_UNLIKELY (storage->free_func != NULL || gtorch_cuda_arena_get_lane (block->arena) != lane))
    gtorch_cuda_note_use (storage, lane);
}

/* Has work on the lane used it, as far as that is known? NULL: on any other than `but`. */
gboolean gtorch_cuda_is_used (GTorchStorage *storage, GTorchCudaLane *lane, GTorchCudaLane *but);

/* --- copies from and to pinned memory of the host (gtorch-host-allocator.c) --- */

/* Further work on the lane comes after the copies that are under way. */
gboolean gtorch_host_order (GTorchStorage *storage, GTorchCudaLane *lane, GError **error);
/* The last work of the stream is such a copy. Who reads the storage waits for it. */
gboolean gtorch_host_note_copy (GTorchStorage *storage, GTorchStream *stream, GError **error);
/* The memory is not given to others any more: work uses it whose end nobody sees. How much that is by now. */
void gtorch_host_lose (GTorchStorage *storage);
guint64 gtorch_host_get_lost (void);

/* --- what a device has been given to do (gtorch-cuda-failure.c) --- */

#define GTORCH_CUDA_N_NOTES 128

/* Atomically. */
typedef struct
{
  guint64 number;
  const gchar *what; /* the operation; NULL: nothing was enqueued */
} GTorchCudaNote;

/* Around everything that enqueues work; what is enqueued in between belongs to it. */
void gtorch_cuda_note_begin (GTorchCudaLane *lane, const gchar *what);
/* What is enqueued from here on is another piece under the same name: the first was waited for. */
void gtorch_cuda_note_next (GTorchCudaLane *lane);
/* The result is handed through. */
gboolean gtorch_cuda_note_end (GTorchCudaLane *lane, gboolean result);
/* The pieces up to this number are done. */
void gtorch_cuda_note_done (GTorchCudaLane *lane, guint64 number);

/* --- streams (gtorch-cuda-stream.c) --- */

/* A queue of the driver's with its memory. Never destroyed (the driver may be gone before whoever would
 * do it); a stream takes one and leaves it to a later stream. */
struct _GTorchCudaLane
{
  CUstream handle;
  GTorchCudaDevice *device;
  guint index; /* in device->lanes, and its bit in a block's uses (the last: all higher, too) */
  gint priority;
  gboolean is_foreign;                /* the queue was not made here */
  gint n_users;                       /* atomically: streams */
  GTorchCudaArena *small, *large;     /* made late */
  GTorchCudaArena *direct[2];         /* the same while nothing is cached */
  struct _GTorchCudaCapture *capture; /* atomically; written with the device's lock held, as is … */
  CUevent before;                     /* behind the work from before the capture */
  GTorchStorage *workspace;           /* of cublasLt; made late */
  gpointer bounce;                    /* pinned, for small results; made late */
  gboolean bounce_is_taken;           /* atomically */
  GTorchCudaLane *next;               /* an older one of the device */
  guint64 enqueued, done; /* atomically: pieces of work noted; how many are known to be done */
  GTorchCudaNote notes[GTORCH_CUDA_N_NOTES]; /* piece n is at n modulo their number */
  GTorchSite *sites; /* of each note: made late, with GTORCH_CHECK=errors, as is … */
  guint32 *cell;     /* in pinned memory: the number of the last piece that the device has done */
};

struct _GTorchCudaStream
{
  GTorchStream parent_instance;
  GTorchCudaLane *lane;
  GArray *joined; /* with auto-sync: guint64, by index of lanes: how much of each was waited for */
};

#define GTORCH_CUDA_STREAM(stream) ((GTorchCudaStream *) (stream))
#define GTORCH_IS_CUDA_STREAM(stream) \
  (G_TYPE_CHECK_INSTANCE_TYPE ((stream), gtorch_cuda_stream_get_type ()))

GType gtorch_cuda_stream_get_type (void);
GTorchStream *gtorch_cuda_stream_new (GTorchDevice *device, gint priority, GError **error);
GTorchStream *gtorch_cuda_stream_new_external (GTorchDevice *device, gpointer handle,
                                               GError **error);
void gtorch_cuda_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest);
gboolean gtorch_cuda_wait_storage (GTorchDevice *device, GTorchStorage *storage, GError **error);
gboolean gtorch_cuda_order_storage (GTorchDevice *device, GTorchStorage *storage,
                                    GTorchStream *stream, GError **error);
gboolean gtorch_cuda_record_stream (GTorchDevice *device, GTorchStorage *storage,
                                    GTorchStream *stream, GError **error);
gboolean gtorch_cuda_synchronize (GTorchDevice *device, GCancellable *cancellable, GError **error);
/* Makes the device's context current; FALSE if the stream has no queue. */
gboolean gtorch_cuda_stream_prepare (GTorchStream *stream, GError **error);
/* Of the calling thread's current stream; NULL with an error if it could not be made. */
GTorchCudaLane *gtorch_cuda_current_lane (GTorchDevice *device, GError **error);

/* The number of the last piece of work. */
static inline guint64
gtorch_cuda_lane_enqueued (GTorchCudaLane *lane)
{
  return __atomic_load_n (&lane->enqueued, __ATOMIC_RELAXED);
}

/* Waits for the work of the lane, and for what its kernels have noted. */
gboolean gtorch_cuda_lane_synchronize (GTorchCudaLane *lane, const gchar *what, GError **error);
/* Copies n_bytes from the GPU to `to` and waits for them. */
gboolean gtorch_cuda_read (GTorchCudaLane *lane, gpointer to, gconstpointer from, gsize n_bytes,
                           GError **error);

static inline guint64
gtorch_cuda_lane_bit (const GTorchCudaLane *lane)
{
  return G_GUINT64_CONSTANT (1) << MIN (lane->index, 63);
}

/* --- kernels (gtorch-cuda-kernel.c) --- */

/* Another library of NVIDIA's, found when first wanted. */
gpointer gtorch_cuda_library_open (const gchar *soname, GError **error);
gpointer gtorch_cuda_library_symbol (gpointer library, const gchar *soname, const gchar *name,
                                     GError **error);

/* A file of kernels in one embedded image. */
typedef struct
{
  const gchar *name;
  const void *image; /* NULL: this build was made without kernels */
  CUlibrary library;
  GMutex lock;
} GTorchCudaFamily;

/* One kernel; static, filled when first launched. All take one struct by value. */
typedef struct
{
  CUkernel kernel;
  gsize n_bytes;                                 /* of the struct; 0: not asked yet */
  CUfunction functions[GTORCH_CUDA_MAX_DEVICES]; /* of the context, by index of the device */
} GTorchCudaKernel;
/* Finds name in the family. */
gboolean gtorch_cuda_kernel_get (GTorchCudaKernel *self, GTorchCudaFamily *family,
                                 const gchar *name, GError **error);

/* The image that the build made of kernels/<name>.cu, NULL where it made none. */
#define GTORCH_CUDA_IMAGE(name) \
  extern const guint8 gtorch_fatbin_##name[] __attribute__ ((weak, visibility ("hidden")));

/* Where the kernels of a pointwise or reduce operation are; by GTorchOpClass.loop. */
typedef struct
{
  const gchar *name;
  GTorchCudaFamily *family;
} GTorchCudaLoop;

extern const GTorchCudaLoop gtorch_cuda_pointwise_kernels[];
extern const GTorchCudaLoop gtorch_cuda_reduce_kernels[];
/* "f32", as in the names of kernels. */
extern const gchar *const gtorch_cuda_dtype_suffixes[];

typedef struct
{
  guint grid[3], block[3], shared;
} GTorchCudaLaunch;

gboolean gtorch_cuda_kernel_launch (GTorchCudaKernel *self, GTorchCudaLane *lane,
                                    const GTorchCudaLaunch *launch, gconstpointer parameters,
                                    GError **error);

/* Both, along one dimension. The name is looked at when the kernel is not there yet. */
gboolean gtorch_cuda_kernel_run (GTorchCudaKernel *self, GTorchCudaFamily *family,
                                 const gchar *name, GTorchCudaLane *lane, guint64 blocks,
                                 guint threads, gconstpointer parameters, GError **error);

/* One of those in gtorch-cuda-plain.c. */
GTorchCudaFamily *gtorch_cuda_plain_family (guint family);
/* A kernel that takes a GtStrided, over all of the iterator. */
gboolean gtorch_cuda_run_strided (GTorchCudaFamily *family, GTorchCudaKernel *kernel,
                                  const gchar *name, struct _GTorchIter *iter, GTorchCudaLane *lane,
                                  GError **error);

/* The least power of 2 that is n or more, but `most` at the most. */
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
/* As GTorchDeviceClass.read and .copy. */
gboolean gtorch_cuda_read_tensor (GTorchDevice *device, GTorchImpl *src, gpointer to,
                                  GError **error);
gboolean gtorch_cuda_copy (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src,
                           gboolean non_blocking, GError **error);

G_END_DECLS
