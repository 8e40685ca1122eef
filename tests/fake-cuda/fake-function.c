/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Libraries, kernels, their functions in contexts, and launches. */

#include "config.h"

#include "fake-cuda-private.h"

struct CUlib_st
{
  gconstpointer image;
};

CUresult
cuLibraryLoadData (CUlibrary *library, const void *code, CUjit_option *jit_options,
                   void **jit_values, unsigned int n_jit_options, CUlibraryOption *library_options,
                   void **library_values, unsigned int n_library_options)
{
  ENTER (cuLibraryLoadData);
  if (code == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (fake_capture_forbids ())
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  *library = g_new0 (struct CUlib_st, 1);
  (*library)->image = code;
  fake_accounts.libraries++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuLibraryUnload (CUlibrary library)
{
  ENTER (cuLibraryUnload);
  g_free (library);
  fake_accounts.libraries--;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuLibraryGetKernel (CUkernel *kernel, CUlibrary library, const char *name)
{
  ENTER (cuLibraryGetKernel);
  *kernel = fake_kernel_get (name);
  LEAVE (*kernel != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
}

CUresult
cuKernelGetAttribute (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
  ENTER (cuKernelGetAttribute);
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuKernelSetAttribute (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
  ENTER (cuKernelSetAttribute);
  LEAVE (CUDA_SUCCESS);
}

/* A function is the address of the kernel with the number of its device, from 1, in the low bits, which
 * are 0 there. The kernel itself can stand for that of any device. */
#define NUMBERS ((guintptr) 15)

static FakeKernel *
kernel_of (CUfunction function)
{
  return (FakeKernel *) ((guintptr) function & ~NUMBERS);
}

static gboolean
is_of (CUfunction function, const FakeDevice *device)
{
  const guintptr number = (guintptr) function & NUMBERS;

  return function != NULL && (number == 0 || number == device->index + 1);
}

CUresult
cuKernelGetFunction (CUfunction *function, CUkernel kernel)
{
  FakeDevice *device;

  ENTER_CURRENT (cuKernelGetFunction, device);
  if (kernel == NULL)
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  if (((kernel->found >> device->index) & 1) == 0)
    fake_stall ();
  kernel->found |= 1u << device->index;
  *function = (CUfunction) ((guintptr) kernel | (device->index + 1));
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuFuncIsLoaded (CUfunctionLoadingState *state, CUfunction function)
{
  FakeDevice *device;

  ENTER_CURRENT (cuFuncIsLoaded, device);
  if (!is_of (function, device))
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  *state = (kernel_of (function)->loaded >> device->index) & 1 ? CU_FUNCTION_LOADING_STATE_LOADED
                                                               : CU_FUNCTION_LOADING_STATE_UNLOADED;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuFuncLoad (CUfunction function)
{
  FakeKernel *kernel = kernel_of (function);
  FakeDevice *device;

  ENTER_CURRENT (cuFuncLoad, device);
  if (!is_of (function, device))
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  if ((kernel->loaded >> device->index) & 1)
    LEAVE (CUDA_SUCCESS);
  if (fake_capture_forbids ())
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  kernel->loaded |= 1u << device->index;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuFuncGetName (const char **name, CUfunction function)
{
  ENTER (cuFuncGetName);
  *name = kernel_of (function)->name;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuFuncGetParamInfo (CUfunction function, size_t index, size_t *offset, size_t *size)
{
  ENTER (cuFuncGetParamInfo);
  if (index != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *offset = 0;
  if (size != NULL)
    *size = kernel_of (function)->n_bytes;
  LEAVE (CUDA_SUCCESS);
}

/* Returns the parameters, which a launch may pass in two forms; NULL if they do not have the size of the
 * kernel's parameters. */
static gconstpointer
find_parameters (const FakeKernel *kernel, void **parameters, void **extra)
{
  gconstpointer buffer = NULL;
  gsize size = 0;

  if (extra == NULL)
    return parameters != NULL ? parameters[0] : NULL;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2)
    {
      if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = extra[1];
      else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
        size = *(const gsize *) extra[1];
    }
  return parameters == NULL && size == kernel->n_bytes ? buffer : NULL;
}

/* Call it with the lock held. */
static CUresult
launch_kernel (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
  FakeKernel *kernel = kernel_of (function);
  FakeOp op = { .kind = FAKE_KERNEL,
                .launch = { kernel,
                            { { config->gridDimX, config->gridDimY, config->gridDimZ },
                              { config->blockDimX, config->blockDimY, config->blockDimZ } } } };
  CUstream stream = fake_stream_find (config->hStream);
  gconstpointer parameter;
  CUresult result;
  guint i;

  if (stream == NULL || !is_of (function, stream->device))
    return CUDA_ERROR_INVALID_HANDLE;
  if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0
      || config->gridDimX > G_MAXINT32 || config->gridDimY > 65535 || config->gridDimZ > 65535
      || (guint64) config->blockDimX * config->blockDimY * config->blockDimZ - 1 >= 1024
      || config->sharedMemBytes > 227 << 10)
    return CUDA_ERROR_INVALID_VALUE;
  if (kernel->only_reports && stream->capture != NULL)
    return CUDA_ERROR_NOT_SUPPORTED;
  for (i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      op.launch.cluster = config->attrs[i].value.clusterDim.x;
    else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
      op.launch.is_kept = TRUE;
  if (op.launch.cluster > 0 && config->gridDimX % op.launch.cluster != 0)
    return CUDA_ERROR_INVALID_VALUE;
  parameter = find_parameters (kernel, parameters, extra);
  if (parameter == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  op.launch.parameter = g_memdup2 (parameter, kernel->n_bytes);
  op.launch.is_packed = extra != NULL;
  op.launch.shared = config->sharedMemBytes;
  kernel->loaded |= 1u << stream->device->index;
  fake_accounts.clusters += op.launch.cluster > 0;
  result = fake_stream_push (stream, &op);
  return result == CUDA_SUCCESS && kernel->only_reports ? CUDA_ERROR_NOT_SUPPORTED : result;
}

CUresult
cuLaunchKernel (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                unsigned int block_x, unsigned int block_y, unsigned int block_z,
                unsigned int shared_bytes, CUstream stream, void **parameters, void **extra)
{
  const CUlaunchConfig config = { grid_x,  grid_y,       grid_z, block_x, block_y,
                                  block_z, shared_bytes, stream, NULL,    0 };

  ENTER (cuLaunchKernel);
  LEAVE (launch_kernel (&config, function, parameters, extra));
}

CUresult
cuLaunchKernelEx (const CUlaunchConfig *config, CUfunction function, void **parameters,
                  void **extra)
{
  ENTER (cuLaunchKernelEx);
  LEAVE (launch_kernel (config, function, parameters, extra));
}
