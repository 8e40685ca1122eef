/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Private pools of the CPU. */

#include "config.h"

#include <gtorch/gtorch.h>

static GTorchTensor *
zeros (gint64 n)
{
  GError *error = NULL;
  GTorchTensor *x = gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return x;
}

static void
pool_counts_its_memory (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (NULL);
  GTorchMemoryPoolGuard *guard = gtorch_memory_pool_guard_new (pool);
  GTorchTensor *x = zeros (1000);
  guint64 reserved;

  g_assert_true (gtorch_memory_pool_get_device (pool) == gtorch_device_cpu ());
  g_assert_cmpuint (gtorch_memory_pool_get_id (pool), >, 0);
  reserved = gtorch_memory_pool_get_reserved (pool);
  g_assert_cmpuint (reserved, >=, 4000);
  g_object_unref (x);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), ==, 0);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, reserved);
  x = zeros (1000); /* gets the same memory again */
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, reserved);
  gtorch_memory_pool_guard_unref (guard);
  g_object_unref (zeros (5000));
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, reserved);
  gtorch_memory_pool_trim (pool); /* keeps the memory of tensors */
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), >=, 4000);
  g_object_unref (x);
  gtorch_memory_pool_trim (pool);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, 0);
  g_assert_cmpuint (gtorch_memory_pool_get_peak_reserved (pool), ==, reserved);
}

static void
tensors_outlive_their_pool (void)
{
  GTorchMemoryPool *pool = gtorch_memory_pool_new (gtorch_device_cpu ());
  GTorchMemoryPoolGuard *guard = gtorch_memory_pool_guard_new (pool);
  g_autoptr (GTorchTensor) x = gtorch_arange (0, 100, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) sum = NULL;

  gtorch_memory_pool_guard_unref (guard);
  g_object_add_weak_pointer (G_OBJECT (pool), (gpointer *) &pool);
  g_object_unref (pool);
  g_assert_null (pool);
  sum = gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_assert_cmpfloat (gtorch_tensor_item_double (sum, NULL), ==, 4950);
}

/* A tensor that a graph reads keeps its contents, even if it is in a pool and dropped. */
static void
graphs_keep_tensors_in_a_pool_alive (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchTensor *x = gtorch_ones (GTORCH_SHAPE (1000), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchGraphCapture) capture =
      gtorch_graph_capture_new (graph, NULL, pool, GTORCH_CAPTURE_MODE_THREAD_LOCAL, NULL);
  g_autoptr (GTorchTensor) first = NULL;

  g_assert_nonnull (capture);
  y = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  g_assert_true (gtorch_graph_capture_end (capture, NULL));
  g_assert_true (gtorch_cuda_graph_get_pool (graph) == pool);
  g_object_unref (x);
  z = zeros (1000);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  first = gtorch_tensor_select (y, 0, 0, NULL);
  g_assert_cmpfloat (gtorch_tensor_item_double (first, NULL), ==, 2);
}

static void
there_is_no_snapshot_of_the_cpu (void)
{
  g_autoptr (GTorchMemoryPool) pool = g_object_new (GTORCH_TYPE_MEMORY_POOL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_memory_pool_snapshot (pool, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchMemoryPool/" #name, name)
  ADD (pool_counts_its_memory);
  ADD (tensors_outlive_their_pool);
  ADD (graphs_keep_tensors_in_a_pool_alive);
  ADD (there_is_no_snapshot_of_the_cpu);
#undef ADD
  return g_test_run ();
}
