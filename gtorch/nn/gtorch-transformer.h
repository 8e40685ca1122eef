/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TRANSFORMER (gtorch_transformer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTransformer, gtorch_transformer, GTORCH, TRANSFORMER, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchTransformer *gtorch_transformer_new (gint64 d_model, gint64 nhead,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_transformer_forward (
    GTorchTransformer *self, GTorchTensor *src, GTorchTensor *tgt, GTorchTensor *src_mask,
    GTorchTensor *tgt_mask, GTorchTensor *memory_mask, GTorchTensor *src_key_padding_mask,
    GTorchTensor *tgt_key_padding_mask, GTorchTensor *memory_key_padding_mask,
    gboolean src_is_causal, gboolean tgt_is_causal, gboolean memory_is_causal,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_transformer_generate_square_subsequent_mask (
    gint64 sz, GTorchDevice *device, GTorchDType dtype, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
