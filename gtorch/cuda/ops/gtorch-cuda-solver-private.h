/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/ops/gtorch-cuda-plain-private.h>
#include <gtorch/cuda/driver/gtorch-cuda-private.h>

G_BEGIN_DECLS

/* The part of the binary interfaces of cuSOLVER and of cuBLAS that is used. Both take column-major
 * matrices. */

enum
{
  GTORCH_SOLVER_LOWER = 0,
  GTORCH_SOLVER_UPPER = 1,
  GTORCH_SOLVER_LEFT = 0,
  GTORCH_SOLVER_RIGHT = 1,
  GTORCH_SOLVER_PLAIN = 0,
  GTORCH_SOLVER_TRANSPOSE = 1,
  GTORCH_SOLVER_ADJOINT = 2,
};

typedef struct
{
  /* cuSOLVER */
  gint (*create) (gpointer *handle);
  gint (*set_stream) (gpointer handle, CUstream stream);
  gint (*create_params) (gpointer *params);
  gint (*potrf_size) (gpointer handle, gpointer params, gint uplo, gint64 n, gint type,
                      gconstpointer a, gint64 lda, gint compute, gsize *device, gsize *host);
  gint (*potrf) (gpointer handle, gpointer params, gint uplo, gint64 n, gint type, gpointer a,
                 gint64 lda, gint compute, gpointer on_device, gsize device, gpointer on_host,
                 gsize host, gint *info);
  gint (*getrf_size) (gpointer handle, gpointer params, gint64 m, gint64 n, gint type,
                      gconstpointer a, gint64 lda, gint compute, gsize *device, gsize *host);
  gint (*getrf) (gpointer handle, gpointer params, gint64 m, gint64 n, gint type, gpointer a,
                 gint64 lda, gint64 *pivots, gint compute, gpointer on_device, gsize device,
                 gpointer on_host, gsize host, gint *info);
  gint (*getrs) (gpointer handle, gpointer params, gint operation, gint64 n, gint64 n_columns,
                 gint type_a, gconstpointer a, gint64 lda, const gint64 *pivots, gint type_b,
                 gpointer b, gint64 ldb, gint *info);
  /* cuBLAS; [0] to [3] for float32, float64, complex64 and complex128 */
  gint (*blas_create) (gpointer *handle);
  gint (*blas_set_stream) (gpointer handle, CUstream stream);
  gint (*trsm[4]) (gpointer handle, gint side, gint uplo, gint operation, gint diag, gint64 m,
                   gint64 n, gconstpointer alpha, gconstpointer a, gint64 lda, gpointer b,
                   gint64 ldb);
} GTorchCudaSolverFunctions;

extern GTorchCudaSolverFunctions gtorch_cuda_solver;

/* The handles of a device, which one thread uses at a time. */
typedef struct
{
  gpointer solver, params, blas;
} GTorchCudaSolver;

/* Locks the handles of the lane's device and makes them enqueue on the lane; NULL with an error. Opens the
 * libraries first if need be. gtorch_cuda_solver_end () unlocks them. */
GTorchCudaSolver *gtorch_cuda_solver_begin (GTorchCudaLane *lane, GError **error);
void gtorch_cuda_solver_end (GTorchCudaSolver *self);
/* Returns FALSE with an error that names the function unless the status is that of success. */
gboolean gtorch_cuda_solver_check (gint status, const gchar *what, GError **error);
/* Returns the type of elements as cuSOLVER names it. */
gint gtorch_cuda_solver_type (guint dtype);

G_END_DECLS
