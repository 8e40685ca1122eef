/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/ops/gtorch-op-parts-private.h>

G_BEGIN_DECLS

/* Returns the number of elements of a depth, height and width. */
static inline gint64
gtorch_cpu_conv_volume (const gint64 *size)
{
  return size[0] * size[1] * size[2];
}

/* Operands are contiguous and of conv->dtype. These functions fail only if an allocation fails. */
gboolean gtorch_cpu_conv_forward (const GTorchConv *conv, gconstpointer input, gconstpointer weight,
                                  gconstpointer bias, gpointer output, GError **error);
gboolean gtorch_cpu_conv_input (const GTorchConv *conv, gconstpointer upper, gconstpointer weight,
                                gconstpointer bias, gpointer grad_input, GError **error);
gboolean gtorch_cpu_conv_weight (const GTorchConv *conv, gconstpointer upper, gconstpointer input,
                                 gpointer grad_weight, GError **error);

G_END_DECLS
