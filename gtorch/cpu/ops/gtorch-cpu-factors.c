/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Factorizations by LAPACK, and solutions by BLAS. LAPACK's matrices are column-major, so that it sees the
 * transposes of ours: of a Hermitian matrix it is given the other triangle, whose factor is the transpose
 * of the wanted one. LU factors are computed in a transposed copy. The matrices of a batch are distributed
 * to threads. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-blas.h"
#include "cpu/ops/gtorch-cpu-lapack.h"
#include "cpu/ops/gtorch-cpu-matrices.h"
#include "device/gtorch-device-manager.h"
#include "gtorch-ops-private.h"

/* The matrices of a tensor. Each has contiguous rows. */
typedef struct
{
  GTorchImpl *impl; /* owned */
  gint64 rows, columns;
  gsize size; /* bytes of an element */
} Matrices;

static void
matrices_clear (Matrices *self)
{
  g_clear_pointer (&self->impl, gtorch_impl_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Matrices, matrices_clear)

/* Copies the tensor if its matrices are not contiguous. Matrices that are repeated along a dimension are
 * not copied. */
static gboolean
matrices_init (Matrices *self, GTorchImpl *impl, GError **error)
{
  const guint n = impl->n_dims;
  const gint64 rows = impl->shape[n - 2], columns = impl->shape[n - 1];

  if ((columns <= 1 || impl->strides[n - 1] == 1) && (rows <= 1 || impl->strides[n - 2] == columns))
    self->impl = gtorch_impl_ref (impl);
  else
    self->impl = gtorch_cpu_pack (impl, impl->dtype, error);
  self->rows = rows;
  self->columns = columns;
  self->size = gtorch_dtype_size (impl->dtype);
  return self->impl != NULL;
}

/* --- Cholesky --- */

typedef struct
{
  GTorchImpl *factors, *info;
  gboolean upper;
} Cholesky;

#define CHOLESKY(p, T, REAL)                            \
  static int cholesky_##p (T *a, int n, gboolean upper) \
  {                                                     \
    const char uplo = upper ? 'L' : 'U';                \
    int info = 0, i;                                    \
                                                        \
    p##potrf_ (&uplo, &n, a, &n, &info);                \
    /* not all kernels of OpenBLAS notice NaN */        \
    for (i = 0; info == 0 && i < n; i++)                \
      if (!(REAL (a[i * (gint64) n + i]) > 0))          \
        info = i + 1;                                   \
    return info;                                        \
  }
#define SELF(x) (x)
CHOLESKY (s, float, SELF)
CHOLESKY (d, double, SELF)
CHOLESKY (c, float _Complex, crealf)
CHOLESKY (z, double _Complex, creal)

static void
cholesky (gint64 begin, gint64 end, gpointer user_data)
{
  const Cholesky *self = user_data;
  const int n = self->factors->shape[self->factors->n_dims - 1];
  const int before = gtorch_cpu_blas_be_alone ();

  for (; begin < end; begin++)
    {
      gpointer a = gtorch_cpu_line (self->factors, 2, begin);
      gint32 *info = (gint32 *) gtorch_impl_data (self->info) + begin;

      switch (self->factors->dtype)
        {
        case GTORCH_DTYPE_FLOAT32:
          *info = cholesky_s (a, n, self->upper);
          break;
        case GTORCH_DTYPE_FLOAT64:
          *info = cholesky_d (a, n, self->upper);
          break;
        case GTORCH_DTYPE_COMPLEX64:
          *info = cholesky_c (a, n, self->upper);
          break;
        default:
          *info = cholesky_z (a, n, self->upper);
        }
    }
  gtorch_cpu_blas_leave_alone (before);
}

gboolean
gtorch_cpu_cholesky_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Cholesky self = { call->outputs[0], call->outputs[1], call->attrs[0].i != 0 };
  const gdouble n = call->inputs[0]->shape[call->inputs[0]->n_dims - 1];

  memset (gtorch_impl_data (self.info), 0, gtorch_impl_n_bytes (self.info));
  if (self.factors->numel == 0)
    return TRUE;
  gtorch_cpu_copy (self.factors, call->inputs[0]);
  gtorch_parallel_for (self.info->numel, gtorch_cpu_matrix_grain (n * n * n / 3), cholesky, &self);
  return TRUE;
}

/* --- LU --- */

typedef struct
{
  GTorchImpl *transposed, *pivots, *info;
  int m, n;
  gboolean pivot;
} Lu;

/* Gaussian elimination of a column-major matrix without exchanges of rows, for which LAPACK has no
 * function (Golub & Van Loan, Matrix Computations, algorithm 3.2.1, by columns). */
#define ELIMINATE(name, T)                                                  \
  static void name (T *a, gint64 m, gint64 n, gint32 *pivots, gint32 *info) \
  {                                                                         \
    const gint64 k = MIN (m, n);                                            \
    gint64 i, row, column;                                                  \
                                                                            \
    for (i = 0; i < k; i++)                                                 \
      {                                                                     \
        const T *below = a + i * m;                                         \
                                                                            \
        pivots[i] = i + 1;                                                  \
        if (below[i] == 0 && *info == 0)                                    \
          *info = i + 1;                                                    \
        for (row = i + 1; row < m; row++)                                   \
          a[i * m + row] /= below[i];                                       \
        for (column = i + 1; column < n; column++)                          \
          for (row = i + 1; row < m; row++)                                 \
            a[column * m + row] -= below[row] * a[column * m + i];          \
      }                                                                     \
  }
ELIMINATE (eliminate_f32, gfloat)
ELIMINATE (eliminate_f64, gdouble)
ELIMINATE (eliminate_c64, float _Complex)
ELIMINATE (eliminate_c128, double _Complex)

static void
eliminate (const Lu *self, gpointer a, gint32 *pivots, gint32 *info)
{
  switch (self->transposed->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      eliminate_f32 (a, self->m, self->n, pivots, info);
      break;
    case GTORCH_DTYPE_FLOAT64:
      eliminate_f64 (a, self->m, self->n, pivots, info);
      break;
    case GTORCH_DTYPE_COMPLEX64:
      eliminate_c64 (a, self->m, self->n, pivots, info);
      break;
    default:
      eliminate_c128 (a, self->m, self->n, pivots, info);
    }
}

static void
lu (gint64 begin, gint64 end, gpointer user_data)
{
  const Lu *self = user_data;
  const int k = MIN (self->m, self->n);
  const int before = gtorch_cpu_blas_be_alone ();

  for (; begin < end; begin++)
    {
      gpointer a = gtorch_cpu_line (self->transposed, 2, begin);
      gint32 *pivots = (gint32 *) gtorch_impl_data (self->pivots) + begin * k;
      gint32 *info = (gint32 *) gtorch_impl_data (self->info) + begin;

      if (!self->pivot)
        {
          eliminate (self, a, pivots, info);
          continue;
        }
      switch (self->transposed->dtype)
        {
        case GTORCH_DTYPE_FLOAT32:
          sgetrf_ (&self->m, &self->n, a, &self->m, pivots, info);
          break;
        case GTORCH_DTYPE_FLOAT64:
          dgetrf_ (&self->m, &self->n, a, &self->m, pivots, info);
          break;
        case GTORCH_DTYPE_COMPLEX64:
          cgetrf_ (&self->m, &self->n, a, &self->m, pivots, info);
          break;
        default:
          zgetrf_ (&self->m, &self->n, a, &self->m, pivots, info);
        }
    }
  gtorch_cpu_blas_leave_alone (before);
}

gboolean
gtorch_cpu_lu_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *factors = call->outputs[0];
  const guint n_dims = a->n_dims;
  g_autoptr (GTorchImpl) seen = NULL;
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  Lu self = { .pivots = call->outputs[1],
              .info = call->outputs[2],
              .m = a->shape[n_dims - 2],
              .n = a->shape[n_dims - 1],
              .pivot = call->attrs[0].i != 0 };

  memset (gtorch_impl_data (self.info), 0, gtorch_impl_n_bytes (self.info));
  if (factors->numel == 0)
    return TRUE;
  memcpy (shape, a->shape, n_dims * sizeof (gint64));
  shape[n_dims - 2] = self.n;
  shape[n_dims - 1] = self.m;
  self.transposed = gtorch_impl_new (call->device, a->dtype, shape, n_dims, error);
  if (self.transposed == NULL)
    return FALSE;
  memcpy (strides, self.transposed->strides, n_dims * sizeof (gint64));
  strides[n_dims - 2] = 1;
  strides[n_dims - 1] = self.m;
  seen = gtorch_impl_new_view (self.transposed, 0, a->shape, strides, n_dims);
  gtorch_cpu_copy (seen, a);
  gtorch_parallel_for (self.info->numel,
                       gtorch_cpu_matrix_grain ((gdouble) self.m * self.n * MIN (self.m, self.n)),
                       lu, &self);
  gtorch_cpu_copy (factors, seen);
  gtorch_impl_unref (self.transposed);
  return TRUE;
}

/* --- the order of rows --- */

gboolean
gtorch_cpu_pivot_order (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) pivots = gtorch_cpu_pack (call->inputs[0], GTORCH_DTYPE_INT64, error);
  const gint64 n = call->attrs[0].i;
  gint64 k, n_batch, i, b;

  if (pivots == NULL)
    return FALSE;
  k = pivots->shape[pivots->n_dims - 1];
  n_batch = gtorch_cpu_count_lines (pivots, 1);
  for (b = 0; b < n_batch && n > 0; b++)
    {
      gint64 *order = (gint64 *) gtorch_impl_data (output) + b * n;
      const gint64 *exchanged = (const gint64 *) gtorch_impl_data (pivots) + b * k;

      for (i = 0; i < n; i++)
        order[i] = i;
      for (i = 0; i < k; i++)
        {
          const gint64 other = exchanged[i] - 1, row = order[i];

          if (other < 0 || other >= n)
            {
              gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                                 _ ("index %" PRId64
                                    " is out of range for pivots of size %" PRId64),
                                 other, n);
              return FALSE;
            }
          order[i] = order[other];
          order[other] = row;
        }
    }
  return TRUE;
}

/* --- solutions --- */

typedef struct
{
  enum CBLAS_SIDE side;
  enum CBLAS_UPLO uplo;
  enum CBLAS_TRANSPOSE transpose;
  enum CBLAS_DIAG diag;
} Triangle;

/* Solves in place with a triangle of the n x n matrix a; b is rows x columns, and its rows are ldb apart. */
static void
solve (guint dtype, const Triangle *t, int rows, int columns, gconstpointer a, int n, gpointer b,
       int ldb)
{
  static const double one[2] = { 1, 0 };
  static const float one_f[2] = { 1, 0 };

  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      cblas_strsm (CblasRowMajor, t->side, t->uplo, t->transpose, t->diag, rows, columns, 1, a, n,
                   b, ldb);
      break;
    case GTORCH_DTYPE_FLOAT64:
      cblas_dtrsm (CblasRowMajor, t->side, t->uplo, t->transpose, t->diag, rows, columns, 1, a, n,
                   b, ldb);
      break;
    case GTORCH_DTYPE_COMPLEX64:
      cblas_ctrsm (CblasRowMajor, t->side, t->uplo, t->transpose, t->diag, rows, columns, one_f, a,
                   n, b, ldb);
      break;
    default:
      cblas_ztrsm (CblasRowMajor, t->side, t->uplo, t->transpose, t->diag, rows, columns, one, a, n,
                   b, ldb);
    }
}

typedef struct
{
  Matrices a;
  Triangle triangle;
  GTorchImpl *pivots; /* NULL: none */
  GTorchImpl *output;
  gboolean adjoint;
  gint64 n_parts; /* of each right side */
} Solve;

/* Right sides are solved in parts of this many columns or, from the other side, rows, which go to threads. */
#define PART 128

static void
solve_triangles (gint64 begin, gint64 end, gpointer user_data)
{
  const Solve *self = user_data;
  const GTorchImpl *output = self->output;
  const int rows = output->shape[output->n_dims - 2], columns = output->shape[output->n_dims - 1];
  const int before = gtorch_cpu_blas_be_alone ();

  for (; begin < end; begin++)
    {
      const gint64 i = begin / self->n_parts, first = begin % self->n_parts * PART;
      const gboolean left = self->triangle.side == CblasLeft;
      char *b = (char *) gtorch_cpu_line (output, 2, i)
                + first * (left ? 1 : columns) * (gint64) self->a.size;

      solve (output->dtype, &self->triangle, left ? rows : (int) MIN (PART, rows - first),
             left ? (int) MIN (PART, columns - first) : columns,
             gtorch_cpu_line (self->a.impl, 2, i), self->a.columns, b, columns);
    }
  gtorch_cpu_blas_leave_alone (before);
}

gboolean
gtorch_cpu_triangle_solve (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *a = call->inputs[0], *output = call->outputs[0];
  g_autoptr (GTorchImpl) swapped = NULL;
  g_auto (Matrices) matrices = { 0 };
  const gboolean upper = call->attrs[0].i != 0;
  const guint n = a->n_dims;
  Solve self = { .output = output };
  gint64 strides[GTORCH_MAX_DIMS], others;

  if (output->numel == 0)
    return TRUE;
  self.triangle.side = call->attrs[1].i ? CblasLeft : CblasRight;
  self.triangle.uplo = upper ? CblasUpper : CblasLower;
  self.triangle.transpose = CblasNoTrans;
  self.triangle.diag = call->attrs[2].i ? CblasUnit : CblasNonUnit;
  if (a->strides[n - 2] == 1 && a->strides[n - 1] == a->shape[n - 1])
    {
      memcpy (strides, a->strides, n * sizeof (gint64));
      strides[n - 2] = a->strides[n - 1];
      strides[n - 1] = 1;
      swapped = gtorch_impl_new_view (a, a->offset, a->shape, strides, n);
      self.triangle.uplo = upper ? CblasLower : CblasUpper;
      self.triangle.transpose = CblasTrans;
    }
  if (!matrices_init (&matrices, swapped != NULL ? swapped : a, error))
    return FALSE;
  self.a = matrices;
  gtorch_cpu_copy (output, call->inputs[1]);
  others = output->shape[call->attrs[1].i ? n - 1 : n - 2];
  self.n_parts = (others + PART - 1) / PART;
  gtorch_parallel_for (gtorch_cpu_count_lines (output, 2) * self.n_parts,
                       gtorch_cpu_matrix_grain ((gdouble) matrices.columns * matrices.columns
                                                * MIN (others, PART)),
                       solve_triangles, &self);
  return TRUE;
}

static void
swap_rows (char *a, char *b, gsize n_bytes)
{
  gsize i;

  for (i = 0; a != b && i < n_bytes; i++)
    {
      const char kept = a[i];

      a[i] = b[i];
      b[i] = kept;
    }
}

/* A is P L U, and its adjoint U^H L^H P^T. */
static void
solve_factored (gint64 begin, gint64 end, gpointer user_data)
{
  static const Triangle lower = { CblasLeft, CblasLower, CblasNoTrans, CblasUnit };
  static const Triangle upper = { CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit };
  static const Triangle lower_adjoint = { CblasLeft, CblasLower, CblasConjTrans, CblasUnit };
  static const Triangle upper_adjoint = { CblasLeft, CblasUpper, CblasConjTrans, CblasNonUnit };
  const Solve *self = user_data;
  const GTorchImpl *output = self->output;
  const int n = self->a.columns, columns = output->shape[output->n_dims - 1];
  const gsize row = (gsize) columns * self->a.size;
  const gint64 step = self->pivots->strides[self->pivots->n_dims - 1];
  const int before = gtorch_cpu_blas_be_alone ();
  gint64 i;

  for (; begin < end; begin++)
    {
      const gint64 item = begin / self->n_parts, first = begin % self->n_parts * PART;
      const int width = (int) MIN (PART, columns - first);
      const gsize n_bytes = (gsize) width * self->a.size;
      gconstpointer a = gtorch_cpu_line (self->a.impl, 2, item);
      const gint32 *pivots = gtorch_cpu_line (self->pivots, 1, item);
      char *b = (char *) gtorch_cpu_line (output, 2, item) + first * (gint64) self->a.size;

      if (self->adjoint)
        {
          solve (output->dtype, &upper_adjoint, n, width, a, n, b, columns);
          solve (output->dtype, &lower_adjoint, n, width, a, n, b, columns);
          for (i = n; i-- > 0;)
            swap_rows (b + i * row, b + (pivots[i * step] - 1) * row, n_bytes);
        }
      else
        {
          for (i = 0; i < n; i++)
            swap_rows (b + i * row, b + (pivots[i * step] - 1) * row, n_bytes);
          solve (output->dtype, &lower, n, width, a, n, b, columns);
          solve (output->dtype, &upper, n, width, a, n, b, columns);
        }
    }
  gtorch_cpu_blas_leave_alone (before);
}

gboolean
gtorch_cpu_factored_solve (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_auto (Matrices) matrices = { 0 };
  Solve self = { .output = output, .pivots = call->inputs[2], .adjoint = call->attrs[0].i != 0 };
  gint64 columns;

  if (output->numel == 0)
    return TRUE;
  if (!matrices_init (&matrices, call->inputs[1], error))
    return FALSE;
  self.a = matrices;
  gtorch_cpu_copy (output, call->inputs[3]);
  columns = output->shape[output->n_dims - 1];
  self.n_parts = (columns + PART - 1) / PART;
  gtorch_parallel_for (gtorch_cpu_count_lines (output, 2) * self.n_parts,
                       gtorch_cpu_matrix_grain (2.0 * matrices.columns * matrices.columns
                                                * (gdouble) MIN (columns, PART)),
                       solve_factored, &self);
  return TRUE;
}
