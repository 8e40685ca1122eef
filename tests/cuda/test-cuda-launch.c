/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The number of driver calls of each operation in the steady state. */

#include "config.h"

#include "cuda-test.h"

static GTorchImpl *a, *b, *matrix;

#define ASSERT_CALLS(expected)                     \
  G_STMT_START                                     \
  {                                                \
    g_autofree gchar *log_ = fake_cuda_dup_log (); \
    g_assert_cmpstr (log_, ==, expected);          \
  }                                                \
  G_STMT_END

static void
an_addition_is_one_launch (void)
{
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchImpl) sum = NULL;

      fake_cuda_reset_calls ();
      sum = gtorch_op_add (a, b, 1, NULL);
      if (i > 0)
        ASSERT_CALLS ("cuLaunchKernel");
    }
}

static void
an_addition_in_place_is_one_launch (void)
{
  g_assert_true (gtorch_op_add_inplace (a, b, 1, NULL));
  fake_cuda_reset_calls ();
  g_assert_true (gtorch_op_add_inplace (a, b, 1, NULL));
  ASSERT_CALLS ("cuLaunchKernel");
}

static void
an_addition_of_a_number_is_one_launch (void)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (2);
  g_autoptr (GTorchImpl) first = gtorch_op_mul (a, number, NULL);
  g_autoptr (GTorchImpl) second = NULL;

  fake_cuda_reset_calls ();
  second = gtorch_op_mul (a, number, NULL);
  ASSERT_CALLS ("cuLaunchKernel");
}

static void
an_addition_in_any_layout_is_one_launch (void)
{
  g_autoptr (GTorchImpl) turned = gtorch_op_transpose (matrix, 0, 1, NULL);
  g_autoptr (GTorchImpl) first = gtorch_op_add (matrix, turned, 1, NULL);
  g_autoptr (GTorchImpl) second = NULL;

  fake_cuda_reset_calls ();
  second = gtorch_op_add (matrix, turned, 1, NULL);
  ASSERT_CALLS ("cuLaunchKernel");
}

static void
short_reductions_are_one_launch (void)
{
  const gint64 dim = 1;
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) sum = NULL;

      fake_cuda_reset_calls ();
      sum = gtorch_op_sum (matrix, &dim, 1, FALSE, GTORCH_DTYPE_NONE, NULL);
    }
  ASSERT_CALLS ("cuLaunchKernel");
}

static void
a_copy_is_one_call (void)
{
  g_autoptr (GTorchImpl) first = gtorch_op_clone (a, NULL);
  g_autoptr (GTorchImpl) second = NULL;

  fake_cuda_reset_calls ();
  second = gtorch_op_clone (a, NULL);
  ASSERT_CALLS ("cuCtxGetCurrent cuMemcpyDtoDAsync");
}

static void
views_and_freeing_call_nothing (void)
{
  GTorchImpl *view, *copy = gtorch_op_clone (a, NULL);

  fake_cuda_reset_calls ();
  view = gtorch_op_transpose (matrix, 0, 1, NULL);
  gtorch_impl_unref (view);
  gtorch_impl_unref (copy);
  copy = gtorch_impl_new (gpu (0), GTORCH_DTYPE_FLOAT32, a->shape, 1, NULL);
  gtorch_impl_unref (copy);
  ASSERT_CALLS ("");
}

static void
reading_is_a_copy_and_a_wait (void)
{
  g_autoptr (GTorchImpl) first = gtorch_op_to_device (a, gtorch_device_cpu (), FALSE, NULL);
  g_autoptr (GTorchImpl) second = NULL;
  g_autofree gchar *log = NULL;

  fake_cuda_reset_calls ();
  second = gtorch_op_to_device (a, gtorch_device_cpu (), FALSE, NULL);
  log = fake_cuda_dup_log ();
  /* it polls for a moment, and sleeps only then */
  g_assert_true (g_regex_match_simple ("^(cuCtxGetCurrent )+cuMemcpyDtoHAsync cuStreamQuery"
                                       "( cuThreadExchangeStreamCaptureMode( cuStreamQuery)+"
                                       " cuThreadExchangeStreamCaptureMode)?"
                                       "( cuThreadExchangeStreamCaptureMode cuStreamSynchronize"
                                       " cuThreadExchangeStreamCaptureMode)?$",
                                       log, 0, 0));
}

static void
writing_is_a_copy (void)
{
  g_autoptr (GTorchImpl) host = gtorch_op_to_device (a, gtorch_device_cpu (), FALSE, NULL);
  g_autoptr (GTorchImpl) back = NULL;

  fake_cuda_reset_calls ();
  back = gtorch_op_to_device (host, gpu (0), FALSE, NULL);
  ASSERT_CALLS ("cuCtxGetCurrent cuMemcpyHtoDAsync");
}

static void
changing_streams_calls_nothing (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchStreamGuard) guard = NULL;
      g_autoptr (GTorchImpl) sum = NULL;

      fake_cuda_reset_calls ();
      guard = gtorch_stream_guard_new (stream);
      sum = gtorch_op_add (a, b, 1, NULL);
    }
  ASSERT_CALLS ("cuLaunchKernel");
}

static void
each_step_of_a_loop_is_the_same (void)
{
  guint i, calls = 0, allocations;

  for (i = 0; i < 50; i++)
    {
      const gint64 dim = 0;
      g_autoptr (GTorchImpl) product = gtorch_op_mul (a, b, NULL);
      g_autoptr (GTorchImpl) sum = gtorch_op_add (product, a, 1, NULL);
      g_autoptr (GTorchImpl) active = gtorch_op_relu (sum, NULL);
      g_autoptr (GTorchImpl) mean =
          gtorch_op_mean (active, &dim, 1, FALSE, GTORCH_DTYPE_NONE, NULL);

      if (i == 1)
        fake_cuda_reset_calls ();
      else if (i == 2)
        calls = fake_cuda_get_calls (NULL);
    }
  allocations = fake_cuda_get_calls ("cuMemCreate") + fake_cuda_get_calls ("cuEventCreate");
  g_assert_cmpuint (allocations, ==, 0);
  g_assert_cmpuint (fake_cuda_get_calls (NULL), ==, calls * 48);
}

#define TEST(name) g_test_add_func ("/GTorchCudaLaunch/" #name, name)

gint
main (gint argc, gchar **argv)
{
  const gint64 shape[] = { 40, 40 };
  gint result;

  g_test_init (&argc, &argv, NULL);
  a = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 1000);
  b = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 1000);
  matrix = ramp (gpu (0), GTORCH_DTYPE_FLOAT32, shape, 2);
  TEST (an_addition_is_one_launch);
  TEST (an_addition_in_place_is_one_launch);
  TEST (an_addition_of_a_number_is_one_launch);
  TEST (an_addition_in_any_layout_is_one_launch);
  TEST (short_reductions_are_one_launch);
  TEST (a_copy_is_one_call);
  TEST (views_and_freeing_call_nothing);
  TEST (reading_is_a_copy_and_a_wait);
  TEST (writing_is_a_copy);
  TEST (changing_streams_calls_nothing);
  TEST (each_step_of_a_loop_is_the_same);
  result = g_test_run ();
  gtorch_impl_unref (a);
  gtorch_impl_unref (b);
  gtorch_impl_unref (matrix);
  assert_no_misuse ();
  return result;
}
