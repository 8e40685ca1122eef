/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Opens cuSOLVER and cuBLAS, and keeps a handle of each for a device. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-solver-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-fork-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"

#define SOLVER "libcusolver.so.12"
#define BLAS   "libcublas.so.13"

enum
{
  ALLOC_FAILED_SOLVER = 2,
  ALLOC_FAILED_BLAS = 3,
  NOT_SUPPORTED_SOLVER = 9,
  NOT_SUPPORTED_BLAS = 15,
};

GTorchCudaSolverFunctions gtorch_cuda_solver;

static const struct
{
  const gchar *library, *name;
  gpointer *slot;
} symbols[] = {
  { SOLVER, "cusolverDnCreate", (gpointer *) &gtorch_cuda_solver.create },
  { SOLVER, "cusolverDnSetStream", (gpointer *) &gtorch_cuda_solver.set_stream },
  { SOLVER, "cusolverDnCreateParams", (gpointer *) &gtorch_cuda_solver.create_params },
  { SOLVER, "cusolverDnXpotrf_bufferSize", (gpointer *) &gtorch_cuda_solver.potrf_size },
  { SOLVER, "cusolverDnXpotrf", (gpointer *) &gtorch_cuda_solver.potrf },
  { SOLVER, "cusolverDnXgetrf_bufferSize", (gpointer *) &gtorch_cuda_solver.getrf_size },
  { SOLVER, "cusolverDnXgetrf", (gpointer *) &gtorch_cuda_solver.getrf },
  { SOLVER, "cusolverDnXgetrs", (gpointer *) &gtorch_cuda_solver.getrs },
  { BLAS, "cublasCreate_v2", (gpointer *) &gtorch_cuda_solver.blas_create },
  { BLAS, "cublasSetStream_v2", (gpointer *) &gtorch_cuda_solver.blas_set_stream },
  { BLAS, "cublasStrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[0] },
  { BLAS, "cublasDtrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[1] },
  { BLAS, "cublasCtrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[2] },
  { BLAS, "cublasZtrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[3] },
};

static GMutex lock; /* protects all below, and is held while handles are used */
GTORCH_FORK_LOCK (lock);
static gboolean is_open;
static GTorchCudaSolver solvers[GTORCH_CUDA_MAX_DEVICES];

static gboolean
open_libraries (GError **error)
{
  gpointer solver, blas;
  guint i;

  if (is_open)
    return TRUE;
  if ((blas = gtorch_cuda_library_open (BLAS, error)) == NULL
      || (solver = gtorch_cuda_library_open (SOLVER, error)) == NULL)
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (symbols); i++)
    if ((*symbols[i].slot =
             gtorch_cuda_library_symbol (g_str_equal (symbols[i].library, BLAS) ? blas : solver,
                                         symbols[i].library, symbols[i].name, error))
        == NULL)
      return FALSE;
  is_open = TRUE;
  return TRUE;
}

gboolean
gtorch_cuda_solver_check (gint status, const gchar *what, GError **error)
{
  const gboolean is_blas = g_str_has_prefix (what, "cublas");

  if (G_LIKELY (status == 0))
    return TRUE;
  g_set_error (error, GTORCH_ERROR,
               status == (is_blas ? NOT_SUPPORTED_BLAS : NOT_SUPPORTED_SOLVER)
                   ? GTORCH_ERROR_NOT_SUPPORTED
               : status == (is_blas ? ALLOC_FAILED_BLAS : ALLOC_FAILED_SOLVER)
                   ? GTORCH_ERROR_OUT_OF_MEMORY
                   : GTORCH_ERROR_CUDA,
               _ ("%s failed with status %d"), what, status);
  return FALSE;
}

gint
gtorch_cuda_solver_type (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      return 0; /* CUDA_R_32F */
    case GTORCH_DTYPE_FLOAT64:
      return 1; /* CUDA_R_64F */
    case GTORCH_DTYPE_COMPLEX64:
      return 4; /* CUDA_C_32F */
    default:
      return 5; /* CUDA_C_64F */
    }
}

GTorchCudaSolver *
gtorch_cuda_solver_begin (GTorchCudaLane *lane, GError **error)
{
  GTorchCudaSolver *self = &solvers[((GTorchDevice *) lane->device)->index];
  gboolean success;
  GTORCH_CUDA_APART;

  if (!gtorch_cuda_device_activate (lane->device, error))
    return NULL;
  g_mutex_lock (&lock);
  success =
      open_libraries (error)
      && (self->blas != NULL
          || gtorch_cuda_solver_check (gtorch_cuda_solver.blas_create (&self->blas), "cublasCreate",
                                       error))
      && (self->solver != NULL
          || gtorch_cuda_solver_check (gtorch_cuda_solver.create (&self->solver),
                                       "cusolverDnCreate", error))
      && (self->params != NULL
          || gtorch_cuda_solver_check (gtorch_cuda_solver.create_params (&self->params),
                                       "cusolverDnCreateParams", error))
      && gtorch_cuda_solver_check (gtorch_cuda_solver.blas_set_stream (self->blas, lane->handle),
                                   "cublasSetStream", error)
      && gtorch_cuda_solver_check (gtorch_cuda_solver.set_stream (self->solver, lane->handle),
                                   "cusolverDnSetStream", error);
  if (success)
    return self;
  g_mutex_unlock (&lock);
  return NULL;
}

void
gtorch_cuda_solver_end (GTorchCudaSolver *self)
{
  g_mutex_unlock (&lock);
}
