/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tells a main context, from threads that work, that there is something to do for it.
 *
 * g_source_attach () and g_source_set_ready_time () write to the file descriptor of the context while
 * they have its lock, which the main loop takes several times in each turn. So the thread that is woken
 * is likely to find the lock taken, and where processors are busy it then waits until the scheduler
 * returns to the thread that has woken it: 10 to 40 milliseconds were seen with two processors and two
 * programs that compute. A ring writes to a file descriptor that the context polls, without a lock. */

#include "config.h"

#include "base/gtorch-bell-private.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/eventfd.h>
#else
#include <glib-unix.h>
#endif

typedef struct
{
  GSource base;
  gint fds[2];  /* to read and to write, or twice the same; -1: none, the context is locked */
  gint is_rung; /* atomic */
} Bell;

static gboolean
bell_prepare (GSource *source, gint *timeout)
{
  *timeout = -1;
  return g_atomic_int_get (&((Bell *) source)->is_rung);
}

static gboolean
bell_check (GSource *source)
{
  return g_atomic_int_get (&((Bell *) source)->is_rung);
}

static gboolean
bell_dispatch (GSource *source, GSourceFunc func, gpointer data)
{
  Bell *self = (Bell *) source;
  guint64 text;

  if (g_source_get_ready_time (source) >= 0)
    g_source_set_ready_time (source, -1);
  if (self->fds[0] >= 0)
    while (read (self->fds[0], &text, sizeof text) > 0 && self->fds[0] != self->fds[1])
      ;
  /* From here on a ring writes again. What rang before it is seen by the function. */
  g_atomic_int_set (&self->is_rung, FALSE);
  return func != NULL ? func (data) : G_SOURCE_REMOVE;
}

static void
bell_finalize (GSource *source)
{
  Bell *self = (Bell *) source;

  if (self->fds[1] >= 0 && self->fds[1] != self->fds[0])
    close (self->fds[1]);
  if (self->fds[0] >= 0)
    close (self->fds[0]);
}

static GSourceFuncs bell_funcs = { bell_prepare,  bell_check, bell_dispatch,
                                   bell_finalize, NULL,       NULL };

static void
bell_open (Bell *self)
{
#ifdef __linux__
  self->fds[0] = self->fds[1] = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
#else
  if (!g_unix_open_pipe (self->fds, FD_CLOEXEC, NULL)
      || !g_unix_set_fd_nonblocking (self->fds[0], TRUE, NULL)
      || !g_unix_set_fd_nonblocking (self->fds[1], TRUE, NULL))
    self->fds[0] = self->fds[1] = -1;
#endif
}

GSource *
gtorch_bell_new (void)
{
  GSource *source = g_source_new (&bell_funcs, sizeof (Bell));
  Bell *self = (Bell *) source;

  bell_open (self);
  if (self->fds[0] >= 0)
    g_source_add_unix_fd (source, self->fds[0], G_IO_IN);
  return source;
}

void
gtorch_bell_ring (GSource *bell)
{
  Bell *self = (Bell *) bell;
  const guint64 one = 1;

  if (g_atomic_int_exchange (&self->is_rung, TRUE))
    return;
  if (self->fds[1] < 0 || write (self->fds[1], &one, sizeof one) < 0)
    g_source_set_ready_time (bell, 0);
}
