/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Data sets, samplers, loaders and what they give, to pass to functions. */

#include "config.h"

#include "refuse.h"

static GTorchTensorDataset *
rows_new (void)
{
  g_autoptr (GTorchTensor) rows =
      gtorch_ones (GTORCH_SHAPE (4, 2), GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);

  return gtorch_tensor_dataset_new (&rows, 1, NULL);
}

static GTorchChainDataset *
chain_new (void)
{
  /* a chain of a chain that has no samples */
  g_autoptr (GTorchDataset) empty = g_object_new (GTORCH_TYPE_CHAIN_DATASET, NULL);

  return gtorch_chain_dataset_new (&empty, 1, NULL);
}

static GTorchSampleSource *
source_new (void)
{
  g_autoptr (GTorchChainDataset) dataset = chain_new ();

  return gtorch_iterable_dataset_iterate (GTORCH_ITERABLE_DATASET (dataset), 0, 1, NULL);
}

static GTorchDataLoader *
loader_new (void)
{
  g_autoptr (GTorchTensorDataset) dataset = rows_new ();

  return gtorch_data_loader_new (GTORCH_DATASET (dataset), 2, TRUE);
}

gpointer
refuse_make_data (const gchar *type)
{
  g_autoptr (GTorchTensorDataset) rows = rows_new ();
  g_autoptr (GTorchSampler) order = gtorch_sequential_sampler_new (4);
  g_autoptr (GTorchDataLoader) loader = loader_new ();
  g_autoptr (GTorchSize) size = gtorch_size_new ((const gint64[]){ 1, 0 }, 2);
  GTorchDataset *dataset = GTORCH_DATASET (rows);

  if (g_str_equal (type, "GTorchDataset") || g_str_equal (type, "GTorchTensorDataset"))
    return g_steal_pointer (&rows);
  if (g_str_equal (type, "GTorchSubset"))
    return gtorch_subset_new (dataset, (const gint64[]){ 1 }, 1);
  if (g_str_equal (type, "GTorchConcatDataset"))
    return gtorch_concat_dataset_new (&dataset, 1, NULL);
  if (g_str_equal (type, "GTorchStackDataset"))
    return gtorch_stack_dataset_new (&dataset, 1, NULL);
  if (g_str_equal (type, "GTorchChainDataset") || g_str_equal (type, "GTorchIterableDataset"))
    return chain_new ();
  if (g_str_equal (type, "GTorchSampleSource"))
    return source_new ();
  if (g_str_equal (type, "GTorchIndexSource"))
    return gtorch_index_source_new (size);
  if (g_str_equal (type, "GTorchSampler"))
    return g_steal_pointer (&order);
  if (g_str_equal (type, "GTorchDistributedSampler"))
    return gtorch_distributed_sampler_new (4, 2, 0, TRUE, 0, FALSE);
  if (g_str_equal (type, "GTorchSubsetRandomSampler"))
    return gtorch_subset_random_sampler_new ((const gint64[]){ 1 }, 1, NULL);
  if (g_str_equal (type, "GTorchWeightedRandomSampler"))
    return gtorch_weighted_random_sampler_new ((const gdouble[]){ 1, 2 }, 2, 1, TRUE, NULL);
  if (g_str_equal (type, "GTorchFetcher"))
    return gtorch_fetcher_new (dataset, TRUE);
  if (g_str_equal (type, "GTorchWorkerInfo"))
    return g_object_new (GTORCH_TYPE_WORKER_INFO, NULL);
  if (g_str_equal (type, "GTorchDataLoader"))
    return g_steal_pointer (&loader);
  if (g_str_equal (type, "GTorchDataLoaderIter"))
    return gtorch_data_loader_iterate (loader, NULL);
  if (g_str_equal (type, "GTorchSample"))
    return gtorch_sample_new_int (3);
  if (g_str_equal (type, "GVariant"))
    return gtorch_data_loader_get_state (loader, NULL);
  if (g_str_equal (type, "GValue"))
    return g_value_init (g_new0 (GValue, 1), G_TYPE_INT);
  return NULL;
}
