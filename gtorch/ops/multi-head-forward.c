/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The public form of attention in several heads, with the arguments of PyTorch's function. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-multi-head-private.h"
#include "tensor/gtorch-uninitialized-private.h"

#define NAME "multi_head_attention_forward"

/* A released tensor is a mistake even where it is not read. */
static gboolean
check_released (GTorchImpl *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (inputs[i] != NULL && !gtorch_impl_check_memory (inputs[i], NAME, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_composite_multi_head_attention_forward (
    GTorchImpl *query, GTorchImpl *key, GTorchImpl *value, gint64 embed_dim_to_check,
    gint64 num_heads, GTorchImpl *in_proj_weight, GTorchImpl *in_proj_bias, GTorchImpl *bias_k,
    GTorchImpl *bias_v, gboolean add_zero_attn, gdouble dropout_p, GTorchImpl *out_proj_weight,
    GTorchImpl *out_proj_bias, gboolean training, GTorchImpl *key_padding_mask,
    gboolean need_weights, GTorchImpl *attn_mask, gboolean use_separate_proj_weight,
    GTorchImpl *q_proj_weight, GTorchImpl *k_proj_weight, GTorchImpl *v_proj_weight,
    GTorchImpl *static_k, GTorchImpl *static_v, gboolean average_attn_weights, gboolean is_causal,
    GTorchImpl **output, GTorchImpl **weights, GError **error)
{
  const GTorchMultiHead args = {
    .query = query,
    .key = key,
    .value = value,
    .num_heads = num_heads,
    .in_proj_weight = use_separate_proj_weight ? NULL : in_proj_weight,
    .q_proj_weight = use_separate_proj_weight ? q_proj_weight : NULL,
    .k_proj_weight = use_separate_proj_weight ? k_proj_weight : NULL,
    .v_proj_weight = use_separate_proj_weight ? v_proj_weight : NULL,
    .in_proj_bias = in_proj_bias,
    .bias_k = bias_k,
    .bias_v = bias_v,
    .out_proj_weight = out_proj_weight,
    .out_proj_bias = out_proj_bias,
    .key_padding_mask = key_padding_mask,
    .attn_mask = attn_mask,
    .static_k = static_k,
    .static_v = static_v,
    .dropout_p = training ? dropout_p : 0,
    .add_zero_attn = add_zero_attn,
    .need_weights = need_weights,
    .average_attn_weights = average_attn_weights,
    .is_causal = is_causal,
  };
  GTorchImpl *const inputs[] = {
    query,
    key,
    value,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    out_proj_weight,
    out_proj_bias,
    attn_mask,
    key_padding_mask,
    static_k,
    q_proj_weight,
    k_proj_weight,
    v_proj_weight,
    static_v,
  };

  if (!check_released (inputs, G_N_ELEMENTS (inputs), error))
    return FALSE;
  if (query->n_dims > 0 && query->shape[query->n_dims - 1] != embed_dim_to_check)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: query %s: the last dimension must be %" PRId64), NAME,
                   gtorch_impl_shape_str (query), embed_dim_to_check);
      return FALSE;
    }
  if (!use_separate_proj_weight && in_proj_weight == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s must be given"), NAME,
                   "in_proj_weight");
      return FALSE;
    }
  return gtorch_multi_head_attend (&args, output, weights, error);
}
