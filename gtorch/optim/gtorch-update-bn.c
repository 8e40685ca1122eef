/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The statistics of batch normalizations for parameters that are averages. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-none.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-module-private.h"
#include "optim/gtorch-averaged-model.h"
#include "tensor/gtorch-tensor-private.h"

static gboolean
is_batch_norm (gpointer module)
{
  return GTORCH_IS_BATCH_NORM1D (module) || GTORCH_IS_BATCH_NORM2D (module)
         || GTORCH_IS_BATCH_NORM3D (module);
}

/* Fills a buffer, if there is one. */
static gboolean
fill_buffer (GTorchModule *module, const gchar *name, gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) buffer = gtorch_module_get_buffer (module, name, NULL);

  return buffer == NULL || gtorch_op_fill_inplace (gtorch_tensor_unwrap (buffer), value, error);
}

static gboolean
reset (GTorchModule *module, GError **error)
{
  return fill_buffer (module, "running_mean", 0, error)
         && fill_buffer (module, "running_var", 1, error)
         && fill_buffer (module, "num_batches_tracked", 0, error);
}

static gboolean
run_batches (GTorchModule *model, GTorchDevice *device, GTorchBatchFunc next, gpointer user_data,
             GError **error)
{
  for (;;)
    {
      GError *failure = NULL;
      g_autoptr (GTorchTensor) batch = next (user_data, &failure);
      g_autoptr (GTorchTensor) near = NULL;
      g_autoptr (GTorchTensor) output = NULL;

      if (failure != NULL)
        {
          g_propagate_error (error, failure);
          return FALSE;
        }
      if (batch == NULL)
        return TRUE;
      if (!gtorch_callback_check ("update_bn", N_ ("the function"), &batch, GTORCH_TYPE_TENSOR,
                                  error))
        return FALSE;
      if (device != NULL)
        {
          GTorchImpl *moved = gtorch_op_to_device (gtorch_tensor_unwrap (batch),
                                                   gtorch_device_resolved (device), FALSE, error);

          if (moved == NULL)
            return FALSE;
          near = gtorch_tensor_wrap (moved);
        }
      output = gtorch_module_forward (model, near != NULL ? near : batch, error);
      if (output == NULL)
        return FALSE;
    }
}

static void
restore (GTorchModule *model, gboolean was_training, GPtrArray *norms, const gdouble *momenta)
{
  guint i;

  for (i = 0; i < norms->len; i++)
    g_object_set (norms->pdata[i], "momentum", momenta[i], NULL);
  gtorch_module_train (model, was_training);
}

/**
 * gtorch_update_bn:
 * @model: a module, such as a [class@AveragedModel]
 * @device: (nullable): where the batches are moved to, or %NULL
 * @next: (scope call) (closure user_data): gives the batches
 * @user_data: data for @next
 * @error: return location for an error
 *
 * Computes the running statistics of all batch normalizations in a module anew: runs it for all batches, in
 * training mode and with the grad mode off, and lets all batches have the same weight. Mode and momentum are
 * the former ones in the end. If there are no batch normalizations, @next is not called.
 *
 * Returns: %TRUE, or %FALSE with @error set: that of @next or that of the module
 *
 * Since: 0.1
 */
gboolean
gtorch_update_bn (GTorchModule *model, GTorchDevice *device, GTorchBatchFunc next,
                  gpointer user_data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GListModel) modules = NULL;
  g_autoptr (GPtrArray) norms = g_ptr_array_new_with_free_func (g_object_unref);
  g_autofree gdouble *momenta = NULL;
  gboolean was_training, success = TRUE;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (model), FALSE);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), FALSE);
  g_return_val_if_fail (next != NULL, FALSE);
  guard = gtorch_no_grad ();
  modules = gtorch_module_get_modules (model);
  for (i = 0; i < g_list_model_get_n_items (modules); i++)
    {
      g_autoptr (GTorchModule) module = g_list_model_get_item (modules, i);

      if (is_batch_norm (module))
        g_ptr_array_add (norms, g_steal_pointer (&module));
    }
  if (norms->len == 0)
    return TRUE;
  momenta = g_new (gdouble, norms->len);
  for (i = 0; i < norms->len; i++)
    {
      success = success && reset (norms->pdata[i], error);
      g_object_get (norms->pdata[i], "momentum", &momenta[i], NULL);
    }
  if (!success)
    return FALSE;
  was_training = gtorch_module_get_training (model);
  gtorch_module_train (model, TRUE);
  for (i = 0; i < norms->len; i++)
    g_object_set (norms->pdata[i], "momentum", GTORCH_NONE_DOUBLE, NULL);
  success = run_batches (model, device, next, user_data, error);
  restore (model, was_training, norms, momenta);
  return success;
}
