/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The negative log likelihood of class indices and the cross entropy, with label smoothing, and their
 * gradients. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/ops/gtorch-cpu-narrow.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchImpl *target; /* int64, contiguous */
  GTorchImpl *weight; /* float64, contiguous, or NULL */
  gint64 n_classes, inner;
  gint64 ignored;
  gdouble smoothing;
} Nll;

static void
nll_clear (Nll *nll)
{
  g_clear_pointer (&nll->target, gtorch_impl_unref);
  g_clear_pointer (&nll->weight, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Nll, nll_clear)

/* The target is input `first`, followed by the weight; ignore_index is attribute `ignored`, followed by the
 * smoothing. */
static gboolean
nll_init (Nll *nll, GTorchOpCall *call, guint first, guint ignored, const gint64 *shape,
          guint n_dims, GError **error)
{
  const gint64 *target;
  gint64 i;

  nll->ignored = call->attrs[ignored].i;
  nll->smoothing = call->attrs[ignored + 1].d;
  nll->n_classes = shape[n_dims > 1 ? 1 : 0];
  nll->inner = 1;
  for (i = 2; i < n_dims; i++)
    nll->inner *= shape[i];
  nll->target = gtorch_cpu_private_copy (call->inputs[first], GTORCH_DTYPE_INT64, error);
  if (nll->target == NULL)
    return FALSE;
  if (call->inputs[first + 1] != NULL)
    {
      nll->weight = gtorch_cpu_pack (call->inputs[first + 1], GTORCH_DTYPE_FLOAT64, error);
      if (nll->weight == NULL)
        return FALSE;
    }
  target = gtorch_impl_data (nll->target);
  for (i = 0; i < nll->target->numel; i++)
    if (target[i] != nll->ignored && (target[i] < 0 || target[i] >= nll->n_classes))
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                           _ ("target %" PRId64 " is out of range for %" PRId64 " classes"),
                           target[i], nll->n_classes);
        return FALSE;
      }
  return TRUE;
}

static gdouble
class_weight (const Nll *nll, gint64 c)
{
  return nll->weight != NULL ? ((const gdouble *) gtorch_impl_data (nll->weight))[c] : 1;
}

static gdouble
total_weight (const Nll *nll)
{
  const gint64 *target = gtorch_impl_data (nll->target);
  gdouble total = 0;
  gint64 i;

  for (i = 0; i < nll->target->numel; i++)
    if (target[i] != nll->ignored)
      total += class_weight (nll, target[i]);
  return total;
}

#define VALUE(x, dtype, i) \
  ((dtype) == GTORCH_DTYPE_FLOAT32 ? ((const float *) (x))[i] : ((const gdouble *) (x))[i])
#define SET(x, dtype, i, v)            \
  if ((dtype) == GTORCH_DTYPE_FLOAT32) \
    ((float *) (x))[i] = (float) (v);  \
  else                                 \
    ((gdouble *) (x))[i] = (v)

gboolean
gtorch_cpu_nll_loss_smooth (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_auto (Nll) nll = { NULL };
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  gboolean none = call->attrs[0].i == GTORCH_REDUCTION_NONE;
  const gint64 *target;
  gconstpointer x;
  gpointer y;
  gdouble sum = 0;
  gint64 i, c;

  if (!nll_init (&nll, call, 1, 1, self->shape, self->n_dims, error))
    return FALSE;
  input = gtorch_cpu_pack (self, dtype, error);
  output = input != NULL ? gtorch_cpu_pack_output (call->outputs[0], dtype, error) : NULL;
  if (output == NULL)
    return FALSE;
  x = gtorch_impl_data (input);
  y = gtorch_impl_data (output);
  target = gtorch_impl_data (nll.target);
  for (i = 0; i < nll.target->numel; i++)
    {
      gint64 base = i / nll.inner * nll.n_classes * nll.inner + i % nll.inner;
      gdouble loss = 0;

      if (target[i] != nll.ignored)
        {
          loss = -(1 - nll.smoothing) * class_weight (&nll, target[i])
                 * VALUE (x, dtype, base + target[i] * nll.inner);
          if (nll.smoothing > 0)
            for (c = 0; c < nll.n_classes; c++)
              loss -= nll.smoothing / (gdouble) nll.n_classes * class_weight (&nll, c)
                      * VALUE (x, dtype, base + c * nll.inner);
        }
      if (none)
        {
          SET (y, dtype, i, loss);
        }
      else
        sum += loss;
    }
  if (call->attrs[0].i == GTORCH_REDUCTION_MEAN)
    sum /= total_weight (&nll);
  if (!none)
    {
      SET (y, dtype, 0, sum);
    }
  gtorch_cpu_unpack (output, call->outputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_nll_loss_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *result = call->outputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_auto (Nll) nll = { NULL };
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  gboolean none = call->attrs[1].i == GTORCH_REDUCTION_NONE;
  gdouble scale;
  const gint64 *target;
  gconstpointer g;
  gpointer y;
  gint64 i, c;

  if (!nll_init (&nll, call, 1, 2, result->shape, result->n_dims, error))
    return FALSE;
  upper = gtorch_cpu_pack (call->inputs[0], dtype, error);
  output = upper != NULL ? gtorch_cpu_pack_output (result, dtype, error) : NULL;
  if (output == NULL)
    return FALSE;
  g = gtorch_impl_data (upper);
  y = gtorch_impl_data (output);
  target = gtorch_impl_data (nll.target);
  if (output->numel > 0)
    memset (y, 0, gtorch_impl_n_bytes (output));
  scale = call->attrs[1].i == GTORCH_REDUCTION_MEAN ? 1 / total_weight (&nll) : 1;
  for (i = 0; i < nll.target->numel; i++)
    {
      gint64 base = i / nll.inner * nll.n_classes * nll.inner + i % nll.inner;
      gdouble value = -scale * VALUE (g, dtype, none ? i : 0);

      if (target[i] == nll.ignored)
        continue;
      if (nll.smoothing > 0)
        for (c = 0; c < nll.n_classes; c++)
          {
            gdouble v = value * nll.smoothing / (gdouble) nll.n_classes * class_weight (&nll, c);

            SET (y, dtype, base + c * nll.inner, v);
          }
      c = base + target[i] * nll.inner;
      SET (y, dtype, c,
           VALUE (y, dtype, c) + value * (1 - nll.smoothing) * class_weight (&nll, target[i]));
    }
  gtorch_cpu_unpack (output, result);
  return TRUE;
}

/* --- cross entropy --- */

#define GROUP GTORCH_ROWS_TILE /* examples that are processed together */

typedef struct _CrossEntropy CrossEntropy;

struct _CrossEntropy
{
  const Nll *nll;
  void (*process) (const CrossEntropy *c, gint64 first, gint64 n, gint64 at);
  gboolean is_narrow;
  const char *x;
  gdouble *logsumexp;
  gdouble *loss;
  const gdouble *totals;
  gconstpointer upper; /* of the reduced loss, if is_single */
  gboolean is_single;
  gdouble scale;
  char *grad;
  gint64 n_tiles;
  gdouble own, share; /* of the smoothed target: of its class, and of each class */
};

/* Computes the losses of n examples, whose scores begin with element `at`. The dtype is a constant of the
 * callers: this is compiled for each. */
static inline __attribute__ ((always_inline)) void
losses_of (const CrossEntropy *c, guint dtype, gint64 first, gint64 n, gint64 at)
{
  const Nll *nll = c->nll;
  const gint64 *target = (const gint64 *) gtorch_impl_data (nll->target) + first;
  const char *x = c->x + at * (gint64) gtorch_dtype_size (dtype);
  gdouble *loss = c->loss + first, *logsumexp = c->logsumexp + first;
  gdouble max[GROUP], logs[GROUP]; /* elements of dtype */
  gint64 k, i;

  if (nll->inner > 1)
    GTORCH_ROWS_CALL (dtype, log_sum_columns, (gconstpointer) x, (gpointer) max, (gpointer) logs,
                      nll->n_classes, nll->inner, n);
  else if (c->is_narrow)
    GTORCH_ROWS_CALL (dtype, narrow_log_sum, (gconstpointer) x, (gpointer) max, (gpointer) logs, n,
                      nll->n_classes);
  else
    GTORCH_ROWS_CALL (dtype, log_sum_rows, (gconstpointer) x, (gpointer) max, (gpointer) logs, n,
                      nll->n_classes);
  for (k = 0; k < n; k++)
    {
      const gint64 from = nll->inner > 1 ? k : k * nll->n_classes;
      gdouble most, rest, all = 0, total = 0;

      loss[k] = logsumexp[k] = 0;
      if (target[k] == nll->ignored)
        continue;
      most = VALUE (max, dtype, k);
      rest = VALUE (logs, dtype, k);
      logsumexp[k] = most + rest;
      /* the differences first: most + rest may have fewer digits */
      loss[k] = c->own * class_weight (nll, target[k])
                * ((most - VALUE (x, dtype, from + target[k] * nll->inner)) + rest);
      if (c->share == 0)
        continue;
      for (i = 0; i < nll->n_classes; i++)
        {
          const gdouble w = class_weight (nll, i);

          all += w * (most - VALUE (x, dtype, from + i * nll->inner));
          total += w;
        }
      loss[k] += c->share * (all + total * rest);
    }
}

/* Computes the gradient for the scores of n examples. */
static inline __attribute__ ((always_inline)) void
gradients_of (const CrossEntropy *c, guint dtype, gint64 first, gint64 n, gint64 at)
{
  const Nll *nll = c->nll;
  const gint64 *target = (const gint64 *) gtorch_impl_data (nll->target) + first;
  const gint64 start = at * (gint64) gtorch_dtype_size (dtype);
  const char *x = c->x + start;
  char *grad = c->grad + start;
  gdouble shift[GROUP], rest[GROUP], scale[GROUP]; /* elements of dtype */
  gdouble upper[GROUP];
  gint64 k, i;

  for (k = 0; k < n; k++)
    {
      const gdouble all = c->logsumexp[first + k];
      /* in two parts, since one number of dtype may be too short for large scores */
      const gdouble high = dtype == GTORCH_DTYPE_FLOAT32 ? (float) all : all;
      gdouble factor = 0;

      upper[k] = c->scale * VALUE (c->upper, dtype, c->is_single ? 0 : first + k);
      if (target[k] != nll->ignored)
        factor = upper[k] * (c->own * class_weight (nll, target[k]) + c->share * c->totals[1]);
      SET (shift, dtype, k, high);
      SET (rest, dtype, k, all - high);
      SET (scale, dtype, k, factor);
    }
  if (nll->inner > 1)
    GTORCH_ROWS_CALL (dtype, scaled_exp_columns, (gconstpointer) x, (gpointer) grad,
                      (gconstpointer) shift, (gconstpointer) rest, (gconstpointer) scale,
                      nll->n_classes, nll->inner, n);
  else if (c->is_narrow)
    GTORCH_ROWS_CALL (dtype, narrow_scaled_exp, (gconstpointer) x, (gpointer) grad,
                      (gconstpointer) shift, (gconstpointer) rest, (gconstpointer) scale, n,
                      nll->n_classes);
  else
    GTORCH_ROWS_CALL (dtype, scaled_exp_rows, (gconstpointer) x, (gpointer) grad,
                      (gconstpointer) shift, (gconstpointer) rest, (gconstpointer) scale, n,
                      nll->n_classes);
  for (k = 0; k < n; k++)
    {
      const gint64 from = nll->inner > 1 ? k : k * nll->n_classes;
      gint64 to = from + target[k] * nll->inner;

      if (target[k] == nll->ignored)
        continue;
      SET (grad, dtype, to,
           VALUE (grad, dtype, to) - upper[k] * c->own * class_weight (nll, target[k]));
      for (i = 0; c->share != 0 && i < nll->n_classes; i++)
        {
          to = from + i * nll->inner;
          SET (grad, dtype, to,
               VALUE (grad, dtype, to) - upper[k] * c->share * class_weight (nll, i));
        }
    }
}

#define FORMS(dtype, DTYPE)                                                                \
  static void losses_##dtype (const CrossEntropy *c, gint64 first, gint64 n, gint64 at)    \
  {                                                                                        \
    losses_of (c, DTYPE, first, n, at);                                                    \
  }                                                                                        \
  static void gradients_##dtype (const CrossEntropy *c, gint64 first, gint64 n, gint64 at) \
  {                                                                                        \
    gradients_of (c, DTYPE, first, n, at);                                                 \
  }
FORMS (f32, GTORCH_DTYPE_FLOAT32)
FORMS (f64, GTORCH_DTYPE_FLOAT64)

static void
cross_entropy_items (gint64 begin, gint64 end, gpointer user_data)
{
  const CrossEntropy *c = user_data;
  const gint64 inner = c->nll->inner;

  if (inner == 1)
    for (; begin < end; begin += GROUP)
      c->process (c, begin, MIN (GROUP, end - begin), begin * c->nll->n_classes);
  else
    for (; begin < end; begin++)
      {
        const gint64 outer = begin / c->n_tiles, tile = begin % c->n_tiles * GROUP;

        c->process (c, outer * inner + tile, MIN (GROUP, inner - tile),
                    outer * inner * c->nll->n_classes + tile);
      }
}

static void
process_all (CrossEntropy *c)
{
  const Nll *nll = c->nll;
  const gint64 n = nll->target->numel;

  if (n == 0)
    return;
  c->n_tiles = (nll->inner + GROUP - 1) / GROUP;
  c->own = 1 - nll->smoothing;
  c->share = nll->smoothing > 0 ? nll->smoothing / (gdouble) nll->n_classes : 0;
  c->is_narrow = GTORCH_IS_NARROW (n, nll->n_classes);
  gtorch_parallel_for (n / nll->inner * c->n_tiles,
                       1 + GTORCH_CPU_GRAIN / 4 / (nll->n_classes * MIN (nll->inner, GROUP) + 1),
                       cross_entropy_items, c);
}

gboolean
gtorch_cpu_cross_entropy (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  const guint dtype = gtorch_dtype_infos[call->compute].compute;
  const gboolean none = call->attrs[0].i == GTORCH_REDUCTION_NONE;
  gdouble *totals = gtorch_impl_data (call->outputs[2]), sum = 0;
  g_auto (Nll) nll = { NULL };
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  g_autoptr (GTorchImpl) losses = NULL;
  gpointer y;
  CrossEntropy c = { .nll = &nll,
                     .process = dtype == GTORCH_DTYPE_FLOAT32 ? losses_f32 : losses_f64 };
  gint64 i, n;

  if (!nll_init (&nll, call, 1, 1, self->shape, self->n_dims, error))
    return FALSE;
  n = nll.target->numel;
  input = gtorch_cpu_pack (self, dtype, error);
  output = input != NULL ? gtorch_cpu_pack_output (call->outputs[0], dtype, error) : NULL;
  losses = output != NULL
               ? gtorch_impl_new (self->storage->device, GTORCH_DTYPE_FLOAT64, &n, 1, error)
               : NULL;
  if (losses == NULL)
    return FALSE;
  c.x = gtorch_impl_data (input);
  c.loss = gtorch_impl_data (losses);
  c.logsumexp = gtorch_impl_data (call->outputs[1]);
  process_all (&c);
  totals[0] = total_weight (&nll);
  totals[1] = nll.weight == NULL ? (gdouble) nll.n_classes : 0;
  for (i = 0; nll.weight != NULL && i < nll.n_classes; i++)
    totals[1] += class_weight (&nll, i);
  y = gtorch_impl_data (output);
  for (i = 0; i < n; i++)
    if (none)
      {
        SET (y, dtype, i, c.loss[i]);
      }
    else
      sum += c.loss[i];
  if (call->attrs[0].i == GTORCH_REDUCTION_MEAN)
    sum /= totals[0];
  if (!none)
    {
      SET (y, dtype, 0, sum);
    }
  gtorch_cpu_unpack (output, call->outputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_cross_entropy_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[1];
  const guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_auto (Nll) nll = { NULL };
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) logsumexp = NULL;
  g_autoptr (GTorchImpl) totals = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  CrossEntropy c = {
    .nll = &nll,
    .process = dtype == GTORCH_DTYPE_FLOAT32 ? gradients_f32 : gradients_f64,
    .is_single = call->attrs[0].i != GTORCH_REDUCTION_NONE,
    .scale = 1,
  };

  if (!nll_init (&nll, call, 2, 1, self->shape, self->n_dims, error))
    return FALSE;
  if ((upper = gtorch_cpu_pack (call->inputs[0], dtype, error)) == NULL
      || (input = gtorch_cpu_pack (self, dtype, error)) == NULL
      || (logsumexp = gtorch_cpu_pack (call->inputs[4], GTORCH_DTYPE_FLOAT64, error)) == NULL
      || (totals = gtorch_cpu_pack (call->inputs[5], GTORCH_DTYPE_FLOAT64, error)) == NULL
      || (output = gtorch_cpu_pack_output (call->outputs[0], dtype, error)) == NULL)
    return FALSE;
  c.totals = gtorch_impl_data (totals);
  c.upper = gtorch_impl_data (upper);
  c.x = gtorch_impl_data (input);
  c.logsumexp = gtorch_impl_data (logsumexp);
  c.grad = gtorch_impl_data (output);
  if (call->attrs[0].i == GTORCH_REDUCTION_MEAN)
    c.scale = 1 / c.totals[0];
  process_all (&c);
  gtorch_cpu_unpack (output, call->outputs[0]);
  return TRUE;
}
