/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Networks of several layers that a device computes at once. It is asked whether it does, and by which
 * variant; what it answers is an attribute of the call, by which the backward pass finds what the forward
 * pass kept. A device may find out that it cannot do it only when it tries: then it is asked again. The
 * layers, composed of other operations, are what remains, and the second form of the gradient. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-scratch-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "ops/gtorch-recurrent-private.h"
#include "tensor/gtorch-recorder-private.h"

#define N_FIXED 3 /* tensors of recurrent_network before the parameters */
#define N_ATTRS 7
#define MODE    0
#define SIZES   1
#define BIASES  2
#define LAYERS  3
#define BOTH    4
#define VARIANT 5
#define KEEP    6
#define N_UPPER 3 /* outputs that have gradients */

/* --- shapes --- */

void
gtorch_network_init (GTorchNetwork *self, const GTorchOpCall *call)
{
  const GTorchAttr *attrs = call->attrs;
  const guint first = call->op->n_inputs;
  const GTorchImpl *hx = call->inputs[1];
  guint plain;

  self->mode = (guint) attrs[MODE].i;
  self->n_gates = gtorch_recurrent_n_gates (self->mode);
  self->batch_sizes = attrs[SIZES].list.data;
  self->n_steps = attrs[SIZES].list.n;
  self->has_biases = attrs[BIASES].i != 0;
  self->n_layers = (guint) attrs[LAYERS].i;
  self->n_directions = attrs[BOTH].i != 0 ? 2 : 1;
  self->variant = attrs[VARIANT].i;
  self->is_kept = call->op->id == GTORCH_OP_RECURRENT_NETWORK_BACKWARD || attrs[KEEP].i != 0;
  self->params = call->inputs + first;
  plain = self->has_biases ? 4 : 2;
  self->n_params = (call->n_inputs - first) / (self->n_layers * self->n_directions);
  self->has_projections = self->n_params > plain;
  self->batch = hx->shape[1];
  self->states = hx->shape[2];
  self->inputs = call->inputs[0]->shape[1];
  self->total = call->inputs[0]->shape[0];
  self->hidden = self->params[1]->shape[0] / self->n_gates;
}

/* Asks the device of the call; the answers are to be freed. Returns NULL with an error if there is no memory
 * for them. */
static gint64 *
ask (GTorchOpCall *call, GError **error)
{
  const guint n_params = call->n_inputs - call->op->n_inputs;
  gint64 *answers =
      gtorch_scratch_new0 (GTORCH_NETWORK_OFFSETS + (gint64) n_params, sizeof *answers, error);

  if (answers == NULL)
    return NULL;
  answers[GTORCH_NETWORK_VARIANT] = -1;
  if (!gtorch_call_query (call, answers, error))
    g_clear_pointer (&answers, g_free);
  return answers;
}

/* Asks as the shape functions do, which need an answer. */
static gint64 *
ask_for_shapes (GTorchOpCall *call, GError **error)
{
  const guint dtype = call->inputs[0]->dtype;
  gint64 *answers;

  for (guint i = 1; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->dtype != dtype
        && call->inputs[i]->dtype != GTORCH_DTYPE_UINT8)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                           _ ("tensor %u has dtype %s, the input %s: they must be the same"), i,
                           gtorch_dtype_get_name (call->inputs[i]->dtype),
                           gtorch_dtype_get_name (dtype));
        return NULL;
      }
  call->compute = dtype;
  if (!gtorch_call_check_dtype (call, dtype, error))
    return NULL;
  answers = ask (call, error);
  if (answers != NULL && answers[GTORCH_NETWORK_VARIANT] < 0)
    {
      g_clear_pointer (&answers, g_free);
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("the device does not compute such a network at once"));
    }
  return answers;
}

static gboolean
set_states (GTorchOpCall *call, const GTorchNetwork *n, guint i, gint64 size, GError **error)
{
  const gint64 shape[] = { n->n_layers * n->n_directions, n->batch, size };
  const gint64 nothing[] = { 0 };

  if (i == 2 && n->mode != GTORCH_RECURRENT_LSTM)
    return gtorch_call_set_output (call, i, call->compute, nothing, 1, error);
  return gtorch_call_set_output (call, i, call->compute, shape, 3, error);
}

gboolean
gtorch_shape_recurrent_network (GTorchOpCall *call, GError **error)
{
  g_autofree gint64 *answers = ask_for_shapes (call, error);
  gint64 shape[2], n_bytes;
  GTorchNetwork n;

  if (answers == NULL)
    return FALSE;
  gtorch_network_init (&n, call);
  shape[0] = n.total;
  shape[1] = n.states * n.n_directions;
  n_bytes = n.is_kept ? answers[GTORCH_NETWORK_SAVED] : 0;
  return gtorch_shape_check (call->op->name, shape, 2, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, shape, 2, error)
         && set_states (call, &n, 1, n.states, error) && set_states (call, &n, 2, n.hidden, error)
         && gtorch_call_set_output (call, 3, GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
}

gboolean
gtorch_shape_recurrent_network_backward (GTorchOpCall *call, GError **error)
{
  g_autofree gint64 *answers = ask_for_shapes (call, error);
  gint64 n_weights;
  GTorchNetwork n;

  if (answers == NULL)
    return FALSE;
  gtorch_network_init (&n, call);
  n_weights = call->attrs[KEEP].i != 0 ? answers[GTORCH_NETWORK_WEIGHTS] : 0;
  return gtorch_call_set_output (call, 0, call->compute, call->inputs[0]->shape, 2, error)
         && set_states (call, &n, 1, n.states, error) && set_states (call, &n, 2, n.hidden, error)
         && gtorch_call_set_output (call, 3, call->compute, &n_weights, 1, error);
}

/* --- the choice --- */

/* Fills in what a call of recurrent_network has. `inputs` has room for all tensors. */
static void
describe (const GTorchRecurrentNetwork *self, GTorchImpl *input, gboolean keep, GTorchImpl **inputs,
          GTorchAttr *attrs, GTorchOpCall *call)
{
  const guint n_params = self->n_layers * self->n_directions * self->n_params;

  inputs[0] = input;
  inputs[1] = self->hx;
  inputs[2] = self->cx;
  memcpy (inputs + N_FIXED, self->params, n_params * sizeof *inputs);
  attrs[MODE].i = self->mode;
  attrs[SIZES].list.data = self->batch_sizes;
  attrs[SIZES].list.n = self->n_steps;
  attrs[BIASES].i = self->has_biases;
  attrs[LAYERS].i = self->n_layers;
  attrs[BOTH].i = self->n_directions == 2;
  attrs[VARIANT].i = -1;
  attrs[KEEP].i = keep;
  *call = (GTorchOpCall){
    .op = &gtorch_ops[GTORCH_OP_RECURRENT_NETWORK],
    .inputs = inputs,
    .n_inputs = N_FIXED + n_params,
    .attrs = attrs,
    .n_outputs = 4,
    .device = gtorch_impl_device (input),
    .compute = input->dtype,
  };
}

/* Returns whether all operands have one dtype and device. */
static gboolean
is_uniform (const GTorchOpCall *call)
{
  for (guint i = 1; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && (call->inputs[i]->dtype != call->compute
            || gtorch_impl_device (call->inputs[i]) != call->device))
      return FALSE;
  return TRUE;
}

/* Asks for the next variant that the device has not found to be impossible. Returns -1 if there is none. */
static gint64
next_variant (GTorchOpCall *call)
{
  g_autofree gint64 *answers = ask (call, NULL);

  return answers != NULL ? answers[GTORCH_NETWORK_VARIANT] : -1;
}

gboolean
gtorch_recurrent_network_run (const GTorchRecurrentNetwork *self, GTorchImpl *input,
                              GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n,
                              gboolean *is_kept, GError **error)
{
  const guint n_params = self->n_layers * self->n_directions * self->n_params;
  g_autofree GTorchImpl **inputs =
      gtorch_scratch_new (N_FIXED + (gint64) n_params, sizeof *inputs, error);
  GTorchAttr attrs[N_ATTRS];
  GTorchOpCall call;
  gint64 variant = -1;
  gboolean keep;

  if (inputs == NULL)
    return FALSE;
  describe (self, input, FALSE, inputs, attrs, &call);
  keep = gtorch_autograd_wanted (inputs, call.n_inputs);
  attrs[KEEP].i = keep;
  if (is_uniform (&call))
    variant = next_variant (&call);
  while (variant >= 0)
    {
      g_autoptr (GError) local = NULL;
      gint64 next;

      if (gtorch_op_recurrent_network (input, self->hx, self->cx, self->params, n_params,
                                       self->mode, self->batch_sizes, self->n_steps,
                                       self->has_biases, self->n_layers, self->n_directions == 2,
                                       variant, keep, output, h_n, c_n, NULL, &local))
        {
          *is_kept = keep;
          if (self->cx == NULL)
            {
              gtorch_impl_unref (*c_n);
              *c_n = gtorch_impl_ref (*h_n);
            }
          return TRUE;
        }
      next = next_variant (&call);
      if (next == variant)
        {
          g_propagate_error (error, g_steal_pointer (&local));
          return FALSE;
        }
      variant = next;
    }
  *is_kept = self->n_directions == 1;
  return gtorch_recurrent_network_compose (self, input, output, h_n, c_n, error);
}

/* --- gradients --- */

static void
network_of (GTorchRecurrentNetwork *self, const GTorchAttr *attrs, GTorchImpl *const *inputs,
            guint n_inputs)
{
  const guint parts = (guint) attrs[LAYERS].i * (attrs[BOTH].i != 0 ? 2 : 1);

  *self = (GTorchRecurrentNetwork){
    .mode = (guint) attrs[MODE].i,
    .hx = inputs[1],
    .cx = inputs[2],
    .params = inputs + N_FIXED,
    .n_params = (n_inputs - N_FIXED) / parts,
    .has_biases = attrs[BIASES].i != 0,
    .n_layers = (guint) attrs[LAYERS].i,
    .n_directions = attrs[BOTH].i != 0 ? 2 : 1,
    .batch_sizes = attrs[SIZES].list.data,
    .n_steps = attrs[SIZES].list.n,
  };
  self->has_projections = self->n_params > (self->has_biases ? 4 : 2);
}

/* Fills in the gradients of the composition, which can be differentiated if the backward pass is recorded.
 * `own`, `wanted` and `results` have room for all inputs. Views of the inputs stand for them, since two
 * inputs may be one tensor. */
static gboolean
differentiate (GTorchGradContext *context, GTorchImpl **own, GTorchImpl **wanted,
               GTorchImpl **results, GError **error)
{
  GTorchImpl *outputs[N_UPPER] = { NULL }, *roots[N_UPPER], *grads[N_UPPER];
  const gboolean is_recorded = gtorch_autograd_is_differentiated ();
  g_autoptr (GTorchGradGuard) guard = gtorch_is_grad_enabled () ? NULL : gtorch_enable_grad ();
  guint n_wanted = 0, n_roots = 0, i;
  GTorchRecurrentNetwork network;
  gboolean ok;

  for (i = 0; i < context->n_inputs; i++)
    {
      if (context->inputs[i] == NULL)
        continue;
      if (!context->needs[i])
        own[i] = gtorch_impl_ref (context->inputs[i]);
      else if (is_recorded)
        own[i] = gtorch_op_view_as_is (context->inputs[i], error);
      else
        gtorch_recorder->require (own[i] = gtorch_impl_alias (context->inputs[i]));
      if (own[i] == NULL)
        return FALSE;
      if (context->needs[i])
        wanted[n_wanted++] = own[i];
    }
  network_of (&network, context->attrs, own, context->n_inputs);
  if (!gtorch_recurrent_network_compose (&network, own[0], &outputs[0], &outputs[1], &outputs[2],
                                         error))
    return FALSE;
  for (i = 0; i < N_UPPER; i++)
    if (context->grads[i] != NULL && (i < 2 || network.cx != NULL)
        && gtorch_impl_requires_grad (outputs[i]))
      {
        roots[n_roots] = outputs[i];
        grads[n_roots++] = context->grads[i];
      }
  ok = n_roots == 0 || n_wanted == 0
       || gtorch_recorder->differentiate (roots, grads, n_roots, wanted, n_wanted, results, error);
  gtorch_impl_clear (outputs, N_UPPER);
  for (i = 0, n_wanted = 0; ok && i < context->n_inputs; i++)
    if (context->inputs[i] != NULL && context->needs[i])
      {
        GTorchImpl *result = g_steal_pointer (&results[n_wanted++]);

        if (!is_recorded && result != NULL)
          {
            context->result[i] = gtorch_impl_alias (result);
            gtorch_impl_unref (result);
          }
        else
          context->result[i] = result;
      }
  return ok;
}

static gboolean
gradients_of_composition (GTorchGradContext *context, GError **error)
{
  const guint n = context->n_inputs;
  g_autofree GTorchImpl **all = gtorch_scratch_new0 (3 * (gint64) n, sizeof *all, error);
  gboolean ok;

  if (all == NULL)
    return FALSE;
  ok = differentiate (context, all, all + n, all + 2 * n, error);
  gtorch_impl_clear (all, n);
  gtorch_impl_clear (all + 2 * n, n);
  return ok;
}

/* Fills in the gradients of the parameters, parts of the one of all weights. */
static gboolean
take_parameters (GTorchGradContext *context, GTorchImpl *weights, const gint64 *offsets,
                 GError **error)
{
  for (guint i = N_FIXED; i < context->n_inputs; i++)
    {
      const GTorchMeta *meta = &context->input_metas[i];
      g_autoptr (GTorchImpl) part = NULL;

      if (!context->needs[i])
        continue;
      part = gtorch_op_narrow (weights, 0, offsets[i - N_FIXED], meta->numel, error);
      context->result[i] =
          part != NULL ? gtorch_op_reshape (part, meta->shape, meta->n_dims, error) : NULL;
      if (context->result[i] == NULL)
        return FALSE;
    }
  return TRUE;
}

static gboolean
any_parameter_needs (const GTorchGradContext *context)
{
  for (guint i = N_FIXED; i < context->n_inputs; i++)
    if (context->needs[i])
      return TRUE;
  return FALSE;
}

/* Computes the gradients at once. */
static gboolean
gradients_at_once (GTorchGradContext *context, GTorchOpCall *call, GError **error)
{
  GTorchImpl *const *x = context->inputs, *const *grads = context->grads;
  const GTorchAttr *attrs = context->attrs;
  GTorchImpl *results[4] = { NULL };
  g_autofree gint64 *answers = ask (call, error);
  gboolean ok;

  if (answers == NULL)
    return FALSE;
  ok = gtorch_op_recurrent_network_backward (x[0], x[1], x[2], context->outputs[0],
                                             context->outputs[3], grads[0], grads[1],
                                             x[2] != NULL ? grads[2] : NULL, x + N_FIXED,
                                             context->n_inputs - N_FIXED, attrs[MODE].i,
                                             attrs[SIZES].list.data, attrs[SIZES].list.n,
                                             attrs[BIASES].i != 0, attrs[LAYERS].i,
                                             attrs[BOTH].i != 0, attrs[VARIANT].i,
                                             any_parameter_needs (context), &results[0],
                                             &results[1], &results[2], &results[3], error);
  ok = ok && take_parameters (context, results[3], answers + GTORCH_NETWORK_OFFSETS, error);
  for (guint i = 0; ok && i < N_FIXED; i++)
    if (x[i] != NULL && context->needs[i])
      context->result[i] = g_steal_pointer (&results[i]);
  gtorch_impl_clear (results, G_N_ELEMENTS (results));
  return ok;
}

gboolean
gtorch_grad_recurrent_network (GTorchGradContext *context, GError **error)
{
  GTorchImpl *const *grads = context->grads;
  g_autoptr (GError) local = NULL;
  GTorchOpCall call = {
    .op = &gtorch_ops[GTORCH_OP_RECURRENT_NETWORK],
    .inputs = context->inputs,
    .n_inputs = context->n_inputs,
    .attrs = context->attrs,
    .n_outputs = 4,
    .device = gtorch_impl_device (context->inputs[0]),
    .compute = context->inputs[0]->dtype,
  };

  if (grads[0] == NULL && grads[1] == NULL && grads[2] == NULL)
    return TRUE;
  if (gtorch_autograd_wanted (grads, N_UPPER)
      || gtorch_autograd_wanted (context->inputs, context->n_inputs))
    return gradients_of_composition (context, error);
  if (gradients_at_once (context, &call, &local))
    return TRUE;
  for (guint i = 0; i < context->n_inputs; i++)
    g_clear_pointer (&context->result[i], gtorch_impl_unref);
  /* the device has found out that it cannot do this */
  if (next_variant (&call) < 0)
    return gradients_of_composition (context, error);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}
