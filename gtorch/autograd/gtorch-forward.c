/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tangents of results. There are no formulas for them: they follow from those of the gradients, in one of
 * three ways.
 *
 * - A view and a linear operation are computed of the tangents in place of the inputs.
 * - The gradient function of a real elementwise operation multiplies each element by the derivative, so what
 *   it gives for a tangent in place of the gradient is the tangent, a sum over the inputs.
 * - Otherwise let v (u) = J' u be the gradients of the inputs, with J' the conjugate transpose of the
 *   Jacobian.
 *   They are linear in u, and the gradient of the sum of Re (conj (t) v (u)) by u is J t, the tangent. It is
 *   the derivative of the derivative, so the operation must have a second one, and the value of u does not
 *   matter.
 *
 * Meanwhile the thread looks at no tangents. What is computed is recorded where the program records, so
 * tangents can be differentiated. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchOpCall *call;
  GTorchImpl **tangents; /* of the inputs, owned; NULL without */
  GTorchImpl **leaves;   /* inputs that all require grad, owned; NULL if the inputs need not */
  GTorchImpl **found;    /* of the inputs: what the gradient function gave; owned */
  gboolean *needs;
  GTorchMeta *input_metas;
  GTorchMeta output_metas[GTORCH_OP_MAX_OUTPUTS];
  GTorchImpl *results[GTORCH_OP_MAX_OUTPUTS]; /* owned; NULL for zeros */
  gchar *refusals[GTORCH_OP_MAX_OUTPUTS];     /* why a result has no tangent; NULL if it has one */
} Forward;

static gboolean
is_floating (const GTorchImpl *impl)
{
  return gtorch_dtype_kind (impl->dtype) >= GTORCH_KIND_FLOAT;
}

gboolean
gtorch_autograd_requires (GTorchImpl *const *inputs, guint n_inputs)
{
  guint i;

  if (!gtorch_is_grad_enabled ())
    return FALSE;
  for (i = 0; i < n_inputs; i++)
    if (inputs[i] != NULL && gtorch_impl_requires_grad (inputs[i]))
      return TRUE;
  return FALSE;
}

static void
forward_init (Forward *self, GTorchOpCall *call)
{
  guint i;

  *self = (Forward){ .call = call };
  self->tangents = g_new0 (GTorchImpl *, call->n_inputs + 1);
  self->found = g_new0 (GTorchImpl *, call->n_inputs + 1);
  self->needs = g_new0 (gboolean, call->n_inputs + 1);
  self->input_metas = g_new0 (GTorchMeta, call->n_inputs + 1);
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      gtorch_meta_borrow (&self->input_metas[i], call->inputs[i]);
  for (i = 0; i < call->n_outputs; i++)
    gtorch_meta_borrow (&self->output_metas[i], call->outputs[i]);
}

static void
forward_clear (Forward *self)
{
  gtorch_impl_clear (self->tangents, self->call->n_inputs);
  gtorch_impl_clear (self->found, self->call->n_inputs);
  gtorch_impl_clear (self->results, self->call->n_outputs);
  for (guint i = 0; i < self->call->n_outputs; i++)
    g_free (self->refusals[i]);
  if (self->leaves != NULL)
    gtorch_impl_clear (self->leaves, self->call->n_inputs);
  g_free (self->leaves);
  g_free (self->tangents);
  g_free (self->found);
  g_free (self->needs);
  g_free (self->input_metas);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Forward, forward_clear)

/* Calls the gradient function for the inputs that are needed. */
static gboolean
call_gradient (Forward *self, GTorchImpl *const *grads, GError **error)
{
  const GTorchOpCall *call = self->call;
  GTorchGradContext context = {
    .op = call->op,
    .n_inputs = call->n_inputs,
    .grads = grads,
    .inputs = self->leaves != NULL ? self->leaves : call->inputs,
    .outputs = call->outputs,
    .input_metas = self->input_metas,
    .output_metas = self->output_metas,
    .attrs = call->attrs,
    .needs = self->needs,
    .result = self->found,
  };

  return call->op->grad (&context, error);
}

/* Calls the gradient function with gradients of all results. If it refuses that, some results are without
 * derivatives, such as statistics that serve the backward pass: it is asked for each one by itself, and those
 * that it refuses get no tangent, which is an error where one is asked for. */
static gboolean
call_gradient_of_some (Forward *self, GTorchImpl **uppers, GError **error)
{
  const GTorchOpCall *call = self->call;
  g_autoptr (GError) local = NULL;
  guint i, n_left = 0;

  if (call_gradient (self, uppers, &local))
    return TRUE;
  for (i = 0; i < call->n_outputs && call->n_outputs > 1
              && g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
       i++)
    {
      GTorchImpl *alone[GTORCH_OP_MAX_OUTPUTS] = { NULL };
      g_autoptr (GError) refusal = NULL;

      if (uppers[i] == NULL)
        continue;
      gtorch_impl_clear (self->found, call->n_inputs);
      alone[i] = uppers[i];
      if (call_gradient (self, alone, &refusal))
        n_left++;
      else
        {
          g_clear_pointer (&uppers[i], gtorch_impl_unref);
          self->refusals[i] = g_strdup (refusal->message);
        }
    }
  gtorch_impl_clear (self->found, call->n_inputs);
  if (n_left > 0)
    return call_gradient (self, uppers, error);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* --- linear operations --- */

static gboolean
compute_linear (Forward *self, GError **error)
{
  const GTorchOpCall *call = self->call;
  g_autofree GTorchImpl **operands = g_new0 (GTorchImpl *, call->n_inputs + 1);
  gboolean success = TRUE;
  guint i;

  for (i = 0; i < call->n_inputs && success; i++)
    {
      GTorchImpl *input = call->inputs[i];

      if (self->tangents[i] != NULL)
        operands[i] = gtorch_impl_ref (self->tangents[i]);
      else if (input != NULL)
        operands[i] = is_floating (input) ? gtorch_op_zeros (input->shape, input->n_dims,
                                                             input->dtype, input->device, error)
                                          : gtorch_impl_ref (input);
      success = operands[i] != NULL || input == NULL;
    }
  success =
      success
      && gtorch_op_run (call->op, operands, call->n_inputs, call->attrs, self->results, error);
  gtorch_impl_clear (operands, call->n_inputs);
  return success;
}

/* --- elementwise operations --- */

static gboolean
is_real (const GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && gtorch_dtype_kind (call->inputs[i]->dtype) == GTORCH_KIND_COMPLEX)
      return FALSE;
  return gtorch_dtype_kind (call->outputs[0]->dtype) != GTORCH_KIND_COMPLEX;
}

/* Returns the tensor with the shape, dtype and device of the output. */
static GTorchImpl *
fit (GTorchImpl *impl, const GTorchImpl *output, GError **error)
{
  g_autoptr (GTorchImpl) current = gtorch_impl_ref (impl);

  if (current->device != output->device)
    {
      GTorchImpl *next = gtorch_op_to_device (current, output->device, FALSE, error);

      gtorch_impl_unref (current);
      current = next;
    }
  if (current != NULL && current->dtype != output->dtype)
    {
      GTorchImpl *next = gtorch_op_to_dtype (current, output->dtype, error);

      gtorch_impl_unref (current);
      current = next;
    }
  if (current != NULL && !gtorch_impl_same_shape (current, output))
    return gtorch_op_expand (current, output->shape, output->n_dims, error);
  return g_steal_pointer (&current);
}

static gboolean
compute_elementwise (Forward *self, GError **error)
{
  GTorchImpl *output = self->call->outputs[0];
  guint i;

  for (i = 0; i < self->call->n_inputs; i++)
    {
      g_autoptr (GTorchImpl) tangent = NULL;
      g_autoptr (GTorchImpl) part = NULL;
      GTorchImpl *sum;
      gboolean success;

      if (self->tangents[i] == NULL)
        continue;
      tangent = fit (self->tangents[i], output, error);
      if (tangent == NULL)
        return FALSE;
      self->needs[i] = TRUE;
      success = call_gradient (self, &tangent, error);
      self->needs[i] = FALSE;
      if (!success)
        return FALSE;
      if (self->found[i] == NULL)
        continue;
      part = fit (self->found[i], output, error);
      if (part == NULL)
        return FALSE;
      sum = self->results[0] == NULL ? gtorch_impl_ref (part)
                                     : gtorch_op_add (self->results[0], part, 1.0, error);
      g_clear_pointer (&self->results[0], gtorch_impl_unref);
      self->results[0] = sum;
      if (sum == NULL)
        return FALSE;
    }
  return TRUE;
}

/* --- all others --- */

/* Computes the gradient of v (u) by u, weighted with the tangents. */
static gboolean
differentiate (Forward *self, GTorchImpl *const *uppers, gboolean create_graph, GError **error)
{
  const guint n = self->call->n_inputs;
  g_autofree GTorchImpl **roots = g_new0 (GTorchImpl *, n + 1);
  g_autofree GTorchImpl **weights = g_new0 (GTorchImpl *, n + 1);
  GTorchImpl *wanted[GTORCH_OP_MAX_OUTPUTS], *results[GTORCH_OP_MAX_OUTPUTS] = { NULL };
  GTorchBackward backward = {
    .roots = roots,
    .grads = weights,
    .inputs = wanted,
    .results = results,
    .retain_graph = create_graph,
    .create_graph = create_graph,
  };
  guint i, k;

  for (i = 0; i < n; i++)
    {
      if (self->found[i] == NULL)
        continue;
      self->found[i] = gtorch_grad_fit (self->found[i], &self->input_metas[i], error);
      if (self->found[i] == NULL)
        return FALSE;
      if (!gtorch_impl_requires_grad (self->found[i]))
        continue;
      roots[backward.n_roots] = self->found[i];
      weights[backward.n_roots++] = self->tangents[i];
    }
  for (i = 0; i < self->call->n_outputs; i++)
    if (uppers[i] != NULL)
      wanted[backward.n_inputs++] = uppers[i];
  if (backward.n_roots == 0)
    return TRUE;
  if (!gtorch_engine_run (&backward, error))
    return FALSE;
  for (i = 0, k = 0; i < self->call->n_outputs; i++)
    if (uppers[i] != NULL)
      {
        GTorchImpl *result = results[k++];

        self->results[i] = result != NULL && !create_graph ? gtorch_impl_alias (result) : result;
        if (result != NULL && !create_graph)
          gtorch_impl_unref (result);
      }
  return TRUE;
}

/* A gradient function may count on it that an input whose gradient is needed requires grad. */
static GTorchImpl *
leaf_of (const Forward *self, guint i)
{
  GTorchImpl *input = self->call->inputs[i], *leaf;

  if (!self->needs[i] || gtorch_impl_requires_grad (input))
    return gtorch_impl_ref (input);
  leaf = gtorch_impl_alias (input);
  gtorch_autograd_ensure (leaf)->requires_grad = TRUE;
  return leaf;
}

static gboolean
compute_by_gradients (Forward *self, GError **error)
{
  GTorchOpCall *call = self->call;
  const gboolean create_graph = gtorch_autograd_requires (call->inputs, call->n_inputs)
                                || gtorch_autograd_requires (self->tangents, call->n_inputs);
  GTorchImpl *uppers[GTORCH_OP_MAX_OUTPUTS] = { NULL };
  gboolean success = TRUE;
  GTorchChange mode;
  guint i;

  gtorch_change_to_grad (&mode, TRUE);
  self->leaves = g_new0 (GTorchImpl *, call->n_inputs + 1);
  for (i = 0; i < call->n_inputs; i++)
    {
      self->needs[i] = self->tangents[i] != NULL;
      if (call->inputs[i] != NULL)
        self->leaves[i] = leaf_of (self, i);
    }
  for (i = 0; i < call->n_outputs && success; i++)
    {
      const GTorchImpl *output = call->outputs[i];

      if (!is_floating (output))
        continue;
      uppers[i] =
          gtorch_op_zeros (output->shape, output->n_dims, output->dtype, output->device, error);
      success = uppers[i] != NULL;
      if (success)
        gtorch_autograd_ensure (uppers[i])->requires_grad = TRUE;
    }
  success = success && call_gradient_of_some (self, uppers, error)
            && differentiate (self, uppers, create_graph, error);
  gtorch_change_end (&mode);
  gtorch_impl_clear (uppers, call->n_outputs);
  return success;
}

/* --- results --- */

static gboolean
shares_memory (const GTorchImpl *impl, GTorchImpl *const *others, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    if (others[i] != NULL && others[i]->storage == impl->storage)
      return TRUE;
  return FALSE;
}

/* Gives result i, in memory of its own, the strides of its output. */
static gboolean
settle (Forward *self, guint i, GError **error)
{
  const GTorchOpCall *call = self->call;
  g_autoptr (GTorchImpl) result = g_steal_pointer (&self->results[i]);
  GTorchImpl *own = NULL;

  if (shares_memory (result, self->tangents, call->n_inputs)
      || shares_memory (result, call->inputs, call->n_inputs)
      || shares_memory (result, call->outputs, call->n_outputs)
      || shares_memory (result, self->results, i))
    own = gtorch_op_clone (result, error);
  else
    own = gtorch_impl_ref (result);
  self->results[i] = own != NULL ? gtorch_tangent_lay_out (own, call->outputs[i], error) : NULL;
  if (own != NULL)
    gtorch_impl_unref (own);
  return self->results[i] != NULL;
}

static gboolean
compute (Forward *self, GError **error)
{
  GTorchOpCall *call = self->call;
  const gboolean is_view = (call->op->flags & GTORCH_OP_FLAG_VIEW) != 0 && !call->in_place
                           && call->op->id != GTORCH_OP_STRIDED_VIEW;
  gboolean success, has_tangents = FALSE;
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    {
      if (call->inputs[i] != NULL
          && !gtorch_tangent_get (call->inputs[i], &self->tangents[i], error))
        return FALSE;
      has_tangents = has_tangents || self->tangents[i] != NULL;
    }
  if (has_tangents && call->op->grad != NULL)
    {
      if (is_view || (call->op->flags & GTORCH_OP_FLAG_LINEAR))
        success = compute_linear (self, error);
      else if ((call->op->flags & GTORCH_OP_FLAG_ELEMENTWISE) && is_real (call))
        success = compute_elementwise (self, error);
      else
        success = compute_by_gradients (self, error);
      if (!success)
        return FALSE;
    }
  if (call->in_place)
    return gtorch_tangent_write (call->outputs[0], self->results[0], error);
  for (i = 0; i < call->n_outputs; i++)
    if (self->results[i] != NULL && is_floating (call->outputs[i]))
      {
        if (!is_view && !settle (self, i, error))
          return FALSE;
        gtorch_tangent_set (call->outputs[i], self->results[i]);
      }
    else if (self->refusals[i] != NULL)
      {
        g_autofree gchar *message = g_strdup_printf (_ ("%s: result %u of %s has no tangent: %s"),
                                                     gtorch_call_named_op (call)->name, i,
                                                     call->op->name, self->refusals[i]);

        gtorch_tangent_refuse (call->outputs[i], message);
      }
  return TRUE;
}

/* An operation whose gradient function has no derivative says so in its own words: the name of the
 * operation that the program called is added, and the code is that of what is missing. */
static void
explain (const GTorchOpCall *call, GError **error)
{
  if (error == NULL || *error == NULL)
    return;
  if (g_error_matches (*error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD))
    (*error)->code = GTORCH_ERROR_NOT_SUPPORTED;
  g_prefix_error (error, _ ("%s: the tangent cannot be computed: "),
                  gtorch_call_named_op (call)->name);
}

gboolean
gtorch_tangents_compute (GTorchOpCall *call, GError **error)
{
  g_auto (Forward) self;
  GTorchChange off;
  gboolean success;

  forward_init (&self, call);
  gtorch_change_begin (&off);
  gtorch_change_byte (&off, &gtorch_thread.no_forward, TRUE);
  success = compute (&self, error);
  gtorch_change_end (&off);
  if (!success)
    explain (call, error);
  return success;
}

gboolean
gtorch_tangents_begin_in_place (const GTorchOpCall *call, GError **error)
{
  guint i;

  for (i = 1; call->op->writes != NULL && i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i) && gtorch_impl_has_tangent (call->inputs[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("%s: the tensor of shape %s that it changes has a tangent: detach it"),
                     call->op->name, gtorch_impl_shape_str (call->inputs[i]));
        return FALSE;
      }
  return TRUE;
}
