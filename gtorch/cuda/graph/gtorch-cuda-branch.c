/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Branches of captured graphs. A kernel reads the predicate and passes it to a conditional node, which
 * executes its body, a graph of its own, or skips it. The body is captured on another queue, which replaces
 * the lane's queue until the branch ends; the rest of the library notices no difference. */

#include "config.h"

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "gtorch-cuda-kernels.h"

#include <glib/gi18n-lib.h>

static gboolean
make_handle (GTorchCudaDevice *device, CUgraph graph, CUgraphConditionalHandle *handle,
             GError **error)
{
  const CUresult result =
      gtorch_cuda.cuGraphConditionalHandleCreate (handle, graph, device->context, 0,
                                                  CU_GRAPH_COND_ASSIGN_DEFAULT);

  if (result != CUDA_ERROR_NOT_SUPPORTED)
    return gtorch_cuda_check (result, "graph: cuGraphConditionalHandleCreate", error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("graph: branches need a driver for CUDA 12.3 or newer"));
  return FALSE;
}

/* Adds the conditional node after what the lane has captured, and orders the lane's further work after it. */
static gboolean
add_node (GTorchCudaBranch *self, const void *predicate, GError **error)
{
  static GTorchCudaKernel kernel;
  GTorchCudaDevice *device = self->lane->device;
  CUgraphNodeParams parameters = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
  GtBranch branch = { .predicate = predicate };
  CUstreamCaptureStatus status;
  const CUgraphNode *before = NULL;
  size_t n_before = 0;
  CUgraph graph = NULL;

  /* Load the kernel first, as a graph that has a conditional handle but no node cannot be instantiated. */
  if (g_atomic_pointer_get (&kernel.kernel) == NULL
      && !gtorch_cuda_kernel_get (&kernel, &gtorch_cuda_family_branch, "gt_branch", error))
    return FALSE;
  if (!gtorch_cuda_check (gtorch_cuda.cuStreamGetCaptureInfo (self->outer, &status, NULL, &graph,
                                                              NULL, NULL),
                          "graph: cuStreamGetCaptureInfo", error)
      || !gtorch_cuda_check (status != CU_STREAM_CAPTURE_STATUS_ACTIVE
                                 ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                 : CUDA_SUCCESS,
                             "graph", error)
      || !make_handle (device, graph, &branch.handle, error)
      || !gtorch_cuda_kernel_run (&kernel, &gtorch_cuda_family_branch, "gt_branch", self->lane, 1,
                                  1, &branch, error)
      || !gtorch_cuda_check (gtorch_cuda.cuStreamGetCaptureInfo (self->outer, &status, NULL, NULL,
                                                                 &before, &n_before),
                             "graph: cuStreamGetCaptureInfo", error))
    return FALSE;
  parameters.conditional.handle = branch.handle;
  parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
  parameters.conditional.size = 1;
  parameters.conditional.ctx = device->context;
  if (!gtorch_cuda_check (gtorch_cuda.cuGraphAddNode (&self->node, graph, before, NULL, n_before,
                                                      &parameters),
                          "graph: cuGraphAddNode", error)
      || !gtorch_cuda_check (gtorch_cuda.cuStreamUpdateCaptureDependencies (
                                 self->outer, &self->node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                             "graph: cuStreamUpdateCaptureDependencies", error))
    return FALSE;
  self->body = parameters.conditional.phGraph_out[0];
  return TRUE;
}

static void
set_handle (GTorchCudaLane *lane, CUstream handle)
{
  g_mutex_lock (&lane->device->lock);
  lane->handle = handle;
  g_mutex_unlock (&lane->device->lock);
}

gboolean
gtorch_cuda_branch_begin (GTorchCudaBranch *self, GTorchCudaLane *lane, const void *predicate,
                          CUstreamCaptureMode mode, GError **error)
{
  CUstream inner = NULL;

  self->lane = lane;
  self->outer = lane->handle;
  if (!gtorch_cuda_device_activate (lane->device, error)
      || !gtorch_cuda_check (gtorch_cuda.cuStreamCreateWithPriority (&inner, CU_STREAM_NON_BLOCKING,
                                                                     lane->priority),
                             "cuStreamCreate", error))
    return FALSE;
  if (add_node (self, predicate, error)
      && gtorch_cuda_check (gtorch_cuda.cuStreamBeginCaptureToGraph (inner, self->body, NULL, NULL,
                                                                     0, mode),
                            "graph: cuStreamBeginCaptureToGraph", error))
    {
      set_handle (lane, inner);
      return TRUE;
    }
  gtorch_cuda.cuStreamDestroy (inner);
  return FALSE;
}

/* --- the end --- */

/* Checks the types of the body's nodes: the driver refuses unsupported ones only when the graph is
 * instantiated, without naming them. */
static gboolean
check_body (CUgraph body, GError **error)
{
  g_autofree CUgraphNode *nodes = NULL;
  size_t n = 0, i;

  if (!gtorch_cuda_check (gtorch_cuda.cuGraphGetNodes (body, NULL, &n), "graph: cuGraphGetNodes",
                          error))
    return FALSE;
  nodes = g_new0 (CUgraphNode, n);
  if (n > 0
      && !gtorch_cuda_check (gtorch_cuda.cuGraphGetNodes (body, nodes, &n),
                             "graph: cuGraphGetNodes", error))
    return FALSE;
  for (i = 0; i < n; i++)
    {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;

      gtorch_cuda.cuGraphNodeGetType (nodes[i], &type);
      if (type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY
          || type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_GRAPH
          || type == CU_GRAPH_NODE_TYPE_EMPTY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   type == CU_GRAPH_NODE_TYPE_HOST
                       ? _ ("graph: a branch cannot call a function of the host (node %u of it): "
                            "only kernels, copies and fills can be in one")
                       : _ ("graph: node %u of the branch cannot be in a branch: only kernels, "
                            "copies and fills can"),
                   (guint) i);
      return FALSE;
    }
  return TRUE;
}

/* Checks that nothing was captured on the original queue meanwhile, for example by a program that kept the
 * handle of the queue. */
static gboolean
check_outer (GTorchCudaBranch *self, GError **error)
{
  CUstreamCaptureStatus status;
  const CUgraphNode *before = NULL;
  size_t n_before = 0;

  if (!gtorch_cuda_check (gtorch_cuda.cuStreamGetCaptureInfo (self->outer, &status, NULL, NULL,
                                                              &before, &n_before),
                          "graph: cuStreamGetCaptureInfo", error))
    return FALSE;
  if (n_before == 1 && before[0] == self->node)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("graph: something was launched outside of a branch while it was open: "
                  "its stream has another handle meanwhile, get it again"));
  return FALSE;
}

gboolean
gtorch_cuda_branch_end (GTorchCudaBranch *self, GError **error)
{
  const CUstream inner = self->lane->handle;
  CUgraph captured; /* the body */
  gboolean is_over;
  CUresult result;

  gtorch_cuda_device_activate (self->lane->device, NULL);
  result = gtorch_cuda_stream_end_capture (inner, &captured, &is_over);
  /* under the device's lock, as other threads query all queues */
  set_handle (self->lane, self->outer);
  if (is_over)
    gtorch_cuda.cuStreamDestroy (inner);
  return gtorch_cuda_check (result, "graph: cuStreamEndCapture", error)
         && check_body (self->body, error) && check_outer (self, error);
}
