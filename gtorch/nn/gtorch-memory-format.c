/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The order of the dimensions of weights in memory. Convolutions compute with the strides that their operands
 * have, and give their results those of the channels last if an operand has them. */

#include "config.h"

#include "nn/gtorch-memory-format.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-module-private.h"
#include "tensor/gtorch-tensor-private.h"

GType
gtorch_memory_format_get_type (void)
{
  static gsize type;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_MEMORY_FORMAT_CONTIGUOUS, "GTORCH_MEMORY_FORMAT_CONTIGUOUS", "contiguous" },
        { GTORCH_MEMORY_FORMAT_CHANNELS_LAST, "GTORCH_MEMORY_FORMAT_CHANNELS_LAST",
          "channels-last" },
        { GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D, "GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D",
          "channels-last-3d" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchMemoryFormat", values));
    }
  return type;
}

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

/* Returns a copy whose dimensions are in that order in memory. */
static GTorchImpl *
lay_out (GTorchImpl *weight, gboolean channels_last, GError **error)
{
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) placed = NULL;

  if (!channels_last)
    return gtorch_op_contiguous (weight, error);
  turned = gtorch_op_movedim (weight, (const gint64[]){ 1 }, 1, (const gint64[]){ -1 }, 1, error);
  placed = turned != NULL ? gtorch_op_contiguous (turned, error) : NULL;
  return placed != NULL ? gtorch_op_movedim (placed, (const gint64[]){ -1 }, 1,
                                             (const gint64[]){ 1 }, 1, error)
                        : NULL;
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

static gboolean
convert (const gchar *who, GTorchModule *self, const GType *types, GTorchMemoryFormat format,
         GTorchMemoryFormat last, GError **error)
{
  g_autoptr (GPtrArray) layers = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) copies = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) weights = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;
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
  guard = gtorch_no_grad ();
  for (guint i = 0; i < weights->len; i++)
    {
      g_autoptr (GTorchImpl) alias = gtorch_impl_alias (gtorch_tensor_unwrap (weights->pdata[i]));
      GTorchImpl *copy = lay_out (alias, format == last, error);

      if (copy == NULL)
        return FALSE;
      g_ptr_array_add (copies, gtorch_tensor_wrap (copy));
    }
  for (guint i = 0; i < weights->len; i++)
    if (!gtorch_tensor_set_data (weights->pdata[i], copies->pdata[i], error))
      return FALSE;
  return TRUE;
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
