/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The negative log likelihood of class indices, with label smoothing, and its gradient. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/gtorch-cpu-pack.h"
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

static gboolean
nll_init (Nll *nll, GTorchOpCall *call, const gint64 *shape, guint n_dims, GError **error)
{
  const gint64 *target;
  gint64 i;

  nll->ignored = call->attrs[call->op->n_attrs - 2].i;
  nll->smoothing = call->attrs[call->op->n_attrs - 1].d;
  nll->n_classes = shape[n_dims > 1 ? 1 : 0];
  nll->inner = 1;
  for (i = 2; i < n_dims; i++)
    nll->inner *= shape[i];
  nll->target = gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error);
  if (nll->target == NULL)
    return FALSE;
  if (call->inputs[2] != NULL)
    {
      nll->weight = gtorch_cpu_pack (call->inputs[2], GTORCH_DTYPE_FLOAT64, error);
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

  if (!nll_init (&nll, call, self->shape, self->n_dims, error))
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

  if (!nll_init (&nll, call, result->shape, result->n_dims, error))
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
