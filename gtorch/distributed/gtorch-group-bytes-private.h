/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "distributed/gtorch-process-group.h"

G_BEGIN_DECLS

/* Where tensors must be that the group is to carry, for this thread. */
GTorchDevice *gtorch_group_get_device (GTorchProcessGroup *group, GError **error);
/* Gives all ranks the bytes of each of them, GBytes in the order of the ranks. */
GPtrArray *gtorch_group_gather_bytes (GTorchProcessGroup *group, GTorchDevice *device, GBytes *own,
                                      GError **error);

G_END_DECLS
