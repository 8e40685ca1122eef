/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Indexing with tensors: blocks of elements selected by one or several index tensors. */

#include "config.h"

#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

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
    dense = gtorch_index_scale_source (call, queue, error);
  else
    dense = gtorch_cpu_contiguous (source, source->dtype, error);
  if (dense == NULL)
    return FALSE;
  return gtorch_blocks_run (&blocks, gtorch_impl_data (dense),
                            add ? GTORCH_BLOCKS_ADD : GTORCH_BLOCKS_PUT, start (call), error);
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
