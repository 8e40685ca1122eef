/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-wait.h>

G_BEGIN_DECLS

#define GTORCH_MAX_THREADS 65536

typedef void (*GTorchRangeFunc) (gint64 begin, gint64 end, gpointer user_data);

/* Calls func for ranges that together are [0, n), each at least grain long (long ones nearly so), and
 * returns when all are done. The calling thread works on them, and with it those helpers that have time: at
 * most one less than gtorch_get_num_threads (). Work for which there is only one range, and work inside of
 * func, is done by the caller alone, in one call. What func computes may not depend on where a range ends or
 * which thread has it. */
void gtorch_parallel_for (gint64 n, gint64 grain, GTorchRangeFunc func, gpointer user_data);
/* Is this thread in a func that shares its work with others? */
gboolean gtorch_cpu_threads_is_inside (void);
/* How nice this thread is to others, 0 to 19, and so are the helpers that it gets from now on. */
void gtorch_cpu_threads_set_niceness (guint niceness);
/* Whether helpers without work and callers that wait for helpers spin or sleep. */
void gtorch_cpu_threads_set_wait_policy (GTorchWaitPolicy policy);

/* How many processors the process may use: those that it may run on, or fewer where its control group has a
 * quota. root is where the file system begins. */
guint gtorch_cpu_count (const gchar *root);
/* The same, or what the environment asks for. */
guint gtorch_cpu_default_threads (void);

G_END_DECLS
