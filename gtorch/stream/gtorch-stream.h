/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_STREAM (gtorch_stream_get_type ())

typedef struct _GTorchStreamClass GTorchStreamClass;

/**
 * GTorchStreamFunc:
 * @stream: the stream, which is the thread's current one
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * A function that runs with a stream as the current one.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchStreamFunc) (GTorchStream *stream, gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GType gtorch_stream_get_type (void) G_GNUC_CONST;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchStream, g_object_unref)
#define GTORCH_STREAM(object) \
  (G_TYPE_CHECK_INSTANCE_CAST ((object), GTORCH_TYPE_STREAM, GTorchStream))
#define GTORCH_IS_STREAM(object) (G_TYPE_CHECK_INSTANCE_TYPE ((object), GTORCH_TYPE_STREAM))

GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_stream_new (GTorchDevice *device, gint priority,
                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_stream_new_external (GTorchDevice *device, gpointer handle,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_stream_new_from_address (GTorchDevice *device, gsize address,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_stream_get_device (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_stream_get_priority (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gpointer gtorch_stream_get_handle (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_stream_get_address (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_is_default (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_get_auto_sync (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_stream_set_auto_sync (GTorchStream *self, gboolean auto_sync);
GTORCH_AVAILABLE_IN_0_1
GCancellable *gtorch_stream_get_cancellable (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_set_cancellable (GTorchStream *self, GCancellable *cancellable,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_is_idle (GTorchStream *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_is_capturing (GTorchStream *self);

GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_stream_get_current (GTorchDevice *device);
GTORCH_AVAILABLE_IN_0_1
void gtorch_stream_set_current (GTorchStream *stream);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_run (GTorchStream *self, GTorchStreamFunc func, gpointer user_data,
                            GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_check (GTorchStream *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_synchronize (GTorchStream *self, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_stream_synchronize_async (GTorchStream *self, GCancellable *cancellable,
                                      GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_synchronize_finish (GTorchStream *self, GAsyncResult *result,
                                           GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchEvent *gtorch_stream_record_event (GTorchStream *self,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_wait_event (GTorchStream *self, GTorchEvent *event, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_stream_wait_stream (GTorchStream *self, GTorchStream *other, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_get_launch_blocking (void);
GTORCH_AVAILABLE_IN_0_1
void gtorch_set_launch_blocking (gboolean blocking);

G_END_DECLS
