/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Communicators. The first of two is made without blocking, which is the only way in which NCCL can be told
 * to stop: a time limit and a GCancellable hold. In that mode every later call starts a thread, however, so
 * that a second one that blocks is split from the first, and shares what that has on the GPU. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "distributed/nccl/gtorch-nccl-private.h"

#define FIRST_PAUSE 50 /* microseconds */
#define LAST_PAUSE  2000
#define LAST_CALLS \
  (10 * G_USEC_PER_SEC) /* for how long an abort waits for threads inside of NCCL */

static gint64
deadline_of (gdouble timeout)
{
  return timeout < 1e9 ? g_get_monotonic_time () + (gint64) (timeout * G_USEC_PER_SEC) : G_MAXINT64;
}

gboolean
gtorch_nccl_comm_settle (ncclComm_t comm, const gchar *what, gdouble timeout,
                         GCancellable *cancellable, GError **error)
{
  const gint64 deadline = deadline_of (timeout);
  ncclResult_t result, state = ncclInProgress;
  gulong pause = FIRST_PAUSE;

  while (TRUE)
    {
      result = gtorch_nccl.ncclCommGetAsyncError (comm, &state);
      if (result != ncclSuccess || state != ncclInProgress)
        break;
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      if (g_get_monotonic_time () > deadline)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                       _ ("%s: the other ranks have not come within %g seconds"), what, timeout);
          return FALSE;
        }
      g_usleep (pause);
      pause = MIN (2 * pause, LAST_PAUSE);
    }
  return gtorch_nccl_check (result != ncclSuccess ? result : state, what, error);
}

/* Rank 0 makes the number by which the ranks find each other, and the store tells the others. */
static gboolean
exchange_id (NcclEngine *engine, const gchar *name, gint rank, ncclUniqueId *id, gdouble timeout,
             GCancellable *cancellable, GError **error)
{
  g_autofree gchar *key = g_strconcat (engine->prefix, "/id/", name, NULL);
  const gchar *const keys[] = { key, NULL };
  g_autoptr (GBytes) bytes = NULL;
  gconstpointer data;
  gsize size;

  if (rank == 0)
    {
      if (!gtorch_nccl_check (gtorch_nccl.ncclGetUniqueId (id), "ncclGetUniqueId", error))
        return FALSE;
      bytes = g_bytes_new (id, sizeof *id);
      return gtorch_store_set (engine->store, key, bytes, cancellable, error);
    }
  if (!gtorch_store_wait (engine->store, keys, timeout, cancellable, error)
      || (bytes = gtorch_store_get (engine->store, key, cancellable, error)) == NULL)
    {
      g_prefix_error (error, _ ("nccl: rank 0 of the communicator “%s” has not come: "), name);
      return FALSE;
    }
  data = g_bytes_get_data (bytes, &size);
  if (size != sizeof *id)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("nccl: the key “%s” of the store has %zu bytes, and not the %zu of NCCL's "
                      "number"),
                   key, size, sizeof *id);
      return FALSE;
    }
  memcpy (id, data, size);
  return TRUE;
}

static ncclConfig_t
make_config (gboolean is_blocking)
{
  return (ncclConfig_t){ .size = sizeof (ncclConfig_t),
                         .magic = NCCL_CONFIG_MAGIC,
                         .version = NCCL_CONFIG_VERSION,
                         .blocking = is_blocking,
                         .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
                         .minCTAs = NCCL_CONFIG_UNDEF_INT,
                         .maxCTAs = NCCL_CONFIG_UNDEF_INT,
                         .splitShare = 1,
                         .trafficClass = NCCL_CONFIG_UNDEF_INT };
}

static gboolean
is_begun (ncclResult_t result)
{
  return result == ncclSuccess || result == ncclInProgress;
}

/* Splits a communicator that blocks from one that does not. */
static gboolean
split (NcclComm *self, gint rank, gdouble timeout, GCancellable *cancellable, GError **error)
{
  ncclConfig_t config = make_config (TRUE);
  const ncclResult_t result = gtorch_nccl.ncclCommSplit (self->base, 0, rank, &self->comm, &config);

  if (!is_begun (result))
    {
      self->comm = NULL;
      return gtorch_nccl_check (result, "ncclCommSplit", error);
    }
  return gtorch_nccl_comm_settle (self->base, "ncclCommSplit", timeout, cancellable, error)
         && gtorch_nccl_comm_settle (self->comm, "ncclCommSplit", timeout, cancellable, error);
}

/* For versions of NCCL that do not split one from the other: then the time limit was that of the first. */
static gboolean
connect_blocking (NcclEngine *engine, NcclComm *self, const gchar *name, gint rank, gint n,
                  gdouble timeout, GCancellable *cancellable, GError **error)
{
  g_autofree gchar *key = g_strconcat (name, "/blocking", NULL);
  ncclConfig_t config = make_config (TRUE);
  ncclUniqueId id;

  gtorch_nccl.ncclCommAbort (self->base);
  self->base = self->comm = NULL;
  return exchange_id (engine, key, rank, &id, timeout, cancellable, error)
         && gtorch_nccl_check (gtorch_nccl.ncclCommInitRankConfig (&self->comm, n, id, rank,
                                                                   &config),
                               "ncclCommInitRankConfig", error);
}

/* Connects the ranks. What there is of the communicators is in self, also on failure. */
static gboolean
connect (NcclEngine *engine, NcclComm *self, const gchar *name, ncclUniqueId id, gint rank, gint n,
         gdouble timeout, GCancellable *cancellable, GError **error)
{
  ncclConfig_t config = make_config (FALSE);
  g_autoptr (GError) local = NULL;
  ncclResult_t result = gtorch_nccl.ncclCommInitRankConfig (&self->base, n, id, rank, &config);

  if (!is_begun (result))
    {
      self->base = NULL;
      return gtorch_nccl_check (result, "ncclCommInitRankConfig", error);
    }
  if (!gtorch_nccl_comm_settle (self->base, "ncclCommInitRankConfig", timeout, cancellable, error))
    return FALSE;
  if (split (self, rank, timeout, cancellable, &local))
    return TRUE;
  if (local->domain == GTORCH_ERROR)
    return connect_blocking (engine, self, name, rank, n, timeout, cancellable, error);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

NcclComm *
gtorch_nccl_comm_new (NcclEngine *engine, const gchar *name, gint rank, gint n,
                      GTorchDevice *device, gdouble timeout, GCancellable *cancellable,
                      GError **error)
{
  g_autoptr (GTorchStream) stream = NULL;
  ncclUniqueId id;
  NcclComm *self;
  GTORCH_CUDA_APART;

  if (!gtorch_nccl_load (error) || (stream = gtorch_stream_new (device, -1, error)) == NULL
      || !exchange_id (engine, name, rank, &id, timeout, cancellable, error)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error))
    return NULL;
  self = g_new0 (NcclComm, 1);
  self->device = device;
  self->stream = g_steal_pointer (&stream);
  self->rank = rank;
  self->n = n;
  self->local = gtorch_nccl_local_join (&id, self);
  g_queue_init (&self->pending);
  if (connect (engine, self, name, id, rank, n, timeout, cancellable, error))
    return self;
  /* the split one is part of what the abort of the first ends */
  if (self->base != NULL)
    gtorch_nccl.ncclCommAbort (self->base);
  self->base = self->comm = NULL;
  gtorch_nccl_comm_free (self);
  return NULL;
}

static gint n_aborts; /* under way */

gboolean
gtorch_nccl_is_aborting (void)
{
  return g_atomic_int_get (&n_aborts) > 0;
}

/* The flag that ends kernels and calls is shared: the first communicator is aborted while threads may be
 * inside of calls with the second, which is freed when they have come back. */
void
gtorch_nccl_comm_abort (NcclEngine *engine, NcclComm *self)
{
  const gint64 deadline = g_get_monotonic_time () + LAST_CALLS;
  ncclComm_t base, comm;
  GTORCH_CUDA_APART;

  g_mutex_lock (&engine->lock);
  base = g_steal_pointer (&self->base);
  g_mutex_unlock (&engine->lock);
  if (!gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (self->device), NULL))
    return;
  g_atomic_int_inc (&n_aborts);
  if (base != NULL)
    gtorch_nccl.ncclCommAbort (base);
  g_mutex_lock (&engine->lock);
  while (self->n_calls > 0)
    if (!g_cond_wait_until (&engine->changed, &engine->lock, deadline))
      break;
  comm = self->n_calls > 0 ? NULL : g_steal_pointer (&self->comm);
  g_mutex_unlock (&engine->lock);
  if (comm != NULL)
    gtorch_nccl.ncclCommAbort (comm);
  g_atomic_int_add (&n_aborts, -1);
}

void
gtorch_nccl_comm_free (gpointer comm)
{
  NcclComm *self = comm;

  if (self->base != NULL || self->comm != NULL)
    {
      GTORCH_CUDA_APART;

      gtorch_cuda_stall_begin (); /* they free memory of the host */
      if (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (self->device), NULL))
        {
          if (self->comm != NULL)
            gtorch_nccl.ncclCommDestroy (self->comm);
          if (self->base != NULL) /* in a thread of NCCL's */
            gtorch_nccl.ncclCommDestroy (self->base);
        }
      gtorch_cuda_stall_end ();
    }
  gtorch_nccl_local_leave (self);
  g_clear_pointer (&self->token, gtorch_impl_unref);
  g_object_unref (self->stream);
  g_free (self);
}
