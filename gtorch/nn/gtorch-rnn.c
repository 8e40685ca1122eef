/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the rows of recurrent networks name: their parameters, and their results. */

#include "config.h"

#include "nn/gtorch-rnn-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gtorch-ops-private.h"

static gboolean
refuse (gpointer self, GTorchError code, gchar *text, GError **error)
{
  g_set_error (error, GTORCH_ERROR, code, "%s: %s", gtorch_module_type_name (self), text);
  g_free (text);
  return FALSE;
}

/* --- parameters --- */

/* The parameters of one layer in one direction. */
static void
add_parameters (GArray *tensors, GTorchRecurrentMode mode, gint64 n_inputs, gint64 hidden_size,
                gint64 states, gboolean has_bias, gboolean registers_all, const gchar *suffix,
                GStringChunk *names, gint64 (*shapes)[2])
{
  const gint64 rows = gtorch_recurrent_n_gates (mode) * hidden_size;
  const struct
  {
    const gchar *name;
    gint64 shape[2];
    guint n_dims;
    gboolean is_wanted;
  } parts[] = {
    { "weight_ih", { rows, n_inputs }, 2, TRUE },
    { "weight_hh", { rows, states }, 2, TRUE },
    { "bias_ih", { rows }, 1, has_bias },
    { "bias_hh", { rows }, 1, has_bias },
    { "weight_hr", { states, hidden_size }, 2, states != hidden_size },
  };

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      GTorchLayerTensor tensor = { .init = GTORCH_LAYER_UNIFORM, .is_wanted = parts[i].is_wanted };
      g_autofree gchar *name = g_strconcat (parts[i].name, suffix, NULL);

      if (!tensor.is_wanted && (!registers_all || i == 4))
        continue;
      tensor.name = g_string_chunk_insert (names, name);
      tensor.shape = memcpy (shapes[tensors->len], parts[i].shape, sizeof parts[i].shape);
      tensor.n_dims = parts[i].n_dims;
      tensor.value = (gdouble) hidden_size;
      g_array_append_val (tensors, tensor);
    }
}

/* Refuses sizes whose products are out of range. */
static gboolean
check_sizes (GTorchModule *self, gint64 hidden_size, gint64 num_layers, gint64 proj_size)
{
  g_autofree gchar *text = NULL;

  if (hidden_size > G_MAXINT32)
    text = g_strdup_printf (_ ("hidden_size %" PRId64 " is more than %d"), hidden_size, G_MAXINT32);
  else if (num_layers > G_MAXINT16)
    text = g_strdup_printf (_ ("num_layers %" PRId64 " is more than %d"), num_layers, G_MAXINT16);
  else if (proj_size >= hidden_size)
    text = g_strdup_printf (_ ("proj_size must be less than hidden_size, %" PRId64
                               " is not less than %" PRId64),
                            proj_size, hidden_size);
  if (text != NULL)
    gtorch_module_set_error (self, g_error_new (GTORCH_ERROR, GTORCH_ERROR_INVALID, "%s: %s",
                                                gtorch_module_type_name (self), text));
  return text == NULL;
}

static void
make (GTorchModule *self, GTorchRecurrentMode mode, gint64 input_size, gint64 hidden_size,
      gint64 num_layers, gboolean has_bias, gboolean bidirectional, gint64 proj_size,
      gboolean is_cell)
{
  const gint64 states = proj_size > 0 ? proj_size : hidden_size;
  const guint directions = bidirectional ? 2 : 1;
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (GTorchLayerTensor));
  g_autofree gint64 (*shapes)[2] = NULL;
  GStringChunk *names;

  if (!check_sizes (self, hidden_size, num_layers, proj_size))
    return;
  shapes = g_malloc_n ((gsize) num_layers * directions * 5, sizeof *shapes);
  names = g_string_chunk_new (1024);
  for (guint i = 0; i < num_layers * directions; i++)
    {
      const guint layer = i / directions;
      g_autofree gchar *suffix =
          is_cell ? g_strdup ("")
                  : g_strdup_printf ("_l%u%s", layer, i % directions > 0 ? "_reverse" : "");

      add_parameters (tensors, mode, layer > 0 ? states * directions : input_size, hidden_size,
                      states, has_bias, is_cell, suffix, names, shapes);
    }
  gtorch_layer_make_tensors (self, (GTorchLayerTensor *) (gpointer) tensors->data, tensors->len,
                             NULL);
  g_string_chunk_free (names);
}

void
gtorch_layer_make_rnn_cell (GTorchModule *self, GTorchRecurrentMode mode, gint64 input_size,
                            gint64 hidden_size, gboolean has_bias)
{
  make (self, mode, input_size, hidden_size, 1, has_bias, FALSE, 0, TRUE);
}

void
gtorch_layer_make_rnn (GTorchModule *self, GTorchRecurrentMode mode, gint64 input_size,
                       gint64 hidden_size, gint64 num_layers, gboolean has_bias,
                       gboolean bidirectional, gint64 proj_size)
{
  make (self, mode, input_size, hidden_size, num_layers, has_bias, bidirectional, proj_size, FALSE);
}

/* --- states --- */

static guint
n_states_of (GTorchRecurrentMode mode)
{
  return mode == GTORCH_RECURRENT_LSTM ? 2 : 1;
}

/* Fills in the states that are given, or zeros, of the shapes. */
static gboolean
take_states (GTorchRNNBase *self, GTorchRecurrentMode mode, GTorchImpl *input,
             GTorchTensor **states, gsize n_states, const gint64 (*shapes)[3], guint n_dims,
             GTorchImpl **taken, GError **error)
{
  static const gchar *const names[] = { N_ ("the hidden state"), N_ ("the cell") };
  const guint n = n_states_of (mode);

  if (n_states != 0 && n_states != n)
    return refuse (self, GTORCH_ERROR_INVALID,
                   g_strdup_printf (_ ("%zu states were given: there must be none, or %u"),
                                    n_states, n),
                   error);
  for (guint i = 0; i < n; i++)
    {
      GTorchImpl *state = n_states > 0 ? gtorch_tensor_unwrap (states[i]) : NULL;

      if (state == NULL)
        taken[i] =
            gtorch_op_zeros (shapes[i], n_dims, input->dtype, gtorch_impl_device (input), error);
      else if (!gtorch_same_shape (state->shape, state->n_dims, shapes[i], n_dims))
        return refuse (self, GTORCH_ERROR_SHAPE,
                       g_strdup_printf (_ ("%s is %s: it must be %s"), _ (names[i]),
                                        gtorch_impl_shape_str (state),
                                        gtorch_shape_str (shapes[i], n_dims)),
                       error);
      else
        taken[i] = gtorch_impl_ref (state);
      if (taken[i] == NULL)
        return FALSE;
    }
  return TRUE;
}

/* Takes the references. */
static GPtrArray *
to_results (GTorchImpl **impls, guint n)
{
  GPtrArray *results = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (results, g_steal_pointer (&impls[i]));
  return gtorch_tensors_wrap (results);
}

/* --- one step --- */

static gboolean
compute_cell (GTorchRecurrentMode mode, GTorchImpl *x, GTorchImpl **h, GTorchImpl **w,
              GTorchImpl **results, GError **error)
{
  switch (mode)
    {
    case GTORCH_RECURRENT_TANH:
      results[0] = gtorch_op_rnn_tanh_cell (x, h[0], w[0], w[1], w[2], w[3], error);
      break;
    case GTORCH_RECURRENT_RELU:
      results[0] = gtorch_op_rnn_relu_cell (x, h[0], w[0], w[1], w[2], w[3], error);
      break;
    case GTORCH_RECURRENT_GRU:
      results[0] = gtorch_op_gru_cell (x, h[0], w[0], w[1], w[2], w[3], error);
      break;
    case GTORCH_RECURRENT_LSTM:
      return gtorch_op_lstm_cell (x, h, 2, w[0], w[1], w[2], w[3], &results[0], &results[1], error);
    }
  return results[0] != NULL;
}

static const guint cell_ops[] = {
  [GTORCH_RECURRENT_TANH] = GTORCH_OP_RNN_TANH_CELL,
  [GTORCH_RECURRENT_RELU] = GTORCH_OP_RNN_RELU_CELL,
  [GTORCH_RECURRENT_LSTM] = GTORCH_OP_LSTM_CELL,
  [GTORCH_RECURRENT_GRU] = GTORCH_OP_GRU_CELL,
};

GPtrArray *
gtorch_layer_rnn_cell (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes,
                       gsize n_batch_sizes, GTorchTensor **states, gsize n_states,
                       GTorchRecurrentMode mode, gint64 hidden_size, GError **error)
{
  GTorchImpl *x = gtorch_tensor_unwrap (input);
  GTorchImpl *weights[4] = { NULL }, *h[2] = { NULL }, *results[2] = { NULL };
  const gint64 shape[3] = { x->n_dims > 0 ? x->shape[0] : 0, hidden_size, 0 };
  gint64 shapes[2][3];
  const GTorchOpClass *former;
  GPtrArray *list = NULL;
  gboolean ok;

  if (n_batch_sizes > 0)
    {
      refuse (self, GTORCH_ERROR_INVALID, g_strdup (_ ("a cell takes one step, not a sequence")),
              error);
      return NULL;
    }
  if (x->n_dims != 1 && x->n_dims != 2)
    {
      refuse (self, GTORCH_ERROR_SHAPE,
              g_strdup_printf (_ ("the input %s must have 1 or 2 dimensions"),
                               gtorch_impl_shape_str (x)),
              error);
      return NULL;
    }
  for (guint i = 0; i < 2; i++)
    memcpy (shapes[i], shape + (x->n_dims == 1), 2 * sizeof (gint64));
  for (guint i = 0; i < G_N_ELEMENTS (weights); i++)
    if (!gtorch_module_take_parameter (self, i, &weights[i], error))
      {
        gtorch_impl_clear (weights, G_N_ELEMENTS (weights));
        return NULL;
      }
  if (weights[0] == NULL || weights[1] == NULL)
    refuse (self, GTORCH_ERROR_INVALID, g_strdup (_ ("there is no weight")), error);
  else if (take_states (self, mode, x, states, n_states, shapes, x->n_dims, h, error))
    {
      former = mode == GTORCH_RECURRENT_LSTM
                   ? gtorch_composite_begin_list (cell_ops[mode],
                                                  GTORCH_IMPLS (x, weights[0], weights[1],
                                                                weights[2], weights[3]),
                                                  h, 2)
                   : gtorch_composite_begin (cell_ops[mode],
                                             GTORCH_IMPLS (x, h[0], weights[0], weights[1],
                                                           weights[2], weights[3]));
      ok = compute_cell (mode, x, h, weights, results, error);
      gtorch_composite_end (former, ok, error);
      list = ok ? to_results (results, n_states_of (mode)) : NULL;
    }
  gtorch_impl_clear (weights, G_N_ELEMENTS (weights));
  gtorch_impl_clear (h, G_N_ELEMENTS (h));
  return list;
}

/* --- sequences --- */

/* Returns the parameters, with references; NULL with an error if one is missing. */
static GPtrArray *
dup_weights (GTorchRNNBase *self, guint n, GError **error)
{
  g_autoptr (GPtrArray) weights =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  for (guint i = 0; i < n; i++)
    {
      GTorchImpl *weight;

      if (!gtorch_module_take_parameter (self, i, &weight, error))
        return NULL;
      if (weight == NULL)
        {
          refuse (self, GTORCH_ERROR_INVALID,
                  g_strdup_printf (_ ("parameter %u of %u is missing"), i, n), error);
          return NULL;
        }
      g_ptr_array_add (weights, weight);
    }
  return g_steal_pointer (&weights);
}

/* A network, and what it is given. */
typedef struct
{
  GTorchRecurrentMode mode;
  gint64 num_layers;
  gboolean has_bias, batch_first, bidirectional, train;
  gdouble dropout;
  const gint64 *batch_sizes;
  gsize n_batch_sizes;
  gboolean is_single; /* there is no dimension for the batch */
} Sequences;

static gboolean
compute_sequences (const Sequences *s, GTorchImpl *x, GTorchImpl **h, GPtrArray *weights,
                   GTorchImpl **results, GError **error)
{
  GTorchImpl *const *w = (GTorchImpl *const *) weights->pdata;
  const gsize n = weights->len;

  if (s->n_batch_sizes > 0)
    return gtorch_op_recurrent (x, h[0], h[1], w, n, s->mode, s->batch_sizes, s->n_batch_sizes,
                                s->has_bias, s->num_layers, s->dropout, s->train, s->bidirectional,
                                &results[0], &results[1], h[1] != NULL ? &results[2] : NULL, error);
  switch (s->mode)
    {
    case GTORCH_RECURRENT_TANH:
      return gtorch_op_rnn_tanh (x, h[0], w, n, s->has_bias, s->num_layers, s->dropout, s->train,
                                 s->bidirectional, s->batch_first, &results[0], &results[1], error);
    case GTORCH_RECURRENT_RELU:
      return gtorch_op_rnn_relu (x, h[0], w, n, s->has_bias, s->num_layers, s->dropout, s->train,
                                 s->bidirectional, s->batch_first, &results[0], &results[1], error);
    case GTORCH_RECURRENT_GRU:
      return gtorch_op_gru (x, h[0], w, n, s->has_bias, s->num_layers, s->dropout, s->train,
                            s->bidirectional, s->batch_first, &results[0], &results[1], error);
    default:
      return gtorch_op_lstm (x, h[0], h[1], w, n, s->has_bias, s->num_layers, s->dropout, s->train,
                             s->bidirectional, s->batch_first, &results[0], &results[1],
                             &results[2], error);
    }
}

/* Adds the dimension of the batch, or removes it. Takes the reference. */
static gboolean
change_batch (GTorchImpl **impl, guint dim, gboolean adds, GError **error)
{
  GTorchImpl *next =
      adds ? gtorch_op_unsqueeze (*impl, dim, error) : gtorch_op_select (*impl, dim, 0, error);

  if (next == NULL)
    return FALSE;
  gtorch_impl_unref (*impl);
  *impl = next;
  return TRUE;
}

static const guint sequence_ops[] = {
  [GTORCH_RECURRENT_TANH] = GTORCH_OP_RNN_TANH,
  [GTORCH_RECURRENT_RELU] = GTORCH_OP_RNN_RELU,
  [GTORCH_RECURRENT_LSTM] = GTORCH_OP_LSTM,
  [GTORCH_RECURRENT_GRU] = GTORCH_OP_GRU,
};

static GPtrArray *
run_sequences (const Sequences *s, GTorchImpl **x, GTorchImpl **h, GPtrArray *weights,
               GError **error)
{
  const guint n = n_states_of (s->mode), batch_dim = s->batch_first ? 0 : 1;
  GTorchImpl *results[3] = { NULL };
  const GTorchOpClass *former;
  gboolean ok = TRUE;

  if (s->is_single)
    {
      ok = change_batch (x, batch_dim, TRUE, error);
      for (guint i = 0; ok && i < n; i++)
        ok = change_batch (&h[i], 1, TRUE, error);
    }
  former =
      gtorch_composite_begin_list (sequence_ops[s->mode], ((GTorchImpl *const[]){ *x, h[0], h[1] }),
                                   1 + n, (GTorchImpl **) weights->pdata, weights->len);
  ok = ok && compute_sequences (s, *x, h, weights, results, error);
  gtorch_composite_end (former, ok, error);
  for (guint i = 0; ok && s->is_single && i <= n; i++)
    ok = change_batch (&results[i], i == 0 ? batch_dim : 1, FALSE, error);
  if (ok)
    return to_results (results, 1 + n);
  gtorch_impl_clear (results, G_N_ELEMENTS (results));
  return NULL;
}

GPtrArray *
gtorch_layer_rnn (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes,
                  gsize n_batch_sizes, GTorchTensor **states, gsize n_states,
                  GTorchRecurrentMode mode, gint64 hidden_size, gint64 num_layers,
                  gboolean has_bias, gboolean batch_first, gdouble dropout, gboolean bidirectional,
                  gint64 proj_size, GError **error)
{
  const gint64 parts = num_layers * (bidirectional ? 2 : 1);
  const gint64 n_out = proj_size > 0 ? proj_size : hidden_size;
  const guint n_params = (guint) parts * (2 + (has_bias ? 2 : 0) + (proj_size > 0));
  g_autoptr (GTorchImpl) x = gtorch_impl_ref (gtorch_tensor_unwrap (input));
  g_autoptr (GPtrArray) weights = NULL;
  GTorchImpl *h[2] = { NULL };
  GPtrArray *results = NULL;
  Sequences s = {
    .mode = mode,
    .num_layers = num_layers,
    .has_bias = has_bias,
    .batch_first = batch_first,
    .bidirectional = bidirectional,
    .train = gtorch_module_get_training (GTORCH_MODULE (self)),
    .dropout = dropout,
    .batch_sizes = batch_sizes,
    .n_batch_sizes = n_batch_sizes,
    .is_single = n_batch_sizes == 0 && x->n_dims == 2,
  };
  gint64 shapes[2][3] = { { parts, n_out, 0 }, { parts, hidden_size, 0 } };

  if (n_batch_sizes > 0 ? x->n_dims != 2 : x->n_dims != 2 && x->n_dims != 3)
    {
      refuse (self, GTORCH_ERROR_SHAPE,
              g_strdup_printf (n_batch_sizes > 0 ? _ ("packed sequences %s must have 2 dimensions")
                                                 : _ ("the input %s must have 2 or 3 dimensions"),
                               gtorch_impl_shape_str (x)),
              error);
      return NULL;
    }
  for (guint i = 0; i < 2 && !s.is_single; i++)
    {
      shapes[i][2] = shapes[i][1];
      shapes[i][1] = n_batch_sizes > 0 ? batch_sizes[0] : x->shape[batch_first ? 0 : 1];
    }
  if ((weights = dup_weights (self, n_params, error)) != NULL
      && take_states (self, mode, x, states, n_states, shapes, s.is_single ? 2 : 3, h, error))
    results = run_sequences (&s, &x, h, weights, error);
  gtorch_impl_clear (h, G_N_ELEMENTS (h));
  return results;
}
