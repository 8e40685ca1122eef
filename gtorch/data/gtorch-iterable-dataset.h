/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-dataset.h>
#include <gtorch/data/gtorch-sample-source.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ITERABLE_DATASET (gtorch_iterable_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchIterableDataset, gtorch_iterable_dataset, GTORCH, ITERABLE_DATASET,
                          GTorchDataset)

/**
 * GTorchIterableDatasetClass:
 * @parent_class: the parent class
 * @iterate: begins to read the samples
 * @get_state: tells where the data set is
 * @set_state: lets the data set go on somewhere
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
  /**
   * GTorchIterableDatasetClass::get_state:
   * @self: a data set
   * @error: return location for an error
   *
   * Tells where the source that was begun last is, so that `set_state` goes on there. A data set without this
   * function has no states: its samples are read again, and left out.
   *
   * Returns: (transfer full) (nullable): the state, %NULL without an error if the data set has none, or %NULL
   *   with @error set
   *
   * Since: 0.1
   */
  GVariant *(*get_state) (GTorchIterableDataset *self, GError **error);
  /**
   * GTorchIterableDatasetClass::set_state:
   * @self: a data set
   * @state: what `get_state` of such a data set gave
   * @error: return location for an error
   *
   * Lets the source that is begun next give the samples behind those that had been given.
   *
   * Returns: %TRUE, or %FALSE with @error set; then nothing has changed
   *
   * Since: 0.1
   */
  gboolean (*set_state) (GTorchIterableDataset *self, GVariant *state, GError **error);

  /*< private >*/
  gpointer padding[2];
};

GTORCH_AVAILABLE_IN_0_1
GTorchSampleSource *gtorch_iterable_dataset_iterate (GTorchIterableDataset *self, guint worker,
                                                     guint n_workers,
                                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_iterable_dataset_get_state (GTorchIterableDataset *self,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_iterable_dataset_set_state (GTorchIterableDataset *self, GVariant *state,
                                            GError **error);

G_END_DECLS
