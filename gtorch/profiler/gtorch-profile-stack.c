/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Where the program is, in the words of its language. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "profiler/gtorch-profiler-private.h"

typedef struct
{
  GTorchProfilerStackFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
} Teller;

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static Teller *teller; /* under the lock */

static void
teller_end (gpointer data)
{
  const Teller *self = data;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
}

gchar *
gtorch_profile_ask_for_stack (void)
{
  g_autoptr (GError) error = NULL;
  Teller *asked;
  gchar *stack;

  g_mutex_lock (&lock);
  asked = teller != NULL ? g_atomic_rc_box_acquire (teller) : NULL;
  g_mutex_unlock (&lock);
  if (asked == NULL)
    return NULL;
  stack = asked->func (asked->user_data, &error);
  if (error != NULL)
    {
      g_free (stack);
      stack = g_strdup_printf ("? (%s)", error->message);
    }
  g_atomic_rc_box_release_full (asked, teller_end);
  return stack;
}

/**
 * gtorch_profiler_set_stack_func:
 * @func: (scope notified) (closure user_data) (destroy destroy) (nullable): the function, or %NULL for none
 * @user_data: its data
 * @destroy: (nullable): frees the data
 *
 * Lets a function tell where the program calls an operation, while a profiler records with
 * [property@Profiler:with-stack].
 *
 * It is called in the thread that calls the operation, and must not call operations. Bindings set it;
 * without it, or where it gives nothing, profiles name functions of C. There is one for the whole program.
 *
 * Since: 0.1
 */
void
gtorch_profiler_set_stack_func (GTorchProfilerStackFunc func, gpointer user_data,
                                GDestroyNotify destroy)
{
  Teller *former, *made = NULL;

  if (func != NULL)
    {
      made = g_atomic_rc_box_new (Teller);
      *made = (Teller){ func, user_data, destroy };
    }
  g_mutex_lock (&lock);
  former = g_steal_pointer (&teller);
  teller = made;
  g_mutex_unlock (&lock);
  if (former != NULL)
    g_atomic_rc_box_release_full (former, teller_end);
}
