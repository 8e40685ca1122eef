/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-environment-private.h>
#include <gtorch/device/gtorch-device-wait.h>
#include <gtorch/device/gtorch-thread-count-private.h>

G_BEGIN_DECLS

typedef void (*GTorchRangeFunc) (gint64 begin, gint64 end, gpointer user_data);

/* Calls func for ranges that together cover [0, n), each at least grain long (long ones nearly so), and
 * returns when all are done. The calling thread takes part, together with at most gtorch_get_num_threads ()
 * - 1 helpers that are free. If there is only one range, or if this is called inside func, the calling
 * thread does everything in one call. The results of func must not depend on where a range ends or which
 * thread runs it. */
void gtorch_parallel_for (gint64 n, gint64 grain, GTorchRangeFunc func, gpointer user_data);
/* Returns whether this thread is inside a func that is shared with other threads. */
gboolean gtorch_cpu_threads_is_inside (void);
/* Sets the niceness, 0 to 19, of this thread and of the helpers that it uses from now on. */
void gtorch_cpu_threads_set_niceness (guint niceness);
/* Gives the place of the GTorchWaitPolicy that says whether idle helpers, and callers that wait for
 * helpers, spin or sleep; it is read atomically. */
void gtorch_cpu_threads_set_wait_policy (const gint *policy);

G_END_DECLS
