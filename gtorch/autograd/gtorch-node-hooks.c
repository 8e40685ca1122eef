/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Hooks of nodes: functions of the program that see all gradients that come to a node, or that it has
 * computed, and may replace them. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-grad-node.h"
#include "base/gtorch-callback-private.h"
#include "base/gtorch-references-private.h"
#include "tensor/gtorch-tensor-private.h"

static void
unref_tensor (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

GPtrArray *
gtorch_hook_take_gradients (const gchar *name, GPtrArray *given, GPtrArray *grads,
                            const gchar *what, GError **error)
{
  g_autoptr (GPtrArray) before = grads;
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (unref_tensor);
  gpointer *elements;
  gsize i, j = 0, n, n_there = 0;
  gboolean is_short;

  /* arrays from other languages may have no function that frees their elements */
  elements = g_ptr_array_steal (given, &n);
  g_ptr_array_unref (given);
  for (i = 0; i < before->len; i++)
    n_there += before->pdata[i] != NULL;
  is_short = n != before->len && n == n_there; /* those that there are */
  for (i = 0; is_short && i < before->len; i++)
    g_ptr_array_add (list, before->pdata[i] != NULL ? elements[j++] : NULL);
  for (i = 0; !is_short && i < n; i++)
    g_ptr_array_add (list, elements[i]);
  g_free (elements);
  if (list->len != before->len)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: a hook gave %zu gradients of %u %s"), name, n, before->len, _ (what));
      return NULL;
    }
  for (i = 0; i < list->len; i++)
    {
      GTorchImpl *one = NULL, *other = NULL;

      if (list->pdata[i] == NULL)
        continue;
      if (GTORCH_IS_TENSOR (list->pdata[i]))
        one = gtorch_tensor_unwrap (list->pdata[i]);
      if (before->pdata[i] != NULL)
        other = gtorch_tensor_unwrap (before->pdata[i]);
      if (one != NULL && one->storage != NULL && other != NULL
          && gtorch_impl_same_shape (one, other) && one->dtype == other->dtype
          && gtorch_impl_device (one) == gtorch_impl_device (other))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: a hook gave gradient %zu of the %s of dtype %s and shape %s for one of "
                      "dtype %s and shape %s: dtype, shape and device must stay, and there must be "
                      "one"),
                   name, i, _ (what), one != NULL ? gtorch_dtype_get_name (one->dtype) : "-",
                   one != NULL ? gtorch_impl_shape_str (one) : "-",
                   other != NULL ? gtorch_dtype_get_name (other->dtype) : "-",
                   other != NULL ? gtorch_impl_shape_str (other) : "-");
      return NULL;
    }
  return g_steal_pointer (&list);
}

typedef struct
{
  GTorchGradNodePreHook before;
  GTorchGradNodeHook after;
  gpointer user_data;
  GDestroyNotify destroy;
} NodeHook;

typedef struct
{
  NodeHook *hook;
  GTorchNode *node;
  GPtrArray *grads, *of_outputs; /* of tensors or NULL */
  GError *error;
} NodeCall;

static GPtrArray *
wrap_all (GTorchImpl *const *impls, guint n)
{
  GPtrArray *list = g_ptr_array_new_full (n, unref_tensor);
  guint i;

  for (i = 0; i < n; i++)
    g_ptr_array_add (list,
                     impls[i] != NULL ? gtorch_tensor_wrap (gtorch_impl_ref (impls[i])) : NULL);
  return list;
}

static void
call_node_hook (gpointer data)
{
  NodeCall *call = data;
  GTorchTensor **grads = (GTorchTensor **) call->grads->pdata;
  const NodeHook *hook = call->hook;
  GPtrArray *given;

  if (hook->before != NULL)
    given = hook->before (call->node, grads, call->grads->len, hook->user_data, &call->error);
  else
    given =
        hook->after (call->node, grads, call->grads->len, (GTorchTensor **) call->of_outputs->pdata,
                     call->of_outputs->len, hook->user_data, &call->error);
  if (given != NULL)
    call->grads = gtorch_hook_take_gradients (call->node->name, given, call->grads,
                                              hook->before != NULL ? N_ ("outputs") : N_ ("inputs"),
                                              call->error == NULL ? &call->error : NULL);
}

static gboolean
run_node_hook (GTorchNode *node, GTorchImpl **grads, guint n_grads, GTorchImpl *const *of_outputs,
               guint n_of_outputs, gpointer user_data, GError **error)
{
  g_autoptr (GPtrArray) before = wrap_all (of_outputs, n_of_outputs);
  NodeHook *hook = user_data;
  NodeCall call = { hook, node, wrap_all (grads, n_grads), before, NULL };
  gboolean success;
  guint i;

  gtorch_engine_call_user (call_node_hook, &call);
  success = gtorch_callback_ended (hook->before != NULL ? "register_prehook" : "register_hook",
                                   call.error == NULL, call.error, error);
  for (i = 0; success && i < n_grads; i++)
    {
      GTorchTensor *tensor = call.grads->pdata[i];
      GTorchImpl *impl = tensor != NULL ? gtorch_tensor_unwrap (tensor) : NULL;

      if (impl == grads[i])
        continue;
      g_clear_pointer (&grads[i], gtorch_impl_unref);
      grads[i] = impl != NULL ? gtorch_impl_ref (impl) : NULL;
    }
  g_clear_pointer (&call.grads, g_ptr_array_unref);
  return success;
}

static void
node_hook_free (gpointer data)
{
  NodeHook *self = data;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self);
}

void
gtorch_node_hook_add_references (gpointer data, GTorchReferences *references)
{
  NodeHook *self = data;

  gtorch_references_add_data (references, self->user_data, self->destroy);
}

static guint64
add (GTorchNode *node, GTorchGradNodePreHook before, GTorchGradNodeHook after, gpointer user_data,
     GDestroyNotify destroy)
{
  NodeHook *hook = g_new (NodeHook, 1);

  *hook = (NodeHook){ before, after, user_data, destroy };
  return gtorch_hooks_add_of_node (&gtorch_node_ensure_extra (node)->hooks, after != NULL,
                                   run_node_hook, hook, node_hook_free);
}

/**
 * gtorch_grad_node_register_prehook:
 * @self: a node
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with the gradients of the results
 *   before the backward of the operation runs
 * @user_data: data for @hook
 * @destroy: frees @user_data
 *
 * Adds a hook that sees all gradients that come to a node, and may replace them.
 *
 * It runs after the hooks of the tensors that the operation computed, in the thread in which those run, and
 * only if the backward of the operation does: not if the pass stops at its results. It must not write to the
 * gradients. Gradients in their place have their dtype, shape and device; %NULL stands for zeros.
 *
 * Returns: an id for [method@GradNode.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_grad_node_register_prehook (GTorchGradNode *self, GTorchGradNodePreHook hook,
                                   gpointer user_data, GDestroyNotify destroy)
{
  g_return_val_if_fail (self != NULL, 0);
  g_return_val_if_fail (hook != NULL, 0);
  return add (self, hook, NULL, user_data, destroy);
}

/**
 * gtorch_grad_node_register_hook:
 * @self: a node
 * @hook: (scope notified) (closure user_data) (destroy destroy): called with the gradients of the inputs,
 *   and with those of the results from which they were computed
 * @user_data: data for @hook
 * @destroy: frees @user_data
 *
 * Adds a hook that sees all gradients that a node has computed, and may replace them.
 *
 * The gradients of inputs that need none are %NULL. The rules are those of
 * [method@GradNode.register_prehook].
 *
 * ```c
 * g_autoptr (GTorchGradNode) node = gtorch_tensor_dup_grad_node (loss);
 * guint64 id = gtorch_grad_node_register_hook (node, print_norms, NULL, NULL);
 * ```
 *
 * Returns: an id for [method@GradNode.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_grad_node_register_hook (GTorchGradNode *self, GTorchGradNodeHook hook, gpointer user_data,
                                GDestroyNotify destroy)
{
  g_return_val_if_fail (self != NULL, 0);
  g_return_val_if_fail (hook != NULL, 0);
  return add (self, NULL, hook, user_data, destroy);
}

/**
 * gtorch_grad_node_remove_hook:
 * @self: a node
 * @id: what [method@GradNode.register_hook] or [method@GradNode.register_prehook] gave
 *
 * Removes a hook. One that is running is freed when it returns.
 *
 * Returns: %TRUE if there was such a hook
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_node_remove_hook (GTorchGradNode *self, guint64 id)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return gtorch_hooks_remove (id);
}
