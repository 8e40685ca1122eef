/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pinned host memory, and the copies in progress from and to it. */

#include "config.h"

#include "cuda/memory/gtorch-host-allocator.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "base/gtorch-field-private.h"
#include "tensor/gtorch-hold-private.h"
#include "base/gtorch-fork-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "memory/gtorch-pinned-private.h"

/**
 * GTorchHostAllocator:
 *
 * The allocator of pinned host memory.
 *
 * Pinned memory is memory that the system neither moves nor swaps out. A GPU copies from and to such
 * memory at full speed, and asynchronously while the program continues: [method@Tensor.pin_memory]
 * returns a tensor in it, and [method@Tensor.copy_inplace] with `non_blocking` does not wait for it.
 *
 * ```c
 * g_autoptr (GTorchTensor) pinned = gtorch_tensor_pin_memory (batch, &error);
 *
 * gtorch_tensor_copy_inplace (on_gpu, pinned, TRUE, &error); // returns at once
 * ```
 *
 * There is one allocator per process, which serves all GPUs. Sizes are rounded up to powers of two, at
 * least 4096 bytes. Memory that tensors free is cached for later ones, since pinning takes long; it is
 * not reused before the copies from and to it are done. [method@HostAllocator.trim] releases cached
 * memory to the system; this happens automatically when the system reports low memory.
 *
 * With `pinned_use_cuda_host_register:True` in the configuration of the GPU
 * ([method@Allocator.configure]) memory is allocated from the system and registered with the driver,
 * which is faster for large sizes when several threads prepare it, `pinned_num_register_threads`.
 *
 * Pinned memory is not available to other programs. [property@HostAllocator:limit] limits it.
 *
 * Since: 0.1
 */

#define MIN_CLASS   12
#define N_CLASSES   63
#define TOUCH_STEP  4096
#define MAX_THREADS 128

/* A copy that the GPU may still be executing. */
typedef struct
{
  GTorchFence *fence;
  guint64 seq;
} Use;

typedef struct
{
  gpointer data;
  guint size_class;
  gboolean is_registered; /* whether the memory is the system's, registered with the driver */
  /* the device in whose context the memory was pinned; all devices can use it */
  GTorchCudaDevice *device;
  GTorchTimeline *timeline; /* timeline of the copies */
  GQueue uses;              /* Use, sorted by seq */
  GError *failure;          /* error of a copy, whose device has failed */
  gboolean is_lost;         /* whether the end of the copies is unknown */
} Block;

struct _GTorchHostAllocator
{
  GObject parent_instance;
  GMutex lock; /* protects everything, including blocks */
  guint64 limit;
  guint64 allocated;
  guint64 reserved;
  guint64 lost; /* the part of reserved that can never be reused */
  guint64 num_allocs;
  GQueue waiting;          /* freed blocks with copies in progress, in the order they were freed */
  GQueue ready[N_CLASSES]; /* blocks that can be reused */
  gboolean watches_memory;
};

G_DEFINE_TYPE (GTorchHostAllocator, gtorch_host_allocator, G_TYPE_OBJECT)

typedef GTorchHostAllocator Self;

static const GTorchField fields[] = {
  /**
   * GTorchHostAllocator:limit: (getter get_limit) (setter set_limit)
   *
   * The maximum number of bytes pinned at a time, cached ones included; 0: no limit.
   *
   * Since: 0.1
   */
  { "limit",
    GTORCH_PROPERTY_UINT64 (gtorch_host_allocator_get_limit, gtorch_host_allocator_set_limit) },
  /**
   * GTorchHostAllocator:allocated: (getter get_allocated)
   *
   * The number of bytes that tensors use. Not notified.
   *
   * Since: 0.1
   */
  { "allocated", GTORCH_PROPERTY_UINT64 (gtorch_host_allocator_get_allocated, NULL) },
  /**
   * GTorchHostAllocator:reserved: (getter get_reserved)
   *
   * The number of bytes that are pinned, in use or cached. Not notified.
   *
   * Since: 0.1
   */
  { "reserved", GTORCH_PROPERTY_UINT64 (gtorch_host_allocator_get_reserved, NULL) },
  /**
   * GTorchHostAllocator:num-allocs: (getter get_num_allocs)
   *
   * The number of times that memory was pinned since the program began. Not notified.
   *
   * Since: 0.1
   */
  { "num-allocs", GTORCH_PROPERTY_UINT64 (gtorch_host_allocator_get_num_allocs, NULL) },
};

static void
gtorch_host_allocator_class_init (GTorchHostAllocatorClass *klass)
{
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_host_allocator_init (GTorchHostAllocator *self)
{
  guint i;

  g_mutex_init (&self->lock);
  gtorch_fork_add_lock (&self->lock);
  g_queue_init (&self->waiting);
  for (i = 0; i < N_CLASSES; i++)
    g_queue_init (&self->ready[i]);
}

/**
 * gtorch_host_allocator_get_default:
 *
 * Gets the allocator of the process.
 *
 * Returns: (transfer none): the allocator, which lives as long as the process
 *
 * Since: 0.1
 */
GTorchHostAllocator *
gtorch_host_allocator_get_default (void)
{
  static gsize allocator;

  if (g_once_init_enter (&allocator))
    g_once_init_leave (&allocator, (gsize) g_object_new (GTORCH_TYPE_HOST_ALLOCATOR, NULL));
  return (GTorchHostAllocator *) allocator;
}

/* --- blocks --- */

static guint64
block_size (const Block *block)
{
  return G_GUINT64_CONSTANT (1) << block->size_class;
}

static void
use_free (gpointer data)
{
  Use *use = data;

  gtorch_fence_unref (use->fence);
  g_free (use);
}

/* Removes completed copies from the block; returns TRUE if no others remain. The lock must be held. */
static gboolean
poll_uses (Block *block)
{
  Use *use;

  while ((use = g_queue_peek_head (&block->uses)) != NULL)
    {
      if (!gtorch_fence_is_done (use->fence))
        return FALSE;
      gtorch_timeline_complete (block->timeline, use->seq, NULL);
      use_free (g_queue_pop_head (&block->uses));
    }
  return TRUE;
}

static void
make_ready (GTorchHostAllocator *self, Block *block)
{
  g_clear_error (&block->failure);
  g_queue_push_head (&self->ready[block->size_class], block); /* the most recently used first */
}

/* Makes waiting blocks whose copies are done ready; the lock must be held. */
static void
poll_waiting (GTorchHostAllocator *self)
{
  Block *block;

  while ((block = g_queue_peek_head (&self->waiting)) != NULL && poll_uses (block))
    make_ready (self, g_queue_pop_head (&self->waiting));
}

static CUresult
give_back (Block *block)
{
  CUresult result;

  gtorch_cuda_stall_begin ();
  result = block->is_registered ? gtorch_cuda.cuMemHostUnregister (block->data)
                                : gtorch_cuda.cuMemFreeHost (block->data);
  gtorch_cuda_stall_end ();
  return result;
}

static gboolean
block_free (Block *block)
{
  if (!gtorch_cuda_device_activate (block->device, NULL) || give_back (block) != CUDA_SUCCESS)
    return FALSE;
  if (block->is_registered)
    munmap (block->data, block_size (block));
  if (block->timeline != NULL)
    {
      __atomic_store_n (&block->timeline->wait, NULL, __ATOMIC_RELAXED);
      block->timeline->wait_data = NULL;
      gtorch_timeline_release (block->timeline);
    }
  g_free (block);
  return TRUE;
}

/* Frees cached blocks, large ones first, until at least n_bytes are freed. The lock must be held, but is
 * released while the driver is called: the driver may wait for one of its own threads, which may be about
 * to drop a tensor and take the lock. */
static void
release_ready (GTorchHostAllocator *self, guint64 n_bytes)
{
  g_autoptr (GPtrArray) blocks = g_ptr_array_new ();
  guint64 released = 0;
  gint i;

  poll_waiting (self);
  for (i = N_CLASSES - 1; i >= 0; i--)
    while (released < n_bytes && !g_queue_is_empty (&self->ready[i]))
      {
        released += G_GUINT64_CONSTANT (1) << i;
        g_ptr_array_add (blocks, g_queue_pop_tail (&self->ready[i]));
      }
  g_mutex_unlock (&self->lock);
  for (i = 0; i < (gint) blocks->len; i++)
    {
      Block *block = blocks->pdata[i];
      guint64 size = block_size (block);
      gboolean is_free = block_free (block);

      g_mutex_lock (&self->lock);
      if (is_free)
        self->reserved -= size;
      else
        g_queue_push_tail (&self->ready[block->size_class], block);
      g_mutex_unlock (&self->lock);
    }
  g_mutex_lock (&self->lock);
}

static gpointer
trim_in_thread (gpointer data)
{
  gtorch_host_allocator_trim (data);
  return NULL;
}

/* Trims in a thread, as freeing memory can make the driver wait for a GPU. */
static void
on_low_memory (GMemoryMonitor *monitor, GMemoryMonitorWarningLevel level, GTorchHostAllocator *self)
{
  g_thread_unref (g_thread_new ("gtorch-trim", trim_in_thread, self));
}

/* Watches for low memory, in a thread, as finding the monitor's backend may take a while. */
static gpointer
watch_memory (gpointer data)
{
  GMemoryMonitor *monitor = g_memory_monitor_dup_default ();

  if (monitor != NULL) /* never unreferenced */
    g_signal_connect (monitor, "low-memory-warning", G_CALLBACK (on_low_memory), data);
  return NULL;
}

static GTorchCudaDevice *
find_device (GError **error)
{
  GTorchDevice *device = gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, error);

  if (device == NULL || !gtorch_device_works (device, error)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error))
    return NULL;
  return GTORCH_CUDA_DEVICE (device);
}

/* Counts the bytes as pinned before they are, so that several threads together do not exceed the limit. */
static gboolean
reserve (GTorchHostAllocator *self, guint64 size, GError **error)
{
  gboolean result;

  if (self->limit > 0 && size <= self->limit && self->reserved > self->limit - size)
    release_ready (self, self->reserved - (self->limit - size));
  result = self->limit == 0 || (size <= self->limit && self->reserved <= self->limit - size);
  if (result)
    self->reserved += size;
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                 _ ("%" PRIu64 " bytes of pinned memory cannot be allocated: the “limit” "
                    "of the host allocator is %" PRIu64 ", and %" PRIu64 " are reserved, %" PRIu64
                    " of them by tensors"),
                 size, self->limit, self->reserved, self->allocated);
  return result;
}

typedef struct
{
  gchar *start;
  gsize size;
} Part;

/* Writes to each page of a range, as the system allocates pages only when they are first written to. */
static gpointer
touch (gpointer data)
{
  Part *part = data;
  gsize at;

  for (at = 0; at < part->size; at += TOUCH_STEP)
    ((volatile gchar *) part->start)[at] = 0;
  return NULL;
}

/* Allocates memory from the system, touches its pages with several threads, and registers it, which is
 * faster than the driver's allocation. */
static CUresult
register_memory (guint n_threads, guint64 size, gpointer *data)
{
  GThread *threads[MAX_THREADS];
  Part parts[MAX_THREADS];
  CUresult result;
  gsize step;
  guint i;

  *data = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*data == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  n_threads = MIN (n_threads, MIN (size / TOUCH_STEP, MAX_THREADS)); /* all are powers of two */
  step = size / n_threads;
  for (i = 0; i < n_threads; i++)
    {
      parts[i] = (Part){ (gchar *) *data + i * step, step };
      threads[i] = i > 0 ? g_thread_try_new ("gtorch-pin", touch, &parts[i], NULL) : NULL;
      if (threads[i] == NULL && i > 0)
        touch (&parts[i]);
    }
  touch (&parts[0]);
  for (i = 1; i < n_threads; i++)
    if (threads[i] != NULL)
      g_thread_join (threads[i]);
  result = gtorch_cuda.cuMemHostRegister (*data, size, CU_MEMHOSTREGISTER_PORTABLE);
  if (result != CUDA_SUCCESS)
    munmap (*data, size);
  return result;
}

static CUresult
pin_once (GTorchCudaDevice *device, guint64 size, gboolean registered, gpointer *data)
{
  if (!registered)
    return gtorch_cuda.cuMemHostAlloc (data, size, CU_MEMHOSTALLOC_PORTABLE);
  return register_memory (device->parent_instance.allocator->config.register_threads, size, data);
}

static gpointer
pin (GTorchHostAllocator *self, guint64 size, GTorchCudaDevice **device, gboolean *registered,
     GError **error)
{
  gpointer data = NULL;
  CUresult result;
  GTORCH_CUDA_APART; /* results of captures may be in pinned memory */

  *device = find_device (error);
  if (*device == NULL)
    return NULL;
  *registered = (*device)->parent_instance.allocator->config.host_register != 0;
  result = pin_once (*device, size, *registered, &data);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    {
      gtorch_host_allocator_trim (self);
      if (!gtorch_cuda_device_activate (*device, error))
        return NULL;
      result = pin_once (*device, size, *registered, &data);
    }
  return gtorch_cuda_check (result, *registered ? "cuMemHostRegister" : "cuMemHostAlloc", error)
             ? data
             : NULL;
}

/* Makes a block. The lock must be held; it is released while memory is pinned. */
static Block *
new_block (GTorchHostAllocator *self, guint size_class, GError **error)
{
  const guint64 size = G_GUINT64_CONSTANT (1) << size_class;
  GTorchCudaDevice *device;
  gboolean is_registered = FALSE;
  gpointer data;
  Block *block;

  if (!reserve (self, size, error))
    return NULL;
  g_mutex_unlock (&self->lock);
  data = pin (self, size, &device, &is_registered, error);
  g_mutex_lock (&self->lock);
  if (data == NULL)
    {
      self->reserved -= size;
      return NULL;
    }
  self->num_allocs++;
  block = g_new0 (Block, 1);
  block->data = data;
  block->size_class = size_class;
  block->is_registered = is_registered;
  block->device = device;
  g_queue_init (&block->uses);
  return block;
}

static void
free_pinned (GTorchStorage *storage)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();
  Block *block = storage->free_data;

  /* The driver is not called here, as the calling thread may be one of its own. */
  g_mutex_lock (&self->lock);
  self->allocated -= block_size (block);
  if (block->is_lost)
    self->lost += block_size (block);
  else
    {
      if (g_queue_is_empty (&block->uses))
        make_ready (self, block);
      else
        g_queue_push_tail (&self->waiting, block);
    }
  g_mutex_unlock (&self->lock);
}

static GTorchStorage *
alloc_pinned (gsize n_bytes, GError **error)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();
  guint size_class = n_bytes > 1 ? g_bit_storage (n_bytes - 1) : 0;
  gboolean watch = FALSE;
  Block *block = NULL;

  size_class = MAX (size_class, MIN_CLASS);
  if (size_class >= N_CLASSES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("%zu bytes of pinned memory cannot be allocated: a block has "
                      "%zu at most"),
                   n_bytes, (gsize) 1 << (N_CLASSES - 1));
      return NULL;
    }
  g_mutex_lock (&self->lock);
  poll_waiting (self);
  block = g_queue_pop_head (&self->ready[size_class]);
  if (block == NULL)
    block = new_block (self, size_class, error);
  if (block != NULL)
    {
      self->allocated += block_size (block);
      watch = !self->watches_memory;
      self->watches_memory = TRUE;
    }
  g_mutex_unlock (&self->lock);
  if (watch)
    g_thread_unref (g_thread_new ("gtorch-memory", watch_memory, self));
  if (block == NULL)
    return NULL;
  return gtorch_storage_new_foreign (gtorch_device_cpu (), block->data, n_bytes, free_pinned,
                                     block);
}

static const GTorchPinnedMemory pinned_memory = { alloc_pinned, free_pinned };

/* Earlier than constructors of programs that link the library statically, which may use it. */
static void __attribute__ ((constructor (200))) set_pinned_memory (void)
{
  gtorch_pinned_memory = &pinned_memory;
}

/* --- copies --- */

/* Implements GTorchTimeline.wait. Copies are completed in order, whichever thread notices their end
 * first. */
static gboolean
wait_for_copies (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable, GError **error)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();
  gboolean result = TRUE;

  g_mutex_lock (&self->lock);
  while (result)
    {
      Block *block = timeline->wait_data;
      Use *use = block != NULL ? g_queue_peek_head (&block->uses) : NULL;
      g_autoptr (GError) failure = NULL;
      GTorchFence *fence;

      if (block != NULL && block->failure != NULL)
        {
          g_propagate_error (error, g_error_copy (block->failure));
          result = FALSE;
        }
      if (!result || use == NULL || use->seq > seq)
        break;
      fence = gtorch_fence_ref (use->fence);
      g_mutex_unlock (&self->lock);
      if (!gtorch_fence_wait (fence, cancellable, &failure)
          && (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)
              || !gtorch_fence_is_done (fence)))
        {
          g_propagate_error (error, g_steal_pointer (&failure));
          gtorch_fence_unref (fence);
          return FALSE;
        }
      if (failure == NULL && !gtorch_cuda_check_report (GTORCH_CUDA_DEVICE (fence->device), error))
        result = FALSE;
      g_mutex_lock (&self->lock);
      block = timeline->wait_data;
      use = block != NULL ? g_queue_peek_head (&block->uses) : NULL;
      if (use != NULL && use->fence == fence)
        {
          if (failure != NULL && block->failure == NULL)
            block->failure = g_steal_pointer (&failure);
          gtorch_timeline_complete (timeline, use->seq, NULL);
          use_free (g_queue_pop_head (&block->uses));
        }
      gtorch_fence_unref (fence);
    }
  g_mutex_unlock (&self->lock);
  return result;
}

gboolean
gtorch_host_order (GTorchStorage *storage, GTorchCudaLane *lane, GError **error)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();
  g_autoptr (GPtrArray) fences =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_fence_unref);
  Block *block = storage->free_data;
  gboolean result = TRUE;
  GList *l;
  guint i;

  g_mutex_lock (&self->lock);
  if (block->failure != NULL)
    {
      g_propagate_error (error, g_error_copy (block->failure));
      result = FALSE;
    }
  for (l = block->uses.head; l != NULL; l = l->next)
    if (((Use *) l->data)->fence->queue != lane)
      g_ptr_array_add (fences, gtorch_fence_ref (((Use *) l->data)->fence));
  g_mutex_unlock (&self->lock);
  for (i = 0; i < fences->len && result; i++)
    {
      GTorchFence *fence = fences->pdata[i];

      result = gtorch_cuda_check (gtorch_cuda.cuStreamWaitEvent (lane->handle, fence->handle, 0),
                                  "cuStreamWaitEvent", error);
    }
  return result;
}

gboolean
gtorch_host_note_copy (GTorchStorage *storage, GTorchStream *stream, GError **error)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();
  Block *block = storage->free_data;
  GTorchFence *fence = gtorch_fence_new ();
  GTorchTimeline *timeline;
  Use *use;

  if (!GTORCH_STREAM_GET_CLASS (stream)->record (stream, fence, NULL))
    {
      gboolean result;

      gtorch_fence_unref (fence);
      result = gtorch_cuda_lane_synchronize (GTORCH_CUDA_STREAM (stream)->lane, "copy", error);
      if (!result)
        gtorch_host_lose (storage);
      return result;
    }
  use = g_new (Use, 1);
  use->fence = fence;
  g_mutex_lock (&self->lock);
  timeline = block->timeline;
  if (timeline == NULL)
    {
      timeline = block->timeline = gtorch_timeline_new (gtorch_device_cpu ());
      timeline->wait_data = block;
      __atomic_store_n (&timeline->wait, wait_for_copies, __ATOMIC_RELAXED);
    }
  use->seq = gtorch_timeline_add_copy (timeline, stream, g_queue_is_empty (&block->uses));
  g_queue_push_tail (&block->uses, use);
  gtorch_storage_set_writer (storage, timeline, use->seq);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

void
gtorch_host_lose (GTorchStorage *storage)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();

  g_mutex_lock (&self->lock);
  ((Block *) storage->free_data)->is_lost = TRUE;
  g_mutex_unlock (&self->lock);
}

static guint64
read_number (GTorchHostAllocator *self, const guint64 *number)
{
  guint64 result;

  g_mutex_lock (&self->lock);
  result = *number;
  g_mutex_unlock (&self->lock);
  return result;
}

guint64
gtorch_host_get_lost (void)
{
  GTorchHostAllocator *self = gtorch_host_allocator_get_default ();

  return read_number (self, &self->lost);
}

/* --- public API --- */

/**
 * gtorch_host_allocator_get_limit:
 * @self: the allocator
 *
 * Gets the maximum number of bytes pinned at a time.
 *
 * Returns: the number of bytes; 0 means no limit
 *
 * Since: 0.1
 */
guint64
gtorch_host_allocator_get_limit (GTorchHostAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_HOST_ALLOCATOR (self), 0);
  return read_number (self, &self->limit);
}

/**
 * gtorch_host_allocator_set_limit:
 * @self: the allocator
 * @n_bytes: the number of bytes; 0: no limit
 *
 * Sets the maximum number of bytes pinned at a time, cached ones included.
 *
 * If a tensor would exceed the limit, cached memory is released first; if that is not enough, the
 * allocation fails with %GTORCH_ERROR_OUT_OF_MEMORY. Memory that is in use stays pinned.
 *
 * Since: 0.1
 */
void
gtorch_host_allocator_set_limit (GTorchHostAllocator *self, guint64 n_bytes)
{
  gboolean changed;

  g_return_if_fail (GTORCH_IS_HOST_ALLOCATOR (self));
  g_mutex_lock (&self->lock);
  changed = self->limit != n_bytes;
  self->limit = n_bytes;
  g_mutex_unlock (&self->lock);
  if (changed)
    g_object_notify (G_OBJECT (self), "limit");
}

/**
 * gtorch_host_allocator_get_allocated:
 * @self: the allocator
 *
 * Gets how much pinned memory tensors use.
 *
 * Returns: the number of bytes, each tensor's rounded up to a power of two
 *
 * Since: 0.1
 */
guint64
gtorch_host_allocator_get_allocated (GTorchHostAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_HOST_ALLOCATOR (self), 0);
  return read_number (self, &self->allocated);
}

/**
 * gtorch_host_allocator_get_reserved:
 * @self: the allocator
 *
 * Gets how much memory is pinned, in use or cached.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_host_allocator_get_reserved (GTorchHostAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_HOST_ALLOCATOR (self), 0);
  return read_number (self, &self->reserved);
}

/**
 * gtorch_host_allocator_get_num_allocs:
 * @self: the allocator
 *
 * Gets how often memory was pinned. The number does not grow while cached memory suffices.
 *
 * Returns: the number of times since the program began
 *
 * Since: 0.1
 */
guint64
gtorch_host_allocator_get_num_allocs (GTorchHostAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_HOST_ALLOCATOR (self), 0);
  return read_number (self, &self->num_allocs);
}

/**
 * gtorch_host_allocator_trim:
 * @self: the allocator
 *
 * Releases cached memory to the system, except memory that copies still use.
 *
 * Since: 0.1
 */
void
gtorch_host_allocator_trim (GTorchHostAllocator *self)
{
  g_return_if_fail (GTORCH_IS_HOST_ALLOCATOR (self));
  g_mutex_lock (&self->lock);
  release_ready (self, G_MAXUINT64);
  g_mutex_unlock (&self->lock);
}

/**
 * gtorch_tensor_pin_memory:
 * @self: a tensor on the CPU
 * @error: return location for an error
 *
 * Copies the tensor to pinned memory, which GPUs copy from and to asynchronously. Returns @self itself if
 * it is pinned already.
 *
 * The copy is contiguous and of the same shape and dtype, and gradients flow through it.
 * [method@Tensor.copy_inplace] with `non_blocking` between it and a contiguous tensor of a GPU, of the
 * same shape and dtype, returns at once. Operations and all functions that read elements wait for such
 * copies automatically. Only code that has a pointer to the elements, as from [method@Tensor.get_bytes],
 * must neither read nor write there before [method@Stream.synchronize].
 *
 * ```c
 * g_autoptr (GTorchTensor) pinned = gtorch_tensor_pin_memory (host, &error);
 * gdouble first;
 *
 * gtorch_tensor_copy_inplace (pinned, result, TRUE, &error); // from a GPU: returns at once
 * do_something_else ();
 * g_print ("%g\n", gtorch_tensor_item_double (pinned, &error)); // waits for the copy
 * ```
 *
 * Returns: (transfer full): the tensor; %NULL with %GTORCH_ERROR_DEVICE if it is not on the CPU,
 *   %GTORCH_ERROR_OUT_OF_MEMORY if [property@HostAllocator:limit] is exceeded, %GTORCH_ERROR_RELEASED, or
 *   the reason why there is no GPU
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_pin_memory (GTorchTensor *self, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTorchImpl) pinned = NULL;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);

  impl = gtorch_tensor_unwrap (self);
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("pin_memory: the tensor of shape %s was released"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (impl->storage->device->type != GTORCH_DEVICE_TYPE_CPU)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                   _ ("pin_memory: the tensor of shape %s is on %s, and only memory of the CPU can "
                      "be pinned"),
                   gtorch_impl_shape_str (impl), gtorch_device_name (impl->storage->device));
      return NULL;
    }
  if (gtorch_storage_is_pinned (impl->storage))
    return g_object_ref (self);
  pinned = gtorch_impl_new_pinned (impl->dtype, impl->shape, impl->n_dims, error);
  if (pinned == NULL)
    {
      g_prefix_error (error, "pin_memory: ");
      return NULL;
    }
  if (!gtorch_op_copy_inplace (pinned, impl, FALSE, error))
    return NULL;
  return gtorch_tensor_wrap (g_steal_pointer (&pinned));
}
