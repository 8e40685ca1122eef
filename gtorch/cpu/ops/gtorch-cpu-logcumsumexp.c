/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums of exponentials, as logarithms, along a dimension of [outer, n, inner], and the sums for
 * their derivatives: sums of exp (x[i] - total[j]) times a number, over all j from i on (gradient) or over
 * all i up to j (tangent). No factor is greater than 1: the running sum is rescaled to each new total. */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

#define TILE 64

typedef struct
{
  guint dtype;
  gboolean reverse;
  gconstpointer v, x, total;
  gpointer y;
  gint64 n, inner, n_tiles;
} Scan;

/* Returns the offset at which the scan of a tile of columns begins, and the tile's width. */
static gint64
find_tile (const Scan *s, gint64 tile, gint64 *width)
{
  gint64 first = tile % s->n_tiles * TILE;

  *width = MIN (TILE, s->inner - first);
  return (tile / s->n_tiles * s->n + (s->reverse ? s->n - 1 : 0)) * s->inner + first;
}

#define SUM_OF(T)                                                             \
  for (; begin < end; begin++)                                                \
    {                                                                         \
      gint64 offset = find_tile (s, begin, &width);                           \
      const T *x = (const T *) s->x + offset;                                 \
      T *y = (T *) s->y + offset, most[TILE];                                 \
      gdouble sum[TILE];                                                      \
      for (j = 0; j < width; j++)                                             \
        {                                                                     \
          most[j] = -INFINITY;                                                \
          sum[j] = 0;                                                         \
        }                                                                     \
      for (i = 0; i < s->n; i++, x += s->inner, y += s->inner)                \
        for (j = 0; j < width; j++)                                           \
          {                                                                   \
            if (x[j] > most[j])                                               \
              {                                                               \
                sum[j] = sum[j] * exp ((gdouble) most[j] - x[j]) + 1;         \
                most[j] = x[j];                                               \
              }                                                               \
            else /* equal operands may be infinite */                         \
              sum[j] += x[j] == most[j] ? 1 : exp ((gdouble) x[j] - most[j]); \
            y[j] = most[j] + log (sum[j]);                                    \
          }                                                                   \
    }

static void
sum_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *s = user_data;
  gint64 i, j, width;

  if (s->dtype == GTORCH_DTYPE_FLOAT64)
    SUM_OF (gdouble)
  else
    SUM_OF (gfloat)
}

/* An x of -INFINITY has no part in any sum, even if all elements of the sum are -INFINITY. */
#define WEIGHT(x, total) ((x) == -INFINITY ? 0 : exp ((x) - (total)))

#define DECAY_OF(T)                                                                   \
  for (; begin < end; begin++)                                                        \
    {                                                                                 \
      gint64 offset = find_tile (s, begin, &width);                                   \
      gint64 hop = s->reverse ? -s->inner : s->inner;                                 \
      const T *x = (const T *) s->x + offset, *v = (const T *) s->v + offset;         \
      const T *total = (const T *) s->total + offset;                                 \
      T *y = (T *) s->y + offset, scale[TILE];                                        \
      gdouble sum[TILE] = { 0 };                                                      \
      for (j = 0; j < width; j++)                                                     \
        scale[j] = total[j];                                                          \
      for (i = 0; i < s->n; i++, x += hop, y += hop, v += hop, total += hop)          \
        for (j = 0; j < width; j++)                                                   \
          {                                                                           \
            T weight = WEIGHT (x[j], total[j]);                                       \
            if (total[j] != scale[j])                                                 \
              sum[j] *= exp (s->reverse ? total[j] - scale[j] : scale[j] - total[j]); \
            sum[j] += s->reverse ? v[j] : weight * v[j];                              \
            y[j] = s->reverse ? weight * sum[j] : sum[j];                             \
            scale[j] = total[j];                                                      \
          }                                                                           \
    }

static void
decay_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *s = user_data;
  gint64 i, j, width;

  if (s->dtype == GTORCH_DTYPE_FLOAT64)
    DECAY_OF (gdouble)
  else
    DECAY_OF (gfloat)
}

/* Runs a scan: of the single input, or, with decay, of the inputs v, x and total. */
static gboolean
run (GTorchOpCall *call, gboolean decay, gboolean reverse, GError **error)
{
  GTorchImpl *self = call->inputs[decay ? 1 : 0];
  Scan s = { .dtype = gtorch_dtype_infos[call->compute].compute, .reverse = reverse, .inner = 1 };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) v = NULL;
  g_autoptr (GTorchImpl) total = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  guint dim, i;

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  x = gtorch_cpu_pack (self, s.dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (call->outputs[0], s.dtype, error) : NULL;
  if (y == NULL
      || (decay
          && ((v = gtorch_cpu_pack (call->inputs[0], s.dtype, error)) == NULL
              || (total = gtorch_cpu_pack (call->inputs[2], s.dtype, error)) == NULL)))
    return FALSE;
  s.n = self->n_dims == 0 ? 1 : self->shape[dim];
  for (i = dim + 1; i < self->n_dims; i++)
    s.inner *= self->shape[i];
  s.n_tiles = (s.inner + TILE - 1) / TILE;
  s.x = gtorch_impl_data (x);
  s.y = gtorch_impl_data (y);
  if (decay)
    {
      s.v = gtorch_impl_data (v);
      s.total = gtorch_impl_data (total);
    }
  gtorch_parallel_for (self->numel / (s.n * s.inner) * s.n_tiles,
                       1 + GTORCH_CPU_GRAIN / 8 / (s.n * MIN (s.inner, TILE)),
                       decay ? decay_items : sum_items, &s);
  gtorch_cpu_unpack (y, call->outputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_logcumsumexp (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FALSE, FALSE, error);
}

gboolean
gtorch_cpu_logcumsumexp_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, TRUE, error);
}

gboolean
gtorch_cpu_logcumsumexp_tangent (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, FALSE, error);
}
