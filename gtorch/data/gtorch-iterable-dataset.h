/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-dataset.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SAMPLE_SOURCE (gtorch_sample_source_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchSampleSource, gtorch_sample_source, GTORCH, SAMPLE_SOURCE, GObject)

/**
 * GTorchSampleSourceClass:
 * @parent_class: the parent class
 * @next: gets the next sample
 *
 * The virtual functions of a source of samples.
 *
 * Since: 0.1
 */
struct _GTorchSampleSourceClass
{
  GObjectClass parent_class;

  /**
   * GTorchSampleSourceClass::next:
   * @self: a source
   * @cancellable: (nullable): is cancelled when the sample is not wanted any longer
   * @error: return location for an error
   *
   * Gets the next sample.
   *
   * Returns: (transfer full) (nullable): the sample, %NULL without an error at the end, or %NULL with
   *   @error set
   *
   * Since: 0.1
   */
  GTorchSample *(*next) (GTorchSampleSource *self, GCancellable *cancellable, GError **error);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_source_next (GTorchSampleSource *self, GCancellable *cancellable,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;

#define GTORCH_TYPE_ITERABLE_DATASET (gtorch_iterable_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchIterableDataset, gtorch_iterable_dataset, GTORCH, ITERABLE_DATASET,
                          GTorchDataset)

/**
 * GTorchIterableDatasetClass:
 * @parent_class: the parent class
 * @iterate: begins to read the samples
 *
 * The virtual functions of an iterable data set.
 *
 * Since: 0.1
 */
struct _GTorchIterableDatasetClass
{
  GTorchDatasetClass parent_class;

  /**
   * GTorchIterableDatasetClass::iterate:
   * @self: a data set
   * @worker: which of the workers asks, from 0
   * @n_workers: how many workers there are, at least 1
   * @error: return location for an error
   *
   * Begins to read the samples. Each worker of a loader reads a source of its own; what the data set gives to
   * every one of them arrives as often as there are workers, so it should give each worker another part.
   *
   * Returns: (transfer full): the source, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchSampleSource *(*iterate) (GTorchIterableDataset *self, guint worker, guint n_workers,
                                  GError **error);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchSampleSource *gtorch_iterable_dataset_iterate (GTorchIterableDataset *self, guint worker,
                                                     guint n_workers,
                                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
