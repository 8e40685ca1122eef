/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-tensor-dataset.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-references-private.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-sample-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchTensorDataset:
 *
 * Samples that are the rows of tensors: sample i is a tuple of row i of each.
 *
 * The rows of a batch are copied at once, to where the batch is; single samples are views. The tensors
 * may be on a device.
 *
 * ```c
 * GTorchTensor *tensors[] = { images, labels };
 * g_autoptr (GTorchTensorDataset) dataset = gtorch_tensor_dataset_new (tensors, 2, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchTensorDataset
{
  GTorchDataset parent_instance;
  GPtrArray *tensors;
  gint64 length;
};

G_DEFINE_TYPE (GTorchTensorDataset, gtorch_tensor_dataset, GTORCH_TYPE_DATASET)

static gint64
gtorch_tensor_dataset_get_length (GTorchDataset *dataset, GError **error)
{
  return GTORCH_TENSOR_DATASET (dataset)->length;
}

/* Takes the samples' parts. */
static GTorchSample *
pack (GPtrArray *parts)
{
  const guint n = parts->len;

  g_ptr_array_add (parts, NULL);
  return gtorch_sample_take ((GTorchSample **) g_ptr_array_free (parts, FALSE), n, NULL);
}

static void
drop_parts (GPtrArray *parts)
{
  g_ptr_array_set_free_func (parts, (GDestroyNotify) gtorch_sample_unref);
  g_ptr_array_unref (parts);
}

static GTorchSample *
gtorch_tensor_dataset_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable,
                                GError **error)
{
  GTorchTensorDataset *self = GTORCH_TENSOR_DATASET (dataset);
  GPtrArray *parts;
  guint i;

  if (!gtorch_index_check ("tensor_dataset", index, self->length, error))
    return NULL;
  parts = g_ptr_array_new ();
  for (i = 0; i < self->tensors->len; i++)
    {
      GTorchTensor *row = gtorch_tensor_select (self->tensors->pdata[i], 0, index, error);

      if (row == NULL)
        {
          drop_parts (parts);
          return NULL;
        }
      g_ptr_array_add (parts, gtorch_sample_take_tensor (row));
    }
  return pack (parts);
}

static GTorchSample *
gtorch_tensor_dataset_get_batch (GTorchDataset *dataset, const gint64 *indices, gsize n,
                                 GCancellable *cancellable, GError **error)
{
  GTorchTensorDataset *self = GTORCH_TENSOR_DATASET (dataset);
  GPtrArray *parts;
  guint i;
  gsize k;

  for (k = 0; k < n; k++)
    if (!gtorch_index_check ("tensor_dataset", indices[k], self->length, error))
      return NULL;
  parts = g_ptr_array_new ();
  for (i = 0; i < self->tensors->len; i++)
    {
      GTorchTensor *rows = NULL;

      if (!g_cancellable_set_error_if_cancelled (cancellable, error))
        rows = gtorch_sample_select_rows (self->tensors->pdata[i], indices, n, error);
      if (rows == NULL)
        {
          drop_parts (parts);
          return NULL;
        }
      g_ptr_array_add (parts, gtorch_sample_take_tensor (rows));
    }
  return pack (parts);
}

static void
gtorch_tensor_dataset_finalize (GObject *object)
{
  g_clear_pointer (&GTORCH_TENSOR_DATASET (object)->tensors, g_ptr_array_unref);
  G_OBJECT_CLASS (gtorch_tensor_dataset_parent_class)->finalize (object);
}

static void
gtorch_tensor_dataset_add_references (gpointer object, GTorchReferences *references)
{
  gtorch_datasets_add_references (GTORCH_TENSOR_DATASET (object)->tensors, references);
}

static GTorchReferencesType references_type = { .look = gtorch_tensor_dataset_add_references };

static void
gtorch_tensor_dataset_class_init (GTorchTensorDatasetClass *klass)
{
  GTorchDatasetClass *dataset_class = GTORCH_DATASET_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_tensor_dataset_finalize;
  dataset_class->get_length = gtorch_tensor_dataset_get_length;
  dataset_class->get_item = gtorch_tensor_dataset_get_item;
  dataset_class->get_batch = gtorch_tensor_dataset_get_batch;
  references_type.type = GTORCH_TYPE_TENSOR_DATASET;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_tensor_dataset_init (GTorchTensorDataset *self)
{
  self->tensors = g_ptr_array_new_with_free_func (g_object_unref);
}

/**
 * gtorch_tensor_dataset_new:
 * @tensors: (array length=n_tensors): tensors whose first dimensions have the same size
 * @n_tensors: the length of @tensors, at least 1
 * @error: return location for an error
 *
 * Creates a data set of the rows of tensors, which are not copied.
 *
 * Returns: (transfer full): the data set; %NULL with %GTORCH_ERROR_INVALID without tensors, with
 *   %GTORCH_ERROR_SHAPE if one has no dimension or another size, or with %GTORCH_ERROR_RELEASED
 *
 * Since: 0.1
 */
GTorchTensorDataset *
gtorch_tensor_dataset_new (GTorchTensor **tensors, gsize n_tensors, GError **error)
{
  g_autoptr (GTorchTensorDataset) self = NULL;
  gsize i;

  g_return_val_if_fail (tensors != NULL || n_tensors == 0, NULL);
  if (n_tensors == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("tensor_dataset: there must be a tensor"));
      return NULL;
    }
  for (i = 0; i < n_tensors; i++)
    g_return_val_if_fail (GTORCH_IS_TENSOR (tensors[i]), NULL);
  self = g_object_new (GTORCH_TYPE_TENSOR_DATASET, NULL);
  for (i = 0; i < n_tensors; i++)
    {
      const GTorchImpl *first = gtorch_tensor_unwrap (tensors[0]);
      const GTorchImpl *impl = gtorch_tensor_unwrap (tensors[i]);

      if (gtorch_impl_is_released (impl) || impl->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                       _ ("tensor_dataset: tensor %zu, of shape %s, was released"), i,
                       gtorch_impl_shape_str (impl));
          return NULL;
        }
      if (impl->n_dims == 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("tensor_dataset: tensor %zu has no dimensions: samples are the rows of "
                          "tensors"),
                       i);
          return NULL;
        }
      if (impl->shape[0] != first->shape[0])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("tensor_dataset: tensor 0 has the shape %s, and tensor %zu %s: the first "
                          "dimensions must have the same size"),
                       gtorch_impl_shape_str (first), i, gtorch_impl_shape_str (impl));
          return NULL;
        }
      g_ptr_array_add (self->tensors, g_object_ref (tensors[i]));
    }
  self->length = gtorch_tensor_unwrap (tensors[0])->shape[0];
  return g_steal_pointer (&self);
}

/**
 * gtorch_tensor_dataset_get_tensors:
 * @self: a data set
 *
 * Lists the tensors.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_tensor_dataset_get_tensors (GTorchTensorDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR_DATASET (self), NULL);
  return gtorch_datasets_copy (self->tensors);
}
