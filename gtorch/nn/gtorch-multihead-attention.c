/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-multihead-attention.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-none-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-init.h"
#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-layers.h"
#include "ops/gtorch-multi-head-private.h"

/**
 * GTorchMultiheadAttention:
 *
 * Attends in several heads: each has its part of the projections of query, key and value, and what they find,
 * joined, is projected again (Vaswani et al., Attention is all you need, 2017).
 *
 * The child `out_proj` is the last projection, a [class@Linear]. The weights are initialised from a uniform
 * distribution, by [func@init_xavier_uniform]; the biases are zeros, and the further key and value, if there
 * are such, are normal, by [func@init_xavier_normal].
 *
 * Since: 0.1
 */

struct _GTorchMultiheadAttention
{
  GTorchAttention parent_instance;

  gint64 embed_dim, num_heads;
  gdouble dropout;
  gboolean bias, add_bias_kv, add_zero_attn;
  gint64 kdim, vdim;
  gboolean batch_first;
  GTorchDevice *device;
  gint dtype;
};

enum
{
  IN_PROJ_WEIGHT,
  Q_PROJ_WEIGHT,
  K_PROJ_WEIGHT,
  V_PROJ_WEIGHT,
  IN_PROJ_BIAS,
  BIAS_K,
  BIAS_V,
  N_PARAMETERS,
};

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchMultiheadAttention:embed-dim:
   *
   * The size of the last dimension of the queries, and of the output.
   *
   * Since: 0.1
   */
  { "embed-dim", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchMultiheadAttention, embed_dim), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMultiheadAttention:num-heads:
   *
   * The number of heads.
   *
   * Since: 0.1
   */
  { "num-heads", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchMultiheadAttention, num_heads), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMultiheadAttention:dropout:
   *
   * The share of weights that are dropped in training mode.
   *
   * Since: 0.1
   */
  { "dropout", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchMultiheadAttention, dropout), .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchMultiheadAttention:bias:
   *
   * Whether the projections have biases.
   *
   * Since: 0.1
   */
  { "bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMultiheadAttention, bias), .value = TRUE, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMultiheadAttention:add-bias-kv:
   *
   * Whether there is a further key and value, which are learned.
   *
   * Since: 0.1
   */
  { "add-bias-kv", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMultiheadAttention, add_bias_kv), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMultiheadAttention:add-zero-attn:
   *
   * Whether there is a further key and value of zeros.
   *
   * Since: 0.1
   */
  { "add-zero-attn", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMultiheadAttention, add_zero_attn), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMultiheadAttention:kdim:
   *
   * The size of the last dimension of the keys, by default #GTorchMultiheadAttention:embed-dim.
   *
   * Since: 0.1
   */
  { "kdim", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchMultiheadAttention, kdim), .value = GTORCH_NONE, .flags = GTORCH_FIELD_FIXED, .is_optional = TRUE },
  /**
   * GTorchMultiheadAttention:vdim:
   *
   * The size of the last dimension of the values, by default #GTorchMultiheadAttention:embed-dim.
   *
   * Since: 0.1
   */
  { "vdim", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchMultiheadAttention, vdim), .value = GTORCH_NONE, .flags = GTORCH_FIELD_FIXED, .is_optional = TRUE },
  /**
   * GTorchMultiheadAttention:batch-first:
   *
   * Whether the batch is the first dimension, not the second.
   *
   * Since: 0.1
   */
  { "batch-first", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMultiheadAttention, batch_first), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMultiheadAttention:device:
   *
   * The device on which the parameters are created; %NULL means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DEVICE (GTorchMultiheadAttention),
  /**
   * GTorchMultiheadAttention:dtype:
   *
   * The dtype of the parameters; none means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DTYPE (GTorchMultiheadAttention),
  /**
   * GTorchMultiheadAttention:in-proj-weight:
   *
   * The projections of query, key and value one above the other, [3 E, E], or %NULL if the sizes differ.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("in-proj-weight", 0),
  /**
   * GTorchMultiheadAttention:q-proj-weight:
   *
   * The projection of the queries, [E, E], if the sizes differ.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("q-proj-weight", 1),
  /**
   * GTorchMultiheadAttention:k-proj-weight:
   *
   * The projection of the keys, [E, Ek], if the sizes differ.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("k-proj-weight", 2),
  /**
   * GTorchMultiheadAttention:v-proj-weight:
   *
   * The projection of the values, [E, Ev], if the sizes differ.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("v-proj-weight", 3),
  /**
   * GTorchMultiheadAttention:in-proj-bias:
   *
   * The biases of the projections, [3 E], or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("in-proj-bias", 4),
  /**
   * GTorchMultiheadAttention:bias-k:
   *
   * The further key, [1, 1, E], or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("bias-k", 5),
  /**
   * GTorchMultiheadAttention:bias-v:
   *
   * The further value, [1, 1, E], or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_PARAMETER ("bias-v", 6),
};
/* clang-format on */

G_DEFINE_TYPE (GTorchMultiheadAttention, gtorch_multihead_attention, GTORCH_TYPE_ATTENTION)

static gboolean
gtorch_multihead_attention_check (GTorchModule *module, GError **error)
{
  GTorchMultiheadAttention *self = GTORCH_MULTIHEAD_ATTENTION (module);

  return gtorch_layer_check_range (module, "dropout", self->dropout, 0, 1, FALSE, error);
}

static gboolean
set_values (GTorchModule *module, GError **error)
{
  g_autoptr (GTorchModule) projection = gtorch_module_get_module (module, "out_proj", error);
  g_autoptr (GTorchTensor) bias = NULL;

  for (guint i = 0; i < N_PARAMETERS; i++)
    {
      g_autoptr (GTorchTensor) parameter = gtorch_module_dup_parameter (module, i);

      if (parameter == NULL || i == IN_PROJ_BIAS)
        continue;
      if (i < IN_PROJ_BIAS ? !gtorch_init_xavier_uniform (parameter, 1, NULL, error)
                           : !gtorch_init_xavier_normal (parameter, 1, NULL, error))
        return FALSE;
    }
  if (projection == NULL)
    return FALSE;
  bias = gtorch_module_dup_parameter (projection, 1);
  return bias == NULL || gtorch_init_zeros (bias, error);
}

static gboolean
add_projection (GTorchMultiheadAttention *self, GError **error)
{
  g_autoptr (GTorchModule) projection =
      gtorch_module_new (GTORCH_TYPE_LINEAR, error, "in-features", self->embed_dim, "out-features",
                         self->embed_dim, "has-bias", self->bias, NULL);

  return projection != NULL
         && gtorch_module_register_module (GTORCH_MODULE (self), "out_proj", projection, error);
}

static void
make (GTorchMultiheadAttention *self)
{
  GTorchModule *module = GTORCH_MODULE (self);
  const gint64 e = self->embed_dim;
  const gboolean is_one = self->kdim == e && self->vdim == e;
  const gint64 packed[] = { 3 * e, e }, square[] = { e, e }, keys[] = { e, self->kdim },
               values[] = { e, self->vdim }, three[] = { 3 * e }, further[] = { 1, 1, e };
  const GTorchLayerTensor tensors[] = {
    { "in_proj_weight", GTORCH_LAYER_ZEROS, FALSE, is_one, packed, 2 },
    { "q_proj_weight", GTORCH_LAYER_ZEROS, FALSE, !is_one, square, 2 },
    { "k_proj_weight", GTORCH_LAYER_ZEROS, FALSE, !is_one, keys, 2 },
    { "v_proj_weight", GTORCH_LAYER_ZEROS, FALSE, !is_one, values, 2 },
    { "in_proj_bias", GTORCH_LAYER_ZEROS, FALSE, self->bias, three, 1 },
    { "bias_k", GTORCH_LAYER_ZEROS, FALSE, self->add_bias_kv, further, 3 },
    { "bias_v", GTORCH_LAYER_ZEROS, FALSE, self->add_bias_kv, further, 3 },
  };
  GError *error = NULL;

  gtorch_layer_make_tensors (module, tensors, N_PARAMETERS, NULL);
  if (gtorch_module_is_usable (module, NULL)
      && (!add_projection (self, &error) || !set_values (module, &error)))
    gtorch_module_set_error (module, error);
}

static void
gtorch_multihead_attention_constructed (GObject *object)
{
  GTorchMultiheadAttention *self = GTORCH_MULTIHEAD_ATTENTION (object);
  GTorchModule *module = GTORCH_MODULE (object);
  GError *error = NULL;

  G_OBJECT_CLASS (gtorch_multihead_attention_parent_class)->constructed (object);
  if (self->kdim == GTORCH_NONE)
    self->kdim = self->embed_dim;
  if (self->vdim == GTORCH_NONE)
    self->vdim = self->embed_dim;
  if (gtorch_layer_check_between (module, "embed_dim", self->embed_dim, 1, G_MAXINT64 / 3, &error)
      && gtorch_layer_check_least (module, "num_heads", self->num_heads, 1, &error)
      && gtorch_layer_check_multiple (module, "embed_dim", self->embed_dim, "num_heads",
                                      self->num_heads, &error)
      && gtorch_layer_check_least (module, "kdim", self->kdim, 1, &error)
      && gtorch_layer_check_least (module, "vdim", self->vdim, 1, &error)
      && gtorch_multihead_attention_check (module, &error))
    make (self);
  else
    gtorch_module_set_error (module, error);
  gtorch_layer_move (module, self->device, self->dtype);
  g_clear_object (&self->device);
}

static void
gtorch_multihead_attention_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_multihead_attention_parent_class)->finalize (object);
}

static GTorchImpl *
unwrap_nullable (GTorchTensor *tensor)
{
  return tensor != NULL ? gtorch_tensor_unwrap (tensor) : NULL;
}

static gboolean
attend (GTorchMultiheadAttention *self, GTorchMultiHead *args, GTorchTensor **output,
        GTorchTensor **weights, GError **error)
{
  GTorchModule *module = GTORCH_MODULE (self);
  g_autoptr (GTorchModule) projection = gtorch_module_get_module (module, "out_proj", error);
  GTorchImpl *parameters[N_PARAMETERS] = { NULL }, *made = NULL, *made_weights = NULL;
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  const GTorchOpClass *former;
  gboolean success;

  if (projection == NULL)
    return FALSE;
  if (!GTORCH_IS_LINEAR (projection))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: out_proj is of the class %s, not of %s"), gtorch_module_type_name (self),
                   gtorch_module_type_name (projection), "Linear");
      return FALSE;
    }
  success = gtorch_module_take_parameter (projection, 0, &weight, error)
            && gtorch_module_take_parameter (projection, 1, &bias, error);
  for (guint i = 0; success && i < N_PARAMETERS; i++)
    success = gtorch_module_take_parameter (module, i, &parameters[i], error);
  if (!success)
    {
      gtorch_impl_clear (parameters, N_PARAMETERS);
      return FALSE;
    }
  args->in_proj_weight = parameters[IN_PROJ_WEIGHT];
  args->q_proj_weight = parameters[Q_PROJ_WEIGHT];
  args->k_proj_weight = parameters[K_PROJ_WEIGHT];
  args->v_proj_weight = parameters[V_PROJ_WEIGHT];
  args->in_proj_bias = parameters[IN_PROJ_BIAS];
  args->bias_k = parameters[BIAS_K];
  args->bias_v = parameters[BIAS_V];
  args->out_proj_weight = weight;
  args->out_proj_bias = bias;
  former = gtorch_composite_begin (GTORCH_OP_MULTI_HEAD_ATTENTION_FORWARD,
                                   GTORCH_IMPLS (args->query, args->key, args->value,
                                                 args->in_proj_weight, args->in_proj_bias,
                                                 args->bias_k, args->bias_v, args->out_proj_weight,
                                                 args->out_proj_bias, args->key_padding_mask,
                                                 args->attn_mask, args->q_proj_weight,
                                                 args->k_proj_weight, args->v_proj_weight,
                                                 args->static_k, args->static_v));
  success = weight != NULL ? gtorch_multi_head_attend (args, &made, &made_weights, error) : FALSE;
  gtorch_composite_end (former, success, error);
  gtorch_impl_clear (parameters, N_PARAMETERS);
  if (!success)
    return FALSE;
  *output = gtorch_tensor_wrap (made);
  if (weights != NULL)
    *weights = gtorch_tensor_wrap (made_weights);
  else
    g_clear_pointer (&made_weights, gtorch_impl_unref);
  return TRUE;
}

static gboolean
gtorch_multihead_attention_attend (GTorchAttention *attention, GTorchTensor *query,
                                   GTorchTensor *key, GTorchTensor *value,
                                   GTorchTensor *key_padding_mask, gboolean need_weights,
                                   GTorchTensor *attn_mask, gboolean average_attn_weights,
                                   gboolean is_causal, GTorchTensor **output,
                                   GTorchTensor **weights, GError **error)
{
  GTorchMultiheadAttention *self = (GTorchMultiheadAttention *) attention;
  GTorchMultiHead args = {
    .query = gtorch_tensor_unwrap (query),
    .key = gtorch_tensor_unwrap (key),
    .value = gtorch_tensor_unwrap (value),
    .key_padding_mask = unwrap_nullable (key_padding_mask),
    .attn_mask = unwrap_nullable (attn_mask),
    .need_weights = need_weights,
    .average_attn_weights = average_attn_weights,
    .is_causal = is_causal,
  };

  if (!gtorch_layer_is (attention, GTORCH_TYPE_MULTIHEAD_ATTENTION, error)
      || !gtorch_module_is_usable (GTORCH_MODULE (attention), error))
    return FALSE;
  args.num_heads = self->num_heads;
  args.add_zero_attn = self->add_zero_attn;
  args.batch_first = self->batch_first;
  args.dropout_p = gtorch_module_get_training (GTORCH_MODULE (self)) ? self->dropout : 0;
  return attend (self, &args, output, weights, error);
}

static void
gtorch_multihead_attention_class_init (GTorchMultiheadAttentionClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_multihead_attention_constructed;
  object_class->finalize = gtorch_multihead_attention_finalize;
  GTORCH_MODULE_CLASS (klass)->check = gtorch_multihead_attention_check;
  GTORCH_ATTENTION_CLASS (klass)->attend = gtorch_multihead_attention_attend;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_multihead_attention_init (GTorchMultiheadAttention *self)
{
}

/**
 * gtorch_multihead_attention_new:
 * @embed_dim: the size of the last dimension of the queries
 * @num_heads: the number of heads, by which @embed_dim is divisible
 * @error: return location for an error
 *
 * Creates a [class@MultiheadAttention]. Other settings are properties: see `gtorch_module_new ()`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
GTorchMultiheadAttention *
gtorch_multihead_attention_new (gint64 embed_dim, gint64 num_heads, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_MULTIHEAD_ATTENTION, "embed-dim",
                                              embed_dim, "num-heads", num_heads, NULL),
                                error);
}
