/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The recurrence e[0] = start, e[k] = x[k - 1] + f[k - 1] e[k - 1] along a dimension of [outer, n,
 * inner], or the same from the end to the beginning. */

#include "config.h"

#include <complex.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-rows-private.h"

typedef struct
{
  guint dtype;
  gboolean reverse;
  gdouble start;
  gconstpointer x, f;
  gpointer y;
  gint64 n, inner;
} Scan;

#define SCAN_OF(T)                                                       \
  for (; begin < end; begin++)                                           \
    {                                                                    \
      const gint64 hop = s->reverse ? -s->inner : s->inner;              \
      gint64 at = begin / s->inner * s->n * s->inner + begin % s->inner; \
      const T *x = s->x, *f = s->f;                                      \
      T *y = s->y, e = s->start;                                         \
      at += s->reverse ? (s->n - 1) * s->inner : 0;                      \
      for (i = 0; i < s->n; i++, at += hop)                              \
        {                                                                \
          y[at] = e;                                                     \
          e = x[at] + f[at] * e;                                         \
        }                                                                \
    }

static void
scan_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *s = user_data;
  gint64 i;

  switch (s->dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      SCAN_OF (float)
      break;
    case GTORCH_DTYPE_FLOAT64:
      SCAN_OF (double)
      break;
    case GTORCH_DTYPE_COMPLEX64:
      SCAN_OF (float _Complex)
      break;
    default:
      SCAN_OF (double _Complex)
    }
}

gboolean
gtorch_cpu_recurrence (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Scan s = { .dtype = gtorch_dtype_infos[call->compute].compute,
             .start = call->attrs[1].d,
             .reverse = call->attrs[2].i != 0 };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) f = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GTorchRows rows;
  guint dim;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  x = gtorch_cpu_pack (call->inputs[0], s.dtype, error);
  f = x != NULL ? gtorch_cpu_pack (call->inputs[1], s.dtype, error) : NULL;
  y = f != NULL ? gtorch_cpu_pack_output (call->outputs[0], s.dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->inputs[0]->n_dims, &dim, NULL);
  rows = gtorch_rows_along (call->inputs[0]->shape, call->inputs[0]->n_dims, dim);
  s.n = rows.n;
  s.inner = rows.inner;
  s.x = gtorch_impl_data (x);
  s.f = gtorch_impl_data (f);
  s.y = gtorch_impl_data (y);
  gtorch_parallel_for (y->numel / s.n, 1 + GTORCH_CPU_GRAIN / s.n, scan_items, &s);
  gtorch_cpu_unpack (y, call->outputs[0]);
  return TRUE;
}
