/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The CPU's caching allocator. There are three paths, by size:
 *
 * - Up to 1 MiB: one block holds the storage's header and, 64 bytes on, the elements. Each thread keeps
 *   free blocks in lists by size class, so that small tensors are allocated and freed without a lock.
 * - Larger: the storage has its own pages, huge ones where that pays. A bounded number of bytes stays
 *   mapped for the next request, because touching fresh pages costs more than most operations on them.
 * - Where a cache would hide errors (AddressSanitizer) or is disabled (GTORCH_NO_MEMORY_CACHING=1),
 *   everything goes straight to the system.
 *
 * A storage that other processes are to see is moved: it gets other memory, and a note (Moved) of it in
 * the place of its size class. A large storage gives its pages back then, a small one has its block until
 * it is freed.
 *
 * The system promises more memory than there is, so a request is compared with the memory of the machine.
 * Threads count their own allocations and add them to the totals every 64 KiB: current numbers are exact,
 * peaks lack at most 64 KiB per thread. */

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/gtorch-cpu-device.h"
#include "memory/gtorch-share-private.h"
#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-fork-private.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, size)
#define ASAN_UNPOISON_MEMORY_REGION(data, size)
#endif

#define ALIGNMENT    64
#define HEADER       64
#define SMALL_STEP   64
#define SMALL_MAX    1024
#define MEDIUM_MAX   (1024 * 1024)
#define N_CLASSES    56
#define BIN_BYTES    (256 * 1024)
#define FLUSH        (64 * 1024)
#define HUGE_PAGE    (2 * 1024 * 1024)
#define MAX_CACHED   64
#define LARGE_MARKER N_CLASSES

G_STATIC_ASSERT (sizeof (GTorchStorage) <= HEADER);

/* Allocation counters; atomic. Those in a cache are written by its thread only. */
typedef struct
{
  gint64 n_added, n_freed;
  gint64 bytes_added, bytes_freed;
  gint64 requested_added, requested_freed;
} Flow;

/* Current and peak amounts; atomic. */
enum
{
  LEVEL_COUNT,
  LEVEL_BYTES,
  LEVEL_REQUESTED,
  N_LEVELS,
};

typedef struct
{
  gint64 now[N_LEVELS], peak[N_LEVELS];
} Levels;

typedef struct _ThreadCache ThreadCache;
struct _ThreadCache
{
  struct
  {
    GTorchStorage *head; /* linked list through `data` */
    guint count;
  } bins[N_CLASSES];
  Flow flow; /* flow of small storages */
  /* The part of `flow` that has been added to the levels; atomic, written by the owning thread only. */
  gint64 in_levels[N_LEVELS];
  guint flushes; /* number of empty_cache () calls seen so far */
  ThreadCache *next, *prev;
};

typedef struct
{
  gpointer data;
  gsize size;
  guint64 age;
} CachedPages;

static __thread ThreadCache *thread_cache;
static __thread gboolean thread_is_over;

static GMutex lock; /* protects the list of threads and the cached pages */
GTORCH_FORK_LOCK (lock);
static ThreadCache *threads;
static CachedPages cached[MAX_CACHED];
static guint n_cached;
static guint64 cached_bytes;
static guint64 cache_age;

/* [0]: small storages allocated without a thread cache or by threads that have ended; [1]: large storages. */
static Flow flows[2];
/* Blocks obtained from and returned to the system, in pieces and bytes; [0]: for small, [1]: for large
 * storages. */
static Flow pieces[2];
static Levels allocated_levels[GTORCH_N_POOLS], reserved_levels[GTORCH_N_POOLS];
static Flow synced[2], synced_pieces[2]; /* values already in the statistics; under their lock */
static guint flushes;

/* --- memory limits --- */

#define GROUP "/sys/fs/cgroup/"

static guint64
read_number (const gchar *file, const gchar *key)
{
  g_autofree gchar *text = NULL;
  const gchar *at;

  if (!g_file_get_contents (file, &text, NULL, NULL))
    return 0;
  at = key != NULL ? strstr (text, key) : text;
  if (at == NULL)
    return 0;
  return g_ascii_strtoull (at + (key != NULL ? strlen (key) : 0), NULL, 10);
}

static guint64
memory_limit (void)
{
  static gsize limit;

  if (g_once_init_enter (&limit))
    {
      guint64 bytes = 1024 * read_number ("/proc/meminfo", "MemTotal:");
      guint64 swap = 1024 * read_number ("/proc/meminfo", "SwapTotal:");
      guint64 group = read_number (GROUP "memory.max", NULL);

      if (bytes == 0)
        bytes = (guint64) sysconf (_SC_PHYS_PAGES) * (guint64) sysconf (_SC_PAGESIZE);
      bytes += swap;
      if (group != 0)
        bytes = MIN (bytes, group);
      g_once_init_leave (&limit, (gsize) MAX (bytes, 1));
    }
  return limit;
}

static gboolean
is_caching (void)
{
#if defined(__SANITIZE_ADDRESS__)
  return FALSE;
#else
  static gsize state;

  if (g_once_init_enter (&state))
    {
      const gboolean is_off = gtorch_env_flag ("GTORCH_NO_MEMORY_CACHING", FALSE);

      g_once_init_leave (&state, is_off ? 2 : 1);
    }
  return state == 1;
#endif
}

static guint64
cache_limit (void)
{
  return is_caching () ? MIN (memory_limit () / 4, G_GUINT64_CONSTANT (1) << 30) : 0;
}

/* --- counting --- */

static void
raise_peak (gint64 *peak, gint64 value)
{
  gint64 old = __atomic_load_n (peak, __ATOMIC_RELAXED);

  while (
      value > old
      && !__atomic_compare_exchange_n (peak, &old, value, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

static void
levels_add (Levels *levels, guint pool, const gint64 *n)
{
  const guint pools[] = { pool, GTORCH_POOL_ALL };
  guint i, k;

  for (i = 0; i < 2; i++)
    for (k = 0; k < N_LEVELS; k++)
      raise_peak (&levels[pools[i]].peak[k],
                  __atomic_add_fetch (&levels[pools[i]].now[k], n[k], __ATOMIC_RELAXED));
}

static void
levels_add_one (Levels *levels, guint pool, gboolean added, gint64 bytes, gint64 requested)
{
  const gint64 sign = added ? 1 : -1, n[N_LEVELS] = { sign, sign * bytes, sign * requested };

  levels_add (levels, pool, n);
}

static inline gint64
levels_bytes (const Levels *levels)
{
  return __atomic_load_n (&levels[GTORCH_POOL_ALL].now[LEVEL_BYTES], __ATOMIC_RELAXED);
}

/* Gets what has changed since @cache was last added to the levels; any thread may call it. */
static void
cache_outstanding (const ThreadCache *cache, gint64 *n)
{
  const Flow *flow = &cache->flow;
  const gint64 *added[N_LEVELS] = { &flow->n_added, &flow->bytes_added, &flow->requested_added };
  const gint64 *freed[N_LEVELS] = { &flow->n_freed, &flow->bytes_freed, &flow->requested_freed };
  guint k;

  for (k = 0; k < N_LEVELS; k++)
    n[k] = __atomic_load_n (added[k], __ATOMIC_RELAXED)
           - __atomic_load_n (freed[k], __ATOMIC_RELAXED)
           - __atomic_load_n (&cache->in_levels[k], __ATOMIC_RELAXED);
}

static inline void
add_own (gint64 *number, gint64 n)
{
  __atomic_store_n (number, *number + n, __ATOMIC_RELAXED);
}

static void
levels_add_cache (ThreadCache *cache)
{
  gint64 n[N_LEVELS];
  guint k;

  cache_outstanding (cache, n);
  for (k = 0; k < N_LEVELS; k++)
    add_own (&cache->in_levels[k], n[k]);
  levels_add (allocated_levels, GTORCH_POOL_SMALL, n);
}

static void
flow_add (Flow *flow, gboolean added, gint64 size, gint64 requested)
{
  __atomic_add_fetch (added ? &flow->n_added : &flow->n_freed, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch (added ? &flow->bytes_added : &flow->bytes_freed, size, __ATOMIC_RELAXED);
  __atomic_add_fetch (added ? &flow->requested_added : &flow->requested_freed, requested,
                      __ATOMIC_RELAXED);
}

/* Counts an allocation of a small storage. */
static inline void
flow_in (ThreadCache *cache, gint64 size, gint64 requested)
{
  if (G_UNLIKELY (cache == NULL))
    {
      flow_add (&flows[0], TRUE, size, requested);
      levels_add_one (allocated_levels, GTORCH_POOL_SMALL, TRUE, size, requested);
      return;
    }
  add_own (&cache->flow.n_added, 1);
  add_own (&cache->flow.bytes_added, size);
  add_own (&cache->flow.requested_added, requested);
}

static inline void
flow_out (ThreadCache *cache, gint64 size, gint64 requested)
{
  if (G_UNLIKELY (cache == NULL))
    {
      flow_add (&flows[0], FALSE, size, requested);
      levels_add_one (allocated_levels, GTORCH_POOL_SMALL, FALSE, size, requested);
      return;
    }
  add_own (&cache->flow.n_freed, 1);
  add_own (&cache->flow.bytes_freed, size);
  add_own (&cache->flow.requested_freed, requested);
}

static void
flow_sum (Flow *sum, const Flow *flow)
{
  gint64 *to = (gint64 *) sum;
  const gint64 *from = (const gint64 *) flow;
  guint i;

  for (i = 0; i < sizeof (Flow) / sizeof (gint64); i++)
    __atomic_add_fetch (&to[i], __atomic_load_n (&from[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static void
count_reserved (gint64 n, gboolean large)
{
  flow_add (&pieces[large], n > 0, ABS (n), 0);
  levels_add_one (reserved_levels, large ? GTORCH_POOL_LARGE : GTORCH_POOL_SMALL, n > 0, ABS (n),
                  0);
}

/* Signals memory pressure if the @n bytes that were added make memory scarce. */
static void
look_at_pressure (GTorchDevice *device, gint64 n)
{
  gint64 now = levels_bytes (allocated_levels);

  /* `now` can be negative for a moment: a thread has freed what another has not added to the levels yet */
  if (n > 0 && now > 0
      && G_UNLIKELY ((guint64) now > __atomic_load_n (&device->pressure_mark, __ATOMIC_RELAXED)))
    gtorch_device_memory_pressure (device, n);
}

static inline void
count (GTorchDevice *device, ThreadCache *cache, gint64 n)
{
  gint64 outstanding;

  if (G_UNLIKELY (cache == NULL))
    {
      look_at_pressure (device, n);
      return;
    }
  outstanding = cache->flow.bytes_added - cache->flow.bytes_freed - cache->in_levels[LEVEL_BYTES];
  if (G_UNLIKELY (outstanding > FLUSH || outstanding < -FLUSH))
    {
      levels_add_cache (cache);
      look_at_pressure (device, outstanding);
    }
}

/* --- size classes --- */

static inline guint
class_of (gsize n_bytes)
{
  guint power;

  if (G_LIKELY (n_bytes <= SMALL_MAX))
    return n_bytes == 0 ? 0 : (n_bytes - 1) / SMALL_STEP;
  power = 63 - __builtin_clzll (n_bytes - 1);
  return 16 + (power - 10) * 4 + (((n_bytes - 1) >> (power - 2)) & 3);
}

static inline gsize
class_size (guint index)
{
  guint power, part;

  if (G_LIKELY (index < 16))
    return (index + 1) * SMALL_STEP;
  power = 10 + (index - 16) / 4;
  part = (index - 16) % 4;
  return ((gsize) 1 << power) + (part + 1) * ((gsize) 1 << (power - 2));
}

static inline guint
bin_limit (guint index)
{
  return CLAMP (BIN_BYTES / class_size (index), 2, 256);
}

/* --- threads --- */

static void
system_free (GTorchStorage *storage, guint index)
{
  free (storage);
  count_reserved (-(gint64) class_size (index), FALSE);
}

static void
thread_cache_empty (ThreadCache *cache)
{
  guint i;

  for (i = 0; i < N_CLASSES; i++)
    while (cache->bins[i].head != NULL)
      {
        GTorchStorage *storage = cache->bins[i].head;

        cache->bins[i].head = storage->data;
        cache->bins[i].count--;
        system_free (storage, i);
      }
}

static void
thread_cache_free (gpointer data)
{
  ThreadCache *cache = data;

  thread_cache = NULL;
  thread_is_over = TRUE; /* from here on, this thread frees straight to the system */
  thread_cache_empty (cache);
  g_mutex_lock (&lock);
  levels_add_cache (cache);
  flow_sum (&flows[0], &cache->flow);
  if (cache->prev != NULL)
    cache->prev->next = cache->next;
  else
    threads = cache->next;
  if (cache->next != NULL)
    cache->next->prev = cache->prev;
  g_mutex_unlock (&lock);
  g_free (cache);
}

static GPrivate thread_cleanup = G_PRIVATE_INIT (thread_cache_free);

static ThreadCache *
thread_cache_new (void)
{
  ThreadCache *cache;

  if (thread_is_over || !is_caching ())
    return NULL;
  cache = g_new0 (ThreadCache, 1);
  cache->flushes = __atomic_load_n (&flushes, __ATOMIC_RELAXED);
  g_mutex_lock (&lock);
  cache->next = threads;
  if (threads != NULL)
    threads->prev = cache;
  threads = cache;
  g_mutex_unlock (&lock);
  g_private_set (&thread_cleanup, cache);
  thread_cache = cache;
  return cache;
}

/* --- pages --- */

static void
pages_unmap (gpointer data, gsize size)
{
  munmap (data, size);
  count_reserved (-(gint64) size, TRUE);
}

static gpointer
pages_map (gsize size)
{
  gsize alignment = size >= 2 * HUGE_PAGE ? HUGE_PAGE : (gsize) sysconf (_SC_PAGESIZE);
  gsize extra = size >= 2 * HUGE_PAGE ? HUGE_PAGE : 0;
  gchar *data =
      mmap (NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  gchar *aligned;

  if (data == MAP_FAILED)
    return NULL;
  aligned = (gchar *) (((guintptr) data + alignment - 1) & ~(guintptr) (alignment - 1));
  if (aligned > data)
    munmap (data, aligned - data);
  if (data + size + extra > aligned + size)
    munmap (aligned + size, data + extra - aligned);
#ifdef MADV_HUGEPAGE
  if (extra != 0)
    madvise (aligned, size, MADV_HUGEPAGE);
#endif
  count_reserved (size, TRUE);
  return aligned;
}

/* Drops the oldest cached pages until at most `keep` bytes are cached. */
static void
pages_trim (guint64 keep)
{
  while (TRUE)
    {
      CachedPages victim = { NULL };
      guint i, oldest = 0;

      g_mutex_lock (&lock);
      if (cached_bytes > keep)
        {
          for (i = 1; i < n_cached; i++)
            if (cached[i].age < cached[oldest].age)
              oldest = i;
          victim = cached[oldest];
          cached[oldest] = cached[--n_cached];
          cached_bytes -= victim.size;
        }
      g_mutex_unlock (&lock);
      if (victim.data == NULL)
        return;
      pages_unmap (victim.data, victim.size);
    }
}

static gpointer
pages_take (gsize *size)
{
  gpointer data = NULL;
  guint i, best = G_MAXUINT;

  g_mutex_lock (&lock);
  for (i = 0; i < n_cached; i++)
    if (cached[i].size >= *size && cached[i].size <= *size + *size / 4
        && (best == G_MAXUINT || cached[i].size < cached[best].size))
      best = i;
  if (best != G_MAXUINT)
    {
      data = cached[best].data;
      *size = cached[best].size;
      cached_bytes -= *size;
      cached[best] = cached[--n_cached];
    }
  g_mutex_unlock (&lock);
  return data;
}

static void
pages_give (gpointer data, gsize size)
{
  guint64 limit = cache_limit ();

  if (size > limit)
    {
      pages_unmap (data, size);
      return;
    }
  pages_trim (limit - size);
  g_mutex_lock (&lock);
  if (n_cached < MAX_CACHED)
    {
      cached[n_cached++] = (CachedPages){ data, size, cache_age++ };
      cached_bytes += size;
      data = NULL;
    }
  g_mutex_unlock (&lock);
  if (data != NULL)
    pages_unmap (data, size);
}

/* --- small and large storages --- */

/* Whether `n` more bytes from the system fit. */
static gboolean
has_room (GTorchDevice *device, gsize n)
{
  const gdouble fraction = gtorch_allocator_get_memory_fraction (device->allocator);
  const guint64 reserved = MAX (levels_bytes (reserved_levels), 0);
  guint64 limit = memory_limit ();

  if (fraction < 1)
    limit = MIN (limit, (guint64) (fraction * gtorch_device_get_total_memory (device)));
  return n <= limit && reserved <= limit - n;
}

#define MAX_RETRIES 4

/* After an allocation of `n` bytes has failed for the (round + 1)-th time: frees what is cached, or lets the
 * program free memory, and returns whether that was done. */
static gboolean
free_some (GTorchDevice *device, gsize n, guint *round)
{
  switch ((*round)++)
    {
    case 0:
      break;
    case 1:
      if (gtorch_allocator_memory_pressure (device->allocator, n))
        break;
      (*round)++;
      G_GNUC_FALLTHROUGH;
    default:
      if (*round > MAX_RETRIES || !gtorch_allocator_out_of_memory (device->allocator, n))
        return FALSE;
    }
  gtorch_cpu_empty_cache (device);
  return TRUE;
}

static void
set_out_of_memory (GTorchDevice *device, gsize n_bytes, GError **error)
{
  guint64 available, total;
  gsize largest = 0;
  guint i;

  gtorch_cpu_memory_info (device, &available, &total, NULL);
  g_mutex_lock (&lock);
  for (i = 0; i < n_cached; i++)
    largest = MAX (largest, cached[i].size);
  g_mutex_unlock (&lock);
  gtorch_allocator_set_oom (device->allocator, n_bytes, available, largest, error);
}

static GTorchStorage *
storage_init (GTorchStorage *storage, GTorchDevice *device, gpointer data, gsize n_bytes,
              gsize marker)
{
  *storage = (GTorchStorage){
    .ref_count = 1,
    .data = data,
    .n_bytes = n_bytes,
    .device = device,
    .free_data = GSIZE_TO_POINTER (marker),
  };
  return storage;
}

static GTorchStorage *
alloc_large (GTorchDevice *device, gsize n_bytes, GError **error)
{
  const gsize grain = n_bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : 64 * 1024;
  const gsize wanted =
      n_bytes > G_MAXSSIZE - grain ? G_MAXSIZE : (n_bytes + grain - 1) / grain * grain;
  gpointer data;
  guint round = 0;
  gsize size;

  for (;;)
    {
      size = wanted;
      data = pages_take (&size);
      if (data == NULL && has_room (device, size))
        data = pages_map (size);
      if (data != NULL)
        break;
      if (!free_some (device, n_bytes, &round))
        {
          set_out_of_memory (device, n_bytes, error);
          return NULL;
        }
    }
  ASAN_POISON_MEMORY_REGION ((gchar *) data + n_bytes, size - n_bytes);
  flow_add (&flows[1], TRUE, size, n_bytes);
  levels_add_one (allocated_levels, GTORCH_POOL_LARGE, TRUE, size, n_bytes);
  look_at_pressure (device, size);
  return storage_init (g_new (GTorchStorage, 1), device, data, n_bytes, size);
}

static G_GNUC_NO_INLINE GTorchStorage *
alloc_from_system (GTorchDevice *device, gsize n_bytes, guint index, ThreadCache *cache,
                   GError **error)
{
  const gsize size = class_size (index);
  gpointer block = NULL;
  guint round = 0;

  if (cache != NULL && cache->flushes != __atomic_load_n (&flushes, __ATOMIC_RELAXED))
    {
      cache->flushes = __atomic_load_n (&flushes, __ATOMIC_RELAXED);
      thread_cache_empty (cache);
    }
  /* a block that will not be reused ends where the elements end, so that tools detect accesses past the end
   */
  while (!has_room (device, size)
         || posix_memalign (&block, ALIGNMENT, HEADER + (is_caching () ? size : n_bytes)) != 0)
    if (!free_some (device, n_bytes, &round))
      {
        set_out_of_memory (device, n_bytes, error);
        return NULL;
      }
  count_reserved (size, FALSE);
  flow_in (cache, size, n_bytes);
  count (device, cache, size);
  return storage_init (block, device, (gchar *) block + HEADER, n_bytes, index);
}

GTorchStorage *
gtorch_cpu_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  ThreadCache *cache = thread_cache;
  GTorchStorage *storage;
  guint index;

  if (G_UNLIKELY (n_bytes > MEDIUM_MAX))
    return alloc_large (device, n_bytes, error);

  index = class_of (n_bytes);
  if (G_UNLIKELY (cache == NULL))
    cache = thread_cache_new ();
  if (G_UNLIKELY (cache == NULL || cache->bins[index].head == NULL))
    return alloc_from_system (device, n_bytes, index, cache, error);

  storage = cache->bins[index].head;
  cache->bins[index].head = storage->data;
  cache->bins[index].count--;
  flow_in (cache, class_size (index), n_bytes);
  count (device, cache, class_size (index));
  return storage_init (storage, device, (gchar *) storage + HEADER, n_bytes, index);
}

/* --- moved storages --- */

typedef struct
{
  gsize marker; /* of the small storage that it was, or LARGE_MARKER */
  GDestroyNotify free_func;
  gpointer free_data;
} Moved;

/* The note of a moved storage, or NULL. Its address plus 1 is no size of pages, which are even. */
static inline Moved *
find_note (gsize marker)
{
  return marker > LARGE_MARKER && (marker & 1) != 0 ? (Moved *) (marker - 1) : NULL;
}

static void
give_pages (GTorchStorage *storage, gsize size)
{
  flow_add (&flows[1], FALSE, size, storage->n_bytes);
  levels_add_one (allocated_levels, GTORCH_POOL_LARGE, FALSE, size, storage->n_bytes);
  ASAN_UNPOISON_MEMORY_REGION (storage->data, size);
  pages_give (storage->data, size);
}

static void
move_storage (GTorchStorage *storage, gpointer data, GDestroyNotify free_func, gpointer free_data)
{
  const gsize marker = GPOINTER_TO_SIZE (storage->free_data);
  Moved *moved = g_new (Moved, 1);

  g_assert (storage->free_func == NULL && find_note (marker) == NULL);
  *moved = (Moved){ MIN (marker, LARGE_MARKER), free_func, free_data };
  memcpy (data, storage->data, storage->n_bytes);
  if (marker >= LARGE_MARKER)
    give_pages (storage, marker);
  storage->data = data;
  storage->free_data = GSIZE_TO_POINTER ((gsize) moved + 1);
}

static gpointer
find_moved (const GTorchStorage *storage, GDestroyNotify free_func)
{
  const Moved *moved =
      storage->free_func == NULL ? find_note (GPOINTER_TO_SIZE (storage->free_data)) : NULL;

  return moved != NULL && moved->free_func == free_func ? moved->free_data : NULL;
}

const struct _GTorchShareBackend gtorch_cpu_shares = { .move = move_storage,
                                                       .find_moved = find_moved };

/* Frees what the storage was moved to, and returns its former marker. */
static gsize
end_move (GTorchStorage *storage, Moved *moved)
{
  const gsize marker = moved->marker;

  moved->free_func (moved->free_data);
  g_free (moved);
  storage->data = (gchar *) storage + HEADER;
  return marker;
}

void
gtorch_cpu_free (GTorchDevice *device, GTorchStorage *storage)
{
  gsize marker = GPOINTER_TO_SIZE (storage->free_data);
  ThreadCache *cache = thread_cache;

  if (G_UNLIKELY (marker >= LARGE_MARKER))
    {
      Moved *moved = find_note (marker);

      if (moved != NULL)
        marker = end_move (storage, moved);
      else
        give_pages (storage, marker);
      if (marker >= LARGE_MARKER)
        {
          g_free (storage);
          return;
        }
    }
  if (G_UNLIKELY (cache == NULL))
    cache = thread_cache_new ();
  flow_out (cache, class_size (marker), storage->n_bytes);
  count (device, cache, -(gint64) class_size (marker));
  if (G_UNLIKELY (cache == NULL || cache->bins[marker].count >= bin_limit (marker)))
    {
      system_free (storage, marker);
      return;
    }
  storage->data = cache->bins[marker].head;
  cache->bins[marker].head = storage;
  cache->bins[marker].count++;
}

gboolean
gtorch_cpu_memory_info (GTorchDevice *device, guint64 *available, guint64 *total, GError **error)
{
  guint64 left, swap, group;

  *total = memory_limit ();
  if (available == NULL)
    return TRUE;
  left = 1024 * read_number ("/proc/meminfo", "MemAvailable:");
  swap = 1024 * read_number ("/proc/meminfo", "SwapFree:");
  group = read_number (GROUP "memory.max", NULL);
  if (left == 0)
    left = (guint64) sysconf (_SC_AVPHYS_PAGES) * (guint64) sysconf (_SC_PAGESIZE);
  left += swap;
  if (group != 0)
    {
      guint64 used = read_number (GROUP "memory.current", NULL);

      left = MIN (left, group - MIN (group, used));
    }
  *available = MIN (left, *total);
  return TRUE;
}

static void
sync_counter (GTorchCounter *counter, gint64 added, gint64 current)
{
  counter->added += added;
  counter->current = current;
  counter->peak = MAX (counter->peak, current);
}

static void
sync_pool (GTorchMemoryStats *stats, guint pool, const Flow *now, const Flow *before,
           const Flow *reserved, const Flow *reserved_before)
{
  GTorchCounter *counters = stats->counters[pool];
  gint64 n = now->n_added - before->n_added, current = now->n_added - now->n_freed;
  gint64 bytes = now->bytes_added - before->bytes_added;
  gint64 current_bytes = now->bytes_added - now->bytes_freed;

  sync_counter (&counters[GTORCH_STAT_ALLOCATION], n, current);
  sync_counter (&counters[GTORCH_STAT_ACTIVE], n, current);
  sync_counter (&counters[GTORCH_STAT_ALLOCATED_BYTES], bytes, current_bytes);
  sync_counter (&counters[GTORCH_STAT_ACTIVE_BYTES], bytes, current_bytes);
  sync_counter (&counters[GTORCH_STAT_REQUESTED_BYTES],
                now->requested_added - before->requested_added,
                now->requested_added - now->requested_freed);
  sync_counter (&counters[GTORCH_STAT_SEGMENT], reserved->n_added - reserved_before->n_added,
                reserved->n_added - reserved->n_freed);
  sync_counter (&counters[GTORCH_STAT_RESERVED_BYTES],
                reserved->bytes_added - reserved_before->bytes_added,
                reserved->bytes_added - reserved->bytes_freed);
  if (pool == GTORCH_POOL_ALL)
    {
      stats->num_device_alloc += reserved->n_added - reserved_before->n_added;
      stats->num_device_free += reserved->n_freed - reserved_before->n_freed;
    }
}

static void
sync_peaks (GTorchMemoryStats *stats, guint pool)
{
  static const guint kinds[][N_LEVELS] = {
    { GTORCH_STAT_ALLOCATION, GTORCH_STAT_ALLOCATED_BYTES, GTORCH_STAT_REQUESTED_BYTES },
    { GTORCH_STAT_ACTIVE, GTORCH_STAT_ACTIVE_BYTES, GTORCH_STAT_REQUESTED_BYTES },
    { GTORCH_STAT_SEGMENT, GTORCH_STAT_RESERVED_BYTES, GTORCH_STAT_RESERVED_BYTES },
  };
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (kinds); i++)
    for (k = 0; k < (i == 2 ? LEVEL_REQUESTED : N_LEVELS); k++)
      raise_peak (&stats->counters[pool][kinds[i][k]].peak,
                  __atomic_load_n (&(i == 2 ? reserved_levels : allocated_levels)[pool].peak[k],
                                   __ATOMIC_RELAXED));
}

/* Sums up what threads have counted but not added to the levels yet. */
static void
all_outstanding (gint64 *sum)
{
  ThreadCache *cache;
  gint64 n[N_LEVELS];
  guint k;

  memset (sum, 0, sizeof (gint64) * N_LEVELS);
  g_mutex_lock (&lock);
  for (cache = threads; cache != NULL; cache = cache->next)
    {
      cache_outstanding (cache, n);
      for (k = 0; k < N_LEVELS; k++)
        sum[k] += n[k];
    }
  g_mutex_unlock (&lock);
}

static void
levels_reset (Levels *levels, const gint64 *outstanding)
{
  guint k;

  for (k = 0; k < N_LEVELS; k++)
    __atomic_store_n (&levels->peak[k],
                      __atomic_load_n (&levels->now[k], __ATOMIC_RELAXED) + outstanding[k],
                      __ATOMIC_RELAXED);
}

static void
restart_peaks (void)
{
  static const gint64 none[N_LEVELS];
  gint64 outstanding[N_LEVELS];
  guint i;

  all_outstanding (outstanding); /* thread caches hold small storages only */
  for (i = 0; i < GTORCH_N_POOLS; i++)
    {
      levels_reset (&allocated_levels[i], i == GTORCH_POOL_LARGE ? none : outstanding);
      levels_reset (&reserved_levels[i], none);
    }
}

void
gtorch_cpu_sync_stats (GTorchDevice *device, GTorchMemoryStats *stats, gboolean restart)
{
  Flow now[3] = { { 0 } }, before[3] = { { 0 } }, from[3] = { { 0 } }, from_before[3] = { { 0 } };
  ThreadCache *cache;
  guint i;

  if (restart)
    restart_peaks ();
  g_mutex_lock (&lock);
  flow_sum (&now[GTORCH_POOL_SMALL], &flows[0]);
  for (cache = threads; cache != NULL; cache = cache->next)
    flow_sum (&now[GTORCH_POOL_SMALL], &cache->flow);
  g_mutex_unlock (&lock);
  flow_sum (&now[GTORCH_POOL_LARGE], &flows[1]);
  for (i = 0; i < 2; i++)
    {
      flow_sum (&from[1 + i], &pieces[i]);
      before[1 + i] = synced[i];
      from_before[1 + i] = synced_pieces[i];
      synced[i] = now[1 + i];
      synced_pieces[i] = from[1 + i];
      flow_sum (&now[GTORCH_POOL_ALL], &now[1 + i]);
      flow_sum (&before[GTORCH_POOL_ALL], &before[1 + i]);
      flow_sum (&from[GTORCH_POOL_ALL], &from[1 + i]);
      flow_sum (&from_before[GTORCH_POOL_ALL], &from_before[1 + i]);
    }
  for (i = 0; i < GTORCH_N_POOLS; i++)
    {
      sync_pool (stats, i, &now[i], &before[i], &from[i], &from_before[i]);
      sync_peaks (stats, i);
    }
}

void
gtorch_cpu_empty_cache (GTorchDevice *device)
{
  /* other threads empty their caches when they next allocate */
  __atomic_add_fetch (&flushes, 1, __ATOMIC_RELAXED);
  if (thread_cache != NULL)
    {
      thread_cache->flushes = __atomic_load_n (&flushes, __ATOMIC_RELAXED);
      thread_cache_empty (thread_cache);
    }
  pages_trim (0);
}
