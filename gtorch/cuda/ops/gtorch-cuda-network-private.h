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

G_END_DECLS
