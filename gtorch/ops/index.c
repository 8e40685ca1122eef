/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Indexing with tensors: blocks of elements selected by one or several index tensors. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_index_check_dtype (GTorchOpCall *call, guint i, GError **error)
{
  guint dtype = call->inputs[i]->dtype;

  if (dtype == GTORCH_DTYPE_INT64 || dtype == GTORCH_DTYPE_INT32)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                     _ ("an index tensor must be of int64 or int32, not of %s"),
                     gtorch_dtype_get_name (dtype));
  return FALSE;
}

gboolean
gtorch_index_is_adjacent (const gint64 *dims, guint n)
{
  return dims[n - 1] - dims[0] == (gint64) n - 1;
}

gboolean
gtorch_blocks_shape (GTorchOpCall *call, const GTorchImpl *indexed, GTorchImpl *const *indices,
                     guint n_indices, const gint64 *dims, gint64 *shape, guint *n_dims,
                     GError **error)
{
  gint64 broadcast[GTORCH_MAX_DIMS];
  guint n_broadcast = 0, n_pre, i, k, n = 0;

  for (k = 0; k < n_indices; k++)
    if (!gtorch_broadcast_shapes (call->op->name, broadcast, n_broadcast, indices[k]->shape,
                                  indices[k]->n_dims, broadcast, &n_broadcast, error))
      return FALSE;
  if (n_broadcast + indexed->n_dims - n_indices > GTORCH_MAX_DIMS)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("%u dimensions are more than the %d that a tensor can have"),
                         n_broadcast + indexed->n_dims - n_indices, GTORCH_MAX_DIMS);
      return FALSE;
    }
  n_pre = gtorch_index_is_adjacent (dims, n_indices) ? dims[0] : 0;
  for (i = 0; i < n_pre; i++)
    shape[n++] = indexed->shape[i];
  for (i = 0; i < n_broadcast; i++)
    shape[n++] = broadcast[i];
  for (i = n_pre, k = 0; i < indexed->n_dims; i++)
    if (k < n_indices && dims[k] == i)
      k++;
    else
      shape[n++] = indexed->shape[i];
  *n_dims = n;
  return TRUE;
}

static gboolean
check_dims (GTorchOpCall *call, guint first, const GTorchAttr *dims, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint n = call->n_inputs - first, k;

  if (n == 0 || dims->list.n != n || n > self->n_dims)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                         _ ("%u index tensors are given for %u of the %u dimensions of shape %s"),
                         n, (guint) dims->list.n, self->n_dims, gtorch_impl_shape_str (self));
      return FALSE;
    }
  for (k = 0; k < n; k++)
    if (dims->list.data[k] < (k > 0 ? dims->list.data[k - 1] + 1 : 0)
        || dims->list.data[k] >= self->n_dims)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                           _ ("dims %s are not ascending dimensions of shape %s"),
                           gtorch_shape_str (dims->list.data, n), gtorch_impl_shape_str (self));
        return FALSE;
      }
    else if (!gtorch_index_check_dtype (call, first + k, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_shape_index (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  return check_dims (call, 1, &call->attrs[0], error)
         && gtorch_blocks_shape (call, self, call->inputs + 1, call->n_inputs - 1,
                                 call->attrs[0].list.data, shape, &n_dims, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, n_dims, error);
}

gboolean
gtorch_grad_index (GTorchGradContext *context, GError **error)
{
  const GTorchMeta *self = &context->input_metas[0];
  const GTorchAttr *dims = &context->attrs[0];
  g_autoptr (GTorchImpl) zeros =
      gtorch_op_new_zeros (context->grads[0], self->shape, self->n_dims, GTORCH_DTYPE_NONE, error);

  if (zeros == NULL)
    return FALSE;
  context->result[0] =
      gtorch_op_index_put (zeros, context->grads[0], context->inputs + 1, context->n_inputs - 1,
                           dims->list.data, dims->list.n, TRUE, error);
  return context->result[0] != NULL;
}

gboolean
gtorch_shape_index_put (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *values = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS], both[GTORCH_MAX_DIMS];
  guint n_dims, n_both;

  if (!check_dims (call, 2, &call->attrs[0], error)
      || !gtorch_blocks_shape (call, self, call->inputs + 2, call->n_inputs - 2,
                               call->attrs[0].list.data, shape, &n_dims, error))
    return FALSE;
  if (!gtorch_broadcast_shapes (call->op->name, shape, n_dims, values->shape, values->n_dims, both,
                                &n_both, NULL)
      || !gtorch_same_shape (both, n_both, shape, n_dims))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("values of shape %s cannot be broadcast to %s"),
                         gtorch_impl_shape_str (values), gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_grad_index_put (GTorchGradContext *context, GError **error)
{
  const GTorchAttr *dims = &context->attrs[0];
  GTorchImpl *grad = context->grads[0];
  GTorchImpl *const *indices = context->inputs + 2;
  guint n = context->n_inputs - 2;

  if (context->needs[0] && context->attrs[1].i)
    context->result[0] = gtorch_impl_ref (grad);
  else if (context->needs[0])
    {
      g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);

      context->result[0] =
          gtorch_op_index_put (grad, zero, indices, n, dims->list.data, dims->list.n, FALSE, error);
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[1])
    context->result[1] = gtorch_op_index (grad, indices, n, dims->list.data, dims->list.n, error);
  return !context->needs[1] || context->result[1] != NULL;
}

/* --- one index tensor along one dimension --- */

static gboolean
check_index (GTorchOpCall *call, guint *dim, GError **error)
{
  GTorchImpl *index = call->inputs[1];

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->inputs[0]->n_dims, dim, error)
      || !gtorch_index_check_dtype (call, 1, error))
    return FALSE;
  if (index->n_dims <= 1)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("the index of shape %s must have one dimension"),
                     gtorch_impl_shape_str (index));
  return FALSE;
}

gboolean
gtorch_shape_index_select (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim;

  if (!check_index (call, &dim, error))
    return FALSE;
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[dim] = call->inputs[1]->numel;
  return gtorch_shape_check (call->op->name, shape, self->n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, self->n_dims, error);
}

gboolean
gtorch_shape_index_write (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *source = call->inputs[2];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim;

  if (!check_index (call, &dim, error))
    return FALSE;
  if (source->dtype != self->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("self has dtype %s and source has %s: they must be the same"),
                         gtorch_dtype_get_name (self->dtype),
                         gtorch_dtype_get_name (source->dtype));
      return FALSE;
    }
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  if (self->n_dims > 0)
    shape[dim] = call->inputs[1]->numel;
  if (!gtorch_same_shape (source->shape, source->n_dims, shape, self->n_dims)
      || (self->n_dims == 0 && call->inputs[1]->numel != 1))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("source of shape %s does not fit: for %" PRId64
                            " indices of dimension %u of shape %s it must be of shape %s"),
                         gtorch_impl_shape_str (source), call->inputs[1]->numel, dim,
                         gtorch_impl_shape_str (self), gtorch_shape_str (shape, self->n_dims));
      return FALSE;
    }
  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_shape_index_fill (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *value = call->inputs[2];
  guint dim;

  if (!check_index (call, &dim, error))
    return FALSE;
  if (value->n_dims > 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the value of shape %s must have no dimensions"),
                         gtorch_impl_shape_str (value));
      return FALSE;
    }
  return gtorch_call_check_scalar (call, 2, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

/* --- positions in a flattened tensor --- */

gboolean
gtorch_shape_take (GTorchOpCall *call, GError **error)
{
  GTorchImpl *index = call->inputs[1];

  return gtorch_index_check_dtype (call, 1, error)
         && gtorch_shape_check (call->op->name, index->shape, index->n_dims, call->inputs[0]->dtype,
                                error)
         && gtorch_call_set_output (call, 0, call->inputs[0]->dtype, index->shape, index->n_dims,
                                    error);
}

gboolean
gtorch_shape_put (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *index = call->inputs[1], *source = call->inputs[2];

  if (!gtorch_index_check_dtype (call, 1, error))
    return FALSE;
  if (index->numel != source->numel)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("index of shape %s and source of shape %s must have as many elements"),
                         gtorch_impl_shape_str (index), gtorch_impl_shape_str (source));
      return FALSE;
    }
  if (source->dtype != self->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("self has dtype %s and source has %s: they must be the same"),
                         gtorch_dtype_get_name (self->dtype),
                         gtorch_dtype_get_name (source->dtype));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_grad_put (GTorchGradContext *context, GError **error)
{
  const GTorchMeta *source = &context->input_metas[2];
  GTorchImpl *grad = context->grads[0], *index = context->inputs[1];

  if (context->needs[0] && context->attrs[0].i)
    context->result[0] = gtorch_impl_ref (grad);
  else if (context->needs[0])
    {
      g_autoptr (GTorchImpl) zeros =
          gtorch_op_new_zeros (grad, source->shape, source->n_dims, GTORCH_DTYPE_NONE, error);

      if (zeros != NULL)
        context->result[0] = gtorch_op_put (grad, index, zeros, FALSE, error);
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    {
      g_autoptr (GTorchImpl) taken = gtorch_op_take (grad, index, error);

      if (taken != NULL)
        context->result[2] = gtorch_op_reshape (taken, source->shape, source->n_dims, error);
      if (context->result[2] == NULL)
        return FALSE;
    }
  return TRUE;
}

GTorchImpl *
gtorch_index_scale_source (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *source = call->inputs[2];
  g_autoptr (GTorchImpl) alpha = gtorch_impl_new_number (call->attrs[1].d);
  g_autoptr (GTorchImpl) scaled =
      gtorch_impl_new (call->device, source->dtype, source->shape, source->n_dims, error);
  GTorchImpl *inputs[] = { source, alpha };
  GTorchOpCall mul = {
    .op = &gtorch_ops[GTORCH_OP_MUL],
    .inputs = inputs,
    .n_inputs = 2,
    .outputs = { scaled },
    .n_outputs = 1,
    .device = call->device,
    .compute = source->dtype,
  };

  return scaled != NULL && gtorch_call_run (&mul, queue, error) ? g_steal_pointer (&scaled) : NULL;
}
