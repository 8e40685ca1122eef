/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-module.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-callback-private.h"
#include "device/gtorch-device-private.h"
#include "memory/gtorch-guard.h"
#include "base/gtorch-field-private.h"
#include "tensor/gtorch-hold-private.h"
#include "nn/gtorch-module-list.h"
#include "nn/gtorch-module-private.h"
#include "gtorch-ops-private.h"
#include "base/gtorch-references-private.h"
#include "nn/gtorch-state-private.h"
#include "stream/gtorch-stream.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-stack-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/**
 * GTorchModule:
 *
 * A part of a network: it has parameters and child modules, and computes an output from an input.
 *
 * Subclasses override `forward`. Optimizers find the members that are registered with
 * [method@Module.register_parameter], [method@Module.register_buffer] and
 * [method@Module.register_module], [method@Module.to] moves them and [method@Module.state_dict] stores
 * them.
 *
 * ```c
 * g_autoptr (GTorchSequential) net = gtorch_sequential_new ();
 *
 * gtorch_sequential_append (net, GTORCH_MODULE (gtorch_linear_new (4, 8, &error)), &error);
 * y = gtorch_module_forward (GTORCH_MODULE (net), x, &error);
 * ```
 *
 * The layers of the library may be created with their constructors, which report an invalid argument at
 * once, or with [ctor@GObject.Object.new], as other languages do; then the first use reports it.
 *
 * Several threads may use a module, and add, replace and remove members, at once: a call uses each member
 * that it finds until it ends. What calls compute in place, such as the running mean of [class@BatchNorm2d],
 * is then as for any tensor that several threads write.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE_WITH_PRIVATE (GTorchModule, gtorch_module, G_TYPE_OBJECT)

GTorchModulePrivate *
gtorch_module_get_private (GTorchModule *self)
{
  return gtorch_module_get_instance_private (self);
}

/* A lazy layer that has its tensors is called as an ordinary one, unless it is of a class of the program. */
static gboolean
is_used_lazy (gpointer self, const gchar *name)
{
  GType type = G_TYPE_FROM_INSTANCE (self);

  if (!g_str_has_prefix (name, "Lazy") || !GTORCH_IS_MODULE (self)
      || GTORCH_MODULE_GET_CLASS (self)->lazy == NULL
      || g_atomic_int_get (&gtorch_module_get_private (self)->is_lazy))
    return FALSE;
  while (!g_str_has_prefix (g_type_name (type), "GTorchLazy"))
    type = g_type_parent (type);
  return strcmp (g_type_name (type) + strlen ("GTorch"), name) == 0;
}

const gchar *
gtorch_module_type_name (gpointer self)
{
  const gchar *name = gtorch_type_own_name (G_OBJECT_TYPE_NAME (self));

  return is_used_lazy (self, name) ? name + strlen ("Lazy") : name;
}

GTorchTensor *
gtorch_module_refuse_inputs (GTorchModule *self, gsize n_inputs, GError **error)
{
  if (n_inputs == 1)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("%s: forward for one input is not implemented"),
                 gtorch_module_type_name (self));
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("%s: forward for %zu inputs is not implemented"),
                 gtorch_module_type_name (self), n_inputs);
  return NULL;
}

static GTorchTensor *gtorch_module_real_forward_many (GTorchModule *self, GTorchTensor **inputs,
                                                      gsize n_inputs, GError **error);

/* A class overrides one of both, or both; each stands for the other with one input. */
static GTorchTensor *
gtorch_module_real_forward (GTorchModule *self, GTorchTensor *input, GError **error)
{
  GTorchModuleClass *klass = GTORCH_MODULE_GET_CLASS (self);

  if (klass->forward == gtorch_module_real_forward
      && klass->forward_many != gtorch_module_real_forward_many)
    return klass->forward_many (self, &input, 1, error);
  return gtorch_module_refuse_inputs (self, 1, error);
}

static GTorchTensor *
gtorch_module_real_forward_many (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                 GError **error)
{
  GTorchModuleClass *klass = GTORCH_MODULE_GET_CLASS (self);

  if (n_inputs == 1 && klass->forward != gtorch_module_real_forward)
    return klass->forward (self, inputs[0], error);
  return gtorch_module_refuse_inputs (self, n_inputs, error);
}

/* A hook may have the module as its data. */
static void
gtorch_module_dispose (GObject *object)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (GTORCH_MODULE (object));
  GPtrArray *hooks;

  gtorch_module_begin_change (GTORCH_MODULE (object));
  hooks = priv->hooks;
  g_atomic_pointer_set (&priv->hooks, NULL);
  gtorch_module_end_change (GTORCH_MODULE (object));
  g_clear_pointer (&hooks, g_ptr_array_unref);
  G_OBJECT_CLASS (gtorch_module_parent_class)->dispose (object);
}

static void
gtorch_module_finalize (GObject *object)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (GTORCH_MODULE (object));

  g_array_unref (priv->parameters);
  g_array_unref (priv->buffers);
  g_object_unref (priv->children);
  g_ptr_array_unref (priv->child_names);
  g_clear_error (&priv->error);
  g_weak_ref_clear (&priv->outer);
  G_OBJECT_CLASS (gtorch_module_parent_class)->finalize (object);
}

typedef GTorchModule Self;

static const GTorchField fields[] = {
  /**
   * GTorchModule:training: (getter get_training) (setter set_training)
   *
   * Whether the module is in training mode: some modules, such as [class@Dropout], behave differently
   * then. Setting it also sets it for all descendants.
   *
   * Since: 0.1
   */
  { "training", GTORCH_PROPERTY_BOOL (gtorch_module_get_training, gtorch_module_set_training),
    .value = TRUE },
};

static gchar *
gtorch_module_real_extra_repr (GTorchModule *self)
{
  return g_strdup ("");
}

static GTorchReferencesType references_type = { .look = gtorch_module_add_references };

static void
gtorch_module_class_init (GTorchModuleClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = gtorch_module_dispose;
  object_class->finalize = gtorch_module_finalize;
  klass->forward = gtorch_module_real_forward;
  klass->forward_many = gtorch_module_real_forward_many;
  klass->extra_repr = gtorch_module_real_extra_repr;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_MODULE;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_module_init (GTorchModule *self)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);

  priv->parameters = g_array_new (FALSE, FALSE, sizeof (GTorchMember));
  g_array_set_clear_func (priv->parameters, gtorch_member_clear);
  priv->buffers = g_array_new (FALSE, FALSE, sizeof (GTorchMember));
  g_array_set_clear_func (priv->buffers, gtorch_member_clear);
  priv->children = gtorch_object_list_new (GTORCH_TYPE_MODULE);
  priv->child_names = g_ptr_array_new_with_free_func (g_free);
  priv->training = TRUE;
  g_weak_ref_init (&priv->outer, NULL);
}

/* --- forward --- */

gboolean
gtorch_module_is_usable (GTorchModule *self, GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  gboolean (*check) (GTorchModule *, GError **) = GTORCH_MODULE_GET_CLASS (self)->check;

  if (G_LIKELY (priv->error == NULL))
    return check == NULL || check (self, error);
  if (error != NULL)
    *error = g_error_copy (priv->error);
  return FALSE;
}

/**
 * gtorch_module_check:
 * @self: a module
 * @error: return location for an error
 *
 * Tells whether the module was constructed with valid properties, and those that were set since are valid,
 * too. Properties accept any number of their type; an invalid layer fails with the same error when it is
 * used, and constructors such as [ctor@Linear.new] report it themselves.
 *
 * Returns: %TRUE, or %FALSE with the error of the construction, or %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_module_check (GTorchModule *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  return gtorch_module_is_usable (self, error);
}

GTorchTensor *
gtorch_module_check_output (GTorchModule *self, GTorchTensor *output, GError *local, GError **error)
{
  if (G_LIKELY (output != NULL && local == NULL)
      && gtorch_callback_check (gtorch_module_type_name (self), "forward", &output,
                                GTORCH_TYPE_TENSOR, &local))
    return output;
  g_clear_object (&output);
  if (local != NULL)
    g_propagate_error (error, local);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("%s: forward returned no tensor and no error"), gtorch_module_type_name (self));
  return NULL;
}

static GTorchTensor *
call_class (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs, gpointer data,
            GError **error)
{
  GTorchModuleClass *klass = GTORCH_MODULE_GET_CLASS (self);

  if (n_inputs == 1)
    return klass->forward (self, inputs[0], error);
  return klass->forward_many (self, inputs, n_inputs, error);
}

static GTorchTensor *
call_hooked (GTorchModule *self, GPtrArray *hooks, GTorchTensor **inputs, gsize n_inputs,
             GTorchModuleCompute compute, gpointer data, GError **error)
{
  g_autoptr (GPtrArray) seen = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GTorchFunction) of_inputs = NULL;
  g_autoptr (GTorchFunction) of_outputs = NULL;
  GTorchTensor *output = NULL;
  GError *local = NULL;

  seen = gtorch_module_run_pre_hooks (self, hooks, inputs, n_inputs, error);
  if (seen != NULL)
    {
      of_inputs = gtorch_module_make_backward_hooks (self, hooks, &of_outputs);
      if (of_inputs == NULL || gtorch_module_apply_hooks (of_inputs, seen, &local))
        output = compute (self, (GTorchTensor **) seen->pdata, seen->len, data, &local);
      output = gtorch_module_check_output (self, output, local, error);
    }
  if (output == NULL)
    {
      gtorch_module_run_always (self, hooks, 0,
                                seen != NULL ? (GTorchTensor **) seen->pdata : inputs,
                                seen != NULL ? seen->len : n_inputs, NULL);
      return NULL;
    }
  output = gtorch_module_run_hooks (self, hooks, seen, output, error);
  if (output == NULL || of_inputs == NULL)
    return output;
  outputs = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (outputs, output);
  return gtorch_module_apply_hooks (of_outputs, outputs, error) ? g_object_ref (outputs->pdata[0])
                                                                : NULL;
}

GTorchTensor *
gtorch_module_call_by (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                       GTorchModuleCompute compute, gpointer data, GError **error)
{
  g_auto (GTorchProfileScope) scope = gtorch_module_profile_scope (self);
  g_autoptr (GPtrArray) hooks = NULL;
  GError *local = NULL;
  GTorchTensor *output;

  if (!gtorch_module_is_usable (self, error)
      || (G_UNLIKELY (gtorch_stack_is_low ())
          && !gtorch_stack_check (gtorch_module_type_name (self), error)))
    return NULL;
  hooks = gtorch_module_dup_hooks (self);
  if (G_LIKELY (hooks == NULL))
    {
      output = compute (self, inputs, n_inputs, data, &local);
      return gtorch_module_check_output (self, output, local, error);
    }
  return call_hooked (self, hooks, inputs, n_inputs, compute, data, error);
}

GTorchTensor *
gtorch_module_call (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  return gtorch_module_call_by (self, inputs, n_inputs, call_class, NULL, error);
}

/**
 * gtorch_module_new: (skip)
 * @type: the type of a module
 * @error: return location for an error
 * @first_property: (nullable): the name of a property, or %NULL for none
 * @...: its value, further names and values, and %NULL
 *
 * Creates a module with properties, and checks whether that failed.
 *
 * ```c
 * g_autoptr (GTorchLinear) layer =
 *     gtorch_module_new (GTORCH_TYPE_LINEAR, &error, "in-features", (gint64) 3, "out-features", (gint64) 4,
 *                        "has-bias", FALSE, NULL);
 * ```
 *
 * It combines [ctor@GObject.Object.new] and [method@Module.check], for C.
 *
 * Returns: (transfer full): a new module, or %NULL with the error of its construction
 *
 * Since: 0.1
 */
gpointer
gtorch_module_new (GType type, GError **error, const gchar *first_property, ...)
{
  GObject *self;
  va_list args;

  g_return_val_if_fail (g_type_is_a (type, GTORCH_TYPE_MODULE), NULL);
  va_start (args, first_property);
  self = g_object_new_valist (type, first_property, args);
  va_end (args);
  return gtorch_module_checked (self, error);
}

/**
 * gtorch_module_forward: (virtual forward)
 * @self: a module
 * @input: the input
 * @error: return location for an error
 *
 * Computes the output for an input.
 *
 * Returns: (transfer full): the output, or %NULL with the error of the module
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_forward (GTorchModule *self, GTorchTensor *input, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  return gtorch_module_call (self, &input, 1, error);
}

/**
 * gtorch_module_forward_many: (virtual forward_many)
 * @self: a module
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @error: return location for an error
 *
 * Computes the output for several inputs. With one this is [method@Module.forward]; modules
 * that take more override this one, which then is also what forward does unless that is overridden, too.
 *
 * Returns: (transfer full): the output, or %NULL with the error of the module;
 *   %GTORCH_ERROR_NOT_SUPPORTED if it takes another number of inputs
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_forward_many (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                            GError **error)
{
  gsize i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  for (i = 0; i < n_inputs; i++)
    if (!GTORCH_IS_TENSOR (inputs[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: forward_many: input %zu is no tensor"), gtorch_module_type_name (self),
                     i);
        return NULL;
      }

  return gtorch_module_call (self, inputs, n_inputs, error);
}

static void
forward_done (GObject *object, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  GError *error = NULL;

  if (gtorch_stream_synchronize_finish (GTORCH_STREAM (object), result, &error))
    g_task_return_pointer (task, g_object_ref (g_task_get_task_data (task)), g_object_unref);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_module_forward_async:
 * @self: a module
 * @input: the input
 * @cancellable: (nullable): cancels the wait
 * @callback: (scope async) (closure user_data): called when the output was computed
 * @user_data: data for @callback
 *
 * Computes the output for an input without blocking the main loop.
 *
 * `forward` itself is called immediately, in this thread, and only enqueues the work on a stream. If the
 * current stream is the default stream of the CPU, which is synchronous, another stream is used.
 *
 * Since: 0.1
 */
void
gtorch_module_forward_async (GTorchModule *self, GTorchTensor *input, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  GTORCH_HOLD_TENSOR (input);
  g_autoptr (GTask) task = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  GTorchTensor *output = NULL;
  GTorchStream *current;
  GTorchDevice *device;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_MODULE (self));
  g_return_if_fail (GTORCH_IS_TENSOR (input));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));

  task = gtorch_task_new (self, gtorch_module_forward_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  if (gtorch_tensor_unwrap (input)->storage == NULL)
    {
      g_task_return_new_error (task, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                               _ ("%s: the input was released"), gtorch_module_type_name (self));
      return;
    }
  device = gtorch_tensor_get_device (input);
  current = gtorch_stream_get_current (device);
  if (!gtorch_stream_is_default (current))
    stream = g_object_ref (current);
  else
    {
      stream = gtorch_stream_new (device, 0, &error);
      if (stream != NULL && !gtorch_stream_wait_stream (stream, current, &error))
        g_clear_object (&stream);
    }
  if (stream != NULL)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

      output = gtorch_module_forward (self, input, &error);
    }
  if (output == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  g_task_set_task_data (task, output, g_object_unref);
  gtorch_stream_synchronize_async (stream, cancellable, forward_done, g_steal_pointer (&task));
}

/**
 * gtorch_module_forward_finish:
 * @self: a module
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the output of [method@Module.forward_async].
 *
 * Returns: (transfer full): the output, or %NULL with an error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_forward_finish (GTorchModule *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_module_forward_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- functions of all descendants --- */

/**
 * gtorch_module_get_training: (get-property training)
 * @self: a module
 *
 * Tells whether the module is in training mode.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_module_get_training (GTorchModule *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  return g_atomic_int_get (&gtorch_module_get_private (self)->training);
}

static void
set_training (GTorchModule *module, const gchar *path, gpointer user_data)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (module);
  gboolean training = GPOINTER_TO_INT (user_data);

  if (g_atomic_int_get (&priv->training) == training)
    return;
  g_atomic_int_set (&priv->training, training);
  g_atomic_int_inc (&gtorch_module_changes);
  g_object_notify (G_OBJECT (module), "training");
}

/**
 * gtorch_module_set_training: (set-property training)
 * @self: a module
 * @training: whether to enable training mode
 *
 * Sets the mode of the module and all descendants to training or evaluation.
 *
 * Since: 0.1
 */
void
gtorch_module_set_training (GTorchModule *self, gboolean training)
{
  g_return_if_fail (GTORCH_IS_MODULE (self));
  gtorch_module_visit (self, TRUE, set_training, GINT_TO_POINTER (training != FALSE));
}

/**
 * gtorch_module_train:
 * @self: a module
 * @mode: %TRUE to train
 *
 * Does the same as [method@Module.set_training], under PyTorch's name.
 *
 * Since: 0.1
 */
void
gtorch_module_train (GTorchModule *self, gboolean mode)
{
  gtorch_module_set_training (self, mode);
}

/**
 * gtorch_module_eval:
 * @self: a module
 *
 * Sets the module and all descendants to evaluation mode, like training set to %FALSE.
 *
 * Since: 0.1
 */
void
gtorch_module_eval (GTorchModule *self)
{
  gtorch_module_set_training (self, FALSE);
}

static void
collect_members (GTorchModule *module, const gchar *path, gpointer user_data)
{
  guint i, j;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (module, i == 1);

      for (j = 0; j < members->len; j++)
        {
          GTorchTensor *tensor = g_array_index (members, GTorchMember, j).tensor;

          if (tensor != NULL && !g_ptr_array_find (user_data, tensor, NULL))
            g_ptr_array_add (user_data, g_object_ref (tensor));
        }
    }
}

/* A parameter without elements gets them on the new device, in the new dtype. */
static GTorchImpl *
convert_member (GTorchImpl *impl, GTorchDevice *device, guint dtype, GError **error)
{
  if (!gtorch_impl_is_uninitialized (impl))
    return gtorch_impl_to (impl, device, dtype, error);
  return gtorch_impl_new_uninitialized (device != NULL ? device : impl->device,
                                        dtype != GTORCH_DTYPE_NONE ? dtype : impl->dtype);
}

/**
 * gtorch_module_to:
 * @self: a module
 * @device: (nullable): the new device, or %NULL for no change
 * @dtype: a floating-point dtype, or %GTORCH_DTYPE_NONE for no change
 * @error: return location for an error
 *
 * Moves all parameters, their gradients and the buffers, which stay the same objects. Integers keep their
 * dtype.
 *
 * An optimizer that has made steps keeps its state on the old device, and refuses the next step until it
 * has loaded its own state dict. A forward pass before the move cannot be followed by its backward pass
 * after it.
 *
 * Returns: %TRUE on success. On failure (%GTORCH_ERROR_DTYPE, %GTORCH_ERROR_OUT_OF_MEMORY) nothing was
 *   moved
 *
 * Since: 0.1
 */
gboolean
gtorch_module_to (GTorchModule *self, GTorchDevice *device, GTorchDType dtype, GError **error)
{
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) moved = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autofree GTorchImpl **impls = NULL;
  guint i, n;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), FALSE);
  device = gtorch_device_resolved (device);
  if (!gtorch_module_is_usable (self, error))
    return FALSE;
  if (dtype != GTORCH_DTYPE_NONE && !gtorch_dtype_is_floating_point (dtype)
      && !gtorch_dtype_is_complex (dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: to: only floating-point and complex dtypes are possible, not %s"),
                   gtorch_module_type_name (self), gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  gtorch_module_visit (self, TRUE, collect_members, tensors);
  for (n = tensors->len, i = 0; i < n; i++)
    {
      GTorchTensor *grad = gtorch_tensor_get_grad (tensors->pdata[i]);

      if (grad != NULL)
        g_ptr_array_add (tensors, grad);
    }
  guard = gtorch_no_grad ();
  for (i = 0; i < tensors->len; i++)
    {
      GTorchImpl *impl = gtorch_tensor_unwrap (tensors->pdata[i]);
      gboolean convert =
          gtorch_dtype_is_floating_point (impl->dtype) || gtorch_dtype_is_complex (impl->dtype);
      GTorchImpl *result = convert_member (impl, device, convert ? dtype : impl->dtype, error);

      if (result == NULL)
        {
          g_prefix_error (error, "%s: to: ", gtorch_module_type_name (self));
          return FALSE;
        }
      g_ptr_array_add (moved, result);
    }
  impls = gtorch_tensors_unwrap ((GTorchTensor **) tensors->pdata, tensors->len);
  if (!gtorch_impls_set_data (impls, (GTorchImpl **) moved->pdata, moved->len))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: to: another call uses or released a tensor of the module"),
                   gtorch_module_type_name (self));
      return FALSE;
    }
  return TRUE;
}

static GPtrArray *
dup_parameters (GTorchModule *self)
{
  g_autoptr (GListModel) list = gtorch_module_get_parameters (self, TRUE);
  GPtrArray *parameters = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < g_list_model_get_n_items (list); i++)
    g_ptr_array_add (parameters, g_list_model_get_item (list, i));
  return parameters;
}

/**
 * gtorch_module_zero_grad:
 * @self: a module
 * @set_to_none: whether to drop the gradients, which is faster, instead of filling them with zeros
 * @error: return location for an error
 *
 * Resets the gradients of all parameters.
 *
 * Returns: %TRUE on success; filling with zeros may fail
 *
 * Since: 0.1
 */
gboolean
gtorch_module_zero_grad (GTorchModule *self, gboolean set_to_none, GError **error)
{
  g_autoptr (GPtrArray) parameters = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  parameters = dup_parameters (self);
  guard = gtorch_no_grad ();
  return gtorch_zero_grads (parameters, set_to_none, error);
}

/**
 * gtorch_module_set_requires_grad:
 * @self: a module
 * @requires_grad: whether the parameters require grad
 * @error: return location for an error
 *
 * Sets whether all parameters require grad. A module without is frozen.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_module_set_requires_grad (GTorchModule *self, gboolean requires_grad, GError **error)
{
  g_autoptr (GPtrArray) parameters = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  parameters = dup_parameters (self);
  for (i = 0; i < parameters->len; i++)
    if (!gtorch_impl_check_requires_grad (gtorch_tensor_unwrap (parameters->pdata[i]),
                                          requires_grad, error))
      return FALSE;
  for (i = 0; i < parameters->len; i++)
    if (!gtorch_tensor_set_requires_grad (parameters->pdata[i], requires_grad, error))
      return FALSE;
  return TRUE;
}

typedef struct
{
  GTorchModuleFunc func;
  gpointer user_data;
} Apply;

static gboolean
apply_to (GTorchModule *module, gpointer user_data, GError **error)
{
  const Apply *apply = user_data;
  GError *local = NULL;
  gboolean success = apply->func (module, apply->user_data, &local);

  return gtorch_callback_ended ("module_apply", success, local, error);
}

/**
 * gtorch_module_apply:
 * @self: a module
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: data for @func
 * @error: return location for an error
 *
 * Calls a function for all descendants, children before their parents, and last for the module itself.
 * Stops at the first failure.
 *
 * Returns: %TRUE, or %FALSE with the error of @func
 *
 * Since: 0.1
 */
gboolean
gtorch_module_apply (GTorchModule *self, GTorchModuleFunc func, gpointer user_data, GError **error)
{
  Apply apply = { func, user_data };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  return gtorch_module_walk (self, FALSE, NULL, apply_to, &apply, error);
}

#define MOST_LEVELS 200

static void
append_lines (GString *text, const gchar *lines, guint indent)
{
  g_auto (GStrv) each = g_strsplit (lines, "\n", -1);
  guint i;

  for (i = 0; each[i] != NULL; i++)
    g_string_append_printf (text, "\n%*s%s", (gint) indent, "", each[i]);
}

static void
append_range (GString *text, const gchar *first, const gchar *last, guint n, const gchar *child,
              guint depth)
{
  if (n > 1)
    g_string_append_printf (text, "\n%*s(%s-%s): %u x %s", (gint) (2 * depth + 2), "", first, last,
                            n, child);
  else
    g_string_append_printf (text, "\n%*s(%s): %s", (gint) (2 * depth + 2), "", first, child);
}

static void append_string (GTorchModule *self, GString *text, guint depth);

/* Appends the children in lines of their own; in a ModuleList, equal neighbours have one together. */
static void
append_children (GTorchModule *self, GPtrArray *children, gchar **names, GString *text, guint depth)
{
  const gboolean joins = GTORCH_IS_MODULE_LIST (self);
  g_autoptr (GString) former = g_string_new (NULL);
  guint first = 0, i;

  for (i = 0; i < children->len; i++)
    {
      g_autoptr (GString) own = g_string_new (NULL);

      append_string (children->pdata[i], own, depth + 1);
      if (i > first && (!joins || !g_string_equal (own, former)))
        {
          append_range (text, names[first], names[i - 1], i - first, former->str, depth);
          first = i;
        }
      g_string_assign (former, own->str);
    }
  if (i > first)
    append_range (text, names[first], names[i - 1], i - first, former->str, depth);
}

static void
append_string (GTorchModule *self, GString *text, guint depth)
{
  GTorchModuleClass *klass = GTORCH_MODULE_GET_CLASS (self);
  g_autofree gchar *extra = klass->extra_repr != NULL ? klass->extra_repr (self) : NULL;
  g_auto (GStrv) names = NULL;
  g_autoptr (GPtrArray) children = gtorch_module_dup_children (self, &names);
  const gboolean has_lines = extra != NULL && strchr (extra, '\n') != NULL;

  g_string_append_printf (text, "%s(", gtorch_module_type_name (self));
  if (depth == MOST_LEVELS && children->len > 0)
    {
      g_string_append (text, "…)");
      return;
    }
  if (extra != NULL && children->len == 0 && !has_lines)
    g_string_append (text, extra);
  else if (extra != NULL && extra[0] != '\0')
    append_lines (text, extra, 2 * depth + 2);
  append_children (self, children, names, text, depth);
  if (children->len > 0 || has_lines)
    g_string_append_printf (text, "\n%*s", 2 * depth, "");
  g_string_append_c (text, ')');
}

/**
 * gtorch_module_to_string:
 * @self: a module
 *
 * Describes the module and its descendants, one per line; an ellipsis stands for those below the 200th level.
 *
 * Returns: (transfer full): the text
 *
 * Since: 0.1
 */
gchar *
gtorch_module_to_string (GTorchModule *self)
{
  GString *text;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  text = g_string_new (NULL);
  append_string (self, text, 0);
  return g_string_free (text, FALSE);
}
