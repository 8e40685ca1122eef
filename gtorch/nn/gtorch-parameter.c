/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-parameter.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-field-private.h"
#include "nn/gtorch-module-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/**
 * GTorchParameter:
 *
 * A tensor that a module learns.
 *
 * It requires grad by default; [method@Module.get_parameters] lists it and optimizers update it.
 *
 * ```c
 * g_autoptr (GTorchTensor) ones = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, &error);
 * g_autoptr (GTorchParameter) scale = gtorch_parameter_new (ones, TRUE, &error);
 *
 * gtorch_module_register_parameter (module, "scale", scale, &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchParameter
{
  GTorchTensor parent_instance;
  gchar *name;
  GWeakRef module; /* in which it was registered */
};

G_DEFINE_TYPE (GTorchParameter, gtorch_parameter, GTORCH_TYPE_TENSOR)

static void
gtorch_parameter_finalize (GObject *object)
{
  g_free (GTORCH_PARAMETER (object)->name);
  g_weak_ref_clear (&GTORCH_PARAMETER (object)->module);
  G_OBJECT_CLASS (gtorch_parameter_parent_class)->finalize (object);
}

static void
get_full_name (gpointer object, const GTorchField *field, GValue *value)
{
  g_value_take_string (value, gtorch_parameter_dup_full_name (object));
}

typedef GTorchParameter Self;

static const GTorchField fields[] = {
  /**
   * GTorchParameter:name:
   *
   * The name of the parameter in the module in which it was first registered.
   *
   * Since: 0.1
   */
  { "name", GTORCH_PROPERTY_STRING (gtorch_parameter_get_name, gtorch_parameter_set_name) },
  /**
   * GTorchParameter:full-name: (getter dup_full_name)
   *
   * The path of the parameter from the outermost module on, such as `encoder.0.weight`. What is registered
   * further out later changes it without a notification.
   *
   * Since: 0.1
   */
  { "full-name", GTORCH_FIELD_STRING, .get_value = get_full_name },
};

static void
gtorch_parameter_class_init (GTorchParameterClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_parameter_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_parameter_init (GTorchParameter *self)
{
  g_weak_ref_init (&self->module, NULL);
}

/**
 * gtorch_parameter_new:
 * @data: the initial values; the parameter shares their memory
 * @requires_grad: whether it requires grad
 * @error: return location for an error
 *
 * Creates a parameter from a tensor.
 *
 * Returns: (transfer full): a new parameter, or %NULL with %GTORCH_ERROR_AUTOGRAD if @data contains
 *   integers and @requires_grad is %TRUE
 *
 * Since: 0.1
 */
GTorchParameter *
gtorch_parameter_new (GTorchTensor *data, gboolean requires_grad, GError **error)
{
  GTORCH_HOLD_TENSOR (data);
  g_autoptr (GTorchTensor) self = NULL;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (data), NULL);
  impl = gtorch_tensor_unwrap (data);
  if (impl->storage == NULL && !gtorch_impl_is_uninitialized (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("parameter: the tensor of shape %s was released"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  self = gtorch_tensor_wrap_as (GTORCH_TYPE_PARAMETER, gtorch_impl_alias (impl));
  if (requires_grad && !gtorch_tensor_set_requires_grad (self, TRUE, error))
    return NULL;
  return GTORCH_PARAMETER (g_steal_pointer (&self));
}

/**
 * gtorch_parameter_get_name: (get-property name)
 * @self: a parameter
 *
 * Gets the name of the parameter in its module.
 *
 * Returns: (nullable): the name, or %NULL
 *
 * Since: 0.1
 */
const gchar *
gtorch_parameter_get_name (GTorchParameter *self)
{
  g_return_val_if_fail (GTORCH_IS_PARAMETER (self), NULL);
  return self->name;
}

/**
 * gtorch_parameter_set_name: (set-property name)
 * @self: a parameter
 * @name: (nullable): a name
 *
 * Sets the name of the parameter. [method@Module.register_parameter] does so if it has none.
 *
 * Since: 0.1
 */
void
gtorch_parameter_set_name (GTorchParameter *self, const gchar *name)
{
  g_return_if_fail (GTORCH_IS_PARAMETER (self));
  g_return_if_fail (name == NULL || g_utf8_validate (name, -1, NULL));
  if (g_strcmp0 (name, self->name) == 0)
    return;
  g_free (self->name);
  self->name = g_strdup (name);
  g_object_notify (G_OBJECT (self), "name");
}

void
gtorch_parameter_join (GTorchParameter *self, GTorchModule *module, const gchar *name)
{
  if (self == NULL)
    return;
  if (self->name == NULL)
    gtorch_parameter_set_name (self, name);
  gtorch_module_be_inside (&self->module, module, self);
  g_object_notify (G_OBJECT (self), "full-name");
}

/**
 * gtorch_parameter_dup_full_name: (get-property full-name)
 * @self: a parameter
 *
 * Gets the path of the parameter from the outermost module on: the names by which
 * [method@Module.get_parameter] of that module finds it, with dots between them.
 *
 * Of a parameter that several modules have, and of a module that is inside several others, the first one
 * that still exists and still has it counts.
 *
 * ```c
 * g_autofree gchar *name = gtorch_parameter_dup_full_name (parameter);
 *
 * g_print ("%s\n", name); // 0.weight
 * ```
 *
 * Returns: (transfer full) (nullable): the path; the name alone of a parameter that is in no module, %NULL
 *   if it has none
 *
 * Since: 0.1
 */
gchar *
gtorch_parameter_dup_full_name (GTorchParameter *self)
{
  gchar *path;

  g_return_val_if_fail (GTORCH_IS_PARAMETER (self), NULL);
  path = gtorch_module_dup_path (&self->module, self);
  return path != NULL ? path : g_strdup (self->name);
}
