/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parallel_copy (GTorchProcessGroup *group, GTorchTensor *tensor,
                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parallel_sum (GTorchProcessGroup *group, GTorchTensor *tensor,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parallel_gather (GTorchProcessGroup *group, GTorchTensor *tensor,
                                      gint64 length, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parallel_split (GTorchProcessGroup *group, GTorchTensor *tensor,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parallelize_columns (GTorchModule *module, GTorchProcessGroup *group,
                                     gboolean gather_output, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parallelize_rows (GTorchModule *module, GTorchProcessGroup *group,
                                  gboolean split_input, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parallelize_is_part (GTorchTensor *param);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parallelize_gather (GTorchTensor *param,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parallelize_adopt (GTorchTensor *tensor, GTorchTensor *param, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parallelize_scatter (GTorchTensor *param, GTorchTensor *full, GError **error);

G_END_DECLS
