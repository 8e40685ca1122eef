/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_BATCH_NORM2D (gtorch_batch_norm2d_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchBatchNorm2d, gtorch_batch_norm2d, GTORCH, BATCH_NORM2D, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchBatchNorm2d *gtorch_batch_norm2d_new (gint64 num_features,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
