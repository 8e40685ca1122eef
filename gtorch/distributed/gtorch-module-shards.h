/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MODULE_SHARDS (gtorch_module_shards_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchModuleShards, gtorch_module_shards, GTORCH, MODULE_SHARDS, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchModuleShards *gtorch_module_shards_new (GTorchModule *module, GTorchProcessGroup *group,
                                              gboolean reshard_after_forward,
                                              GTorchDType param_dtype, GTorchDType reduce_dtype,
                                              GTorchDType output_dtype,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_begin_forward (GTorchModuleShards *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_module_shards_end_forward (GTorchModuleShards *self);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_module_shards_get_group (GTorchModuleShards *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_unshard (GTorchModuleShards *self, gboolean wait, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_reshard (GTorchModuleShards *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_set_forward_prefetch (GTorchModuleShards *self,
                                                    GTorchModuleShards **others, gsize n_others,
                                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_set_backward_prefetch (GTorchModuleShards *self,
                                                     GTorchModuleShards **others, gsize n_others,
                                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_module_shards_get_replicas (GTorchModuleShards *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_set_replicas (GTorchModuleShards *self, GTorchProcessGroup *replicas,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_set_nearby (GTorchModuleShards *self, GTorchProcessGroup *nearby,
                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_offload (GTorchModuleShards *self, gboolean pin, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_is_offloaded (GTorchModuleShards *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_module_shards_get_n_elements (GTorchModuleShards *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_module_shards_ignore (GTorchTensor *param);
GTORCH_AVAILABLE_IN_0_1
GTorchModuleShards *gtorch_module_shards_find (GTorchTensor *tensor);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_adopt (GTorchModuleShards *self, GTorchTensor *tensor,
                                     GTorchTensor *param, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_shards_gather (GTorchModuleShards *self, GTorchTensor *param,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_shards_scatter (GTorchModuleShards *self, GTorchTensor *param,
                                       GTorchTensor *full, GError **error);

G_END_DECLS
