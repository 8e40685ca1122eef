/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints of one function, of both kinds. The reentrant kind is a function whose forward records
 * nothing, and whose backward calls the function again with inputs that are leaves and starts a backward
 * pass of its own. */

#include "config.h"

#include "autograd/gtorch-checkpoint.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-function-private.h"
#include "autograd/gtorch-surroundings-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-callback-private.h"
#include "device/gtorch-generator-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  GTorchFunction parent_instance;
  GTorchCheckpointFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
  gboolean preserve_rng_state;
} GTorchCheckpointFunction;

typedef GTorchFunctionClass GTorchCheckpointFunctionClass;

static GType gtorch_checkpoint_function_get_type (void);

G_DEFINE_TYPE (GTorchCheckpointFunction, gtorch_checkpoint_function, GTORCH_TYPE_FUNCTION)

/* What a call of forward found. */
typedef struct
{
  GTorchRandomStates *random; /* NULL: not to be restored */
  GTorchSurroundings surroundings;
  gboolean is_captured; /* it drew random numbers in a capture */
} Found;

static void
found_free (gpointer data)
{
  Found *self = data;

  g_clear_pointer (&self->random, gtorch_random_states_free);
  gtorch_surroundings_clear (&self->surroundings);
  g_free (self);
}

static GQuark
found_quark (void)
{
  return g_quark_from_static_string ("gtorch-checkpoint-found");
}

static void
unref_tensor (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

/* Arrays from other languages may have no function that frees their elements, which are ours. */
static GPtrArray *
own (GPtrArray *given)
{
  gpointer *elements;
  GPtrArray *tensors;
  gsize i, n;

  if (given == NULL)
    return NULL;
  elements = g_ptr_array_steal (given, &n);
  tensors = g_ptr_array_new_full (n, unref_tensor);
  for (i = 0; i < n; i++)
    g_ptr_array_add (tensors, elements[i]);
  g_free (elements);
  g_ptr_array_unref (given);
  return tensors;
}

static GPtrArray *
call (GTorchCheckpointFunction *self, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GError *local = NULL;
  GPtrArray *outputs = own (self->func (inputs, n_inputs, self->user_data, &local));

  if (gtorch_callback_gave ("checkpoint", outputs, local, error))
    return outputs;
  g_clear_pointer (&outputs, g_ptr_array_unref);
  return NULL;
}

static GPtrArray *
gtorch_checkpoint_function_forward (GTorchFunction *function, GTorchFunctionContext *context,
                                    GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchCheckpointFunction *self = (GTorchCheckpointFunction *) function;
  const guint n_captured = gtorch_thread.n_captured;
  gboolean is_needed = FALSE;
  GPtrArray *outputs;
  Found *found;
  gsize i;

  for (i = 0; i < n_inputs; i++)
    is_needed |= context->needs[i];
  if (context->is_recorded && !is_needed)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: none of the %zu inputs of a reentrant checkpoint requires grad, "
                      "so that no gradient would reach anything in it (use_reentrant)"),
                   n_inputs);
      return NULL;
    }
  found = g_new0 (Found, 1);
  gtorch_surroundings_take (&found->surroundings);
  if (self->preserve_rng_state && is_needed)
    found->random = gtorch_random_states_new ();
  g_object_set_qdata_full (G_OBJECT (context), found_quark (), found, found_free);
  if (!gtorch_function_context_save_for_backward (context, inputs, n_inputs, error))
    return NULL;
  outputs = call (self, inputs, n_inputs, error);
  found->is_captured = gtorch_thread.n_captured != n_captured;
  return outputs;
}

static gboolean
check_pass (const Found *found, GError **error)
{
  const GTorchPass *pass = gtorch_engine_get_pass ();

  if (pass != NULL && gtorch_pass_has_inputs (pass))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: autograd_grad needs gradients of its inputs alone, and a "
                      "reentrant checkpoint adds to those of all leaves: use backward, or a "
                      "checkpoint that is not reentrant (use_reentrant)"));
      return FALSE;
    }
  if (gtorch_is_grad_enabled ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: the backward pass of a reentrant checkpoint cannot be recorded "
                      "(create_graph): use a checkpoint that is not reentrant (use_reentrant)"));
      return FALSE;
    }
  if (found->random != NULL && found->is_captured)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("checkpoint: the function draws random numbers in a capture, and replays "
                      "draw new ones for each call: those of the first time cannot be drawn again "
                      "(preserve_rng_state)"));
      return FALSE;
    }
  return TRUE;
}

/* Returns leaves with the memory of the inputs. */
static GPtrArray *
make_leaves (GTorchFunctionContext *context, GError **error)
{
  g_autoptr (GPtrArray) saved = gtorch_function_context_get_saved_tensors (context, error);
  g_autoptr (GPtrArray) leaves = NULL;
  guint i;

  if (saved == NULL)
    return NULL;
  leaves = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < saved->len; i++)
    {
      GTorchTensor *leaf =
          gtorch_tensor_wrap (gtorch_impl_alias (gtorch_tensor_unwrap (saved->pdata[i])));

      g_ptr_array_add (leaves, leaf);
      if (context->needs[i] && !gtorch_tensor_set_requires_grad (leaf, TRUE, error))
        return NULL;
    }
  return g_steal_pointer (&leaves);
}

/* Goes backward from the outputs that require grad. */
static gboolean
go_backward (GPtrArray *outputs, GTorchTensor **grads, gsize n_grads, GError **error)
{
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) weights = g_ptr_array_new ();
  guint i;

  if (outputs->len != n_grads)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: the function gave %zu tensors the first time and %u when it was "
                      "called again"),
                   n_grads, outputs->len);
      return FALSE;
    }
  for (i = 0; i < outputs->len; i++)
    if (GTORCH_IS_TENSOR (outputs->pdata[i]) && grads[i] != NULL
        && gtorch_tensor_get_requires_grad (outputs->pdata[i]))
      {
        g_ptr_array_add (roots, outputs->pdata[i]);
        g_ptr_array_add (weights, grads[i]);
      }
  if (roots->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: none of the %u outputs requires grad when the function is "
                      "called again: no gradient flows through it"),
                   outputs->len);
      return FALSE;
    }
  return gtorch_autograd_backward ((GTorchTensor **) roots->pdata, roots->len,
                                   (GTorchTensor **) weights->pdata, weights->len, FALSE, FALSE,
                                   error);
}

static GPtrArray *
compute_again (GTorchCheckpointFunction *self, const Found *found, GPtrArray *leaves,
               GError **error)
{
  GTorchRandomStates *random = NULL;
  GTorchFormerSurroundings former;
  GPtrArray *outputs = NULL;
  GTorchChange mode;

  gtorch_change_to_grad (&mode, TRUE);
  if (gtorch_surroundings_enter (&found->surroundings, &former, error))
    {
      if (found->random != NULL)
        random = gtorch_random_states_exchange (found->random);
      outputs = call (self, (GTorchTensor **) leaves->pdata, leaves->len, error);
      if (random != NULL)
        gtorch_random_states_restore (random);
      gtorch_surroundings_leave (&found->surroundings, &former);
    }
  gtorch_change_end (&mode);
  return outputs;
}

static GPtrArray *
gtorch_checkpoint_function_backward (GTorchFunction *function, GTorchFunctionContext *context,
                                     GTorchTensor **grad_outputs, gsize n_grad_outputs,
                                     GError **error)
{
  GTorchCheckpointFunction *self = (GTorchCheckpointFunction *) function;
  const Found *found = g_object_get_qdata (G_OBJECT (context), found_quark ());
  g_autoptr (GPtrArray) leaves = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  GPtrArray *grads;
  guint i;

  if (!check_pass (found, error))
    return NULL;
  leaves = make_leaves (context, error);
  if (leaves == NULL)
    return NULL;
  outputs = compute_again (self, found, leaves, error);
  if (outputs == NULL || !go_backward (outputs, grad_outputs, n_grad_outputs, error))
    return NULL;
  grads = g_ptr_array_new_with_free_func (unref_tensor);
  for (i = 0; i < leaves->len; i++)
    g_ptr_array_add (grads, gtorch_tensor_get_grad (leaves->pdata[i]));
  return grads;
}

static void
gtorch_checkpoint_function_finalize (GObject *object)
{
  GTorchCheckpointFunction *self = (GTorchCheckpointFunction *) object;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
  G_OBJECT_CLASS (gtorch_checkpoint_function_parent_class)->finalize (object);
}

static void
gtorch_checkpoint_function_class_init (GTorchCheckpointFunctionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_checkpoint_function_finalize;
  klass->forward = gtorch_checkpoint_function_forward;
  klass->backward = gtorch_checkpoint_function_backward;
}

static void
gtorch_checkpoint_function_init (GTorchCheckpointFunction *self)
{
}

/**
 * gtorch_checkpoint_function_new:
 * @func: (scope notified) (closure user_data) (destroy destroy): computes outputs from inputs
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 * @preserve_rng_state: draw the same random numbers again
 *
 * Makes a differentiable function that keeps only its inputs, and calls @func again in its backward: a
 * reentrant checkpoint, to be called by [method@Function.apply].
 *
 * @func runs without recording the first time. Its backward starts a backward pass of its own, which adds
 *   to the gradients of the leaves that @func uses. So it fails with %GTORCH_ERROR_AUTOGRAD in
 *   [func@autograd_grad] and with `create_graph`, and [method@Function.apply] fails if gradients are
 *   recorded and no input requires grad.
 *
 * Returns: (transfer full): a function
 *
 * Since: 0.1
 */
GTorchFunction *
gtorch_checkpoint_function_new (GTorchCheckpointFunc func, gpointer user_data,
                                GDestroyNotify destroy, gboolean preserve_rng_state)
{
  GTorchCheckpointFunction *self;

  g_return_val_if_fail (func != NULL, NULL);
  self = g_object_new (gtorch_checkpoint_function_get_type (), NULL);
  self->func = func;
  self->user_data = user_data;
  self->destroy = destroy;
  self->preserve_rng_state = preserve_rng_state;
  return GTORCH_FUNCTION (self);
}

/* --- one call --- */

/* The function, which is called once now and again later. */
typedef struct
{
  gint ref_count;
  GTorchCheckpointFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
} Call;

static void
call_unref (gpointer data)
{
  Call *self = data;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self);
}

static gboolean
call_again (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  const Call *self = data;
  g_autoptr (GPtrArray) outputs = own (self->func (inputs, n_inputs, self->user_data, error));

  return outputs != NULL;
}

/**
 * gtorch_checkpoint:
 * @func: (scope notified) (closure user_data) (destroy destroy): computes outputs from inputs
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @use_reentrant: see below; %FALSE has fewer limits
 * @preserve_rng_state: draw the same random numbers again
 * @determinism_check: compare operations, dtypes, shapes and devices of what is saved both times
 * @early_stop: end @func as soon as it has computed again all that is needed
 * @error: return location for an error
 *
 * Calls a function of which the backward pass keeps only the inputs: it calls the function again when it
 * needs what the operations in it would have saved. That takes less memory and more time.
 *
 * @func must do the same both times. Random numbers are those of the first time with @preserve_rng_state,
 *   and mixed precision and current streams always; so are the tensors of modules, in replicas and in calls
 *   of modules with [class@ModuleShards]. Checkpoints may be within one another.
 *
 * Without @use_reentrant the function is recorded and what is saved in it is replaced, by
 * [func@checkpoint_begin]: gradients of gradients, [func@autograd_grad] and several passes over one graph
 * work. With @early_stop an operation ends @func with an error, which it has to pass on. With
 * @use_reentrant the function is that of [func@checkpoint_function_new], and @determinism_check and
 * @early_stop have no meaning.
 *
 * Random numbers that are drawn in a captured graph differ from replay to replay, so that the backward pass
 * fails with %GTORCH_ERROR_CAPTURE there unless @preserve_rng_state is %FALSE.
 *
 * It is [`torch.utils.checkpoint.checkpoint`](https://pytorch.org/docs/stable/checkpoint.html).
 *
 * ```c
 * outputs = gtorch_checkpoint (run_block, block, NULL, &x, 1, FALSE, TRUE, TRUE, TRUE, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_checkpoint (GTorchCheckpointFunc func, gpointer user_data, GDestroyNotify destroy,
                   GTorchTensor **inputs, gsize n_inputs, gboolean use_reentrant,
                   gboolean preserve_rng_state, gboolean determinism_check, gboolean early_stop,
                   GError **error)
{
  g_autoptr (GTorchSavedTensorsGuard) guard = NULL;
  g_autoptr (GTorchFunction) function = NULL;
  GPtrArray *outputs = NULL;
  GError *local = NULL;
  Call *once;
  gsize i;

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  if (use_reentrant)
    {
      function = gtorch_checkpoint_function_new (func, user_data, destroy, preserve_rng_state);
      return gtorch_function_apply (function, inputs, n_inputs, error);
    }
  once = g_new (Call, 1);
  *once = (Call){ 2, func, user_data, destroy };
  guard = gtorch_checkpoint_begin (call_again, once, call_unref, inputs, n_inputs,
                                   preserve_rng_state, determinism_check, early_stop, error);
  if (guard != NULL)
    {
      outputs = own (func (inputs, n_inputs, user_data, &local));
      gtorch_saved_tensors_guard_end (guard);
      if (!gtorch_callback_gave ("checkpoint", outputs, local, error))
        g_clear_pointer (&outputs, g_ptr_array_unref);
    }
  call_unref (once);
  for (i = 0; outputs != NULL && i < outputs->len; i++)
    if (!GTORCH_IS_TENSOR (outputs->pdata[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("checkpoint: output %zu of the function is not a tensor"), i);
        g_clear_pointer (&outputs, g_ptr_array_unref);
      }
  return outputs;
}
