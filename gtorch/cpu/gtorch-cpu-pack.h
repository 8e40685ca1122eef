/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Helpers for kernels that need contiguous elements of a compute dtype. */

/* Returns impl itself (a new reference) if it is contiguous and of dtype, otherwise a copy that is. */
GTorchImpl *gtorch_cpu_pack (GTorchImpl *impl, guint dtype, GError **error);
/* Does what gtorch_cpu_pack () does, with the dimensions in mask moved to the end. */
GTorchImpl *gtorch_cpu_pack_rows (GTorchImpl *impl, guint64 mask, guint dtype, GError **error);
/* Returns a tensor for a kernel to write to: output itself (a new reference) if it is contiguous and of
 * dtype, otherwise a temporary, which gtorch_cpu_unpack () copies back. */
GTorchImpl *gtorch_cpu_pack_output (GTorchImpl *output, guint dtype, GError **error);
void gtorch_cpu_unpack (GTorchImpl *packed, GTorchImpl *output);
/* Returns a view with the dimensions in mask moved to the end. */
GTorchImpl *gtorch_cpu_move_last (GTorchImpl *impl, guint64 mask);
/* Copies all elements; the shapes must be equal, dtypes and strides may differ. */
void gtorch_cpu_assign (GTorchImpl *to, GTorchImpl *from);

G_END_DECLS
