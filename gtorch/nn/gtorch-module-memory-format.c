/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The order of the dimensions of parameters in memory. Convolutions compute with the strides that their
 * operands have, and give their results those of the channels last if an operand has them. */

#include "config.h"

#include "nn/gtorch-module-memory-format.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-memory-format-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-module-private.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  GType types[2];
  GPtrArray *layers;
} Search;

static void
find_layers (GTorchModule *module, const gchar *path, gpointer data)
{
  Search *search = data;

  for (guint i = 0; i < G_N_ELEMENTS (search->types); i++)
    if (g_type_is_a (G_OBJECT_TYPE (module), search->types[i]))
      g_ptr_array_add (search->layers, g_object_ref (module));
}

/* Returns the weights of the layers; none is computed or has no elements yet. */
static GPtrArray *
find_weights (const gchar *who, GPtrArray *layers, GError **error)
{
  g_autoptr (GPtrArray) weights = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < layers->len; i++)
    {
      GTorchModule *layer = layers->pdata[i];
      GTorchTensor *weight;

      if (gtorch_module_is_computed (layer, "weight")
          || gtorch_module_has_uninitialized_params (layer))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("%s: the weight of a %s is computed from other tensors, or has no "
                          "elements yet"),
                       who, gtorch_module_type_name (layer));
          return NULL;
        }
      weight = gtorch_module_get_tensor (layer, "weight", error);
      if (weight == NULL)
        return NULL;
      g_ptr_array_add (weights, weight);
    }
  return g_steal_pointer (&weights);
}

/* Gives the tensors memory of that order: all, or none after an error. */
static gboolean
lay_out (GPtrArray *tensors, GTorchMemoryFormat format, GError **error)
{
  g_autoptr (GPtrArray) copies = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  for (guint i = 0; i < tensors->len; i++)
    {
      g_autoptr (GTorchImpl) alias = gtorch_impl_alias (gtorch_tensor_unwrap (tensors->pdata[i]));
      GTorchImpl *copy = gtorch_impl_to_memory_format (alias, format, error);

      if (copy == NULL)
        return FALSE;
      g_ptr_array_add (copies, gtorch_tensor_wrap (copy));
    }
  for (guint i = 0; i < tensors->len; i++)
    if (!gtorch_tensor_set_data (tensors->pdata[i], copies->pdata[i], error))
      return FALSE;
  return TRUE;
}

static gboolean
convert (const gchar *who, GTorchModule *self, const GType *types, GTorchMemoryFormat format,
         GTorchMemoryFormat last, GError **error)
{
  g_autoptr (GPtrArray) layers = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) weights = NULL;
  Search search = { { types[0], types[1] }, layers };

  if (format != last && format != GTORCH_MEMORY_FORMAT_CONTIGUOUS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: memory_format %d is not that of its weights: it must be %d, contiguous, "
                      "or %d, channels last"),
                   who, (gint) format, GTORCH_MEMORY_FORMAT_CONTIGUOUS, (gint) last);
      return FALSE;
    }
  gtorch_module_visit (self, TRUE, find_layers, &search);
  weights = find_weights (who, layers, error);
  if (weights == NULL)
    return FALSE;
  return lay_out (weights, format, error);
}

static void
add_fitting (GListModel *list, guint n_dims, GPtrArray *found)
{
  for (guint i = 0; i < g_list_model_get_n_items (list); i++)
    {
      g_autoptr (GTorchTensor) tensor = g_list_model_get_item (list, i);

      if (n_dims == 0 || gtorch_tensor_get_n_dims (tensor) == n_dims)
        g_ptr_array_add (found, g_steal_pointer (&tensor));
    }
}

/**
 * gtorch_module_to_memory_format:
 * @self: a module
 * @memory_format: the order of the dimensions in memory
 * @error: return location for an error
 *
 * Gives the parameters and buffers of the module and its descendants, of those with as many dimensions as the
 * format has, that order in memory. Values and shapes stay, and so do the parameters. With the channels last,
 * a network of convolutions, norms, element-wise operations and pooling computes without copies of images if
 * it is given images in that order, too (see [method@Tensor.to_memory_format]).
 *
 * ```c
 * gtorch_module_to_memory_format (net, GTORCH_MEMORY_FORMAT_CHANNELS_LAST, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if there is no such format, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if a parameter has no elements yet, and then nothing has changed
 *
 * Since: 0.1
 */
gboolean
gtorch_module_to_memory_format (GTorchModule *self, GTorchMemoryFormat memory_format,
                                GError **error)
{
  const gint n_dims = gtorch_memory_format_n_dims (memory_format);
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GListModel) parameters = NULL, buffers = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  if (n_dims < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("to_memory_format: there is no memory format %d"), (gint) memory_format);
      return FALSE;
    }
  if (gtorch_module_has_uninitialized_params (self))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("to_memory_format: a parameter has no elements yet"));
      return FALSE;
    }
  parameters = gtorch_module_get_parameters (self, TRUE);
  buffers = gtorch_module_get_buffers (self, TRUE);
  add_fitting (parameters, n_dims, found);
  add_fitting (buffers, n_dims, found);
  return lay_out (found, memory_format, error);
}

/**
 * gtorch_module_convert_conv2d_weight_memory_format:
 * @self: a module
 * @memory_format: %GTORCH_MEMORY_FORMAT_CHANNELS_LAST or %GTORCH_MEMORY_FORMAT_CONTIGUOUS
 * @error: return location for an error
 *
 * Changes the order in memory of the dimensions of the weights, [out, in, H, W], that the module and its
 * descendants of classes [class@Conv2d] and [class@ConvTranspose2d] have. Values and shapes stay, and so do
 * the parameters. With the channels last, the results of these layers have theirs last as well, and so have
 * those of layers behind them, without copies of images.
 *
 * ```c
 * gtorch_module_convert_conv2d_weight_memory_format (net, GTORCH_MEMORY_FORMAT_CHANNELS_LAST, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID for another format, or %GTORCH_ERROR_NOT_SUPPORTED if a
 *   weight is computed or has no elements yet, and then nothing has changed
 *
 * Since: 0.1
 */
gboolean
gtorch_module_convert_conv2d_weight_memory_format (GTorchModule *self,
                                                   GTorchMemoryFormat memory_format, GError **error)
{
  const GType types[] = { GTORCH_TYPE_CONV2D, GTORCH_TYPE_CONV_TRANSPOSE2D };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  return convert ("convert_conv2d_weight_memory_format", self, types, memory_format,
                  GTORCH_MEMORY_FORMAT_CHANNELS_LAST, error);
}

/**
 * gtorch_module_convert_conv3d_weight_memory_format:
 * @self: a module
 * @memory_format: %GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D or %GTORCH_MEMORY_FORMAT_CONTIGUOUS
 * @error: return location for an error
 *
 * Does what [method@Module.convert_conv2d_weight_memory_format] does for [class@Conv3d] and
 * [class@ConvTranspose3d].
 *
 * Returns: %TRUE, or %FALSE with the errors of [method@Module.convert_conv2d_weight_memory_format]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_convert_conv3d_weight_memory_format (GTorchModule *self,
                                                   GTorchMemoryFormat memory_format, GError **error)
{
  const GType types[] = { GTORCH_TYPE_CONV3D, GTORCH_TYPE_CONV_TRANSPOSE3D };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  return convert ("convert_conv3d_weight_memory_format", self, types, memory_format,
                  GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D, error);
}
