/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Private pools, memory without tensors and the choice of allocators on a real GPU. */

#include "config.h"

#include "gpu-test.h"

#define MIB ((guint64) 1 << 20)

static GTorchTensor *
filled (gint64 n, gdouble value)
{
  return TRY (gtorch_full (&n, 1, value, GTORCH_DTYPE_FLOAT32, gpu, &error));
}

static gdouble
sum_of (GTorchTensor *x)
{
  g_autoptr (GTorchTensor) sum =
      TRY (gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));

  return gtorch_tensor_item_double (sum, NULL);
}

static void
pools_are_created_and_freed (void)
{
  const guint64 before = gtorch_device_get_memory_reserved (gpu);
  guint i;

  for (i = 0; i < 20; i++)
    {
      g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu);
      GTorchMemoryPoolGuard *guard = gtorch_memory_pool_guard_new (pool);
      g_autoptr (GTorchTensor) small = filled (1000, i);
      g_autoptr (GTorchTensor) large = filled (64 << 18, 1);
      g_autoptr (GTorchTensor) product = TRY (gtorch_tensor_mul (large, large, &error));

      gtorch_memory_pool_guard_unref (guard);
      g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), >=, 128 * MIB);
      g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), <, 129 * MIB);
      g_clear_object (&pool);
      g_assert_cmpfloat (sum_of (small), ==, 1000.0 * i);
      g_assert_cmpfloat (sum_of (product), ==, 64 << 18);
    }
  gtorch_device_empty_cache (gpu);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu), <=, before);
}

/* The pool is freed while the GPU still works on its memory. */
static void
freeing_a_pool_does_not_wait (void)
{
  g_autoptr (GTorchTensor) result = filled (1 << 24, 0);
  guint i;

  for (i = 1; i <= 10; i++)
    {
      g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu);
      GTorchMemoryPoolGuard *guard = gtorch_memory_pool_guard_new (pool);
      g_autoptr (GTorchTensor) x = filled (1 << 24, 1);

      gtorch_memory_pool_guard_unref (guard);
      TRY (gtorch_tensor_add_inplace (result, x, 1, &error));
    }
  g_assert_cmpfloat (sum_of (result), ==, 10.0 * (1 << 24));
}

static void
blocks_can_be_used (void)
{
  GTorchAllocator *allocator = gtorch_device_get_allocator (gpu);
  const guint64 before = gtorch_allocator_get_allocated (allocator);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  guint i;

  for (i = 0; i < 100; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchMemoryBlock) block =
          gtorch_allocator_alloc (allocator, (gsize) 1 << (i % 25), stream, &error);

      g_assert_no_error (error);
      g_assert_cmpuint (gtorch_memory_block_get_address (block) % 256, ==, 0);
    }
  g_assert_cmpuint (gtorch_allocator_get_allocated (allocator), ==, before);
}

/* Memory that another stream still reads is not reused. */
static void
streams_are_waited_for (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu, 0, NULL);
  guint i;

  for (i = 0; i < 50; i++)
    {
      g_autoptr (GTorchTensor) x = filled (1 << 22, i);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      GTorchStreamGuard *guard;

      g_assert_true (
          gtorch_stream_wait_stream (other, gtorch_device_get_default_stream (gpu), NULL));
      guard = gtorch_stream_guard_new (other);
      y = TRY (gtorch_tensor_add (x, x, 1, &error));
      gtorch_stream_guard_unref (guard);
      g_clear_object (&x);
      z = filled (1 << 22, -1);
      g_assert_true (
          gtorch_stream_wait_stream (gtorch_device_get_default_stream (gpu), other, NULL));
      g_assert_cmpfloat (sum_of (y), ==, 2.0 * i * (1 << 22));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
#define ADD(name) g_test_add_func ("/GPU/Pool/" #name, name)
  ADD (pools_are_created_and_freed);
  ADD (freeing_a_pool_does_not_wait);
  ADD (blocks_can_be_used);
  ADD (streams_are_waited_for);
#undef ADD
  return g_test_run ();
}
