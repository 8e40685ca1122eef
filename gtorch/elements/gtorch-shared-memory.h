/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SHARED_MEMORY (gtorch_shared_memory_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSharedMemory, gtorch_shared_memory, GTORCH, SHARED_MEMORY, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchSharedMemory *gtorch_shared_memory_new (gsize n_bytes,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSharedMemory *gtorch_shared_memory_new_from_fd (gint fd,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint gtorch_shared_memory_get_fd (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_shared_memory_get_n_bytes (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_shared_memory_get_address (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_shared_memory_is_used (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_shared_memory_lend (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_shared_memory_hold (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_shared_memory_release (GTorchSharedMemory *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_shared_memory_make_tensor (GTorchSharedMemory *self, gsize offset,
                                                GTorchDType dtype, const gint64 *shape,
                                                gsize n_dims,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
