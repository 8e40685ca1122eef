/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention in several heads: projections around scaled_dot_product_attention (), or around a softmax where
 * the weights are wanted. Within, query, key and value are [N, heads, L, E / heads], which are views of the
 * projections for either order of the dimensions, and the masks are [N or 1, heads or 1, L or 1, S]. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-multi-head-private.h"

#define NAME "multi_head_attention_forward"

typedef struct
{
  const GTorchMultiHead *args;
  gboolean is_batched;
  gint64 n, length, source; /* N, L and S */
  gint64 width, heads, depth;
  GTorchImpl *q, *k, *v;        /* of the heads */
  GTorchImpl *padding, *scores; /* the masks, or NULL */
} Heads;

static void
heads_clear (Heads *self)
{
  g_clear_pointer (&self->q, gtorch_impl_unref);
  g_clear_pointer (&self->k, gtorch_impl_unref);
  g_clear_pointer (&self->v, gtorch_impl_unref);
  g_clear_pointer (&self->padding, gtorch_impl_unref);
  g_clear_pointer (&self->scores, gtorch_impl_unref);
}

static gboolean
replace (GTorchImpl **place, GTorchImpl *value)
{
  if (value == NULL)
    return FALSE;
  g_clear_pointer (place, gtorch_impl_unref);
  *place = value;
  return TRUE;
}

/* --- checks --- */

static gboolean
check_inputs (Heads *self, GError **error)
{
  const GTorchMultiHead *args = self->args;
  GTorchImpl *q = args->query, *k = args->key, *v = args->value;
  const guint n = q->n_dims;

  if ((n != 2 && n != 3) || k->n_dims != n || v->n_dims != n
      || memcmp (k->shape, v->shape, (n - 1) * sizeof (gint64)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: query %s, key %s, value %s: all must have 3 dimensions, or 2 without a "
                      "batch, and key and value the same length"),
                   NAME, gtorch_impl_shape_str (q), gtorch_impl_shape_str (k),
                   gtorch_impl_shape_str (v));
      return FALSE;
    }
  self->is_batched = n == 3;
  self->n = self->is_batched ? q->shape[args->batch_first ? 0 : 1] : 1;
  self->length = q->shape[self->is_batched && args->batch_first ? 1 : 0];
  self->source = k->shape[self->is_batched && args->batch_first ? 1 : 0];
  self->width = q->shape[n - 1];
  self->heads = args->num_heads;
  if (self->is_batched && k->shape[args->batch_first ? 0 : 1] != self->n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: query %s and key %s have batches of different sizes"), NAME,
                   gtorch_impl_shape_str (q), gtorch_impl_shape_str (k));
      return FALSE;
    }
  if (self->heads < 1 || self->width < 1 || self->width % self->heads != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the width %" PRId64 " of the query is not divisible by %" PRId64
                      " heads"),
                   NAME, self->width, self->heads);
      return FALSE;
    }
  self->depth = self->width / self->heads;
  return TRUE;
}

static gboolean
has_shape (const GTorchImpl *impl, const gint64 *shape, guint n)
{
  return impl->n_dims == n && memcmp (impl->shape, shape, n * sizeof (gint64)) == 0;
}

/* Checks the shape of a tensor that may be NULL. */
static gboolean
check_shape (const gchar *name, GTorchImpl *impl, const gint64 *shape, guint n, GError **error)
{
  if (impl == NULL || has_shape (impl, shape, n))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE, _ ("%s: %s has shape %s, not %s"), NAME,
               name, gtorch_impl_shape_str (impl), gtorch_shape_str (shape, n));
  return FALSE;
}

/* A bias of a key or a value has the shape [1, 1, E], or is a row. */
static gboolean
check_bias (const gchar *name, GTorchImpl *impl, const gint64 *shape, GError **error)
{
  const gboolean is_row = impl != NULL && impl->n_dims == 1;

  return check_shape (name, impl, is_row ? shape + 2 : shape, is_row ? 1 : 3, error);
}

static gboolean
check_given (const gchar *name, GTorchImpl *impl, GError **error)
{
  if (impl != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s must be given"), NAME, name);
  return FALSE;
}

static gboolean
check_weights (const Heads *self, GError **error)
{
  const GTorchMultiHead *args = self->args;
  const gint64 e = self->width, of_key = args->key->shape[args->key->n_dims - 1],
               of_value = args->value->shape[args->value->n_dims - 1];
  const gint64 one[] = { 1, 1, e }, square[] = { e, e }, three[] = { 3 * e };
  const gint64 packed[] = { 3 * e, e }, k_shape[] = { e, of_key }, v_shape[] = { e, of_value };
  const gint64 kept[] = { self->n * self->heads, -1, self->depth };

  if (args->in_proj_weight != NULL)
    {
      if (of_key != e || of_value != e)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: with one in_proj_weight, query %s, key %s and value %s must have "
                          "the same last dimension"),
                       NAME, gtorch_impl_shape_str (args->query), gtorch_impl_shape_str (args->key),
                       gtorch_impl_shape_str (args->value));
          return FALSE;
        }
    }
  else if (!check_given ("q_proj_weight", args->q_proj_weight, error)
           || !check_given ("k_proj_weight", args->k_proj_weight, error)
           || !check_given ("v_proj_weight", args->v_proj_weight, error))
    return FALSE;
  if ((args->bias_k == NULL) != (args->bias_v == NULL)
      || (args->bias_k != NULL && (args->static_k != NULL || args->static_v != NULL)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: bias_k and bias_v must be given both or neither, and not with static_k "
                      "or static_v"),
                   NAME);
      return FALSE;
    }
  for (guint i = 0; i < 2; i++)
    {
      GTorchImpl *impl = i == 0 ? args->static_k : args->static_v;

      if (impl != NULL
          && (impl->n_dims != 3 || impl->shape[0] != kept[0] || impl->shape[2] != kept[2]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: %s has shape %s, not [%" PRId64 ", S, %" PRId64 "]"), NAME,
                       i == 0 ? "static_k" : "static_v", gtorch_impl_shape_str (impl), kept[0],
                       kept[2]);
          return FALSE;
        }
    }
  return check_shape ("in_proj_weight", args->in_proj_weight, packed, 2, error)
         && check_shape ("in_proj_bias", args->in_proj_bias, three, 1, error)
         && check_shape ("q_proj_weight", args->q_proj_weight, square, 2, error)
         && check_shape ("k_proj_weight", args->k_proj_weight, k_shape, 2, error)
         && check_shape ("v_proj_weight", args->v_proj_weight, v_shape, 2, error)
         && check_bias ("bias_k", args->bias_k, one, error)
         && check_bias ("bias_v", args->bias_v, one, error)
         && check_shape ("out_proj_weight", args->out_proj_weight, square, 2, error)
         && check_shape ("out_proj_bias", args->out_proj_bias, &e, 1, error);
}

/* --- projections --- */

/* Returns [N, heads, L, depth] of a projection, [N, L, width] or [L, N, width], as a view. */
static GTorchImpl *
to_heads (const Heads *self, GTorchImpl *x, GError **error)
{
  const gboolean first = self->is_batched && self->args->batch_first;
  const gint64 order[] = { first ? 0 : 1, 2, first ? 1 : 0, 3 };
  gint64 shape[4];
  g_autoptr (GTorchImpl) parts = NULL;

  shape[0] = x->shape[0];
  shape[1] = self->is_batched ? x->shape[1] : 1;
  shape[2] = self->heads;
  shape[3] = self->depth;
  parts = gtorch_op_reshape (x, shape, 4, error);
  return parts != NULL ? gtorch_op_permute (parts, order, 4, error) : NULL;
}

/* Projects by `parts` of the rows of the weights, from part `start` on, of `width` rows each. */
static GTorchImpl *
project (const Heads *self, GTorchImpl *x, GTorchImpl *separate, guint start, guint parts,
         GError **error)
{
  const GTorchMultiHead *args = self->args;
  const gint64 e = self->width;
  g_autoptr (GTorchImpl) weight =
      separate != NULL ? gtorch_impl_ref (separate)
                       : gtorch_op_narrow (args->in_proj_weight, 0, start * e, parts * e, error);
  g_autoptr (GTorchImpl) bias = NULL;

  if (weight != NULL && args->in_proj_bias != NULL)
    {
      bias = gtorch_op_narrow (args->in_proj_bias, 0, start * e, parts * e, error);
      if (bias == NULL)
        return NULL;
    }
  return weight != NULL ? gtorch_op_linear (x, weight, bias, error) : NULL;
}

/* Takes part i of a projection to several. */
static GTorchImpl *
part_of (const Heads *self, GTorchImpl *x, guint i, GError **error)
{
  g_autoptr (GTorchImpl) part =
      gtorch_op_narrow (x, x->n_dims - 1, i * self->width, self->width, error);

  return part != NULL ? to_heads (self, part, error) : NULL;
}

static GTorchImpl *
static_heads (const Heads *self, GTorchImpl *x, GError **error)
{
  const gint64 shape[] = { self->n, self->heads, x->shape[1], self->depth };

  return gtorch_op_reshape (x, shape, 4, error);
}

/* What is one tensor is projected at once. */
static gboolean
make_heads (Heads *self, GError **error)
{
  const GTorchMultiHead *args = self->args;
  GTorchImpl *inputs[] = { args->query, args->key, args->value };
  GTorchImpl *separate[] = { args->q_proj_weight, args->k_proj_weight, args->v_proj_weight };
  GTorchImpl *kept[] = { NULL, args->static_k, args->static_v };
  GTorchImpl **heads[] = { &self->q, &self->k, &self->v };
  guint i = 0;

  while (i < 3)
    {
      guint parts = 1;
      g_autoptr (GTorchImpl) x = NULL;

      if (kept[i] != NULL)
        {
          if (!replace (heads[i], static_heads (self, kept[i], error)))
            return FALSE;
          i++;
          continue;
        }
      while (args->in_proj_weight != NULL && i + parts < 3 && inputs[i + parts] == inputs[i]
             && kept[i + parts] == NULL)
        parts++;
      x = project (self, inputs[i], args->in_proj_weight == NULL ? separate[i] : NULL, i, parts,
                   error);
      for (guint j = 0; j < parts; j++)
        if (x == NULL || !replace (heads[i + j], part_of (self, x, j, error)))
          return FALSE;
      i += parts;
    }
  if (self->k->shape[2] != self->v->shape[2])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: there are %" PRId64 " keys and %" PRId64 " values"), NAME,
                   self->k->shape[2], self->v->shape[2]);
      return FALSE;
    }
  self->source = self->k->shape[2];
  return TRUE;
}

/* --- masks --- */

static gboolean
check_mask (const gchar *name, GTorchImpl *mask, GError **error)
{
  if (mask->dtype == GTORCH_DTYPE_BOOL || gtorch_dtype_kind (mask->dtype) == GTORCH_KIND_FLOAT)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: %s has dtype %s: it must be bool or a floating-point one"), NAME, name,
               gtorch_dtype_get_name (mask->dtype));
  return FALSE;
}

static gboolean
make_masks (Heads *self, GError **error)
{
  const GTorchMultiHead *args = self->args;
  GTorchImpl *padding = args->key_padding_mask, *mask = args->attn_mask;
  const gint64 flat[] = { self->n, self->source };
  const gint64 of_padding[] = { self->n, 1, 1, self->source };
  const gint64 plain[] = { self->length, self->source };
  const gint64 many[] = { self->n * self->heads, self->length, self->source };
  const gint64 of_mask[] = { 1, 1, self->length, self->source };
  const gint64 of_many[] = { self->n, self->heads, self->length, self->source };

  if (padding != NULL)
    {
      if (!check_mask ("key_padding_mask", padding, error)
          || !check_shape ("key_padding_mask", padding, flat + !self->is_batched,
                           self->is_batched ? 2 : 1, error)
          || !replace (&self->padding, gtorch_op_reshape (padding, of_padding, 4, error)))
        return FALSE;
    }
  if (mask == NULL)
    {
      if (!args->is_causal)
        return TRUE;
      return check_given (_ ("attn_mask, which is_causal describes,"), NULL, error);
    }
  if (!check_mask ("attn_mask", mask, error))
    return FALSE;
  if (mask->n_dims == 3)
    return check_shape ("attn_mask", mask, many, 3, error)
           && replace (&self->scores, gtorch_op_reshape (mask, of_many, 4, error));
  return check_shape ("attn_mask", mask, plain, 2, error)
         && replace (&self->scores, gtorch_op_reshape (mask, of_mask, 4, error));
}

/* Adds a key to what there is, of the shape [.., S, ..] along dim; what a mask gets admits it. */
static gboolean
append (GTorchImpl **place, GTorchImpl *last, GError **error)
{
  GTorchImpl *both[] = { *place, last };

  return last != NULL && replace (place, gtorch_op_cat (both, 2, 2, error));
}

static gboolean
append_to_mask (GTorchImpl **place, GError **error)
{
  const gint64 pad[] = { 0, 1 };

  return *place == NULL
         || replace (place, gtorch_op_pad (*place, pad, 2, GTORCH_PAD_MODE_CONSTANT, 0, error));
}

static GTorchImpl *
bias_of_heads (const Heads *self, GTorchImpl *bias, GError **error)
{
  const gint64 shape[] = { 1, self->heads, 1, self->depth };
  const gint64 wide[] = { self->n, self->heads, 1, self->depth };
  g_autoptr (GTorchImpl) parts = gtorch_op_reshape (bias, shape, 4, error);
  g_autoptr (GTorchImpl) cast = parts ? gtorch_op_to_dtype (parts, self->k->dtype, error) : NULL;

  return cast != NULL ? gtorch_op_expand (cast, wide, 4, error) : NULL;
}

static gboolean
add_keys (Heads *self, GError **error)
{
  const GTorchMultiHead *args = self->args;
  const gint64 shape[] = { self->n, self->heads, 1, self->depth };

  if (args->bias_k != NULL)
    {
      g_autoptr (GTorchImpl) key = bias_of_heads (self, args->bias_k, error);
      g_autoptr (GTorchImpl) value = key ? bias_of_heads (self, args->bias_v, error) : NULL;

      if (value == NULL || !append (&self->k, key, error) || !append (&self->v, value, error)
          || !append_to_mask (&self->padding, error) || !append_to_mask (&self->scores, error))
        return FALSE;
    }
  if (args->add_zero_attn)
    {
      g_autoptr (GTorchImpl) zeros =
          gtorch_op_zeros (shape, 4, self->k->dtype, gtorch_impl_device (self->k), error);

      if (!append (&self->k, zeros, error) || !append (&self->v, zeros, error)
          || !append_to_mask (&self->padding, error) || !append_to_mask (&self->scores, error))
        return FALSE;
    }
  self->source = self->k->shape[2];
  return TRUE;
}

/* Returns a mask to be added to scores. */
static GTorchImpl *
to_scores (GTorchImpl *mask, guint dtype, GError **error)
{
  g_autoptr (GTorchImpl) none = NULL;
  g_autoptr (GTorchImpl) nothing = NULL;

  if (mask->dtype != GTORCH_DTYPE_BOOL)
    return gtorch_op_to_dtype (mask, dtype, error);
  none = gtorch_op_zeros (mask->shape, mask->n_dims, dtype, gtorch_impl_device (mask), error);
  nothing = gtorch_impl_new_number (-INFINITY);
  return none != NULL ? gtorch_op_masked_fill (none, mask, nothing, error) : NULL;
}

/* Joins both masks: to one of bool, true where a key is attended to, if both are bool. Leaves *joined
 * NULL if there is none. */
static gboolean
join_masks (const Heads *self, GTorchImpl **joined, GError **error)
{
  GTorchImpl *masks[] = { self->scores, self->padding };
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  guint n = 0;

  for (guint i = 0; i < 2; i++)
    if (masks[i] != NULL)
      masks[n++] = masks[i];
  if (n == 0)
    return TRUE;
  if (masks[0]->dtype == GTORCH_DTYPE_BOOL && masks[n - 1]->dtype == GTORCH_DTYPE_BOOL)
    {
      a = n == 2 ? gtorch_op_logical_or (masks[0], masks[1], error) : gtorch_impl_ref (masks[0]);
      return a != NULL && (*joined = gtorch_op_logical_not (a, error)) != NULL;
    }
  a = to_scores (masks[0], self->q->dtype, error);
  b = a != NULL && n == 2 ? to_scores (masks[1], self->q->dtype, error) : NULL;
  if (a == NULL || (n == 2 && b == NULL))
    return FALSE;
  *joined = n == 2 ? gtorch_op_add (a, b, 1, error) : g_steal_pointer (&a);
  return *joined != NULL;
}

/* --- attention --- */

/* Returns the weights, [N, heads, L, S]. */
static GTorchImpl *
make_weights (const Heads *self, GTorchImpl *mask, GError **error)
{
  g_autoptr (GTorchImpl) scale = gtorch_impl_new_number (1 / sqrt (self->depth));
  g_autoptr (GTorchImpl) nothing = gtorch_impl_new_number (-INFINITY);
  g_autoptr (GTorchImpl) scaled = gtorch_op_mul (self->q, scale, error);
  g_autoptr (GTorchImpl) turned = scaled ? gtorch_op_swap_matrix (self->k, error) : NULL;
  g_autoptr (GTorchImpl) scores = turned ? gtorch_op_matmul (scaled, turned, error) : NULL;
  g_autoptr (GTorchImpl) weights = NULL;

  if (scores != NULL && mask != NULL)
    {
      gboolean made = replace (&scores, mask->dtype == GTORCH_DTYPE_BOOL
                                            ? gtorch_op_where (mask, scores, nothing, error)
                                            : gtorch_op_add (scores, mask, 1, error));

      if (!made)
        return NULL;
    }
  weights = scores ? gtorch_op_softmax (scores, -1, GTORCH_DTYPE_NONE, error) : NULL;
  if (weights == NULL || self->args->dropout_p == 0)
    return g_steal_pointer (&weights);
  return gtorch_op_dropout (weights, self->args->dropout_p, TRUE, NULL, error);
}

/* Returns [N, heads, L, depth], and the weights if they are wanted. */
static GTorchImpl *
attend (const Heads *self, GTorchImpl **weights, GError **error)
{
  const GTorchMultiHead *args = self->args;
  const gboolean is_causal = args->is_causal && self->padding == NULL && !args->need_weights
                             && self->source == args->attn_mask->shape[args->attn_mask->n_dims - 1];
  g_autoptr (GTorchImpl) mask = NULL;

  if (!is_causal && !join_masks (self, &mask, error))
    return NULL;
  if (!args->need_weights)
    return gtorch_op_scaled_dot_product_attention (self->q, self->k, self->v, mask, args->dropout_p,
                                                   is_causal, GTORCH_NONE_DOUBLE, FALSE, error);
  *weights = make_weights (self, mask, error);
  return *weights != NULL ? gtorch_op_matmul (*weights, self->v, error) : NULL;
}

/* Joins the heads, and projects. */
static GTorchImpl *
finish (const Heads *self, GTorchImpl *found, GError **error)
{
  const GTorchMultiHead *args = self->args;
  const gboolean first = self->is_batched && args->batch_first;
  const gint64 order[] = { first ? 0 : 2, first ? 2 : 0, 1, 3 };
  const gint64 shape[] = { first ? self->n : self->length, first ? self->length : self->n,
                           self->width };
  const gint64 single[] = { self->length, self->width };
  g_autoptr (GTorchImpl) turned = gtorch_op_permute (found, order, 4, error);
  g_autoptr (GTorchImpl) joined =
      turned ? gtorch_op_reshape (turned, self->is_batched ? shape : single,
                                  self->is_batched ? 3 : 2, error)
             : NULL;

  return joined != NULL
             ? gtorch_op_linear (joined, args->out_proj_weight, args->out_proj_bias, error)
             : NULL;
}

static gboolean
finish_weights (const Heads *self, GTorchImpl **weights, GError **error)
{
  const gint64 heads = 1, batch = 0;

  if (self->args->average_attn_weights
      && !replace (weights, gtorch_op_mean (*weights, &heads, 1, FALSE, GTORCH_DTYPE_NONE, error)))
    return FALSE;
  return self->is_batched || replace (weights, gtorch_op_squeeze (*weights, &batch, 1, error));
}

gboolean
gtorch_multi_head_attend (const GTorchMultiHead *args, GTorchImpl **output, GTorchImpl **weights,
                          GError **error)
{
  Heads self = { .args = args };
  g_autoptr (GTorchImpl) made = NULL;
  g_autoptr (GTorchImpl) found = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (check_inputs (&self, error) && check_weights (&self, error) && make_heads (&self, error)
      && make_masks (&self, error) && add_keys (&self, error))
    found = attend (&self, &made, error);
  result = found != NULL ? finish (&self, found, error) : NULL;
  if (result != NULL && made != NULL && !finish_weights (&self, &made, error))
    g_clear_pointer (&result, gtorch_impl_unref);
  heads_clear (&self);
  if (result == NULL)
    return FALSE;
  *output = g_steal_pointer (&result);
  *weights = g_steal_pointer (&made);
  return TRUE;
}
