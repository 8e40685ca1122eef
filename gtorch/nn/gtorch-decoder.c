/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-decoder.h"

#include "nn/gtorch-module-private.h"

/**
 * GTorchDecoder:
 *
 * A module that decodes sequences which attend to a memory, that of an encoder: a
 * [class@TransformerDecoderLayer], or several one after the other, a [class@TransformerDecoder].
 *
 * Subclasses override `decode`. Hooks get @tgt and @memory, and the output. [method@Module.forward_many]
 * takes these two, and decodes without masks.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchDecoder, gtorch_decoder, GTORCH_TYPE_MODULE)

typedef struct
{
  GTorchTensor *masks[4];
  gboolean tgt_is_causal, memory_is_causal;
} Call;

static GTorchTensor *
call_decode (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
             GError **error)
{
  GTorchDecoderClass *klass = GTORCH_DECODER_GET_CLASS (module);
  const Call *call = data;

  if (n_inputs != 2 || klass->decode == NULL)
    return gtorch_module_refuse_inputs (module, n_inputs, error);
  return klass->decode (GTORCH_DECODER (module), inputs[0], inputs[1], call->masks[0],
                        call->masks[1], call->masks[2], call->masks[3], call->tgt_is_causal,
                        call->memory_is_causal, error);
}

static GTorchTensor *
gtorch_decoder_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                             GError **error)
{
  Call call = { { NULL } };

  return call_decode (module, inputs, n_inputs, &call, error);
}

static void
gtorch_decoder_class_init (GTorchDecoderClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_decoder_forward_many;
}

static void
gtorch_decoder_init (GTorchDecoder *self)
{
}

/**
 * gtorch_decoder_forward: (virtual decode)
 * @self: a decoder
 * @tgt: the sequences, [L, N, E], or [N, L, E] if the batch comes first, or [L, E]
 * @memory: what the encoder gave, [S, N, E], [N, S, E] or [S, E]
 * @tgt_mask: (nullable): [L, L] or [N · heads, L, L]: true where an element of @tgt does not attend to
 *   another, or numbers that are added to scores
 * @memory_mask: (nullable): [L, S] or [N · heads, L, S]: the same for those of @memory
 * @tgt_key_padding_mask: (nullable): [N, L] or [L]: true for elements of @tgt that no one attends to, or
 *   numbers
 * @memory_key_padding_mask: (nullable): [N, S] or [S]: the same for those of @memory
 * @tgt_is_causal: whether @tgt_mask is the causal mask
 * @memory_is_causal: whether @memory_mask is the causal mask
 * @error: return location for an error
 *
 * Decodes sequences.
 *
 * Returns: (transfer full): a tensor of the shape of @tgt, or %NULL with the error of the class
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_decoder_forward (GTorchDecoder *self, GTorchTensor *tgt, GTorchTensor *memory,
                        GTorchTensor *tgt_mask, GTorchTensor *memory_mask,
                        GTorchTensor *tgt_key_padding_mask, GTorchTensor *memory_key_padding_mask,
                        gboolean tgt_is_causal, gboolean memory_is_causal, GError **error)
{
  GTorchTensor *inputs[] = { tgt, memory };
  Call call = { { tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask },
                tgt_is_causal,
                memory_is_causal };

  g_return_val_if_fail (GTORCH_IS_DECODER (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (tgt), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (memory), NULL);
  for (guint i = 0; i < 4; i++)
    g_return_val_if_fail (call.masks[i] == NULL || GTORCH_IS_TENSOR (call.masks[i]), NULL);

  return gtorch_module_call_by (GTORCH_MODULE (self), inputs, 2, call_decode, &call, error);
}
