/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-worker-info.h"

#include "base/gtorch-field-private.h"
#include "data/gtorch-fetcher-private.h"

/**
 * GTorchWorkerInfo:
 *
 * What a data set can know of the worker that asks for a sample.
 *
 * Since: 0.1
 */
struct _GTorchWorkerInfo
{
  GObject parent_instance;
  guint id, num_workers;
  guint64 seed;
  GTorchDataset *dataset;
  GTorchGenerator *generator;
};

G_DEFINE_TYPE (GTorchWorkerInfo, gtorch_worker_info, G_TYPE_OBJECT)

static GPrivate current; /* of the thread, not owned; __thread memory is scarce */

static void
gtorch_worker_info_finalize (GObject *object)
{
  GTorchWorkerInfo *self = GTORCH_WORKER_INFO (object);

  g_clear_object (&self->dataset);
  g_clear_object (&self->generator);
  G_OBJECT_CLASS (gtorch_worker_info_parent_class)->finalize (object);
}

typedef GTorchWorkerInfo Self;

static const GTorchField fields[] = {
  /**
   * GTorchWorkerInfo:id:
   *
   * Which worker it is, from 0.
   *
   * Since: 0.1
   */
  { "id", GTORCH_PROPERTY_UINT (gtorch_worker_info_get_id, NULL) },
  /**
   * GTorchWorkerInfo:num-workers:
   *
   * How many workers there are.
   *
   * Since: 0.1
   */
  { "num-workers", GTORCH_PROPERTY_UINT (gtorch_worker_info_get_num_workers, NULL) },
  /**
   * GTorchWorkerInfo:seed:
   *
   * A number that is another one for each worker and each pass.
   *
   * Since: 0.1
   */
  { "seed", GTORCH_PROPERTY_UINT64 (gtorch_worker_info_get_seed, NULL) },
  /**
   * GTorchWorkerInfo:dataset: (getter get_dataset)
   *
   * The data set.
   *
   * Since: 0.1
   */
  { "dataset", GTORCH_PROPERTY_OBJECT (GTorchDataset, gtorch_dataset_get_type,
                                       gtorch_worker_info_get_dataset, NULL) },
  /**
   * GTorchWorkerInfo:generator: (getter get_generator)
   *
   * Random numbers for the batch that the worker makes.
   *
   * Since: 0.1
   */
  { "generator", GTORCH_PROPERTY_OBJECT (GTorchGenerator, gtorch_generator_get_type,
                                         gtorch_worker_info_get_generator, NULL) },
};

static void
gtorch_worker_info_class_init (GTorchWorkerInfoClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_worker_info_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_worker_info_init (GTorchWorkerInfo *self)
{
  self->generator = gtorch_generator_new ();
}

GTorchWorkerInfo *
gtorch_worker_info_new (guint id, guint num_workers, guint64 seed, GTorchDataset *dataset)
{
  GTorchWorkerInfo *self = g_object_new (GTORCH_TYPE_WORKER_INFO, NULL);

  self->id = id;
  self->num_workers = num_workers;
  self->seed = seed + id;
  g_set_object (&self->dataset, dataset);
  return self;
}

void
gtorch_worker_info_set_current (GTorchWorkerInfo *self)
{
  g_private_set (&current, self);
}

/**
 * gtorch_worker_info_get_current:
 *
 * Gets what is known of the worker whose thread this is.
 *
 * Returns: (transfer none) (nullable): the information, or %NULL in a thread that is not a loader's
 *
 * Since: 0.1
 */
GTorchWorkerInfo *
gtorch_worker_info_get_current (void)
{
  return g_private_get (&current);
}

/**
 * gtorch_worker_info_get_id: (get-property id)
 * @self: a worker's information
 *
 * Tells which worker it is.
 *
 * Returns: the number of the worker, from 0
 *
 * Since: 0.1
 */
guint
gtorch_worker_info_get_id (GTorchWorkerInfo *self)
{
  g_return_val_if_fail (GTORCH_IS_WORKER_INFO (self), 0);
  return self->id;
}

/**
 * gtorch_worker_info_get_num_workers: (get-property num-workers)
 * @self: a worker's information
 *
 * Counts the workers of the loader.
 *
 * Returns: how many there are
 *
 * Since: 0.1
 */
guint
gtorch_worker_info_get_num_workers (GTorchWorkerInfo *self)
{
  g_return_val_if_fail (GTORCH_IS_WORKER_INFO (self), 0);
  return self->num_workers;
}

/**
 * gtorch_worker_info_get_seed: (get-property seed)
 * @self: a worker's information
 *
 * Gets a number that is another one for each worker and each pass.
 *
 * Returns: the seed
 *
 * Since: 0.1
 */
guint64
gtorch_worker_info_get_seed (GTorchWorkerInfo *self)
{
  g_return_val_if_fail (GTORCH_IS_WORKER_INFO (self), 0);
  return self->seed;
}

/**
 * gtorch_worker_info_get_dataset: (get-property dataset)
 * @self: a worker's information
 *
 * Gets the data set.
 *
 * Returns: (transfer none) (nullable): the data set; %NULL if the loader has only a fetcher
 *
 * Since: 0.1
 */
GTorchDataset *
gtorch_worker_info_get_dataset (GTorchWorkerInfo *self)
{
  g_return_val_if_fail (GTORCH_IS_WORKER_INFO (self), NULL);
  return self->dataset;
}

/**
 * gtorch_worker_info_get_generator: (get-property generator)
 * @self: a worker's information
 *
 * Gets a generator that is seeded anew for each batch: what a data set draws from it follows from the
 * pass and the number of the batch, not from the worker that makes the batch. So a loader that is resumed
 * gives the same samples.
 *
 * Returns: (transfer none): the generator
 *
 * Since: 0.1
 */
GTorchGenerator *
gtorch_worker_info_get_generator (GTorchWorkerInfo *self)
{
  g_return_val_if_fail (GTORCH_IS_WORKER_INFO (self), NULL);
  return self->generator;
}
