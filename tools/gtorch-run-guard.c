/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The last resort of the agent: a thread that ends it when it should have ended but waits for something,
 * such as a store that does not answer or a console that takes nothing. */

#include "config.h"

#include "gtorch-run-private.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <unistd.h>

#define PATIENCE 5 /* seconds */

typedef struct
{
  gint parent, hurry;
  gdouble close_timeout;
  GTorchRunFolders folders;
} Guard;

static gpointer
run (gpointer data)
{
  Guard guard = *(Guard *) data;
  struct pollfd fds[] = { { guard.hurry, POLLIN, 0 }, { guard.parent, 0, 0 } };
  struct pollfd console = { STDERR_FILENO, POLLOUT, 0 };

  g_free (data);
  while (poll (fds, 2, -1) < 0)
    if (errno != EINTR)
      return NULL;
  /* without a hurry the other nodes may look at how it has ended */
  if (fds[0].revents == 0)
    poll (fds, 1, (gint) ((guard.close_timeout + PATIENCE) * 1000));
  if (fds[0].revents != 0)
    g_usleep (PATIENCE * G_USEC_PER_SEC);
  if (poll (&console, 1, 0) > 0 && (console.revents & POLLOUT) != 0)
    gtorch_run_say (_ ("it still waits for something; it is ended"));
  gtorch_run_sweep (NULL, 0);
  gtorch_run_folders_remove (&guard.folders);
  _exit (128 + SIGKILL);
}

void
gtorch_run_guard (const GTorchRunOptions *options, const GTorchRunFolders *folders, gint parent,
                  gint hurry)
{
  Guard *guard = g_new (Guard, 1);

  guard->parent = parent;
  guard->hurry = hurry;
  guard->close_timeout = options->close_timeout;
  /* its own: the main thread may come to remove them, too */
  guard->folders.plain = g_strdup (folders->plain);
  guard->folders.memory = g_strdup (folders->memory);
  g_thread_unref (g_thread_new ("guard", run, guard));
}
