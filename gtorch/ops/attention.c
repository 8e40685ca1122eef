/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The fused operation of attention, softmax (q k' scale + mask) v, and its gradient. Attention that a device
 * does not support is composed of matmul and softmax. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-attention-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_attention_mask_fits (const GTorchImpl *mask, const GTorchImpl *q, const GTorchImpl *k)
{
  guint n = q->n_dims, i;

  if (mask->n_dims > n)
    return FALSE;
  for (i = 0; i < mask->n_dims; i++)
    {
      gint64 size = mask->shape[mask->n_dims - 1 - i];

      if (size != 1 && size != (i == 0 ? k->shape[n - 2] : q->shape[n - 1 - i]))
        return FALSE;
    }
  return TRUE;
}

static gboolean
check_operands (GTorchOpCall *call, guint first, const GTorchImpl *mask, GError **error)
{
  const GTorchImpl *q = call->inputs[first], *k = call->inputs[first + 1];
  const GTorchImpl *v = call->inputs[first + 2];
  guint n = q->n_dims, i;
  gboolean fits = n >= 2 && k->n_dims == n && v->n_dims == n;

  for (i = 0; fits && i + 2 < n; i++)
    fits = k->shape[i] == v->shape[i]
           && (q->shape[i] == k->shape[i]
               || (i + 3 == n && q->shape[i] > 0 && k->shape[i] > 0
                   && q->shape[i] % k->shape[i] == 0));
  if (!fits || q->shape[n - 1] != k->shape[n - 1] || k->shape[n - 2] != v->shape[n - 2])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("query %s, key %s, value %s: they must be [..., L, E], [..., S, E] and "
                            "[..., S, Ev]"),
                         gtorch_impl_shape_str (q), gtorch_impl_shape_str (k),
                         gtorch_impl_shape_str (v));
      return FALSE;
    }
  call->compute = q->dtype;
  if (k->dtype != q->dtype || v->dtype != q->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("query, key and value have dtypes %s, %s and %s: they must be the "
                            "same"),
                         gtorch_dtype_get_name (q->dtype), gtorch_dtype_get_name (k->dtype),
                         gtorch_dtype_get_name (v->dtype));
      return FALSE;
    }
  if (!gtorch_call_check_dtype (call, q->dtype, error))
    return FALSE;
  if (mask == NULL)
    return TRUE;
  if (!gtorch_attention_mask_fits (mask, q, k))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the mask %s cannot be broadcast to the products of query %s and key "
                            "%s"),
                         gtorch_impl_shape_str (mask), gtorch_impl_shape_str (q),
                         gtorch_impl_shape_str (k));
      return FALSE;
    }
  if (mask->dtype != GTORCH_DTYPE_BOOL && mask->dtype != GTORCH_DTYPE_FLOAT32
      && mask->dtype != q->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("the mask has dtype %s: it must be bool, float32 or the query's %s"),
                         gtorch_dtype_get_name (mask->dtype), gtorch_dtype_get_name (q->dtype));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_shape_attention (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *q = call->inputs[0], *v = call->inputs[2];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n = q->n_dims;

  if (!check_operands (call, 0, call->inputs[3], error))
    return FALSE;
  memcpy (shape, q->shape, n * sizeof (gint64));
  shape[n - 1] = v->shape[n - 1];
  return gtorch_shape_check (call->op->name, shape, n, q->dtype, error)
         && gtorch_call_set_output (call, 0, q->dtype, shape, n, error)
         && gtorch_call_set_output (call, 1, gtorch_dtype_infos[q->dtype].compute, shape, n - 1,
                                    error);
}

gboolean
gtorch_shape_attention_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *upper = call->inputs[0], *output = call->inputs[4], *stats = call->inputs[5];
  guint n = call->inputs[1]->n_dims, i;

  if (!check_operands (call, 1, call->inputs[6], error))
    return FALSE;
  if (upper->n_dims != n || stats->n_dims != n - 1 || upper->dtype != call->compute
      || memcmp (upper->shape, call->inputs[1]->shape, (n - 1) * sizeof (gint64)) != 0
      || upper->shape[n - 1] != call->inputs[3]->shape[n - 1]
      || !gtorch_impl_same_shape (upper, output)
      || memcmp (stats->shape, upper->shape, (n - 1) * sizeof (gint64)) != 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient %s, the output %s and the statistics %s do not belong to "
                            "query %s"),
                         gtorch_impl_shape_str (upper), gtorch_impl_shape_str (output),
                         gtorch_impl_shape_str (stats), gtorch_impl_shape_str (call->inputs[1]));
      return FALSE;
    }
  for (i = 0; i < 3; i++)
    if (!gtorch_call_set_output (call, i, call->compute, call->inputs[1 + i]->shape, n, error))
      return FALSE;
  return TRUE;
}
