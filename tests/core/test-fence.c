/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The ends of a wait in a main loop: the work is done, the wait is cancelled, the source is dropped, the
 * context is freed. Two threads and the owner of the context cause them at the same time, again and
 * again. `test-fence ROUNDS` does it that many times. */

#include "config.h"

#include <stdlib.h>

#include "test-device.h"

#define ROUNDS 6000
#define SPIN   400 /* the maximum delay of a thread, in iterations of an empty loop */

static guint n_rounds = ROUNDS;

/* --- two threads that act on command --- */

typedef struct
{
  GTorchFence *fence;
  GCancellable *cancellable;
  guint delays[2];
  gint n_left; /* accessed atomically */
} Round;

typedef enum
{
  COMPLETE,
  CANCEL
} Role;

/* Accessed atomically; the thread of that role takes it. The threads spin here so that all start at once:
 * a thread that has to be woken would come after the others are done. */
static Round *orders[2];
static Round quit;

static void
spin (guint n)
{
  volatile guint i;

  for (i = 0; i < n; i++)
    ;
}

static Round *
take_order (Role role)
{
  Round *round;
  guint i;

  for (i = 1; (round = g_atomic_pointer_get (&orders[role])) == NULL; i++)
    if (i % 200 == 0)
      g_thread_yield ();
  g_atomic_pointer_set (&orders[role], NULL);
  return round;
}

static gpointer
act (gpointer data)
{
  Role role = GPOINTER_TO_UINT (data);
  Round *round;

  while ((round = take_order (role)) != &quit)
    {
      spin (round->delays[role]);
      if (role == COMPLETE)
        gtorch_fence_complete (round->fence, NULL);
      else
        g_cancellable_cancel (round->cancellable);
      g_atomic_int_add (&round->n_left, -1);
    }
  return NULL;
}

static void
begin (Round *round, GRand *random)
{
  *round = (Round){ gtorch_fence_new (), g_cancellable_new (), { 0 }, 2 };
  round->delays[COMPLETE] = g_rand_int_range (random, 0, SPIN);
  round->delays[CANCEL] = g_rand_int_range (random, 0, SPIN);
}

static void
go (Round *round)
{
  g_atomic_pointer_set (&orders[COMPLETE], round);
  g_atomic_pointer_set (&orders[CANCEL], round);
}

static void
end (Round *round)
{
  gint64 limit = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;

  while (g_atomic_int_get (&round->n_left) > 0)
    {
      g_assert_cmpint (g_get_monotonic_time (), <, limit);
      g_thread_yield ();
    }
  g_assert_cmpint (round->fence->ref_count, ==, 1);
  gtorch_fence_unref (round->fence);
  g_assert_cmpint (G_OBJECT (round->cancellable)->ref_count, ==, 1);
  g_object_unref (round->cancellable);
}

static gboolean
count (gpointer data)
{
  ++*(guint *) data;
  return G_SOURCE_REMOVE;
}

static gboolean
out_of_time (gpointer data)
{
  g_error ("a wait did not end");
  return G_SOURCE_REMOVE;
}

/* Iterates the context until the value is not 0. */
static void
iterate (GMainContext *context, guint *value)
{
  GSource *limit = g_timeout_source_new_seconds (60);

  g_source_set_callback (limit, out_of_time, NULL, NULL);
  g_source_attach (limit, context);
  while (*value == 0)
    g_main_context_iteration (context, TRUE);
  g_source_destroy (limit);
  g_source_unref (limit);
}

static void
each_round (void (*func) (Round *round, GMainContext *context, guint i, GRand *random))
{
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  GThread *threads[2];
  guint i;

  for (i = 0; i < 2; i++)
    threads[i] = g_thread_new (i == COMPLETE ? "complete" : "cancel", act, GUINT_TO_POINTER (i));
  for (i = 0; i < n_rounds; i++)
    {
      GMainContext *context = g_main_context_new ();
      Round round;

      begin (&round, random);
      func (&round, context, i, random);
      g_main_context_unref (context);
      end (&round);
    }
  go (&quit);
  for (i = 0; i < 2; i++)
    g_thread_join (threads[i]);
}

/* --- the owner --- */

static void
dispatch (Round *round, GMainContext *context, guint i, GRand *random)
{
  GSource *source = gtorch_fence_source_new (round->fence, round->cancellable);
  guint n_calls = 0;

  g_source_set_callback (source, count, &n_calls, NULL);
  if (i % 2 == 0)
    go (round);
  g_source_attach (source, context);
  g_source_unref (source);
  if (i % 2 == 1)
    go (round);
  iterate (context, &n_calls);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpuint (n_calls, ==, 1);
}

static void
source_is_dispatched_once (void)
{
  each_round (dispatch);
}

static void
drop (Round *round, GMainContext *context, guint i, GRand *random)
{
  GSource *source = gtorch_fence_source_new (round->fence, round->cancellable);
  gboolean attached = i % 3 != 0;

  if (attached)
    g_source_attach (source, context);
  go (round);
  spin (g_rand_int_range (random, 0, SPIN));
  if (attached && i % 3 == 1)
    g_source_destroy (source);
  /* the third is still attached when its context is freed */
  g_source_unref (source);
}

static void
source_is_dropped_at_any_time (void)
{
  each_round (drop);
}

static void
returned (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  if (!g_task_propagate_boolean (G_TASK (result), &error))
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  ++*(guint *) data;
}

static void
wait_in_a_task (Round *round, GMainContext *context, guint i, GRand *random)
{
  guint n_calls = 0;
  GTask *task;

  g_main_context_push_thread_default (context);
  task = g_task_new (NULL, round->cancellable, returned, &n_calls);
  gtorch_fence_return_task (round->fence, task, NULL);
  g_object_unref (task);
  go (round);
  iterate (context, &n_calls);
  g_main_context_pop_thread_default (context);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpuint (n_calls, ==, 1);
}

static void
task_returns_once (void)
{
  each_round (wait_in_a_task);
}

static void
sleep_here (Round *round, GMainContext *context, guint i, GRand *random)
{
  g_autoptr (GError) error = NULL;

  go (round);
  if (!gtorch_fence_wait (round->fence, round->cancellable, &error))
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
thread_is_woken (void)
{
  each_round (sleep_here);
}

/* --- leftovers --- */

static void
cancellable_keeps_no_references_to_past_waits (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GTorchFence *fence = gtorch_fence_new ();
  guint i;

  for (i = 0; i < 10; i++)
    {
      GSource *source = gtorch_fence_source_new (fence, cancellable);

      g_assert_true (
          g_signal_has_handler_pending (cancellable,
                                        g_signal_lookup ("cancelled", G_TYPE_CANCELLABLE), 0,
                                        TRUE));
      g_source_attach (source, NULL);
      g_source_destroy (source);
      g_source_unref (source);
    }
  g_assert_false (g_signal_has_handler_pending (cancellable,
                                                g_signal_lookup ("cancelled", G_TYPE_CANCELLABLE),
                                                0, TRUE));
  g_assert_cmpint (G_OBJECT (cancellable)->ref_count, ==, 1);
  gtorch_fence_complete (fence, NULL);
  gtorch_fence_unref (fence);
}

static void
source_of_a_passed_fence_is_ready_at_once (void)
{
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GMainContext) context = g_main_context_new ();
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      GTorchFence *fence = gtorch_fence_new ();
      GSource *source;
      guint n_calls = 0;

      if (i == 0)
        gtorch_fence_complete (fence, NULL);
      else
        g_cancellable_cancel (cancellable);
      source = gtorch_fence_source_new (fence, cancellable);
      g_source_set_callback (source, count, &n_calls, NULL);
      g_source_attach (source, context);
      g_source_unref (source);
      g_assert_true (g_main_context_iteration (context, FALSE));
      g_assert_cmpuint (n_calls, ==, 1);
      gtorch_fence_complete (fence, NULL);
      gtorch_fence_unref (fence);
    }
}

static gboolean
keep (gpointer data)
{
  ++*(guint *) data;
  return G_SOURCE_CONTINUE;
}

/* A callback that returns G_SOURCE_CONTINUE is still called only once. */
static void
kept_source_is_dispatched_only_once (void)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GTorchFence *fence = gtorch_fence_new ();
  GSource *source = gtorch_fence_source_new (fence, cancellable);
  guint n_calls = 0;

  g_source_set_callback (source, keep, &n_calls, NULL);
  g_source_attach (source, context);
  gtorch_fence_complete (fence, NULL);
  g_assert_true (g_main_context_iteration (context, FALSE));
  g_assert_false (g_main_context_iteration (context, FALSE));
  g_assert_cmpuint (n_calls, ==, 1);
  g_source_destroy (source);
  g_source_unref (source);
  gtorch_fence_unref (fence);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (argc > 1)
    n_rounds = atoi (argv[1]);

#define TEST(name) g_test_add_func ("/GTorch/Fence/" #name, name)
  TEST (source_is_dispatched_once);
  TEST (source_is_dropped_at_any_time);
  TEST (task_returns_once);
  TEST (thread_is_woken);
  TEST (cancellable_keeps_no_references_to_past_waits);
  TEST (source_of_a_passed_fence_is_ready_at_once);
  TEST (kept_source_is_dispatched_only_once);
  return g_test_run ();
}
