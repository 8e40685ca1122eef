/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ATTENTION (gtorch_attention_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchAttention, gtorch_attention, GTORCH, ATTENTION, GTorchModule)

/**
 * GTorchAttentionClass:
 * @parent_class: the parent class
 * @attend: attends to values by queries and keys
 *
 * The virtual functions of an attention.
 *
 * Since: 0.1
 */
struct _GTorchAttentionClass
{
  GTorchModuleClass parent_class;

  gboolean (*attend) (GTorchAttention *self, GTorchTensor *query, GTorchTensor *key,
                      GTorchTensor *value, GTorchTensor *key_padding_mask, gboolean need_weights,
                      GTorchTensor *attn_mask, gboolean average_attn_weights, gboolean is_causal,
                      GTorchTensor **output, GTorchTensor **weights, GError **error);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_attention_forward (GTorchAttention *self, GTorchTensor *query, GTorchTensor *key,
                                   GTorchTensor *value, GTorchTensor *key_padding_mask,
                                   gboolean need_weights, GTorchTensor *attn_mask,
                                   gboolean average_attn_weights, gboolean is_causal,
                                   GTorchTensor **output, GTorchTensor **weights, GError **error);

G_END_DECLS
