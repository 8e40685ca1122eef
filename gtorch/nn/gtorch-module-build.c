/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What layers need while they are constructed. A failure is kept for whoever uses the layer first. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "autograd/gtorch-grad-mode.h"
#include "gtorch-init.h"
#include "gtorch-module-private.h"
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

gboolean
gtorch_module_check_size (GTorchModule *self, const gchar *name, gint64 value, gint64 least)
{
  GError *error = NULL;

  if (value >= least)
    return TRUE;
  g_set_error (&error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %s must be at least %" G_GINT64_FORMAT ", it is %" G_GINT64_FORMAT),
               gtorch_module_type_name (self), name, least, value);
  gtorch_module_set_error (self, error);
  return FALSE;
}

GTorchTensor *
gtorch_module_add_parameter (GTorchModule *self, const gchar *name, const gint64 *shape,
                             guint n_dims)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autoptr (GTorchImpl) impl = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  GTorchParameter *parameter = NULL;
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
    }
  g_clear_object (&parameter);
  return gtorch_module_nth_parameter (self, priv->parameters->len - 1);
}

void
gtorch_module_add_buffer (GTorchModule *self, const gchar *name, GTorchImpl *impl)
{
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (impl);

  gtorch_module_register_buffer (self, name, tensor, TRUE, NULL);
}

void
gtorch_module_reset_weights (GTorchModule *self)
{
  GTorchTensor *weight = gtorch_module_nth_parameter (self, 0);
  GTorchTensor *bias = gtorch_module_nth_parameter (self, 1);
  GError *error = NULL;
  gint64 fan_in;
  gdouble bound;

  if (weight == NULL) /* it could not be made */
    return;
  if (gtorch_init_kaiming_uniform (weight, sqrt (5), GTORCH_FAN_MODE_IN,
                                   GTORCH_NONLINEARITY_LEAKY_RELU, NULL, &error)
      && gtorch_init_calculate_fan (weight, &fan_in, NULL, &error))
    {
      bound = fan_in > 0 ? 1 / sqrt ((gdouble) fan_in) : 0;
      if (bias == NULL || gtorch_init_uniform (bias, -bound, bound, NULL, &error))
        return;
    }
  gtorch_module_set_error (self, error);
}

void
gtorch_module_add_norm (GTorchModule *self, const gint64 *shape, guint n_dims, gboolean has_weight,
                        gboolean has_bias)
{
  const gchar *names[] = { "weight", "bias" };
  const gboolean wanted[] = { has_weight, has_bias };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      GTorchTensor *parameter;
      GError *error = NULL;

      if (!wanted[i])
        {
          gtorch_module_register_parameter (self, names[i], NULL, NULL);
          continue;
        }
      parameter = gtorch_module_add_parameter (self, names[i], shape, n_dims);
      if (parameter != NULL && !gtorch_init_constant (parameter, i == 0 ? 1 : 0, &error))
        gtorch_module_set_error (self, error);
    }
}

void
gtorch_module_add_running_stats (GTorchModule *self, gint64 n)
{
  GError *error = NULL;
  g_autoptr (GTorchImpl) mean = gtorch_op_zeros (&n, 1, GTORCH_DTYPE_NONE, NULL, &error);
  g_autoptr (GTorchImpl) var =
      mean != NULL ? gtorch_op_ones (&n, 1, GTORCH_DTYPE_NONE, NULL, &error) : NULL;
  g_autoptr (GTorchImpl) count =
      var != NULL ? gtorch_op_zeros (NULL, 0, GTORCH_DTYPE_INT64, NULL, &error) : NULL;
  GArray *buffers;

  if (count == NULL)
    {
      gtorch_module_set_error (self, error);
      return;
    }
  gtorch_module_add_buffer (self, "running_mean", g_steal_pointer (&mean));
  gtorch_module_add_buffer (self, "running_var", g_steal_pointer (&var));
  gtorch_module_add_buffer (self, "num_batches_tracked", g_steal_pointer (&count));
  buffers = gtorch_module_get_private (self)->buffers;
  g_array_index (buffers, GTorchMember, buffers->len - 1).is_count = TRUE;
}

gboolean
gtorch_module_count_batch (GTorchModule *self, GError **error)
{
  GTorchImpl *count = gtorch_module_buffer_impl (self, 2);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);

  return count == NULL || gtorch_op_add_inplace (count, one, 1, error);
}
