/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTORCH_SHAPE: (skip)
 * @...: integers
 *
 * Writes a list of integers (a shape, dimensions) in C: stands for the two arguments “array,
 * length”.
 *
 * ```c
 * x = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error);
 * ```
 */
#define GTORCH_SHAPE(...) \
  ((const gint64[]){ __VA_ARGS__ }), (sizeof ((const gint64[]){ __VA_ARGS__ }) / sizeof (gint64))

G_END_DECLS
