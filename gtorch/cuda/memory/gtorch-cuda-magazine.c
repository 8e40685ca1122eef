/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Magazines: per-thread caches of a GPU's small blocks.
 *
 * A small storage that is freed stays in the magazine of the thread that freed it, until the thread
 * allocates one of that size on the same lane. Neither the arena, whose lock all threads share, nor the
 * statistics are touched then: a magazine has sums of its own of what its thread has allocated and freed,
 * which are added to the statistics when they are read. A magazine has a lock, which is nearly always
 * free. For the arena its blocks are in use; for the statistics they are free, and not counted as split.
 *
 * The peaks are exact nevertheless. A magazine may only add to the current values as much as it has room
 * for, and the room of all of them together never reaches above the peak:
 *
 *   current value in the statistics + rooms when they were last added up <= peak
 *
 * so no peak is passed unnoticed. A thread without enough room requests half of what is left below the
 * peak; if that is not enough either, all sums are added up, all rooms are withdrawn, and the value and
 * its peak are raised in the statistics.
 *
 * Locks are taken in this order: an arena's, the statistics', magazines'. */

#include "config.h"

#include <string.h>

#include "cuda/memory/gtorch-cuda-magazine-private.h"
#include "cuda/driver/gtorch-cuda-private.h"

#define GRAIN      512
#define SUB_BITS   2
#define N_CLASSES  ((11 << SUB_BITS) + 1) /* up to GRAIN << 11: 1 MiB */
#define MAX_BLOCKS 16                     /* the maximum number of blocks of a class */
#define MAX_BYTES  (G_GUINT64_CONSTANT (8) << 20)

typedef enum
{
  COUNT,
  BYTES,
  REQUESTED,
  N_SUMS,
} Sum;

G_STATIC_ASSERT (N_SUMS == GTORCH_CUDA_N_SUMS);

/* The cached blocks of one class, oldest first. */
typedef struct
{
  guint n;
  GTorchCudaBlock *blocks[MAX_BLOCKS];
} Bin;

/* The cached blocks of one lane. */
typedef struct
{
  Bin bins[N_CLASSES];
} Rack;

struct _GTorchCudaMagazine
{
  gint lock; /* protects all fields below but next */
  gsize n_bytes;
  guint n_racks;
  Rack **racks; /* one rack for each lane's index; NULL if the lane had nothing cached yet */
  gint64 room[N_SUMS];
  gint64 added[N_SUMS], freed[N_SUMS]; /* amounts since they were last added to the statistics */
  GTorchCudaDevice *device;
  GTorchCudaMagazine *next; /* another thread's magazine; protected by the statistics' lock */
};

/* The thread's magazines, by the device's index. */
static __thread GTorchCudaMagazine **hand;
static __thread gboolean is_over; /* the thread is ending */

/* --- statistics --- */

/* The counters to which a sum is added; each exists for all pools together and for the small one. */
static const struct
{
  guint n;
  GTorchStat stats[2];
} counters[N_SUMS] = {
  [COUNT] = { 2, { GTORCH_STAT_ALLOCATION, GTORCH_STAT_ACTIVE } },
  [BYTES] = { 2, { GTORCH_STAT_ALLOCATED_BYTES, GTORCH_STAT_ACTIVE_BYTES } },
  [REQUESTED] = { 1, { GTORCH_STAT_REQUESTED_BYTES } },
};

static inline GTorchAllocator *
allocator_of (GTorchCudaDevice *device)
{
  return device->parent_instance.allocator;
}

static void
fold (GTorchCudaMagazine *self)
{
  GTorchMemoryStats *stats = &allocator_of (self->device)->stats;
  guint sum, i, pool;

  for (sum = 0; sum < N_SUMS; sum++)
    {
      const gint64 added = self->added[sum], change = added - self->freed[sum];

      for (i = 0; i < counters[sum].n; i++)
        for (pool = GTORCH_POOL_ALL; pool <= GTORCH_POOL_SMALL; pool++)
          {
            GTorchCounter *counter = &stats->counters[pool][counters[sum].stats[i]];

            counter->current += change;
            counter->added += added;
          }
      self->device->rooms[sum] -= change; /* the magazine's room has changed by as much */
      self->added[sum] = self->freed[sum] = 0;
    }
}

void
gtorch_cuda_magazines_recall (GTorchDevice *device)
{
  GTorchCudaDevice *cuda = GTORCH_CUDA_DEVICE (device);
  GTorchCudaMagazine *self;

  for (self = cuda->magazines; self != NULL; self = self->next)
    {
      gtorch_spin_lock (&self->lock);
      fold (self);
      memset (self->room, 0, sizeof self->room);
      gtorch_spin_unlock (&self->lock);
    }
  memset (cuda->rooms, 0, sizeof cuda->rooms);
}

void
gtorch_cuda_magazines_sync (GTorchDevice *device, GTorchMemoryStats *stats, gboolean restart_peaks)
{
  GTorchCudaMagazine *self;

  if (restart_peaks)
    gtorch_cuda_magazines_recall (device);
  for (self = GTORCH_CUDA_DEVICE (device)->magazines; self != NULL; self = self->next)
    {
      gtorch_spin_lock (&self->lock);
      fold (self);
      gtorch_spin_unlock (&self->lock);
    }
}

void
gtorch_cuda_lock_counts (GTorchCudaDevice *device)
{
  GTorchCudaMagazine *self;

  gtorch_allocator_lock_stats (allocator_of (device));
  for (self = device->magazines; self != NULL; self = self->next)
    gtorch_spin_lock (&self->lock);
}

void
gtorch_cuda_unlock_counts (GTorchCudaDevice *device)
{
  GTorchCudaMagazine *self;

  for (self = device->magazines; self != NULL; self = self->next)
    gtorch_spin_unlock (&self->lock);
  gtorch_allocator_unlock_stats (allocator_of (device));
}

/* Returns how much more fits below all peaks even if all magazines use up their rooms. */
static gint64
find_room (GTorchCudaDevice *device, guint last_pool, Sum sum)
{
  const GTorchMemoryStats *stats = &allocator_of (device)->stats;
  gint64 room = G_MAXINT64;
  guint i, pool;

  for (i = 0; i < counters[sum].n; i++)
    for (pool = GTORCH_POOL_ALL; pool <= last_pool; pool++)
      {
        const GTorchCounter *counter = &stats->counters[pool][counters[sum].stats[i]];

        room = MIN (room, counter->peak - counter->current);
      }
  return room - device->rooms[sum];
}

void
gtorch_cuda_count_block (GTorchCudaDevice *device, guint pool, gsize size, gsize requested)
{
  const gint64 amounts[N_SUMS] = { 1, size, requested };
  const guint last_pool = pool == GTORCH_POOL_SMALL ? GTORCH_POOL_SMALL : GTORCH_POOL_ALL;
  guint sum, i;

  for (sum = 0; sum < N_SUMS; sum++)
    if (find_room (device, last_pool, sum) < amounts[sum])
      {
        gtorch_cuda_magazines_recall ((GTorchDevice *) device);
        break;
      }
  for (sum = 0; sum < N_SUMS; sum++)
    for (i = 0; i < counters[sum].n; i++)
      gtorch_stats_add (&allocator_of (device)->stats, pool, counters[sum].stats[i], amounts[sum]);
}

/* --- magazines --- */

static void
give_chain (GTorchCudaBlock *chain)
{
  GTorchCudaBlock *block, *next;

  for (block = chain; block != NULL; block = next)
    {
      GMutex *lock = gtorch_cuda_arena_get_lock (block->arena);

      next = block->list_next;
      block->list_next = NULL;
      g_mutex_lock (lock);
      gtorch_cuda_arena_give (block->arena, block);
      g_mutex_unlock (lock);
    }
}

/* Removes the n oldest blocks of the bin and adds them to the chain, which is returned. */
static GTorchCudaBlock *
bin_empty (GTorchCudaMagazine *self, Bin *bin, guint n, GTorchCudaBlock *chain)
{
  guint i;

  for (i = 0; i < n; i++)
    {
      self->n_bytes -= bin->blocks[i]->size;
      bin->blocks[i]->list_next = chain;
      chain = bin->blocks[i];
    }
  bin->n -= n;
  memmove (bin->blocks, bin->blocks + n, bin->n * sizeof *bin->blocks);
  return chain;
}

static GTorchCudaBlock *
rack_empty (GTorchCudaMagazine *self, Rack *rack, GTorchCudaBlock *chain)
{
  guint i;

  for (i = 0; rack != NULL && i < N_CLASSES; i++)
    chain = bin_empty (self, &rack->bins[i], rack->bins[i].n, chain);
  return chain;
}

/* Removes the blocks of the lane, or of all lanes if it is NULL, and adds them to the chain. */
static GTorchCudaBlock *
magazine_empty (GTorchCudaMagazine *self, GTorchCudaLane *lane, GTorchCudaBlock *chain)
{
  guint i;

  for (i = 0; i < self->n_racks; i++)
    if (lane == NULL || lane->index == i)
      chain = rack_empty (self, self->racks[i], chain);
  return chain;
}

/* Frees the thread's magazines when it ends. */
static void
hand_free (gpointer data)
{
  GTorchCudaMagazine **magazines = data;
  guint i, sum;

  is_over = TRUE;
  hand = NULL;
  for (i = 0; i < GTORCH_CUDA_MAX_DEVICES; i++)
    {
      GTorchCudaMagazine *self = magazines[i], **link;
      GTorchCudaBlock *chain;

      if (self == NULL)
        continue;
      gtorch_allocator_lock_stats (allocator_of (self->device));
      for (link = &self->device->magazines; *link != self; link = &(*link)->next)
        ;
      *link = self->next;
      gtorch_spin_lock (&self->lock);
      fold (self);
      for (sum = 0; sum < N_SUMS; sum++)
        self->device->rooms[sum] -= self->room[sum];
      chain = magazine_empty (self, NULL, NULL);
      gtorch_spin_unlock (&self->lock);
      gtorch_allocator_unlock_stats (allocator_of (self->device));
      give_chain (chain);
      while (self->n_racks > 0)
        g_free (self->racks[--self->n_racks]);
      g_free (self->racks);
      g_free (self);
    }
  g_free (magazines);
}

static GPrivate hand_cleanup = G_PRIVATE_INIT (hand_free);

static G_GNUC_NO_INLINE GTorchCudaMagazine *
magazine_new (GTorchCudaDevice *device)
{
  GTorchCudaMagazine *self;

  if (is_over)
    return NULL;
  if (hand == NULL)
    {
      hand = g_new0 (GTorchCudaMagazine *, GTORCH_CUDA_MAX_DEVICES);
      g_private_set (&hand_cleanup, hand);
    }
  self = g_new0 (GTorchCudaMagazine, 1);
  self->device = device;
  hand[device->parent_instance.index] = self;
  gtorch_allocator_lock_stats (allocator_of (device));
  self->next = device->magazines;
  device->magazines = self;
  gtorch_allocator_unlock_stats (allocator_of (device));
  return self;
}

/* Returns the thread's magazine for the device; NULL if the thread is ending. */
static inline GTorchCudaMagazine *
get_magazine (GTorchCudaDevice *device)
{
  GTorchCudaMagazine *self = G_LIKELY (hand != NULL) ? hand[device->parent_instance.index] : NULL;

  return G_LIKELY (self != NULL) ? self : magazine_new (device);
}

static inline guint
class_of (gsize size)
{
  const gsize units = size / GRAIN;
  const guint bits = g_bit_storage (units) - 1;

  return (bits << SUB_BITS)
         + ((bits >= SUB_BITS ? units >> (bits - SUB_BITS) : units << (SUB_BITS - bits))
            & ((1 << SUB_BITS) - 1));
}

static G_GNUC_NO_INLINE void
add_rack (GTorchCudaMagazine *self, guint index)
{
  if (index >= self->n_racks)
    {
      self->racks = g_renew (Rack *, self->racks, index + 1);
      while (self->n_racks <= index)
        self->racks[self->n_racks++] = NULL;
    }
  self->racks[index] = g_new0 (Rack, 1);
}

/* Counts an allocation. The magazine's lock must be held. Returns FALSE if the magazine has no room for
 * it. */
static inline gboolean
note_alloc (GTorchCudaMagazine *self, GTorchCudaBlock *block, gsize requested)
{
  const gint64 amounts[N_SUMS] = { 1, block->size, requested };
  guint sum;

  for (sum = 0; sum < N_SUMS; sum++)
    if (G_UNLIKELY (self->room[sum] < amounts[sum]))
      return FALSE;
  for (sum = 0; sum < N_SUMS; sum++)
    {
      self->room[sum] -= amounts[sum];
      self->added[sum] += amounts[sum];
    }
  block->use = GTORCH_BLOCK_ALLOCATED;
  block->requested = requested;
  return TRUE;
}

static G_GNUC_NO_INLINE void
note_alloc_slowly (GTorchCudaMagazine *self, GTorchCudaBlock *block, gsize requested)
{
  GTorchCudaDevice *device = self->device;
  gboolean done;
  guint sum;

  gtorch_allocator_lock_stats (allocator_of (device));
  gtorch_spin_lock (&self->lock);
  fold (self);
  for (sum = 0; sum < N_SUMS; sum++)
    {
      const gint64 room = (find_room (device, GTORCH_POOL_SMALL, sum) + 1) / 2;

      if (room <= 0)
        continue;
      self->room[sum] += room;
      device->rooms[sum] += room;
    }
  done = note_alloc (self, block, requested);
  gtorch_spin_unlock (&self->lock);
  if (!done)
    {
      gtorch_cuda_count_block (device, GTORCH_POOL_SMALL, block->size, requested);
      block->use = GTORCH_BLOCK_ALLOCATED;
      block->requested = requested;
    }
  gtorch_allocator_unlock_stats (allocator_of (device));
}

GTorchCudaBlock *
gtorch_cuda_magazine_take (GTorchCudaLane *lane, gsize size, gsize requested)
{
  GTorchCudaMagazine *self = get_magazine (lane->device);
  GTorchCudaBlock *block = NULL;
  gboolean done = FALSE;
  Bin *bin;
  guint i;

  if (G_UNLIKELY (self == NULL))
    return NULL;
  gtorch_spin_lock (&self->lock);
  if (G_LIKELY (lane->index < self->n_racks && self->racks[lane->index] != NULL))
    {
      bin = &self->racks[lane->index]->bins[class_of (size)];
      for (i = bin->n; i-- > 0;)
        if (bin->blocks[i]->size == size)
          {
            block = bin->blocks[i];
            for (bin->n--; i < bin->n; i++)
              bin->blocks[i] = bin->blocks[i + 1];
            self->n_bytes -= size;
            done = note_alloc (self, block, requested);
            break;
          }
    }
  gtorch_spin_unlock (&self->lock);
  if (G_UNLIKELY (block != NULL && !done))
    note_alloc_slowly (self, block, requested);
  return block;
}

gboolean
gtorch_cuda_magazine_count (GTorchCudaDevice *device, GTorchCudaBlock *block, gsize requested)
{
  GTorchCudaMagazine *self = get_magazine (device);
  gboolean done;

  if (self == NULL)
    return FALSE;
  gtorch_spin_lock (&self->lock);
  done = note_alloc (self, block, requested);
  gtorch_spin_unlock (&self->lock);
  if (!done)
    note_alloc_slowly (self, block, requested);
  return TRUE;
}

gboolean
gtorch_cuda_magazine_give (GTorchCudaLane *lane, GTorchCudaBlock *block)
{
  GTorchCudaMagazine *self = get_magazine (lane->device);
  const gint64 amounts[N_SUMS] = { 1, block->size, block->requested };
  GTorchCudaBlock *chain = NULL;
  Bin *bin;
  guint sum;

  if (G_UNLIKELY (self == NULL))
    return FALSE;
  gtorch_spin_lock (&self->lock);
  for (sum = 0; sum < N_SUMS; sum++)
    {
      self->room[sum] += amounts[sum];
      self->freed[sum] += amounts[sum];
    }
  block->use = GTORCH_BLOCK_INACTIVE;
  if (G_UNLIKELY (lane->index >= self->n_racks || self->racks[lane->index] == NULL))
    add_rack (self, lane->index);
  bin = &self->racks[lane->index]->bins[class_of (block->size)];
  if (G_UNLIKELY (self->n_bytes + block->size > MAX_BYTES))
    chain = magazine_empty (self, NULL, NULL);
  else if (G_UNLIKELY (bin->n == MAX_BLOCKS))
    chain = bin_empty (self, bin, MAX_BLOCKS / 2, NULL);
  bin->blocks[bin->n++] = block;
  self->n_bytes += block->size;
  gtorch_spin_unlock (&self->lock);
  if (G_UNLIKELY (chain != NULL))
    give_chain (chain);
  return TRUE;
}

gboolean
gtorch_cuda_magazines_drain (GTorchCudaDevice *device, GTorchCudaLane *lane)
{
  GTorchCudaMagazine *self;
  GTorchCudaBlock *chain = NULL;

  gtorch_allocator_lock_stats (allocator_of (device));
  for (self = device->magazines; self != NULL; self = self->next)
    {
      gtorch_spin_lock (&self->lock);
      chain = magazine_empty (self, lane, chain);
      gtorch_spin_unlock (&self->lock);
    }
  gtorch_allocator_unlock_stats (allocator_of (device));
  give_chain (chain);
  return chain != NULL;
}

gsize
gtorch_cuda_magazines_size (GTorchCudaDevice *device)
{
  GTorchCudaMagazine *self;
  gsize n_bytes = 0;

  gtorch_cuda_lock_counts (device);
  for (self = device->magazines; self != NULL; self = self->next)
    n_bytes += self->n_bytes;
  gtorch_cuda_unlock_counts (device);
  return n_bytes;
}
