/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Asynchronous functions and those that take their results. A program, above all one in a language without
 * types, may give any result to any function, and what a task of another function holds is not what this one
 * would read. */

#include "config.h"

#include "base/gtorch-task-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"

#define THREAD_FUNC "gtorch-thread-func"

/* The name of the function whose result has not been taken yet. */
static G_DEFINE_QUARK (gtorch - task - pending, pending)

    GTask *gtorch_task_new_named (gpointer source, gpointer tag, const gchar *name,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data)
{
  GTask *task = g_task_new (source, cancellable, callback, user_data);

  g_task_set_source_tag (task, tag);
  g_task_set_name (task, name);
  g_object_set_qdata (G_OBJECT (task), pending_quark (), (gpointer) name);
  return task;
}

/* GIO starts the thread of a task that is cancelled before, too. The task has its error then, and a
 * second one would replace it without freeing it. */
static void
run_unless_cancelled (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GTaskThreadFunc func = (GTaskThreadFunc) g_object_get_data (G_OBJECT (task), THREAD_FUNC);

  if (!g_task_had_error (task))
    func (task, source, data, cancellable);
}

void
gtorch_task_run_in_thread (GTask *task, GTaskThreadFunc func)
{
  g_object_set_data (G_OBJECT (task), THREAD_FUNC, (gpointer) func);
  g_task_set_return_on_cancel (task, TRUE);
  g_task_run_in_thread (task, run_unless_cancelled);
}

/* gtorch_stream_synchronize_finish: stream_synchronize_finish */
static const gchar *
name_operation (const gchar *function)
{
  return g_str_has_prefix (function, "gtorch_") ? function + 7 : function;
}

gboolean
gtorch_task_take_named (GAsyncResult *result, gpointer source, gpointer tag, const gchar *name,
                        const gchar *caller, GError **error)
{
  const gchar *op = name_operation (caller);
  const gchar *other = NULL;

  if (g_async_result_is_tagged (result, tag) && g_task_is_valid (result, source)
      && g_object_steal_qdata (G_OBJECT (result), pending_quark ()) != NULL)
    return TRUE;
  if (G_IS_TASK (result))
    other = g_task_get_name (G_TASK (result));
  if (!G_IS_TASK (result) || other == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the result is a %s of unknown origin, not one of %s ()"), op,
                 G_OBJECT_TYPE_NAME (result), name);
  else if (!g_async_result_is_tagged (result, tag))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the result is one of %s (), not of %s ()"), op, other, name);
  else if (!g_task_is_valid (result, source))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the result is one of %s () of another object"), op, name);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the result of %s () has been taken before"), op, name);
  return FALSE;
}
