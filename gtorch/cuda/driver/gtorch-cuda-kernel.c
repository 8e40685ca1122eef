/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels: they are found by name in the embedded images, loaded on first use, and launched. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"

#define NOT_TOLD G_MAXSIZE

static gboolean
load_family (GTorchCudaFamily *family, GError **error)
{
  const void *image = gtorch_cuda_driver_get_image (family->image);
  CUlibrary library = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;

  if (image == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("this build of GTorch was made without the CUDA kernels “%s”"), family->name);
      return FALSE;
    }
  /* The program may have begun a capture without the library, and a capture forbids loading. */
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  result = gtorch_cuda.cuLibraryLoadData (&library, image, NULL, NULL, 0, NULL, NULL, 0);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  if (!gtorch_cuda_check (result, family->name, error))
    return FALSE;
  g_atomic_pointer_set (&family->library, library);
  return TRUE;
}

gboolean
gtorch_cuda_kernel_get (GTorchCudaKernel *self, GTorchCudaFamily *family, const gchar *name,
                        GError **error)
{
  CUkernel kernel = NULL;
  gboolean result = TRUE;

  g_mutex_lock (&family->lock);
  if (family->library == NULL)
    result = load_family (family, error);
  if (result)
    result = gtorch_cuda_check (gtorch_cuda.cuLibraryGetKernel (&kernel, family->library, name),
                                name, error);
  if (result)
    g_atomic_pointer_set (&self->kernel, kernel);
  g_mutex_unlock (&family->lock);
  return result;
}

static G_GNUC_NO_INLINE CUfunction
find_function (GTorchCudaKernel *self, GTorchCudaDevice *device, CUfunction *place)
{
  CUkernel kernel = g_atomic_pointer_get (&self->kernel); /* other threads may set the same one */
  CUfunction function = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  gboolean found;

  gtorch_cuda_stall_begin ();
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  found = gtorch_cuda_device_activate (device, NULL)
          && gtorch_cuda.cuKernelGetFunction (&function, kernel) == CUDA_SUCCESS;
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  gtorch_cuda_stall_end ();
  if (!found)
    return (CUfunction) kernel; /* the launch reports what is wrong */
  g_atomic_pointer_set (place, function);
  return function;
}

/* Returns the kernel's function. The driver also launches a CUkernel directly, but then looks up its
 * function on each launch. */
static inline CUfunction
get_function (GTorchCudaKernel *self, GTorchCudaDevice *device)
{
  CUfunction *place = &self->functions[device->parent_instance.index];
  CUfunction function = g_atomic_pointer_get (place);

  return G_LIKELY (function != NULL) ? function : find_function (self, device, place);
}

/* Returns the size of the kernel's only parameter. Must not be called before the first launch outside of a
 * capture: the driver may load the kernel for this query, which a capture forbids. */
static G_GNUC_NO_INLINE gsize
ask_size (GTorchCudaKernel *self, CUfunction function)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  gsize offset, n_bytes = NOT_TOLD;

  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  if (gtorch_cuda.cuFuncGetParamInfo (function, 0, &offset, &n_bytes) != CUDA_SUCCESS)
    n_bytes = NOT_TOLD;
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  __atomic_store_n (&self->n_bytes, n_bytes, __ATOMIC_RELAXED);
  return n_bytes;
}

/* Launches the kernel. The driver is faster if it is given the size of the parameters than if it has to
 * query the kernel for it. In the library's captures, parameters are passed by pointers instead, as the
 * parameters of graph nodes are read and changed that way. */
static inline gboolean
enqueue (GTorchCudaKernel *self, GTorchCudaLane *lane, const GTorchCudaLaunch *launch,
         gconstpointer parameters, GError **error)
{
  void *pointers[] = { (void *) parameters };
  GTorchCudaCapture *capture = gtorch_cuda_lane_capture (lane);
  CUfunction function = get_function (self, lane->device);
  gsize n_bytes = NOT_TOLD;
  void *packed[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *) parameters,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &n_bytes, CU_LAUNCH_PARAM_END };

  if (G_LIKELY (capture == NULL))
    {
      n_bytes = __atomic_load_n (&self->n_bytes, __ATOMIC_RELAXED);
      if (G_UNLIKELY (n_bytes == 0))
        n_bytes = ask_size (self, function);
    }
  else if (!gtorch_cuda_capture_load (capture, function, error))
    return FALSE;
  return gtorch_cuda_check (gtorch_cuda.cuLaunchKernel (function, launch->grid[0],
                                                        MAX (launch->grid[1], 1),
                                                        MAX (launch->grid[2], 1), launch->block[0],
                                                        MAX (launch->block[1], 1),
                                                        MAX (launch->block[2], 1), launch->shared,
                                                        lane->handle,
                                                        n_bytes == NOT_TOLD ? pointers : NULL,
                                                        n_bytes == NOT_TOLD ? NULL : packed),
                            "cuLaunchKernel", error);
}

gboolean
gtorch_cuda_kernel_launch (GTorchCudaKernel *self, GTorchCudaLane *lane,
                           const GTorchCudaLaunch *launch, gconstpointer parameters, GError **error)
{
  return enqueue (self, lane, launch, parameters, error);
}

gboolean
gtorch_cuda_kernel_run (GTorchCudaKernel *self, GTorchCudaFamily *family, const gchar *name,
                        GTorchCudaLane *lane, guint64 blocks, guint threads,
                        gconstpointer parameters, GError **error)
{
  const GTorchCudaLaunch launch = { .grid = { blocks }, .block = { threads } };

  if (G_UNLIKELY (blocks > G_MAXINT32))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("the kernel would take %" PRIu64 " blocks, GPUs run at most %d"), blocks,
                   G_MAXINT32);
      return FALSE;
    }
  if (G_UNLIKELY (g_atomic_pointer_get (&self->kernel) == NULL)
      && !gtorch_cuda_kernel_get (self, family, name, error))
    return FALSE;
  return enqueue (self, lane, &launch, parameters, error);
}
