/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* What multi_head_attention_forward () takes, by its names. */
typedef struct
{
  GTorchImpl *query, *key, *value;
  gint64 num_heads;
  GTorchImpl *in_proj_weight, *q_proj_weight, *k_proj_weight, *v_proj_weight;
  GTorchImpl *in_proj_bias, *bias_k, *bias_v;
  GTorchImpl *out_proj_weight, *out_proj_bias;
  GTorchImpl *key_padding_mask, *attn_mask;
  GTorchImpl *static_k, *static_v;
  gdouble dropout_p;
  gboolean add_zero_attn, need_weights, average_attn_weights, is_causal;
  gboolean batch_first; /* [N, L, E] instead of [L, N, E] */
} GTorchMultiHead;

/* Attends; *weights is NULL without need_weights. The weights are separate if in_proj_weight is NULL. */
gboolean gtorch_multi_head_attend (const GTorchMultiHead *self, GTorchImpl **output,
                                   GTorchImpl **weights, GError **error);

G_END_DECLS
