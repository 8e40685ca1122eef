/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DEVICE (gtorch_device_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchDevice, gtorch_device, GTORCH, DEVICE, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_cpu (void);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_get_default_device (void);

G_END_DECLS
