/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
void gtorch_set_detect_anomaly (gboolean mode, gboolean check_nan);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_anomaly_enabled (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_anomaly_check_nan_enabled (void);

G_END_DECLS
