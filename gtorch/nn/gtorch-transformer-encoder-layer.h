/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-encoder.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER (gtorch_transformer_encoder_layer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTransformerEncoderLayer, gtorch_transformer_encoder_layer, GTORCH,
                      TRANSFORMER_ENCODER_LAYER, GTorchEncoder)

GTORCH_AVAILABLE_IN_0_1
GTorchTransformerEncoderLayer *
gtorch_transformer_encoder_layer_new (gint64 d_model, gint64 nhead,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
