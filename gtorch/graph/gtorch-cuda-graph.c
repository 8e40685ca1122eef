/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "graph/gtorch-cuda-graph.h"

#include "graph/gtorch-capture-private.h"
#include "base/gtorch-field-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchCUDAGraph:
 *
 * A recorded sequence of operations that can be replayed as a whole.
 *
 * While a stream captures, operations on it are not executed: their results have memory, in the graph's
 * pool, but no values. [method@CUDAGraph.replay] executes them all in order, on the same memory: to
 * compute with other inputs, copy those into the tensors that were used in the capture, replay, and read
 * the results from the tensors that the capture returned. The graph keeps tensors alive that it uses but
 * does not compute.
 *
 * Every device supports graphs. On the CPU they save the overhead of calling operations; on a GPU the
 * whole sequence is launched at once. The rules are the GPU's: only a stream that is not the default one
 * can capture, no element can be read on the host during a capture, shapes and the flow of control are
 * those of the capture, except for branches ([method@CUDAGraph.begin_if]). Random operations draw new
 * numbers with each replay, the same that the operations would have drawn without a graph.
 *
 * Streams of other GPUs take part if they wait for the capturing stream ([method@Stream.wait_stream]). A
 * replay then works on all these GPUs.
 *
 * ```c
 * g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
 * g_autoptr (GTorchGraphCapture) capture =
 *     gtorch_graph_capture_new (graph, NULL, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
 * g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, &error);
 *
 * gtorch_graph_capture_end (capture, &error);
 * gtorch_cuda_graph_replay (graph, &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchCUDAGraph
{
  GObject parent_instance;
  GMutex lock;
  gboolean is_unordered, is_ready;
  GTorchGraphExec *exec;
  GTorchCapture *capture;
  GTorchDevice *device;
  guint n_warmups;
  GTorchMemoryPool *pool;
  GHashTable *inputs; /* GTorchTensor by name, or NULL */
  GThread *owner;
  GMainContext *context;
};

enum
{
  CAPTURED,
  REPLAYED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

G_DEFINE_TYPE (GTorchCUDAGraph, gtorch_cuda_graph, G_TYPE_OBJECT)

GType
gtorch_capture_mode_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_CAPTURE_MODE_THREAD_LOCAL, "GTORCH_CAPTURE_MODE_THREAD_LOCAL", "thread-local" },
    { GTORCH_CAPTURE_MODE_GLOBAL, "GTORCH_CAPTURE_MODE_GLOBAL", "global" },
    { GTORCH_CAPTURE_MODE_RELAXED, "GTORCH_CAPTURE_MODE_RELAXED", "relaxed" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchCaptureMode", values));
  return type;
}

GType
gtorch_graph_state_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_GRAPH_STATE_EMPTY, "GTORCH_GRAPH_STATE_EMPTY", "empty" },
    { GTORCH_GRAPH_STATE_CAPTURING, "GTORCH_GRAPH_STATE_CAPTURING", "capturing" },
    { GTORCH_GRAPH_STATE_CAPTURED, "GTORCH_GRAPH_STATE_CAPTURED", "captured" },
    { GTORCH_GRAPH_STATE_READY, "GTORCH_GRAPH_STATE_READY", "ready" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchGraphState", values));
  return type;
}

/* Drops a reference. Must be called without a lock. */
static void
drop_exec (GTorchGraphExec *exec)
{
  if (exec == NULL)
    return;
  gtorch_graph_exec_drop_number (exec);
  gtorch_graph_exec_unref (exec);
}

static void
drop_capture (GTorchCUDAGraph *self)
{
  if (self->capture == NULL)
    return;
  gtorch_capture_end (g_steal_pointer (&self->capture), NULL, NULL);
}

static void
gtorch_cuda_graph_finalize (GObject *object)
{
  GTorchCUDAGraph *self = GTORCH_CUDA_GRAPH (object);

  drop_capture (self);
  drop_exec (self->exec);
  g_clear_object (&self->pool);
  g_clear_pointer (&self->inputs, g_hash_table_unref);
  g_main_context_unref (self->context);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gtorch_cuda_graph_parent_class)->finalize (object);
}

typedef GTorchCUDAGraph Self;

static const GTorchField fields[] = {
  /**
   * GTorchCUDAGraph:n-nodes:
   *
   * The number of recorded operations.
   *
   * Since: 0.1
   */
  { "n-nodes", GTORCH_PROPERTY_UINT (gtorch_cuda_graph_get_n_nodes, NULL) },
  /**
   * GTorchCUDAGraph:pool:
   *
   * The memory pool of the tensors that the graph computes.
   *
   * Since: 0.1
   */
  { "pool", GTORCH_PROPERTY_OBJECT (GTorchMemoryPool, gtorch_memory_pool_get_type,
                                    gtorch_cuda_graph_get_pool, NULL) },
  /**
   * GTorchCUDAGraph:state:
   *
   * The state of the graph.
   *
   * Since: 0.1
   */
  { "state",
    GTORCH_PROPERTY_ENUM (GTorchGraphState, gtorch_graph_state_get_type,
                          gtorch_cuda_graph_get_state, NULL),
    .value = GTORCH_GRAPH_STATE_EMPTY },
  /**
   * GTorchCUDAGraph:warmup-iterations: (getter get_warmup_iterations) (setter set_warmup_iterations)
   *
   * How often [method@CUDAGraph.capture] calls the function before it is captured. One-time set-up
   * (memory, libraries and the choice of algorithms) is then not part of the graph. Each call is
   * executed: a training step changes the parameters.
   *
   * Since: 0.1
   */
  { "warmup-iterations", GTORCH_PROPERTY_UINT (gtorch_cuda_graph_get_warmup_iterations,
                                               gtorch_cuda_graph_set_warmup_iterations) },
};

static void
gtorch_cuda_graph_class_init (GTorchCUDAGraphClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_cuda_graph_finalize;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchCUDAGraph::captured:
   * @self: the graph
   *
   * Emitted when a capture has ended successfully, in the main context of the thread that made the graph.
   *
   * Since: 0.1
   */
  signals[CAPTURED] = g_signal_new ("captured", GTORCH_TYPE_CUDA_GRAPH, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 0);
  /**
   * GTorchCUDAGraph::replayed:
   * @self: the graph
   *
   * Emitted when a replay has completed, in the main context of the thread that made the graph.
   *
   * Since: 0.1
   */
  signals[REPLAYED] = g_signal_new ("replayed", GTORCH_TYPE_CUDA_GRAPH, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 0);
}

static void
gtorch_cuda_graph_init (GTorchCUDAGraph *self)
{
  g_mutex_init (&self->lock);
  self->owner = g_thread_self ();
  self->context = g_main_context_ref_thread_default ();
}

/**
 * gtorch_cuda_graph_new:
 *
 * Creates an empty graph.
 *
 * Returns: (transfer full): a new graph
 *
 * Since: 0.1
 */
GTorchCUDAGraph *
gtorch_cuda_graph_new (void)
{
  return g_object_new (GTORCH_TYPE_CUDA_GRAPH, NULL);
}

/**
 * gtorch_cuda_graph_get_state: (get-property state)
 * @self: a graph
 *
 * Gets the state of the graph.
 *
 * Returns: the state
 *
 * Since: 0.1
 */
GTorchGraphState
gtorch_cuda_graph_get_state (GTorchCUDAGraph *self)
{
  GTorchGraphState state = GTORCH_GRAPH_STATE_EMPTY;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), GTORCH_GRAPH_STATE_EMPTY);
  g_mutex_lock (&self->lock);
  if (self->capture != NULL)
    state = GTORCH_GRAPH_STATE_CAPTURING;
  else if (self->exec != NULL)
    state = self->is_ready ? GTORCH_GRAPH_STATE_READY : GTORCH_GRAPH_STATE_CAPTURED;
  g_mutex_unlock (&self->lock);
  return state;
}

/**
 * gtorch_cuda_graph_get_n_nodes: (get-property n-nodes)
 * @self: a graph
 *
 * Gets the number of recorded operations; 0 before the capture has ended. Views do not count, and a
 * branch counts as one.
 *
 * Returns: the number of nodes
 *
 * Since: 0.1
 */
guint
gtorch_cuda_graph_get_n_nodes (GTorchCUDAGraph *self)
{
  guint n;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), 0);
  g_mutex_lock (&self->lock);
  n = self->exec != NULL ? gtorch_graph_exec_get_n_nodes (self->exec) : 0;
  g_mutex_unlock (&self->lock);
  return n;
}

/**
 * gtorch_cuda_graph_get_pool: (get-property pool)
 * @self: a graph
 *
 * Gets the memory pool of the tensors that the graph computes, to share it with another capture.
 *
 * Returns: (transfer none) (nullable): the pool, or %NULL before the first capture
 *
 * Since: 0.1
 */
GTorchMemoryPool *
gtorch_cuda_graph_get_pool (GTorchCUDAGraph *self)
{
  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), NULL);
  return self->pool;
}

/**
 * gtorch_cuda_graph_get_warmup_iterations: (get-property warmup-iterations)
 * @self: a graph
 *
 * Gets how often [method@CUDAGraph.capture] calls the function before it is captured.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_cuda_graph_get_warmup_iterations (GTorchCUDAGraph *self)
{
  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), 0);
  return self->n_warmups;
}

/**
 * gtorch_cuda_graph_set_warmup_iterations: (set-property warmup-iterations)
 * @self: a graph
 * @n: a number
 *
 * Sets how often [method@CUDAGraph.capture] calls the function before it is captured.
 *
 * Since: 0.1
 */
void
gtorch_cuda_graph_set_warmup_iterations (GTorchCUDAGraph *self, guint n)
{
  g_return_if_fail (GTORCH_IS_CUDA_GRAPH (self));
  if (self->n_warmups == n)
    return;
  self->n_warmups = n;
  g_object_notify (G_OBJECT (self), "warmup-iterations");
}

GHashTable *
gtorch_cuda_graph_get_table (GTorchCUDAGraph *self)
{
  if (self->inputs == NULL)
    self->inputs = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  return self->inputs;
}

/* --- signals --- */

typedef struct
{
  GTorchCUDAGraph *graph;
  guint signal;
} Emission;

static void
emission_free (gpointer data)
{
  Emission *emission = data;

  g_object_unref (emission->graph);
  g_free (emission);
}

static gboolean
emit (gpointer data)
{
  Emission *emission = data;

  g_signal_emit (emission->graph, signals[emission->signal], 0);
  return G_SOURCE_REMOVE;
}

/* Emits a signal when the fence is done; at once if it is NULL. */
static void
emit_later (GTorchCUDAGraph *self, guint signal, GTorchFence *fence)
{
  Emission *emission;
  GSource *source;

  if (!g_signal_has_handler_pending (self, signals[signal], 0, FALSE))
    return;
  if (self->owner == g_thread_self () && (fence == NULL || gtorch_fence_is_done (fence)))
    {
      g_signal_emit (self, signals[signal], 0);
      return;
    }
  emission = g_new (Emission, 1);
  *emission = (Emission){ g_object_ref (self), signal };
  source = fence != NULL ? gtorch_fence_source_new (fence, NULL) : g_idle_source_new ();
  g_source_set_callback (source, emit, emission, emission_free);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

/* --- capture --- */

static gboolean
refuse (const gchar *reason, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE, _ ("graph: %s"), reason);
  return FALSE;
}

/**
 * gtorch_cuda_graph_capture_begin:
 * @self: an empty graph
 * @pool: (nullable): a pool to share with other graphs, or %NULL for a new one
 * @mode: what is refused during the capture
 * @error: return location for an error
 *
 * Begins a capture on the current stream of this thread's current device ([func@Stream.get_current]).
 * Until [method@CUDAGraph.capture_end], operations on it are recorded and not executed.
 *
 * [struct@GraphCapture] and [method@CUDAGraph.capture] also set the stream and end the capture.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if the stream is the default one or is
 *   capturing already, if the graph is not empty, or if @pool belongs to another device
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_capture_begin (GTorchCUDAGraph *self, GTorchMemoryPool *pool,
                                 GTorchCaptureMode mode, GError **error)
{
  const gchar *reason = NULL;
  gboolean result = TRUE;
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (pool == NULL || GTORCH_IS_MEMORY_POOL (pool), FALSE);
  stream = gtorch_stream_get_current (NULL);
  if (mode > GTORCH_CAPTURE_MODE_RELAXED)
    return refuse (_ ("there is no such mode of capture"), error);

  g_mutex_lock (&self->lock);
  if (self->capture != NULL)
    reason = _ ("it is capturing already");
  else if (self->exec != NULL)
    reason = _ ("it holds a capture: reset it first");
  else if (stream->is_default)
    reason = _ ("a default stream cannot be captured: make another stream current first");
  else if (gtorch_stream_is_capturing (stream))
    reason = _ ("another graph captures the current stream");
  else if (pool != NULL && gtorch_memory_pool_get_device (pool) != stream->device)
    reason = _ ("the pool is memory of another device");
  else
    {
      g_autoptr (GTorchMemoryPool) own = NULL;

      if (pool == NULL)
        pool = own = gtorch_memory_pool_new (stream->device);
      g_set_object (&self->pool, pool);
      self->capture = gtorch_capture_begin (self, stream, gtorch_memory_pool_get_pool (self->pool),
                                            mode, error);
      self->device = stream->device;
      result = self->capture != NULL;
    }
  g_mutex_unlock (&self->lock);
  return reason != NULL ? refuse (reason, error) : result;
}

/**
 * gtorch_cuda_graph_capture_end:
 * @self: a graph that captures
 * @error: return location for an error
 *
 * Ends the capture. The stream on which it began must be the current one.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE. If another stream took part and was not
 *   waited for, the capture has ended and the graph is empty again; if this is not the stream or the
 *   thread of the capture, or a branch is open, the capture continues. The graph is also empty if work
 *   that the library did not launch, such as the program's own kernel, uses memory of a tensor that was
 *   freed, or if all operations were on another device
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_capture_end (GTorchCUDAGraph *self, GError **error)
{
  const gchar *reason = NULL;
  GTorchGraphExec *exec = NULL;
  g_autofree gchar *warning = NULL;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_mutex_lock (&self->lock);
  if (self->capture == NULL)
    reason = _ ("there is no capture to end");
  else if (gtorch_capture_get_thread (self->capture) != g_thread_self ())
    reason = _ ("the capture must end in the thread in which it began");
  else if (gtorch_current_stream (self->device) != gtorch_capture_get_stream (self->capture))
    reason = _ ("the capture must end with the stream current on which it began");
  else if (gtorch_capture_has_branch (self->capture))
    reason = _ ("a branch is open: end_if comes before the end of the capture");
  else
    {
      exec = gtorch_capture_end (g_steal_pointer (&self->capture), &warning, error);
      self->exec = exec;
      self->is_ready = FALSE;
      if (exec != NULL)
        gtorch_graph_exec_take_number (exec);
    }
  g_mutex_unlock (&self->lock);
  if (reason != NULL)
    return refuse (reason, error);
  if (exec == NULL)
    return FALSE;
  if (warning != NULL)
    g_warning ("%s", warning);
  emit_later (self, CAPTURED, NULL);
  return TRUE;
}

/* Returns a reference to the capture, and the current stream, which takes part in it; NULL with an error. */
static GTorchCapture *
dup_capture (GTorchCUDAGraph *self, GTorchStream **stream, GError **error)
{
  g_autoptr (GTorchCapture) capture = NULL;
  g_autoptr (GTorchCapture) current = NULL;

  g_mutex_lock (&self->lock);
  if (self->capture != NULL)
    capture = gtorch_capture_ref (self->capture);
  g_mutex_unlock (&self->lock);
  if (capture == NULL)
    {
      refuse (_ ("it is not capturing, and only a capture has branches"), error);
      return NULL;
    }
  *stream = gtorch_current_stream (self->device);
  current = gtorch_stream_dup_capture (*stream);
  if (current != capture)
    refuse (_ ("the current stream takes no part in its capture"), error);
  else if (gtorch_capture_get_thread (capture) != g_thread_self ())
    refuse (_ ("a branch begins and ends in the thread in which the capture began"), error);
  else
    return g_steal_pointer (&capture);
  return NULL;
}

/**
 * gtorch_cuda_graph_begin_if:
 * @self: a graph that captures
 * @predicate: a tensor of one element, on the device of the capture
 * @error: return location for an error
 *
 * Begins a branch: a replay executes what is captured up to [method@CUDAGraph.end_if] only if @predicate
 * is true, or not 0, at this point of the replay. The device decides; the host does not wait.
 *
 * ```c
 * too_large = gtorch_tensor_gt_scalar (norm, 1, &error);
 * gtorch_cuda_graph_begin_if (graph, too_large, &error);
 * gtorch_tensor_div_inplace (x, norm, &error);
 * gtorch_cuda_graph_end_if (graph, &error);
 * ```
 *
 * Results of the branch are ordinary tensors, but their contents are undefined if the branch was skipped:
 * let the branch write into tensors that were made before it. Random operations in it advance the
 * generator in either case. Branches can be nested. A stream of the same device that waits for the branch's
 * stream takes part in the branch only and must be waited for before its end; streams that already take
 * part in the capture cannot be used meanwhile.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if the current stream is not part of the
 *   graph's capture or of the open branch, %GTORCH_ERROR_SHAPE if @predicate does not have one element,
 *   %GTORCH_ERROR_DEVICE_MISMATCH, %GTORCH_ERROR_RELEASED, and %GTORCH_ERROR_NOT_SUPPORTED where the
 *   driver is older than CUDA 12.3
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_begin_if (GTorchCUDAGraph *self, GTorchTensor *predicate, GError **error)
{
  GTORCH_HOLD_TENSOR (predicate);
  g_autoptr (GTorchCapture) capture = NULL;
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (predicate), FALSE);
  capture = dup_capture (self, &stream, error);
  return capture != NULL
         && gtorch_capture_begin_branch (capture, stream, gtorch_tensor_unwrap (predicate), error);
}

/**
 * gtorch_cuda_graph_end_if:
 * @self: a graph that captures
 * @error: return location for an error
 *
 * Ends the innermost branch that [method@CUDAGraph.begin_if] began. The same stream must be current.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if no branch is open or it began on
 *   another stream. If a stream took part in the branch and was not waited for, or the branch contains
 *   something unsupported, such as a call of a host function, the branch has ended, and the capture can
 *   only be ended, which fails
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_end_if (GTorchCUDAGraph *self, GError **error)
{
  g_autoptr (GTorchCapture) capture = NULL;
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  capture = dup_capture (self, &stream, error);
  return capture != NULL && gtorch_capture_end_branch (capture, stream, error);
}

/**
 * gtorch_cuda_graph_instantiate:
 * @self: a graph with a capture
 * @error: return location for an error
 *
 * Prepares the graph for replay. The first replay does this if necessary; calling this earlier makes it
 * as fast as the others.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if nothing was captured
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_instantiate (GTorchCUDAGraph *self, GError **error)
{
  const gchar *reason = NULL;
  gboolean result = TRUE;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_mutex_lock (&self->lock);
  if (self->capture != NULL)
    reason = _ ("it is capturing: end the capture first");
  else if (self->exec == NULL)
    reason = _ ("nothing was captured");
  else if (!self->is_ready)
    self->is_ready = result = gtorch_graph_exec_prepare (self->exec, error);
  g_mutex_unlock (&self->lock);
  return reason != NULL ? refuse (reason, error) : result;
}

/* The state that one replay takes from a graph that other threads may use meanwhile. */
typedef struct
{
  GTorchGraphExec *exec;
  GTorchDevice *device;
  gboolean is_ordered;
} Turn;

static void
turn_end (Turn *turn)
{
  g_clear_pointer (&turn->exec, gtorch_graph_exec_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Turn, turn_end)

static gboolean
turn_begin (GTorchCUDAGraph *self, Turn *turn, GError **error)
{
  for (;;)
    {
      g_mutex_lock (&self->lock);
      if (G_LIKELY (self->is_ready && self->capture == NULL))
        {
          turn->exec = gtorch_graph_exec_ref (self->exec);
          turn->device = self->device;
          turn->is_ordered = !self->is_unordered;
        }
      g_mutex_unlock (&self->lock);
      if (G_LIKELY (turn->exec != NULL))
        return TRUE;
      if (!gtorch_cuda_graph_instantiate (self, error))
        return FALSE;
    }
}

static gboolean
replay (GTorchCUDAGraph *self, GTorchStream *stream, GError **error)
{
  g_autoptr (GTorchCapture) capture = NULL;
  g_auto (Turn) turn = { NULL };
  gboolean result;

  if (!turn_begin (self, &turn, error))
    return FALSE;
  if (stream->device != turn.device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("graph: captured on %s, it cannot be replayed on a stream of %s"),
                   gtorch_device_name (turn.device), gtorch_device_name (stream->device));
      return FALSE;
    }

  capture = gtorch_stream_dup_capture (stream);
  if (capture != NULL)
    return gtorch_capture_add_child (capture, stream, turn.exec, error);
  if (turn.is_ordered && !gtorch_graph_exec_check_order (turn.exec, error))
    return FALSE;
  result = gtorch_graph_exec_replay (turn.exec, stream, error);
  if (result && g_signal_has_handler_pending (self, signals[REPLAYED], 0, FALSE))
    {
      GTorchFence *fence = gtorch_stream_record_fence (stream, GTORCH_EVENT_NONE, NULL);

      emit_later (self, REPLAYED, fence);
      gtorch_fence_unref (fence);
    }
  return result;
}

/**
 * gtorch_cuda_graph_replay:
 * @self: a graph with a capture
 * @error: return location for an error
 *
 * Executes the recorded operations on the current stream of the device on which the capture began.
 *
 * Returns: as [method@CUDAGraph.replay_on]
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_replay (GTorchCUDAGraph *self, GError **error)
{
  GTorchStream *stream = NULL;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  if (self->device != NULL)
    stream = gtorch_stream_peek_current (self->device);
  return replay (self, stream != NULL ? stream : gtorch_stream_get_current (self->device), error);
}

/**
 * gtorch_cuda_graph_replay_on:
 * @self: a graph with a capture
 * @stream: a stream of the device on which the capture began
 * @error: return location for an error
 *
 * Executes the recorded operations on a stream, which need not be the one of the capture. Replays of
 * one graph, and of graphs that share a pool, never overlap. On a stream that captures another
 * graph, the replay becomes a part of that graph, unless streams of several devices took part in its own
 * capture.
 *
 * On other GPUs that the graph works on, or copies from or to, the replay comes after the work of the current
 * stream, and before its further work.
 *
 * On a GPU operations have the priority of @stream, unless a stream of the capture had a priority other
 * than the default 0: then each operation keeps the priority of its stream in the capture.
 *
 * Returns: %TRUE if it was executed or queued; %FALSE with %GTORCH_ERROR_CAPTURE if there is nothing to
 *   replay, the graph itself is capturing, or the current stream of another GPU on which it works captures
 *   another graph, %GTORCH_ERROR_DEVICE_MISMATCH if the stream is on another device,
 *   %GTORCH_ERROR_NOT_SUPPORTED if it cannot become part of another graph, %GTORCH_ERROR_INVALID if
 *   another graph that shares the pool must be replayed first (see [property@MemoryPool:check-order]), or
 *   with the error of an operation
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_replay_on (GTorchCUDAGraph *self, GTorchStream *stream, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_STREAM (stream), FALSE);
  return replay (self, stream, error);
}

/**
 * gtorch_cuda_graph_reset:
 * @self: a graph
 * @error: return location for an error
 *
 * Makes the graph empty again. Replays that are in progress complete; tensors that the capture returned
 * keep their memory.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_CAPTURE if the graph is capturing
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_reset (GTorchCUDAGraph *self, GError **error)
{
  GTorchGraphExec *exec = NULL;
  GTorchMemoryPool *pool = NULL;
  gboolean capturing;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_mutex_lock (&self->lock);
  capturing = self->capture != NULL;
  if (!capturing)
    {
      exec = g_steal_pointer (&self->exec);
      pool = g_steal_pointer (&self->pool);
      self->is_ready = FALSE;
    }
  g_mutex_unlock (&self->lock);
  drop_exec (exec);
  g_clear_object (&pool);
  return !capturing || refuse (_ ("it is capturing: end the capture first"), error);
}

/**
 * gtorch_cuda_graph_debug_dump:
 * @self: a graph with a capture
 * @stream: the stream to write to
 * @cancellable: (nullable): a #GCancellable, or %NULL
 * @error: return location for an error
 *
 * Writes the operations and their dependencies in Graphviz's DOT language.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_debug_dump (GTorchCUDAGraph *self, GOutputStream *stream,
                              GCancellable *cancellable, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  GTorchGraphExec *exec;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (G_IS_OUTPUT_STREAM (stream), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  exec = gtorch_cuda_graph_ref_exec (self, error);
  if (exec == NULL)
    return FALSE;
  gtorch_graph_exec_write_dot (exec, text);
  gtorch_graph_exec_unref (exec);
  return g_output_stream_write_all (stream, text->str, text->len, NULL, cancellable, error);
}

GTorchGraphExec *
gtorch_cuda_graph_ref_exec (GTorchCUDAGraph *self, GError **error)
{
  GTorchGraphExec *exec;

  g_mutex_lock (&self->lock);
  exec = self->exec != NULL ? gtorch_graph_exec_ref (self->exec) : NULL;
  g_mutex_unlock (&self->lock);
  if (exec == NULL)
    refuse (_ ("nothing was captured"), error);
  return exec;
}

gboolean
gtorch_cuda_graph_take_exec (GTorchCUDAGraph *self, GTorchGraphExec *former, GTorchGraphExec *exec,
                             GError **error)
{
  gboolean result;

  g_mutex_lock (&self->lock);
  result = self->exec == former;
  if (result)
    {
      self->exec = exec;
      self->is_ready = FALSE;
    }
  g_mutex_unlock (&self->lock);
  gtorch_graph_exec_unref (result ? former : exec);
  return result || refuse (_ ("another thread has changed it meanwhile"), error);
}

void
gtorch_cuda_graph_set_unordered (GTorchCUDAGraph *self)
{
  self->is_unordered = TRUE;
}

/* Ends the capture and discards it; for guards. */
void
gtorch_cuda_graph_abandon (GTorchCUDAGraph *self)
{
  g_mutex_lock (&self->lock);
  drop_capture (self);
  g_mutex_unlock (&self->lock);
}
