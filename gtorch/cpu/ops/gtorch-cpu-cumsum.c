/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums and products along a dimension of [outer, n, inner]. The rounding errors of n successive
 * additions would add up, so a sum starts anew with each block, and the total of the blocks before is
 * kept in float64. Products are computed in float64 throughout, since the error of each factor counts. */

#include "config.h"

#include <complex.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

#define TILE  64 /* columns */
#define BLOCK 64 /* elements of a row after which the sum starts anew */
/* Rows of a column that are added in succession: the rounding errors are below 2^-16 of the sum. */
#define CHAIN 256

typedef enum
{
  SUM,
  SUM_REVERSE,
  PRODUCT,
} Kind;

typedef struct
{
  guint dtype;
  Kind kind;
  gconstpointer x, g;
  gpointer y;
  gint64 n, inner, n_tiles;
} Scan;

/* Vectors for columns of float32: the sums of a block, and of the blocks before, stay in registers. */
#define VECTOR  4
#define VECTORS 4

typedef float Vector __attribute__ ((vector_size (4 * VECTOR), aligned (4), may_alias));

static inline __attribute__ ((always_inline)) void
columns_in_registers (const float *x, float *y, gint64 n, gint64 hop, const gint n_vectors)
{
  double total[VECTOR * VECTORS] = { 0 };
  Vector before[VECTORS], acc[VECTORS];
  gint64 i;
  gint j;

  for (i = 0; i < n;)
    {
      const gint64 stop = MIN (i + CHAIN, n);

      _Pragma ("GCC unroll 16") for (j = 0; j < n_vectors; j++) acc[j] = (Vector){ 0 };
      _Pragma ("GCC unroll 16") for (j = 0; j < VECTOR * n_vectors; j++)
          before[j / VECTOR][j % VECTOR] = (float) total[j];
      for (; i < stop; i++, x += hop, y += hop)
        {
          _Pragma ("GCC unroll 16") for (j = 0; j < n_vectors; j++)
          {
            acc[j] += ((const Vector *) x)[j];
            ((Vector *) y)[j] = before[j] + acc[j];
          }
        }
      _Pragma ("GCC unroll 16") for (j = 0; j < VECTOR * n_vectors; j++) total[j] +=
          acc[j / VECTOR][j % VECTOR];
    }
}

static void
one_column (const float *x, float *y, gint64 n, gint64 hop)
{
  double total = 0;
  gint64 i;

  for (i = 0; i < n;)
    {
      const gint64 stop = MIN (i + CHAIN, n);
      const float before = (float) total;
      float acc = 0;

      for (; i < stop; i++, x += hop, y += hop)
        {
          acc += *x;
          *y = before + acc;
        }
      total += acc;
    }
}

static void
long_columns (const float *x, float *y, gint64 n, gint64 hop, gint64 width)
{
  for (; width >= VECTOR * VECTORS; width -= VECTOR * VECTORS)
    {
      columns_in_registers (x, y, n, hop, VECTORS);
      x += VECTOR * VECTORS;
      y += VECTOR * VECTORS;
    }
  for (; width >= VECTOR; width -= VECTOR, x += VECTOR, y += VECTOR)
    columns_in_registers (x, y, n, hop, 1);
  for (; width > 0; width--)
    one_column (x++, y++, n, hop);
}

/* T: dtype of the elements; A: dtype of the accumulator. A row is summed in groups of four additions,
 * which shortens the chain of dependent additions. */
#define SUM_ROW(T, A)                                                 \
  {                                                                   \
    A total = 0;                                                      \
    for (i = 0; i < s->n;)                                            \
      {                                                               \
        const gint64 stop = MIN (i + BLOCK, s->n);                    \
        T acc = total, sum = 0;                                       \
        for (; i + 4 <= stop; i += 4)                                 \
          {                                                           \
            const T a = x[i * step], b = a + x[(i + 1) * step];       \
            const T c = x[(i + 2) * step], d = c + x[(i + 3) * step]; \
            const T four = b + d;                                     \
            y[i * step] = acc + a;                                    \
            y[(i + 1) * step] = acc + b;                              \
            y[(i + 2) * step] = acc + (b + c);                        \
            acc += four;                                              \
            sum += four;                                              \
            y[(i + 3) * step] = acc;                                  \
          }                                                           \
        for (; i < stop; i++)                                         \
          {                                                           \
            sum += x[i * step];                                       \
            y[i * step] = acc += x[i * step];                         \
          }                                                           \
        total += sum;                                                 \
      }                                                               \
  }

/* Sums columns. For short columns, and for float64, each row of the result is computed from the row
 * before. */
#define SUM_COLUMNS(T, A)                                                              \
  {                                                                                    \
    const gint64 hop = step * s->inner;                                                \
    A total[TILE] = { 0 };                                                             \
    T before[TILE], acc[TILE];                                                         \
    if (sizeof (A) == sizeof (T) || s->n <= CHAIN)                                     \
      {                                                                                \
        for (j = 0; j < width; j++)                                                    \
          y[j] = x[j];                                                                 \
        for (i = 1; i < s->n; i++)                                                     \
          {                                                                            \
            x += hop;                                                                  \
            y += hop;                                                                  \
            _Pragma ("omp simd") for (j = 0; j < width; j++) y[j] = y[j - hop] + x[j]; \
          }                                                                            \
      }                                                                                \
    else if (s->dtype == GTORCH_DTYPE_FLOAT32)                                         \
      long_columns ((const float *) x, (float *) y, s->n, hop, width);                 \
    else                                                                               \
      for (i = 0; i < s->n;)                                                           \
        {                                                                              \
          const gint64 stop = MIN (i + CHAIN, s->n);                                   \
          for (j = 0; j < width; j++)                                                  \
            {                                                                          \
              before[j] = total[j];                                                    \
              acc[j] = 0;                                                              \
            }                                                                          \
          for (; i < stop; i++, x += hop, y += hop)                                    \
            _Pragma ("omp simd") for (j = 0; j < width; j++)                           \
            {                                                                          \
              const T sum = acc[j] + x[j];                                             \
              acc[j] = sum;                                                            \
              y[j] = before[j] + sum;                                                  \
            }                                                                          \
          for (j = 0; j < width; j++)                                                  \
            total[j] += acc[j];                                                        \
        }                                                                              \
  }

/* Groups of four factors shorten the chain of products, where they cannot overflow. */
#define PRODUCTS_OF_ROW(T, A)                                   \
  {                                                             \
    A acc = 1;                                                  \
    i = 0;                                                      \
    if (s->dtype == GTORCH_DTYPE_FLOAT32)                       \
      for (; i + 4 <= s->n; i += 4)                             \
        {                                                       \
          const A a = x[i], b = a * x[i + 1], c = b * x[i + 2]; \
          const A d = b * ((A) x[i + 2] * (A) x[i + 3]);        \
          y[i] = acc * a;                                       \
          y[i + 1] = acc * b;                                   \
          y[i + 2] = acc * c;                                   \
          acc *= d;                                             \
          y[i + 3] = acc;                                       \
        }                                                       \
    for (; i < s->n; i++)                                       \
      y[i] = acc *= x[i];                                       \
  }

#define PRODUCTS(T, A)                                       \
  {                                                          \
    A acc[TILE];                                             \
    for (j = 0; j < width; j++)                              \
      acc[j] = 1;                                            \
    for (i = 0; i < s->n; i++, x += s->inner, y += s->inner) \
      _Pragma ("omp simd") for (j = 0; j < width; j++)       \
      {                                                      \
        acc[j] *= x[j];                                      \
        y[j] = acc[j];                                       \
      }                                                      \
  }

#define SCAN_OF(T, A)                                                                 \
  for (; begin < end; begin++)                                                        \
    {                                                                                 \
      gint64 first = begin % s->n_tiles * TILE, width = MIN (TILE, s->inner - first); \
      gint64 offset = begin / s->n_tiles * s->n * s->inner + first;                   \
      gint64 step = s->kind == SUM_REVERSE ? -1 : 1;                                  \
      const T *x = (const T *) s->x + offset;                                         \
      T *y = (T *) s->y + offset;                                                     \
      if (s->kind == SUM_REVERSE)                                                     \
        {                                                                             \
          x += (s->n - 1) * s->inner;                                                 \
          y += (s->n - 1) * s->inner;                                                 \
        }                                                                             \
      if (s->kind == PRODUCT && s->inner == 1)                                        \
        PRODUCTS_OF_ROW (T, A)                                                        \
      else if (s->kind == PRODUCT)                                                    \
        PRODUCTS (T, A)                                                               \
      else if (s->inner == 1)                                                         \
        SUM_ROW (T, A)                                                                \
      else                                                                            \
        SUM_COLUMNS (T, A)                                                            \
    }

static void
scan_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *s = user_data;
  gint64 i, j;

  switch (s->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      SCAN_OF (float, double)
      break;
    case GTORCH_DTYPE_FLOAT64:
      SCAN_OF (double, double)
      break;
    case GTORCH_DTYPE_INT32:
      SCAN_OF (gint32, gint32)
      break;
    case GTORCH_DTYPE_COMPLEX64:
      SCAN_OF (float _Complex, double _Complex)
      break;
    case GTORCH_DTYPE_COMPLEX128:
      SCAN_OF (double _Complex, double _Complex)
      break;
    default:
      SCAN_OF (gint64, gint64)
    }
}

/* With z the first zero of a row: before z, x[i] is a factor of every result; the results from z up to
 * the next zero have a derivative with respect to x[z] that is not 0; behind z all derivatives are 0. */
#define GRADIENT_OF(T, A)                                                           \
  for (; begin < end; begin++)                                                      \
    {                                                                               \
      gint64 offset = begin / s->inner * s->n * s->inner + begin % s->inner;        \
      const T *x = (const T *) s->x + offset, *g = (const T *) s->g + offset;       \
      T *y = (T *) s->y + offset;                                                   \
      A product = 1, sum = 0;                                                       \
      gint64 zero;                                                                  \
      for (i = 0; i < s->n && x[i * s->inner] != 0; i++)                            \
        {                                                                           \
          product *= x[i * s->inner];                                               \
          y[i * s->inner] = g[i * s->inner] * product;                              \
        }                                                                           \
      zero = i;                                                                     \
      for (i = zero; i-- > 0;)                                                      \
        {                                                                           \
          sum += y[i * s->inner];                                                   \
          y[i * s->inner] = sum / x[i * s->inner];                                  \
        }                                                                           \
      for (i = zero; i < s->n; i++)                                                 \
        y[i * s->inner] = 0;                                                        \
      for (i = zero, sum = 0; i < s->n && (i == zero || x[i * s->inner] != 0); i++) \
        {                                                                           \
          product *= i == zero ? 1 : x[i * s->inner];                               \
          sum += g[i * s->inner] * product;                                         \
        }                                                                           \
      if (zero < s->n)                                                              \
        y[zero * s->inner] = sum;                                                   \
    }

static void
gradient_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *s = user_data;
  gint64 i;

  switch (s->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      GRADIENT_OF (float, double)
      break;
    case GTORCH_DTYPE_FLOAT64:
      GRADIENT_OF (double, double)
      break;
    case GTORCH_DTYPE_COMPLEX64:
      GRADIENT_OF (float _Complex, double _Complex)
      break;
    default:
      GRADIENT_OF (double _Complex, double _Complex)
    }
}

static gboolean
run (GTorchOpCall *call, Kind kind, gboolean gradient, GError **error)
{
  GTorchImpl *self = call->inputs[gradient ? 1 : 0];
  Scan s = { .dtype = gtorch_dtype_infos[call->compute].compute, .kind = kind, .inner = 1 };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) g = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gint64 outer;
  guint dim, i;

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  x = gtorch_cpu_pack (self, s.dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (call->outputs[0], s.dtype, error) : NULL;
  if (y == NULL || (gradient && (g = gtorch_cpu_pack (call->inputs[0], s.dtype, error)) == NULL))
    return FALSE;
  s.n = self->n_dims == 0 ? 1 : self->shape[dim];
  for (i = dim + 1; i < self->n_dims; i++)
    s.inner *= self->shape[i];
  outer = self->numel / (s.n * s.inner);
  s.n_tiles = (s.inner + TILE - 1) / TILE;
  s.x = gtorch_impl_data (x);
  s.g = g != NULL ? gtorch_impl_data (g) : NULL;
  s.y = gtorch_impl_data (y);
  if (gradient)
    gtorch_parallel_for (outer * s.inner, 1 + GTORCH_CPU_GRAIN / s.n, gradient_items, &s);
  else
    gtorch_parallel_for (outer * s.n_tiles, 1 + GTORCH_CPU_GRAIN / (s.n * MIN (s.inner, TILE)),
                         scan_items, &s);
  gtorch_cpu_unpack (y, call->outputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_cumsum (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, SUM, FALSE, error);
}

gboolean
gtorch_cpu_cumsum_reverse (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, SUM_REVERSE, FALSE, error);
}

gboolean
gtorch_cpu_cumprod (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, PRODUCT, FALSE, error);
}

gboolean
gtorch_cpu_cumprod_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, PRODUCT, TRUE, error);
}
