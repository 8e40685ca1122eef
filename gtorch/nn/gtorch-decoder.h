/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DECODER (gtorch_decoder_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchDecoder, gtorch_decoder, GTORCH, DECODER, GTorchModule)

/**
 * GTorchDecoderClass:
 * @parent_class: the parent class
 * @decode: decodes sequences
 *
 * The virtual functions of a decoder.
 *
 * Since: 0.1
 */
struct _GTorchDecoderClass
{
  GTorchModuleClass parent_class;

  GTorchTensor *(*decode) (GTorchDecoder *self, GTorchTensor *tgt, GTorchTensor *memory,
                           GTorchTensor *tgt_mask, GTorchTensor *memory_mask,
                           GTorchTensor *tgt_key_padding_mask,
                           GTorchTensor *memory_key_padding_mask, gboolean tgt_is_causal,
                           gboolean memory_is_causal, GError **error);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_decoder_forward (GTorchDecoder *self, GTorchTensor *tgt, GTorchTensor *memory,
                                      GTorchTensor *tgt_mask, GTorchTensor *memory_mask,
                                      GTorchTensor *tgt_key_padding_mask,
                                      GTorchTensor *memory_key_padding_mask, gboolean tgt_is_causal,
                                      gboolean memory_is_causal,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
