/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Indexing with tensors: blocks of elements selected by one or several index tensors. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"

/* Returns the tensor that the result starts as a copy of, or NULL in place. */
static GTorchImpl *
start (GTorchOpCall *call)
{
  return call->in_place ? NULL : call->inputs[0];
}

/* Returns a contiguous tensor of the dtype and dense shape of the blocks, with the broadcast values in it. */
static GTorchImpl *
dense_values (GTorchOpCall *call, GTorchImpl *values, const gint64 *shape, guint n_dims,
              GError **error)
{
  guint dtype = call->outputs[0]->dtype;
  GTorchImpl *dense;

  if (values->is_contiguous && values->dtype == dtype
      && gtorch_same_shape (values->shape, values->n_dims, shape, n_dims))
    return gtorch_impl_ref (values);
  dense = gtorch_impl_new (call->device, dtype, shape, n_dims, error);
  if (dense != NULL)
    gtorch_cpu_copy (dense, values);
  return dense;
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
gtorch_cpu_index (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchBlocks) blocks = { NULL };

  if (!gtorch_blocks_init (&blocks, call, call->inputs[0], call->inputs + 1, call->n_inputs - 1,
                           call->attrs[0].list.data, TRUE, error))
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (call->outputs[0]), GTORCH_BLOCKS_GET, NULL,
                            error);
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
gtorch_cpu_index_put (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchBlocks) blocks = { NULL };
  g_autoptr (GTorchImpl) dense = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!gtorch_blocks_init (&blocks, call, call->outputs[0], call->inputs + 2, call->n_inputs - 2,
                           call->attrs[0].list.data, TRUE, error)
      || !gtorch_blocks_shape (call, call->outputs[0], call->inputs + 2, call->n_inputs - 2,
                               call->attrs[0].list.data, shape, &n_dims, error))
    return FALSE;
  dense = dense_values (call, call->inputs[1], shape, n_dims, error);
  if (dense == NULL)
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (dense),
                            call->attrs[1].i ? GTORCH_BLOCKS_ADD : GTORCH_BLOCKS_PUT, start (call),
                            error);
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

/* Returns impl, with one dimension of size 1 if it has none. */
static GTorchImpl *
with_dim (GTorchImpl *impl)
{
  const gint64 one = 1;

  return impl->n_dims > 0 ? gtorch_impl_ref (impl)
                          : gtorch_impl_new_view (impl, impl->offset, &one, &one, 1);
}

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

static gboolean
blocks_along_dim (GTorchBlocks *blocks, GTorchOpCall *call, GTorchImpl *indexed, GError **error)
{
  g_autoptr (GTorchImpl) self = with_dim (indexed);
  g_autoptr (GTorchImpl) index = with_dim (call->inputs[1]);
  gint64 dims[1];
  guint dim;
  gboolean result;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, NULL);
  dims[0] = dim;
  result = gtorch_blocks_init (blocks, call, self, &index, 1, dims, FALSE, error);
  blocks->indexed = indexed;
  return result;
}

gboolean
gtorch_cpu_index_select (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchBlocks) blocks = { NULL };

  if (!blocks_along_dim (&blocks, call, call->inputs[0], error))
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (call->outputs[0]), GTORCH_BLOCKS_GET, NULL,
                            error);
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
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("self is of %s and source of %s"),
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
                         _ ("source of shape %s does not fit: for %" G_GINT64_FORMAT
                            " indices of dimension %u of shape %s it must be of shape %s"),
                         gtorch_impl_shape_str (source), call->inputs[1]->numel, dim,
                         gtorch_impl_shape_str (self), gtorch_shape_str (shape, self->n_dims));
      return FALSE;
    }
  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

/* Implements index_add and index_copy. */
gboolean
gtorch_cpu_index_write (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  gboolean add = call->op->id == GTORCH_OP_INDEX_ADD;
  g_auto (GTorchBlocks) blocks = { NULL };
  g_autoptr (GTorchImpl) dense = NULL;
  GTorchImpl *source = call->inputs[2];

  if (!blocks_along_dim (&blocks, call, call->outputs[0], error))
    return FALSE;
  if (add && call->attrs[1].d != 1)
    {
      g_autoptr (GTorchImpl) alpha = gtorch_impl_new_number (call->attrs[1].d);
      GTorchImpl *inputs[] = { source, alpha };
      GTorchOpCall mul = {
        .op = &gtorch_ops[GTORCH_OP_MUL],
        .inputs = inputs,
        .n_inputs = 2,
        .n_outputs = 1,
        .device = call->device,
        .compute = source->dtype,
      };

      dense = gtorch_impl_new (call->device, source->dtype, source->shape, source->n_dims, error);
      mul.outputs[0] = dense;
      if (dense == NULL || !gtorch_cpu_pointwise (&mul, queue, error))
        return FALSE;
    }
  else
    dense = gtorch_cpu_contiguous (source, source->dtype, error);
  if (dense == NULL)
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (dense),
                            add ? GTORCH_BLOCKS_ADD : GTORCH_BLOCKS_PUT, start (call), error);
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

gboolean
gtorch_cpu_index_fill (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchBlocks) blocks = { NULL };
  g_autoptr (GTorchImpl) dense = NULL;
  gint64 shape[1];

  if (!blocks_along_dim (&blocks, call, call->outputs[0], error))
    return FALSE;
  shape[0] = blocks.n_pre * blocks.n_index * blocks.inner;
  dense = dense_values (call, call->inputs[2], shape, 1, error);
  if (dense == NULL)
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (dense), GTORCH_BLOCKS_PUT, start (call),
                            error);
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

static gboolean
blocks_flat (GTorchBlocks *blocks, GTorchOpCall *call, GTorchImpl *contiguous, GError **error)
{
  const gint64 dim = 0, one = 1;
  g_autoptr (GTorchImpl) flat =
      gtorch_impl_new_view (contiguous, contiguous->offset, &contiguous->numel, &one, 1);
  gboolean result = gtorch_blocks_init (blocks, call, flat, &call->inputs[1], 1, &dim, TRUE, error);

  blocks->indexed = contiguous;
  return result;
}

gboolean
gtorch_cpu_take (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchBlocks) blocks = { NULL };
  g_autoptr (GTorchImpl) self =
      gtorch_cpu_contiguous (call->inputs[0], call->inputs[0]->dtype, error);

  if (self == NULL || !blocks_flat (&blocks, call, self, error))
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (call->outputs[0]), GTORCH_BLOCKS_GET, NULL,
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
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("self is of %s and source of %s"),
                         gtorch_dtype_get_name (self->dtype),
                         gtorch_dtype_get_name (source->dtype));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_cpu_put (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchBlocks) blocks = { NULL };
  g_autoptr (GTorchImpl) source =
      gtorch_cpu_contiguous (call->inputs[2], call->inputs[2]->dtype, error);
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) row = NULL;

  if (source == NULL)
    return FALSE;
  row = output->is_contiguous
            ? gtorch_impl_ref (output)
            : gtorch_impl_new (call->device, output->dtype, output->shape, output->n_dims, error);
  if (row == NULL || !blocks_flat (&blocks, call, row, error))
    return FALSE;
  if (!gtorch_blocks_run (&blocks, gtorch_impl_data (source),
                          call->attrs[0].i ? GTORCH_BLOCKS_ADD : GTORCH_BLOCKS_PUT,
                          row == output ? start (call) : call->inputs[0], error))
    return FALSE;
  if (row != output)
    gtorch_cpu_copy (output, row);
  return TRUE;
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
