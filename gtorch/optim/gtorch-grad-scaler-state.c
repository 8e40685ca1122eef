/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "optim/gtorch-grad-scaler-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-state-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "tensor/gtorch-tensor-private.h"
#include "nn/gtorch-module-private.h"

static const gchar *const state_names[] = { "scale", "growth_factor", "backoff_factor",
                                            "growth_interval", "_growth_tracker" };

/**
 * gtorch_grad_scaler_get_scale:
 * @self: a scaler
 * @error: return location for an error
 *
 * Gets the scale. Waits for the device.
 *
 * Returns: the scale; 1 if the scaler is not enabled; 0 with @error set
 *
 * Since: 0.1
 */
gdouble
gtorch_grad_scaler_get_scale (GTorchGradScaler *self, GError **error)
{
  g_autoptr (GTorchTensor) scale = NULL;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), 0);
  if (!self->enabled)
    return 1;
  scale = self->is_stale ? NULL : gtorch_grad_scaler_get_scale_tensor (self);
  return scale != NULL ? gtorch_tensor_item_double (scale, error) : self->initial;
}

/**
 * gtorch_grad_scaler_get_scale_tensor:
 * @self: a scaler
 *
 * Gets the tensor that holds the scale, on the device of the first scaled tensor. Does not wait.
 *
 * Returns: (transfer full) (nullable): a zero-dimensional float32, %NULL until something is scaled
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_grad_scaler_get_scale_tensor (GTorchGradScaler *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), NULL);
  return self->scale != NULL ? gtorch_tensor_wrap (gtorch_impl_ref (self->scale)) : NULL;
}

/**
 * gtorch_grad_scaler_is_enabled:
 * @self: a scaler
 *
 * Tells whether the scaler is enabled.
 *
 * Returns: [property@GradScaler:enabled]
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_is_enabled (GTorchGradScaler *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  return self->enabled;
}

/**
 * gtorch_grad_scaler_state_dict:
 * @self: a scaler
 * @error: return location for an error
 *
 * Gets the state with which another scaler can continue the training, as numbers of float64: `scale`,
 * `growth_factor`, `backoff_factor`, `growth_interval` and `_growth_tracker`. Waits for the device.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): names and tensors, none if the scaler
 *   is not enabled; %NULL with @error set
 *
 * Since: 0.1
 */
GHashTable *
gtorch_grad_scaler_state_dict (GTorchGradScaler *self, GError **error)
{
  g_autoptr (GHashTable) dict = NULL;
  gdouble values[5];
  GError *failure = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), NULL);
  dict = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  if (!self->enabled)
    return g_steal_pointer (&dict);
  if (!gtorch_grad_scaler_check (self, error))
    return NULL;
  values[0] = gtorch_grad_scaler_get_scale (self, &failure);
  values[1] = self->growth_factor;
  values[2] = self->backoff_factor;
  values[3] = self->growth_interval;
  values[4] = self->initial_tracker;
  if (failure == NULL && self->tracker != NULL)
    {
      g_autoptr (GTorchTensor) tracker = gtorch_tensor_wrap (gtorch_impl_ref (self->tracker));

      values[4] = gtorch_tensor_item_double (tracker, &failure);
    }
  if (failure != NULL)
    {
      g_propagate_error (error, failure);
      return NULL;
    }
  for (i = 0; i < G_N_ELEMENTS (state_names); i++)
    {
      GTorchImpl *number = gtorch_impl_new_number (values[i]);

      number->is_number = FALSE;
      g_hash_table_insert (dict, g_strdup (state_names[i]), gtorch_tensor_wrap (number));
    }
  return g_steal_pointer (&dict);
}

/* Writes to the existing memory of the device, which graphs may have captured. */
static gboolean
write_numbers (GTorchGradScaler *self, gdouble scale, gdouble tracker, GError **error)
{
  g_autoptr (GTorchStateWrites) writes = gtorch_state_writes_new ();
  g_autoptr (GTorchImpl) scale_number = gtorch_impl_new_number (scale);
  g_autoptr (GTorchImpl) tracker_number = gtorch_impl_new_number (tracker);

  return self->scale == NULL
         || (gtorch_state_writes_add (writes, self->scale, scale_number, "load_state_dict",
                                      state_names[0], error)
             && gtorch_state_writes_add (writes, self->tracker, tracker_number, "load_state_dict",
                                         state_names[4], error)
             && gtorch_state_writes_run (writes, error));
}

/**
 * gtorch_grad_scaler_load_state_dict:
 * @self: a scaler
 * @state: (element-type utf8 GTorchTensor): the result of [method@GradScaler.state_dict]
 * @error: return location for an error
 *
 * Continues from the state of another scaler. Does nothing if the scaler is not enabled; changes nothing
 * if @state is invalid.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_FOUND listing the missing and the unexpected entries,
 *   or %GTORCH_ERROR_FORMAT naming the invalid entry
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_load_state_dict (GTorchGradScaler *self, GHashTable *state, GError **error)
{
  const gdouble least[] = { G_MINFLOAT, 1, 0, 1, 0 };
  const gdouble most[] = { G_MAXFLOAT, G_MAXFLOAT, 1, G_MAXINT, G_MAXINT };
  const gboolean is_whole[] = { FALSE, FALSE, FALSE, TRUE, TRUE };
  gdouble values[5];
  guint i;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  if (!self->enabled)
    return TRUE;
  if (!gtorch_state_check_keys ("load_state_dict", state, state_names, G_N_ELEMENTS (state_names),
                                error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (state_names); i++)
    {
      GTorchTensor *tensor = g_hash_table_lookup (state, state_names[i]);

      if (!GTORCH_IS_TENSOR (tensor))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("load_state_dict: “%s” is not a tensor"), state_names[i]);
          return FALSE;
        }
      if (!gtorch_state_get_number ("load_state_dict", state_names[i], tensor, least[i], most[i],
                                    is_whole[i], &values[i], error))
        return FALSE;
    }
  if (!write_numbers (self, values[0], values[4], error))
    return FALSE;
  g_object_set (self, "growth-factor", values[1], "backoff-factor", values[2], "growth-interval",
                (gint) values[3], NULL);
  self->initial = values[0];
  self->is_stale = FALSE;
  self->initial_tracker = (gint) values[4];
  return TRUE;
}

/**
 * gtorch_grad_scaler_state_lists:
 * @self: a scaler
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names, in no particular order
 * @error: return location for an error
 *
 * Gets the state of [method@GradScaler.state_dict] as lists.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensor of each name, or %NULL with @error
 * set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_grad_scaler_state_lists (GTorchGradScaler *self, gchar ***names, GError **error)
{
  g_autoptr (GHashTable) dict = NULL;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), NULL);
  dict = gtorch_grad_scaler_state_dict (self, error);
  return dict != NULL ? gtorch_state_to_lists (dict, names) : NULL;
}

/**
 * gtorch_grad_scaler_load_state_lists:
 * @self: a scaler
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @error: return location for an error
 *
 * Does the same as [method@GradScaler.load_state_dict].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the lengths differ or a name appears twice,
 *   and with the errors of
 *   [method@GradScaler.load_state_dict]
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_load_state_lists (GTorchGradScaler *self, const gchar *const *names,
                                     GTorchTensor **tensors, gsize n_tensors, GError **error)
{
  GTORCH_HOLD_TENSORS (tensors, n_tensors);
  g_autoptr (GHashTable) state = NULL;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  state = gtorch_state_from_lists (names, tensors, n_tensors, error);
  return state != NULL && gtorch_grad_scaler_load_state_dict (self, state, error);
}
