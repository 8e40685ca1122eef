/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Converts n elements; strides are in bytes. A float is truncated to an integer, bool is the result of !=
 * 0, and a complex number loses its imaginary part when it becomes real. src and dst may be the same memory
 * only if both elements have the same size. */
typedef void (*GTorchCast) (char *dst, gint64 dst_stride, const char *src, gint64 src_stride,
                            gint64 n);

/* Returns the loop of the host for these dtypes. The backend of the CPU sets this when the library is
 * loaded. */
extern GTorchCast (*gtorch_host_cast) (guint dst_dtype, guint src_dtype);

G_END_DECLS
