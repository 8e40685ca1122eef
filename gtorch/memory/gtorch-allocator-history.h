/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchHistoryLevel:
 * @GTORCH_HISTORY_NEVER: record nothing
 * @GTORCH_HISTORY_STATE: record where each live block was allocated
 * @GTORCH_HISTORY_ALLOC: also record all allocations and frees, with where the memory was allocated
 * @GTORCH_HISTORY_ALL: also record where memory was freed
 *
 * The events that an allocator records.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_HISTORY_NEVER,
  GTORCH_HISTORY_STATE,
  GTORCH_HISTORY_ALLOC,
  GTORCH_HISTORY_ALL,
} GTorchHistoryLevel;

#define GTORCH_TYPE_HISTORY_LEVEL (gtorch_history_level_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_history_level_get_type (void) G_GNUC_CONST;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_record_history (GTorchAllocator *self, GTorchHistoryLevel level,
                                          gsize max_entries, GError **error);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_allocator_snapshot (GTorchAllocator *self, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_save_snapshot (GTorchAllocator *self, GFile *file,
                                         GCancellable *cancellable, GError **error);

G_END_DECLS
