/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Embeddings whose rows are there already. */

#include "config.h"

#include "nn/gtorch-pretrained.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-private.h"
#include "device/gtorch-generator.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parameter.h"
#include "tensor/gtorch-hold-private.h"

/* Creates the layer. No random numbers are drawn for it. */
static gpointer
make (GType type, const gchar *who, GTorchTensor *embeddings, gboolean freeze, GError **error)
{
  GTorchGenerator *generator = gtorch_device_get_default_generator (gtorch_device_get_default ());
  const GTorchImpl *impl = gtorch_tensor_unwrap (embeddings);
  g_autoptr (GTorchParameter) weight = NULL;
  g_autoptr (GTorchModule) layer = NULL;
  g_autoptr (GBytes) drawn = NULL;

  if (impl->n_dims != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: from_pretrained: shape %s is not that of a matrix"), who,
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  weight = gtorch_parameter_new (embeddings, !freeze, error);
  if (weight == NULL)
    return NULL;
  drawn = gtorch_generator_get_state (generator);
  layer = gtorch_module_new (type, error, "num-embeddings", impl->shape[0], "embedding-dim",
                             impl->shape[1], NULL);
  if (layer == NULL || !gtorch_generator_set_state (generator, drawn, error)
      || !gtorch_module_register_parameter (layer, "weight", weight, error))
    return NULL;
  return g_steal_pointer (&layer);
}

/**
 * gtorch_embedding_new_from_pretrained:
 * @embeddings: a matrix with a row for each index
 * @freeze: whether the rows are not learned
 * @error: return location for an error
 *
 * Creates an [class@Embedding] whose weight shares its memory with a tensor. Other settings are properties.
 *
 * Source: PyTorch's `Embedding.from_pretrained`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_SHAPE if @embeddings is no matrix
 *
 * Since: 0.1
 */
GTorchEmbedding *
gtorch_embedding_new_from_pretrained (GTorchTensor *embeddings, gboolean freeze, GError **error)
{
  GTORCH_HOLD_TENSOR (embeddings);

  g_return_val_if_fail (GTORCH_IS_TENSOR (embeddings), NULL);
  return make (GTORCH_TYPE_EMBEDDING, "Embedding", embeddings, freeze, error);
}

/**
 * gtorch_embedding_bag_new_from_pretrained:
 * @embeddings: a matrix with a row for each index
 * @freeze: whether the rows are not learned
 * @error: return location for an error
 *
 * Creates an [class@EmbeddingBag] whose weight shares its memory with a tensor. Other settings are
 * properties.
 *
 * Source: PyTorch's `EmbeddingBag.from_pretrained`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_SHAPE if @embeddings is no matrix
 *
 * Since: 0.1
 */
GTorchEmbeddingBag *
gtorch_embedding_bag_new_from_pretrained (GTorchTensor *embeddings, gboolean freeze, GError **error)
{
  GTORCH_HOLD_TENSOR (embeddings);

  g_return_val_if_fail (GTORCH_IS_TENSOR (embeddings), NULL);
  return make (GTORCH_TYPE_EMBEDDING_BAG, "EmbeddingBag", embeddings, freeze, error);
}
