/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products. Real floats use GTorch's own kernel if the processor has wide vectors: the kernel reads
 * any strides, keeps its order of additions at every block edge, and supports newer processors than some
 * builds of OpenBLAS. Otherwise, and for complex numbers, BLAS is used; integers use a plain loop. Results
 * do not depend on the number of threads. */

#include "config.h"

#include <complex.h>
#include <stdlib.h>

#include "cpu/ops/gtorch-cpu-blas.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-iter.h"
#include "device/gtorch-device-manager.h"

#define SMALL 4096      /* multiplications; fewer are not worth a BLAS call */
#define SPLIT (1 << 19) /* multiplications; fewer are not worth a second thread */

#define MAX_ROUNDS      4   /* most blocks per thread */
#define NEXT_TO_NOTHING 100 /* divisor of the cost: 1 % more is acceptable */

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

#define COLUMNS 64 /* columns that are accumulated at a time */

/* A is the type of the accumulator. float32 would be too coarse for millions of terms. */
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

static gboolean
is_vector (guint dtype, const GTorchGemm *g)
{
  return (g->m == 1 || g->n == 1)
         && (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64);
}

/* Returns whether the product is a dot product of strided vectors, whose products BLAS would add to one
 * accumulator. */
static gboolean
is_scattered_dot (const GTorchGemm *g)
{
  return g->m == 1 && g->n == 1 && (g->a_col != 1 || g->b_row != 1);
}

static gboolean
is_integer (guint dtype)
{
  return dtype == GTORCH_DTYPE_INT32 || dtype == GTORCH_DTYPE_INT64;
}

static gboolean
has_kernel (guint dtype)
{
  return (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64)
         && gtorch_cpu_isa () > GTORCH_ISA_LEVEL_BASELINE;
}

static void
one_block (guint dtype, const GTorchGemm *g)
{
  if (is_vector (dtype, g))
    {
      if (g->m * g->n * g->k <= SMALL / 4 || is_scattered_dot (g)
          || !gtorch_cpu_blas_gemv (dtype, g))
        plain (dtype, g);
    }
  else if (has_kernel (dtype) && gtorch_cpu_gemm_workspace () != NULL)
    {
      if (dtype == GTORCH_DTYPE_FLOAT32)
        GTORCH_ISA_CALL (gtorch_gemm_f32) (g, gtorch_cpu_gemm_workspace ());
      else
        GTORCH_ISA_CALL (gtorch_gemm_f64) (g, gtorch_cpu_gemm_workspace ());
    }
  else if (g->m * g->n * g->k <= SMALL || !gtorch_cpu_blas_gemm (dtype, g))
    plain (dtype, g);
}

/* --- blocks of the result --- */

/* Sizes of the kernels' own tiles, or nearly: an edge costs as much as a whole tile. */
#define TILE_ROWS    12
#define TILE_COLUMNS 32
#define TILE_VECTOR  64 /* elements of the result */
#define LEAST_BESIDE 512
#define BLAS_EDGE    256 /* edge of a block at which BLAS reaches its full speed */

static gint64
round_up (gint64 n, gint64 tile)
{
  return (n + tile - 1) / tile * tile;
}

/* The result, divided into down x across blocks whose edges are aligned to the kernels' tiles. */
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
  gboolean vector = is_vector (blocks->dtype, blocks->g);
  gint64 tile_rows = vector ? TILE_VECTOR : TILE_ROWS;
  gint64 tile_columns = vector ? TILE_VECTOR : TILE_COLUMNS;

  for (; begin < end; begin++)
    {
      gint64 i = begin % blocks->down, j = begin / blocks->down;
      GTorchGemm g = *blocks->g;
      gint64 row = edge (g.m, tile_rows, i, blocks->down),
             column = edge (g.n, tile_columns, j, blocks->across);

      g.m = edge (g.m, tile_rows, i + 1, blocks->down) - row;
      g.n = edge (g.n, tile_columns, j + 1, blocks->across) - column;
      g.a = (const char *) g.a + row * g.a_row * size;
      g.b = (const char *) g.b + column * g.b_col * size;
      g.c = (char *) g.c + (row * g.ldc + column) * size;
      one_block (blocks->dtype, &g);
    }
}

/* Chooses the cheapest division into at most count blocks. Each block packs its rows of a and its columns
 * of b, so square blocks cost least. Returns the cost of the largest block. */
static gint64
divide (Blocks *blocks, gint64 count)
{
  const GTorchGemm *g = blocks->g;
  gint64 panel = GTORCH_GEMM_PANEL / gtorch_dtype_size (blocks->dtype);
  gint64 best = G_MAXINT64, down;

  for (down = 1; down <= count; down++)
    {
      gint64 across = count / down;
      gint64 rows = (g->m + down - 1) / down, columns = (g->n + across - 1) / across;
      gint64 n_panels = (columns + panel - 1) / panel;
      /* its products and its packing, where a is packed once per panel of b */
      gint64 cost = round_up (rows, TILE_ROWS) * round_up (columns, TILE_COLUMNS)
                    + 16 * (rows * n_panels + columns);

      if (cost < best)
        {
          best = cost;
          blocks->down = down;
          blocks->across = across;
        }
    }
  return best;
}

/* Chooses one block per thread or, if the cost is nearly the same, more, so that faster threads can do
 * more. */
static void
choose_blocks (Blocks *blocks, gint64 n_threads)
{
  gint64 least = divide (blocks, n_threads), rounds;

  for (rounds = 2; n_threads > 1 && rounds <= MAX_ROUNDS; rounds++)
    {
      Blocks more = *blocks;

      if (rounds * divide (&more, rounds * n_threads) <= least + least / NEXT_TO_NOTHING)
        *blocks = more;
    }
}

/* Chooses blocks for BLAS, which may add in another order at an edge: so the edges depend on the shape
 * alone. */
static void
choose_blocks_for_blas (Blocks *blocks)
{
  const GTorchGemm *g = blocks->g;

  if (is_vector (blocks->dtype, g))
    {
      /* if neighbouring results read neighbouring elements, short pieces of rows are slow to read */
      gboolean beside = g->n == 1 ? g->a_row == 1 && g->a_col != 1 : g->b_col == 1;
      gint64 length =
          round_up (MAX (GTORCH_CPU_GRAIN / MAX (g->k, 1), beside ? LEAST_BESIDE : 1), TILE_VECTOR);

      blocks->down = (g->m + length - 1) / length;
      blocks->across = (g->n + length - 1) / length;
    }
  else if (g->m * g->n * g->k >= SPLIT)
    {
      blocks->down = (g->m + BLAS_EDGE - 1) / BLAS_EDGE;
      blocks->across = (g->n + BLAS_EDGE - 1) / BLAS_EDGE;
    }
}

/* --- short results of long sums --- */

#define MAX_CUTS 64

typedef struct
{
  guint dtype;
  const GTorchGemm *g;
  gint64 length; /* elements of k per cut */
  gboolean is_column;
  char sums[MAX_CUTS * TILE_VECTOR * sizeof (gdouble)] __attribute__ ((aligned (64)));
} Cuts;

static void
sum_cuts (gint64 begin, gint64 end, gpointer user_data)
{
  Cuts *cuts = user_data;
  gint64 size = gtorch_dtype_size (cuts->dtype);

  for (; begin < end; begin++)
    {
      GTorchGemm g = *cuts->g;
      gint64 first = begin * cuts->length;

      g.k = MIN (cuts->length, g.k - first);
      g.a = (const char *) g.a + first * g.a_col * size;
      g.b = (const char *) g.b + first * g.b_row * size;
      g.c = cuts->sums + begin * TILE_VECTOR * size;
      g.ldc = cuts->is_column ? 1 : TILE_VECTOR;
      g.beta = 0;
      one_block (cuts->dtype, &g);
    }
}

/* Adds the partial sums pairwise. */
#define ADD_CUTS(T)                                                        \
  {                                                                        \
    T *sums = (T *) cuts.sums, *c = g->c;                                  \
                                                                           \
    for (step = 1; step < n_cuts; step *= 2)                               \
      for (i = 0; i + step < n_cuts; i += 2 * step)                        \
        for (j = 0; j < n; j++)                                            \
          sums[i * TILE_VECTOR + j] += sums[(i + step) * TILE_VECTOR + j]; \
    for (j = 0; j < n; j++, c += cuts.is_column ? g->ldc : 1)              \
      *c = g->beta == 0 ? sums[j] : sums[j] + (T) g->beta * *c;            \
  }

/* Computes a vector shorter than a tile: k is divided into cuts, whose number does not depend on that of
 * the threads. */
static G_NO_INLINE void
gemv_in_cuts (guint dtype, const GTorchGemm *g, gboolean threads)
{
  Cuts cuts;
  gint64 n = g->m * g->n, n_cuts = MIN (n * g->k / GTORCH_CPU_GRAIN, MAX_CUTS), step, i, j;

  cuts.dtype = dtype;
  cuts.g = g;
  cuts.is_column = g->n == 1;
  cuts.length = round_up ((g->k + n_cuts - 1) / n_cuts, TILE_VECTOR);
  n_cuts = (g->k + cuts.length - 1) / cuts.length;
  if (threads)
    gtorch_parallel_for (n_cuts, 1, sum_cuts, &cuts);
  else
    sum_cuts (0, n_cuts, &cuts);
  if (dtype == GTORCH_DTYPE_FLOAT32)
    ADD_CUTS (float)
  else
    ADD_CUTS (double)
}

/* --- products --- */

static void
multiply (guint dtype, const GTorchGemm *g, gboolean threads)
{
  Blocks blocks = { dtype, g, 1, 1 };
  gint64 work = g->m * g->n * g->k;

  if (g->m == 0 || g->n == 0)
    return;
  if (work < 2 * GTORCH_CPU_GRAIN)
    {
      one_block (dtype, g);
      return;
    }
  if (is_vector (dtype, g) && g->m * g->n < TILE_VECTOR)
    {
      gemv_in_cuts (dtype, g, threads);
      return;
    }
  if (is_vector (dtype, g) || !(has_kernel (dtype) || is_integer (dtype)))
    choose_blocks_for_blas (&blocks);
  else if (threads && work >= SPLIT && !gtorch_cpu_threads_is_inside ())
    choose_blocks (&blocks, gtorch_get_num_threads ());
  if (threads)
    gtorch_parallel_for (blocks.down * blocks.across, 1, gemm_blocks, &blocks);
  else
    gemm_blocks (0, blocks.down * blocks.across, &blocks);
}

void
gtorch_cpu_gemm_serial (guint dtype, const GTorchGemm *g)
{
  multiply (dtype, g, FALSE);
}

void
gtorch_cpu_gemm (guint dtype, const GTorchGemm *g)
{
  multiply (dtype, g, TRUE);
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
  /* as in BLAS: NaN is ignored if alpha is 0 */
  gint64 k = alpha == 0 ? 0 : a->shape[a->n_dims - 1];
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
  batches.threads_inside =
      count == 1 || (count < 2 * gtorch_get_num_threads () && work >= 2 * SPLIT);
  if (batches.threads_inside)
    batches_part (0, count, &batches);
  else
    gtorch_parallel_for (count, 1 + SPLIT / work, batches_part, &batches);
}
