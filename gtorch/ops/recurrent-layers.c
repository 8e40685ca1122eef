/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recurrent networks of several layers and directions. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "ops/gtorch-recurrent-private.h"
#include "tensor/gtorch-recorder-private.h"

#define NAME "recurrent" /* the name of what the program called takes its place */

/* What all layers have in common, and the results. */
typedef struct
{
  GTorchRecurrentLayer layer;
  GTorchImpl *hx, *cx;
  GTorchImpl *const *params;
  guint n_params; /* of each layer and direction */
  gboolean has_biases, has_projections;
  guint n_directions;
  GPtrArray *h_n, *c_n; /* the last states and cells of the layers and directions */
} Network;

static gboolean
check_batch_sizes (const Network *self, GTorchImpl *input, GError **error)
{
  const gint64 *sizes = self->layer.batch_sizes;
  const gsize n = self->layer.n_steps;
  gint64 rest = input->shape[0];

  for (gsize t = 0; t < n; t++)
    {
      const gint64 most = t > 0 ? sizes[t - 1] : self->hx->shape[1];

      if (sizes[t] < MIN (most, 1) || sizes[t] > most || (t == 0 && sizes[t] != most)
          || sizes[t] > rest)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: batch size %" G_GINT64_FORMAT " of step %" G_GSIZE_FORMAT
                          " does not fit: the first is the %" G_GINT64_FORMAT
                          " states of hx, none is greater than the one before or less than 1, and "
                          "together they are the %" G_GINT64_FORMAT " rows of the input"),
                       NAME, sizes[t], t, self->hx->shape[1], input->shape[0]);
          return FALSE;
        }
      rest -= sizes[t];
    }
  if (n > 0 && rest == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the batch sizes of %" G_GSIZE_FORMAT " steps leave %" G_GINT64_FORMAT
                  " rows of the input %s: there must be at least one step, and no other row"),
               NAME, n, rest, gtorch_impl_shape_str (input));
  return FALSE;
}

static gboolean
check (Network *self, GTorchImpl *input, gsize n_params, gint64 num_layers, GError **error)
{
  const gint64 parts = num_layers * self->n_directions;
  const guint plain = self->has_biases ? 4 : 2;
  const gboolean is_lstm = self->layer.mode == GTORCH_RECURRENT_LSTM;
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
                   _ ("%s: num_layers must be at least 1, it is %" G_GINT64_FORMAT), NAME,
                   num_layers);
      return FALSE;
    }
  self->has_projections = is_lstm && (gint64) n_params == parts * (plain + 1);
  self->n_params = plain + self->has_projections;
  if (num_layers > G_MAXINT32 || (gint64) n_params != parts * self->n_params)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are %" G_GSIZE_FORMAT " params for %" G_GINT64_FORMAT
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
                        "%" G_GINT64_FORMAT
                        " layers times directions, and the second is the batch"),
                     NAME, i == 0 ? "hx" : "cx", gtorch_impl_shape_str (states[i]), parts);
        return FALSE;
      }
  return check_batch_sizes (self, input, error);
}

/* --- one layer and direction --- */

static GTorchImpl *
input_gates (const Network *self, GTorchImpl *input, GTorchImpl *w_ih, GTorchImpl *b_ih,
             GTorchImpl *b_hh, GError **error)
{
  g_autoptr (GTorchImpl) sum = NULL;

  if (b_ih == NULL || self->layer.mode == GTORCH_RECURRENT_GRU)
    return gtorch_op_linear (input, w_ih, b_ih, error);
  sum = gtorch_op_add (b_ih, b_hh, 1, error);
  return sum != NULL ? gtorch_op_linear (input, w_ih, sum, error) : NULL;
}

/* Returns the output of layer and direction number i, and appends to the last states. */
static GTorchImpl *
run_direction (Network *self, GTorchImpl *input, guint i, GError **error)
{
  GTorchImpl *const *params = self->params + (gsize) i * self->n_params;
  GTorchImpl *b_ih = self->has_biases ? params[2] : NULL,
             *b_hh = self->has_biases ? params[3] : NULL;
  GTorchRecurrentLayer layer = self->layer;
  g_autoptr (GTorchImpl) hx = NULL;
  g_autoptr (GTorchImpl) cx = NULL;
  g_autoptr (GTorchImpl) gates = NULL;
  GTorchImpl *output = NULL, *h = NULL, *c = NULL;
  gint64 hidden;

  layer.w_hh = params[1];
  layer.w_hr = self->has_projections ? params[self->n_params - 1] : NULL;
  layer.b_hh = layer.mode == GTORCH_RECURRENT_GRU ? b_hh : NULL;
  layer.reverse = i % self->n_directions == 1;
  if (!gtorch_recurrent_check_weights (NAME, layer.mode, input->shape[1], self->hx->shape[2],
                                       params[0], params[1], b_ih, b_hh, layer.w_hr, &hidden,
                                       error))
    return NULL;
  if (self->cx != NULL && self->cx->shape[2] != hidden)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the cells %s must have %" G_GINT64_FORMAT " elements, as the weights"),
                   NAME, gtorch_impl_shape_str (self->cx), hidden);
      return NULL;
    }
  if ((hx = gtorch_op_select (self->hx, 0, i, error)) == NULL
      || (self->cx != NULL && (cx = gtorch_op_select (self->cx, 0, i, error)) == NULL)
      || (gates = input_gates (self, input, params[0], b_ih, b_hh, error)) == NULL)
    return NULL;
  layer.hx = hx;
  layer.cx = cx;
  if (!gtorch_recurrent_layer_run (&layer, gates, &output, &h, &c, error))
    return NULL;
  g_ptr_array_add (self->h_n, h);
  g_ptr_array_add (self->c_n, c);
  return output;
}

static GTorchImpl *
run_layer (Network *self, GTorchImpl *input, guint layer, GError **error)
{
  g_autoptr (GTorchImpl) forward = NULL;
  g_autoptr (GTorchImpl) backward = NULL;
  GTorchImpl *both[2];

  forward = run_direction (self, input, layer * self->n_directions, error);
  if (forward == NULL || self->n_directions == 1)
    return g_steal_pointer (&forward);
  backward = run_direction (self, input, layer * self->n_directions + 1, error);
  if (backward == NULL)
    return NULL;
  both[0] = forward;
  both[1] = backward;
  return gtorch_op_cat (both, 2, 1, error);
}

/* --- the operations --- */

static GTorchImpl *
stack (GPtrArray *list, GError **error)
{
  return gtorch_op_stack ((GTorchImpl **) list->pdata, list->len, 0, error);
}

gboolean
gtorch_composite_recurrent (GTorchImpl *input, GTorchImpl *hx, GTorchImpl *cx,
                            GTorchImpl *const *params, gsize n_params, gint64 mode,
                            const gint64 *batch_sizes, gsize n_batch_sizes, gboolean has_biases,
                            gint64 num_layers, gdouble dropout, gboolean train,
                            gboolean bidirectional, GTorchImpl **output, GTorchImpl **h_n,
                            GTorchImpl **c_n, GError **error)
{
  const GDestroyNotify unref = (GDestroyNotify) gtorch_impl_unref;
  g_autoptr (GPtrArray) all_h = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GPtrArray) all_c = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GTorchImpl) x = gtorch_impl_ref (input);
  g_autoptr (GTorchImpl) h = NULL;
  g_autoptr (GTorchImpl) c = NULL;
  Network network = {
    .layer = { .mode = (guint) mode, .batch_sizes = batch_sizes, .n_steps = n_batch_sizes },
    .hx = hx,
    .cx = cx,
    .params = params,
    .has_biases = has_biases,
    .n_directions = bidirectional ? 2 : 1,
    .h_n = all_h,
    .c_n = all_c,
  };

  if (!check (&network, input, n_params, num_layers, error))
    return FALSE;
  for (guint i = 0; i < num_layers; i++)
    {
      GTorchImpl *next;

      if (i > 0 && train && dropout > 0)
        {
          next = gtorch_op_dropout (x, dropout, TRUE, NULL, error);
          if (next == NULL)
            return FALSE;
          gtorch_impl_unref (x);
          x = next;
        }
      next = run_layer (&network, x, i, error);
      if (next == NULL)
        return FALSE;
      gtorch_impl_unref (x);
      x = next;
    }
  /* the gradient needs what the layer gave, and the program may change the result in place */
  if (network.n_directions == 1 && gtorch_impl_requires_grad (x))
    {
      GTorchImpl *copy = gtorch_op_clone (x, error);

      if (copy == NULL)
        return FALSE;
      gtorch_impl_unref (x);
      x = copy;
    }
  if ((h = stack (all_h, error)) == NULL
      || (c = cx != NULL ? stack (all_c, error) : gtorch_impl_ref (h)) == NULL)
    return FALSE;
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
