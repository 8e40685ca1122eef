/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-decoder.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TRANSFORMER_DECODER (gtorch_transformer_decoder_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTransformerDecoder, gtorch_transformer_decoder, GTORCH,
                      TRANSFORMER_DECODER, GTorchDecoder)

GTORCH_AVAILABLE_IN_0_1
GTorchTransformerDecoder *gtorch_transformer_decoder_new (GTorchDecoder *decoder_layer,
                                                          gint64 num_layers, GTorchModule *norm,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTransformerDecoder *
gtorch_transformer_decoder_new_from_layers (GTorchDecoder **layers, gsize n_layers,
                                            GTorchModule *norm,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_transformer_decoder_get_num_layers (GTorchTransformerDecoder *self);

G_END_DECLS
