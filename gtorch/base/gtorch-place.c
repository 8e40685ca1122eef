/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Where a program is, in the words of the language in which it is written. */

#include "config.h"

#include "base/gtorch-place-private.h"

#include <string.h>

#include "base/gtorch-fork-private.h"

/* The function, and how many use it: another thread may replace it meanwhile. */
typedef struct
{
  GTorchPlaceFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
  gpointer thread; /* the only one in which it may be called; NULL: it may be in all */
} Teller;

static __thread gchar thread_mark; /* its address tells threads apart */
static __thread gboolean is_asking;
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
gtorch_place_take (void)
{
  g_autoptr (GError) error = NULL;
  gchar *place = NULL;
  Teller *asked;

  if (is_asking) /* the function itself uses tensors */
    return NULL;
  g_mutex_lock (&lock);
  asked = teller != NULL ? g_atomic_rc_box_acquire (teller) : NULL;
  g_mutex_unlock (&lock);
  if (asked == NULL)
    return NULL;
  if (asked->thread == NULL || asked->thread == &thread_mark)
    {
      is_asking = TRUE;
      place = asked->func (asked->user_data, &error);
      is_asking = FALSE;
    }
  if (error != NULL)
    {
      g_free (place);
      place = g_strdup_printf ("? (%s)", error->message);
    }
  g_atomic_rc_box_release_full (asked, teller_end);
  return place;
}

gchar *
gtorch_place_dup_first (const gchar *place)
{
  return g_strndup (place, strcspn (place, "\n"));
}

/**
 * gtorch_set_place_func:
 * @any_thread: whether the function may be called in any thread, and not only in this one
 * @func: (scope notified) (closure user_data) (destroy destroy) (nullable): the function, or %NULL for none
 * @user_data: its data
 * @destroy: (nullable): frees the data
 *
 * Lets a function tell where the program is, for messages and reports that name a place: those of
 * [func@set_detect_anomaly], of [method@Allocator.record_history], of errors about too little memory and of
 * `GTORCH_CHECK=blocking`.
 *
 * It is called in the thread whose place is asked for. The bindings of Python and JavaScript set it when they
 * are loaded, so that messages name lines of the program; without it, or if it gives nothing, they name
 * functions of C; if it fails, they say so. There is one for the whole program.
 *
 * ```c
 * static gchar *
 * tell (gpointer interpreter, GError **error)
 * {
 *   return g_strdup_printf ("%s:%u, in %s", file (interpreter), line (interpreter), name (interpreter));
 * }
 *
 * gtorch_set_place_func (FALSE, tell, interpreter, NULL);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_set_place_func (gboolean any_thread, GTorchPlaceFunc func, gpointer user_data,
                       GDestroyNotify destroy)
{
  Teller *former, *made = NULL;

  if (func != NULL)
    {
      made = g_atomic_rc_box_new (Teller);
      *made = (Teller){ func, user_data, destroy, any_thread ? NULL : &thread_mark };
    }
  else if (destroy != NULL)
    destroy (user_data);
  g_mutex_lock (&lock);
  former = teller;
  teller = made;
  g_mutex_unlock (&lock);
  if (former != NULL)
    g_atomic_rc_box_release_full (former, teller_end);
}
