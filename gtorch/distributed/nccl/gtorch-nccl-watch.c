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

#define INTERVAL    (50 * G_TIME_SPAN_MILLISECOND) /* between two looks at the operations */
#define ANSWER_TIME 1.5                  /* seconds for the other ranks to tell how far they are */
#define GIVE_UP     (2 * G_USEC_PER_SEC) /* for how long the store may take for all of that */

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

/* --- asking the other ranks --- */

typedef struct
{
  gint ref_count;
  NcclEngine *engine;
  GCancellable *cancellable;
  gchar *report;    /* what this rank tells the others */
  guint64 sequence; /* of the operation that is not done; 0: of none */
  GMutex lock;
  GCond changed;
  gboolean is_over;
  GString *found; /* what the others have said */
  GArray *lost;   /* gint: who has said nothing */
} Inquiry;

static void
inquiry_unref (Inquiry *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_nccl_engine_unref (self->engine);
  g_object_unref (self->cancellable);
  g_string_free (self->found, TRUE);
  g_array_unref (self->lost);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->report);
  g_free (self);
}

static gchar *
key_of (NcclEngine *engine, const gchar *what, gint rank)
{
  return g_strdup_printf ("%s/%s/%d", engine->prefix, what, rank);
}

/* Tells how far this rank is: “7 all_reduce”. */
static gboolean
post_state (NcclEngine *engine, GCancellable *cancellable)
{
  g_autofree gchar *key = key_of (engine, "state", engine->rank);
  g_autofree gchar *text = NULL;
  g_autoptr (GBytes) bytes = NULL;

  g_mutex_lock (&engine->lock);
  text = g_strdup_printf ("%" G_GUINT64_FORMAT " %s", engine->n_started,
                          engine->last_name != NULL ? engine->last_name : "-");
  g_mutex_unlock (&engine->lock);
  bytes = g_bytes_new (text, strlen (text));
  return gtorch_store_set (engine->store, key, bytes, cancellable, NULL);
}

static void append (Inquiry *self, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

static void
append (Inquiry *self, const gchar *format, ...)
{
  va_list args;

  if (self->found->len > 0)
    g_string_append (self->found, ", ");
  va_start (args, format);
  g_string_append_vprintf (self->found, format, args);
  va_end (args);
}

static void
read_state (Inquiry *self, const gchar *key, gint rank)
{
  g_autoptr (GBytes) bytes = gtorch_store_get (self->engine->store, key, self->cancellable, NULL);
  g_autofree gchar *text = NULL;
  guint64 started;
  gchar *end;

  if (bytes == NULL)
    return;
  text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  started = g_ascii_strtoull (text, &end, 10);
  if (self->sequence > 0 && started < self->sequence)
    append (self, _ ("rank %d has begun %" PRIu64 " operations only, the last was “%s”"), rank,
            started, *end == ' ' ? end + 1 : end);
}

static void
ask_others (Inquiry *self)
{
  NcclEngine *engine = self->engine;
  g_autofree gchar *failed = g_strconcat (engine->prefix, "/failed", NULL);
  g_autoptr (GBytes) report = g_bytes_new (self->report, strlen (self->report));
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) others = g_array_new (FALSE, FALSE, sizeof (gint));
  gint i;

  for (i = 0; i < engine->size; i++)
    if (i != engine->rank)
      {
        g_ptr_array_add (keys, key_of (engine, "state", i));
        g_array_append_val (others, i);
      }
  g_ptr_array_add (keys, NULL);
  if (!gtorch_store_set (engine->store, failed, report, self->cancellable, NULL)
      || !post_state (engine, self->cancellable))
    {
      append (self, _ ("the store does not answer: the process that serves it may have ended"));
      return;
    }
  gtorch_store_wait (engine->store, (const gchar *const *) keys->pdata, ANSWER_TIME,
                     self->cancellable, NULL);
  for (i = 0; i < (gint) others->len; i++)
    {
      const gchar *const key[] = { keys->pdata[i], NULL };
      gboolean is_there;

      if (!gtorch_store_check (engine->store, key, &is_there, self->cancellable, NULL))
        return;
      if (is_there)
        {
          read_state (self, key[0], g_array_index (others, gint, i));
          continue;
        }
      append (self, _ ("rank %d does not answer: its process has ended or hangs"),
              g_array_index (others, gint, i));
      g_array_append_val (self->lost, g_array_index (others, gint, i));
    }
}

static gpointer
run_inquiry (gpointer data)
{
  Inquiry *self = data;

  ask_others (self);
  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  g_cond_signal (&self->changed);
  g_mutex_unlock (&self->lock);
  inquiry_unref (self);
  return NULL;
}

/* Asks in a thread of its own, since a store whose server is gone may not answer for long. Returns what is
 * known after some time. */
static gchar *
inquire (NcclEngine *engine, const gchar *report, guint64 sequence, gint **lost, guint *n_lost)
{
  const gint64 deadline = g_get_monotonic_time () + GIVE_UP;
  Inquiry *self = g_new0 (Inquiry, 1);
  gchar *result = NULL;

  self->ref_count = 2;
  self->engine = gtorch_nccl_engine_ref (engine);
  self->cancellable = g_cancellable_new ();
  self->report = g_strdup (report);
  self->sequence = sequence;
  self->found = g_string_new (NULL);
  self->lost = g_array_new (FALSE, FALSE, sizeof (gint));
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_thread_unref (g_thread_new ("gtorch-nccl-ask", run_inquiry, self));
  g_mutex_lock (&self->lock);
  while (!self->is_over && g_cond_wait_until (&self->changed, &self->lock, deadline))
    ;
  if (self->is_over)
    {
      *n_lost = self->lost->len;
      *lost = g_memdup2 (self->lost->data, self->lost->len * sizeof (gint));
      result = g_strdup (self->found->str);
    }
  g_mutex_unlock (&self->lock);
  if (result == NULL)
    g_cancellable_cancel (self->cancellable);
  inquiry_unref (self);
  return result != NULL ? result : g_strdup (_ ("the store does not answer"));
}

/* --- failure --- */

static void
abort_comms (NcclEngine *self)
{
  g_autoptr (GPtrArray) comms = NULL;
  guint i;

  g_mutex_lock (&self->lock);
  comms = g_ptr_array_copy (self->all, NULL, NULL);
  g_mutex_unlock (&self->lock);
  for (i = 0; i < comms->len; i++)
    gtorch_nccl_comm_abort (self, comms->pdata[i]);
}

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
  g_cond_broadcast (&self->changed);
  group = g_weak_ref_get (&self->group);
  g_mutex_unlock (&self->lock);
  gtorch_nccl_local_wake ();
  if (group != NULL)
    {
      for (i = 0; i < n_lost; i++)
        gtorch_process_group_lose (group, lost[i]);
      gtorch_process_group_fail (group, error);
    }
  abort_comms (self);
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
  g_autofree gchar *report = NULL, *found = NULL;
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
  g_mutex_unlock (&self->lock);
  if (is_late)
    report = g_strdup_printf (_ ("%s: rank %d waited %g seconds for the other ranks in operation "
                                 "%" PRIu64 " of the group"),
                              op->name, self->rank, op->timeout, op->sequence);
  else
    report = g_strdup_printf (_ ("%s: rank %d, operation %" PRIu64 " of the group: %s"), op->name,
                              self->rank, op->sequence, gtorch_nccl.ncclGetErrorString (state));
  found = inquire (self, report, op->is_message ? 0 : op->sequence, &lost, &n_lost);
  if (is_late)
    error =
        g_error_new (G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s: %s", report,
                     *found != '\0' ? found
                                    : _ ("all ranks have begun it, so that what they have called "
                                         "differs, or a GPU hangs"));
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
  g_mutex_unlock (&self->lock);
  gtorch_nccl_engine_unref (self);
  return NULL;
}

/* Waits for another rank to fail. */
static gpointer
listen (gpointer data)
{
  NcclEngine *self = data;
  g_autofree gchar *key = g_strconcat (self->prefix, "/failed", NULL);
  g_autofree gchar *found = g_strconcat (self->prefix, "/found", NULL);
  const gchar *const keys[] = { key, NULL }, *const more[] = { found, NULL };
  g_autoptr (GBytes) bytes = NULL, known = NULL;
  g_autoptr (GError) error = NULL;
  gboolean is_own;

  stay_apart ();
  if (gtorch_store_wait (self->store, keys, 1e8, self->listening, NULL))
    bytes = gtorch_store_get (self->store, key, self->listening, NULL);
  g_mutex_lock (&self->lock);
  is_own = self->is_reporting;
  g_mutex_unlock (&self->lock);
  if (bytes != NULL && !is_own)
    {
      post_state (self, self->listening);
      /* the rank that has given up asks all others, and tells then which of them do not answer */
      if (gtorch_store_wait (self->store, more, ANSWER_TIME + 0.5, self->listening, NULL))
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
  gtorch_nccl_engine_unref (self);
  return NULL;
}

void
gtorch_nccl_watch (NcclEngine *self)
{
  if (self->watch != NULL)
    return;
  self->watch = g_thread_new ("gtorch-nccl", watch, gtorch_nccl_engine_ref (self));
  if (self->size > 1)
    g_thread_unref (g_thread_new ("gtorch-nccl-ear", listen, gtorch_nccl_engine_ref (self)));
}
