/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The negative log likelihood of class indices, with label smoothing, and its gradient:
 *
 *   loss = - (1 - s) w[t] x[t] - s / C * sum over c of w[c] x[c]
 */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

static gboolean
check (GTorchOpCall *call, const gint64 *shape, guint n_dims, GError **error)
{
  const GTorchImpl *target = call->inputs[1], *weight = call->inputs[2];
  guint class_dim = n_dims > 1 ? 1 : 0, i;
  gboolean fits = n_dims > 0 && target->n_dims == n_dims - 1;

  for (i = 0; fits && i < target->n_dims; i++)
    fits = target->shape[i] == shape[i < class_dim ? i : i + 1];
  if (!fits)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the target's shape %s must be the input's, %s, without its dimension "
                            "of "
                            "classes, dim %u"),
                         gtorch_impl_shape_str (target), gtorch_shape_str (shape, n_dims),
                         class_dim);
      return FALSE;
    }
  if (gtorch_dtype_kind (target->dtype) != GTORCH_KIND_INT)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("the target holds class indices: its dtype must be an integer, it is "
                            "%s"),
                         gtorch_dtype_get_name (target->dtype));
      return FALSE;
    }
  if (weight != NULL && (weight->n_dims != 1 || weight->shape[0] != shape[class_dim]))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the weight %s must have one element for each class of %s"),
                         gtorch_impl_shape_str (weight), gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  call->compute = call->inputs[0]->dtype;
  return gtorch_call_check_dtype (call, call->compute, error);
}

gboolean
gtorch_shape_nll_loss_smooth (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0], *target = call->inputs[1];
  gboolean none = call->attrs[0].i == GTORCH_REDUCTION_NONE;

  if ((guint64) call->attrs[0].i > GTORCH_REDUCTION_SUM)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%d is no reduction"),
                         (gint) call->attrs[0].i);
      return FALSE;
    }
  return check (call, self->shape, self->n_dims, error)
         && gtorch_call_set_output (call, 0, self->dtype, target->shape, none ? target->n_dims : 0,
                                    error);
}

gboolean
gtorch_shape_nll_loss_backward (GTorchOpCall *call, GError **error)
{
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;

  return gtorch_shape_check (call->op->name, shape, n_dims, call->inputs[0]->dtype, error)
         && check (call, shape, n_dims, error)
         && gtorch_call_set_output (call, 0, call->inputs[0]->dtype, shape, n_dims, error);
}

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
                           _ ("target %" G_GINT64_FORMAT " is out of range for %" G_GINT64_FORMAT
                              " classes"),
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
