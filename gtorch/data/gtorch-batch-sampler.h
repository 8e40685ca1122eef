/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-sampler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_BATCH_SAMPLER (gtorch_batch_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchBatchSampler, gtorch_batch_sampler, GTORCH, BATCH_SAMPLER,
                      GTorchSampler)

GTORCH_AVAILABLE_IN_0_1
GTorchSampler *gtorch_batch_sampler_new (GTorchSampler *sampler, gint64 batch_size,
                                         gboolean drop_last) G_GNUC_WARN_UNUSED_RESULT;

#define GTORCH_TYPE_DISTRIBUTED_SAMPLER (gtorch_distributed_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDistributedSampler, gtorch_distributed_sampler, GTORCH,
                      DISTRIBUTED_SAMPLER, GTorchSampler)

GTORCH_AVAILABLE_IN_0_1
GTorchSampler *gtorch_distributed_sampler_new (gint64 length, gint64 num_replicas, gint64 rank,
                                               gboolean shuffle, guint64 seed,
                                               gboolean drop_last) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_distributed_sampler_get_epoch (GTorchDistributedSampler *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_distributed_sampler_set_epoch (GTorchDistributedSampler *self, gint64 epoch);

G_END_DECLS
