/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* QR factorizations by LAPACK: Householder reflectors, the matrices that they make, and products with
 * these. The matrices are copied column by column. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-lapack.h"
#include "cpu/ops/gtorch-cpu-matrices.h"
#include "gtorch-ops-private.h"

typedef struct
{
  guint dtype;
  int m, n, k; /* rows, columns, reflectors */
  GTorchImpl *columns;
  GTorchImpl *tau;
  GTorchImpl *other; /* what is multiplied, column by column */
  char side, trans;
  int rows, other_columns;
  int lwork;
} Reflect;

/* A function of LAPACK on matrix i; with a `lwork` of -1 it stores how much work it wants. */
typedef void (*ReflectFunc) (const Reflect *self, gint64 i, gpointer work, int lwork);

typedef struct
{
  const Reflect *reflect;
  ReflectFunc func;
} ReflectCall;

static void
call_one (const GTorchCpuBatch *batch, gint64 i, gpointer room)
{
  const ReflectCall *call = batch->data;

  call->func (call->reflect, i, room, call->reflect->lwork);
}

/* Calls the function for all matrices, each of which takes so many operations. */
static gboolean
call_all (Reflect *self, ReflectFunc func, gdouble operations, GError **error)
{
  const ReflectCall call = { self, func };
  GTorchCpuBatch batch = { .one = call_one, .data = &call };
  double _Complex size = 0;

  func (self, 0, &size, -1);
  self->lwork = gtorch_cpu_work_size (self->dtype, &size);
  batch.room = (gint64) self->lwork * (gint64) gtorch_dtype_size (self->dtype);
  return gtorch_cpu_batch_run (&batch, gtorch_cpu_count_lines (self->columns, 2), operations,
                               error);
}

static void
geqrf (const Reflect *self, gint64 i, gpointer work, int lwork)
{
  gpointer a = gtorch_cpu_line (self->columns, 2, i), tau = gtorch_cpu_line (self->tau, 1, i);
  int info = 0;

  GTORCH_LAPACK_CALL (self->dtype, sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_, &self->m, &self->n, a,
                      &self->m, tau, work, &lwork, &info);
}

/* Leaves the reflectors and R in the columns. */
static gboolean
factor (Reflect *self, GError **error)
{
  return call_all (self, geqrf, 2.0 * self->m * self->n * self->k, error);
}

static void
orgqr (const Reflect *self, gint64 i, gpointer work, int lwork)
{
  gpointer a = gtorch_cpu_line (self->columns, 2, i), tau = gtorch_cpu_line (self->tau, 1, i);
  int info = 0;

  GTORCH_LAPACK_CALL (self->dtype, sorgqr_, dorgqr_, cungqr_, zungqr_, &self->m, &self->n, &self->k,
                      a, &self->m, tau, work, &lwork, &info);
}

/* Replaces the reflectors in the columns by the first n columns of their product. */
static gboolean
expand (Reflect *self, GError **error)
{
  return call_all (self, orgqr, 4.0 * self->m * self->n * self->k, error);
}

gboolean
gtorch_cpu_geqrf (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  g_auto (GTorchCpuColumns) columns = { 0 };
  Reflect self = { .dtype = a->dtype, .tau = call->outputs[1] };

  if (a->numel == 0)
    return TRUE;
  self.m = a->shape[a->n_dims - 2];
  self.n = a->shape[a->n_dims - 1];
  self.k = MIN (self.m, self.n);
  if (!gtorch_cpu_columns_init (&columns, a, self.m, self.n, error))
    return FALSE;
  self.columns = columns.impl;
  gtorch_cpu_copy (columns.seen, a);
  if (!factor (&self, error))
    return FALSE;
  gtorch_cpu_copy (call->outputs[0], columns.seen);
  return TRUE;
}

/* Returns a view of the first rows and columns. */
static GTorchImpl *
corner (GTorchImpl *impl, gint64 rows, gint64 columns)
{
  gint64 shape[GTORCH_MAX_DIMS];

  memcpy (shape, impl->shape, impl->n_dims * sizeof (gint64));
  shape[impl->n_dims - 2] = rows;
  shape[impl->n_dims - 1] = columns;
  return gtorch_impl_new_view (impl, impl->offset, shape, impl->strides, impl->n_dims);
}

/* Below the diagonal, R has the reflectors. */
gboolean
gtorch_cpu_qr_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *q = call->outputs[0], *r = call->outputs[1];
  g_auto (GTorchCpuColumns) columns = { 0 };
  g_auto (GTorchCpuColumns) wide = { 0 };
  g_autoptr (GTorchImpl) tau = NULL;
  g_autoptr (GTorchImpl) source = NULL;
  g_autoptr (GTorchImpl) target = NULL;
  Reflect self = { .dtype = a->dtype };
  gint64 shape[GTORCH_MAX_DIMS];

  if (a->numel == 0)
    return TRUE;
  self.m = a->shape[a->n_dims - 2];
  self.n = a->shape[a->n_dims - 1];
  self.k = MIN (self.m, self.n);
  memcpy (shape, a->shape, a->n_dims * sizeof (gint64));
  shape[a->n_dims - 2] = self.k;
  tau = gtorch_impl_new (call->device, a->dtype, shape, a->n_dims - 1, error);
  if (tau == NULL || !gtorch_cpu_columns_init (&columns, a, self.m, self.n, error))
    return FALSE;
  self.tau = tau;
  self.columns = columns.impl;
  gtorch_cpu_copy (columns.seen, a);
  if (!factor (&self, error))
    return FALSE;
  source = corner (columns.seen, r->shape[r->n_dims - 2], self.n);
  gtorch_cpu_copy (r, source);
  g_clear_pointer (&source, gtorch_impl_unref);
  if (q->shape[q->n_dims - 1] != self.n)
    {
      /* a complete Q has more columns, one of a wide matrix fewer */
      self.n = q->shape[q->n_dims - 1];
      if (!gtorch_cpu_columns_init (&wide, a, self.m, self.n, error))
        return FALSE;
      source = corner (columns.seen, self.m, self.k);
      target = corner (wide.seen, self.m, self.k);
      gtorch_cpu_copy (target, source);
      self.columns = wide.impl;
    }
  if (!expand (&self, error))
    return FALSE;
  gtorch_cpu_copy (q, self.columns == wide.impl ? wide.seen : columns.seen);
  return TRUE;
}

gboolean
gtorch_cpu_linalg_householder_product (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  g_auto (GTorchCpuColumns) columns = { 0 };
  g_autoptr (GTorchImpl) tau = NULL;
  Reflect self = { .dtype = a->dtype };

  if (a->numel == 0)
    return TRUE;
  tau = gtorch_cpu_pack (call->inputs[1], a->dtype, error);
  if (tau == NULL)
    return FALSE;
  self.m = a->shape[a->n_dims - 2];
  self.n = a->shape[a->n_dims - 1];
  self.k = tau->shape[tau->n_dims - 1];
  if (!gtorch_cpu_columns_init (&columns, a, self.m, self.n, error))
    return FALSE;
  self.tau = tau;
  self.columns = columns.impl;
  gtorch_cpu_copy (columns.seen, a);
  if (!expand (&self, error))
    return FALSE;
  gtorch_cpu_copy (call->outputs[0], columns.seen);
  return TRUE;
}

/* --- products --- */

static void
ormqr (const Reflect *self, gint64 i, gpointer work, int lwork)
{
  gpointer a = gtorch_cpu_line (self->columns, 2, i), tau = gtorch_cpu_line (self->tau, 1, i);
  gpointer c = gtorch_cpu_line (self->other, 2, i);
  int info = 0;

  GTORCH_LAPACK_CALL (self->dtype, sormqr_, dormqr_, cunmqr_, zunmqr_, &self->side, &self->trans,
                      &self->rows, &self->other_columns, &self->k, a, &self->m, tau, c, &self->rows,
                      work, &lwork, &info, 1, 1);
}

gboolean
gtorch_cpu_ormqr (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *other = call->inputs[2];
  const gboolean is_complex = gtorch_dtype_kind (a->dtype) == GTORCH_KIND_COMPLEX;
  g_auto (GTorchCpuColumns) columns = { 0 };
  g_auto (GTorchCpuColumns) multiplied = { 0 };
  g_autoptr (GTorchImpl) tau = NULL;
  Reflect self = { .dtype = a->dtype };

  if (other->numel == 0)
    return TRUE;
  tau = gtorch_cpu_pack (call->inputs[1], a->dtype, error);
  if (tau == NULL)
    return FALSE;
  self.m = a->shape[a->n_dims - 2];
  self.n = a->shape[a->n_dims - 1];
  self.k = tau->shape[tau->n_dims - 1];
  self.rows = other->shape[other->n_dims - 2];
  self.other_columns = other->shape[other->n_dims - 1];
  self.side = call->attrs[0].i ? 'L' : 'R';
  self.trans = !call->attrs[1].i ? 'N' : is_complex ? 'C' : 'T';
  if (!gtorch_cpu_columns_init (&columns, a, self.m, self.n, error)
      || !gtorch_cpu_columns_init (&multiplied, other, self.rows, self.other_columns, error))
    return FALSE;
  gtorch_cpu_copy (columns.seen, a);
  gtorch_cpu_copy (multiplied.seen, other);
  self.columns = columns.impl;
  self.tau = tau;
  self.other = multiplied.impl;
  if (!call_all (&self, ormqr, 4.0 * self.rows * self.other_columns * self.k, error))
    return FALSE;
  gtorch_cpu_copy (call->outputs[0], multiplied.seen);
  return TRUE;
}
