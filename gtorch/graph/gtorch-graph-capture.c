/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures that end automatically. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "graph/gtorch-cuda-graph.h"

#include "base/gtorch-callback-private.h"
#include "graph/gtorch-capture-private.h"

/**
 * GTorchGraphCapture:
 *
 * A capture on a stream of its own, which lasts from [ctor@GraphCapture.new] to
 * [method@GraphCapture.end].
 *
 * If the last reference is dropped before its end, as by `g_autoptr` after an error, the capture is
 * abandoned: the graph is empty again and the former stream is current. That should happen in the thread
 * in which the capture began: a GPU's driver does not let another thread end it, and its streams are
 * lost then, with a warning.
 *
 * Since: 0.1
 */
struct _GTorchGraphCapture
{
  gint ref_count;
  GTorchCUDAGraph *graph;
  GTorchStreamGuard *guard;
  GThread *thread;
  gboolean is_over;
};

G_DEFINE_BOXED_TYPE (GTorchGraphCapture, gtorch_graph_capture, gtorch_graph_capture_ref,
                     gtorch_graph_capture_unref)

/**
 * gtorch_graph_capture_new:
 * @graph: an empty graph
 * @stream: (nullable): the stream to capture, or %NULL for a new one on this thread's current device
 * @pool: (nullable): a pool to share with other graphs, or %NULL for a new one
 * @mode: what is refused during the capture
 * @error: return location for an error
 *
 * Makes @stream current and begins to capture it.
 *
 * Returns: (transfer full): a capture, or %NULL; see [method@CUDAGraph.capture_begin]
 *
 * Since: 0.1
 */
GTorchGraphCapture *
gtorch_graph_capture_new (GTorchCUDAGraph *graph, GTorchStream *stream, GTorchMemoryPool *pool,
                          GTorchCaptureMode mode, GError **error)
{
  g_autoptr (GTorchStream) own = NULL;
  GTorchGraphCapture *capture;
  GTorchStreamGuard *guard;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (graph), NULL);
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), NULL);
  g_return_val_if_fail (pool == NULL || GTORCH_IS_MEMORY_POOL (pool), NULL);
  if (stream == NULL)
    stream = own = gtorch_stream_new (NULL, 0, error);
  if (stream == NULL)
    return NULL;
  guard = gtorch_stream_guard_new (stream);
  if (!gtorch_cuda_graph_capture_begin (graph, pool, mode, error))
    {
      gtorch_stream_guard_unref (guard);
      return NULL;
    }
  capture = g_new0 (GTorchGraphCapture, 1);
  capture->ref_count = 1;
  capture->graph = g_object_ref (graph);
  capture->guard = guard;
  capture->thread = g_thread_self ();
  return capture;
}

/**
 * gtorch_graph_capture_end:
 * @capture: a capture
 * @error: return location for an error
 *
 * Ends the capture and makes the former stream current again. No stream captures afterwards, even if this
 * fails. Only in another thread than that in which the capture began nothing happens: the capture goes on,
 * and can be ended where it began.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if a stream did not join, the stream of
 *   the capture is not the current one, a branch is open, this is another thread, or the capture has
 *   ended before
 *
 * Since: 0.1
 */
gboolean
gtorch_graph_capture_end (GTorchGraphCapture *capture, GError **error)
{
  gboolean result;

  g_return_val_if_fail (capture != NULL, FALSE);
  if (capture->is_over)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE, _ ("graph: the capture is over"));
      return FALSE;
    }
  if (capture->thread != g_thread_self ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: the capture must end in the thread in which it began, and goes on"));
      return FALSE;
    }
  capture->is_over = TRUE;
  result = gtorch_cuda_graph_capture_end (capture->graph, error);
  if (!result)
    gtorch_cuda_graph_abandon (capture->graph);
  gtorch_stream_guard_end (capture->guard);
  return result;
}

/**
 * gtorch_graph_capture_ref:
 * @capture: a capture
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @capture
 *
 * Since: 0.1
 */
GTorchGraphCapture *
gtorch_graph_capture_ref (GTorchGraphCapture *capture)
{
  g_return_val_if_fail (capture != NULL, NULL);
  g_atomic_int_inc (&capture->ref_count);
  return capture;
}

/**
 * gtorch_graph_capture_unref:
 * @capture: (transfer full): a capture
 *
 * Drops a reference; the last one abandons a capture that has not ended.
 *
 * Since: 0.1
 */
void
gtorch_graph_capture_unref (GTorchGraphCapture *capture)
{
  g_return_if_fail (capture != NULL);
  if (!g_atomic_int_dec_and_test (&capture->ref_count))
    return;
  if (!capture->is_over)
    gtorch_cuda_graph_abandon (capture->graph);
  gtorch_stream_guard_unref (capture->guard);
  g_object_unref (capture->graph);
  g_free (capture);
}

static gboolean
call_func (GTorchStream *stream, GTorchStreamFunc func, gpointer user_data, GError **error)
{
  GError *local = NULL;
  const gboolean success = func (stream, user_data, &local);

  return gtorch_callback_ended ("graph", success, local, error);
}

/* Calls the function n times without capturing, on a stream of its own like that of the capture. */
static gboolean
warm_up (guint n, GTorchStream *stream, GTorchStreamFunc func, gpointer user_data, GError **error)
{
  GTorchStream *current = gtorch_stream_get_current (stream->device);
  gboolean success;

  if (stream == current)
    success = TRUE;
  else
    success = gtorch_stream_wait_stream (stream, current, error);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    for (; success && n > 0; n--)
      success = call_func (stream, func, user_data, error);
  }
  if (!success)
    g_prefix_error (error, _ ("warming up: "));
  return (stream == current || gtorch_stream_wait_stream (current, stream, success ? error : NULL))
         && success;
}

/**
 * gtorch_cuda_graph_capture:
 * @self: an empty graph
 * @stream: (nullable): the stream to capture, or %NULL for a new one on this thread's current device
 * @pool: (nullable): a pool to share with other graphs, or %NULL for a new one
 * @func: (scope call) (closure user_data): a function that calls the operations
 * @user_data: data to pass to @func
 * @error: return location for an error
 *
 * Captures the operations that @func calls. Before that, @func is called
 * [property@CUDAGraph:warmup-iterations] times without capturing. If it fails, the graph stays empty.
 *
 * Returns: %TRUE on success; %FALSE with the error of @func or of the capture
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_capture (GTorchCUDAGraph *self, GTorchStream *stream, GTorchMemoryPool *pool,
                           GTorchStreamFunc func, gpointer user_data, GError **error)
{
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GTorchStream) own = NULL;
  guint n;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), FALSE);
  g_return_val_if_fail (pool == NULL || GTORCH_IS_MEMORY_POOL (pool), FALSE);
  n = gtorch_cuda_graph_get_warmup_iterations (self);
  if (stream == NULL && n > 0)
    stream = own = gtorch_stream_new (NULL, 0, error);
  if (n > 0 && (stream == NULL || !warm_up (n, stream, func, user_data, error)))
    return FALSE;
  capture = gtorch_graph_capture_new (self, stream, pool, GTORCH_CAPTURE_MODE_THREAD_LOCAL, error);
  return capture != NULL
         && call_func (gtorch_stream_get_current (stream != NULL ? stream->device : NULL), func,
                       user_data, error)
         && gtorch_graph_capture_end (capture, error);
}
