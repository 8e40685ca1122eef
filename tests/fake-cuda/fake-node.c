/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The attributes of graph nodes. */

#include "config.h"

#include <string.h>

#include "fake-cuda-private.h"

CUresult
cuGraphNodeGetType (CUgraphNode node, CUgraphNodeType *type)
{
  static const CUgraphNodeType types[] = {
    [FAKE_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,      [FAKE_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
    [FAKE_SET] = CU_GRAPH_NODE_TYPE_MEMSET,         [FAKE_CALL] = CU_GRAPH_NODE_TYPE_HOST,
    [FAKE_WRITE] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [FAKE_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
    [FAKE_BRANCH] = CU_GRAPH_NODE_TYPE_CONDITIONAL,
  };

  ENTER (cuGraphNodeGetType);
  *type = node->child != NULL ? CU_GRAPH_NODE_TYPE_GRAPH : types[node->op.kind];
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphNodeGetDependencies (CUgraphNode node, CUgraphNode *before, CUgraphEdgeData *edges,
                            size_t *n_before)
{
  size_t i;

  ENTER (cuGraphNodeGetDependencies);
  if (before == NULL)
    {
      *n_before = node->before->len;
      LEAVE (CUDA_SUCCESS);
    }
  for (i = 0; i < *n_before; i++)
    before[i] = i < node->before->len ? node->before->pdata[i] : NULL;
  if (edges != NULL)
    memset (edges, 0, *n_before * sizeof *edges);
  *n_before = MIN (*n_before, node->before->len);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphChildGraphNodeGetGraph (CUgraphNode node, CUgraph *graph)
{
  ENTER (cuGraphChildGraphNodeGetGraph);
  if (node->child == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *graph = node->child;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphMemcpyNodeGetParams (CUgraphNode node, CUDA_MEMCPY3D *parameters)
{
  ENTER (cuGraphMemcpyNodeGetParams);
  if (node->child != NULL || node->op.kind != FAKE_COPY)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *parameters = (CUDA_MEMCPY3D){
    .srcMemoryType = node->op.copy.from != 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
    .srcHost = node->op.copy.from_host,
    .srcDevice = node->op.copy.from,
    .dstMemoryType = node->op.copy.to != 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
    .dstHost = node->op.copy.to_host,
    .dstDevice = node->op.copy.to,
    .WidthInBytes = node->op.copy.n_bytes,
    .Height = 1,
    .Depth = 1,
  };
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphMemsetNodeGetParams (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *parameters)
{
  ENTER (cuGraphMemsetNodeGetParams);
  if (node->child != NULL || node->op.kind != FAKE_SET)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *parameters = (CUDA_MEMSET_NODE_PARAMS){
    .dst = node->op.set.to,
    .value = node->op.set.value,
    .elementSize = node->op.set.size,
    .width = node->op.set.n,
    .height = 1,
  };
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphKernelNodeGetParams (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
  ENTER (cuGraphKernelNodeGetParams);
  if (node->child != NULL || node->op.kind != FAKE_KERNEL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *parameters = (CUDA_KERNEL_NODE_PARAMS){
    .func = (CUfunction) node->op.launch.kernel,
    .gridDimX = node->op.launch.grid.grid[0],
    .gridDimY = node->op.launch.grid.grid[1],
    .gridDimZ = node->op.launch.grid.grid[2],
    .blockDimX = node->op.launch.grid.block[0],
    .blockDimY = node->op.launch.grid.block[1],
    .blockDimZ = node->op.launch.grid.block[2],
    .sharedMemBytes = node->op.launch.shared,
  };
  if (!node->op.launch.is_packed)
    parameters->kernelParams = &node->op.launch.parameter;
  else
    {
      gpointer *extra = node->op.launch.extra;

      extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
      extra[1] = node->op.launch.parameter;
      extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
      extra[3] = (gpointer) &node->op.launch.kernel->n_bytes;
      extra[4] = CU_LAUNCH_PARAM_END;
      parameters->extra = extra;
    }
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphKernelNodeGetAttribute (CUgraphNode node, CUlaunchAttributeID attribute,
                               CUlaunchAttributeValue *value)
{
  ENTER (cuGraphKernelNodeGetAttribute);
  if (node->child != NULL || node->op.kind != FAKE_KERNEL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  memset (value, 0, sizeof *value);
  if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && node->op.launch.cluster > 0)
    {
      value->clusterDim.x = node->op.launch.cluster;
      value->clusterDim.y = value->clusterDim.z = 1;
    }
  if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && node->op.launch.is_kept)
    value->words[0] = 1; /* an address */
  LEAVE (CUDA_SUCCESS);
}
