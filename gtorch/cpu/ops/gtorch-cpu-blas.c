/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* BLAS calls, each confined to the calling thread. OpenBLAS has its own threads, which spin while they wait
 * for each other and know nothing of the pool's threads. So OpenBLAS is limited to one thread, and the pool
 * calls it from several. If it is built with OpenMP, it asks for the calling thread's number of threads,
 * which can be set for the time of the call; if it is built with its own threads, there is one number for
 * the process. Other libraries, of which nobody knows here how they were built, get both. */

#include "config.h"

#include "cpu/ops/gtorch-cpu-blas.h"

#include <cblas.h>
#include <complex.h>
#include <dlfcn.h>

static int (*omp_get_max) (void);
static void (*omp_set) (int n_threads);

#ifdef HAVE_OPENBLAS

static gboolean
may_use_openmp (void)
{
  return openblas_get_parallel () == OPENBLAS_OPENMP;
}

static void
limit_process (void)
{
  openblas_set_num_threads (1);
}

#else

static gboolean
may_use_openmp (void)
{
  return TRUE;
}

/* FlexiBLAS, or the library that stands behind the names of BLAS on this system. */
static void
limit_process (void)
{
  static const gchar *const names[] = { "flexiblas_set_num_threads", "openblas_set_num_threads",
                                        "bli_thread_set_num_threads", "MKL_Set_Num_Threads" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      void (*set) (long) = (void (*) (long)) dlsym (RTLD_DEFAULT, names[i]);

      if (set != NULL)
        {
          set (1);
          break;
        }
    }
}

#endif

static void
find_openmp (void)
{
  if (may_use_openmp ())
    {
      omp_get_max = (int (*) (void)) dlsym (RTLD_DEFAULT, "omp_get_max_threads");
      omp_set = (void (*) (int)) dlsym (RTLD_DEFAULT, "omp_set_num_threads");
    }
  if (omp_get_max == NULL || omp_set == NULL)
    omp_set = NULL;
#ifdef HAVE_OPENBLAS
  if (omp_set != NULL)
    return;
#endif
  limit_process ();
}

int
gtorch_cpu_blas_be_alone (void)
{
  static gsize known;
  int before;

  if (g_once_init_enter (&known))
    {
      find_openmp ();
      g_once_init_leave (&known, 1);
    }
  if (omp_set == NULL || (before = omp_get_max ()) == 1)
    return 0;
  omp_set (1);
  return before;
}

void
gtorch_cpu_blas_leave_alone (int before)
{
  if (before != 0)
    omp_set (before);
}

/* Returns the leading dimension of a matrix that BLAS can read in place, or 0 if it cannot. */
static gint64
leading (gint64 rows, gint64 columns, gint64 row, gint64 col, enum CBLAS_TRANSPOSE *trans)
{
  if ((col == 1 || columns == 1) && (row >= MAX (1, columns) || rows == 1))
    {
      *trans = CblasNoTrans;
      return rows == 1 ? MAX (1, columns) : row;
    }
  if ((row == 1 || rows == 1) && (col >= MAX (1, rows) || columns == 1))
    {
      *trans = CblasTrans;
      return columns == 1 ? MAX (1, rows) : col;
    }
  return 0;
}

gboolean
gtorch_cpu_blas_gemm (guint dtype, const GTorchGemm *g)
{
  enum CBLAS_TRANSPOSE trans_a = CblasNoTrans, trans_b = CblasNoTrans;
  gint64 lda = leading (g->m, g->k, g->a_row, g->a_col, &trans_a);
  gint64 ldb = leading (g->k, g->n, g->b_row, g->b_col, &trans_b);
  double complex alpha = g->alpha, beta = g->beta;
  float complex alpha_f = (float) g->alpha, beta_f = (float) g->beta;
  int before;

  if (lda == 0 || ldb == 0 || g->k == 0 || MAX (MAX (g->m, g->n), g->k) > G_MAXINT32
      || MAX (MAX (lda, ldb), g->ldc) > G_MAXINT32)
    return FALSE;
  before = gtorch_cpu_blas_be_alone ();
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      cblas_sgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, g->alpha, g->a, lda, g->b,
                   ldb, g->beta, g->c, g->ldc);
      break;
    case GTORCH_DTYPE_FLOAT64:
      cblas_dgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, g->alpha, g->a, lda, g->b,
                   ldb, g->beta, g->c, g->ldc);
      break;
    case GTORCH_DTYPE_COMPLEX64:
      cblas_cgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, &alpha_f, g->a, lda, g->b,
                   ldb, &beta_f, g->c, g->ldc);
      break;
    case GTORCH_DTYPE_COMPLEX128:
      cblas_zgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, &alpha, g->a, lda, g->b, ldb,
                   &beta, g->c, g->ldc);
      break;
    default:
      gtorch_cpu_blas_leave_alone (before);
      return FALSE;
    }
  gtorch_cpu_blas_leave_alone (before);
  return TRUE;
}

/* A matrix-vector product is bound by memory, and BLAS does it well. */
gboolean
gtorch_cpu_blas_gemv (guint dtype, const GTorchGemm *g)
{
  gboolean column = g->n == 1;
  gint64 rows = column ? g->m : g->k, columns = column ? g->k : g->n;
  enum CBLAS_TRANSPOSE trans;
  gint64 ld = column ? leading (rows, columns, g->a_row, g->a_col, &trans)
                     : leading (rows, columns, g->b_row, g->b_col, &trans);
  gint64 x_step = column ? g->b_row : g->a_col, y_step = column ? g->ldc : 1;
  gconstpointer matrix = column ? g->a : g->b, x = column ? g->b : g->a;
  int before;

  if (ld == 0 || g->k == 0 || x_step <= 0 || y_step <= 0
      || MAX (MAX (rows, columns), MAX (ld, MAX (x_step, y_step))) > G_MAXINT32)
    return FALSE;
  if (trans == CblasTrans)
    {
      gint64 swap = rows;

      rows = columns;
      columns = swap;
    }
  if (!column)
    trans = trans == CblasTrans ? CblasNoTrans : CblasTrans;
  before = gtorch_cpu_blas_be_alone ();
  if (dtype == GTORCH_DTYPE_FLOAT32)
    cblas_sgemv (CblasRowMajor, trans, rows, columns, g->alpha, matrix, ld, x, x_step, g->beta,
                 g->c, y_step);
  else
    cblas_dgemv (CblasRowMajor, trans, rows, columns, g->alpha, matrix, ld, x, x_step, g->beta,
                 g->c, y_step);
  gtorch_cpu_blas_leave_alone (before);
  return TRUE;
}
