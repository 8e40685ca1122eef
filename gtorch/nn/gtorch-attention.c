/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-attention.h"

#include "nn/gtorch-module-private.h"

/**
 * GTorchAttention:
 *
 * A module that attends to values by queries and keys, such as [class@MultiheadAttention].
 *
 * Subclasses override `attend`. Hooks get query, key and value, and the output without the weights. With
 * [method@Module.forward_many] it takes query, key and value, and computes no weights.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchAttention, gtorch_attention, GTORCH_TYPE_MODULE)

typedef struct
{
  GTorchTensor *key_padding_mask, *attn_mask;
  gboolean need_weights, average_attn_weights, is_causal;
  GTorchTensor *weights;
} Call;

static GTorchTensor *
call_attend (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
             GError **error)
{
  GTorchAttentionClass *klass = GTORCH_ATTENTION_GET_CLASS (module);
  GTorchTensor *output = NULL;
  Call *call = data;

  if (n_inputs != 3 || klass->attend == NULL)
    return gtorch_module_refuse_inputs (module, n_inputs, error);
  if (klass->attend (GTORCH_ATTENTION (module), inputs[0], inputs[1], inputs[2],
                     call->key_padding_mask, call->need_weights, call->attn_mask,
                     call->average_attn_weights, call->is_causal, &output, &call->weights, error))
    return output;
  g_clear_object (&output);
  return NULL;
}

static GTorchTensor *
gtorch_attention_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                               GError **error)
{
  Call call = { .average_attn_weights = TRUE };
  GTorchTensor *output = call_attend (module, inputs, n_inputs, &call, error);

  g_clear_object (&call.weights);
  return output;
}

static void
gtorch_attention_class_init (GTorchAttentionClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_attention_forward_many;
}

static void
gtorch_attention_init (GTorchAttention *self)
{
}

/**
 * gtorch_attention_forward: (virtual attend)
 * @self: an attention
 * @query: the queries, [L, N, E], or [N, L, E] if the batch comes first, or [L, E]
 * @key: the keys, [S, N, Ek], [N, S, Ek] or [S, Ek]
 * @value: the values, [S, N, Ev], [N, S, Ev] or [S, Ev]
 * @key_padding_mask: (nullable): [N, S] or [S]: true for keys that are not attended to, or numbers that are
 *   added to their scores
 * @need_weights: whether the weights are computed, too; without them it is faster, and needs less memory
 * @attn_mask: (nullable): [L, S] or [N · heads, L, S]: the same for each pair of query and key
 * @average_attn_weights: whether the weights are the mean over the heads
 * @is_causal: whether @attn_mask is the causal mask
 * @output: (out) (transfer full): what the queries found, of the shape of @query
 * @weights: (out) (optional) (transfer full) (nullable): the weights, [N, L, S], or [N, heads, L, S] of each
 *   head, or %NULL if they are not needed
 * @error: return location for an error
 *
 * Attends to the values by the products of queries and keys.
 *
 * ```c
 * gtorch_attention_forward (GTORCH_ATTENTION (layer), x, x, x, NULL, FALSE, NULL, TRUE, FALSE, &y, NULL,
 *                           &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_DTYPE or another error of the class
 *
 * Since: 0.1
 */
gboolean
gtorch_attention_forward (GTorchAttention *self, GTorchTensor *query, GTorchTensor *key,
                          GTorchTensor *value, GTorchTensor *key_padding_mask,
                          gboolean need_weights, GTorchTensor *attn_mask,
                          gboolean average_attn_weights, gboolean is_causal, GTorchTensor **output,
                          GTorchTensor **weights, GError **error)
{
  GTorchTensor *inputs[] = { query, key, value };
  Call call = { key_padding_mask, attn_mask, need_weights, average_attn_weights, is_causal, NULL };
  GTorchTensor *made;

  g_return_val_if_fail (GTORCH_IS_ATTENTION (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (query), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (key), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), FALSE);
  g_return_val_if_fail (key_padding_mask == NULL || GTORCH_IS_TENSOR (key_padding_mask), FALSE);
  g_return_val_if_fail (attn_mask == NULL || GTORCH_IS_TENSOR (attn_mask), FALSE);
  g_return_val_if_fail (output != NULL, FALSE);

  made = gtorch_module_call_by (GTORCH_MODULE (self), inputs, 3, call_attend, &call, error);
  if (made == NULL)
    {
      g_clear_object (&call.weights);
      return FALSE;
    }
  *output = made;
  if (weights != NULL)
    *weights = call.weights;
  else
    g_clear_object (&call.weights);
  return TRUE;
}
