/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-sampler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SEQUENTIAL_SAMPLER (gtorch_sequential_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSequentialSampler, gtorch_sequential_sampler, GTORCH,
                      SEQUENTIAL_SAMPLER, GTorchSampler)

GTORCH_AVAILABLE_IN_0_1
GTorchSampler *gtorch_sequential_sampler_new (gint64 length) G_GNUC_WARN_UNUSED_RESULT;

#define GTORCH_TYPE_RANDOM_SAMPLER (gtorch_random_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchRandomSampler, gtorch_random_sampler, GTORCH, RANDOM_SAMPLER,
                      GTorchSampler)

GTORCH_AVAILABLE_IN_0_1
GTorchSampler *gtorch_random_sampler_new (gint64 length, gboolean replacement, gint64 num_samples,
                                          GTorchGenerator *generator) G_GNUC_WARN_UNUSED_RESULT;

#define GTORCH_TYPE_SUBSET_RANDOM_SAMPLER (gtorch_subset_random_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSubsetRandomSampler, gtorch_subset_random_sampler, GTORCH,
                      SUBSET_RANDOM_SAMPLER, GTorchSampler)

GTORCH_AVAILABLE_IN_0_1
GTorchSampler *
gtorch_subset_random_sampler_new (const gint64 *indices, gsize n_indices,
                                  GTorchGenerator *generator) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_subset_random_sampler_get_indices (GTorchSubsetRandomSampler *self);

#define GTORCH_TYPE_WEIGHTED_RANDOM_SAMPLER (gtorch_weighted_random_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchWeightedRandomSampler, gtorch_weighted_random_sampler, GTORCH,
                      WEIGHTED_RANDOM_SAMPLER, GTorchSampler)

GTORCH_AVAILABLE_IN_0_1
GTorchSampler *
gtorch_weighted_random_sampler_new (const gdouble *weights, gsize n_weights, gint64 num_samples,
                                    gboolean replacement,
                                    GTorchGenerator *generator) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_weighted_random_sampler_get_weights (GTorchWeightedRandomSampler *self,
                                                     gsize *n_weights) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
