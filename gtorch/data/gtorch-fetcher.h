/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-iterable-dataset.h>
#include <gtorch/data/gtorch-sample-collate.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FETCHER (gtorch_fetcher_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchFetcher, gtorch_fetcher, GTORCH, FETCHER, GObject)

/**
 * GTorchFetcherClass:
 * @parent_class: the parent class
 * @begin: prepares a worker for a pass
 * @fetch: gets a batch by its indices
 * @fetch_next: gets the next batch of a worker's own source of samples
 * @end: tells that a worker ends
 *
 * The virtual functions of a fetcher. For one worker they are called in one thread, one after another; for
 * several workers at the same time. Without workers they are called for worker 0 by whoever asks for a batch.
 *
 * Since: 0.1
 */
struct _GTorchFetcherClass
{
  GObjectClass parent_class;

  /**
   * GTorchFetcherClass::begin:
   * @self: a fetcher
   * @worker: which worker, from 0
   * @n_workers: how many there are, at least 1
   * @seed: a number that the loader drew for this pass; the same for all workers
   * @cancellable: (nullable): is cancelled when the pass is given up
   * @error: return location for an error
   *
   * Prepares a worker for a pass. It is the first call for a worker, and is repeated for each further pass if
   * workers are persistent.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*begin) (GTorchFetcher *self, guint worker, guint n_workers, guint64 seed,
                     GCancellable *cancellable, GError **error);
  /**
   * GTorchFetcherClass::fetch:
   * @self: a fetcher
   * @worker: which worker
   * @indices: (array length=n_indices): the samples of the batch; one, which is not collated, if the loader
   *   makes no batches
   * @n_indices: the length of @indices, at least 1
   * @cancellable: (nullable): is cancelled when the batch is not wanted any longer
   * @error: return location for an error
   *
   * Gets a batch by its indices.
   *
   * Returns: (transfer full): the batch, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchSample *(*fetch) (GTorchFetcher *self, guint worker, const gint64 *indices, gsize n_indices,
                          GCancellable *cancellable, GError **error);
  /**
   * GTorchFetcherClass::fetch_next:
   * @self: a fetcher
   * @worker: which worker
   * @n: how many samples the batch has; 0 for one sample that is not collated
   * @drop_last: whether a last batch that has fewer is left out
   * @cancellable: (nullable): is cancelled when the batch is not wanted any longer
   * @error: return location for an error
   *
   * Gets the next batch of the worker's own source, for data sets that are iterable.
   *
   * Returns: (transfer full) (nullable): the batch, %NULL without an error when the source is at its end, or
   *   %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchSample *(*fetch_next) (GTorchFetcher *self, guint worker, gint64 n, gboolean drop_last,
                               GCancellable *cancellable, GError **error);
  /**
   * GTorchFetcherClass::end:
   * @self: a fetcher
   * @worker: which worker
   *
   * Tells that a worker ends. Nothing is called for it afterwards, unless it begins again.
   *
   * Since: 0.1
   */
  void (*end) (GTorchFetcher *self, guint worker);

  /*< private >*/
  gpointer padding[6];
};

GTORCH_AVAILABLE_IN_0_1
GTorchFetcher *gtorch_fetcher_new (GTorchDataset *dataset,
                                   gboolean batched) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchDataset *gtorch_fetcher_get_dataset (GTorchFetcher *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_fetcher_get_fixed_workers (GTorchFetcher *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_fetcher_set_collate (GTorchFetcher *self, GTorchCollateFunc func, gpointer user_data,
                                 GDestroyNotify destroy);

G_END_DECLS
