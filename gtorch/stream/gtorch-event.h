/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchEventFlags:
 * @GTORCH_EVENT_NONE: orders work only
 * @GTORCH_EVENT_TIMING: records the time, for [method@Event.get_elapsed_ms]
 * @GTORCH_EVENT_BLOCKING: a thread that waits for it sleeps and does not spin (always so on the CPU)
 * @GTORCH_EVENT_INTERPROCESS: can be shared with other processes, see [method@Event.get_ipc_handle]; not
 *   together with timing
 *
 * The purposes of an event.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_EVENT_NONE = 0,
  GTORCH_EVENT_TIMING = 1 << 0,
  GTORCH_EVENT_BLOCKING = 1 << 1,
  GTORCH_EVENT_INTERPROCESS = 1 << 2,
} GTorchEventFlags;

#define GTORCH_TYPE_EVENT_FLAGS (gtorch_event_flags_get_type ())
#define GTORCH_TYPE_EVENT       (gtorch_event_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_event_flags_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchEvent, gtorch_event, GTORCH, EVENT, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchEvent *gtorch_event_new (GTorchEventFlags flags) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchEvent *gtorch_event_new_from_ipc_handle (GTorchDevice *device, GBytes *handle,
                                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_event_get_ipc_handle (GTorchEvent *self, GTorchDevice *device,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchEventFlags gtorch_event_get_flags (GTorchEvent *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_record (GTorchEvent *self, GTorchStream *stream, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_wait (GTorchEvent *self, GTorchStream *stream, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_is_recorded (GTorchEvent *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_query (GTorchEvent *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_synchronize (GTorchEvent *self, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_event_synchronize_async (GTorchEvent *self, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_synchronize_finish (GTorchEvent *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_event_get_elapsed_ms (GTorchEvent *self, GTorchEvent *end, GError **error);
GTORCH_AVAILABLE_IN_0_1
GSource *gtorch_event_create_source (GTorchEvent *self,
                                     GCancellable *cancellable) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
