/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* A convolution of a batch; all operands are contiguous. */
typedef struct
{
  guint dtype; /* float32 or float64 */
  gint64 batch, groups;
  gint64 in_channels, out_channels; /* in_channels and out_channels are per group */
  gint64 in[2], out[2], kernel[2];
  gint64 stride[2], padding[2], dilation[2];
} GTorchConv;

/* These functions fail only if an allocation fails. */
gboolean gtorch_cpu_conv_forward (const GTorchConv *conv, gconstpointer input, gconstpointer weight,
                                  gconstpointer bias, gpointer output, GError **error);
gboolean gtorch_cpu_conv_input (const GTorchConv *conv, gconstpointer upper, gconstpointer weight,
                                gpointer grad_input, GError **error);
gboolean gtorch_cpu_conv_weight (const GTorchConv *conv, gconstpointer upper, gconstpointer input,
                                 gpointer grad_weight, GError **error);

G_END_DECLS
