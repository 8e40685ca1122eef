/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-fetcher.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-fetcher-private.h"
#include "data/gtorch-sample-private.h"

/**
 * GTorchFetcher:
 *
 * What the workers of a [class@DataLoader] call to get a batch.
 *
 * Each loader makes one that asks its data set for samples and collates them. A subclass does it in
 * another way: in other processes, on other machines. Order, prefetch, timeouts, errors and the state are
 * the loader's business.
 *
 * Since: 0.1
 */

typedef struct
{
  GTorchDataset *dataset;
  gboolean is_batched;
  gboolean has_fixed_workers;
  GTorchCollateFunc collate; /* NULL: gtorch_sample_collate () */
  gpointer collate_data;
  GDestroyNotify collate_destroy;
  GMutex lock;
  GPtrArray *sources; /* of an iterable data set, one for each worker; under the lock */
  gint is_dropped;    /* sources are not told that they end */
} GTorchFetcherPrivate;

G_DEFINE_TYPE_WITH_PRIVATE (GTorchFetcher, gtorch_fetcher, G_TYPE_OBJECT)

static GTorchFetcherPrivate *
private_of (GTorchFetcher *self)
{
  return gtorch_fetcher_get_instance_private (self);
}

/* --- collating --- */

static GTorchSample *
collate (GTorchFetcher *self, GTorchSample **samples, gsize n, GError **error)
{
  GTorchFetcherPrivate *priv = private_of (self);
  GError *local = NULL;
  GTorchSample *batch;

  if (priv->collate == NULL)
    return gtorch_sample_collate (samples, n, error);
  batch = priv->collate (samples, n, priv->collate_data, &local);
  if (gtorch_callback_gave ("collate", batch, local, error))
    return batch;
  g_clear_pointer (&batch, gtorch_sample_unref);
  return NULL;
}

/* A sample that is no part of a batch, whose reference is taken: the function of the program gets it
 * alone. */
static GTorchSample *
convert (GTorchFetcher *self, GTorchSample *sample, GError **error)
{
  GTorchSample *converted;

  if (sample == NULL || private_of (self)->collate == NULL)
    return sample;
  converted = collate (self, &sample, 1, error);
  gtorch_sample_unref (sample);
  return converted;
}

/* --- samples with indices --- */

static GTorchSample *
get_item (GTorchFetcher *self, gint64 index, GCancellable *cancellable, GError **error)
{
  GError *local = NULL;
  GTorchSample *sample =
      gtorch_dataset_get_item (private_of (self)->dataset, index, cancellable, &local);

  if (sample == NULL)
    {
      if (gtorch_worker_info_get_current () != NULL)
        g_prefix_error (&local, _ ("index %" PRId64 ": "), index);
      g_propagate_error (error, local);
    }
  return sample;
}

static void
unref_samples (gpointer samples)
{
  gtorch_sample_unref (samples);
}

static GTorchSample *
gtorch_fetcher_real_fetch (GTorchFetcher *self, guint worker, const gint64 *indices, gsize n,
                           GCancellable *cancellable, GError **error)
{
  GTorchFetcherPrivate *priv = private_of (self);
  g_autoptr (GPtrArray) samples = NULL;
  gsize i;

  if (!priv->is_batched)
    return convert (self, get_item (self, indices[0], cancellable, error), error);
  if (priv->collate == NULL && gtorch_dataset_has_batch (priv->dataset))
    return gtorch_dataset_get_batch (priv->dataset, indices, n, cancellable, error);
  samples = g_ptr_array_new_full (n, unref_samples);
  for (i = 0; i < n; i++)
    {
      GTorchSample *sample = get_item (self, indices[i], cancellable, error);

      if (sample == NULL)
        return NULL;
      g_ptr_array_add (samples, sample);
    }
  return collate (self, (GTorchSample **) samples->pdata, n, error);
}

/* --- samples that come one after another --- */

/* The samples of a batch that an error interrupted. */
static G_DEFINE_QUARK (gtorch - fetcher - partial, partial)

    static void set_source (GTorchFetcher *self, guint worker, GTorchSampleSource *source)
{
  GTorchFetcherPrivate *priv = private_of (self);
  GTorchSampleSource *former = NULL;

  g_mutex_lock (&priv->lock);
  if (worker >= priv->sources->len)
    g_ptr_array_set_size (priv->sources, worker + 1);
  former = priv->sources->pdata[worker];
  priv->sources->pdata[worker] = source;
  g_mutex_unlock (&priv->lock);
  if (former != NULL && !g_atomic_int_get (&priv->is_dropped))
    gtorch_sample_source_close (former);
  g_clear_object (&former);
}

/* A worker's source is used by its thread alone. */
static GTorchSampleSource *
peek_source (GTorchFetcher *self, guint worker)
{
  GTorchFetcherPrivate *priv = private_of (self);
  GTorchSampleSource *source = NULL;

  g_mutex_lock (&priv->lock);
  if (worker < priv->sources->len)
    source = priv->sources->pdata[worker];
  g_mutex_unlock (&priv->lock);
  return source;
}

static gboolean
gtorch_fetcher_real_begin (GTorchFetcher *self, guint worker, guint n_workers, guint64 seed,
                           GCancellable *cancellable, GError **error)
{
  GTorchDataset *dataset = private_of (self)->dataset;
  GTorchSampleSource *source;

  if (dataset == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("fetcher: %s has no data set"),
                   G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (!GTORCH_IS_ITERABLE_DATASET (dataset))
    return TRUE;
  source =
      gtorch_iterable_dataset_iterate (GTORCH_ITERABLE_DATASET (dataset), worker, n_workers, error);
  if (source == NULL)
    return FALSE;
  set_source (self, worker, source);
  return TRUE;
}

static GTorchSample *
gtorch_fetcher_real_fetch_next (GTorchFetcher *self, guint worker, gint64 n, gboolean drop_last,
                                GCancellable *cancellable, GError **error)
{
  GTorchSampleSource *source = peek_source (self, worker);
  g_autoptr (GPtrArray) samples = NULL;

  if (source == NULL)
    return NULL;
  if (n == 0)
    return convert (self, gtorch_sample_source_next (source, cancellable, error), error);
  samples = g_object_steal_qdata (G_OBJECT (source), partial_quark ());
  if (samples == NULL)
    samples = g_ptr_array_new_with_free_func (unref_samples);
  while ((gint64) samples->len < n)
    {
      GError *local = NULL;
      GTorchSample *sample = gtorch_sample_source_next (source, cancellable, &local);

      if (local != NULL)
        {
          /* What was read is of the batch that the next call makes. */
          g_object_set_qdata_full (G_OBJECT (source), partial_quark (), g_steal_pointer (&samples),
                                   (GDestroyNotify) g_ptr_array_unref);
          g_propagate_error (error, local);
          return NULL;
        }
      if (sample == NULL)
        {
          set_source (self, worker, NULL);
          break;
        }
      g_ptr_array_add (samples, sample);
    }
  if (samples->len == 0 || (drop_last && (gint64) samples->len < n))
    return NULL;
  return collate (self, (GTorchSample **) samples->pdata, samples->len, error);
}

static void
gtorch_fetcher_real_end (GTorchFetcher *self, guint worker)
{
  set_source (self, worker, NULL);
}

/* --- the class --- */

static void
clear_source (gpointer source)
{
  if (source != NULL)
    g_object_unref (source);
}

static void
gtorch_fetcher_finalize (GObject *object)
{
  GTorchFetcherPrivate *priv = private_of (GTORCH_FETCHER (object));

  gtorch_fetcher_set_collate (GTORCH_FETCHER (object), NULL, NULL, NULL);
  g_clear_object (&priv->dataset);
  g_ptr_array_unref (priv->sources);
  g_mutex_clear (&priv->lock);
  G_OBJECT_CLASS (gtorch_fetcher_parent_class)->finalize (object);
}

static gboolean
get_batched (GTorchFetcher *self)
{
  return private_of (self)->is_batched;
}

static void
set_batched (GTorchFetcher *self, gboolean batched)
{
  private_of (self)->is_batched = batched;
}

static void
set_fixed_workers (GTorchFetcher *self, gboolean fixed_workers)
{
  private_of (self)->has_fixed_workers = fixed_workers;
}

static void
set_dataset (GTorchFetcher *self, GTorchDataset *dataset)
{
  g_set_object (&private_of (self)->dataset, dataset);
}

typedef GTorchFetcher Self;

static const GTorchField fields[] = {
  /**
   * GTorchFetcher:dataset: (getter get_dataset)
   *
   * The data set that is asked for samples; %NULL if a subclass gets them from elsewhere.
   *
   * Since: 0.1
   */
  { "dataset",
    GTORCH_PROPERTY_OBJECT (GTorchDataset, gtorch_dataset_get_type, gtorch_fetcher_get_dataset,
                            set_dataset),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchFetcher:batched:
   *
   * Whether samples are collated to batches.
   *
   * Since: 0.1
   */
  { "batched", GTORCH_PROPERTY_BOOL (get_batched, set_batched), .value = TRUE,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchFetcher:fixed-workers:
   *
   * Whether batch i is always made by worker i modulo the number of workers, so that what happens in a
   * worker follows from the order of batches alone. Otherwise a worker that is free makes the next one.
   *
   * Since: 0.1
   */
  { "fixed-workers", GTORCH_PROPERTY_BOOL (gtorch_fetcher_get_fixed_workers, set_fixed_workers),
    .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_fetcher_add_references (gpointer object, GTorchReferences *references)
{
  gtorch_references_add_object (references, private_of (GTORCH_FETCHER (object))->dataset);
}

static GTorchReferencesType references_type = { .look = gtorch_fetcher_add_references };

static void
gtorch_fetcher_class_init (GTorchFetcherClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_fetcher_finalize;
  klass->begin = gtorch_fetcher_real_begin;
  klass->fetch = gtorch_fetcher_real_fetch;
  klass->fetch_next = gtorch_fetcher_real_fetch_next;
  klass->end = gtorch_fetcher_real_end;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_FETCHER;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_fetcher_init (GTorchFetcher *self)
{
  GTorchFetcherPrivate *priv = private_of (self);

  priv->is_batched = TRUE;
  priv->sources = g_ptr_array_new_with_free_func (clear_source);
  g_mutex_init (&priv->lock);
}

/**
 * gtorch_fetcher_new:
 * @dataset: a data set
 * @batched: whether samples are collated to batches
 *
 * Creates a fetcher that asks a data set for samples.
 *
 * Returns: (transfer full): the fetcher
 *
 * Since: 0.1
 */
GTorchFetcher *
gtorch_fetcher_new (GTorchDataset *dataset, gboolean batched)
{
  g_return_val_if_fail (GTORCH_IS_DATASET (dataset), NULL);
  return g_object_new (GTORCH_TYPE_FETCHER, "dataset", dataset, "batched", batched, NULL);
}

/**
 * gtorch_fetcher_get_dataset: (get-property dataset)
 * @self: a fetcher
 *
 * Gets the data set.
 *
 * Returns: (transfer none) (nullable): the data set, or %NULL if there is none
 *
 * Since: 0.1
 */
GTorchDataset *
gtorch_fetcher_get_dataset (GTorchFetcher *self)
{
  g_return_val_if_fail (GTORCH_IS_FETCHER (self), NULL);
  return private_of (self)->dataset;
}

/**
 * gtorch_fetcher_get_fixed_workers: (get-property fixed-workers)
 * @self: a fetcher
 *
 * Tells whether batch i is always made by worker i modulo the number of workers.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_fetcher_get_fixed_workers (GTorchFetcher *self)
{
  g_return_val_if_fail (GTORCH_IS_FETCHER (self), FALSE);
  return private_of (self)->has_fixed_workers;
}

/**
 * gtorch_fetcher_set_collate:
 * @self: a fetcher
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): makes a batch of samples;
 *   %NULL for [func@Sample.collate]
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that makes batches, before the first one is made.
 *
 * Since: 0.1
 */
void
gtorch_fetcher_set_collate (GTorchFetcher *self, GTorchCollateFunc func, gpointer user_data,
                            GDestroyNotify destroy)
{
  GTorchFetcherPrivate *priv;
  GDestroyNotify former_destroy;
  gpointer former_data;

  g_return_if_fail (GTORCH_IS_FETCHER (self));
  priv = private_of (self);
  former_destroy = priv->collate_destroy;
  former_data = priv->collate_data;
  priv->collate = func;
  priv->collate_data = user_data;
  priv->collate_destroy = destroy;
  if (former_destroy != NULL)
    former_destroy (former_data);
}

/* --- calls --- */

gboolean
gtorch_fetcher_is_local (GTorchFetcher *self)
{
  return GTORCH_FETCHER_GET_CLASS (self)->fetch == gtorch_fetcher_real_fetch;
}

gboolean
gtorch_fetcher_begin (GTorchFetcher *self, guint worker, guint n_workers, guint64 seed,
                      GCancellable *cancellable, GError **error)
{
  GError *local = NULL;
  const gboolean done =
      GTORCH_FETCHER_GET_CLASS (self)->begin (self, worker, n_workers, seed, cancellable, &local);

  return gtorch_callback_ended ("fetcher: begin", done, local, error);
}

GTorchSample *
gtorch_fetcher_fetch (GTorchFetcher *self, guint worker, GTorchSize *indices,
                      GCancellable *cancellable, GError **error)
{
  GError *local = NULL;
  gsize n;
  const gint64 *values = gtorch_size_get_values (indices, &n);
  GTorchSample *batch =
      GTORCH_FETCHER_GET_CLASS (self)->fetch (self, worker, values, n, cancellable, &local);

  if (gtorch_callback_gave ("fetcher: fetch", batch, local, error))
    return batch;
  g_clear_pointer (&batch, gtorch_sample_unref);
  return NULL;
}

GTorchSample *
gtorch_fetcher_fetch_next (GTorchFetcher *self, guint worker, gint64 n, gboolean drop_last,
                           GCancellable *cancellable, GError **error)
{
  GError *local = NULL;
  GTorchSample *batch =
      GTORCH_FETCHER_GET_CLASS (self)->fetch_next (self, worker, n, drop_last, cancellable, &local);

  if (local == NULL)
    return batch;
  g_clear_pointer (&batch, gtorch_sample_unref);
  g_propagate_error (error, local);
  return NULL;
}

void
gtorch_fetcher_end (GTorchFetcher *self, guint worker)
{
  GTORCH_FETCHER_GET_CLASS (self)->end (self, worker);
}

void
gtorch_fetcher_drop (GTorchFetcher *self, guint worker)
{
  GTorchFetcherPrivate *priv = private_of (self);

  g_atomic_int_set (&priv->is_dropped, TRUE);
  gtorch_fetcher_end (self, worker);
  g_atomic_int_set (&priv->is_dropped, FALSE);
}
