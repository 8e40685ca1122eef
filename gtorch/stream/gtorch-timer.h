/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TIMER (gtorch_timer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTimer, gtorch_timer, GTORCH, TIMER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchTimer *gtorch_timer_new (GTorchStream *stream) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_timer_get_stream (GTorchTimer *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_timer_start (GTorchTimer *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_timer_stop (GTorchTimer *self, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_timer_stop_async (GTorchTimer *self, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_timer_stop_finish (GTorchTimer *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_timer_get_elapsed_ms (GTorchTimer *self);

G_END_DECLS
