/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A module with tensors of another device in the place of its own. */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/* Returns a module that calls another one, while tensors stand for others (by the table, which is taken). */
GTorchModule *gtorch_replica_new (GTorchModule *module, GHashTable *tensors);
/* Returns the module that is called: another one than self if that is a replica. Not a new reference. */
GTorchModule *gtorch_replica_get_origin (GTorchModule *self);

G_END_DECLS
