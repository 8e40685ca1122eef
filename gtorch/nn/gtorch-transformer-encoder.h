/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-encoder.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TRANSFORMER_ENCODER (gtorch_transformer_encoder_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTransformerEncoder, gtorch_transformer_encoder, GTORCH,
                      TRANSFORMER_ENCODER, GTorchEncoder)

GTORCH_AVAILABLE_IN_0_1
GTorchTransformerEncoder *gtorch_transformer_encoder_new (GTorchEncoder *encoder_layer,
                                                          gint64 num_layers, GTorchModule *norm,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTransformerEncoder *
gtorch_transformer_encoder_new_from_layers (GTorchEncoder **layers, gsize n_layers,
                                            GTorchModule *norm,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_transformer_encoder_get_num_layers (GTorchTransformerEncoder *self);

G_END_DECLS
