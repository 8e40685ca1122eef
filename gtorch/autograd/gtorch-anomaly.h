/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchAnomalyFunc:
 * @user_data: the user data of the function
 * @error: return location for an error, whose message then stands for the place
 *
 * Tells where the program is, in the words of its language.
 *
 * Returns: (transfer full) (nullable): the place, or %NULL if it is not known, or with @error set
 *
 * Since: 0.1
 */
typedef gchar *(*GTorchAnomalyFunc) (gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
void gtorch_set_anomaly_func (GTorchAnomalyFunc func, gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
void gtorch_set_detect_anomaly (gboolean mode, gboolean check_nan);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_anomaly_enabled (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_anomaly_check_nan_enabled (void);

G_END_DECLS
