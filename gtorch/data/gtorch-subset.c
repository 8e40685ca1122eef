/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-subset.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-sampler-private.h"

/**
 * GTorchSubset:
 *
 * Some of the samples of another data set, in an order of their own.
 *
 * Since: 0.1
 */
struct _GTorchSubset
{
  GTorchDataset parent_instance;
  GTorchDataset *dataset;
  GTorchSize *indices;
};

G_DEFINE_TYPE (GTorchSubset, gtorch_subset, GTORCH_TYPE_DATASET)

static gint64
gtorch_subset_get_length (GTorchDataset *dataset, GError **error)
{
  GTorchSubset *self = GTORCH_SUBSET (dataset);

  return self->indices != NULL ? (gint64) gtorch_size_get_length (self->indices) : 0;
}

static gboolean
find (GTorchSubset *self, gint64 index, gint64 *found, GError **error)
{
  gsize n = 0;
  const gint64 *indices = self->indices != NULL ? gtorch_size_get_values (self->indices, &n) : NULL;

  if (self->dataset == NULL)
    n = 0;
  if (!gtorch_index_check ("subset", index, n, error))
    return FALSE;
  *found = indices[index];
  return TRUE;
}

static GTorchSample *
gtorch_subset_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable,
                        GError **error)
{
  GTorchSubset *self = GTORCH_SUBSET (dataset);
  gint64 found;

  if (!find (self, index, &found, error))
    return NULL;
  return gtorch_dataset_get_item (self->dataset, found, cancellable, error);
}

static GTorchSample *
gtorch_subset_get_batch (GTorchDataset *dataset, const gint64 *indices, gsize n,
                         GCancellable *cancellable, GError **error)
{
  GTorchSubset *self = GTORCH_SUBSET (dataset);
  g_autofree gint64 *found = g_new (gint64, n);
  gsize i;

  for (i = 0; i < n; i++)
    if (!find (self, indices[i], &found[i], error))
      return NULL;
  return gtorch_dataset_get_batch (self->dataset, found, n, cancellable, error);
}

static void
gtorch_subset_constructed (GObject *object)
{
  GTorchSubset *self = GTORCH_SUBSET (object);

  if (self->dataset != NULL)
    gtorch_dataset_set_thread_safe (GTORCH_DATASET (self),
                                    gtorch_dataset_get_thread_safe (self->dataset));
  G_OBJECT_CLASS (gtorch_subset_parent_class)->constructed (object);
}

static void
gtorch_subset_finalize (GObject *object)
{
  GTorchSubset *self = GTORCH_SUBSET (object);

  g_clear_object (&self->dataset);
  g_clear_pointer (&self->indices, gtorch_size_unref);
  G_OBJECT_CLASS (gtorch_subset_parent_class)->finalize (object);
}

typedef GTorchSubset Self;

static const GTorchField fields[] = {
  /**
   * GTorchSubset:dataset: (getter get_dataset)
   *
   * The data set that has the samples.
   *
   * Since: 0.1
   */
  { "dataset", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchSubset, dataset),
    .type = gtorch_dataset_get_type, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchSubset:indices: (getter get_indices)
   *
   * The samples' indices there.
   *
   * Since: 0.1
   */
  { "indices", GTORCH_FIELD_BOXED, GTORCH_FIELD (GTorchSubset, indices),
    .type = gtorch_size_get_type, .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_subset_add_references (gpointer object, GTorchReferences *references)
{
  gtorch_references_add_object (references, GTORCH_SUBSET (object)->dataset);
}

static GTorchReferencesType references_type = { .look = gtorch_subset_add_references };

static void
gtorch_subset_class_init (GTorchSubsetClass *klass)
{
  GTorchDatasetClass *dataset_class = GTORCH_DATASET_CLASS (klass);

  G_OBJECT_CLASS (klass)->constructed = gtorch_subset_constructed;
  G_OBJECT_CLASS (klass)->finalize = gtorch_subset_finalize;
  dataset_class->get_length = gtorch_subset_get_length;
  dataset_class->get_item = gtorch_subset_get_item;
  dataset_class->get_batch = gtorch_subset_get_batch;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_SUBSET;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_subset_init (GTorchSubset *self)
{
}

/**
 * gtorch_subset_new:
 * @dataset: the data set that has the samples
 * @indices: (array length=n_indices): the samples' indices there; negative ones count from the end
 * @n_indices: the length of @indices
 *
 * Creates a data set of some of the samples of another one. Indices that are out of range there are
 * refused when they are asked for.
 *
 * Returns: (transfer full): the data set
 *
 * Since: 0.1
 */
GTorchSubset *
gtorch_subset_new (GTorchDataset *dataset, const gint64 *indices, gsize n_indices)
{
  g_autoptr (GTorchSize) size = NULL;

  g_return_val_if_fail (GTORCH_IS_DATASET (dataset), NULL);
  g_return_val_if_fail (indices != NULL || n_indices == 0, NULL);
  size = gtorch_size_new (indices, n_indices);
  if (size == NULL)
    return NULL;
  return g_object_new (GTORCH_TYPE_SUBSET, "dataset", dataset, "indices", size, NULL);
}

/**
 * gtorch_subset_get_dataset: (get-property dataset)
 * @self: a subset
 *
 * Gets the data set that has the samples.
 *
 * Returns: (transfer none): the data set
 *
 * Since: 0.1
 */
GTorchDataset *
gtorch_subset_get_dataset (GTorchSubset *self)
{
  g_return_val_if_fail (GTORCH_IS_SUBSET (self), NULL);
  return self->dataset;
}

/**
 * gtorch_subset_get_indices: (get-property indices)
 * @self: a subset
 *
 * Gets the samples' indices in the other data set.
 *
 * Returns: (transfer none): the indices
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_subset_get_indices (GTorchSubset *self)
{
  g_return_val_if_fail (GTORCH_IS_SUBSET (self), NULL);
  return self->indices;
}

/* --- splitting --- */

/* The lengths are right for the data set. */
static GPtrArray *
split (GTorchDataset *dataset, const gint64 *lengths, gsize n, gint64 length,
       GTorchGenerator *generator, GError **error)
{
  g_autofree gint64 *order = gtorch_draw_permutation ("random_split", length, generator, error);
  GPtrArray *parts;
  gint64 at = 0;
  gsize i;

  if (order == NULL)
    return NULL;
  parts = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < n; i++)
    {
      g_ptr_array_add (parts, gtorch_subset_new (dataset, order + at, lengths[i]));
      at += lengths[i];
    }
  return parts;
}

static gint64
count (GTorchDataset *dataset, GError **error)
{
  const gint64 length = gtorch_dataset_get_length (dataset, error);

  if (length <= G_MAXINT32)
    return length;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("random_split: %" PRId64 " samples are more than %d"), length, G_MAXINT32);
  return -1;
}

/**
 * gtorch_random_split:
 * @dataset: a data set
 * @lengths: (array length=n_lengths): how many samples each part has; the sum is the length of @dataset
 * @n_lengths: the length of @lengths
 * @generator: (nullable): where the order comes from; %NULL for the CPU's default generator
 * @error: return location for an error
 *
 * Splits a data set into parts by chance, no sample being in two of them.
 *
 * Returns: (transfer container) (element-type GTorchSubset): the parts; %NULL with %GTORCH_ERROR_INVALID
 *   if the sum is another number or a length is negative, or with the error of the data set's length
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_random_split (GTorchDataset *dataset, const gint64 *lengths, gsize n_lengths,
                     GTorchGenerator *generator, GError **error)
{
  gint64 length, sum = 0;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_DATASET (dataset), NULL);
  g_return_val_if_fail (lengths != NULL || n_lengths == 0, NULL);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), NULL);
  length = count (dataset, error);
  if (length < 0)
    return NULL;
  for (i = 0; i < n_lengths; i++)
    if (lengths[i] < 0 || __builtin_add_overflow (sum, lengths[i], &sum))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("random_split: part %zu cannot have %" PRId64 " samples of %" PRId64), i,
                     lengths[i], length);
        return NULL;
      }
  if (sum != length)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("random_split: the lengths have the sum %" PRId64
                      ", and the data set has %" PRId64 " samples"),
                   sum, length);
      return NULL;
    }
  return split (dataset, lengths, n_lengths, length, generator, error);
}

/**
 * gtorch_random_split_fractions:
 * @dataset: a data set
 * @fractions: (array length=n_fractions): the part of the samples that each part has; the sum is 1
 * @n_fractions: the length of @fractions
 * @generator: (nullable): where the order comes from; %NULL for the CPU's default generator
 * @error: return location for an error
 *
 * Splits a data set like [func@random_split]. Part i has floor (length * fraction i) samples, and those
 * that are left are given to the parts one by one, from the first.
 *
 * Returns: (transfer container) (element-type GTorchSubset): the parts; %NULL with %GTORCH_ERROR_INVALID
 *   if the sum is another number or a fraction is not between 0 and 1, or with the error of the data
 *   set's length
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_random_split_fractions (GTorchDataset *dataset, const gdouble *fractions, gsize n_fractions,
                               GTorchGenerator *generator, GError **error)
{
  g_autofree gint64 *lengths = NULL;
  gint64 length, left;
  gdouble sum = 0;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_DATASET (dataset), NULL);
  g_return_val_if_fail (fractions != NULL || n_fractions == 0, NULL);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), NULL);
  length = count (dataset, error);
  if (length < 0)
    return NULL;
  for (i = 0; i < n_fractions; i++)
    {
      if (!(fractions[i] >= 0 && fractions[i] <= 1))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("random_split: fraction %zu is %g, not between 0 and 1"), i,
                       fractions[i]);
          return NULL;
        }
      sum += fractions[i];
    }
  if (!(fabs (sum - 1) < 1e-6))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("random_split: the fractions have the sum %g, not 1"), sum);
      return NULL;
    }
  lengths = g_new0 (gint64, n_fractions);
  left = length;
  for (i = 0; i < n_fractions; i++)
    {
      lengths[i] = MIN ((gint64) floor ((gdouble) length * fractions[i]), left);
      left -= lengths[i];
    }
  for (i = 0; left > 0; i = (i + 1) % n_fractions, left--)
    lengths[i]++;
  return split (dataset, lengths, n_fractions, length, generator, error);
}
