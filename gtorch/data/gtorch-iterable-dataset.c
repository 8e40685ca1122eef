/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-iterable-dataset.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-error.h"
#include "data/gtorch-dataset-private.h"

/**
 * GTorchIterableDataset:
 *
 * Samples that only come one after another: from a network, a pipe, a file that is too large to find a
 * sample in.
 *
 * A subclass overrides iterate, which begins to read. A [class@DataLoader] cuts batches from what
 * arrives; with workers, each of them has a source of its own, and the batches of the sources alternate.
 * Without get_length the length is unknown. With get_state and set_state a loader without workers goes on in
 * the middle of an epoch without reading the samples before it.
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

static GVariant *
gtorch_iterable_dataset_real_get_state (GTorchIterableDataset *self, GError **error)
{
  return NULL;
}

static gboolean
gtorch_iterable_dataset_real_set_state (GTorchIterableDataset *self, GVariant *state,
                                        GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("dataset: %s has no set_state"),
               G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

static void
gtorch_iterable_dataset_class_init (GTorchIterableDatasetClass *klass)
{
  GTORCH_DATASET_CLASS (klass)->get_length = gtorch_iterable_dataset_get_length;
  GTORCH_DATASET_CLASS (klass)->get_item = gtorch_iterable_dataset_get_item;
  klass->iterate = gtorch_iterable_dataset_real_iterate;
  klass->get_state = gtorch_iterable_dataset_real_get_state;
  klass->set_state = gtorch_iterable_dataset_real_set_state;
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
  if (!gtorch_callback_gave ("dataset: iterate", source, local, error))
    {
      g_clear_object (&source);
      return NULL;
    }
  if (!gtorch_callback_check ("dataset", "iterate", &source, GTORCH_TYPE_SAMPLE_SOURCE, error))
    return NULL;
  return source;
}

/**
 * gtorch_iterable_dataset_get_state: (virtual get_state)
 * @self: a data set
 * @error: return location for an error
 *
 * Tells where the source that was begun last is.
 *
 * Returns: (transfer full) (nullable): the state, %NULL without an error if the data set has none, or %NULL
 *   with @error set: an error of the data set
 *
 * Since: 0.1
 */
GVariant *
gtorch_iterable_dataset_get_state (GTorchIterableDataset *self, GError **error)
{
  GError *local = NULL;
  GVariant *state;

  g_return_val_if_fail (GTORCH_IS_ITERABLE_DATASET (self), NULL);
  state = GTORCH_ITERABLE_DATASET_GET_CLASS (self)->get_state (self, &local);
  if (state != NULL)
    g_variant_take_ref (state);
  if (local == NULL)
    return state;
  g_clear_pointer (&state, g_variant_unref);
  g_propagate_error (error, local);
  return NULL;
}

/**
 * gtorch_iterable_dataset_set_state: (virtual set_state)
 * @self: a data set
 * @state: a state from [method@IterableDataset.get_state]
 * @error: return location for an error
 *
 * Lets the source that is begun next go on where the state was taken.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_SUPPORTED if the data set has no states, or with its own
 *   error
 *
 * Since: 0.1
 */
gboolean
gtorch_iterable_dataset_set_state (GTorchIterableDataset *self, GVariant *state, GError **error)
{
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_ITERABLE_DATASET (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  g_variant_ref_sink (state);
  done = GTORCH_ITERABLE_DATASET_GET_CLASS (self)->set_state (self, state, &local);
  g_variant_unref (state);
  return gtorch_callback_ended ("dataset: set_state", done, local, error);
}
