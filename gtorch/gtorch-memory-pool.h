/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MEMORY_POOL (gtorch_memory_pool_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_memory_pool_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPool *gtorch_memory_pool_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPool *gtorch_memory_pool_ref (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_unref (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_pool_get_reserved (GTorchMemoryPool *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchMemoryPool, gtorch_memory_pool_unref)

G_END_DECLS
