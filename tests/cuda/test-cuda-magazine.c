/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Thread caches of small blocks: a cached block belongs to a thread and a stream, the cache is bounded,
 * blocks return when they are needed elsewhere, and the statistics do not show the cache. The devices
 * have 256 MiB. */

#include "config.h"

#include <gtorch/cuda/memory/gtorch-cuda-magazine-private.h>

#include "cuda-test.h"

#define N_THREADS 3
#define N_STREAMS 3

static gsize
kept (void)
{
  return gtorch_cuda_magazines_size (GTORCH_CUDA_DEVICE (gpu (0)));
}

/* Returns the bytes in use according to the arenas. */
static gsize
taken (void)
{
  GPtrArray *lanes = GTORCH_CUDA_DEVICE (gpu (0))->lanes;
  gsize mapped = 0, n_bytes = 0;
  guint i, j, k;

  for (i = 0; i < lanes->len; i++)
    {
      GTorchCudaLane *lane = lanes->pdata[i];
      GTorchCudaArena *arenas[] = { lane->small, lane->large };

      for (j = 0; j < G_N_ELEMENTS (arenas); j++)
        if (arenas[j] != NULL)
          {
            g_autoptr (GArray) blocks = g_array_new (FALSE, FALSE, sizeof (GTorchBlockInfo));

            g_assert_true (gtorch_cuda_arena_is_sound (arenas[j]));
            mapped += gtorch_cuda_arena_get_mapped (arenas[j]);
            gtorch_cuda_arena_list (arenas[j], blocks);
            for (k = 0; k < blocks->len; k++)
              {
                const GTorchBlockInfo *info = &g_array_index (blocks, GTorchBlockInfo, k);

                n_bytes += info->state != GTORCH_BLOCK_INACTIVE ? info->size : 0;
              }
          }
    }
  g_assert_cmpuint (mapped, ==, gtorch_device_get_memory_reserved (gpu (0)));
  return n_bytes;
}

static gint
by_address (gconstpointer a, gconstpointer b)
{
  const GTorchImpl *x = *(GTorchImpl *const *) a, *y = *(GTorchImpl *const *) b;

  return x->storage->data < y->storage->data ? -1 : 1;
}

static void
check_overlap (GPtrArray *live)
{
  g_autoptr (GPtrArray) sorted = g_ptr_array_copy (live, NULL, NULL);
  guint i;

  g_ptr_array_sort (sorted, by_address);
  for (i = 1; i < sorted->len; i++)
    {
      GTorchStorage *storage = ((GTorchImpl *) sorted->pdata[i - 1])->storage;

      g_assert_true ((char *) storage->data + MAX (storage->n_bytes, 1)
                     <= (char *) ((GTorchImpl *) sorted->pdata[i])->storage->data);
    }
}

/* --- threads that act on command, one at a time --- */

typedef struct
{
  enum
  {
    ALLOC,
    FREE,
    FILL,
    END,
  } what;
  GTorchStream *stream;
  gint64 n_bytes;
  GTorchImpl *impl;
} Order;

typedef struct
{
  GThread *thread;
  GAsyncQueue *orders, *done;
} Worker;

static gpointer
work (gpointer data)
{
  Worker *self = data;
  gboolean goes_on = TRUE;

  while (goes_on)
    {
      Order *order = g_async_queue_pop (self->orders);
      GTorchStreamGuard *guard =
          order->stream != NULL ? gtorch_stream_guard_new (order->stream) : NULL;

      if (order->what == ALLOC)
        order->impl = bytes (order->n_bytes);
      else if (order->what == FILL)
        gtorch_op_fill_inplace (order->impl, 1, NULL);
      else if (order->what == FREE)
        g_clear_pointer (&order->impl, gtorch_impl_unref);
      goes_on = order->what != END;
      g_clear_pointer (&guard, gtorch_stream_guard_unref);
      g_async_queue_push (self->done, order);
    }
  return NULL;
}

static void
worker_start (Worker *self)
{
  self->orders = g_async_queue_new ();
  self->done = g_async_queue_new ();
  self->thread = g_thread_new ("worker", work, self);
}

static GTorchImpl *
tell (Worker *self, guint what, GTorchStream *stream, gint64 n_bytes, GTorchImpl *impl)
{
  Order order = { what, stream, n_bytes, impl };

  g_async_queue_push (self->orders, &order);
  g_assert_true (g_async_queue_pop (self->done) == &order);
  return order.impl;
}

static void
worker_end (Worker *self)
{
  tell (self, END, NULL, 0, NULL);
  g_thread_join (self->thread);
  g_async_queue_unref (self->orders);
  g_async_queue_unref (self->done);
}

/* --- the cache --- */

static void
a_thread_gets_back_what_it_freed (void)
{
  GTorchImpl *x, *y;
  gpointer data;

  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (kept (), ==, 0);
  x = bytes (5000);
  data = x->storage->data;
  gtorch_impl_unref (x);
  g_assert_cmpuint (kept (), ==, 5120);
  y = bytes (4000); /* another size of the same class */
  g_assert_true (y->storage->data != data);
  x = bytes (4700);
  g_assert_true (x->storage->data == data);
  g_assert_cmpuint (kept (), ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 5120 + 4096);
  gtorch_impl_unref (x);
  gtorch_impl_unref (y);
  gtorch_impl_unref (bytes (2 * MIB)); /* too large for the cache */
  g_assert_cmpuint (kept (), ==, 5120 + 4096);
  gtorch_allocator_get_stat (gpu_allocator (), "inactive_split.all.current", NULL);
  g_assert_cmpuint (kept (), ==, 0);
}

static void
the_cache_is_bounded (void)
{
  GTorchImpl *live[100];
  guint i;

  gtorch_device_empty_cache (gpu (0));
  for (i = 0; i < 100; i++)
    live[i] = bytes (1000);
  for (i = 0; i < 100; i++)
    {
      gtorch_impl_unref (live[i]);
      g_assert_cmpuint (kept (), <=, 16 * 1024);
    }
  g_assert_cmpuint (kept (), >, 8 * 1024);
  for (i = 0; i < 100; i++)
    live[i] = bytes (MIB - 4096 * (i % 50));
  for (i = 0; i < 100; i++)
    {
      gtorch_impl_unref (live[i]);
      g_assert_cmpuint (kept (), <=, 8 * MIB);
    }
  g_assert_cmpuint (taken (), ==, gtorch_device_get_memory_allocated (gpu (0)));
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
}

static void
nothing_is_cached_while_history_is_recorded (void)
{
  gtorch_device_empty_cache (gpu (0));
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_STATE, 0, NULL);
  gtorch_impl_unref (bytes (1000));
  g_assert_cmpuint (kept (), ==, 0);
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_NEVER, 0, NULL);
  gtorch_impl_unref (bytes (1000));
  g_assert_cmpuint (kept (), ==, 1024);
  g_assert_true (gtorch_allocator_set_caching (gpu_allocator (), FALSE, NULL));
  gtorch_impl_unref (bytes (1000));
  g_assert_cmpuint (kept (), ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
  g_assert_true (gtorch_allocator_set_caching (gpu_allocator (), TRUE, NULL));
}

static void
cached_blocks_are_returned (void)
{
  GTorchStream *stream = gtorch_stream_new (gpu (0), 0, NULL);
  Worker worker;
  GTorchImpl *x;

  gtorch_device_empty_cache (gpu (0));
  worker_start (&worker);
  x = tell (&worker, ALLOC, stream, 1000, NULL);
  tell (&worker, FREE, NULL, 0, x);
  x = tell (&worker, ALLOC, NULL, 2000, NULL);
  tell (&worker, FREE, NULL, 0, x);
  g_assert_cmpuint (kept (), ==, 1024 + 2048);
  g_object_unref (stream); /* and with it its part of the cache */
  g_assert_cmpuint (kept (), ==, 2048);
  worker_end (&worker);
  g_assert_cmpuint (kept (), ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 0);
}

/* Without calls of the driver: blocks of 1 MiB in another thread's cache fill all pages of the arena. */
static void
caches_are_flushed_before_an_allocation_fails (void)
{
  GTorchImpl *large, *live[8], *x;
  Worker worker;
  guint i;

  gtorch_device_empty_cache (gpu (0));
  large = bytes (248 * MIB);
  worker_start (&worker);
  for (i = 0; i < 8; i++)
    live[i] = tell (&worker, ALLOC, NULL, MIB, NULL);
  for (i = 0; i < 8; i++)
    tell (&worker, FREE, NULL, 0, live[i]);
  g_assert_cmpuint (kept (), ==, 8 * MIB);
  gtorch_allocator_reset_accumulated (gpu_allocator ());
  x = bytes (1000);
  g_assert_cmpuint (kept (), ==, 0);
  g_assert_cmpuint (gtorch_allocator_get_stat (gpu_allocator (), "num_alloc_retries", NULL), ==, 0);
  gtorch_impl_unref (x);
  gtorch_impl_unref (large);
  worker_end (&worker);
}

/* --- statistics --- */

typedef struct
{
  gint64 current, peak, added, freed;
} Number;

static const GTorchStat model_stats[] = { GTORCH_STAT_ALLOCATION, GTORCH_STAT_ALLOCATED_BYTES,
                                          GTORCH_STAT_REQUESTED_BYTES };

static void
number_change (Number *self, gint64 change)
{
  self->current += change;
  self->peak = MAX (self->peak, self->current);
  self->added += MAX (change, 0);
  self->freed -= MIN (change, 0);
}

static void
model_change (Number model[3][GTORCH_N_POOLS], gint64 n_bytes, gint sign)
{
  const gint64 size = (MAX (n_bytes, 1) + 511) / 512 * 512;
  const gint64 changes[3] = { sign, sign * size, sign * n_bytes };
  guint i;

  for (i = 0; i < 3; i++)
    {
      number_change (&model[i][GTORCH_POOL_ALL], changes[i]);
      number_change (&model[i][size <= MIB ? GTORCH_POOL_SMALL : GTORCH_POOL_LARGE], changes[i]);
    }
}

static void
check_counter (const GTorchCounter *counter, const Number *number)
{
  g_assert_cmpint (counter->current, ==, number->current);
  g_assert_cmpint (counter->peak, ==, number->peak);
  g_assert_cmpint (counter->added, ==, number->added);
  g_assert_cmpint (gtorch_counter_freed (counter), ==, number->freed);
}

static void
check_model (Number model[3][GTORCH_N_POOLS])
{
  GTorchMemoryStats stats;
  guint i, pool;

  gtorch_allocator_get_stats (gpu_allocator (), &stats);
  for (i = 0; i < 3; i++)
    for (pool = 0; pool < GTORCH_N_POOLS; pool++)
      {
        const GTorchCounter *counters = stats.counters[pool];

        check_counter (&counters[model_stats[i]], &model[i][pool]);
        if (i == 0)
          check_counter (&counters[GTORCH_STAT_ACTIVE], &model[i][pool]);
        if (i == 1)
          check_counter (&counters[GTORCH_STAT_ACTIVE_BYTES], &model[i][pool]);
      }
}

static void
reset (Number model[3][GTORCH_N_POOLS], gboolean peaks, gboolean sums)
{
  guint i, pool;

  for (i = 0; i < 3; i++)
    for (pool = 0; pool < GTORCH_N_POOLS; pool++)
      {
        if (peaks)
          model[i][pool].peak = model[i][pool].current;
        if (sums)
          model[i][pool].added = model[i][pool].freed = 0;
      }
  if (peaks)
    gtorch_allocator_reset_peak (gpu_allocator ());
  if (sums)
    gtorch_allocator_reset_accumulated (gpu_allocator ());
}

static gint64
random_size (GRand *rand)
{
  guint bits = g_rand_int_range (rand, 0, g_rand_int_range (rand, 1, 22));

  return g_rand_int_range (rand, 0, (1 << bits) + 1);
}

/* Threads are created, work one after the other, and end; the numbers are those of a model without
 * threads, and are rarely read. */
static void
no_peak_is_missed (void)
{
  guint32 seed;
  guint i;

  for (seed = 1; seed <= 8; seed++)
    {
      g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
      g_autoptr (GPtrArray) live = g_ptr_array_new ();
      Number model[3][GTORCH_N_POOLS] = { 0 };
      GTorchStream *streams[N_STREAMS];
      Worker workers[N_THREADS];
      guint step, wanted = 0;

      gtorch_device_empty_cache (gpu (0));
      reset (model, TRUE, TRUE);
      for (i = 0; i < N_STREAMS; i++)
        streams[i] = gtorch_stream_new (gpu (0), 0, NULL);
      for (i = 0; i < N_THREADS; i++)
        worker_start (&workers[i]);
      for (step = 0; step < 3000; step++)
        {
          Worker *worker = &workers[g_rand_int_range (rand, 0, N_THREADS)];
          gint kind = g_rand_int_range (rand, 0, 200);

          if (step % 100 == 0) /* usage goes up and down */
            wanted = g_rand_int_range (rand, 0, 60);
          if (kind < 2)
            {
              check_model (model);
              check_overlap (live);
              g_assert_cmpuint (taken (), ==, gtorch_device_get_memory_allocated (gpu (0)));
            }
          else if (kind < 4)
            reset (model, kind == 2, kind == 3);
          else if (kind == 4)
            {
              worker_end (worker);
              worker_start (worker);
            }
          else if (kind == 5)
            gtorch_device_empty_cache (gpu (0));
          else if (g_rand_int_range (rand, 0, 60) + wanted >= 30 + live->len)
            {
              gint64 n_bytes = random_size (rand);

              g_ptr_array_add (live,
                               tell (worker, ALLOC, streams[step % N_STREAMS], n_bytes, NULL));
              model_change (model, n_bytes, 1);
            }
          else if (live->len > 0)
            {
              guint at = g_rand_int_range (rand, 0, live->len);
              GTorchImpl *impl = g_ptr_array_remove_index_fast (live, at);

              model_change (model, impl->numel, -1);
              tell (worker, FREE, NULL, 0, impl);
            }
        }
      check_model (model);
      g_assert_cmpuint (taken (), ==, gtorch_device_get_memory_allocated (gpu (0)));
      for (i = 0; i < N_THREADS; i++)
        worker_end (&workers[i]);
      g_assert_cmpuint (kept (), ==, 0);
      check_model (model);
      for (i = 0; i < live->len; i++)
        gtorch_impl_unref (live->pdata[i]);
      for (i = 0; i < N_STREAMS; i++)
        g_object_unref (streams[i]);
    }
}

/* --- memory that pending work may still write --- */

/* Memory that was freed while the GPU was busy. Only `stream` may reuse it; NULL: no stream. */
typedef struct
{
  char *data;
  gsize size;
  GTorchStream *stream;
} Range;

static void
check_ranges (GArray *busy, GTorchImpl *impl, GTorchStream *stream)
{
  char *data = impl->storage->data;
  guint i;

  for (i = 0; i < busy->len; i++)
    {
      const Range *range = &g_array_index (busy, Range, i);

      if (data + impl->numel > range->data && data < range->data + range->size)
        g_assert_true (range->stream == stream);
    }
}

static void
no_stream_gets_memory_in_use_by_another (void)
{
  GTorchStream *streams[N_STREAMS];
  Worker workers[N_THREADS];
  guint32 seed;
  guint i;

  for (i = 0; i < N_STREAMS; i++)
    streams[i] = gtorch_stream_new (gpu (0), 0, NULL);
  for (i = 0; i < N_THREADS; i++)
    worker_start (&workers[i]);
  for (seed = 1; seed <= 12; seed++)
    {
      g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
      g_autoptr (GPtrArray) live = g_ptr_array_new ();
      g_autoptr (GPtrArray) homes = g_ptr_array_new ();
      g_autoptr (GPtrArray) users = g_ptr_array_new ();
      g_autoptr (GArray) busy = g_array_new (FALSE, FALSE, sizeof (Range));
      guint step;

      gtorch_device_synchronize (gpu (0), NULL, NULL);
      fake_cuda_hold (TRUE);
      for (step = 0; step < 400; step++)
        {
          Worker *worker = &workers[g_rand_int_range (rand, 0, N_THREADS)];
          GTorchStream *stream = streams[g_rand_int_range (rand, 0, N_STREAMS)];
          guint at = live->len > 0 ? g_rand_int_range (rand, 0, live->len) : 0;
          gint kind = g_rand_int_range (rand, 0, 10);

          if (kind < 5 || live->len == 0)
            {
              /* few sizes, so that memory is reused; an empty tensor has no bytes */
              GTorchImpl *impl =
                  tell (worker, ALLOC, stream, 512 << g_rand_int_range (rand, 0, 5), NULL);

              check_ranges (busy, impl, stream);
              g_ptr_array_add (live, impl);
              g_ptr_array_add (homes, stream);
              g_ptr_array_add (users, NULL);
            }
          else if (kind < 7)
            {
              tell (worker, FILL, stream, 0, live->pdata[at]);
              if (stream != homes->pdata[at])
                users->pdata[at] = stream;
            }
          else
            {
              GTorchImpl *impl = g_ptr_array_remove_index_fast (live, at);
              GTorchStream *home = g_ptr_array_remove_index_fast (homes, at);
              GTorchStream *user = g_ptr_array_remove_index_fast (users, at);
              Range range = { impl->storage->data, impl->numel, user == NULL ? home : NULL };

              g_array_append_val (busy, range);
              tell (worker, FREE, NULL, 0, impl);
            }
        }
      fake_cuda_hold (FALSE);
      for (i = 0; i < live->len; i++)
        gtorch_impl_unref (live->pdata[i]);
      gtorch_device_empty_cache (gpu (0));
      g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
    }
  for (i = 0; i < N_THREADS; i++)
    worker_end (&workers[i]);
  for (i = 0; i < N_STREAMS; i++)
    g_object_unref (streams[i]);
}

/* --- all together --- */

static GMutex market_lock;
static GQueue market; /* tensors for any thread to free */

typedef struct
{
  guint32 seed;
  gint64 n;
} Trader;

static gpointer
trade (gpointer data)
{
  Trader *self = data;
  g_autoptr (GRand) rand = g_rand_new_with_seed (self->seed);
  guint i;

  for (i = 0; i < 4000; i++)
    {
      GTorchImpl *mine = bytes (random_size (rand) % 30000), *other = NULL;

      self->n++;
      g_mutex_lock (&market_lock);
      if (market.length > 30 || g_rand_boolean (rand))
        other = g_queue_pop_head (&market);
      g_queue_push_tail (&market, mine);
      g_mutex_unlock (&market_lock);
      g_clear_pointer (&other, gtorch_impl_unref);
      if (i % 1000 == 0)
        gtorch_allocator_trim (gpu_allocator ());
      if (i % 100 == 0)
        g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), <=,
                          gtorch_device_get_peak_memory_allocated (gpu (0)));
    }
  return NULL;
}

static void
threads_free_what_others_allocated (void)
{
  Trader traders[N_THREADS];
  GThread *threads[N_THREADS];
  GTorchMemoryStats stats;
  const GTorchCounter *counter = &stats.counters[GTORCH_POOL_ALL][GTORCH_STAT_ALLOCATION];
  gint64 n = 0;
  guint i;

  gtorch_allocator_trim (gpu_allocator ());
  gtorch_allocator_reset_peak (gpu_allocator ());
  gtorch_allocator_reset_accumulated (gpu_allocator ());
  for (i = 0; i < N_THREADS; i++)
    {
      traders[i] = (Trader){ i, 0 };
      threads[i] = g_thread_new ("trader", trade, &traders[i]);
    }
  for (i = 0; i < N_THREADS; i++)
    {
      g_thread_join (threads[i]);
      n += traders[i].n;
    }
  gtorch_allocator_get_stats (gpu_allocator (), &stats);
  g_assert_cmpint (counter->current, ==, market.length);
  g_assert_cmpint (counter->added, ==, n);
  g_assert_cmpint (counter->peak, >=, 30);
  g_assert_cmpint (counter->peak, <=, 60);
  g_assert_cmpuint (taken (), ==, gtorch_device_get_memory_allocated (gpu (0)));
  g_queue_clear_full (&market, (GDestroyNotify) gtorch_impl_unref);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 0);
}

#define TEST(name) g_test_add_func ("/GTorchCudaMagazine/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (a_thread_gets_back_what_it_freed);
  TEST (the_cache_is_bounded);
  TEST (nothing_is_cached_while_history_is_recorded);
  TEST (cached_blocks_are_returned);
  TEST (caches_are_flushed_before_an_allocation_fails);
  TEST (no_peak_is_missed);
  TEST (no_stream_gets_memory_in_use_by_another);
  TEST (threads_free_what_others_allocated);
  result = g_test_run ();
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
  assert_no_misuse ();
  return result;
}
