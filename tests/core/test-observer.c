/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Observers: that each is told of every event, in which order, and what a refusal does. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/base/gtorch-observer-named-private.h>
#include <gtorch/memory/gtorch-pinned-private.h>

#include "capture-test.h"
#include "test-device.h"

/* --- an observer that counts --- */

typedef enum
{
  CALL_BEGIN,
  CALL_END,
  COPY,
  REPLAY_BEGIN,
  REPLAY_END,
  RECORD,
  WAIT,
  JOIN,
  HOST_WAIT,
  HOST_WAITED,
  HOST_BLOCK_BEGIN,
  HOST_BLOCK_END,
  STORAGE_WAITED,
  HOST_COPY,
  STORAGE_FREE,
  CAPTURE_BEGIN,
  CAPTURE_END,
  HOST_WORK,
  GRAD,
  PREPARE,
  VIEW,
  COMPOSITE_BEGIN,
  COMPOSITE_END,
  RECORDED,
  BACKWARD_BEGIN,
  BACKWARD_END,
  STORAGE_NEW,
  NAMED_BEGIN,
  NAMED_END,
  SAVED,
  RUN_BEGIN,
  RUN_END,
  N_EVENTS
} Event;

static const gchar *const names[N_EVENTS] = {
  "call_begin",
  "call_end",
  "copy",
  "replay_begin",
  "replay_end",
  "record",
  "wait",
  "join",
  "host_wait",
  "host_waited",
  "host_block_begin",
  "host_block_end",
  "storage_waited",
  "host_copy",
  "storage_free",
  "capture_begin",
  "capture_end",
  "host_work",
  "grad",
  "prepare",
  "view",
  "composite_begin",
  "composite_end",
  "recorded",
  "backward_begin",
  "backward_end",
  "storage_new",
  "named_begin",
  "named_end",
  "saved",
  "run_begin",
  "run_end",
};

static gint counts[N_EVENTS];   /* atomically */
static gint n_open;             /* atomically: calls that have begun and not ended */
static gint refused = N_EVENTS; /* atomically */
static GString *trace;          /* what the two observers with ranks were told, in order */

static gboolean
note (Event event, GError **error)
{
  g_atomic_int_inc (&counts[event]);
  if ((gint) event != g_atomic_int_get (&refused))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%s is refused", names[event]);
  return FALSE;
}

static gboolean
count_call_begin (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  if (!note (CALL_BEGIN, error))
    return FALSE;
  g_atomic_int_inc (&n_open);
  return TRUE;
}

static void
count_call_end (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  g_atomic_int_add (&n_open, -1);
  note (CALL_END, NULL);
}

static gboolean
count_copy (GTorchImpl *dst, GTorchImpl *src, GError **error)
{
  g_assert_true (dst->storage->device != src->storage->device);
  return note (COPY, error);
}

static gboolean
count_replay_begin (GTorchReplay *replay, GError **error)
{
  g_assert_nonnull (replay->exec);
  return note (REPLAY_BEGIN, error);
}

static gboolean
count_replay_end (GTorchReplay *replay, gboolean result, GError **error)
{
  return note (REPLAY_END, error);
}

static void
count_record (GTorchMark *mark)
{
  note (RECORD, NULL);
}

static void
count_wait (GTorchStream *stream, GTorchMark *mark)
{
  g_assert_nonnull (mark);
  note (WAIT, NULL);
}

static void
count_join (GTorchStream *stream, gpointer queue)
{
  g_assert_nonnull (queue);
  note (JOIN, NULL);
}

static void
count_host_wait (GTorchMark *mark)
{
  note (HOST_WAIT, NULL);
}

static void
count_host_waited (GTorchMark *mark)
{
  note (HOST_WAITED, NULL);
}

static void
count_host_block_begin (GTorchDevice *device)
{
  g_assert_nonnull (device);
  note (HOST_BLOCK_BEGIN, NULL);
}

static void
count_host_block_end (GTorchDevice *device)
{
  g_assert_nonnull (device);
  note (HOST_BLOCK_END, NULL);
}

static void
count_storage_waited (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq)
{
  note (STORAGE_WAITED, NULL);
}

static void
count_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only)
{
  note (HOST_COPY, NULL);
}

static void
count_storage_free (GTorchStorage *storage)
{
  g_assert_cmpint (g_atomic_int_get (&storage->ref_count), <=, 1);
  note (STORAGE_FREE, NULL);
}

static void
count_capture_begin (GTorchCapture *capture)
{
  note (CAPTURE_BEGIN, NULL);
}

static gboolean
count_capture_end (GTorchCapture *capture, GTorchGraphExec *exec, gchar **warning, GError **error)
{
  return note (CAPTURE_END, error);
}

static void
count_host_work (const gchar *what)
{
  note (HOST_WORK, NULL);
}

static void
count_grad (GTorchImpl *grad)
{
  note (GRAD, NULL);
}

static void
count_prepare (GTorchOpCall *call)
{
  note (PREPARE, NULL);
}

static void
count_view (GTorchOpCall *call)
{
  note (VIEW, NULL);
}

static void
count_named_begin (const GTorchNamed *named)
{
  g_assert_cmpstr (named->name, ==, "OwnFunction");
  note (NAMED_BEGIN, NULL);
}

static void
count_named_end (const GTorchNamed *named)
{
  note (NAMED_END, NULL);
}

static void
count_composite_begin (const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs)
{
  g_assert_true (inputs != NULL || n_inputs == 0);
  note (COMPOSITE_BEGIN, NULL);
}

static void
count_composite_end (const GTorchOpClass *op)
{
  note (COMPOSITE_END, NULL);
}

static void
count_saved (const GTorchOpCall *call, guint64 *number)
{
  g_assert_cmpuint (*number, ==, 0);
  *number = g_atomic_int_add (&counts[SAVED], 1) + 1;
}

static void
count_run_begin (guint64 number, const GTorchOpCall *call)
{
  g_assert_cmpuint (number, >, 0);
  note (RUN_BEGIN, NULL);
}

static void
count_run_end (guint64 number, const GTorchOpCall *call)
{
  note (RUN_END, NULL);
}

static void
count_recorded (guint64 sequence)
{
  g_assert_cmpuint (sequence, >, 0);
  note (RECORDED, NULL);
}

static void
count_backward_begin (const gchar *name, guint64 sequence, GTorchImpl *const *grads, gsize n_grads)
{
  g_assert_cmpuint (n_grads, >, 0);
  g_assert_nonnull (name);
  note (BACKWARD_BEGIN, NULL);
}

static void
count_backward_end (const gchar *name, guint64 sequence)
{
  note (BACKWARD_END, NULL);
}

static void
count_storage_new (GTorchStorage *storage)
{
  g_assert_cmpint (g_atomic_int_get (&storage->ref_count), ==, 1);
  note (STORAGE_NEW, NULL);
}

static const GTorchObserver counter = {
  .rank = 5,
  .call_begin = count_call_begin,
  .call_end = count_call_end,
  .copy = count_copy,
  .replay_begin = count_replay_begin,
  .replay_end = count_replay_end,
  .record = count_record,
  .wait = count_wait,
  .join = count_join,
  .host_wait = count_host_wait,
  .host_waited = count_host_waited,
  .host_block_begin = count_host_block_begin,
  .host_block_end = count_host_block_end,
  .storage_waited = count_storage_waited,
  .host_copy = count_host_copy,
  .storage_free = count_storage_free,
  .capture_begin = count_capture_begin,
  .capture_end = count_capture_end,
  .host_work = count_host_work,
  .grad = count_grad,
  .prepare = count_prepare,
  .view = count_view,
  .composite_begin = count_composite_begin,
  .named_begin = count_named_begin,
  .named_end = count_named_end,
  .composite_end = count_composite_end,
  .saved = count_saved,
  .run_begin = count_run_begin,
  .run_end = count_run_end,
  .recorded = count_recorded,
  .backward_begin = count_backward_begin,
  .backward_end = count_backward_end,
  .storage_new = count_storage_new,
};

static const GTorchObserver counter_in_captures = {
  .rank = 6,
  .in_captures = TRUE,
  .call_begin = count_call_begin,
  .call_end = count_call_end,
};

static void
observe (const GTorchObserver *observer)
{
  guint i;

  for (i = 0; i < N_EVENTS; i++)
    g_atomic_int_set (&counts[i], 0);
  gtorch_observer_add (observer);
}

static gint
count (Event event)
{
  return g_atomic_int_get (&counts[event]);
}

/* Calls of the function fail from now on; N_EVENTS: none does. */
static void
refuse (Event event)
{
  g_atomic_int_set (&refused, event);
}

static GTorchTensor *
filled (gdouble value)
{
  return gtorch_full (GTORCH_SHAPE (4), value, GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static GTorchTensor *
must (GTorchTensor *tensor, GError *error)
{
  g_assert_no_error (error);
  g_assert_nonnull (tensor);
  return tensor;
}

/* --- all events --- */

static void
use_graphs (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  y = gtorch_tensor_mul (x, x, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (y, 0), ==, 9);
}

static void
use_streams (void)
{
  g_autoptr (GTorchStream) a = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) b = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (a);
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;

  g_assert_true (gtorch_event_record (event, a, NULL));
  g_assert_true (gtorch_event_wait (event, b, NULL));
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  g_assert_true (gtorch_stream_synchronize (a, NULL, NULL));
  gtorch_stream_set_auto_sync (b, TRUE);
  y = gtorch_tensor_add (x, x, 1, NULL);
  gtorch_stream_set_current (b);
  z = gtorch_tensor_add (y, y, 1, NULL);
  gtorch_stream_set_auto_sync (b, FALSE);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  g_assert_cmpfloat (test_element (z, 0), ==, 12);
}

static gboolean
hold (gpointer gate, GError **error)
{
  while (g_atomic_int_get ((gint *) gate) == 0)
    g_thread_yield ();
  return TRUE;
}

static void
use_views (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) y = NULL;

  y = gtorch_tensor_flatten (x, 0, -1, NULL);
  g_assert_nonnull (y);
  g_clear_object (&y);
  y = gtorch_tensor_unsqueeze (x, 0, NULL);
  g_assert_nonnull (y);
}

/* The CPU's streams: a join and a wait for a storage need work that is not done yet. */
static void
use_busy_stream (void)
{
  g_autoptr (GTorchStream) a = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchStream) b = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (a);
  g_autoptr (GTorchTensor) x = NULL;
  gint gate = 0;

  GTORCH_STREAM_GET_CLASS (a)->enqueue (a, hold, &gate, NULL);
  x = gtorch_full (GTORCH_SHAPE (4), 2, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);
  gtorch_stream_set_current (b);
  gtorch_stream_set_auto_sync (b, TRUE);
  g_assert_nonnull (gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL));
  gtorch_stream_set_auto_sync (b, FALSE);
  g_atomic_int_set (&gate, 1);
  gtorch_stream_set_current (gtorch_device_get_default_stream (gtorch_device_cpu ()));
  g_assert_cmpfloat (test_element (x, 0), ==, 3);
}

static void
use_grads (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  guint i;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, NULL);
      g_autoptr (GTorchTensor) total = gtorch_tensor_sum (square, NULL, 0, FALSE, 0, NULL);

      g_assert_true (gtorch_tensor_backward (total, NULL, FALSE, FALSE, NULL));
    }
}

typedef struct
{
  GTorchFunction parent_instance;
} OwnFunction;

typedef struct
{
  GTorchFunctionClass parent_class;
} OwnFunctionClass;

static GType own_function_get_type (void);

G_DEFINE_TYPE (OwnFunction, own_function, GTORCH_TYPE_FUNCTION)

static GPtrArray *
own_function_forward (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **inputs,
                      gsize n_inputs, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (outputs, gtorch_tensor_exp (inputs[0], error));
  return outputs;
}

static void
own_function_class_init (OwnFunctionClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = own_function_forward;
}

static void
own_function_init (OwnFunction *self)
{
}

static void
use_function (void)
{
  g_autoptr (GTorchFunction) function = g_object_new (own_function_get_type (), NULL);
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GPtrArray) outputs = gtorch_function_apply (function, &x, 1, NULL);

  g_assert_nonnull (outputs);
}

static void
use_copies (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GError) error = NULL;

  host = must (gtorch_tensor_to_device (x, gtorch_device_cpu (), TRUE, &error), error);
  g_assert_cmpfloat (test_element (host, 0), ==, 3);
}

static void
each_event_is_reported (void)
{
  const gboolean is_cpu = test_device () == gtorch_device_cpu ();
  const gboolean copies_alone = test_device ()->backend->copies_alone;
  gint n_calls;
  guint i;

  if (!test_can_capture ())
    return;
  observe (&counter);
  use_streams ();
  use_views ();
  use_busy_stream ();
  use_grads ();
  use_function ();
  gtorch_manual_seed (0);
  if (!is_cpu)
    use_copies ();
  use_graphs ();
  gtorch_observer_remove (&counter);
  for (i = 0; i < N_EVENTS; i++)
    if ((i != COPY || !is_cpu) && (i != HOST_COPY || copies_alone))
      {
        g_test_message ("%s: %d times", names[i], count (i));
        g_assert_cmpint (count (i), >, 0);
      }
  g_assert_cmpint (count (CALL_BEGIN), ==, count (CALL_END));
  g_assert_cmpint (count (COMPOSITE_BEGIN), ==, count (COMPOSITE_END));
  g_assert_cmpint (count (NAMED_BEGIN), ==, count (NAMED_END));
  g_assert_cmpint (count (SAVED), ==, count (RUN_BEGIN));
  g_assert_cmpint (count (RUN_BEGIN), ==, count (RUN_END));
  g_assert_cmpint (count (BACKWARD_BEGIN), ==, count (BACKWARD_END));
  g_assert_cmpint (count (REPLAY_BEGIN), ==, count (REPLAY_END));
  g_assert_cmpint (count (HOST_BLOCK_BEGIN), ==, count (HOST_BLOCK_END));
  g_assert_cmpint (count (CAPTURE_BEGIN), ==, count (CAPTURE_END));
  g_assert_cmpint (count (HOST_WAITED), >=, count (STORAGE_WAITED));

  n_calls = count (CALL_BEGIN);
  use_streams ();
  g_assert_cmpint (count (CALL_BEGIN), ==, n_calls);
}

/* --- order and refusals --- */

static gboolean
trace_first_begin (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_string_append (trace, "a");
  return TRUE;
}

static void
trace_first_end (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  g_string_append (trace, result ? "A" : "!");
}

static gboolean
trace_second_begin (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_string_append (trace, "b");
  return note (CALL_BEGIN, error);
}

static void
trace_second_end (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  g_string_append (trace, "B");
}

static gboolean
trace_third_begin (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_string_append (trace, "c");
  return TRUE;
}

static const GTorchObserver first = { .rank = 10,
                                      .call_begin = trace_first_begin,
                                      .call_end = trace_first_end };
static const GTorchObserver second = { .rank = 11,
                                       .call_begin = trace_second_begin,
                                       .call_end = trace_second_end };
static const GTorchObserver third = { .rank = 12, .call_begin = trace_third_begin };

static void
ranks_decide_on_the_order (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) none = NULL;
  g_autoptr (GError) error = NULL;

  trace = g_string_new (NULL);
  gtorch_observer_add (&third);
  gtorch_observer_add (&first);
  gtorch_observer_add (&second);
  gtorch_observer_add (&second); /* once is enough */
  y = must (gtorch_tensor_add (x, x, 1, &error), error);
  g_assert_cmpstr (trace->str, ==, "abcBA");

  g_string_set_size (trace, 0);
  refuse (CALL_BEGIN);
  none = gtorch_tensor_add (x, x, 1, &error);
  refuse (N_EVENTS);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "call_begin is refused"));
  g_assert_cmpstr (trace->str, ==, "ab!");
  gtorch_observer_remove (&first);
  gtorch_observer_remove (&second);
  gtorch_observer_remove (&third);
  g_string_free (g_steal_pointer (&trace), TRUE);
}

static void
refusals_fail_what_is_observed (void)
{
  static const Event events[] = { REPLAY_BEGIN, REPLAY_END, CAPTURE_END };
  guint i;

  if (!test_can_capture ())
    return;
  for (i = 0; i < G_N_ELEMENTS (events); i++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchTensor) x = filled (3);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GError) error = NULL;
      GTorchGraphCapture *capture;
      gboolean result;

      observe (&counter);
      refuse (events[i]);
      capture = begin (graph, NULL, NULL);
      y = gtorch_tensor_mul (x, x, NULL);
      result = gtorch_graph_capture_end (capture, &error);
      gtorch_graph_capture_unref (capture);
      g_assert_true (result == (events[i] != CAPTURE_END));
      if (result)
        g_assert_false (gtorch_cuda_graph_replay (graph, &error));
      else
        g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      g_assert_nonnull (strstr (error->message, names[events[i]]));
      refuse (N_EVENTS);
      if (result)
        g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      gtorch_observer_remove (&counter);
    }
}

/* --- who is told when --- */

static void
nobody_observes_without_need (void)
{
  const GTorchObserverList *one, *both;
  guint i;

  if (gtorch_checks != 0)
    {
      g_test_skip ("the environment turns on checks, which observe");
      return;
    }
  g_assert_null (gtorch_observers);
  gtorch_observer_add (&first);
  one = gtorch_observers;
  gtorch_observer_add (&third);
  both = gtorch_observers;
  for (i = 0; i < 1000; i++) /* no list is made twice */
    {
      gtorch_observer_remove (i % 2 == 0 ? &first : &third);
      gtorch_observer_add (i % 2 == 0 ? &first : &third);
      g_assert_true (gtorch_observers == both);
    }
  gtorch_observer_remove (&third);
  g_assert_true (gtorch_observers == one);
  gtorch_observer_remove (&first);
  gtorch_observer_remove (&first);
  g_assert_null (gtorch_observers);
}

static void
some_are_told_of_captures_only (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchGraphCapture *capture;

  if (!test_can_capture ())
    return;
  observe (&counter_in_captures);
  y = gtorch_tensor_mul (x, x, NULL);
  g_assert_cmpint (count (CALL_BEGIN), ==, 0);
  capture = begin (graph, NULL, NULL);
  z = gtorch_tensor_mul (x, x, NULL);
  g_assert_cmpint (count (CALL_BEGIN), ==, 1);
  end (capture);
  g_clear_object (&y);
  y = gtorch_tensor_mul (x, x, NULL);
  g_assert_cmpint (count (CALL_BEGIN), ==, 1);
  g_assert_cmpint (count (CALL_END), ==, 1);
  gtorch_observer_remove (&counter_in_captures);
}

#define N_ROUNDS 300

static gpointer
call (gpointer is_over)
{
  g_autoptr (GTorchTensor) x = filled (1);

  while (!g_atomic_int_get ((gint *) is_over))
    g_assert_nonnull (gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL));
  return NULL;
}

static void
observers_come_and_go_while_others_work (void)
{
  GThread *threads[2];
  gint is_over = FALSE;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("caller", call, &is_over);
  for (i = 0; i < N_ROUNDS; i++)
    {
      gtorch_observer_add (&counter);
      g_thread_yield ();
      gtorch_observer_remove (&counter);
    }
  g_atomic_int_set (&is_over, TRUE);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpint (n_open, ==, 0); /* who was told of the beginning was told of the end */
}

/* --- notes --- */

#define N_NOTES 64

typedef struct
{
  GTorchNote note;
  gint *n_freed;
} Note;

typedef struct
{
  GTorchNote **notes;
  gchar owners[N_NOTES];
  gint n_freed;
} Writer;

static void
free_note (GTorchNote *note)
{
  (*((Note *) note)->n_freed)++;
  g_free (note);
}

static gpointer
write_notes (gpointer data)
{
  Writer *writer = data;
  guint i;

  for (i = 0; i < N_NOTES; i++)
    {
      Note *own = g_new0 (Note, 1);

      own->note.owner = &writer->owners[i];
      own->note.free = free_note;
      own->n_freed = &writer->n_freed;
      g_assert_null (gtorch_note_find (writer->notes, own->note.owner));
      gtorch_note_add (writer->notes, &own->note);
      g_assert_true (gtorch_note_find (writer->notes, own->note.owner) == &own->note);
    }
  return NULL;
}

static void
notes_are_kept_and_freed (void)
{
  Writer writers[3] = { { NULL } };
  GThread *threads[G_N_ELEMENTS (writers)];
  GTorchNote *notes = NULL;
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (writers); i++)
    {
      writers[i].notes = &notes;
      threads[i] = g_thread_new ("writer", write_notes, &writers[i]);
    }
  for (i = 0; i < G_N_ELEMENTS (writers); i++)
    g_thread_join (threads[i]);
  for (i = 0; i < G_N_ELEMENTS (writers); i++)
    for (j = 0; j < N_NOTES; j++)
      g_assert_nonnull (gtorch_note_find (&notes, &writers[i].owners[j]));
  gtorch_notes_free (&notes);
  g_assert_null (notes);
  for (i = 0; i < G_N_ELEMENTS (writers); i++)
    g_assert_cmpint (writers[i].n_freed, ==, N_NOTES);
}

#define TEST(name) g_test_add_func ("/GTorch/observer/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (nobody_observes_without_need);
  TEST (each_event_is_reported);
  TEST (ranks_decide_on_the_order);
  TEST (refusals_fail_what_is_observed);
  TEST (some_are_told_of_captures_only);
  TEST (observers_come_and_go_while_others_work);
  TEST (notes_are_kept_and_freed);
  return g_test_run ();
}
