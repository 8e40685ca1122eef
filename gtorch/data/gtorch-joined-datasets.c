/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Data sets that are made of several others. */

#include "config.h"

#include "data/gtorch-joined-datasets.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "base/gtorch-references-private.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-sample-private.h"

/* --- ConcatDataset --- */

/**
 * GTorchConcatDataset:
 *
 * The samples of one data set after those of the other.
 *
 * A data set that makes batches itself is asked once for all of its samples that are in a batch, which are
 * then put in order.
 *
 * Since: 0.1
 */
struct _GTorchConcatDataset
{
  GTorchDataset parent_instance;
  GPtrArray *datasets;
  GTorchSize *ends; /* [i]: where those of data set i end */
};

G_DEFINE_TYPE (GTorchConcatDataset, gtorch_concat_dataset, GTORCH_TYPE_DATASET)

static gint64
gtorch_concat_dataset_get_length (GTorchDataset *dataset, GError **error)
{
  GTorchConcatDataset *self = GTORCH_CONCAT_DATASET (dataset);
  gsize n;
  const gint64 *ends;

  if (self->ends == NULL)
    return 0;
  ends = gtorch_size_get_values (self->ends, &n);
  return ends[n - 1];
}

/* Finds the data set of a sample, and its index there; FALSE if there is no such sample. */
static gboolean
gtorch_concat_dataset_find (GTorchConcatDataset *self, gint64 index, gsize *dataset, gint64 *at,
                            GError **error)
{
  const gint64 length = gtorch_concat_dataset_get_length (GTORCH_DATASET (self), error);
  const gint64 *ends;
  gsize low = 0, high, n;

  if (!gtorch_index_check ("concat_dataset", index, length, error))
    return FALSE;
  ends = gtorch_size_get_values (self->ends, &n);
  for (high = n - 1; low < high;)
    {
      const gsize middle = (low + high) / 2;

      if (index < ends[middle])
        high = middle;
      else
        low = middle + 1;
    }
  *dataset = low;
  *at = low > 0 ? index - ends[low - 1] : index;
  return TRUE;
}

static GTorchSample *
gtorch_concat_dataset_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable,
                                GError **error)
{
  GTorchConcatDataset *self = GTORCH_CONCAT_DATASET (dataset);
  gsize which;
  gint64 at;

  if (!gtorch_concat_dataset_find (self, index, &which, &at, error))
    return NULL;
  return gtorch_dataset_get_item (self->datasets->pdata[which], at, cancellable, error);
}

gboolean
gtorch_concat_dataset_has_batch (GTorchDataset *dataset)
{
  GTorchConcatDataset *self = GTORCH_CONCAT_DATASET (dataset);
  guint i;

  for (i = 0; i < self->datasets->len; i++)
    if (gtorch_dataset_has_batch (self->datasets->pdata[i]))
      return TRUE;
  return FALSE;
}

/* Which samples of a batch a data set has: their indices there, and their places in the batch. */
typedef struct
{
  GArray *indices, *places; /* NULL: none */
} Share;

static GTorchSample *
join_shares (GTorchConcatDataset *self, const Share *shares, GCancellable *cancellable,
             GError **error)
{
  g_autofree GTorchSample **batches = g_new0 (GTorchSample *, self->datasets->len);
  g_autofree GTorchSamplePart *parts = g_new0 (GTorchSamplePart, self->datasets->len);
  GTorchSample *batch = NULL;
  guint n = 0, i;

  for (i = 0; i < self->datasets->len; i++)
    {
      GArray *indices = shares[i].indices;

      if (indices == NULL)
        continue;
      batches[n] =
          gtorch_dataset_get_batch (self->datasets->pdata[i], (gint64 *) (gpointer) indices->data,
                                    indices->len, cancellable, error);
      if (batches[n] == NULL)
        break;
      parts[n++] = (GTorchSamplePart){ g_strdup_printf (_ ("data set %u"), i),
                                       (gint64 *) (gpointer) shares[i].places->data, indices->len };
    }
  if (i == self->datasets->len)
    batch = n > 1 ? gtorch_sample_join (batches, parts, n, error) : g_steal_pointer (&batches[0]);
  for (i = 0; i < n; i++)
    {
      g_clear_pointer (&batches[i], gtorch_sample_unref);
      g_free (parts[i].name);
    }
  return batch;
}

static GTorchSample *
gtorch_concat_dataset_get_batch (GTorchDataset *dataset, const gint64 *indices, gsize n,
                                 GCancellable *cancellable, GError **error)
{
  GTorchConcatDataset *self = GTORCH_CONCAT_DATASET (dataset);
  g_autofree Share *shares = g_new0 (Share, self->datasets->len + 1);
  GTorchSample *batch = NULL;
  gint64 i, at;
  gsize which;

  for (i = 0; i < (gint64) n; i++)
    {
      if (!gtorch_concat_dataset_find (self, indices[i], &which, &at, error))
        break;
      if (shares[which].indices == NULL)
        {
          shares[which].indices = g_array_new (FALSE, FALSE, sizeof (gint64));
          shares[which].places = g_array_new (FALSE, FALSE, sizeof (gint64));
        }
      g_array_append_val (shares[which].indices, at);
      g_array_append_val (shares[which].places, i);
    }
  if (i == (gint64) n)
    batch = join_shares (self, shares, cancellable, error);
  for (i = 0; i < self->datasets->len; i++)
    {
      g_clear_pointer (&shares[i].indices, g_array_unref);
      g_clear_pointer (&shares[i].places, g_array_unref);
    }
  return batch;
}

static void
gtorch_concat_dataset_finalize (GObject *object)
{
  GTorchConcatDataset *self = GTORCH_CONCAT_DATASET (object);

  g_clear_pointer (&self->datasets, g_ptr_array_unref);
  g_clear_pointer (&self->ends, gtorch_size_unref);
  G_OBJECT_CLASS (gtorch_concat_dataset_parent_class)->finalize (object);
}

static void
gtorch_concat_dataset_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_datasets_add_references (GTORCH_CONCAT_DATASET (self)->datasets, references);
}

static GTorchReferencesType concat_references = { .look = gtorch_concat_dataset_add_references };

static void
gtorch_concat_dataset_class_init (GTorchConcatDatasetClass *klass)
{
  GTorchDatasetClass *dataset_class = GTORCH_DATASET_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_concat_dataset_finalize;
  dataset_class->get_length = gtorch_concat_dataset_get_length;
  dataset_class->get_item = gtorch_concat_dataset_get_item;
  dataset_class->get_batch = gtorch_concat_dataset_get_batch;
  concat_references.type = GTORCH_TYPE_CONCAT_DATASET;
  gtorch_references_add_type (&concat_references);
}

static void
gtorch_concat_dataset_init (GTorchConcatDataset *self)
{
  self->datasets = g_ptr_array_new_with_free_func (g_object_unref);
}

/**
 * gtorch_concat_dataset_new:
 * @datasets: (array length=n_datasets): data sets, none of them iterable
 * @n_datasets: the length of @datasets, at least 1
 * @error: return location for an error
 *
 * Creates a data set of the samples of several others. Their lengths are asked for once, here.
 *
 * Returns: (transfer full): the data set; %NULL with %GTORCH_ERROR_INVALID without data sets, or if one
 *   is iterable, or with the error of a data set's length
 *
 * Since: 0.1
 */
GTorchConcatDataset *
gtorch_concat_dataset_new (GTorchDataset **datasets, gsize n_datasets, GError **error)
{
  g_autoptr (GTorchConcatDataset) self = NULL;
  g_autoptr (GPtrArray) taken = NULL;
  g_autofree gint64 *ends = NULL;
  gint64 end = 0;
  gsize i;

  g_return_val_if_fail (datasets != NULL || n_datasets == 0, NULL);
  taken = gtorch_datasets_take ("concat_dataset", datasets, n_datasets, GTORCH_TYPE_DATASET, error);
  if (taken == NULL)
    return NULL;
  ends = g_new (gint64, n_datasets);
  for (i = 0; i < n_datasets; i++)
    {
      const gint64 length = gtorch_dataset_get_length (datasets[i], error);

      if (length < 0)
        return NULL;
      if (__builtin_add_overflow (end, length, &end))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("concat_dataset: data set %zu has %" PRId64
                          " samples: together there are more than can be counted"),
                       i, length);
          return NULL;
        }
      ends[i] = end;
    }
  self = g_object_new (GTORCH_TYPE_CONCAT_DATASET, "thread-safe",
                       gtorch_datasets_are_thread_safe (taken), NULL);
  self->ends = gtorch_size_new (ends, n_datasets);
  g_ptr_array_unref (self->datasets);
  self->datasets = g_steal_pointer (&taken);
  return g_steal_pointer (&self);
}

/**
 * gtorch_concat_dataset_get_datasets:
 * @self: a data set
 *
 * Lists the data sets that it is made of.
 *
 * Returns: (transfer container) (element-type GTorchDataset): the data sets
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_concat_dataset_get_datasets (GTorchConcatDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_CONCAT_DATASET (self), NULL);
  return gtorch_datasets_copy (self->datasets);
}

/**
 * gtorch_concat_dataset_get_cumulative_sizes:
 * @self: a data set
 *
 * Tells where the samples of each data set end.
 *
 * Returns: (transfer none) (nullable): for each data set the index after its last sample; %NULL for an
 *   object that was not made by [ctor@ConcatDataset.new]
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_concat_dataset_get_cumulative_sizes (GTorchConcatDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_CONCAT_DATASET (self), NULL);
  return self->ends;
}

/* --- ChainDataset --- */

/**
 * GTorchChainDataset:
 *
 * The samples of one iterable data set after those of the other.
 *
 * Since: 0.1
 */
struct _GTorchChainDataset
{
  GTorchIterableDataset parent_instance;
  GPtrArray *datasets;
};

G_DEFINE_TYPE (GTorchChainDataset, gtorch_chain_dataset, GTORCH_TYPE_ITERABLE_DATASET)

#define GTORCH_TYPE_CHAIN_SOURCE (gtorch_chain_source_get_type ())
G_DECLARE_FINAL_TYPE (GTorchChainSource, gtorch_chain_source, GTORCH, CHAIN_SOURCE,
                      GTorchSampleSource)

struct _GTorchChainSource
{
  GTorchSampleSource parent_instance;
  GPtrArray *datasets;
  GTorchSampleSource *current; /* of data set next - 1 */
  guint next, worker, n_workers;
};

G_DEFINE_TYPE (GTorchChainSource, gtorch_chain_source, GTORCH_TYPE_SAMPLE_SOURCE)

static GTorchSample *
gtorch_chain_source_next (GTorchSampleSource *source, GCancellable *cancellable, GError **error)
{
  GTorchChainSource *self = GTORCH_CHAIN_SOURCE (source);
  GError *local = NULL;
  GTorchSample *sample = NULL;

  while (self->current != NULL || self->next < self->datasets->len)
    {
      if (self->current == NULL)
        self->current = gtorch_iterable_dataset_iterate (self->datasets->pdata[self->next++],
                                                         self->worker, self->n_workers, &local);
      if (self->current != NULL)
        sample = gtorch_sample_source_next (self->current, cancellable, &local);
      if (local != NULL)
        {
          g_propagate_error (error, local);
          return NULL;
        }
      if (sample != NULL)
        return sample;
      g_clear_object (&self->current);
    }
  return NULL;
}

static void
gtorch_chain_source_finalize (GObject *object)
{
  GTorchChainSource *self = GTORCH_CHAIN_SOURCE (object);

  g_clear_pointer (&self->datasets, g_ptr_array_unref);
  g_clear_object (&self->current);
  G_OBJECT_CLASS (gtorch_chain_source_parent_class)->finalize (object);
}

static void
gtorch_chain_source_class_init (GTorchChainSourceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_chain_source_finalize;
  GTORCH_SAMPLE_SOURCE_CLASS (klass)->next = gtorch_chain_source_next;
}

static void
gtorch_chain_source_init (GTorchChainSource *self)
{
}

static GTorchSampleSource *
gtorch_chain_dataset_iterate (GTorchIterableDataset *dataset, guint worker, guint n_workers,
                              GError **error)
{
  GTorchChainSource *source = g_object_new (GTORCH_TYPE_CHAIN_SOURCE, NULL);

  source->datasets = g_ptr_array_ref (GTORCH_CHAIN_DATASET (dataset)->datasets);
  source->worker = worker;
  source->n_workers = n_workers;
  return GTORCH_SAMPLE_SOURCE (source);
}

static gint64
gtorch_chain_dataset_get_length (GTorchDataset *dataset, GError **error)
{
  GTorchChainDataset *self = GTORCH_CHAIN_DATASET (dataset);
  gint64 sum = 0;
  guint i;

  for (i = 0; i < self->datasets->len; i++)
    {
      const gint64 length = gtorch_dataset_get_length (self->datasets->pdata[i], error);

      if (length < 0)
        return -1;
      if (__builtin_add_overflow (sum, length, &sum))
        sum = G_MAXINT64;
    }
  return sum;
}

static void
gtorch_chain_dataset_finalize (GObject *object)
{
  g_clear_pointer (&GTORCH_CHAIN_DATASET (object)->datasets, g_ptr_array_unref);
  G_OBJECT_CLASS (gtorch_chain_dataset_parent_class)->finalize (object);
}

static void
gtorch_chain_dataset_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_datasets_add_references (GTORCH_CHAIN_DATASET (self)->datasets, references);
}

static GTorchReferencesType chain_references = { .look = gtorch_chain_dataset_add_references };

static void
gtorch_chain_dataset_class_init (GTorchChainDatasetClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_chain_dataset_finalize;
  GTORCH_DATASET_CLASS (klass)->get_length = gtorch_chain_dataset_get_length;
  GTORCH_ITERABLE_DATASET_CLASS (klass)->iterate = gtorch_chain_dataset_iterate;
  chain_references.type = GTORCH_TYPE_CHAIN_DATASET;
  gtorch_references_add_type (&chain_references);
}

static void
gtorch_chain_dataset_init (GTorchChainDataset *self)
{
  self->datasets = g_ptr_array_new_with_free_func (g_object_unref);
}

/**
 * gtorch_chain_dataset_new:
 * @datasets: (array length=n_datasets): data sets, all of them [class@IterableDataset]s
 * @n_datasets: the length of @datasets, at least 1
 * @error: return location for an error
 *
 * Creates a data set of the samples of several others.
 *
 * Returns: (transfer full): the data set; %NULL with %GTORCH_ERROR_INVALID without data sets, or if one
 *   is not iterable
 *
 * Since: 0.1
 */
GTorchChainDataset *
gtorch_chain_dataset_new (GTorchDataset **datasets, gsize n_datasets, GError **error)
{
  GTorchChainDataset *self;
  GPtrArray *taken;

  g_return_val_if_fail (datasets != NULL || n_datasets == 0, NULL);
  taken = gtorch_datasets_take ("chain_dataset", datasets, n_datasets, GTORCH_TYPE_ITERABLE_DATASET,
                                error);
  if (taken == NULL)
    return NULL;
  self = g_object_new (GTORCH_TYPE_CHAIN_DATASET, "thread-safe",
                       gtorch_datasets_are_thread_safe (taken), NULL);
  g_ptr_array_unref (self->datasets);
  self->datasets = taken;
  return self;
}

/**
 * gtorch_chain_dataset_get_datasets:
 * @self: a data set
 *
 * Lists the data sets that it is made of.
 *
 * Returns: (transfer container) (element-type GTorchDataset): the data sets
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_chain_dataset_get_datasets (GTorchChainDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_CHAIN_DATASET (self), NULL);
  return gtorch_datasets_copy (self->datasets);
}

/* --- StackDataset --- */

/**
 * GTorchStackDataset:
 *
 * The samples of several data sets side by side: sample i is a tuple of sample i of each, or a dictionary
 * of them.
 *
 * Since: 0.1
 */
struct _GTorchStackDataset
{
  GTorchDataset parent_instance;
  GPtrArray *datasets;
  gchar **keys; /* NULL: samples are tuples */
  gint64 length;
};

G_DEFINE_TYPE (GTorchStackDataset, gtorch_stack_dataset, GTORCH_TYPE_DATASET)

static gint64
gtorch_stack_dataset_get_length (GTorchDataset *dataset, GError **error)
{
  return GTORCH_STACK_DATASET (dataset)->length;
}

/* Takes the references of the parts, some of which are NULL after an error. */
static GTorchSample *
stack_parts (GTorchStackDataset *self, GTorchSample **parts, GError **error)
{
  const guint n = self->datasets->len;
  GTorchSample *sample = NULL;
  guint i;

  if (parts[n - 1] != NULL)
    sample = self->keys != NULL
                 ? gtorch_sample_new_dict ((const gchar *const *) self->keys, parts, n, error)
                 : gtorch_sample_new_tuple (parts, n, error);
  for (i = 0; i < n; i++)
    g_clear_pointer (&parts[i], gtorch_sample_unref);
  return sample;
}

static GTorchSample *
gtorch_stack_dataset_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable,
                               GError **error)
{
  GTorchStackDataset *self = GTORCH_STACK_DATASET (dataset);
  g_autofree GTorchSample **parts = NULL;
  guint i;

  if (!gtorch_index_check ("stack_dataset", index, self->length, error))
    return NULL;
  parts = g_new0 (GTorchSample *, self->datasets->len);
  for (i = 0; i < self->datasets->len; i++)
    if ((parts[i] = gtorch_dataset_get_item (self->datasets->pdata[i], index, cancellable, error))
        == NULL)
      break;
  return stack_parts (self, parts, error);
}

static GTorchSample *
gtorch_stack_dataset_get_batch (GTorchDataset *dataset, const gint64 *indices, gsize n,
                                GCancellable *cancellable, GError **error)
{
  GTorchStackDataset *self = GTORCH_STACK_DATASET (dataset);
  g_autofree GTorchSample **parts = NULL;
  guint i;
  gsize k;

  for (k = 0; k < n; k++)
    if (!gtorch_index_check ("stack_dataset", indices[k], self->length, error))
      return NULL;
  parts = g_new0 (GTorchSample *, self->datasets->len);
  for (i = 0; i < self->datasets->len; i++)
    if ((parts[i] =
             gtorch_dataset_get_batch (self->datasets->pdata[i], indices, n, cancellable, error))
        == NULL)
      break;
  return stack_parts (self, parts, error);
}

static void
gtorch_stack_dataset_finalize (GObject *object)
{
  GTorchStackDataset *self = GTORCH_STACK_DATASET (object);

  g_clear_pointer (&self->datasets, g_ptr_array_unref);
  g_clear_pointer (&self->keys, g_strfreev);
  G_OBJECT_CLASS (gtorch_stack_dataset_parent_class)->finalize (object);
}

static void
gtorch_stack_dataset_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_datasets_add_references (GTORCH_STACK_DATASET (self)->datasets, references);
}

static GTorchReferencesType stack_references = { .look = gtorch_stack_dataset_add_references };

static void
gtorch_stack_dataset_class_init (GTorchStackDatasetClass *klass)
{
  GTorchDatasetClass *dataset_class = GTORCH_DATASET_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_stack_dataset_finalize;
  dataset_class->get_length = gtorch_stack_dataset_get_length;
  dataset_class->get_item = gtorch_stack_dataset_get_item;
  dataset_class->get_batch = gtorch_stack_dataset_get_batch;
  stack_references.type = GTORCH_TYPE_STACK_DATASET;
  gtorch_references_add_type (&stack_references);
}

static void
gtorch_stack_dataset_init (GTorchStackDataset *self)
{
  self->datasets = g_ptr_array_new_with_free_func (g_object_unref);
}

static GTorchStackDataset *
stack_new (const gchar *const *keys, GTorchDataset **datasets, gsize n, GError **error)
{
  g_autoptr (GPtrArray) taken =
      gtorch_datasets_take ("stack_dataset", datasets, n, GTORCH_TYPE_DATASET, error);
  GTorchStackDataset *self;
  gint64 first = 0;
  gsize i;

  if (taken == NULL)
    return NULL;
  for (i = 0; i < n; i++)
    {
      const gint64 length = gtorch_dataset_get_length (datasets[i], error);

      if (length < 0)
        return NULL;
      if (i == 0)
        first = length;
      if (length != first)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("stack_dataset: data set 0 has %" PRId64
                          " samples, and data set %zu %" PRId64 ": the lengths must be equal"),
                       first, i, length);
          return NULL;
        }
    }
  self = g_object_new (GTORCH_TYPE_STACK_DATASET, "thread-safe",
                       gtorch_datasets_are_thread_safe (taken), NULL);
  self->length = first;
  self->keys = g_strdupv ((gchar **) keys);
  g_ptr_array_unref (self->datasets);
  self->datasets = g_steal_pointer (&taken);
  return self;
}

/**
 * gtorch_stack_dataset_new:
 * @datasets: (array length=n_datasets): data sets of the same length, none of them iterable
 * @n_datasets: the length of @datasets, at least 1
 * @error: return location for an error
 *
 * Creates a data set whose samples are tuples of those of several others.
 *
 * Returns: (transfer full): the data set; %NULL with %GTORCH_ERROR_INVALID without data sets, if one is
 *   iterable, or if the lengths differ, or with the error of a data set's length
 *
 * Since: 0.1
 */
GTorchStackDataset *
gtorch_stack_dataset_new (GTorchDataset **datasets, gsize n_datasets, GError **error)
{
  g_return_val_if_fail (datasets != NULL || n_datasets == 0, NULL);
  return stack_new (NULL, datasets, n_datasets, error);
}

/**
 * gtorch_stack_dataset_new_with_keys:
 * @keys: (array zero-terminated=1): a key for each data set, no two the same
 * @datasets: (array length=n_datasets): data sets of the same length, none of them iterable
 * @n_datasets: the length of @datasets, at least 1
 * @error: return location for an error
 *
 * Creates a data set whose samples are dictionaries of those of several others.
 *
 * Returns: (transfer full): the data set; %NULL with the errors of [ctor@StackDataset.new], or with
 *   %GTORCH_ERROR_INVALID if there are more or fewer keys than data sets, or a key is there twice
 *
 * Since: 0.1
 */
GTorchStackDataset *
gtorch_stack_dataset_new_with_keys (const gchar *const *keys, GTorchDataset **datasets,
                                    gsize n_datasets, GError **error)
{
  gsize i;

  g_return_val_if_fail (keys != NULL, NULL);
  g_return_val_if_fail (datasets != NULL || n_datasets == 0, NULL);
  if (g_strv_length ((gchar **) keys) != n_datasets)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("stack_dataset: %u keys for %zu data sets"), g_strv_length ((gchar **) keys),
                   n_datasets);
      return NULL;
    }
  for (i = 1; i < n_datasets; i++)
    {
      gsize k;

      for (k = 0; k < i; k++)
        if (g_str_equal (keys[k], keys[i]))
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("stack_dataset: the key \"%s\" is there twice"), keys[i]);
            return NULL;
          }
    }
  return stack_new (keys, datasets, n_datasets, error);
}

/**
 * gtorch_stack_dataset_get_datasets:
 * @self: a data set
 *
 * Lists the data sets that it is made of.
 *
 * Returns: (transfer container) (element-type GTorchDataset): the data sets
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_stack_dataset_get_datasets (GTorchStackDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_STACK_DATASET (self), NULL);
  return gtorch_datasets_copy (self->datasets);
}

/**
 * gtorch_stack_dataset_get_keys:
 * @self: a data set
 *
 * Lists the keys of the samples.
 *
 * Returns: (transfer full) (array zero-terminated=1): the keys; none if the samples are tuples
 *
 * Since: 0.1
 */
gchar **
gtorch_stack_dataset_get_keys (GTorchStackDataset *self)
{
  g_return_val_if_fail (GTORCH_IS_STACK_DATASET (self), NULL);
  return self->keys != NULL ? g_strdupv (self->keys) : g_new0 (gchar *, 1);
}
