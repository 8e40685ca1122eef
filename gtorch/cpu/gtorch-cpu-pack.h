/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Structured kernels work on contiguous elements of a compute dtype. */

/* Contiguous and of dtype: impl itself (a new reference) if it is that already, else a copy. */
GTorchImpl *gtorch_cpu_pack (GTorchImpl *impl, guint dtype, GError **error);
/* The same with the dimensions in mask moved to the end. */
GTorchImpl *gtorch_cpu_pack_rows (GTorchImpl *impl, guint64 mask, guint dtype, GError **error);
/* What a kernel may write to in order to fill output: output itself (a new reference) if it is
 * contiguous and of dtype, else a temporary, which gtorch_cpu_unpack() copies back. */
GTorchImpl *gtorch_cpu_pack_output (GTorchImpl *output, guint dtype, GError **error);
void gtorch_cpu_unpack (GTorchImpl *packed, GTorchImpl *output);
/* A view with the dimensions in mask moved to the end. */
GTorchImpl *gtorch_cpu_move_last (GTorchImpl *impl, guint64 mask);
/* Copies all elements; the shapes are equal, everything else may differ. */
void gtorch_cpu_assign (GTorchImpl *to, GTorchImpl *from);

G_END_DECLS
