/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>
#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SHARDED_OPTIMIZER (gtorch_sharded_optimizer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchShardedOptimizer, gtorch_sharded_optimizer, GTORCH, SHARDED_OPTIMIZER,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchShardedOptimizer *gtorch_sharded_optimizer_new (GTorchOptimizer *optimizer,
                                                      GTorchProcessGroup *group,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchOptimizer *
gtorch_sharded_optimizer_get_optimizer (GTorchShardedOptimizer *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_sharded_optimizer_get_group (GTorchShardedOptimizer *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_sharded_optimizer_get_owner (GTorchShardedOptimizer *self, GTorchTensor *param);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sharded_optimizer_consolidate (GTorchShardedOptimizer *self, gint to,
                                               GError **error);
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_sharded_optimizer_state_dict (GTorchShardedOptimizer *self,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_sharded_optimizer_state_lists (GTorchShardedOptimizer *self, gchar ***names,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
