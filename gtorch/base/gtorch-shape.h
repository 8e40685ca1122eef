/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTORCH_SHAPE: (skip)
 * @...: integers
 *
 * Writes a list of integers (a shape, dimensions) in C and C++: stands for the two arguments “array,
 * length”. In C the array lives as long as the block that it is written in, in C++ until the end of the
 * statement.
 *
 * ```c
 * x = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error);
 * ```
 */
#ifndef __cplusplus
#define GTORCH_SHAPE(...) \
  ((const gint64[]){ __VA_ARGS__ }), (sizeof ((const gint64[]){ __VA_ARGS__ }) / sizeof (gint64))
#else
#define GTORCH_SHAPE(...)                      \
  (_gtorch_numbers (__VA_ARGS__).numbers + 1), \
      (sizeof (_gtorch_numbers (__VA_ARGS__)) / sizeof (gint64) - 1)
#endif

G_END_DECLS

/* C++ has no literals for arrays, and no list without a length. */
#ifdef __cplusplus
template <gsize length> struct _GTorchNumbers
{
  gint64 numbers[length + 1]; /* the length, and then the numbers */
};

template <typename... Number>
inline _GTorchNumbers<sizeof...(Number)>
_gtorch_numbers (Number... numbers)
{
  return { { static_cast<gint64> (sizeof...(Number)), static_cast<gint64> (numbers)... } };
}
#endif
