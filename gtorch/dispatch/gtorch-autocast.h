/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device.h>
#include <gtorch/base/gtorch-dtype.h>

G_BEGIN_DECLS

/**
 * GTorchAutocastFunc:
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * A function that runs in mixed precision.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchAutocastFunc) (gpointer user_data, GError **error);

#define GTORCH_TYPE_AUTOCAST_GUARD (gtorch_autocast_guard_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_autocast_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchAutocastGuard *gtorch_autocast_guard_new (GTorchDeviceType device_type, GTorchDType dtype,
                                                gboolean enabled, gboolean cache_enabled,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_autocast_guard_end (GTorchAutocastGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchAutocastGuard *gtorch_autocast_guard_ref (GTorchAutocastGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_autocast_guard_unref (GTorchAutocastGuard *guard);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchAutocastGuard, gtorch_autocast_guard_unref)

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_autocast_run (GTorchDeviceType device_type, GTorchDType dtype, gboolean enabled,
                              gboolean cache_enabled, GTorchAutocastFunc func, gpointer user_data,
                              GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_autocast_enabled (GTorchDeviceType device_type);
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_get_autocast_dtype (GTorchDeviceType device_type);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_autocast_cache_enabled (void);
GTORCH_AVAILABLE_IN_0_1
void gtorch_clear_autocast_cache (void);

G_END_DECLS
