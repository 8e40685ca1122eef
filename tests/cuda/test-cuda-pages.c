/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Free pages move from one arena to another when the device has no more memory. The devices have 256 MiB. */

#include "config.h"

#include <tests/capture-test.h>

#include "cuda-test.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"

#define PAGE (32 * MIB)

static void
check_arena (GTorchCudaArena *arena, gpointer data)
{
  g_assert_true (gtorch_cuda_arena_is_sound (arena));
  *(gsize *) data += gtorch_cuda_arena_get_mapped (arena);
}

/* All memory from the driver is in some arena, and counted. */
static void
check_memory (gsize expected)
{
  FakeCudaAccounts accounts;
  gsize mapped = 0;

  gtorch_cuda_foreach_arena (GTORCH_CUDA_DEVICE (gpu (0)), check_arena, &mapped);
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.handles, ==, accounts.mappings);
  g_assert_cmpuint (accounts.n_bytes, ==, expected);
  g_assert_cmpuint (mapped, ==, expected);
  g_assert_cmpint (gpu_stat (0, "reserved_bytes.all.current"), ==, expected);
  g_assert_cmpint (gpu_stat (0, "reserved_bytes.small_pool.current")
                       + gpu_stat (0, "reserved_bytes.large_pool.current"),
                   ==, expected);
  g_assert_cmpint (gpu_stat (0, "segment.all.current"), ==, accounts.handles);
}

static void
start (void)
{
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  gtorch_device_empty_cache (gpu (0));
  check_memory (0);
  gtorch_allocator_reset_peak (gpu_allocator ());
  gtorch_allocator_reset_accumulated (gpu_allocator ());
  fake_cuda_reset_calls ();
}

/* The driver was not asked to create memory that exists already, and has got none back. */
static void
assert_moved (guint n_created)
{
  g_assert_cmpint (gpu_stat (0, "num_device_alloc"), ==, n_created);
  g_assert_cmpint (gpu_stat (0, "num_device_free"), ==, 0);
  g_assert_cmpint (gpu_stat (0, "num_alloc_retries"), ==, 0);
  g_assert_cmpint (gpu_stat (0, "num_sync_all_streams"), ==, 0);
  g_assert_cmpuint (fake_cuda_get_calls ("cuMemRelease"), ==, 0);
}

#define END 65536

/* Fills the first and the last bytes, which are in different pages if there are two. */
static void
fill (GTorchImpl *x, gint value)
{
  const gint64 n = END, stride = 1;
  g_autoptr (GTorchImpl) begin = gtorch_impl_new_view (x, 0, &n, &stride, 1);
  g_autoptr (GTorchImpl) end = gtorch_impl_new_view (x, x->numel - n, &n, &stride, 1);
  g_autoptr (GError) error = NULL;

  gtorch_op_fill_inplace (begin, value, &error);
  g_assert_no_error (error);
  gtorch_op_fill_inplace (end, value, &error);
  g_assert_no_error (error);
}

static void
assert_filled (GTorchImpl *x, guint8 value)
{
  guint8 data[END];
  guint i;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  for (i = 0; i < 2; i++)
    {
      g_assert_true (
          fake_cuda_peek ((char *) x->storage->data + i * (x->numel - END), data, sizeof data));
      g_assert_cmpuint (data[0], ==, value);
      g_assert_cmpint (memcmp (data, data + 1, sizeof data - 1), ==, 0);
    }
}

/* Allocates blocks of one page each. */
static void
alloc_pages (GTorchStream *stream, GTorchImpl **pages, guint n)
{
  g_autoptr (GTorchStreamGuard) guard = stream != NULL ? gtorch_stream_guard_new (stream) : NULL;
  guint i;

  for (i = 0; i < n; i++)
    pages[i] = bytes (PAGE);
}

static void
a_stream_gets_free_pages_of_another (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchImpl *theirs[6], *mine[8];

  start ();
  alloc_pages (other, theirs, 6);
  gtorch_impl_clear (theirs, 6);
  alloc_pages (NULL, mine, 8);
  assert_moved (8);
  check_memory (256 * MIB);
  g_assert_cmpint (gpu_stat (0, "allocated_bytes.all.current"), ==, 256 * MIB);
  g_assert_cmpint (gpu_stat (0, "segment.large_pool.peak"), ==, 8);
  fill (mine[7], 3);
  assert_filled (mine[7], 3);
  gtorch_impl_clear (mine, 8);
}

static void
scattered_pages_come_together (void)
{
  GTorchImpl *pages[8], *x, *y;
  guint i;

  start ();
  alloc_pages (NULL, pages, 8);
  for (i = 0; i < 8; i += 2)
    g_clear_pointer (&pages[i], gtorch_impl_unref);
  x = bytes (60 * MIB);
  assert_moved (8);
  fill (x, 5);
  fill (pages[1], 6);
  assert_filled (x, 5);
  y = bytes (64 * MIB); /* contiguous pages, which do not exist */
  g_assert_cmpint (gpu_stat (0, "num_alloc_retries"), ==, 1);
  g_assert_cmpint (gpu_stat (0, "num_device_alloc"), ==, 9);
  check_memory (256 * MIB);
  gtorch_impl_unref (y);
  gtorch_impl_unref (x);
  for (i = 1; i < 8; i += 2)
    gtorch_impl_unref (pages[i]);
}

static void
small_and_large_storages_share (void)
{
  GTorchImpl *pages[8], *x;

  start ();
  alloc_pages (NULL, pages, 8);
  gtorch_impl_unref (pages[3]);
  x = bytes (1000);
  assert_moved (8);
  g_assert_cmpint (gpu_stat (0, "segment.small_pool.current"), ==, 1);
  g_assert_cmpint (gpu_stat (0, "segment.large_pool.current"), ==, 7);
  g_assert_cmpint (gpu_stat (0, "reserved_bytes.small_pool.current"), ==, PAGE);
  g_assert_cmpint (gpu_stat (0, "reserved_bytes.all.allocated"), ==, 256 * MIB);
  check_memory (256 * MIB);
  gtorch_impl_unref (x);
  pages[3] = bytes (PAGE); /* and back */
  assert_moved (8);
  check_memory (256 * MIB);
  g_assert_cmpint (gpu_stat (0, "segment.small_pool.current"), ==, 0);
  gtorch_impl_clear (pages, 8);
}

static void
large_ones_move_in_one_piece (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchImpl *theirs, *mine, *x;
  GTorchStreamGuard *guard;

  start ();
  guard = gtorch_stream_guard_new (other);
  theirs = bytes (100 * MIB);
  gtorch_stream_guard_unref (guard);
  mine = bytes (140 * MIB);
  gtorch_impl_unref (theirs);
  x = bytes (90 * MIB);
  assert_moved (2);
  check_memory (240 * MIB);
  gtorch_impl_unref (x);
  gtorch_impl_unref (mine);
}

/* Their last work is delayed, and would write into memory that has been reused or unmapped. */
static void
work_on_pages_is_waited_for (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchImpl *theirs[4], *mine[8];
  guint i;

  start ();
  fake_cuda_set_seed (2);
  alloc_pages (other, theirs, 4);
  for (i = 0; i < 4; i++)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

      fill (theirs[i], 1);
    }
  gtorch_impl_clear (theirs, 4);
  g_assert_cmpuint (fake_cuda_get_pending (), >, 0);
  alloc_pages (NULL, mine, 8);
  assert_moved (8);
  for (i = 0; i < 8; i++)
    fill (mine[i], 2);
  for (i = 0; i < 8; i++)
    assert_filled (mine[i], 2);
  gtorch_impl_clear (mine, 8);
  fake_cuda_set_seed (1);
}

static void
other_devices_may_use_what_has_moved (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchImpl *theirs[6], *mine[8];
  guint i;

  g_assert_true (gtorch_device_enable_peer (gpu (1), gpu (0), NULL));
  start ();
  alloc_pages (other, theirs, 6);
  gtorch_impl_clear (theirs, 6);
  alloc_pages (NULL, mine, 8);
  for (i = 0; i < 8; i++)
    g_assert_true (fake_cuda_can_access (1, mine[i]->storage->data, PAGE));
  gtorch_impl_clear (mine, 8);
}

/* The queue no longer exists, so it cannot be queried. */
static void
pages_outlive_the_queue_of_another (void)
{
  g_autoptr (GError) error = NULL;
  GTorchStream *stream;
  GTorchImpl *page;
  CUstream queue;

  start ();
  g_assert_cmpint (gtorch_cuda.cuStreamCreateWithPriority (&queue, CU_STREAM_NON_BLOCKING, 0), ==,
                   CUDA_SUCCESS);
  stream = gtorch_stream_new_external (gpu (0), queue, &error);
  g_assert_no_error (error);
  alloc_pages (stream, &page, 1);
  gtorch_impl_unref (page);
  g_object_unref (stream);
  g_assert_cmpint (gtorch_cuda.cuStreamDestroy (queue), ==, CUDA_SUCCESS);
  gtorch_device_empty_cache (gpu (0));
  check_memory (0);
  assert_no_misuse ();
}

static CUresult
settle (GTorchDevice *device)
{
  GTORCH_CUDA_APART;

  g_assert_true (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), NULL));
  return gtorch_cuda_device_settle (GTORCH_CUDA_DEVICE (device));
}

/* During captures the queue cannot be queried either. Captures on other devices do not matter. */
static void
captures_go_on_beside_the_queue_of_another (void)
{
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (i), 0, NULL);
      g_autoptr (GTorchStream) theirs = NULL;
      GTorchGraphCapture *capture;
      g_autoptr (GTorchImpl) x = NULL;
      GError *error = NULL;
      GTorchImpl *page;
      CUstream queue;
      gint64 own;

      start ();
      x = ramp_1d (gpu (i), GTORCH_DTYPE_INT64, 8);
      own = gpu_stat (0, "reserved_bytes.all.current");
      g_assert_true (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (0)), NULL));
      g_assert_cmpint (gtorch_cuda.cuStreamCreateWithPriority (&queue, CU_STREAM_NON_BLOCKING, 0),
                       ==, CUDA_SUCCESS);
      theirs = gtorch_stream_new_external (gpu (0), queue, &error);
      g_assert_no_error (error);
      alloc_pages (theirs, &page, 1);
      gtorch_impl_unref (page);
      g_clear_object (&theirs);
      g_assert_cmpint (gtorch_cuda.cuStreamDestroy (queue), ==, CUDA_SUCCESS);

      capture = begin (graph, stream, NULL);
      g_assert_cmpint (settle (gpu (0)), ==, CUDA_SUCCESS);
      gtorch_device_empty_cache (gpu (0));
      g_assert_cmpint (gpu_stat (0, "reserved_bytes.all.current"), ==, own + (i == 0 ? PAGE : 0));
      g_assert_true (gtorch_op_neg_inplace (x, NULL));
      end (capture);
      g_clear_object (&graph);
      g_clear_pointer (&x, gtorch_impl_unref);
      gtorch_device_empty_cache (gpu (0));
      gtorch_device_empty_cache (gpu (1));
      check_memory (0);
    }
  assert_no_misuse ();
}

/* A graph has its own memory: the driver gets the pages back and creates others. */
static void
a_capture_gets_free_pages_of_streams (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;
  GTorchImpl *theirs[6], *mine[4];
  guint i;

  start ();
  alloc_pages (other, theirs, 6);
  fill (theirs[5], 7);
  gtorch_impl_clear (theirs, 5);
  capture = begin (graph, stream, NULL);
  alloc_pages (NULL, mine, 4);
  for (i = 0; i < 4; i++)
    fill (mine[i], i + 1);
  end (capture);
  check_memory (gpu_stat (0, "reserved_bytes.all.current"));
  for (i = 0; i < 2; i++)
    g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  for (i = 0; i < 4; i++)
    assert_filled (mine[i], i + 1);
  assert_filled (theirs[5], 7);
  gtorch_impl_unref (theirs[5]);
  gtorch_impl_clear (mine, 4);
  g_clear_object (&graph);
  assert_no_misuse ();
}

static gpointer
fill_five (gpointer data)
{
  GTorchImpl **pages = data;
  guint i;

  alloc_pages (NULL, pages, 5);
  for (i = 0; i < 5; i++)
    fill (pages[i], i + 2);
  return NULL;
}

/* Another thread moves pages that belong to no graph. */
static void
pages_move_beside_a_capture (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;
  GTorchImpl *theirs[5], *mine[5], *captured;
  guint i;

  start ();
  alloc_pages (other, theirs, 5);
  gtorch_impl_clear (theirs, 5);
  capture = begin (graph, stream, NULL);
  alloc_pages (NULL, &captured, 1);
  fill (captured, 1);
  g_thread_join (g_thread_new ("other", fill_five, mine)); /* there are two free pages */
  assert_moved (8);
  check_memory (256 * MIB);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  assert_filled (captured, 1);
  for (i = 0; i < 5; i++)
    assert_filled (mine[i], i + 2);
  gtorch_impl_clear (mine, 5);
  gtorch_impl_unref (captured);
  g_clear_object (&graph);
  assert_no_misuse ();
}

/* The work of a capturing stream from before the capture cannot be waited for: its pages stay until the
 * end. */
static void
pages_of_a_capturing_stream_stay (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  const gint64 n_bytes = PAGE;
  GTorchGraphCapture *capture;
  GTorchStreamGuard *guard;
  GTorchImpl *theirs[6], *mine[2], *x;

  start ();
  alloc_pages (stream, theirs, 6);
  gtorch_impl_clear (theirs, 5);
  capture = begin (graph, stream, NULL);
  fill (theirs[5], 8);
  guard = gtorch_stream_guard_new (gtorch_device_get_default_stream (gpu (0)));
  alloc_pages (NULL, mine, 2);
  x = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, &error);
  g_assert_null (x);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  gtorch_stream_guard_unref (guard);
  check_memory (256 * MIB);
  end (capture);
  alloc_pages (NULL, &x, 1);
  fill (x, 9);
  assert_filled (x, 9);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  assert_filled (theirs[5], 8);
  gtorch_impl_unref (x);
  gtorch_impl_unref (theirs[5]);
  gtorch_impl_clear (mine, 2);
  assert_no_misuse ();
}

/* Whatever call fails: the allocation succeeds or gives an error, and nothing leaks. */
static void
no_fault_loses_memory (void)
{
  static const gchar *const functions[] = { "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
                                            "cuStreamSynchronize", "cuStreamIsCapturing" };
  guint i, nth;

  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    for (nth = 1; nth <= 4; nth++)
      {
        g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
        g_autoptr (GError) error = NULL;
        GTorchImpl *theirs[6], *mine[2], *x;
        gint64 n_bytes = 60 * MIB;
        gboolean has_failed;

        start ();
        alloc_pages (other, theirs, 6);
        alloc_pages (NULL, mine, 2);
        gtorch_impl_clear (theirs, 5);
        fake_cuda_fail (functions[i], nth, CUDA_ERROR_NOT_SUPPORTED);
        x = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, &error);
        has_failed = fake_cuda_clear_faults ();
        g_assert_true (has_failed || nth > 1);
        if (x == NULL)
          g_assert_nonnull (error);
        else
          {
            fill (x, nth);
            assert_filled (x, nth);
          }
        check_memory (gpu_stat (0, "reserved_bytes.all.current"));
        g_clear_pointer (&x, gtorch_impl_unref);
        gtorch_impl_unref (theirs[5]);
        gtorch_impl_clear (mine, 2);
      }
}

#define TEST(name) g_test_add_func ("/GTorchCudaPages/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (a_stream_gets_free_pages_of_another);
  TEST (scattered_pages_come_together);
  TEST (small_and_large_storages_share);
  TEST (large_ones_move_in_one_piece);
  TEST (work_on_pages_is_waited_for);
  TEST (pages_outlive_the_queue_of_another);
  TEST (captures_go_on_beside_the_queue_of_another);
  TEST (a_capture_gets_free_pages_of_streams);
  TEST (pages_move_beside_a_capture);
  TEST (pages_of_a_capturing_stream_stay);
  TEST (no_fault_loses_memory);
  TEST (other_devices_may_use_what_has_moved);
  result = g_test_run ();
  gtorch_device_empty_cache (gpu (0));
  check_memory (0);
  assert_no_misuse ();
  return result;
}
