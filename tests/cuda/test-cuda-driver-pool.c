/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory of the driver's own pool, with GTORCH_ALLOC_CONF=backend:cudaMallocAsync. */

#include "config.h"

#include "cuda-test.h"

static FakeCudaAccounts
accounts (void)
{
  FakeCudaAccounts result;

  fake_cuda_get_accounts (&result);
  return result;
}

static void
each_tensor_comes_from_the_driver (void)
{
  GTorchImpl *x = bytes (1000);
  GTorchImpl *y = bytes (3 * MIB);
  g_autofree gchar *text = gtorch_allocator_get_configuration (gpu_allocator ());

  g_assert_cmpstr (text, ==, "backend:cudaMallocAsync");
  g_assert_cmpuint (accounts ().handles, ==, 2);
  g_assert_cmpuint (accounts ().mappings, ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 1024 + 3 * MIB);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 1024 + 3 * MIB);
  gtorch_impl_unref (x);
  gtorch_impl_unref (y);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (accounts ().n_bytes, ==, 0);
}

/* A block is freed in stream order. */
static void
freeing_is_in_the_order_of_the_stream (void)
{
  g_autoptr (GTorchImpl) sum = NULL;
  GTorchImpl *x = bytes (1000);
  gdouble *values;

  fake_cuda_hold (TRUE);
  gtorch_op_fill_inplace (x, 1, NULL);
  sum = gtorch_op_add (x, x, 1, NULL);
  gtorch_impl_unref (x);
  g_assert_cmpuint (accounts ().handles, ==, 2);
  fake_cuda_hold (FALSE);
  values = read_doubles (sum);
  g_assert_cmpfloat (values[999], ==, 2);
  g_free (values);
  g_assert_cmpuint (accounts ().handles, ==, 1);
}

static void
other_streams_are_waited_for (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchStreamGuard *guard;
  GTorchImpl *x = bytes (1000);

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_hold (TRUE);
  guard = gtorch_stream_guard_new (other);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_stream_guard_unref (guard);
  gtorch_impl_unref (x);
  fake_cuda_hold (FALSE);
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (accounts ().n_bytes, ==, 0);
}

static void
exhausted_memory_is_an_error (void)
{
  const gint64 n = 200 * MIB;
  GTorchImpl *x = bytes (n);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  gtorch_impl_unref (x);
  x = bytes (n);
  gtorch_impl_unref (x);
}

static void
errors_name_the_drivers_function (void)
{
  const gint64 n = 1000;
  g_autoptr (GError) error = NULL;

  fake_cuda_fail ("cuMemAllocAsync", 1, CUDA_ERROR_NOT_SUPPORTED);
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_nonnull (strstr (error->message, "cuMemAllocAsync"));
  g_assert_true (fake_cuda_clear_faults ());
  gtorch_impl_unref (bytes (n));
}

static void
pools_are_of_segments (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));
  g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);

  gtorch_impl_unref (bytes (1000));
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, 2 * MIB);
}

static void
other_gpus_may_use_the_pool (void)
{
  g_autoptr (GTorchImpl) before = bytes (1000);
  g_autoptr (GTorchImpl) after = NULL;
  GError *error = NULL;

  g_assert_true (gtorch_device_enable_peer (gpu (1), gpu (0), &error));
  g_assert_no_error (error);
  after = bytes (1000);
  g_assert_true (fake_cuda_can_access (1, before->storage->data, 1000));
  g_assert_true (fake_cuda_can_access (1, after->storage->data, 1000));
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchCudaDriverPool/" #name, name)
  ADD (each_tensor_comes_from_the_driver);
  ADD (freeing_is_in_the_order_of_the_stream);
  ADD (other_streams_are_waited_for);
  ADD (exhausted_memory_is_an_error);
  ADD (errors_name_the_drivers_function);
  ADD (pools_are_of_segments);
  ADD (other_gpus_may_use_the_pool);
#undef ADD
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
