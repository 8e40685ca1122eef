/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/* What becomes of the library in the child of fork (), which has a copy of the memory and of one thread. */

/* A lock that another thread may hold just then. The fork takes them all, so that the child finds what they
 * guard whole and can take them itself. Of those that are held only for as long as memory is looked at, and
 * never while the program's functions are called. */
void gtorch_fork_add_lock (GMutex *lock);
void gtorch_fork_remove_lock (GMutex *lock);
/* Called in the child, before anything else, in the order in which they were added. */
void gtorch_fork_add_child (void (*func) (void));

/* A thread of the library works between these, and rests otherwise. A fork waits for a moment in which all of
 * them rest, since what they do may take locks of GLib's. Called without any lock. */
void gtorch_fork_begin_work (void);
void gtorch_fork_end_work (void);

/* Beside a static lock or function. */
#define GTORCH_FORK_LOCK(lock)                                                 \
  static void __attribute__ ((constructor)) gtorch_fork_register_##lock (void) \
  {                                                                            \
    gtorch_fork_add_lock (&lock);                                              \
  }                                                                            \
  struct _GTorchStorage
#define GTORCH_FORK_CHILD(func)                                                \
  static void __attribute__ ((constructor)) gtorch_fork_register_##func (void) \
  {                                                                            \
    gtorch_fork_add_child (func);                                              \
  }                                                                            \
  struct _GTorchStorage

/* FALSE, with the error of a stream whose thread is not in this process. */
gboolean gtorch_fork_refuse_stream (GError **error);

G_END_DECLS
