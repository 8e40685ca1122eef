/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Opens cuSOLVER and cuBLAS, and keeps a handle of each for a device. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-solver-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

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
  { SOLVER, "cusolverDnXgeqrf_bufferSize", (gpointer *) &gtorch_cuda_solver.geqrf_size },
  { SOLVER, "cusolverDnXgeqrf", (gpointer *) &gtorch_cuda_solver.geqrf },
  { SOLVER, "cusolverDnXsyevd_bufferSize", (gpointer *) &gtorch_cuda_solver.syevd_size },
  { SOLVER, "cusolverDnXsyevd", (gpointer *) &gtorch_cuda_solver.syevd },
  { SOLVER, "cusolverDnXgesvd_bufferSize", (gpointer *) &gtorch_cuda_solver.gesvd_size },
  { SOLVER, "cusolverDnXgesvd", (gpointer *) &gtorch_cuda_solver.gesvd },
  { SOLVER, "cusolverDnSorgqr_bufferSize", (gpointer *) &gtorch_cuda_solver.gqr_size[0] },
  { SOLVER, "cusolverDnDorgqr_bufferSize", (gpointer *) &gtorch_cuda_solver.gqr_size[1] },
  { SOLVER, "cusolverDnCungqr_bufferSize", (gpointer *) &gtorch_cuda_solver.gqr_size[2] },
  { SOLVER, "cusolverDnZungqr_bufferSize", (gpointer *) &gtorch_cuda_solver.gqr_size[3] },
  { SOLVER, "cusolverDnSorgqr", (gpointer *) &gtorch_cuda_solver.gqr[0] },
  { SOLVER, "cusolverDnDorgqr", (gpointer *) &gtorch_cuda_solver.gqr[1] },
  { SOLVER, "cusolverDnCungqr", (gpointer *) &gtorch_cuda_solver.gqr[2] },
  { SOLVER, "cusolverDnZungqr", (gpointer *) &gtorch_cuda_solver.gqr[3] },
  { SOLVER, "cusolverDnSormqr_bufferSize", (gpointer *) &gtorch_cuda_solver.mqr_size[0] },
  { SOLVER, "cusolverDnDormqr_bufferSize", (gpointer *) &gtorch_cuda_solver.mqr_size[1] },
  { SOLVER, "cusolverDnCunmqr_bufferSize", (gpointer *) &gtorch_cuda_solver.mqr_size[2] },
  { SOLVER, "cusolverDnZunmqr_bufferSize", (gpointer *) &gtorch_cuda_solver.mqr_size[3] },
  { SOLVER, "cusolverDnSormqr", (gpointer *) &gtorch_cuda_solver.mqr[0] },
  { SOLVER, "cusolverDnDormqr", (gpointer *) &gtorch_cuda_solver.mqr[1] },
  { SOLVER, "cusolverDnCunmqr", (gpointer *) &gtorch_cuda_solver.mqr[2] },
  { SOLVER, "cusolverDnZunmqr", (gpointer *) &gtorch_cuda_solver.mqr[3] },
  { SOLVER, "cusolverDnSsytrf_bufferSize", (gpointer *) &gtorch_cuda_solver.sytrf_size[0] },
  { SOLVER, "cusolverDnDsytrf_bufferSize", (gpointer *) &gtorch_cuda_solver.sytrf_size[1] },
  { SOLVER, "cusolverDnCsytrf_bufferSize", (gpointer *) &gtorch_cuda_solver.sytrf_size[2] },
  { SOLVER, "cusolverDnZsytrf_bufferSize", (gpointer *) &gtorch_cuda_solver.sytrf_size[3] },
  { SOLVER, "cusolverDnSsytrf", (gpointer *) &gtorch_cuda_solver.sytrf[0] },
  { SOLVER, "cusolverDnDsytrf", (gpointer *) &gtorch_cuda_solver.sytrf[1] },
  { SOLVER, "cusolverDnCsytrf", (gpointer *) &gtorch_cuda_solver.sytrf[2] },
  { SOLVER, "cusolverDnZsytrf", (gpointer *) &gtorch_cuda_solver.sytrf[3] },
  { BLAS, "cublasCreate_v2", (gpointer *) &gtorch_cuda_solver.blas_create },
  { BLAS, "cublasSetStream_v2", (gpointer *) &gtorch_cuda_solver.blas_set_stream },
  { BLAS, "cublasStrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[0] },
  { BLAS, "cublasDtrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[1] },
  { BLAS, "cublasCtrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[2] },
  { BLAS, "cublasZtrsm_v2_64", (gpointer *) &gtorch_cuda_solver.trsm[3] },
  { SOLVER, "cusolverDnSpotrfBatched", (gpointer *) &gtorch_cuda_solver.potrf_batched[0] },
  { SOLVER, "cusolverDnDpotrfBatched", (gpointer *) &gtorch_cuda_solver.potrf_batched[1] },
  { SOLVER, "cusolverDnCpotrfBatched", (gpointer *) &gtorch_cuda_solver.potrf_batched[2] },
  { SOLVER, "cusolverDnZpotrfBatched", (gpointer *) &gtorch_cuda_solver.potrf_batched[3] },
  { BLAS, "cublasSgetrfBatched", (gpointer *) &gtorch_cuda_solver.getrf_batched[0] },
  { BLAS, "cublasDgetrfBatched", (gpointer *) &gtorch_cuda_solver.getrf_batched[1] },
  { BLAS, "cublasCgetrfBatched", (gpointer *) &gtorch_cuda_solver.getrf_batched[2] },
  { BLAS, "cublasZgetrfBatched", (gpointer *) &gtorch_cuda_solver.getrf_batched[3] },
  { BLAS, "cublasSgetrsBatched", (gpointer *) &gtorch_cuda_solver.getrs_batched[0] },
  { BLAS, "cublasDgetrsBatched", (gpointer *) &gtorch_cuda_solver.getrs_batched[1] },
  { BLAS, "cublasCgetrsBatched", (gpointer *) &gtorch_cuda_solver.getrs_batched[2] },
  { BLAS, "cublasZgetrsBatched", (gpointer *) &gtorch_cuda_solver.getrs_batched[3] },
  { BLAS, "cublasStrsmBatched", (gpointer *) &gtorch_cuda_solver.trsm_batched[0] },
  { BLAS, "cublasDtrsmBatched", (gpointer *) &gtorch_cuda_solver.trsm_batched[1] },
  { BLAS, "cublasCtrsmBatched", (gpointer *) &gtorch_cuda_solver.trsm_batched[2] },
  { BLAS, "cublasZtrsmBatched", (gpointer *) &gtorch_cuda_solver.trsm_batched[3] },
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

guint
gtorch_cuda_solver_form (guint dtype)
{
  const gboolean is_double = gtorch_dtype_infos[dtype].real == GTORCH_DTYPE_FLOAT64;

  return 2 * (gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX) + is_double;
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

/* --- matrices and room --- */

gint64
gtorch_cuda_count_matrices (const GTorchImpl *impl)
{
  return impl->numel / (impl->shape[impl->n_dims - 2] * impl->shape[impl->n_dims - 1]);
}

GTorchImpl *
gtorch_cuda_swap (GTorchImpl *impl)
{
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  const guint n = impl->n_dims;

  memcpy (shape, impl->shape, n * sizeof (gint64));
  memcpy (strides, impl->strides, n * sizeof (gint64));
  shape[n - 2] = impl->shape[n - 1];
  shape[n - 1] = impl->shape[n - 2];
  strides[n - 2] = impl->strides[n - 1];
  strides[n - 1] = impl->strides[n - 2];
  return gtorch_impl_new_view (impl, impl->offset, shape, strides, n);
}

GTorchImpl *
gtorch_cuda_transpose (GTorchImpl *impl, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) swapped = gtorch_cuda_swap (impl);
  g_autoptr (GTorchImpl) copy =
      gtorch_impl_new (gtorch_impl_device (impl), impl->dtype, swapped->shape, impl->n_dims, error);

  if (copy == NULL || !gtorch_cuda_copy_here (copy, swapped, lane, error))
    return NULL;
  return g_steal_pointer (&copy);
}

gboolean
gtorch_cuda_room_init (GTorchCudaRoom *self, GTorchCudaLane *lane, GError **error)
{
  if (self->host > 0)
    self->on_host = g_try_malloc (self->host);
  if (self->host > 0 && self->on_host == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("%zu bytes of the host's memory are not available"), self->host);
      return FALSE;
    }
  if (self->device > 0)
    self->on_device = gtorch_cuda_scratch (lane, self->device, error);
  return self->device == 0 || self->on_device != NULL;
}

gboolean
gtorch_cuda_room_clear (GTorchCudaRoom *self, gboolean success, GTorchCudaLane *lane,
                        GError **error)
{
  if (self->on_host != NULL)
    {
      /* A failed wait leaves the memory to the device. */
      if (gtorch_cuda_lane_synchronize (lane, "linalg", success ? error : NULL))
        g_free (self->on_host);
      else
        success = FALSE;
    }
  g_clear_pointer (&self->on_device, gtorch_impl_unref);
  return success;
}

gpointer
gtorch_cuda_room_data (const GTorchCudaRoom *self)
{
  return self->on_device != NULL ? gtorch_impl_data (self->on_device) : NULL;
}
