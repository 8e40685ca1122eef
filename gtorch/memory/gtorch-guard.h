/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchDeviceFunc:
 * @device: the device, which is the thread's current or default one
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * A function that runs with a device as the current or the default one.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchDeviceFunc) (GTorchDevice *device, gpointer user_data, GError **error);

#define GTORCH_TYPE_DEVICE_GUARD         (gtorch_device_guard_get_type ())
#define GTORCH_TYPE_DEFAULT_DEVICE_GUARD (gtorch_default_device_guard_get_type ())
#define GTORCH_TYPE_STREAM_GUARD         (gtorch_stream_guard_get_type ())
#define GTORCH_TYPE_MEMORY_POOL_GUARD    (gtorch_memory_pool_guard_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_device_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchDeviceGuard *gtorch_device_guard_new (GTorchDevice *device,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_guard_end (GTorchDeviceGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchDeviceGuard *gtorch_device_guard_ref (GTorchDeviceGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_guard_unref (GTorchDeviceGuard *guard);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchDeviceGuard, gtorch_device_guard_unref)

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_run (GTorchDevice *self, GTorchDeviceFunc func, gpointer user_data,
                            GError **error);

GTORCH_AVAILABLE_IN_0_1
GType gtorch_default_device_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchDefaultDeviceGuard *
gtorch_default_device_guard_new (GTorchDevice *device) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_default_device_guard_end (GTorchDefaultDeviceGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchDefaultDeviceGuard *gtorch_default_device_guard_ref (GTorchDefaultDeviceGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_default_device_guard_unref (GTorchDefaultDeviceGuard *guard);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchDefaultDeviceGuard, gtorch_default_device_guard_unref)

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_run_as_default (GTorchDevice *self, GTorchDeviceFunc func,
                                       gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GType gtorch_stream_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchStreamGuard *gtorch_stream_guard_new (GTorchStream *stream) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_stream_guard_end (GTorchStreamGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchStreamGuard *gtorch_stream_guard_ref (GTorchStreamGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_stream_guard_unref (GTorchStreamGuard *guard);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchStreamGuard, gtorch_stream_guard_unref)

GTORCH_AVAILABLE_IN_0_1
GType gtorch_memory_pool_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPoolGuard *
gtorch_memory_pool_guard_new (GTorchMemoryPool *pool) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_guard_end (GTorchMemoryPoolGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPoolGuard *gtorch_memory_pool_guard_ref (GTorchMemoryPoolGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_guard_unref (GTorchMemoryPoolGuard *guard);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchMemoryPoolGuard, gtorch_memory_pool_guard_unref)

G_END_DECLS
