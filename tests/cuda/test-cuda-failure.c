/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A lost device: the error message, who gets it, and what still works. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>

#include "cuda-test.h"

static void
heal (void)
{
  fake_cuda_hold (FALSE);
  fake_cuda_clear_faults ();
  gtorch_device_forget_failure (gpu (0));
  gtorch_device_forget_failure (gpu (1));
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
}

/* Enqueues four operations of one kernel each, none of which runs before the device is released. */
static void
enqueue (GTorchImpl *x)
{
  GError *error = NULL;

  gtorch_op_add_inplace (x, x, 1, &error);
  g_assert_no_error (error);
  gtorch_op_mul_inplace (x, x, &error);
  g_assert_no_error (error);
  gtorch_op_neg_inplace (x, &error);
  g_assert_no_error (error);
  gtorch_op_sub_inplace (x, x, 1, &error);
  g_assert_no_error (error);
}

static const gchar *const names[] = { "add", "mul", "neg", "sub" };

static GTorchImpl *
begin (guint nth)
{
  GTorchImpl *x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cuda_set_seed (0);
  fake_cuda_hold (TRUE);
  fake_cuda_break (0, nth, CUDA_ERROR_ILLEGAL_ADDRESS);
  return x;
}

static GError *
end (void)
{
  GError *error = NULL;

  fake_cuda_hold (FALSE);
  g_assert_false (gtorch_device_synchronize (gpu (0), NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, "cuda:0 has failed"));
  g_assert_nonnull (strstr (error->message, "CUDA_ERROR_ILLEGAL_ADDRESS, 700"));
  return error;
}

/* --- the message --- */

static void
the_error_names_the_possible_operations (void)
{
  g_autoptr (GTorchImpl) x = begin (3);
  g_autoptr (GError) error = NULL;

  enqueue (x);
  error = end ();
  g_assert_nonnull (strstr (error->message, "in one of the operations from add to sub (works "));
  g_assert_nonnull (strstr (error->message, "GTORCH_CHECK=errors"));
  heal ();
}

static void
finished_operations_are_not_named (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GError) error = NULL;
  guint way;

  for (way = 0; way < 5; way++)
    {
      GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
      GTorchImpl *y;

      enqueue (x);
      g_clear_object (&event);
      event = gtorch_stream_record_event (stream, NULL);
      if (way == 0)
        g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
      else if (way == 1)
        g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
      else if (way == 2)
        while (!gtorch_event_query (event))
          ;
      else if (way == 3)
        while (!gtorch_stream_is_idle (stream))
          ;
      else
        g_free (read_doubles (x));
      fake_cuda_set_seed (0);
      fake_cuda_hold (TRUE);
      fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
      y = gtorch_op_exp (x, &error);
      g_assert_no_error (error);
      gtorch_impl_unref (y);
      error = end ();
      g_test_message ("%s", error->message);
      g_assert_nonnull (strstr (error->message, ", 700), in exp (work "));
      g_assert_null (strstr (error->message, " or in "));
      g_assert_null (strstr (error->message, "GTORCH_CHECK"));
      g_clear_error (&error);
      heal ();
    }
}

/* If a shape function computes something, its errors and lost devices are reported for the operation that
 * was called. */
static void
operations_that_wait_for_shapes_are_named (void)
{
  static const gchar *const ops[] = { "nonzero", "masked_select", "bincount", "one_hot" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ops); i++)
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);
      g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (x));
      g_autoptr (GTorchTensor) mask = gtorch_tensor_gt_scalar (tensor, 3, NULL);
      g_autofree gchar *start = g_strdup_printf ("%s: ", ops[i]);
      g_autofree gchar *place = g_strdup_printf (", 700), in %s (work ", ops[i]);
      g_autoptr (GError) error = NULL;
      guint way;

      for (way = 0; way < 3; way++)
        {
          GTorchTensor *y;

          g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
          if (way == 0)
            fake_cuda_fail ("cuLaunchKernel", 1, CUDA_ERROR_INVALID_VALUE);
          else if (way == 1)
            fake_cuda_fail ("cuMemcpyDtoHAsync", 1, CUDA_ERROR_INVALID_VALUE);
          else
            fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
          if (i == 0)
            y = gtorch_tensor_nonzero (tensor, &error);
          else if (i == 1)
            y = gtorch_tensor_masked_select (tensor, mask, &error);
          else if (i == 2)
            y = gtorch_tensor_bincount (tensor, NULL, 0, &error);
          else
            y = gtorch_tensor_one_hot (tensor, -1, &error);
          g_assert_null (y);
          g_test_message ("%s", error->message);
          g_assert_true (g_str_has_prefix (error->message, start));
          if (way == 2)
            g_assert_nonnull (strstr (error->message, place));
          g_clear_error (&error);
          heal ();
        }
    }
}

/* The fake driver has no kernel for it. */
static void
a_missing_kernel_is_named_after_the_operation (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (x));
  g_autoptr (GTorchTensor) values = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_tensor_unique (tensor, &values, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_true (g_str_has_prefix (error->message, "unique: gt_order_"));
}

/* An operation that waits for the device and continues afterwards is still unfinished. */
static void
operations_that_continue_after_a_wait_are_named (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GError) error = NULL;
  GTorchCudaLane *lane = gtorch_cuda_current_lane (gpu (0), &error);

  g_assert_no_error (error);
  fake_cuda_set_seed (0);
  gtorch_cuda_note_begin (lane, "unique");
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  g_assert_true (gtorch_cuda_lane_synchronize (lane, "read", NULL));
  gtorch_cuda_note_next (lane);
  fake_cuda_hold (TRUE);
  fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  g_assert_true (gtorch_cuda_note_end (lane, TRUE));
  error = end ();
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, ", 700), in unique (work "));
  heal ();
}

static void
each_stream_with_unfinished_work_is_named (void)
{
  g_autoptr (GTorchImpl) x = begin (1);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GError) error = NULL;

  enqueue (x);
  guard = gtorch_stream_guard_new (stream);
  gtorch_op_neg_inplace (x, NULL);
  error = end ();
  g_assert_nonnull (strstr (error->message, "the operations from add to sub"));
  g_assert_nonnull (strstr (error->message, "neg (work "));
  g_assert_nonnull (strstr (error->message, " or in "));
  heal ();
}

static void
error_checks_name_the_operation_that_failed (void)
{
  guint nth;

  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_ERRORS);
  for (nth = 1; nth <= 4; nth++)
    {
      g_autoptr (GTorchImpl) x = begin (nth);
      g_autoptr (GError) error = NULL;
      g_autofree gchar *expected = g_strdup_printf (", 700), in %s (work ", names[nth - 1]);

      enqueue (x);
      error = end ();
      g_test_message ("%s", error->message);
      g_assert_nonnull (strstr (error->message, expected));
      g_assert_nonnull (strstr (error->message, "called by "));
      g_assert_nonnull (strstr (error->message, "test-cuda-failure+0x"));
      g_assert_null (strstr (error->message, " or in "));
      heal ();
    }
  gtorch_checks_set (0);
}

static void
only_the_last_of_many_operations_are_named (void)
{
  g_autoptr (GTorchImpl) x = begin (1);
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < 200; i++)
    enqueue (x);
  error = end ();
  g_assert_nonnull (strstr (error->message, "the operations from add to sub"));
  heal ();
}

/* An error that a call returns only once affects that call alone. */
static void
a_transient_error_loses_no_device (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GError) error = NULL;

  fake_cuda_fail ("cuCtxSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
  g_assert_false (gtorch_device_synchronize (gpu (0), NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_true (gtorch_device_check (gpu (0), NULL));
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  enqueue (x);
  heal ();
}

/* --- after the failure --- */

static void
every_later_call_fails_at_once_with_the_first_cause (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchImpl) host = ramp_1d (gtorch_device_cpu (), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GTorchImpl) other = ramp_1d (gpu (1), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GTorchImpl) x = begin (2);
  g_autoptr (GTorchImpl) one = NULL;
  g_autoptr (GError) first = NULL;
  g_autofree gdouble *values = NULL;
  const gint64 shape[] = { 50 };
  guint i;

  one = gtorch_op_select (x, 0, 0, NULL);
  enqueue (x);
  first = end ();
  fake_cuda_reset_calls ();
  for (i = 0; i < 11; i++)
    {
      g_autoptr (GError) error = NULL;
      gpointer result = NULL;

      if (i == 0)
        result = gtorch_op_empty (shape, 1, GTORCH_DTYPE_INT64, gpu (0), &error);
      else if (i == 1)
        result = gtorch_op_add (x, x, 1, &error);
      else if (i == 2)
        result = GINT_TO_POINTER (gtorch_op_neg_inplace (x, &error));
      else if (i == 3)
        result = gtorch_op_to_device (x, gtorch_device_cpu (), FALSE, &error);
      else if (i == 4)
        result = gtorch_op_to_device (host, gpu (0), FALSE, &error);
      else if (i == 5)
        result = gtorch_op_to_device (x, gpu (1), FALSE, &error);
      else if (i == 6)
        result = GINT_TO_POINTER (gtorch_device_synchronize (gpu (0), NULL, &error));
      else if (i == 7)
        result = GINT_TO_POINTER (gtorch_stream_synchronize (stream, NULL, &error));
      else if (i == 8)
        result = GINT_TO_POINTER (gtorch_event_record (event, stream, &error));
      else if (i == 9)
        result = gtorch_stream_new (gpu (0), 0, &error);
      else
        {
          g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (one));

          gtorch_tensor_item_double (tensor, &error);
        }
      if (result != NULL || error == NULL)
        g_test_message ("call %u", i);
      g_assert_null (result);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
      g_assert_true (g_str_has_suffix (error->message, first->message));
    }
  g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), ==, 0);
  g_assert_cmpuint (fake_cuda_get_calls ("cuMemCreate"), ==, 0);
  g_assert_cmpuint (fake_cuda_get_calls ("cuStreamSynchronize"), ==, 0);
  g_assert_cmpuint (fake_cuda_get_calls ("cuCtxSynchronize"), ==, 0);

  /* other devices are not affected */
  g_assert_true (gtorch_device_check (gpu (1), NULL));
  enqueue (other);
  values = read_doubles (other);
  g_assert_cmpfloat (values[3], ==, 0);
  heal ();
}

/* --- notification --- */

typedef struct
{
  guint n;
  GThread *thread;
  gchar *message;
} Heard;

static void
on_error (GTorchDevice *device, GError *error, gpointer data)
{
  Heard *heard = data;

  g_assert_true (device == gpu (0));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
  heard->n++;
  heard->thread = g_thread_self ();
  g_free (heard->message);
  heard->message = g_strdup (error->message);
}

static gpointer
fail_in_thread (gpointer data)
{
  return end ();
}

static void
the_owner_is_notified_in_its_main_loop (void)
{
  g_autoptr (GTorchImpl) x = begin (1);
  g_autoptr (GError) error = NULL;
  Heard heard = { 0 };
  gulong id = g_signal_connect (gpu (0), "error", G_CALLBACK (on_error), &heard);

  enqueue (x);
  error = g_thread_join (g_thread_new ("waits", fail_in_thread, NULL));
  g_assert_false (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_assert_cmpuint (heard.n, ==, 0);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (heard.n, ==, 1);
  g_assert_true (heard.thread == g_thread_self ());
  g_assert_cmpstr (heard.message, ==, error->message);
  g_signal_handler_disconnect (gpu (0), id);
  g_free (heard.message);
  heal ();
}

#define TEST(name) g_test_add_func ("/GTorchCudaFailure/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (the_error_names_the_possible_operations);
  TEST (finished_operations_are_not_named);
  TEST (operations_that_wait_for_shapes_are_named);
  TEST (a_missing_kernel_is_named_after_the_operation);
  TEST (operations_that_continue_after_a_wait_are_named);
  TEST (each_stream_with_unfinished_work_is_named);
  TEST (error_checks_name_the_operation_that_failed);
  TEST (only_the_last_of_many_operations_are_named);
  TEST (a_transient_error_loses_no_device);
  TEST (every_later_call_fails_at_once_with_the_first_cause);
  TEST (the_owner_is_notified_in_its_main_loop);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
