/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-attention.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MULTIHEAD_ATTENTION (gtorch_multihead_attention_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMultiheadAttention, gtorch_multihead_attention, GTORCH,
                      MULTIHEAD_ATTENTION, GTorchAttention)

GTORCH_AVAILABLE_IN_0_1
GTorchMultiheadAttention *gtorch_multihead_attention_new (gint64 embed_dim, gint64 num_heads,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
