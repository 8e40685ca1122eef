/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Indexing operations on GPUs. Indices that are out of range are skipped and reported. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef enum
{
  GET,
  PUT,
  ADD,
  PROD,
  AMAX,
  AMIN,
} Mode;

/* --- contiguous blocks --- */

/* Returns whether pick () can be used, whose kernels need contiguous tensors and count bytes in 32 bits. */
static gboolean
pick_fits (const GTorchImpl *from, const GTorchImpl *to)
{
  return from->is_contiguous && to->is_contiguous && to->numel > 0
         && to->numel * (gint64) gtorch_dtype_size (to->dtype) < G_MAXINT32;
}

/* Copies indexed blocks to `to`. The index has one element for each block or, with `each`, one for each
 * element of `to`. */
static gboolean
pick (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *from, guint dim, GTorchImpl *index,
      gboolean each, gboolean wrap, GTorchImpl *to, GError **error)
{
  guint64 size = gtorch_dtype_size (from->dtype), inner = size, bits;
  GtPick p = {
    .dst = gtorch_impl_data (to),
    .src = gtorch_impl_data (from),
    .each = each,
    .size = from->n_dims > 0 ? from->shape[dim] : 1,
    .wrap = wrap,
    .op = gtorch_cuda_report_op (call, dim),
    .report = gtorch_cuda_report (lane, error),
  };
  g_autoptr (GTorchImpl) plain =
      p.report != NULL ? gtorch_cuda_pack (index, GTORCH_DTYPE_INT64, lane, error) : NULL;

  if (plain == NULL)
    return FALSE;
  p.index = gtorch_impl_data (plain);
  inner *= gtorch_rows_along (from->shape, from->n_dims, dim).inner;
  if (!each)
    { /* copy with the widest words that the blocks allow */
      bits = (guintptr) p.dst | (guintptr) p.src | inner | 16;
      size = bits & -bits;
    }
  p.n = to->numel * (guint64) gtorch_dtype_size (to->dtype) / size;
  p.inner = gt_divider (inner / size);
  p.n_index = gt_divider (each ? (to->n_dims > 0 ? to->shape[dim] : 1) : plain->numel);
  return gtorch_cuda_run_sized_blocks (&gtorch_kernels_pick, size, lane,
                                       ((guint64) p.n + 1023) / 1024, &p, error);
}

/* --- blocks --- */

typedef struct
{
  GtBlocks b;
  GTorchImpl *offsets; /* offsets of the blocks, int64 */
  /* number of the block that each index names, or NULL if the order is irrelevant */
  GTorchImpl *slots;
  gint64 n_slots;
  guint dtype;
} Blocks;

static void
blocks_clear (Blocks *blocks)
{
  g_clear_pointer (&blocks->offsets, gtorch_impl_unref);
  g_clear_pointer (&blocks->slots, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Blocks, blocks_clear)

/* Returns whether the result depends on the order of the indices; sums of integers do not. */
static gboolean
is_ordered (Mode mode, guint dtype)
{
  return mode > ADD || (mode == ADD && gtorch_dtype_kind (dtype) >= GTORCH_KIND_FLOAT);
}

typedef struct
{
  GTorchImpl *index;
  gint64 size, stride, slot_stride;
  gboolean wrap, first;
  const gint64 *left_out;
  guint32 op;
} Along;

static gboolean
add_offsets (Blocks *blocks, GTorchOpCall *call, GTorchCudaLane *lane, const Along *along,
             GError **error)
{
  GTorchImpl *offsets = blocks->offsets, *index = along->index;
  g_autoptr (GTorchImpl) plain = NULL;
  GtOffsets p = {
    .offsets = gtorch_impl_data (offsets),
    .n = offsets->numel,
    .stride = along->stride,
    .size = along->size,
    .wrap = along->wrap,
    .is_first = along->first,
    .left_out = along->left_out != NULL ? *along->left_out : 0,
    .leaves_out = along->left_out != NULL,
    .op = along->op,
  };

  if (index->numel == offsets->numel)
    plain = gtorch_cuda_pack (index, GTORCH_DTYPE_INT64, lane, error);
  else
    { /* broadcast the index */
      plain = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, offsets->shape, offsets->n_dims,
                               error);
      if (plain != NULL && !gtorch_cuda_copy_here (plain, index, lane, error))
        return FALSE;
    }
  p.report = plain != NULL ? gtorch_cuda_report (lane, error) : NULL;
  if (p.report == NULL)
    return FALSE;
  p.index = gtorch_impl_data (plain);
  if (!gtorch_cuda_run (&gtorch_kernels_offsets, GTORCH_DTYPE_INT64, lane, offsets->numel, &p,
                        error))
    return FALSE;
  if (blocks->slots == NULL)
    return TRUE;
  p.stride = along->slot_stride;
  p.offsets = gtorch_impl_data (blocks->slots);
  p.report = NULL;
  return gtorch_cuda_run (&gtorch_kernels_offsets, GTORCH_DTYPE_INT64, lane, offsets->numel, &p,
                          error);
}

static gboolean
blocks_init (Blocks *blocks, GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *indexed,
             GTorchImpl *const *indices, guint n_indices, const gint64 *dims, gboolean wrap,
             const gint64 *left_out, Mode mode, GError **error)
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
  if (is_ordered (mode, blocks->dtype) || (mode == PUT && blocks->offsets->numel > 1))
    {
      blocks->slots = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, shape, n_dims, error);
      if (blocks->slots == NULL)
        return FALSE;
    }
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
          { /* merge this dimension with the one before, which it continues */
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
  blocks->n_slots = 1;
  for (k = n_indices; k-- > 0 && b->n_index > 0;)
    {
      const Along along = {
        .index = indices[k],
        .size = indexed->shape[dims[k]],
        .stride = indexed->strides[dims[k]] * size,
        .slot_stride = blocks->n_slots,
        .wrap = wrap,
        .first = k == n_indices - 1,
        .left_out = left_out,
        .op = gtorch_cuda_report_op (call, dims[k]),
      };

      if (!add_offsets (blocks, call, lane, &along, error))
        return FALSE;
      blocks->n_slots *= along.size;
    }
  return TRUE;
}

/* Changes the blocks' inner part to words of 16 bytes if sizes and alignment allow it; returns the word
 * size. */
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

/* Returns whether an array with one entry for each slot costs less than sorting the indices, which it does
 * unless there are very many slots. */
static gboolean
few_slots (gint64 n_slots, gint64 n_indices)
{
  return n_slots / 8 <= n_indices + 65536;
}

/* Makes an array of the last writer of each slot, initially none. */
static GTorchImpl *
new_owners (GTorchOpCall *call, GTorchCudaLane *lane, gint64 n_slots, gint64 n_indices,
            GError **error)
{
  const gint64 nobody = -1;
  g_autoptr (GTorchImpl) owners =
      gtorch_impl_new (call->device,
                       n_indices > G_MAXINT32 ? GTORCH_DTYPE_INT64 : GTORCH_DTYPE_INT32, &n_slots,
                       1, error);

  if (owners == NULL || !gtorch_cuda_fill_with (owners, GTORCH_DTYPE_INT64, &nobody, lane, error))
    return NULL;
  return g_steal_pointer (&owners);
}

/* Skips all but the last of the indices that name the same block. */
static gboolean
keep_last (Blocks *blocks, GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gint64 n = blocks->b.n_index;

  if (few_slots (blocks->n_slots, n))
    {
      g_autoptr (GTorchImpl) owners = new_owners (call, lane, blocks->n_slots, n, error);
      GtClaim c = { .slots = gtorch_impl_data (blocks->slots), .n = n, .wide = n > G_MAXINT32 };
      GtKeepLast k = {
        .slots = c.slots,
        .offsets = gtorch_impl_data (blocks->offsets),
        .n = n,
        .wide = c.wide,
      };

      if (owners == NULL)
        return FALSE;
      k.owners = c.owners = gtorch_impl_data (owners);
      if (!gtorch_cuda_run (&gtorch_kernels_claim, GTORCH_DTYPE_INT64, lane, n, &c, error))
        return FALSE;
      return gtorch_cuda_run (&gtorch_kernels_keep_last, GTORCH_DTYPE_INT64, lane, n, &k, error);
    }
  else
    {
      g_autoptr (GTorchImpl) keys = NULL;
      g_autoptr (GTorchImpl) at = NULL;
      GtDropEarlier p = { .offsets = gtorch_impl_data (blocks->offsets), .n = n };
      gboolean wide;

      if (!gtorch_cuda_sort_slots (call, lane, blocks->slots, blocks->n_slots, &keys, &at, &wide,
                                   error))
        return FALSE;
      p.wide = wide;
      p.keys = gtorch_impl_data (keys);
      p.at = gtorch_impl_data (at);
      return gtorch_cuda_run (&gtorch_kernels_drop_earlier, GTORCH_DTYPE_INT64, lane, n - 1, &p,
                              error);
    }
}

/* Runs the kernel of the mode. `dense` has a block for each index, or one element for all. */
static gboolean
blocks_run (Blocks *blocks, GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *dense, Mode mode,
            gint64 block_stride, GError **error)
{
  GtBlocks *b = &blocks->b;
  guint size = gtorch_dtype_size (blocks->dtype);

  b->dense = gtorch_impl_data (dense);
  b->step = dense->numel == 1 && b->total > 1 ? 0 : 1;
  if (b->total == 0)
    return TRUE;
  if (is_ordered (mode, blocks->dtype))
    return gtorch_cuda_segments_fold (call, lane, b, GTORCH_CUDA_FOLD_SUM + (mode - ADD),
                                      blocks->dtype, blocks->slots, blocks->n_slots, error);
  if (mode == ADD)
    return gtorch_cuda_run (&gtorch_kernels_blocks_add, blocks->dtype, lane, b->total, b, error);
  if (mode == PUT && b->step != 0 && b->n_index > 1 && !keep_last (blocks, call, lane, error))
    return FALSE;
  if (block_stride % 16 == 0 && b->step != 0)
    size = widen (b, size);
  return gtorch_cuda_run_sized (mode == GET ? &gtorch_kernels_blocks_get
                                            : &gtorch_kernels_blocks_put,
                                size, lane, b->total, b, error);
}

/* Returns the largest power of two that divides the strides, in bytes, of all indexed dimensions. */
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

  if (output->numel == 0) /* report indices that are out of range */
    return blocks_init (&blocks, call, lane, indexed, indices, n, dims, wrap, NULL, GET, error);
  if (n == 1 && pick_fits (indexed, output))
    return pick (call, lane, indexed, dims[0], indices[0], FALSE, wrap, output, error);
  dense = gtorch_cuda_pack_output (output, output->dtype, error);
  return dense != NULL
         && blocks_init (&blocks, call, lane, indexed, indices, n, dims, wrap, NULL, GET, error)
         && blocks_run (&blocks, call, lane, dense, GET, strides_of (indexed, dims, n), error)
         && gtorch_cuda_unpack (dense, output, lane, error);
}

/* Changes the indexed blocks of a tensor whose other elements are complete. */
static gboolean
change (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *indexed, GTorchImpl *const *indices,
        guint n, const gint64 *dims, gboolean wrap, const gint64 *left_out, GTorchImpl *dense,
        Mode mode, GError **error)
{
  g_auto (Blocks) blocks = { { NULL } };

  /* blocks_init () reports indices that are out of range, even if the tensor is empty */
  return blocks_init (&blocks, call, lane, indexed, indices, n, dims, wrap, left_out, mode, error)
         && (indexed->numel == 0
             || blocks_run (&blocks, call, lane, dense, mode, strides_of (indexed, dims, n),
                            error));
}

/* Copies the input to the output, and changes the indexed blocks. */
static gboolean
put (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *output, GTorchImpl *const *indices,
     guint n, const gint64 *dims, gboolean wrap, GTorchImpl *dense, Mode mode, GError **error)
{
  return (call->in_place || gtorch_cuda_copy_here (output, call->inputs[0], lane, error))
         && change (call, lane, output, indices, n, dims, wrap, NULL, dense, mode, error);
}

/* Returns the values as a contiguous tensor of this shape, or as one element for all. */
static GTorchImpl *
dense_values (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *values, const gint64 *shape,
              guint n_dims, GError **error)
{
  guint dtype = call->outputs[0]->dtype;
  g_autoptr (GTorchImpl) packed = gtorch_cuda_pack (values, dtype, lane, error);
  g_autoptr (GTorchImpl) dense = NULL;

  if (packed == NULL)
    return NULL;
  if (packed->numel == 1 || gtorch_same_shape (packed->shape, packed->n_dims, shape, n_dims))
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

/* Returns a tensor without dimensions as one with a dimension of size 1. */
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
    dense = gtorch_index_scale_source (call, lane, error);
  else
    dense = gtorch_cuda_pack (source, source->dtype, lane, error);
  return dense != NULL && write_along_dim (call, lane, dense, add ? ADD : PUT, error);
}

gboolean
gtorch_cuda_index_fill (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) value =
      gtorch_cuda_pack (call->inputs[2], call->outputs[0]->dtype, lane, error);

  return value != NULL && write_along_dim (call, lane, value, PUT, error);
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

/* Returns a contiguous tensor for the whole output, with a copy of the input. */
static GTorchImpl *
begin_whole (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) whole = gtorch_cuda_pack_output (output, output->dtype, error);

  if (whole == NULL
      || ((whole != output || !call->in_place)
          && !gtorch_cuda_copy_here (whole, call->inputs[0], lane, error)))
    return NULL;
  return g_steal_pointer (&whole);
}

gboolean
gtorch_cuda_put (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 dim = 0;
  GTorchImpl *source = call->inputs[2];
  g_autoptr (GTorchImpl) values = gtorch_cuda_pack (source, source->dtype, lane, error);
  g_autoptr (GTorchImpl) whole = values != NULL ? begin_whole (call, lane, error) : NULL;
  g_autoptr (GTorchImpl) row = whole != NULL ? flat (whole) : NULL;

  return row != NULL
         && change (call, lane, row, &call->inputs[1], 1, &dim, TRUE, NULL, values,
                    call->attrs[0].i ? ADD : PUT, error)
         && gtorch_cuda_unpack (whole, call->outputs[0], lane, error);
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
  g_autoptr (GTorchImpl) upper = gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error);

  return upper != NULL && gtorch_cuda_clear (output, lane, error)
         && change (call, lane, output, &call->inputs[1], 1, &dim, FALSE, &call->attrs[1].i, upper,
                    ADD, error);
}

/* --- gather, scatter --- */

static gboolean
gather_init (GtGather *g, GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *indexed,
             GTorchImpl *index, GTorchImpl *plain, guint dim, GError **error)
{
  gint64 size = gtorch_dtype_size (indexed->dtype);
  guint i;

  *g = (GtGather){
    .indexed = gtorch_impl_data (indexed),
    .plain = gtorch_impl_data (plain),
    .element = size,
    .index = gtorch_impl_data (index),
    .n = index->numel,
    .size = 1,
    .n_dims = index->n_dims,
    .op = gtorch_cuda_report_op (call, dim),
    .report = gtorch_cuda_report (lane, error),
  };
  if (g->report == NULL)
    return FALSE;
  if (indexed->n_dims > 0)
    {
      g->size = indexed->shape[dim];
      g->stride = indexed->strides[dim] * size;
    }
  for (i = 0; i < index->n_dims; i++)
    {
      g->shape[i] = index->shape[i];
      g->strides[i][0] = i != dim && i < indexed->n_dims ? indexed->strides[i] * size : 0;
      g->strides[i][1] = index->strides[i] * 8;
      g->strides[i][2] = i < plain->n_dims ? plain->strides[i] * size : 0;
    }
  return TRUE;
}

/* Returns whether a and b have the same sizes in all dimensions but dim. */
static gboolean
same_lines (const GTorchImpl *a, const GTorchImpl *b, guint dim)
{
  guint i;

  for (i = 0; i < a->n_dims && a->n_dims == b->n_dims; i++)
    if (i != dim && a->shape[i] != b->shape[i])
      return FALSE;
  return a->n_dims == b->n_dims;
}

/* Returns a view without what the output does not have of the first dimension, unless that is dim. */
static GTorchImpl *
first_part (GTorchImpl *self, const GTorchImpl *output, guint dim)
{
  gint64 shape[GTORCH_MAX_DIMS];

  if (self->n_dims == 0 || self->n_dims != output->n_dims || dim == 0
      || self->shape[0] == output->shape[0])
    return gtorch_impl_ref (self);
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[0] = output->shape[0];
  return gtorch_impl_new_view (self, self->offset, shape, self->strides, self->n_dims);
}

gboolean
gtorch_cuda_gather (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) part = NULL;
  GtGather g;
  guint dim;

  if (output->numel == 0)
    return TRUE;
  gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, NULL);
  part = first_part (self, output, dim);
  if (pick_fits (part, output) && same_lines (part, output, dim))
    return pick (call, lane, part, dim, call->inputs[1], TRUE, FALSE, output, error);
  index = gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);
  return index != NULL && gather_init (&g, call, lane, self, index, output, dim, error)
         && gtorch_cuda_run_sized (&gtorch_kernels_gather, g.element, lane, g.n, &g, error);
}

/* Returns a view of the part that has the index's shape or, with `whole`, the full size along dim. */
static GTorchImpl *
lines_of (GTorchImpl *impl, const GTorchImpl *index, guint dim, gboolean whole)
{
  gint64 shape[GTORCH_MAX_DIMS];

  memcpy (shape, index->shape, index->n_dims * sizeof (gint64));
  if (whole)
    shape[dim] = impl->shape[dim];
  return gtorch_impl_new_view (impl, impl->offset, shape, impl->strides, index->n_dims);
}

/* Returns whether all lines of the index along dim are the same. */
static gboolean
is_one_line (const GTorchImpl *index, guint dim)
{
  guint i;

  for (i = 0; i < index->n_dims; i++)
    if (i != dim && index->shape[i] != 1 && index->strides[i] != 0)
      return FALSE;
  return TRUE;
}

/* Scatters whole blocks by the indices of one line, which all other lines share. */
static gboolean
scatter_blocks (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *src, guint dim, Mode mode,
                GError **error)
{
  GTorchImpl *index = call->inputs[1], *output = call->outputs[0];
  const gint64 dims[] = { dim };
  g_autoptr (GTorchImpl) line =
      gtorch_impl_new_view (index, index->offset, &index->shape[dim], &index->strides[dim], 1);
  g_autoptr (GTorchImpl) target = lines_of (output, index, dim, TRUE);
  g_autoptr (GTorchImpl) part = lines_of (src, index, dim, FALSE);
  g_autoptr (GTorchImpl) dense = gtorch_cuda_pack (part, output->dtype, lane, error);

  return dense != NULL
         && (call->in_place || gtorch_cuda_copy_here (output, call->inputs[0], lane, error))
         && change (call, lane, target, &line, 1, dims, FALSE, NULL, dense, mode, error);
}

/* Scatters each element as a block of its own. The slots are the numbers of elements, which show where
 * several indices name the same element. */
static gboolean
scatter_numbered (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *whole, GtGather *g,
                  GTorchImpl *dense, Mode mode, GError **error)
{
  GtOffsets p = { .n = g->n, .stride = g->element, .size = whole->numel, .is_first = TRUE };
  g_auto (Blocks) blocks = { { NULL } };

  blocks.dtype = whole->dtype;
  blocks.n_slots = whole->numel;
  blocks.slots = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, &g->n, 1, error);
  if (blocks.slots == NULL)
    return FALSE;
  blocks.offsets = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, &g->n, 1, error);
  if (blocks.offsets == NULL)
    return FALSE;
  g->slots = gtorch_impl_data (blocks.slots);
  p.index = g->slots;
  p.offsets = gtorch_impl_data (blocks.offsets);
  blocks.b.indexed = g->indexed;
  blocks.b.offsets = p.offsets;
  blocks.b.total = blocks.b.n_index = g->n;
  blocks.b.inner = 1;
  return gtorch_cuda_run (&gtorch_kernels_scatter_slots, GTORCH_DTYPE_INT64, lane, g->n, g, error)
         && gtorch_cuda_run (&gtorch_kernels_offsets, GTORCH_DTYPE_INT64, lane, g->n, &p, error)
         && blocks_run (&blocks, call, lane, dense, mode, 1, error);
}

/* Scatters, using only the last of the indices that name an element. */
static gboolean
scatter_last (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *whole, GtGather *g,
              GError **error)
{
  g_autoptr (GTorchImpl) owners = new_owners (call, lane, whole->numel, g->n, error);

  if (owners == NULL)
    return FALSE;
  g->owner = gtorch_impl_data (owners);
  g->wide = owners->dtype == GTORCH_DTYPE_INT64;
  return gtorch_cuda_run (&gtorch_kernels_scatter_claim, GTORCH_DTYPE_INT64, lane, g->n, g, error)
         && gtorch_cuda_run_sized (&gtorch_kernels_scatter_last, g->element, lane, g->n, g, error);
}

static Mode
scatter_mode (const GTorchOpCall *call)
{
  if (call->op->id != GTORCH_OP_SCATTER_FOLD)
    return call->op->id == GTORCH_OP_SCATTER_ADD ? ADD : PUT;
  if (call->attrs[1].i == GTORCH_INDEX_REDUCTION_PROD)
    return PROD;
  return call->attrs[1].i == GTORCH_INDEX_REDUCTION_AMAX ? AMAX : AMIN;
}

/* Scatters in a wider dtype, as products and extremes have kernels for the widest dtypes only. */
static gboolean
scatter_wide (GTorchOpCall *call, GTorchCudaLane *lane, guint dtype, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) wide =
      gtorch_impl_new (call->device, dtype, self->shape, self->n_dims, error);
  GTorchImpl *inputs[] = { wide, call->inputs[1], call->inputs[2] };
  GTorchOpCall fold = *call;

  fold.inputs = inputs;
  fold.outputs[0] = wide;
  fold.in_place = TRUE;
  return wide != NULL && gtorch_cuda_copy_here (wide, self, lane, error)
         && gtorch_cuda_scatter (&fold, lane, error)
         && gtorch_cuda_copy_here (call->outputs[0], wide, lane, error);
}

gboolean
gtorch_cuda_scatter (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  Mode mode = scatter_mode (call);
  guint dtype = call->outputs[0]->dtype;
  guint widest = gtorch_dtype_kind (dtype) == GTORCH_KIND_INT ? GTORCH_DTYPE_INT64
                                                              : gtorch_dtype_infos[dtype].compute;
  GTorchImpl *output = call->outputs[0], *raw = call->inputs[1], *src = call->inputs[2];
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) whole = NULL;
  GtGather g;
  guint dim;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, output->n_dims, &dim, NULL);
  if (raw->numel == 0)
    return call->in_place || gtorch_cuda_copy_here (output, call->inputs[0], lane, error);
  if (mode > ADD && dtype != widest)
    return scatter_wide (call, lane, widest, error);
  if (raw->n_dims > 0 && raw->numel > raw->shape[dim] && raw->shape[dim] > 1
      && (mode == PUT || is_ordered (mode, output->dtype)) && is_one_line (raw, dim))
    return scatter_blocks (call, lane, src, dim, mode, error);

  index = gtorch_cuda_pack (raw, GTORCH_DTYPE_INT64, lane, error);
  if (index == NULL)
    return FALSE;
  if (mode <= ADD
      && (raw->n_dims == 0 || raw->shape[dim] == 1
          || (mode == ADD && !is_ordered (mode, output->dtype))))
    { /* every index names another element, or the order is irrelevant */
      values = gtorch_cuda_pack (src, output->dtype, lane, error);
      if (values == NULL
          || (!call->in_place && !gtorch_cuda_copy_here (output, call->inputs[0], lane, error))
          || !gather_init (&g, call, lane, output, index, values, dim, error))
        return FALSE;
      return mode == ADD
                 ? gtorch_cuda_run (&gtorch_kernels_scatter_add, output->dtype, lane, g.n, &g,
                                    error)
                 : gtorch_cuda_run_sized (&gtorch_kernels_scatter, g.element, lane, g.n, &g, error);
    }

  whole = begin_whole (call, lane, error);
  if (whole == NULL)
    return FALSE;
  if (mode != PUT || !few_slots (whole->numel, index->numel))
    {
      g_autoptr (GTorchImpl) part = lines_of (src, index, dim, FALSE);

      values = gtorch_cuda_pack (part, output->dtype, lane, error);
      if (values == NULL || !gather_init (&g, call, lane, whole, index, values, dim, error)
          || !scatter_numbered (call, lane, whole, &g, values, mode, error))
        return FALSE;
    }
  else
    {
      values = gtorch_cuda_pack (src, output->dtype, lane, error);
      if (values == NULL || !gather_init (&g, call, lane, whole, index, values, dim, error)
          || !scatter_last (call, lane, whole, &g, error))
        return FALSE;
    }
  return gtorch_cuda_unpack (whole, output, lane, error);
}

static gboolean
move (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *big, gboolean place, gint64 raw_dim,
      GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error);
  g_autoptr (GTorchImpl) index =
      x != NULL ? gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error) : NULL;
  GtAt p = { NULL };
  GTorchRows rows;
  guint dim;

  if (index == NULL || !gtorch_normalize_dim (call->op->name, raw_dim, big->n_dims, &dim, error)
      || (place && !gtorch_cuda_clear (output, lane, error)))
    return FALSE;
  p.n = index->numel;
  p.op = gtorch_cuda_report_op (call, dim);
  rows = gtorch_rows_along (big->shape, big->n_dims, dim);
  p.size = rows.n;
  p.inner = rows.inner;
  p.x = gtorch_impl_data (x);
  p.index = gtorch_impl_data (index);
  p.y = gtorch_impl_data (output);
  p.report = gtorch_cuda_report (lane, error);
  return p.report != NULL
         && gtorch_cuda_run_sized (place ? &gtorch_kernels_place_at : &gtorch_kernels_take_at,
                                   gtorch_dtype_size (output->dtype), lane, p.n, &p, error);
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
