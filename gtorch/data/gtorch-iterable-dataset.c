/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-iterable-dataset.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-error.h"
#include "data/gtorch-dataset-private.h"

/* --- sources --- */

/**
 * GTorchSampleSource:
 *
 * Samples that come one after another, once.
 *
 * A subclass overrides next. One thread at a time uses a source.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchSampleSource, gtorch_sample_source, G_TYPE_OBJECT)

static GTorchSample *
gtorch_sample_source_real_next (GTorchSampleSource *self, GCancellable *cancellable, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("sample_source: %s has no next"),
               G_OBJECT_TYPE_NAME (self));
  return NULL;
}

static void
gtorch_sample_source_class_init (GTorchSampleSourceClass *klass)
{
  klass->next = gtorch_sample_source_real_next;
}

static void
gtorch_sample_source_init (GTorchSampleSource *self)
{
}

/**
 * gtorch_sample_source_next: (virtual next)
 * @self: a source
 * @cancellable: (nullable): cancels reading the sample
 * @error: return location for an error
 *
 * Gets the next sample.
 *
 * Returns: (transfer full) (nullable): the sample, %NULL without an error at the end, or %NULL with
 *   @error set: %G_IO_ERROR_CANCELLED or an error of the data set
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_source_next (GTorchSampleSource *self, GCancellable *cancellable, GError **error)
{
  GError *local = NULL;
  GTorchSample *sample;

  g_return_val_if_fail (GTORCH_IS_SAMPLE_SOURCE (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  sample = GTORCH_SAMPLE_SOURCE_GET_CLASS (self)->next (self, cancellable, &local);
  if (local == NULL)
    return sample;
  g_clear_pointer (&sample, gtorch_sample_unref);
  g_propagate_error (error, local);
  return NULL;
}

/* --- data sets --- */

/**
 * GTorchIterableDataset:
 *
 * Samples that only come one after another: from a network, a pipe, a file that is too large to find a
 * sample in.
 *
 * A subclass overrides iterate, which begins to read. A [class@DataLoader] cuts batches from what
 * arrives; with workers, each of them has a source of its own, and the batches of the sources alternate.
 * Without get_length the length is unknown.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchIterableDataset, gtorch_iterable_dataset, GTORCH_TYPE_DATASET)

static gint64
gtorch_iterable_dataset_get_length (GTorchDataset *self, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("dataset: the length of %s is unknown"), G_OBJECT_TYPE_NAME (self));
  return -1;
}

static GTorchSample *
gtorch_iterable_dataset_get_item (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                                  GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("dataset: the samples of %s have no indices, so there is no sample "
                  "%" PRId64 ": they come one after another"),
               G_OBJECT_TYPE_NAME (self), index);
  return NULL;
}

static GTorchSampleSource *
gtorch_iterable_dataset_real_iterate (GTorchIterableDataset *self, guint worker, guint n_workers,
                                      GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("dataset: %s has no iterate"),
               G_OBJECT_TYPE_NAME (self));
  return NULL;
}

static void
gtorch_iterable_dataset_class_init (GTorchIterableDatasetClass *klass)
{
  GTORCH_DATASET_CLASS (klass)->get_length = gtorch_iterable_dataset_get_length;
  GTORCH_DATASET_CLASS (klass)->get_item = gtorch_iterable_dataset_get_item;
  klass->iterate = gtorch_iterable_dataset_real_iterate;
}

static void
gtorch_iterable_dataset_init (GTorchIterableDataset *self)
{
}

/**
 * gtorch_iterable_dataset_iterate: (virtual iterate)
 * @self: a data set
 * @worker: which of the workers asks, from 0
 * @n_workers: how many workers there are, at least 1
 * @error: return location for an error
 *
 * Begins to read the samples.
 *
 * Returns: (transfer full): the source; %NULL with @error set: %GTORCH_ERROR_INVALID if there is no such
 *   worker, or an error of the data set
 *
 * Since: 0.1
 */
GTorchSampleSource *
gtorch_iterable_dataset_iterate (GTorchIterableDataset *self, guint worker, guint n_workers,
                                 GError **error)
{
  GError *local = NULL;
  GTorchSampleSource *source;

  g_return_val_if_fail (GTORCH_IS_ITERABLE_DATASET (self), NULL);
  if (worker >= n_workers)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("dataset: there is no worker %u of %u: they count from 0"), worker,
                   n_workers);
      return NULL;
    }
  source = GTORCH_ITERABLE_DATASET_GET_CLASS (self)->iterate (self, worker, n_workers, &local);
  if (!gtorch_callback_ended ("dataset: iterate", source != NULL, local, error))
    {
      g_clear_object (&source);
      return NULL;
    }
  if (!gtorch_callback_check ("dataset", "iterate", &source, GTORCH_TYPE_SAMPLE_SOURCE, error))
    return NULL;
  return source;
}
