/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a tensor shows of autograd. */

#include "config.h"

#include "autograd/gtorch-tensor-autograd.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-part-private.h"
#include "base/gtorch-callback-private.h"
#include "base/gtorch-field-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "base/gtorch-references-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "tensor/gtorch-uninitialized-private.h"

typedef GTorchTensor Self;

static const GTorchField fields[] = {
  /**
   * GTorchTensor:requires-grad: (getter get_requires_grad)
   *
   * Whether gradients flow to the tensor. An invalid value causes a warning;
   * [method@Tensor.set_requires_grad] gives an error.
   *
   * Since: 0.1
   */
  { "requires-grad",
    GTORCH_PROPERTY_BOOL (gtorch_tensor_get_requires_grad, gtorch_tensor_set_requires_grad) },
  /**
   * GTorchTensor:grad: (getter get_grad)
   *
   * The accumulated gradient. An invalid value causes a warning; [method@Tensor.set_grad] gives an error.
   *
   * A backward pass notifies when it has added to the gradient, also where that stays the same object, and
   * so does what fills it with zeros. Handlers run where hooks do: in the thread of
   * [method@Tensor.backward], in the main context of the caller of [method@Tensor.backward_async].
   *
   * Since: 0.1
   */
  { "grad",
    GTORCH_PROPERTY_OBJECT (GTorchTensor, gtorch_tensor_get_type, gtorch_tensor_get_grad,
                            gtorch_tensor_set_grad),
    .is_full = TRUE },
  /**
   * GTorchTensor:is-leaf: (getter is_leaf)
   *
   * Whether the tensor is a leaf: no recorded operation has computed it.
   *
   * Since: 0.1
   */
  { "is-leaf", GTORCH_PROPERTY_BOOL (gtorch_tensor_is_leaf, NULL), .value = TRUE },
};

static guint notify_signal;
static GQuark grad_detail;

void
gtorch_tensor_install_autograd (GObjectClass *klass)
{
  GTORCH_FIELDS (klass, fields);
  notify_signal = g_signal_lookup ("notify", G_TYPE_OBJECT);
  grad_detail = g_quark_from_static_string ("grad");
}

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
  GTORCH_HOLD_TENSOR (self);

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_impl_requires_grad (gtorch_tensor_unwrap (self));
}

/* Fails if the memory was released. A parameter of a lazy layer has none yet, and may be set up all the
 * same. */
static gboolean
check_kept (const GTorchImpl *impl, const gchar *op, GError **error)
{
  return gtorch_impl_is_uninitialized (impl) || gtorch_impl_check_memory (impl, op, error);
}

gboolean
gtorch_impl_check_requires_grad (GTorchImpl *impl, gboolean requires_grad, GError **error)
{
  if (requires_grad && gtorch_dtype_kind (impl->dtype) < GTORCH_KIND_FLOAT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("requires_grad: dtype %s has no gradients, only floating-point and complex "
                      "ones do"),
                   gtorch_dtype_get_name (impl->dtype));
      return FALSE;
    }
  if (requires_grad && G_UNLIKELY (impl->inference) && !gtorch_is_inference ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("requires_grad: the tensor of shape %s was made in inference mode and cannot "
                      "require grad outside of it: clone it before"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (!gtorch_impl_is_leaf (impl))
    {
      if (requires_grad)
        return TRUE;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("requires_grad: only a leaf can be set not to require grad, the tensor "
                      "of shape %s was computed by %s: detach it"),
                   gtorch_impl_shape_str (impl), impl->autograd->grad_fn->name);
      return FALSE;
    }
  return TRUE;
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
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (!check_kept (impl, "requires_grad", error)
      || !gtorch_impl_check_requires_grad (impl, requires_grad, error))
    return FALSE;
  if (!gtorch_impl_is_leaf (impl))
    return TRUE;
  if (gtorch_impl_requires_grad (impl) == !!requires_grad)
    return TRUE;
  gtorch_autograd_ensure (impl)->requires_grad = requires_grad != FALSE;
  g_object_notify (G_OBJECT (self), "requires-grad");
  return TRUE;
}

/**
 * gtorch_tensor_requires_grad_inplace:
 * @self: a leaf
 * @requires_grad: whether gradients are wanted
 * @error: return location for an error
 *
 * Does what [method@Tensor.set_requires_grad] does, and gives the tensor, for use within an expression.
 *
 * Returns: (transfer none): @self, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_requires_grad_inplace (GTorchTensor *self, gboolean requires_grad, GError **error)
{
  GTORCH_HOLD_TENSOR (self);

  return gtorch_tensor_set_requires_grad (self, requires_grad, error) ? self : NULL;
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
  GTORCH_HOLD_TENSOR (self);

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
  GTORCH_HOLD_TENSOR (self);

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
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl, *grad;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (impl->autograd == NULL)
    return NULL;
  g_mutex_lock (&impl->autograd->lock);
  grad = impl->autograd->grad != NULL ? gtorch_impl_ref (impl->autograd->grad) : NULL;
  g_mutex_unlock (&impl->autograd->lock);
  return gtorch_tensor_wrap (grad);
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
  GTORCH_HOLD_TENSOR (self);
  GTORCH_HOLD_TENSOR (grad);
  GTorchImpl *impl, *former, *value = NULL;
  GTorchAutograd *autograd;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (grad == NULL || GTORCH_IS_TENSOR (grad), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (grad != NULL)
    {
      value = gtorch_tensor_unwrap (grad);
      if (impl->storage == NULL || value->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                       _ ("grad: a tensor of shape %s was released"),
                       gtorch_impl_shape_str (impl->storage == NULL ? impl : value));
          return FALSE;
        }
      if (impl == value)
        {
          g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                               _ ("grad: a tensor cannot be its own gradient"));
          return FALSE;
        }
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
  if (value == NULL && impl->autograd == NULL)
    return TRUE;
  autograd = gtorch_autograd_ensure (impl);
  g_mutex_lock (&autograd->lock);
  former = autograd->grad;
  autograd->grad = value;
  g_clear_object (&autograd->grad_stream);
  g_mutex_unlock (&autograd->lock);
  if (former != NULL)
    gtorch_impl_unref (former);
  if (former != value)
    g_object_notify (G_OBJECT (self), "grad");
  return TRUE;
}

static void
notify_grad (gpointer tensor)
{
  g_object_notify (tensor, "grad");
}

void
gtorch_grad_notify (GTorchImpl *impl)
{
  g_autoptr (GTorchTensor) tensor = NULL;

  if (__atomic_load_n (&impl->object, __ATOMIC_RELAXED) == NULL)
    return;
  tensor = gtorch_tensor_wrap (gtorch_impl_ref (impl));
  if (G_UNLIKELY (g_signal_has_handler_pending (tensor, notify_signal, grad_detail, FALSE)))
    gtorch_engine_call_user (notify_grad, tensor);
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
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (!check_kept (impl, "retain_grad", error))
    return FALSE;
  if (!gtorch_impl_requires_grad (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("retain_grad: the tensor of shape %s does not require grad"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (impl->autograd->grad_fn == NULL || impl->autograd->retains_grad)
    return TRUE;
  gtorch_node_set_retained (impl->autograd->grad_fn, impl->autograd->index, impl);
  impl->autograd->retains_grad = TRUE;
  return TRUE;
}

/**
 * gtorch_tensor_get_retains_grad:
 * @self: a tensor
 *
 * Tells whether @self is no leaf and was asked to keep its gradient with [method@Tensor.retain_grad].
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_get_retains_grad (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_tensor_unwrap (self)->autograd != NULL
         && self->impl->autograd->retains_grad == TRUE;
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
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (impl->storage == NULL && !gtorch_impl_is_uninitialized (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("detach: the tensor of shape %s was released"), gtorch_impl_shape_str (impl));
      return NULL;
    }
  return gtorch_tensor_wrap (gtorch_impl_alias (impl));
}

/* Returns FALSE with an error if impl is no leaf, or would not fit its gradient with the elements of data. */
static gboolean
check_data (const GTorchImpl *impl, const GTorchImpl *data, GError **error)
{
  const GTorchAutograd *autograd = impl->autograd;
  const GTorchImpl *grad = autograd != NULL ? autograd->grad : NULL;
  const gchar *shape = gtorch_impl_shape_str (impl);

  if (autograd == NULL)
    return TRUE;
  if (autograd->base != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                 _ ("set_data: a view of shape %s shares the elements of its base"), shape);
  else if (autograd->grad_fn != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                 _ ("set_data: the tensor of shape %s is the result of an operation: detach it "
                    "first"),
                 shape);
  else if (autograd->requires_grad && !gtorch_dtype_is_floating_point (data->dtype)
           && !gtorch_dtype_is_complex (data->dtype))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("set_data: the tensor of shape %s requires grad, so its elements cannot be %s"),
                 shape, gtorch_dtype_get_name (data->dtype));
  else if (grad != NULL
           && (!gtorch_impl_same_shape (grad, data) || grad->dtype != data->dtype
               || grad->device != data->device))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                 _ ("set_data: the gradient of the tensor of shape %s does not fit the new "
                    "elements: drop it first"),
                 shape);
  else
    return TRUE;
  return FALSE;
}

/**
 * gtorch_tensor_set_data:
 * @self: a leaf: a tensor that is neither a view nor the result of a recorded operation
 * @data: a tensor of any shape, dtype and device
 * @error: return location for an error
 *
 * Lets @self refer to the elements of @data, which both share from then on, without recording it. @self stays
 * the same object with the same hooks, and still requires grad if it did. Optimizers and modules that
 * refer to @self see the new elements. What was computed from @self before keeps the former ones.
 *
 * ```c
 * g_autoptr (GTorchTensor) half = gtorch_to_dtype (weight, GTORCH_FLOAT16, &error);
 * gtorch_tensor_set_data (weight, half, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_AUTOGRAD if @self is no leaf or its gradient does not fit
 *   @data, %GTORCH_ERROR_DTYPE if @self requires grad and @data cannot, %GTORCH_ERROR_RELEASED if either
 *   was released, %GTORCH_ERROR_INVALID while another call uses @self
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_set_data (GTorchTensor *self, GTorchTensor *data, GError **error)
{
  GTORCH_HOLD_TENSOR (data);
  GTorchImpl *impl, *from;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (data), FALSE);
  impl = gtorch_tensor_unwrap (self);
  from = gtorch_tensor_unwrap (data);
  if (impl == from)
    return TRUE;
  if (gtorch_impl_is_released (impl) || from->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("set_data: a tensor of shape %s was released"),
                   gtorch_impl_shape_str (from->storage == NULL ? from : impl));
      return FALSE;
    }
  if (!check_data (impl, from, error))
    return FALSE;
  if (!gtorch_impls_set_data (&impl, &from, 1))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("set_data: another call uses the tensor of shape %s"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_tensor_detach_inplace:
 * @self: a tensor that is not a view
 * @error: return location for an error
 *
 * Makes @self forget how it was computed: it becomes a leaf that does not require grad. What was computed
 * from it before keeps its way back.
 *
 * Returns: (transfer none): @self, or %NULL with %GTORCH_ERROR_AUTOGRAD for a view, whose history is its
 *   base's
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_detach_inplace (GTorchTensor *self, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchAutograd *autograd;
  GTorchNode *node;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  autograd = gtorch_tensor_unwrap (self)->autograd;
  if (autograd == NULL)
    return self;
  if (autograd->base != NULL && gtorch_impl_requires_grad (self->impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("detach_inplace: a view of shape %s has the history of its base: use detach"),
                   gtorch_impl_shape_str (self->impl));
      return NULL;
    }
  if (autograd->retains_grad && autograd->grad_fn != NULL)
    gtorch_node_set_retained (autograd->grad_fn, autograd->index, NULL);
  if (!gtorch_leaf_is_part (self->impl))
    autograd->retains_grad = FALSE;
  autograd->requires_grad = FALSE;
  gtorch_references_lock ();
  node = g_steal_pointer (&autograd->grad_fn);
  gtorch_references_unlock ();
  if (node != NULL)
    gtorch_node_unref (node);
  return self;
}

/* --- hooks --- */

typedef struct
{
  GTorchTensorHook hook;
  GTorchAccumulatedHook accumulated;
  gpointer user_data;
  GDestroyNotify destroy;
} TensorHook;

typedef struct
{
  TensorHook *hook;
  GTorchImpl *impl;
  GTorchImpl *changed;
  gboolean success;
  GError *error;
} HookCall;

static void
call_tensor_hook (gpointer data)
{
  HookCall *call = data;
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (call->impl));
  g_autoptr (GTorchTensor) changed = NULL;

  if (call->hook->accumulated != NULL)
    {
      call->success = call->hook->accumulated (tensor, call->hook->user_data, &call->error);
      return;
    }
  changed = call->hook->hook (tensor, call->hook->user_data, &call->error);
  call->success = call->error == NULL
                  && (changed == NULL
                      || gtorch_callback_check ("register_hook", N_ ("the function"), &changed,
                                                GTORCH_TYPE_TENSOR, &call->error));
  if (call->success && changed != NULL && changed != tensor)
    call->changed = gtorch_impl_ref (gtorch_tensor_unwrap (changed));
}

static gboolean
run_tensor_hook (GTorchImpl *grad, gpointer user_data, GTorchImpl **changed, GError **error)
{
  HookCall call = { user_data, grad, NULL, FALSE, NULL };

  gtorch_engine_call_user (call_tensor_hook, &call);
  *changed = call.changed;
  return gtorch_callback_ended ("register_hook", call.success, call.error, error);
}

static gboolean
run_accumulated_hook (GTorchImpl *leaf, gpointer user_data, GError **error)
{
  HookCall call = { user_data, leaf, NULL, FALSE, NULL };

  gtorch_engine_call_user (call_tensor_hook, &call);
  return gtorch_callback_ended ("register_post_accumulate_grad_hook", call.success, call.error,
                                error);
}

static void
tensor_hook_free (gpointer data)
{
  TensorHook *self = data;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self);
}

void
gtorch_tensor_hook_add_references (gpointer data, GTorchReferences *references)
{
  TensorHook *self = data;

  gtorch_references_add_data (references, self->user_data, self->destroy);
}

static TensorHook *
tensor_hook_new (GTorchTensorHook hook, GTorchAccumulatedHook accumulated, gpointer user_data,
                 GDestroyNotify destroy)
{
  TensorHook *self = g_new (TensorHook, 1);

  self->hook = hook;
  self->accumulated = accumulated;
  self->user_data = user_data;
  self->destroy = destroy;
  return self;
}

/**
 * gtorch_tensor_register_hook:
 * @self: a tensor that requires grad
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with the gradient of @self when the
 *   backward pass has computed it
 * @user_data: data for @hook
 * @destroy: frees @user_data
 * @error: return location for an error
 *
 * Adds a hook to the backward pass.
 *
 * Hooks run in the order in which they were added, in the thread that runs the pass; those of
 * [method@Tensor.backward_async] run in the main context of its caller. A hook must not write to the
 * gradient; it may return another one, which takes its place. If it sets its error, the pass ends with that.
 * The hook belongs to what @self is now: once @self was changed in place, it sees the gradient of what @self
 * was before.
 *
 * Returns: an id for [method@Tensor.remove_hook], or 0 with %GTORCH_ERROR_AUTOGRAD if no gradient flows to
 *   @self
 *
 * Since: 0.1
 */
guint64
gtorch_tensor_register_hook (GTorchTensor *self, GTorchTensorHook hook, gpointer user_data,
                             GDestroyNotify destroy, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchAutograd *autograd;
  GTorchImpl *impl;

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
  autograd = impl->autograd;
  return gtorch_hooks_add (autograd->grad_fn != NULL
                               ? &gtorch_node_ensure_extra (autograd->grad_fn)->hooks
                               : &autograd->hooks,
                           autograd->grad_fn != NULL ? autograd->index : 0, run_tensor_hook, NULL,
                           tensor_hook_new (hook, NULL, user_data, destroy), tensor_hook_free);
}

/**
 * gtorch_tensor_register_post_accumulate_grad_hook:
 * @self: a leaf that requires grad
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with @self after a gradient was
 *   added to its grad
 * @user_data: data for @hook
 * @destroy: frees @user_data
 * @error: return location for an error
 *
 * Adds a hook that runs when the grad of a leaf is complete in this pass, for example to step an optimizer
 * and drop the grad while the pass still goes on. If it fails, so does the pass; the grad is complete then.
 *
 * Returns: an id for [method@Tensor.remove_hook], or 0 with %GTORCH_ERROR_AUTOGRAD if @self is not a leaf
 *   that requires grad
 *
 * Since: 0.1
 */
guint64
gtorch_tensor_register_post_accumulate_grad_hook (GTorchTensor *self, GTorchAccumulatedHook hook,
                                                  gpointer user_data, GDestroyNotify destroy,
                                                  GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  impl = gtorch_tensor_unwrap (self);
  if (!gtorch_impl_requires_grad (impl) || impl->autograd->grad_fn != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("register_post_accumulate_grad_hook: the tensor of shape %s is not a leaf "
                      "that requires grad"),
                   gtorch_impl_shape_str (impl));
      if (destroy != NULL)
        destroy (user_data);
      return 0;
    }
  return gtorch_hooks_add (&impl->autograd->hooks, 0, NULL, run_accumulated_hook,
                           tensor_hook_new (NULL, hook, user_data, destroy), tensor_hook_free);
}

/**
 * gtorch_register_tensor_hook:
 * @tensor: a tensor that requires grad
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with the gradient of @tensor when
 *   the backward pass has computed it
 * @user_data: data for @hook
 * @destroy: frees @user_data
 * @error: return location for an error
 *
 * Does what [method@Tensor.register_hook] does, for language bindings.
 *
 * A hook belongs to what was computed and lives as long as that, which may be longer than the object @tensor.
 * A binding that frees the callbacks of an object's methods with the object, as gjs does, calls this instead.
 *
 * Returns: an id for [method@Tensor.remove_hook], or 0 with %GTORCH_ERROR_AUTOGRAD if no gradient flows to
 *   @tensor
 *
 * Since: 0.1
 */
guint64
gtorch_register_tensor_hook (GTorchTensor *tensor, GTorchTensorHook hook, gpointer user_data,
                             GDestroyNotify destroy, GError **error)
{
  return gtorch_tensor_register_hook (tensor, hook, user_data, destroy, error);
}

/**
 * gtorch_register_tensor_post_accumulate_grad_hook:
 * @tensor: a leaf that requires grad
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with @tensor after a gradient was
 *   added to its grad
 * @user_data: data for @hook
 * @destroy: frees @user_data
 * @error: return location for an error
 *
 * Does what [method@Tensor.register_post_accumulate_grad_hook] does, for language bindings: see
 * [func@register_tensor_hook].
 *
 * Returns: an id for [method@Tensor.remove_hook], or 0 with %GTORCH_ERROR_AUTOGRAD if @tensor is not a leaf
 *   that requires grad
 *
 * Since: 0.1
 */
guint64
gtorch_register_tensor_post_accumulate_grad_hook (GTorchTensor *tensor, GTorchAccumulatedHook hook,
                                                  gpointer user_data, GDestroyNotify destroy,
                                                  GError **error)
{
  return gtorch_tensor_register_post_accumulate_grad_hook (tensor, hook, user_data, destroy, error);
}

/**
 * gtorch_tensor_remove_hook:
 * @self: a tensor
 * @id: what [method@Tensor.register_hook] or [method@Tensor.register_post_accumulate_grad_hook] gave
 *
 * Removes a hook. One that is running is freed when it returns.
 *
 * Returns: %TRUE if there was such a hook
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_remove_hook (GTorchTensor *self, guint64 id)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_hooks_remove (id);
}
