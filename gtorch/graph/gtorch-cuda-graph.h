/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/stream/gtorch-stream.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchCaptureMode:
 * @GTORCH_CAPTURE_MODE_THREAD_LOCAL: the capturing thread may not read elements on the host
 * @GTORCH_CAPTURE_MODE_GLOBAL: no thread may read elements on the host during the capture
 * @GTORCH_CAPTURE_MODE_RELAXED: elements of tensors that the capture does not compute may be read
 *
 * Determines what is refused during a capture.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_CAPTURE_MODE_THREAD_LOCAL,
  GTORCH_CAPTURE_MODE_GLOBAL,
  GTORCH_CAPTURE_MODE_RELAXED,
} GTorchCaptureMode;

/**
 * GTorchGraphState:
 * @GTORCH_GRAPH_STATE_EMPTY: nothing was captured, or the graph was reset
 * @GTORCH_GRAPH_STATE_CAPTURING: operations are being recorded
 * @GTORCH_GRAPH_STATE_CAPTURED: the recording is complete
 * @GTORCH_GRAPH_STATE_READY: the recording is complete and prepared for replay
 *
 * The state of a graph.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_GRAPH_STATE_EMPTY,
  GTORCH_GRAPH_STATE_CAPTURING,
  GTORCH_GRAPH_STATE_CAPTURED,
  GTORCH_GRAPH_STATE_READY,
} GTorchGraphState;

#define GTORCH_TYPE_CAPTURE_MODE  (gtorch_capture_mode_get_type ())
#define GTORCH_TYPE_GRAPH_STATE   (gtorch_graph_state_get_type ())
#define GTORCH_TYPE_CUDA_GRAPH    (gtorch_cuda_graph_get_type ())
#define GTORCH_TYPE_GRAPH_CAPTURE (gtorch_graph_capture_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_capture_mode_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_graph_state_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCUDAGraph, gtorch_cuda_graph, GTORCH, CUDA_GRAPH, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchCUDAGraph *gtorch_cuda_graph_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGraphState gtorch_cuda_graph_get_state (GTorchCUDAGraph *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_cuda_graph_get_n_nodes (GTorchCUDAGraph *self);
GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPool *gtorch_cuda_graph_get_pool (GTorchCUDAGraph *self);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_capture_begin (GTorchCUDAGraph *self, GTorchMemoryPool *pool,
                                          GTorchCaptureMode mode, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_capture_end (GTorchCUDAGraph *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_begin_if (GTorchCUDAGraph *self, GTorchTensor *predicate,
                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_end_if (GTorchCUDAGraph *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_capture (GTorchCUDAGraph *self, GTorchStream *stream,
                                    GTorchMemoryPool *pool, GTorchStreamFunc func,
                                    gpointer user_data, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_cuda_graph_get_warmup_iterations (GTorchCUDAGraph *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_cuda_graph_set_warmup_iterations (GTorchCUDAGraph *self, guint n);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_instantiate (GTorchCUDAGraph *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_replay (GTorchCUDAGraph *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_replay_on (GTorchCUDAGraph *self, GTorchStream *stream, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_reset (GTorchCUDAGraph *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_debug_dump (GTorchCUDAGraph *self, GOutputStream *stream,
                                       GCancellable *cancellable, GError **error);

GTORCH_AVAILABLE_IN_0_1
GType gtorch_graph_capture_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchGraphCapture *gtorch_graph_capture_new (GTorchCUDAGraph *graph, GTorchStream *stream,
                                              GTorchMemoryPool *pool, GTorchCaptureMode mode,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_graph_capture_end (GTorchGraphCapture *capture, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchGraphCapture *gtorch_graph_capture_ref (GTorchGraphCapture *capture);
GTORCH_AVAILABLE_IN_0_1
void gtorch_graph_capture_unref (GTorchGraphCapture *capture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchGraphCapture, gtorch_graph_capture_unref)

G_END_DECLS
