/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CONV2D (gtorch_conv2d_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchConv2d, gtorch_conv2d, GTORCH, CONV2D, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchConv2d *gtorch_conv2d_new (gint64 in_channels, gint64 out_channels, gint64 kernel_size,
                                 gint64 stride, gint64 padding, gboolean bias,
                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
