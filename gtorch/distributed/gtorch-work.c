/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-work.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-wake-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-work-private.h"
#include "stream/gtorch-stream-private.h"

/**
 * GTorchWork:
 *
 * An operation of a [class@ProcessGroup] that has begun.
 *
 * The functions of a group return when the operation is in its queue. Reading a result on the CPU waits
 * for it by itself, as with all work of streams; [method@Work.wait] waits without reading, and reports
 * what went wrong, and [method@Work.wait_async] does so without blocking a main loop.
 *
 * ```c
 * g_autoptr (GTorchWork) work = gtorch_process_group_all_reduce (group, grad, GTORCH_REDUCE_OP_SUM,
 * &error);
 *
 * if (work != NULL && gtorch_work_wait (work, -1, NULL, &error))
 *   use (grad);
 * ```
 *
 * Since: 0.1
 */

#define POLL_INTERVAL 200 /* microseconds between two looks at a GPU */

struct _GTorchWork
{
  GObject parent_instance;
  GTorchWorkState *state;
};

G_DEFINE_TYPE (GTorchWork, gtorch_work, G_TYPE_OBJECT)

typedef GTorchWork Self;

static const GTorchField fields[] = {
  /**
   * GTorchWork:operation:
   *
   * The name of the operation, such as `all_reduce`.
   *
   * Since: 0.1
   */
  { "operation", GTORCH_PROPERTY_STRING (gtorch_work_get_operation, NULL) },
  /**
   * GTorchWork:sequence:
   *
   * The number of the operation in its group: all ranks begin the same collectives in the same order.
   * Messages between two ranks are counted by themselves.
   *
   * Since: 0.1
   */
  { "sequence", GTORCH_PROPERTY_UINT64 (gtorch_work_get_sequence, NULL) },
  /**
   * GTorchWork:source-rank:
   *
   * The rank that sends what is received; -1 as long as it is not known, and for other operations.
   *
   * Since: 0.1
   */
  { "source-rank", GTORCH_PROPERTY_INT (gtorch_work_get_source_rank, NULL) },
};

static GTorchWorkState *
state_new (void)
{
  GTorchWorkState *state = g_new0 (GTorchWorkState, 1);

  state->ref_count = 1;
  state->source = -1;
  g_mutex_init (&state->lock);
  g_cond_init (&state->changed);
  state->tasks = g_ptr_array_new_with_free_func (g_object_unref);
  return state;
}

GTorchWorkState *
gtorch_work_state_ref (GTorchWorkState *state)
{
  g_atomic_int_inc (&state->ref_count);
  return state;
}

void
gtorch_work_state_unref (GTorchWorkState *state)
{
  if (!g_atomic_int_dec_and_test (&state->ref_count))
    return;
  if (state->backend != NULL)
    state->backend->free (state->data);
  g_clear_pointer (&state->fence, gtorch_fence_unref);
  g_clear_error (&state->error);
  g_ptr_array_unref (state->tasks);
  g_cond_clear (&state->changed);
  g_mutex_clear (&state->lock);
  g_free (state);
}

static void
gtorch_work_finalize (GObject *object)
{
  gtorch_work_state_unref (GTORCH_WORK (object)->state);
  G_OBJECT_CLASS (gtorch_work_parent_class)->finalize (object);
}

static void
gtorch_work_class_init (GTorchWorkClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_work_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_work_init (GTorchWork *self)
{
  self->state = state_new ();
}

GTorchWork *
gtorch_work_new (const gchar *operation, guint64 sequence)
{
  GTorchWork *self = g_object_new (GTORCH_TYPE_WORK, NULL);

  self->state->operation = operation;
  self->state->sequence = sequence;
  return self;
}

GTorchWorkState *
gtorch_work_get_state (GTorchWork *self)
{
  return self->state;
}

static void
return_task (GTask *task, const GError *error)
{
  if (error != NULL)
    g_task_return_error (task, g_error_copy (error));
  else
    g_task_return_boolean (task, TRUE);
}

static gboolean
return_in_context (gpointer data)
{
  GTorchWork *self = g_task_get_source_object (data);

  return_task (data, self->state->error);
  return G_SOURCE_REMOVE;
}

void
gtorch_work_state_complete (GTorchWorkState *state, GError *error)
{
  g_autoptr (GPtrArray) tasks = NULL;
  guint i;

  g_mutex_lock (&state->lock);
  if (state->is_done)
    g_clear_error (&error);
  else
    {
      state->error = error;
      g_atomic_int_set (&state->is_done, TRUE);
      tasks = g_steal_pointer (&state->tasks);
      state->tasks = g_ptr_array_new_with_free_func (g_object_unref);
      g_cond_broadcast (&state->changed);
    }
  g_mutex_unlock (&state->lock);
  /* the references to the tasks, and by them to the object, are dropped where they were begun */
  for (i = 0; tasks != NULL && i < tasks->len; i++)
    {
      g_autoptr (GSource) source = g_idle_source_new ();

      g_source_set_priority (source, G_PRIORITY_DEFAULT);
      g_source_set_callback (source, return_in_context, tasks->pdata[i], g_object_unref);
      g_source_attach (source, g_task_get_context (tasks->pdata[i]));
    }
  if (tasks != NULL)
    g_ptr_array_set_free_func (tasks, NULL);
}

/* Asks the GPU if nobody has told. */
static gboolean
is_done (GTorchWorkState *state)
{
  if (!g_atomic_int_get (&state->is_done) && state->backend != NULL)
    state->backend->poll (state);
  return g_atomic_int_get (&state->is_done);
}

/* What computes at once waits for who has written its operands; the operations of a stream do not. */
static gboolean
join_stream (GTorchFence *fence, GError **error)
{
  GTorchStream *current = fence != NULL ? gtorch_current_stream (gtorch_device_cpu ()) : NULL;

  return current == NULL || current->timeline == NULL
         || gtorch_stream_wait_fence (current, fence, error);
}

gboolean
gtorch_work_join (GTorchWork *self, GError **error)
{
  GTorchWorkState *state = self->state;

  return state->backend != NULL ? state->backend->join (state, G_MAXINT64, NULL, error)
                                : join_stream (state->fence, error);
}

/**
 * gtorch_work_get_operation:
 * @self: work
 *
 * Gets the name of the operation.
 *
 * Returns: (nullable): the name, such as `all_reduce`
 *
 * Since: 0.1
 */
const gchar *
gtorch_work_get_operation (GTorchWork *self)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self), NULL);
  return self->state->operation;
}

/**
 * gtorch_work_get_sequence:
 * @self: work
 *
 * Gets the number of the operation in its group.
 *
 * Returns: the number, 1 for the first operation
 *
 * Since: 0.1
 */
guint64
gtorch_work_get_sequence (GTorchWork *self)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self), 0);
  return self->state->sequence;
}

/**
 * gtorch_work_get_source_rank:
 * @self: work
 *
 * Gets who has sent what was received. Where any rank may send, that is known when the work is completed.
 *
 * Returns: a rank of the group; -1 if it is not known yet, or nothing is received
 *
 * Since: 0.1
 */
gint
gtorch_work_get_source_rank (GTorchWork *self)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self), -1);
  return g_atomic_int_get (&self->state->source);
}

/**
 * gtorch_work_is_completed:
 * @self: work
 *
 * Tells whether the operation is over, with or without success. Does not wait.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_work_is_completed (GTorchWork *self)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self), FALSE);
  return is_done (self->state);
}

/**
 * gtorch_work_is_success:
 * @self: work
 *
 * Tells whether the operation is over and has not failed. Does not wait.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_work_is_success (GTorchWork *self)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self), FALSE);
  return is_done (self->state) && self->state->error == NULL;
}

/**
 * gtorch_work_is_blocking:
 * @self: work
 *
 * Tells whether [method@Work.wait] without a time limit blocks the caller. Work of GPUs does not, except for
 * barriers: the current stream waits for it.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
gtorch_work_is_blocking (GTorchWork *self)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self), TRUE);
  return self->state->backend == NULL || self->state->backend->blocks (self->state);
}

/* Made by g_object_new (): nothing would ever end it. */
static gboolean
check_operation (GTorchWork *self, GError **error)
{
  if (self->state->operation != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("work: this work has no operation; functions of a group make work"));
  return FALSE;
}

/* Nobody tells the end of a GPU's work at once: it is asked for. */
static void
poll_until (GTorchWorkState *state, gint64 deadline, GCancellable *cancellable)
{
  while (!is_done (state) && !g_cancellable_is_cancelled (cancellable))
    {
      const gint64 now = g_get_monotonic_time ();

      if (now >= deadline)
        break;
      g_mutex_lock (&state->lock);
      if (!state->is_done)
        g_cond_wait_until (&state->changed, &state->lock, MIN (deadline, now + POLL_INTERVAL));
      g_mutex_unlock (&state->lock);
    }
}

/**
 * gtorch_work_wait:
 * @self: work
 * @timeout: for how many seconds to wait, 0 or more; negative for as long as it takes: the operation itself
 *   ends after the timeout of its group
 * @cancellable: (nullable): a cancellable; ends the wait, not the operation
 * @error: return location for an error
 *
 * Waits until the operation is over.
 *
 * For an operation of GPUs, the current stream of this thread waits, which does not block the caller:
 * operations that are called afterwards get the result. With a @timeout of 0 or more, and for
 * [method@ProcessGroup.barrier], the caller waits, too.
 *
 * Returns: %TRUE if it has succeeded, or %FALSE with @error set: that of the operation, or
 *   %G_IO_ERROR_TIMED_OUT if @timeout is over
 *
 * Since: 0.1
 */
gboolean
gtorch_work_wait (GTorchWork *self, gdouble timeout, GCancellable *cancellable, GError **error)
{
  gint64 deadline;
  GTorchWake wake;
  gboolean result = FALSE, polls;

  g_return_val_if_fail (GTORCH_IS_WORK (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !check_operation (self, error))
    return FALSE;
  if (isnan (timeout))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the timeout is not a number"),
                   self->state->operation);
      return FALSE;
    }
  deadline = timeout >= 0 && timeout < 1e9
                 ? g_get_monotonic_time () + (gint64) (timeout * G_USEC_PER_SEC)
                 : G_MAXINT64;
  polls = self->state->backend != NULL;
  /* work that is not known to be over is joined: to ask the GPU takes longer */
  if (polls && !g_atomic_int_get (&self->state->is_done))
    {
      if (!self->state->backend->join (self->state, deadline, cancellable, error)
          || g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      if (timeout < 0 && !self->state->backend->blocks (self->state))
        return TRUE;
    }
  gtorch_wake_begin (&wake, cancellable, &self->state->lock, &self->state->changed);
  if (polls)
    poll_until (self->state, deadline, cancellable);
  g_mutex_lock (&self->state->lock);
  while (!polls && !self->state->is_done && !g_cancellable_is_cancelled (cancellable))
    if (deadline == G_MAXINT64)
      g_cond_wait (&self->state->changed, &self->state->lock);
    else if (!g_cond_wait_until (&self->state->changed, &self->state->lock, deadline))
      break;
  if (self->state->is_done && self->state->error == NULL)
    result = TRUE;
  else if (self->state->is_done)
    g_propagate_error (error, g_error_copy (self->state->error));
  else if (!g_cancellable_set_error_if_cancelled (cancellable, error))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                 _ ("%s: rank %d: operation %" PRIu64 " of the group is not over after %g seconds"),
                 self->state->operation, self->state->rank, self->state->sequence, timeout);
  g_mutex_unlock (&self->state->lock);
  gtorch_wake_end (&wake);
  return result;
}

/* Returns whether the task was still waiting: it is returned once, by who takes it out of the list. */
static gboolean
take_task (GTorchWork *self, GTask *task)
{
  gboolean result;

  g_mutex_lock (&self->state->lock);
  result = g_ptr_array_remove_fast (self->state->tasks, task);
  g_mutex_unlock (&self->state->lock);
  return result;
}

static gboolean
on_task_cancelled (GCancellable *cancellable, gpointer data)
{
  g_autoptr (GTask) task = g_object_ref (data);

  if (take_task (g_task_get_source_object (task), task))
    g_task_return_error_if_cancelled (task);
  return G_SOURCE_REMOVE;
}

static void
drop_source (gpointer source)
{
  g_source_destroy (source);
  g_source_unref (source);
}

/**
 * gtorch_work_wait_async:
 * @self: work
 * @cancellable: (nullable): a cancellable; ends the wait, not the operation
 * @callback: (nullable): called when the operation is over
 * @user_data: data for @callback
 *
 * Waits until the operation is over, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_work_wait_async (GTorchWork *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  gboolean is_done;

  g_return_if_fail (GTORCH_IS_WORK (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_work_wait_async, cancellable, callback, user_data);
  if (!check_operation (self, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  if (cancellable != NULL)
    {
      /* lives no longer than the task, which has no reference to itself that way */
      GSource *source = g_cancellable_source_new (cancellable);

      g_source_set_callback (source, G_SOURCE_FUNC (on_task_cancelled), task, NULL);
      g_task_set_task_data (task, source, drop_source);
      g_source_attach (source, g_task_get_context (task));
    }
  g_mutex_lock (&self->state->lock);
  is_done = self->state->is_done;
  if (!is_done)
    g_ptr_array_add (self->state->tasks, g_object_ref (task));
  g_mutex_unlock (&self->state->lock);
  if (is_done)
    return_task (task, self->state->error);
}

/**
 * gtorch_work_wait_finish:
 * @self: work
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [method@Work.wait_async].
 *
 * Returns: %TRUE if the operation has succeeded, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_work_wait_finish (GTorchWork *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_WORK (self) && G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_work_wait_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}
