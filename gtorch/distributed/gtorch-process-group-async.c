/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions of groups that wait for other ranks, in threads. */

#include "config.h"

#include "distributed/gtorch-process-group-async.h"

#include "base/gtorch-task-private.h"
#include "distributed/gtorch-group-calls-private.h"
#include "distributed/gtorch-process-group-device.h"

typedef struct
{
  gint64 *ranks;
  gsize n_ranks;
  gdouble timeout;
  GTorchDevice *device;
  GMainContext *context; /* of a group that is made */
} Given;

static void
given_free (gpointer data)
{
  Given *given = data;

  g_free (given->ranks);
  g_clear_object (&given->device);
  g_clear_pointer (&given->context, g_main_context_unref);
  g_free (given);
}

/* Takes the group, whose signals come where the caller is. */
static gpointer
settle (GTorchProcessGroup *made, const Given *given)
{
  if (made != NULL)
    gtorch_process_group_set_context (made, given->context);
  return made;
}

static gpointer
new_part (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  const Given *given = data;

  return settle (gtorch_process_group_make_part (self, given->ranks, given->n_ranks, given->timeout,
                                                 cancellable, error),
                 given);
}

static gpointer
shrink (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  const Given *given = data;

  return settle (gtorch_process_group_shrink (self, given->ranks, given->n_ranks, error), given);
}

static gpointer
bind_device (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable, GError **error)
{
  return GINT_TO_POINTER (
      gtorch_process_group_bind_device (self, ((Given *) data)->device, cancellable, error));
}

static gpointer
monitored_barrier (GTorchProcessGroup *self, gpointer data, GCancellable *cancellable,
                   GError **error)
{
  return GINT_TO_POINTER (
      gtorch_process_group_monitored_barrier (self, ((Given *) data)->timeout, cancellable, error));
}

/**
 * gtorch_process_group_new_part_async:
 * @self: a group
 * @ranks: (array length=n_ranks): ranks in @self; the first has rank 0 in the new group
 * @n_ranks: the number of @ranks, 1 or more
 * @timeout: for how many seconds an operation waits for the other ranks, more than 0; negative for that of
 *   @self
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.new_part] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_new_part_async (GTorchProcessGroup *self, const gint64 *ranks, gsize n_ranks,
                                     gdouble timeout, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self) && (ranks != NULL || n_ranks == 0));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->ranks = g_memdup2 (ranks, n_ranks * sizeof (gint64));
  given->n_ranks = n_ranks;
  given->context = g_main_context_ref_thread_default ();
  given->timeout = timeout;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_new_part_async, cancellable,
                                             callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, new_part, given, given_free,
                            g_object_unref);
}

/**
 * gtorch_process_group_new_part_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.new_part_async].
 *
 * Returns: (transfer full): a new group, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_new_part_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                      GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_new_part_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_process_group_shrink_async:
 * @self: a group
 * @excluded: (array length=n_excluded): ranks in @self that have no part in the new group
 * @n_excluded: the number of @excluded, 1 or more
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.shrink] does, without blocking. Does not wait for what is under way.
 *
 * Since: 0.1
 */
void
gtorch_process_group_shrink_async (GTorchProcessGroup *self, const gint64 *excluded,
                                   gsize n_excluded, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self) && (excluded != NULL || n_excluded == 0));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->ranks = g_memdup2 (excluded, n_excluded * sizeof (gint64));
  given->n_ranks = n_excluded;
  given->context = g_main_context_ref_thread_default ();
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_shrink_async, cancellable,
                                             callback, user_data),
                            GTORCH_GROUP_LANE_ALONE, shrink, given, given_free, g_object_unref);
}

/**
 * gtorch_process_group_shrink_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.shrink_async].
 *
 * Returns: (transfer full): a new group, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_shrink_finish (GTorchProcessGroup *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_process_group_shrink_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_process_group_bind_device_async:
 * @self: a group
 * @device: the GPU that this process uses; for a group of the CPU, the CPU
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.bind_device] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_bind_device_async (GTorchProcessGroup *self, GTorchDevice *device,
                                        GCancellable *cancellable, GAsyncReadyCallback callback,
                                        gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_DEVICE (device));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->device = g_object_ref (device);
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_bind_device_async,
                                             cancellable, callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, bind_device, given, given_free, NULL);
}

/**
 * gtorch_process_group_bind_device_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.bind_device_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_bind_device_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                         GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_process_group_bind_device_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}

/**
 * gtorch_process_group_monitored_barrier_async:
 * @self: a group
 * @timeout: for how many seconds to wait for the other ranks, more than 0; negative for
 *   [property@ProcessGroup:timeout]
 * @cancellable: (nullable): a cancellable; see the class for what it ends
 * @callback: (nullable): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@ProcessGroup.monitored_barrier] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_monitored_barrier_async (GTorchProcessGroup *self, gdouble timeout,
                                              GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data)
{
  Given *given;

  g_return_if_fail (GTORCH_IS_PROCESS_GROUP (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  given = g_new0 (Given, 1);
  given->timeout = timeout;
  gtorch_group_calls_begin (gtorch_task_new (self, gtorch_process_group_monitored_barrier_async,
                                             cancellable, callback, user_data),
                            GTORCH_GROUP_LANE_COLLECTIVES, monitored_barrier, given, given_free,
                            NULL);
}

/**
 * gtorch_process_group_monitored_barrier_finish:
 * @self: a group
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@ProcessGroup.monitored_barrier_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_monitored_barrier_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                               GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_process_group_monitored_barrier_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}
