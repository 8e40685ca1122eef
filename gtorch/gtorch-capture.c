/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures.
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

#include "gtorch-graph-audit-private.h"
#include "gtorch-graph-exec-private.h"
#include "gtorch-race-private.h"

#define MAX_STREAMS 64

gint gtorch_n_captures;
static gint n_global_captures;

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
  exec = gtorch_graph_exec_new (stream->device, pool);
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
  g_rec_mutex_lock (&capture->launch_lock); /* another thread may be launching */
  if (capture->native != NULL)
    exec->native = capture->backend->end (g_steal_pointer (&capture->native), &reason);
  g_rec_mutex_unlock (&capture->launch_lock);
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
                     ((GTorchGraphNode *) exec->nodes->pdata[capture->last[i] - 1])->call != NULL
                         ? ((GTorchGraphNode *) exec->nodes->pdata[capture->last[i] - 1])
                               ->call->call.op->name
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

static gboolean
add_node (GTorchCapture *capture, GTorchStream *stream, GTorchGraphNode *node, GError **error)
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
      else if (gtorch_graph_node_is_random (node))
        capture->exec->n_random++;
      g_ptr_array_add (capture->exec->nodes, node);
      capture->last[index] = capture->exec->nodes->len;
      capture->clocks[index][index] = capture->exec->nodes->len;
      result = TRUE;
    }
  g_mutex_unlock (&capture->lock);
  if (!result)
    {
      gtorch_graph_node_unref (node);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: the capture of stream %p has just ended"), stream);
    }
  return result;
}

gboolean
gtorch_capture_add (GTorchCapture *capture, GTorchStream *stream, GTorchOpCall *call,
                    GError **error)
{
  gboolean result = TRUE;

  g_rec_mutex_lock (&capture->launch_lock);
  if (capture->native != NULL)
    {
      capture->backend->enter (capture->native, stream);
      result = gtorch_graph_launch_call (stream, call, capture->exec->n_random, error);
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

gboolean
gtorch_capture_add_child (GTorchCapture *capture, GTorchStream *stream, GTorchGraphExec *child,
                          GError **error)
{
  gboolean result = TRUE;

  /* What the child needs only in between is free memory of its pool. */
  if (gtorch_graph_exec_uses_pool (child, capture->pool))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: one cannot become part of another that shares its pool of memory: "
                      "give them pools of their own"));
      return FALSE;
    }
  if (gtorch_graph_exec_get_n_foreign (child) > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: one with %u nodes that the library did not launch cannot become part "
                      "of another"),
                   gtorch_graph_exec_get_n_foreign (child));
      return FALSE;
    }
  g_rec_mutex_lock (&capture->launch_lock);
  if (capture->native != NULL)
    {
      g_autoptr (GTorchStream) former = gtorch_stream_swap (stream->device, stream);
      g_autoptr (GTorchStream) inner = NULL;

      capture->backend->enter (capture->native, stream);
      result = gtorch_graph_exec_launch (child, stream, capture->exec->n_random, error);
      capture->backend->leave (capture->native, stream);
      inner = gtorch_stream_swap (stream->device, former);
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
