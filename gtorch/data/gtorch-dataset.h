/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-size.h>
#include <gtorch/data/gtorch-sample.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DATASET (gtorch_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchDataset, gtorch_dataset, GTORCH, DATASET, GObject)

/**
 * GTorchDatasetClass:
 * @parent_class: the parent class
 * @get_length: counts the samples
 * @get_item: gets one sample
 * @get_batch: gets several samples as one batch; %NULL, as it is by default, if the class has no better way
 *   than to get them one by one
 *
 * The virtual functions of a data set.
 *
 * Since: 0.1
 */
struct _GTorchDatasetClass
{
  GObjectClass parent_class;

  /**
   * GTorchDatasetClass::get_length:
   * @self: a data set
   * @error: return location for an error
   *
   * Counts the samples.
   *
   * Returns: the number of samples, or -1 with @error set
   *
   * Since: 0.1
   */
  gint64 (*get_length) (GTorchDataset *self, GError **error);
  /**
   * GTorchDatasetClass::get_item:
   * @self: a data set
   * @index: which sample, from 0
   * @cancellable: (nullable): is cancelled when the sample is not wanted any longer
   * @error: return location for an error
   *
   * Gets one sample. Fails with %GTORCH_ERROR_INDEX if there is none with the index. Workers call it in
   * threads of their own, several at a time, if [property@Dataset:thread-safe] is %TRUE.
   *
   * Returns: (transfer full): the sample, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchSample *(*get_item) (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                             GError **error);
  /**
   * GTorchDatasetClass::get_batch:
   * @self: a data set
   * @indices: (array length=n_indices): which samples, each from 0
   * @n_indices: the length of @indices
   * @cancellable: (nullable): is cancelled when the samples are not wanted any longer
   * @error: return location for an error
   *
   * Gets several samples as one batch, as [func@Sample.collate] would make it of them. It is optional.
   *
   * Returns: (transfer full): the batch, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchSample *(*get_batch) (GTorchDataset *self, const gint64 *indices, gsize n_indices,
                              GCancellable *cancellable, GError **error);

  /*< private >*/
  gpointer padding[6];
};

GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_dataset_get_length (GTorchDataset *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_dataset_get_item (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_dataset_get_batch (GTorchDataset *self, const gint64 *indices, gsize n_indices,
                                        GCancellable *cancellable,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_dataset_get_thread_safe (GTorchDataset *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_dataset_set_thread_safe (GTorchDataset *self, gboolean thread_safe);

G_END_DECLS
