/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Factors of symmetric and Hermitian matrices by LAPACK, in copies whose columns are contiguous. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-lapack.h"
#include "cpu/ops/gtorch-cpu-matrices.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchImpl *a, *b; /* column by column */
  GTorchImpl *pivots, *info;
  int n, n_right, lwork;
  guint dtype;
  gboolean hermitian;
} Ldl;

static gboolean
is_hermitian (const Ldl *self)
{
  return self->hermitian && gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX;
}

static gint32 *
pivots_of (const Ldl *self, gint64 i)
{
  return (gint32 *) gtorch_impl_data (self->pivots) + i * self->n;
}

static void
factor (const Ldl *self, gpointer a, gint32 *pivots, gpointer work, int lwork, gint32 *info)
{
  const int *n = &self->n;

  if (is_hermitian (self))
    GTORCH_LAPACK_CALL (self->dtype, ssytrf_, dsytrf_, chetrf_, zhetrf_, "L", n, a, n, pivots, work,
                        &lwork, info, 1)
  else
    GTORCH_LAPACK_CALL (self->dtype, ssytrf_, dsytrf_, csytrf_, zsytrf_, "L", n, a, n, pivots, work,
                        &lwork, info, 1)
}

static void
factor_one (const GTorchCpuBatch *batch, gint64 i, gpointer room)
{
  const Ldl *self = batch->data;

  factor (self, gtorch_cpu_line (self->a, 2, i), pivots_of (self, i), room, self->lwork,
          (gint32 *) gtorch_impl_data (self->info) + i);
}

gboolean
gtorch_cpu_ldl_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  g_auto (GTorchCpuColumns) columns = { 0 };
  Ldl self = { .pivots = call->outputs[1],
               .info = call->outputs[2],
               .dtype = a->dtype,
               .n = a->shape[a->n_dims - 1],
               .hermitian = call->attrs[0].i != 0 };
  GTorchCpuBatch batch = { .one = factor_one, .data = &self };
  double _Complex size = 0;
  gint32 unused[2];

  memset (gtorch_impl_data (self.info), 0, gtorch_impl_n_bytes (self.info));
  if (a->numel == 0)
    return TRUE;
  if (!gtorch_cpu_columns_init (&columns, a, self.n, self.n, error))
    return FALSE;
  gtorch_cpu_copy (columns.seen, a);
  self.a = columns.impl;
  factor (&self, gtorch_impl_data (self.a), unused, &size, -1, unused + 1);
  self.lwork = MAX (gtorch_cpu_work_size (self.dtype, &size), 1);
  /* cgemv of OpenBLAS (0.3.21, with AVX-512) reads one line behind the work of chetrf */
  batch.room = ((gint64) self.lwork + 4 * self.n) * gtorch_dtype_size (self.dtype);
  if (!gtorch_cpu_batch_run (&batch, self.info->numel, (gdouble) self.n * self.n * self.n / 3,
                             error))
    return FALSE;
  gtorch_cpu_copy (call->outputs[0], columns.seen);
  return TRUE;
}

/* --- solutions --- */

/* LAPACK follows the pivots wherever they lead. */
static gboolean
check_pivots (GTorchOpCall *call, const gint32 *pivots, int n, GError **error)
{
  for (int i = 0; i < n; i++)
    {
      const gint64 row = ABS ((gint64) pivots[i]);

      if (row < 1 || row > n)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                             _ ("pivot %d is %d, it must be a row from 1 to %d, or its negative"),
                             i, pivots[i], n);
          return FALSE;
        }
      if (pivots[i] > 0)
        continue;
      if (i + 1 == n || pivots[i + 1] != pivots[i])
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                             _ ("pivot %d is %d, and the next one must be so, too"), i, pivots[i]);
          return FALSE;
        }
      i++;
    }
  return TRUE;
}

static void
solve_one (const GTorchCpuBatch *batch, gint64 i, gpointer room)
{
  const Ldl *self = batch->data;
  gpointer a = gtorch_cpu_line (self->a, 2, i), b = gtorch_cpu_line (self->b, 2, i);
  const int *n = &self->n, *n_right = &self->n_right;
  const gint32 *pivots = pivots_of (self, i);
  int info = 0;

  if (is_hermitian (self))
    GTORCH_LAPACK_CALL (self->dtype, ssytrs_, dsytrs_, chetrs_, zhetrs_, "L", n, n_right, a, n,
                        pivots, b, n, &info, 1)
  else
    GTORCH_LAPACK_CALL (self->dtype, ssytrs_, dsytrs_, csytrs_, zsytrs_, "L", n, n_right, a, n,
                        pivots, b, n, &info, 1)
}

gboolean
gtorch_cpu_ldl_solve_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *b = call->inputs[2];
  g_auto (GTorchCpuColumns) columns = { 0 };
  g_auto (GTorchCpuColumns) right = { 0 };
  g_autoptr (GTorchImpl) pivots = gtorch_cpu_pack (call->inputs[1], GTORCH_DTYPE_INT32, error);
  Ldl self = { .pivots = pivots,
               .dtype = a->dtype,
               .n = a->shape[a->n_dims - 1],
               .n_right = b->shape[b->n_dims - 1],
               .hermitian = call->attrs[0].i != 0 };
  GTorchCpuBatch batch = { .one = solve_one, .data = &self };
  gint64 n_batch;

  if (pivots == NULL)
    return FALSE;
  if (b->numel == 0)
    return TRUE;
  n_batch = gtorch_cpu_count_lines (b, 2);
  for (gint64 i = 0; i < n_batch; i++)
    if (!check_pivots (call, pivots_of (&self, i), self.n, error))
      return FALSE;
  if (!gtorch_cpu_columns_init (&columns, a, self.n, self.n, error)
      || !gtorch_cpu_columns_init (&right, b, self.n, self.n_right, error))
    return FALSE;
  gtorch_cpu_copy (columns.seen, a);
  gtorch_cpu_copy (right.seen, b);
  self.a = columns.impl;
  self.b = right.impl;
  if (!gtorch_cpu_batch_run (&batch, n_batch, (gdouble) self.n * self.n * self.n_right, error))
    return FALSE;
  gtorch_cpu_copy (call->outputs[0], right.seen);
  return TRUE;
}
