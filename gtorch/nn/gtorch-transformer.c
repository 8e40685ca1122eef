/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-transformer.h"

#include <math.h>

#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-init.h"
#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-transformer-decoder-layer.h"
#include "nn/gtorch-transformer-decoder.h"
#include "nn/gtorch-transformer-encoder-layer.h"
#include "nn/gtorch-transformer-encoder.h"
#include "nn/gtorch-transformer-private.h"

/**
 * GTorchTransformer:
 *
 * A transformer: an encoder of one sequence, and a decoder of another one that attends to what the encoder
 * made (Vaswani et al., Attention is all you need, 2017).
 *
 * The children are `encoder` and `decoder`. Parameters of two and more dimensions are initialised by
 * [func@init_xavier_uniform]. Hooks get @src and @tgt, and the output; with [method@Module.forward_many] it
 * takes these two, without masks.
 *
 * Since: 0.1
 */

struct _GTorchTransformer
{
  GTorchModule parent_instance;

  gint64 d_model, nhead, num_encoder_layers, num_decoder_layers, dim_feedforward;
  gdouble dropout, layer_norm_eps;
  gboolean batch_first, norm_first, bias;
  GTorchModule *activation_module, *custom_encoder, *custom_decoder;
  GTorchDevice *device;
  gint dtype;
};

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchTransformer:d-model:
   *
   * The size of the last dimension of the inputs.
   *
   * Since: 0.1
   */
  { "d-model", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformer, d_model), .value = 512, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:nhead:
   *
   * The number of heads.
   *
   * Since: 0.1
   */
  { "nhead", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformer, nhead), .value = 8, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:num-encoder-layers:
   *
   * The number of layers of the encoder.
   *
   * Since: 0.1
   */
  { "num-encoder-layers", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformer, num_encoder_layers), .value = 6, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:num-decoder-layers:
   *
   * The number of layers of the decoder.
   *
   * Since: 0.1
   */
  { "num-decoder-layers", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformer, num_decoder_layers), .value = 6, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:dim-feedforward:
   *
   * The size of the hidden layers of the feed-forward parts.
   *
   * Since: 0.1
   */
  { "dim-feedforward", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchTransformer, dim_feedforward), .value = 2048, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:dropout:
   *
   * The share of elements that are dropped in training mode. Later it is a property of the children.
   *
   * Since: 0.1
   */
  { "dropout", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchTransformer, dropout), .value = 0.1, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:activation-module:
   *
   * The activation of the feed-forward parts; %NULL means a [class@ReLU]. Layers share it if it has no
   * parameters, and have copies of it if it has some. Read later, it is %NULL: each layer has its own.
   *
   * Since: 0.1
   */
  { "activation-module", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchTransformer, activation_module), .type = gtorch_module_get_type, .get_value = gtorch_transformer_get_child_value, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:custom-encoder:
   *
   * An encoder to be used, the child `encoder`; %NULL means one of the library.
   *
   * Since: 0.1
   */
  { "custom-encoder", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchTransformer, custom_encoder), .type = gtorch_encoder_get_type, .get_value = gtorch_transformer_get_child_value, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:custom-decoder:
   *
   * A decoder to be used, the child `decoder`; %NULL means one of the library.
   *
   * Since: 0.1
   */
  { "custom-decoder", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchTransformer, custom_decoder), .type = gtorch_decoder_get_type, .get_value = gtorch_transformer_get_child_value, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:layer-norm-eps:
   *
   * A number that is added to the variances.
   *
   * Since: 0.1
   */
  { "layer-norm-eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchTransformer, layer_norm_eps), .value = 1e-5, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:batch-first:
   *
   * Whether the batch is the first dimension, not the second.
   *
   * Since: 0.1
   */
  { "batch-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformer, batch_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:norm-first:
   *
   * Whether the input of each part of the layers is normalised, not its sum with the output.
   *
   * Since: 0.1
   */
  { "norm-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformer, norm_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:bias:
   *
   * Whether there are biases.
   *
   * Since: 0.1
   */
  { "bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchTransformer, bias), .value = TRUE, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTransformer:device:
   *
   * The device on which the parameters are created; %NULL means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DEVICE (GTorchTransformer),
  /**
   * GTorchTransformer:dtype:
   *
   * The dtype of the parameters; none means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DTYPE (GTorchTransformer),
};
/* clang-format on */

G_DEFINE_TYPE (GTorchTransformer, gtorch_transformer, GTORCH_TYPE_MODULE)

static GTorchModule *
make_layer (GTorchTransformer *self, GType type, GError **error)
{
  g_autoptr (GTorchModule) activation = NULL;

  if (self->activation_module != NULL)
    {
      activation = gtorch_module_dup_stateless (self->activation_module, error);
      if (activation == NULL)
        return NULL;
    }
  return gtorch_module_new (type, error, "d-model", self->d_model, "nhead", self->nhead,
                            "dim-feedforward", self->dim_feedforward, "dropout-p", self->dropout,
                            "activation-module", activation, "layer-norm-eps", self->layer_norm_eps,
                            "batch-first", self->batch_first, "norm-first", self->norm_first,
                            "bias", self->bias, NULL);
}

/* Adds an encoder or a decoder of new layers. */
static gboolean
add_stack (GTorchTransformer *self, const gchar *name, GType type, GType layer_type, gint64 n,
           GError **error)
{
  GTorchModule *module = GTORCH_MODULE (self);
  g_autoptr (GTorchModule) stack = NULL;
  g_autoptr (GTorchModule) norm = NULL;

  if (!gtorch_layer_check_between (module,
                                   layer_type == GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER
                                       ? "num_encoder_layers"
                                       : "num_decoder_layers",
                                   n, 1, GTORCH_TRANSFORMER_MOST_LAYERS, error))
    return FALSE;
  stack = g_object_new (type, NULL);
  for (gint64 i = 0; i < n; i++)
    {
      g_autoptr (GTorchModule) layer = make_layer (self, layer_type, error);

      if (layer == NULL || !gtorch_transformer_add_layer (stack, layer, error))
        return FALSE;
    }
  norm = gtorch_transformer_new_norm (self->d_model, self->layer_norm_eps, self->bias, error);
  return norm != NULL && gtorch_transformer_add_norm (stack, norm, error)
         && gtorch_module_register_module (module, name, stack, error);
}

static gboolean
set_values (GTorchModule *module, GError **error)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);

  for (guint i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);

      if (gtorch_tensor_unwrap (parameter)->n_dims > 1
          && !gtorch_init_xavier_uniform (parameter, 1, NULL, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
build (GTorchTransformer *self, GError **error)
{
  GTorchModule *module = GTORCH_MODULE (self);

  if (self->custom_encoder != NULL
          ? !gtorch_module_register_module (module, "encoder", self->custom_encoder, error)
          : !add_stack (self, "encoder", GTORCH_TYPE_TRANSFORMER_ENCODER,
                        GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER, self->num_encoder_layers, error))
    return FALSE;
  if (self->custom_decoder != NULL
          ? !gtorch_module_register_module (module, "decoder", self->custom_decoder, error)
          : !add_stack (self, "decoder", GTORCH_TYPE_TRANSFORMER_DECODER,
                        GTORCH_TYPE_TRANSFORMER_DECODER_LAYER, self->num_decoder_layers, error))
    return FALSE;
  return set_values (module, error);
}

static void
gtorch_transformer_constructed (GObject *object)
{
  GTorchTransformer *self = GTORCH_TRANSFORMER (object);
  GError *error = NULL;

  G_OBJECT_CLASS (gtorch_transformer_parent_class)->constructed (object);
  if (!build (self, &error))
    gtorch_module_set_error (GTORCH_MODULE (self), error);
  gtorch_layer_move (GTORCH_MODULE (self), self->device, self->dtype);
  g_clear_object (&self->device);
  g_clear_object (&self->activation_module);
  g_clear_object (&self->custom_encoder);
  g_clear_object (&self->custom_decoder);
}

static void
gtorch_transformer_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_transformer_parent_class)->finalize (object);
}

typedef struct
{
  GTorchTensor *src_mask, *tgt_mask, *memory_mask;
  GTorchTensor *src_padding, *tgt_padding, *memory_padding;
  gboolean src_is_causal, tgt_is_causal, memory_is_causal;
} Call;

static GTorchTensor *
transform (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
           GError **error)
{
  const Call *call = data;
  g_autoptr (GTorchModule) encoder = NULL;
  g_autoptr (GTorchModule) decoder = NULL;
  g_autoptr (GTorchTensor) memory = NULL;

  if (n_inputs != 2)
    return gtorch_module_refuse_inputs (module, n_inputs, error);
  encoder = gtorch_transformer_get_child (module, "encoder", GTORCH_TYPE_ENCODER, error);
  decoder = encoder != NULL
                ? gtorch_transformer_get_child (module, "decoder", GTORCH_TYPE_DECODER, error)
                : NULL;
  if (decoder == NULL)
    return NULL;
  memory = gtorch_encoder_forward (GTORCH_ENCODER (encoder), inputs[0], call->src_mask,
                                   call->src_padding, call->src_is_causal, error);
  if (memory == NULL)
    return NULL;
  return gtorch_decoder_forward (GTORCH_DECODER (decoder), inputs[1], memory, call->tgt_mask,
                                 call->memory_mask, call->tgt_padding, call->memory_padding,
                                 call->tgt_is_causal, call->memory_is_causal, error);
}

static GTorchTensor *
gtorch_transformer_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                 GError **error)
{
  Call call = { NULL };

  if (!gtorch_module_is_usable (module, error))
    return NULL;
  return transform (module, inputs, n_inputs, &call, error);
}

static void
gtorch_transformer_class_init (GTorchTransformerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_transformer_constructed;
  object_class->finalize = gtorch_transformer_finalize;
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_transformer_forward_many;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_transformer_init (GTorchTransformer *self)
{
}

/**
 * gtorch_transformer_new:
 * @d_model: the size of the last dimension of the inputs
 * @nhead: the number of heads, by which @d_model is divisible
 * @error: return location for an error
 *
 * Creates a [class@Transformer]. Other settings are properties: see `gtorch_module_new ()`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
GTorchTransformer *
gtorch_transformer_new (gint64 d_model, gint64 nhead, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_TRANSFORMER, "d-model", d_model, "nhead",
                                              nhead, NULL),
                                error);
}

/**
 * gtorch_transformer_forward:
 * @self: a transformer
 * @src: the sequences for the encoder, [S, N, E], or [N, S, E] if the batch comes first, or [S, E]
 * @tgt: the sequences for the decoder, [L, N, E], [N, L, E] or [L, E]
 * @src_mask: (nullable): the mask of [method@Encoder.forward]
 * @tgt_mask: (nullable): the mask of [method@Decoder.forward]
 * @memory_mask: (nullable): the mask of [method@Decoder.forward]
 * @src_key_padding_mask: (nullable): [N, S] or [S]: true for elements of @src that no one attends to, or
 *   numbers
 * @tgt_key_padding_mask: (nullable): [N, L] or [L]: the same for those of @tgt
 * @memory_key_padding_mask: (nullable): [N, S] or [S]: the same for what the encoder made
 * @src_is_causal: whether @src_mask is the causal mask
 * @tgt_is_causal: whether @tgt_mask is the causal mask
 * @memory_is_causal: whether @memory_mask is the causal mask
 * @error: return location for an error
 *
 * Encodes @src, and decodes @tgt.
 *
 * Returns: (transfer full): a tensor of the shape of @tgt, or %NULL with an error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_transformer_forward (GTorchTransformer *self, GTorchTensor *src, GTorchTensor *tgt,
                            GTorchTensor *src_mask, GTorchTensor *tgt_mask,
                            GTorchTensor *memory_mask, GTorchTensor *src_key_padding_mask,
                            GTorchTensor *tgt_key_padding_mask,
                            GTorchTensor *memory_key_padding_mask, gboolean src_is_causal,
                            gboolean tgt_is_causal, gboolean memory_is_causal, GError **error)
{
  GTorchTensor *inputs[] = { src, tgt };
  Call call = { src_mask,
                tgt_mask,
                memory_mask,
                src_key_padding_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                src_is_causal,
                tgt_is_causal,
                memory_is_causal };

  g_return_val_if_fail (GTORCH_IS_TRANSFORMER (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (src), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (tgt), NULL);
  g_return_val_if_fail (src_mask == NULL || GTORCH_IS_TENSOR (src_mask), NULL);
  g_return_val_if_fail (tgt_mask == NULL || GTORCH_IS_TENSOR (tgt_mask), NULL);
  g_return_val_if_fail (memory_mask == NULL || GTORCH_IS_TENSOR (memory_mask), NULL);
  g_return_val_if_fail (src_key_padding_mask == NULL || GTORCH_IS_TENSOR (src_key_padding_mask),
                        NULL);
  g_return_val_if_fail (tgt_key_padding_mask == NULL || GTORCH_IS_TENSOR (tgt_key_padding_mask),
                        NULL);
  g_return_val_if_fail (memory_key_padding_mask == NULL
                            || GTORCH_IS_TENSOR (memory_key_padding_mask),
                        NULL);

  return gtorch_module_call_by (GTORCH_MODULE (self), inputs, 2, transform, &call, error);
}

/**
 * gtorch_transformer_generate_square_subsequent_mask:
 * @sz: the length of a sequence
 * @device: (nullable): the device, or %NULL for the default
 * @dtype: a floating-point dtype, or %GTORCH_DTYPE_NONE for the default
 * @error: return location for an error
 *
 * Makes the causal mask: -infinity above the diagonal, where an element would attend to a later one, and
 * zeros elsewhere.
 *
 * Returns: (transfer full): a tensor of the shape [sz, sz], or %NULL with an error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_transformer_generate_square_subsequent_mask (gint64 sz, GTorchDevice *device,
                                                    GTorchDType dtype, GError **error)
{
  const gint64 shape[] = { sz, sz };
  g_autoptr (GTorchImpl) full = NULL;

  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  full = gtorch_op_full (shape, 2, -INFINITY, dtype, gtorch_device_resolved (device), error);
  return full != NULL ? gtorch_tensor_wrap (gtorch_op_triu (full, 1, error)) : NULL;
}
