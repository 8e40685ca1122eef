/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

/* The networks, which peer_training.py has, too. */
typedef enum
{
  /* the one in PyTorch's notes on graphs: two wide layers with dropout, SGD, TF32 */
  BENCH_SEED_MLP,
  /* a network whose bottleneck is the host: fifty layers of 64 on batches of 64, Adam */
  BENCH_SMALL_MLP50,
  BENCH_DIGITS, /* the one in examples/c/digits.c: two convolutions, Adam */
  /* a long short-term memory of two layers of 512 on 128 steps of batches of 64, SGD, TF32 */
  BENCH_LSTM,
  BENCH_LSTM_IEEE,  /* the same without TF32 */
  BENCH_LSTM_STEPS, /* with TF32, on a deterministic device, which does without cuDNN */
  BENCH_SMALL_LSTM, /* one layer of 128 on 64 steps of batches of 32, SGD */
} BenchNetwork;

typedef struct _BenchTraining BenchTraining;

/* @autocast: the dtype of products and convolutions, or NONE; with float16 the loss is scaled.
 * @captured: steps will be captured in a graph. */
BenchTraining *bench_training_new (BenchNetwork network, GTorchDType autocast, gboolean captured,
                                   GTorchDevice *device, GError **error);
void bench_training_free (BenchTraining *self);
/* Makes an optimizer step, with a loss of the same batch each time. */
gboolean bench_training_step (BenchTraining *self, GError **error);
gboolean bench_training_zero_grad (BenchTraining *self, GError **error);
/* Runs inference, without dropout. */
GTorchTensor *bench_training_infer (BenchTraining *self, GError **error);
GTorchTensor *bench_training_get_input (BenchTraining *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchTraining, bench_training_free)
