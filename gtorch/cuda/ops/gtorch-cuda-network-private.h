/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/ops/gtorch-cuda-cudnn-rnn-private.h>

G_BEGIN_DECLS

/* Which of cuDNN's algorithms computes a form (gtorch-cuda-network-choice.c). The functions ignore the form's
 * algorithm where they return one. */

#define GTORCH_CUDA_NO_ALGORITHM -1

/* Returns the algorithm to use, or GTORCH_CUDA_NO_ALGORITHM. With a lane, it is found by trial if the program
 * asks for that and the lane captures nothing. cuDNN must not be locked. */
gint gtorch_cuda_network_choose (const GTorchCudnnRNNForm *form, GTorchCudaLane *lane);
/* Notes that cuDNN does not support the form by its algorithm. */
void gtorch_cuda_network_refuse (const GTorchCudnnRNNForm *form);
gboolean gtorch_cuda_network_is_refused (const GTorchCudnnRNNForm *form);
/* Does what gtorch_cudnn_rnn_find_offsets() does, once for each form, as that takes cuDNN dozens of calls.
 * cuDNN must be locked. */
gboolean gtorch_cuda_network_find_offsets (const GTorchCudnnRNNForm *form,
                                           const GTorchCudnnRNN *network, gpointer handle,
                                           gint64 *offsets);

G_END_DECLS
