/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-dataset.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-joined-datasets.h"
#include "data/gtorch-sample-private.h"

/**
 * GTorchDataset:
 *
 * Samples with numbers from 0, from which a [class@DataLoader] makes batches.
 *
 * A subclass overrides get_length and get_item, in any language. [class@TensorDataset] has its samples in
 * tensors; [class@Subset], [class@ConcatDataset] and [class@StackDataset] make data sets of others.
 * Samples that only come one after another are those of an [class@IterableDataset].
 *
 * ```c
 * static GTorchSample *
 * squares_get_item (GTorchDataset *self, gint64 index, GCancellable *cancellable, GError **error)
 * {
 *   return gtorch_sample_new_int (index * index);
 * }
 * ```
 *
 * Since: 0.1
 */

typedef struct
{
  gboolean is_thread_safe;
} GTorchDatasetPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchDataset, gtorch_dataset, G_TYPE_OBJECT)

static GTorchDatasetPrivate *
private_of (GTorchDataset *self)
{
  return gtorch_dataset_get_instance_private (self);
}

static void
lacks (GTorchDataset *self, const gchar *what, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("dataset: %s has no %s"),
               G_OBJECT_TYPE_NAME (self), what);
}

static gint64
gtorch_dataset_real_get_length (GTorchDataset *self, GError **error)
{
  lacks (self, "get_length", error);
  return -1;
}

static GTorchSample *
gtorch_dataset_real_get_item (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                              GError **error)
{
  lacks (self, "get_item", error);
  return NULL;
}

typedef GTorchDataset Self;

static const GTorchField fields[] = {
  /**
   * GTorchDataset:thread-safe:
   *
   * Whether several threads may ask for samples at a time.
   *
   * If it is %FALSE, a [class@DataLoader] with workers refuses the data set, unless its fetcher does not
   * call it in threads of this process. It is %FALSE for classes of JavaScript, which has one thread.
   *
   * Since: 0.1
   */
  { "thread-safe",
    GTORCH_PROPERTY_BOOL (gtorch_dataset_get_thread_safe, gtorch_dataset_set_thread_safe),
    .value = TRUE },
};

static void
gtorch_dataset_class_init (GTorchDatasetClass *klass)
{
  GTORCH_FIELDS (klass, fields);
  klass->get_length = gtorch_dataset_real_get_length;
  klass->get_item = gtorch_dataset_real_get_item;
}

static void
gtorch_dataset_init (GTorchDataset *self)
{
  private_of (self)->is_thread_safe = TRUE;
}

/**
 * gtorch_dataset_get_thread_safe: (get-property thread-safe)
 * @self: a data set
 *
 * Tells whether several threads may ask for samples at a time.
 *
 * Returns: %TRUE if they may
 *
 * Since: 0.1
 */
gboolean
gtorch_dataset_get_thread_safe (GTorchDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_DATASET (self), FALSE);
  return private_of (self)->is_thread_safe;
}

/**
 * gtorch_dataset_set_thread_safe: (set-property thread-safe)
 * @self: a data set
 * @thread_safe: whether several threads may ask for samples at a time
 *
 * Says whether several threads may ask for samples at a time.
 *
 * Since: 0.1
 */
void
gtorch_dataset_set_thread_safe (GTorchDataset *self, gboolean thread_safe)
{
  g_return_if_fail (GTORCH_IS_DATASET (self));
  thread_safe = thread_safe != FALSE;
  if (private_of (self)->is_thread_safe == thread_safe)
    return;
  private_of (self)->is_thread_safe = thread_safe;
  g_object_notify (G_OBJECT (self), "thread-safe");
}

gboolean
gtorch_index_check (const gchar *op, gint64 index, gint64 length, GError **error)
{
  if (index >= 0 && index < length)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
               _ ("%s: index %" PRId64 " is out of range for %" PRId64 " samples"), op, index,
               length);
  return FALSE;
}

gboolean
gtorch_dataset_find_index (GTorchDataset *self, gint64 *index, GError **error)
{
  gint64 length, i = *index;

  if (i >= 0)
    return TRUE;
  length = gtorch_dataset_get_length (self, error);
  if (length < 0)
    return FALSE;
  if (i < -length)
    return gtorch_index_check ("dataset", i, length, error);
  *index = i + length;
  return TRUE;
}

/* What a class gave back, which may be of another language. */
static gboolean
check_given (GTorchDataset *self, const gchar *function, gboolean is_there, GError *local,
             GError **error)
{
  if (is_there && local == NULL)
    return TRUE;
  if (local == NULL)
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("dataset: %s of %s gave nothing, without an error"), function,
                 G_OBJECT_TYPE_NAME (self));
  g_propagate_error (error, local);
  return FALSE;
}

static GTorchSample *
take_given (GTorchDataset *self, const gchar *function, GTorchSample *sample, GError *local,
            GError **error)
{
  if (check_given (self, function, sample != NULL, local, error))
    return sample;
  g_clear_pointer (&sample, gtorch_sample_unref);
  return NULL;
}

GTorchSample *
gtorch_dataset_get_raw (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                        GError **error)
{
  GError *local = NULL;
  GTorchSample *sample = NULL;

  if (!g_cancellable_set_error_if_cancelled (cancellable, &local))
    sample = GTORCH_DATASET_GET_CLASS (self)->get_item (self, index, cancellable, &local);
  return take_given (self, "get_item", sample, local, error);
}

gboolean
gtorch_dataset_has_batch (GTorchDataset *self)
{
  return GTORCH_DATASET_GET_CLASS (self)->get_batch != NULL
         && (!GTORCH_IS_CONCAT_DATASET (self) || gtorch_concat_dataset_has_batch (self));
}

/**
 * gtorch_dataset_get_length: (virtual get_length)
 * @self: a data set
 * @error: return location for an error
 *
 * Counts the samples.
 *
 * Returns: the number of samples; -1 with @error set: %GTORCH_ERROR_NOT_SUPPORTED if the data set does
 *   not know it
 *
 * Since: 0.1
 */
gint64
gtorch_dataset_get_length (GTorchDataset *self, GError **error)
{
  GError *local = NULL;
  gint64 length;

  g_return_val_if_fail (GTORCH_IS_DATASET (self), -1);
  length = GTORCH_DATASET_GET_CLASS (self)->get_length (self, &local);
  if (length < 0 && local == NULL)
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("dataset: get_length of %s gave %" PRId64 ", without an error"),
                 G_OBJECT_TYPE_NAME (self), length);
  if (local == NULL)
    return length;
  g_propagate_error (error, local);
  return -1;
}

/**
 * gtorch_dataset_get_item: (virtual get_item)
 * @self: a data set
 * @index: which sample; a negative index counts from the end
 * @cancellable: (nullable): cancels reading it
 * @error: return location for an error
 *
 * Gets one sample.
 *
 * Returns: (transfer full): the sample; %NULL with @error set: %GTORCH_ERROR_INDEX if there is no such one,
 *   %G_IO_ERROR_CANCELLED, or an error of the data set
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_dataset_get_item (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                         GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DATASET (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!gtorch_dataset_find_index (self, &index, error))
    return NULL;
  return gtorch_dataset_get_raw (self, index, cancellable, error);
}

static void
unref_samples (GTorchSample **samples)
{
  guint i;

  for (i = 0; samples[i] != NULL; i++)
    gtorch_sample_unref (samples[i]);
  g_free (samples);
}

/**
 * gtorch_dataset_get_batch: (virtual get_batch)
 * @self: a data set
 * @indices: (array length=n_indices): which samples; negative indices count from the end
 * @n_indices: the length of @indices, at least 1
 * @cancellable: (nullable): cancels reading them
 * @error: return location for an error
 *
 * Gets several samples as one batch, see [func@Sample.collate].
 *
 * Returns: (transfer full): the batch; %NULL with @error set, as by [method@Dataset.get_item], or by
 *   [func@Sample.collate]
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_dataset_get_batch (GTorchDataset *self, const gint64 *indices, gsize n_indices,
                          GCancellable *cancellable, GError **error)
{
  g_autofree gint64 *found = NULL;
  GTorchSample **samples;
  GTorchSample *batch = NULL;
  GError *local = NULL;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_DATASET (self), NULL);
  g_return_val_if_fail (indices != NULL || n_indices == 0, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (n_indices == 0)
    return gtorch_sample_collate (NULL, 0, error);
  found = g_memdup2 (indices, n_indices * sizeof (gint64));
  for (i = 0; i < n_indices; i++)
    if (!gtorch_dataset_find_index (self, &found[i], error))
      return NULL;
  if (gtorch_dataset_has_batch (self))
    {
      if (!g_cancellable_set_error_if_cancelled (cancellable, &local))
        batch = GTORCH_DATASET_GET_CLASS (self)->get_batch (self, found, n_indices, cancellable,
                                                            &local);
      return take_given (self, "get_batch", batch, local, error);
    }
  samples = g_new0 (GTorchSample *, n_indices + 1);
  for (i = 0; i < n_indices; i++)
    if ((samples[i] = gtorch_dataset_get_raw (self, found[i], cancellable, error)) == NULL)
      break;
  if (i == n_indices)
    batch = gtorch_sample_collate (samples, n_indices, error);
  unref_samples (samples);
  return batch;
}

/* --- lists of data sets --- */

gboolean
gtorch_datasets_are_thread_safe (GPtrArray *datasets)
{
  guint i;

  for (i = 0; i < datasets->len; i++)
    if (!gtorch_dataset_get_thread_safe (datasets->pdata[i]))
      return FALSE;
  return TRUE;
}

GPtrArray *
gtorch_datasets_take (const gchar *op, GTorchDataset **datasets, gsize n, GType type,
                      GError **error)
{
  GPtrArray *taken;
  gsize i;

  if (n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there must be a data set"),
                   op);
      return NULL;
    }
  for (i = 0; i < n; i++)
    if (datasets[i] == NULL || !g_type_is_a (G_OBJECT_TYPE (datasets[i]), GTORCH_TYPE_DATASET)
        || g_type_is_a (G_OBJECT_TYPE (datasets[i]), GTORCH_TYPE_ITERABLE_DATASET)
               != (type == GTORCH_TYPE_ITERABLE_DATASET))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     type == GTORCH_TYPE_ITERABLE_DATASET
                         ? _ ("%s: data set %zu is a %s, which is not iterable")
                         : _ ("%s: data set %zu is a %s, whose samples have no indices"),
                     op, i, datasets[i] != NULL ? G_OBJECT_TYPE_NAME (datasets[i]) : "NULL");
        return NULL;
      }
  taken = g_ptr_array_new_full (n, g_object_unref);
  for (i = 0; i < n; i++)
    g_ptr_array_add (taken, g_object_ref (datasets[i]));
  return taken;
}

GPtrArray *
gtorch_datasets_copy (GPtrArray *datasets)
{
  GPtrArray *copy = g_ptr_array_new_full (datasets->len, g_object_unref);
  guint i;

  for (i = 0; i < datasets->len; i++)
    g_ptr_array_add (copy, g_object_ref (datasets->pdata[i]));
  return copy;
}

void
gtorch_datasets_add_references (GPtrArray *datasets, GTorchReferences *references)
{
  guint i;

  for (i = 0; datasets != NULL && i < datasets->len; i++)
    gtorch_references_add_object (references, datasets->pdata[i]);
}
