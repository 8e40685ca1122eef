/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-transformer-decoder-layer.h"

#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-transformer-private.h"

/**
 * GTorchTransformerDecoderLayer:
 *
 * A layer of the decoder of a transformer: self-attention, attention to a memory and a feed-forward part,
 * each followed by dropout, a sum with its input and a normalisation (Vaswani et al., Attention is all you
 * need, 2017).
 *
 * The children are `self_attn`, `multihead_attn`, `linear1`, `dropout`, `linear2`, `norm1` to `norm3`,
 * `dropout1` to `dropout3` and `activation`.
 *
 * Since: 0.1
 */

struct _GTorchTransformerDecoderLayer
{
  GTorchDecoder parent_instance;

  gint64 d_model, nhead, dim_feedforward;
  gdouble dropout_p, layer_norm_eps;
  gboolean batch_first, norm_first, bias;
  GTorchModule *activation_module;
  GTorchDevice *device;
  gint dtype;
};

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchTransformerDecoderLayer:d-model:
   *
   * The size of the last dimension of the input.
   *
   * Since: 0.1
   */
  { "d-model", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformerDecoderLayer, d_model), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:nhead:
   *
   * The number of heads.
   *
   * Since: 0.1
   */
  { "nhead", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformerDecoderLayer, nhead), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:dim-feedforward:
   *
   * The size of the hidden layer of the feed-forward part.
   *
   * Since: 0.1
   */
  { "dim-feedforward", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformerDecoderLayer, dim_feedforward), .value = 2048, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:dropout-p:
   *
   * The share of elements that are dropped in training mode. Later it is a property of the children.
   *
   * Since: 0.1
   */
  { "dropout-p", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchTransformerDecoderLayer, dropout_p), .value = 0.1, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:activation-module:
   *
   * The activation of the feed-forward part, the child `activation`; %NULL means a [class@ReLU].
   *
   * Since: 0.1
   */
  { "activation-module", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchTransformerDecoderLayer, activation_module), .type = gtorch_module_get_type, .get_value = gtorch_transformer_get_child_value, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:layer-norm-eps:
   *
   * A number that is added to the variances.
   *
   * Since: 0.1
   */
  { "layer-norm-eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchTransformerDecoderLayer, layer_norm_eps), .value = 1e-5, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:batch-first:
   *
   * Whether the batch is the first dimension, not the second.
   *
   * Since: 0.1
   */
  { "batch-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformerDecoderLayer, batch_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:norm-first:
   *
   * Whether the input of each part is normalised, not its sum with the output.
   *
   * Since: 0.1
   */
  { "norm-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformerDecoderLayer, norm_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:bias:
   *
   * Whether there are biases.
   *
   * Since: 0.1
   */
  { "bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformerDecoderLayer, bias), .value = TRUE, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerDecoderLayer:device:
   *
   * The device on which the parameters are created; %NULL means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DEVICE (GTorchTransformerDecoderLayer),
  /**
   * GTorchTransformerDecoderLayer:dtype:
   *
   * The dtype of the parameters; none means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DTYPE (GTorchTransformerDecoderLayer),
};
/* clang-format on */

G_DEFINE_TYPE (GTorchTransformerDecoderLayer, gtorch_transformer_decoder_layer, GTORCH_TYPE_DECODER)

static void
gtorch_transformer_decoder_layer_constructed (GObject *object)
{
  GTorchTransformerDecoderLayer *self = GTORCH_TRANSFORMER_DECODER_LAYER (object);
  const GTorchTransformerSettings settings = {
    .d_model = self->d_model,
    .nhead = self->nhead,
    .dim_feedforward = self->dim_feedforward,
    .dropout = self->dropout_p,
    .layer_norm_eps = self->layer_norm_eps,
    .batch_first = self->batch_first,
    .bias = self->bias,
    .activation = self->activation_module,
  };

  G_OBJECT_CLASS (gtorch_transformer_decoder_layer_parent_class)->constructed (object);
  gtorch_transformer_build_layer (GTORCH_MODULE (self), &settings, TRUE);
  gtorch_layer_move (GTORCH_MODULE (self), self->device, self->dtype);
  g_clear_object (&self->device);
  g_clear_object (&self->activation_module);
}

static void
gtorch_transformer_decoder_layer_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_transformer_decoder_layer_parent_class)->finalize (object);
}

static GTorchTensor *
gtorch_transformer_decoder_layer_decode (GTorchDecoder *decoder, GTorchTensor *tgt,
                                         GTorchTensor *memory, GTorchTensor *tgt_mask,
                                         GTorchTensor *memory_mask,
                                         GTorchTensor *tgt_key_padding_mask,
                                         GTorchTensor *memory_key_padding_mask,
                                         gboolean tgt_is_causal, gboolean memory_is_causal,
                                         GError **error)
{
  GTorchTransformerDecoderLayer *self = (GTorchTransformerDecoderLayer *) decoder;
  GTorchModule *module = (GTorchModule *) decoder;
  const GTorchTransformerPart parts[] = {
    { "self_attn", "norm1", "dropout1", NULL, tgt_mask, tgt_key_padding_mask, tgt_is_causal },
    { "multihead_attn", "norm2", "dropout2", memory, memory_mask, memory_key_padding_mask,
      memory_is_causal },
    { NULL, "norm3", "dropout3", NULL, NULL, NULL, FALSE },
  };

  if (!gtorch_layer_is (decoder, GTORCH_TYPE_TRANSFORMER_DECODER_LAYER, error)
      || !gtorch_module_is_usable (module, error))
    return NULL;
  return gtorch_transformer_run (module, tgt, parts, G_N_ELEMENTS (parts), self->norm_first, error);
}

static void
gtorch_transformer_decoder_layer_class_init (GTorchTransformerDecoderLayerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_transformer_decoder_layer_constructed;
  object_class->finalize = gtorch_transformer_decoder_layer_finalize;
  GTORCH_DECODER_CLASS (klass)->decode = gtorch_transformer_decoder_layer_decode;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_transformer_decoder_layer_init (GTorchTransformerDecoderLayer *self)
{
}

/**
 * gtorch_transformer_decoder_layer_new:
 * @d_model: the size of the last dimension of the input
 * @nhead: the number of heads, by which @d_model is divisible
 * @error: return location for an error
 *
 * Creates a [class@TransformerDecoderLayer]. Other settings are properties: see `gtorch_module_new ()`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
GTorchTransformerDecoderLayer *
gtorch_transformer_decoder_layer_new (gint64 d_model, gint64 nhead, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_TRANSFORMER_DECODER_LAYER, "d-model",
                                              d_model, "nhead", nhead, NULL),
                                error);
}
