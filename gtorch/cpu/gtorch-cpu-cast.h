/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* Converts n elements, strides in bytes. Rules: float to integer truncates, anything to bool is != 0,
 * complex to real drops the imaginary part. The two may be the same memory only for equal sizes. */
typedef void (*GTorchCast) (char *dst, gint64 dst_stride, const char *src, gint64 src_stride,
                            gint64 n);

GTorchCast gtorch_cpu_cast (guint dst_dtype, guint src_dtype);

G_END_DECLS
