/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-data-loader.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "data/gtorch-batch-sampler.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-loader-private.h"
#include "data/gtorch-random-sampler.h"
#include "device/gtorch-device-private.h"
#include "stream/gtorch-stream.h"
#include "tensor/gtorch-impl-private.h"

/**
 * GTorchDataLoader:
 *
 * Makes batches of the samples of a data set.
 *
 * [method@DataLoader.iterate] begins an epoch, whose batches [method@DataLoaderIter.next] gives one after
 * another; [method@DataLoader.run_async] emits [signal@DataLoader::batch] for each of them. With
 * `num-workers`, threads of the loader make the next batches meanwhile: each of them as many as
 * `prefetch-factor` says. With `device` they are copied there on a stream of the loader's own, and the
 * stream of whoever takes a batch waits for its copy.
 *
 * ```c
 * g_autoptr (GTorchDataLoader) loader = gtorch_data_loader_new (dataset, 32, TRUE);
 * g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
 * GTorchSample *batch;
 *
 * while (iter != NULL && (batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
 *   {
 *     train (gtorch_sample_get_child (batch, 0, NULL));
 *     gtorch_sample_unref (batch);
 *   }
 * ```
 *
 * Settings are fixed when the loader is made, and [method@DataLoader.check] says whether they fit
 * together. An error of a worker is that of the call that would have given the batch, with its code;
 * further calls give the batches after it. [method@DataLoader.get_state] returns what another loader
 * continues from, in the middle of an epoch, too.
 *
 * Since: 0.1
 */

enum
{
  BATCH,
  N_SIGNALS,
};

static guint signals[N_SIGNALS];

G_DEFINE_TYPE (GTorchDataLoader, gtorch_data_loader, G_TYPE_OBJECT)

static void
gtorch_data_loader_dispose (GObject *object)
{
  gtorch_data_loader_close (GTORCH_DATA_LOADER (object));
  G_OBJECT_CLASS (gtorch_data_loader_parent_class)->dispose (object);
}

static void
gtorch_data_loader_finalize (GObject *object)
{
  GTorchDataLoader *self = GTORCH_DATA_LOADER (object);

  g_clear_object (&self->dataset);
  g_clear_object (&self->sampler);
  g_clear_object (&self->batch_sampler);
  g_clear_object (&self->fetcher);
  g_clear_object (&self->made_fetcher);
  g_clear_object (&self->generator);
  g_clear_object (&self->device);
  g_clear_object (&self->stream);
  g_clear_pointer (&self->init, gtorch_loader_func_unref);
  g_clear_pointer (&self->collate, gtorch_loader_func_unref);
  g_clear_pointer (&self->pass_state, g_variant_unref);
  g_clear_pointer (&self->resume, g_variant_unref);
  g_array_unref (self->later);
  G_OBJECT_CLASS (gtorch_data_loader_parent_class)->finalize (object);
}

typedef GTorchDataLoader Self;

static void
gtorch_data_loader_get_length_value (gpointer object, const GTorchField *field, GValue *value)
{
  g_value_set_int64 (value, gtorch_data_loader_get_length (object, NULL));
}

#define FIELD(member) GTORCH_FIELD (GTorchDataLoader, member)

static const GTorchField fields[] = {
  /**
   * GTorchDataLoader:dataset:
   *
   * The data set.
   *
   * Since: 0.1
   */
  { "dataset", GTORCH_FIELD_OBJECT, FIELD (dataset), .type = gtorch_dataset_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:batch-size:
   *
   * How many samples a batch has; 0 to get samples as they are.
   *
   * Since: 0.1
   */
  { "batch-size", GTORCH_FIELD_INT64, FIELD (batch_size), 1, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:shuffle:
   *
   * Whether the order of samples is by chance, another one in each epoch.
   *
   * Since: 0.1
   */
  { "shuffle", GTORCH_FIELD_BOOL, FIELD (shuffle), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:sampler:
   *
   * The order of samples; %NULL for that of the data set, or one by chance. Not together with `shuffle`.
   *
   * Since: 0.1
   */
  { "sampler", GTORCH_FIELD_OBJECT, FIELD (sampler), .type = gtorch_sampler_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:batch-sampler:
   *
   * The samples of each batch: a sampler that gives those of one batch at a time, such as
   * [class@BatchSampler]. Not together with `batch-size`, `shuffle`, `sampler` and `drop-last`.
   *
   * Since: 0.1
   */
  { "batch-sampler", GTORCH_FIELD_OBJECT, FIELD (batch_sampler), .type = gtorch_sampler_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:num-workers:
   *
   * How many threads make batches in advance. 0: batches are made by whoever asks for them.
   *
   * Since: 0.1
   */
  { "num-workers", GTORCH_FIELD_INT, FIELD (num_workers), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:fetcher:
   *
   * What the workers call to get a batch; %NULL for what asks the data set.
   *
   * Since: 0.1
   */
  { "fetcher", GTORCH_FIELD_OBJECT, FIELD (fetcher), .type = gtorch_fetcher_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:pin-memory:
   *
   * Whether batches are in pinned memory, from which devices copy while the host does other things.
   *
   * Since: 0.1
   */
  { "pin-memory", GTORCH_FIELD_BOOL, FIELD (pin_memory), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:drop-last:
   *
   * Whether a last batch that has fewer samples is left out.
   *
   * Since: 0.1
   */
  { "drop-last", GTORCH_FIELD_BOOL, FIELD (drop_last), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:timeout:
   *
   * For how many seconds a batch of a worker is waited for; 0 for any time.
   *
   * Since: 0.1
   */
  { "timeout", GTORCH_FIELD_DOUBLE, FIELD (timeout), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:generator:
   *
   * Where the order by chance and the seeds of workers come from; %NULL for the CPU's default generator.
   *
   * Since: 0.1
   */
  { "generator", GTORCH_FIELD_OBJECT, FIELD (generator), .type = gtorch_generator_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:prefetch-factor:
   *
   * How many batches are made in advance for each worker; 0 for 2 of them.
   *
   * Since: 0.1
   */
  { "prefetch-factor", GTORCH_FIELD_INT, FIELD (prefetch_factor), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:persistent-workers:
   *
   * Whether workers remain for the next epoch.
   *
   * Since: 0.1
   */
  { "persistent-workers", GTORCH_FIELD_BOOL, FIELD (persistent_workers),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:in-order:
   *
   * Whether batches come in the order of the sampler. If not, the one that is made first comes first.
   *
   * Since: 0.1
   */
  { "in-order", GTORCH_FIELD_BOOL, FIELD (in_order), TRUE, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:device:
   *
   * Where batches are copied, by way of pinned memory and on a stream of the loader's own; %NULL to leave
   * them where the data set has them.
   *
   * Since: 0.1
   */
  { "device", GTORCH_FIELD_OBJECT, FIELD (device), .type = gtorch_device_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDataLoader:length:
   *
   * How many batches an epoch has; -1 if that is not known.
   *
   * Since: 0.1
   */
  { "length", GTORCH_FIELD_INT64, .value = -1, .get_value = gtorch_data_loader_get_length_value },
  /**
   * GTorchDataLoader:epoch:
   *
   * Which epoch was begun last, from 0.
   *
   * Since: 0.1
   */
  { "epoch", GTORCH_PROPERTY_UINT64 (gtorch_data_loader_get_epoch, NULL) },
  /**
   * GTorchDataLoader:position:
   *
   * How many batches of it were given.
   *
   * Since: 0.1
   */
  { "position", GTORCH_PROPERTY_INT64 (gtorch_data_loader_get_position, NULL) },
  /**
   * GTorchDataLoader:progress:
   *
   * The part of its batches that was given, from 0 to 1; 0 if the length is not known.
   *
   * Since: 0.1
   */
  { "progress", GTORCH_PROPERTY_DOUBLE (gtorch_data_loader_get_progress, NULL) },
};

static void
gtorch_data_loader_add_references (gpointer object, GTorchReferences *references)
{
  GTorchDataLoader *self = GTORCH_DATA_LOADER (object);

  gtorch_references_add_object (references, self->dataset);
  gtorch_references_add_object (references, self->sampler);
  gtorch_references_add_object (references, self->batch_sampler);
  gtorch_references_add_object (references, self->fetcher);
  gtorch_references_add_object (references, self->made_fetcher);
}

static GTorchReferencesType references_type = { .look = gtorch_data_loader_add_references };

static void
gtorch_data_loader_class_init (GTorchDataLoaderClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = gtorch_data_loader_dispose;
  G_OBJECT_CLASS (klass)->finalize = gtorch_data_loader_finalize;
  GTORCH_FIELDS (klass, fields);
  /**
   * GTorchDataLoader::batch:
   * @self: the loader
   * @batch: the batch
   *
   * Emitted for each batch by [method@DataLoader.run_async], in the thread-default main context of its
   * caller.
   *
   * Since: 0.1
   */
  signals[BATCH] = g_signal_new ("batch", GTORCH_TYPE_DATA_LOADER, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 1, GTORCH_TYPE_SAMPLE);
  references_type.type = GTORCH_TYPE_DATA_LOADER;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_data_loader_init (GTorchDataLoader *self)
{
  self->batch_size = 1;
  self->in_order = TRUE;
  self->length = -1;
  self->later = g_array_new (FALSE, FALSE, sizeof (gint64));
}

/**
 * gtorch_data_loader_new:
 * @dataset: the data set
 * @batch_size: how many samples a batch has; 0 to get samples as they are
 * @shuffle: whether the order of samples is by chance
 *
 * Creates a loader without workers. The other settings are properties, for g_object_new ().
 *
 * Returns: (transfer full): the loader
 *
 * Since: 0.1
 */
GTorchDataLoader *
gtorch_data_loader_new (GTorchDataset *dataset, gint64 batch_size, gboolean shuffle)
{
  g_return_val_if_fail (GTORCH_IS_DATASET (dataset), NULL);
  return g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", batch_size,
                       "shuffle", shuffle, NULL);
}

/**
 * gtorch_data_loader_set_collate:
 * @self: a loader
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): makes a batch of samples;
 *   %NULL for [func@Sample.collate]
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that makes a batch of samples, before the first epoch. If `batch-size` is 0, it is
 * called with each sample alone. With workers it is called in their threads. A fetcher that was given is
 * not concerned.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_set_collate (GTorchDataLoader *self, GTorchCollateFunc func, gpointer user_data,
                                GDestroyNotify destroy)
{
  GTorchFetcher *former;

  g_return_if_fail (GTORCH_IS_DATA_LOADER (self));
  g_clear_pointer (&self->collate, gtorch_loader_func_unref);
  if (func != NULL)
    self->collate = gtorch_loader_func_new (NULL, func, user_data, destroy);
  gtorch_references_lock ();
  former = g_steal_pointer (&self->made_fetcher);
  gtorch_references_unlock ();
  g_clear_object (&former);
}

/**
 * gtorch_data_loader_set_worker_init:
 * @self: a loader
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): prepares a worker
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets a function that is called in each worker before its first sample. It concerns workers that are started
 * afterwards.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_set_worker_init (GTorchDataLoader *self, GTorchWorkerInitFunc func,
                                    gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_DATA_LOADER (self));
  g_clear_pointer (&self->init, gtorch_loader_func_unref);
  if (func != NULL)
    self->init = gtorch_loader_func_new (func, NULL, user_data, destroy);
}

/* --- checking --- */

static gboolean
refuse (GError **error, gint code, const gchar *rule)
{
  g_set_error (error, GTORCH_ERROR, code, _ ("data_loader: %s"), rule);
  return FALSE;
}

static gboolean
check_number (const gchar *name, gdouble value, gdouble low, gdouble high, GError **error)
{
  if (value >= low && value <= high)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("data_loader: %s is %.15g, and must be %.15g to %.15g"), name, value, low, high);
  return FALSE;
}

static gboolean
check_order (GTorchDataLoader *self, GError **error)
{
  const gint code = GTORCH_ERROR_INVALID;

  if (GTORCH_IS_ITERABLE_DATASET (self->dataset)
      && (self->shuffle || self->sampler != NULL || self->batch_sampler != NULL))
    return refuse (error, code,
                   _ ("an iterable data set has its own order: shuffle, sampler and batch_sampler "
                      "are for others"));
  if (self->sampler != NULL && self->shuffle)
    return refuse (error, code, _ ("sampler and shuffle exclude each other"));
  if (self->batch_sampler != NULL
      && (self->batch_size != 1 || self->shuffle || self->sampler != NULL || self->drop_last))
    return refuse (error, code,
                   _ ("batch_sampler and any of batch_size, shuffle, sampler and drop_last exclude "
                      "each other"));
  if (self->batch_size == 0 && self->drop_last)
    return refuse (error, code, _ ("without batches (batch_size 0) there is no last one to drop"));
  return TRUE;
}

static gboolean
check_workers (GTorchDataLoader *self, GError **error)
{
  const gint code = GTORCH_ERROR_INVALID;

  if (self->num_workers == 0)
    {
      if (self->prefetch_factor != 0)
        return refuse (error, code, _ ("prefetch_factor needs workers: num_workers is 0"));
      if (self->persistent_workers)
        return refuse (error, code, _ ("persistent_workers needs workers: num_workers is 0"));
      if (self->timeout > 0)
        return refuse (error, code, _ ("timeout needs workers: num_workers is 0"));
      return TRUE;
    }
  if (!gtorch_dataset_get_thread_safe (self->dataset)
      && (self->fetcher == NULL || gtorch_fetcher_is_local (self->fetcher)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("data_loader: num_workers is %d, and %s cannot be used by several threads"),
                   self->num_workers, G_OBJECT_TYPE_NAME (self->dataset));
      return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_data_loader_check:
 * @self: a loader
 * @error: return location for an error
 *
 * Checks whether the settings fit together. [method@DataLoader.iterate] does it, too.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID, or with %GTORCH_ERROR_NOT_SUPPORTED for workers and
 *   a data set that several threads cannot use
 *
 * Since: 0.1
 */
gboolean
gtorch_data_loader_check (GTorchDataLoader *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), FALSE);
  if (self->dataset == NULL)
    return refuse (error, GTORCH_ERROR_INVALID, _ ("there is no data set"));
  return check_number ("batch_size", self->batch_size, 0, G_MAXINT32, error)
         && check_number ("num_workers", self->num_workers, 0, 4096, error)
         && check_number ("prefetch_factor", self->prefetch_factor, 0, 1 << 20, error)
         && check_number ("timeout", self->timeout, 0, 1e9, error) && check_order (self, error)
         && check_workers (self, error);
}

/* --- samplers --- */

GTorchSampler *
gtorch_data_loader_make_sampler (GTorchDataLoader *self, GError **error)
{
  g_autoptr (GTorchSampler) sampler = NULL;

  if (GTORCH_IS_ITERABLE_DATASET (self->dataset))
    return NULL;
  if (self->batch_sampler != NULL)
    return g_object_ref (self->batch_sampler);
  if (self->sampler != NULL)
    sampler = g_object_ref (self->sampler);
  else
    {
      const gint64 length = gtorch_dataset_get_length (self->dataset, error);

      if (length < 0)
        return NULL;
      sampler = self->shuffle ? gtorch_random_sampler_new (length, FALSE, -1, self->generator)
                              : gtorch_sequential_sampler_new (length);
    }
  if (self->batch_size == 0)
    return g_steal_pointer (&sampler);
  return gtorch_batch_sampler_new (sampler, self->batch_size, self->drop_last);
}

/**
 * gtorch_data_loader_get_length:
 * @self: a loader
 * @error: return location for an error
 *
 * Counts the batches of an epoch.
 *
 * Of an iterable data set that knows its length it is an estimate: with several workers each source may
 * have a last batch of its own.
 *
 * Returns: the number of batches; -1 with @error set: %GTORCH_ERROR_NOT_SUPPORTED if it is not known, or
 *   the errors of [method@DataLoader.check]
 *
 * Since: 0.1
 */
gint64
gtorch_data_loader_get_length (GTorchDataLoader *self, GError **error)
{
  g_autoptr (GTorchSampler) sampler = NULL;
  GError *local = NULL;
  gint64 n;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), -1);
  if (!gtorch_data_loader_check (self, error))
    return -1;
  sampler = gtorch_data_loader_make_sampler (self, &local);
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return -1;
    }
  if (sampler != NULL)
    return gtorch_sampler_get_length (sampler, error);
  n = gtorch_dataset_get_length (self->dataset, error);
  if (n < 0 || self->batch_size == 0)
    return n;
  return n / self->batch_size + (n % self->batch_size > 0 && !self->drop_last);
}

/**
 * gtorch_data_loader_get_epoch: (get-property epoch)
 * @self: a loader
 *
 * Tells which epoch was begun last.
 *
 * Returns: the number of the epoch, from 0
 *
 * Since: 0.1
 */
guint64
gtorch_data_loader_get_epoch (GTorchDataLoader *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), 0);
  return self->epoch;
}

/**
 * gtorch_data_loader_get_position: (get-property position)
 * @self: a loader
 *
 * Counts the batches of the last epoch that were given.
 *
 * Returns: the number of batches
 *
 * Since: 0.1
 */
gint64
gtorch_data_loader_get_position (GTorchDataLoader *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), 0);
  return self->position;
}

/**
 * gtorch_data_loader_get_progress: (get-property progress)
 * @self: a loader
 *
 * Tells which part of the batches of the last epoch was given.
 *
 * Returns: a number from 0 to 1; 0 if the length is not known
 *
 * Since: 0.1
 */
gdouble
gtorch_data_loader_get_progress (GTorchDataLoader *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), 0);
  if (self->length < 0)
    return self->is_done;
  return self->length == 0 ? 1 : MIN (1, (gdouble) self->position / (gdouble) self->length);
}

void
gtorch_data_loader_notify (GTorchDataLoader *self, gboolean is_new_epoch)
{
  if (is_new_epoch)
    g_object_notify (G_OBJECT (self), "epoch");
  g_object_notify (G_OBJECT (self), "position");
  g_object_notify (G_OBJECT (self), "progress");
}

/**
 * gtorch_data_loader_close:
 * @self: a loader
 *
 * Ends the workers that remain between epochs (`persistent-workers`). The next epoch starts others. It is
 * done when the loader is finalized, too.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_close (GTorchDataLoader *self)
{
  g_return_if_fail (GTORCH_IS_DATA_LOADER (self));
  g_clear_pointer (&self->workers, gtorch_workers_close);
}
