/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-group-calls-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"

typedef struct
{
  GQueue calls;      /* the first is under way */
  GThread *thread;   /* that works for it */
  guint n_open;      /* calls whose results the program has not got yet */
  const gchar *name; /* of the last one */
} Lane;

/* Belongs to a thread while the function works, and then to the context of the caller, where it ends: the
 * group may go with it. */
typedef struct
{
  gint ref_count;
  GTorchProcessGroup *group;
  GMainContext *context;
  GCancellable *cancellable;
  gint64 lane;
  GTorchGroupFunc func;
  gpointer data, result;
  GDestroyNotify free_data, free_result;
  GError *error;
  const gchar *name;
  GSource *source;                           /* NULL without a cancellable */
  GTask *task;                               /* in the context; NULL: returned */
  gboolean is_cancelled, is_over, is_closed; /* protected by the lock of the calls */
} Call;

static void start (Call *call);

static void
lane_free (gpointer data)
{
  Lane *lane = data;

  g_queue_clear (&lane->calls);
  g_free (lane);
}

void
gtorch_group_calls_init (GTorchGroupCalls *self)
{
  g_mutex_init (&self->lock);
  self->lanes = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, lane_free);
}

void
gtorch_group_calls_clear (GTorchGroupCalls *self)
{
  g_hash_table_unref (self->lanes);
  g_mutex_clear (&self->lock);
}

gint64
gtorch_group_lane_of_message (gboolean is_send, gint other, gint tag)
{
  return ((gint64) (is_send ? 1 : 0) << 56) | ((gint64) (guint16) tag << 32) | (guint32) other;
}

gboolean
gtorch_group_calls_check (GTorchProcessGroup *group, gint64 key, const gchar *name, GError **error)
{
  GTorchGroupCalls *self = gtorch_process_group_get_calls (group);
  const gchar *other = NULL;
  Lane *lane;

  if (g_atomic_int_get (&self->n_calls) == 0)
    return TRUE;
  g_mutex_lock (&self->lock);
  lane = g_hash_table_lookup (self->lanes, &key);
  if (lane != NULL && lane->thread != g_thread_self ())
    other = lane->name;
  g_mutex_unlock (&self->lock);
  if (other != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: %s () of the group has not ended, and what the ranks exchange has one "
                    "order"),
                 name, other);
  return other == NULL;
}

static gint64
lane_of (const GTorchCollective *collective)
{
  const gboolean is_send = collective->kind == GTORCH_COLLECTIVE_SEND;

  return is_send || collective->kind == GTORCH_COLLECTIVE_RECEIVE
             ? gtorch_group_lane_of_message (is_send, collective->root, collective->tag)
             : GTORCH_GROUP_LANE_COLLECTIVES;
}

gboolean
gtorch_group_calls_check_collective (GTorchProcessGroup *group, const GTorchCollective *collective,
                                     GError **error)
{
  return gtorch_group_calls_check (group, lane_of (collective), collective->name, error);
}

static void
call_unref (gpointer data)
{
  Call *call = data;

  if (!g_atomic_int_dec_and_test (&call->ref_count))
    return;
  if (call->free_data != NULL)
    call->free_data (call->data);
  if (call->result != NULL && call->free_result != NULL)
    call->free_result (call->result);
  g_clear_error (&call->error);
  g_clear_object (&call->cancellable);
  g_clear_object (&call->task);
  g_object_unref (call->group);
  g_main_context_unref (call->context);
  g_free (call);
}

/* What the program does from now on is not refused on account of this call. The lock must be held. */
static void
close_call (GTorchGroupCalls *self, Call *call)
{
  Lane *lane = g_hash_table_lookup (self->lanes, &call->lane);

  if (call->is_closed)
    return;
  call->is_closed = TRUE;
  if (--lane->n_open == 0)
    g_hash_table_remove (self->lanes, &call->lane);
  g_atomic_int_add (&self->n_calls, -1);
}

/* The program has its result. The exchange goes on, since the other ranks count on it. */
static gboolean
on_cancelled (GCancellable *cancellable, gpointer data)
{
  Call *call = data;
  GTorchGroupCalls *self = gtorch_process_group_get_calls (call->group);
  g_autoptr (GTask) task = g_steal_pointer (&call->task);

  g_mutex_lock (&self->lock);
  call->is_cancelled = TRUE;
  if (call->is_over)
    close_call (self, call);
  g_mutex_unlock (&self->lock);
  if (task != NULL)
    g_task_return_error_if_cancelled (task);
  return G_SOURCE_REMOVE;
}

static gboolean
on_ended (gpointer data)
{
  Call *call = data;
  GTorchGroupCalls *self = gtorch_process_group_get_calls (call->group);
  g_autoptr (GTask) task = g_steal_pointer (&call->task);

  g_mutex_lock (&self->lock);
  close_call (self, call);
  g_mutex_unlock (&self->lock);
  if (call->source != NULL)
    g_source_destroy (call->source);
  g_clear_pointer (&call->source, g_source_unref);
  if (task != NULL && call->error == NULL)
    g_task_return_pointer (task, g_steal_pointer (&call->result), call->free_result);
  else if (task != NULL)
    g_task_return_error (task, g_steal_pointer (&call->error));
  return G_SOURCE_REMOVE;
}

static void
attach (Call *call, GSource *source, GSourceFunc func)
{
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, func, call, call_unref);
  g_source_attach (source, call->context);
}

/* The next one of the lane; NULL: none. */
static Call *
leave (Call *call)
{
  GTorchGroupCalls *self = gtorch_process_group_get_calls (call->group);
  Lane *lane;
  Call *next;

  g_mutex_lock (&self->lock);
  lane = g_hash_table_lookup (self->lanes, &call->lane);
  lane->thread = NULL;
  g_queue_pop_head (&lane->calls);
  next = g_queue_peek_head (&lane->calls);
  g_mutex_unlock (&self->lock);
  return next;
}

static void
run_call (GTask *worker, gpointer source, gpointer data, GCancellable *cancellable)
{
  Call *call = data, *next;
  GTorchGroupCalls *self = gtorch_process_group_get_calls (call->group);
  g_autoptr (GSource) end = g_idle_source_new ();

  g_mutex_lock (&self->lock);
  ((Lane *) g_hash_table_lookup (self->lanes, &call->lane))->thread = g_thread_self ();
  g_mutex_unlock (&self->lock);
  call->result = call->func (call->group, call->data, call->cancellable, &call->error);
  next = leave (call);
  g_mutex_lock (&self->lock);
  call->is_over = TRUE;
  if (call->is_cancelled)
    close_call (self, call);
  g_mutex_unlock (&self->lock);
  attach (call, end, on_ended); /* takes the call */
  if (next != NULL)
    start (next);
}

/* Takes the call. */
static void
start (Call *call)
{
  g_autoptr (GTask) worker = g_task_new (NULL, NULL, NULL, NULL);

  g_task_set_name (worker, call->name);
  g_task_set_task_data (worker, call, NULL);
  g_task_run_in_thread (worker, run_call);
}

void
gtorch_group_calls_begin (GTask *task, gint64 key, GTorchGroupFunc func, gpointer data,
                          GDestroyNotify free_data, GDestroyNotify free_result)
{
  GTorchProcessGroup *group = g_task_get_source_object (task);
  GTorchGroupCalls *self = gtorch_process_group_get_calls (group);
  gboolean is_first;
  Call *call;
  Lane *lane;

  /* where the cancellable is cancelled already, the exchange is carried out all the same */
  call = g_new0 (Call, 1);
  call->ref_count = 1;
  call->group = g_object_ref (group);
  call->context = g_main_context_ref (g_task_get_context (task));
  if (g_task_get_cancellable (task) != NULL)
    call->cancellable = g_object_ref (g_task_get_cancellable (task));
  call->lane = key;
  call->func = func;
  call->data = data;
  call->free_data = free_data;
  call->free_result = free_result;
  call->name = g_intern_string (g_task_get_name (task));
  call->task = task;
  if (call->cancellable != NULL)
    {
      g_atomic_int_inc (&call->ref_count);
      call->source = g_cancellable_source_new (call->cancellable);
      attach (call, call->source, G_SOURCE_FUNC (on_cancelled));
    }
  g_mutex_lock (&self->lock);
  lane = g_hash_table_lookup (self->lanes, &key);
  if (lane == NULL)
    {
      lane = g_new0 (Lane, 1);
      g_hash_table_insert (self->lanes, g_memdup2 (&key, sizeof key), lane);
    }
  is_first = g_queue_is_empty (&lane->calls);
  g_queue_push_tail (&lane->calls, call);
  lane->n_open++;
  lane->name = call->name;
  g_atomic_int_inc (&self->n_calls);
  g_mutex_unlock (&self->lock);
  if (is_first)
    start (call);
}
