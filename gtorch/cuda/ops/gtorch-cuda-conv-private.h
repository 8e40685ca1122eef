/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/ops/gtorch-cuda-cudnn-private.h>

G_BEGIN_DECLS

typedef struct
{
  GTorchCudnnKind kind;
  guint dtype; /* dtype of all tensors except perhaps the computed one */
  GTorchImpl *x, *w,
      *y;           /* [N, C, H, W], [K, C / groups, R, S], [N, K, P, Q], or with a dimension more
                          * before H, R and P; none is empty */
  GTorchImpl *bias; /* [K] or, if x is computed, [C]; or NULL */
  gint64 stride[3], padding[3], dilation[3]; /* depth, height, width */
} GTorchCudaConv;

/* Convolves with cuDNN. *done becomes FALSE, without an error, if cuDNN is missing or has no engine for
 * this convolution. */
gboolean gtorch_cuda_conv_run (const GTorchCudaConv *conv, GTorchCudaLane *lane, gboolean *done,
                               GError **error);

G_END_DECLS
