/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/graph/gtorch-capture-private.h>
#include <kernels/gtorch-kernel-params.h>

G_BEGIN_DECLS

typedef struct _GTorchCudaCapture GTorchCudaCapture;

extern const GTorchGraphBackend gtorch_cuda_graphs;
void gtorch_cuda_init_graphs (GTorchCudaDevice *device);

/* Lets the calling thread, for the rest of the block, make driver calls that captures forbid: queries,
 * loads and reservations by the library itself do not concern the program's captures. */
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

/* Returns the capture that the lane is part of, or NULL. */
static inline GTorchCudaCapture *
gtorch_cuda_lane_capture (GTorchCudaLane *lane)
{
  return __atomic_load_n (&lane->capture, __ATOMIC_ACQUIRE);
}

/* Takes over a reference to the object, which the graph being captured on the lane needs: drop is called
 * when the graph cannot be replayed any more. If the lane captures nothing, drop is called at once. */
void gtorch_cuda_lane_keep (GTorchCudaLane *lane, gpointer object, GDestroyNotify drop);

/* Notes that the graph being captured on the lane copies from or to the pinned memory of the tensor. */
void gtorch_cuda_lane_keep_host (GTorchCudaLane *lane, GTorchImpl *impl);
/* Orders further work of the lane after what the host and copies do with the pinned memory of the tensor
 * (gtorch-cuda-copy.c). */
gboolean gtorch_cuda_come_after_host (GTorchImpl *impl, GTorchCudaLane *lane, GError **error);

/* Returns whether the queue is foreign and no stream uses it any more, so that its owner may have destroyed
 * it. */
static inline gboolean
gtorch_cuda_lane_is_closed (GTorchCudaLane *lane)
{
  return lane->is_foreign && __atomic_load_n (&lane->n_users, __ATOMIC_RELAXED) == 0;
}

/* Returns whether the driver reports that the lane is capturing. The program may have begun the capture
 * with the queue's handle. */
gboolean gtorch_cuda_lane_is_capturing (GTorchCudaLane *lane);
/* Returns whether a capture is in progress that this lane may be part of. */
gboolean gtorch_cuda_lane_may_capture (GTorchCudaLane *lane);

/* Ends the capture of the stream. Nothing else ends a capture, so a call that fails is repeated. Returns
 * the first call's result; *graph is the graph that one of the calls returned, or NULL, and *is_over tells
 * whether the stream has stopped capturing. */
CUresult gtorch_cuda_stream_end_capture (CUstream stream, CUgraph *graph, gboolean *is_over);

/* Returns the pool that allocations on the lane come from while it captures; NULL if it does not capture. */
GTorchPool *gtorch_cuda_lane_dup_pool (GTorchCudaLane *lane);

/* Returns FALSE with an error if the lane is capturing: captured work is not executed, so it cannot be
 * waited for. */
gboolean gtorch_cuda_allow_wait (GTorchCudaLane *lane, const gchar *what, GError **error);

/* Returns an event recorded after the lane's work outside of captures, or NULL if there is none. The
 * device's lock must be held. */
CUevent gtorch_cuda_lane_mark (GTorchCudaLane *lane, GError **error);
/* These functions wait for a lane or an event, spinning or sleeping according to the device's wait policy
 * (gtorch-cuda-wait.c). The event must not be part of a capture; with is_blocking the thread sleeps at
 * once. */
CUresult gtorch_cuda_lane_wait (GTorchCudaLane *lane);
CUresult gtorch_cuda_event_wait (GTorchCudaDevice *device, CUevent event, gboolean is_blocking);
/* Waits for all work of the device's context, which must be current. Nothing on the device may be
 * capturing. */
CUresult gtorch_cuda_device_wait (GTorchCudaDevice *device);
/* Orders further work of the lane after the current work of the other lane (gtorch-cuda-stream.c). */
gboolean gtorch_cuda_lane_join (GTorchCudaLane *lane, GTorchCudaLane *other, GError **error);
/* Waits for the lane's work outside of captures. */
CUresult gtorch_cuda_lane_settle (GTorchCudaLane *lane);
/* Waits for the work of all lanes outside of captures. */
CUresult gtorch_cuda_device_settle (GTorchCudaDevice *device);
/* Waits like gtorch_cuda_device_settle(), but returns FALSE at once if anything on the device is
 * capturing. */
gboolean gtorch_cuda_device_try_settle (GTorchCudaDevice *device);
/* Returns whether anything on the device is capturing. The device's lock must be held; no capture begins
 * meanwhile. */
gboolean gtorch_cuda_device_is_capturing (GTorchCudaDevice *device);

/* Keeps memory that several of the capture's lanes share from being reused until the capture ends. */
void gtorch_cuda_hold_block (GTorchCudaDevice *device, GTorchCudaBlock *block);
/* Puts the block in limbo until the lanes in its uses are done (gtorch-cuda-allocator.c). */
void gtorch_cuda_send_to_limbo (GTorchCudaDevice *device, GTorchCudaBlock *block);

/* The nodes of a capture that the library itself launched (gtorch-cuda-capture-audit.c). */
typedef struct _GTorchCudaOwnNodes GTorchCudaOwnNodes;

GTorchCudaOwnNodes *gtorch_cuda_own_nodes_new (void);
void gtorch_cuda_own_nodes_free (GTorchCudaOwnNodes *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchCudaOwnNodes, gtorch_cuda_own_nodes_free)
/* Notes that the capture continues in this graph, the body of a conditional node. */
void gtorch_cuda_own_nodes_add_body (GTorchCudaOwnNodes *self, CUgraph body);
/* These functions mark the beginning and the end of an operation on the stream. */
void gtorch_cuda_own_nodes_enter (GTorchCudaOwnNodes *self, CUstream stream);
void gtorch_cuda_own_nodes_leave (GTorchCudaOwnNodes *self, CUstream stream);
/* Implements GTorchGraphBackend.audit for the captured graph. */
gboolean gtorch_cuda_own_nodes_audit (GTorchCudaOwnNodes *self, CUgraph graph, GTorchPool *pool,
                                      GTorchGraphKeeps keeps, gpointer data,
                                      GTorchForeignNodes *found, GError **error);

/* Receives a piece of a kernel's parameters. */
typedef void (*GTorchCudaPiece) (gsize offset, gconstpointer bytes, gsize n_bytes, gpointer data);

/* Reads a kernel node, and its parameters piece by piece. Returns FALSE if the parameters may be
 * incomplete; *function is NULL if it is unknown (gtorch-cuda-node.c). */
gboolean gtorch_cuda_kernel_node_read (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *kernel,
                                       CUfunction *function, GTorchCudaPiece piece, gpointer data);

/* A branch that is being captured (gtorch-cuda-branch.c). */
typedef struct
{
  /* the lane, whose handle is replaced during the branch; outer is its original handle */
  GTorchCudaLane *lane;
  CUstream outer;
  CUgraphNode node;
  CUgraph body;
  guint n_lanes; /* number of the capture's lanes when the branch began */
} GTorchCudaBranch;

/* Begins a branch. `predicate` is the address of one bool on the device. */
gboolean gtorch_cuda_branch_begin (GTorchCudaBranch *self, GTorchCudaLane *lane,
                                   const void *predicate, CUstreamCaptureMode mode, GError **error);
/* Ends the branch. The lane's handle is restored even if this fails. */
gboolean gtorch_cuda_branch_end (GTorchCudaBranch *self, GError **error);

/* Loads the function unless it is loaded already; called before it is launched in the capture. */
gboolean gtorch_cuda_capture_load (GTorchCudaCapture *capture, CUfunction function, GError **error);

/* Frees graphs whose last replay is done. */
void gtorch_cuda_collect_graphs (GTorchCudaDevice *device);

/* Computes a kernel's random parameters from the seed and counter of a call (gtorch-cuda-random.c). */
void gtorch_cuda_random_keys (GtRandom *p, guint64 seed, guint64 counter);
/* Notes that the parameters of the lane's last kernel, which have this size, contain a GtRandom at the
 * offset: replays set it to the keys of the random call with this number. Does nothing if the lane is not
 * capturing. */
gboolean gtorch_cuda_note_random (GTorchCudaLane *lane, guint64 number, gsize n_bytes, gsize offset,
                                  GError **error);

G_END_DECLS
