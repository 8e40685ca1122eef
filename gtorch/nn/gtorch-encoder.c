/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-encoder.h"

#include "nn/gtorch-module-private.h"

/**
 * GTorchEncoder:
 *
 * A module that encodes sequences, which may be masked: a [class@TransformerEncoderLayer], or several one
 * after the other, a [class@TransformerEncoder].
 *
 * Subclasses override `encode`. Hooks get @src and the output. [method@Module.forward] encodes without masks.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchEncoder, gtorch_encoder, GTORCH_TYPE_MODULE)

typedef struct
{
  GTorchTensor *mask, *padding;
  gboolean is_causal;
} Call;

static GTorchTensor *
call_encode (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
             GError **error)
{
  GTorchEncoderClass *klass = GTORCH_ENCODER_GET_CLASS (module);
  const Call *call = data;

  if (n_inputs != 1 || klass->encode == NULL)
    return gtorch_module_refuse_inputs (module, n_inputs, error);
  return klass->encode (GTORCH_ENCODER (module), inputs[0], call->mask, call->padding,
                        call->is_causal, error);
}

static GTorchTensor *
gtorch_encoder_real_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  Call call = { NULL };

  return call_encode (module, &input, 1, &call, error);
}

static void
gtorch_encoder_class_init (GTorchEncoderClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_encoder_real_forward;
}

static void
gtorch_encoder_init (GTorchEncoder *self)
{
}

/**
 * gtorch_encoder_forward: (virtual encode)
 * @self: an encoder
 * @src: the sequences, [S, N, E], or [N, S, E] if the batch comes first, or [S, E]
 * @src_mask: (nullable): [S, S] or [N · heads, S, S]: true where an element does not attend to another, or
 *   numbers that are added to scores
 * @src_key_padding_mask: (nullable): [N, S] or [S]: true for elements that no one attends to, or numbers
 * @is_causal: whether @src_mask is the causal mask
 * @error: return location for an error
 *
 * Encodes sequences.
 *
 * Returns: (transfer full): a tensor of the shape of @src, or %NULL with the error of the class
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_encoder_forward (GTorchEncoder *self, GTorchTensor *src, GTorchTensor *src_mask,
                        GTorchTensor *src_key_padding_mask, gboolean is_causal, GError **error)
{
  Call call = { src_mask, src_key_padding_mask, is_causal };

  g_return_val_if_fail (GTORCH_IS_ENCODER (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (src), NULL);
  g_return_val_if_fail (src_mask == NULL || GTORCH_IS_TENSOR (src_mask), NULL);
  g_return_val_if_fail (src_key_padding_mask == NULL || GTORCH_IS_TENSOR (src_key_padding_mask),
                        NULL);

  return gtorch_module_call_by (GTORCH_MODULE (self), &src, 1, call_encode, &call, error);
}
