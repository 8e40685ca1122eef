/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The public attention operation: checks, broadcast leading dimensions, the choice between the fused
 * operation and a composition of matmul and softmax; and the gradients. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-attention-private.h"
#include "device/gtorch-device-private.h"
#include "device/gtorch-generator-private.h"
#include "device/gtorch-philox-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"

#define NAME "scaled_dot_product_attention"

/* --- composed of other operations --- */

static GTorchImpl *
apply_mask (GTorchImpl *x, GTorchImpl *mask, GError **error)
{
  g_autoptr (GTorchImpl) nothing = NULL;
  g_autoptr (GTorchImpl) cast = NULL;

  if (mask->dtype == GTORCH_DTYPE_BOOL)
    {
      nothing = gtorch_impl_new_number (-INFINITY);
      return gtorch_op_where (mask, x, nothing, error);
    }
  cast = gtorch_op_to_dtype (mask, x->dtype, error);
  return cast != NULL ? gtorch_op_add (x, cast, 1, error) : NULL;
}

/* Computes a softmax whose entirely masked rows are zeros, without a NaN in the forward or backward pass. */
static GTorchImpl *
softmax_of_masked (GTorchImpl *x, GError **error)
{
  const gint64 last = -1;
  g_autoptr (GTorchImpl) nothing = gtorch_impl_new_number (-INFINITY);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_number (0);
  g_autoptr (GTorchImpl) masked = gtorch_op_eq (x, nothing, error);
  g_autoptr (GTorchImpl) empty = masked ? gtorch_op_all (masked, &last, 1, TRUE, error) : NULL;
  g_autoptr (GTorchImpl) filled = empty ? gtorch_op_where (empty, zero, x, error) : NULL;
  g_autoptr (GTorchImpl) y =
      filled ? gtorch_op_softmax (filled, -1, GTORCH_DTYPE_NONE, error) : NULL;

  return y != NULL ? gtorch_op_where (empty, zero, y, error) : NULL;
}

static GTorchImpl *
weights_of (GTorchImpl *q, GTorchImpl *k, GTorchImpl *mask, gboolean is_causal, gdouble scale,
            GError **error)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (scale);
  g_autoptr (GTorchImpl) scaled = gtorch_op_mul (q, number, error);
  g_autoptr (GTorchImpl) turned = scaled ? gtorch_op_swap_matrix (k, error) : NULL;
  g_autoptr (GTorchImpl) x = turned ? gtorch_op_matmul (scaled, turned, error) : NULL;

  if (x != NULL && is_causal)
    {
      const gint64 *shape = x->shape + x->n_dims - 2;
      g_autoptr (GTorchImpl) ones =
          gtorch_op_ones (shape, 2, GTORCH_DTYPE_BOOL, gtorch_impl_device (x), error);
      g_autoptr (GTorchImpl) lower = ones ? gtorch_op_tril (ones, 0, error) : NULL;
      GTorchImpl *causal = lower ? apply_mask (x, lower, error) : NULL;

      gtorch_impl_unref (x);
      x = causal;
    }
  if (x != NULL && mask != NULL)
    {
      g_autoptr (GTorchImpl) masked = apply_mask (x, mask, error);

      return masked != NULL ? softmax_of_masked (masked, error) : NULL;
    }
  return x != NULL ? gtorch_op_softmax (x, -1, GTORCH_DTYPE_NONE, error) : NULL;
}

/* Repeats each head (dimension -3) `times` times in a row. */
static GTorchImpl *
repeat_heads (GTorchImpl *impl, gint64 times, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS + 1];
  guint n = impl->n_dims;
  g_autoptr (GTorchImpl) apart = NULL;
  g_autoptr (GTorchImpl) many = NULL;

  if (times == 1)
    return gtorch_impl_ref (impl);
  apart = gtorch_op_unsqueeze (impl, n - 2, error);
  if (apart == NULL)
    return NULL;
  memcpy (shape, apart->shape, (n + 1) * sizeof (gint64));
  shape[n - 2] = times;
  many = gtorch_op_expand (apart, shape, n + 1, error);
  if (many == NULL)
    return NULL;
  memcpy (shape, impl->shape, n * sizeof (gint64));
  shape[n - 3] *= times;
  return gtorch_op_reshape (many, shape, n, error);
}

/* Sums over each group of `times` successive heads: the gradient of repeat_heads (). */
static GTorchImpl *
sum_heads (GTorchImpl *impl, gint64 times, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS + 1];
  guint n = impl->n_dims;
  const gint64 dim = n - 2;
  g_autoptr (GTorchImpl) apart = NULL;

  memcpy (shape, impl->shape, (n - 3) * sizeof (gint64));
  shape[n - 3] = impl->shape[n - 3] / times;
  shape[n - 2] = times;
  memcpy (shape + n - 1, impl->shape + n - 2, 2 * sizeof (gint64));
  apart = gtorch_op_reshape (impl, shape, n + 1, error);
  return apart != NULL ? gtorch_op_sum (apart, &dim, 1, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
}

/* Returns how many heads of q share a head of k. */
static gint64
group_of (const GTorchImpl *q, const GTorchImpl *k)
{
  guint n = q->n_dims;

  return n > 2 && k->shape[n - 3] > 0 ? q->shape[n - 3] / k->shape[n - 3] : 1;
}

static GTorchImpl *
multiply_heads (GTorchImpl *a, GTorchImpl *b, gint64 group, GError **error)
{
  g_autoptr (GTorchImpl) product = gtorch_op_matmul (a, b, error);

  if (product == NULL || group == 1)
    return g_steal_pointer (&product);
  return sum_heads (product, group, error);
}

/* Computes the gradients by recorded operations, so that they can be differentiated. */
static gboolean
grad_of_operations (GTorchGradContext *context, GError **error)
{
  const gint64 last = -1;
  GTorchImpl *upper = context->grads[0], *q = context->inputs[0];
  gint64 group = group_of (q, context->inputs[1]);
  gdouble scale = context->attrs[1].d;
  g_autoptr (GTorchImpl) k = repeat_heads (context->inputs[1], group, error);
  g_autoptr (GTorchImpl) v = k ? repeat_heads (context->inputs[2], group, error) : NULL;
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (scale);
  g_autoptr (GTorchImpl) p =
      v ? weights_of (q, k, context->inputs[3], context->attrs[0].i, scale, error) : NULL;
  g_autoptr (GTorchImpl) v_turned = p ? gtorch_op_swap_matrix (v, error) : NULL;
  g_autoptr (GTorchImpl) of_p = v_turned ? gtorch_op_matmul (upper, v_turned, error) : NULL;
  g_autoptr (GTorchImpl) product = of_p ? gtorch_op_mul (of_p, p, error) : NULL;
  g_autoptr (GTorchImpl) sum =
      product ? gtorch_op_sum (product, &last, 1, TRUE, GTORCH_DTYPE_NONE, error) : NULL;
  g_autoptr (GTorchImpl) rest = sum ? gtorch_op_mul (p, sum, error) : NULL;
  g_autoptr (GTorchImpl) of_x = rest ? gtorch_op_sub (product, rest, 1, error) : NULL;
  g_autoptr (GTorchImpl) scaled = of_x ? gtorch_op_mul (of_x, number, error) : NULL;
  g_autoptr (GTorchImpl) scaled_turned = scaled ? gtorch_op_swap_matrix (scaled, error) : NULL;
  g_autoptr (GTorchImpl) p_turned = scaled_turned ? gtorch_op_swap_matrix (p, error) : NULL;

  if (p_turned == NULL)
    return FALSE;
  if (context->needs[0] && (context->result[0] = gtorch_op_matmul (scaled, k, error)) == NULL)
    return FALSE;
  if (context->needs[1]
      && (context->result[1] = multiply_heads (scaled_turned, q, group, error)) == NULL)
    return FALSE;
  return !context->needs[2]
         || (context->result[2] = multiply_heads (p_turned, upper, group, error)) != NULL;
}

gboolean
gtorch_grad_attention (GTorchGradContext *context, GError **error)
{
  GTorchImpl *sources[4] = { context->grads[0] };
  GTorchImpl *grads[3] = { NULL };
  guint i;

  /* the statistics only serve the backward pass and have no gradient */
  if (context->grads[1] != NULL)
    return gtorch_grad_undefined (context, error);
  if (context->needs[3])
    return gtorch_grad_undefined_for (context, "mask", error);
  if (context->grads[0] == NULL)
    return TRUE;
  memcpy (sources + 1, context->inputs, 3 * sizeof (GTorchImpl *));
  if (gtorch_autograd_wanted (sources, 4))
    {
      if (context->attrs[2].d == 0)
        return grad_of_operations (context, error);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: with dropout_p the gradient itself cannot be differentiated here"),
                   NAME);
      return FALSE;
    }
  if (!gtorch_op_attention_backward (context->grads[0], context->inputs[0], context->inputs[1],
                                     context->inputs[2], context->outputs[0], context->outputs[1],
                                     context->inputs[3], context->attrs[0].i, context->attrs[1].d,
                                     context->attrs[2].d, context->attrs[3].i, &grads[0], &grads[1],
                                     &grads[2], error))
    return FALSE;
  for (i = 0; i < 3; i++)
    if (context->needs[i])
      context->result[i] = g_steal_pointer (&grads[i]);
  gtorch_impl_clear (grads, 3);
  return TRUE;
}

/* --- the public form --- */

static gboolean
check (GTorchImpl *const *operands, GTorchImpl *mask, gdouble dropout_p, gboolean is_causal,
       GError **error)
{
  GTorchImpl *q = operands[0], *k = operands[1], *v = operands[2];

  if (q->n_dims < 2 || k->n_dims < 2 || v->n_dims < 2
      || q->shape[q->n_dims - 1] != k->shape[k->n_dims - 1]
      || k->shape[k->n_dims - 2] != v->shape[v->n_dims - 2])
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: query %s, key %s, value %s: they must be [..., L, E], [..., S, E] and "
                    "[..., "
                    "S, Ev]"),
                 NAME, gtorch_impl_shape_str (q), gtorch_impl_shape_str (k),
                 gtorch_impl_shape_str (v));
  else if (k->dtype != q->dtype || v->dtype != q->dtype
           || gtorch_dtype_kind (q->dtype) != GTORCH_KIND_FLOAT)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("%s: query, key and value have dtypes %s, %s and %s: they must have the same "
                    "floating-point one"),
                 NAME, gtorch_dtype_get_name (q->dtype), gtorch_dtype_get_name (k->dtype),
                 gtorch_dtype_get_name (v->dtype));
  else if (mask != NULL && is_causal)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: there can be a mask or is_causal, not both"), NAME);
  else if (mask != NULL && mask->dtype != GTORCH_DTYPE_BOOL && mask->dtype != GTORCH_DTYPE_FLOAT32
           && mask->dtype != q->dtype)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("%s: the mask has dtype %s: it must be bool, float32 or the query's %s"), NAME,
                 gtorch_dtype_get_name (mask->dtype), gtorch_dtype_get_name (q->dtype));
  else
    return TRUE;
  return FALSE;
}

/* Broadcasts the leading dimensions of all three to the same sizes, except the last of them, the heads,
 * if grouped. */
static gboolean
broadcast (GTorchImpl **operands, gboolean grouped, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint own = grouped ? 3 : 2, n = 0, i;

  for (i = 0; i < 3; i++)
    if (!gtorch_broadcast_shapes (NAME, shape, n, operands[i]->shape, operands[i]->n_dims - own,
                                  shape, &n, error))
      return FALSE;
  for (i = 0; i < 3; i++)
    {
      GTorchImpl *expanded;

      memcpy (shape + n, operands[i]->shape + operands[i]->n_dims - own, own * sizeof (gint64));
      expanded = gtorch_op_expand (operands[i], shape, n + own, error);
      if (expanded == NULL)
        return FALSE;
      gtorch_impl_unref (operands[i]);
      operands[i] = expanded;
    }
  return TRUE;
}

/* Asks the device whether its form of the fused operation does this. */
static gboolean
does_it_all (GTorchImpl *const *operands, GTorchImpl *mask, gdouble dropout_p, gboolean is_causal,
             gint64 *answers)
{
  GTorchImpl *inputs[] = { operands[0], operands[1], operands[2], mask };
  const GTorchAttr attrs[] = { { .i = is_causal }, { .d = 1 }, { .d = dropout_p }, { .i = 0 } };
  GTorchOpCall call = {
    .op = &gtorch_ops[GTORCH_OP_ATTENTION],
    .inputs = inputs,
    .n_inputs = G_N_ELEMENTS (inputs),
    .attrs = attrs,
    .n_outputs = 2,
    .device = gtorch_impl_device (operands[0]),
  };

  return (mask == NULL || !gtorch_autograd_wanted (&mask, 1))
         && gtorch_device_get_run (call.device, call.op) != NULL
         && gtorch_call_query (&call, answers, NULL) && answers[GTORCH_ATTENTION_FITS];
}

/* Makes a bias of dtype, of the full shape except for batch and heads, and the mask of entirely masked
 * rows. cuDNN does not accept -infinity; the number that stands for it is less than all others
 * and still finite when it is multiplied by log2 (e). */
static gboolean
make_bias (GTorchImpl *mask, GTorchImpl *q, GTorchImpl *k, guint dtype, GTorchImpl **bias,
           GTorchImpl **empty, GError **error)
{
  const gint64 last = -1;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n = q->n_dims, missing = n - mask->n_dims, i;
  gboolean is_bool = mask->dtype == GTORCH_DTYPE_BOOL, shared = TRUE;
  g_autoptr (GTorchImpl) nothing = gtorch_impl_new_number (-INFINITY);
  g_autoptr (GTorchImpl) least = gtorch_impl_new_number (is_bool ? -2e38 : -1e38);
  g_autoptr (GTorchImpl) masked =
      is_bool ? gtorch_op_logical_not (mask, error) : gtorch_op_eq (mask, nothing, error);
  g_autoptr (GTorchImpl) ones =
      masked ? gtorch_op_to_dtype (masked, GTORCH_DTYPE_FLOAT32, error) : NULL;
  g_autoptr (GTorchImpl) numbers = ones ? gtorch_op_mul (ones, least, error) : NULL;
  g_autoptr (GTorchImpl) cast = NULL;

  if (numbers != NULL && !is_bool)
    {
      g_autoptr (GTorchImpl) wide = gtorch_op_to_dtype (mask, GTORCH_DTYPE_FLOAT32, error);
      g_autoptr (GTorchImpl) finite = wide ? gtorch_op_clamp (wide, -1e38, INFINITY, error) : NULL;
      GTorchImpl *sum = finite ? gtorch_op_add (finite, numbers, 1, error) : NULL;

      gtorch_impl_unref (numbers);
      numbers = sum;
    }
  cast = numbers ? gtorch_op_to_dtype (numbers, dtype, error) : NULL;
  if (cast == NULL)
    return FALSE;
  memcpy (shape, q->shape, (n - 1) * sizeof (gint64));
  shape[n - 1] = k->shape[n - 2];
  for (i = 0; i + 3 < n; i++)
    shared = shared && (i < missing || mask->shape[i - missing] == 1);
  for (i = 0; shared && i + 3 < n; i++)
    shape[i] = 1;
  if (n > 2 && (missing > n - 3 || mask->shape[n - 3 - missing] == 1))
    shape[n - 3] = 1;
  *bias = gtorch_op_expand (cast, shape, n, error);
  *empty = *bias ? gtorch_op_all (masked, &last, 1, TRUE, error) : NULL;
  if (*empty == NULL)
    g_clear_pointer (bias, gtorch_impl_unref);
  return *bias != NULL;
}

/* Computes attention with the fused operation, for which the mask becomes a bias of bias_dtype, if that is
 * not NONE. */
static GTorchImpl *
attend_at_once (GTorchImpl *const *operands, GTorchImpl *mask, guint bias_dtype, gdouble dropout_p,
                gboolean is_causal, gdouble scale, GError **error)
{
  GTorchImpl *q = operands[0], *k = operands[1], *v = operands[2], *stats = NULL;
  GTorchDevice *device = gtorch_impl_device (q);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_number (0);
  g_autoptr (GTorchImpl) bias = NULL;
  g_autoptr (GTorchImpl) empty = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  gint64 seed = 0;

  if (mask != NULL && bias_dtype != GTORCH_DTYPE_NONE)
    {
      if (!make_bias (mask, q, k, bias_dtype, &bias, &empty, error))
        return NULL;
      mask = bias;
    }
  if (dropout_p > 0)
    {
      guint64 of_generator, counter;
      guint32 words[4];

      gtorch_generator_reserve (gtorch_device_get_default_generator (device), &of_generator,
                                &counter);
      gtorch_philox (of_generator, counter, 0, words);
      seed = (gint64) words[1] << 31 ^ words[0];
    }
  if (!gtorch_op_attention (q, k, v, mask, is_causal, scale, dropout_p, seed, &output, &stats,
                            error))
    {
      gtorch_error_set_op (error, NAME);
      return NULL;
    }
  gtorch_impl_unref (stats);
  if (empty == NULL)
    return g_steal_pointer (&output);
  /* the backward pass needs the unmodified output */
  if (gtorch_autograd_wanted (operands, 3))
    return gtorch_op_where (empty, zero, output, error);
  return gtorch_op_masked_fill_inplace (output, empty, zero, error) ? g_steal_pointer (&output)
                                                                    : NULL;
}

static GTorchImpl *
attend (GTorchImpl **operands, GTorchImpl *mask, gdouble dropout_p, gboolean is_causal,
        gdouble scale, GError **error)
{
  GTorchImpl *q = operands[0], *k = operands[1];
  gint64 group = group_of (q, k), answers[GTORCH_ATTENTION_N_ANSWERS];
  g_autoptr (GTorchImpl) keys = NULL;
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) weights = NULL;

  if (mask != NULL && !gtorch_attention_mask_fits (mask, q, k))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the mask %s cannot be broadcast to the products of query %s and key %s"),
                   NAME, gtorch_impl_shape_str (mask), gtorch_impl_shape_str (q),
                   gtorch_impl_shape_str (k));
      return NULL;
    }
  if (does_it_all (operands, mask, dropout_p, is_causal, answers))
    return attend_at_once (operands, mask, answers[GTORCH_ATTENTION_BIAS], dropout_p, is_causal,
                           scale, error);
  keys = repeat_heads (k, group, error);
  values = keys != NULL ? repeat_heads (operands[2], group, error) : NULL;
  weights = values != NULL ? weights_of (q, keys, mask, is_causal, scale, error) : NULL;
  if (weights != NULL && dropout_p > 0)
    {
      GTorchImpl *dropped = gtorch_op_dropout (weights, dropout_p, TRUE, NULL, error);

      gtorch_impl_unref (weights);
      weights = dropped;
    }
  return weights != NULL ? gtorch_op_matmul (weights, values, error) : NULL;
}

GTorchImpl *
gtorch_composite_scaled_dot_product_attention (GTorchImpl *query, GTorchImpl *key,
                                               GTorchImpl *value, GTorchImpl *attn_mask,
                                               gdouble dropout_p, gboolean is_causal, gdouble scale,
                                               gboolean enable_gqa, GError **error)
{
  GTorchImpl *operands[] = { query, key, value };
  GTorchImpl *result = NULL;
  gboolean grouped = FALSE;
  gint64 depth, heads;
  guint i;

  if (!check (operands, attn_mask, dropout_p, is_causal, error))
    return NULL;
  depth = query->shape[query->n_dims - 1];
  if (gtorch_is_none_double (scale))
    scale = depth > 0 ? 1 / sqrt (depth) : 1;
  for (i = 0; i < 3; i++)
    gtorch_impl_ref (operands[i]);
  if (enable_gqa)
    {
      heads = query->n_dims > 2 ? query->shape[query->n_dims - 3] : 0;
      for (i = 1; i < 3; i++)
        {
          guint n = operands[i]->n_dims;
          gint64 own = n > 2 ? operands[i]->shape[n - 3] : 0;

          if (own == 0 || heads % own != 0)
            {
              g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                           _ ("%s: with enable_gqa the heads of query %s must be a multiple of "
                              "those "
                              "of key %s and value %s"),
                           NAME, gtorch_impl_shape_str (query), gtorch_impl_shape_str (key),
                           gtorch_impl_shape_str (value));
              goto done;
            }
        }
      grouped = heads > 0 && key->shape[key->n_dims - 3] == value->shape[value->n_dims - 3];
      for (i = 1; !grouped && i < 3; i++)
        {
          GTorchImpl *repeated =
              repeat_heads (operands[i], heads / operands[i]->shape[operands[i]->n_dims - 3],
                            error);

          if (repeated == NULL)
            goto done;
          gtorch_impl_unref (operands[i]);
          operands[i] = repeated;
        }
    }
  if (broadcast (operands, grouped, error))
    result = attend (operands, attn_mask, dropout_p, is_causal, scale, error);
done:
  gtorch_impl_clear (operands, 3);
  return result;
}
