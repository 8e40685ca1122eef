/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products: real floats by the own kernel where the processor has wide vectors (it reads any
 * strides, keeps its order whatever the number of threads, and knows newer processors than some
 * builds
 * of OpenBLAS do), else and for complex ones by CBLAS; integers by a plain loop. */

#include "config.h"

#include <cblas.h>
#include <complex.h>
#include <stdlib.h>

#include "cpu/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-device-manager.h"

#define SMALL 4096      /* multiplications; fewer are not worth a call of BLAS */
#define SPLIT (1 << 19) /* the same for a second thread */

static GPrivate workspace_key = G_PRIVATE_INIT (free);

gpointer
gtorch_cpu_gemm_workspace (void)
{
  gpointer workspace = g_private_get (&workspace_key);

  if (workspace == NULL)
    {
      workspace = aligned_alloc (64, GTORCH_GEMM_WORKSPACE);
      g_private_set (&workspace_key, workspace);
    }
  return workspace;
}

#define COLUMNS 64 /* that have their accumulators at a time */

/* A: what is accumulated in. There may be millions of terms, which float32 is too coarse for. */
#define PLAIN(T, A)                                                                              \
  for (i = 0; i < g->m; i++)                                                                     \
    for (first = 0; first < g->n; first += COLUMNS)                                              \
      {                                                                                          \
        const gint64 n = MIN (COLUMNS, g->n - first);                                            \
        const T alpha = (T) g->alpha, beta = (T) g->beta;                                        \
        const T *a = (const T *) g->a + i * g->a_row;                                            \
        const T *b = (const T *) g->b + first * g->b_col;                                        \
        T *c = (T *) g->c + i * g->ldc + first;                                                  \
        A sum[COLUMNS] = { 0 };                                                                  \
        for (p = 0; p < g->k; p++, a += g->a_col, b += g->b_row)                                 \
          {                                                                                      \
            const A factor = *a;                                                                 \
            if (g->b_col == 1)                                                                   \
              _Pragma ("omp simd") for (j = 0; j < n; j++) sum[j] += factor * (A) b[j];          \
            else                                                                                 \
              for (j = 0; j < n; j++)                                                            \
                sum[j] += factor * (A) b[j * g->b_col];                                          \
          }                                                                                      \
        for (j = 0; j < n; j++)                                                                  \
          c[j] = (T) (g->beta == 0 ? (A) alpha * sum[j] : (A) alpha * sum[j] + (A) beta * c[j]); \
      }

static void
plain (guint dtype, const GTorchGemm *g)
{
  gint64 first, i, j, p;

  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      PLAIN (float, double)
      break;
    case GTORCH_DTYPE_FLOAT64:
      PLAIN (double, double)
      break;
    case GTORCH_DTYPE_COMPLEX64:
      PLAIN (float _Complex, double _Complex)
      break;
    case GTORCH_DTYPE_COMPLEX128:
      PLAIN (double _Complex, double _Complex)
      break;
    case GTORCH_DTYPE_INT32:
      PLAIN (gint32, gint32)
      break;
    default:
      PLAIN (gint64, gint64)
    }
}

/* The leading dimension of a matrix that BLAS can read as it is, or 0. */
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

static gboolean
blas (guint dtype, const GTorchGemm *g)
{
  enum CBLAS_TRANSPOSE trans_a = CblasNoTrans, trans_b = CblasNoTrans;
  gint64 lda = leading (g->m, g->k, g->a_row, g->a_col, &trans_a);
  gint64 ldb = leading (g->k, g->n, g->b_row, g->b_col, &trans_b);
  double complex alpha = g->alpha, beta = g->beta;
  float complex alpha_f = (float) g->alpha, beta_f = (float) g->beta;

  if (lda == 0 || ldb == 0 || g->k == 0 || MAX (MAX (g->m, g->n), g->k) > G_MAXINT32
      || MAX (MAX (lda, ldb), g->ldc) > G_MAXINT32)
    return FALSE;
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      cblas_sgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, g->alpha, g->a, lda, g->b,
                   ldb, g->beta, g->c, g->ldc);
      return TRUE;
    case GTORCH_DTYPE_FLOAT64:
      cblas_dgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, g->alpha, g->a, lda, g->b,
                   ldb, g->beta, g->c, g->ldc);
      return TRUE;
    case GTORCH_DTYPE_COMPLEX64:
      cblas_cgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, &alpha_f, g->a, lda, g->b,
                   ldb, &beta_f, g->c, g->ldc);
      return TRUE;
    case GTORCH_DTYPE_COMPLEX128:
      cblas_zgemm (CblasRowMajor, trans_a, trans_b, g->m, g->n, g->k, &alpha, g->a, lda, g->b, ldb,
                   &beta, g->c, g->ldc);
      return TRUE;
    default:
      return FALSE;
    }
}

/* A matrix by a vector is bound by memory: BLAS does it well. */
static gboolean
blas_vector (guint dtype, const GTorchGemm *g)
{
  gboolean column = g->n == 1;
  gint64 rows = column ? g->m : g->k, columns = column ? g->k : g->n;
  enum CBLAS_TRANSPOSE trans;
  gint64 ld = column ? leading (rows, columns, g->a_row, g->a_col, &trans)
                     : leading (rows, columns, g->b_row, g->b_col, &trans);
  gint64 x_step = column ? g->b_row : g->a_col, y_step = column ? g->ldc : 1;
  gconstpointer matrix = column ? g->a : g->b, x = column ? g->b : g->a;

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
  if (dtype == GTORCH_DTYPE_FLOAT32)
    cblas_sgemv (CblasRowMajor, trans, rows, columns, g->alpha, matrix, ld, x, x_step, g->beta,
                 g->c, y_step);
  else
    cblas_dgemv (CblasRowMajor, trans, rows, columns, g->alpha, matrix, ld, x, x_step, g->beta,
                 g->c, y_step);
  return TRUE;
}

static gboolean
is_vector (guint dtype, const GTorchGemm *g)
{
  return (g->m == 1 || g->n == 1)
         && (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64);
}

/* BLAS adds the products of vectors that are not together to one accumulator. */
static gboolean
is_scattered_dot (const GTorchGemm *g)
{
  return g->m == 1 && g->n == 1 && (g->a_col != 1 || g->b_row != 1);
}

static gboolean
has_kernel (guint dtype)
{
  return (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64)
         && gtorch_cpu_isa () > GTORCH_ISA_LEVEL_BASELINE;
}

void
gtorch_cpu_gemm_serial (guint dtype, const GTorchGemm *g)
{
  if (g->m == 0 || g->n == 0)
    return;
  if (is_vector (dtype, g))
    {
      if (g->m * g->n * g->k <= SMALL / 4 || is_scattered_dot (g) || !blas_vector (dtype, g))
        plain (dtype, g);
    }
  else if (has_kernel (dtype) && gtorch_cpu_gemm_workspace () != NULL)
    {
      if (dtype == GTORCH_DTYPE_FLOAT32)
        GTORCH_ISA_CALL (gtorch_gemm_f32) (g, gtorch_cpu_gemm_workspace ());
      else
        GTORCH_ISA_CALL (gtorch_gemm_f64) (g, gtorch_cpu_gemm_workspace ());
    }
  else if (g->m * g->n * g->k <= SMALL || !blas (dtype, g))
    plain (dtype, g);
}

/* Multiples of the kernels' own tiles, or nearly: an edge costs as much as a whole tile. */
#define TILE_ROWS    12
#define TILE_COLUMNS 32

static gint64
round_up (gint64 n, gint64 tile)
{
  return (n + tile - 1) / tile * tile;
}

/* The result in down x across blocks, the edges of which fit the kernels' tiles. */
typedef struct
{
  guint dtype;
  const GTorchGemm *g;
  gint64 down, across;
} Blocks;

static gint64
edge (gint64 n, gint64 tile, gint64 i, gint64 count)
{
  return MIN (round_up (n, tile) / tile * i / count * tile, n);
}

static void
gemm_blocks (gint64 begin, gint64 end, gpointer user_data)
{
  const Blocks *blocks = user_data;
  gint64 size = gtorch_dtype_size (blocks->dtype);

  for (; begin < end; begin++)
    {
      gint64 i = begin % blocks->down, j = begin / blocks->down;
      GTorchGemm g = *blocks->g;
      gint64 row = edge (g.m, TILE_ROWS, i, blocks->down),
             column = edge (g.n, TILE_COLUMNS, j, blocks->across);

      g.m = edge (g.m, TILE_ROWS, i + 1, blocks->down) - row;
      g.n = edge (g.n, TILE_COLUMNS, j + 1, blocks->across) - column;
      g.a = (const char *) g.a + row * g.a_row * size;
      g.b = (const char *) g.b + column * g.b_col * size;
      g.c = (char *) g.c + (row * g.ldc + column) * size;
      gtorch_cpu_gemm_serial (blocks->dtype, &g);
    }
}

/* One block for each thread: each packs its rows of a and its columns of b, so squares cost least. */
static void
choose_blocks (Blocks *blocks, gint64 n_threads)
{
  const GTorchGemm *g = blocks->g;
  gint64 panel = GTORCH_GEMM_PANEL / gtorch_dtype_size (blocks->dtype);
  gint64 best = G_MAXINT64, down;

  for (down = 1; down <= n_threads; down++)
    {
      gint64 across = n_threads / down;
      gint64 rows = (g->m + down - 1) / down, columns = (g->n + across - 1) / across;
      gint64 n_panels = (columns + panel - 1) / panel;
      /* of the slowest thread: its share of the products, and what it packs, a for each panel of b */
      gint64 cost = round_up (rows, TILE_ROWS) * round_up (columns, TILE_COLUMNS)
                    + 16 * (rows * n_panels + columns);

      if (cost < best)
        {
          best = cost;
          blocks->down = down;
          blocks->across = across;
        }
    }
}

void
gtorch_cpu_gemm (guint dtype, const GTorchGemm *g)
{
  Blocks blocks = { dtype, g, 1, 1 };

  if (g->m == 0 || g->n == 0)
    return;
  if (g->m * g->n * g->k < SPLIT || is_vector (dtype, g))
    gtorch_cpu_gemm_serial (dtype, g);
  else if (has_kernel (dtype) || !blas (dtype, g))
    {
      choose_blocks (&blocks, gtorch_cpu_threads_is_inside () ? 1 : gtorch_get_num_threads ());
      gtorch_parallel_for (blocks.down * blocks.across, 1, gemm_blocks, &blocks);
    }
}

typedef struct
{
  guint dtype;
  gboolean threads_inside;
  GTorchGemm g;
  guint n_dims;
  gint64 c_step;
  const GTorchImpl *a, *b, *c;
} Batches;

static gint64
batch_offset (const GTorchImpl *impl, const GTorchImpl *c, gint64 index)
{
  gint64 offset = 0;
  guint i, lead = c->n_dims - impl->n_dims;

  for (i = c->n_dims - 2; i-- > 0;)
    {
      if (i >= lead && impl->shape[i - lead] != 1)
        offset += index % c->shape[i] * impl->strides[i - lead];
      index /= c->shape[i];
    }
  return offset;
}

static void
batches_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Batches *batches = user_data;
  gsize size = gtorch_dtype_size (batches->dtype);
  GTorchGemm g = batches->g;

  for (; begin < end; begin++)
    {
      g.a = (const char *) batches->g.a
            + batch_offset (batches->a, batches->c, begin) * (gint64) size;
      g.b = (const char *) batches->g.b
            + batch_offset (batches->b, batches->c, begin) * (gint64) size;
      g.c = (char *) batches->g.c + begin * batches->c_step * (gint64) size;
      if (batches->threads_inside)
        gtorch_cpu_gemm (batches->dtype, &g);
      else
        gtorch_cpu_gemm_serial (batches->dtype, &g);
    }
}

void
gtorch_cpu_gemm_batches (guint dtype, const GTorchImpl *a, const GTorchImpl *b, GTorchImpl *c,
                         gdouble alpha, gdouble beta)
{
  const gint64 *a_strides = a->strides + a->n_dims - 2, *b_strides = b->strides + b->n_dims - 2;
  gint64 m = c->shape[c->n_dims - 2], n = c->shape[c->n_dims - 1];
  gint64 k = alpha == 0 ? 0 : a->shape[a->n_dims - 1]; /* as BLAS has it: NaN does not count */
  Batches batches = {
    .dtype = dtype,
    .g = { m, n, k, gtorch_impl_data (a), a_strides[0], a_strides[1], gtorch_impl_data (b),
           b_strides[0], b_strides[1], gtorch_impl_data (c), n, alpha, beta },
    .c_step = m * n,
    .a = a,
    .b = b,
    .c = c,
  };
  gint64 count, work = MAX (m * n * k, 1);

  if (c->numel == 0)
    return;
  count = c->numel / (m * n);
  batches.threads_inside = count == 1 || (count < 2 * gtorch_get_num_threads () && work >= 2 * SPLIT);
  if (batches.threads_inside)
    batches_part (0, count, &batches);
  else
    gtorch_parallel_for (count, 1 + SPLIT / work, batches_part, &batches);
}
