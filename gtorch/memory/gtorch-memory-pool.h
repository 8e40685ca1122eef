/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchMemoryPoolFunc:
 * @pool: the pool from which the thread allocates
 * @user_data: (closure): the data that was passed with the function
 * @error: return location for an error
 *
 * The function that [method@MemoryPool.run] calls.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchMemoryPoolFunc) (GTorchMemoryPool *pool, gpointer user_data,
                                          GError **error);

#define GTORCH_TYPE_MEMORY_POOL (gtorch_memory_pool_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMemoryPool, gtorch_memory_pool, GTORCH, MEMORY_POOL, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPool *gtorch_memory_pool_new (GTorchDevice *device) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchMemoryPool *gtorch_memory_pool_new_with_source (GTorchDevice *device,
                                                      GTorchMemorySource *source,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchMemorySource *gtorch_memory_pool_get_source (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_memory_pool_get_device (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_pool_get_id (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_pool_get_allocated (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_pool_get_peak_allocated (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_pool_get_reserved (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_pool_get_peak_reserved (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_reset_peak (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_memory_pool_get_use_on_oom (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_set_use_on_oom (GTorchMemoryPool *self, gboolean use_on_oom);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_memory_pool_get_check_order (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_set_check_order (GTorchMemoryPool *self, gboolean check_order);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_pool_trim (GTorchMemoryPool *self);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_memory_pool_snapshot (GTorchMemoryPool *self,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_memory_pool_run (GTorchMemoryPool *self, GTorchMemoryPoolFunc func,
                                 gpointer user_data, GError **error);

G_END_DECLS
