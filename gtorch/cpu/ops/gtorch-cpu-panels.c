/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Products by a matrix that is packed once. The kernels of products read a matrix in place where its rows are
 * close to each other; those of a panel are as long as what they read of a row at most, and follow one
 * another. */

#include "config.h"

#include "cpu/gtorch-cpu-threads.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-gemm.h"

#define WIDTH 128 /* columns of a panel, but for the last one */

gboolean
gtorch_cpu_panels_exist (guint dtype)
{
  return (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64)
         && gtorch_cpu_isa () > GTORCH_ISA_LEVEL_BASELINE;
}

static gint64
count (const GTorchPanels *self)
{
  return (self->n + WIDTH - 1) / WIDTH;
}

/* --- packing --- */

typedef struct
{
  const GTorchPanels *panels;
  gconstpointer b;
  gint64 row, col;
} Source;

#define PACK(T)                                                          \
  for (gint64 i = begin; i < end; i++)                                   \
    {                                                                    \
      const gint64 first = i * WIDTH, width = MIN (WIDTH, n - first);    \
      const T *from = (const T *) source->b + first * source->col;       \
      T *to = (T *) source->panels->elements + first * k;                \
      /* blocks of rows, as those of b may be its columns in memory */   \
      for (gint64 p = 0; p < k; p += 16)                                 \
        for (gint64 j = 0; j < width; j++)                               \
          for (gint64 q = p; q < MIN (p + 16, k); q++)                   \
            to[q * width + j] = from[q * source->row + j * source->col]; \
    }

static void
pack_panels (gint64 begin, gint64 end, gpointer user_data)
{
  const Source *source = user_data;
  const gint64 k = source->panels->k, n = source->panels->n;

  if (source->panels->dtype == GTORCH_DTYPE_FLOAT32)
    PACK (float)
  else
    PACK (double)
}

void
gtorch_cpu_panels_pack (const GTorchPanels *self, gconstpointer b, gint64 b_row, gint64 b_col)
{
  Source source = { self, b, b_row, b_col };

  if (self->k > 0 && self->n > 0)
    gtorch_parallel_for (count (self), 1 + GTORCH_CPU_GRAIN / (self->k * WIDTH), pack_panels,
                         &source);
}

/* --- products --- */

typedef struct
{
  const GTorchPanels *panels;
  gconstpointer a;
  gint64 m, ldc;
  gdouble beta;
  gpointer c;
} Product;

static void
multiply_panels (gint64 begin, gint64 end, gpointer user_data)
{
  const Product *p = user_data;
  const GTorchPanels *panels = p->panels;
  const gint64 size = (gint64) gtorch_dtype_size (panels->dtype), k = panels->k;
  gpointer workspace = gtorch_cpu_gemm_workspace ();

  for (; begin < end; begin++)
    {
      const gint64 first = begin * WIDTH, width = MIN (WIDTH, panels->n - first);
      const GTorchGemm g = {
        .m = p->m,
        .n = width,
        .k = k,
        .a = p->a,
        .a_row = k,
        .a_col = 1,
        .b = (const char *) panels->elements + first * k * size,
        .b_row = width,
        .b_col = 1,
        .c = (char *) p->c + first * size,
        .ldc = p->ldc,
        .alpha = 1,
        .beta = p->beta,
      };

      if (workspace == NULL)
        gtorch_cpu_gemm_serial (panels->dtype, &g);
      else if (panels->dtype == GTORCH_DTYPE_FLOAT32)
        GTORCH_ISA_CALL (gtorch_gemm_f32) (&g, workspace);
      else
        GTORCH_ISA_CALL (gtorch_gemm_f64) (&g, workspace);
    }
}

void
gtorch_cpu_panels_multiply (const GTorchPanels *self, gconstpointer a, gint64 m, gdouble beta,
                            gpointer c, gint64 ldc, gboolean threads)
{
  Product product = { self, a, m, ldc, beta, c };

  if (m == 0 || self->n == 0)
    return;
  if (threads)
    gtorch_parallel_for (count (self), 1 + GTORCH_CPU_GRAIN / MAX (m * self->k * WIDTH / 8, 1),
                         multiply_panels, &product);
  else
    multiply_panels (0, count (self), &product);
}
