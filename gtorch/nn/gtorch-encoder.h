/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ENCODER (gtorch_encoder_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchEncoder, gtorch_encoder, GTORCH, ENCODER, GTorchModule)

/**
 * GTorchEncoderClass:
 * @parent_class: the parent class
 * @encode: encodes sequences
 *
 * The virtual functions of an encoder.
 *
 * Since: 0.1
 */
struct _GTorchEncoderClass
{
  GTorchModuleClass parent_class;

  GTorchTensor *(*encode) (GTorchEncoder *self, GTorchTensor *src, GTorchTensor *src_mask,
                           GTorchTensor *src_key_padding_mask, gboolean is_causal, GError **error);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_encoder_forward (GTorchEncoder *self, GTorchTensor *src,
                                      GTorchTensor *src_mask, GTorchTensor *src_key_padding_mask,
                                      gboolean is_causal, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
