/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls of stores that do not block the caller's main loop: the request waits in a thread. */

#include "config.h"

#include "distributed/gtorch-store-async.h"

#include "base/gtorch-task-private.h"
#include "distributed/gtorch-store-private.h"

typedef struct
{
  GTorchStoreRequest request;
  gchar **keys;
  gint64 deadline;
  GTorchStoreReply reply;
} Job;

static void
job_free (gpointer data)
{
  Job *job = data;

  g_strfreev (job->keys);
  g_clear_pointer (&job->request.value, g_bytes_unref);
  g_clear_pointer (&job->request.expected, g_bytes_unref);
  gtorch_store_reply_clear (&job->reply);
  g_free (job);
}

static void
run_job (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Job *job = data;
  GError *error = NULL;

  if (gtorch_store_run (source, &job->request, job->deadline, &job->reply, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/* Takes the task. */
static void
start (GTask *task, GTorchStoreCommand command, const gchar *const *keys, GBytes *value,
       GBytes *expected, gint64 number, gdouble timeout)
{
  GTorchStore *self = g_task_get_source_object (task);
  GError *error = NULL;
  Job *job;

  if (!gtorch_store_check_wait (timeout, &error))
    {
      g_task_return_error (task, error);
      g_object_unref (task);
      return;
    }
  job = g_new0 (Job, 1);
  job->keys = g_strdupv ((gchar **) keys);
  job->request =
      (GTorchStoreRequest){ command, (const gchar *const *) job->keys,
                            value == NULL ? NULL : g_bytes_ref (value),
                            expected == NULL ? NULL : g_bytes_ref (expected), .number = number };
  job->deadline = gtorch_store_deadline (timeout < 0 ? gtorch_store_get_timeout (self) : timeout);
  g_task_set_task_data (task, job, job_free);
  g_task_run_in_thread (task, run_job);
  g_object_unref (task);
}

static const GTorchStoreReply *
reply_of (GAsyncResult *result)
{
  return &((const Job *) g_task_get_task_data (G_TASK (result)))->reply;
}

/**
 * gtorch_store_set_async:
 * @self: a store
 * @key: a key
 * @value: the value
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the value is set
 * @user_data: data for @callback
 *
 * Does what [method@Store.set] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_set_async (GTorchStore *self, const gchar *key, GBytes *value,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  const gchar *const keys[] = { key, NULL };

  g_return_if_fail (GTORCH_IS_STORE (self) && key != NULL && value != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_set_async, cancellable, callback, user_data),
         GTORCH_STORE_SET, keys, value, NULL, 0, -1);
}

/**
 * gtorch_store_set_finish:
 * @self: a store
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@Store.set_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_set_finish (GTorchStore *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_store_set_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_store_get_async:
 * @self: a store
 * @key: a key
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the key has a value
 * @user_data: data for @callback
 *
 * Does what [method@Store.get] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_get_async (GTorchStore *self, const gchar *key, GCancellable *cancellable,
                        GAsyncReadyCallback callback, gpointer user_data)
{
  const gchar *const keys[] = { key, NULL };

  g_return_if_fail (GTORCH_IS_STORE (self) && key != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_get_async, cancellable, callback, user_data),
         GTORCH_STORE_GET, keys, NULL, NULL, 0, -1);
}

/**
 * gtorch_store_get_finish:
 * @self: a store
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@Store.get_async].
 *
 * Returns: (transfer full): the value, or %NULL with @error set
 *
 * Since: 0.1
 */
GBytes *
gtorch_store_get_finish (GTorchStore *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_store_get_async, error)
      || !g_task_propagate_boolean (G_TASK (result), error))
    return NULL;
  return g_steal_pointer (&((Job *) g_task_get_task_data (G_TASK (result)))->reply.value);
}

/**
 * gtorch_store_add_async:
 * @self: a store
 * @key: a key
 * @amount: what is added
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the sum is there
 * @user_data: data for @callback
 *
 * Does what [method@Store.add] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_add_async (GTorchStore *self, const gchar *key, gint64 amount,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  const gchar *const keys[] = { key, NULL };

  g_return_if_fail (GTORCH_IS_STORE (self) && key != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_add_async, cancellable, callback, user_data),
         GTORCH_STORE_ADD, keys, NULL, NULL, amount, -1);
}

/**
 * gtorch_store_add_finish:
 * @self: a store
 * @result: the result that the callback got
 * @sum: (out) (optional): the sum
 * @error: return location for an error
 *
 * Ends a call of [method@Store.add_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_add_finish (GTorchStore *self, GAsyncResult *result, gint64 *sum, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_store_add_async, error)
      || !g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  if (sum != NULL)
    *sum = reply_of (result)->number;
  return TRUE;
}

/**
 * gtorch_store_wait_async:
 * @self: a store
 * @keys: (array zero-terminated=1): keys
 * @timeout: for how many seconds to wait, 0 or more; negative for [property@Store:timeout]
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when all keys have values
 * @user_data: data for @callback
 *
 * Does what [method@Store.wait] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_wait_async (GTorchStore *self, const gchar *const *keys, gdouble timeout,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_STORE (self) && keys != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_wait_async, cancellable, callback, user_data),
         GTORCH_STORE_WAIT, keys, NULL, NULL, 0, timeout);
}

/**
 * gtorch_store_wait_finish:
 * @self: a store
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@Store.wait_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_wait_finish (GTorchStore *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_store_wait_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_store_append_async:
 * @self: a store
 * @key: a key
 * @value: what is added
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the bytes are added
 * @user_data: data for @callback
 *
 * Does what [method@Store.append] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_append_async (GTorchStore *self, const gchar *key, GBytes *value,
                           GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data)
{
  const gchar *const keys[] = { key, NULL };

  g_return_if_fail (GTORCH_IS_STORE (self) && key != NULL && value != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_append_async, cancellable, callback, user_data),
         GTORCH_STORE_APPEND, keys, value, NULL, 0, -1);
}

/**
 * gtorch_store_append_finish:
 * @self: a store
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@Store.append_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_append_finish (GTorchStore *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_store_append_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_store_compare_set_async:
 * @self: a store
 * @key: a key
 * @expected: (nullable): what the key should have; %NULL or no bytes if it should have nothing
 * @desired: the new value
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the values are compared
 * @user_data: data for @callback
 *
 * Does what [method@Store.compare_set] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_compare_set_async (GTorchStore *self, const gchar *key, GBytes *expected,
                                GBytes *desired, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
  const gchar *const keys[] = { key, NULL };

  g_return_if_fail (GTORCH_IS_STORE (self) && key != NULL && desired != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_compare_set_async, cancellable, callback, user_data),
         GTORCH_STORE_COMPARE_SET, keys, desired, expected, 0, -1);
}

/**
 * gtorch_store_compare_set_finish:
 * @self: a store
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@Store.compare_set_async].
 *
 * Returns: (transfer full): the value after the call, as of [method@Store.compare_set], or %NULL with
 *   @error set
 *
 * Since: 0.1
 */
GBytes *
gtorch_store_compare_set_finish (GTorchStore *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_store_compare_set_async, error)
      || !g_task_propagate_boolean (G_TASK (result), error))
    return NULL;
  return g_steal_pointer (&((Job *) g_task_get_task_data (G_TASK (result)))->reply.value);
}

/**
 * gtorch_store_check_async:
 * @self: a store
 * @keys: (array zero-terminated=1): keys
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when it is known whether they have values
 * @user_data: data for @callback
 *
 * Does what [method@Store.check] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_check_async (GTorchStore *self, const gchar *const *keys, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_STORE (self) && keys != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_check_async, cancellable, callback, user_data),
         GTORCH_STORE_CHECK, keys, NULL, NULL, 0, -1);
}

/**
 * gtorch_store_check_finish:
 * @self: a store
 * @result: the result that the callback got
 * @are_there: (out): whether all of them have values
 * @error: return location for an error
 *
 * Ends a call of [method@Store.check_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_check_finish (GTorchStore *self, GAsyncResult *result, gboolean *are_there,
                           GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  g_return_val_if_fail (are_there != NULL, FALSE);
  if (!gtorch_task_take (result, self, gtorch_store_check_async, error)
      || !g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  *are_there = reply_of (result)->number != 0;
  return TRUE;
}

/**
 * gtorch_store_delete_key_async:
 * @self: a store
 * @key: a key
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the key is gone
 * @user_data: data for @callback
 *
 * Does what [method@Store.delete_key] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_delete_key_async (GTorchStore *self, const gchar *key, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  const gchar *const keys[] = { key, NULL };

  g_return_if_fail (GTORCH_IS_STORE (self) && key != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_delete_key_async, cancellable, callback, user_data),
         GTORCH_STORE_DELETE, keys, NULL, NULL, 0, -1);
}

/**
 * gtorch_store_delete_key_finish:
 * @self: a store
 * @result: the result that the callback got
 * @was_there: (out) (optional): whether the key had a value
 * @error: return location for an error
 *
 * Ends a call of [method@Store.delete_key_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_delete_key_finish (GTorchStore *self, GAsyncResult *result, gboolean *was_there,
                                GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_store_delete_key_async, error)
      || !g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  if (was_there != NULL)
    *was_there = reply_of (result)->number != 0;
  return TRUE;
}

/**
 * gtorch_store_count_keys_async:
 * @self: a store
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when they are counted
 * @user_data: data for @callback
 *
 * Does what [method@Store.count_keys] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_store_count_keys_async (GTorchStore *self, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  const gchar *const keys[] = { NULL };

  g_return_if_fail (GTORCH_IS_STORE (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start (gtorch_task_new (self, gtorch_store_count_keys_async, cancellable, callback, user_data),
         GTORCH_STORE_COUNT, keys, NULL, NULL, 0, -1);
}

/**
 * gtorch_store_count_keys_finish:
 * @self: a store
 * @result: the result that the callback got
 * @n_keys: (out): the number of keys that have values
 * @error: return location for an error
 *
 * Ends a call of [method@Store.count_keys_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_store_count_keys_finish (GTorchStore *self, GAsyncResult *result, gint64 *n_keys,
                                GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STORE (self) && G_IS_ASYNC_RESULT (result), FALSE);
  g_return_val_if_fail (n_keys != NULL, FALSE);
  if (!gtorch_task_take (result, self, gtorch_store_count_keys_async, error)
      || !g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  *n_keys = reply_of (result)->number;
  return TRUE;
}
