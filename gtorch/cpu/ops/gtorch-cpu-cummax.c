/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The greatest or least element so far, with its position, along a dimension of [outer, n, inner]. */

#include "config.h"

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

typedef struct
{
  guint dtype;
  gboolean least;
  gconstpointer x;
  gpointer y;
  gint64 *index;
  gint64 n, inner;
} Scan;

/* Of equal elements the last one counts; after a NaN the result stays NaN. */
#define SCAN_OF(T)                                                                      \
  for (; begin < end; begin++)                                                          \
    {                                                                                   \
      gint64 offset = begin / s->inner * s->n * s->inner + begin % s->inner, i, at = 0; \
      const T *x = (const T *) s->x + offset;                                           \
      T *y = (T *) s->y + offset, best = *x;                                            \
      for (i = 0; i < s->n; i++, x += s->inner, y += s->inner)                          \
        {                                                                               \
          if (*x != *x || (best == best && (s->least ? *x <= best : *x >= best)))       \
            {                                                                           \
              best = *x;                                                                \
              at = i;                                                                   \
            }                                                                           \
          *y = best;                                                                    \
          s->index[offset + i * s->inner] = at;                                         \
        }                                                                               \
    }                                                                                   \
  break;

static void
scan_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *s = user_data;

  switch (s->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      SCAN_OF (float)
    case GTORCH_DTYPE_FLOAT64:
      SCAN_OF (double)
    default:
      SCAN_OF (gint64)
    }
}

static gboolean
run (GTorchOpCall *call, gboolean least, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint compute = gtorch_dtype_infos[self->dtype].compute;
  Scan s = { .dtype = compute, .least = least, .inner = 1 };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  guint dim, i;

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (compute != GTORCH_DTYPE_FLOAT32 && compute != GTORCH_DTYPE_FLOAT64)
    s.dtype = GTORCH_DTYPE_INT64;
  x = gtorch_cpu_pack (self, s.dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (call->outputs[0], s.dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  s.n = self->n_dims == 0 ? 1 : self->shape[dim];
  for (i = dim + 1; i < self->n_dims; i++)
    s.inner *= self->shape[i];
  s.x = gtorch_impl_data (x);
  s.y = gtorch_impl_data (y);
  s.index = gtorch_impl_data (call->outputs[1]);
  gtorch_parallel_for (self->numel / s.n, 1 + GTORCH_CPU_GRAIN / s.n, scan_items, &s);
  gtorch_cpu_unpack (y, call->outputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_cummax (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FALSE, error);
}

gboolean
gtorch_cpu_cummin (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, error);
}
