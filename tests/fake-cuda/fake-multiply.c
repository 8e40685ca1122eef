/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The kernels of matrix products in real dtypes, for programs that enable them ("multiply=1"); in others
 * the stand-in for cuBLASLt computes products. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-half.h"
#include "fake-cuda-private.h"
#include "kernels/gtorch-kernel-params.h"

#define PLAIN(x) (x)

/* Defines the product for a type of elements and the compute type, with the conversions between them. */
#define MULTIPLY(name, T, U, FROM, TO)                                                         \
  static void multiply_##name (const GtMultiply *p, const void *from_a, const void *from_b,    \
                               void *to, const void *bias, void *sums)                         \
  {                                                                                            \
    U alpha, beta;                                                                             \
    gint64 batch, i, j, k;                                                                     \
                                                                                               \
    memcpy (&alpha, &p->alpha, sizeof alpha);                                                  \
    memcpy (&beta, &p->beta, sizeof beta);                                                     \
    for (batch = 0; batch < p->batch; batch++)                                                 \
      for (j = 0; j < p->n; j++)                                                               \
        {                                                                                      \
          const T *a = (const T *) from_a + batch * p->a_batch;                                \
          const T *b = (const T *) from_b + batch * p->b_batch + j * p->b_column;              \
          T *c = (T *) to + batch * p->c_batch + j * p->c_column;                              \
          U sum = 0;                                                                           \
                                                                                               \
          for (i = 0; i < p->m; i++)                                                           \
            {                                                                                  \
              U value = 0;                                                                     \
                                                                                               \
              for (k = 0; k < p->k; k++)                                                       \
                value +=                                                                       \
                    (U) FROM (a[i * p->a_row + k * p->a_column]) * (U) FROM (b[k * p->b_row]); \
              value *= alpha;                                                                  \
              if (bias != NULL)                                                                \
                value += (U) FROM (((const T *) bias)[i]);                                     \
              if (p->adds)                                                                     \
                value += beta * (U) FROM (c[i]);                                               \
              c[i] = (T) TO (value);                                                           \
            }                                                                                  \
          for (k = 0; sums != NULL && k < p->k; k++)                                           \
            sum += (U) FROM (b[k * p->b_row]);                                                 \
          if (sums != NULL)                                                                    \
            ((T *) sums)[j] = (T) TO (sum);                                                    \
        }                                                                                      \
  }
MULTIPLY (f32, gfloat, gfloat, PLAIN, PLAIN)
MULTIPLY (f64, gdouble, gdouble, PLAIN, PLAIN)
MULTIPLY (f16, guint16, gfloat, gt_half_to_float, gt_half_from_float)
MULTIPLY (bf16, guint16, gfloat, gt_bfloat16_to_float, gt_bfloat16_from_float)
MULTIPLY (i8, gint8, guint32, PLAIN, PLAIN)
MULTIPLY (u8, guint8, guint32, PLAIN, PLAIN)
MULTIPLY (i16, gint16, guint32, PLAIN, PLAIN)
MULTIPLY (i32, gint32, guint32, PLAIN, PLAIN)
MULTIPLY (i64, gint64, guint64, PLAIN, PLAIN)

typedef void (*Multiply) (const GtMultiply *p, const void *a, const void *b, void *c,
                          const void *bias, void *sums);

static const struct
{
  const gchar *name;
  Multiply run;
  gsize size;
} known[] = {
  { "f32", multiply_f32, 4 }, { "f64", multiply_f64, 8 },   { "f16", multiply_f16, 2 },
  { "i8", multiply_i8, 1 },   { "bf16", multiply_bf16, 2 }, { "u8", multiply_u8, 1 },
  { "i16", multiply_i16, 2 }, { "i32", multiply_i32, 4 },   { "i64", multiply_i64, 8 },
};

/* Returns the extent of the memory from the first element to the last one. */
static gpointer
reach (const void *address, gint64 rows, gint64 row, gint64 columns, gint64 column, gint64 batch,
       gint64 step, gsize size, const FakeDevice *device)
{
  const gint64 last = (rows - 1) * row + (columns - 1) * column + (batch - 1) * step;

  return fake_memory_at ((guintptr) address, (last + 1) * size, device);
}

static CUresult
run_multiply (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
              const FakeDevice *device)
{
  const GtMultiply *p = parameter;
  const gsize size = known[kernel->from].size;
  const guint64 side = kernel->size;
  const void *a =
      reach (p->a, p->m, p->a_row, p->k, p->a_column, p->batch, p->a_batch, size, device);
  const void *b =
      reach (p->b, p->k, p->b_row, p->n, p->b_column, p->batch, p->b_batch, size, device);
  void *c = reach (p->c, p->m, 1, p->n, p->c_column, p->batch, p->c_batch, size, device);
  const void *bias = NULL;
  void *sums = NULL;

  if (a == NULL || b == NULL || c == NULL
      || (p->bias != NULL && (bias = reach (p->bias, p->m, 1, 1, 0, 1, 0, size, device)) == NULL)
      || (p->sums != NULL && (sums = reach (p->sums, p->n, 1, 1, 0, 1, 0, size, device)) == NULL))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (grid->block[0] != 256 || p->tiles_down != (p->m + side - 1) / side
      || p->tiles_across != (p->n + side - 1) / side
      || grid->grid[0] != p->tiles_down * p->tiles_across * p->batch
      || (p->sums != NULL && p->batch != 1))
    return CUDA_ERROR_LAUNCH_FAILED;
  known[kernel->from].run (p, a, b, c, bias, sums);
  return CUDA_SUCCESS;
}

/* Parses multiply_<dtype>_<size>; another name is an error, which the fallbacks would hide. */
gboolean
fake_multiply_parse (FakeKernel *kernel, const gchar *text)
{
  guint i;

  if (!fake_multiplies || !g_str_has_prefix (text, "multiply_"))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (known); i++)
    {
      g_autofree gchar *large = g_strdup_printf ("multiply_%s_large", known[i].name);
      g_autofree gchar *small = g_strdup_printf ("multiply_%s_small", known[i].name);

      if (strcmp (text, large) != 0 && strcmp (text, small) != 0)
        continue;
      kernel->run = run_multiply;
      kernel->n_bytes = sizeof (GtMultiply);
      kernel->from = i;
      kernel->size = strcmp (text, large) == 0 ? 64 : 16;
      return TRUE;
    }
  g_error ("fake-cuda: there is no kernel gt_%s", text);
}
