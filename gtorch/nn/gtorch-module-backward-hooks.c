/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The hooks of a module around its backward pass. The inputs and the outputs of a call go through one
 * function each that changes nothing: the backward of that of the outputs comes first and has their
 * gradients, the backward of that of the inputs comes last and calls the hooks with both. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-module-hooks.h"
#include "nn/gtorch-module-private.h"

/* What both functions of a call share. */
typedef struct
{
  gint ref_count;
  GTorchModule *module;
  GPtrArray *hooks; /* of GTorchModuleHook */
  GMutex lock;      /* protects grad_outputs */
  GPtrArray *grad_outputs;
  guint n_inputs;
  gboolean has_inputs; /* some input requires grad */
} Call;

static void
call_unref (Call *call)
{
  if (!g_atomic_int_dec_and_test (&call->ref_count))
    return;
  g_object_unref (call->module);
  g_ptr_array_unref (call->hooks);
  g_clear_pointer (&call->grad_outputs, g_ptr_array_unref);
  g_mutex_clear (&call->lock);
  g_free (call);
}

typedef struct
{
  GTorchFunction parent_instance;
  Call *call;
  gboolean is_of_inputs;
} GTorchBackwardHooks;

typedef GTorchFunctionClass GTorchBackwardHooksClass;

static GType gtorch_backward_hooks_get_type (void);

G_DEFINE_TYPE (GTorchBackwardHooks, gtorch_backward_hooks, GTORCH_TYPE_FUNCTION)

static void
unref_tensor (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

static GPtrArray *
list_of (GTorchTensor **tensors, gsize n)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (unref_tensor);
  gsize i;

  for (i = 0; i < n; i++)
    g_ptr_array_add (list, tensors[i] != NULL ? g_object_ref (tensors[i]) : NULL);
  return list;
}

static GPtrArray *
gtorch_backward_hooks_forward (GTorchFunction *function, GTorchFunctionContext *context,
                               GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchBackwardHooks *self = (GTorchBackwardHooks *) function;
  gboolean is_needed = FALSE;
  gsize i;

  for (i = 0; i < n_inputs; i++)
    if (gtorch_function_context_get_needs_input_grad (context, i))
      is_needed = TRUE;
    else if (!gtorch_function_context_mark_non_differentiable (context, &inputs[i], 1, error))
      return NULL;
  if (self->is_of_inputs)
    {
      self->call->n_inputs = n_inputs;
      self->call->has_inputs = is_needed;
    }
  return list_of (inputs, n_inputs);
}

/* Calls the hooks of a kind with gradients, which are taken; returns those that there are in the end. */
static GPtrArray *
call_hooks (Call *call, GTorchModuleHookKind kind, GPtrArray *grads, GPtrArray *grad_outputs,
            const gchar *what, GError **error)
{
  guint i;

  for (i = 0; grads != NULL && i < call->hooks->len; i++)
    {
      GTorchModuleHook *hook = call->hooks->pdata[i];
      GTorchTensor **tensors = (GTorchTensor **) grads->pdata;
      GError *local = NULL;
      GPtrArray *result;

      if (hook->kind != kind)
        continue;
      if (kind == GTORCH_MODULE_HOOK_BACKWARD_BEFORE)
        result = ((GTorchBackwardPreHook) hook->func) (call->module, tensors, grads->len,
                                                       hook->user_data, &local);
      else
        result = ((GTorchBackwardHook) hook->func) (call->module, tensors, grads->len,
                                                    (GTorchTensor **) grad_outputs->pdata,
                                                    grad_outputs->len, hook->user_data, &local);
      if (result != NULL)
        grads = gtorch_hook_take_gradients (gtorch_module_type_name (call->module), result, grads,
                                            what, local == NULL ? &local : NULL);
      if (local != NULL)
        {
          g_clear_pointer (&grads, g_ptr_array_unref);
          g_propagate_error (error, local);
        }
    }
  return grads;
}

static GPtrArray *
backward_of_outputs (Call *call, GTorchTensor **grad_outputs, gsize n, GError **error)
{
  g_autoptr (GPtrArray) none = NULL;
  GPtrArray *grads = call_hooks (call, GTORCH_MODULE_HOOK_BACKWARD_BEFORE,
                                 list_of (grad_outputs, n), NULL, N_ ("outputs"), error);

  if (grads == NULL)
    return NULL;
  if (call->has_inputs)
    {
      g_mutex_lock (&call->lock);
      g_clear_pointer (&call->grad_outputs, g_ptr_array_unref);
      call->grad_outputs = list_of ((GTorchTensor **) grads->pdata, grads->len);
      g_mutex_unlock (&call->lock);
      return grads;
    }
  /* nothing will come at the inputs */
  none = g_ptr_array_new_with_free_func (unref_tensor);
  g_ptr_array_set_size (none, call->n_inputs);
  none = call_hooks (call, GTORCH_MODULE_HOOK_BACKWARD_AFTER, g_steal_pointer (&none), grads,
                     N_ ("inputs"), error);
  if (none == NULL)
    g_clear_pointer (&grads, g_ptr_array_unref);
  return grads;
}

static GPtrArray *
gtorch_backward_hooks_backward (GTorchFunction *function, GTorchFunctionContext *context,
                                GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  GTorchBackwardHooks *self = (GTorchBackwardHooks *) function;
  g_autoptr (GPtrArray) of_outputs = NULL;
  GPtrArray *grads;
  gsize i;

  if (!self->is_of_inputs)
    return backward_of_outputs (self->call, grad_outputs, n_grad_outputs, error);
  grads = list_of (grad_outputs, n_grad_outputs);
  for (i = 0; i < n_grad_outputs; i++)
    if (!gtorch_function_context_get_needs_input_grad (context, i))
      g_clear_object (&grads->pdata[i]);
  g_mutex_lock (&self->call->lock);
  of_outputs = g_steal_pointer (&self->call->grad_outputs);
  g_mutex_unlock (&self->call->lock);
  if (of_outputs == NULL) /* no gradient has come through the outputs */
    of_outputs = g_ptr_array_new_with_free_func (unref_tensor);
  return call_hooks (self->call, GTORCH_MODULE_HOOK_BACKWARD_AFTER, grads, of_outputs,
                     N_ ("inputs"), error);
}

static void
gtorch_backward_hooks_finalize (GObject *object)
{
  call_unref (((GTorchBackwardHooks *) object)->call);
  G_OBJECT_CLASS (gtorch_backward_hooks_parent_class)->finalize (object);
}

static void
gtorch_backward_hooks_class_init (GTorchBackwardHooksClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_backward_hooks_finalize;
  klass->forward = gtorch_backward_hooks_forward;
  klass->backward = gtorch_backward_hooks_backward;
}

static void
gtorch_backward_hooks_init (GTorchBackwardHooks *self)
{
}

static GTorchFunction *
function_new (Call *call, gboolean is_of_inputs)
{
  GTorchBackwardHooks *self = g_object_new (gtorch_backward_hooks_get_type (), NULL);

  g_atomic_int_inc (&call->ref_count);
  self->call = call;
  self->is_of_inputs = is_of_inputs;
  return GTORCH_FUNCTION (self);
}

GTorchFunction *
gtorch_module_make_backward_hooks (GTorchModule *self, GPtrArray *hooks,
                                   GTorchFunction **of_outputs)
{
  g_autoptr (GPtrArray) own = g_ptr_array_new_with_free_func (gtorch_module_hook_unref);
  GTorchFunction *of_inputs;
  Call *call;
  guint i;

  for (i = 0; i < hooks->len; i++)
    if (((GTorchModuleHook *) hooks->pdata[i])->kind >= GTORCH_MODULE_HOOK_BACKWARD_BEFORE)
      g_ptr_array_add (own, gtorch_module_hook_ref (hooks->pdata[i]));
  if (own->len == 0)
    return NULL;
  call = g_new0 (Call, 1);
  call->ref_count = 1;
  call->module = g_object_ref (self);
  call->hooks = g_steal_pointer (&own);
  g_mutex_init (&call->lock);
  of_inputs = function_new (call, TRUE);
  *of_outputs = function_new (call, FALSE);
  call_unref (call);
  return of_inputs;
}

gboolean
gtorch_module_apply_hooks (GTorchFunction *function, GPtrArray *tensors, GError **error)
{
  GTorchBackwardHooks *self = (GTorchBackwardHooks *) function;
  g_autoptr (GPtrArray) results = NULL;
  gboolean is_needed = FALSE;
  guint i;

  if (self->is_of_inputs)
    self->call->n_inputs = tensors->len;
  for (i = 0; i < tensors->len; i++)
    is_needed |= gtorch_tensor_get_requires_grad (tensors->pdata[i]);
  if (!is_needed || !gtorch_is_grad_enabled ())
    return TRUE;
  results = gtorch_function_apply (function, (GTorchTensor **) tensors->pdata, tensors->len, error);
  for (i = 0; results != NULL && i < tensors->len; i++)
    {
      g_object_unref (tensors->pdata[i]);
      tensors->pdata[i] = g_object_ref (results->pdata[i]);
    }
  return results != NULL;
}

/**
 * gtorch_module_new_backward_hooks:
 * @self: a module
 * @of_outputs: (out) (optional) (transfer full) (nullable): return location for the function of the outputs
 *
 * Makes the functions by which a call of @self that the library does not make calls the hooks around the
 * backward pass: for classes whose functions take what is no tensor.
 *
 * The inputs go through the function that is returned, and the outputs through @of_outputs, by
 * [method@Function.apply], if one of them requires grad.
 *
 * Returns: (transfer full) (nullable): the function of the inputs, or %NULL if there are no such hooks
 *
 * Since: 0.1
 */
GTorchFunction *
gtorch_module_new_backward_hooks (GTorchModule *self, GTorchFunction **of_outputs)
{
  g_autoptr (GPtrArray) hooks = NULL;
  g_autoptr (GTorchFunction) outer = NULL;
  GTorchFunction *of_inputs;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  hooks = gtorch_module_dup_hooks (self);
  of_inputs = hooks != NULL ? gtorch_module_make_backward_hooks (self, hooks, &outer) : NULL;
  if (of_outputs != NULL)
    *of_outputs = g_steal_pointer (&outer);
  return of_inputs;
}

/**
 * gtorch_module_register_full_backward_pre_hook:
 * @self: a module
 * @prepend: call it before the hooks that are there
 * @hook: (scope notified) (closure user_data) (destroy destroy): called before each backward pass of the
 *   module
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Calls a function with the gradients of the outputs of the module, before these go on. If it sets its error,
 * the backward pass fails with that.
 *
 * The outputs of a call must not be changed in place. The hook belongs to calls that begin after it was
 * registered.
 *
 * Returns: an id for [method@Module.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_full_backward_pre_hook (GTorchModule *self, gboolean prepend,
                                               GTorchBackwardPreHook hook, gpointer user_data,
                                               GDestroyNotify destroy)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  return gtorch_module_add_hook (self, GTORCH_MODULE_HOOK_BACKWARD_BEFORE, prepend, FALSE,
                                 G_CALLBACK (hook), user_data, destroy);
}

/**
 * gtorch_module_register_full_backward_hook:
 * @self: a module
 * @prepend: call it before the hooks that are there
 * @hook: (scope notified) (closure user_data) (destroy destroy): called after each backward pass of the
 *   module
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Calls a function with the gradients of the inputs and of the outputs of the module, as soon as those of the
 * inputs are known. If it sets its error, the backward pass fails with that.
 *
 * If no input requires grad, it is called with the gradients of the outputs, and cannot replace any. Neither
 * inputs nor outputs of a call may be changed in place. The hook belongs to calls that begin after it was
 * registered.
 *
 * Returns: an id for [method@Module.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_full_backward_hook (GTorchModule *self, gboolean prepend,
                                           GTorchBackwardHook hook, gpointer user_data,
                                           GDestroyNotify destroy)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  return gtorch_module_add_hook (self, GTORCH_MODULE_HOOK_BACKWARD_AFTER, prepend, FALSE,
                                 G_CALLBACK (hook), user_data, destroy);
}
