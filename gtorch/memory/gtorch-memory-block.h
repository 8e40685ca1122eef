/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MEMORY_BLOCK (gtorch_memory_block_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMemoryBlock, gtorch_memory_block, GTORCH, MEMORY_BLOCK, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchMemoryBlock *gtorch_allocator_alloc (GTorchAllocator *self, gsize n_bytes,
                                           GTorchStream *stream,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_memory_block_get_device (GTorchMemoryBlock *self);
GTORCH_AVAILABLE_IN_0_1
GTorchStream *gtorch_memory_block_get_stream (GTorchMemoryBlock *self);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_memory_block_get_size (GTorchMemoryBlock *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_block_get_address (GTorchMemoryBlock *self);
GTORCH_AVAILABLE_IN_0_1
gpointer gtorch_memory_block_get_pointer (GTorchMemoryBlock *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_memory_block_record_stream (GTorchMemoryBlock *self, GTorchStream *stream,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_block_release (GTorchMemoryBlock *self);

G_END_DECLS
