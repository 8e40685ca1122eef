/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_AVG_POOL2D (gtorch_avg_pool2d_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAvgPool2d, gtorch_avg_pool2d, GTORCH, AVG_POOL2D, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchAvgPool2d *gtorch_avg_pool2d_new (gint64 kernel_size, gint64 stride, gint64 padding,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
