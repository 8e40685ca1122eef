/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchMemoryFormat:
 * @GTORCH_MEMORY_FORMAT_CONTIGUOUS: the last dimension is contiguous
 * @GTORCH_MEMORY_FORMAT_CHANNELS_LAST: the channels of images, [N, C, H, W], are contiguous
 * @GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D: the channels of volumes, [N, C, D, H, W], are contiguous
 *
 * The order of the dimensions in memory.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_MEMORY_FORMAT_CONTIGUOUS,
  GTORCH_MEMORY_FORMAT_CHANNELS_LAST,
  GTORCH_MEMORY_FORMAT_CHANNELS_LAST_3D,
} GTorchMemoryFormat;

#define GTORCH_TYPE_MEMORY_FORMAT (gtorch_memory_format_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_memory_format_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_to_memory_format (GTorchTensor *self, GTorchMemoryFormat memory_format,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_has_memory_format (GTorchTensor *self, GTorchMemoryFormat memory_format);

G_END_DECLS
