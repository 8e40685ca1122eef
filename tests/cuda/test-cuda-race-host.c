/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GTORCH_CHECK=streams when the host waits: work that the host has waited for in any way, in any thread,
 * precedes work that is enqueued afterwards; other work does not. Tested on the CPU's streams and on a
 * GPU's, with ON_A_REAL_GPU on those of a real one. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>

#include <tests/capture-test.h>

#include "race-test.h"

typedef struct
{
  GTorchDevice *device;
  GTorchStream *a, *b, *other;
  GTorchTensor *x; /* written and read on a; then written on b */
} Case;

#define N 4

static GTorchTensor *
must (GTorchTensor *tensor)
{
  g_assert_nonnull (tensor);
  return tensor;
}

static void
on (GTorchStream *stream)
{
  gtorch_stream_set_current (stream);
}

static void
on_default (GTorchDevice *device)
{
  on (gtorch_device_get_default_stream (device));
}

static GTorchTensor *
filled (GTorchDevice *device)
{
  return must (gtorch_full (GTORCH_SHAPE (N), 3, GTORCH_DTYPE_FLOAT32, device, NULL));
}

static GTorchTensor *
pinned (void)
{
  g_autoptr (GTorchTensor) plain = filled (gtorch_device_cpu ());

  return must (gtorch_tensor_pin_memory (plain, NULL));
}

static void
write_to (GTorchTensor *tensor)
{
  must (gtorch_tensor_fill_inplace (tensor, 1, NULL));
}

static void
copy_to (GTorchTensor *dst, GTorchTensor *src, gboolean non_blocking)
{
  must (gtorch_tensor_copy_inplace (dst, src, non_blocking, NULL));
}

static GTorchTensor *
to_host (GTorchTensor *tensor)
{
  GTorchTensor *host = must (gtorch_tensor_to_device (tensor, gtorch_device_cpu (), TRUE, NULL));

  g_assert_true (gtorch_tensor_is_pinned (host));
  return host;
}

static void
read_all (GTorchTensor *tensor)
{
  g_autofree gdouble *values = NULL;
  gsize n;

  values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  g_assert_nonnull (values);
}

static void
take_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
turn_until (gpointer *set)
{
  while (*set == NULL)
    g_main_context_iteration (NULL, TRUE);
}

/* --- waiting for the stream --- */

static void
read_on_the_stream (Case *c)
{
  read_all (c->x);
}

static void
one_element (Case *c)
{
  g_autoptr (GTorchTensor) first = must (gtorch_tensor_select (c->x, 0, 0, NULL));

  g_assert_cmpfloat (gtorch_tensor_item_double (first, NULL), ==, 3);
}

static void
a_copy_that_waits (Case *c)
{
  g_autoptr (GTorchTensor) host =
      must (gtorch_tensor_to_device (c->x, gtorch_device_cpu (), FALSE, NULL));
}

static void
waiting_that_could_be_cancelled (Case *c)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  g_assert_true (gtorch_stream_synchronize (c->a, cancellable, NULL));
}

static void
the_stream_in_the_main_loop (Case *c)
{
  g_autoptr (GAsyncResult) result = NULL;

  gtorch_stream_synchronize_async (c->a, NULL, take_result, &result);
  turn_until ((gpointer *) &result);
  g_assert_true (gtorch_stream_synchronize_finish (c->a, result, NULL));
}

static void
an_event_in_the_main_loop (Case *c)
{
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (c->a, NULL);
  g_autoptr (GAsyncResult) result = NULL;

  gtorch_event_synchronize_async (event, NULL, take_result, &result);
  turn_until ((gpointer *) &result);
  g_assert_true (gtorch_event_synchronize_finish (event, result, NULL));
}

static void
take_event (GTorchEvent *event, GTorchEvent **seen)
{
  *seen = event;
}

static void
a_signal_of_an_event (Case *c)
{
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
  GTorchEvent *seen = NULL;

  g_signal_connect (event, "completed", G_CALLBACK (take_event), &seen);
  g_assert_true (gtorch_event_record (event, c->a, NULL));
  turn_until ((gpointer *) &seen);
}

static void
the_device_in_the_main_loop (Case *c)
{
  g_autoptr (GAsyncResult) result = NULL;

  gtorch_device_synchronize_async (c->device, NULL, take_result, &result);
  turn_until ((gpointer *) &result);
  g_assert_true (gtorch_device_synchronize_finish (c->device, result, NULL));
}

static void
one_element_in_the_main_loop (Case *c)
{
  g_autoptr (GTorchTensor) first = must (gtorch_tensor_select (c->x, 0, 0, NULL));
  g_autoptr (GAsyncResult) result = NULL;

  gtorch_tensor_item_double_async (first, NULL, take_result, &result);
  turn_until ((gpointer *) &result);
  g_assert_cmpfloat (gtorch_tensor_item_double_finish (first, result, NULL), ==, 3);
}

static void
a_copy_in_the_main_loop (Case *c)
{
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GAsyncResult) result = NULL;

  gtorch_tensor_to_device_async (c->x, gtorch_device_cpu (), NULL, take_result, &result);
  turn_until ((gpointer *) &result);
  host = must (gtorch_tensor_to_device_finish (c->x, result, NULL));
}

static gpointer
synchronize_in_thread (gpointer data)
{
  g_assert_true (gtorch_stream_synchronize (((Case *) data)->a, NULL, NULL));
  return NULL;
}

static void
another_thread_that_tells (Case *c)
{
  g_thread_join (g_thread_new ("waits", synchronize_in_thread, c));
}

static void
a_stream_that_has_waited (Case *c)
{
  g_assert_true (gtorch_stream_wait_stream (c->other, c->a, NULL));
  g_assert_true (gtorch_stream_synchronize (c->other, NULL, NULL));
}

/* The result is read elsewhere: the host waits for one tensor, not for a stream. */
static void
a_result_of_a_stream_that_has_waited (Case *c)
{
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GTorchStream) queue = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);

  g_assert_true (gtorch_stream_wait_stream (queue, c->a, NULL));
  on (queue);
  result = filled (gtorch_device_cpu ());
  on_default (gtorch_device_cpu ());
  read_all (result);
}

static void
a_step_that_reads_such_a_result (Case *c)
{
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GTorchTensor) negative = NULL;
  g_autoptr (GTorchStream) queue = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);

  g_assert_true (gtorch_stream_wait_stream (queue, c->a, NULL));
  on (queue);
  result = filled (gtorch_device_cpu ());
  on_default (gtorch_device_cpu ());
  negative = must (gtorch_tensor_neg (result, NULL));
}

/* --- waiting for a copy of the GPU's copy engine --- */

static void
the_copied_values_are_read (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);

  on_default (c->device);
  read_all (host);
}

static void
the_copied_values_are_used (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);
  g_autoptr (GTorchTensor) negative = must (gtorch_tensor_neg (host, NULL));
}

static void
the_host_is_waited_for (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);

  g_assert_true (gtorch_device_synchronize (gtorch_device_cpu (), NULL, NULL));
}

static void
a_copy_into_memory_of_the_program (Case *c)
{
  g_autoptr (GTorchTensor) host = pinned ();

  copy_to (host, c->x, TRUE);
  read_all (host);
}

static void
the_copy_is_used_on_a_stream_of_the_cpu (Case *c)
{
  g_autoptr (GTorchStream) queue = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) host = to_host (c->x);
  g_autoptr (GTorchTensor) negative = NULL;

  on (queue);
  negative = must (gtorch_tensor_neg (host, NULL));
  on_default (gtorch_device_cpu ());
  g_assert_true (gtorch_stream_synchronize (queue, NULL, NULL));
}

/* The second copy waits for the first, as they use the same memory, and b waits for the second. */
static void
the_copy_goes_back (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);

  on (c->b);
  copy_to (c->x, host, TRUE);
}

static void
the_copy_goes_back_and_is_waited_for (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);

  on (c->b);
  copy_to (c->x, host, FALSE);
}

/* Such a copy waits for the CPU stream that writes its source, and that has waited for a. */
static void
a_copy_of_what_came_after (Case *c)
{
  g_autoptr (GTorchStream) queue = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) host = NULL;

  g_assert_true (gtorch_stream_wait_stream (queue, c->a, NULL));
  on (queue);
  host = filled (gtorch_device_cpu ());
  on_default (gtorch_device_cpu ());
  on (c->b);
  copy_to (c->x, host, FALSE);
}

/* The stream waits for everything that the CPU has to wait for, including copies to it. */
static void
a_stream_that_waits_for_all (Case *c)
{
  g_autoptr (GTorchStream) queue = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) host = to_host (c->x);
  g_autoptr (GTorchTensor) other = NULL;

  gtorch_stream_set_auto_sync (queue, TRUE);
  on (queue);
  other = filled (gtorch_device_cpu ());
  on_default (gtorch_device_cpu ());
  g_assert_true (gtorch_stream_synchronize (queue, NULL, NULL));
}

static gpointer
read_in_thread (gpointer data)
{
  read_all (data);
  return NULL;
}

static void
another_thread_reads_the_copy (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);

  g_thread_join (g_thread_new ("reads", read_in_thread, host));
}

/* --- replays on a CPU stream --- */

static void
the_result_of_a_graph_is_read (Case *c)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture;

  capture = begin (graph, c->a, NULL);
  y = must (gtorch_tensor_neg (c->x, NULL));
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  on_default (c->device);
  read_all (y);
}

/* Replays of one graph are ordered implicitly. */
static void
replays_on_both_streams (Case *c)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;

  capture = begin (graph, c->a, NULL);
  must (gtorch_tensor_neg_inplace (c->x, NULL));
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay_on (graph, c->a, NULL));
  g_assert_true (gtorch_cuda_graph_replay_on (graph, c->b, NULL));
  g_assert_true (gtorch_cuda_graph_replay_on (graph, c->a, NULL));
  g_assert_true (gtorch_cuda_graph_replay_on (graph, c->b, NULL));
}

/* A refused call enqueues no work. */
static void
a_call_beside_a_capture (Case *c)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture;

  g_assert_true (gtorch_stream_synchronize (c->a, NULL, NULL));
  capture = begin (graph, c->a, NULL);
  on (c->other);
  g_assert_null (gtorch_tensor_neg (c->x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  on (c->a);
  y = must (gtorch_tensor_neg (c->x, NULL));
  end (capture);
}

/* --- work that is not waited for --- */

static void
nothing (Case *c)
{
}

static void
the_copy_is_not_read (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);
}

static void
there_is_more_work_by_then (Case *c)
{
  read_all (c->x);
  write_to (c->x);
}

static void
more_work_after_the_copy (Case *c)
{
  g_autoptr (GTorchTensor) host = to_host (c->x);

  write_to (c->x);
  read_all (host);
}

static void
another_copy_is_read (Case *c)
{
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) host = to_host (c->x);
  g_autoptr (GTorchTensor) host_y = NULL;

  on (c->other);
  y = filled (c->device);
  host_y = to_host (y);
  read_all (host_y);
}

static void
the_stream_of_the_cpu_is_not_waited_for (Case *c)
{
  g_autoptr (GTorchStream) queue = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) host = to_host (c->x);
  g_autoptr (GTorchTensor) negative = NULL;

  on (queue);
  negative = must (gtorch_tensor_neg (host, NULL));
  on_default (gtorch_device_cpu ());
}

static void
an_event_that_came_before (Case *c)
{
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (c->a, NULL);

  write_to (c->x);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
}

/* a waits for the other stream, not the other way round. */
static void
the_other_stream (Case *c)
{
  g_assert_true (gtorch_stream_wait_stream (c->a, c->other, NULL));
  write_to (c->x);
  g_assert_true (gtorch_stream_synchronize (c->other, NULL, NULL));
}

/* The stream writes two tensors; the host waits for the first. */
static void
a_tensor_that_was_written_before (Case *c)
{
  g_autoptr (GTorchTensor) y = filled (c->device);

  write_to (c->x);
  on_default (c->device);
  read_all (y);
}

static const struct
{
  const gchar *name;
  void (*wait) (Case *c);
  gboolean for_cpu, for_gpu, is_wrong;
} ways[] = {
#define ROW(name, ...)       \
  {                          \
#name, name, __VA_ARGS__ \
  }
  ROW (read_on_the_stream, TRUE, TRUE),
  ROW (one_element, TRUE, TRUE),
  ROW (a_copy_that_waits, FALSE, TRUE),
  ROW (waiting_that_could_be_cancelled, TRUE, TRUE),
  ROW (the_stream_in_the_main_loop, TRUE, TRUE),
  ROW (an_event_in_the_main_loop, TRUE, TRUE),
  ROW (a_signal_of_an_event, TRUE, TRUE),
  ROW (the_device_in_the_main_loop, TRUE, TRUE),
  ROW (one_element_in_the_main_loop, TRUE, TRUE),
  ROW (a_copy_in_the_main_loop, TRUE, TRUE),
  ROW (another_thread_that_tells, TRUE, TRUE),
  ROW (a_stream_that_has_waited, TRUE, TRUE),
  ROW (a_result_of_a_stream_that_has_waited, TRUE, TRUE),
  ROW (a_step_that_reads_such_a_result, TRUE, TRUE),
  ROW (the_copied_values_are_read, FALSE, TRUE),
  ROW (the_copied_values_are_used, FALSE, TRUE),
  ROW (the_host_is_waited_for, FALSE, TRUE),
  ROW (a_copy_into_memory_of_the_program, FALSE, TRUE),
  ROW (the_copy_is_used_on_a_stream_of_the_cpu, FALSE, TRUE),
  ROW (the_copy_goes_back, FALSE, TRUE),
  ROW (the_copy_goes_back_and_is_waited_for, FALSE, TRUE),
  ROW (a_copy_of_what_came_after, FALSE, TRUE),
  ROW (a_stream_that_waits_for_all, FALSE, TRUE),
  ROW (another_thread_reads_the_copy, FALSE, TRUE),
  ROW (the_result_of_a_graph_is_read, TRUE, FALSE),
  ROW (replays_on_both_streams, TRUE, TRUE),
  ROW (a_call_beside_a_capture, TRUE, TRUE),

  ROW (nothing, TRUE, TRUE, TRUE),
  ROW (the_copy_is_not_read, FALSE, TRUE, TRUE),
  ROW (there_is_more_work_by_then, TRUE, TRUE, TRUE),
  ROW (more_work_after_the_copy, FALSE, TRUE, TRUE),
  ROW (another_copy_is_read, FALSE, TRUE, TRUE),
  ROW (the_stream_of_the_cpu_is_not_waited_for, FALSE, TRUE, TRUE),
  ROW (an_event_that_came_before, TRUE, TRUE, TRUE),
  ROW (the_other_stream, TRUE, TRUE, TRUE),
  ROW (a_tensor_that_was_written_before, TRUE, FALSE, TRUE),
#undef ROW
};

static void
run (GTorchDevice *device, guint way)
{
  g_autoptr (GTorchTensor) read = NULL;
  Case c = { .device = device };

  gtorch_checks_set (GTORCH_CHECK_STREAMS);
  n_warnings = 0;
  c.a = gtorch_stream_new (device, 0, NULL);
  c.b = gtorch_stream_new (device, 0, NULL);
  c.other = gtorch_stream_new (device, 0, NULL);
  on (c.a);
  c.x = filled (device);
  read = must (gtorch_tensor_neg (c.x, NULL));
  ways[way].wait (&c);
  if (n_warnings != 0)
    g_test_message ("early: %s", warning);
  g_assert_cmpuint (n_warnings, ==, 0);
  on (c.b);
  write_to (c.x);
  if (n_warnings != ways[way].is_wrong)
    g_test_message ("%u warnings; the last: %s", n_warnings, warning);
  g_assert_cmpuint (n_warnings, ==, ways[way].is_wrong);

  on_default (device);
  g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
  g_assert_true (gtorch_device_synchronize (gtorch_device_cpu (), NULL, NULL));
  g_object_unref (c.x);
  g_object_unref (c.a);
  g_object_unref (c.b);
  g_object_unref (c.other);
  gtorch_checks_set (0);
}

static void
run_on_cpu (gconstpointer data)
{
#ifdef __SANITIZE_THREAD__
  if (ways[GPOINTER_TO_UINT (data)].is_wrong)
    {
      g_test_skip ("threads race on purpose, which ThreadSanitizer reports");
      return;
    }
#endif
  run (gtorch_device_cpu (), GPOINTER_TO_UINT (data));
}

static void
run_on_gpu (gconstpointer data)
{
  guint seed;

  for (seed = 0; seed < 8; seed++)
    {
      fake_cuda_set_seed (seed);
      run (gpu (0), GPOINTER_TO_UINT (data));
    }
}

gint
main (gint argc, gchar **argv)
{
  gint result;
  guint i;

  if (skips_without_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  count_warnings ();
  for (i = 0; i < G_N_ELEMENTS (ways); i++)
    {
      const gchar *kind = ways[i].is_wrong ? "not_enough" : "enough";
      g_autofree gchar *cpu = g_strdup_printf ("/GTorchRace/cpu/%s/%s", kind, ways[i].name);
      g_autofree gchar *cuda = g_strdup_printf ("/GTorchRace/cuda/%s/%s", kind, ways[i].name);

      if (ways[i].for_cpu)
        g_test_add_data_func (cpu, GUINT_TO_POINTER (i), run_on_cpu);
      if (ways[i].for_gpu)
        g_test_add_data_func (cuda, GUINT_TO_POINTER (i), run_on_gpu);
    }
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  g_free (warning);
  return result;
}
