/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* One layer of a recurrent network in one direction. The input's part of the gates has been computed for all
 * steps at once; here, the steps are made one after the other, each from the states of the one before.
 *
 * The rows of all steps are in one matrix, in the order of the steps. A step has at most as many elements as
 * the one before: of the batch, those with the longest sequences, so that the element b of every step is
 * row b of the states. Forward, a state that has no further step stays as it is, and is the last one of its
 * sequence. Backward, the states of the longest sequences change first, and those of others join them at the
 * last step that they have. So one matrix of states, of which each step changes the first rows, serves both.
 *
 * A device either has the operation recurrent_scan and its gradient, which are loops over steps with fused
 * gates, or the steps are composed of other operations. These are also the second form of the gradient, by
 * which it is differentiated itself. */

#include "config.h"

#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "ops/gtorch-recurrent-private.h"
#include "tensor/gtorch-recorder-private.h"

/* --- shapes --- */

void
gtorch_recurrence_init (GTorchRecurrence *self, const GTorchOpCall *call, guint first,
                        const GTorchImpl *hx, const GTorchImpl *w_hh)
{
  self->mode = (guint) call->attrs[first].i;
  self->n_gates = gtorch_recurrent_n_gates (self->mode);
  self->n_saved = self->mode >= GTORCH_RECURRENT_LSTM ? self->n_gates + 1 : 0;
  self->batch = hx->shape[0];
  self->states = hx->shape[1];
  self->hidden = w_hh->shape[0] / self->n_gates;
  self->batch_sizes = call->attrs[first + 1].list.data;
  self->n_steps = call->attrs[first + 1].list.n;
  self->reverse = call->attrs[first + 2].i != 0;
  self->total = 0;
  for (gsize t = 0; t < self->n_steps; t++)
    self->total += self->batch_sizes[t];
}

static gboolean
set_matrix (GTorchOpCall *call, guint i, gint64 rows, gint64 columns, GError **error)
{
  const gint64 shape[] = { rows, columns };

  return gtorch_shape_check (call->op->name, shape, 2, call->compute, error)
         && gtorch_call_set_output (call, i, call->compute, shape, 2, error);
}

gboolean
gtorch_shape_recurrent_scan (GTorchOpCall *call, GError **error)
{
  const gboolean keeps = call->attrs[3].i != 0;
  GTorchRecurrence r;

  if (!gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  gtorch_recurrence_init (&r, call, 0, call->inputs[1], call->inputs[3]);
  return set_matrix (call, 0, r.total, r.states, error)
         && set_matrix (call, 1, r.batch, r.states, error)
         && set_matrix (call, 2, r.mode == GTORCH_RECURRENT_LSTM ? r.batch : 0, r.hidden, error)
         && set_matrix (call, 3, keeps ? r.total : 0, r.n_saved * r.hidden, error);
}

gboolean
gtorch_shape_recurrent_scan_backward (GTorchOpCall *call, GError **error)
{
  GTorchRecurrence r;
  gint64 extra = 0;

  if (!gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  gtorch_recurrence_init (&r, call, 0, call->inputs[4], call->inputs[6]);
  if (r.mode == GTORCH_RECURRENT_GRU)
    extra = r.n_gates * r.hidden;
  else if (call->inputs[7] != NULL)
    extra = r.states;
  return set_matrix (call, 0, r.total, r.n_gates * r.hidden, error)
         && set_matrix (call, 1, r.total, extra, error)
         && set_matrix (call, 2, r.batch, r.states, error)
         && set_matrix (call, 3, r.mode == GTORCH_RECURRENT_LSTM ? r.batch : 0, r.hidden, error);
}

/* --- composed of other operations --- */

static GTorchImpl *
cat (GPtrArray *parts, GError **error)
{
  if (parts->len == 1)
    return gtorch_impl_ref (parts->pdata[0]);
  return gtorch_op_cat ((GTorchImpl **) parts->pdata, parts->len, 0, error);
}

/* Gives the states the number of rows of the next step. Forward, the rows that end are moved to `ended`,
 * which is in the order of time; backward, rows of the first states join. Takes and replaces *states. */
static gboolean
resize (GTorchImpl **states, GTorchImpl *first, gint64 n, GPtrArray *ended, GError **error)
{
  const gint64 former = (*states)->shape[0];
  GTorchImpl *next = NULL;

  if (former == n)
    return TRUE;
  if (n < former)
    {
      GTorchImpl *rest = gtorch_op_narrow (*states, 0, n, former - n, error);

      if (rest == NULL)
        return FALSE;
      g_ptr_array_add (ended, rest);
      next = gtorch_op_narrow (*states, 0, 0, n, error);
    }
  else
    {
      g_autoptr (GTorchImpl) rest = gtorch_op_narrow (first, 0, former, n - former, error);
      GTorchImpl *const both[] = { *states, rest };

      next = rest != NULL ? gtorch_op_cat (both, 2, 0, error) : NULL;
    }
  if (next == NULL)
    return FALSE;
  gtorch_impl_unref (*states);
  *states = next;
  return TRUE;
}

/* Returns the last states of all elements: those that ended last come first. */
static GTorchImpl *
last_states (GTorchImpl *states, GPtrArray *ended, GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new ();

  g_ptr_array_add (parts, states);
  for (guint i = ended->len; i-- > 0;)
    g_ptr_array_add (parts, ended->pdata[i]);
  return cat (parts, error);
}

typedef struct
{
  GTorchImpl *h, *c;
  GPtrArray *ended_h, *ended_c;
  GPtrArray *outputs;
} Composition;

static void
composition_clear (Composition *self)
{
  g_clear_pointer (&self->h, gtorch_impl_unref);
  g_clear_pointer (&self->c, gtorch_impl_unref);
  g_ptr_array_unref (self->ended_h);
  g_ptr_array_unref (self->ended_c);
  g_ptr_array_unref (self->outputs);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Composition, composition_clear)

static gboolean
compose (const GTorchRecurrentLayer *layer, GTorchImpl *gates, GTorchImpl **output,
         GTorchImpl **h_n, GTorchImpl **c_n, GError **error)
{
  const GDestroyNotify unref = (GDestroyNotify) gtorch_impl_unref;
  const gsize n = layer->n_steps;
  g_auto (Composition) s = {
    .ended_h = g_ptr_array_new_with_free_func (unref),
    .ended_c = g_ptr_array_new_with_free_func (unref),
    .outputs = g_ptr_array_new_with_free_func (unref),
  };
  g_autoptr (GPtrArray) in_order = g_ptr_array_new ();
  gint64 at = layer->reverse ? gates->shape[0] : 0;

  s.h = gtorch_op_narrow (layer->hx, 0, 0, layer->batch_sizes[layer->reverse ? n - 1 : 0], error);
  if (s.h == NULL)
    return FALSE;
  if (layer->cx != NULL && (s.c = gtorch_op_narrow (layer->cx, 0, 0, s.h->shape[0], error)) == NULL)
    return FALSE;
  for (gsize i = 0; i < n; i++)
    {
      const gint64 rows = layer->batch_sizes[layer->reverse ? n - 1 - i : i];
      g_autoptr (GTorchImpl) now = NULL;
      GTorchImpl *next;

      at -= layer->reverse ? rows : 0;
      if ((now = gtorch_op_narrow (gates, 0, at, rows, error)) == NULL
          || !resize (&s.h, layer->hx, rows, s.ended_h, error)
          || (s.c != NULL && !resize (&s.c, layer->cx, rows, s.ended_c, error)))
        return FALSE;
      at += layer->reverse ? 0 : rows;
      next = gtorch_recurrent_step (layer->mode, now, s.h, s.c != NULL ? &s.c : NULL, layer->w_hh,
                                    layer->b_hh, layer->w_hr, error);
      if (next == NULL)
        return FALSE;
      gtorch_impl_unref (s.h);
      s.h = next;
      g_ptr_array_add (s.outputs, gtorch_impl_ref (next));
    }
  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (in_order, s.outputs->pdata[layer->reverse ? n - 1 - i : i]);
  if ((*output = cat (in_order, error)) == NULL
      || (*h_n = last_states (s.h, s.ended_h, error)) == NULL)
    return FALSE;
  *c_n = s.c != NULL ? last_states (s.c, s.ended_c, error) : gtorch_impl_ref (*h_n);
  return *c_n != NULL;
}

/* --- the choice --- */

/* Asks the device whether it has the loop over all steps. */
static gboolean
has_scan (GTorchImpl *gates)
{
  GTorchOpCall call = {
    .op = &gtorch_ops[GTORCH_OP_RECURRENT_SCAN],
    .inputs = &gates,
    .n_inputs = 1,
    .n_outputs = 4,
    .device = gtorch_impl_device (gates),
  };
  gint64 answer = FALSE;

  return gtorch_call_query (&call, &answer, NULL) && answer;
}

gboolean
gtorch_recurrent_layer_run (const GTorchRecurrentLayer *self, GTorchImpl *gates,
                            GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n, GError **error)
{
  GTorchImpl *inputs[] = { gates, self->hx, self->cx, self->w_hh, self->b_hh, self->w_hr };
  gboolean keeps;

  if (!has_scan (gates))
    {
      if (compose (self, gates, output, h_n, c_n, error))
        return TRUE;
      g_clear_pointer (output, gtorch_impl_unref);
      g_clear_pointer (h_n, gtorch_impl_unref);
      return FALSE;
    }
  keeps = gtorch_autograd_wanted (inputs, G_N_ELEMENTS (inputs));
  return gtorch_op_recurrent_scan (gates, self->hx, self->cx, self->w_hh, self->b_hh, self->w_hr,
                                   self->mode, self->batch_sizes, self->n_steps, self->reverse,
                                   keeps, output, h_n, c_n, NULL, error);
}

/* --- gradients --- */

/* Rows of the output and of the first states. Those of the output that follow one another are taken at
 * once. */
typedef struct
{
  GPtrArray *parts;
  GTorchImpl *output;
  gint64 begin, end; /* rows of the output that were not added yet */
  GError **error;
  gboolean failed;
} Rows;

static void
add_rows (Rows *self, GTorchImpl *source, gint64 begin, gint64 n)
{
  GTorchImpl *part =
      n > 0 && !self->failed ? gtorch_op_narrow (source, 0, begin, n, self->error) : NULL;

  if (part != NULL)
    g_ptr_array_add (self->parts, part);
  else
    self->failed |= n > 0;
}

static void
flush_rows (Rows *self)
{
  add_rows (self, self->output, self->begin, self->end - self->begin);
  self->begin = self->end = 0;
}

static void
take_rows (Rows *self, gint64 begin, gint64 n)
{
  if (n > 0 && (self->begin == self->end || self->end != begin))
    {
      flush_rows (self);
      self->begin = begin;
      self->end = begin;
    }
  self->end += n;
}

/* Returns, for each row of the output, the state that it was computed from. */
static GTorchImpl *
former_states (GTorchImpl *output, GTorchImpl *hx, const gint64 *batch_sizes, gsize n,
               gboolean reverse, GError **error)
{
  const GDestroyNotify unref = (GDestroyNotify) gtorch_impl_unref;
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (unref);
  Rows rows = { .parts = parts, .output = output, .error = error };
  gint64 at = 0;

  for (gsize t = 0; t < n; t++)
    {
      const gint64 now = batch_sizes[t], later = t + 1 < n ? batch_sizes[t + 1] : 0;

      if (reverse)
        take_rows (&rows, at + now, later);
      else if (t > 0)
        take_rows (&rows, at - batch_sizes[t - 1], now);
      if (reverse ? later < now : t == 0)
        {
          flush_rows (&rows);
          add_rows (&rows, hx, reverse ? later : 0, reverse ? now - later : now);
        }
      at += now;
    }
  flush_rows (&rows);
  if (rows.failed)
    return NULL;
  return parts->len > 0 ? cat (parts, error) : gtorch_impl_ref (output);
}

/* Returns what w_hr is multiplied by: the cells after their gate. */
static GTorchImpl *
gated_cells (GTorchImpl *saved, GError **error)
{
  const gint64 hidden = saved->shape[1] / 5;
  g_autoptr (GTorchImpl) out = gtorch_op_narrow (saved, 1, 3 * hidden, hidden, error);
  g_autoptr (GTorchImpl) c =
      out != NULL ? gtorch_op_narrow (saved, 1, 4 * hidden, hidden, error) : NULL;
  g_autoptr (GTorchImpl) bounded = c != NULL ? gtorch_op_tanh (c, error) : NULL;

  return bounded != NULL ? gtorch_op_mul (out, bounded, error) : NULL;
}

/* Computes the gradients of the parameters from those of their products. */
static gboolean
parameter_gradients (GTorchGradContext *context, GTorchImpl *gates, GTorchImpl *hidden,
                     GError **error)
{
  const gint64 first = 0;
  const GTorchAttr *attrs = context->attrs;
  GTorchImpl *products = attrs[0].i == GTORCH_RECURRENT_GRU ? hidden : gates;

  if (context->needs[3])
    {
      g_autoptr (GTorchImpl) states =
          former_states (context->outputs[0], context->inputs[1], attrs[1].list.data,
                         attrs[1].list.n, attrs[2].i != 0, error);

      if (states == NULL
          || (context->result[3] = gtorch_op_linear_grad_weight (products, states, error)) == NULL)
        return FALSE;
    }
  if (context->needs[4]
      && (context->result[4] = gtorch_op_sum (products, &first, 1, FALSE, GTORCH_DTYPE_NONE, error))
             == NULL)
    return FALSE;
  if (context->needs[5])
    {
      g_autoptr (GTorchImpl) cells = gated_cells (context->outputs[3], error);

      context->result[5] =
          cells != NULL ? gtorch_op_linear_grad_weight (hidden, cells, error) : NULL;
      return context->result[5] != NULL;
    }
  return TRUE;
}

/* Computes the gradients of the composition, which can be differentiated. Views of the inputs stand for them,
 * since two inputs may be one tensor. */
static gboolean
gradients_of_composition (GTorchGradContext *context, GError **error)
{
  const GTorchAttr *attrs = context->attrs;
  GTorchImpl *own[6] = { NULL }, *wanted[6], *results[6] = { NULL }, *outputs[3] = { NULL };
  GTorchImpl *roots[3], *grads[3];
  guint places[6], n_wanted = 0, n_roots = 0, i;
  GTorchRecurrentLayer layer = {
    .mode = (guint) attrs[0].i,
    .batch_sizes = attrs[1].list.data,
    .n_steps = attrs[1].list.n,
    .reverse = attrs[2].i != 0,
  };
  gboolean ok = FALSE;

  for (i = 0; i < 6; i++)
    {
      if (context->inputs[i] == NULL)
        continue;
      own[i] = context->needs[i] ? gtorch_op_view_as_is (context->inputs[i], error)
                                 : gtorch_impl_ref (context->inputs[i]);
      if (own[i] == NULL)
        goto done;
      if (!context->needs[i])
        continue;
      wanted[n_wanted] = own[i];
      places[n_wanted++] = i;
    }
  layer.hx = own[1];
  layer.cx = own[2];
  layer.w_hh = own[3];
  layer.b_hh = own[4];
  layer.w_hr = own[5];
  if (!compose (&layer, own[0], &outputs[0], &outputs[1], &outputs[2], error))
    goto done;
  for (i = 0; i < 3; i++)
    if (context->grads[i] != NULL && gtorch_impl_requires_grad (outputs[i]))
      {
        roots[n_roots] = outputs[i];
        grads[n_roots++] = context->grads[i];
      }
  if (n_roots > 0 && n_wanted > 0
      && !gtorch_recorder->differentiate (roots, grads, n_roots, wanted, n_wanted, results, error))
    goto done;
  for (i = 0; i < n_wanted; i++)
    context->result[places[i]] = g_steal_pointer (&results[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (results, G_N_ELEMENTS (results));
  gtorch_impl_clear (outputs, G_N_ELEMENTS (outputs));
  gtorch_impl_clear (own, G_N_ELEMENTS (own));
  return ok;
}

gboolean
gtorch_grad_recurrent_scan (GTorchGradContext *context, GError **error)
{
  GTorchImpl *const *x = context->inputs, *const *grads = context->grads;
  const GTorchAttr *attrs = context->attrs;
  GTorchImpl *sources[9];
  g_autoptr (GTorchImpl) gates = NULL;
  g_autoptr (GTorchImpl) hidden = NULL;
  g_autoptr (GTorchImpl) hx = NULL;
  g_autoptr (GTorchImpl) cx = NULL;

  /* what is saved only serves the backward pass and has no gradient */
  if (grads[3] != NULL)
    return gtorch_grad_undefined (context, error);
  if (grads[0] == NULL && grads[1] == NULL && grads[2] == NULL)
    return TRUE;
  memcpy (sources, grads, 3 * sizeof (GTorchImpl *));
  memcpy (sources + 3, x, 6 * sizeof (GTorchImpl *));
  if (gtorch_autograd_wanted (sources, G_N_ELEMENTS (sources)))
    return gradients_of_composition (context, error);
  if (!gtorch_op_recurrent_scan_backward (context->outputs[0], grads[0], grads[1], grads[2], x[1],
                                          x[2], x[3], x[5], context->outputs[3], attrs[0].i,
                                          attrs[1].list.data, attrs[1].list.n, attrs[2].i != 0,
                                          &gates, &hidden, &hx, &cx, error)
      || !parameter_gradients (context, gates, hidden, error))
    return FALSE;
  if (context->needs[0])
    context->result[0] = g_steal_pointer (&gates);
  if (context->needs[1])
    context->result[1] = g_steal_pointer (&hx);
  if (context->needs[2])
    context->result[2] = g_steal_pointer (&cx);
  return TRUE;
}
