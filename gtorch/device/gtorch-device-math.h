/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-enums.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchPrecision gtorch_device_get_matmul_precision (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_set_matmul_precision (GTorchDevice *self, GTorchPrecision precision);
GTORCH_AVAILABLE_IN_0_1
GTorchPrecision gtorch_device_get_conv_precision (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_set_conv_precision (GTorchDevice *self, GTorchPrecision precision);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_set_float32_matmul_precision (const gchar *precision, GError **error);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_get_float32_matmul_precision (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_get_benchmark (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_set_benchmark (GTorchDevice *self, gboolean benchmark);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_get_deterministic (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_set_deterministic (GTorchDevice *self, gboolean deterministic);

G_END_DECLS
