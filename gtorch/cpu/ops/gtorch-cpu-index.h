/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the operations that find elements by index share. */

#include <gtorch/cpu/gtorch-cpu-iter.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* A new reference: impl itself, or a contiguous copy of it in dtype. */
GTorchImpl *gtorch_cpu_contiguous (GTorchImpl *impl, guint dtype, GError **error);

/* A contiguous copy in dtype, which other threads do not know: checked once, it stays as it is. */
GTorchImpl *gtorch_cpu_private_copy (GTorchImpl *impl, guint dtype, GError **error);

/* Adds n elements to others, byte strides; bool: or. */
typedef void (*GTorchAdd) (char *dst, gint64 dst_stride, const char *src, gint64 src_stride,
                           gint64 n);

GTorchAdd gtorch_cpu_add (guint dtype);
/* The same for a product or an extreme, a GTorchIndexReduction. */
GTorchAdd gtorch_cpu_fold (guint dtype, gint64 reduction);

/* For shape functions: input i is a tensor of int32 or int64. */
gboolean gtorch_index_check_dtype (GTorchOpCall *call, guint i, GError **error);
/* For CPU functions: a contiguous int64 copy of the tensor in which all elements are in [0, size),
 * whatever other threads write to the tensor itself. */
GTorchImpl *gtorch_cpu_indices (GTorchOpCall *call, GTorchImpl *index, gint64 size, guint dim,
                                GError **error);

/* An indexed operand, of whose dimensions some are replaced by index tensors, beside a contiguous
 * (dense) one of the shape [n_pre, n_index, inner]: what lies before the indexed dimensions, the
 * broadcast shape of the index tensors, what lies behind. Are the indexed dimensions not adjacent,
 * then all others lie behind. */
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
  GTORCH_BLOCKS_PUT, /* indexed = dense; of equal indices the last wins */
  GTORCH_BLOCKS_ADD, /* indexed += dense, in the order of the indices */
  GTORCH_BLOCKS_MUL, /* indexed *= dense, likewise */
} GTorchBlocksMode;

/* The shape of the dense operand. dims are distinct and ascending. */
gboolean gtorch_blocks_shape (GTorchOpCall *call, const GTorchImpl *indexed,
                              GTorchImpl *const *indices, guint n_indices, const gint64 *dims,
                              gint64 *shape, guint *n_dims, GError **error);
/* Checks all indices; with wrap, negative ones count from the end. */
gboolean gtorch_blocks_init (GTorchBlocks *blocks, GTorchOpCall *call, GTorchImpl *indexed,
                             GTorchImpl *const *indices, guint n_indices, const gint64 *dims,
                             gboolean wrap, GError **error);
void gtorch_blocks_clear (GTorchBlocks *blocks);
/* Where the target of writes is not yet what it begins as, from is copied there, after what can fail. Blocks
 * with negative offsets are left out of writes. */
gboolean gtorch_blocks_run (const GTorchBlocks *blocks, char *dense, GTorchBlocksMode mode,
                            GTorchImpl *from, GError **error);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchBlocks, gtorch_blocks_clear)

/* The places, among n byte offsets in [0, extent] that are multiples of unit, that more elements are added
 * to than their dtype can add up. */
#define GTORCH_NO_CROWD G_MAXUINT32

typedef struct
{
  guint32 *slots; /* n: the crowd of each element, or GTORCH_NO_CROWD; NULL if there is no crowd */
  gint64 *places; /* n_slots offsets */
  gint64 n_slots;
} GTorchCrowds;

/* How many are no crowd yet; 0: any number, since the dtype is exact or wide enough. */
guint gtorch_crowds_limit (guint dtype);
gboolean gtorch_crowds_init (GTorchCrowds *self, const gint64 *offsets, gint64 n, gint64 unit,
                             gint64 extent, guint dtype, GError **error);
void gtorch_crowds_clear (GTorchCrowds *self);
/* Does a contiguous index have crowds in any of its lines along dim, whose elements are in [0, size)? May
 * take several small crowds for a large one. */
gboolean gtorch_crowds_find (const GTorchImpl *index, guint dim, gint64 size, guint dtype,
                             gboolean *found, GError **error);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchCrowds, gtorch_crowds_clear)

G_END_DECLS
