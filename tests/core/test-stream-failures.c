/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Work that is enqueued behind failed work: no tensor may ever return elements that were not computed.
 *
 * The random programs run against a model of what each stream and each tensor knows. A long run needs
 * their number and a first seed: GTORCH_TEST_PROGRAMS=1000000 GTORCH_TEST_SEED=7. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "test-device.h"

static GTorchStream *
new_stream (void)
{
  g_autoptr (GError) error = NULL;
  GTorchStream *stream = gtorch_stream_new (gtorch_device_cpu (), 0, &error);

  g_assert_no_error (error);
  return stream;
}

static GTorchTensor *
ones (void)
{
  return gtorch_ones (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

static gboolean
fail (gpointer data, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, "gather: index %d is out of range",
               GPOINTER_TO_INT (data));
  return FALSE;
}

static void
let_fail (GTorchStream *stream, gint number)
{
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, fail, GINT_TO_POINTER (number), NULL);
}

static void
add_one (GTorchStream *stream, GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

  gtorch_tensor_add_scalar_inplace (x, 1, 1, &error);
  g_assert_no_error (error);
}

static void
assert_refused (GTorchTensor *x, gint number)
{
  g_autofree gchar *message = g_strdup_printf ("gather: index %d is out of range", number);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_impl_sync (x->impl, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, message);
}

static void
assert_first (GTorchTensor *x, gdouble value)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_impl_sync (x->impl, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (x, 0), ==, value);
}

static void
skipped_results_are_refused_until_overwritten (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchTensor) part = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  part = gtorch_tensor_narrow (x, 0, 1, 2, NULL);
  let_fail (stream, 1);
  add_one (stream, x);
  for (i = 0; i < 3; i++)
    {
      assert_refused (x, 1);
      assert_refused (part, 1);
    }
  y = gtorch_tensor_neg (x, &error); /* the default stream */
  g_assert_null (y);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  gtorch_tensor_fill_inplace (part, 3, NULL); /* not all elements */
  assert_refused (x, 1);
  gtorch_tensor_fill_inplace (x, 3, NULL);
  assert_first (x, 3);
  assert_first (part, 3);
}

static void
other_streams_refuse_skipped_results (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchStream) other = new_stream ();
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GError) error = NULL;

  let_fail (stream, 1);
  add_one (stream, x);
  g_assert_false (gtorch_stream_synchronize (stream, NULL, NULL));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

    g_assert_null (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
    g_assert_nonnull (gtorch_tensor_fill_inplace (x, 5, NULL));
  }
  assert_first (x, 5);
}

static void
waiting_streams_inherit_the_failure (void)
{
  guint how;

  for (how = 0; how < 5; how++)
    {
      g_autoptr (GTorchStream) first = new_stream ();
      g_autoptr (GTorchStream) second = new_stream ();
      g_autoptr (GTorchStream) third = new_stream ();
      g_autoptr (GTorchTensor) x = ones ();
      g_autoptr (GTorchEvent) event = NULL;
      g_autoptr (GError) error = NULL;

      let_fail (first, 2);
      event = gtorch_stream_record_event (first, NULL);
      if (how == 0)
        gtorch_stream_wait_stream (second, first, NULL);
      else if (how == 1)
        gtorch_stream_wait_event (second, event, NULL);
      else if (how == 2) /* after the failing work has finished */
        {
          g_assert_false (gtorch_event_synchronize (event, NULL, NULL));
          gtorch_stream_wait_event (second, event, NULL);
        }
      else if (how == 3) /* the error was reported before the other stream waits */
        {
          g_assert_false (gtorch_stream_synchronize (first, NULL, NULL));
          gtorch_stream_wait_event (second, event, NULL);
        }
      else /* in a chain */
        {
          gtorch_stream_wait_stream (third, first, NULL);
          gtorch_stream_wait_stream (second, third, NULL);
        }
      add_one (second, x);
      g_assert_false (gtorch_stream_synchronize (second, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      assert_refused (x, 2);
      g_assert_true (gtorch_stream_synchronize (second, NULL, NULL));
      /* work that is enqueued after the report is not affected */
      gtorch_device_synchronize (gtorch_device_cpu (), NULL, NULL);
      g_assert_true (gtorch_stream_wait_stream (second, first, NULL));
      gtorch_tensor_fill_inplace (x, 1, NULL);
      add_one (second, x);
      assert_first (x, 2);
    }
}

typedef struct
{
  gint go; /* accessed atomically */
} Gate;

static void
pass_gate (gpointer data)
{
  Gate *gate = data;

  while (!g_atomic_int_get (&gate->go))
    g_usleep (100);
}

static void
work_queued_before_the_report_is_skipped (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones ();
  Gate gate = { 0 };

  let_fail (stream, 3);
  test_enqueue (stream, pass_gate, &gate);
  add_one (stream, x);
  while (gtorch_stream_check (stream, NULL)) /* does not wait */
    g_usleep (100);
  g_atomic_int_set (&gate.go, TRUE);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  assert_refused (x, 3);
}

static void
results_from_before_the_failure_can_be_read (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones ();

  add_one (stream, x);
  let_fail (stream, 4);
  assert_first (x, 2);
  g_assert_false (gtorch_stream_synchronize (stream, NULL, NULL));
}

static void
errors_outlive_their_stream (void)
{
  GTorchStream *stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GError) error = NULL;

  let_fail (stream, 5);
  add_one (stream, x);
  g_object_unref (stream);
  g_assert_false (gtorch_device_synchronize (gtorch_device_cpu (), NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_true (gtorch_device_synchronize (gtorch_device_cpu (), NULL, NULL));
  assert_refused (x, 5);
}

static void
unreported_errors_are_logged (void)
{
  guint i;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
      g_test_trap_assert_failed ();
      g_test_trap_assert_stderr (
          "*nobody has asked for the error: gather: index * is out of range*");
      return;
    }
  for (i = 0; i < 100; i++)
    {
      g_autoptr (GTorchStream) stream = new_stream ();
      g_autoptr (GTorchEvent) event = NULL;

      let_fail (stream, i);
      event = gtorch_stream_record_event (stream, NULL);
      gtorch_event_synchronize (event, NULL, NULL);
    }
}

static void
many_failures_use_bounded_memory (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) first = ones ();
  g_autoptr (GTorchTensor) last = ones ();
  guint i;

  let_fail (stream, 0);
  add_one (stream, first);
  for (i = 1; i <= 3000; i++)
    {
      g_assert_false (gtorch_stream_synchronize (stream, NULL, NULL));
      let_fail (stream, i);
    }
  add_one (stream, last);
  g_assert_false (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpuint (stream->timeline->n_failures, <=, 1024);
  g_assert_false (gtorch_impl_sync (first->impl, NULL));
  assert_refused (last, 3000);
}

static void
failed_replays_leave_errors_in_the_results (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones ();
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGraphCapture) capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);

  g_assert_no_error (error);
  y = gtorch_tensor_add_scalar (x, 1, 1, &error);
  g_assert_true (gtorch_graph_capture_end (capture, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    g_assert_true (gtorch_cuda_graph_replay (graph, &error));
    let_fail (stream, 6);
    g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  }
  assert_refused (y, 6);
  assert_refused (y, 6);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  }
  assert_first (y, 2);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    let_fail (stream, 7);
    g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  }
  assert_refused (y, 7);
  g_assert_true (gtorch_cuda_graph_replay (graph, &error)); /* here, at once */
  assert_first (y, 2);

  let_fail (stream, 8);
  add_one (stream, x);
  g_assert_false (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_false (gtorch_cuda_graph_replay (graph, &error)); /* the replay reads it */
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
}

/* --- random programs --- */

#define N_STREAMS 4 /* the first is the default one */
#define N_TENSORS 6

typedef struct
{
  GTorchStream *stream;
  gint failure;  /* the failure that has not been reported; 0 if none */
  guint episode; /* how often the stream has failed */
} ModelStream;

typedef struct
{
  GTorchTensor *tensor;
  gdouble value;
  gint failure;  /* the failure that prevented its computation; 0 if none */
  guint writer;  /* the last stream that wrote to it */
  guint episode; /* the writer's episode at that time */
  guint readers; /* the streams that have read it since, as a bit mask */
} ModelTensor;

typedef struct
{
  GRand *rand;
  ModelStream streams[N_STREAMS];
  ModelTensor tensors[N_TENSORS];
  gint n_failures;
} Program;

static gint
number_of (const GError *error)
{
  const gchar *text = error != NULL ? strstr (error->message, "index ") : NULL;

  return text != NULL ? atoi (text + 6) : -1;
}

static void
become_failed (ModelStream *s, gint failure)
{
  if (s->failure != 0 || failure == 0)
    return;
  s->failure = failure;
  s->episode++;
}

/* The stream of the writer reports the failure when the result is read. */
static void
told (Program *p, const ModelTensor *t)
{
  if (p->streams[t->writer].episode == t->episode)
    p->streams[t->writer].failure = 0;
}

static void
synchronize (Program *p, ModelStream *s)
{
  g_autoptr (GError) error = NULL;

  if (gtorch_stream_synchronize (s->stream, NULL, &error))
    g_assert_cmpint (s->failure, ==, 0);
  else
    g_assert_cmpint (number_of (error), ==, s->failure);
  s->failure = 0;
}

static void
wait_for (Program *p, guint stream, guint other)
{
  g_autoptr (GError) error = NULL;

  if (stream == other)
    return;
  /* Which of two failures counts depends on when the first is reported. */
  if (p->streams[stream].failure != 0 && p->streams[other].failure != 0)
    synchronize (p, &p->streams[stream]);
  if (!gtorch_stream_wait_stream (p->streams[stream].stream, p->streams[other].stream, &error))
    {
      /* the default stream waits here, and reports the error */
      g_assert_cmpuint (stream, ==, 0);
      g_assert_cmpint (number_of (error), ==, p->streams[other].failure);
      g_assert_cmpint (p->streams[other].failure, !=, 0);
    }
  else if (stream == 0)
    g_assert_cmpint (p->streams[other].failure, ==, 0);
  else
    become_failed (&p->streams[stream], p->streams[other].failure);
}

/* a = b, a += b, or a = a number, on a stream. */
static void
compute (Program *p, guint stream, ModelTensor *a, ModelTensor *b, guint how)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (p->streams[stream].stream);
  g_autoptr (GError) error = NULL;
  gint lacking = how < 2 ? b->failure : 0;
  gpointer result;
  guint i;

  for (i = 0; i < N_STREAMS; i++)
    if (a->readers & 1u << i)
      wait_for (p, stream, i);
  a->readers = 0;
  b->readers |= 1u << stream;
  wait_for (p, stream, a->writer);
  wait_for (p, stream, b->writer);
  if (how == 0)
    result = gtorch_tensor_add_inplace (a->tensor, b->tensor, 1, &error);
  else if (how == 1)
    result = gtorch_tensor_copy_inplace (a->tensor, b->tensor, FALSE, &error);
  else
    result = gtorch_tensor_fill_inplace (a->tensor, how, &error);
  if (how == 0 && lacking == 0)
    lacking = a->failure;
  if (result == NULL)
    {
      const gint number = number_of (error);

      g_assert_cmpint (lacking, !=, 0);
      g_assert_true (number == b->failure || (how == 0 && number == a->failure));
      if (stream == 0) /* the caller that reads gets the report */
        told (p, how == 0 && a->failure != 0 ? a : b);
      return;
    }
  if (p->streams[stream].failure != 0)
    a->failure = p->streams[stream].failure;
  else
    {
      g_assert_cmpint (lacking, ==, 0);
      a->failure = 0;
      a->value = how == 0 ? a->value + b->value : how == 1 ? b->value : how;
    }
  a->writer = stream;
  a->episode = p->streams[stream].episode;
}

static void
look (Program *p, ModelTensor *t)
{
  g_autoptr (GError) error = NULL;

  if (gtorch_impl_sync (t->tensor->impl, &error))
    {
      g_assert_cmpint (t->failure, ==, 0);
      g_assert_cmpfloat (((gdouble *) gtorch_impl_data (t->tensor->impl))[0], ==, t->value);
      return;
    }
  g_assert_cmpint (number_of (error), ==, t->failure);
  told (p, t);
}

static void
run_program (guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  Program p = { .rand = rand };
  guint i;

  for (i = 0; i < N_STREAMS; i++)
    p.streams[i].stream =
        i == 0 ? g_object_ref (gtorch_device_get_default_stream (gtorch_device_cpu ()))
               : new_stream ();
  for (i = 0; i < N_TENSORS; i++)
    p.tensors[i] = (ModelTensor){ .tensor = ones (), .value = 1 };
  for (i = 0; i < 60; i++)
    {
      const guint s = g_rand_int_range (rand, 0, N_STREAMS),
                  o = g_rand_int_range (rand, 0, N_STREAMS);
      ModelTensor *a = &p.tensors[g_rand_int_range (rand, 0, N_TENSORS)];
      ModelTensor *b = &p.tensors[g_rand_int_range (rand, 0, N_TENSORS)];

      switch (g_rand_int_range (rand, 0, 10))
        {
        case 0:
          if (s == 0)
            break;
          let_fail (p.streams[s].stream, ++p.n_failures);
          become_failed (&p.streams[s], p.n_failures);
          break;
        case 1:
          synchronize (&p, &p.streams[s]);
          break;
        case 2:
          wait_for (&p, s, o);
          break;
        case 3:
        case 4:
          look (&p, a);
          break;
        default:
          compute (&p, s, a, b, g_rand_int_range (rand, 0, 4));
        }
    }
  for (i = 0; i < N_TENSORS; i++)
    look (&p, &p.tensors[i]);
  for (i = 0; i < N_STREAMS; i++)
    synchronize (&p, &p.streams[i]);
  for (i = 0; i < N_TENSORS; i++)
    {
      look (&p, &p.tensors[i]);
      g_object_unref (p.tensors[i].tensor);
    }
  for (i = 0; i < N_STREAMS; i++)
    g_object_unref (p.streams[i].stream);
}

static void
random_programs_never_read_uncomputed_values (void)
{
  const gchar *programs = g_getenv ("GTORCH_TEST_PROGRAMS"), *first = g_getenv ("GTORCH_TEST_SEED");
  const guint64 n = programs != NULL ? g_ascii_strtoull (programs, NULL, 10) : 300;
  const guint32 seed = first != NULL ? g_ascii_strtoull (first, NULL, 10) : 1;
  guint64 i;

  for (i = 0; i < n; i++)
    {
      if (first != NULL)
        g_test_message ("seed %u", (guint) (seed + i));
      run_program (seed + i);
    }
}

#define TEST(name) g_test_add_func ("/GTorch/Stream/failures/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (skipped_results_are_refused_until_overwritten);
  TEST (other_streams_refuse_skipped_results);
  TEST (waiting_streams_inherit_the_failure);
  TEST (work_queued_before_the_report_is_skipped);
  TEST (results_from_before_the_failure_can_be_read);
  TEST (errors_outlive_their_stream);
  TEST (unreported_errors_are_logged);
  TEST (many_failures_use_bounded_memory);
  TEST (failed_replays_leave_errors_in_the_results);
  TEST (random_programs_never_read_uncomputed_values);
  return g_test_run ();
}
