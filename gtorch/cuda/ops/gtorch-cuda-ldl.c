/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Factors of large symmetric matrices by cuSOLVER, in copies whose columns are contiguous. It has no function
 * for Hermitian matrices, and many small ones are factored faster on the CPU. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cuda/ops/gtorch-cuda-solver-private.h"
#include "gtorch-ops-private.h"

#define LEAST 256 /* rows of a matrix that is worth the launches */

static gboolean
is_for_cpu (GTorchOpCall *call, const GTorchImpl *a, GError **error)
{
  const gboolean is_complex = gtorch_dtype_kind (a->dtype) == GTORCH_KIND_COMPLEX;

  if ((!is_complex || call->attrs[0].i == 0) && a->shape[a->n_dims - 1] >= LEAST)
    return FALSE;
  gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("GPUs factor symmetric matrices of %d rows and more only"), LEAST);
  return TRUE;
}

gboolean
gtorch_cuda_ldl_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0], *pivots = call->outputs[1], *info = call->outputs[2];
  const guint form = gtorch_cuda_solver_form (a->dtype);
  const gsize size = gtorch_dtype_size (a->dtype);
  const gint64 n = a->shape[a->n_dims - 1];
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) room = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  GTorchCudaSolver *solver;
  gboolean success;
  gint elements = 0;
  gint64 i, count;

  if (a->numel == 0)
    return gtorch_cuda_clear (info, lane, error);
  if (is_for_cpu (call, a, error) || (columns = gtorch_cuda_transpose (a, lane, error)) == NULL
      || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  count = gtorch_cuda_count_matrices (a);
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.sytrf_size[form](solver->solver, n,
                                                                    gtorch_impl_data (columns), n,
                                                                    &elements),
                                "cusolverDnXsytrf_bufferSize", error)
      && (room = gtorch_cuda_scratch (lane, MAX (elements, 1) * (gint64) size, error)) != NULL;
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver
                                      .sytrf[form](solver->solver, GTORCH_SOLVER_LOWER, n,
                                                   (char *) gtorch_impl_data (columns)
                                                       + i * n * n * size,
                                                   n, (gint *) gtorch_impl_data (pivots) + i * n,
                                                   gtorch_impl_data (room), elements,
                                                   (gint *) gtorch_impl_data (info) + i),
                                  "cusolverDnXsytrf", error);
  gtorch_cuda_solver_end (solver);
  if (!success)
    return FALSE;
  result = gtorch_cuda_swap (columns);
  return gtorch_cuda_copy_here (call->outputs[0], result, lane, error);
}
