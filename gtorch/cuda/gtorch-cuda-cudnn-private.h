/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-op-private.h>

G_BEGIN_DECLS

typedef enum
{
  GTORCH_CUDNN_FORWARD,
  GTORCH_CUDNN_INPUT,
  GTORCH_CUDNN_WEIGHT,
} GTorchCudnnKind;

/* A form of convolution of tensors without gaps, in the order of their dimensions or with the channels last;
 * the struct has no gaps either, as it is compared as bytes. */
typedef struct
{
  gint64 kind, dtype, device;
  gint64 x[4], w[4], y[4];
  gint64 stride[2], padding[2], dilation[2];
  gint64 channels_last;
  gint64 accumulate; /* adds to what is there */
  gint64 frugal;     /* without workspace */
  gint64 tf32;       /* float32 may be rounded to that */
} GTorchCudnnConv;

/* FALSE where cuDNN is missing or has no engine. */
gboolean gtorch_cuda_cudnn_has (const GTorchCudnnConv *conv, GTorchCudaLane *lane);

/* Writes to the one of x, w and y that kind says. *done is FALSE where cuDNN is missing or has no engine. */
gboolean gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                                     gpointer w, gpointer y, gboolean *done, GError **error);

G_END_DECLS
