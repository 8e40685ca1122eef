/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The child of fork () continues with the state of the parent: each case runs a function in a child,
 * which is killed if it hangs. `test-fork FORKS` forks that many times beside busy threads. */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtorch/cpu/gtorch-cpu-threads.h>
#include <gtorch/base/gtorch-fork-private.h>

#include "test-device.h"

#define SIDE  400 /* more elements than one thread processes alone */
#define LIMIT 60  /* in seconds */

/* A fork takes seconds with the tables of a sanitizer and busy threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static guint n_forks = 4;
#else
static guint n_forks = 40;
#endif

/* Runs a function in a child. Failing assertions end the child; the parent checks its exit status. */
static void
in_child (void (*func) (gpointer data), gpointer data)
{
  pid_t child;
  int status = 0;

  child = fork ();
  g_assert_cmpint (child, >=, 0);
  if (child == 0)
    {
      alarm (LIMIT);
      func (data);
      _exit (0);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_false (WIFSIGNALED (status) && WTERMSIG (status) == SIGALRM);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
}

static GTorchTensor *
square (gdouble value)
{
  return gtorch_full (GTORCH_SHAPE (SIDE, SIDE), value, GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

/* Runs one operation of each kind that uses several threads: elements, rows, sums, products, sorting,
 * gradients. */
static void
compute (gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a = square (1), b = square (2), total = NULL, product = NULL, sum = NULL,
                           order = NULL, sorted = NULL, random = NULL, loss = NULL, grad = NULL;

  sum = gtorch_tensor_add (a, b, 1.0, &error);
  g_assert_no_error (error);
  total = gtorch_tensor_sum (sum, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_cmpfloat (gtorch_tensor_item_double (total, &error), ==, 3.0 * SIDE * SIDE);
  product = gtorch_tensor_matmul (a, b, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (product, SIDE), ==, 2.0 * SIDE);
  random = gtorch_randn (GTORCH_SHAPE (SIDE, SIDE), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_sort (random, -1, FALSE, FALSE, &sorted, &order, &error));
  g_assert_cmpfloat (test_element (sorted, 0), <=, test_element (sorted, SIDE - 1));
  g_assert_true (gtorch_tensor_set_requires_grad (a, TRUE, &error));
  g_clear_pointer (&product, gtorch_tensor_unref);
  product = gtorch_tensor_matmul (a, b, &error);
  loss = gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  grad = gtorch_tensor_get_grad (a);
  g_assert_cmpfloat (test_element (grad, 0), ==, 2.0 * SIDE);
}

static void
child_computes (void)
{
  compute (NULL);
  in_child (compute, NULL);
  compute (NULL);
}

typedef struct
{
  guint n_threads;
  gint n_there; /* accessed atomically */
  gint64 deadline;
} Meeting;

/* Each part waits until as many threads as parts have arrived. */
static void
meet (gint64 begin, gint64 end, gpointer data)
{
  Meeting *meeting = data;

  g_atomic_int_inc (&meeting->n_there);
  while (g_atomic_int_get (&meeting->n_there) < (gint) meeting->n_threads
         && g_get_monotonic_time () < meeting->deadline)
    g_usleep (100);
}

static void
meet_helpers (guint n_threads)
{
  Meeting meeting = { n_threads, 0, g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC / 2 };

  g_assert_cmpuint (gtorch_get_num_threads (), ==, n_threads);
  gtorch_parallel_for (n_threads, 1, meet, &meeting);
  g_assert_cmpint (g_get_monotonic_time (), <, meeting.deadline);
}

static gpointer
meet_in_thread (gpointer n_threads)
{
  meet_helpers (GPOINTER_TO_UINT (n_threads));
  return NULL;
}

static void
meet_in_child (gpointer n_threads)
{
  g_autoptr (GError) error = NULL;

  meet_helpers (GPOINTER_TO_UINT (n_threads));
  g_assert_true (gtorch_set_num_threads (5, &error));
  meet_helpers (5);
  compute (NULL);
  g_thread_join (g_thread_new ("meet", meet_in_thread, GUINT_TO_POINTER (5)));
}

/* The parent's helpers do not exist in the child. */
static void
child_has_helpers_of_its_own (void)
{
  const guint before = gtorch_get_num_threads ();
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_set_num_threads (3, &error));
  compute (NULL);
  meet_helpers (3);
  in_child (meet_in_child, GUINT_TO_POINTER (3));
  meet_helpers (3);
  g_assert_true (gtorch_set_num_threads (before, &error));
}

/* --- streams --- */

typedef struct
{
  GTorchStream *idle, *busy;
  GTorchEvent *event, *done_event;
  GTorchTensor *written, *pending;
  gint gate; /* accessed atomically */
} Streams;

static void
pass_gate (gpointer data)
{
  while (!g_atomic_int_get ((gint *) data))
    g_usleep (100);
}

static void
assert_forked (gboolean failed, GError **error)
{
  g_assert_true (failed);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_FORKED);
  g_clear_error (error);
}

static void
got_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
use_old_streams (gpointer data)
{
  Streams *s = data;
  GTorchStream *old[2] = { s->idle, s->busy };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) fresh = NULL;
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GMainContext) context = g_main_context_new ();
  guint i;

  /* results of finished work are there, other results are refused */
  g_assert_cmpfloat (test_element (s->written, 0), ==, 1);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) copy = NULL;

      gtorch_tensor_item_double (s->pending, &error);
      assert_forked (TRUE, &error);
      copy = gtorch_tensor_add (s->pending, s->pending, 1.0, &error);
      assert_forked (copy == NULL, &error);
    }

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchStreamGuard) guard = NULL;
      GTorchTensor *sum;

      g_assert_true (gtorch_stream_is_idle (old[i]));
      event = gtorch_stream_record_event (old[i], &error);
      assert_forked (event == NULL, &error);
      g_assert_cmpint (gtorch_stream_synchronize (old[i], NULL, &error), ==, i == 0);
      if (i == 1)
        assert_forked (TRUE, &error);
      assert_forked (!gtorch_stream_wait_stream (old[i], old[1 - i], &error), &error);
      assert_forked (!gtorch_tensor_record_stream (s->written, old[i], &error), &error);
      guard = gtorch_stream_guard_new (old[i]);
      sum = gtorch_tensor_add (s->written, s->written, 1.0, &error);
      assert_forked (sum == NULL, &error);
    }

  g_assert_true (gtorch_event_query (s->event));
  assert_forked (!gtorch_event_synchronize (s->event, NULL, &error), &error);
  g_assert_true (gtorch_event_synchronize (s->done_event, NULL, &error));
  g_main_context_push_thread_default (context);
  gtorch_event_synchronize_async (s->event, NULL, got_result, &result);
  while (result == NULL)
    g_main_context_iteration (context, TRUE);
  g_main_context_pop_thread_default (context);
  assert_forked (!gtorch_event_synchronize_finish (s->event, result, &error), &error);

  fresh = gtorch_stream_new (gtorch_device_cpu (), 0, &error);
  g_assert_no_error (error);
  assert_forked (!gtorch_stream_wait_event (fresh, s->event, &error), &error);
  assert_forked (!gtorch_stream_wait_stream (fresh, s->busy, &error), &error);
  g_assert_true (gtorch_stream_wait_event (fresh, s->done_event, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (fresh);

    gtorch_stream_set_auto_sync (fresh, TRUE);
    compute (NULL);
  }
  g_assert_true (gtorch_stream_synchronize (fresh, NULL, &error));
  g_assert_true (gtorch_device_synchronize (gtorch_device_cpu (), NULL, &error));
  g_assert_no_error (error);
  g_clear_object (&s->idle);
  g_clear_object (&s->busy);
  g_clear_object (&s->event);
}

static void
inherited_streams_are_refused (void)
{
  Streams s = { .gate = FALSE };
  guint i;

  s.idle = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  s.busy = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (i == 0 ? s.idle : s.busy);

      if (i == 1)
        test_enqueue (s.busy, pass_gate, &s.gate);
      *(i == 0 ? &s.written : &s.pending) = gtorch_full (GTORCH_SHAPE (1), 1, 0, NULL, NULL);
      *(i == 0 ? &s.done_event : &s.event) =
          gtorch_stream_record_event (i == 0 ? s.idle : s.busy, NULL);
    }
  g_assert_true (gtorch_stream_synchronize (s.idle, NULL, NULL));
  in_child (use_old_streams, &s);

  g_atomic_int_set (&s.gate, TRUE);
  g_assert_true (gtorch_event_synchronize (s.event, NULL, NULL));
  g_assert_cmpfloat (test_element (s.pending, 0), ==, 1);
  g_clear_object (&s.idle);
  g_clear_object (&s.busy);
  g_clear_object (&s.event);
  g_clear_object (&s.done_event);
  g_clear_pointer (&s.written, gtorch_tensor_unref);
  g_clear_pointer (&s.pending, gtorch_tensor_unref);
}

static void
use_current_stream (gpointer data)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x = gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, &error);

  assert_forked (x == NULL, &error);
  gtorch_stream_set_current (gtorch_device_get_default_stream (gtorch_device_cpu ()));
  compute (NULL);
}

static void
inherited_current_stream_can_be_replaced (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

  in_child (use_current_stream, NULL);
}

/* --- random numbers --- */

static void
draw (gdouble *numbers)
{
  g_autoptr (GTorchTensor) x =
      gtorch_randn (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
  guint i;

  for (i = 0; i < 4; i++)
    numbers[i] = test_element (x, i);
}

static void
send_numbers (gpointer data)
{
  gdouble numbers[4];

  draw (numbers);
  g_assert_cmpint (write (GPOINTER_TO_INT (data), numbers, sizeof numbers), ==, sizeof numbers);
}

static void
child_draws_the_same_numbers (void)
{
  gdouble here[4], there[4];
  int ends[2];

  draw (here);
  g_assert_cmpint (pipe (ends), ==, 0);
  in_child (send_numbers, GINT_TO_POINTER (ends[1]));
  g_assert_cmpint (read (ends[0], there, sizeof there), ==, sizeof there);
  draw (here);
  g_assert_cmpmem (here, sizeof here, there, sizeof there);
  close (ends[0]);
  close (ends[1]);
}

/* --- beside other threads --- */

static gint stop; /* accessed atomically */

static void
do_nothing (gpointer data)
{
}

typedef struct
{
  guint kind;
  GTorchStream *stream;
} Busy;

/* The C library's allocator works in a child. That of AddressSanitizer does not: GCC 12's leaves its
 * locks as they are, so that a child may wait for ever for one that another thread held. There, only the
 * kinds that allocate nothing run. */
#ifdef __SANITIZE_ADDRESS__
#define N_BUSY 2
#else
#define N_BUSY 4
#endif

/* Holds a lock of the library most of the time, but does not create or drop objects: the library cannot
 * take GObject's own locks, and a child may find them held. */
static gpointer
make_busy (gpointer data)
{
  const Busy *busy = data;
  GTorchGenerator *generator = gtorch_device_get_default_generator (gtorch_device_cpu ());
  const gint64 size = 1 << 20;

  while (!g_atomic_int_get (&stop))
    if (busy->kind == 0)
      gtorch_generator_get_seed (generator);
    else if (busy->kind == 1)
      {
        gint precision;

        gtorch_get_print_options (&precision, NULL, NULL, NULL, NULL);
      }
    else if (busy->kind == 2)
      gtorch_impl_unref (
          gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, &size, 1, NULL));
    else
      {
        GTorchFence *fence;

        test_enqueue (busy->stream, do_nothing, NULL);
        fence = gtorch_stream_record_fence (busy->stream, GTORCH_EVENT_NONE, NULL);
        g_assert_true (gtorch_fence_wait (fence, NULL, NULL));
        gtorch_fence_unref (fence);
      }
  return NULL;
}

static void
compute_all (gpointer data)
{
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autofree gchar *text = NULL;

  compute (NULL);
  stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    x = gtorch_randn (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
    text = gtorch_tensor_to_string (x);
  }
  g_assert_true (gtorch_device_synchronize (gtorch_device_cpu (), NULL, NULL));
}

static void
fork_again (gpointer data)
{
  compute (NULL);
  in_child (compute_all, NULL);
}

static void
locks_of_other_threads_are_free (void)
{
  Busy busy[N_BUSY];
  GThread *threads[N_BUSY];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    {
      busy[i] = (Busy){ i, gtorch_stream_new (gtorch_device_cpu (), 0, NULL) };
      threads[i] = g_thread_new ("busy", make_busy, &busy[i]);
    }
  for (i = 0; i < n_forks; i++)
    in_child (i % 8 == 0 ? fork_again : compute_all, NULL);
  g_atomic_int_set (&stop, TRUE);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    {
      g_thread_join (threads[i]);
      g_object_unref (busy[i].stream);
    }
}

/* --- locks of GLib's --- */

static void
drop_objects (gpointer data)
{
  const gint64 end = g_get_monotonic_time () + 500;

  while (g_get_monotonic_time () < end)
    g_object_unref (g_object_new (G_TYPE_OBJECT, NULL));
}

/* The fork comes while the thread of a stream drops objects, under a lock that only GLib knows. */
static void
threads_of_streams_rest (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  guint i;

  for (i = 0; i < 5 * n_forks; i++)
    {
      test_enqueue (stream, drop_objects, NULL);
      g_usleep (100);
      in_child (drop_objects, NULL);
    }
}

static void
fork_in_child (gpointer data)
{
  in_child (drop_objects, NULL);
}

/* Work that waits for the thread that forks does not hold it up for long. */
static void
wait_for_fork (gpointer data)
{
  while (g_atomic_int_get ((gint *) data) == 0)
    g_usleep (100);
}

static void
forks_wait_for_no_endless_work (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  gint is_over = 0;

  test_enqueue (stream, wait_for_fork, &is_over);
  in_child (fork_in_child, NULL);
  g_atomic_int_set (&is_over, 1);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
}

static GMutex lock_held;

static void
take_held_lock (gpointer data)
{
  g_mutex_lock (&lock_held);
  g_mutex_unlock (&lock_held);
}

static gpointer
hold_lock (gpointer data)
{
  g_mutex_lock (&lock_held);
  g_atomic_int_set ((gint *) data, 1);
  while (g_atomic_int_get ((gint *) data) == 1)
    g_usleep (100);
  g_mutex_unlock (&lock_held);
  return NULL;
}

/* The fork does not wait for ever, and the child can take the lock nevertheless. */
static void
long_held_lock_is_recreated_in_the_child (void)
{
  gint state = 0;
  GThread *thread;

  gtorch_fork_add_lock (&lock_held);
  thread = g_thread_new ("hold", hold_lock, &state);
  while (g_atomic_int_get (&state) == 0)
    g_usleep (100);
  in_child (take_held_lock, NULL);
  g_atomic_int_set (&state, 2);
  g_thread_join (thread);
  g_assert_true (g_mutex_trylock (&lock_held));
  g_mutex_unlock (&lock_held);
  gtorch_fork_remove_lock (&lock_held);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (argc > 1)
    n_forks = atoi (argv[1]);

#define TEST(name) g_test_add_func ("/GTorch/fork/" #name, name)
  TEST (child_computes);
  TEST (child_has_helpers_of_its_own);
  TEST (inherited_streams_are_refused);
  TEST (inherited_current_stream_can_be_replaced);
  TEST (child_draws_the_same_numbers);
  TEST (locks_of_other_threads_are_free);
  TEST (threads_of_streams_rest);
  TEST (forks_wait_for_no_endless_work);
  TEST (long_held_lock_is_recreated_in_the_child);
  return g_test_run ();
}
