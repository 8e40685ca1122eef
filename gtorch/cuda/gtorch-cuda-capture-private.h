/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-private.h>
#include <gtorch/gtorch-capture-private.h>
#include <kernels/gtorch-kernel-params.h>

G_BEGIN_DECLS

typedef struct _GTorchCudaCapture GTorchCudaCapture;

extern const GTorchGraphBackend gtorch_cuda_graphs;
void gtorch_cuda_init_graphs (GTorchCudaDevice *device);

/* For the rest of the block the calling thread may do what captures forbid to the program: what the library
 * itself asks, loads and reserves is not theirs. */
#define GTORCH_CUDA_APART                                                                \
  __attribute__ ((cleanup (gtorch_cuda_apart_end), unused)) CUstreamCaptureMode apart_ = \
      gtorch_cuda_apart_begin ()

static inline CUstreamCaptureMode
gtorch_cuda_apart_begin (void)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  if (gtorch_captures_exist () && gtorch_cuda.cuThreadExchangeStreamCaptureMode != NULL)
    gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  return mode;
}

static inline void
gtorch_cuda_apart_end (CUstreamCaptureMode *mode)
{
  if (G_UNLIKELY (*mode != CU_STREAM_CAPTURE_MODE_RELAXED))
    gtorch_cuda.cuThreadExchangeStreamCaptureMode (mode);
}

/* What the lane captures, or NULL. */
static inline GTorchCudaCapture *
gtorch_cuda_lane_capture (GTorchCudaLane *lane)
{
  return __atomic_load_n (&lane->capture, __ATOMIC_ACQUIRE);
}

/* Takes a reference: the graph of what the lane captures needs the object, which drop gives back when it
 * cannot be replayed any more. Where nothing is captured, it does so at once. */
void gtorch_cuda_lane_keep (GTorchCudaLane *lane, gpointer object, GDestroyNotify drop);

/* The queue is another's, which nobody here uses any more: its owner may have destroyed it. */
static inline gboolean
gtorch_cuda_lane_is_closed (GTorchCudaLane *lane)
{
  return lane->is_foreign && __atomic_load_n (&lane->n_users, __ATOMIC_RELAXED) == 0;
}

/* Does the driver say that it does? Whoever has the handle may have begun it. */
gboolean gtorch_cuda_lane_is_capturing (GTorchCudaLane *lane);
/* Is anything captured that this lane may be part of? */
gboolean gtorch_cuda_lane_may_capture (GTorchCudaLane *lane);

/* Nothing else ends a capture, so that a call that fails is made again. The result is the first one's; graph
 * is what any of them gives, and is_over tells whether the stream captures no more. */
CUresult gtorch_cuda_stream_end_capture (CUstream stream, CUgraph *graph, gboolean *is_over);

/* Where what is allocated on a lane that captures comes from; NULL if it does not. */
GTorchPool *gtorch_cuda_lane_dup_pool (GTorchCudaLane *lane);

/* FALSE with an error if the lane captures, where nothing is done that could be waited for. */
gboolean gtorch_cuda_allow_wait (GTorchCudaLane *lane, const gchar *what, GError **error);

/* An event behind what the lane was given to do outside of captures; NULL if there is none to be had. With
 * the device's lock held. */
CUevent gtorch_cuda_lane_mark (GTorchCudaLane *lane, GError **error);
/* Spin or sleep, as the device's wait policy says (gtorch-cuda-wait.c). The event is of no capture;
 * is_blocking: the thread sleeps at once. */
CUresult gtorch_cuda_lane_wait (GTorchCudaLane *lane);
CUresult gtorch_cuda_event_wait (GTorchCudaDevice *device, CUevent event, gboolean is_blocking);
/* For all work of the device's context, which is the current one. Nothing on the device captures. */
CUresult gtorch_cuda_device_wait (GTorchCudaDevice *device);
/* Further work of the lane comes after that of the other (gtorch-cuda-stream.c). */
gboolean gtorch_cuda_lane_join (GTorchCudaLane *lane, GTorchCudaLane *other, GError **error);
/* Waits for the same. */
CUresult gtorch_cuda_lane_settle (GTorchCudaLane *lane);
/* … of all lanes. */
CUresult gtorch_cuda_device_settle (GTorchCudaDevice *device);
/* The same; FALSE at once while something on the device captures. */
gboolean gtorch_cuda_device_try_settle (GTorchCudaDevice *device);
/* Does something? With the device's lock held, under which no capture begins. */
gboolean gtorch_cuda_device_is_capturing (GTorchCudaDevice *device);

/* Memory that the capture's lanes share stays away until its end. */
void gtorch_cuda_hold_block (GTorchCudaDevice *device, GTorchCudaBlock *block);
/* Puts the block away until the lanes in its uses are done (gtorch-cuda-allocator.c). */
void gtorch_cuda_send_to_limbo (GTorchCudaDevice *device, GTorchCudaBlock *block);

/* Which nodes of a capture the library itself has launched (gtorch-cuda-capture-audit.c). */
typedef struct _GTorchCudaOwnNodes GTorchCudaOwnNodes;

GTorchCudaOwnNodes *gtorch_cuda_own_nodes_new (void);
void gtorch_cuda_own_nodes_free (GTorchCudaOwnNodes *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchCudaOwnNodes, gtorch_cuda_own_nodes_free)
/* The capture goes on in this graph for a while, the body of one of its nodes. */
void gtorch_cuda_own_nodes_add_body (GTorchCudaOwnNodes *self, CUgraph body);
/* Around an operation. */
void gtorch_cuda_own_nodes_enter (GTorchCudaOwnNodes *self, CUstream stream);
void gtorch_cuda_own_nodes_leave (GTorchCudaOwnNodes *self, CUstream stream);
/* As GTorchGraphBackend.audit, of the graph that was captured. */
gboolean gtorch_cuda_own_nodes_audit (GTorchCudaOwnNodes *self, CUgraph graph, GTorchPool *pool,
                                      GTorchGraphKeeps keeps, gpointer data,
                                      GTorchForeignNodes *found, GError **error);

/* Some bytes of a kernel's parameters. */
typedef void (*GTorchCudaPiece) (gsize offset, gconstpointer bytes, gsize n_bytes, gpointer data);

/* What a kernel's node tells, of its parameters piece by piece; FALSE if that may not be all. The function is
 * NULL if it cannot be told (gtorch-cuda-node.c). */
gboolean gtorch_cuda_kernel_node_read (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *kernel,
                                       CUfunction *function, GTorchCudaPiece piece, gpointer data);

/* A branch that is captured (gtorch-cuda-branch.c). */
typedef struct
{
  GTorchCudaLane *lane; /* has another handle meanwhile, instead of … */
  CUstream outer;
  CUgraphNode node;
  CUgraph body;
  guint n_lanes; /* of the capture, when it began */
} GTorchCudaBranch;

/* predicate: the address of one bool. */
gboolean gtorch_cuda_branch_begin (GTorchCudaBranch *self, GTorchCudaLane *lane,
                                   const void *predicate, CUstreamCaptureMode mode, GError **error);
/* The lane is as before in any case. */
gboolean gtorch_cuda_branch_end (GTorchCudaBranch *self, GError **error);

/* The function is about to be launched in the capture: it is loaded if it was not yet. */
gboolean gtorch_cuda_capture_load (GTorchCudaCapture *capture, CUfunction function, GError **error);

/* Lets go of graphs whose last replay is done. */
void gtorch_cuda_collect_graphs (GTorchCudaDevice *device);

/* What seed and counter of a call make of a kernel's parameters (gtorch-cuda-random.c). */
void gtorch_cuda_random_keys (GtRandom *p, guint64 seed, guint64 counter);
/* The last kernel of the lane, whose parameters are of this size, has a GtRandom at the offset: replays give
 * it the keys of the random call of this number. Nothing if the lane does not capture. */
gboolean gtorch_cuda_note_random (GTorchCudaLane *lane, guint64 number, gsize n_bytes, gsize offset,
                                  GError **error);

G_END_DECLS
