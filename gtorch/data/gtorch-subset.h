/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-iterable-dataset.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SUBSET (gtorch_subset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSubset, gtorch_subset, GTORCH, SUBSET, GTorchDataset)

GTORCH_AVAILABLE_IN_0_1
GTorchSubset *gtorch_subset_new (GTorchDataset *dataset, const gint64 *indices,
                                 gsize n_indices) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchDataset *gtorch_subset_get_dataset (GTorchSubset *self);
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_subset_get_indices (GTorchSubset *self);

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_random_split (GTorchDataset *dataset, const gint64 *lengths, gsize n_lengths,
                                GTorchGenerator *generator,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_random_split_fractions (GTorchDataset *dataset, const gdouble *fractions,
                                          gsize n_fractions, GTorchGenerator *generator,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
