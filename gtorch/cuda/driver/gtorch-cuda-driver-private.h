/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-abi-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* The driver's functions, by their own names: gtorch_cuda.cuMemAlloc (…). Filled once, by
 * gtorch_cuda_driver_load(); the entry for a function that the installed driver lacks only returns an
 * error. */
typedef struct
{
#define F(name, version, arguments) CUresult (*name) arguments;
#include <gtorch/cuda/driver/gtorch-cuda-functions.inc>
#undef F
} GTorchCudaDriver;

extern GTorchCudaDriver gtorch_cuda;

/* Opens and initialises the driver's library, once, without making a context. Returns FALSE with
 * GTORCH_ERROR_DEVICE, always with the same message, if there is no driver, and FALSE with
 * GTORCH_ERROR_FORKED in a process that was forked after this succeeded. */
gboolean gtorch_cuda_driver_load (GError **error);
/* Opens the library and fills the table without initialising the driver, so that children of fork() are not
 * affected. Returns FALSE if no suitable driver is installed. */
gboolean gtorch_cuda_driver_find (void);
/* Returns whether gtorch_cuda_driver_load() was called, with whatever result. */
gboolean gtorch_cuda_driver_is_tried (void);
/* Returns whether this process was forked from one that had initialised CUDA, which makes CUDA unusable
 * here. */
gboolean gtorch_cuda_is_forked (void);

/* Returns the image to load for a family of kernels: the one that was built or, if there is none, the
 * substitute that the fake driver provides, which tests use without a GPU and which identifies kernels by
 * name alone. Returns NULL if there is neither. */
const void *gtorch_cuda_driver_get_image (const void *built);
/* Lets the fake driver perform an operation for which it has no kernel, in queue order, on `host`, the CPU;
 * `report` is a GtReport or NULL. The fake driver enqueues a kernel whose parameters are a pointer and, for
 * random operations, `random`, a GtRandom. Returns FALSE if the driver does not support this, as NVIDIA's
 * does not. */
gboolean gtorch_cuda_driver_stand_in (GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                                      gpointer report, gconstpointer random);

/* Returns FALSE and sets an error "what: the driver's message (its name)". */
gboolean gtorch_cuda_fail (CUresult result, const gchar *what, GError **error);

/* Returns TRUE for CUDA_SUCCESS; otherwise fails like gtorch_cuda_fail(). */
static inline gboolean
gtorch_cuda_check (CUresult result, const gchar *what, GError **error)
{
  return G_LIKELY (result == CUDA_SUCCESS) || gtorch_cuda_fail (result, what, error);
}

/* If the result is a sticky error, which a device keeps returning, marks that device as failed. Returns
 * FALSE with the reason if a device has failed, and TRUE if no device repeats the error
 * (gtorch-cuda-failure.c). */
gboolean gtorch_cuda_check_devices (CUresult result, GError **error);

/* Returns whether kernels may have up to 32764 bytes of parameters, not 4096 only. */
gboolean gtorch_cuda_driver_takes_many (void);

G_END_DECLS
