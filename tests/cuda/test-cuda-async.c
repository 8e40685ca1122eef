/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Asynchronous copies and reads in a main loop. */

#include "config.h"

#include <math.h>

#include "cuda-test.h"

#define N 1000

static GTorchTensor *
tensor (GTorchDevice *device)
{
  return gtorch_tensor_wrap (ramp_1d (device, GTORCH_DTYPE_FLOAT32, N));
}

static GTorchTensor *
element (GTorchTensor *x, gint64 i)
{
  return gtorch_tensor_select (x, 0, i, NULL);
}

/* The GPU executes work late, and only while the main loop runs. */
static void
settle (void)
{
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
}

static void
take_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
turn_until (GAsyncResult **result)
{
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_null (*result);
  fake_cuda_hold (FALSE);
  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
}

static void
assert_negative_ramp (GTorchTensor *x)
{
  g_autofree gdouble *values = NULL;
  gsize n, i;

  values = gtorch_tensor_to_doubles (x, &n, NULL);
  g_assert_cmpuint (n, ==, N);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, -(gdouble) i);
}

static void
elements_come_from_a_gpu (void)
{
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  settle ();
  g_assert_true (gtorch_tensor_neg_inplace (x, &error));
  gtorch_tensor_to_device_async (x, gtorch_device_cpu (), NULL, take_result, &result);
  g_assert_true (gtorch_tensor_neg_inplace (x, &error)); /* is enqueued behind the copy */
  turn_until (&result);
  host = gtorch_tensor_to_device_finish (x, result, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_is_pinned (host));
  fake_cuda_hold (TRUE); /* nothing waits any more */
  assert_negative_ramp (host);
  fake_cuda_hold (FALSE);
}

static void
elements_go_to_a_gpu (void)
{
  g_autoptr (GTorchTensor) plain = tensor (gtorch_device_cpu ());
  guint pinned;

  for (pinned = 0; pinned < 2; pinned++)
    {
      g_autoptr (GTorchTensor) x =
          pinned ? gtorch_tensor_pin_memory (plain, NULL) : g_object_ref (plain);
      g_autoptr (GTorchTensor) there = NULL;
      g_autoptr (GTorchTensor) back = NULL;
      g_autoptr (GAsyncResult) result = NULL;
      g_autoptr (GError) error = NULL;

      settle ();
      gtorch_tensor_to_device_async (x, gpu (0), NULL, take_result, &result);
      turn_until (&result);
      there = gtorch_tensor_to_device_finish (x, result, &error);
      g_assert_no_error (error);
      g_assert_true (gtorch_tensor_get_device (there) == gpu (0));
      g_assert_true (gtorch_tensor_neg_inplace (there, NULL));
      assert_negative_ramp (there);
    }
}

static void
tensors_already_there_are_returned (void)
{
  GTorchDevice *devices[] = { gtorch_device_cpu (), gpu (0) };
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) x = tensor (devices[i]);
      g_autoptr (GTorchTensor) same = NULL;
      g_autoptr (GAsyncResult) result = NULL;

      gtorch_tensor_to_device_async (x, devices[i], NULL, take_result, &result);
      while (result == NULL)
        g_main_context_iteration (NULL, TRUE);
      same = gtorch_tensor_to_device_finish (x, result, NULL);
      g_assert_true (same == x);
    }
}

static void
another_gpu_gets_them (void)
{
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GTorchTensor) there = NULL;
  g_autoptr (GAsyncResult) result = NULL;

  settle ();
  g_assert_true (gtorch_tensor_neg_inplace (x, NULL));
  gtorch_tensor_to_device_async (x, gpu (1), NULL, take_result, &result);
  turn_until (&result);
  there = gtorch_tensor_to_device_finish (x, result, NULL);
  g_assert_true (gtorch_tensor_get_device (there) == gpu (1));
  assert_negative_ramp (there);
}

static void
reads_complete_when_values_are_computed (void)
{
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GTorchTensor) last = element (x, N - 1);
  g_autoptr (GAsyncResult) real = NULL;
  g_autoptr (GAsyncResult) whole = NULL;
  g_autoptr (GError) error = NULL;

  settle ();
  g_assert_true (gtorch_tensor_neg_inplace (x, NULL));
  gtorch_tensor_item_int_async (last, NULL, take_result, &whole);
  gtorch_tensor_item_double_async (last, NULL, take_result, &real);
  turn_until (&real);
  while (whole == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpfloat (gtorch_tensor_item_double_finish (last, real, &error), ==, -(N - 1.0));
  g_assert_cmpint (gtorch_tensor_item_int_finish (last, whole, &error), ==, -(N - 1));
  g_assert_no_error (error);
}

static void
wrong_values_are_errors (void)
{
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GTorchTensor) gone = tensor (gpu (0));
  g_autoptr (GAsyncResult) many = NULL;
  g_autoptr (GAsyncResult) released = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_tensor_item_double_async (x, NULL, take_result, &many);
  gtorch_tensor_release (gone);
  gtorch_tensor_to_device_async (gone, gtorch_device_cpu (), NULL, take_result, &released);
  while (many == NULL || released == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpfloat (gtorch_tensor_item_double_finish (x, many, &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "item: a tensor of shape [1000] has 1000 elements, not one");
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_to_device_finish (gone, released, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

/* Tries every pair of devices, with and without pinned memory, another dtype and another layout. */
static void
copies_end_in_the_main_loop (void)
{
  GTorchDevice *devices[] = { gtorch_device_cpu (), gpu (0), gpu (1) };
  guint to, from, kind;

  for (to = 0; to < 3; to++)
    for (from = 0; from < 3; from++)
      for (kind = 0; kind < 4; kind++)
        {
          g_autoptr (GTorchTensor) plain = tensor (devices[from]);
          g_autoptr (GTorchTensor) src = kind == 1 && from == 0
                                             ? gtorch_tensor_pin_memory (plain, NULL)
                                             : g_object_ref (plain);
          g_autoptr (GTorchTensor) empty =
              gtorch_zeros (GTORCH_SHAPE (kind == 3 ? 2 * N : N),
                            kind == 2 ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32, devices[to],
                            NULL);
          g_autoptr (GTorchTensor) part =
              kind == 3 ? gtorch_tensor_slice (empty, 0, 0, 2 * N, 2, NULL) : g_object_ref (empty);
          g_autoptr (GTorchTensor) dst =
              kind == 1 && to == 0 ? gtorch_tensor_pin_memory (part, NULL) : g_object_ref (part);
          g_autoptr (GAsyncResult) result = NULL;
          g_autoptr (GError) error = NULL;

          g_assert_true (gtorch_tensor_neg_inplace (src, NULL));
          gtorch_tensor_copy_inplace_async (dst, src, NULL, take_result, &result);
          while (result == NULL)
            g_main_context_iteration (NULL, TRUE);
          gtorch_tensor_copy_inplace_finish (dst, result, &error);
          g_assert_no_error (error);
          assert_negative_ramp (dst);
        }
}

static void
a_copy_that_does_not_fit_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GTorchTensor) narrow =
      gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_tensor_copy_inplace_async (narrow, x, NULL, take_result, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (gtorch_tensor_copy_inplace_finish (narrow, result, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

static void
waiting_can_be_cancelled (void)
{
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GTorchTensor) plain = tensor (gtorch_device_cpu ());
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) back = NULL;
  g_autoptr (GAsyncResult) there = NULL;
  g_autoptr (GError) error = NULL;

  settle ();
  gtorch_tensor_to_device_async (x, gtorch_device_cpu (), cancellable, take_result, &back);
  gtorch_tensor_to_device_async (plain, gpu (0), cancellable, take_result, &there);
  g_cancellable_cancel (cancellable);
  while (back == NULL || there == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_null (gtorch_tensor_to_device_finish (x, back, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_to_device_finish (plain, there, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  fake_cuda_hold (FALSE);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
}

static void
work_of_a_cpu_stream_is_waited_for (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) x = tensor (gtorch_device_cpu ());
  g_autoptr (GTorchTensor) last = element (x, N - 1);
  GTorchStreamGuard *guard = gtorch_stream_guard_new (stream);
  g_autoptr (GAsyncResult) value = NULL;
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GTorchTensor) there = NULL;

  g_assert_true (gtorch_tensor_neg_inplace (x, NULL));
  gtorch_tensor_item_double_async (last, NULL, take_result, &value);
  gtorch_tensor_to_device_async (x, gpu (0), NULL, take_result, &result);
  gtorch_stream_guard_unref (guard);
  while (result == NULL || value == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpfloat (gtorch_tensor_item_double_finish (last, value, NULL), ==, -(N - 1.0));
  there = gtorch_tensor_to_device_finish (x, result, NULL);
  assert_negative_ramp (there);
}

static void
a_timer_sees_the_work_of_the_gpu (void)
{
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (gtorch_device_get_default_stream (gpu (0)));
  g_autoptr (GTorchTensor) x = tensor (gpu (0));
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  settle ();
  g_assert_true (gtorch_timer_start (timer, NULL));
  g_assert_true (gtorch_tensor_neg_inplace (x, NULL));
  gtorch_timer_stop_async (timer, NULL, take_result, &result);
  turn_until (&result);
  g_assert_cmpfloat (gtorch_timer_stop_finish (timer, result, &error), >=, 0);
  g_assert_no_error (error);
  g_assert_false (isnan (gtorch_timer_stop (timer, NULL, &error)));
}

#define TEST(name) g_test_add_func ("/GTorchCudaAsync/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (elements_come_from_a_gpu);
  TEST (elements_go_to_a_gpu);
  TEST (tensors_already_there_are_returned);
  TEST (another_gpu_gets_them);
  TEST (reads_complete_when_values_are_computed);
  TEST (wrong_values_are_errors);
  TEST (copies_end_in_the_main_loop);
  TEST (a_copy_that_does_not_fit_is_an_error);
  TEST (waiting_can_be_cancelled);
  TEST (work_of_a_cpu_stream_is_waited_for);
  TEST (a_timer_sees_the_work_of_the_gpu);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
