/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations that find elements by index, on GPUs. An index that is out of range is skipped and reported. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-index.h"
#include "cuda/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

#define FAMILY GTORCH_CUDA_FAMILY_INDEX

typedef enum
{
  GET,
  PUT,
  ADD,
} Mode;

/* --- blocks --- */

typedef struct
{
  GtBlocks b;
  GTorchImpl *offsets; /* int64, on the device */
  guint dtype;
} Blocks;

static void
blocks_clear (Blocks *blocks)
{
  g_clear_pointer (&blocks->offsets, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Blocks, blocks_clear)

static gboolean
add_offsets (Blocks *blocks, GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *index,
             gint64 size, gint64 stride, gboolean wrap, gboolean first, const gint64 *left_out,
             GError **error)
{
  GTorchImpl *offsets = blocks->offsets;
  g_autoptr (GTorchImpl) plain = NULL;
  GtPlain p = { .n = { offsets->numel, stride, size, wrap, first, call->op->id,
                       left_out != NULL ? *left_out : 0, left_out != NULL } };

  if (gtorch_impl_same_shape (index, offsets) || index->numel == offsets->numel)
    plain = gtorch_cuda_pack (index, GTORCH_DTYPE_INT64, lane, error);
  else
    { /* broadcast */
      plain = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, offsets->shape, offsets->n_dims,
                               error);
      if (plain != NULL && !gtorch_cuda_copy_here (plain, index, lane, error))
        return FALSE;
    }
  p.report = plain != NULL ? gtorch_cuda_report (lane, error) : NULL;
  if (p.report == NULL)
    return FALSE;
  p.out[0] = gtorch_impl_data (offsets);
  p.in[0] = gtorch_impl_data (plain);
  return gtorch_cuda_plain_run (FAMILY, "offsets", GTORCH_DTYPE_INT64, lane, offsets->numel, &p,
                                error);
}

static gboolean
blocks_init (Blocks *blocks, GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *indexed,
             GTorchImpl *const *indices, guint n_indices, const gint64 *dims, gboolean wrap,
             const gint64 *left_out, GError **error)
{
  gint64 size = gtorch_dtype_size (indexed->dtype);
  gboolean adjacent = dims[n_indices - 1] - dims[0] == (gint64) n_indices - 1;
  guint n_pre = adjacent ? dims[0] : 0, n_dims = 0, i, k;
  gint64 shape[GTORCH_MAX_DIMS];
  GtBlocks *b = &blocks->b;

  memset (blocks, 0, sizeof *blocks);
  blocks->dtype = indexed->dtype;
  for (k = 0; k < n_indices; k++)
    if (!gtorch_broadcast_shapes (call->op->name, shape, n_dims, indices[k]->shape,
                                  indices[k]->n_dims, shape, &n_dims, error))
      return FALSE;
  blocks->offsets = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, shape, n_dims, error);
  if (blocks->offsets == NULL)
    return FALSE;
  b->indexed = gtorch_impl_data (indexed);
  b->offsets = gtorch_impl_data (blocks->offsets);
  b->n_index = blocks->offsets->numel;
  b->inner = 1;
  b->total = b->n_index;
  for (i = 0, k = 0; i < indexed->n_dims; i++)
    if (k < n_indices && dims[k] == i)
      k++;
    else if (i < n_pre)
      {
        b->pre_shape[b->n_pre_dims] = indexed->shape[i];
        b->pre_strides[b->n_pre_dims++] = indexed->strides[i] * size;
        b->total *= indexed->shape[i];
      }
    else
      {
        guint last = b->n_inner_dims - 1;

        if (b->n_inner_dims > 0
            && b->inner_strides[last] == indexed->strides[i] * size * indexed->shape[i])
          { /* goes on where the one before does: as one */
            b->inner_shape[last] *= indexed->shape[i];
            b->inner_strides[last] = indexed->strides[i] * size;
          }
        else
          {
            b->inner_shape[b->n_inner_dims] = indexed->shape[i];
            b->inner_strides[b->n_inner_dims++] = indexed->strides[i] * size;
          }
        b->inner *= indexed->shape[i];
        b->total *= indexed->shape[i];
      }
  for (k = 0; k < n_indices; k++)
    if (b->n_index > 0
        && !add_offsets (blocks, call, lane, indices[k], indexed->shape[dims[k]],
                         indexed->strides[dims[k]] * size, wrap, k == 0, left_out, error))
      return FALSE;
  return TRUE;
}

/* Inner parts in pieces of 16 bytes where everything allows it. */
static guint
widen (GtBlocks *b, guint size)
{
  gint64 rows = (gint64) (guintptr) b->indexed | (gint64) (guintptr) b->dense, times = 16 / size;
  guint i;

  if (b->n_inner_dims != 1 || b->inner_strides[0] != size || b->inner % times != 0)
    return size;
  for (i = 0; i < b->n_pre_dims; i++)
    rows |= b->pre_strides[i];
  if ((rows & 15) != 0)
    return size;
  b->inner /= times;
  b->inner_shape[0] /= times;
  b->inner_strides[0] = 16;
  b->total /= times;
  return 16;
}

static gboolean
blocks_run (Blocks *blocks, GTorchCudaLane *lane, GTorchImpl *dense, Mode mode, gint64 block_stride,
            GError **error)
{
  GtBlocks *b = &blocks->b;
  guint size = gtorch_dtype_size (blocks->dtype);

  b->dense = gtorch_impl_data (dense);
  if (b->total == 0)
    return TRUE;
  if (mode == ADD)
    return gtorch_cuda_run_struct (FAMILY, "blocks_add", blocks->dtype, lane, b->total, b, error);
  if (block_stride % 16 == 0)
    size = widen (b, size);
  return gtorch_cuda_run_struct_sized (FAMILY, mode == GET ? "blocks_get" : "blocks_put", size,
                                       lane, b->total, b, error);
}

/* All strides of dimensions that are indexed, or'ed: whether blocks begin at multiples of 16 bytes. */
static gint64
strides_of (const GTorchImpl *indexed, const gint64 *dims, guint n)
{
  gint64 all = 0;
  guint k;

  for (k = 0; k < n; k++)
    all |= indexed->strides[dims[k]] * (gint64) gtorch_dtype_size (indexed->dtype);
  return all & -all;
}

static gboolean
get (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *indexed, GTorchImpl *const *indices,
     guint n, const gint64 *dims, gboolean wrap, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) dense = NULL;
  g_auto (Blocks) blocks = { { NULL } };

  if (output->numel == 0)
    return TRUE;
  dense = gtorch_cuda_pack_output (output, output->dtype, error);
  return dense != NULL
         && blocks_init (&blocks, call, lane, indexed, indices, n, dims, wrap, NULL, error)
         && blocks_run (&blocks, lane, dense, GET, strides_of (indexed, dims, n), error)
         && gtorch_cuda_unpack (dense, output, lane, error);
}

/* The output, as the input is, then changed. */
static gboolean
put (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *output, GTorchImpl *const *indices,
     guint n, const gint64 *dims, gboolean wrap, GTorchImpl *dense, Mode mode, GError **error)
{
  g_auto (Blocks) blocks = { { NULL } };

  if (!call->in_place && !gtorch_cuda_copy_here (output, call->inputs[0], lane, error))
    return FALSE;
  return output->numel == 0
         || (blocks_init (&blocks, call, lane, output, indices, n, dims, wrap, NULL, error)
             && blocks_run (&blocks, lane, dense, mode, strides_of (output, dims, n), error));
}

static GTorchImpl *
dense_values (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *values, const gint64 *shape,
              guint n_dims, GError **error)
{
  guint dtype = call->outputs[0]->dtype;
  g_autoptr (GTorchImpl) packed = gtorch_cuda_pack (values, dtype, lane, error);
  g_autoptr (GTorchImpl) dense = NULL;

  if (packed == NULL)
    return NULL;
  if (packed->n_dims == n_dims && memcmp (packed->shape, shape, n_dims * sizeof (gint64)) == 0)
    return g_steal_pointer (&packed);
  dense = gtorch_impl_new (call->device, dtype, shape, n_dims, error);
  if (dense == NULL || !gtorch_cuda_copy_here (dense, packed, lane, error))
    return NULL;
  return g_steal_pointer (&dense);
}

gboolean
gtorch_cuda_index (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return get (call, lane, call->inputs[0], call->inputs + 1, call->n_inputs - 1,
              call->attrs[0].list.data, TRUE, error);
}

gboolean
gtorch_cuda_index_put (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 *dims = call->attrs[0].list.data;
  g_autoptr (GTorchImpl) dense = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!gtorch_blocks_shape (call, call->outputs[0], call->inputs + 2, call->n_inputs - 2, dims,
                            shape, &n_dims, error))
    return FALSE;
  dense = dense_values (call, lane, call->inputs[1], shape, n_dims, error);
  return dense != NULL
         && put (call, lane, call->outputs[0], call->inputs + 2, call->n_inputs - 2, dims, TRUE,
                 dense, call->attrs[1].i ? ADD : PUT, error);
}

/* A tensor without dimensions behaves like one with a dimension of size 1. */
static GTorchImpl *
with_dim (GTorchImpl *impl)
{
  const gint64 one = 1;

  return impl->n_dims > 0 ? gtorch_impl_ref (impl)
                          : gtorch_impl_new_view (impl, impl->offset, &one, &one, 1);
}

gboolean
gtorch_cuda_index_select (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) self = with_dim (call->inputs[0]);
  g_autoptr (GTorchImpl) index = with_dim (call->inputs[1]);
  gint64 dims[1];
  guint dim;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, NULL);
  dims[0] = dim;
  return get (call, lane, self, &index, 1, dims, FALSE, error);
}

static gboolean
write_along_dim (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *dense, Mode mode,
                 GError **error)
{
  g_autoptr (GTorchImpl) output = with_dim (call->outputs[0]);
  g_autoptr (GTorchImpl) index = with_dim (call->inputs[1]);
  gint64 dims[1];
  guint dim;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, output->n_dims, &dim, NULL);
  dims[0] = dim;
  return put (call, lane, output, &index, 1, dims, FALSE, dense, mode, error);
}

gboolean
gtorch_cuda_index_write (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gboolean add = call->op->id == GTORCH_OP_INDEX_ADD;
  GTorchImpl *source = call->inputs[2];
  g_autoptr (GTorchImpl) dense = NULL;

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
      if (dense == NULL || !mul.op->cuda (&mul, lane, error))
        return FALSE;
    }
  else
    dense = gtorch_cuda_pack (source, source->dtype, lane, error);
  return dense != NULL && write_along_dim (call, lane, dense, add ? ADD : PUT, error);
}

gboolean
gtorch_cuda_index_fill (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) dense = NULL;
  gint64 n = MAX (call->outputs[0]->n_dims > 0 ? 0 : 1, call->outputs[0]->numel);
  guint dim;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->outputs[0]->n_dims, &dim, NULL);
  if (call->outputs[0]->n_dims > 0 && n > 0)
    n = n / call->outputs[0]->shape[dim];
  n *= call->inputs[1]->numel;
  dense = dense_values (call, lane, call->inputs[2], &n, 1, error);
  return dense != NULL && write_along_dim (call, lane, dense, PUT, error);
}

static GTorchImpl *
flat (GTorchImpl *contiguous)
{
  const gint64 one = 1;

  return gtorch_impl_new_view (contiguous, contiguous->offset, &contiguous->numel, &one, 1);
}

gboolean
gtorch_cuda_take (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 dim = 0;
  g_autoptr (GTorchImpl) self =
      gtorch_cuda_pack (call->inputs[0], call->inputs[0]->dtype, lane, error);
  g_autoptr (GTorchImpl) row = self != NULL ? flat (self) : NULL;

  return row != NULL && get (call, lane, row, &call->inputs[1], 1, &dim, TRUE, error);
}

gboolean
gtorch_cuda_put (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 dim = 0;
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) source =
      gtorch_cuda_pack (call->inputs[2], call->inputs[2]->dtype, lane, error);
  g_autoptr (GTorchImpl) whole =
      source != NULL ? gtorch_cuda_pack_output (output, output->dtype, error) : NULL;
  g_autoptr (GTorchImpl) row = NULL;
  g_auto (Blocks) blocks = { { NULL } };

  if (whole == NULL)
    return FALSE;
  if ((whole != output || !call->in_place)
      && !gtorch_cuda_copy_here (whole, call->inputs[0], lane, error))
    return FALSE;
  row = flat (whole);
  return blocks_init (&blocks, call, lane, row, &call->inputs[1], 1, &dim, TRUE, NULL, error)
         && blocks_run (&blocks, lane, source, call->attrs[0].i ? ADD : PUT, 1, error)
         && gtorch_cuda_unpack (whole, output, lane, error);
}

/* --- embedding --- */

gboolean
gtorch_cuda_embedding (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 dim = 0;

  return get (call, lane, call->inputs[0], &call->inputs[1], 1, &dim, FALSE, error);
}

gboolean
gtorch_cuda_embedding_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 dim = 0;
  GTorchImpl *output = call->outputs[0];
  guint dtype = gtorch_dtype_kind (output->dtype) == GTORCH_KIND_FLOAT
                    ? gtorch_dtype_infos[output->dtype].compute
                    : output->dtype;
  g_autoptr (GTorchImpl) upper = gtorch_cuda_pack (call->inputs[0], dtype, lane, error);
  g_autoptr (GTorchImpl) sum =
      upper != NULL ? gtorch_cuda_pack_output (output, dtype, error) : NULL;
  g_auto (Blocks) blocks = { { NULL } };

  return sum != NULL && gtorch_cuda_clear (sum, lane, error)
         && ((sum->numel == 0 && upper->numel == 0)
             || (blocks_init (&blocks, call, lane, sum, &call->inputs[1], 1, &dim, FALSE,
                              &call->attrs[1].i, error)
                 && blocks_run (&blocks, lane, upper, ADD, 1, error)))
         && gtorch_cuda_unpack (sum, output, lane, error);
}

/* --- gather, scatter --- */

static gboolean
run_gather (GTorchOpCall *call, GTorchCudaLane *lane, const gchar *name, gboolean typed,
            GTorchImpl *indexed, GTorchImpl *index, GTorchImpl *plain, gint64 raw_dim,
            GError **error)
{
  gint64 size = gtorch_dtype_size (indexed->dtype);
  GtGather g = {
    .indexed = gtorch_impl_data (indexed),
    .plain = gtorch_impl_data (plain),
    .index = gtorch_impl_data (index),
    .n = index->numel,
    .size = 1,
    .n_dims = index->n_dims,
    .op = call->op->id,
    .report = gtorch_cuda_report (lane, error),
  };
  guint dim, i;

  if (g.report == NULL)
    return FALSE;
  gtorch_normalize_dim (call->op->name, raw_dim, indexed->n_dims, &dim, NULL);
  if (indexed->n_dims > 0)
    {
      g.size = indexed->shape[dim];
      g.stride = indexed->strides[dim] * size;
    }
  for (i = 0; i < index->n_dims; i++)
    {
      g.shape[i] = index->shape[i];
      g.strides[i][0] = i != dim && i < indexed->n_dims ? indexed->strides[i] * size : 0;
      g.strides[i][1] = index->strides[i] * 8;
      g.strides[i][2] = i < plain->n_dims ? plain->strides[i] * size : 0;
    }
  if (typed)
    return gtorch_cuda_run_struct (FAMILY, name, indexed->dtype, lane, g.n, &g, error);
  return gtorch_cuda_run_struct_sized (FAMILY, name, size, lane, g.n, &g, error);
}

gboolean
gtorch_cuda_gather (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) index =
      gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);

  return index != NULL
         && (index->numel == 0
             || run_gather (call, lane, "gather", FALSE, call->inputs[0], index, call->outputs[0],
                            call->attrs[0].i, error));
}

gboolean
gtorch_cuda_scatter (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gboolean add = call->op->id == GTORCH_OP_SCATTER_ADD;
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) index =
      gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);
  g_autoptr (GTorchImpl) src = NULL;

  if (index == NULL
      || (!call->in_place && !gtorch_cuda_copy_here (output, call->inputs[0], lane, error)))
    return FALSE;
  if (index->numel == 0)
    return TRUE;
  src = gtorch_cuda_pack (call->inputs[2], output->dtype, lane, error);
  return src != NULL
         && run_gather (call, lane, add ? "scatter_add" : "scatter", add, output, index, src,
                        call->attrs[0].i, error);
}

static gboolean
move (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *big, gboolean place, gint64 raw_dim,
      GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error);
  g_autoptr (GTorchImpl) index =
      x != NULL ? gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error) : NULL;
  GtPlain p = { .n = { 0, 1, 1, call->op->id } };
  guint dim, i;

  if (index == NULL || !gtorch_normalize_dim (call->op->name, raw_dim, big->n_dims, &dim, error)
      || (place && !gtorch_cuda_clear (output, lane, error)))
    return FALSE;
  p.n[0] = index->numel;
  if (big->n_dims > 0)
    p.n[1] = big->shape[dim];
  for (i = dim + 1; i < big->n_dims; i++)
    p.n[2] *= big->shape[i];
  p.in[0] = gtorch_impl_data (x);
  p.in[1] = gtorch_impl_data (index);
  p.out[0] = gtorch_impl_data (output);
  p.report = gtorch_cuda_report (lane, error);
  return p.report != NULL
         && gtorch_cuda_plain_run_sized (FAMILY, place ? "place_at" : "take_at", output->dtype,
                                         lane, p.n[0], &p, error);
}

gboolean
gtorch_cuda_place_at (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return move (call, lane, call->outputs[0], TRUE, call->attrs[1].i, error);
}

gboolean
gtorch_cuda_take_at (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return move (call, lane, call->inputs[0], FALSE, call->attrs[0].i, error);
}
