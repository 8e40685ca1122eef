/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Eigenvalues and singular values by LAPACK. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-lapack.h"
#include "cpu/ops/gtorch-cpu-matrices.h"
#include "gtorch-ops-private.h"

typedef struct
{
  guint dtype;
  char job, uplo;
  int m, n, k;
  GTorchImpl *a; /* as LAPACK reads and destroys it */
  GTorchImpl *values, *info;
  GTorchImpl *left, *right; /* vectors; NULL: none */
  int lwork, lrwork, liwork;
  gsize at_rwork, at_iwork; /* where they begin in the room */
} Spectrum;

static gboolean
is_complex (const Spectrum *self)
{
  return gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX;
}

/* Sets the sizes of the room of one thread: work, real work and integers. */
static gint64
lay_out (Spectrum *self)
{
  const gsize real = gtorch_dtype_size (gtorch_dtype_infos[self->dtype].real);

  self->at_rwork = (gsize) self->lwork * gtorch_dtype_size (self->dtype);
  self->at_iwork = self->at_rwork + (gsize) self->lrwork * real;
  return self->at_iwork + (gsize) self->liwork * sizeof (int);
}

static gpointer
line_or_null (GTorchImpl *impl, gint64 i)
{
  return impl != NULL ? gtorch_cpu_line (impl, 2, i) : NULL;
}

static gint32 *
info_of (const Spectrum *self, gint64 i)
{
  return (gint32 *) gtorch_impl_data (self->info) + i;
}

/* Some functions of LAPACK complain on the console of numbers that are not finite. Of a Hermitian matrix,
 * only the triangle that is read counts. */
static gboolean
is_finite (const Spectrum *self, gconstpointer a, gint64 rows, gint64 columns)
{
  const guint parts = is_complex (self) ? 2 : 1;
  gint64 column, from, to, i;

  for (column = 0; column < columns; column++)
    {
      from = (column * rows + (self->uplo == 'L' ? column : 0)) * parts;
      to = (column * rows + (self->uplo == 'U' ? column + 1 : rows)) * parts;
      if (gtorch_dtype_infos[self->dtype].real == GTORCH_DTYPE_FLOAT32)
        for (i = from; i < to && isfinite (((const gfloat *) a)[i]); i++)
          ;
      else
        for (i = from; i < to && isfinite (((const gdouble *) a)[i]); i++)
          ;
      if (i < to)
        return FALSE;
    }
  return TRUE;
}

/* --- Hermitian matrices --- */

static int
heevd (const Spectrum *self, gpointer a, gpointer w, gpointer work, int lwork, gpointer rwork,
       int lrwork, gpointer iwork, int liwork)
{
  int info = 0;

  switch (self->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      ssyevd_ (&self->job, &self->uplo, &self->n, a, &self->n, w, work, &lwork, iwork, &liwork,
               &info, 1, 1);
      break;
    case GTORCH_DTYPE_FLOAT64:
      dsyevd_ (&self->job, &self->uplo, &self->n, a, &self->n, w, work, &lwork, iwork, &liwork,
               &info, 1, 1);
      break;
    case GTORCH_DTYPE_COMPLEX64:
      cheevd_ (&self->job, &self->uplo, &self->n, a, &self->n, w, work, &lwork, rwork, &lrwork,
               iwork, &liwork, &info, 1, 1);
      break;
    default:
      zheevd_ (&self->job, &self->uplo, &self->n, a, &self->n, w, work, &lwork, rwork, &lrwork,
               iwork, &liwork, &info, 1, 1);
    }
  return info;
}

static void
hermitian_one (const GTorchCpuBatch *batch, gint64 i, gpointer room)
{
  const Spectrum *self = batch->data;
  gpointer a = gtorch_cpu_line (self->a, 2, i);
  char *work = room;

  if (!is_finite (self, a, self->n, self->n))
    *info_of (self, i) = self->n + 1;
  else
    *info_of (self, i) =
        heevd (self, a, gtorch_cpu_line (self->values, 1, i), work, self->lwork,
               work + self->at_rwork, self->lrwork, work + self->at_iwork, self->liwork);
}

gboolean
gtorch_cpu_eigh_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *v = call->outputs[1];
  const gboolean vectors = call->attrs[1].i != 0;
  g_auto (GTorchCpuColumns) columns = { 0 };
  Spectrum self = { .dtype = a->dtype,
                    .job = vectors ? 'V' : 'N',
                    .uplo = call->attrs[0].i ? 'U' : 'L',
                    .values = call->outputs[0],
                    .info = call->outputs[2] };
  GTorchCpuBatch batch = { .one = hermitian_one, .data = &self };
  double _Complex size = 0;
  double real_size = 0;

  memset (gtorch_impl_data (self.info), 0, gtorch_impl_n_bytes (self.info));
  if (a->numel == 0)
    return TRUE;
  self.n = a->shape[a->n_dims - 1];
  if (!gtorch_cpu_columns_init (&columns, a, self.n, self.n, error))
    return FALSE;
  gtorch_cpu_copy (columns.seen, a);
  self.a = columns.impl;
  heevd (&self, gtorch_impl_data (self.a), gtorch_impl_data (self.values), &size, -1, &real_size,
         -1, &self.liwork, -1);
  self.lwork = gtorch_cpu_work_size (self.dtype, &size);
  if (is_complex (&self))
    self.lrwork = gtorch_cpu_work_size (gtorch_dtype_infos[self.dtype].real, &real_size);
  batch.room = lay_out (&self);
  if (!gtorch_cpu_batch_run (&batch, self.info->numel, 9.0 * self.n * self.n * self.n, error))
    return FALSE;
  if (vectors)
    gtorch_cpu_copy (v, columns.seen);
  return TRUE;
}

/* --- singular values --- */

static int
gesdd (const Spectrum *self, gpointer a, gpointer s, gpointer u, int ldu, gpointer vt, int ldvt,
       gpointer work, int lwork, gpointer rwork, gpointer iwork)
{
  int info = 0;

  switch (self->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      sgesdd_ (&self->job, &self->m, &self->n, a, &self->m, s, u, &ldu, vt, &ldvt, work, &lwork,
               iwork, &info, 1);
      break;
    case GTORCH_DTYPE_FLOAT64:
      dgesdd_ (&self->job, &self->m, &self->n, a, &self->m, s, u, &ldu, vt, &ldvt, work, &lwork,
               iwork, &info, 1);
      break;
    case GTORCH_DTYPE_COMPLEX64:
      cgesdd_ (&self->job, &self->m, &self->n, a, &self->m, s, u, &ldu, vt, &ldvt, work, &lwork,
               rwork, iwork, &info, 1);
      break;
    default:
      zgesdd_ (&self->job, &self->m, &self->n, a, &self->m, s, u, &ldu, vt, &ldvt, work, &lwork,
               rwork, iwork, &info, 1);
    }
  return info;
}

static int
rows_of_vt (const Spectrum *self)
{
  return self->job == 'A' ? self->n : self->k;
}

static void
singular_one (const GTorchCpuBatch *batch, gint64 i, gpointer room)
{
  const Spectrum *self = batch->data;
  gpointer a = gtorch_cpu_line (self->a, 2, i);
  char *work = room;

  if (!is_finite (self, a, self->m, self->n))
    *info_of (self, i) = self->k + 1;
  else
    *info_of (self, i) =
        gesdd (self, a, gtorch_cpu_line (self->values, 1, i), line_or_null (self->left, i), self->m,
               line_or_null (self->right, i), rows_of_vt (self), work, self->lwork,
               work + self->at_rwork, work + self->at_iwork);
}

/* A contiguous matrix is, column by column, its transpose V* S U^T: of this, the left vectors are Vh row by
 * row, and the right ones U. */
gboolean
gtorch_cpu_svd_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *u = call->outputs[0], *vh = call->outputs[2];
  const gboolean full = call->attrs[0].i != 0, vectors = call->attrs[1].i != 0;
  g_autoptr (GTorchImpl) copy = NULL;
  Spectrum self = { .dtype = a->dtype,
                    .job = !vectors ? 'N'
                           : full   ? 'A'
                                    : 'S',
                    .values = call->outputs[1],
                    .left = vectors ? vh : NULL,
                    .right = vectors ? u : NULL,
                    .info = call->outputs[3] };
  GTorchCpuBatch batch = { .one = singular_one, .data = &self };
  double _Complex size = 0;
  gint64 larger, smaller;
  int none = 0;

  memset (gtorch_impl_data (self.info), 0, gtorch_impl_n_bytes (self.info));
  if (a->numel == 0)
    return TRUE;
  copy = gtorch_impl_new (call->device, a->dtype, a->shape, a->n_dims, error);
  if (copy == NULL)
    return FALSE;
  gtorch_cpu_copy (copy, a);
  self.a = copy;
  self.m = a->shape[a->n_dims - 1];
  self.n = a->shape[a->n_dims - 2];
  smaller = self.k = MIN (self.m, self.n);
  larger = MAX (self.m, self.n);
  gesdd (&self, gtorch_impl_data (copy), gtorch_impl_data (self.values), &size, self.m, &size,
         rows_of_vt (&self), &size, -1, NULL, &none);
  self.lwork = gtorch_cpu_work_size (self.dtype, &size);
  /* as the documentation of gesdd () wants it, which has no query for it */
  if (is_complex (&self))
    self.lrwork =
        vectors ? MIN (smaller * MAX (5 * smaller + 7, 2 * larger + 2 * smaller + 1), G_MAXINT)
                : MIN (7 * smaller, G_MAXINT);
  self.liwork = 8 * smaller;
  batch.room = lay_out (&self);
  return gtorch_cpu_batch_run (&batch, self.info->numel, 20.0 * self.m * self.n * self.k, error);
}

/* --- general matrices --- */

#define EIG_REAL(p, T)                                                                       \
  static int eig_##p (const Spectrum *self, T *a, T _Complex *w, T _Complex *v, T *work,     \
                      int lwork)                                                             \
  {                                                                                          \
    /* the room has the two parts of the values and the packed vectors before the work */    \
    const int n = self->n;                                                                   \
    T *wr = work, *wi = wr + n, *vr = wi + n, *rest = vr + (v != NULL ? (gsize) n * n : 1);  \
    int info = 0, i, j;                                                                      \
                                                                                             \
    p##geev_ ("N", v != NULL ? "V" : "N", &n, a, &n, wr, wi, NULL, &n, vr, &n, rest, &lwork, \
              &info, 1, 1);                                                                  \
    if (lwork < 0)                                                                           \
      {                                                                                      \
        work[0] = rest[0];                                                                   \
        return info;                                                                         \
      }                                                                                      \
    for (i = 0; i < n; i++)                                                                  \
      w[i] = CMPLX (wr[i], wi[i]);                                                           \
    /* of a conjugate pair, two columns have the real and the imaginary part */              \
    for (i = 0; v != NULL && i < n; i++)                                                     \
      for (j = 0; j < n; j++)                                                                \
        {                                                                                    \
          const gsize column = (gsize) i * n + j;                                            \
                                                                                             \
          if (wi[i] == 0)                                                                    \
            v[column] = vr[column];                                                          \
          else if (wi[i] > 0)                                                                \
            v[column] = CMPLX (vr[column], vr[column + n]);                                  \
          else                                                                               \
            v[column] = CMPLX (vr[column - n], -vr[column]);                                 \
        }                                                                                    \
    return info;                                                                             \
  }
EIG_REAL (s, float)
EIG_REAL (d, double)

#define EIG_COMPLEX(p, T, R)                                                                  \
  static int eig_##p (const Spectrum *self, T *a, T *w, T *v, T *work, int lwork, R *rwork)   \
  {                                                                                           \
    const int n = self->n;                                                                    \
    int info = 0;                                                                             \
                                                                                              \
    p##geev_ ("N", v != NULL ? "V" : "N", &n, a, &n, w, NULL, &n, v, &n, work, &lwork, rwork, \
              &info, 1, 1);                                                                   \
    return info;                                                                              \
  }
EIG_COMPLEX (c, float _Complex, float)
EIG_COMPLEX (z, double _Complex, double)

static int
eig (const Spectrum *self, gpointer a, gpointer w, gpointer v, gpointer work, int lwork,
     gpointer rwork)
{
  switch (self->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      return eig_s (self, a, w, v, work, lwork);
    case GTORCH_DTYPE_FLOAT64:
      return eig_d (self, a, w, v, work, lwork);
    case GTORCH_DTYPE_COMPLEX64:
      return eig_c (self, a, w, v, work, lwork, rwork);
    default:
      return eig_z (self, a, w, v, work, lwork, rwork);
    }
}

static void
general_one (const GTorchCpuBatch *batch, gint64 i, gpointer room)
{
  const Spectrum *self = batch->data;
  char *work = room;
  gpointer a = gtorch_cpu_line (self->a, 2, i);

  if (!is_finite (self, a, self->n, self->n))
    *info_of (self, i) = self->n + 1;
  else
    *info_of (self, i) =
        eig (self, a, gtorch_cpu_line (self->values, 1, i), line_or_null (self->right, i), work,
             self->lwork, work + self->at_rwork);
}

gboolean
gtorch_cpu_eig_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *v = call->outputs[1];
  const gboolean vectors = call->attrs[0].i != 0;
  g_auto (GTorchCpuColumns) columns = { 0 };
  g_auto (GTorchCpuColumns) found = { 0 };
  Spectrum self = { .dtype = a->dtype, .values = call->outputs[0], .info = call->outputs[2] };
  GTorchCpuBatch batch = { .one = general_one, .data = &self };
  g_autofree gpointer sizes = NULL;
  gdouble real_size = 0;
  gint64 extra;

  memset (gtorch_impl_data (self.info), 0, gtorch_impl_n_bytes (self.info));
  if (a->numel == 0)
    return TRUE;
  self.n = a->shape[a->n_dims - 1];
  if (!gtorch_cpu_columns_init (&columns, a, self.n, self.n, error)
      || (vectors && !gtorch_cpu_columns_init (&found, v, self.n, self.n, error)))
    return FALSE;
  gtorch_cpu_copy (columns.seen, a);
  self.a = columns.impl;
  self.right = found.impl;
  self.lrwork = is_complex (&self) ? 2 * self.n : 0;
  /* what EIG_REAL () has before the work */
  extra = is_complex (&self) ? 0 : 2 * (gint64) self.n + (vectors ? (gint64) self.n * self.n : 1);
  sizes = g_try_malloc0 ((extra + 1) * sizeof (double _Complex));
  if (sizes == NULL)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_OUT_OF_MEMORY,
                         _ ("%" PRId64 " bytes of the host's memory are not available"),
                         (gint64) ((extra + 1) * sizeof (double _Complex)));
      return FALSE;
    }
  eig (&self, gtorch_impl_data (self.a), gtorch_impl_data (self.values),
       vectors ? gtorch_impl_data (found.impl) : NULL, sizes, -1, &real_size);
  self.lwork = gtorch_cpu_work_size (self.dtype, sizes);
  batch.room = lay_out (&self) + extra * (gint64) gtorch_dtype_size (self.dtype);
  if (!gtorch_cpu_batch_run (&batch, self.info->numel, 25.0 * self.n * self.n * self.n, error))
    return FALSE;
  if (vectors)
    gtorch_cpu_copy (v, found.seen);
  return TRUE;
}
