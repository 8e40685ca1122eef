/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Values that are no tensors, without blocking. */

#include "config.h"

#include "base/gtorch-task-private.h"
#include "distributed/gtorch-group-calls-private.h"
#include "distributed/gtorch-process-group-variant.h"

typedef struct
{
  GVariant *value; /* NULL: none */
  gint rank, tag;
} Given;

static void
given_free (gpointer data)
{
  Given *given = data;

  g_clear_pointer (&given->value, g_variant_unref);
  g_free (given);
}

static void
free_value (gpointer value)
{
  g_variant_unref (value);
}

static gpointer
broadcast_variant (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable,
                   GError **error)
{
  const Given *given = data;

  return gtorch_process_group_broadcast_variant (self, given->value, given->rank, error);
}

/**
 * gtorch_process_group_broadcast_variant_async:
 * @self: a group
 * @value: (nullable): the value; only that of @src counts
 * @src: the rank that sends
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.broadcast_variant] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_broadcast_variant_async (GTorchProcessGroup *self, GVariant *value, gint src,
                                              GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->value = value == NULL ? NULL : g_variant_ref_sink (value);
  given->rank = src;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_broadcast_variant_async,
                                             cancellable, callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, broadcast_variant, given, given_free,
                            free_value);
}

/**
 * gtorch_process_group_broadcast_variant_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.broadcast_variant_async].
 *
 * Returns: (transfer full): the value of @src, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_broadcast_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                               GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_broadcast_variant_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

static gpointer
all_gather_variant (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable,
                    GError **error)
{
  const Given *given = data;

  return gtorch_process_group_all_gather_variant (self, given->value, error);
}

/**
 * gtorch_process_group_all_gather_variant_async:
 * @self: a group
 * @value: the value of this rank
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.all_gather_variant] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_all_gather_variant_async (GTorchProcessGroup *self, GVariant *value,
                                               GCancellable *cancellable,
                                               GAsyncReadyCallback callback, gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self) && value != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->value = g_variant_ref_sink (value);
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_all_gather_variant_async,
                                             cancellable, callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, all_gather_variant, given, given_free,
                            free_value);
}

/**
 * gtorch_process_group_all_gather_variant_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.all_gather_variant_async].
 *
 * Returns: (transfer full): the values by rank, of the type `av`, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_all_gather_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                                GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_all_gather_variant_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

static gpointer
gather_variant (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  const Given *given = data;

  return gtorch_process_group_gather_variant (self, given->value, given->rank, error);
}

/**
 * gtorch_process_group_gather_variant_async:
 * @self: a group
 * @value: the value of this rank
 * @dst: the rank that gets them
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.gather_variant] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_gather_variant_async (GTorchProcessGroup *self, GVariant *value, gint dst,
                                           GCancellable *cancellable, GAsyncReadyCallback callback,
                                           gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self) && value != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->value = g_variant_ref_sink (value);
  given->rank = dst;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_gather_variant_async,
                                             cancellable, callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, gather_variant, given, given_free,
                            free_value);
}

/**
 * gtorch_process_group_gather_variant_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.gather_variant_async].
 *
 * Returns: (transfer full): the values by rank, of the type `av`; elsewhere than at @dst none of them; or
 *   %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_gather_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                            GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_gather_variant_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

static gpointer
scatter_variant (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  const Given *given = data;

  return gtorch_process_group_scatter_variant (self, given->value, given->rank, error);
}

/**
 * gtorch_process_group_scatter_variant_async:
 * @self: a group
 * @values: (nullable): at @src a value for each rank, of the type `av`; elsewhere it does not count
 * @src: the rank that has them
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.scatter_variant] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_scatter_variant_async (GTorchProcessGroup *self, GVariant *values, gint src,
                                            GCancellable *cancellable, GAsyncReadyCallback callback,
                                            gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->value = values == NULL ? NULL : g_variant_ref_sink (values);
  given->rank = src;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_scatter_variant_async,
                                             cancellable, callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, scatter_variant, given, given_free,
                            free_value);
}

/**
 * gtorch_process_group_scatter_variant_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.scatter_variant_async].
 *
 * Returns: (transfer full): the value for this rank, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_scatter_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                             GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_scatter_variant_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

static gpointer
send_variant (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  const Given *given = data;

  return GINT_TO_POINTER (
      gtorch_process_group_send_variant (self, given->value, given->rank, given->tag, error));
}

/**
 * gtorch_process_group_send_variant_async:
 * @self: a group
 * @value: the value
 * @dst: the rank that gets it
 * @tag: a number that the receiver names too, from 0 to 32767
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.send_variant] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_send_variant_async (GTorchProcessGroup *self, GVariant *value, gint dst,
                                         gint tag, GCancellable *cancellable,
                                         GAsyncReadyCallback callback, gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self) && value != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->value = g_variant_ref_sink (value);
  given->rank = dst;
  given->tag = tag;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_send_variant_async,
                                             cancellable, callback, user_data),
                            gtorch_group_lane_of_message (TRUE, dst, tag), send_variant, given,
                            given_free, NULL);
}

/**
 * gtorch_process_group_send_variant_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.send_variant_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_send_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                          GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_process_group_send_variant_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}

static gpointer
recv_variant (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  const Given *given = data;

  return gtorch_process_group_recv_variant (self, given->rank, given->tag, error);
}

/**
 * gtorch_process_group_recv_variant_async:
 * @self: a group
 * @src: the rank that sends
 * @tag: a number that the sender names too, from 0 to 32767
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.recv_variant] does, without blocking. Where it was cancelled, it still takes
 * the next message of the rank with the tag, before a later call does, and fails the group after its timeout
 * if none comes.
 *
 * Since: 0.1
 */
void
gtorch_process_group_recv_variant_async (GTorchProcessGroup *self, gint src, gint tag,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->rank = src;
  given->tag = tag;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_recv_variant_async,
                                             cancellable, callback, user_data),
                            gtorch_group_lane_of_message (FALSE, src, tag), recv_variant, given,
                            given_free, free_value);
}

/**
 * gtorch_process_group_recv_variant_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.recv_variant_async].
 *
 * Returns: (transfer full): the value, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_recv_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                          GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_recv_variant_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}
