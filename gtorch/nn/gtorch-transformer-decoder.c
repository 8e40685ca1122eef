/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-transformer-decoder.h"

#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-transformer-private.h"

/**
 * GTorchTransformerDecoder:
 *
 * The decoder of a transformer: layers one after the other, and possibly a normalisation.
 *
 * The children are `layers`, a [class@Sequential] of them, and `norm`. The layers are as a rule of the class
 * [class@TransformerDecoderLayer], but may be any [class@Decoder].
 *
 * Since: 0.1
 */

struct _GTorchTransformerDecoder
{
  GTorchDecoder parent_instance;
};

typedef GTorchTransformerDecoder Self;

static const GTorchField fields[] = {
  /**
   * GTorchTransformerDecoder:num-layers: (getter get_num_layers)
   *
   * The number of layers.
   *
   * Since: 0.1
   */
  { "num-layers", GTORCH_PROPERTY_INT64 (gtorch_transformer_decoder_get_num_layers, NULL) },
};

G_DEFINE_TYPE (GTorchTransformerDecoder, gtorch_transformer_decoder, GTORCH_TYPE_DECODER)

static GTorchTensor *
gtorch_transformer_decoder_decode (GTorchDecoder *decoder, GTorchTensor *tgt, GTorchTensor *memory,
                                   GTorchTensor *tgt_mask, GTorchTensor *memory_mask,
                                   GTorchTensor *tgt_key_padding_mask,
                                   GTorchTensor *memory_key_padding_mask, gboolean tgt_is_causal,
                                   gboolean memory_is_causal, GError **error)
{
  GTorchModule *self = (GTorchModule *) decoder;
  g_autoptr (GPtrArray) layers = NULL;
  g_autoptr (GTorchTensor) value = g_object_ref (tgt);

  if (!gtorch_layer_is (decoder, GTORCH_TYPE_TRANSFORMER_DECODER, error))
    return NULL;
  layers = gtorch_transformer_dup_layers (self, GTORCH_TYPE_DECODER, error);
  for (guint i = 0; layers != NULL && i < layers->len; i++)
    {
      GTorchTensor *output =
          gtorch_decoder_forward (layers->pdata[i], value, memory, tgt_mask, memory_mask,
                                  tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                                  memory_is_causal, error);

      if (output == NULL)
        return NULL;
      g_object_unref (value);
      value = output;
    }
  return layers != NULL ? gtorch_transformer_finish (self, value, error) : NULL;
}

static void
gtorch_transformer_decoder_class_init (GTorchTransformerDecoderClass *klass)
{
  GTORCH_DECODER_CLASS (klass)->decode = gtorch_transformer_decoder_decode;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_transformer_decoder_init (GTorchTransformerDecoder *self)
{
  gtorch_transformer_add_layers (GTORCH_MODULE (self));
}

/**
 * gtorch_transformer_decoder_new:
 * @decoder_layer: a layer
 * @num_layers: the number of layers
 * @norm: (nullable): what normalises the output, or %NULL
 * @error: return location for an error
 *
 * Creates a [class@TransformerDecoder] of copies of a layer, which all begin with its parameters.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if @num_layers is not from 1 to
 *   65536, or %GTORCH_ERROR_NOT_SUPPORTED if the class of the layer is defined in another language, which
 *   then has to copy it itself, and to use [ctor@TransformerDecoder.new_from_layers]
 *
 * Since: 0.1
 */
GTorchTransformerDecoder *
gtorch_transformer_decoder_new (GTorchDecoder *decoder_layer, gint64 num_layers, GTorchModule *norm,
                                GError **error)
{
  g_autoptr (GTorchTransformerDecoder) self = NULL;

  g_return_val_if_fail (GTORCH_IS_DECODER (decoder_layer), NULL);
  g_return_val_if_fail (norm == NULL || GTORCH_IS_MODULE (norm), NULL);
  self = g_object_new (GTORCH_TYPE_TRANSFORMER_DECODER, NULL);
  if (!gtorch_transformer_add_copies (GTORCH_MODULE (self), GTORCH_MODULE (decoder_layer),
                                      num_layers, error)
      || !gtorch_transformer_add_norm (GTORCH_MODULE (self), norm, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_transformer_decoder_new_from_layers:
 * @layers: (array length=n_layers): layers
 * @n_layers: the length of @layers
 * @norm: (nullable): what normalises the output, or %NULL
 * @error: return location for an error
 *
 * Creates a [class@TransformerDecoder] of given layers.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if one of @layers is no
 *   [class@Decoder]
 *
 * Since: 0.1
 */
GTorchTransformerDecoder *
gtorch_transformer_decoder_new_from_layers (GTorchDecoder **layers, gsize n_layers,
                                            GTorchModule *norm, GError **error)
{
  g_autoptr (GTorchTransformerDecoder) self = NULL;

  g_return_val_if_fail (layers != NULL || n_layers == 0, NULL);
  g_return_val_if_fail (norm == NULL || GTORCH_IS_MODULE (norm), NULL);
  self = g_object_new (GTORCH_TYPE_TRANSFORMER_DECODER, NULL);
  for (gsize i = 0; i < n_layers; i++)
    if (!gtorch_transformer_check_layer (GTORCH_MODULE (self), layers[i], GTORCH_TYPE_DECODER,
                                         error)
        || !gtorch_transformer_add_layer (GTORCH_MODULE (self), GTORCH_MODULE (layers[i]), error))
      return NULL;
  if (!gtorch_transformer_add_norm (GTORCH_MODULE (self), norm, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_transformer_decoder_get_num_layers: (get-property num-layers)
 * @self: a module
 *
 * Gets the number of layers.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
gint64
gtorch_transformer_decoder_get_num_layers (GTorchTransformerDecoder *self)
{
  g_return_val_if_fail (GTORCH_IS_TRANSFORMER_DECODER (self), 0);
  return gtorch_transformer_count_layers (GTORCH_MODULE (self));
}
