/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Helpers for the construction of layers. A failure is stored until the layer is first used. */

#include "config.h"

#include "nn/gtorch-module-private.h"
#include "gtorch-ops-private.h"

void
gtorch_module_set_error (GTorchModule *self, GError *error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);

  if (priv->error == NULL)
    priv->error = error;
  else
    g_error_free (error);
}

gpointer
gtorch_module_checked (gpointer self, GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);

  if (priv->error == NULL)
    return self;
  g_propagate_error (error, g_steal_pointer (&priv->error));
  g_object_unref (self);
  return NULL;
}

GTorchTensor *
gtorch_module_add_parameter (GTorchModule *self, const gchar *name, const gint64 *shape,
                             guint n_dims)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autoptr (GTorchImpl) impl = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchParameter) parameter = NULL;
  GError *error = NULL;

  if (priv->error != NULL)
    return NULL;
  impl = gtorch_op_empty (shape, n_dims, GTORCH_DTYPE_NONE, NULL, &error);
  if (impl != NULL)
    {
      tensor = gtorch_tensor_wrap (g_steal_pointer (&impl));
      parameter = gtorch_parameter_new (tensor, TRUE, &error);
    }
  if (parameter == NULL || !gtorch_module_register_parameter (self, name, parameter, &error))
    {
      g_prefix_error (&error, "%s: ", gtorch_module_type_name (self));
      gtorch_module_set_error (self, error);
      return NULL;
    }
  return (GTorchTensor *) g_steal_pointer (&parameter);
}

void
gtorch_module_add_buffer (GTorchModule *self, const gchar *name, GTorchImpl *impl,
                          gboolean is_count)
{
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (impl);
  GArray *buffers = gtorch_module_get_private (self)->buffers;

  gtorch_module_register_buffer (self, name, tensor, TRUE, NULL);
  gtorch_module_lock (self);
  g_array_index (buffers, GTorchMember, buffers->len - 1).is_count = is_count;
  gtorch_module_unlock (self);
}
