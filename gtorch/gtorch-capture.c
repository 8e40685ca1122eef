/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures and what they make.
 *
 * A stream that captures does not run calls but hands them to its capture, which keeps them in the order in
 * which they came. That order is a correct one for a replay whatever streams took part, since a stream takes
 * part only by waiting for an event that another one of the capture recorded. To find streams whose work the
 * first one never waited for, each stream has a clock: for every stream of the capture, how many nodes had
 * been recorded when it last heard of it.
 *
 * Outputs come from the graph's pool. A node does not keep them from being reused by later nodes when the
 * program drops them, only their memory alive; operands from outside are kept, as they may be replaced by
 * nothing. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-capture-private.h"
#include "gtorch-generator-private.h"
#include "gtorch-graph-audit-private.h"
#include "gtorch-race-private.h"

#define MAX_STREAMS 64

gint gtorch_n_captures;
static gint n_global_captures;

typedef struct
{
  gint ref_count;
  GTorchSavedCall *call;  /* or */
  GTorchGraphExec *child; /* another graph, replayed in the capture */
  guint random; /* the place of its first random call among those of the graph, if it has any */
} Node;

struct _GTorchGraphExec
{
  gint ref_count;
  GTorchDevice *device;
  GTorchPool *pool;
  GPtrArray *nodes;
  GPtrArray *written; /* storages from outside that it writes to; borrowed from the nodes */
  GPtrArray *read;    /* … that it reads */
  guint n_random;
  gboolean is_prepared, has_children;
  const GTorchGraphBackend *backend; /* NULL: the calls are run */
  gpointer native;                   /* the backend's */
};

struct _GTorchCapture
{
  gint ref_count;
  gpointer graph;
  GTorchPool *pool;
  GTorchCaptureMode mode;
  GThread *thread;
  GMutex lock;
  GTorchGraphExec *exec;
  const GTorchGraphBackend *backend;
  gpointer native;
  GRecMutex launch_lock; /* of the backend's captures: they have the nodes in the same order */
  GSList *fences;
  guint n_streams; /* the first is where it began */
  GTorchStream *streams[MAX_STREAMS];
  guint last[MAX_STREAMS]; /* one more than the index of the stream's last node */
  guint clocks[MAX_STREAMS][MAX_STREAMS];
};

/* --- graphs --- */

static Node *
node_new (void)
{
  Node *node = g_new0 (Node, 1);

  node->ref_count = 1;
  return node;
}

static void
node_free (gpointer data)
{
  Node *node = data;

  if (!g_atomic_int_dec_and_test (&node->ref_count))
    return;
  g_clear_pointer (&node->call, gtorch_saved_call_free);
  g_clear_pointer (&node->child, gtorch_graph_exec_unref);
  g_free (node);
}

static GTorchGraphExec *
exec_new (GTorchDevice *device, GTorchPool *pool)
{
  GTorchGraphExec *exec = g_new0 (GTorchGraphExec, 1);

  exec->ref_count = 1;
  exec->device = device;
  exec->pool = gtorch_pool_ref (pool);
  gtorch_pool_set_graph (pool, TRUE);
  exec->nodes = g_ptr_array_new_with_free_func (node_free);
  exec->written = g_ptr_array_new ();
  exec->read = g_ptr_array_new ();
  return exec;
}

GTorchGraphExec *
gtorch_graph_exec_ref (GTorchGraphExec *exec)
{
  g_atomic_int_inc (&exec->ref_count);
  return exec;
}

/* When no replay uses it any more. */
static void
graph_exec_free (gpointer data)
{
  GTorchGraphExec *exec = data;

  g_ptr_array_unref (exec->nodes);
  g_ptr_array_unref (exec->written);
  g_ptr_array_unref (exec->read);
  gtorch_pool_set_graph (exec->pool, FALSE);
  gtorch_pool_unref (exec->pool);
  g_free (exec);
}

void
gtorch_graph_exec_unref (GTorchGraphExec *exec)
{
  if (!g_atomic_int_dec_and_test (&exec->ref_count))
    return;
  if (exec->native != NULL)
    exec->backend->free (exec->native, graph_exec_free, exec);
  else
    graph_exec_free (exec);
}

guint
gtorch_graph_exec_get_n_nodes (GTorchGraphExec *exec)
{
  return exec->nodes->len;
}

static void
add_once (GPtrArray *array, GHashTable *known, GTorchImpl *impl)
{
  /* Memory of the pool has no writer of its own: the pool has. */
  if (impl != NULL && !impl->is_number && !gtorch_pool_is_memory (impl->storage)
      && g_hash_table_add (known, impl->storage))
    g_ptr_array_add (array, impl->storage);
}

static void
find_operands (GTorchGraphExec *exec)
{
  g_autoptr (GHashTable) written = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) read = g_hash_table_new (NULL, NULL);
  guint i, j;

  for (i = 0; i < exec->nodes->len; i++)
    {
      Node *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        {
          for (j = 0; j < node->child->written->len; j++)
            if (g_hash_table_add (written, node->child->written->pdata[j]))
              g_ptr_array_add (exec->written, node->child->written->pdata[j]);
          for (j = 0; j < node->child->read->len; j++)
            if (g_hash_table_add (read, node->child->read->pdata[j]))
              g_ptr_array_add (exec->read, node->child->read->pdata[j]);
          continue;
        }
      for (j = 0; j < node->call->call.n_outputs; j++)
        add_once (exec->written, written, node->call->call.outputs[j]);
      for (j = 0; j < node->call->call.n_inputs; j++)
        add_once (exec->read, read, node->call->inputs[j]);
    }
}

gboolean
gtorch_graph_exec_prepare (GTorchGraphExec *exec, GError **error)
{
  if (exec->is_prepared)
    return TRUE;
  if (exec->native != NULL && !exec->backend->prepare (exec->native, error))
    return FALSE;
  find_operands (exec);
  exec->is_prepared = TRUE;
  return TRUE;
}

static inline gboolean
is_random (const Node *node)
{
  return (node->call->call.op->flags & GTORCH_OP_FLAG_RANDOM) != 0;
}

/* In the order of the nodes, as the calls themselves would have drawn. */
static void
reserve (GTorchGraphExec *exec, guint64 *numbers)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      Node *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        reserve (node->child, numbers + 2 * node->random);
      else if (is_random (node))
        {
          GTorchOpCall call = node->call->call;

          gtorch_random_reserve (&call);
          numbers[2 * node->random] = call.seed;
          numbers[2 * node->random + 1] = call.counter;
        }
    }
}

static gboolean
run_nodes (GTorchGraphExec *exec, const guint64 *numbers, GError **error)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      Node *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        {
          if (!run_nodes (node->child, numbers + 2 * node->random, error))
            return FALSE;
          continue;
        }
      if (is_random (node))
        {
          node->call->call.seed = numbers[2 * node->random];
          node->call->call.counter = numbers[2 * node->random + 1];
        }
      if (!gtorch_saved_call_run (node->call, error))
        {
          g_prefix_error (error, "graph: node %u: ", i);
          return FALSE;
        }
    }
  return TRUE;
}

typedef struct
{
  GTorchGraphExec *exec;
  GTorchTimeline *after; /* the replay before, if on another stream */
  guint64 after_seq;
  guint64 numbers[]; /* seed and counter of each random call */
} Replay;

static gboolean
replay_run (gpointer data, GError **error)
{
  Replay *replay = data;
  gboolean result;

  if (replay->after != NULL)
    gtorch_timeline_wait (replay->after, replay->after_seq, NULL, NULL);
  gtorch_pool_lock (replay->exec->pool);
  result = run_nodes (replay->exec, replay->numbers, error);
  gtorch_pool_unlock (replay->exec->pool);
  return result;
}

static void
replay_free (gpointer data)
{
  Replay *replay = data;

  gtorch_graph_exec_unref (replay->exec);
  g_free (replay);
}

static gboolean
wait_for_operands (GTorchGraphExec *exec, GError **error)
{
  guint i;

  for (i = 0; i < exec->read->len; i++)
    {
      GTorchStorage *storage = exec->read->pdata[i];
      GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

      if (writer == NULL)
        continue;
      if (!gtorch_storage_wait_copies (storage, error))
        return FALSE;
      gtorch_timeline_wait (writer, __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED), NULL,
                            NULL);
      if (!gtorch_timeline_report (writer, error))
        return FALSE;
    }
  for (i = 0; i < exec->written->len; i++)
    if (!gtorch_storage_wait_copies (exec->written->pdata[i], error))
      return FALSE;
  return TRUE;
}

/* The memory of the graphs in it is used, too. */
static gboolean
follow (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  guint i;

  if (!exec->backend->follow (exec->pool, stream, error))
    return FALSE;
  for (i = 0; exec->has_children && i < exec->nodes->len; i++)
    {
      Node *node = exec->nodes->pdata[i];

      if (node->child != NULL && !follow (node->child, stream, error))
        return FALSE;
    }
  return TRUE;
}

/* How many random calls have their numbers on the stack. */
#define FEW 16

static gboolean
replay_native (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  guint64 few[2 * FEW] = { 0 };
  g_autofree guint64 *many = exec->n_random > FEW ? g_new0 (guint64, 2 * exec->n_random) : NULL;
  guint64 *numbers = many != NULL ? many : few;
  gboolean result;
  guint i;

  if (gtorch_is_checking (GTORCH_CHECK_STREAMS)
      && !gtorch_race_note_graph (stream, NULL, exec->read, exec->written, error))
    return FALSE;
  gtorch_pool_lock (exec->pool);
  if (exec->n_random > 0)
    reserve (exec, numbers);
  result =
      follow (exec, stream, error) && exec->backend->replay (exec->native, stream, numbers, error);
  gtorch_pool_unlock (exec->pool);
  for (i = 0; result && i < exec->written->len; i++)
    {
      g_atomic_int_inc (&((GTorchStorage *) exec->written->pdata[i])->version);
      exec->backend->note_write (exec->written->pdata[i], stream);
    }
  return result;
}

gboolean
gtorch_graph_exec_replay (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  gboolean result = TRUE;
  Replay *replay;
  guint64 seq;
  guint i;

  if (exec->native != NULL)
    return replay_native (exec, stream, error);
  replay = g_malloc0 (sizeof (Replay) + 2 * exec->n_random * sizeof (guint64));
  replay->exec = gtorch_graph_exec_ref (exec);
  replay->after = gtorch_pool_get_writer (exec->pool, &replay->after_seq);
  if (gtorch_is_checking (GTORCH_CHECK_STREAMS)
      && !gtorch_race_note_graph (stream, replay->after, exec->read, exec->written, error))
    {
      replay_free (replay);
      return FALSE;
    }
  reserve (exec, replay->numbers);
  for (i = 0; i < exec->written->len; i++)
    g_atomic_int_inc (&((GTorchStorage *) exec->written->pdata[i])->version);

  if (stream->timeline == NULL)
    {
      result = wait_for_operands (exec, error) && replay_run (replay, error);
      replay_free (replay);
      return result;
    }
  if (replay->after == stream->timeline)
    replay->after = NULL;
  for (i = 0; i < exec->read->len; i++)
    gtorch_stream_enqueue_copies (stream, exec->read->pdata[i]);
  for (i = 0; i < exec->written->len; i++)
    gtorch_stream_enqueue_copies (stream, exec->written->pdata[i]);
  seq = GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, replay_run, replay, replay_free);
  gtorch_pool_set_writer (exec->pool, stream->timeline, seq);
  for (i = 0; i < exec->written->len; i++)
    gtorch_storage_set_writer (exec->written->pdata[i], stream->timeline, seq);
  if (gtorch_get_launch_blocking ())
    {
      gtorch_timeline_wait (stream->timeline, seq, NULL, NULL);
      result = gtorch_timeline_report (stream->timeline, error);
    }
  return result;
}

void
gtorch_graph_exec_write_dot (GTorchGraphExec *exec, GString *text)
{
  g_autoptr (GHashTable) writers = g_hash_table_new (NULL, NULL);
  guint i, j;

  g_string_append (text, "digraph gtorch {\n  node [shape=box, fontname=\"monospace\"];\n");
  for (i = 0; i < exec->nodes->len; i++)
    {
      Node *node = exec->nodes->pdata[i];
      GTorchOpCall *call;

      if (node->child != NULL)
        {
          g_string_append_printf (text, "  n%u [label=\"%u: graph of %u nodes\"];\n", i, i,
                                  node->child->nodes->len);
          continue;
        }
      call = &node->call->call;
      g_string_append_printf (text, "  n%u [label=\"%u: %s%s", i, i, call->op->name,
                              call->in_place ? "_" : "");
      for (j = 0; j < call->n_outputs; j++)
        if (call->outputs[j] != NULL)
          g_string_append_printf (text, "\\n%s %s", gtorch_dtype_get_name (call->outputs[j]->dtype),
                                  gtorch_impl_shape_str (call->outputs[j]));
      g_string_append (text, "\"];\n");
      for (j = 0; j < call->n_inputs; j++)
        {
          guint from = 0;

          if (call->inputs[j] != NULL)
            from = GPOINTER_TO_UINT (g_hash_table_lookup (writers, call->inputs[j]->storage->data));
          if (from != 0)
            g_string_append_printf (text, "  n%u -> n%u;\n", from - 1, i);
        }
      for (j = 0; j < call->n_outputs; j++)
        if (call->outputs[j] != NULL)
          g_hash_table_insert (writers, call->outputs[j]->storage->data, GUINT_TO_POINTER (i + 1));
    }
  g_string_append (text, "}\n");
}

/* --- other operands --- */

typedef struct
{
  GTorchImpl *from, *to;
  const gchar *outside; /* the operation that uses more of the memory than `from` */
  guint n_patched;
} Rebinding;

static const GTorchImpl *
nth_operand (const GTorchOpCall *call, guint i)
{
  return i < call->n_inputs ? call->inputs[i] : call->outputs[i - call->n_inputs];
}

static gboolean
node_uses (const Node *node, const GTorchStorage *storage)
{
  const GTorchOpCall *call = &node->call->call;
  guint i;

  for (i = 0; i < call->n_inputs + call->n_outputs; i++)
    if (nth_operand (call, i) != NULL && nth_operand (call, i)->storage == storage)
      return TRUE;
  return FALSE;
}

/* Bytes from the start of `from` to the operand; negative if it is not all inside. */
static gint64
place_in (const GTorchImpl *from, const GTorchImpl *operand)
{
  gint64 size = gtorch_dtype_size (operand->dtype), from_size = gtorch_dtype_size (from->dtype);
  gint64 start = from->offset * from_size;
  gint64 end = gtorch_strides_extent (from->offset, from->shape, from->strides, from->n_dims);
  gint64 operand_end =
      gtorch_strides_extent (operand->offset, operand->shape, operand->strides, operand->n_dims);

  if (operand->offset * size < start || operand_end * size > end * from_size)
    return -1;
  return operand->offset * size - start;
}

static GTorchImpl *
rebind_operand (GTorchImpl *operand, gpointer data)
{
  Rebinding *rebinding = data;
  gint64 size = gtorch_dtype_size (operand->dtype), place;

  if (operand->storage != rebinding->from->storage)
    return gtorch_impl_alias (operand);
  place = place_in (rebinding->from, operand)
          + rebinding->to->offset * (gint64) gtorch_dtype_size (rebinding->to->dtype);
  return gtorch_impl_new_strided (rebinding->to->storage, operand->dtype, place / size,
                                  operand->shape, operand->strides, operand->n_dims);
}

static gboolean
can_rebind (const Node *node, Rebinding *rebinding)
{
  const GTorchOpCall *call = &node->call->call;
  guint i;

  for (i = 0; i < call->n_inputs + call->n_outputs; i++)
    {
      const GTorchImpl *operand = nth_operand (call, i);

      if (operand != NULL && operand->storage == rebinding->from->storage
          && place_in (rebinding->from, operand) < 0)
        {
          rebinding->outside = call->op->name;
          return FALSE;
        }
    }
  return TRUE;
}

/* Nodes that do not use it are shared: replays that are under way have the former graph. */
static GTorchGraphExec *
exec_rebind (GTorchGraphExec *exec, Rebinding *rebinding)
{
  GTorchGraphExec *result = exec_new (exec->device, exec->pool);
  guint i;

  result->n_random = exec->n_random;
  result->has_children = exec->has_children;
  result->backend = exec->backend;

  for (i = 0; i < exec->nodes->len && rebinding->outside == NULL; i++)
    {
      Node *node = exec->nodes->pdata[i];
      Node *other = node;

      if (node->child != NULL)
        {
          other = node_new ();
          other->child = exec_rebind (node->child, rebinding);
        }
      else if (node_uses (node, rebinding->from->storage) && can_rebind (node, rebinding))
        {
          other = node_new ();
          other->call = gtorch_saved_call_new (&node->call->call, rebind_operand, rebinding);
          rebinding->n_patched++;
        }
      else
        g_atomic_int_inc (&node->ref_count);
      other->random = node->random;
      g_ptr_array_add (result->nodes, other);
    }
  return result;
}

GTorchGraphExec *
gtorch_graph_exec_rebind (GTorchGraphExec *exec, GTorchImpl *from, GTorchImpl *to, GError **error)
{
  Rebinding rebinding = { .from = from, .to = to };
  GTorchGraphExec *result;

  if (exec->native != NULL && exec->backend->rebind == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("graph: rebinding is not available on %s yet"),
                   gtorch_device_name (exec->device));
      return NULL;
    }
  if (gtorch_pool_of (from->storage) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("graph: the tensor of shape %s is computed by a graph: only those from "
                      "outside "
                      "can be replaced"),
                   gtorch_impl_shape_str (from));
      return NULL;
    }
  result = exec_rebind (exec, &rebinding);
  if (rebinding.outside != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("graph: %s uses more of the memory than the tensor of shape %s: rebind one "
                    "that "
                    "has it all"),
                 rebinding.outside, gtorch_impl_shape_str (from));
  else if (rebinding.n_patched == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                 _ ("graph: it does not use the tensor of shape %s"), gtorch_impl_shape_str (from));
  else if (exec->native == NULL)
    return result;
  else
    {
      result->native =
          exec->backend->rebind (exec->native, gtorch_impl_data (from), gtorch_impl_data (to),
                                 gtorch_impl_n_bytes (from), error);
      if (result->native != NULL)
        return result;
    }
  gtorch_graph_exec_unref (result);
  return NULL;
}

/* --- captures --- */

static GMutex capture_lock; /* of the capture of every stream */

static void
set_capture (GTorchStream *stream, GTorchCapture *capture)
{
  g_mutex_lock (&capture_lock);
  __atomic_store_n (&stream->capture, capture, __ATOMIC_RELEASE);
  g_mutex_unlock (&capture_lock);
}

GTorchCapture *
gtorch_stream_dup_capture (GTorchStream *stream)
{
  GTorchCapture *capture;

  if (stream == NULL || __atomic_load_n (&stream->capture, __ATOMIC_ACQUIRE) == NULL)
    return NULL;
  g_mutex_lock (&capture_lock);
  capture = stream->capture;
  if (capture != NULL)
    gtorch_capture_ref (capture);
  g_mutex_unlock (&capture_lock);
  return capture;
}

GTorchCapture *
gtorch_capture_begin (gpointer graph, GTorchStream *stream, GTorchPool *pool,
                      GTorchCaptureMode mode, GError **error)
{
  const GTorchGraphBackend *backend = GTORCH_DEVICE_GET_CLASS (stream->device)->graphs;
  GTorchGraphExec *exec;
  GTorchCapture *capture;
  gpointer native = NULL;

  /* The backend asks whether anything is captured: it is told before there is. */
  g_atomic_int_inc (&gtorch_n_captures);
  gtorch_pool_set_capturing (pool, TRUE);
  if (backend != NULL && (native = backend->begin (stream, pool, mode, error)) == NULL)
    {
      gtorch_pool_set_capturing (pool, FALSE);
      g_atomic_int_add (&gtorch_n_captures, -1);
      return NULL;
    }
  exec = exec_new (stream->device, pool);
  capture = g_new0 (GTorchCapture, 1);

  capture->ref_count = 1;
  capture->graph = graph;
  capture->pool = gtorch_pool_ref (exec->pool);
  capture->mode = mode;
  capture->thread = g_thread_self ();
  capture->exec = exec;
  exec->backend = capture->backend = backend;
  capture->native = native;
  g_mutex_init (&capture->lock);
  g_rec_mutex_init (&capture->launch_lock);
  capture->n_streams = 1;
  capture->streams[0] = g_object_ref (stream);

  if (mode == GTORCH_CAPTURE_MODE_GLOBAL)
    g_atomic_int_inc (&n_global_captures);
  gtorch_audit_begin (capture, mode);
  set_capture (stream, capture);
  return capture;
}

GTorchCapture *
gtorch_capture_ref (GTorchCapture *capture)
{
  g_atomic_int_inc (&capture->ref_count);
  return capture;
}

void
gtorch_capture_unref (GTorchCapture *capture)
{
  if (!g_atomic_int_dec_and_test (&capture->ref_count))
    return;
  g_mutex_clear (&capture->lock);
  g_rec_mutex_clear (&capture->launch_lock);
  gtorch_pool_unref (capture->pool);
  g_free (capture);
}

GTorchGraphExec *
gtorch_capture_end (GTorchCapture *capture, GError **error)
{
  GTorchGraphExec *exec = g_steal_pointer (&capture->exec);
  g_autoptr (GError) reason = NULL;
  GSList *fences, *l;
  guint i;

  for (i = 0; i < capture->n_streams; i++)
    set_capture (capture->streams[i], NULL);
  gtorch_audit_end (capture);
  if (capture->native != NULL)
    exec->native = capture->backend->end (g_steal_pointer (&capture->native), &reason);
  gtorch_pool_set_capturing (capture->pool, FALSE);
  g_atomic_int_add (&gtorch_n_captures, -1);
  if (capture->mode == GTORCH_CAPTURE_MODE_GLOBAL)
    g_atomic_int_add (&n_global_captures, -1);

  for (i = 1; i < capture->n_streams; i++)
    if (exec != NULL && capture->last[i] > capture->clocks[0][i])
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                     _ ("graph: stream %p took part in the capture and the first one, %p, did not "
                        "wait for its last work (%s): it must join before the end"),
                     capture->streams[i], capture->streams[0],
                     ((Node *) exec->nodes->pdata[capture->last[i] - 1])->call != NULL
                         ? ((Node *) exec->nodes->pdata[capture->last[i] - 1])->call->call.op->name
                         : "graph");
        g_clear_pointer (&exec, gtorch_graph_exec_unref);
      }
  if (exec != NULL && reason != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&reason));
      g_clear_pointer (&exec, gtorch_graph_exec_unref);
    }

  g_mutex_lock (&capture->lock);
  fences = g_steal_pointer (&capture->fences);
  g_mutex_unlock (&capture->lock);
  for (l = fences; l != NULL; l = l->next)
    gtorch_fence_complete (l->data, NULL);
  g_slist_free_full (fences, (GDestroyNotify) gtorch_fence_unref);
  for (i = 0; i < capture->n_streams; i++)
    g_object_unref (capture->streams[i]);
  capture->n_streams = 0;
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

GTorchPool *
gtorch_capture_get_pool (GTorchCapture *capture)
{
  return capture->pool;
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

static gboolean
add_node (GTorchCapture *capture, GTorchStream *stream, Node *node, GError **error)
{
  gboolean result = FALSE;
  guint index;

  g_mutex_lock (&capture->lock);
  index = find_stream (capture, stream);
  if (capture->exec != NULL && index < capture->n_streams)
    {
      node->random = capture->exec->n_random;
      if (node->child != NULL)
        {
          capture->exec->has_children = TRUE;
          capture->exec->n_random += node->child->n_random;
        }
      else if (is_random (node))
        capture->exec->n_random++;
      g_ptr_array_add (capture->exec->nodes, node);
      capture->last[index] = capture->exec->nodes->len;
      capture->clocks[index][index] = capture->exec->nodes->len;
      result = TRUE;
    }
  g_mutex_unlock (&capture->lock);
  if (!result)
    {
      node_free (node);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: the capture of stream %p has just ended"), stream);
    }
  return result;
}

static gboolean
launch (GTorchStream *stream, const GTorchOpCall *call, guint random, GError **error)
{
  GTorchOpCall own = *call;

  own.seed = 0;
  own.counter = random;
  return GTORCH_DEVICE_GET_CLASS (call->device)->launch (call->device, stream, &own, error);
}

gboolean
gtorch_capture_add (GTorchCapture *capture, GTorchStream *stream, GTorchOpCall *call,
                    GError **error)
{
  gboolean result = TRUE;

  g_rec_mutex_lock (&capture->launch_lock);
  if (capture->native != NULL)
    result = launch (stream, call, capture->exec->n_random, error);
  if (result)
    {
      Node *node = node_new ();

      node->call = gtorch_saved_call_new (call, gtorch_capture_alias_operand, capture);
      result = add_node (capture, stream, node, error);
    }
  g_rec_mutex_unlock (&capture->launch_lock);
  return result;
}

/* Captures what the graph did once more. */
static gboolean
launch_nodes (GTorchGraphExec *exec, GTorchStream *stream, guint random, GError **error)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      const Node *node = exec->nodes->pdata[i];
      const gboolean result =
          node->child != NULL ? launch_nodes (node->child, stream, random + node->random, error)
                              : launch (stream, &node->call->call, random + node->random, error);

      if (!result)
        return FALSE;
    }
  return TRUE;
}

static gboolean
uses_pool (GTorchGraphExec *exec, GTorchPool *pool)
{
  gboolean result = exec->pool == pool;
  guint i;

  for (i = 0; exec->has_children && i < exec->nodes->len && !result; i++)
    {
      const Node *node = exec->nodes->pdata[i];

      result = node->child != NULL && uses_pool (node->child, pool);
    }
  return result;
}

gboolean
gtorch_capture_add_child (GTorchCapture *capture, GTorchStream *stream, GTorchGraphExec *child,
                          GError **error)
{
  gboolean result = TRUE;

  /* What the child needs only in between is free memory of its pool. */
  if (uses_pool (child, capture->pool))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: one cannot become part of another that shares its pool of memory: "
                      "give them pools of their own"));
      return FALSE;
    }
  g_rec_mutex_lock (&capture->launch_lock);
  if (capture->native != NULL)
    {
      g_autoptr (GTorchStream) former = gtorch_stream_swap (stream->device, stream);
      g_autoptr (GTorchStream) inner = NULL;

      result = launch_nodes (child, stream, capture->exec->n_random, error);
      inner = gtorch_stream_swap (stream->device, former);
    }
  if (result)
    {
      Node *node = node_new ();

      node->child = gtorch_graph_exec_ref (child);
      result = add_node (capture, stream, node, error);
    }
  g_rec_mutex_unlock (&capture->launch_lock);
  return result;
}

gboolean
gtorch_capture_record (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                       GError **error)
{
  gboolean result = TRUE;
  guint index;

  g_mutex_lock (&capture->lock);
  index = find_stream (capture, stream);
  if (index < capture->n_streams && capture->native != NULL)
    result = capture->backend->record (capture->native, stream, fence, error);
  if (index < capture->n_streams && result)
    {
      fence->capture = gtorch_capture_ref (capture);
      fence->clock = g_memdup2 (capture->clocks[index], sizeof (capture->clocks[index]));
      capture->fences = g_slist_prepend (capture->fences, gtorch_fence_ref (fence));
    }
  g_mutex_unlock (&capture->lock);
  if (result && fence->capture == NULL)
    gtorch_fence_complete (fence, NULL); /* the capture ended in between */
  return result;
}

gboolean
gtorch_capture_join (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                     GError **error)
{
  g_autoptr (GTorchCapture) own = gtorch_stream_dup_capture (stream);
  const gchar *reason = NULL;
  gboolean result = TRUE;
  guint index, i;

  g_mutex_lock (&capture->lock);
  index = find_stream (capture, stream);
  if (own != NULL && own != capture)
    reason = _ ("another graph captures it");
  else if (own == NULL && stream->is_default)
    reason = _ ("it is a default stream, which cannot be captured");
  else if (own == NULL && index == MAX_STREAMS)
    reason = _ ("too many streams take part");
  else if (capture->native == NULL
           || (result = capture->backend->join (capture->native, stream, fence, error)))
    {
      if (own == NULL)
        {
          if (index == capture->n_streams)
            capture->streams[capture->n_streams++] = g_object_ref (stream);
          set_capture (stream, capture);
        }
      for (i = 0; i < MAX_STREAMS; i++)
        capture->clocks[index][i] = MAX (capture->clocks[index][i], fence->clock[i]);
    }
  g_mutex_unlock (&capture->lock);
  if (reason == NULL)
    return result;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("stream: %p cannot wait for an event of a capture: %s"), stream, reason);
  return FALSE;
}

gboolean
gtorch_capture_allow_sync (GTorchImpl *impl, GError **error)
{
  GTorchStream *stream = gtorch_current_stream (impl->storage->device);
  GTorchPool *pool = gtorch_pool_of (impl->storage);
  g_autoptr (GTorchCapture) capture = gtorch_stream_dup_capture (stream);
  const gchar *reason;

  if (pool != NULL && gtorch_pool_is_capturing (pool))
    reason = _ ("it is not computed before the graph is replayed");
  else if (capture != NULL && capture->mode != GTORCH_CAPTURE_MODE_RELAXED)
    reason = _ ("the current stream captures a graph");
  else if (g_atomic_int_get (&n_global_captures) != 0)
    reason = _ ("a graph is captured in global mode");
  else
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("the elements of a tensor of shape %s cannot be read on the host: %s"),
               gtorch_impl_shape_str (impl), reason);
  return FALSE;
}
