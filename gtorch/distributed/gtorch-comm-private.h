/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What functions of several devices of one process share. */

#pragma once

#include <gtorch/distributed/gtorch-comm.h>

G_BEGIN_DECLS

/* Of buffers in which tensors are copied together, in bytes. */
#define GTORCH_COMM_BUFFER_SIZE ((gsize) 10 << 20)

/* FALSE if one of a list is no device; an empty list may be NULL. */
gboolean gtorch_are_devices (GTorchDevice **devices, gsize n);
/* Returns a copy of the list, with a number for each device. */
GTorchDevice **gtorch_devices_resolve (GTorchDevice **devices, gsize n);
/* Fails for a list of fewer than one. */
gboolean gtorch_comm_check_some (const gchar *name, gsize n, const gchar *what, GError **error);

G_END_DECLS
