/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-cudnn-private.h>

G_BEGIN_DECLS

/* Addresses of tensors. */
#define GTORCH_ATTENTION_ALIGNMENT 16
#define GTORCH_ATTENTION_MAX_OPS   32

/* Tensors of the graph, by their ids; numbers are given by value. */
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
  GTORCH_ATTENTION_DOTS, /* sums of upper * output */
  GTORCH_ATTENTION_WIDE, /* the query's gradient, float32 */
  GTORCH_ATTENTION_MASK,
  GTORCH_ATTENTION_SEED, /* int64, in the device's memory, as … */
  GTORCH_ATTENTION_OFFSET,
  GTORCH_ATTENTION_KEPT, /* 1 / (1 - dropout) */
  GTORCH_ATTENTION_N_IDS
};

/* Compared as bytes: without gaps. */
typedef struct
{
  gint64 backward, dtype, device, is_causal, deterministic;
  gint64 batch, heads, key_heads, rows, columns, depth, width;
  gint64 q[4], k[4], v[4]; /* strides */
  gint64 mask[2];          /* its batch and heads, 0 without a mask; it has no gaps */
  gint64 mask_rows;        /* 1 if all rows have the same */
  gint64 mask_type;        /* in cuDNN's numbers */
  gdouble dropout;
} GTorchAttentionForm;

/* What cuDNN must be asked for; to be freed when the plan is made. NULL if it refuses. */
GPtrArray *gtorch_cuda_attention_describe (const GTorchAttentionForm *form, gpointer *ops,
                                           guint *n_ops);

G_END_DECLS
