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
  gint (*geqrf_size) (gpointer handle, gpointer params, gint64 m, gint64 n, gint type,
                      gconstpointer a, gint64 lda, gint type_tau, gconstpointer tau, gint compute,
                      gsize *device, gsize *host);
  gint (*geqrf) (gpointer handle, gpointer params, gint64 m, gint64 n, gint type, gpointer a,
                 gint64 lda, gint type_tau, gpointer tau, gint compute, gpointer on_device,
                 gsize device, gpointer on_host, gsize host, gint *info);
  gint (*syevd_size) (gpointer handle, gpointer params, gint vectors, gint uplo, gint64 n,
                      gint type, gconstpointer a, gint64 lda, gint type_w, gconstpointer w,
                      gint compute, gsize *device, gsize *host);
  gint (*syevd) (gpointer handle, gpointer params, gint vectors, gint uplo, gint64 n, gint type,
                 gpointer a, gint64 lda, gint type_w, gpointer w, gint compute, gpointer on_device,
                 gsize device, gpointer on_host, gsize host, gint *info);
  gint (*gesvd_size) (gpointer handle, gpointer params, signed char job_u, signed char job_vt,
                      gint64 m, gint64 n, gint type, gconstpointer a, gint64 lda, gint type_s,
                      gconstpointer s, gint type_u, gconstpointer u, gint64 ldu, gint type_vt,
                      gconstpointer vt, gint64 ldvt, gint compute, gsize *device, gsize *host);
  gint (*gesvd) (gpointer handle, gpointer params, signed char job_u, signed char job_vt, gint64 m,
                 gint64 n, gint type, gpointer a, gint64 lda, gint type_s, gpointer s, gint type_u,
                 gpointer u, gint64 ldu, gint type_vt, gpointer vt, gint64 ldvt, gint compute,
                 gpointer on_device, gsize device, gpointer on_host, gsize host, gint *info);
  /* orgqr and ormqr, or ungqr and unmqr; [0] to [3] for float32, float64, complex64 and complex128 */
  gint (*gqr_size[4]) (gpointer handle, gint m, gint n, gint k, gconstpointer a, gint lda,
                       gconstpointer tau, gint *elements);
  gint (*gqr[4]) (gpointer handle, gint m, gint n, gint k, gpointer a, gint lda, gconstpointer tau,
                  gpointer work, gint elements, gint *info);
  gint (*mqr_size[4]) (gpointer handle, gint side, gint operation, gint m, gint n, gint k,
                       gconstpointer a, gint lda, gconstpointer tau, gconstpointer c, gint ldc,
                       gint *elements);
  gint (*mqr[4]) (gpointer handle, gint side, gint operation, gint m, gint n, gint k,
                  gconstpointer a, gint lda, gconstpointer tau, gpointer c, gint ldc, gpointer work,
                  gint elements, gint *info);
  gint (*sytrf_size[4]) (gpointer handle, gint n, gpointer a, gint lda, gint *elements);
  gint (*sytrf[4]) (gpointer handle, gint uplo, gint n, gpointer a, gint lda, gint *pivots,
                    gpointer work, gint elements, gint *info);
  /* cuBLAS; [0] to [3] for float32, float64, complex64 and complex128 */
  gint (*blas_create) (gpointer *handle);
  gint (*blas_set_stream) (gpointer handle, CUstream stream);
  gint (*trsm[4]) (gpointer handle, gint side, gint uplo, gint operation, gint diag, gint64 m,
                   gint64 n, gconstpointer alpha, gconstpointer a, gint64 lda, gpointer b,
                   gint64 ldb);
  /* For `count` matrices, whose addresses are on the device. getrs writes its info to the host. */
  gint (*potrf_batched[4]) (gpointer handle, gint uplo, gint n, gpointer *a, gint lda, gint *info,
                            gint count);
  gint (*getrf_batched[4]) (gpointer handle, gint n, gpointer *a, gint lda, gint *pivots,
                            gint *info, gint count);
  gint (*getrs_batched[4]) (gpointer handle, gint operation, gint n, gint n_columns, gpointer *a,
                            gint lda, const gint *pivots, gpointer *b, gint ldb, gint *info,
                            gint count);
  gint (*trsm_batched[4]) (gpointer handle, gint side, gint uplo, gint operation, gint diag, gint m,
                           gint n, gconstpointer alpha, gpointer *a, gint lda, gpointer *b,
                           gint ldb, gint count);
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
/* Returns the place of a dtype in the lists of four functions. */
guint gtorch_cuda_solver_form (guint dtype);

/* Returns how many matrices there are; none of them is empty. */
gint64 gtorch_cuda_count_matrices (const GTorchImpl *impl);
/* Returns a view with the last two dimensions swapped. */
GTorchImpl *gtorch_cuda_swap (GTorchImpl *impl);
/* Returns a contiguous copy of the transposed matrices: these, column by column. */
GTorchImpl *gtorch_cuda_transpose (GTorchImpl *impl, GTorchCudaLane *lane, GError **error);

/* --- gtorch-cuda-batched.c --- */

/* Returns whether there are several matrices so small that they are computed all at once. */
gboolean gtorch_cuda_is_batch (const GTorchImpl *matrices);
/* These are the functions of LAPACK and BLAS for contiguous matrices, which are seen column by column. */
gboolean gtorch_cuda_potrf_batch (GTorchImpl *a, gint uplo, GTorchImpl *info, GTorchCudaLane *lane,
                                  GError **error);
/* The matrices are square; pivots (int32) may be NULL. */
gboolean gtorch_cuda_getrf_batch (GTorchImpl *columns, GTorchImpl *pivots, GTorchImpl *info,
                                  GTorchCudaLane *lane, GError **error);
gboolean gtorch_cuda_getrs_batch (gint operation, GTorchImpl *lu, GTorchImpl *pivots, GTorchImpl *b,
                                  GTorchCudaLane *lane, GError **error);
/* Solves for `b`, whose rows are seen as columns. */
gboolean gtorch_cuda_trsm_batch (gint side, gint uplo, gboolean is_unit, GTorchImpl *a,
                                 GTorchImpl *b, GTorchCudaLane *lane, GError **error);

/* Room for one call of cuSOLVER after the other. The host's part stays until the lane has done its work. */
typedef struct
{
  GTorchImpl *on_device;
  gpointer on_host;
  gsize device, host;
} GTorchCudaRoom;

gboolean gtorch_cuda_room_init (GTorchCudaRoom *self, GTorchCudaLane *lane, GError **error);
/* Waits for the work if it uses memory of the host. */
gboolean gtorch_cuda_room_clear (GTorchCudaRoom *self, gboolean success, GTorchCudaLane *lane,
                                 GError **error);
gpointer gtorch_cuda_room_data (const GTorchCudaRoom *self);

G_END_DECLS
