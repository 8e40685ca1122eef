/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-transformer-encoder.h"

#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-transformer-private.h"

/**
 * GTorchTransformerEncoder:
 *
 * The encoder of a transformer: layers one after the other, and possibly a normalisation.
 *
 * The children are `layers`, a [class@Sequential] of them, and `norm`. The layers are as a rule of the class
 * [class@TransformerEncoderLayer], but may be any [class@Encoder].
 *
 * Since: 0.1
 */

struct _GTorchTransformerEncoder
{
  GTorchEncoder parent_instance;
};

typedef GTorchTransformerEncoder Self;

static const GTorchField fields[] = {
  /**
   * GTorchTransformerEncoder:num-layers: (getter get_num_layers)
   *
   * The number of layers.
   *
   * Since: 0.1
   */
  { "num-layers", GTORCH_PROPERTY_INT64 (gtorch_transformer_encoder_get_num_layers, NULL) },
};

G_DEFINE_TYPE (GTorchTransformerEncoder, gtorch_transformer_encoder, GTORCH_TYPE_ENCODER)

static GTorchTensor *
gtorch_transformer_encoder_encode (GTorchEncoder *encoder, GTorchTensor *src,
                                   GTorchTensor *src_mask, GTorchTensor *src_key_padding_mask,
                                   gboolean is_causal, GError **error)
{
  GTorchModule *self = (GTorchModule *) encoder;
  g_autoptr (GPtrArray) layers = NULL;
  g_autoptr (GTorchTensor) value = g_object_ref (src);

  if (!gtorch_layer_is (encoder, GTORCH_TYPE_TRANSFORMER_ENCODER, error))
    return NULL;
  layers = gtorch_transformer_dup_layers (self, GTORCH_TYPE_ENCODER, error);
  for (guint i = 0; layers != NULL && i < layers->len; i++)
    {
      GTorchTensor *output = gtorch_encoder_forward (layers->pdata[i], value, src_mask,
                                                     src_key_padding_mask, is_causal, error);

      if (output == NULL)
        return NULL;
      g_object_unref (value);
      value = output;
    }
  return layers != NULL ? gtorch_transformer_finish (self, value, error) : NULL;
}

static void
gtorch_transformer_encoder_class_init (GTorchTransformerEncoderClass *klass)
{
  GTORCH_ENCODER_CLASS (klass)->encode = gtorch_transformer_encoder_encode;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_transformer_encoder_init (GTorchTransformerEncoder *self)
{
  gtorch_transformer_add_layers (GTORCH_MODULE (self));
}

/**
 * gtorch_transformer_encoder_new:
 * @encoder_layer: a layer
 * @num_layers: the number of layers
 * @norm: (nullable): what normalises the output, or %NULL
 * @error: return location for an error
 *
 * Creates a [class@TransformerEncoder] of copies of a layer, which all begin with its parameters.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if @num_layers is not from 1 to
 *   65536, or %GTORCH_ERROR_NOT_SUPPORTED if the class of the layer is defined in another language, which
 *   then has to copy it itself, and to use [ctor@TransformerEncoder.new_from_layers]
 *
 * Since: 0.1
 */
GTorchTransformerEncoder *
gtorch_transformer_encoder_new (GTorchEncoder *encoder_layer, gint64 num_layers, GTorchModule *norm,
                                GError **error)
{
  g_autoptr (GTorchTransformerEncoder) self = NULL;

  g_return_val_if_fail (GTORCH_IS_ENCODER (encoder_layer), NULL);
  g_return_val_if_fail (norm == NULL || GTORCH_IS_MODULE (norm), NULL);
  self = g_object_new (GTORCH_TYPE_TRANSFORMER_ENCODER, NULL);
  if (!gtorch_transformer_add_copies (GTORCH_MODULE (self), GTORCH_MODULE (encoder_layer),
                                      num_layers, error)
      || !gtorch_transformer_add_norm (GTORCH_MODULE (self), norm, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_transformer_encoder_new_from_layers:
 * @layers: (array length=n_layers): layers
 * @n_layers: the length of @layers
 * @norm: (nullable): what normalises the output, or %NULL
 * @error: return location for an error
 *
 * Creates a [class@TransformerEncoder] of given layers.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if one of @layers is no
 *   [class@Encoder]
 *
 * Since: 0.1
 */
GTorchTransformerEncoder *
gtorch_transformer_encoder_new_from_layers (GTorchEncoder **layers, gsize n_layers,
                                            GTorchModule *norm, GError **error)
{
  g_autoptr (GTorchTransformerEncoder) self = NULL;

  g_return_val_if_fail (layers != NULL || n_layers == 0, NULL);
  g_return_val_if_fail (norm == NULL || GTORCH_IS_MODULE (norm), NULL);
  self = g_object_new (GTORCH_TYPE_TRANSFORMER_ENCODER, NULL);
  for (gsize i = 0; i < n_layers; i++)
    if (!gtorch_transformer_check_layer (GTORCH_MODULE (self), layers[i], GTORCH_TYPE_ENCODER,
                                         error)
        || !gtorch_transformer_add_layer (GTORCH_MODULE (self), GTORCH_MODULE (layers[i]), error))
      return NULL;
  if (!gtorch_transformer_add_norm (GTORCH_MODULE (self), norm, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_transformer_encoder_get_num_layers: (get-property num-layers)
 * @self: a module
 *
 * Gets the number of layers.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
gint64
gtorch_transformer_encoder_get_num_layers (GTorchTransformerEncoder *self)
{
  g_return_val_if_fail (GTORCH_IS_TRANSFORMER_ENCODER (self), 0);
  return gtorch_transformer_count_layers (GTORCH_MODULE (self));
}
