/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_HOST_ALLOCATOR (gtorch_host_allocator_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchHostAllocator, gtorch_host_allocator, GTORCH, HOST_ALLOCATOR, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchHostAllocator *gtorch_host_allocator_get_default (void);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_host_allocator_get_limit (GTorchHostAllocator *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_host_allocator_set_limit (GTorchHostAllocator *self, guint64 n_bytes);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_host_allocator_get_allocated (GTorchHostAllocator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_host_allocator_get_reserved (GTorchHostAllocator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_host_allocator_get_num_allocs (GTorchHostAllocator *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_host_allocator_trim (GTorchHostAllocator *self);

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_pin_memory (GTorchTensor *self,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
