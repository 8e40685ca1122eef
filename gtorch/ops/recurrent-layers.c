/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recurrent networks of several layers and directions. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "ops/gtorch-recurrent-private.h"
#include "tensor/gtorch-recorder-private.h"

#define NAME "recurrent" /* the name of what the program called takes its place */

static gboolean
check_batch_sizes (const GTorchRecurrentNetwork *self, GTorchImpl *input, GError **error)
{
  const gint64 *sizes = self->batch_sizes;
  const gsize n = self->n_steps;
  gint64 rest = input->shape[0];

  for (gsize t = 0; t < n; t++)
    {
      const gint64 most = t > 0 ? sizes[t - 1] : self->hx->shape[1];

      if (sizes[t] < MIN (most, 1) || sizes[t] > most || (t == 0 && sizes[t] != most)
          || sizes[t] > rest)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: batch size %" PRId64
                          " of step %zu does not fit: the first is the %" PRId64
                          " states of hx, none is greater than the one before or less than 1, and "
                          "together they are the %" PRId64 " rows of the input"),
                       NAME, sizes[t], t, self->hx->shape[1], input->shape[0]);
          return FALSE;
        }
      rest -= sizes[t];
    }
  if (n > 0 && rest == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the batch sizes of %zu steps leave %" PRId64
                  " rows of the input %s: there must be at least one step, and no other row"),
               NAME, n, rest, gtorch_impl_shape_str (input));
  return FALSE;
}

/* Checks the weights of all layers and directions. */
static gboolean
check_weights (const GTorchRecurrentNetwork *self, GTorchImpl *input, GError **error)
{
  const gint64 states = self->hx->shape[2];
  gint64 hidden;

  for (guint i = 0; i < self->n_layers * self->n_directions; i++)
    {
      GTorchImpl *const *params = self->params + (gsize) i * self->n_params;
      const gint64 n_inputs =
          i < self->n_directions ? input->shape[1] : states * self->n_directions;

      if (!gtorch_recurrent_check_weights (NAME, self->mode, n_inputs, states, params[0], params[1],
                                           self->has_biases ? params[2] : NULL,
                                           self->has_biases ? params[3] : NULL,
                                           self->has_projections ? params[self->n_params - 1]
                                                                 : NULL,
                                           &hidden, error))
        return FALSE;
      if (self->cx != NULL && self->cx->shape[2] != hidden)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: the cells %s must have %" PRId64 " elements, as the weights"), NAME,
                       gtorch_impl_shape_str (self->cx), hidden);
          return FALSE;
        }
    }
  return TRUE;
}

static gboolean
check (GTorchRecurrentNetwork *self, GTorchImpl *input, gsize n_params, gint64 num_layers,
       GError **error)
{
  const gint64 parts = num_layers * self->n_directions;
  const guint plain = self->has_biases ? 4 : 2;
  const gboolean is_lstm = self->mode == GTORCH_RECURRENT_LSTM;
  GTorchImpl *states[] = { self->hx, self->cx };

  if (gtorch_dtype_kind (input->dtype) != GTORCH_KIND_FLOAT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: the input has dtype %s: it must be floating-point"), NAME,
                   gtorch_dtype_get_name (input->dtype));
      return FALSE;
    }
  if (num_layers < 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: num_layers must be at least 1, it is %" PRId64), NAME, num_layers);
      return FALSE;
    }
  self->has_projections = is_lstm && (gint64) n_params == parts * (plain + 1);
  self->n_params = plain + self->has_projections;
  if (num_layers > G_MAXINT32 || (gint64) n_params != parts * self->n_params)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are %zu params for %" PRId64
                      " layers and %u directions: each of these has %u"),
                   NAME, n_params, num_layers, self->n_directions, plain);
      return FALSE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (states); i++)
    if (states[i] != NULL
        && (states[i]->n_dims != 3 || states[i]->shape[0] != parts
            || states[i]->shape[1] != states[0]->shape[1]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("%s: %s is %s: it must have 3 dimensions, of which the first is the "
                        "%" PRId64 " layers times directions, and the second is the batch"),
                     NAME, i == 0 ? "hx" : "cx", gtorch_impl_shape_str (states[i]), parts);
        return FALSE;
      }
  self->n_layers = (guint) num_layers;
  return check_batch_sizes (self, input, error) && check_weights (self, input, error);
}

/* --- composed of layers --- */

static GTorchImpl *
input_gates (const GTorchRecurrentNetwork *self, GTorchImpl *input, GTorchImpl *w_ih,
             GTorchImpl *b_ih, GTorchImpl *b_hh, GError **error)
{
  g_autoptr (GTorchImpl) sum = NULL;

  if (b_ih == NULL || self->mode == GTORCH_RECURRENT_GRU)
    return gtorch_op_linear (input, w_ih, b_ih, error);
  sum = gtorch_op_add (b_ih, b_hh, 1, error);
  return sum != NULL ? gtorch_op_linear (input, w_ih, sum, error) : NULL;
}

/* Returns the output of layer and direction number i, and appends to the last states. */
static GTorchImpl *
run_direction (const GTorchRecurrentNetwork *self, GTorchImpl *input, guint i, GPtrArray *all_h,
               GPtrArray *all_c, GError **error)
{
  GTorchImpl *const *params = self->params + (gsize) i * self->n_params;
  GTorchImpl *b_ih = self->has_biases ? params[2] : NULL,
             *b_hh = self->has_biases ? params[3] : NULL;
  GTorchRecurrentLayer layer = {
    .mode = self->mode,
    .w_hh = params[1],
    .b_hh = self->mode == GTORCH_RECURRENT_GRU ? b_hh : NULL,
    .w_hr = self->has_projections ? params[self->n_params - 1] : NULL,
    .batch_sizes = self->batch_sizes,
    .n_steps = self->n_steps,
    .reverse = i % self->n_directions == 1,
  };
  g_autoptr (GTorchImpl) hx = NULL;
  g_autoptr (GTorchImpl) cx = NULL;
  g_autoptr (GTorchImpl) gates = NULL;
  GTorchImpl *output = NULL, *h = NULL, *c = NULL;

  if ((hx = gtorch_op_select (self->hx, 0, i, error)) == NULL
      || (self->cx != NULL && (cx = gtorch_op_select (self->cx, 0, i, error)) == NULL)
      || (gates = input_gates (self, input, params[0], b_ih, b_hh, error)) == NULL)
    return NULL;
  layer.hx = hx;
  layer.cx = cx;
  if (!gtorch_recurrent_layer_run (&layer, gates, &output, &h, &c, error))
    return NULL;
  g_ptr_array_add (all_h, h);
  g_ptr_array_add (all_c, c);
  return output;
}

static GTorchImpl *
run_layer (const GTorchRecurrentNetwork *self, GTorchImpl *input, guint layer, GPtrArray *all_h,
           GPtrArray *all_c, GError **error)
{
  const guint first = layer * self->n_directions;
  g_autoptr (GTorchImpl) forward = NULL;
  g_autoptr (GTorchImpl) backward = NULL;
  GTorchImpl *both[2];

  forward = run_direction (self, input, first, all_h, all_c, error);
  if (forward == NULL || self->n_directions == 1)
    return g_steal_pointer (&forward);
  backward = run_direction (self, input, first + 1, all_h, all_c, error);
  if (backward == NULL)
    return NULL;
  both[0] = forward;
  both[1] = backward;
  return gtorch_op_cat (both, 2, 1, error);
}

static GTorchImpl *
stack (GPtrArray *list, GError **error)
{
  return gtorch_op_stack ((GTorchImpl **) list->pdata, list->len, 0, error);
}

gboolean
gtorch_recurrent_network_compose (const GTorchRecurrentNetwork *self, GTorchImpl *input,
                                  GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n,
                                  GError **error)
{
  const GDestroyNotify unref = (GDestroyNotify) gtorch_impl_unref;
  g_autoptr (GPtrArray) all_h = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GPtrArray) all_c = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GTorchImpl) x = gtorch_impl_ref (input);
  g_autoptr (GTorchImpl) h = NULL;
  g_autoptr (GTorchImpl) c = NULL;

  for (guint i = 0; i < self->n_layers; i++)
    {
      GTorchImpl *next = run_layer (self, x, i, all_h, all_c, error);

      if (next == NULL)
        return FALSE;
      gtorch_impl_unref (x);
      x = next;
    }
  if ((h = stack (all_h, error)) == NULL
      || (c = self->cx != NULL ? stack (all_c, error) : gtorch_impl_ref (h)) == NULL)
    return FALSE;
  *output = g_steal_pointer (&x);
  *h_n = g_steal_pointer (&h);
  *c_n = g_steal_pointer (&c);
  return TRUE;
}

/* --- the operations --- */

/* Runs a network that drops elements between its layers: each of them as a network of its own. */
static gboolean
run_dropping (const GTorchRecurrentNetwork *self, GTorchImpl *input, gdouble dropout,
              GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n, gboolean *is_kept,
              GError **error)
{
  const GDestroyNotify unref = (GDestroyNotify) gtorch_impl_unref;
  const gint64 n = self->n_directions;
  g_autoptr (GPtrArray) all_h = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GPtrArray) all_c = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GTorchImpl) x = gtorch_impl_ref (input);
  g_autoptr (GTorchImpl) h = NULL;
  GTorchImpl *c;

  for (guint i = 0; i < self->n_layers; i++)
    {
      GTorchRecurrentNetwork one = *self;
      g_autoptr (GTorchImpl) hx = NULL;
      g_autoptr (GTorchImpl) cx = NULL;
      GTorchImpl *next, *last_h, *last_c;

      if (i > 0)
        {
          next = gtorch_op_dropout (x, dropout, TRUE, NULL, error);
          if (next == NULL)
            return FALSE;
          gtorch_impl_unref (x);
          x = next;
        }
      if ((hx = gtorch_op_narrow (self->hx, 0, i * n, n, error)) == NULL
          || (self->cx != NULL && (cx = gtorch_op_narrow (self->cx, 0, i * n, n, error)) == NULL))
        return FALSE;
      one.n_layers = 1;
      one.hx = hx;
      one.cx = cx;
      one.params = self->params + (gsize) (i * n) * self->n_params;
      if (!gtorch_recurrent_network_run (&one, x, &next, &last_h, &last_c, is_kept, error))
        return FALSE;
      gtorch_impl_unref (x);
      x = next;
      g_ptr_array_add (all_h, last_h);
      g_ptr_array_add (all_c, last_c);
    }
  if ((h = gtorch_op_cat ((GTorchImpl **) all_h->pdata, all_h->len, 0, error)) == NULL)
    return FALSE;
  c = self->cx != NULL ? gtorch_op_cat ((GTorchImpl **) all_c->pdata, all_c->len, 0, error)
                       : gtorch_impl_ref (h);
  if (c == NULL)
    return FALSE;
  *output = g_steal_pointer (&x);
  *h_n = g_steal_pointer (&h);
  *c_n = c;
  return TRUE;
}

gboolean
gtorch_composite_recurrent (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *cx,
                            GTorchImpl *const *params, gsize n_params, gint64 mode,
                            const gint64 *batch_sizes, gsize n_batch_sizes, gboolean has_biases,
                            gint64 num_layers, gdouble dropout, gboolean train,
                            gboolean bidirectional, GTorchImpl **output, GTorchImpl **h_n,
                            GTorchImpl **c_n, GError **error)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) h = NULL;
  g_autoptr (GTorchImpl) c = NULL;
  GTorchRecurrentNetwork network = {
    .mode = (guint) mode,
    .hx = hx,
    .cx = cx,
    .params = params,
    .has_biases = has_biases,
    .n_directions = bidirectional ? 2 : 1,
    .batch_sizes = batch_sizes,
    .n_steps = n_batch_sizes,
  };
  gboolean is_kept = FALSE;

  if (!check (&network, input, n_params, num_layers, error)
      || !(num_layers > 1 && train && dropout > 0
               ? run_dropping (&network, input, dropout, &x, &h, &c, &is_kept, error)
               : gtorch_recurrent_network_run (&network, input, &x, &h, &c, &is_kept, error)))
    return FALSE;
  /* the gradient needs what the layer gave, and the program may change the result in place */
  if (is_kept && gtorch_impl_requires_grad (x))
    {
      GTorchImpl *copy = gtorch_op_clone (x, error);

      if (copy == NULL)
        return FALSE;
      gtorch_impl_unref (x);
      x = copy;
    }
  if (output != NULL)
    *output = g_steal_pointer (&x);
  if (h_n != NULL)
    *h_n = g_steal_pointer (&h);
  if (c_n != NULL)
    *c_n = g_steal_pointer (&c);
  return TRUE;
}

/* Runs a network over sequences of one length, [L, N, I] or [N, L, I]. */
static gboolean
run (const gchar *op, guint mode, GTorchImpl *input, GTorchImpl *hx, GTorchImpl *cx,
     GTorchImpl *const *params, gsize n_params, gboolean has_biases, gint64 num_layers,
     gdouble dropout, gboolean train, gboolean bidirectional, gboolean batch_first,
     GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n, GError **error)
{
  g_autoptr (GTorchImpl) in_time = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) states = NULL;
  g_autoptr (GTorchImpl) shaped = NULL;
  g_autoptr (GTorchImpl) h = NULL;
  g_autoptr (GTorchImpl) c = NULL;
  g_autofree gint64 *batch_sizes = NULL;
  gint64 shape[3];

  if (input->n_dims != 3)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the input %s must have 3 dimensions, steps, batch and elements"), op,
                   gtorch_impl_shape_str (input));
      return FALSE;
    }
  in_time = batch_first ? gtorch_op_transpose (input, 0, 1, error) : gtorch_impl_ref (input);
  if (in_time == NULL)
    goto failed;
  memcpy (shape, in_time->shape, sizeof shape);
  batch_sizes = gtorch_scratch_new (MAX (shape[0], 1), sizeof *batch_sizes, error);
  if (batch_sizes == NULL)
    goto failed;
  for (gint64 t = 0; t < shape[0]; t++)
    batch_sizes[t] = shape[1];
  rows = gtorch_op_reshape (in_time, (gint64[]){ shape[0] * shape[1], shape[2] }, 2, error);
  if (rows == NULL
      || !gtorch_op_recurrent (rows, hx, cx, params, n_params, mode, batch_sizes, shape[0],
                               has_biases, num_layers, dropout, train, bidirectional, &states, &h,
                               &c, error))
    goto failed;
  shape[2] = states->shape[1];
  shaped = gtorch_op_reshape (states, shape, 3, error);
  if (shaped != NULL && batch_first)
    {
      GTorchImpl *turned = gtorch_op_transpose (shaped, 0, 1, error);

      gtorch_impl_unref (shaped);
      shaped = turned;
    }
  if (shaped == NULL)
    goto failed;
  if (output != NULL)
    *output = g_steal_pointer (&shaped);
  if (h_n != NULL)
    *h_n = g_steal_pointer (&h);
  if (c_n != NULL)
    *c_n = g_steal_pointer (&c);
  return TRUE;
failed:
  gtorch_error_set_op (error, op);
  return FALSE;
}

gboolean
gtorch_op_rnn_tanh (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *const *params, gsize n_params,
                    gboolean has_biases, gint64 num_layers, gdouble dropout, gboolean train,
                    gboolean bidirectional, gboolean batch_first, GTorchImpl **output,
                    GTorchImpl **h_n, GError **error)
{
  return run ("rnn_tanh", GTORCH_RECURRENT_TANH, input, hx, NULL, params, n_params, has_biases,
              num_layers, dropout, train, bidirectional, batch_first, output, h_n, NULL, error);
}

gboolean
gtorch_op_rnn_relu (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *const *params, gsize n_params,
                    gboolean has_biases, gint64 num_layers, gdouble dropout, gboolean train,
                    gboolean bidirectional, gboolean batch_first, GTorchImpl **output,
                    GTorchImpl **h_n, GError **error)
{
  return run ("rnn_relu", GTORCH_RECURRENT_RELU, input, hx, NULL, params, n_params, has_biases,
              num_layers, dropout, train, bidirectional, batch_first, output, h_n, NULL, error);
}

gboolean
gtorch_op_gru (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *const *params, gsize n_params,
               gboolean has_biases, gint64 num_layers, gdouble dropout, gboolean train,
               gboolean bidirectional, gboolean batch_first, GTorchImpl **output, GTorchImpl **h_n,
               GError **error)
{
  return run ("gru", GTORCH_RECURRENT_GRU, input, hx, NULL, params, n_params, has_biases,
              num_layers, dropout, train, bidirectional, batch_first, output, h_n, NULL, error);
}

gboolean
gtorch_op_lstm (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *cx, GTorchImpl *const *params,
                gsize n_params, gboolean has_biases, gint64 num_layers, gdouble dropout,
                gboolean train, gboolean bidirectional, gboolean batch_first, GTorchImpl **output,
                GTorchImpl **h_n, GTorchImpl **c_n, GError **error)
{
  return run ("lstm", GTORCH_RECURRENT_LSTM, input, hx, cx, params, n_params, has_biases,
              num_layers, dropout, train, bidirectional, batch_first, output, h_n, c_n, error);
}
