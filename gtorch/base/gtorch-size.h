/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>
#include <gtorch/base/gtorch-shape.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SIZE (gtorch_size_get_type ())

/**
 * GTorchSize:
 *
 * A short list of integers that does not change: a shape, or one number for each dimension of an image.
 *
 * Properties such as [property@Conv2d:kernel-size] are of this type. One number stands for all dimensions.
 *
 * [ctor@Size.new] makes one, and in C so does the macro GTORCH_SIZE, as an argument.
 *
 * Since: 0.1
 */
typedef struct _GTorchSize GTorchSize;

/**
 * GTORCH_SIZE: (skip)
 * @...: integers
 *
 * A size as an argument, which lives as long as the block that it is written in, in C++ until the end of the
 * statement. What keeps it makes a copy.
 *
 * ```c
 * layer = gtorch_module_new (GTORCH_TYPE_MAX_POOL2D, &error, "kernel-size", GTORCH_SIZE (3, 2), NULL);
 * ```
 *
 * Since: 0.1
 */
#ifndef __cplusplus
#define GTORCH_SIZE(...) \
  ((GTorchSize *) (gint64[]){ sizeof ((gint64[]){ __VA_ARGS__ }) / sizeof (gint64), __VA_ARGS__ })
#else
#define GTORCH_SIZE(...) (_gtorch_size_of (_gtorch_numbers (__VA_ARGS__).numbers))
#endif

GTORCH_AVAILABLE_IN_0_1
GType gtorch_size_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_size_new (const gint64 *values, gsize n_values) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_size_ref (GTorchSize *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_size_unref (GTorchSize *self);
GTORCH_AVAILABLE_IN_0_1
const gint64 *gtorch_size_get_values (GTorchSize *self, gsize *n_values);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_size_get_length (GTorchSize *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_size_equal (GTorchSize *self, GTorchSize *other);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_size_to_string (GTorchSize *self) G_GNUC_WARN_UNUSED_RESULT;

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchSize, gtorch_size_unref)

G_END_DECLS

#ifdef __cplusplus
inline GTorchSize *
_gtorch_size_of (const gint64 *numbers)
{
  return reinterpret_cast<GTorchSize *> (const_cast<gint64 *> (numbers));
}
#endif
