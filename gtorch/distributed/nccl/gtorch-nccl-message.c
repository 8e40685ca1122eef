/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Messages between ranks that are threads of this process. The kernel of one half occupies its GPU until the
 * other half has come, which calls of the driver in that other thread may wait for. Therefore the half that
 * comes first is not launched: it is posted, and the rank that comes second launches both as one.
 *
 * Nobody waits for that in send () or recv (), since a rank may send before it receives. Who wants the
 * current stream to wait for what was received waits for the other rank itself; of what is sent there is a
 * copy then, so that two ranks may send to each other first. If the rank that is waited for waits for this
 * one in its turn, as in a collective, the half is launched alone: no other would ever come. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "distributed/nccl/gtorch-nccl-local-private.h"
#include "gtorch-ops-private.h"

#define CANCEL_TIME (20 * G_TIME_SPAN_MILLISECOND) /* between looks whether a wait was cancelled */

/* --- launching --- */

/* Enters NCCL with the communicator of each operation, but not with those that have failed: these are taken
 * out. */
static void
enter (GPtrArray *ops)
{
  guint i = 0;

  while (i < ops->len)
    {
      NcclOp *op = ops->pdata[i];
      gboolean is_well;

      g_mutex_lock (&op->engine->lock);
      is_well = op->engine->failure == NULL && op->work != NULL && op->collective != NULL;
      if (is_well)
        op->comm->n_calls++;
      g_mutex_unlock (&op->engine->lock);
      if (is_well)
        i++;
      else
        g_ptr_array_remove_index (ops, i);
    }
}

/* Those that were not launched stay posted until their group fails. */
static gboolean
leave (GPtrArray *ops, gboolean result, GError **error)
{
  guint i;

  for (i = 0; i < ops->len; i++)
    {
      NcclOp *op = ops->pdata[i];
      GTorchFence *fence = result ? gtorch_stream_record_fence (op->comm->stream, 0, error) : NULL;

      result = fence != NULL;
      g_mutex_lock (&op->engine->lock);
      op->comm->n_calls--;
      op->fence = fence;
      if (result)
        {
          g_atomic_int_set (&op->is_posted, FALSE);
          g_clear_pointer (&op->collective, gtorch_collective_free);
        }
      gtorch_nccl_comm_poll (op->comm);
      if (op->engine->failure != NULL)
        g_cond_broadcast (&op->engine->changed);
      g_mutex_unlock (&op->engine->lock);
    }
  return result;
}

static gboolean
issue (GPtrArray *ops, GError **error)
{
  NcclOp *const *all = (NcclOp *const *) ops->pdata;
  gboolean result;
  guint i;

  for (i = 0; i < ops->len; i++)
    {
      gtorch_nccl_use (all[i], FALSE);
      gtorch_cuda_note_begin (GTORCH_CUDA_STREAM (all[i]->comm->stream)->lane, all[i]->name);
    }
  result = gtorch_nccl_issue (all, ops->len, error);
  for (i = ops->len; i-- > 0;)
    gtorch_cuda_note_end (GTORCH_CUDA_STREAM (all[i]->comm->stream)->lane, result);
  return result;
}

/* The device of the calling thread is that of the communicator afterwards. */
static gboolean
launch (NcclComm *comm, GPtrArray *ops, gboolean is_joint, GError **error)
{
  gboolean result = TRUE;
  GTORCH_CUDA_APART;

  enter (ops);
  if (ops->len == 0)
    return TRUE;
  if (is_joint)
    gtorch_cuda_joint_begin ();
  result = issue (ops, error);
  result = leave (ops, result, error);
  gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (comm->device), NULL);
  if (is_joint)
    {
      gtorch_cuda_joint_leave ();
      gtorch_cuda_joint_end ();
    }
  return result;
}

/* --- finding the other half --- */

/* Takes the other half of a message out of a queue; a new reference, or NULL. */
static NcclOp *
take_other (GQueue *queue, const NcclOp *op)
{
  GList *link;

  for (link = queue->head; link != NULL; link = link->next)
    {
      NcclOp *other = link->data;

      if (other->is_sent == op->is_sent || other->comm->rank != op->peer
          || other->peer != op->comm->rank)
        continue;
      g_queue_delete_link (queue, link);
      return other;
    }
  return NULL;
}

static gboolean
prepare (NcclComm *comm, NcclOp *const *ops, guint n, GTorchStream *current, GError **error)
{
  guint i;
  GTORCH_CUDA_APART;

  if (!gtorch_nccl_come_after (comm, current, error))
    return FALSE;
  for (i = 0; i < n; i++)
    gtorch_nccl_use (ops[i], TRUE);
  return TRUE;
}

gboolean
gtorch_nccl_messages_post (NcclComm *comm, NcclOp *const *ops, guint n, GTorchStream *current,
                           GError **error)
{
  NcclLocal *local = comm->local;
  g_autoptr (GPtrArray) both = g_ptr_array_new_with_free_func (gtorch_nccl_op_unref);
  g_autoptr (GPtrArray) alone = g_ptr_array_new_with_free_func (gtorch_nccl_op_unref);
  gboolean result = TRUE;
  guint i;

  if (!prepare (comm, ops, n, current, error))
    return FALSE;
  g_mutex_lock (&local->launching);
  g_mutex_lock (&gtorch_nccl_local_lock);
  local->members[comm->rank].thread = g_thread_self ();
  for (i = 0; i < n; i++)
    {
      NcclOp *other = take_other (&local->alone, ops[i]);

      g_atomic_int_set (&ops[i]->is_posted, TRUE);
      if (other != NULL)
        {
          gtorch_nccl_op_unref (other);
          g_ptr_array_add (alone, gtorch_nccl_op_ref (ops[i]));
          continue;
        }
      other = take_other (&local->posted, ops[i]);
      if (other == NULL)
        g_queue_push_tail (&local->posted, gtorch_nccl_op_ref (ops[i]));
      else
        {
          g_ptr_array_add (both, gtorch_nccl_op_ref (ops[i]));
          g_ptr_array_add (both, other);
        }
    }
  g_mutex_unlock (&gtorch_nccl_local_lock);
  if (alone->len > 0)
    result = launch (comm, alone, FALSE, error);
  if (result && both->len > 0)
    result = launch (comm, both, TRUE, error);
  g_mutex_unlock (&local->launching);
  if (alone->len + both->len > 0)
    gtorch_nccl_local_wake ();
  return result;
}

static void
drop_from (GQueue *queue, NcclComm *comm)
{
  GList *link = queue->head;

  while (link != NULL)
    {
      GList *next = link->next;
      NcclOp *op = link->data;

      if (op->comm == comm)
        {
          g_queue_delete_link (queue, link);
          gtorch_nccl_op_unref (op);
        }
      link = next;
    }
}

void
gtorch_nccl_messages_drop (NcclComm *comm)
{
  g_mutex_lock (&gtorch_nccl_local_lock);
  drop_from (&comm->local->posted, comm);
  drop_from (&comm->local->alone, comm);
  g_mutex_unlock (&gtorch_nccl_local_lock);
}

/* --- waiting --- */

/* Launches a message without its other half, and those before it that go the same way. */
static gboolean
launch_alone (NcclOp *op, GError **error)
{
  NcclLocal *local = op->comm->local;
  g_autoptr (GPtrArray) ops = g_ptr_array_new_with_free_func (gtorch_nccl_op_unref);
  gboolean is_there, result;
  GList *link;

  g_mutex_lock (&local->launching);
  g_mutex_lock (&gtorch_nccl_local_lock);
  is_there = g_queue_find (&local->posted, op) != NULL;
  link = is_there ? local->posted.head : NULL;
  while (link != NULL)
    {
      GList *next = link->data == op ? NULL : link->next;
      NcclOp *own = link->data;

      if (own->comm == op->comm && own->peer == op->peer && own->is_sent == op->is_sent)
        {
          g_queue_delete_link (&local->posted, link);
          g_ptr_array_add (ops, own);
          g_queue_push_tail (&local->alone, gtorch_nccl_op_ref (own));
        }
      link = next;
    }
  g_mutex_unlock (&gtorch_nccl_local_lock);
  result = launch (op->comm, ops, FALSE, error);
  g_mutex_unlock (&local->launching);
  return result;
}

/* Lets a message send a copy, which the current stream makes now. */
static gboolean
copy (NcclOp *op, GError **error)
{
  NcclLocal *local = op->comm->local;
  g_autoptr (GTorchStream) current = g_object_ref (gtorch_stream_get_current (op->comm->device));
  GTorchCollective *collective = op->collective;
  GTorchImpl *impl;
  gboolean result = TRUE;

  g_mutex_lock (&local->launching);
  if (g_atomic_int_get (&op->is_posted) && !g_atomic_int_get (&op->engine->has_failed))
    {
      impl = gtorch_op_clone (collective->inputs->pdata[0], error);
      result = impl != NULL && gtorch_nccl_come_after (op->comm, current, error);
      if (impl != NULL)
        {
          gtorch_impl_unref (collective->inputs->pdata[0]);
          collective->inputs->pdata[0] = impl;
          gtorch_nccl_use (op, FALSE);
          op->is_copied = result;
        }
    }
  g_mutex_unlock (&local->launching);
  return result;
}

static gboolean
is_over (gconstpointer data)
{
  const NcclOp *op = data;

  return !g_atomic_int_get (&op->is_posted) || g_atomic_int_get (&op->engine->has_failed);
}

gboolean
gtorch_nccl_messages_wait (NcclOp *op, gint64 deadline, GCancellable *cancellable, GError **error)
{
  NcclWait found = NCCL_WAIT_LATE;

  if (op->is_copied)
    return TRUE;
  if (op->is_sent)
    return copy (op, error);
  while (found == NCCL_WAIT_LATE && !g_cancellable_is_cancelled (cancellable)
         && g_get_monotonic_time () < deadline)
    {
      const gint64 soon = g_get_monotonic_time () + CANCEL_TIME;

      g_mutex_lock (&gtorch_nccl_local_lock);
      found = gtorch_nccl_local_wait (op->comm, op->peer, is_over, op,
                                      cancellable == NULL ? deadline : MIN (deadline, soon));
      g_mutex_unlock (&gtorch_nccl_local_lock);
    }
  return found != NCCL_WAIT_STUCK || launch_alone (op, error);
}
