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

/* A convolution whose strides, dilations and paddings need not be those of a call: in depth, height and
 * width. */
typedef struct
{
  guint dtype;
  gint64 batch, groups, in_channels, out_channels; /* in_channels and out_channels are per group */
  gint64 in[3], out[3], kernel[3], stride[3], dilation[3];
  gint64 before[3]; /* padding before the image; negative: cropping */
  const char *input, *weight, *bias;
  char *output;

  /* set by gtorch_cpu_conv_compute () */
  gsize size;
  gint64 padded[3]; /* depth, height, and width of one of stride[2] phases */
  gint64 n_parts;   /* parts of the output channels, to have work for all threads */
  gint64 image;     /* elements of the padded image of one group, including those read past it */
  gint failed;      /* an allocation has failed; atomic */
  const gint64 *table;
} GTorchConvForward;

/* Calls a macro with the C type of the elements: integers, of which only bits are moved or which wrap
 * around, are unsigned. */
#define GTORCH_CONV_FOR_TYPE(dtype, MACRO) \
  switch (dtype)                           \
    {                                      \
    case GTORCH_DTYPE_FLOAT32:             \
      MACRO (float)                        \
      break;                               \
    case GTORCH_DTYPE_FLOAT64:             \
      MACRO (double)                       \
      break;                               \
    case GTORCH_DTYPE_INT32:               \
      MACRO (guint32)                      \
      break;                               \
    default:                               \
      MACRO (guint64)                      \
      break;                               \
    }

gboolean gtorch_cpu_conv_compute (GTorchConvForward *f, GError **error);

/* Operands are contiguous and of conv->dtype. These functions fail only if an allocation fails. */
gboolean gtorch_cpu_conv_forward (const GTorchConv *conv, gconstpointer input, gconstpointer weight,
                                  gconstpointer bias, gpointer output, GError **error);
gboolean gtorch_cpu_conv_input (const GTorchConv *conv, gconstpointer upper, gconstpointer weight,
                                gconstpointer bias, gpointer grad_input, GError **error);
gboolean gtorch_cpu_conv_weight (const GTorchConv *conv, gconstpointer upper, gconstpointer input,
                                 gpointer grad_weight, GError **error);

G_END_DECLS
