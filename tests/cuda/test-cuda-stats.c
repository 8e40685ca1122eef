/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The statistics of the allocator of a GPU. The devices have 256 MiB. */

#include "config.h"

#include "cuda-test.h"

static void
assert_stats (const gchar *name, gint64 current, gint64 peak, gint64 added, gint64 freed)
{
  static const gchar *const parts[] = { "current", "peak", "allocated", "freed" };
  const gint64 expected[] = { current, peak, added, freed };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autofree gchar *key = g_strconcat (name, ".", parts[i], NULL);

      if (gpu_stat (0, key) != expected[i])
        g_test_message ("%s", key);
      g_assert_cmpint (gpu_stat (0, key), ==, expected[i]);
    }
}

static void
start (void)
{
  gtorch_allocator_trim (gpu_allocator ());
  gtorch_allocator_reset_peak (gpu_allocator ());
  gtorch_allocator_reset_accumulated (gpu_allocator ());
}

static void
every_key_has_a_number (void)
{
  g_auto (GStrv) keys = gtorch_allocator_dup_stat_keys (gpu_allocator ());
  g_autoptr (GError) error = NULL;
  guint i;

  g_assert_cmpuint (g_strv_length (keys), ==, 9 * 3 * 4 + 2 * 4 + 6);
  for (i = 0; keys[i] != NULL; i++)
    gpu_stat (0, keys[i]);
  g_assert_cmpint (gpu_stat (0, "max_split_size"), ==, -1);
  g_assert_cmpuint (gtorch_allocator_get_stat (gpu_allocator (), "allocated.all.current", &error),
                    ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_true (g_str_has_prefix (error->message, "allocator: “allocated.all.current” is not"));
}

static void
each_storage_is_counted_in_its_pool (void)
{
  GTorchImpl *small, *other, *large;

  start ();
  small = bytes (1000);
  other = bytes (513);
  large = bytes (MIB + 1);
  assert_stats ("allocation.all", 3, 3, 3, 0);
  assert_stats ("allocation.small_pool", 2, 2, 2, 0);
  assert_stats ("allocation.large_pool", 1, 1, 1, 0);
  assert_stats ("allocated_bytes.small_pool", 2048, 2048, 2048, 0);
  assert_stats ("allocated_bytes.large_pool", MIB + 512, MIB + 512, MIB + 512, 0);
  assert_stats ("requested_bytes.all", 1513 + MIB + 1, 1513 + MIB + 1, 1513 + MIB + 1, 0);
  assert_stats ("reserved_bytes.all", 34 * MIB, 34 * MIB, 34 * MIB, 0);
  assert_stats ("segment.small_pool", 1, 1, 1, 0);
  assert_stats ("segment.large_pool", 1, 1, 1, 0);
  assert_stats ("inactive_split.all", 2, 2, 2, 0);
  g_assert_cmpint (gpu_stat (0, "inactive_split_bytes.all.current"), ==, 33 * MIB - 2048 - 512);
  g_assert_cmpint (gpu_stat (0, "num_device_alloc"), ==, 2);

  gtorch_impl_unref (small);
  assert_stats ("allocation.small_pool", 1, 2, 2, 1);
  assert_stats ("active_bytes.small_pool", 1024, 2048, 2048, 1024);
  gtorch_impl_unref (large);
  assert_stats ("requested_bytes.all", 513, 1514 + MIB, 1514 + MIB, 1001 + MIB);
  assert_stats ("inactive_split.large_pool", 0, 1, 1, 1); /* the whole page is free */
  gtorch_allocator_reset_peak (gpu_allocator ());
  assert_stats ("allocation.all", 1, 1, 3, 2);
  gtorch_allocator_trim (gpu_allocator ());
  assert_stats ("reserved_bytes.all", 2 * MIB, 34 * MIB, 34 * MIB, 32 * MIB);
  assert_stats ("segment.large_pool", 0, 1, 1, 1);
  g_assert_cmpint (gpu_stat (0, "num_device_free"), ==, 1);

  gtorch_allocator_reset_accumulated (gpu_allocator ());
  assert_stats ("allocation.all", 1, 1, 0, 0);
  g_assert_cmpint (gpu_stat (0, "num_device_alloc"), ==, 0);
  gtorch_impl_unref (other);
  assert_stats ("allocation.all", 0, 1, 0, 1);
  gtorch_allocator_trim (gpu_allocator ());
  assert_stats ("inactive_split_bytes.all", 0, 2 * MIB - 1024, 0, 2 * MIB - 1024);
}

static void
private_pools_have_keys_while_they_live (void)
{
  GTorchMemoryPool *pool = gtorch_memory_pool_new (gpu (0));
  g_autofree gchar *name = g_strdup_printf ("reserved_bytes_by_private_pools.0_%" G_GUINT64_FORMAT,
                                            gtorch_memory_pool_get_id (pool));
  g_autofree gchar *all = g_strconcat (name, ".all", NULL);
  g_autofree gchar *small = g_strconcat (name, ".small_pool", NULL);
  g_autofree gchar *large = g_strconcat (name, ".large_pool", NULL);
  g_autofree gchar *last = g_strconcat (large, ".freed", NULL);
  g_auto (GStrv) keys = gtorch_allocator_dup_stat_keys (gpu_allocator ());
  GTorchMemoryPoolGuard *guard = gtorch_memory_pool_guard_new (pool);
  g_autoptr (GError) error = NULL;
  GTorchImpl *x, *y;

  g_assert_true (g_strv_contains ((const gchar *const *) keys, last));
  assert_stats (all, 0, 0, 0, 0);
  x = bytes (1000);
  y = bytes (MIB + 1);
  assert_stats (small, 2 * MIB, 2 * MIB, 2 * MIB, 0);
  assert_stats (large, 32 * MIB, 32 * MIB, 32 * MIB, 0);
  assert_stats (all, 34 * MIB, 34 * MIB, 34 * MIB, 0);
  gtorch_memory_pool_guard_unref (guard);
  gtorch_impl_unref (y);
  gtorch_memory_pool_trim (pool);
  assert_stats (large, 0, 32 * MIB, 32 * MIB, 32 * MIB);
  assert_stats (all, 2 * MIB, 34 * MIB, 34 * MIB, 32 * MIB);
  gtorch_allocator_reset_peak (gpu_allocator ());
  g_assert_cmpuint (gtorch_memory_pool_get_peak_reserved (pool), ==, 2 * MIB);
  gtorch_allocator_reset_accumulated (gpu_allocator ());
  assert_stats (all, 2 * MIB, 2 * MIB, 0, 0);

  g_object_unref (pool);
  assert_stats (small, 2 * MIB, 2 * MIB, 0, 0); /* the tensor is in it */
  gtorch_impl_unref (x);
  gtorch_allocator_trim (gpu_allocator ());
  g_assert_cmpuint (gtorch_allocator_get_stat (gpu_allocator (), last, &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
}

static void
memory_that_streams_use_is_active (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchImpl *x;
  GTorchStreamGuard *guard;

  start ();
  x = bytes (3000);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_hold (TRUE);
  guard = gtorch_stream_guard_new (other);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_stream_guard_unref (guard);
  gtorch_impl_unref (x);
  assert_stats ("allocation.all", 0, 1, 1, 1);
  assert_stats ("allocated_bytes.all", 0, 3072, 3072, 3072);
  assert_stats ("active.all", 1, 1, 1, 0);
  assert_stats ("active_bytes.small_pool", 3072, 3072, 3072, 0);
  assert_stats ("requested_bytes.small_pool", 3000, 3000, 3000, 0);
  fake_cuda_hold (FALSE);
  gtorch_allocator_trim (gpu_allocator ());
  assert_stats ("active.all", 0, 1, 1, 1);
  assert_stats ("requested_bytes.all", 0, 3000, 3000, 3000);
}

static void
properties_are_the_same_numbers (void)
{
  guint64 allocated, peak, reserved, peak_reserved, cached;
  g_autoptr (GTorchAllocator) same = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  GTorchDevice *device;
  gdouble fragmentation;

  start ();
  gtorch_impl_unref (bytes (70 * MIB));
  x = bytes (MIB);
  g_object_get (gpu_allocator (), "allocated", &allocated, "peak-allocated", &peak, "reserved",
                &reserved, "peak-reserved", &peak_reserved, "cached", &cached, "fragmentation",
                &fragmentation, "device", &device, NULL);
  g_assert_cmpuint (allocated, ==, MIB);
  g_assert_cmpuint (peak, ==, 70 * MIB);
  g_assert_cmpuint (reserved, ==, 72 * MIB);
  g_assert_cmpuint (peak_reserved, ==, 72 * MIB);
  g_assert_cmpuint (cached, ==, 71 * MIB);
  g_assert_cmpfloat_with_epsilon (fragmentation, 1.0 / 72, 1e-9);
  g_assert_true (device == gpu (0));
  g_object_unref (device);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, MIB);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (gpu (0)), ==, 70 * MIB);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 72 * MIB);
  g_assert_cmpuint (gtorch_device_get_peak_memory_reserved (gpu (0)), ==, 72 * MIB);
  same = g_object_new (GTORCH_TYPE_ALLOCATOR, "device", gpu (0), NULL);
  g_assert_true (same == gpu_allocator ());
}

static void
the_table_has_every_number_in_a_good_unit (void)
{
  static const gchar *const expected[] = {
    "|===========================================================================|",
    "|                     GTorch memory summary, device cuda:0                  |",
    "|---------------------------------------------------------------------------|",
    "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |",
    "|===========================================================================|",
    "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    "|---------------------------------------------------------------------------|",
    "| Allocated memory      |   1024 B   |  71681 KiB |  71681 KiB |  71680 KiB |",
    "|       from large pool |      0 B   |  71680 KiB |  71680 KiB |  71680 KiB |",
    "|       from small pool |   1024 B   |      1 KiB |      1 KiB |      0 KiB |",
    "|---------------------------------------------------------------------------|",
    "| Active memory         |   1024 B   |  71681 KiB |  71681 KiB |  71680 KiB |",
    "|       from large pool |      0 B   |  71680 KiB |  71680 KiB |  71680 KiB |",
    "|       from small pool |   1024 B   |      1 KiB |      1 KiB |      0 KiB |",
    "|---------------------------------------------------------------------------|",
    "| Requested memory      |   1000 B   |  71680 KiB |  71680 KiB |  71680 KiB |",
    "|       from large pool |      0 B   |  71680 KiB |  71680 KiB |  71680 KiB |",
    "|       from small pool |   1000 B   |      0 KiB |      0 KiB |      0 KiB |",
    "|---------------------------------------------------------------------------|",
    "| GPU reserved memory   |  73728 KiB |  73728 KiB |  73728 KiB |      0 B   |",
    "|       from large pool |  71680 KiB |  71680 KiB |  71680 KiB |      0 B   |",
    "|       from small pool |   2048 KiB |   2048 KiB |   2048 KiB |      0 B   |",
    "|---------------------------------------------------------------------------|",
    "| Non-releasable memory |   2047 KiB |   2047 KiB |   2047 KiB |      0 B   |",
    "|       from large pool |      0 KiB |      0 KiB |      0 KiB |      0 B   |",
    "|       from small pool |   2047 KiB |   2047 KiB |   2047 KiB |      0 B   |",
    "|---------------------------------------------------------------------------|",
    "| Allocations           |       1    |       2    |       2    |       1    |",
    "|       from large pool |       0    |       1    |       1    |       1    |",
    "|       from small pool |       1    |       1    |       1    |       0    |",
    "|---------------------------------------------------------------------------|",
    "| Active allocs         |       1    |       2    |       2    |       1    |",
    "|       from large pool |       0    |       1    |       1    |       1    |",
    "|       from small pool |       1    |       1    |       1    |       0    |",
    "|---------------------------------------------------------------------------|",
    "| GPU reserved segments |       2    |       2    |       2    |       0    |",
    "|       from large pool |       1    |       1    |       1    |       0    |",
    "|       from small pool |       1    |       1    |       1    |       0    |",
    "|---------------------------------------------------------------------------|",
    "| Non-releasable allocs |       1    |       1    |       1    |       0    |",
    "|       from large pool |       0    |       0    |       0    |       0    |",
    "|       from small pool |       1    |       1    |       1    |       0    |",
    "|---------------------------------------------------------------------------|",
    "| Oversize allocations  |       0    |       0    |       0    |       0    |",
    "|---------------------------------------------------------------------------|",
    "| Oversize GPU segments |       0    |       0    |       0    |       0    |",
    "|===========================================================================|",
    "",
  };
  g_autofree gchar *text = NULL, *brief = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  GTorchImpl *y;
  guint i;

  start ();
  x = bytes (1000);
  y = bytes (70 * MIB);
  gtorch_impl_unref (y);
  text = gtorch_allocator_to_summary (gpu_allocator (), FALSE);
  lines = g_strsplit (text, "\n", -1);
  for (i = 0; i < G_N_ELEMENTS (expected); i++)
    g_assert_cmpstr (lines[i], ==, expected[i]);
  g_assert_null (lines[i]);
  brief = gtorch_allocator_to_summary (gpu_allocator (), TRUE);
  g_assert_null (strstr (brief, "from"));
  g_assert_nonnull (strstr (brief, "\n| Active allocs         |       1 "));
}

static void
failures_and_waits_are_counted (void)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GError) error = NULL;
  gint64 n_bytes = 200 * MIB;

  start ();
  x = bytes (180 * MIB);
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpint (gpu_stat (0, "num_ooms"), ==, 1);
  g_assert_cmpint (gpu_stat (0, "num_alloc_retries"), ==, 1);
  g_assert_cmpint (gpu_stat (0, "num_sync_all_streams"), ==, 1);
  gtorch_allocator_reset_accumulated (gpu_allocator ());
  g_assert_cmpint (gpu_stat (0, "num_ooms"), ==, 0);
}

typedef struct
{
  guint32 seed;
  gint64 n, n_bytes, requested;
} Churn;

static gpointer
churn (gpointer data)
{
  Churn *self = data;
  g_autoptr (GRand) rand = g_rand_new_with_seed (self->seed);
  GTorchImpl *live[16] = { NULL };
  guint i;

  for (i = 0; i < 3000; i++)
    {
      guint at = g_rand_int_range (rand, 0, G_N_ELEMENTS (live));
      gint64 size = g_rand_int_range (rand, 1, i % 7 == 0 ? 3 << 20 : 20000);

      g_clear_pointer (&live[at], gtorch_impl_unref);
      live[at] = bytes (size);
      self->n++;
      self->n_bytes += (size + 511) / 512 * 512;
      self->requested += size;
    }
  for (i = 0; i < G_N_ELEMENTS (live); i++)
    g_clear_pointer (&live[i], gtorch_impl_unref);
  return NULL;
}

static void
nothing_is_lost_between_threads (void)
{
  Churn churns[3] = { { 1, 0, 0, 0 }, { 2, 0, 0, 0 }, { 3, 0, 0, 0 } };
  GThread *threads[3];
  gint64 n = 0, n_bytes = 0, requested = 0;
  guint i;

  start ();
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("churn", churn, &churns[i]);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    {
      g_thread_join (threads[i]);
      n += churns[i].n;
      n_bytes += churns[i].n_bytes;
      requested += churns[i].requested;
    }
  g_assert_cmpint (gpu_stat (0, "allocation.all.peak"), <=, 3 * 16);
  g_assert_cmpint (gpu_stat (0, "allocation.all.peak"), >=, 16);
  assert_stats ("allocation.all", 0, gpu_stat (0, "allocation.all.peak"), n, n);
  assert_stats ("allocated_bytes.all", 0, gpu_stat (0, "allocated_bytes.all.peak"), n_bytes,
                n_bytes);
  assert_stats ("active_bytes.all", 0, gpu_stat (0, "allocated_bytes.all.peak"), n_bytes, n_bytes);
  assert_stats ("requested_bytes.all", 0, gpu_stat (0, "requested_bytes.all.peak"), requested,
                requested);
}

#define TEST(name) g_test_add_func ("/GTorchAllocator/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (every_key_has_a_number);
  TEST (each_storage_is_counted_in_its_pool);
  TEST (private_pools_have_keys_while_they_live);
  TEST (memory_that_streams_use_is_active);
  TEST (properties_are_the_same_numbers);
  TEST (the_table_has_every_number_in_a_good_unit);
  TEST (failures_and_waits_are_counted);
  TEST (nothing_is_lost_between_threads);
  result = g_test_run ();
  gtorch_device_empty_cache (gpu (0));
  assert_no_misuse ();
  return result;
}
