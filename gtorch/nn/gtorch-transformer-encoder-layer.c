/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-transformer-encoder-layer.h"

#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-transformer-private.h"

/**
 * GTorchTransformerEncoderLayer:
 *
 * A layer of the encoder of a transformer: self-attention and a feed-forward part, each followed by dropout,
 * a sum with its input and a normalisation (Vaswani et al., Attention is all you need, 2017).
 *
 * The children are `self_attn`, `linear1`, `dropout`, `linear2`, `norm1`, `norm2`, `dropout1`, `dropout2` and
 * `activation`.
 *
 * Since: 0.1
 */

struct _GTorchTransformerEncoderLayer
{
  GTorchEncoder parent_instance;

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
   * GTorchTransformerEncoderLayer:d-model:
   *
   * The size of the last dimension of the input.
   *
   * Since: 0.1
   */
  { "d-model", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformerEncoderLayer, d_model), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:nhead:
   *
   * The number of heads.
   *
   * Since: 0.1
   */
  { "nhead", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformerEncoderLayer, nhead), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:dim-feedforward:
   *
   * The size of the hidden layer of the feed-forward part.
   *
   * Since: 0.1
   */
  { "dim-feedforward", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformerEncoderLayer, dim_feedforward), .value = 2048, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:dropout-p:
   *
   * The share of elements that are dropped in training mode. Later it is a property of the children.
   *
   * Since: 0.1
   */
  { "dropout-p", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchTransformerEncoderLayer, dropout_p), .value = 0.1, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:activation-module:
   *
   * The activation of the feed-forward part, the child `activation`; %NULL means a [class@ReLU].
   *
   * Since: 0.1
   */
  { "activation-module", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchTransformerEncoderLayer, activation_module), .type = gtorch_module_get_type, .get_value = gtorch_transformer_get_child_value, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:layer-norm-eps:
   *
   * A number that is added to the variances.
   *
   * Since: 0.1
   */
  { "layer-norm-eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchTransformerEncoderLayer, layer_norm_eps), .value = 1e-5, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:batch-first:
   *
   * Whether the batch is the first dimension, not the second.
   *
   * Since: 0.1
   */
  { "batch-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformerEncoderLayer, batch_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:norm-first:
   *
   * Whether the input of each part is normalised, not its sum with the output.
   *
   * Since: 0.1
   */
  { "norm-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformerEncoderLayer, norm_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:bias:
   *
   * Whether there are biases.
   *
   * Since: 0.1
   */
  { "bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformerEncoderLayer, bias), .value = TRUE, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformerEncoderLayer:device:
   *
   * The device on which the parameters are created; %NULL means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DEVICE (GTorchTransformerEncoderLayer),
  /**
   * GTorchTransformerEncoderLayer:dtype:
   *
   * The dtype of the parameters; none means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DTYPE (GTorchTransformerEncoderLayer),
};
/* clang-format on */

G_DEFINE_TYPE (GTorchTransformerEncoderLayer, gtorch_transformer_encoder_layer, GTORCH_TYPE_ENCODER)

static void
gtorch_transformer_encoder_layer_constructed (GObject *object)
{
  GTorchTransformerEncoderLayer *self = GTORCH_TRANSFORMER_ENCODER_LAYER (object);
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

  G_OBJECT_CLASS (gtorch_transformer_encoder_layer_parent_class)->constructed (object);
  gtorch_transformer_build_layer (GTORCH_MODULE (self), &settings, FALSE);
  gtorch_layer_move (GTORCH_MODULE (self), self->device, self->dtype);
  g_clear_object (&self->device);
  g_clear_object (&self->activation_module);
}

static void
gtorch_transformer_encoder_layer_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_transformer_encoder_layer_parent_class)->finalize (object);
}

static GTorchTensor *
gtorch_transformer_encoder_layer_encode (GTorchEncoder *encoder, GTorchTensor *src,
                                         GTorchTensor *src_mask, GTorchTensor *src_key_padding_mask,
                                         gboolean is_causal, GError **error)
{
  GTorchTransformerEncoderLayer *self = (GTorchTransformerEncoderLayer *) encoder;
  GTorchModule *module = (GTorchModule *) encoder;
  const GTorchTransformerPart parts[] = {
    { "self_attn", "norm1", "dropout1", NULL, src_mask, src_key_padding_mask, is_causal },
    { NULL, "norm2", "dropout2", NULL, NULL, NULL, FALSE },
  };

  if (!gtorch_layer_is (encoder, GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER, error)
      || !gtorch_module_is_usable (module, error))
    return NULL;
  return gtorch_transformer_run (module, src, parts, G_N_ELEMENTS (parts), self->norm_first, error);
}

static void
gtorch_transformer_encoder_layer_class_init (GTorchTransformerEncoderLayerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_transformer_encoder_layer_constructed;
  object_class->finalize = gtorch_transformer_encoder_layer_finalize;
  GTORCH_ENCODER_CLASS (klass)->encode = gtorch_transformer_encoder_layer_encode;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_transformer_encoder_layer_init (GTorchTransformerEncoderLayer *self)
{
}

/**
 * gtorch_transformer_encoder_layer_new:
 * @d_model: the size of the last dimension of the input
 * @nhead: the number of heads, by which @d_model is divisible
 * @error: return location for an error
 *
 * Creates a [class@TransformerEncoderLayer]. Other settings are properties: see `gtorch_module_new ()`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
GTorchTransformerEncoderLayer *
gtorch_transformer_encoder_layer_new (gint64 d_model, gint64 nhead, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER, "d-model",
                                              d_model, "nhead", nhead, NULL),
                                error);
}
