/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/ops/gtorch-cpu-gemm.h>

G_BEGIN_DECLS

/* Limits OpenBLAS to the calling thread. Returns the argument for gtorch_cpu_blas_leave_alone (), which
 * must be called after the calls. */
int gtorch_cpu_blas_be_alone (void);
void gtorch_cpu_blas_leave_alone (int before);
/* Multiplies in the calling thread only. Returns FALSE, and does nothing, if BLAS cannot read the operands
 * in place. */
gboolean gtorch_cpu_blas_gemm (guint dtype, const GTorchGemm *g);
/* Computes a product with m or n = 1, in float32 or float64. */
gboolean gtorch_cpu_blas_gemv (guint dtype, const GTorchGemm *g);

G_END_DECLS
