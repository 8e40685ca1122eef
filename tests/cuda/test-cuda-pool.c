/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Private pools of a GPU: their memory is separate, is counted for the pool and the device, and is freed
 * at the end. */

#include "config.h"

#include "cuda-test.h"

#include <gtorch/memory/gtorch-memory-pool-private.h>

static gsize
used (void)
{
  FakeCudaAccounts accounts;

  fake_cuda_get_accounts (&accounts);
  return accounts.n_bytes;
}

static GTorchImpl *
bytes_in (GTorchMemoryPool *pool, gint64 n_bytes)
{
  g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);

  return bytes (n_bytes);
}

static void
memory_comes_from_the_pool_until_the_guard_ends (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));
  GTorchMemoryPoolGuard *guard;
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) second = NULL;
  gpointer data;

  g_assert_true (gtorch_memory_pool_get_device (pool) == gpu (0));
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, 0);
  guard = gtorch_memory_pool_guard_new (pool);
  first = bytes (3 * MIB);
  data = first->storage->data;
  gtorch_memory_pool_guard_end (guard);
  gtorch_memory_pool_guard_end (guard);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), ==, 3 * MIB);
  second = bytes (3 * MIB);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), ==, 3 * MIB);
  g_clear_pointer (&second, gtorch_impl_unref);

  /* Memory of the pool is reused inside the pool. */
  g_clear_pointer (&first, gtorch_impl_unref);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), ==, 0);
  second = bytes (3 * MIB);
  g_assert_true (second->storage->data != data);
  first = bytes_in (pool, 3 * MIB);
  g_assert_true (first->storage->data == data);
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (pool), ==, 3 * MIB);
  gtorch_memory_pool_guard_unref (guard);
}

static gpointer
bytes_elsewhere (gpointer n_bytes)
{
  return bytes (GPOINTER_TO_INT (n_bytes));
}

static void
each_device_and_thread_has_its_own (void)
{
  g_autoptr (GTorchMemoryPool) here = gtorch_memory_pool_new (gpu (0));
  g_autoptr (GTorchMemoryPool) there = gtorch_memory_pool_new (gpu (1));
  g_autoptr (GTorchMemoryPoolGuard) outer = gtorch_memory_pool_guard_new (here);
  g_autoptr (GTorchMemoryPoolGuard) inner = gtorch_memory_pool_guard_new (there);
  g_autoptr (GTorchImpl) x = bytes (1000);
  g_autoptr (GTorchImpl) y = NULL;
  GThread *thread;
  gint64 n = 2000;

  g_assert_cmpuint (gtorch_memory_pool_get_allocated (here), ==, 1024);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (there), ==, 0);
  y = gtorch_impl_new (gpu (1), GTORCH_DTYPE_UINT8, &n, 1, NULL);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (there), ==, 2048);

  thread = g_thread_new ("other", bytes_elsewhere, GINT_TO_POINTER (5000));
  gtorch_impl_unref (g_thread_join (thread));
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (here), ==, 1024);

  gtorch_memory_pool_guard_end (outer); /* in any order */
  gtorch_impl_unref (bytes (5000));
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (here), ==, 1024);
}

static gpointer
leave_a_guard_behind (gpointer pool)
{
  return gtorch_memory_pool_guard_new (pool);
}

static void
a_thread_that_ends_leaves_its_pool (void)
{
  GTorchMemoryPool *pool = gtorch_memory_pool_new (gpu (0));
  GThread *thread = g_thread_new ("guard", leave_a_guard_behind, pool);
  GTorchMemoryPoolGuard *guard = g_thread_join (thread);

  gtorch_memory_pool_guard_unref (guard);
  g_object_add_weak_pointer (G_OBJECT (pool), (gpointer *) &pool);
  g_object_unref (pool);
  g_assert_null (pool);
}

static gboolean
fill_it (GTorchMemoryPool *pool, gpointer data, GError **error)
{
  gtorch_impl_unref (bytes (MIB));
  return g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%s", (gchar *) data), FALSE;
}

static void
run_returns_results (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_memory_pool_run (pool, fill_it, "no more", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "no more");
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (pool), ==, MIB);
  gtorch_memory_pool_reset_peak (pool);
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (pool), ==, 0);
  gtorch_impl_unref (bytes (MIB));
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (pool), ==, 0);
}

static void
memory_is_freed_with_the_last_tensor (void)
{
  GTorchMemoryPool *pool = gtorch_memory_pool_new (gpu (0));
  GTorchImpl *small = bytes_in (pool, 1000);
  GTorchImpl *large = bytes_in (pool, 5 * MIB);
  gsize before;

  gtorch_device_empty_cache (gpu (0));
  before = used ();
  g_object_unref (pool);
  gtorch_impl_unref (large);
  g_assert_cmpuint (used (), ==, before);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, before);
  gtorch_impl_unref (small);
  g_assert_cmpuint (used (), ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
}

/* Freeing a pool does not wait for the GPU. */
static void
memory_in_use_is_freed_later (void)
{
  GTorchMemoryPool *pool = gtorch_memory_pool_new (gpu (0));
  GTorchImpl *x = bytes_in (pool, 1000);

  gtorch_device_empty_cache (gpu (0));
  fake_cuda_hold (TRUE);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_impl_unref (x);
  g_object_unref (pool);
  g_assert_cmpuint (used (), >, 0);
  fake_cuda_hold (FALSE);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  x = bytes (1000); /* asks the driver for more; dead pools are freed before that */
  g_assert_cmpuint (used (), ==, 2 * MIB);
  gtorch_impl_unref (x);
}

static void
limbo_keeps_the_pool (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchMemoryPool *pool = gtorch_memory_pool_new (gpu (0));
  GTorchImpl *x = bytes_in (pool, 1000);
  GTorchStreamGuard *guard;

  fake_cuda_hold (TRUE);
  guard = gtorch_stream_guard_new (other);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_stream_guard_unref (guard);
  gtorch_impl_unref (x);
  g_object_unref (pool);
  fake_cuda_hold (FALSE);
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (used (), ==, 0);
}

static void
only_the_pool_trims_itself (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));

  gtorch_impl_unref (bytes_in (pool, 3 * MIB));
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (used (), ==, gtorch_memory_pool_get_reserved (pool));
  g_assert_cmpuint (used (), >, 0);

  /* Graphs replay in memory that no tensor refers to. */
  gtorch_pool_set_graph (gtorch_memory_pool_get_pool (pool), TRUE);
  gtorch_memory_pool_trim (pool);
  g_assert_cmpuint (used (), >, 0);
  gtorch_pool_set_graph (gtorch_memory_pool_get_pool (pool), FALSE);
  gtorch_memory_pool_trim (pool);
  g_assert_cmpuint (used (), ==, 0);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, 0);
  g_assert_cmpuint (gtorch_memory_pool_get_peak_reserved (pool), >, 0);
}

/* The device has 256 MiB. */
static void
pools_help_out_if_allowed (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GError) error = NULL;
  const gint64 n = 128 * MIB;

  gtorch_device_empty_cache (gpu (0));
  gtorch_impl_unref (bytes_in (pool, 160 * MIB));
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "are reserved in private pools"));
  gtorch_memory_pool_set_use_on_oom (pool, TRUE);
  x = bytes (n);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, 0);
}

static void
memory_of_graphs_is_not_reused_elsewhere (void)
{
  g_autoptr (GTorchMemoryPool) object = gtorch_memory_pool_new (gpu (0));
  GTorchPool *pool = gtorch_memory_pool_get_pool (object);
  g_autoptr (GTorchImpl) x = NULL;
  GTorchStorage *captured;
  gpointer data;

  gtorch_pool_set_graph (pool, TRUE);
  captured = gtorch_pool_alloc (pool, 1000, TRUE, NULL);
  data = captured->data;
  g_assert_true (gtorch_pool_of (captured) == pool);
  gtorch_storage_unref (captured);
  x = bytes_in (object, 1000);
  g_assert_true (x->storage->data != data);
  g_assert_null (gtorch_pool_of (x->storage));
  captured = gtorch_pool_alloc (pool, 1000, TRUE, NULL);
  g_assert_true (captured->data == data);
  gtorch_storage_unref (captured);
  gtorch_pool_set_graph (pool, FALSE);
}

static gboolean
contains (GBytes *bytes, gconstpointer text, gsize length)
{
  return memmem (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), text, length) != NULL;
}

static void
snapshots_name_the_pool (void)
{
  GTorchAllocator *allocator = gpu_allocator ();
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));
  g_autoptr (GTorchImpl) inside = NULL;
  g_autoptr (GTorchImpl) outside = bytes (2000);
  g_autoptr (GBytes) own = NULL;
  g_autoptr (GBytes) all = NULL;
  guint8 id[] = { 'J', 0, 0, 0, 0, 'J', 0, 0, 0, 0, 0x86 };
  guint8 none[sizeof id];
  GError *error = NULL;

  memcpy (none, id, sizeof id);
  id[6] = gtorch_memory_pool_get_id (pool);
  g_assert_cmpuint (id[6], ==, gtorch_memory_pool_get_id (pool));
  gtorch_allocator_record_history (allocator, GTORCH_HISTORY_ALLOC, 100, NULL);
  inside = bytes_in (pool, 1000);
  own = gtorch_memory_pool_snapshot (pool, &error);
  g_assert_no_error (error);
  all = gtorch_allocator_snapshot (allocator, &error);
  g_assert_no_error (error);
  gtorch_allocator_record_history (allocator, GTORCH_HISTORY_NEVER, 0, NULL);
  g_assert_true (contains (own, id, sizeof id));
  g_assert_false (contains (own, none, sizeof none));
  g_assert_true (contains (own, "alloc", 5));
  g_assert_true (contains (all, id, sizeof id));
  g_assert_true (contains (all, none, sizeof none));
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchCudaPool/" #name, name)
  ADD (memory_comes_from_the_pool_until_the_guard_ends);
  ADD (each_device_and_thread_has_its_own);
  ADD (a_thread_that_ends_leaves_its_pool);
  ADD (run_returns_results);
  ADD (memory_is_freed_with_the_last_tensor);
  ADD (memory_in_use_is_freed_later);
  ADD (limbo_keeps_the_pool);
  ADD (only_the_pool_trims_itself);
  ADD (pools_help_out_if_allowed);
  ADD (memory_of_graphs_is_not_reused_elsewhere);
  ADD (snapshots_name_the_pool);
#undef ADD
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
