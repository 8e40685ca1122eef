/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* sort, topk and kthvalue. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-ops-private.h"

static gboolean
two_outputs (GTorchOpCall *call, const gint64 *shape, guint n_dims, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, n_dims, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT64, shape, n_dims, error);
}

gboolean
gtorch_shape_sort (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint dim;

  return gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
         && two_outputs (call, self->shape, self->n_dims, error);
}

static gboolean
check_k (GTorchOpCall *call, gint64 least, guint *dim, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 size;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[1].i, self->n_dims, dim, error))
    return FALSE;
  size = self->n_dims > 0 ? self->shape[*dim] : 1;
  if (call->attrs[0].i >= least && call->attrs[0].i <= size)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                     _ ("k is %" PRId64 ", but dimension %u of shape %s allows from %" PRId64
                        " to %" PRId64),
                     call->attrs[0].i, *dim, gtorch_impl_shape_str (self), least, size);
  return FALSE;
}

gboolean
gtorch_shape_topk (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim;

  if (!check_k (call, 0, &dim, error))
    return FALSE;
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[dim] = call->attrs[0].i;
  return two_outputs (call, shape, self->n_dims, error);
}

gboolean
gtorch_shape_kthvalue (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim, i, n = 0;

  if (!check_k (call, 1, &dim, error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (i != dim)
      shape[n++] = self->shape[i];
    else if (call->attrs[2].i)
      shape[n++] = 1;
  return two_outputs (call, shape, n, error);
}

gboolean
gtorch_shape_nan_middle (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim, i, n = 0;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (i != dim)
      shape[n++] = self->shape[i];
    else if (call->attrs[1].i)
      shape[n++] = 1;
  return two_outputs (call, shape, n, error);
}

gboolean
gtorch_grad_kthvalue (GTorchGradContext *context, GError **error)
{
  const GTorchMeta *self = &context->input_metas[0];
  GTorchImpl *grad = context->grads[0], *indices = context->outputs[1];
  g_autoptr (GTorchImpl) zeros = NULL;
  g_autoptr (GTorchImpl) wide_grad = NULL;
  g_autoptr (GTorchImpl) wide_indices = NULL;
  gint64 dim = context->attrs[1].i;

  if (grad == NULL)
    return TRUE;
  zeros = gtorch_op_new_zeros (grad, self->shape, self->n_dims, GTORCH_DTYPE_NONE, error);
  if (zeros == NULL)
    return FALSE;
  if (context->attrs[2].i || self->n_dims == 0)
    {
      wide_grad = gtorch_impl_ref (grad);
      wide_indices = gtorch_impl_ref (indices);
    }
  else
    {
      wide_grad = gtorch_op_unsqueeze (grad, dim, error);
      wide_indices = wide_grad != NULL ? gtorch_op_unsqueeze (indices, dim, error) : NULL;
    }
  if (wide_indices != NULL)
    context->result[0] = gtorch_op_scatter (zeros, dim, wide_indices, wide_grad, error);
  return context->result[0] != NULL;
}

GTorchImpl *
gtorch_op_argsort (GTorchImpl *self, gint64 dim, gboolean descending, gboolean stable,
                   GError **error)
{
  GTorchImpl *indices = NULL;

  return gtorch_op_sort (self, dim, descending, stable, NULL, &indices, error) ? indices : NULL;
}
