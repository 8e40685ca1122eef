/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Single-threaded matrix products. A panel of B (KC x NC) is packed and stays in the L2 cache; MR rows of A
 * (MR x KC) are packed and stay in the L1 cache while the panel streams past. So the micro-kernel, which
 * keeps MR x NR results in registers, reads both sequentially. Operands that fit into the cache are read in
 * place. The order of the additions depends on k alone, so the result is bit-identical however the caller
 * splits m and n over threads.
 *
 * The file includes itself, once for each type. */

#ifndef T

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-gemm.h"

#if defined(__AVX512F__)
#define VECTOR 64
#define MR     12
#elif defined(__AVX__)
#define VECTOR 32
#define MR     6
#else
#define VECTOR 16
#define MR     6
#endif
#define KC    256
#define NC    (GTORCH_GEMM_PANEL / (gint64) sizeof (T))
#define AHEAD 8 /* rows of B to prefetch ahead */
#define TAPS  9 /* elements of a filter whose sums are in registers */

#define T       float
#define NAME(n) n##_f32
#include "gtorch-isa-gemm.c"
#undef T
#undef NAME
#define T       double
#define NAME(n) n##_f64
#include "gtorch-isa-gemm.c"

#else

typedef T NAME (Vec) __attribute__ ((vector_size (VECTOR), aligned (sizeof (T)), may_alias));

#define VL ((gint64) (VECTOR / sizeof (T)))
#define NR (2 * VL)

/* Computes c (rows x nv vectors) = alpha a b + beta c. Row p of b is at b + p b_row or, if there is a
 * table, at b + table[p]. bias has one number for each row of c, or is NULL. */
static inline __attribute__ ((always_inline)) void
NAME (kernel) (const int rows, const int nv, gint64 k, const T *a, gint64 a_row, gint64 a_col,
               const T *b, gint64 b_row, const gint64 *table, T *c, gint64 ldc, T alpha, T beta,
               const T *bias)
{
  NAME (Vec) acc[MR][2];
  gint64 p;
  int i, j;

#pragma GCC unroll 16
  for (i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (j = 0; j < nv; j++)
      __builtin_prefetch (c + i * ldc + j * VL, 1);

#pragma GCC unroll 16
  for (i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (j = 0; j < nv; j++)
      acc[i][j] = (NAME (Vec)){ 0 } + (bias != NULL ? bias[i] : 0);
  for (p = 0; p < k; p++, a += a_col)
    {
      const T *from = table != NULL ? b + table[p] : b + p * b_row;
      NAME (Vec) v[2];

      if (table == NULL)
        for (j = 0; j < nv * VECTOR; j += 64)
          __builtin_prefetch ((const char *) (from + AHEAD * b_row) + j);
#pragma GCC unroll 2
      for (j = 0; j < nv; j++)
        v[j] = *(const NAME (Vec) *) (from + j * VL);
#pragma GCC unroll 16
      for (i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (j = 0; j < nv; j++)
          acc[i][j] += v[j] * a[i * a_row];
    }
  /* read all rows before writing any: processors mistake rows of c a power of two apart for the same
   * address */
  if (beta == 0)
    {
#pragma GCC unroll 16
      for (i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (j = 0; j < nv; j++)
          acc[i][j] *= alpha;
    }
  else
    {
#pragma GCC unroll 16
      for (i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (j = 0; j < nv; j++)
          acc[i][j] = acc[i][j] * alpha + *(const NAME (Vec) *) (c + i * ldc + j * VL) * beta;
    }
#pragma GCC unroll 16
  for (i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (j = 0; j < nv; j++)
      *(NAME (Vec) *) (c + i * ldc + j * VL) = acc[i][j];
}

#define CASE(r)                                                                            \
  case r:                                                                                  \
    if (nv == 2)                                                                           \
      NAME (kernel) (r, 2, k, a, a_row, a_col, b, b_row, NULL, c, ldc, alpha, beta, NULL); \
    else                                                                                   \
      NAME (kernel) (r, 1, k, a, a_row, a_col, b, b_row, NULL, c, ldc, alpha, beta, NULL); \
    break;
#define CASE_TABLE(r)                                                        \
  case r:                                                                    \
    if (nv == 2)                                                             \
      NAME (kernel) (r, 2, k, a, a_row, 1, b, 0, table, c, ldc, 1, 0, bias); \
    else                                                                     \
      NAME (kernel) (r, 1, k, a, a_row, 1, b, 0, table, c, ldc, 1, 0, bias); \
    break;
#if MR > 6
#define CASES(C) C (1) C (2) C (3) C (4) C (5) C (6) C (7) C (8) C (9) C (10) C (11) C (12)
#else
#define CASES(C) C (1) C (2) C (3) C (4) C (5) C (6)
#endif

static void
NAME (micro) (int rows, int nv, gint64 k, const T *a, gint64 a_row, gint64 a_col, const T *b,
              gint64 b_row, T *c, gint64 ldc, T alpha, T beta)
{
  /* hot path: constant arguments save registers */
  if (rows == MR && nv == 2 && a_row == 1 && a_col == MR && b_row == NR)
    NAME (kernel) (MR, 2, k, a, 1, MR, b, NR, NULL, c, ldc, alpha, beta, NULL);
  else
    switch (rows)
      {
        CASES (CASE)
      }
}

static void
NAME (micro_table) (int rows, int nv, gint64 k, const T *a, gint64 a_row, const T *b,
                    const gint64 *table, T *c, gint64 ldc, const T *bias)
{
  switch (rows)
    {
      CASES (CASE_TABLE)
    }
}

#undef CASE
#undef CASE_TABLE
#undef CASES

void
GTORCH_ISA_SYMBOL (NAME (gtorch_conv_span)) (const GTorchConvSpan *s)
{
  T tile[MR * NR] __attribute__ ((aligned (64)));
  gint64 i, j, r, q;

  for (j = 0; j < s->n; j += NR)
    {
      gint64 width = MIN (NR, s->n - j);
      const T *from = (const T *) s->b + j;
      int nv = width > VL ? 2 : 1;

      for (i = 0; i < s->m; i += MR)
        {
          int rows = MIN (MR, s->m - i);
          const T *a = (const T *) s->a + i * s->k;
          const T *bias = s->bias != NULL ? (const T *) s->bias + i : NULL;
          T *to = (T *) s->c + i * s->c_row;

          if (s->pitch == s->width && width == nv * VL)
            {
              NAME (micro_table) (rows, nv, s->k, a, s->k, from, s->table, to + j, s->c_row, bias);
              continue;
            }
          NAME (micro_table) (rows, nv, s->k, a, s->k, from, s->table, tile, NR, bias);
          for (q = 0; q < width;)
            {
              gint64 line = (j + q) / s->pitch, at = (j + q) % s->pitch;
              gint64 end = MIN (width, q + s->pitch - at);
              gint64 valid = MIN (width, q + s->width - at) - q, l;
              T *out = to + line * s->width + at;

              for (r = 0; r < rows; r++)
                for (l = 0; l < valid; l++)
                  out[r * s->c_row + l] = tile[r * NR + q + l];
              q = end;
            }
        }
    }
}

/* Computes one vector of lanes for a constant number of elements, whose sums stay in registers. */
static inline __attribute__ ((always_inline)) void
NAME (taps) (const int taps, const T *upper, const T *image, const gint64 *table, gint64 n,
             gint64 step, T *sums)
{
  NAME (Vec) acc[TAPS];
  gint64 i;
  int p;

#pragma GCC unroll 9
  for (p = 0; p < taps; p++)
    acc[p] = (NAME (Vec)){ 0 };
  for (i = 0; i < n; i++)
    {
      const NAME (Vec) v = *(const NAME (Vec) *) (upper + i * GTORCH_CONV_LANES);

#pragma GCC unroll 9
      for (p = 0; p < taps; p++)
        acc[p] += v * *(const NAME (Vec) *) (image + table[p] + i * step);
    }
#pragma GCC unroll 9
  for (p = 0; p < taps; p++)
    *(NAME (Vec) *) (sums + p * GTORCH_CONV_LANES) += acc[p];
}

#define CASE(n_of_part)                                                      \
  case n_of_part:                                                            \
    NAME (taps) (n_of_part, upper + l, image + l, table, n, step, sums + l); \
    break;

void
GTORCH_ISA_SYMBOL (NAME (gtorch_conv_taps)) (const T *upper, const T *image, const gint64 *table,
                                             gint64 n_taps, gint64 n, gint64 step, T *sums)
{
  gint64 n_parts = (n_taps + TAPS - 1) / TAPS;

  for (; n_parts > 0; n_parts--)
    {
      const gint64 taps = (n_taps + n_parts - 1) / n_parts;

      for (gint64 l = 0; l < GTORCH_CONV_LANES; l += VL)
        switch (taps)
          {
            CASE (1)
            CASE (2)
            CASE (3)
            CASE (4)
            CASE (5)
            CASE (6)
            CASE (7)
            CASE (8)
            CASE (9)
          }
      table += taps;
      sums += taps * GTORCH_CONV_LANES;
      n_taps -= taps;
    }
}

#undef CASE

/* Packs B into panels of NR columns and k rows each; the last panel is padded with zeros. */
static void
NAME (pack_b) (const T *b, gint64 row, gint64 col, gint64 k, gint64 n, T *to)
{
  gint64 i, j, p;

  for (j = 0; j < n; j += NR)
    {
      gint64 width = MIN (NR, n - j);
      const T *from = b + j * col;

      if (width == NR && col == 1)
        {
          /* several panels at once, to use more of each row while its page is in the TLB */
          gint64 n_panels = MIN ((n - j) / NR, 4);

          for (p = 0; p < k; p++)
            for (i = 0; i < n_panels; i++)
              memcpy (to + (i * k + p) * NR, from + p * row + i * NR, NR * sizeof (T));
          to += n_panels * k * NR;
          j += (n_panels - 1) * NR;
        }
      else if (row == 1 && width == NR)
        {
          /* transposed B: blocks of 8 rows make use of whole cache lines */
          for (p = 0; p < k; p += 8)
            for (i = 0; i < NR; i++)
              {
                gint64 q, end = MIN (p + 8, k);

                for (q = p; q < end; q++)
                  to[q * NR + i] = from[i * col + q];
              }
          to += k * NR;
        }
      else
        for (p = 0; p < k; p++, to += NR)
          for (i = 0; i < NR; i++)
            to[i] = i < width ? from[p * row + i * col] : 0;
    }
}

typedef T NAME (Four)
    __attribute__ ((vector_size (4 * sizeof (T)), aligned (sizeof (T)), may_alias));

/* Transposes a block of 4 x 4, whose rows are `row` apart, to columns MR apart. */
static inline __attribute__ ((always_inline)) void
NAME (transpose) (const T *from, gint64 row, T *to)
{
  const NAME (Four) *a = (const NAME (Four) *) from, *b = (const NAME (Four) *) (from + row);
  const NAME (Four) *c = (const NAME (Four) *) (from + 2 * row);
  const NAME (Four) *d = (const NAME (Four) *) (from + 3 * row);
  NAME (Four) ab_low = __builtin_shufflevector (*a, *b, 0, 4, 1, 5);
  NAME (Four) ab_high = __builtin_shufflevector (*a, *b, 2, 6, 3, 7);
  NAME (Four) cd_low = __builtin_shufflevector (*c, *d, 0, 4, 1, 5);
  NAME (Four) cd_high = __builtin_shufflevector (*c, *d, 2, 6, 3, 7);

  *(NAME (Four) *) to = __builtin_shufflevector (ab_low, cd_low, 0, 1, 4, 5);
  *(NAME (Four) *) (to + MR) = __builtin_shufflevector (ab_low, cd_low, 2, 3, 6, 7);
  *(NAME (Four) *) (to + 2 * MR) = __builtin_shufflevector (ab_high, cd_high, 0, 1, 4, 5);
  *(NAME (Four) *) (to + 3 * MR) = __builtin_shufflevector (ab_high, cd_high, 2, 3, 6, 7);
}

/* Packs at most MR rows of A column by column. */
static void
NAME (pack_a) (const T *a, gint64 row, gint64 col, gint64 rows, gint64 k, T *to)
{
  gint64 r, p, q;

  if (row == 1)
    for (p = 0; p < k; p++)
      for (r = 0; r < rows; r++)
        to[p * MR + r] = a[p * col + r];
  else if (col == 1 && rows == MR)
    {
      for (p = 0; p + 4 <= k; p += 4)
        {
#pragma GCC unroll 3
          for (r = 0; r + 4 <= MR; r += 4)
            NAME (transpose) (a + r * row + p, row, to + p * MR + r);
          for (; r < MR; r++)
            for (q = 0; q < 4; q++)
              to[(p + q) * MR + r] = a[r * row + p + q];
        }
      for (; p < k; p++)
        for (r = 0; r < MR; r++)
          to[p * MR + r] = a[r * row + p];
    }
  else
    for (p = 0; p < k; p += 16)
      for (r = 0; r < rows; r++)
        for (q = p; q < MIN (p + 16, k); q++)
          to[q * MR + r] = a[r * row + q * col];
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_gemm)) (const GTorchGemm *g, gpointer workspace)
{
  const T *a = g->a, *b = g->b;
  T *c = g->c;
  T *packed_b = workspace;
  T *packed_a = packed_b + KC * (NC + 2 * NR);
  /* if A has few rows, packing B costs more than it saves; likewise A, if B has few columns */
  gboolean keep_b =
      g->b_col == 1 && (g->m <= 2 * MR || g->k * g->b_row <= (g->b_row % 512 == 0 ? 16384 : 65536));
  gboolean keep_a = g->n <= 4 * NR || g->m * g->k <= 16384;
  gint64 a_row = keep_a ? g->a_row : 1, a_col = keep_a ? g->a_col : MR;
  T edge[MR * NR] __attribute__ ((aligned (64)));
  gint64 jc, pc, i, j, r, q;

  for (jc = 0; jc < g->n; jc += NC)
    {
      gint64 nc = MIN (NC, g->n - jc);
      gint64 whole = keep_b ? nc / NR * NR : 0;

      for (pc = 0; pc < g->k || pc == 0; pc += KC)
        {
          gint64 kc = MIN (KC, g->k - pc);
          T beta = pc == 0 ? (T) g->beta : 1;

          NAME (pack_b)
          (b + pc * g->b_row + (jc + whole) * g->b_col, g->b_row, g->b_col, kc, nc - whole,
           packed_b);
          for (i = 0; i < g->m; i += MR)
            {
              int rows = MIN (MR, g->m - i);
              const T *from = a + i * g->a_row + pc * g->a_col;

              if (!keep_a)
                NAME (pack_a) (from, g->a_row, g->a_col, rows, kc, packed_a);
              for (j = 0; j < nc; j += NR)
                {
                  gint64 width = MIN (NR, nc - j);
                  const T *panel =
                      j < whole ? b + pc * g->b_row + jc + j : packed_b + (j - whole) * kc;
                  gint64 b_row = j < whole ? g->b_row : NR;
                  T *to = c + i * g->ldc + jc + j;
                  int nv = width > VL ? 2 : 1;

                  if (width == nv * VL)
                    NAME (micro)
                  (rows, nv, kc, keep_a ? from : packed_a, a_row, a_col, panel, b_row, to, g->ldc,
                   (T) g->alpha, beta);
                  else
                  {
                    NAME (micro)
                    (rows, nv, kc, keep_a ? from : packed_a, a_row, a_col, panel, b_row, edge, NR,
                     (T) g->alpha, 0);
                    for (r = 0; r < rows; r++)
                      for (q = 0; q < width; q++)
                        to[r * g->ldc + q] = beta == 0
                                                 ? edge[r * NR + q]
                                                 : edge[r * NR + q] + beta * to[r * g->ldc + q];
                  }
                }
            }
        }
    }
}

#undef VL
#undef NR

#endif
