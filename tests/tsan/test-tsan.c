/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* ThreadSanitizer finds planted races, and reports nothing where GLib or the threads of loops
 * synchronise. Each case runs in its own process. */

#include "config.h"

#include <gtorch/cpu/gtorch-cpu-threads.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

static GMutex lock, other_lock;
static GCond cond;
static gint value, flag;

/* Two simultaneous writes may be missed, so they are repeated. */
static gint values[64];

static void
write_values (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values); i++)
    values[i]++;
}

static void
let_pass (void)
{
  g_usleep (50 * 1000);
}

/* --- planted races --- */

static gpointer
write_bare (gpointer data)
{
  write_values ();
  return NULL;
}

static void
two_writers (void)
{
  GThread *thread = g_thread_new (NULL, write_bare, NULL);

  write_values ();
  g_thread_join (thread);
}

static gpointer
write_locked (gpointer data)
{
  g_mutex_lock (data);
  write_values ();
  g_mutex_unlock (data);
  return NULL;
}

static void
two_locks (void)
{
  GThread *thread = g_thread_new (NULL, write_locked, &lock);

  write_locked (&other_lock);
  g_thread_join (thread);
}

static gpointer
lock_both (gpointer data)
{
  gboolean turned = GPOINTER_TO_INT (data);

  g_mutex_lock (turned ? &other_lock : &lock);
  g_mutex_lock (turned ? &lock : &other_lock);
  g_mutex_unlock (&lock);
  g_mutex_unlock (&other_lock);
  return NULL;
}

static void
locks_in_two_orders (void)
{
  g_thread_join (g_thread_new (NULL, lock_both, GINT_TO_POINTER (FALSE)));
  g_thread_join (g_thread_new (NULL, lock_both, GINT_TO_POINTER (TRUE)));
}

static gpointer
read_late (gpointer data)
{
  let_pass ();
  value = *(gint *) data;
  return NULL;
}

static void
freed_and_read (void)
{
  gint *block = g_new0 (gint, 1);
  GThread *thread = g_thread_new (NULL, read_late, block);

  g_free (block);
  g_thread_join (thread);
}

static gboolean
count (gpointer data)
{
  write_values ();
  g_main_loop_quit (data);
  return G_SOURCE_REMOVE;
}

static gpointer
write_after_attaching (gpointer data)
{
  g_idle_add (count, data);
  write_values ();
  return NULL;
}

static void
written_after_attaching (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  GThread *thread = g_thread_new (NULL, write_after_attaching, loop);

  g_main_loop_run (loop);
  g_thread_join (thread);
}

/* Each of two ranges gets a thread: neither ends before both have begun. */
static void
meet (gint *n_there)
{
  g_atomic_int_inc (n_there);
  while (g_atomic_int_get (n_there) < 2)
    g_usleep (100);
}

static void
write_range (gint64 begin, gint64 end, gpointer data)
{
  meet (data);
  write_values ();
}

static void
threads_of_a_loop (void)
{
  gint n_there = 0;

  gtorch_parallel_for (2, 1, write_range, &n_there);
}

static void
write_second_range (gint64 begin, gint64 end, gpointer data)
{
  meet (data);
  if (begin == 1)
    write_values ();
}

static void
loop_and_thread (void)
{
  GThread *thread = g_thread_new (NULL, write_bare, NULL);
  gint n_there = 0;

  gtorch_parallel_for (2, 1, write_second_range, &n_there);
  g_thread_join (thread);
}

/* A CPU stream writes to a tensor, and the reader does not wait for it. */
static void
queue_and_reader (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) tensor =
      gtorch_zeros (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  volatile gfloat *data;

  data = gtorch_impl_data (gtorch_tensor_get_impl (tensor));
  g_assert_true (gtorch_tensor_fill_inplace (tensor, 1, NULL));
  while (*data != 1)
    let_pass ();
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
}

/* --- synchronised --- */

static gpointer
write_and_signal (gpointer data)
{
  g_mutex_lock (&lock);
  value++;
  flag = TRUE;
  g_cond_signal (&cond);
  g_mutex_unlock (&lock);
  return NULL;
}

static void
lock_and_condition (void)
{
  GThread *thread = g_thread_new (NULL, write_and_signal, NULL);
  gint64 end = g_get_monotonic_time () + 10 * G_TIME_SPAN_SECOND;

  g_mutex_lock (&lock);
  while (!flag && g_cond_wait_until (&cond, &lock, end))
    ;
  value++;
  g_mutex_unlock (&lock);
  g_thread_join (thread);
}

static gpointer
write_once (gpointer data)
{
  static gsize once;

  if (g_once_init_enter (&once))
    {
      value = 1;
      g_once_init_leave (&once, 1);
    }
  g_assert_cmpint (value, ==, 1);
  return NULL;
}

static void
once (void)
{
  GThread *thread = g_thread_new (NULL, write_once, NULL);

  write_once (NULL);
  g_thread_join (thread);
}

static gpointer
write_and_attach (gpointer data)
{
  value++;
  g_idle_add (count, data);
  return NULL;
}

static gboolean
count_and_tell (gpointer data)
{
  value++;
  g_mutex_lock (&lock);
  flag = TRUE;
  g_mutex_unlock (&lock);
  return G_SOURCE_REMOVE;
}

static gpointer
write_and_invoke (gpointer data)
{
  value++;
  g_main_context_invoke (NULL, count_and_tell, NULL);
  return NULL;
}

static void
sources (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  GThread *thread = g_thread_new (NULL, write_and_attach, loop);

  g_main_loop_run (loop);
  value++;
  g_thread_join (thread);

  g_main_context_acquire (NULL); /* otherwise the other thread would run it */
  thread = g_thread_new (NULL, write_and_invoke, NULL);
  while (!flag)
    g_main_context_iteration (NULL, TRUE);
  g_main_context_release (NULL);
  g_thread_join (thread);
}

static void
work (GTask *task, gpointer object, gpointer data, GCancellable *cancellable)
{
  value += GPOINTER_TO_INT (data);
  g_task_return_boolean (task, TRUE);
}

static void
on_done (GObject *object, GAsyncResult *result, gpointer data)
{
  value++;
  g_assert_true (g_task_propagate_boolean (G_TASK (result), NULL));
  g_main_loop_quit (data);
}

static void
tasks (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GTask) task = g_task_new (NULL, NULL, on_done, loop);

  value++;
  g_task_set_task_data (task, GINT_TO_POINTER (1), NULL);
  g_task_run_in_thread (task, work);
  g_main_loop_run (loop);
  value++;
}

static gpointer
write_and_drop (gpointer data)
{
  g_autoptr (GTorchTensor) tensor = data;

  *(gfloat *) gtorch_impl_data (gtorch_tensor_get_impl (tensor)) = 1;
  return NULL;
}

static void
the_last_reference (void)
{
  GTorchTensor *tensor = gtorch_zeros (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  GThread *thread = g_thread_new (NULL, write_and_drop, g_object_ref (tensor));

  let_pass ();
  g_object_unref (tensor);
  g_thread_join (thread);
}

typedef struct
{
  gint values[2];
  gint n_there;
} Both;

static void
count_range (gint64 begin, gint64 end, gpointer data)
{
  Both *both = data;

  meet (&both->n_there);
  both->values[begin]++;
}

static void
loops (void)
{
  Both both = { { 1, 2 }, 0 };
  gint i;

  for (i = 0; i < 3; i++)
    {
      both.n_there = 0;
      gtorch_parallel_for (2, 1, count_range, &both);
      both.values[0] += both.values[1];
    }
  g_assert_cmpint (both.values[0], >, 3);
}

static void
queue_and_patient_reader (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) tensor =
      gtorch_zeros (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

  g_assert_true (gtorch_tensor_fill_inplace (tensor, 1, NULL));
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpfloat (*(gfloat *) gtorch_impl_data (gtorch_tensor_get_impl (tensor)), ==, 1);
}

/* --- */

typedef struct
{
  const gchar *name;
  void (*run) (void);
  const gchar *report; /* NULL: no report is expected */
} Case;

#define RACE "*ThreadSanitizer: data race*"

#define CASE(name, report) \
  {                        \
#name, name, report    \
  }

static const Case cases[] = {
  CASE (freed_and_read, "*ThreadSanitizer: heap-use-after-free*"),
  CASE (locks_in_two_orders, "*ThreadSanitizer: lock-order-inversion*"),
  CASE (queue_and_reader, RACE),
  CASE (loop_and_thread, RACE),
  CASE (threads_of_a_loop, RACE),
  CASE (two_locks, RACE),
  CASE (two_writers, RACE),
  CASE (written_after_attaching, RACE),
  CASE (lock_and_condition, NULL),
  CASE (once, NULL),
  CASE (queue_and_patient_reader, NULL),
  CASE (sources, NULL),
  CASE (tasks, NULL),
  CASE (loops, NULL),
  CASE (the_last_reference, NULL),
};

static void
run_case (gconstpointer data)
{
  const Case *self = data;

  if (g_test_subprocess ())
    {
      self->run ();
      return;
    }
  g_test_trap_subprocess (NULL, 60 * G_USEC_PER_SEC, 0);
  if (self->report == NULL)
    {
      g_test_trap_assert_passed ();
      g_test_trap_assert_stderr_unmatched ("*ThreadSanitizer*");
    }
  else
    {
      g_test_trap_assert_failed ();
      g_test_trap_assert_stderr (self->report);
    }
}

gint
main (gint argc, gchar **argv)
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree gchar *path =
          g_strconcat (cases[i].report != NULL ? "/Tsan/planted/" : "/Tsan/in_order/",
                       cases[i].name, NULL);

      g_test_add_data_func (path, &cases[i], run_case);
    }
  return g_test_run ();
}
