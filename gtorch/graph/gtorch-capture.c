/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures.
 *
 * A stream that captures does not run calls but passes them to its capture, which keeps them in the order
 * of their arrival. That is a valid order for a replay with any number of streams, since a stream can take
 * part only by waiting for an event that another stream of the capture recorded. To find streams whose work
 * the first one never waited for, each stream has a vector clock: for every stream of the capture, the
 * number of its nodes that are known to come before.
 *
 * A branch is a graph within the graph. While a branch is open, its stream adds nodes to it, and so do
 * streams that join the capture meanwhile; these leave the capture at the end of the branch. Other streams
 * have to wait until then, and a stream can wait for an event only in the branch in which it was recorded.
 *
 * Outputs are allocated in the graph's pool. A node keeps their memory alive, but does not keep it from
 * being reused by later nodes when the program drops the tensors. Operands from outside are kept alive.
 *
 * A stream of another device takes part like any other, if the backend of both captures; the whole graph is
 * replayed on the device on which the capture began. What the stream computes is allocated in a pool of its
 * device that belongs to the first pool: all graphs that use it use that one as well, so that what orders
 * replays in the first pool orders them in both. Branches are on the first device alone. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "stream/gtorch-stream-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-observer-private.h"
#include "graph/gtorch-graph-exec-private.h"
#include "gtorch-ops-private.h"
#include "dispatch/gtorch-saved-call-private.h"

#define MAX_STREAMS 64

typedef struct
{
  GTorchGraphExec *exec;
  GTorchImpl *predicate;
  guint number;
  guint stream;    /* index of the stream that began the branch */
  guint n_streams; /* at the beginning; later streams belong to the branch only */
} GTorchBranch;

struct _GTorchCapture
{
  GTorchCaptureBase base;
  gpointer graph;
  GTorchCaptureMode mode;
  GThread *thread;
  GMutex lock;
  GTorchGraphExec *exec;
  GTorchPool *pool; /* on the device of the first stream; `places` owns it */
  const GTorchGraphBackend *backend;
  gpointer native;
  /* Held while the backend captures: its capture then has the nodes in the same order as exec, and all
   * nodes between begin and end of a branch, those of child graphs included, belong to the branch. Taken
   * before `lock`. */
  GRecMutex launch_lock;
  GSList *fences;
  guint n_streams; /* the first is the one on which the capture began */
  GTorchStream *streams[MAX_STREAMS];
  guint n_nodes;           /* so far, including those in branches */
  guint last[MAX_STREAMS]; /* number of the stream's last node, from 1 */
  const gchar *last_name[MAX_STREAMS];
  guint clocks[MAX_STREAMS][MAX_STREAMS];
  GArray *branches; /* open branches, as GTorchBranch */
  guint n_branches; /* begun so far */
  GError *failure;  /* error of a branch */
};

static gboolean capture_add (GTorchCapture *capture, GTorchStream *stream, GTorchOpCall *call,
                             GError **error);
static gboolean capture_record (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                                GError **error);
static gboolean capture_join (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                              GError **error);
static gboolean capture_begin_work (GTorchCapture *capture, GTorchStream *stream, GError **error);
static void capture_end_work (GTorchCapture *capture, GTorchStream *stream);
static gboolean capture_add_work (GTorchCapture *capture, GTorchStream *stream, const gchar *name,
                                  GPtrArray *read, GPtrArray *written, GError **error);
static void capture_add_party (GTorchCapture *capture, const GTorchLaunchParties *klass,
                               gpointer party);
static void capture_free (GTorchCapture *capture);

static const GTorchCaptureClass capture_class = {
  .add = capture_add,
  .record = capture_record,
  .join = capture_join,
  .begin_work = capture_begin_work,
  .end_work = capture_end_work,
  .add_work = capture_add_work,
  .add_party = capture_add_party,
  .free = capture_free,
};

/* Makes streams of the pool's device, when they take part, allocate from it. Returns the number of the
 * capture within the pool. */
static guint
open_place (GTorchCapture *capture, GTorchPool *pool)
{
  GTorchCapturePlace *place = gtorch_capture_get_place (capture, pool->device);

  place->number = gtorch_pool_promise (pool);
  __atomic_store_n (&place->pool, gtorch_pool_ref (pool), __ATOMIC_RELEASE);
  return place->number;
}

GTorchCapture *
gtorch_capture_begin (gpointer graph, GTorchStream *stream, GTorchPool *pool,
                      GTorchCaptureMode mode, GError **error)
{
  const GTorchGraphBackend *backend = GTORCH_DEVICE_GET_CLASS (stream->device)->graphs;
  GTorchGraphExec *exec;
  GTorchCapture *capture;
  gpointer native = NULL;

  /* Set first, since the backend asks whether anything is being captured. */
  g_atomic_int_inc (&gtorch_n_captures);
  gtorch_pool_set_capturing (pool, TRUE);
  if (backend != NULL && (native = backend->begin (stream, pool, mode, error)) == NULL)
    {
      gtorch_pool_set_capturing (pool, FALSE);
      g_atomic_int_add (&gtorch_n_captures, -1);
      return NULL;
    }
  exec = gtorch_graph_exec_new (stream->device, pool);
  capture = g_new0 (GTorchCapture, 1);

  capture->base.klass = &capture_class;
  capture->base.ref_count = 1;
  capture->base.is_relaxed = mode == GTORCH_CAPTURE_MODE_RELAXED;
  capture->graph = graph;
  capture->pool = pool;
  exec->capture = open_place (capture, pool);
  capture->mode = mode;
  capture->thread = g_thread_self ();
  capture->exec = exec;
  exec->backend = capture->backend = backend;
  capture->native = native;
  g_mutex_init (&capture->lock);
  g_rec_mutex_init (&capture->launch_lock);
  capture->n_streams = 1;
  capture->streams[0] = g_object_ref (stream);
  capture->branches = g_array_new (FALSE, FALSE, sizeof (GTorchBranch));

  if (mode == GTORCH_CAPTURE_MODE_GLOBAL)
    g_atomic_int_inc (&gtorch_n_global_captures);
  gtorch_observe_capture_begin (capture);
  gtorch_stream_set_capture (stream, capture);
  return capture;
}

static void
capture_free (GTorchCapture *capture)
{
  guint i;

  g_mutex_clear (&capture->lock);
  g_rec_mutex_clear (&capture->launch_lock);
  g_array_unref (capture->branches);
  g_clear_error (&capture->failure);
  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    g_clear_pointer (&capture->base.places[i].pool, gtorch_pool_unref);
  g_free (capture);
}

static void
set_unjoined (GTorchCapture *capture, guint index, const GTorchBranch *branch, GError **error)
{
  GTorchDevice *device = capture->streams[index]->device;

  if (device != capture->streams[0]->device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: stream %p of %s took part in the capture and the first one, %p of "
                      "%s, "
                      "did not wait for its last work (%s): it must join before the end"),
                   capture->streams[index], gtorch_device_name (device), capture->streams[0],
                   gtorch_device_name (capture->streams[0]->device), capture->last_name[index]);
      return;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               branch == NULL
                   ? _ ("graph: stream %p took part in the capture and the first one, %p, did not "
                        "wait for its last work (%s): it must join before the end")
                   : _ ("graph: stream %p took part in the branch and the stream of the branch, "
                        "%p, did not wait for its last work (%s): it must join before the end"),
               capture->streams[index], capture->streams[branch != NULL ? branch->stream : 0],
               capture->last_name[index]);
}

static void
drop_branch (GTorchCapture *capture)
{
  GTorchBranch *branch =
      &g_array_index (capture->branches, GTorchBranch, capture->branches->len - 1);

  g_clear_pointer (&branch->exec, gtorch_graph_exec_unref);
  gtorch_impl_unref (branch->predicate);
  g_array_set_size (capture->branches, capture->branches->len - 1);
}

GTorchGraphExec *
gtorch_capture_end (GTorchCapture *capture, gchar **warning, GError **error)
{
  GTorchGraphExec *exec;
  g_autoptr (GError) reason = NULL;
  GSList *fences, *l;
  guint n_streams, i;

  g_rec_mutex_lock (&capture->launch_lock); /* another thread may be launching */
  g_mutex_lock (&capture->lock);
  exec = g_steal_pointer (&capture->exec);
  g_mutex_unlock (&capture->lock);
  if (capture->native != NULL)
    exec->native = capture->backend->end (g_steal_pointer (&capture->native), &reason);
  /* Done last: the driver crashes if one thread works on a stream while another ends its capture. */
  g_mutex_lock (&capture->lock);
  for (i = 0; i < capture->n_streams; i++)
    gtorch_stream_set_capture (capture->streams[i], NULL);
  g_mutex_unlock (&capture->lock);
  g_rec_mutex_unlock (&capture->launch_lock);
  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    if (capture->base.places[i].pool != NULL)
      gtorch_pool_set_capturing (capture->base.places[i].pool, FALSE);
  g_atomic_int_add (&gtorch_n_captures, -1);
  if (capture->mode == GTORCH_CAPTURE_MODE_GLOBAL)
    g_atomic_int_add (&gtorch_n_global_captures, -1);

  if (capture->failure != NULL)
    {
      g_propagate_prefixed_error (error, g_steal_pointer (&capture->failure),
                                  _ ("the capture is spoiled: "));
      g_clear_pointer (&exec, gtorch_graph_exec_unref);
    }
  while (capture->branches->len > 0)
    {
      if (exec != NULL)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE, _ ("graph: a branch is open"));
      g_clear_pointer (&exec, gtorch_graph_exec_unref);
      g_mutex_lock (&capture->lock);
      drop_branch (capture);
      g_mutex_unlock (&capture->lock);
    }
  for (i = 1; i < capture->n_streams; i++)
    if (exec != NULL && capture->last[i] > capture->clocks[0][i])
      {
        set_unjoined (capture, i, NULL, error);
        g_clear_pointer (&exec, gtorch_graph_exec_unref);
      }
  if (exec != NULL && reason != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&reason));
      g_clear_pointer (&exec, gtorch_graph_exec_unref);
    }
  if (warning == NULL)
    g_clear_pointer (&exec, gtorch_graph_exec_unref);
  if (exec != NULL
      && !gtorch_graph_exec_audit (exec, gtorch_cuda_graph_get_table (capture->graph),
                                   gtorch_capture_is_relaxed (capture), warning, error))
    g_clear_pointer (&exec, gtorch_graph_exec_unref);
  if (!gtorch_observe_capture_end (capture, exec, warning, error))
    g_clear_pointer (&exec, gtorch_graph_exec_unref);

  g_mutex_lock (&capture->lock);
  fences = g_steal_pointer (&capture->fences);
  n_streams = capture->n_streams;
  capture->n_streams = 0;
  g_mutex_unlock (&capture->lock);
  for (l = fences; l != NULL; l = l->next)
    gtorch_fence_complete (l->data, NULL);
  g_slist_free_full (fences, (GDestroyNotify) gtorch_fence_unref);
  for (i = 0; i < n_streams; i++)
    g_object_unref (capture->streams[i]);
  gtorch_capture_unref (capture);
  return exec;
}

gpointer
gtorch_capture_get_graph (GTorchCapture *capture)
{
  return capture->graph;
}

GTorchStream *
gtorch_capture_get_stream (GTorchCapture *capture)
{
  return capture->streams[0];
}

GThread *
gtorch_capture_get_thread (GTorchCapture *capture)
{
  return capture->thread;
}

gboolean
gtorch_capture_is_relaxed (GTorchCapture *capture)
{
  return capture->mode == GTORCH_CAPTURE_MODE_RELAXED;
}

static guint
find_stream (GTorchCapture *capture, GTorchStream *stream)
{
  guint i;

  for (i = 0; i < capture->n_streams && capture->streams[i] != stream; i++)
    continue;
  return i;
}

GTorchImpl *
gtorch_capture_alias_operand (GTorchImpl *impl, gpointer data)
{
  GTorchStorage *memory;
  GTorchImpl *alias;

  if (gtorch_pool_of (impl->storage) == NULL)
    return gtorch_impl_alias (impl);
  memory = gtorch_pool_get_memory (impl->storage);
  alias = gtorch_impl_new_strided (memory, impl->dtype, impl->offset, impl->shape, impl->strides,
                                   impl->n_dims);
  alias->is_number = impl->is_number;
  gtorch_storage_unref (memory);
  return alias;
}

/* Returns the innermost open branch or NULL. Called with the lock held, like the functions below. */
static GTorchBranch *
open_branch (GTorchCapture *capture)
{
  return capture->branches->len > 0
             ? &g_array_index (capture->branches, GTorchBranch, capture->branches->len - 1)
             : NULL;
}

/* Returns the number of the branch that the stream is in; 0: none. */
static guint
branch_of (GTorchCapture *capture, guint index)
{
  guint i;

  for (i = capture->branches->len; i-- > 0;)
    {
      const GTorchBranch *branch = &g_array_index (capture->branches, GTorchBranch, i);

      if (index == branch->stream || index >= branch->n_streams)
        return branch->number;
    }
  return 0;
}

/* Returns whether the stream can add nodes now. */
static gboolean
check_stream (GTorchCapture *capture, GTorchStream *stream, GError **error)
{
  const guint index = find_stream (capture, stream);
  const GTorchBranch *branch = open_branch (capture);

  if (capture->exec == NULL || index == capture->n_streams)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                 _ ("graph: the capture of stream %p has just ended"), stream);
  else if (branch != NULL && branch_of (capture, index) != branch->number)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                 _ ("graph: stream %p takes part in the capture but not in the branch that stream "
                    "%p has begun: that must end first"),
                 stream, capture->streams[branch->stream]);
  else
    return TRUE;
  return FALSE;
}

/* Returns the number of random calls captured so far. */
static guint
count_random (GTorchCapture *capture)
{
  guint n = capture->exec->n_random, i;

  for (i = 0; i < capture->branches->len; i++)
    n += g_array_index (capture->branches, GTorchBranch, i).exec->n_random;
  return n;
}

static gboolean
add_node (GTorchCapture *capture, GTorchStream *stream, GTorchGraphNode *node, GError **error)
{
  gboolean result;
  guint index;

  g_mutex_lock (&capture->lock);
  index = find_stream (capture, stream);
  result = check_stream (capture, stream, error);
  if (result)
    {
      const GTorchBranch *branch = open_branch (capture);
      GTorchGraphExec *exec = branch != NULL ? branch->exec : capture->exec;

      node->random = exec->n_random;
      if (node->child != NULL)
        {
          exec->has_children = TRUE;
          exec->n_random += node->child->n_random;
        }
      else if (gtorch_graph_node_is_random (node))
        exec->n_random++;
      g_ptr_array_add (exec->nodes, node);
      capture->last[index] = capture->clocks[index][index] = ++capture->n_nodes;
      capture->last_name[index] = node->call != NULL ? node->call->call.op->name : "graph";
    }
  g_mutex_unlock (&capture->lock);
  if (!result)
    gtorch_graph_node_unref (node);
  return result;
}

/* Checks, before something is launched, that the stream can add nodes. */
static gboolean
may_launch (GTorchCapture *capture, GTorchStream *stream, GError **error)
{
  gboolean result;

  g_mutex_lock (&capture->lock);
  result = check_stream (capture, stream, error);
  g_mutex_unlock (&capture->lock);
  return result;
}

static gboolean
capture_add (GTorchCapture *capture, GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  gboolean result;

  g_rec_mutex_lock (&capture->launch_lock);
  result = may_launch (capture, stream, error);
  if (result && capture->native != NULL)
    {
      capture->backend->enter (capture->native, stream);
      result = gtorch_graph_launch_call (stream, call, count_random (capture), error);
      capture->backend->leave (capture->native, stream);
    }
  if (result)
    {
      GTorchGraphNode *node = gtorch_graph_node_new ();

      node->call = gtorch_saved_call_new (call, gtorch_capture_alias_operand, capture);
      result = add_node (capture, stream, node, error);
    }
  g_rec_mutex_unlock (&capture->launch_lock);
  return result;
}

/* --- work that is no operation of the library --- */

static gboolean
capture_begin_work (GTorchCapture *capture, GTorchStream *stream, GError **error)
{
  g_rec_mutex_lock (&capture->launch_lock);
  if (!may_launch (capture, stream, error))
    {
      g_rec_mutex_unlock (&capture->launch_lock);
      return FALSE;
    }
  if (capture->native != NULL)
    capture->backend->enter (capture->native, stream);
  return TRUE;
}

static void
capture_end_work (GTorchCapture *capture, GTorchStream *stream)
{
  if (capture->native != NULL)
    capture->backend->leave (capture->native, stream);
  g_rec_mutex_unlock (&capture->launch_lock);
}

/* A class of operations that has only a name. Classes are never freed. */
static const GTorchOpClass *
class_of_work (const gchar *name)
{
  static GMutex lock;
  static GHashTable *classes;
  GTorchOpClass *result;

  g_mutex_lock (&lock);
  if (classes == NULL)
    classes = g_hash_table_new (g_str_hash, g_str_equal);
  result = g_hash_table_lookup (classes, name);
  if (result == NULL)
    {
      result = g_new0 (GTorchOpClass, 1);
      result->name = name;
      g_hash_table_insert (classes, (gpointer) name, result);
    }
  g_mutex_unlock (&lock);
  return result;
}

static gboolean
add_work_node (GTorchCapture *capture, GTorchStream *stream, const GTorchOpCall *call,
               GError **error)
{
  GTorchGraphNode *node = gtorch_graph_node_new ();

  node->call = gtorch_saved_call_new (call, gtorch_capture_alias_operand, capture);
  capture->exec->n_foreign++;
  return add_node (capture, stream, node, error);
}

static gboolean
capture_add_work (GTorchCapture *capture, GTorchStream *stream, const gchar *name, GPtrArray *read,
                  GPtrArray *written, GError **error)
{
  const GTorchOpCall base = { .op = class_of_work (name), .device = stream->device };
  gboolean result = TRUE;
  guint i;

  if (read->len > 0)
    {
      GTorchOpCall call = base;

      call.inputs = (GTorchImpl *const *) read->pdata;
      call.n_inputs = read->len;
      result = add_work_node (capture, stream, &call, error);
    }
  for (i = 0; result && i < written->len; i++)
    {
      GTorchOpCall call = base;

      call.outputs[0] = written->pdata[i];
      call.n_outputs = 1;
      result = add_work_node (capture, stream, &call, error);
    }
  return result;
}

static void
capture_add_party (GTorchCapture *capture, const GTorchLaunchParties *klass, gpointer party)
{
  GTorchGraphExec *exec = capture->exec;
  guint i;

  if (exec->parties == NULL)
    exec->parties = g_ptr_array_new_with_free_func (klass->free);
  exec->party_class = klass;
  for (i = 0; i < exec->parties->len; i++)
    if (klass->compare (&exec->parties->pdata[i], &party) == 0)
      {
        klass->free (party);
        return;
      }
  g_ptr_array_add (exec->parties, party);
  g_ptr_array_sort (exec->parties, klass->compare);
}

gboolean
gtorch_capture_add_child (GTorchCapture *capture, GTorchStream *stream, GTorchGraphExec *child,
                          GError **error)
{
  gboolean result;

  /* The pool of the capture may reuse memory that the child uses for intermediate results. */
  if (!gtorch_graph_exec_check_whole (child, _ ("it cannot become part of another graph"), error))
    return FALSE;
  if (gtorch_graph_exec_uses_pool (child, capture->pool))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: a graph cannot become part of another one that shares its "
                      "memory pool: give each its own pool"));
      return FALSE;
    }
  if (gtorch_graph_exec_get_n_foreign (child) > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: a graph with %u nodes that the library did not launch cannot "
                      "become part of another one"),
                   gtorch_graph_exec_get_n_foreign (child));
      return FALSE;
    }
  g_rec_mutex_lock (&capture->launch_lock);
  result = may_launch (capture, stream, error);
  if (result && capture->native != NULL)
    {
      GTorchChange change;

      gtorch_change_to_stream (&change, stream->device, stream);
      capture->backend->enter (capture->native, stream);
      result =
          gtorch_graph_exec_launch (child, capture->native, stream, count_random (capture), error);
      capture->backend->leave (capture->native, stream);
      gtorch_change_end (&change);
    }
  if (result)
    {
      GTorchGraphNode *node = gtorch_graph_node_new ();

      node->child = gtorch_graph_exec_ref (child);
      result = add_node (capture, stream, node, error);
    }
  g_rec_mutex_unlock (&capture->launch_lock);
  return result;
}

static gboolean
capture_record (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence, GError **error)
{
  gboolean result = TRUE, takes_part;
  guint index;

  g_rec_mutex_lock (&capture->launch_lock);
  g_mutex_lock (&capture->lock);
  index = find_stream (capture, stream);
  takes_part = capture->exec != NULL && index < capture->n_streams;
  if (takes_part && capture->native != NULL)
    result = capture->backend->record (capture->native, stream, fence, error);
  if (takes_part && result)
    {
      fence->capture = gtorch_capture_ref (capture);
      fence->clock = g_memdup2 (capture->clocks[index], sizeof (capture->clocks[index]));
      fence->branch = branch_of (capture, index);
      capture->fences = g_slist_prepend (capture->fences, gtorch_fence_ref (fence));
    }
  g_mutex_unlock (&capture->lock);
  g_rec_mutex_unlock (&capture->launch_lock);
  if (result && fence->capture == NULL)
    gtorch_fence_complete (fence, NULL); /* the capture has ended meanwhile */
  return result;
}

static gboolean
is_after (GTorchCapture *capture, guint index, const GTorchFence *fence)
{
  guint i;

  for (i = 0; i < MAX_STREAMS && capture->clocks[index][i] >= fence->clock[i]; i++)
    continue;
  return i == MAX_STREAMS;
}

/* Returns why the stream, which may be about to join, cannot wait for the fence, or NULL if it can. */
static const gchar *
find_obstacle (GTorchCapture *capture, guint index, const GTorchFence *fence)
{
  const GTorchBranch *branch = open_branch (capture);
  const guint now = branch != NULL ? branch->number : 0;
  const guint number = index < capture->n_streams ? branch_of (capture, index) : now;

  if (fence->branch == number)
    return NULL;
  return number != now || fence->branch < number
             ? _ ("one of the two is in a branch of the graph, and the other is not")
             : _ ("it was recorded in a branch of the graph, which has ended");
}

/* Returns whether streams of the device can take part in the capture. */
static gboolean
is_open_to (GTorchCapture *capture, GTorchDevice *device)
{
  return device == capture->exec->device
         || (capture->backend != NULL
             && GTORCH_DEVICE_GET_CLASS (device)->graphs == capture->backend);
}

static gboolean
join_native (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence, GError **error)
{
  GTorchPool *pool = gtorch_capture_get_pool (capture, stream->device);
  const gboolean is_first = pool == NULL; /* of its device */

  if (is_first)
    {
      pool = gtorch_pool_get_on (capture->pool, stream->device);
      gtorch_pool_set_capturing (pool, TRUE);
    }
  if (!capture->backend->join (capture->native, stream, pool, fence, error))
    {
      if (is_first)
        gtorch_pool_set_capturing (pool, FALSE);
      return FALSE;
    }
  if (is_first)
    gtorch_graph_exec_add_part (capture->exec, pool, open_place (capture, pool));
  return TRUE;
}

static gboolean
capture_join (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence, GError **error)
{
  g_autoptr (GTorchCapture) own = gtorch_stream_dup_capture (stream);
  const gchar *reason = NULL;
  gboolean result = TRUE;
  guint index, i;

  g_rec_mutex_lock (&capture->launch_lock);
  g_mutex_lock (&capture->lock);
  index = find_stream (capture, stream);
  if (capture->exec == NULL)
    result = TRUE; /* the capture has just ended, which completes the fence */
  else if (own != NULL && own != capture)
    reason = _ ("another graph captures it");
  else if (!is_open_to (capture, stream->device))
    reason = _ ("it is on another device");
  else if (own == NULL && stream->is_default)
    reason = _ ("it is a default stream, which cannot be captured");
  else if (own == NULL && index == MAX_STREAMS)
    reason = _ ("too many streams take part");
  else if (own == NULL && stream->device != capture->exec->device && open_branch (capture) != NULL)
    reason = _ ("a branch of the graph is open, and all of a branch is on the device of the graph");
  else if (own != NULL && fence->branch != branch_of (capture, index)
           && is_after (capture, index, fence))
    result = TRUE; /* the stream already comes after the fence */
  else if ((reason = find_obstacle (capture, index, fence)) != NULL)
    result = FALSE;
  else if (capture->native == NULL || (result = join_native (capture, stream, fence, error)))
    {
      if (own == NULL)
        {
          if (index == capture->n_streams)
            capture->streams[capture->n_streams++] = g_object_ref (stream);
          gtorch_stream_set_capture (stream, capture);
        }
      for (i = 0; i < MAX_STREAMS; i++)
        capture->clocks[index][i] = MAX (capture->clocks[index][i], fence->clock[i]);
    }
  g_mutex_unlock (&capture->lock);
  g_rec_mutex_unlock (&capture->launch_lock);
  if (reason == NULL)
    return result;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("stream: %p cannot wait for an event of a capture: %s"), stream, reason);
  return FALSE;
}

/* --- branches --- */

static GTorchImpl *
to_bool (GTorchStream *stream, GTorchImpl *predicate, GError **error)
{
  g_autofree gchar *device = NULL;

  if (predicate->storage == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                 _ ("graph: the predicate of shape %s was released"),
                 gtorch_impl_shape_str (predicate));
  else if (predicate->numel != 1)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("graph: a predicate has one element, not the shape %s"),
                 gtorch_impl_shape_str (predicate));
  else if (predicate->storage->device != stream->device)
    {
      device = gtorch_device_to_string (stream->device);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("graph: the capture is on %s and the predicate on %s"), device,
                   gtorch_device_name (predicate->storage->device));
    }
  else
    return predicate->dtype == GTORCH_DTYPE_BOOL
               ? gtorch_impl_alias (predicate)
               : gtorch_op_to_dtype (predicate, GTORCH_DTYPE_BOOL, error);
  return NULL;
}

static gboolean
check_branch_device (GTorchCapture *capture, GTorchStream *stream, GError **error)
{
  if (stream->device == capture->exec->device)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("graph: a branch on %s is not supported in a capture that began on %s"),
               gtorch_device_name (stream->device), gtorch_device_name (capture->exec->device));
  return FALSE;
}

gboolean
gtorch_capture_begin_branch (GTorchCapture *capture, GTorchStream *stream, GTorchImpl *predicate,
                             GError **error)
{
  g_autoptr (GTorchImpl) flag = NULL;
  gboolean result;

  flag = to_bool (stream, predicate, error);
  if (flag == NULL)
    return FALSE;
  /* Holds both locks, so that no stream joins while it is undecided in which branch. */
  g_rec_mutex_lock (&capture->launch_lock);
  g_mutex_lock (&capture->lock);
  result = check_stream (capture, stream, error) && check_branch_device (capture, stream, error);
  if (result && capture->native != NULL)
    {
      capture->backend->enter (capture->native, stream);
      result = capture->backend->begin_branch (capture->native, stream, flag, error);
      capture->backend->leave (capture->native, stream);
    }
  if (result)
    {
      GTorchBranch branch = { .predicate = gtorch_capture_alias_operand (flag, capture) };

      branch.exec = gtorch_graph_exec_new (stream->device, capture->pool);
      branch.exec->backend = capture->backend;
      branch.number = ++capture->n_branches;
      branch.stream = find_stream (capture, stream);
      branch.n_streams = capture->n_streams;
      g_array_append_val (capture->branches, branch);
    }
  g_mutex_unlock (&capture->lock);
  g_rec_mutex_unlock (&capture->launch_lock);
  return result;
}

/* Returns whether the branch's stream has waited for all streams that joined since the branch began. */
static gboolean
check_joined (GTorchCapture *capture, const GTorchBranch *branch, GError **error)
{
  guint i;

  for (i = branch->n_streams; i < capture->n_streams; i++)
    if (capture->last[i] > capture->clocks[branch->stream][i])
      {
        set_unjoined (capture, i, branch, error);
        return FALSE;
      }
  return TRUE;
}

/* Removes the streams that joined in the branch from the capture and collects them in `streams`, so that
 * they can be unreferenced after the lock is released. */
static void
part (GTorchCapture *capture, const GTorchBranch *branch, GPtrArray *streams)
{
  guint i;

  for (i = branch->n_streams; i < capture->n_streams; i++)
    {
      gtorch_stream_set_capture (capture->streams[i], NULL);
      g_ptr_array_add (streams, g_steal_pointer (&capture->streams[i]));
      memset (capture->clocks[i], 0, sizeof (capture->clocks[i]));
      capture->last[i] = 0;
    }
  capture->n_streams = branch->n_streams;
}

gboolean
gtorch_capture_end_branch (GTorchCapture *capture, GTorchStream *stream, GError **error)
{
  g_autoptr (GPtrArray) streams = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GError) reason = NULL;
  GTorchGraphNode *node = NULL;
  GTorchBranch *branch;
  gboolean result;

  g_rec_mutex_lock (&capture->launch_lock);
  g_mutex_lock (&capture->lock);
  branch = open_branch (capture);
  if (capture->exec == NULL || branch == NULL || capture->streams[branch->stream] != stream)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   capture->exec == NULL ? _ ("graph: the capture of stream %p has just ended")
                   : branch == NULL      ? _ ("graph: there is no branch to end on stream %p")
                                         : _ ("graph: the branch did not begin on stream %p"),
                   stream);
      g_mutex_unlock (&capture->lock);
      g_rec_mutex_unlock (&capture->launch_lock);
      return FALSE;
    }
  result = check_joined (capture, branch, &reason);
  if (capture->native != NULL)
    {
      capture->backend->enter (capture->native, stream);
      result =
          capture->backend->end_branch (capture->native, stream, result ? &reason : NULL) && result;
      capture->backend->leave (capture->native, stream);
    }
  /* Done last: until now the backend would still capture what is launched on these streams. */
  part (capture, branch, streams);
  if (result)
    {
      node = gtorch_graph_node_new ();
      node->child = g_steal_pointer (&branch->exec);
      node->predicate = gtorch_impl_ref (branch->predicate);
    }
  else if (capture->failure == NULL)
    capture->failure = g_error_copy (reason);
  drop_branch (capture);
  g_mutex_unlock (&capture->lock);
  if (result)
    result = add_node (capture, stream, node, error);
  else
    g_propagate_error (error, g_steal_pointer (&reason));
  g_rec_mutex_unlock (&capture->launch_lock);
  return result;
}

gboolean
gtorch_capture_has_branch (GTorchCapture *capture)
{
  gboolean result;

  g_mutex_lock (&capture->lock);
  result = capture->branches->len > 0;
  g_mutex_unlock (&capture->lock);
  return result;
}
