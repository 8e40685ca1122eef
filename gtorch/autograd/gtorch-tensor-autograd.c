/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a tensor shows of autograd. */

#include "config.h"

#include "gtorch-tensor-autograd.h"

#include <glib/gi18n-lib.h>

#include "gtorch-autograd-private.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-private.h"

/**
 * gtorch_tensor_get_requires_grad:
 * @self: a tensor
 *
 * Tells whether gradients flow to @self: it was asked for, or @self was computed from such a
 * tensor.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_get_requires_grad (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_impl_requires_grad (gtorch_tensor_unwrap (self));
}

/**
 * gtorch_tensor_set_requires_grad:
 * @self: a leaf: a tensor that no recorded operation has computed
 * @requires_grad: whether gradients are wanted
 * @error: return location for an error
 *
 * Asks for gradients of @self, which [method@Tensor.backward] adds to its grad.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_DTYPE if the dtype is neither floating-point nor
 *   complex, or
 *   %GTORCH_ERROR_AUTOGRAD if @self is not a leaf
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_set_requires_grad (GTorchTensor *self, gboolean requires_grad, GError **error)
{
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (requires_grad && gtorch_dtype_kind (impl->dtype) < GTORCH_KIND_FLOAT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("requires_grad: dtype %s has no gradients, only floating-point and complex "
                      "ones do"),
                   gtorch_dtype_get_name (impl->dtype));
      return FALSE;
    }
  if (!gtorch_impl_is_leaf (impl))
    {
      if (requires_grad)
        return TRUE;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("requires_grad: it can be taken from a leaf only, the tensor of shape %s was "
                      "computed by %s: "
                      "detach it"),
                   gtorch_impl_shape_str (impl), impl->autograd->grad_fn->name);
      return FALSE;
    }
  if (requires_grad || impl->autograd != NULL)
    gtorch_autograd_ensure (impl)->requires_grad = requires_grad != FALSE;
  return TRUE;
}

/**
 * gtorch_tensor_is_leaf:
 * @self: a tensor
 *
 * Tells whether @self was not computed by a recorded operation. Leaves keep their gradients.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_leaf (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_impl_is_leaf (gtorch_tensor_unwrap (self));
}

/**
 * gtorch_tensor_get_grad_fn_name:
 * @self: a tensor
 *
 * Gets the name of the recorded operation that computed @self.
 *
 * Returns: (nullable): the name, or %NULL for a leaf
 *
 * Since: 0.1
 */
const gchar *
gtorch_tensor_get_grad_fn_name (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  return gtorch_impl_is_leaf (gtorch_tensor_unwrap (self)) ? NULL
                                                           : self->impl->autograd->grad_fn->name;
}

/**
 * gtorch_tensor_get_grad:
 * @self: a tensor
 *
 * Gets the gradient that has been accumulated for @self. It is the same object each time.
 *
 * Returns: (transfer full) (nullable): the gradient, or %NULL if there is none yet
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_get_grad (GTorchTensor *self)
{
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (impl->autograd == NULL || impl->autograd->grad == NULL)
    return NULL;
  return gtorch_tensor_wrap (gtorch_impl_ref (impl->autograd->grad));
}

/**
 * gtorch_tensor_set_grad:
 * @self: a tensor
 * @grad: (nullable): a tensor of the same shape, dtype and device, or %NULL
 * @error: return location for an error
 *
 * Replaces the gradient of @self; with %NULL drops it.
 *
 * Returns: %TRUE, or %FALSE with @error set if @grad does not fit
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_set_grad (GTorchTensor *self, GTorchTensor *grad, GError **error)
{
  GTorchImpl *impl, *value = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (grad == NULL || GTORCH_IS_TENSOR (grad), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (grad != NULL)
    {
      value = gtorch_tensor_unwrap (grad);
      if (!gtorch_impl_same_shape (impl, value))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("grad: shape %s does not fit a tensor of shape %s"),
                       gtorch_impl_shape_str (value), gtorch_impl_shape_str (impl));
          return FALSE;
        }
      if (impl->dtype != value->dtype)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                       _ ("grad: dtype %s does not fit a tensor of dtype %s"),
                       gtorch_dtype_get_name (value->dtype), gtorch_dtype_get_name (impl->dtype));
          return FALSE;
        }
      if (gtorch_impl_device (impl) != gtorch_impl_device (value))
        {
          g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                               _ ("grad: it must be on the device of its tensor"));
          return FALSE;
        }
      gtorch_impl_ref (value);
    }
  if (value != NULL || impl->autograd != NULL)
    {
      GTorchAutograd *autograd = gtorch_autograd_ensure (impl);

      g_clear_pointer (&autograd->grad, gtorch_impl_unref);
      autograd->grad = value;
    }
  return TRUE;
}

/**
 * gtorch_tensor_retain_grad:
 * @self: a tensor that requires grad
 * @error: return location for an error
 *
 * Asks a tensor that is not a leaf to keep its gradient, too.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_AUTOGRAD if no gradient flows to @self
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_retain_grad (GTorchTensor *self, GError **error)
{
  GTorchImpl *impl;
  GTorchNode *node;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (!gtorch_impl_requires_grad (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("retain_grad: the tensor of shape %s does not require grad"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  node = impl->autograd->grad_fn;
  if (node == NULL || impl->autograd->retains_grad)
    return TRUE;
  if (node->retained == NULL)
    {
      node->retained = g_ptr_array_new ();
      g_ptr_array_set_size (node->retained, node->n_outputs);
    }
  node->retained->pdata[impl->autograd->index] = impl;
  impl->autograd->retains_grad = TRUE;
  return TRUE;
}

/**
 * gtorch_tensor_detach:
 * @self: a tensor
 * @error: return location for an error
 *
 * Gives the same elements as a tensor to which no gradient flows. The memory is shared.
 *
 * Returns: (transfer full): the tensor, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_detach (GTorchTensor *self, GError **error)
{
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("detach: the tensor of shape %s was released"), gtorch_impl_shape_str (impl));
      return NULL;
    }
  return gtorch_tensor_wrap (gtorch_impl_alias (impl));
}

typedef struct
{
  GTorchTensorHook hook;
  gpointer user_data;
  GDestroyNotify destroy;
} TensorHook;

static GTorchImpl *
run_tensor_hook (GTorchImpl *grad, gpointer user_data)
{
  TensorHook *self = user_data;
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (grad));
  g_autoptr (GTorchTensor) changed = self->hook (tensor, self->user_data);

  return changed != NULL && changed != tensor ? gtorch_impl_ref (gtorch_tensor_unwrap (changed))
                                              : NULL;
}

static void
tensor_hook_free (gpointer data)
{
  TensorHook *self = data;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self);
}

static GArray **
hooks_of (GTorchImpl *impl, guint *index)
{
  GTorchAutograd *autograd = impl->autograd;

  *index = autograd->grad_fn != NULL ? autograd->index : 0;
  return autograd->grad_fn != NULL ? &autograd->grad_fn->hooks : &autograd->hooks;
}

/**
 * gtorch_tensor_register_hook:
 * @self: a tensor that requires grad
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with the gradient of @self
 *   when the
 *   backward pass has computed it
 * @user_data: data for @hook
 * @destroy: frees @user_data
 * @error: return location for an error
 *
 * Adds a hook to the backward pass. Hooks run in the thread that runs the pass, in the order in
 * which they
 * were added.
 *
 * Returns: an id for [method@Tensor.remove_hook], or 0 with %GTORCH_ERROR_AUTOGRAD if no gradient
 *   flows to
 *   @self
 *
 * Since: 0.1
 */
guint64
gtorch_tensor_register_hook (GTorchTensor *self, GTorchTensorHook hook, gpointer user_data,
                             GDestroyNotify destroy, GError **error)
{
  static guint64 last_id;
  GTorchHook entry = { .func = run_tensor_hook, .destroy = tensor_hook_free };
  TensorHook *data;
  GTorchImpl *impl;
  GArray **hooks;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  impl = gtorch_tensor_unwrap (self);
  if (!gtorch_impl_requires_grad (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("register_hook: the tensor of shape %s does not require grad"),
                   gtorch_impl_shape_str (impl));
      if (destroy != NULL)
        destroy (user_data);
      return 0;
    }
  data = g_new (TensorHook, 1);
  data->hook = hook;
  data->user_data = user_data;
  data->destroy = destroy;
  entry.user_data = data;
  entry.id = __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED);
  hooks = hooks_of (impl, &entry.index);
  if (*hooks == NULL)
    *hooks = g_array_new (FALSE, FALSE, sizeof (GTorchHook));
  g_array_append_val (*hooks, entry);
  return entry.id;
}

/**
 * gtorch_tensor_remove_hook:
 * @self: a tensor
 * @id: what [method@Tensor.register_hook] gave
 *
 * Removes a hook.
 *
 * Returns: %TRUE if there was such a hook
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_remove_hook (GTorchTensor *self, guint64 id)
{
  GTorchImpl *impl;
  GArray **hooks;
  guint index, i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (impl->autograd == NULL)
    return FALSE;
  hooks = hooks_of (impl, &index);
  for (i = 0; *hooks != NULL && i < (*hooks)->len; i++)
    if (g_array_index (*hooks, GTorchHook, i).id == id)
      {
        GTorchHook hook = g_array_index (*hooks, GTorchHook, i);

        g_array_remove_index (*hooks, i);
        hook.destroy (hook.user_data);
        return TRUE;
      }
  return FALSE;
}

/**
 * gtorch_tensor_backward:
 * @self: a tensor that requires grad
 * @gradient: (nullable): the gradient with respect to @self, of its shape; %NULL for a single
 *   element: one
 * @retain_graph: keep what operations have saved, so that one can go backward again
 * @create_graph: record the backward pass itself, for gradients of gradients
 * @error: return location for an error
 *
 * Computes the gradients of @self with respect to the leaves it was computed from and adds them to
 * their grad.
 *
 * ```c
 * gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
 * grad = gtorch_tensor_get_grad (weight);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_AUTOGRAD if there is no way back: @self does not
 *   require grad,
 *   a saved value was changed in place, or what was saved has been freed
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_backward (GTorchTensor *self, GTorchTensor *gradient, gboolean retain_graph,
                        gboolean create_graph, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (gradient == NULL || GTORCH_IS_TENSOR (gradient), FALSE);
  return gtorch_autograd_backward (&self, 1, &gradient, gradient != NULL ? 1 : 0, retain_graph,
                                   create_graph, error);
}

static gboolean
check_counts (const gchar *op, gsize n_tensors, gsize n_grads, GError **error)
{
  if (n_grads == 0 || n_grads == n_tensors)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %" G_GSIZE_FORMAT " gradients were given for %" G_GSIZE_FORMAT " tensors"),
               op, n_grads, n_tensors);
  return FALSE;
}

/**
 * gtorch_autograd_backward:
 * @tensors: (array length=n_tensors): tensors that require grad
 * @n_tensors: the length of @tensors
 * @grad_tensors: (array length=n_grad_tensors) (nullable): their gradients, or none if all are
 *   single elements
 * @n_grad_tensors: the length of @grad_tensors
 * @retain_graph: keep what operations have saved
 * @create_graph: record the backward pass itself
 * @error: return location for an error
 *
 * Goes backward from several tensors at once.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_autograd_backward (GTorchTensor **tensors, gsize n_tensors, GTorchTensor **grad_tensors,
                          gsize n_grad_tensors, gboolean retain_graph, gboolean create_graph,
                          GError **error)
{
  g_autofree GTorchImpl **roots = NULL;
  g_autofree GTorchImpl **grads = NULL;

  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  if (!check_counts ("backward", n_tensors, n_grad_tensors, error))
    return FALSE;
  roots = gtorch_tensors_unwrap (tensors, n_tensors);
  grads = n_grad_tensors > 0 ? gtorch_tensors_unwrap (grad_tensors, n_grad_tensors) : NULL;
  return gtorch_engine_run (roots, grads, n_tensors, NULL, 0, NULL, retain_graph, create_graph,
                            error);
}

/**
 * gtorch_autograd_grad:
 * @outputs: (array length=n_outputs): tensors that require grad
 * @n_outputs: the length of @outputs
 * @inputs: (array length=n_inputs): what they were computed from, leaves or not
 * @n_inputs: the length of @inputs
 * @grad_outputs: (array length=n_grad_outputs) (nullable): gradients with respect to @outputs, or
 *   none if all
 *   are single elements
 * @n_grad_outputs: the length of @grad_outputs
 * @retain_graph: keep what operations have saved
 * @create_graph: record the backward pass itself, for gradients of gradients
 * @allow_unused: give zeros for an input that the outputs do not depend on, instead of an error
 * @error: return location for an error
 *
 * Computes the gradients of @outputs with respect to @inputs and gives them back; no grad is
 * changed.
 *
 * Returns: (transfer container) (element-type GTorchTensor): one gradient for each input, or %NULL
 *   with @error
 *   set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_grad (GTorchTensor **outputs, gsize n_outputs, GTorchTensor **inputs,
                      gsize n_inputs, GTorchTensor **grad_outputs, gsize n_grad_outputs,
                      gboolean retain_graph, gboolean create_graph, gboolean allow_unused,
                      GError **error)
{
  g_autofree GTorchImpl **roots = NULL;
  g_autofree GTorchImpl **grads = NULL;
  g_autofree GTorchImpl **wanted = NULL;
  g_autoptr (GPtrArray) results = NULL;
  gsize i;

  g_return_val_if_fail (outputs != NULL || n_outputs == 0, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  if (!check_counts ("grad", n_outputs, n_grad_outputs, error))
    return NULL;
  roots = gtorch_tensors_unwrap (outputs, n_outputs);
  wanted = gtorch_tensors_unwrap (inputs, n_inputs);
  grads = n_grad_outputs > 0 ? gtorch_tensors_unwrap (grad_outputs, n_grad_outputs) : NULL;
  results = g_ptr_array_new ();
  g_ptr_array_set_size (results, n_inputs);
  if (n_inputs > 0
      && !gtorch_engine_run (roots, grads, n_outputs, wanted, n_inputs,
                             (GTorchImpl **) results->pdata, retain_graph, create_graph, error))
    goto failed;
  for (i = 0; i < n_inputs; i++)
    {
      if (results->pdata[i] != NULL)
        continue;
      if (!allow_unused)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("grad: input %" G_GSIZE_FORMAT
                          ", of shape %s, was not used to compute the outputs: pass "
                          "allow_unused for zeros"),
                       i, gtorch_impl_shape_str (wanted[i]));
          goto failed;
        }
      results->pdata[i] = gtorch_op_zeros_like (wanted[i], GTORCH_DTYPE_NONE, error);
      if (results->pdata[i] == NULL)
        goto failed;
    }
  return gtorch_tensors_wrap (g_steal_pointer (&results));

failed:
  gtorch_impl_clear ((GTorchImpl **) results->pdata, n_inputs);
  return NULL;
}
