/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The order of the dimensions of tensors in memory. Convolutions, pooling, batch norms, casts and
 * element-wise operations give images whose channels are last results of that order. */

#include "config.h"

#include "elements/gtorch-memory-format-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "gtorch-ops-private.h"
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

gint
gtorch_memory_format_n_dims (GTorchMemoryFormat format)
{
  switch (format)
    {
    case GTORCH_MEMORY_FORMAT_CONTIGUOUS:
      return 0;
    case GTORCH_MEMORY_FORMAT_CHANNELS_LAST:
      return 4;
    case GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D:
      return 5;
    default:
      return -1;
    }
}

static gboolean
has_format (const GTorchImpl *impl, GTorchMemoryFormat format)
{
  gint64 stride = 1;
  guint k;

  if (format == GTORCH_MEMORY_FORMAT_CONTIGUOUS)
    return impl->is_contiguous;
  if (impl->n_dims != (guint) gtorch_memory_format_n_dims (format))
    return FALSE;
  for (k = 0; k < impl->n_dims; k++) /* from the innermost one: 1, the last … the third, 0 */
    {
      const guint i = k == 0 ? 1 : k == impl->n_dims - 1 ? 0 : impl->n_dims - k;

      if (impl->shape[i] != 1 && impl->strides[i] != stride)
        return FALSE;
      stride *= impl->shape[i];
    }
  return TRUE;
}

GTorchImpl *
gtorch_impl_to_memory_format (GTorchImpl *impl, GTorchMemoryFormat format, GError **error)
{
  const gint64 first = 1, last = -1;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) placed = NULL;

  if (format == GTORCH_MEMORY_FORMAT_CONTIGUOUS)
    return gtorch_op_contiguous (impl, error);
  if (!gtorch_impl_is_released (impl) && has_format (impl, format))
    return gtorch_impl_ref (impl);
  turned = gtorch_op_movedim (impl, &first, 1, &last, 1, error);
  placed = turned != NULL ? gtorch_op_contiguous (turned, error) : NULL;
  return placed != NULL ? gtorch_op_movedim (placed, &last, 1, &first, 1, error) : NULL;
}

/**
 * gtorch_tensor_to_memory_format:
 * @self: a tensor
 * @memory_format: the order of the dimensions in memory
 * @error: return location for an error
 *
 * Gets the tensor with its dimensions in that order in memory: itself, or a copy of the same shape and
 * values. With the channels last, the tensor cores of GPUs compute convolutions without copies of
 * images, if the images and the weights of the module (see [method@Module.to_memory_format]) are so.
 *
 * ```python
 * model.to(memory_format=torch.channels_last)
 * y = model(x.to(memory_format=torch.channels_last))
 * ```
 *
 * Returns: (transfer full): the tensor; %NULL with %GTORCH_ERROR_SHAPE if it has not the 4 dimensions of
 *   images or the 5 of volumes, or with %GTORCH_ERROR_INVALID if there is no such format
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_to_memory_format (GTorchTensor *self, GTorchMemoryFormat memory_format,
                                GError **error)
{
  const gint n_dims = gtorch_memory_format_n_dims (memory_format);
  GTorchImpl *impl, *result;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (n_dims < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("to_memory_format: there is no memory format %d"), (gint) memory_format);
      return NULL;
    }
  if (n_dims > 0 && impl->n_dims != (guint) n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("to_memory_format: a tensor of shape %s has no channels to be last: %d "
                      "dimensions are wanted"),
                   gtorch_impl_shape_str (impl), n_dims);
      return NULL;
    }
  result = gtorch_impl_to_memory_format (impl, memory_format, error);
  if (result == impl)
    {
      gtorch_impl_unref (result);
      return g_object_ref (self);
    }
  return result != NULL ? gtorch_tensor_wrap (result) : NULL;
}

/**
 * gtorch_tensor_has_memory_format:
 * @self: a tensor
 * @memory_format: an order of the dimensions in memory
 *
 * Tells whether the tensor is dense, with its dimensions in that order. With one channel, or with images of
 * one pixel, several formats are the same.
 *
 * Returns: %TRUE if so; %FALSE also if the tensor has another number of dimensions than the format
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_has_memory_format (GTorchTensor *self, GTorchMemoryFormat memory_format)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_memory_format_n_dims (memory_format) >= 0
         && has_format (gtorch_tensor_unwrap (self), memory_format);
}
