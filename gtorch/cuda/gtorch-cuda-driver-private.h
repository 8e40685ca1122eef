/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-abi-private.h>
#include <gtorch/gtorch-op-private.h>

G_BEGIN_DECLS

/* The driver's functions, by their own names: gtorch_cuda.cuMemAlloc (…). Filled once, by
 * gtorch_cuda_driver_load(); a function that the installed driver lacks reports that instead of doing
 * anything. */
typedef struct
{
#define F(name, version, arguments) CUresult (*name) arguments;
#include <gtorch/cuda/gtorch-cuda-functions.inc>
#undef F
} GTorchCudaDriver;

extern GTorchCudaDriver gtorch_cuda;

/* Opens the driver's library and initialises it, once; no context is made. FALSE with DEVICE, always with
 * the same message, if there is none, and in a process that was forked after it succeeded. */
gboolean gtorch_cuda_driver_load (GError **error);
/* The first half of that: opens the library and fills the table. FALSE if there is no driver of the kind
 * that is needed. Does nothing that a child of fork() would suffer from. */
gboolean gtorch_cuda_driver_find (void);
/* Was gtorch_cuda_driver_load() called, with whatever result? */
gboolean gtorch_cuda_driver_is_tried (void);
/* Is this a child of the process that initialised CUDA? Its state is unusable here. */
gboolean gtorch_cuda_is_forked (void);

/* The image to load for a family of kernels: what the build made, or, if it made none, what a driver that
 * knows kernels by their names alone has for that (the one that tests use without a GPU); NULL with
 * NVIDIA's. */
const void *gtorch_cuda_driver_get_image (const void *built);
/* Such a driver may also do by itself an operation that it knows no kernel for, in order of the queue; `host`
 * is the CPU, `report` a GtReport or NULL. What it puts into the queue is
 * like a kernel whose parameters are a pointer and, for random operations, `random`, a GtRandom. FALSE if it
 * does not, as NVIDIA's does not. */
gboolean gtorch_cuda_driver_stand_in (GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                                      gpointer report, gconstpointer random);

/* FALSE with a GError "what: the driver's words (its name)". */
gboolean gtorch_cuda_fail (CUresult result, const gchar *what, GError **error);

/* TRUE for CUDA_SUCCESS; else the same. */
static inline gboolean
gtorch_cuda_check (CUresult result, const gchar *what, GError **error)
{
  return G_LIKELY (result == CUDA_SUCCESS) || gtorch_cuda_fail (result, what, error);
}

/* Is it a result that a device gives for ever once it has given it? Then the device is marked as failed.
 * FALSE with the reason if one is; TRUE if the driver has said it only once (gtorch-cuda-failure.c). */
gboolean gtorch_cuda_check_devices (CUresult result, GError **error);

G_END_DECLS
