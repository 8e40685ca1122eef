/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Peer access between GPUs, and operands on different devices. */

#include "config.h"

#include "cuda-test.h"

/* Runs the case once more in a process with these settings. Returns TRUE in that process. */
static gboolean
in_process (const gchar *settings)
{
  g_autofree gchar *former = g_strdup (g_getenv ("GTORCH_FAKE_CUDA"));

  if (g_test_subprocess ())
    return TRUE;
  g_setenv ("GTORCH_FAKE_CUDA", settings, TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_setenv ("GTORCH_FAKE_CUDA", former, TRUE);
  g_test_trap_assert_passed ();
  return FALSE;
}

static void
enable (guint device, guint peer)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_device_enable_peer (gpu (device), gpu (peer), &error));
  g_assert_no_error (error);
}

static GTorchImpl *
zeros (guint device, gint64 n_bytes)
{
  g_autoptr (GError) error = NULL;
  GTorchImpl *x = gtorch_op_zeros (&n_bytes, 1, GTORCH_DTYPE_UINT8, gpu (device), &error);

  g_assert_no_error (error);
  return x;
}

static gboolean
can_use (guint device, GTorchImpl *x)
{
  return fake_cuda_can_access (device, gtorch_impl_data (x), gtorch_impl_n_bytes (x));
}

static void
keep_memory (GTorchStorage *storage)
{
}

/* Returns a tensor of this device that aliases x, of another device. */
static GTorchImpl *
borrow (guint device, GTorchImpl *x)
{
  GTorchStorage *storage = gtorch_storage_new_foreign (gpu (device), gtorch_impl_data (x),
                                                       gtorch_impl_n_bytes (x), keep_memory, NULL);
  GTorchImpl *result = gtorch_impl_new_strided (storage, x->dtype, 0, x->shape, NULL, x->n_dims);

  gtorch_storage_unref (storage);
  return result;
}

static void
devices_report_peer_access (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();

  g_assert_true (gtorch_device_can_access_peer (gpu (0), gpu (1)));
  g_assert_true (gtorch_device_can_access_peer (gpu (1), gpu (0)));
  g_assert_true (gtorch_device_can_access_peer (gpu (0), gpu (0)));
  g_assert_true (gtorch_device_can_access_peer (cpu, cpu));
  g_assert_false (gtorch_device_can_access_peer (gpu (0), cpu));
  g_assert_false (gtorch_device_can_access_peer (cpu, gpu (0)));
  g_assert_cmpuint (fake_cuda_get_calls ("cuDevicePrimaryCtxRetain"), ==, 0);
}

static void
existing_and_later_memory_is_opened (void)
{
  if (in_process ("devices=3,memory=256"))
    {
      g_autoptr (GTorchImpl) small = zeros (1, 100);
      g_autoptr (GTorchImpl) large = zeros (1, 40 << 20);
      g_autoptr (GTorchImpl) later = NULL;
      g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (1), 0, NULL);
      g_autoptr (GTorchImpl) elsewhere = NULL;

      g_assert_true (can_use (1, small));
      g_assert_false (can_use (0, small));
      enable (0, 1);
      g_assert_true (can_use (0, small));
      g_assert_true (can_use (0, large));
      later = zeros (1, 80 << 20);
      g_assert_true (can_use (0, later));
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

        elsewhere = zeros (1, 3000); /* another arena */
      }
      g_assert_true (can_use (0, elsewhere));
      g_assert_true (can_use (1, elsewhere));
      g_assert_false (can_use (2, elsewhere));
      enable (2, 1);
      g_assert_true (can_use (2, large));
      g_assert_true (can_use (0, large));
      g_clear_pointer (&elsewhere, gtorch_impl_unref);
      elsewhere = zeros (0, 1000);
      g_assert_false (can_use (1, elsewhere)); /* the other direction */

      fake_cuda_reset_calls ();
      enable (0, 1);
      g_assert_cmpuint (fake_cuda_get_calls ("cuMemSetAccess"), ==, 0);
      assert_no_misuse ();
    }
}

static void
kernels_may_read_peer_memory (void)
{
  if (in_process ("devices=2,seed=3"))
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (1), GTORCH_DTYPE_FLOAT32, 1000);
      g_autoptr (GTorchImpl) same = borrow (0, x);
      g_autoptr (GTorchImpl) twice = NULL;
      g_autofree gdouble *values = NULL;

      g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
      enable (0, 1);
      twice = gtorch_op_add (same, same, 1, NULL);
      values = read_doubles (twice);
      g_assert_cmpfloat (values[999], ==, 1998);
    }
}

static void
kernels_need_peer_access (void)
{
  if (in_process ("devices=2,seed=3"))
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (1), GTORCH_DTYPE_FLOAT32, 1000);
      g_autoptr (GTorchImpl) same = borrow (0, x);
      g_autoptr (GTorchImpl) twice = NULL;
      g_autoptr (GError) error = NULL;

      g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
      twice = gtorch_op_add (same, same, 1, NULL);
      g_assert_false (gtorch_device_synchronize (gpu (0), NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
    }
}

static void
a_copy_enables_peer_access_once (void)
{
  if (in_process ("devices=2,seed=3"))
    {
      guint i;

      for (i = 0; i < 3; i++)
        {
          g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT32, 1000);
          g_autoptr (GTorchImpl) y = gtorch_op_to_device (x, gpu (1), FALSE, NULL);
          g_autofree gdouble *values = read_doubles (y);

          g_assert_cmpfloat (values[999], ==, 999);
          g_assert_true (can_use (0, y));
          g_assert_cmpuint (fake_cuda_get_calls ("cuCtxEnablePeerAccess"), ==, 1);
        }
      assert_no_misuse ();
    }
}

static void
impossible_peer_access_is_refused_and_copies_work (void)
{
  if (in_process ("devices=2,seed=3,peers=0"))
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT32, 1000);
      g_autoptr (GTorchImpl) y = NULL;
      g_autofree gdouble *values = NULL;

      g_assert_false (gtorch_device_can_access_peer (gpu (0), gpu (1)));
      g_assert_false (gtorch_device_enable_peer (gpu (0), gpu (1), &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_cmpstr (error->message, ==, "enable_peer: cuda:0 cannot use the memory of cuda:1");
      y = gtorch_op_to_device (x, gpu (1), FALSE, NULL);
      values = read_doubles (y);
      g_assert_cmpfloat (values[999], ==, 999);
      g_assert_cmpuint (fake_cuda_get_calls ("cuCtxEnablePeerAccess"), ==, 0);
    }
}

static void
the_cpu_is_refused (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_device_enable_peer (gtorch_device_cpu (), gtorch_device_cpu (), &error));
  g_assert_false (gtorch_device_enable_peer (gtorch_device_cpu (), gpu (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_false (gtorch_device_enable_peer (gpu (0), gtorch_device_cpu (), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "enable_peer: cuda:0 cannot use the memory of cpu");
}

static void
each_call_of_the_driver_may_fail (void)
{
  static const gchar *const names[] = { "cuDevicePrimaryCtxRetain", "cuMemSetAccess",
                                        "cuCtxEnablePeerAccess" };
  guint i;

  if (!in_process ("devices=2,memory=256"))
    return;
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GTorchImpl) x = i > 0 ? zeros (1, 100) : NULL;
      g_autoptr (GTorchImpl) y = NULL;
      g_autoptr (GError) error = NULL;

      fake_cuda_fail (names[i], 1, CUDA_ERROR_INVALID_VALUE);
      g_assert_false (gtorch_device_enable_peer (gpu (0), gpu (1), &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
      g_assert_true (g_str_has_prefix (error->message, "enable_peer: cuda:0, cuda:1: "));
      g_assert_nonnull (strstr (error->message, names[i]));
      g_assert_true (fake_cuda_clear_faults ());
      y = zeros (1, 4 << 20);
      g_assert_true (can_use (1, y));
    }
  enable (0, 1);
  assert_no_misuse ();
}

/* Neither the source nor the destination is reused before the copy is done. */
static void
memory_of_a_copy_on_other_streams_is_not_given_out (void)
{
  GTorchStream *streams[2];
  GTorchImpl *x[2];
  guint i;

  for (i = 0; i < 2; i++)
    {
      x[i] = zeros (i, 5000);
      streams[i] = gtorch_stream_new (gpu (i), 0, NULL);
      g_assert_true (gtorch_device_synchronize (gpu (i), NULL, NULL));
    }
  fake_cuda_hold (TRUE);
  for (i = 0; i < 2; i++)
    gtorch_stream_set_current (streams[i]);
  g_assert_true (gtorch_op_copy_inplace (x[1], x[0], TRUE, NULL));
  for (i = 0; i < 2; i++)
    gtorch_stream_set_current (gtorch_device_get_default_stream (gpu (i)));
  for (i = 0; i < 2; i++)
    {
      gpointer data = gtorch_impl_data (x[i]);
      g_autoptr (GTorchImpl) next = NULL;

      gtorch_impl_unref (x[i]);
      next = zeros (i, 5000);
      g_assert_true (gtorch_impl_data (next) != data);
    }
  fake_cuda_hold (FALSE);
  for (i = 0; i < 2; i++)
    {
      g_assert_true (gtorch_device_synchronize (gpu (i), NULL, NULL));
      g_object_unref (streams[i]);
    }
  assert_no_misuse ();
}

static void
operands_of_two_devices_are_named (void)
{
  const gint64 wide[] = { 2, 3 }, narrow[] = { 3 };
  g_autoptr (GTorchImpl) x = ramp (gpu (0), GTORCH_DTYPE_FLOAT32, wide, 2);
  g_autoptr (GTorchImpl) y = ramp (gpu (1), GTORCH_DTYPE_FLOAT32, narrow, 1);
  GTorchImpl *list[] = { x, x, y };
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_op_add (x, y, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_assert_cmpstr (error->message, ==,
                   "add: the tensor “self” of shape [2, 3] is on cuda:0, but “other” of shape [3] "
                   "is "
                   "on cuda:1: all must be on one device");
  g_clear_error (&error);
  g_assert_null (gtorch_op_cat (list, 3, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_assert_cmpstr (error->message, ==,
                   "cat: the tensor “tensors[0]” of shape [2, 3] is on cuda:0, but “tensors[2]” of "
                   "shape [3] is on cuda:1: all must be on one device");
}

static void
the_current_device_moves_no_results (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (1), GTORCH_DTYPE_FLOAT32, 10);
  g_autoptr (GTorchDeviceGuard) guard = gtorch_device_guard_new (gpu (0), NULL);
  g_autoptr (GTorchImpl) sum = gtorch_op_add (x, x, 1, NULL);

  g_assert_true (gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, NULL) == gpu (0));
  g_assert_true (gtorch_impl_device (sum) == gpu (1));
}

#define TEST(name) g_test_add_func ("/GTorchCudaPeer/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (devices_report_peer_access);
  TEST (existing_and_later_memory_is_opened);
  TEST (kernels_may_read_peer_memory);
  TEST (kernels_need_peer_access);
  TEST (a_copy_enables_peer_access_once);
  TEST (impossible_peer_access_is_refused_and_copies_work);
  TEST (the_cpu_is_refused);
  TEST (each_call_of_the_driver_may_fail);
  TEST (memory_of_a_copy_on_other_streams_is_not_given_out);
  TEST (operands_of_two_devices_are_named);
  TEST (the_current_device_moves_no_results);
  return g_test_run ();
}
