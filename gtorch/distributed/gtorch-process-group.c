/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-process-group.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-property-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "distributed/gtorch-agreement-private.h"
#include "distributed/gtorch-debug-level.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-calls-private.h"
#include "distributed/gtorch-mpi-engine-private.h"

/**
 * GTorchProcessGroup:
 *
 * Processes that compute together.
 *
 * Each process has a rank, from 0 to [property@ProcessGroup:size] - 1. All of them call the same functions
 * in the same order, with tensors of the same shape and dtype where the function does not say otherwise,
 * and each call returns at once with a [class@Work]. What carries the data is the backend: mpi, for
 * tensors on the CPU, is the MPI that is installed. Processes are started by `gtorch-run`, or MPI's
 * `mpirun`. nccl, for tensors on GPUs, is NVIDIA's library.
 *
 * ```c
 * g_autoptr (GTorchProcessGroup) group = gtorch_process_group_new ("mpi", NULL, -1, -1, 1800, NULL,
 * &error); g_autoptr (GTorchWork) work = gtorch_process_group_all_reduce (group, grad,
 * GTORCH_REDUCE_OP_AVG, &error);
 * ```
 *
 * An operation that has not ended after [property@ProcessGroup:timeout] fails on the ranks that wait for
 * it, with an error that names the operation and its number. After a failure no further operation begins:
 * the ranks no longer agree on what comes next. [func@distributed_set_debug_level] lets the ranks compare
 * their calls before they begin. The calls are for one thread; different groups may be used
 * by different threads.
 *
 * Functions that end in `_async` work in a thread. Those of collectives, such as
 * [method@ProcessGroup.broadcast_variant_async], follow one another in the order in which they were called,
 * and until they have ended the group refuses other collectives, with %GTORCH_ERROR_INVALID; messages are
 * refused only between the same ranks with the same tag. Cancelling ends the wait at once. What the ranks
 * exchange is carried out in any case, since the others count on it; only a group of mpi is not made, and the
 * others get an error.
 *
 * A program waits for its operations before it ends. With mpi, a program that ends well and has not
 * waited does so for at most five seconds; what other ranks have not begun by then is abandoned, with a
 * warning.
 *
 * Since: 0.1
 */

enum
{
  FAILED,
  TIMED_OUT,
  PEER_LOST,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

struct _GTorchProcessGroup
{
  GObject parent_instance;
  const GTorchEngineClass *klass;
  GTorchEngine *engine; /* NULL in a process that has no part in the group */
  GTorchStore *store;
  gint rank, size;
  gint *ranks; /* in the world */
  gdouble timeout;
  guint64 sequence, n_messages;
  gint n_parts; /* how many groups of some ranks have been made of it */
  GTorchDebugLevel debug;
  GTorchAgreement *agreement; /* NULL without a store */
  GMainContext *context;
  GMutex lock;
  GError *failure; /* protected by the lock */
  GTorchGroupCalls calls;
};

G_DEFINE_TYPE (GTorchProcessGroup, gtorch_process_group, G_TYPE_OBJECT)

static const GTorchEngineClass *engines[2] = { &gtorch_mpi_engine };

typedef GTorchProcessGroup Self;

static const GTorchField fields[] = {
  /**
   * GTorchProcessGroup:backend:
   *
   * What carries the data.
   *
   * Since: 0.1
   */
  { "backend", GTORCH_PROPERTY_STRING (gtorch_process_group_get_backend, NULL) },
  /**
   * GTorchProcessGroup:rank:
   *
   * The rank of this process; -1 if it has no part in the group.
   *
   * Since: 0.1
   */
  { "rank", GTORCH_PROPERTY_INT (gtorch_process_group_get_rank, NULL) },
  /**
   * GTorchProcessGroup:size:
   *
   * How many processes the group has.
   *
   * Since: 0.1
   */
  { "size", GTORCH_PROPERTY_INT (gtorch_process_group_get_size, NULL) },
  /**
   * GTorchProcessGroup:store:
   *
   * The store by which the processes found each other.
   *
   * Since: 0.1
   */
  { "store", GTORCH_PROPERTY_OBJECT (GTorchStore, gtorch_store_get_type,
                                     gtorch_process_group_get_store, NULL) },
  /**
   * GTorchProcessGroup:timeout:
   *
   * For how many seconds an operation waits for the other ranks.
   *
   * Since: 0.1
   */
  { "timeout",
    GTORCH_PROPERTY_DOUBLE (gtorch_process_group_get_timeout, gtorch_process_group_set_timeout),
    .low = 0, .high = G_MAXDOUBLE },
};

static gint n_several; /* groups of more than one process that there are; atomic */

guint
gtorch_process_group_count_several (void)
{
  return (guint) g_atomic_int_get (&n_several);
}

static void
gtorch_process_group_finalize (GObject *object)
{
  GTorchProcessGroup *self = GTORCH_PROCESS_GROUP (object);

  if (self->size > 1)
    g_atomic_int_add (&n_several, -1);
  if (self->engine != NULL)
    self->klass->free (self->engine);
  g_clear_pointer (&self->agreement, gtorch_agreement_free);
  g_clear_object (&self->store);
  g_clear_error (&self->failure);
  g_main_context_unref (self->context);
  g_mutex_clear (&self->lock);
  gtorch_group_calls_clear (&self->calls);
  g_free (self->ranks);
  G_OBJECT_CLASS (gtorch_process_group_parent_class)->finalize (object);
}

static void
gtorch_process_group_class_init (GTorchProcessGroupClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_process_group_finalize;
  GTORCH_FIELDS (klass, fields);
  /**
   * GTorchProcessGroup::failed:
   * @self: the group
   * @error: why
   *
   * Emitted once, in the main context that was the thread's default when the group was made, after an
   * operation has failed: no other rank answered in time, say. No further operation begins.
   *
   * Since: 0.1
   */
  signals[FAILED] = g_signal_new ("failed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 1, G_TYPE_ERROR);
  /**
   * GTorchProcessGroup::timed-out:
   * @self: the group
   * @error: why
   *
   * Emitted before [signal@ProcessGroup::failed], in the same context, if the reason is that an operation
   * was not over after [property@ProcessGroup:timeout].
   *
   * Since: 0.1
   */
  signals[TIMED_OUT] = g_signal_new ("timed-out", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0,
                                     NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_ERROR);
  /**
   * GTorchProcessGroup::peer-lost:
   * @self: the group
   * @rank: the rank in the group
   *
   * Emitted before [signal@ProcessGroup::failed], in the same context, for each rank that has not answered
   * when an operation failed: its process has ended or hangs. With mpi it is emitted if
   * the group has a store, as that of gtorch-run: MPI itself does not know.
   *
   * Since: 0.1
   */
  signals[PEER_LOST] = g_signal_new ("peer-lost", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0,
                                     NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_INT);
}

static void
gtorch_process_group_init (GTorchProcessGroup *self)
{
  self->rank = -1;
  self->timeout = 1800;
  self->context = g_main_context_ref_thread_default ();
  g_mutex_init (&self->lock);
  gtorch_group_calls_init (&self->calls);
}

void
gtorch_engine_register (const GTorchEngineClass *klass)
{
  engines[1] = klass;
}

GTorchDeviceType
gtorch_process_group_get_device_type (GTorchProcessGroup *self)
{
  return self->klass == NULL ? GTORCH_DEVICE_TYPE_CPU : self->klass->device_type;
}

GTorchEngine *
gtorch_process_group_peek_engine (GTorchProcessGroup *self)
{
  return self->engine;
}

GTorchGroupCalls *
gtorch_process_group_get_calls (GTorchProcessGroup *self)
{
  return &self->calls;
}

void
gtorch_process_group_set_context (GTorchProcessGroup *self, GMainContext *context)
{
  g_main_context_unref (self->context);
  self->context = g_main_context_ref (context);
}

typedef struct
{
  GTorchProcessGroup *group;
  GError *error; /* NULL: a rank is lost */
  gboolean is_first;
  gint rank;
} Report;

static gboolean
emit_failed (gpointer data)
{
  Report *report = data;

  if (report->error == NULL)
    g_signal_emit (report->group, signals[PEER_LOST], 0, report->rank);
  else if (report->is_first)
    {
      if (g_error_matches (report->error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        g_signal_emit (report->group, signals[TIMED_OUT], 0, report->error);
      g_signal_emit (report->group, signals[FAILED], 0, report->error);
    }
  return G_SOURCE_REMOVE;
}

static void
report_free (gpointer data)
{
  Report *report = data;

  g_object_unref (report->group);
  g_clear_error (&report->error);
  g_free (report);
}

static void
send_report (GTorchProcessGroup *self, Report *report)
{
  g_autoptr (GMainContext) context = g_main_context_ref (self->context);
  g_autoptr (GSource) source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, emit_failed, report, report_free);
  g_source_attach (source, context);
}

void
gtorch_process_group_lose (GTorchProcessGroup *self, gint rank)
{
  Report *report = g_new (Report, 1);

  *report = (Report){ g_object_ref (self), NULL, FALSE, rank };
  send_report (self, report);
}

void
gtorch_process_group_fail (GTorchProcessGroup *self, const GError *error)
{
  Report *report = g_new (Report, 1);

  g_mutex_lock (&self->lock);
  *report = (Report){ self, g_error_copy (error), self->failure == NULL, -1 };
  if (report->is_first)
    self->failure = g_error_copy (error);
  g_mutex_unlock (&self->lock);
  send_report (self, report);
}

GTorchEngine *
gtorch_process_group_get_engine (GTorchProcessGroup *self, const gchar *name, GError **error)
{
  g_autoptr (GError) failure = NULL;

  g_mutex_lock (&self->lock);
  failure = self->failure == NULL ? NULL : g_error_copy (self->failure);
  g_mutex_unlock (&self->lock);
  if (failure != NULL)
    {
      g_set_error (error, failure->domain, failure->code,
                   _ ("%s: the group has failed, and begins no further operation: %s"), name,
                   failure->message);
      return NULL;
    }
  if (self->engine == NULL && self->size > 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: this process has no rank in the group"), name);
  else if (self->engine == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the group was made without what it needs"), name);
  return self->engine;
}

guint64
gtorch_process_group_next_sequence (GTorchProcessGroup *self, gboolean is_message)
{
  guint64 number;

  g_mutex_lock (&self->lock); /* messages may be of several threads */
  number = is_message ? ++self->n_messages : ++self->sequence;
  g_mutex_unlock (&self->lock);
  return number;
}

gboolean
gtorch_process_group_check_call (GTorchProcessGroup *self, const GTorchCollective *collective,
                                 guint64 sequence, GError **error)
{
  g_autoptr (GError) local = NULL;
  gboolean is_lost;

  if (self->debug == GTORCH_DEBUG_LEVEL_OFF || self->agreement == NULL)
    return TRUE;
  if (self->debug >= GTORCH_DEBUG_LEVEL_INFO)
    {
      g_autofree gchar *call = gtorch_agreement_describe (collective);

      g_message ("group %s: rank %d begins call %" PRIu64 ": %s",
                 gtorch_agreement_get_name (self->agreement), self->rank, sequence, call);
    }
  if (self->debug < GTORCH_DEBUG_LEVEL_DETAIL
      || gtorch_agreement_check (self->agreement, collective, sequence, self->timeout, &is_lost,
                                 &local))
    return TRUE;
  if (is_lost)
    gtorch_process_group_fail (g_object_ref (self), local);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
check_timeout (gdouble timeout, GError **error)
{
  if (timeout > 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("process_group: the timeout is %g seconds; it is more than 0"), timeout);
  return FALSE;
}

static const GTorchEngineClass *
find_engine (const gchar *backend, GError **error)
{
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (engines); i++)
    if (engines[i] != NULL && strcmp (backend, engines[i]->name) == 0)
      return engines[i];
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("process_group: there is no backend “%s”; there is mpi, for tensors on the "
                  "CPU, and nccl, for tensors on GPUs"),
               gtorch_name_str (backend));
  return NULL;
}

/**
 * gtorch_process_group_is_available:
 * @backend: the name of a backend
 * @error: return location for an error
 *
 * Tells whether a backend can be used: its library is installed, and the library was built with it.
 *
 * Returns: %TRUE if it can, or %FALSE with @error saying why not
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_is_available (const gchar *backend, GError **error)
{
  const GTorchEngineClass *klass;

  g_return_val_if_fail (backend != NULL, FALSE);
  klass = find_engine (backend, error);
  return klass != NULL && klass->is_available (error);
}

/**
 * gtorch_process_group_is_launched:
 *
 * Tells whether this process was started by `gtorch-run`, MPI's `mpirun`, or something like them. A process
 * that was not is the only one of its group.
 *
 * Returns: %TRUE if it was
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_is_launched (void)
{
  return gtorch_mpi_is_launched ();
}

static GTorchProcessGroup *
make_group (const GTorchEngineClass *klass, GTorchEngine *engine, GTorchStore *store, gint rank,
            gint size, gdouble timeout)
{
  GTorchProcessGroup *self = g_object_new (GTORCH_TYPE_PROCESS_GROUP, NULL);

  self->klass = klass;
  self->engine = engine;
  self->store = store == NULL ? NULL : g_object_ref (store);
  self->rank = rank;
  self->size = size;
  if (size > 1)
    g_atomic_int_inc (&n_several);
  self->ranks = g_new (gint, size);
  self->timeout = timeout;
  return self;
}

static void
log_group (GTorchProcessGroup *self)
{
  if (self->debug >= GTORCH_DEBUG_LEVEL_INFO && self->agreement != NULL)
    g_message ("group %s of %d processes by %s: this is rank %d",
               gtorch_agreement_get_name (self->agreement), self->size, self->klass->name,
               self->rank);
}

/* Only now is there an agreement: the calls by which a store is made are not compared. */
static gboolean
find_agreement (GTorchProcessGroup *self, GCancellable *cancellable, GError **error)
{
  self->debug = gtorch_distributed_get_debug_level ();
  if (self->store == NULL && self->debug != GTORCH_DEBUG_LEVEL_OFF)
    {
      self->store = gtorch_agreement_make_store (self, self->timeout, cancellable, error);
      if (self->store == NULL)
        return FALSE;
    }
  if (self->store != NULL)
    {
      self->agreement =
          gtorch_agreement_new (self->store, self->rank, self->size, cancellable, error);
      if (self->agreement == NULL)
        return FALSE;
    }
  log_group (self);
  return TRUE;
}

/**
 * gtorch_process_group_new: (constructor)
 * @backend: what carries the data: mpi or nccl
 * @store: (nullable): a store that all processes share; mpi needs none
 * @rank: the rank of this process; -1 for what the backend says
 * @world_size: how many processes there are; -1 for what the backend says
 * @timeout: for how many seconds an operation waits for the other ranks, more than 0
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Creates the group of all processes of a job. All of them call this, and wait for each other.
 *
 * With mpi, all get an error if one does not come in time, and can try again.
 *
 * Returns: (transfer full): a new group, or %NULL with @error set: %GTORCH_ERROR_NOT_SUPPORTED if the
 *   library of the backend is not installed, %GTORCH_ERROR_INVALID if @rank or @world_size is not what the
 *   backend says, %G_IO_ERROR_TIMED_OUT if others have not come
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_new (const gchar *backend, GTorchStore *store, gint rank, gint world_size,
                          gdouble timeout, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchProcessGroup) self = NULL;
  const GTorchEngineClass *klass;
  GTorchEngine *engine;
  gint i;

  g_return_val_if_fail (backend != NULL && (store == NULL || GTORCH_IS_STORE (store)), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !check_timeout (timeout, error)
      || (klass = find_engine (backend, error)) == NULL)
    return NULL;
  engine = klass->new_world (store, &rank, &world_size, timeout, cancellable, error);
  if (engine == NULL)
    return NULL;
  self = make_group (klass, engine, store, rank, world_size, timeout);
  for (i = 0; i < world_size; i++)
    self->ranks[i] = i;
  return find_agreement (self, cancellable, error) ? g_steal_pointer (&self) : NULL;
}

typedef struct
{
  gchar *backend;
  GTorchStore *store;
  gint rank, world_size;
  gdouble timeout;
  GMainContext *context;
} Wish;

static void
wish_free (gpointer data)
{
  Wish *wish = data;

  g_free (wish->backend);
  g_clear_object (&wish->store);
  g_main_context_unref (wish->context);
  g_free (wish);
}

static void
make_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  const Wish *wish = data;
  GError *error = NULL;
  GTorchProcessGroup *group =
      gtorch_process_group_new (wish->backend, wish->store, wish->rank, wish->world_size,
                                wish->timeout, cancellable, &error);

  if (group == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  gtorch_process_group_set_context (group, wish->context);
  g_task_return_pointer (task, group, g_object_unref);
}

/**
 * gtorch_process_group_create_async:
 * @backend: what carries the data: mpi or nccl
 * @store: (nullable): a store that all processes share
 * @rank: the rank of this process; -1 for what the backend says
 * @world_size: how many processes there are; -1 for what the backend says
 * @timeout: for how many seconds an operation waits for the other ranks, more than 0
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the group is there
 * @user_data: data for @callback
 *
 * Creates a group as [ctor@ProcessGroup.new] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_process_group_create_async (const gchar *backend, GTorchStore *store, gint rank,
                                   gint world_size, gdouble timeout, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task;
  Wish *wish;

  g_return_if_fail (backend != NULL && (store == NULL || GTORCH_IS_STORE (store)));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (NULL, gtorch_process_group_create_async, cancellable, callback, user_data);
  wish = g_new (Wish, 1);
  *wish = (Wish){ g_strdup (backend),
                  store == NULL ? NULL : g_object_ref (store),
                  rank,
                  world_size,
                  timeout,
                  g_main_context_ref_thread_default () };
  g_task_set_task_data (task, wish, wish_free);
  g_task_run_in_thread (task, make_in_thread);
  g_object_unref (task);
}

/**
 * gtorch_process_group_create_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [func@ProcessGroup.create_async].
 *
 * Returns: (transfer full): a new group, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_create_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_process_group_create_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* Sets rank to that of this process among them, -1 if it is not. */
static gboolean
check_ranks (GTorchProcessGroup *self, const gchar *who, const gint64 *ranks, gsize n, gint *rank,
             GError **error)
{
  gsize i, k;

  *rank = -1;
  for (i = 0; i < n; i++)
    {
      if (ranks[i] < 0 || ranks[i] >= self->size)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                       _ ("%s: rank %" PRId64 " is out of range for %d processes"), who, ranks[i],
                       self->size);
          return FALSE;
        }
      for (k = 0; k < i; k++)
        if (ranks[k] == ranks[i])
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("%s: rank %" PRId64 " is named twice"), who, ranks[i]);
            return FALSE;
          }
      if (ranks[i] == self->rank)
        *rank = (gint) i;
    }
  return TRUE;
}

/* Takes the ranks of all processes of the part, in which this one is `rank`. */
static GTorchProcessGroup *
make_part (GTorchProcessGroup *self, GTorchEngine *world, gint *world_ranks, gsize n, gint rank,
           gdouble timeout, GCancellable *cancellable, GError **error)
{
  const gint number =
      g_atomic_int_add (&self->n_parts, 1) + 1; /* shrink () may be of another thread */
  GTorchEngine *engine = NULL;
  GTorchProcessGroup *part;

  if (rank >= 0)
    engine = self->klass->new_part (world, world_ranks, n, number, timeout, cancellable, error);
  if (rank >= 0 && engine == NULL)
    {
      g_free (world_ranks);
      return NULL;
    }
  part = make_group (self->klass, engine, self->store, rank, (gint) n, timeout);
  g_free (part->ranks);
  part->ranks = world_ranks;
  part->debug = self->debug;
  if (self->agreement != NULL && rank >= 0)
    part->agreement = gtorch_agreement_new_part (self->agreement, number, rank, (gint) n);
  log_group (part);
  return part;
}

GTorchProcessGroup *
gtorch_process_group_make_part (GTorchProcessGroup *self, const gint64 *ranks, gsize n_ranks,
                                gdouble timeout, GCancellable *cancellable, GError **error)
{
  GTorchEngine *world;
  gint *world_ranks;
  gint rank;
  gsize i;

  if (timeout < 0)
    timeout = self->timeout;
  world = gtorch_process_group_get_engine (self, "process_group_new_part", error);
  if (world == NULL
      || !gtorch_group_calls_check (self, GTORCH_GROUP_LANE_COLLECTIVES, "process_group_new_part",
                                    error)
      || !check_timeout (timeout, error)
      || !check_ranks (self, "process_group_new_part", ranks, n_ranks, &rank, error))
    return NULL;
  if (n_ranks == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("process_group_new_part: there are no ranks; a group has one or more"));
      return NULL;
    }
  world_ranks = g_new (gint, n_ranks);
  for (i = 0; i < n_ranks; i++)
    world_ranks[i] = self->ranks[ranks[i]];
  return make_part (self, world, world_ranks, n_ranks, rank, timeout, cancellable, error);
}

/**
 * gtorch_process_group_new_part:
 * @self: the group of all processes
 * @ranks: (array length=n_ranks): ranks in @self; the first has rank 0 in the new group
 * @n_ranks: the number of @ranks, 1 or more
 * @timeout: for how many seconds an operation waits for the other ranks, more than 0; negative for that of
 *   @self
 * @error: return location for an error
 *
 * Creates a group of some of the processes. All processes of @self call this, in the same order, also those
 * that are not named: their group has the rank -1, and each operation of it is an error.
 *
 * With mpi, the processes that are named wait for each other, for @timeout at most, and compare what they
 * make. If one does not come, or gives other @ranks, all get an error, and so does the late one when it
 * comes. Other groups can be made after that: of the processes that are there, say.
 *
 * Returns: (transfer full): a new group, or %NULL with @error set: %G_IO_ERROR_TIMED_OUT with the ranks that
 *   are missing, %GTORCH_ERROR_FAILED if the ranks differ
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_new_part (GTorchProcessGroup *self, const gint64 *ranks, gsize n_ranks,
                               gdouble timeout, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && (ranks != NULL || n_ranks == 0), NULL);
  return gtorch_process_group_make_part (self, ranks, n_ranks, timeout, NULL, error);
}

/**
 * gtorch_process_group_shrink:
 * @self: a group of nccl
 * @excluded: (array length=n_excluded): ranks in @self that have no part in the new group
 * @n_excluded: the number of @excluded, 1 or more
 * @error: return location for an error
 *
 * Creates a group of the processes that are left, also after @self has failed. They call this with the same
 * ranks, and keep their order; the excluded ones do not call it. Operations of @self that are under way end
 * with an error.
 *
 * ```c
 * const gint64 lost = 3;
 * g_autoptr (GTorchProcessGroup) rest = gtorch_process_group_shrink (group, &lost, 1, &error);
 * ```
 *
 * Returns: (transfer full): a new group, or %NULL with @error set: %GTORCH_ERROR_NOT_SUPPORTED for mpi
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_shrink (GTorchProcessGroup *self, const gint64 *excluded, gsize n_excluded,
                             GError **error)
{
  g_autofree gint *rest = NULL;
  g_autoptr (GError) reason = NULL;
  gint n = 0, rank = -1, own, i;
  gsize k;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && (excluded != NULL || n_excluded == 0),
                        NULL);
  if (self->engine == NULL)
    return (gpointer) gtorch_process_group_get_engine (self, "process_group_shrink", error);
  if (!check_ranks (self, "process_group_shrink", excluded, n_excluded, &own, error))
    return NULL;
  if (self->klass->abort == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("process_group_shrink: the backend %s cannot go on without a rank"),
                   self->klass->name);
      return NULL;
    }
  if (n_excluded == 0 || own >= 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   n_excluded == 0 ? _ ("process_group_shrink: no rank is excluded")
                                   : _ ("process_group_shrink: this process is excluded; it does "
                                        "not call this"));
      return NULL;
    }
  rest = g_new (gint, self->size);
  for (i = 0; i < self->size; i++)
    {
      for (k = 0; k < n_excluded && excluded[k] != i; k++)
        ;
      if (k < n_excluded)
        continue;
      if (i == self->rank)
        rank = n;
      rest[n++] = self->ranks[i];
    }
  reason = g_error_new (GTORCH_ERROR, GTORCH_ERROR_FAILED,
                        _ ("process_group_shrink: the group goes on without some ranks"));
  self->klass->abort (self->engine, reason);
  return make_part (self, self->engine, g_steal_pointer (&rest), n, rank, self->timeout, NULL,
                    error);
}

/**
 * gtorch_process_group_get_backend:
 * @self: a group
 *
 * Gets the name of what carries the data.
 *
 * Returns: (nullable): the name, such as mpi
 *
 * Since: 0.1
 */
const gchar *
gtorch_process_group_get_backend (GTorchProcessGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  return self->klass == NULL ? NULL : self->klass->name;
}

/**
 * gtorch_process_group_get_rank:
 * @self: a group
 *
 * Gets the rank of this process.
 *
 * Returns: the rank; -1 if the process has no part in the group
 *
 * Since: 0.1
 */
gint
gtorch_process_group_get_rank (GTorchProcessGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), -1);
  return self->rank;
}

/**
 * gtorch_process_group_get_size:
 * @self: a group
 *
 * Gets how many processes the group has.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
gint
gtorch_process_group_get_size (GTorchProcessGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), 0);
  return self->size;
}

/**
 * gtorch_process_group_get_store:
 * @self: a group
 *
 * Gets the store by which the processes found each other.
 *
 * Returns: (transfer none) (nullable): the store
 *
 * Since: 0.1
 */
GTorchStore *
gtorch_process_group_get_store (GTorchProcessGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  return self->store;
}

/**
 * gtorch_process_group_get_timeout:
 * @self: a group
 *
 * Gets for how many seconds an operation waits for the other ranks.
 *
 * Returns: the time
 *
 * Since: 0.1
 */
gdouble
gtorch_process_group_get_timeout (GTorchProcessGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), 0);
  return self->timeout;
}

/**
 * gtorch_process_group_set_timeout:
 * @self: a group
 * @timeout: a time in seconds, more than 0
 * @error: return location for an error
 *
 * Sets for how many seconds operations that begin from now on wait for the other ranks.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_set_timeout (GTorchProcessGroup *self, gdouble timeout, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), FALSE);
  if (!check_timeout (timeout, error))
    return FALSE;
  if (gtorch_property_set_double (&self->timeout, timeout))
    g_object_notify (G_OBJECT (self), "timeout");
  return TRUE;
}

/**
 * gtorch_process_group_get_ranks:
 * @self: a group
 * @n_ranks: (out): how many there are
 *
 * Gets the ranks that the processes have in the group of all.
 *
 * Returns: (array length=n_ranks) (transfer full): the ranks, in the order of the group
 *
 * Since: 0.1
 */
gint64 *
gtorch_process_group_get_ranks (GTorchProcessGroup *self, gsize *n_ranks)
{
  gint64 *ranks;
  gint i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && n_ranks != NULL, NULL);
  ranks = g_new (gint64, MAX (self->size, 1));
  for (i = 0; i < self->size; i++)
    ranks[i] = self->ranks[i];
  *n_ranks = self->size;
  return ranks;
}

/**
 * gtorch_process_group_monitored_barrier:
 * @self: a group with a store
 * @timeout: for how many seconds to wait for the other ranks, more than 0; negative for
 *   [property@ProcessGroup:timeout]
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Waits until all ranks have called this, and finds out who has not.
 *
 * The ranks meet by the store of the group. If one does not come in time, all others, and the late one when
 * it comes, get an error that names it; the group does not fail by that.
 *
 * ```c
 * if (!gtorch_process_group_monitored_barrier (group, 10, NULL, &error))
 *   g_printerr ("%s\n", error->message); // …: rank 2 has not come to … after 10 seconds
 * ```
 *
 * Returns: %TRUE, or %FALSE with @error set: %G_IO_ERROR_TIMED_OUT with the ranks that are missing,
 *   %GTORCH_ERROR_NOT_SUPPORTED if the group was made without a store
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_monitored_barrier (GTorchProcessGroup *self, gdouble timeout,
                                        GCancellable *cancellable, GError **error)
{
  const gchar *const name = "monitored_barrier";

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (timeout < 0)
    timeout = self->timeout;
  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || gtorch_process_group_get_engine (self, name, error) == NULL
      || !gtorch_group_calls_check (self, GTORCH_GROUP_LANE_COLLECTIVES, name, error)
      || !check_timeout (timeout, error))
    return FALSE;
  if (self->agreement == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: the group was made without a store, by which ranks find out who is "
                      "missing"),
                   name);
      return FALSE;
    }
  return gtorch_agreement_meet (self->agreement, name, timeout, cancellable, error);
}
