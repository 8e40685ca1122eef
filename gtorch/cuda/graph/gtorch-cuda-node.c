/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reads kernel nodes of graphs that were captured from any code. */

#include "config.h"

#include "cuda/graph/gtorch-cuda-capture-private.h"

gboolean
gtorch_cuda_kernel_node_read (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *kernel,
                              CUfunction *function, GTorchCudaPiece piece, gpointer data)
{
  void **extra;
  gconstpointer bytes = NULL;
  gsize offset, size = 0, i;
  CUresult result;

  *kernel = (CUDA_KERNEL_NODE_PARAMS){ NULL };
  *function = NULL;
  if (gtorch_cuda.cuGraphKernelNodeGetParams (node, kernel) != CUDA_SUCCESS)
    return FALSE;
  *function = kernel->func;
  if (*function == NULL && gtorch_cuda.cuKernelGetFunction (function, kernel->kern) != CUDA_SUCCESS)
    return FALSE;
  if (kernel->extra == NULL)
    { /* cuFuncGetParamInfo() fails after the last parameter */
      for (i = 0;
           (result = gtorch_cuda.cuFuncGetParamInfo (*function, i, &offset, &size)) == CUDA_SUCCESS
           && kernel->kernelParams != NULL;
           i++)
        piece (offset, kernel->kernelParams[i], size, data);
      return result == CUDA_ERROR_INVALID_VALUE;
    }
  for (extra = kernel->extra; *extra != CU_LAUNCH_PARAM_END; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      bytes = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = *(const gsize *) extra[1];
    else
      return FALSE;
  if (bytes != NULL)
    piece (0, bytes, size, data);
  return bytes != NULL;
}
