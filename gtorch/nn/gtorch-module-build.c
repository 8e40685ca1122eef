/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Helpers for the construction of layers. A failure is stored until the layer is first used. */

#include "config.h"

#include "autograd/gtorch-tensor-autograd.h"
#include "nn/gtorch-module-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-uninitialized-private.h"

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

/* Takes ownership of impl, which is NULL if that failed. */
static GTorchTensor *
add_parameter (GTorchModule *self, const gchar *name, GTorchImpl *impl, GError *error)
{
  g_autoptr (GTorchTensor) parameter = NULL;

  if (impl != NULL)
    {
      parameter = gtorch_tensor_wrap_as (GTORCH_TYPE_PARAMETER, impl);
      if (!gtorch_tensor_set_requires_grad (parameter, TRUE, &error)
          || !gtorch_module_register_parameter (self, name, GTORCH_PARAMETER (parameter), &error))
        g_clear_object (&parameter);
    }
  if (parameter == NULL)
    {
      g_prefix_error (&error, "%s: ", gtorch_module_type_name (self));
      gtorch_module_set_error (self, error);
    }
  return g_steal_pointer (&parameter);
}

GTorchTensor *
gtorch_module_add_parameter (GTorchModule *self, const gchar *name, const gint64 *shape,
                             guint n_dims)
{
  GError *error = NULL;
  GTorchImpl *impl;

  if (gtorch_module_get_private (self)->error != NULL)
    return NULL;
  impl = gtorch_op_empty (shape, n_dims, GTORCH_DTYPE_NONE, NULL, &error);
  return add_parameter (self, name, impl, error);
}

GTorchTensor *
gtorch_module_add_uninitialized (GTorchModule *self, const gchar *name)
{
  const gint64 shape = 0;
  g_autoptr (GTorchImpl) like = NULL; /* has the default device and dtype */
  GTorchImpl *impl = NULL;
  GError *error = NULL;

  if (gtorch_module_get_private (self)->error != NULL)
    return NULL;
  like = gtorch_op_empty (&shape, 1, GTORCH_DTYPE_NONE, NULL, &error);
  if (like != NULL)
    impl = gtorch_impl_new_uninitialized (like->device, like->dtype);
  return add_parameter (self, name, impl, error);
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
