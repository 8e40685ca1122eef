/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Extremes with their positions, and copying elements to and from positions along a dimension. Every
 * tensor is viewed as [outer, n, inner]. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "cpu/ops/gtorch-cpu-select.h"
#include "gtorch-ops-private.h"

#define TILE 64

typedef struct
{
  guint dtype;
  gboolean least;
  const GTorchReduceLoop *loop;
  const char *x;
  char *values; /* may be NULL */
  gint64 *indices;
  gint64 n, inner, n_tiles;
} Extreme;

/* The elements of a row per block: the loop of amax or amin finds the extreme of each block, then the block
 * with the extreme of the row is searched for its position. */
#define BLOCK 1024

#define ROWS_OF(T, suffix, BETTER)                                                           \
  {                                                                                          \
    const T *x = (const T *) e->x + begin * e->n;                                            \
    for (; begin < end; begin++, x += e->n)                                                  \
      {                                                                                      \
        T best = x[0], of_block;                                                             \
        gint64 where = 0;                                                                    \
        for (i = 0; i < e->n && best == best; i += BLOCK)                                    \
          {                                                                                  \
            e->loop->inner (x + i, MIN (BLOCK, e->n - i), &of_block);                        \
            if (i == 0 || of_block BETTER best || of_block != of_block)                      \
              {                                                                              \
                best = of_block;                                                             \
                where = i;                                                                   \
              }                                                                              \
          }                                                                                  \
        if (e->values != NULL)                                                               \
          ((T *) e->values)[begin] = best;                                                   \
        e->indices[begin] =                                                                  \
            where + GTORCH_ISA_CALL (gtorch_find_##suffix) (x + where, e->n - where, &best); \
      }                                                                                      \
  }

#define COLUMNS_OF(T, BETTER)                                                                  \
  for (; begin < end; begin++)                                                                 \
    {                                                                                          \
      gint64 outer = begin / e->n_tiles, first = begin % e->n_tiles * TILE;                    \
      gint64 width = MIN (TILE, e->inner - first);                                             \
      const T *x = (const T *) e->x + outer * e->n * e->inner + first;                         \
      T best[TILE];                                                                            \
      gint64 at[TILE];                                                                         \
      for (j = 0; j < width; j++)                                                              \
        {                                                                                      \
          best[j] = x[j];                                                                      \
          at[j] = 0;                                                                           \
        }                                                                                      \
      for (i = 1, x += e->inner; i < e->n; i++, x += e->inner)                                 \
        for (j = 0; j < width; j++)                                                            \
          {                                                                                    \
            gboolean better = (x[j] BETTER best[j]) | ((x[j] != x[j]) & (best[j] == best[j])); \
            best[j] = better ? x[j] : best[j];                                                 \
            at[j] = better ? i : at[j];                                                        \
          }                                                                                    \
      for (j = 0; j < width; j++)                                                              \
        {                                                                                      \
          if (e->values != NULL)                                                               \
            ((T *) e->values)[outer * e->inner + first + j] = best[j];                         \
          e->indices[outer * e->inner + first + j] = at[j];                                    \
        }                                                                                      \
    }

#define ITEMS_OF(T, suffix)      \
  {                              \
    if (e->inner == 1)           \
      {                          \
        if (e->least)            \
          ROWS_OF (T, suffix, <) \
        else                     \
          ROWS_OF (T, suffix, >) \
      }                          \
    else if (e->least)           \
      COLUMNS_OF (T, <)          \
    else                         \
      COLUMNS_OF (T, >)          \
  }

static void
extreme_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Extreme *e = user_data;
  gint64 i, j;

  switch (e->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      ITEMS_OF (float, f32)
      break;
    case GTORCH_DTYPE_FLOAT64:
      ITEMS_OF (double, f64)
      break;
    case GTORCH_DTYPE_INT32:
      ITEMS_OF (gint32, i32)
      break;
    case GTORCH_DTYPE_INT64:
      ITEMS_OF (gint64, i64)
      break;
    default:
      ITEMS_OF (guint8, u8)
    }
}

/* Finds the extremes of x along dim, or of all elements if dim is negative. */
static gboolean
extreme (GTorchOpCall *call, gint dim, GTorchImpl *values, GTorchImpl *indices, gboolean least,
         GError **error)
{
  GTorchImpl *self = call->inputs[0];
  Extreme e = { .dtype = gtorch_dtype_infos[self->dtype].compute, .least = least, .inner = 1 };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gint64 outer;
  guint i;

  if (indices->numel == 0)
    return TRUE;
  x = gtorch_cpu_pack (self, e.dtype, error);
  if (x == NULL)
    return FALSE;
  if (values != NULL && (y = gtorch_cpu_pack_output (values, e.dtype, error)) == NULL)
    return FALSE;
  e.n = dim < 0 ? self->numel : (self->n_dims == 0 ? 1 : self->shape[dim]);
  for (i = dim + 1; dim >= 0 && i < self->n_dims; i++)
    e.inner *= self->shape[i];
  outer = self->numel / (e.n * e.inner);
  e.n_tiles = (e.inner + TILE - 1) / TILE;
  e.loop = gtorch_cpu_reduce_loop (&gtorch_ops[least ? GTORCH_OP_AMIN : GTORCH_OP_AMAX], e.dtype);
  e.x = gtorch_impl_data (x);
  e.values = y != NULL ? gtorch_impl_data (y) : NULL;
  e.indices = gtorch_impl_data (indices);
  gtorch_parallel_for (outer * e.n_tiles, 1 + GTORCH_CPU_GRAIN / (e.n * MIN (e.inner, TILE)),
                       extreme_items, &e);
  if (values != NULL)
    gtorch_cpu_unpack (y, values);
  return TRUE;
}

static gboolean
with_values (GTorchOpCall *call, gboolean least, GError **error)
{
  guint dim;

  return gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->inputs[0]->n_dims, &dim,
                               error)
         && extreme (call, dim, call->outputs[0], call->outputs[1], least, error);
}

static gboolean
only_where (GTorchOpCall *call, gboolean least, GError **error)
{
  guint dim;

  if (call->attrs[0].list.n == 0)
    return extreme (call, -1, NULL, call->outputs[0], least, error);
  return gtorch_normalize_dim (call->op->name, call->attrs[0].list.data[0], call->inputs[0]->n_dims,
                               &dim, error)
         && extreme (call, dim, NULL, call->outputs[0], least, error);
}

gboolean
gtorch_cpu_max_dim (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return with_values (call, FALSE, error);
}

gboolean
gtorch_cpu_min_dim (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return with_values (call, TRUE, error);
}

gboolean
gtorch_cpu_argmax (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return only_where (call, FALSE, error);
}

gboolean
gtorch_cpu_argmin (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return only_where (call, TRUE, error);
}

/* --- elements at positions --- */

static gboolean
move (GTorchOpCall *call, GTorchImpl *big, gboolean place, gint64 raw_dim, GError **error)
{
  GTorchImpl *output = call->outputs[0], *index_impl = call->inputs[1];
  gsize size = gtorch_dtype_size (output->dtype);
  g_autoptr (GTorchImpl) x = gtorch_cpu_pack (call->inputs[0], output->dtype, error);
  g_autoptr (GTorchImpl) index =
      x != NULL ? gtorch_cpu_pack (index_impl, GTORCH_DTYPE_INT64, error) : NULL;
  gint64 inner = 1, n, i;
  const gint64 *at;
  guint dim;

  if (index == NULL || !gtorch_normalize_dim (call->op->name, raw_dim, big->n_dims, &dim, error))
    return FALSE;
  if (place)
    memset (gtorch_impl_data (output), 0, gtorch_impl_n_bytes (output));
  n = big->n_dims == 0 ? 1 : big->shape[dim];
  for (i = dim + 1; i < big->n_dims; i++)
    inner *= big->shape[i];
  at = gtorch_impl_data (index);
  for (i = 0; i < index->numel; i++)
    {
      gint64 far = (i / inner * n + at[i]) * inner + i % inner;
      gint64 from = place ? i : far, to = place ? far : i;

      if (at[i] < 0 || at[i] >= n)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                             _ ("index %" PRId64 " is out of range for %" PRId64 " elements"),
                             at[i], n);
          return FALSE;
        }
      memcpy ((char *) gtorch_impl_data (output) + to * (gint64) size,
              (const char *) gtorch_impl_data (x) + from * (gint64) size, size);
    }
  return TRUE;
}

gboolean
gtorch_cpu_place_at (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return move (call, call->outputs[0], TRUE, call->attrs[1].i, error);
}

gboolean
gtorch_cpu_take_at (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return move (call, call->inputs[0], FALSE, call->attrs[0].i, error);
}
