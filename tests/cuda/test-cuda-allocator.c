/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The memory of a GPU: its reuse, and the steps when it runs out. The devices have 256 MiB. */

#include "config.h"

#include "cuda-test.h"

static GTorchImpl *
bytes_new (gint64 n_bytes, GError **error)
{
  return gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
}

static gboolean
has_segments (void)
{
  g_autofree gchar *text =
      gtorch_allocator_get_configuration (gtorch_device_get_allocator (gpu (0)));

  return strstr (text, "backend:segments") != NULL;
}

static gsize
used (void)
{
  FakeCudaAccounts accounts;

  fake_cuda_get_accounts (&accounts);
  if (has_segments ())
    g_assert_cmpuint (accounts.mappings, ==, 0);
  else
    g_assert_cmpuint (accounts.handles, ==, accounts.mappings);
  return accounts.n_bytes;
}

/* Every arena of the device keeps its invariants, and together they hold all memory from the driver. */
static void
check_arenas (void)
{
  GPtrArray *lanes = GTORCH_CUDA_DEVICE (gpu (0))->lanes;
  gsize mapped = 0;
  guint i, j;

  for (i = 0; i < lanes->len; i++)
    {
      GTorchCudaLane *lane = lanes->pdata[i];
      GTorchCudaArena *arenas[] = { lane->small, lane->large };

      for (j = 0; j < G_N_ELEMENTS (arenas); j++)
        if (arenas[j] != NULL)
          {
            g_assert_true (gtorch_cuda_arena_is_sound (arenas[j]));
            mapped += gtorch_cuda_arena_get_mapped (arenas[j]);
          }
    }
  g_assert_cmpuint (mapped, ==, used ());
  g_assert_cmpuint (mapped, ==, gtorch_device_get_memory_reserved (gpu (0)));
}

static void
a_stream_gets_its_own_memory_again_at_once (void)
{
  GTorchImpl *x = bytes (1000);
  gpointer data = x->storage->data;

  fake_cuda_hold (TRUE);
  gtorch_op_fill_inplace (x, 1, NULL); /* not executed yet */
  gtorch_impl_unref (x);
  x = bytes (1000);
  g_assert_true (x->storage->data == data);
  fake_cuda_hold (FALSE);
  gtorch_impl_unref (x);
}

static void
memory_in_use_by_other_streams_waits_in_limbo (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchImpl) second = NULL;
  g_autoptr (GTorchImpl) third = NULL;
  GTorchStreamGuard *guard;
  GTorchImpl *x;
  gpointer data;

  gtorch_device_empty_cache (gpu (0)); /* no free memory precedes x */
  x = bytes (32768);
  data = x->storage->data;
  fake_cuda_set_seed (1);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_hold (TRUE);
  guard = gtorch_stream_guard_new (other);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_stream_guard_unref (guard);
  gtorch_impl_unref (x);
  g_assert_nonnull (GTORCH_CUDA_DEVICE (gpu (0))->limbo);
  second = bytes (32768);
  g_assert_true (second->storage->data != data);
  fake_cuda_hold (FALSE);
  gtorch_device_empty_cache (gpu (0));
  g_assert_null (GTORCH_CUDA_DEVICE (gpu (0))->limbo);
  third = bytes (32768);
  g_assert_true (third->storage->data == data);
}

static void
cached_memory_of_other_streams_is_used_before_giving_up (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchStreamGuard *guard = gtorch_stream_guard_new (other);
  guint64 n_retries = gpu_stat (0, "num_alloc_retries");
  GTorchImpl *x = bytes (180 * MIB);

  gtorch_impl_unref (x);
  gtorch_stream_guard_unref (guard);
  x = bytes (180 * MIB);
  gtorch_impl_unref (x);
  g_assert_cmpuint (gpu_stat (0, "num_alloc_retries"), ==,
                    n_retries + has_segments ()); /* pages move */
  gtorch_device_empty_cache (gpu (0));
}

/* Only waiting for the other stream gives the memory back. */
static void
an_allocation_waits_for_limbo_before_it_fails (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchImpl *x = bytes (180 * MIB);
  GTorchStreamGuard *guard;

  fake_cuda_set_seed (2); /* executes late */
  guard = gtorch_stream_guard_new (other);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_stream_guard_unref (guard);
  gtorch_impl_unref (x);
  x = bytes (180 * MIB);
  gtorch_impl_unref (x);
  gtorch_device_empty_cache (gpu (0));
}

static void
running_out_of_memory_says_how_much (void)
{
  g_autoptr (GTorchImpl) x = bytes (180 * MIB);
  g_autoptr (GTorchImpl) small = bytes (100);
  g_autoptr (GError) error = NULL;
  guint64 n_ooms = gpu_stat (0, "num_ooms");

  g_assert_null (bytes_new (100 * MIB, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_test_message ("%s", error->message);
  g_assert_true (
      g_pattern_match_simple ("100.0?MiB cannot be allocated on cuda:0, out of memory: of its "
                              "256.0?MiB, "
                              "74.0?MiB are free; * hold 180.0?MiB, and 2.0?MiB are reserved but "
                              "unallocated, the "
                              "largest piece of them being 2.0?MiB*",
                              error->message));
  g_clear_error (&error);
  g_assert_null (bytes_new ((gint64) 1 << 50, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpuint (gpu_stat (0, "num_ooms"), ==, n_ooms + 2);
  check_arenas ();
}

static guint n_pressures;
static guint64 pressure_bytes;

static void
on_pressure (GTorchDevice *device, guint64 n_bytes, GTorchImpl **victim)
{
  n_pressures++;
  pressure_bytes = n_bytes;
  g_clear_pointer (victim, gtorch_impl_unref);
}

static void
the_program_is_asked_to_drop_something (void)
{
  GTorchImpl *victim = bytes (180 * MIB);
  g_autoptr (GTorchImpl) x = NULL;
  gulong id = g_signal_connect (gpu (0), "memory-pressure", G_CALLBACK (on_pressure), &victim);

  gtorch_device_set_pressure_threshold (gpu (0), G_MAXUINT64);
  n_pressures = 0;
  x = bytes (150 * MIB);
  g_assert_cmpuint (n_pressures, ==, 1);
  g_assert_cmpuint (pressure_bytes, ==, 150 * MIB);
  g_assert_null (victim);
  g_signal_handler_disconnect (gpu (0), id);
}

static void
statistics_follow (void)
{
  GTorchImpl *x, *y;

  gtorch_device_empty_cache (gpu (0));
  gtorch_device_reset_peak_memory (gpu (0));
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
  x = bytes (1000);
  y = bytes (70 * MIB);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 1024 + 70 * MIB);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 72 * MIB);
  gtorch_impl_unref (y);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 1024);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (gpu (0)), ==, 1024 + 70 * MIB);
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 2 * MIB);
  g_assert_cmpuint (gtorch_device_get_peak_memory_reserved (gpu (0)), ==, 72 * MIB);
  gtorch_device_reset_peak_memory (gpu (0));
  g_assert_cmpuint (gtorch_device_get_peak_memory_reserved (gpu (0)), ==, 2 * MIB);
  g_assert_cmpuint (gtorch_device_get_total_memory (gpu (0)), ==, 256 * MIB);
  gtorch_impl_unref (x);
}

static gpointer
churn (gpointer data)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (GPOINTER_TO_UINT (data));
  GTorchImpl *live[16] = { NULL };
  guint i;

  for (i = 0; i < 2000; i++)
    {
      guint at = g_rand_int_range (rand, 0, G_N_ELEMENTS (live));

      g_clear_pointer (&live[at], gtorch_impl_unref);
      live[at] = bytes_new (g_rand_int_range (rand, 0, 100000), NULL);
      if (live[at] != NULL && g_rand_int_range (rand, 0, 8) == 0)
        gtorch_op_fill_inplace (live[at], i, NULL);
    }
  for (i = 0; i < G_N_ELEMENTS (live); i++)
    g_clear_pointer (&live[i], gtorch_impl_unref);
  return NULL;
}

static void
threads_may_allocate_together (void)
{
  GThread *threads[3];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("churn", churn, GUINT_TO_POINTER (i));
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  check_arenas ();
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 0);
}

#define TEST(name) g_test_add_func ("/GTorchCudaAllocator/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (statistics_follow);
  TEST (a_stream_gets_its_own_memory_again_at_once);
  TEST (memory_in_use_by_other_streams_waits_in_limbo);
  TEST (cached_memory_of_other_streams_is_used_before_giving_up);
  TEST (an_allocation_waits_for_limbo_before_it_fails);
  TEST (running_out_of_memory_says_how_much);
  TEST (the_program_is_asked_to_drop_something);
  TEST (threads_may_allocate_together);
  result = g_test_run ();
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (used (), ==, 0);
  assert_no_misuse ();
  return result;
}
