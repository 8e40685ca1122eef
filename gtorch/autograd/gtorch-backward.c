/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Going backward: the public functions around the engine. */

#include "config.h"

#include "autograd/gtorch-tensor-autograd.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "stream/gtorch-stream-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "base/gtorch-task-private.h"

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
 * On streams the whole pass is one operation of the current one: see
 * [streams and backward passes](streams-and-backward.html).
 *
 * ```c
 * gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
 * grad = gtorch_tensor_get_grad (weight);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_AUTOGRAD if there is no way back: @self does not
 *   require grad,
 *   a saved value was changed in place, or what was saved has been freed; with %GTORCH_ERROR_CAPTURE
 *   if the current stream captures a graph and one of the forward pass did not, or the other way round
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
               _ ("%s: %zu gradients were given for %zu tensors"), op, n_grads, n_tensors);
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
  GTorchBackward backward = {
    .n_roots = n_tensors,
    .retain_graph = retain_graph,
    .create_graph = create_graph,
  };

  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  g_return_val_if_fail (grad_tensors != NULL || n_grad_tensors == 0, FALSE);
  if (!check_counts ("backward", n_tensors, n_grad_tensors, error))
    return FALSE;
  roots = gtorch_tensors_unwrap (tensors, n_tensors);
  grads = n_grad_tensors > 0 ? gtorch_tensors_unwrap (grad_tensors, n_grad_tensors) : NULL;
  backward.roots = roots;
  backward.grads = grads;
  return gtorch_engine_run (&backward, error);
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
 * @allow_unused: give %NULL for an input that the outputs do not depend on, instead of an error
 * @error: return location for an error
 *
 * Computes the gradients of @outputs with respect to @inputs and gives them back; no grad is
 * changed.
 *
 * Returns: (transfer container) (element-type GTorchTensor): one gradient for each input, %NULL for
 *   one that is not used; or %NULL with @error set
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
  GTorchBackward backward = {
    .n_roots = n_outputs,
    .n_inputs = n_inputs,
    .retain_graph = retain_graph,
    .create_graph = create_graph,
  };
  gsize i;

  g_return_val_if_fail (outputs != NULL || n_outputs == 0, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  g_return_val_if_fail (grad_outputs != NULL || n_grad_outputs == 0, NULL);
  if (!check_counts ("grad", n_outputs, n_grad_outputs, error))
    return NULL;
  roots = gtorch_tensors_unwrap (outputs, n_outputs);
  wanted = gtorch_tensors_unwrap (inputs, n_inputs);
  grads = n_grad_outputs > 0 ? gtorch_tensors_unwrap (grad_outputs, n_grad_outputs) : NULL;
  results = g_ptr_array_new ();
  g_ptr_array_set_size (results, n_inputs);
  backward.roots = roots;
  backward.grads = grads;
  backward.inputs = wanted;
  backward.results = (GTorchImpl **) results->pdata;
  if (n_inputs > 0 && !gtorch_engine_run (&backward, error))
    goto failed;
  for (i = 0; i < n_inputs && !allow_unused; i++)
    if (results->pdata[i] == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                     _ ("grad: input %zu, of shape %s, was not used to compute the outputs: pass "
                        "allow_unused if it may be left out"),
                     i, gtorch_impl_shape_str (wanted[i]));
        goto failed;
      }
  return gtorch_tensors_wrap (g_steal_pointer (&results));

failed:
  gtorch_impl_clear ((GTorchImpl **) results->pdata, n_inputs);
  return NULL;
}

gboolean
gtorch_autograd_differentiate (GTorchImpl *const *outputs, GTorchImpl *const *grads,
                               guint n_outputs, GTorchImpl *const *inputs, guint n_inputs,
                               GTorchImpl **results, GError **error)
{
  const GTorchBackward backward = {
    .roots = outputs,
    .grads = grads,
    .n_roots = n_outputs,
    .inputs = inputs,
    .n_inputs = n_inputs,
    .results = results,
    .retain_graph = TRUE,
    .create_graph = TRUE,
  };

  return gtorch_engine_run (&backward, error);
}

/* --- in another thread --- */

typedef struct
{
  GTorchImpl *root;
  GTorchImpl *gradient;
  gboolean retain_graph;
  gboolean create_graph;
  GTorchThreadStreams streams; /* the caller's */
  GMainContext *context;
} AsyncBackward;

static void
async_backward_clear (AsyncBackward *self)
{
  g_clear_pointer (&self->root, gtorch_impl_unref);
  g_clear_pointer (&self->gradient, gtorch_impl_unref);
  gtorch_thread_streams_clear (&self->streams);
}

static void
async_backward_free (gpointer data)
{
  AsyncBackward *self = data;

  async_backward_clear (self);
  g_main_context_unref (self->context);
  g_free (self);
}

static void
backward_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  AsyncBackward *self = data;
  GTorchBackward backward = {
    .roots = &self->root,
    .grads = self->gradient != NULL ? &self->gradient : NULL,
    .n_roots = 1,
    .retain_graph = self->retain_graph,
    .create_graph = self->create_graph,
    .cancellable = cancellable,
  };
  GTorchChange change;
  GError *error = NULL;
  gboolean success;

  gtorch_thread_streams_change_to (&self->streams, &change);
  gtorch_engine_set_context (self->context);
  success = gtorch_engine_run (&backward, &error);
  gtorch_engine_set_context (NULL);
  gtorch_change_end (&change);
  if (success)
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/* The thread may hold its own task for longer than the program holds the graph and the streams. It must not
 * be the one that frees them: what belongs to hooks goes with the graph. */
static void
backward_done (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;

  async_backward_clear (g_task_get_task_data (G_TASK (result)));
  if (g_task_propagate_boolean (G_TASK (result), &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_tensor_backward_async:
 * @self: a tensor that requires grad
 * @gradient: (nullable): the gradient with respect to @self, of its shape; %NULL for a single element: one
 * @retain_graph: keep what operations have saved
 * @create_graph: record the backward pass itself
 * @cancellable: (nullable): stops the pass between two operations
 * @callback: (scope async): called when it is done
 * @user_data: data for @callback
 *
 * Does what [method@Tensor.backward] does in a thread of its own, with the current streams of the caller:
 * what they have been given until now comes before the pass, and what they are given after @callback was
 * called comes after it.
 *
 * Hooks run in the thread-default main context of the caller, which must go on running
 * until @callback is called. After the pass was cancelled some leaves have got their gradients and others
 * have not, and what was saved is partly gone.
 *
 * Since: 0.1
 */
void
gtorch_tensor_backward_async (GTorchTensor *self, GTorchTensor *gradient, gboolean retain_graph,
                              gboolean create_graph, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) thread = NULL;
  AsyncBackward *data;
  GTask *task;

  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (gradient == NULL || GTORCH_IS_TENSOR (gradient));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));

  task = gtorch_task_new (self, gtorch_tensor_backward_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    {
      g_object_unref (task);
      return;
    }
  data = g_new0 (AsyncBackward, 1);
  data->root = gtorch_impl_ref (gtorch_tensor_unwrap (self));
  data->gradient = gradient != NULL ? gtorch_impl_ref (gtorch_tensor_unwrap (gradient)) : NULL;
  data->retain_graph = retain_graph;
  data->create_graph = create_graph;
  gtorch_thread_streams_take (&data->streams);
  data->context = g_main_context_ref_thread_default ();

  thread = g_task_new (NULL, cancellable, backward_done, task);
  g_task_set_task_data (thread, data, async_backward_free);
  g_task_run_in_thread (thread, backward_thread);
}

/**
 * gtorch_tensor_backward_finish:
 * @self: a tensor
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends what [method@Tensor.backward_async] began.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_backward_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_tensor_backward_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}
