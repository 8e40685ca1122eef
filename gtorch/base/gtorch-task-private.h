/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A task of the public function `async`, whose result only the function that belongs to it may take. The
 * function is given by its own name, by which errors call it. */
#define gtorch_task_new(source, async, cancellable, callback, user_data)                  \
  gtorch_task_new_named ((source), (gpointer) (async), #async, (cancellable), (callback), \
                         (user_data))

/* The beginning of a function that ends `async`: FALSE with an error if the result is not one of that
 * function and this object, or was taken before. Once it has returned TRUE the result counts as taken. */
#define gtorch_task_take(result, source, async, error) \
  gtorch_task_take_named ((result), (source), (gpointer) (async), #async, G_STRFUNC, (error))

GTask *gtorch_task_new_named (gpointer source, gpointer tag, const gchar *name,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);
gboolean gtorch_task_take_named (GAsyncResult *result, gpointer source, gpointer tag,
                                 const gchar *name, const gchar *caller, GError **error);

/* Runs `func` in another thread. When the cancellable is cancelled the task returns at once, and `func`
 * goes on behind it; a task that is cancelled before it starts does not run it. */
void gtorch_task_run_in_thread (GTask *task, GTaskThreadFunc func);

G_END_DECLS
