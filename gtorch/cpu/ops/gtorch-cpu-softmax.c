/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "cpu/ops/gtorch-cpu-narrow.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef struct
{
  guint dtype;
  gsize size;
  gboolean log_form, narrow;
  const char *g, *x; /* g is only for gradients */
  char *y;
  gint64 n, inner, n_tiles;
} Softmax;

static void
softmax_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Softmax *s = user_data;

  if (s->inner == 1)
    {
      gint64 offset = begin * s->n * (gint64) s->size;

      if (s->g == NULL && s->narrow)
        GTORCH_ROWS_CALL (s->dtype, narrow_softmax, (gconstpointer) (s->x + offset),
                          (gpointer) (s->y + offset), end - begin, s->n, s->log_form);
      else if (s->narrow)
        GTORCH_ROWS_CALL (s->dtype, narrow_softmax_grad, (gconstpointer) (s->g + offset),
                          (gconstpointer) (s->x + offset), (gpointer) (s->y + offset), end - begin,
                          s->n, s->log_form);
      else if (s->g == NULL)
        GTORCH_ROWS_CALL (s->dtype, softmax_rows, (gconstpointer) (s->x + offset),
                          (gpointer) (s->y + offset), end - begin, s->n, s->log_form);
      else
        GTORCH_ROWS_CALL (s->dtype, softmax_grad_rows, (gconstpointer) (s->g + offset),
                          (gconstpointer) (s->x + offset), (gpointer) (s->y + offset), end - begin,
                          s->n, s->log_form);
      return;
    }
  for (; begin < end; begin++)
    {
      gint64 tile = begin % s->n_tiles * GTORCH_ROWS_TILE;
      gint64 offset = (begin / s->n_tiles * s->n * s->inner + tile) * (gint64) s->size;
      gint64 width = MIN (GTORCH_ROWS_TILE, s->inner - tile);

      if (s->g == NULL)
        GTORCH_ROWS_CALL (s->dtype, softmax_columns, (gconstpointer) (s->x + offset),
                          (gpointer) (s->y + offset), s->n, s->inner, width, s->log_form);
      else
        GTORCH_ROWS_CALL (s->dtype, softmax_grad_columns, (gconstpointer) (s->g + offset),
                          (gconstpointer) (s->x + offset), (gpointer) (s->y + offset), s->n,
                          s->inner, width, s->log_form);
    }
}

static gboolean
run_softmax (GTorchOpCall *call, GTorchImpl *grad, GTorchImpl *self, gint64 raw_dim,
             gboolean log_form, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) g = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  Softmax s = {
    .dtype = dtype, .size = gtorch_dtype_size (dtype), .log_form = log_form, .n = 1, .inner = 1
  };
  gint64 outer;
  guint dim, i;

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, raw_dim, self->n_dims, &dim, error))
    return FALSE;
  x = gtorch_cpu_pack (self, dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (call->outputs[0], dtype, error) : NULL;
  if (y == NULL || (grad != NULL && (g = gtorch_cpu_pack (grad, dtype, error)) == NULL))
    return FALSE;
  if (self->n_dims > 0)
    s.n = self->shape[dim];
  for (i = dim + 1; i < self->n_dims; i++)
    s.inner *= self->shape[i];
  outer = self->numel / (s.n * s.inner);
  s.narrow = GTORCH_IS_NARROW (outer, s.n);
  s.n_tiles = (s.inner + GTORCH_ROWS_TILE - 1) / GTORCH_ROWS_TILE;
  s.x = gtorch_impl_data (x);
  s.y = gtorch_impl_data (y);
  s.g = g != NULL ? gtorch_impl_data (g) : NULL;
  gtorch_parallel_for (outer * s.n_tiles,
                       1 + GTORCH_CPU_GRAIN / 4 / (s.n * MIN (s.inner, GTORCH_ROWS_TILE)),
                       softmax_items, &s);
  gtorch_cpu_unpack (y, call->outputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_softmax (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run_softmax (call, NULL, call->inputs[0], call->attrs[0].i, FALSE, error);
}

gboolean
gtorch_cpu_log_softmax (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run_softmax (call, NULL, call->inputs[0], call->attrs[0].i, TRUE, error);
}

gboolean
gtorch_cpu_softmax_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run_softmax (call, call->inputs[0], call->inputs[1], call->attrs[0].i, FALSE, error);
}

gboolean
gtorch_cpu_log_softmax_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run_softmax (call, call->inputs[0], call->inputs[1], call->attrs[0].i, TRUE, error);
}

/* --- logsumexp --- */

typedef struct
{
  guint dtype;
  gsize size;
  const char *x;
  char *y;
  gint64 n;
} LogSumExp;

static void
logsumexp_items (gint64 begin, gint64 end, gpointer user_data)
{
  const LogSumExp *l = user_data;

  GTORCH_ROWS_CALL (l->dtype, logsumexp_rows,
                    (gconstpointer) (l->x + begin * l->n * (gint64) l->size),
                    (gpointer) (l->y + begin * (gint64) l->size), end - begin, l->n);
}

gboolean
gtorch_cpu_logsumexp (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  LogSumExp l = { .dtype = dtype, .size = gtorch_dtype_size (dtype) };
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
  l.x = gtorch_impl_data (x);
  l.y = gtorch_impl_data (y);
  l.n = x->numel / output->numel;
  gtorch_parallel_for (output->numel, 1 + GTORCH_CPU_GRAIN / 4 / (l.n + 1), logsumexp_items, &l);
  gtorch_cpu_unpack (y, output);
  return TRUE;
}
