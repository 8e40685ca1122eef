/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Shared by the indexing operations. */

#include <gtorch/cpu/gtorch-cpu-iter.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Returns impl itself (a new reference) if it is contiguous and of dtype, otherwise a contiguous copy in
 * dtype. */
GTorchImpl *gtorch_cpu_contiguous (GTorchImpl *impl, guint dtype, GError **error);

/* For queries about values: returns the elements of input i on the host, contiguous and in
 * dtype, whichever device has them. */
GTorchImpl *gtorch_call_read (GTorchOpCall *call, guint i, guint dtype, GError **error);

/* Returns a contiguous copy in dtype that no other thread can write to, so that checked values stay as they
 * are. */
GTorchImpl *gtorch_cpu_private_copy (GTorchImpl *impl, guint dtype, GError **error);

/* Adds n elements to others; strides are in bytes. For bool, the sum is a logical or. */
typedef void (*GTorchAdd) (char *dst, gint64 dst_stride, const char *src, gint64 src_stride,
                           gint64 n);

GTorchAdd gtorch_cpu_add (guint dtype);
/* Returns the function that combines elements by a GTorchIndexReduction: a product or an extreme value. */
GTorchAdd gtorch_cpu_fold (guint dtype, gint64 reduction);

/* For CPU functions: returns a contiguous int64 copy of the index tensor whose elements have been checked
 * to be in [0, size), so that concurrent writes to the tensor do no harm. */
GTorchImpl *gtorch_cpu_indices (GTorchOpCall *call, GTorchImpl *index, gint64 size, guint dim,
                                GError **error);

/* An operand some of whose dimensions are replaced by index tensors, together with a contiguous (dense)
 * operand of shape [n_pre, n_index, inner]: the dimensions before the indexed ones, the broadcast shape of
 * the index tensors, and the dimensions behind. If the indexed dimensions are not adjacent, all others are
 * behind them. */
typedef struct
{
  GTorchImpl *indexed;
  gint64 *offsets; /* n_index byte offsets */
  gint64 n_index, n_pre, inner, extent;
  gint64 unit; /* divides all offsets */
  guint n_pre_dims, n_inner_dims;
  gint64 pre_shape[GTORCH_MAX_DIMS], pre_strides[GTORCH_MAX_DIMS]; /* in bytes */
  gint64 inner_shape[GTORCH_MAX_DIMS], inner_strides[GTORCH_MAX_DIMS];
  gsize size;
  gboolean inner_contiguous;
} GTorchBlocks;

typedef enum
{
  GTORCH_BLOCKS_GET, /* dense = indexed */
  GTORCH_BLOCKS_PUT, /* indexed = dense; the last of equal indices wins */
  GTORCH_BLOCKS_ADD, /* indexed += dense, in the order of the indices */
  GTORCH_BLOCKS_MUL, /* indexed *= dense, in the order of the indices */
} GTorchBlocksMode;

/* Checks all indices; if wrap, negative ones count from the end. */
gboolean gtorch_blocks_init (GTorchBlocks *blocks, GTorchOpCall *call, GTorchImpl *indexed,
                             GTorchImpl *const *indices, guint n_indices, const gint64 *dims,
                             gboolean wrap, GError **error);
void gtorch_blocks_clear (GTorchBlocks *blocks);
/* Copies between the operands. If `from` is not NULL, the indexed operand is first initialised from it,
 * after everything that can fail. Writes skip blocks with negative offsets. */
gboolean gtorch_blocks_run (const GTorchBlocks *blocks, char *dense, GTorchBlocksMode mode,
                            GTorchImpl *from, GError **error);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchBlocks, gtorch_blocks_clear)

/* Crowds: places among n byte offsets, which are multiples of unit in [0, extent], to which more elements
 * are added than their dtype can sum up accurately. */
#define GTORCH_NO_CROWD G_MAXUINT32

typedef struct
{
  guint32 *slots; /* n: crowd of each element, or GTORCH_NO_CROWD; NULL if there is no crowd */
  gint64 *places; /* n_slots byte offsets */
  gint64 n_slots;
} GTorchCrowds;

/* Returns the largest number of elements that is no crowd; 0 means any number, since the dtype is exact or
 * wide enough. */
guint gtorch_crowds_limit (guint dtype);
gboolean gtorch_crowds_init (GTorchCrowds *self, const gint64 *offsets, gint64 n, gint64 unit,
                             gint64 extent, guint dtype, GError **error);
void gtorch_crowds_clear (GTorchCrowds *self);
/* Finds whether a contiguous index with elements in [0, size) has crowds in any of its lines along dim. May
 * mistake several small crowds for a large one. */
gboolean gtorch_crowds_find (const GTorchImpl *index, guint dim, gint64 size, guint dtype,
                             gboolean *found, GError **error);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchCrowds, gtorch_crowds_clear)

G_END_DECLS
