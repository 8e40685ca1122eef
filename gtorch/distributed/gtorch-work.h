/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_WORK (gtorch_work_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchWork, gtorch_work, GTORCH, WORK, GObject)

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_work_get_operation (GTorchWork *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_work_get_sequence (GTorchWork *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_work_get_source_rank (GTorchWork *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_work_is_completed (GTorchWork *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_work_is_success (GTorchWork *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_work_is_blocking (GTorchWork *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_work_wait (GTorchWork *self, gdouble timeout, GCancellable *cancellable,
                           GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_work_wait_async (GTorchWork *self, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_work_wait_finish (GTorchWork *self, GAsyncResult *result, GError **error);

G_END_DECLS
