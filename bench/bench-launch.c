/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "bench-launch.h"

/* A kernel with one parameter that does next to nothing. */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry add (.param .u64 a) {\n"
                          " .reg .b64 %d<2>; .reg .f32 %f<3>;\n"
                          " ld.param.u64 %d1, [a]; ld.global.f32 %f1, [%d1];\n"
                          " add.f32 %f2, %f1, %f1; st.global.f32 [%d1], %f2; ret;\n}\n";

void *bench_driver;
CUdeviceptr bench_driver_memory;

static CUfunction kernel;
static float *element; /* in host memory */

void
bench_driver_open (void)
{
  CUdevice device;
  CUcontext context;

  bench_driver = dlopen ("libcuda.so.1", RTLD_NOW);
  if (bench_driver == NULL)
    {
      fprintf (stderr, "%s\n", dlerror ());
      exit (1);
    }
  CALL ("cuInit", (unsigned), 0);
  CALL ("cuDeviceGet", (CUdevice *, int), &device, 0);
  CALL ("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice), &context, device);
  CALL ("cuCtxSetCurrent", (CUcontext), context);
}

void
bench_driver_load (void)
{
  void *module;

  CALL ("cuMemAlloc_v2", (CUdeviceptr *, size_t), &bench_driver_memory, 64);
  CALL ("cuMemHostAlloc", (void **, size_t, unsigned), (void **) &element, 64, 0);
  CALL ("cuModuleLoadData", (void **, const void *), &module, ptx);
  CALL ("cuModuleGetFunction", (CUfunction *, void *, const char *), &kernel, module, "add");
}

void
bench_launch (CUstream stream)
{
  size_t size = sizeof bench_driver_memory;
  void *parameters[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &bench_driver_memory,
                         CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };

  CALL ("cuLaunchKernel",
        (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
         void **, void **),
        kernel, 1, 1, 1, 128, 1, 1, 0, stream, NULL, parameters);
}

static gboolean
ask (CUstream stream)
{
  static CUresult (*query) (CUstream);
  CUresult result;

  if (query == NULL)
    *(void **) &query = dlsym (bench_driver, "cuStreamQuery");
  result = query != NULL ? query (stream) : CUDA_ERROR_NOT_FOUND;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
    {
      fprintf (stderr, "cuStreamQuery: error %d\n", result);
      exit (1);
    }
  return result != CUDA_SUCCESS;
}

void
bench_item (CUstream stream)
{
  CALL ("cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream), element,
        bench_driver_memory, 4, stream);
  while (ask (stream))
    ;
}
