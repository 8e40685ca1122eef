/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Collectives by MPI. They are work of a stream of the CPU that the group owns, so that the order of work,
 * waiting and errors are those of all streams. Sends and receives have streams of their own. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "device/gtorch-device.h"
#include "gtorch-ops-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-calls-private.h"
#include "distributed/gtorch-mpi-calls-private.h"
#include "distributed/gtorch-mpi-engine-private.h"
#include "distributed/gtorch-mpi-meeting-private.h"
#include "distributed/gtorch-mpi-messages-private.h"
#include "distributed/gtorch-roll-private.h"
#include "stream/gtorch-stream-private.h"

#define MESSAGE     512
#define ENDED       "MPI has ended"
#define MAX_COUNT   (1 << 30) /* elements of one transfer; MPI counts in int */
#define N_SPINS     200       /* tests without a pause */
#define FIRST_PAUSE 20        /* microseconds */
#define LAST_PAUSE  1000
#define END_WAIT    (5 * G_TIME_SPAN_SECOND) /* for operations, at the end of the program */
#define END_LOCK    G_TIME_SPAN_SECOND       /* for a thread in a call of MPI, then */

typedef struct
{
  GTorchEngine parent;
  gint ref_count;
  gpointer comm;
  gboolean is_stuck; /* MPI still has an operation: the communicator stays */
  gint rank, size;
  gchar id[GTORCH_MPI_ID]; /* the same on all ranks, and no other group's */
  GTorchStream *stream;
  GTorchMpiMessages *messages;
  GTorchStore *store; /* or NULL */
  gchar *run;         /* what no other run of the job has that uses the store */
  GTorchRoll *roll;   /* NULL without a store */
  gboolean compares;  /* calls with those of the other ranks; of the stream's thread */
  gboolean was_used;  /* the ranks agree on that */
} MpiEngine;

typedef struct
{
  MpiEngine *engine;
  GWeakRef group;
  GTorchCollective *collective;
  GTorchWorkState *work;
  gdouble timeout;
  gint rank;
  gboolean is_left; /* MPI may still use the memory */
  gint *lost;       /* ranks that do not answer */
  guint n_lost;
} Job;

/* MPI may not be called by two threads at a time. */
static GMutex mpi_lock;
static gint world_rank, world_size;
static gint is_over; /* nothing may call MPI any more; written with the lock */
static gint n_jobs;  /* operations that have been enqueued and have not ended */

static void
engine_unref (MpiEngine *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_mpi_messages_free (self->messages);
  g_object_unref (self->stream);
  g_clear_object (&self->store);
  g_free (self->run);
  if (self->roll != NULL)
    gtorch_roll_stop (self->roll);
  g_clear_pointer (&self->roll, gtorch_roll_unref);
  g_mutex_lock (&mpi_lock);
  if (!self->is_stuck && !is_over)
    gtorch_mpi_load (NULL)->comm_free (self->comm);
  g_mutex_unlock (&mpi_lock);
  g_free (self);
}

static void
mpi_free (GTorchEngine *engine)
{
  engine_unref ((MpiEngine *) engine);
}

gboolean
gtorch_mpi_enter (void)
{
  g_mutex_lock (&mpi_lock);
  if (!is_over)
    return TRUE;
  g_mutex_unlock (&mpi_lock);
  return FALSE;
}

void
gtorch_mpi_leave (void)
{
  g_mutex_unlock (&mpi_lock);
}

void
gtorch_mpi_set_ended (GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("mpi: %s"), ENDED);
}

void
gtorch_mpi_pause (guint n_looks)
{
  if (n_looks < N_SPINS)
    g_thread_yield ();
  else
    g_usleep (MIN (FIRST_PAUSE << MIN (n_looks - N_SPINS, 16), LAST_PAUSE));
}

gint64
gtorch_mpi_deadline (gdouble timeout)
{
  return timeout < 1e9 ? g_get_monotonic_time () + (gint64) (timeout * G_USEC_PER_SEC) : G_MAXINT64;
}

/* The store may have keys of a former run. Rank 0 names the run before the ranks meet. */
static gboolean
name_run (GTorchStore *store, gint number, GCancellable *cancellable, GError **error)
{
  g_autofree gchar *key = g_strdup_printf ("mpi/run/%d", number);
  gchar *run = g_uuid_string_random ();
  g_autoptr (GBytes) bytes = g_bytes_new_take (run, strlen (run));

  return gtorch_store_set (store, key, bytes, cancellable, error);
}

/* NULL if the store does not have it: then late ranks are not named. */
static gchar *
find_run (GTorchStore *store, gint number)
{
  g_autofree gchar *key = g_strdup_printf ("mpi/run/%d", number);
  const gchar *const keys[] = { key, NULL };
  g_autoptr (GBytes) bytes = NULL;
  gboolean is_there;

  if (gtorch_store_check (store, keys, &is_there, NULL, NULL) && is_there)
    bytes = gtorch_store_get (store, key, NULL, NULL);
  return bytes == NULL ? NULL
                       : g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
}

static GTorchEngine *
make_engine (GTorchMpiMeeting *meeting, GTorchStore *store, const gchar *run, GError **error)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, error);
  gpointer comm = stream == NULL ? NULL : gtorch_mpi_meet (meeting, error);
  MpiEngine *self;
  guint i;

  if (comm == NULL)
    return NULL;
  self = g_new0 (MpiEngine, 1);
  self->parent.klass = &gtorch_mpi_engine;
  self->ref_count = 1;
  self->comm = comm;
  self->rank = world_rank;
  self->size = (gint) meeting->n;
  g_strlcpy (self->id, meeting->id, sizeof self->id);
  for (i = 0; i < meeting->n && meeting->ranks != NULL; i++)
    if (meeting->ranks[i] == world_rank)
      self->rank = (gint) i;
  if (store != NULL)
    {
      self->store = g_object_ref (store);
      self->run = run == NULL ? find_run (store, meeting->number) : g_strdup (run);
    }
  if (self->run != NULL)
    {
      g_autofree gchar *prefix = g_strdup_printf ("mpi/%s/%s", self->run, self->id);

      self->roll = gtorch_roll_new (store, prefix, self->rank, self->size);
    }
  self->compares = gtorch_group_compares_calls ();
  self->stream = g_steal_pointer (&stream);
  self->messages = gtorch_mpi_messages_new ();
  return &self->parent;
}

/* Of the program, or of MPI: what is left then cannot be taken back, and nobody waits for it. The
 * threads of the streams are not ended: they find that MPI is over. */
static int
before_end (int is_aborted)
{
  const gint64 begin = g_get_monotonic_time ();
  gint n = 0;

  while (!is_aborted && !g_atomic_int_get (&is_over) && g_atomic_int_get (&n_jobs) > 0
         && g_get_monotonic_time () - begin < END_WAIT)
    g_usleep (LAST_PAUSE);
  for (; !g_mutex_trylock (&mpi_lock); g_usleep (LAST_PAUSE))
    if (g_get_monotonic_time () - begin >= END_WAIT + END_LOCK || (is_aborted && ++n >= 100))
      return FALSE;
  n = is_over || is_aborted ? 0 : g_atomic_int_get (&n_jobs);
  g_atomic_int_set (&is_over, TRUE);
  g_mutex_unlock (&mpi_lock);
  if (n > 0)
    g_warning ("mpi: rank %d ends, and has waited %g seconds for other ranks in operations of "
               "groups (%d); these are "
               "abandoned",
               world_rank, END_WAIT / 1e6, n);
  return TRUE;
}

static GTorchEngine *
mpi_new_world (GTorchStore *store, gint *rank, gint *size, gdouble timeout,
               GCancellable *cancellable, GError **error)
{
  static gint n_worlds;
  GTorchMpiMeeting meeting = { .name = "process_group",
                               .whole = "",
                               .timeout = timeout,
                               .deadline = gtorch_mpi_deadline (timeout),
                               .cancellable = cancellable };
  GTorchEngine *engine;
  gint own, all;

  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || !gtorch_mpi_start (&meeting, before_end, &own, &all, error))
    return NULL;
  g_mutex_lock (&mpi_lock);
  world_rank = own;
  world_size = all;
  g_mutex_unlock (&mpi_lock);
  if ((*rank != -1 && *rank != world_rank) || (*size != -1 && *size != world_size))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("mpi: this is rank %d of %d, not %d of %d; gtorch-run, "
                      "with PMIx, and mpirun start processes and say"),
                   world_rank, world_size, *rank, *size);
      return NULL;
    }
  meeting.n = (guint) world_size;
  meeting.own = world_rank;
  if (!gtorch_mpi_join (&meeting, error))
    return NULL;
  meeting.number = g_atomic_int_add (&n_worlds, 1) + 1;
  if (store != NULL && world_rank == 0 && !name_run (store, meeting.number, cancellable, error))
    return NULL;
  engine = make_engine (&meeting, store, NULL, error);
  if (engine == NULL)
    return NULL;
  *rank = world_rank;
  *size = world_size;
  return engine;
}

static GTorchEngine *
mpi_new_part (GTorchEngine *whole, const gint *ranks, guint n, guint number, gdouble timeout,
              GCancellable *cancellable, GError **error)
{
  GTorchMpiMeeting meeting = { .name = "process_group_new_part",
                               .whole = ((MpiEngine *) whole)->id,
                               .number = (gint) number,
                               .ranks = ranks,
                               .n = n,
                               .own = world_rank,
                               .timeout = timeout,
                               .deadline = gtorch_mpi_deadline (timeout),
                               .cancellable = cancellable };

  return make_engine (&meeting, ((MpiEngine *) whole)->store, ((MpiEngine *) whole)->run, error);
}

/* --- one collective, in the thread of its stream --- */

static GTorchMpiType
type_of (guint dtype)
{
  static const GTorchMpiType types[GTORCH_N_DTYPES] = {
    [GTORCH_DTYPE_FLOAT32] = GTORCH_MPI_FLOAT32,
    [GTORCH_DTYPE_FLOAT64] = GTORCH_MPI_FLOAT64,
    [GTORCH_DTYPE_FLOAT16] = GTORCH_MPI_FLOAT16,
    [GTORCH_DTYPE_BFLOAT16] = GTORCH_MPI_BFLOAT16,
    [GTORCH_DTYPE_INT8] = GTORCH_MPI_INT8,
    [GTORCH_DTYPE_UINT8] = GTORCH_MPI_UINT8,
    [GTORCH_DTYPE_INT16] = GTORCH_MPI_INT16,
    [GTORCH_DTYPE_INT32] = GTORCH_MPI_INT32,
    [GTORCH_DTYPE_INT64] = GTORCH_MPI_INT64,
    [GTORCH_DTYPE_BOOL] = GTORCH_MPI_BOOL,
    [GTORCH_DTYPE_COMPLEX64] = GTORCH_MPI_COMPLEX64,
    [GTORCH_DTYPE_COMPLEX128] = GTORCH_MPI_COMPLEX128,
  };

  return types[dtype];
}

static GTorchMpiOp
op_of (GTorchReduceOp op)
{
  static const GTorchMpiOp ops[] = {
    [GTORCH_REDUCE_OP_SUM] = GTORCH_MPI_SUM,         [GTORCH_REDUCE_OP_AVG] = GTORCH_MPI_SUM,
    [GTORCH_REDUCE_OP_PRODUCT] = GTORCH_MPI_PRODUCT, [GTORCH_REDUCE_OP_MIN] = GTORCH_MPI_MIN,
    [GTORCH_REDUCE_OP_MAX] = GTORCH_MPI_MAX,         [GTORCH_REDUCE_OP_BAND] = GTORCH_MPI_BAND,
    [GTORCH_REDUCE_OP_BOR] = GTORCH_MPI_BOR,         [GTORCH_REDUCE_OP_BXOR] = GTORCH_MPI_BXOR,
  };

  return ops[op];
}

/* What ranks that call different things get, mostly. */
static gboolean
fail (Job *job, const gchar *message, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("%s: rank %d, operation %" PRIu64
                  " of the group: %s; GTORCH_DISTRIBUTED_DEBUG=detail compares the calls of the "
                  "ranks"),
               job->collective->name, job->rank, job->work->sequence, message);
  return FALSE;
}

/* What MPI still writes to must stay: an operation that others have not begun cannot be taken back. */
static void
leak_locked (Job *job)
{
  GTorchCollective *collective = job->collective;

  job->is_left = TRUE;
  job->engine->is_stuck = TRUE;
  g_ptr_array_ref (collective->inputs);
  g_ptr_array_ref (collective->outputs);
}

static void
leak (Job *job)
{
  g_mutex_lock (&mpi_lock);
  leak_locked (job);
  g_mutex_unlock (&mpi_lock);
}

static gint
ended (Job *job, gchar *message)
{
  leak_locked (job);
  g_strlcpy (message, ENDED, MESSAGE);
  return 1;
}

/* A receiver waits for as many bytes as its tensor has. */
static gboolean
check_received (Job *job, const GTorchMpiTransfer *transfer, gint source, glong n_bytes,
                GError **error)
{
  const gsize size = gtorch_dtype_size (job->collective->dtype);

  if (transfer->kind != GTORCH_MPI_RECEIVE)
    return TRUE;
  g_atomic_int_set (&job->work->source, source);
  if (n_bytes == (glong) (transfer->count * size))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("%s: rank %d got %ld bytes from rank %d in message %" PRIu64
                  ", and waited for %zu: %d elements of %s"),
               job->collective->name, job->rank, n_bytes, source, job->work->sequence,
               transfer->count * size, transfer->count,
               gtorch_dtype_infos[job->collective->dtype].name);
  return FALSE;
}

static gboolean
is_message (const GTorchCollective *collective)
{
  return collective->kind == GTORCH_COLLECTIVE_SEND
         || collective->kind == GTORCH_COLLECTIVE_RECEIVE;
}

static gint64
pair_of (const GTorchCollective *collective)
{
  return gtorch_group_lane_of_message (collective->kind == GTORCH_COLLECTIVE_SEND, collective->root,
                                       collective->tag);
}

/* MPI tells no rank of another's progress; the store does, if there is one. */
static void
tell_late (Job *job, GError **error)
{
  GTorchRoll *roll = job->engine->roll;
  g_autofree gchar *report =
      g_strdup_printf (_ ("%s: rank %d waited %g seconds for the other ranks in operation "
                          "%" PRIu64 " of the group"),
                       job->collective->name, job->rank, job->timeout, job->work->sequence);
  const guint64 sequence = is_message (job->collective) ? 0 : job->work->sequence;
  g_autofree gchar *found =
      roll == NULL ? g_strdup ("")
                   : gtorch_roll_inquire (roll, report, sequence, &job->lost, &job->n_lost);

  g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s: %s", report,
               *found != '\0'                  ? found
               : roll == NULL || sequence == 0 ? _ ("one has not begun it, or is gone")
                                               : _ ("all ranks have begun it by now: one came "
                                                    "late, or what they have called differs"));
}

/* Returns FALSE also if the time is over; the buffers then belong to MPI. */
static gboolean
carry_out (Job *job, const GTorchMpiTransfer *transfer, GError **error)
{
  const GTorchMpiTable *mpi = gtorch_mpi_load (NULL);
  const gint64 deadline = gtorch_mpi_deadline (job->timeout);
  gchar message[MESSAGE] = "";
  gpointer request = NULL;
  gint is_done = 0, source = -1, code;
  glong n_bytes = 0;
  guint n;

  g_mutex_lock (&mpi_lock);
  if (is_over)
    code = ended (job, message);
  else
    code = mpi->start (job->engine->comm, transfer, &request, message, sizeof message);
  g_mutex_unlock (&mpi_lock);
  for (n = 0; code == 0 && !is_done; n++)
    {
      g_mutex_lock (&mpi_lock);
      if (is_over)
        code = ended (job, message);
      else
        code = mpi->test (request, &is_done, &source, &n_bytes, message, sizeof message);
      g_mutex_unlock (&mpi_lock);
      if (code != 0 || is_done)
        break;
      if (g_get_monotonic_time () > deadline)
        {
          leak (job);
          tell_late (job, error);
          return FALSE;
        }
      gtorch_mpi_pause (n);
    }
  if (code == 0)
    return check_received (job, transfer, source, n_bytes, error);
  /* of a collective there may be other parts under way */
  if (!job->is_left && request != NULL && transfer->kind != GTORCH_MPI_SEND
      && transfer->kind != GTORCH_MPI_RECEIVE)
    leak (job);
  return fail (job, message, error);
}

/* Of the ranks' calls, all of which have found that they differ. */
static void
tell_difference (Job *job, gint64 sum, GError **error)
{
  const gint size = job->engine->size;
  const gsize n_bytes = gtorch_mpi_calls_record_size (size);
  g_autofree gchar *own = g_malloc0 (n_bytes), *all = g_malloc0 (n_bytes * size);
  g_autofree gint *counts = g_new (gint, size), *offsets = g_new (gint, size);
  GTorchMpiTransfer transfer = { .kind = GTORCH_MPI_ALL_GATHER,
                                 .type = GTORCH_MPI_UINT8,
                                 .in = own,
                                 .out = all,
                                 .count = (gint) n_bytes,
                                 .out_counts = counts,
                                 .out_offsets = offsets };
  gint i;

  for (i = 0; i < size; i++)
    {
      counts[i] = (gint) n_bytes;
      offsets[i] = i * (gint) n_bytes;
    }
  gtorch_mpi_calls_describe (job->collective, size, sum, own);
  if (carry_out (job, &transfer, error))
    gtorch_mpi_calls_tell (job->collective, job->work->sequence, size, all, error);
  else if (job->is_left)
    {
      /* MPI still has all of it */
      own = all = NULL;
      counts = offsets = NULL;
    }
}

/* MPI does not tell in time that ranks call different things, or send what does not fit. */
static gboolean
compare_calls (Job *job, GError **error)
{
  MpiEngine *engine = job->engine;
  gint64 own[GTORCH_MPI_N_SUMS];
  g_autofree gint64 *all = NULL;
  GTorchMpiTransfer transfer = { .kind = GTORCH_MPI_ALL_REDUCE,
                                 .type = GTORCH_MPI_INT64,
                                 .op = GTORCH_MPI_SUM,
                                 .count = GTORCH_MPI_N_SUMS };

  if (engine->size == 1 || (engine->was_used && !engine->compares))
    return TRUE;
  gtorch_mpi_calls_begin (job->collective, engine->rank, engine->size, engine->compares, own);
  transfer.out = all = g_memdup2 (own, sizeof own);
  if (!carry_out (job, &transfer, error))
    {
      if (job->is_left)
        all = NULL; /* MPI still has it */
      return FALSE;
    }
  engine->was_used = TRUE;
  engine->compares = all[GTORCH_MPI_SUM_OF_WISHES] > 0;
  if (gtorch_mpi_calls_are_alike (own, all, engine->size))
    return TRUE;
  tell_difference (job, own[GTORCH_MPI_SUM_OF_CALLS], error);
  return FALSE;
}

/* What each rank gets, and where it begins, as MPI wants it. */
static gint *
counts_of (const gint64 *counts, gint size, gint64 each, gint **offsets)
{
  gint *result = g_new (gint, size);
  gint64 total = 0;
  gint i;

  *offsets = g_new (gint, size);
  for (i = 0; i < size; i++)
    {
      result[i] = (gint) (counts != NULL ? counts[i] : each);
      (*offsets)[i] = (gint) total;
      total += result[i];
    }
  return result;
}

static gint64
total_of (GPtrArray *impls)
{
  gint64 total = 0;
  guint i;

  for (i = 0; i < impls->len; i++)
    total += ((GTorchImpl *) impls->pdata[i])->numel;
  return total;
}

/* The elements of several tensors behind each other: those of the only one, or memory that is filled, or
 * read again afterwards. */
static gpointer
flatten (GPtrArray *impls, guint dtype, gboolean is_filled, gpointer *scratch)
{
  const gsize size = gtorch_dtype_size (dtype);
  gchar *to;
  guint i;

  *scratch = NULL;
  if (impls->len == 0)
    return NULL;
  if (impls->len == 1)
    return gtorch_impl_data (impls->pdata[0]);
  to = *scratch = g_try_malloc (MAX (1, total_of (impls) * size));
  for (i = 0; to != NULL && is_filled && i < impls->len; i++)
    {
      const GTorchImpl *impl = impls->pdata[i];

      memcpy (to, gtorch_impl_data (impl), impl->numel * size);
      to += impl->numel * size;
    }
  return *scratch;
}

static void
spread (GPtrArray *impls, guint dtype, gconstpointer from)
{
  guint i;

  for (i = 0; i < impls->len; i++)
    {
      GTorchImpl *impl = impls->pdata[i];
      const gsize n_bytes = impl->numel * gtorch_dtype_size (dtype);

      memcpy (gtorch_impl_data (impl), from, n_bytes);
      from = (const gchar *) from + n_bytes;
    }
}

static void
keep (GTorchStorage *storage)
{
}

/* Divides by the number of ranks. By another tensor of the same memory: the output itself waits for this
 * work. */
static gboolean
average (Job *job, GTorchImpl *output, GError **error)
{
  g_autoptr (GTorchImpl) alias = NULL, number = NULL;
  GTorchStorage *storage;

  if (output->numel == 0)
    return TRUE;
  storage = gtorch_storage_new_foreign (gtorch_device_cpu (), gtorch_impl_data (output),
                                        gtorch_impl_n_bytes (output), keep, NULL);
  alias = gtorch_impl_new_strided (storage, output->dtype, 0, &output->numel, NULL, 1);
  number = gtorch_impl_new_number (job->engine->size);
  gtorch_storage_unref (storage);
  return gtorch_op_div_inplace (alias, number, error);
}

/* Operations of one element after the other, in parts that MPI can count. */
static gboolean
run_parts (Job *job, GTorchMpiTransfer *transfer, GTorchImpl *impl, GError **error)
{
  const gsize size = gtorch_dtype_size (impl->dtype);
  gchar *data = gtorch_impl_data (impl);
  gint64 done = 0;

  do
    {
      transfer->count = (gint) MIN (impl->numel - done, MAX_COUNT);
      transfer->in = data + done * size;
      transfer->out = data + done * size;
      if (!carry_out (job, transfer, error))
        return FALSE;
      done += transfer->count;
    }
  while (done < impl->numel);
  return TRUE;
}

static gboolean
run_vectors (Job *job, GTorchMpiTransfer *transfer, GError **error)
{
  GTorchCollective *collective = job->collective;
  const gint size = job->engine->size;
  const gint64 n_in = total_of (collective->inputs), n_out = total_of (collective->outputs);
  const GTorchCollectiveKind kind = collective->kind;
  g_autofree gint *in_counts = NULL, *in_offsets = NULL, *out_counts = NULL, *out_offsets = NULL;
  gpointer in_scratch, out_scratch;
  gboolean result;

  if (MAX (n_in, n_out) > G_MAXINT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: there are %" PRId64 " elements; MPI counts up to %d here"),
                   collective->name, MAX (n_in, n_out), G_MAXINT);
      return FALSE;
    }
  transfer->in = flatten (collective->inputs, collective->dtype, TRUE, &in_scratch);
  transfer->out = flatten (collective->outputs, collective->dtype, FALSE, &out_scratch);
  if ((collective->inputs->len > 0 && transfer->in == NULL && n_in > 0)
      || (collective->outputs->len > 0 && transfer->out == NULL && n_out > 0))
    {
      g_free (in_scratch);
      g_free (out_scratch);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("%s: %" PRId64 " elements could not be allocated"), collective->name,
                   n_in + n_out);
      return FALSE;
    }
  in_counts = counts_of (collective->in_counts, size, n_in / size, &in_offsets);
  out_counts =
      counts_of (collective->out_counts, size,
                 kind == GTORCH_COLLECTIVE_REDUCE_SCATTER ? n_out : n_out / size, &out_offsets);
  transfer->in_counts = in_counts;
  transfer->in_offsets = in_offsets;
  transfer->out_counts = out_counts;
  transfer->out_offsets = out_offsets;
  transfer->count = (gint) (kind == GTORCH_COLLECTIVE_SCATTER ? n_out : n_in);
  result = carry_out (job, transfer, error);
  if (job->is_left)
    {
      /* MPI still has all of it */
      in_counts = in_offsets = out_counts = out_offsets = NULL;
      return FALSE;
    }
  if (result && out_scratch != NULL)
    spread (collective->outputs, collective->dtype, out_scratch);
  g_free (in_scratch);
  g_free (out_scratch);
  return result;
}

static gboolean
run_collective (Job *job, GError **error)
{
  static const GTorchMpiKind kinds[] = {
    [GTORCH_COLLECTIVE_BROADCAST] = GTORCH_MPI_BROADCAST,
    [GTORCH_COLLECTIVE_ALL_REDUCE] = GTORCH_MPI_ALL_REDUCE,
    [GTORCH_COLLECTIVE_REDUCE] = GTORCH_MPI_REDUCE,
    [GTORCH_COLLECTIVE_ALL_GATHER] = GTORCH_MPI_ALL_GATHER,
    [GTORCH_COLLECTIVE_GATHER] = GTORCH_MPI_GATHER,
    [GTORCH_COLLECTIVE_SCATTER] = GTORCH_MPI_SCATTER,
    [GTORCH_COLLECTIVE_REDUCE_SCATTER] = GTORCH_MPI_REDUCE_SCATTER,
    [GTORCH_COLLECTIVE_ALL_TO_ALL] = GTORCH_MPI_ALL_TO_ALL,
    [GTORCH_COLLECTIVE_SEND] = GTORCH_MPI_SEND,
    [GTORCH_COLLECTIVE_RECEIVE] = GTORCH_MPI_RECEIVE,
    [GTORCH_COLLECTIVE_BARRIER] = GTORCH_MPI_BARRIER,
  };
  GTorchCollective *collective = job->collective;
  GTorchMpiTransfer transfer = { .kind = kinds[collective->kind],
                                 .type = type_of (collective->dtype),
                                 .op = op_of (collective->op),
                                 .root = collective->root,
                                 .tag = collective->tag };
  GTorchImpl *output = collective->outputs->len > 0 ? collective->outputs->pdata[0] : NULL;
  gboolean result;

  if (!is_message (collective) && !compare_calls (job, error))
    return FALSE;
  switch (collective->kind)
    {
    case GTORCH_COLLECTIVE_BROADCAST:
    case GTORCH_COLLECTIVE_ALL_REDUCE:
    case GTORCH_COLLECTIVE_REDUCE:
    case GTORCH_COLLECTIVE_RECEIVE:
      result = run_parts (job, &transfer, output, error);
      break;
    case GTORCH_COLLECTIVE_SEND:
      result = run_parts (job, &transfer, collective->inputs->pdata[0], error);
      break;
    case GTORCH_COLLECTIVE_BARRIER:
      result = carry_out (job, &transfer, error);
      break;
    default:
      result = run_vectors (job, &transfer, error);
    }
  if (result && collective->op == GTORCH_REDUCE_OP_AVG
      && (collective->kind == GTORCH_COLLECTIVE_ALL_REDUCE
          || collective->kind == GTORCH_COLLECTIVE_REDUCE_SCATTER
          || (collective->kind == GTORCH_COLLECTIVE_REDUCE
              && job->engine->rank == collective->root)))
    return average (job, output, error);
  return result;
}

static gboolean
run_job (gpointer data, GError **error)
{
  Job *job = data;
  GError *local = NULL;
  GTorchProcessGroup *group;
  gboolean success;
  guint i;

  {
    g_auto (GTorchNamedCollective) named = { { 0 } };

    gtorch_transfer_named_begin (&named, &gtorch_mpi_engine, job->collective);
    success = run_collective (job, &local);
  }
  if (success)
    {
      gtorch_work_state_complete (job->work, NULL);
      return TRUE;
    }
  group = g_weak_ref_get (&job->group);
  for (i = 0; group != NULL && i < job->n_lost; i++)
    gtorch_process_group_lose (group, job->lost[i]);
  if (group != NULL)
    gtorch_process_group_fail (group, local);
  gtorch_work_state_complete (job->work, g_error_copy (local));
  g_propagate_error (error, local);
  return FALSE;
}

/* Also of work that was skipped, since work before it has failed. */
static void
job_free (gpointer data)
{
  Job *job = data;

  gtorch_work_state_complete (job->work,
                              g_error_new (GTORCH_ERROR, GTORCH_ERROR_FAILED,
                                           _ ("%s: rank %d skipped operation %" PRIu64
                                              " of the group, since work before it has failed"),
                                           job->collective->name, job->rank, job->work->sequence));
  gtorch_work_state_unref (job->work);
  g_weak_ref_clear (&job->group);
  if (is_message (job->collective))
    gtorch_mpi_messages_end (job->engine->messages, pair_of (job->collective));
  gtorch_collective_free (job->collective);
  g_free (job->lost);
  engine_unref (job->engine);
  g_free (job);
  g_atomic_int_add (&n_jobs, -1);
}

/* --- enqueueing --- */

/* Puts the stream's further work behind other work that has written the tensors; it is behind the current
 * stream's already. */
static gboolean
order (GTorchStream *stream, GPtrArray *impls, GError **error)
{
  const GTorchStream *current = gtorch_current_stream (stream->device);
  guint i;

  for (i = 0; i < impls->len; i++)
    {
      GTorchStorage *storage = ((GTorchImpl *) impls->pdata[i])->storage;

      if (!gtorch_stream_check_operand (stream, storage, error)
          || (storage->writer != stream->timeline
              && (current == NULL || storage->writer != current->timeline)
              && !gtorch_storage_wait (storage, error)))
        return FALSE;
      gtorch_stream_enqueue_copies (stream, storage);
    }
  return TRUE;
}

static gboolean
wait_for_current (GTorchStream *stream, GError **error)
{
  GTorchStream *current = gtorch_current_stream (stream->device);
  GTorchFence *fence;
  gboolean result;

  if (current == NULL || current->timeline == NULL || current == stream)
    return TRUE;
  fence = gtorch_stream_record_fence (current, 0, error);
  if (fence == NULL)
    return FALSE;
  result = gtorch_stream_wait_fence (stream, fence, error);
  gtorch_fence_unref (fence);
  return result;
}

static gboolean
mpi_start (GTorchEngine *engine, GTorchProcessGroup *group, GTorchCollective *collective,
           GTorchWork *work, GError **error)
{
  MpiEngine *self = (MpiEngine *) engine;
  g_autoptr (GTorchCollective) owned = collective;
  GTorchStream *stream =
      is_message (collective)
          ? gtorch_mpi_messages_begin (self->messages, pair_of (collective), error)
          : self->stream;
  GTorchWorkState *state = gtorch_work_get_state (work);
  guint64 seq;
  guint i;
  Job *job;

  if (stream == NULL)
    return FALSE;
  if (!wait_for_current (stream, error) || !order (stream, collective->inputs, error)
      || !order (stream, collective->outputs, error))
    {
      if (is_message (collective))
        gtorch_mpi_messages_end (self->messages, pair_of (collective));
      return FALSE;
    }
  job = g_new0 (Job, 1);
  job->engine = self;
  g_atomic_int_inc (&self->ref_count);
  g_atomic_int_inc (&n_jobs);
  g_weak_ref_init (&job->group, group);
  job->collective = g_steal_pointer (&owned);
  job->work = gtorch_work_state_ref (state);
  job->timeout = gtorch_process_group_get_timeout (group);
  job->rank = self->rank;
  if (self->roll != NULL)
    gtorch_roll_listen (self->roll);
  if (self->roll != NULL && !is_message (job->collective))
    gtorch_roll_begin (self->roll, job->work->sequence, job->collective->name);
  /* the job may be over, and the collective freed, before this function ends */
  {
    g_autoptr (GPtrArray) outputs = g_ptr_array_ref (collective->outputs);

    seq = GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, run_job, job, job_free);
    for (i = 0; i < outputs->len; i++)
      {
        GTorchStorage *storage = ((GTorchImpl *) outputs->pdata[i])->storage;

        g_atomic_int_inc (&storage->version);
        gtorch_storage_set_writer (storage, stream->timeline, seq);
      }
  }
  state->fence = gtorch_stream_record_fence (stream, 0, error);
  return state->fence != NULL;
}

static gboolean
mpi_is_available (GError **error)
{
  return gtorch_mpi_load (error) != NULL;
}

const GTorchEngineClass gtorch_mpi_engine = { .name = "mpi",
                                              .device_type = GTORCH_DEVICE_TYPE_CPU,
                                              .is_available = mpi_is_available,
                                              .new_world = mpi_new_world,
                                              .new_part = mpi_new_part,
                                              .free = mpi_free,
                                              .start = mpi_start,
                                              .has_any_source = TRUE,
                                              .names_transfers = TRUE };
