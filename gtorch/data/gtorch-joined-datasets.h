/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-iterable-dataset.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CONCAT_DATASET (gtorch_concat_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchConcatDataset, gtorch_concat_dataset, GTORCH, CONCAT_DATASET,
                      GTorchDataset)

GTORCH_AVAILABLE_IN_0_1
GTorchConcatDataset *gtorch_concat_dataset_new (GTorchDataset **datasets, gsize n_datasets,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_concat_dataset_get_datasets (GTorchConcatDataset *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_concat_dataset_get_cumulative_sizes (GTorchConcatDataset *self);

#define GTORCH_TYPE_CHAIN_DATASET (gtorch_chain_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchChainDataset, gtorch_chain_dataset, GTORCH, CHAIN_DATASET,
                      GTorchIterableDataset)

GTORCH_AVAILABLE_IN_0_1
GTorchChainDataset *gtorch_chain_dataset_new (GTorchDataset **datasets, gsize n_datasets,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_chain_dataset_get_datasets (GTorchChainDataset *self) G_GNUC_WARN_UNUSED_RESULT;

#define GTORCH_TYPE_STACK_DATASET (gtorch_stack_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchStackDataset, gtorch_stack_dataset, GTORCH, STACK_DATASET,
                      GTorchDataset)

GTORCH_AVAILABLE_IN_0_1
GTorchStackDataset *gtorch_stack_dataset_new (GTorchDataset **datasets, gsize n_datasets,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchStackDataset *gtorch_stack_dataset_new_with_keys (const gchar *const *keys,
                                                        GTorchDataset **datasets, gsize n_datasets,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_stack_dataset_get_datasets (GTorchStackDataset *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_stack_dataset_get_keys (GTorchStackDataset *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
