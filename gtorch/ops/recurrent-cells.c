/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* One step of a recurrent network: linear maps of the input and of the state, and three pointwise operations
 * for what the gates do. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"

guint
gtorch_recurrent_n_gates (guint mode)
{
  static const guint n_gates[] = {
    [GTORCH_RECURRENT_TANH] = 1,
    [GTORCH_RECURRENT_RELU] = 1,
    [GTORCH_RECURRENT_LSTM] = 4,
    [GTORCH_RECURRENT_GRU] = 3,
  };

  return n_gates[mode];
}

/* Returns a view of gate i. */
static GTorchImpl *
gate (GTorchFormula *formula, GTorchImpl *gates, gint64 i, gint64 hidden)
{
  return GTORCH_FORMULA_OP (formula, narrow, gates, -1, i * hidden, hidden);
}

static GTorchImpl *
lstm_step (GTorchFormula *formula, GTorchImpl *gates, GTorchImpl **c, GTorchImpl *w_hr)
{
  const gint64 hidden = (*c)->shape[(*c)->n_dims - 1];
  GTorchImpl *in = gate (formula, gates, 0, hidden), *keep = gate (formula, gates, 1, hidden);
  GTorchImpl *value = gate (formula, gates, 2, hidden), *out = gate (formula, gates, 3, hidden);
  GTorchImpl *fresh = GTORCH_FORMULA_OP (formula, gate_tanh, value, in);
  GTorchImpl *cell = GTORCH_FORMULA_OP (formula, gate_add, fresh, *c, keep);
  GTorchImpl *h = GTORCH_FORMULA_OP (formula, gate_tanh, cell, out);

  if (w_hr != NULL)
    h = GTORCH_FORMULA_OP (formula, linear, h, w_hr, NULL);
  if (!formula->failed)
    {
      gtorch_impl_unref (*c);
      *c = gtorch_impl_ref (cell);
    }
  return h;
}

/* The product of the state and its weight is multiplied by the reset gate, so it is not added at once. */
static GTorchImpl *
gru_step (GTorchFormula *formula, GTorchImpl *gates, GTorchImpl *products, GTorchImpl *h)
{
  const gint64 hidden = h->shape[h->n_dims - 1];
  GTorchImpl *sums[2], *value, *product;

  for (guint i = 0; i < 2; i++)
    {
      GTorchImpl *a = gate (formula, gates, i, hidden), *b = gate (formula, products, i, hidden);

      sums[i] = GTORCH_FORMULA_OP (formula, add, a, b, 1);
    }
  value = gate (formula, gates, 2, hidden);
  product = gate (formula, products, 2, hidden);
  value = GTORCH_FORMULA_OP (formula, gate_add, value, product, sums[0]);
  return GTORCH_FORMULA_OP (formula, gate_mix, value, h, sums[1]);
}

GTorchImpl *
gtorch_recurrent_step (guint mode, GTorchImpl *gates, GTorchImpl *h, GTorchImpl **c,
                       GTorchImpl *w_hh, GTorchImpl *b_hh, GTorchImpl *w_hr, GError **error)
{
  g_auto (GTorchFormula) formula = GTORCH_FORMULA_INIT (error);
  GTorchImpl *products = GTORCH_FORMULA_OP (&formula, linear, h, w_hh, b_hh);
  GTorchImpl *sum;

  if (mode == GTORCH_RECURRENT_GRU)
    return gtorch_formula_take (&formula, gru_step (&formula, gates, products, h));
  sum = GTORCH_FORMULA_OP (&formula, add, gates, products, 1);
  if (mode == GTORCH_RECURRENT_LSTM)
    return gtorch_formula_take (&formula, lstm_step (&formula, sum, c, w_hr));
  if (mode == GTORCH_RECURRENT_RELU)
    return gtorch_formula_take (&formula, GTORCH_FORMULA_OP (&formula, relu, sum));
  return gtorch_formula_take (&formula, GTORCH_FORMULA_OP (&formula, tanh, sum));
}

/* --- checks --- */

static gboolean
is_matrix (const GTorchImpl *impl, gint64 rows, gint64 columns)
{
  return impl->n_dims == 2 && impl->shape[0] == rows && impl->shape[1] == columns;
}

gboolean
gtorch_recurrent_check_weights (const gchar *op, guint mode, gint64 n_inputs, gint64 states,
                                GTorchImpl *w_ih, GTorchImpl *w_hh, GTorchImpl *b_ih,
                                GTorchImpl *b_hh, GTorchImpl *w_hr, gint64 *hidden, GError **error)
{
  const guint n_gates = gtorch_recurrent_n_gates (mode);
  GTorchImpl *biases[] = { b_ih, b_hh };
  gint64 rows;

  *hidden = w_hr != NULL && w_hr->n_dims == 2 ? w_hr->shape[1] : states;
  if (w_hr != NULL && !is_matrix (w_hr, states, *hidden))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: w_hr %s must have the %" PRId64
                      " rows of a state, and a column for each element of a cell"),
                   op, gtorch_impl_shape_str (w_hr), states);
      return FALSE;
    }
  rows = n_gates * *hidden;
  if (!is_matrix (w_ih, rows, n_inputs) || !is_matrix (w_hh, rows, states))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the weights are %s and %s: for inputs of %" PRId64
                      " and states of %" PRId64 " elements they must be [%" PRId64 ", %" PRId64
                      "] and [%" PRId64 ", %" PRId64 "]"),
                   op, gtorch_impl_shape_str (w_ih), gtorch_impl_shape_str (w_hh), n_inputs, states,
                   rows, n_inputs, rows, states);
      return FALSE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (biases); i++)
    if (biases[i] != NULL && (biases[i]->n_dims != 1 || biases[i]->shape[0] != rows))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("%s: the bias %s must have the %" PRId64 " rows of the weights"), op,
                     gtorch_impl_shape_str (biases[i]), rows);
        return FALSE;
      }
  return TRUE;
}

/* --- cells --- */

static gboolean
check_state (const gchar *op, GTorchImpl *input, GTorchImpl *state, gint64 n, GError **error)
{
  const guint n_dims = input->n_dims;

  if ((n_dims == 1 || n_dims == 2) && state->n_dims == n_dims && state->shape[n_dims - 1] == n
      && (n_dims == 1 || state->shape[0] == input->shape[0]))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the input is %s and the state is %s: they must be [N, I] and [N, H], or [I] "
                  "and [H], where H is %" PRId64),
               op, gtorch_impl_shape_str (input), gtorch_impl_shape_str (state), n);
  return FALSE;
}

/* Computes a cell. c is NULL unless it is that of an LSTM. */
static GTorchImpl *
cell (const gchar *op, guint mode, GTorchImpl *input, GTorchImpl *hx, GTorchImpl **c,
      GTorchImpl *w_ih, GTorchImpl *w_hh, GTorchImpl *b_ih, GTorchImpl *b_hh, GError **error)
{
  g_autoptr (GTorchImpl) gates = NULL;
  GTorchImpl *result;
  gint64 hidden;

  hidden = w_hh->n_dims == 2 ? w_hh->shape[1] : 0;
  if (!check_state (op, input, hx, hidden, error)
      || (c != NULL && !check_state (op, input, *c, hidden, error))
      || !gtorch_recurrent_check_weights (op, mode, input->shape[input->n_dims - 1], hidden, w_ih,
                                          w_hh, b_ih, b_hh, NULL, &hidden, error))
    return NULL;
  gates = gtorch_op_linear (input, w_ih, b_ih, error);
  result =
      gates != NULL ? gtorch_recurrent_step (mode, gates, hx, c, w_hh, b_hh, NULL, error) : NULL;
  if (result == NULL)
    gtorch_error_set_op (error, op);
  return result;
}

GTorchImpl *
gtorch_composite_rnn_tanh_cell (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *w_ih,
                                GTorchImpl *w_hh, GTorchImpl *b_ih, GTorchImpl *b_hh,
                                GError **error)
{
  return cell ("rnn_tanh_cell", GTORCH_RECURRENT_TANH, input, hx, NULL, w_ih, w_hh, b_ih, b_hh,
               error);
}

GTorchImpl *
gtorch_composite_rnn_relu_cell (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *w_ih,
                                GTorchImpl *w_hh, GTorchImpl *b_ih, GTorchImpl *b_hh,
                                GError **error)
{
  return cell ("rnn_relu_cell", GTORCH_RECURRENT_RELU, input, hx, NULL, w_ih, w_hh, b_ih, b_hh,
               error);
}

GTorchImpl *
gtorch_composite_gru_cell (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *w_ih, GTorchImpl *w_hh,
                           GTorchImpl *b_ih, GTorchImpl *b_hh, GError **error)
{
  return cell ("gru_cell", GTORCH_RECURRENT_GRU, input, hx, NULL, w_ih, w_hh, b_ih, b_hh, error);
}

gboolean
gtorch_composite_lstm_cell (GTorchImpl *input, GTorchImpl *const *hx, gsize n_hx, GTorchImpl *w_ih,
                            GTorchImpl *w_hh, GTorchImpl *b_ih, GTorchImpl *b_hh, GTorchImpl **hy,
                            GTorchImpl **cy, GError **error)
{
  g_autoptr (GTorchImpl) c = NULL;
  g_autoptr (GTorchImpl) h = NULL;

  if (n_hx != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: hx has %zu tensors: it must have 2, the hidden state and the cell"),
                   "lstm_cell", n_hx);
      return FALSE;
    }
  c = gtorch_impl_ref (hx[1]);
  h = cell ("lstm_cell", GTORCH_RECURRENT_LSTM, input, hx[0], &c, w_ih, w_hh, b_ih, b_hh, error);
  if (h == NULL)
    return FALSE;
  if (hy != NULL)
    *hy = g_steal_pointer (&h);
  if (cy != NULL)
    *cy = g_steal_pointer (&c);
  return TRUE;
}
