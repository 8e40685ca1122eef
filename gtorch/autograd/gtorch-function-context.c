/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "autograd/gtorch-function-context.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-function-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchFunctionContext:
 *
 * What a [class@Function] keeps from one call of forward to its backward.
 *
 * Everything else that backward needs (numbers, shapes) belongs here too, as data of the object or, in Python
 * and JavaScript, as a property of it; the function itself may be called again in between.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchFunctionContext, gtorch_function_context, G_TYPE_OBJECT)

void
gtorch_function_context_drop (GTorchFunctionContext *self, GTorchNode *node)
{
  g_autoptr (GPtrArray) packed = NULL;
  guint i;

  if (self->n_saved == 0)
    return;
  packed = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_packed_unref);
  if (node != NULL)
    gtorch_node_lock (node);
  for (i = 0; i < self->n_saved; i++)
    {
      GTorchPacked *one;

      if (node != NULL)
        node->is_released |= gtorch_saved_is_set (&self->saved[i].saved);
      one = gtorch_saved_steal (&self->saved[i].saved);
      if (one != NULL)
        g_ptr_array_add (packed, one);
      g_clear_pointer (&self->saved[i].grad_fn, gtorch_node_unref);
    }
  if (node != NULL)
    gtorch_node_unlock (node);
}

static void
gtorch_function_context_finalize (GObject *object)
{
  GTorchFunctionContext *self = GTORCH_FUNCTION_CONTEXT (object);

  gtorch_function_context_drop (self, NULL);
  g_clear_pointer (&self->to_save, g_ptr_array_unref);
  g_clear_pointer (&self->dirty, g_ptr_array_unref);
  g_clear_pointer (&self->constant, g_ptr_array_unref);
  g_free (self->saved);
  g_free (self->needs);
  G_OBJECT_CLASS (gtorch_function_context_parent_class)->finalize (object);
}

static void
gtorch_function_context_class_init (GTorchFunctionContextClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_function_context_finalize;
}

static void
gtorch_function_context_init (GTorchFunctionContext *self)
{
  self->to_save = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->dirty = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->constant = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->materialize = TRUE;
}

GTorchFunctionContext *
gtorch_function_context_new (GTorchImpl *const *inputs, guint n_inputs)
{
  GTorchFunctionContext *self = g_object_new (GTORCH_TYPE_FUNCTION_CONTEXT, NULL);
  gboolean enabled = gtorch_is_grad_enabled ();
  guint i;

  self->n_inputs = n_inputs;
  self->is_recorded = enabled;
  self->needs = g_new0 (gboolean, MAX (n_inputs, 1));
  for (i = 0; i < n_inputs; i++)
    self->needs[i] = enabled && gtorch_impl_requires_grad (inputs[i]);
  return self;
}

static gint
position (GTorchImpl *impl, GTorchImpl *const *impls, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    if (impls[i] == impl)
      return (gint) i;
  return -1;
}

gboolean
gtorch_function_context_pack (GTorchFunctionContext *self, GTorchNode *node,
                              GTorchImpl *const *inputs, guint n_inputs, GTorchImpl *const *outputs,
                              guint n_outputs, GError **error)
{
  guint i;

  self->node = node;
  self->n_saved = self->to_save->len;
  self->saved = g_new0 (GTorchFunctionSaved, MAX (self->n_saved, 1));
  for (i = 0; i < self->n_saved; i++)
    {
      GTorchImpl *impl = self->to_save->pdata[i];
      GTorchFunctionSaved *saved = &self->saved[i];

      gtorch_meta_init (&saved->meta, impl, saved->dims);
      if (impl->storage != NULL
          && !gtorch_saved_init (&saved->saved, impl, node->name, saved->dims + GTORCH_MAX_DIMS,
                                 error))
        return FALSE;
      saved->output = position (impl, outputs, n_outputs);
      saved->input = saved->output < 0 ? position (impl, inputs, n_inputs) : -1;
      if (saved->output >= 0
          && (gtorch_dtype_kind (impl->dtype) < GTORCH_KIND_FLOAT
              || g_ptr_array_find (self->constant, impl, NULL)))
        saved->output = -1;
      if (saved->output < 0 && saved->input < 0 && gtorch_impl_requires_grad (impl)
          && impl->autograd->grad_fn != NULL)
        {
          saved->grad_fn = gtorch_node_ref (impl->autograd->grad_fn);
          saved->index = impl->autograd->index;
        }
    }
  return TRUE;
}

void
gtorch_function_context_end_forward (GTorchFunctionContext *self)
{
  g_clear_pointer (&self->to_save, g_ptr_array_unref);
  g_clear_pointer (&self->dirty, g_ptr_array_unref);
  g_clear_pointer (&self->constant, g_ptr_array_unref);
}

/* What is declared to a call of forward that has ended would have no effect. */
static gboolean
is_in_forward (GTorchFunctionContext *self, const gchar *what, GError **error)
{
  if (self->to_save != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("%s: forward of %s has ended: call it before that"), what,
               self->node != NULL ? self->node->name : G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

/**
 * gtorch_function_context_save_for_backward:
 * @self: a context, while forward runs
 * @tensors: (array length=n_tensors): inputs, outputs or others
 * @n_tensors: the length of @tensors
 * @error: return location for an error
 *
 * Keeps tensors for backward, after those that were kept before. Keeping them in another way makes a cycle of
 * references where they are outputs, and misses that they were changed in place.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_AUTOGRAD if forward has ended
 *
 * Since: 0.1
 */
gboolean
gtorch_function_context_save_for_backward (GTorchFunctionContext *self, GTorchTensor **tensors,
                                           gsize n_tensors, GError **error)
{
  GTORCH_HOLD_TENSORS (tensors, n_tensors);
  gsize i;

  g_return_val_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  if (!is_in_forward (self, "save_for_backward", error))
    return FALSE;
  for (i = 0; i < n_tensors; i++)
    if (GTORCH_IS_TENSOR (tensors[i]))
      g_ptr_array_add (self->to_save, gtorch_impl_ref (gtorch_tensor_unwrap (tensors[i])));
  return TRUE;
}

/**
 * gtorch_function_context_get_saved_tensors:
 * @self: a context
 * @error: return location for an error
 *
 * Gets what was saved, in that order.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with
 *   %GTORCH_ERROR_AUTOGRAD if one was changed in place since, if they were freed by an earlier backward, or
 *   if forward has ended and was not recorded
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_function_context_get_saved_tensors (GTorchFunctionContext *self, GError **error)
{
  g_autoptr (GPtrArray) impls = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self), NULL);
  impls = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  if (self->node == NULL && self->to_save == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("get_saved_tensors: forward has ended, and its node was not recorded or "
                      "was freed: no backward can need the tensors"));
      return NULL;
    }
  if (self->node == NULL)
    {
      for (i = 0; i < self->to_save->len; i++)
        g_ptr_array_add (impls, gtorch_impl_ref (self->to_save->pdata[i]));
      return gtorch_tensors_wrap (g_steal_pointer (&impls));
    }
  for (i = 0; i < self->n_saved; i++)
    {
      GTorchFunctionSaved *saved = &self->saved[i];
      GTorchPacked *packed = NULL;
      GTorchImpl *impl = NULL;
      gboolean is_set;

      gtorch_node_lock (self->node);
      is_set = gtorch_saved_is_set (&saved->saved);
      if (saved->saved.is_packed)
        packed = gtorch_packed_ref (saved->saved.packed);
      else if (is_set)
        impl = gtorch_saved_unpack (&saved->saved, &saved->meta, N_ ("saved tensor"), i, error);
      gtorch_node_unlock (self->node);
      if (packed != NULL)
        {
          impl = gtorch_packed_unpack (packed, &saved->meta, N_ ("saved tensor"), i, error);
          gtorch_packed_unref (packed);
        }
      if (impl == NULL)
        {
          if (!is_set && self->node->is_released)
            gtorch_node_error_released (self->node, error);
          else if (!is_set)
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                         _ ("%s: saved tensor %u was released"), self->node->name, i);
          return NULL;
        }
      if (gtorch_is_grad_enabled ())
        {
          const GTorchEdge edge = { saved->grad_fn, NULL, saved->index };

          if (saved->output >= 0)
            gtorch_node_set_output (self->node, saved->output, impl);
          else if (saved->input >= 0)
            impl = gtorch_edge_attach (&self->node->edges[saved->input], impl);
          else
            impl = gtorch_edge_attach (&edge, impl);
        }
      g_ptr_array_add (impls, impl);
    }
  return gtorch_tensors_wrap (g_steal_pointer (&impls));
}

/**
 * gtorch_function_context_get_n_inputs:
 * @self: a context
 *
 * Gets how many inputs the function was called with.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_function_context_get_n_inputs (GTorchFunctionContext *self)
{
  g_return_val_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self), 0);
  return self->n_inputs;
}

/**
 * gtorch_function_context_get_needs_input_grad:
 * @self: a context
 * @index: an input
 *
 * Tells whether the gradient of an input is wanted. In backward it is computed for those only.
 *
 * Returns: %TRUE if it is wanted
 *
 * Since: 0.1
 */
gboolean
gtorch_function_context_get_needs_input_grad (GTorchFunctionContext *self, guint index)
{
  g_return_val_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self), FALSE);
  return index < self->n_inputs && self->needs[index];
}

static void
mark (GPtrArray *list, GTorchTensor **tensors, gsize n_tensors)
{
  gsize i;

  for (i = 0; i < n_tensors; i++)
    if (GTORCH_IS_TENSOR (tensors[i]))
      g_ptr_array_add (list, gtorch_impl_ref (gtorch_tensor_unwrap (tensors[i])));
}

/**
 * gtorch_function_context_mark_dirty:
 * @self: a context, while forward runs
 * @tensors: (array length=n_tensors): inputs that forward has changed in place
 * @n_tensors: the length of @tensors
 * @error: return location for an error
 *
 * Declares inputs changed. Each must also be an output, and takes on the history of that.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_AUTOGRAD if forward has ended
 *
 * Since: 0.1
 */
gboolean
gtorch_function_context_mark_dirty (GTorchFunctionContext *self, GTorchTensor **tensors,
                                    gsize n_tensors, GError **error)
{
  GTORCH_HOLD_TENSORS (tensors, n_tensors);

  g_return_val_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  if (!is_in_forward (self, "mark_dirty", error))
    return FALSE;
  mark (self->dirty, tensors, n_tensors);
  return TRUE;
}

/**
 * gtorch_function_context_mark_non_differentiable:
 * @self: a context, while forward runs
 * @tensors: (array length=n_tensors): outputs
 * @n_tensors: the length of @tensors
 * @error: return location for an error
 *
 * Declares outputs to be without gradient. Those of an integer dtype are so by themselves.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_AUTOGRAD if forward has ended
 *
 * Since: 0.1
 */
gboolean
gtorch_function_context_mark_non_differentiable (GTorchFunctionContext *self,
                                                 GTorchTensor **tensors, gsize n_tensors,
                                                 GError **error)
{
  GTORCH_HOLD_TENSORS (tensors, n_tensors);

  g_return_val_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  if (!is_in_forward (self, "mark_non_differentiable", error))
    return FALSE;
  mark (self->constant, tensors, n_tensors);
  return TRUE;
}

/**
 * gtorch_function_context_set_materialize_grads:
 * @self: a context
 * @materialize: whether backward gets zeros for an output to which no gradient flows, which is the
 *   default, or %NULL
 *
 * Chooses how a missing gradient is given to backward.
 *
 * Since: 0.1
 */
void
gtorch_function_context_set_materialize_grads (GTorchFunctionContext *self, gboolean materialize)
{
  g_return_if_fail (GTORCH_IS_FUNCTION_CONTEXT (self));
  self->materialize = materialize;
}
