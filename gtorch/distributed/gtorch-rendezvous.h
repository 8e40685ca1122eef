/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchStore *gtorch_store_from_environment (gdouble timeout, gint *rank, gint *world_size,
                                            GCancellable *cancellable,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *
gtorch_process_group_new_from_environment (const gchar *backend, gdouble timeout,
                                           GCancellable *cancellable,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
