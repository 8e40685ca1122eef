/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef struct
{
  guint dtype;
  gsize size;
  const char *x;
  char *y;
  gint64 n;
  gdouble divisor;
  gboolean root;
} Moments;

#define FINISH(T)                                    \
  {                                                  \
    T *y = (T *) m->y;                               \
    for (; begin < end; begin++)                     \
      {                                              \
        gdouble v = (gdouble) y[begin] / m->divisor; \
        y[begin] = (T) (m->root ? sqrt (v) : v);     \
      }                                              \
  }

static void
moments_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Moments *m = user_data;

  GTORCH_ROWS_CALL (m->dtype, moments_rows,
                    (gconstpointer) (m->x + begin * m->n * (gint64) m->size),
                    (gpointer) (m->y + begin * (gint64) m->size), NULL, end - begin, m->n);
  if (m->dtype == GTORCH_DTYPE_FLOAT32)
    FINISH (float)
  else
    FINISH (double)
}

static gboolean
run (GTorchOpCall *call, gboolean root, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  Moments m = { .dtype = dtype, .size = gtorch_dtype_size (dtype), .root = root };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gboolean keepdim;
  guint64 mask;
  guint ignored;

  if (output->numel == 0)
    return TRUE;
  if (!gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error))
    return FALSE;
  x = gtorch_cpu_pack_rows (call->inputs[0], mask, dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  m.x = gtorch_impl_data (x);
  m.y = gtorch_impl_data (y);
  m.n = x->numel / output->numel;
  m.divisor = MAX (0, (gdouble) m.n - call->attrs[1].d);
  gtorch_parallel_for (output->numel, 1 + GTORCH_CPU_GRAIN / (m.n + 1), moments_items, &m);
  gtorch_cpu_unpack (y, output);
  return TRUE;
}

gboolean
gtorch_cpu_var (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FALSE, error);
}

gboolean
gtorch_cpu_std (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, error);
}
