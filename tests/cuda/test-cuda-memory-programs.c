/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random programs that allocate, use and free memory on several streams, in private pools, from several
 * threads, with limits and with a driver that runs out of memory, compared with a model: blocks do not
 * overlap, no work writes to memory that was given to another block, the statistics are those of the
 * model, and at the end everything is freed. The suite runs some hundreds; GTORCH_FUZZ_RUNS=n runs more
 * of them, and GTORCH_FUZZ_SEED=n others. The devices have 256 MiB. */

#include "config.h"

#include <stdlib.h>

#include "cuda-test.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"

#define N_RUNS    200
#define N_STEPS   250
#define N_STREAMS 4
#define N_POOLS   2
#define N_THREADS 2
#define N_PLACES  3
#define MEMORY    (256 * MIB)
#define PATCH     256 /* bytes that are written and checked, at each place */

typedef struct
{
  GTorchImpl *x;
  gsize size;          /* of the block */
  guint home;          /* index of its stream */
  gint pool;           /* -1 if none */
  gboolean has_others; /* other streams use it */
  gint64 places[N_PLACES];
  guint8 values[N_PLACES];
  gboolean is_written[N_PLACES];
  GTorchEvent *last; /* completes when all work on it is done */
} Block;

/* A block that was freed, not waiting for any work. */
typedef struct
{
  const char *data;
  gsize size;
  gint stream; /* the stream that may reuse it; -1 if none */
} Range;

typedef struct
{
  gint64 current, peak, added;
} Count;

typedef struct
{
  GRand *rand;
  GTorchStream *streams[N_STREAMS];
  GTorchMemoryPool *pools[N_POOLS];
  GPtrArray *blocks;
  GArray *busy;
  gboolean is_held;
  gint64 limit;             /* the limit of reserved memory */
  Count n[3], n_bytes[3];   /* indexed by GTORCH_POOL_ALL and so on */
  gint64 of_pools[N_POOLS]; /* bytes in each pool */
  gint64 n_ooms;
} Program;

static guint
draw (Program *self, guint n)
{
  return g_rand_int_range (self->rand, 0, n);
}

static const gchar *
backend (void)
{
  static const gchar *const names[] = { "segments", "cudaMallocAsync" };
  g_autofree gchar *text = gtorch_allocator_get_configuration (gpu_allocator ());
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree gchar *setting = g_strconcat ("backend:", names[i], NULL);

      if (strstr (text, setting) != NULL)
        return names[i];
    }
  return "arenas";
}

static gsize
used (void)
{
  FakeCudaAccounts accounts;

  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.misuses, ==, 0);
  return accounts.n_bytes;
}

/* --- the model --- */

static void
count (Count *counts, guint pool, gint64 n)
{
  const guint which[] = { GTORCH_POOL_ALL, pool };
  guint i;

  for (i = 0; i < 2; i++)
    {
      Count *c = &counts[which[i]];

      c->current += n;
      c->added += MAX (n, 0);
      c->peak = MAX (c->peak, c->current);
    }
}

static void
count_block (Program *self, const Block *block, gboolean is_new)
{
  const guint pool = block->size <= MIB ? GTORCH_POOL_SMALL : GTORCH_POOL_LARGE;

  count (self->n, pool, is_new ? 1 : -1);
  count (self->n_bytes, pool, is_new ? (gint64) block->size : -(gint64) block->size);
  if (block->pool >= 0)
    self->of_pools[block->pool] += is_new ? (gint64) block->size : -(gint64) block->size;
}

static gint
by_address (gconstpointer a, gconstpointer b)
{
  const Block *x = *(const Block *const *) a, *y = *(const Block *const *) b;

  return (const char *) x->x->storage->data < (const char *) y->x->storage->data ? -1 : 1;
}

static void
check_addresses (Program *self)
{
  g_autoptr (GPtrArray) sorted = g_ptr_array_copy (self->blocks, NULL, NULL);
  guint i;

  g_ptr_array_sort (sorted, by_address);
  for (i = 0; i < sorted->len; i++)
    {
      const Block *block = sorted->pdata[i];
      const char *data = block->x->storage->data;
      guint8 byte;

      g_assert_cmpuint ((guintptr) data % 512, ==, 0);
      g_assert_true (fake_cuda_peek (data, &byte, 1));
      g_assert_true (fake_cuda_peek (data + block->size - 1, &byte, 1));
      if (i + 1 < sorted->len)
        g_assert_true (data + block->size
                       <= (const char *) ((Block *) sorted->pdata[i + 1])->x->storage->data);
    }
}

static void
check_counter (const GTorchCounter *counter, const Count *expected)
{
  g_assert_cmpint (counter->current, ==, expected->current);
  g_assert_cmpint (counter->peak, ==, expected->peak);
  g_assert_cmpint (counter->added, ==, expected->added);
}

static void
check_statistics (Program *self)
{
  /* remainders are not always split off */
  const gboolean is_exact = !g_str_equal (backend (), "segments");
  GTorchMemoryStats stats;
  guint i;

  gtorch_allocator_get_stats (gpu_allocator (), &stats);
  for (i = 0; i < 3; i++)
    {
      const GTorchCounter *c = stats.counters[i];

      check_counter (&c[GTORCH_STAT_ALLOCATION], &self->n[i]);
      if (is_exact)
        check_counter (&c[GTORCH_STAT_ALLOCATED_BYTES], &self->n_bytes[i]);
      else
        g_assert_cmpint (c[GTORCH_STAT_ALLOCATED_BYTES].current, >=, self->n_bytes[i].current);
      g_assert_cmpint (c[GTORCH_STAT_ACTIVE].current, >=, c[GTORCH_STAT_ALLOCATION].current);
      g_assert_cmpint (c[GTORCH_STAT_ACTIVE_BYTES].current, >=,
                       c[GTORCH_STAT_ALLOCATED_BYTES].current);
      g_assert_cmpint (c[GTORCH_STAT_REQUESTED_BYTES].current, <=,
                       c[GTORCH_STAT_ACTIVE_BYTES].current);
      g_assert_cmpint (c[GTORCH_STAT_RESERVED_BYTES].current, >=,
                       c[GTORCH_STAT_ACTIVE_BYTES].current
                           + c[GTORCH_STAT_INACTIVE_SPLIT_BYTES].current);
    }
  g_assert_cmpint (stats.num_ooms, ==, self->n_ooms);
  g_assert_cmpint (stats.counters[0][GTORCH_STAT_RESERVED_BYTES].current, ==, used ());
  for (i = 0; is_exact && i < N_POOLS; i++)
    if (self->pools[i] != NULL)
      g_assert_cmpint (gtorch_memory_pool_get_allocated (self->pools[i]), ==, self->of_pools[i]);
}

static void
check_arenas (void)
{
  GPtrArray *arenas = GTORCH_CUDA_DEVICE (gpu (0))->arenas;
  gsize mapped = 0;
  guint i;

  for (i = 0; i < arenas->len; i++)
    {
      g_assert_true (gtorch_cuda_arena_is_sound (arenas->pdata[i]));
      mapped += gtorch_cuda_arena_get_mapped (arenas->pdata[i]);
    }
  if (!g_str_equal (backend (), "cudaMallocAsync"))
    g_assert_cmpuint (mapped, ==, used ());
}

/* --- work --- */

static void
hold (Program *self, gboolean is_held)
{
  self->is_held = is_held;
  fake_cuda_hold (is_held);
  g_array_set_size (self->busy, 0);
}

static GTorchImpl *
patch (Block *block, guint place)
{
  const gint64 n = MIN (PATCH, block->x->numel - block->places[place]);

  return gtorch_impl_new_view (block->x, block->places[place], &n, NULL, 1);
}

static void
mark (Program *self, Block *block, guint stream)
{
  GError *error = NULL;

  g_clear_object (&block->last);
  block->last = gtorch_stream_record_event (self->streams[stream], &error);
  g_assert_no_error (error);
}

/* Writes with an operation, or like another library that records its use. */
static void
write_patch (Program *self, Block *block, guint stream)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (self->streams[stream]);
  const guint place = draw (self, N_PLACES);
  g_autoptr (GTorchImpl) x = patch (block, place);
  const guint8 value = 1 + draw (self, 255);
  GError *error = NULL;

  if (x->numel == 0)
    return;
  gtorch_stream_wait_event (self->streams[stream], block->last, &error);
  g_assert_no_error (error);
  if (draw (self, 4) > 0)
    gtorch_op_fill_inplace (x, value, &error);
  else
    {
      gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (0)), &error);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_cuda.cuMemsetD8Async ((CUdeviceptr) (guintptr) gtorch_impl_data (x),
                                                    value, x->numel,
                                                    gtorch_stream_get_handle (
                                                        self->streams[stream])),
                       ==, CUDA_SUCCESS);
      GTORCH_DEVICE_GET_CLASS (gpu (0))->record_stream (gpu (0), x->storage, self->streams[stream],
                                                        &error);
    }
  g_assert_no_error (error);
  block->values[place] = value;
  block->is_written[place] = TRUE;
  block->has_others |= stream != block->home;
  mark (self, block, stream);
}

/* Patches overlap in short blocks: then the last written one counts. */
static void
read_patches (Program *self, Block *block, guint stream)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (self->streams[stream]);
  GError *error = NULL;
  guint i;

  gtorch_stream_wait_event (self->streams[stream], block->last, &error);
  g_assert_no_error (error);
  for (i = 0; i < N_PLACES; i++)
    if (block->is_written[i])
      {
        g_autoptr (GTorchImpl) x = patch (block, i);
        g_autoptr (GTorchImpl) host =
            gtorch_op_to_device (x, gtorch_device_cpu (), draw (self, 2), &error);
        const guint8 *bytes;

        g_assert_no_error (error);
        g_assert_true (gtorch_impl_sync (host, &error));
        bytes = gtorch_impl_data (host);
        g_assert_cmpint (bytes[0], ==, block->values[i]);
        g_assert_cmpint (bytes[host->numel - 1], ==, block->values[i]);
      }
}

/* --- memory --- */

static void
check_limbo (Program *self, const Block *block)
{
  const char *data = block->x->storage->data;
  guint i;

  for (i = 0; i < self->busy->len; i++)
    {
      const Range *range = &g_array_index (self->busy, Range, i);

      if (data < range->data + range->size && range->data < data + block->size)
        g_assert_cmpint (range->stream, ==, (gint) block->home);
    }
}

/* Small sizes are the most frequent. */
static gint64
draw_size (Program *self)
{
  const guint bits = draw (self, 1 + draw (self, self->is_held ? 18 : 27));

  return draw (self, (1 << bits) + 1);
}

static void
allocate (Program *self)
{
  const gint64 n = draw_size (self);
  const gboolean faulty = !self->is_held && draw (self, 12) == 0;
  const guint64 before = used ();
  gint pool = draw (self, 2 * N_POOLS) - N_POOLS;
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GTorchMemoryPoolGuard) inner = NULL;
  g_autoptr (GError) error = NULL;
  Block *block = g_new0 (Block, 1);
  guint i;

  block->home = draw (self, N_STREAMS);
  block->size = (MAX (n, 1) + 511) / 512 * 512;
  block->pool = pool >= 0 && self->pools[pool] != NULL ? pool : -1;
  guard = gtorch_stream_guard_new (self->streams[block->home]);
  if (block->pool >= 0)
    inner = gtorch_memory_pool_guard_new (self->pools[pool]);
  if (faulty)
    fake_cuda_fail (g_str_equal (backend (), "arenas")     ? "cuMemCreate"
                    : g_str_equal (backend (), "segments") ? "cuMemAlloc"
                                                           : "cuMemAllocAsync",
                    1 + draw (self, 2), CUDA_ERROR_OUT_OF_MEMORY);
  block->x = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n, 1, &error);
  fake_cuda_clear_faults ();
  if (block->x == NULL)
    {
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
      g_free (block);
      self->n_ooms++;
      /* All free memory went back to the driver, and still it did not suffice. */
      if (!faulty && g_str_equal (backend (), "arenas"))
        g_assert_cmpint (used () + n + 4 * MIB, >, self->limit);
      return;
    }
  g_assert_no_error (error);
  if (used () > before)
    g_assert_cmpuint (used (), <=, self->limit);
  for (i = 1; i < N_PLACES; i++)
    block->places[i] = i * MAX (0, n - PATCH) / (N_PLACES - 1);
  if (block->places[1] < PATCH || block->places[2] < block->places[1] + PATCH)
    block->places[1] = block->places[2] = n; /* only one patch fits */
  if (self->is_held)
    check_limbo (self, block);
  count_block (self, block, TRUE);
  mark (self, block, block->home); /* others come after the stream's former work on the memory */
  g_ptr_array_add (self->blocks, block);
}

static void
drop (Program *self, Block *block)
{
  const Range range = { block->x->storage->data, block->size,
                        block->has_others ? -1 : (gint) block->home };

  count_block (self, block, FALSE);
  gtorch_impl_unref (block->x);
  if (self->is_held)
    g_array_append_val (self->busy, range);
  g_clear_object (&block->last);
  g_free (block);
}

static void
set_limit (Program *self)
{
  const gdouble fraction = draw (self, 3) == 0 ? 1 : 0.3 + draw (self, 70) / 100.0;
  GError *error = NULL;

  gtorch_allocator_set_memory_fraction (gpu_allocator (), fraction, &error);
  g_assert_no_error (error);
  self->limit = (gint64) (fraction * MEMORY);
}

static void
change_pool (Program *self)
{
  GTorchMemoryPool **pool = &self->pools[draw (self, N_POOLS)];

  if (*pool == NULL)
    *pool = gtorch_memory_pool_new (gpu (0));
  else if (draw (self, 2) == 0)
    gtorch_memory_pool_trim (*pool);
  else if (self->of_pools[pool - self->pools] == 0)
    g_clear_object (pool);
}

static gpointer
step (gpointer data)
{
  Program *self = data;
  const guint kind = draw (self, 30), stream = draw (self, N_STREAMS);
  guint at = self->blocks->len > 0 ? draw (self, self->blocks->len) : 0;

  if (kind < 12 || self->blocks->len == 0)
    allocate (self);
  else if (kind < 18)
    write_patch (self, self->blocks->pdata[at], stream);
  else if (kind < 26)
    drop (self, g_ptr_array_remove_index_fast (self->blocks, at));
  else if (kind == 26 && self->is_held)
    hold (self, FALSE);
  else if (kind == 26)
    {
      gtorch_device_empty_cache (gpu (0)); /* so that nothing has to wait meanwhile */
      if (used () + 64 * MIB <= (gsize) self->limit)
        hold (self, TRUE);
    }
  else if (self->is_held)
    ; /* executes pending work */
  else if (kind == 27)
    read_patches (self, self->blocks->pdata[at], stream);
  else if (kind == 28)
    change_pool (self);
  else if (draw (self, 3) == 0)
    set_limit (self);
  else if (draw (self, 2) == 0)
    gtorch_device_empty_cache (gpu (0));
  else
    gtorch_stream_synchronize (self->streams[stream], NULL, NULL);
  return NULL;
}

/* --- threads, one at a time --- */

typedef struct
{
  GThread *thread;
  GAsyncQueue *todo, *done;
} Worker;

static gpointer
serve (gpointer data)
{
  Worker *self = data;
  Program *program;

  while ((program = g_async_queue_pop (self->todo)) != (gpointer) self)
    {
      step (program);
      g_async_queue_push (self->done, program);
    }
  return NULL;
}

static void
worker_start (Worker *self)
{
  self->todo = g_async_queue_new ();
  self->done = g_async_queue_new ();
  self->thread = g_thread_new ("worker", serve, self);
}

static void
worker_end (Worker *self)
{
  g_async_queue_push (self->todo, self);
  g_thread_join (self->thread);
  g_async_queue_unref (self->todo);
  g_async_queue_unref (self->done);
}

/* --- programs --- */

static void
run_program (guint32 seed)
{
  Program self = { g_rand_new_with_seed (seed) };
  GTorchMemoryStats stats;
  Worker workers[N_THREADS];
  guint i, j;

  gtorch_allocator_reset_peak (gpu_allocator ());
  gtorch_allocator_reset_accumulated (gpu_allocator ());
  fake_cuda_set_seed (seed);
  self.limit = MEMORY;
  self.blocks = g_ptr_array_new ();
  self.busy = g_array_new (FALSE, FALSE, sizeof (Range));
  for (i = 0; i < N_STREAMS; i++)
    self.streams[i] = i == 0 ? g_object_ref (gtorch_device_get_default_stream (gpu (0)))
                             : gtorch_stream_new (gpu (0), 0, NULL);
  for (i = 0; i < N_THREADS; i++)
    worker_start (&workers[i]);
  for (i = 0; i < N_STEPS; i++)
    {
      guint who = draw (&self, 2 * N_THREADS);

      if (who < N_THREADS)
        {
          g_async_queue_push (workers[who].todo, &self);
          g_async_queue_pop (workers[who].done);
        }
      else
        step (&self);
      if (i % 5 == 0)
        check_statistics (&self);
      if (i % 25 == 0)
        {
          check_addresses (&self);
          check_arenas ();
        }
    }
  hold (&self, FALSE);
  check_statistics (&self);
  for (i = 0; i < N_THREADS; i++)
    worker_end (&workers[i]);
  for (i = 0; i < self.blocks->len; i++)
    read_patches (&self, self.blocks->pdata[i], draw (&self, N_STREAMS));
  while (self.blocks->len > 0)
    drop (&self, g_ptr_array_remove_index_fast (self.blocks, self.blocks->len - 1));
  for (i = 0; i < N_POOLS; i++)
    g_clear_object (&self.pools[i]);
  for (i = 0; i < N_STREAMS; i++)
    g_object_unref (self.streams[i]);
  gtorch_allocator_set_memory_fraction (gpu_allocator (), 1, NULL);
  gtorch_device_empty_cache (gpu (0));
  g_assert_null (GTORCH_CUDA_DEVICE (gpu (0))->limbo);
  gtorch_allocator_get_stats (gpu_allocator (), &stats);
  for (i = 0; i < GTORCH_N_POOLS; i++)
    for (j = 0; j < GTORCH_N_STATS; j++)
      g_assert_cmpint (stats.counters[i][j].current, ==, 0);
  g_assert_cmpuint (used (), ==, 0);
  g_ptr_array_unref (self.blocks);
  g_array_unref (self.busy);
  g_rand_free (self.rand);
}

static void
memory_matches_the_model (void)
{
  const gchar *runs = g_getenv ("GTORCH_FUZZ_RUNS"), *seed = g_getenv ("GTORCH_FUZZ_SEED");
  const guint n = runs != NULL ? atoi (runs) : N_RUNS, first = seed != NULL ? atoi (seed) : 1;
  guint i;

  for (i = first; i < first + n; i++)
    {
      g_test_message ("program %u", i);
      run_program (i);
    }
}

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchCudaMemoryPrograms/memory_matches_the_model", memory_matches_the_model);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
