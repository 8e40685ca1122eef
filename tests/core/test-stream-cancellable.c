/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What becomes of a stream's work when its cancellable is cancelled. */

#include "config.h"

#include <string.h>

#include "test-device.h"

typedef struct
{
  GTorchStream *stream;
  GCancellable *cancellable;
} Pair;

static void
pair_init (Pair *pair)
{
  g_autoptr (GError) error = NULL;

  pair->stream = gtorch_stream_new (NULL, 0, &error);
  g_assert_no_error (error);
  pair->cancellable = g_cancellable_new ();
  g_assert_true (gtorch_stream_set_cancellable (pair->stream, pair->cancellable, &error));
  g_assert_no_error (error);
}

static void
pair_clear (Pair *pair)
{
  if (pair->stream != NULL)
    gtorch_stream_synchronize (pair->stream, NULL, NULL);
  g_clear_object (&pair->stream);
  g_clear_object (&pair->cancellable);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pair, pair_clear)

static GTorchTensor *
ones (void)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *result = gtorch_ones (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  /* other streams may use it */
  gtorch_stream_synchronize (gtorch_device_get_default_stream (test_device ()), NULL, &error);
  g_assert_no_error (error);
  return result;
}

static GTorchTensor *
add_on (GTorchStream *stream, GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

  return gtorch_tensor_add (x, x, 1, error);
}

static void
assert_cancelled (GError **error, const gchar *op, GTorchStream *stream)
{
  g_autofree gchar *message =
      g_strdup_printf ("%s: the work of stream %p on %s was cancelled", op, stream,
                       gtorch_device_name (gtorch_stream_get_device (stream)));

  g_assert_error (*error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static void
default_streams_have_none (void)
{
  GTorchStream *stream = gtorch_device_get_default_stream (test_device ());
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_stream_set_cancellable (stream, cancellable, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_true (g_str_has_prefix (error->message, "stream: the default stream of "));
  g_assert_null (gtorch_stream_get_cancellable (stream));
  g_assert_true (gtorch_stream_set_cancellable (stream, NULL, NULL));
}

static void
count (GObject *object, GParamSpec *pspec, gpointer data)
{
  (*(guint *) data)++;
}

static void
property_notifies (void)
{
  g_auto (Pair) pair = { 0 };
  g_autoptr (GCancellable) found = NULL;
  guint n = 0;

  pair_init (&pair);
  g_signal_connect (pair.stream, "notify::cancellable", G_CALLBACK (count), &n);
  g_object_get (pair.stream, "cancellable", &found, NULL);
  g_assert_true (found == pair.cancellable);
  g_object_set (pair.stream, "cancellable", found, NULL);
  g_assert_cmpuint (n, ==, 0);
  g_object_set (pair.stream, "cancellable", NULL, NULL);
  g_assert_cmpuint (n, ==, 1);
  g_assert_null (gtorch_stream_get_cancellable (pair.stream));
}

static void
operations_are_refused (void)
{
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchTensor) before = NULL;
  g_autoptr (GTorchTensor) elsewhere = NULL;
  g_autoptr (GTorchTensor) after = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Pair) pair = { 0 };

  pair_init (&pair);
  before = add_on (pair.stream, x, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_cancellable_cancel (pair.cancellable);
  g_assert_null (add_on (pair.stream, x, &error));
  assert_cancelled (&error, "add", pair.stream);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (pair.stream);

    g_assert_null (gtorch_tensor_add_inplace (x, x, 1, &error));
    assert_cancelled (&error, "add", pair.stream);
  }
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_assert_cmpfloat (test_element (before, 0), ==, 2);
  g_assert_cmpfloat (test_element (x, 0), ==, 1);
  elsewhere = gtorch_tensor_add (x, x, 1, &error);
  g_assert_no_error (error);

  g_cancellable_reset (pair.cancellable);
  after = add_on (pair.stream, x, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error)); /* lest it be dropped */
  g_cancellable_cancel (pair.cancellable);
  g_assert_true (gtorch_stream_set_cancellable (pair.stream, NULL, &error));
  g_clear_object (&after);
  after = add_on (pair.stream, x, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_assert_cmpfloat (test_element (after, 3), ==, 2);
}

static gpointer
cancel (gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
  return NULL;
}

static void
another_thread_cancels (void)
{
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GError) error = NULL;
  g_auto (Pair) pair = { 0 };
  GThread *thread;
  guint i = 0;

  pair_init (&pair);
  thread = g_thread_new ("cancel", cancel, pair.cancellable);
  while (error == NULL)
    {
      g_autoptr (GTorchTensor) sum = add_on (pair.stream, x, &error);

      if (++i % 100 == 0) /* the other thread comes before the memory ends */
        gtorch_stream_synchronize (pair.stream, NULL, NULL);
    }
  g_thread_join (thread);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
events_and_waits_go_on (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Pair) pair = { 0 };

  pair_init (&pair);
  sum = add_on (pair.stream, x, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_cancellable_cancel (pair.cancellable);
  event = gtorch_stream_record_event (pair.stream, &error);
  g_assert_nonnull (event);
  g_assert_true (gtorch_stream_wait_event (other, event, &error));
  g_assert_true (gtorch_stream_wait_stream (pair.stream, other, &error));
  g_assert_true (gtorch_event_synchronize (event, NULL, &error));
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_assert_true (gtorch_stream_synchronize (other, NULL, &error));
  g_assert_no_error (error);
}

/* --- the queue of the CPU --- */

static gint is_open; /* atomic */

static void
wait_until_open (gpointer data)
{
  while (!g_atomic_int_get (&is_open))
    g_thread_yield ();
}

static void
queued_operations_are_dropped (void)
{
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchTensor) dropped = NULL;
  g_autoptr (GTorchTensor) again = NULL;
  g_autoptr (GCancellable) later = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_auto (Pair) pair = { 0 };

  if (test_is_elsewhere ("what was launched is done"))
    return;
  pair_init (&pair);
  g_atomic_int_set (&is_open, FALSE);
  test_enqueue (pair.stream, wait_until_open, NULL);
  dropped = add_on (pair.stream, x, &error);
  g_assert_no_error (error);
  g_cancellable_cancel (pair.cancellable);
  g_assert_true (gtorch_stream_set_cancellable (pair.stream, later, &error)); /* does not save it */
  g_atomic_int_set (&is_open, TRUE);
  g_assert_false (gtorch_stream_synchronize (pair.stream, NULL, &error));
  assert_cancelled (&error, "add", pair.stream);
  g_assert_false (gtorch_impl_sync (dropped->impl, &error));
  assert_cancelled (&error, "add", pair.stream);

  again = add_on (pair.stream, x, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_assert_cmpfloat (test_element (again, 0), ==, 2);
}

/* --- graphs, and calls that end later --- */

static void
replays_are_refused (void)
{
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Pair) pair = { 0 };

  if (!test_can_capture ())
    return;
  pair_init (&pair);
  graph = gtorch_cuda_graph_new ();
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (pair.stream);

    g_assert_true (
        gtorch_cuda_graph_capture_begin (graph, NULL, GTORCH_CAPTURE_MODE_GLOBAL, &error));
    sum = gtorch_tensor_add (x, x, 1, &error);
    g_assert_true (gtorch_cuda_graph_capture_end (graph, &error));
    g_assert_no_error (error);
    g_assert_true (gtorch_cuda_graph_replay (graph, &error));
    g_cancellable_cancel (pair.cancellable);
    g_assert_false (gtorch_cuda_graph_replay (graph, &error));
  }
  assert_cancelled (&error, "replay", pair.stream);
  g_assert_true (gtorch_stream_synchronize (pair.stream, NULL, &error));
  g_assert_cmpfloat (test_element (sum, 0), ==, 2);
}

static void
take_result (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
asynchronous_calls_are_refused (void)
{
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchModule) layer = NULL;
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Pair) pair = { 0 };

  pair_init (&pair);
  layer = GTORCH_MODULE (gtorch_relu_new ());
  g_cancellable_cancel (pair.cancellable);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (pair.stream);

    gtorch_module_forward_async (layer, x, NULL, take_result, &result);
  }
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_null (gtorch_module_forward_finish (layer, result, &error));
  assert_cancelled (&error, "relu", pair.stream);
}

#define TEST(name) g_test_add_func ("/GTorch/Stream/cancellable/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (default_streams_have_none);
  TEST (property_notifies);
  TEST (operations_are_refused);
  TEST (another_thread_cancels);
  TEST (events_and_waits_go_on);
  TEST (queued_operations_are_dropped);
  TEST (replays_are_refused);
  TEST (asynchronous_calls_are_refused);
  return g_test_run ();
}
