/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/ops/gtorch-cuda-cudnn-private.h>

G_BEGIN_DECLS

/* The alignment of the tensors' addresses, in bytes. */
#define GTORCH_ATTENTION_ALIGNMENT 16
#define GTORCH_ATTENTION_MAX_OPS   32

/* IDs of the graph's tensors; scalars are passed by value. */
enum
{
  GTORCH_ATTENTION_Q = 1,
  GTORCH_ATTENTION_K,
  GTORCH_ATTENTION_V,
  GTORCH_ATTENTION_OUTPUT,
  GTORCH_ATTENTION_STATS,
  GTORCH_ATTENTION_SCALE,
  GTORCH_ATTENTION_NOTHING, /* -infinity */
  GTORCH_ATTENTION_UPPER,
  GTORCH_ATTENTION_GRAD_Q,
  GTORCH_ATTENTION_GRAD_K,
  GTORCH_ATTENTION_GRAD_V,
  GTORCH_ATTENTION_ONE,  /* 1 - dropout */
  GTORCH_ATTENTION_DOTS, /* the rows' sums of upper * output */
  GTORCH_ATTENTION_WIDE, /* the query's gradient in float32 */
  GTORCH_ATTENTION_MASK,
  GTORCH_ATTENTION_SEED, /* int64 in device memory, as is the offset */
  GTORCH_ATTENTION_OFFSET,
  GTORCH_ATTENTION_KEPT, /* 1 / (1 - dropout) */
  GTORCH_ATTENTION_N_IDS
};

/* A form of attention, by which plans are cached. It has no padding, as it is compared byte by byte. */
typedef struct
{
  gint64 backward, dtype, device, is_causal, deterministic;
  gint64 batch, heads, key_heads, rows, columns, depth, width;
  gint64 q[4], k[4], v[4]; /* the strides of query, key and value */
  gint64 mask[2];   /* the batch and heads of the mask, which is contiguous; 0 without a mask */
  gint64 mask_rows; /* 1 if all rows share one row of the mask */
  gint64 mask_type; /* the mask's cuDNN data type */
  gdouble dropout;
} GTorchAttentionForm;

/* Describes the attention as cuDNN operations. The result owns their descriptors and must be freed once the
 * plan is made; it is NULL if cuDNN refuses the operations. */
GPtrArray *gtorch_cuda_attention_describe (const GTorchAttentionForm *form, gpointer *ops,
                                           guint *n_ops);

G_END_DECLS
