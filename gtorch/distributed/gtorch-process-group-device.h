/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_bind_device (GTorchProcessGroup *self, GTorchDevice *device,
                                           GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_begin_batch (GTorchProcessGroup *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_end_batch (GTorchProcessGroup *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_abort (GTorchProcessGroup *self, GError **error);

G_END_DECLS
