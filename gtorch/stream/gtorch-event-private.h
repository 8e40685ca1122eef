/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/stream/gtorch-event.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* Returns the fence of the last recording, with a new reference, or NULL. */
GTorchFence *gtorch_event_dup_fence (GTorchEvent *event);

G_END_DECLS
