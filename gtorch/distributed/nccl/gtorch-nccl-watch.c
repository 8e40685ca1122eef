/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Looking after operations. One thread of an engine asks the GPU what is done, and ends what takes longer
 * than it may; another one waits for the store to tell that a rank has failed. A rank that gives up asks
 * all others, by the store, how far they are: those that do not answer are gone. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/nccl/gtorch-nccl-private.h"

#define INTERVAL (50 * G_TIME_SPAN_MILLISECOND) /* between two looks at the operations */

NcclOp *
gtorch_nccl_op_ref (NcclOp *op)
{
  g_atomic_int_inc (&op->ref_count);
  return op;
}

void
gtorch_nccl_op_unref (gpointer data)
{
  NcclOp *op = data;

  if (!g_atomic_int_dec_and_test (&op->ref_count))
    return;
  g_clear_pointer (&op->fence, gtorch_fence_unref);
  g_clear_pointer (&op->work, gtorch_work_state_unref);
  g_clear_pointer (&op->collective, gtorch_collective_free);
  gtorch_nccl_engine_unref (op->engine);
  g_free (op);
}

/* Takes the error. */
static void
complete (NcclOp *op, GError *error)
{
  g_autoptr (GTorchWorkState) work = g_steal_pointer (&op->work);

  if (work != NULL)
    gtorch_work_state_complete (work, error);
  else
    g_clear_error (&error);
}

gboolean
gtorch_nccl_op_poll (NcclOp *op)
{
  ncclResult_t state = ncclSuccess;
  GTorchFence *fence;
  gboolean is_done;
  GTORCH_CUDA_APART;

  if (op->work == NULL)
    return TRUE;
  if (op->fence == NULL || gtorch_nccl_is_aborting ())
    return FALSE;
  fence = gtorch_fence_ref (op->fence);
  g_mutex_unlock (&op->engine->lock);
  is_done = gtorch_fence_is_done (fence);
  gtorch_fence_unref (fence);
  g_mutex_lock (&op->engine->lock);
  if (!is_done || op->work == NULL)
    return is_done;
  if (op->is_captured) /* the capture has ended; replays are no work of this operation */
    {
      complete (op, NULL);
      return TRUE;
    }
  /* a kernel also ends if the communicator has failed, which is reported when that is looked at */
  if (op->comm->comm == NULL
      || gtorch_nccl.ncclCommGetAsyncError (op->comm->comm, &state) != ncclSuccess
      || (state != ncclSuccess && state != ncclInProgress))
    return FALSE;
  complete (op, NULL);
  return TRUE;
}

/* Whether the operation was enqueued before the other one, on the same stream. Two threads may have begun
 * them in another order. */
static gboolean
was_before (const NcclOp *op, const NcclOp *other)
{
  return op->fence != NULL && op->fence->queue == other->fence->queue
         && op->fence->number <= other->fence->number;
}

/* If an operation is over, so are those that the stream had before. The newest is asked for first, then the
 * one halfway to the oldest, and so on, since each question is a call of the driver. */
NcclOp *
gtorch_nccl_comm_poll (NcclComm *comm)
{
  guint i;

  for (i = g_queue_get_length (&comm->pending); i > 0; i /= 2)
    {
      NcclOp *last = g_queue_peek_nth (&comm->pending, i - 1), *op;
      gboolean is_done;

      if (last == NULL) /* another thread has taken some out meanwhile */
        continue;
      gtorch_nccl_op_ref (last);
      is_done = gtorch_nccl_op_poll (last);
      while (is_done && (op = g_queue_peek_head (&comm->pending)) != NULL
             && (op->work == NULL || (last->fence != NULL && was_before (op, last))))
        {
          complete (op, NULL);
          gtorch_nccl_op_unref (g_queue_pop_head (&comm->pending));
        }
      gtorch_nccl_op_unref (last);
      if (is_done)
        break;
    }
  return g_queue_peek_head (&comm->pending);
}

/* --- failure --- */

/* Whether the driver answers the watching thread. */
static gboolean
is_answered (NcclEngine *self)
{
  return self->is_resting || g_get_monotonic_time () < self->looked + G_USEC_PER_SEC;
}

/* The operations are over before the communicators are aborted: their kernels end then, as if they were
 * done. */
static void
complete_all (NcclEngine *self, const GError *error)
{
  guint i;

  for (i = 0; i < self->all->len; i++)
    {
      NcclComm *comm = self->all->pdata[i];
      NcclOp *op;

      if (is_answered (self))
        gtorch_nccl_comm_poll (comm);
      while ((op = g_queue_pop_head (&comm->pending)) != NULL)
        {
          complete (op, g_error_copy (error));
          gtorch_nccl_op_unref (op);
        }
    }
}

void
gtorch_nccl_engine_fail (NcclEngine *self, const GError *error, const gint *lost, guint n_lost)
{
  g_autoptr (GPtrArray) comms = NULL;
  GTorchProcessGroup *group;
  guint i;

  g_mutex_lock (&self->lock);
  if (self->failure != NULL)
    {
      g_mutex_unlock (&self->lock);
      return;
    }
  self->failure = g_error_copy (error);
  g_atomic_int_set (&self->has_failed, TRUE);
  complete_all (self, error);
  comms = g_ptr_array_copy (self->all, NULL, NULL);
  g_cond_broadcast (&self->changed);
  group = g_weak_ref_get (&self->group);
  g_mutex_unlock (&self->lock);
  for (i = 0; i < comms->len; i++)
    gtorch_nccl_messages_drop (comms->pdata[i]);
  gtorch_nccl_local_wake ();
  if (group != NULL)
    {
      for (i = 0; i < n_lost; i++)
        gtorch_process_group_lose (group, lost[i]);
      gtorch_process_group_fail (group, error);
    }
  for (i = 0; i < comms->len; i++)
    gtorch_nccl_comm_abort (self, comms->pdata[i]);
}

/* Tells the ranks that have learned of the failure what this one has found out, in a thread of its own: the
 * store may not answer. */
typedef struct
{
  NcclEngine *engine;
  gchar *text;
} Found;

static gpointer
run_tell_found (gpointer data)
{
  Found *found = data;
  g_autofree gchar *key = g_strconcat (found->engine->prefix, "/found", NULL);
  g_autoptr (GBytes) bytes = g_bytes_new_take (found->text, strlen (found->text));

  gtorch_store_set (found->engine->store, key, bytes, found->engine->listening, NULL);
  gtorch_nccl_engine_unref (found->engine);
  g_free (found);
  return NULL;
}

static void
tell_found (NcclEngine *self, const gchar *text)
{
  Found *found = g_new (Found, 1);

  *found = (Found){ gtorch_nccl_engine_ref (self), g_strdup (text) };
  g_thread_unref (g_thread_new ("gtorch-nccl-tell", run_tell_found, found));
}

void
gtorch_nccl_give_up (NcclEngine *self, NcclOp *op, ncclResult_t state)
{
  const gboolean is_late = state == ncclSuccess;
  g_autofree gchar *report = NULL, *found = NULL, *half = NULL;
  g_autofree gint *lost = NULL;
  g_autoptr (GError) error = NULL;
  guint n_lost = 0;

  g_mutex_lock (&self->lock);
  if (self->is_reporting)
    { /* another thread does */
      g_mutex_unlock (&self->lock);
      return;
    }
  self->is_reporting = TRUE;
  if (op->is_posted)
    half = g_strdup_printf (op->collective->kind == GTORCH_COLLECTIVE_SEND
                                ? _ ("rank %d has not come to receive it")
                                : _ ("rank %d has not come to send it"),
                            op->collective->root);
  g_mutex_unlock (&self->lock);
  if (is_late)
    report = g_strdup_printf (_ ("%s: rank %d waited %g seconds for the other ranks in operation "
                                 "%" PRIu64 " of the group"),
                              op->name, self->rank, op->timeout, op->sequence);
  else
    report = g_strdup_printf (_ ("%s: rank %d, operation %" PRIu64 " of the group: %s"), op->name,
                              self->rank, op->sequence, gtorch_nccl.ncclGetErrorString (state));
  found =
      gtorch_roll_inquire (self->roll, report, op->is_message ? 0 : op->sequence, &lost, &n_lost);
  if (is_late)
    error =
        g_error_new (G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s: %s", report,
                     *found != '\0' ? found
                     : half != NULL ? half
                                    : _ ("all ranks have begun it by now: one came late, what they "
                                         "have called differs, or a GPU hangs"));
  else
    error = g_error_new (GTORCH_ERROR, GTORCH_ERROR_CUDA, "%s%s%s", report,
                         *found != '\0' ? ": " : "", found);
  tell_found (self, error->message);
  gtorch_nccl_engine_fail (self, error, lost, n_lost);
}

/* --- the threads --- */

static void
stay_apart (void)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
}

/* Completes what is done; returns a reference to an operation that must be given up, if there is one. The
 * lock must be held. */
static NcclOp *
look (NcclEngine *self, ncclResult_t *state)
{
  guint i;

  for (i = 0; i < self->all->len; i++)
    {
      NcclComm *comm = self->all->pdata[i];
      NcclOp *op;

      self->looked = g_get_monotonic_time ();
      op = gtorch_nccl_comm_poll (comm);
      if (op == NULL)
        continue;
      *state = ncclSuccess;
      if (comm->comm != NULL && gtorch_nccl.ncclCommGetAsyncError (comm->comm, state) == ncclSuccess
          && *state != ncclSuccess && *state != ncclInProgress)
        return gtorch_nccl_op_ref (op);
      *state = ncclSuccess;
      if (op->timeout < 1e9
          && g_get_monotonic_time () > op->started + (gint64) (op->timeout * G_USEC_PER_SEC))
        return gtorch_nccl_op_ref (op);
    }
  return NULL;
}

/* The lock is not released. */
static gboolean
has_none (NcclEngine *self)
{
  guint i;

  for (i = 0; i < self->all->len; i++)
    if (!g_queue_is_empty (&((NcclComm *) self->all->pdata[i])->pending))
      return FALSE;
  return TRUE;
}

/* Waits for an operation. */
static void
rest (NcclEngine *self)
{
  gtorch_nccl_clock_remove (self);
  self->is_resting = TRUE;
  g_cond_wait (&self->changed, &self->lock);
  self->is_resting = FALSE;
  gtorch_nccl_clock_add (self);
}

static gpointer
watch (gpointer data)
{
  NcclEngine *self = data;
  gboolean is_left;

  stay_apart ();
  g_mutex_lock (&self->lock);
  gtorch_nccl_clock_add (self);
  while (TRUE)
    {
      ncclResult_t state = ncclSuccess;
      NcclOp *op = look (self, &state);

      if (op != NULL)
        {
          g_mutex_unlock (&self->lock);
          gtorch_nccl_give_up (self, op, state);
          gtorch_nccl_op_unref (op);
          g_mutex_lock (&self->lock);
        }
      if (self->failure != NULL) /* an operation may have begun meanwhile */
        complete_all (self, self->failure);
      if (has_none (self) && self->is_closed)
        break;
      if (has_none (self))
        rest (self);
      else
        g_cond_wait_until (&self->changed, &self->lock, g_get_monotonic_time () + INTERVAL);
    }
  gtorch_nccl_clock_remove (self);
  is_left = self->is_left;
  g_mutex_unlock (&self->lock);
  if (is_left)
    gtorch_nccl_engine_close (self);
  gtorch_nccl_engine_unref (self);
  if (is_left)
    gtorch_nccl_end_add (-1);
  return NULL;
}

/* Waits for another rank to fail. */
static gpointer
listen (gpointer data)
{
  NcclEngine *self = data;
  g_autofree gchar *key = gtorch_roll_get_key (self->roll);
  g_autofree gchar *found = g_strconcat (self->prefix, "/found", NULL);
  const gchar *const keys[] = { key, NULL }, *const more[] = { found, NULL };
  g_autoptr (GBytes) bytes = NULL, known = NULL;
  g_autoptr (GError) error = NULL;
  gboolean is_own, is_waited_for;

  stay_apart ();
  if (gtorch_store_wait (self->store, keys, 1e8, self->listening, NULL))
    bytes = gtorch_store_get (self->store, key, self->listening, NULL);
  g_mutex_lock (&self->lock);
  is_own = self->is_reporting;
  g_mutex_unlock (&self->lock);
  if (bytes != NULL && !is_own)
    {
      gtorch_roll_post (self->roll, self->listening);
      /* the rank that has given up asks all others, and tells then which of them do not answer */
      if (gtorch_store_wait (self->store, more, gtorch_roll_get_answer_time () + 0.5,
                             self->listening, NULL))
        known = gtorch_store_get (self->store, found, self->listening, NULL);
      if (known == NULL)
        known = g_bytes_ref (bytes);
    }
  if (known != NULL)
    {
      error = g_error_new (GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("another rank has failed: %.*s"),
                           (gint) g_bytes_get_size (known),
                           (const gchar *) g_bytes_get_data (known, NULL));
      gtorch_nccl_engine_fail (self, error, NULL, 0);
    }
  g_mutex_lock (&self->lock);
  self->is_listening = FALSE;
  is_waited_for = self->is_closed;
  g_mutex_unlock (&self->lock);
  gtorch_nccl_engine_unref (self);
  if (is_waited_for)
    gtorch_nccl_end_add (-1);
  return NULL;
}

void
gtorch_nccl_watch (NcclEngine *self)
{
  if (self->watch != NULL)
    return;
  self->watch = g_thread_new ("gtorch-nccl", watch, gtorch_nccl_engine_ref (self));
  self->is_listening = self->size > 1;
  if (self->is_listening)
    g_thread_unref (g_thread_new ("gtorch-nccl-ear", listen, gtorch_nccl_engine_ref (self)));
}
