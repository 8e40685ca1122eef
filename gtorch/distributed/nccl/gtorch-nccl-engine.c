/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Collectives of tensors on GPUs by NCCL. Each communicator has a stream, on which its operations wait for
 * the current stream's work; gtorch_work_wait () makes the current stream wait for them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "distributed/nccl/gtorch-nccl-private.h"

#define N_UNASKED 16 /* operations that are begun before the GPU is asked which are over */

NcclEngine *
gtorch_nccl_engine_ref (NcclEngine *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_nccl_engine_unref (NcclEngine *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_ptr_array_unref (self->all);
  g_hash_table_unref (self->comms);
  g_clear_pointer (&self->batch, g_ptr_array_unref);
  gtorch_roll_unref (self->roll);
  g_clear_object (&self->store);
  g_clear_object (&self->listening);
  g_clear_error (&self->failure);
  g_weak_ref_clear (&self->group);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->make_lock);
  g_cond_clear (&self->changed);
  g_free (self->prefix);
  g_free (self);
}

static gboolean
is_idle (NcclEngine *self)
{
  guint i;

  for (i = 0; i < self->all->len; i++)
    if (gtorch_nccl_comm_poll (self->all->pdata[i]) != NULL)
      return FALSE;
  return TRUE;
}

/* Waits for the watching thread if that has nothing to wait for; otherwise it ends by itself, and frees the
 * communicators. */
static void
nccl_free (GTorchEngine *engine)
{
  NcclEngine *self = (NcclEngine *) engine;
  GThread *thread;
  gboolean ends_now;

  g_mutex_lock (&self->lock);
  self->is_closed = TRUE;
  thread = g_steal_pointer (&self->watch);
  ends_now = is_idle (self);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (self->listening);
  if (thread != NULL && ends_now && thread != g_thread_self ())
    g_thread_join (thread);
  else if (thread != NULL)
    g_thread_unref (thread);
  gtorch_nccl_engine_unref (self);
}

static NcclEngine *
engine_new (GTorchStore *store, const gchar *prefix, gint rank, gint size, gint world_rank,
            gdouble timeout)
{
  NcclEngine *self = g_new0 (NcclEngine, 1);

  self->parent.klass = &gtorch_nccl_engine;
  self->ref_count = 1;
  self->rank = rank;
  self->size = size;
  self->world_rank = world_rank;
  self->store = g_object_ref (store);
  self->prefix = g_strdup (prefix);
  self->roll = gtorch_roll_new (store, prefix, rank, size);
  self->timeout = timeout;
  self->listening = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_mutex_init (&self->make_lock);
  g_cond_init (&self->changed);
  g_weak_ref_init (&self->group, NULL);
  self->comms = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, gtorch_nccl_comm_free);
  self->all = g_ptr_array_new ();
  return self;
}

static GTorchEngine *
nccl_new_world (GTorchStore *store, gint *rank, gint *size, gdouble timeout,
                GCancellable *cancellable, GError **error)
{
  g_autofree gchar *key = NULL, *prefix = NULL;
  gint64 number;

  if (store == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("nccl: there is no store, by which the ranks find each other"));
  else if (*size < 1 || *rank < 0 || *rank >= *size)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("nccl: this is rank %d of %d; ranks are from 0 to their number less 1, and "
                    "both must be given"),
                 *rank, *size);
  else if (gtorch_nccl_load (error))
    {
      /* counted by rank: several ranks may be threads of one process */
      key = g_strdup_printf ("nccl-worlds-of-%d-%d", *rank, *size);
      if (!gtorch_store_add (store, key, 1, &number, cancellable, error))
        return NULL;
      prefix = g_strdup_printf ("nccl/%d/%" PRId64, *size, number);
      return &engine_new (store, prefix, *rank, *size, *rank, timeout)->parent;
    }
  return NULL;
}

static GTorchEngine *
nccl_new_part (GTorchEngine *engine, const gint *ranks, guint n, guint number, gdouble timeout,
               GCancellable *cancellable, GError **error)
{
  NcclEngine *whole = (NcclEngine *) engine, *self;
  g_autofree gchar *prefix = g_strdup_printf ("%s/part%u", whole->prefix, number);
  gint rank = 0;
  guint i;

  for (i = 0; i < n; i++)
    if (ranks[i] == whole->world_rank)
      rank = (gint) i;
  self = engine_new (whole->store, prefix, rank, (gint) n, whole->world_rank, timeout);
  self->device = whole->device;
  return &self->parent;
}

/* --- communicators --- */

/* The lock must be held. */
static gboolean
check_failure (NcclEngine *self, const gchar *name, GError **error)
{
  if (self->failure == NULL)
    return TRUE;
  g_set_error (error, self->failure->domain, self->failure->code,
               _ ("%s: the group has failed, and begins no further operation: %s"), name,
               self->failure->message);
  return FALSE;
}

static NcclComm *
find_comm (NcclEngine *self, const gchar *name)
{
  NcclComm *comm;

  g_mutex_lock (&self->lock);
  comm = g_hash_table_lookup (self->comms, name);
  g_mutex_unlock (&self->lock);
  return comm;
}

static void
add_comm (NcclEngine *self, const gchar *name, NcclComm *comm)
{
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->comms, g_strdup (name), comm);
  g_ptr_array_add (self->all, comm);
  if (self->device == NULL)
    self->device = comm->device;
  g_mutex_unlock (&self->lock);
}

/* Ranks are connected by calls that cannot be captured. */
static gboolean
allow_making (GTorchDevice *device, GError **error)
{
  if (!gtorch_stream_is_capturing (gtorch_stream_get_current (device)))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("the ranks are not connected yet: call the operation once before the capture"));
  return FALSE;
}

/* That of all ranks, for tensors on the device. */
static NcclComm *
get_main (NcclEngine *self, GTorchDevice *device, gdouble timeout, GCancellable *cancellable,
          GError **error)
{
  const gchar *name = gtorch_device_name (device);
  NcclComm *comm = find_comm (self, name);
  g_autofree gchar *key = NULL;

  if (G_LIKELY (comm != NULL))
    return comm;
  g_mutex_lock (&self->make_lock);
  comm = find_comm (self, name);
  if (comm == NULL && allow_making (device, error))
    {
      key = g_strdup_printf ("all%u", self->n_main);
      comm = gtorch_nccl_comm_new (self, key, self->rank, self->size, device, timeout, cancellable,
                                   error);
      if (comm != NULL)
        {
          self->n_main++;
          add_comm (self, name, comm);
        }
    }
  g_mutex_unlock (&self->make_lock);
  return comm;
}

/* Those of two ranks have one for each direction, so that neither waits for the other's. Both are made at
 * once: the first call of one rank may be a send and that of the other one too. */
static NcclComm *
get_pair (NcclEngine *self, gint other, gboolean is_send, GTorchDevice *device, gdouble timeout,
          GError **error)
{
  const gint low = MIN (self->rank, other), high = MAX (self->rank, other);
  const gboolean is_up = is_send == (self->rank == low);
  NcclComm *result = NULL;
  gint i;

  g_mutex_lock (&self->make_lock);
  for (i = 0; i < 2; i++)
    {
      g_autofree gchar *key = g_strdup_printf ("pair%d-%d-%d", low, high, i);
      g_autofree gchar *name = g_strdup_printf ("%s/%s", gtorch_device_name (device), key);
      NcclComm *comm = find_comm (self, name);

      if (comm == NULL)
        {
          comm = !allow_making (device, error)
                     ? NULL
                     : gtorch_nccl_comm_new (self, key, self->rank != low, 2, device, timeout, NULL,
                                             error);
          if (comm == NULL)
            {
              result = NULL;
              break;
            }
          add_comm (self, name, comm);
        }
      if (i == !is_up)
        result = comm;
    }
  g_mutex_unlock (&self->make_lock);
  return result;
}

static GTorchDevice *
device_of (NcclEngine *self, const GTorchCollective *collective, GError **error)
{
  GPtrArray *lists[] = { collective->outputs, collective->inputs };
  GTorchDevice *device = NULL;
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (lists); i++)
    for (k = 0; k < lists[i]->len; k++)
      {
        GTorchDevice *own = gtorch_impl_device (lists[i]->pdata[k]);

        if (device != NULL && device != own)
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                         _ ("%s: the tensors are on %s and %s; they are on one GPU"),
                         collective->name, gtorch_device_name (device), gtorch_device_name (own));
            return NULL;
          }
        device = own;
      }
  if (device == NULL)
    {
      g_mutex_lock (&self->lock);
      device = self->device;
      g_mutex_unlock (&self->lock);
    }
  return device != NULL ? device : gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, error);
}

/* --- work --- */

static void
work_poll (GTorchWorkState *state)
{
  NcclOp *op = state->data;

  g_mutex_lock (&op->engine->lock);
  gtorch_nccl_op_poll (op);
  g_mutex_unlock (&op->engine->lock);
}

/* A reference to the fence, or NULL if the operation was not launched. */
static GTorchFence *
dup_fence (NcclOp *op, GError **failure)
{
  GTorchFence *fence;

  g_mutex_lock (&op->engine->lock);
  fence = op->fence == NULL ? NULL : gtorch_fence_ref (op->fence);
  if (fence == NULL && failure != NULL && op->engine->failure != NULL)
    *failure = g_error_copy (op->engine->failure);
  g_mutex_unlock (&op->engine->lock);
  return fence;
}

static gboolean
work_join (GTorchWorkState *state, gint64 deadline, GCancellable *cancellable, GError **error)
{
  NcclOp *op = state->data;
  g_autoptr (GTorchStream) current = NULL;
  GTorchFence *fence = dup_fence (op, NULL);
  gboolean result;

  if (fence == NULL && g_atomic_int_get (&op->is_posted))
    {
      GError *failure = NULL;

      if (!gtorch_nccl_messages_wait (op, deadline, cancellable, error))
        return FALSE;
      fence = dup_fence (op, &failure);
      if (failure != NULL)
        g_propagate_error (error, failure);
      if (fence == NULL)
        return failure == NULL;
    }
  if (fence == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the operation is part of a batch that has not ended"), op->name);
      return FALSE;
    }
  current = g_object_ref (gtorch_stream_get_current (op->comm->device));
  result = gtorch_stream_wait_fence (current, fence, error);
  gtorch_fence_unref (fence);
  return result;
}

static gboolean
work_blocks (GTorchWorkState *state)
{
  const NcclOp *op = state->data;

  return op->is_barrier && !op->is_captured;
}

static const GTorchWorkBackend work_backend = { work_poll, work_join, work_blocks,
                                                gtorch_nccl_op_unref };

static NcclOp *
op_new (NcclEngine *self, NcclComm *comm, GTorchProcessGroup *group, GTorchCollective *collective,
        gboolean is_pair, GTorchWork *work)
{
  GTorchWorkState *state = gtorch_work_get_state (work);
  NcclOp *op = g_new0 (NcclOp, 1);

  op->ref_count = 1;
  op->engine = gtorch_nccl_engine_ref (self);
  op->comm = comm;
  op->collective = collective;
  op->name = collective->name;
  op->sequence = state->sequence;
  op->work = gtorch_work_state_ref (state);
  op->timeout = gtorch_process_group_get_timeout (group);
  op->is_barrier = collective->kind == GTORCH_COLLECTIVE_BARRIER;
  if (collective->kind == GTORCH_COLLECTIVE_RECEIVE)
    g_atomic_int_set (&state->source, collective->root);
  op->is_sent = collective->kind == GTORCH_COLLECTIVE_SEND;
  op->is_message = op->is_sent || collective->kind == GTORCH_COLLECTIVE_RECEIVE;
  /* in a communicator of two ranks, the other one is the one that this is not */
  op->peer = is_pair ? 1 - comm->rank : collective->root;
  state->backend = &work_backend;
  state->data = gtorch_nccl_op_ref (op);
  return op;
}

/* --- enqueueing --- */

gboolean
gtorch_nccl_come_after (NcclComm *comm, GTorchStream *stream, GError **error)
{
  GTorchFence *fence = gtorch_stream_record_fence (stream, 0, error);
  gboolean result;

  if (fence == NULL)
    return FALSE;
  result = gtorch_stream_wait_fence (comm->stream, fence, error);
  gtorch_fence_unref (fence);
  return result;
}

static void
use (GPtrArray *impls, GTorchCudaLane *lane, gboolean is_written)
{
  guint i;

  for (i = 0; i < impls->len; i++)
    {
      GTorchStorage *storage = ((GTorchImpl *) impls->pdata[i])->storage;

      gtorch_cuda_use_storage (storage, lane);
      if (is_written)
        g_atomic_int_inc (&storage->version);
    }
}

void
gtorch_nccl_use (NcclOp *op, gboolean is_written)
{
  GTorchCudaLane *lane = GTORCH_CUDA_STREAM (op->comm->stream)->lane;

  use (op->collective->inputs, lane, FALSE);
  use (op->collective->outputs, lane, is_written);
}

/* Enters NCCL, unless the group has failed; from now on the operations are watched. */
static gboolean
enter (NcclEngine *self, NcclComm *comm, NcclOp *const *ops, guint n, gboolean is_captured,
       GError **error)
{
  guint i;

  g_mutex_lock (&self->lock);
  if (!check_failure (self, ops[0]->name, error))
    {
      g_mutex_unlock (&self->lock);
      return FALSE;
    }
  comm->n_calls++;
  for (i = 0; i < n; i++)
    {
      ops[i]->started = g_get_monotonic_time ();
      ops[i]->is_captured = is_captured;
      if (!ops[i]->is_message)
        gtorch_roll_begin (self->roll, ops[i]->sequence, ops[i]->name);
      if (!is_captured)
        g_queue_push_tail (&comm->pending, gtorch_nccl_op_ref (ops[i]));
    }
  gtorch_nccl_watch (self);
  if (self->is_resting)
    {
      self->is_resting = FALSE;
      g_cond_broadcast (&self->changed);
    }
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static void
leave (NcclEngine *self, NcclComm *comm, NcclOp *const *ops, guint n, GTorchFence *fence)
{
  guint i;

  g_mutex_lock (&self->lock);
  comm->n_calls--;
  for (i = 0; i < n; i++)
    {
      if (fence != NULL)
        ops[i]->fence = gtorch_fence_ref (fence);
      else if (g_queue_remove (&comm->pending, ops[i]))
        gtorch_nccl_op_unref (ops[i]);
      g_clear_pointer (&ops[i]->collective, gtorch_collective_free);
    }
  if (g_queue_get_length (&comm->pending) % N_UNASKED == 0) /* what is done gives back its memory */
    gtorch_nccl_comm_poll (comm);
  if (self->failure != NULL)
    g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
make_token (NcclComm *comm, GError **error)
{
  const gint64 one = 1;

  if (comm->token == NULL)
    comm->token = gtorch_impl_new (comm->device, GTORCH_DTYPE_FLOAT32, &one, 1, error);
  return comm->token != NULL;
}

/* --- graphs --- */

/* A communicator whose collectives a graph has. Ranks that are threads of this process launch the graph
 * together. */
typedef struct
{
  NcclEngine *engine;
  NcclComm *comm;
} Party;

static void
party_free (gpointer data)
{
  Party *party = data;

  gtorch_nccl_engine_unref (party->engine);
  g_free (party);
}

/* The same order for all ranks. */
static gint
party_compare (gconstpointer a, gconstpointer b)
{
  const Party *first = *(Party *const *) a, *second = *(Party *const *) b;

  return gtorch_nccl_local_compare (first->comm, second->comm);
}

static gdouble
timeout_of (NcclEngine *self)
{
  g_autoptr (GTorchProcessGroup) group = g_weak_ref_get (&self->group);

  return group != NULL ? gtorch_process_group_get_timeout (group) : self->timeout;
}

/* Returns how many have met. */
static guint
meet_parties (GPtrArray *parties, GError **error)
{
  guint i;

  for (i = 0; i < parties->len; i++)
    {
      const Party *party = parties->pdata[i];
      const gdouble timeout = timeout_of (party->engine);
      const gint64 deadline = timeout < 1e9
                                  ? g_get_monotonic_time () + (gint64) (timeout * G_USEC_PER_SEC)
                                  : G_MAXINT64;
      g_autofree gchar *missing = NULL;

      if (gtorch_nccl_local_meet (party->comm, party->engine, deadline, &missing))
        continue;
      g_mutex_lock (&party->engine->lock);
      if (check_failure (party->engine, "graph", error))
        g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                     _ ("graph: rank %d waited %g seconds for the other ranks to launch the "
                        "collectives of the graph; not there: %s"),
                     party->engine->rank, timeout, missing);
      g_mutex_unlock (&party->engine->lock);
      break;
    }
  return i;
}

static void
parties_end (GPtrArray *parties)
{
  guint i;

  gtorch_cuda_joint_leave ();
  for (i = 0; i < parties->len; i++)
    {
      const Party *party = parties->pdata[i];

      gtorch_nccl_local_launched (party->comm, party->engine);
    }
  gtorch_cuda_joint_end ();
}

static gboolean
parties_begin (GPtrArray *parties, GError **error)
{
  const guint n = meet_parties (parties, error);
  guint i;

  for (i = 0; n < parties->len && i < n; i++) /* those do not wait for this one */
    {
      const Party *party = parties->pdata[i];

      gtorch_nccl_local_launched (party->comm, party->engine);
    }
  if (n < parties->len)
    return FALSE;
  gtorch_cuda_joint_begin ();
  return TRUE;
}

static const GTorchLaunchParties party_class = { parties_begin, parties_end, party_compare,
                                                 party_free };

static void
add_party (GTorchCapture *capture, NcclOp *op)
{
  Party *party;

  if (op->is_message || !gtorch_nccl_local_has (op->comm, -1))
    return;
  party = g_new (Party, 1);
  *party = (Party){ gtorch_nccl_engine_ref (op->engine), op->comm };
  GTORCH_CAPTURE_BASE (capture)->klass->add_party (capture, &party_class, party);
}

/* Adds the operations to the graph that the capture makes. */
static gboolean
add_to_graph (GTorchCapture *capture, NcclComm *comm, NcclOp *const *ops, guint n, GError **error)
{
  g_autoptr (GPtrArray) tokens = g_ptr_array_new ();
  gboolean result = TRUE;
  guint i;

  g_ptr_array_add (tokens, comm->token);
  for (i = 0; result && i < n; i++)
    {
      const GTorchCollective *collective = ops[i]->collective;
      g_autoptr (GPtrArray) read = g_ptr_array_new ();

      g_ptr_array_extend (read, collective->inputs, NULL, NULL);
      add_party (capture, ops[i]);
      if (gtorch_nccl_reads_outputs (collective))
        g_ptr_array_extend (read, collective->outputs, NULL, NULL);
      result =
          GTORCH_CAPTURE_BASE (capture)->klass->add_work (capture, comm->stream, ops[i]->name, read,
                                                          ops[i]->is_barrier ? tokens
                                                                             : collective->outputs,
                                                          error);
    }
  return result;
}

/* Completes a captured operation when its capture has ended. */
static void
capture_ended (gpointer data)
{
  NcclOp *op = data;

  g_mutex_lock (&op->engine->lock);
  gtorch_nccl_op_poll (op);
  g_mutex_unlock (&op->engine->lock);
  gtorch_nccl_op_unref (op);
}

static gboolean
issue (NcclComm *comm, NcclOp *const *ops, guint n, GTorchStream *current, GTorchFence **fence,
       GError **error)
{
  GTorchCudaLane *lane = GTORCH_CUDA_STREAM (comm->stream)->lane;
  g_autoptr (GTorchCapture) capture = NULL;
  gboolean result;
  guint i;
  GTORCH_CUDA_APART;

  if (!gtorch_nccl_come_after (comm, current, error)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (comm->device), error))
    return FALSE;
  capture = gtorch_stream_dup_capture (comm->stream);
  if (capture != NULL
      && !GTORCH_CAPTURE_BASE (capture)->klass->begin_work (capture, comm->stream, error))
    return FALSE;
  for (i = 0; i < n; i++)
    gtorch_nccl_use (ops[i], TRUE);
  gtorch_cuda_note_begin (lane, ops[0]->name);
  result = gtorch_nccl_issue (ops, n, error);
  gtorch_cuda_note_end (lane, result);
  if (capture != NULL)
    {
      result = result && add_to_graph (capture, comm, ops, n, error);
      GTORCH_CAPTURE_BASE (capture)->klass->end_work (capture, comm->stream);
    }
  if (result)
    *fence = gtorch_stream_record_fence (comm->stream, 0, error);
  return result && *fence != NULL;
}

/* Ends an operation that will not be enqueued. */
static void
end_op (NcclOp *op, const GError *error)
{
  g_autoptr (GTorchWorkState) work = NULL;

  g_mutex_lock (&op->engine->lock);
  work = g_steal_pointer (&op->work);
  g_mutex_unlock (&op->engine->lock);
  if (work != NULL)
    gtorch_work_state_complete (work, g_error_copy (error));
}

/* After an error of NCCL or the driver, other ranks wait for this one: they are told. */
static void
fail_here (NcclEngine *self, NcclOp *const *ops, guint n, GError *local, GError **error)
{
  NcclOp *op = ops[0];
  g_autofree gchar *key = gtorch_roll_get_key (self->roll);
  g_autofree gchar *found = g_strconcat (self->prefix, "/found", NULL);
  g_autoptr (GBytes) report = NULL;
  gboolean is_first;
  guint i;

  g_mutex_lock (&self->lock);
  is_first = self->failure == NULL;
  if (!is_first) /* the call was ended by that */
    {
      g_error_free (local);
      local = g_error_copy (self->failure);
    }
  else
    {
      self->is_reporting = TRUE;
      if (!g_str_has_prefix (local->message, op->name))
        g_prefix_error (&local, "%s: ", op->name);
      g_prefix_error (&local, _ ("rank %d, operation %" PRIu64 " of the group: "), self->rank,
                      op->sequence);
    }
  g_mutex_unlock (&self->lock);
  report = g_bytes_new (local->message, strlen (local->message));
  if (is_first && self->size > 1
      && gtorch_store_set (self->store, found, report, self->listening, NULL))
    gtorch_store_set (self->store, key, report, self->listening, NULL);
  if (is_first)
    gtorch_nccl_engine_fail (self, local, NULL, 0);
  for (i = 0; i < n; i++)
    end_op (ops[i], local);
  g_propagate_error (error, local);
}

/* Launches them together with the other threads of this process that are ranks. If the group fails before all
 * have come, that has completed the operations, and their works have the error. */
static gboolean
issue_together (NcclEngine *self, NcclComm *comm, NcclOp *const *ops, guint n,
                GTorchStream *current, GTorchFence **fence, GError **error)
{
  gboolean result;

  if (!gtorch_nccl_local_meet (comm, self, G_MAXINT64, NULL))
    return TRUE;
  gtorch_cuda_joint_begin ();
  result = issue (comm, ops, n, current, fence, error);
  gtorch_cuda_joint_leave ();
  gtorch_nccl_local_launched (comm, self);
  gtorch_cuda_joint_end ();
  return result;
}

/* Messages to and from other threads of this process find their other halves; what else there is, is launched
 * now. */
static gboolean
sort_and_issue (NcclEngine *self, NcclComm *comm, NcclOp *const *ops, guint n,
                GTorchStream *current, GError **error)
{
  g_autoptr (GPtrArray) near = g_ptr_array_new (), rest = g_ptr_array_new ();
  GTorchFence *fence = NULL;
  gboolean has_collective = FALSE, result;
  guint i;

  for (i = 0; i < n; i++)
    {
      g_ptr_array_add (ops[i]->is_message && gtorch_nccl_local_has (comm, ops[i]->peer) ? near
                                                                                        : rest,
                       ops[i]);
      has_collective |= !ops[i]->is_message;
    }
  /* messages first: they wait for nobody */
  result =
      near->len == 0
      || gtorch_nccl_messages_post (comm, (NcclOp *const *) near->pdata, near->len, current, error);
  if (result && rest->len > 0)
    result = has_collective
                 ? issue_together (self, comm, (NcclOp *const *) rest->pdata, rest->len, current,
                                   &fence, error)
                 : issue (comm, (NcclOp *const *) rest->pdata, rest->len, current, &fence, error);
  leave (self, comm, (NcclOp *const *) rest->pdata, rest->len, fence);
  g_clear_pointer (&fence, gtorch_fence_unref);
  return result;
}

static gboolean
launch (NcclEngine *self, NcclComm *comm, NcclOp *const *ops, guint n, GError **error)
{
  g_autoptr (GTorchStream) current = g_object_ref (gtorch_stream_get_current (comm->device));
  const gboolean is_captured = gtorch_stream_is_capturing (current);
  GTorchFence *fence = NULL;
  GError *local = NULL;
  gboolean has_message = FALSE, result;
  guint i;

  for (i = 0; i < n; i++)
    has_message |= ops[i]->is_message;
  if (ops[0]->is_barrier && !make_token (comm, error))
    return FALSE;
  if (!enter (self, comm, ops, n, is_captured, error))
    return FALSE;
  if (has_message && !is_captured)
    result = sort_and_issue (self, comm, ops, n, current, &local);
  else
    {
      result = is_captured ? issue (comm, ops, n, current, &fence, &local)
                           : issue_together (self, comm, ops, n, current, &fence, &local);
      leave (self, comm, ops, n, fence);
    }
  for (i = 0; result && is_captured && i < n; i++)
    gtorch_fence_add_callback (fence, capture_ended, gtorch_nccl_op_ref (ops[i]));
  g_clear_pointer (&fence, gtorch_fence_unref);
  if (!result)
    fail_here (self, ops, n, local, error);
  return result;
}

static gboolean
nccl_start (GTorchEngine *engine, GTorchProcessGroup *group, GTorchCollective *collective,
            GTorchWork *work, GError **error)
{
  NcclEngine *self = (NcclEngine *) engine;
  g_autoptr (GTorchCollective) owned = collective;
  const gdouble timeout = gtorch_process_group_get_timeout (group);
  const gboolean is_send = collective->kind == GTORCH_COLLECTIVE_SEND;
  const gboolean is_pair =
      self->batch == NULL && (is_send || collective->kind == GTORCH_COLLECTIVE_RECEIVE);
  GTorchDevice *device = device_of (self, collective, error);
  NcclComm *comm;
  gboolean result;
  NcclOp *op;

  if (device == NULL || !gtorch_nccl_can_run (collective, error))
    return FALSE;
  g_mutex_lock (&self->lock);
  result = check_failure (self, collective->name, error);
  g_mutex_unlock (&self->lock);
  if (!result)
    return FALSE;
  if (self->of != group)
    {
      self->of = group;
      g_weak_ref_set (&self->group, group);
    }
  comm = is_pair ? get_pair (self, collective->root, is_send, device, timeout, error)
                 : get_main (self, device, timeout, NULL, error);
  if (comm == NULL)
    {
      g_prefix_error (error, "%s: ", collective->name);
      return FALSE;
    }
  op = op_new (self, comm, group, g_steal_pointer (&owned), is_pair, work);
  if (self->batch != NULL)
    {
      g_ptr_array_add (self->batch, op);
      return TRUE;
    }
  result = launch (self, comm, &op, 1, error);
  gtorch_nccl_op_unref (op);
  return result;
}

static gboolean
nccl_begin_batch (GTorchEngine *engine, GError **error)
{
  NcclEngine *self = (NcclEngine *) engine;

  if (self->batch == NULL)
    {
      self->batch = g_ptr_array_new_with_free_func (gtorch_nccl_op_unref);
      engine->in_batch = TRUE;
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("nccl: a batch has begun already; they cannot be within each other"));
  return FALSE;
}

static gboolean
nccl_end_batch (GTorchEngine *engine, GError **error)
{
  NcclEngine *self = (NcclEngine *) engine;
  g_autoptr (GPtrArray) batch = g_steal_pointer (&self->batch);
  GError *local = NULL;
  guint i, n;

  engine->in_batch = FALSE;
  for (i = 0; batch != NULL && i < batch->len; i += n)
    {
      NcclOp *const *ops = (NcclOp *const *) batch->pdata + i;

      for (n = 1; i + n < batch->len && ops[n]->comm == ops[0]->comm; n++)
        ;
      if (!launch (self, ops[0]->comm, ops, n, &local))
        break;
    }
  if (local == NULL)
    return TRUE;
  for (; i < batch->len; i++)
    end_op (batch->pdata[i], local);
  g_propagate_error (error, local);
  return FALSE;
}

static void
nccl_drop_batch (GTorchEngine *engine, const GError *reason)
{
  NcclEngine *self = (NcclEngine *) engine;
  g_autoptr (GPtrArray) batch = g_steal_pointer (&self->batch);
  guint i;

  engine->in_batch = FALSE;
  for (i = 0; i < batch->len; i++)
    end_op (batch->pdata[i], reason);
}

static gboolean
nccl_bind (GTorchEngine *engine, GTorchProcessGroup *group, GTorchDevice *device,
           GCancellable *cancellable, GError **error)
{
  NcclEngine *self = (NcclEngine *) engine;

  g_weak_ref_set (&self->group, group);
  if (get_main (self, device, gtorch_process_group_get_timeout (group), cancellable, error) == NULL)
    return FALSE;
  g_mutex_lock (&self->lock);
  self->device = device;
  gtorch_nccl_watch (self);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static void
nccl_abort (GTorchEngine *engine, const GError *reason)
{
  gtorch_nccl_engine_fail ((NcclEngine *) engine, reason, NULL, 0);
}

const GTorchEngineClass gtorch_nccl_engine = { .name = "nccl",
                                               .device_type = GTORCH_DEVICE_TYPE_CUDA,
                                               .is_available = gtorch_nccl_load,
                                               .new_world = nccl_new_world,
                                               .new_part = nccl_new_part,
                                               .free = nccl_free,
                                               .start = nccl_start,
                                               .bind = nccl_bind,
                                               .abort = nccl_abort,
                                               .begin_batch = nccl_begin_batch,
                                               .end_batch = nccl_end_batch,
                                               .drop_batch = nccl_drop_batch,
                                               .has_factor = TRUE };

static void __attribute__ ((constructor)) gtorch_nccl_register (void)
{
  gtorch_engine_register (&gtorch_nccl_engine);
}
