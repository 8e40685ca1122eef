/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-enums.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchDeviceType:
 * @GTORCH_DEVICE_TYPE_CPU: the processor and its memory
 * @GTORCH_DEVICE_TYPE_CUDA: a GPU by NVIDIA
 * @GTORCH_DEVICE_TYPE_PRIVATE: a device of a backend that the program has added
 *
 * The type of a device.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_DEVICE_TYPE_CPU,
  GTORCH_DEVICE_TYPE_CUDA,
  GTORCH_DEVICE_TYPE_PRIVATE,
} GTorchDeviceType;

#define GTORCH_TYPE_DEVICE_TYPE (gtorch_device_type_get_type ())
#define GTORCH_TYPE_DEVICE      (gtorch_device_get_type ())

typedef struct _GTorchDeviceClass GTorchDeviceClass;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_device_type_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_device_get_type (void) G_GNUC_CONST;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchDevice, g_object_unref)
#define GTORCH_DEVICE(object) \
  (G_TYPE_CHECK_INSTANCE_CAST ((object), GTORCH_TYPE_DEVICE, GTorchDevice))
#define GTORCH_IS_DEVICE(object) (G_TYPE_CHECK_INSTANCE_TYPE ((object), GTORCH_TYPE_DEVICE))

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_cpu (void);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_cuda (gint index, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_get_default (void);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_new_from_string (const gchar *string,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchDeviceType gtorch_device_get_device_type (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_get_index (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_device_get_name (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_device_to_string (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_equal (GTorchDevice *self, GTorchDevice *other);

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_get_current (GTorchDeviceType type, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_set_current (GTorchDevice *device, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_resolve (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_get_default_device (void);
GTORCH_AVAILABLE_IN_0_1
void gtorch_set_default_device (GTorchDevice *device);

GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_device_get_default_stream (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
GTorchGenerator *gtorch_device_get_default_generator (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_get_stream_priority_range (GTorchDevice *self, gint *least, gint *greatest);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_check (GTorchDevice *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_synchronize (GTorchDevice *self, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_synchronize_async (GTorchDevice *self, GCancellable *cancellable,
                                      GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_synchronize_finish (GTorchDevice *self, GAsyncResult *result,
                                           GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchAllocator *gtorch_device_get_allocator (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_get_memory_allocated (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_get_peak_memory_allocated (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_get_memory_reserved (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_get_peak_memory_reserved (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_get_total_memory (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_get_memory_info (GTorchDevice *self, guint64 *available, guint64 *total,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_reset_peak_memory (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_empty_cache (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_get_pressure_threshold (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_set_pressure_threshold (GTorchDevice *self, guint64 n_bytes);

G_END_DECLS
