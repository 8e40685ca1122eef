/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

/* The same are in peer_training.py. */
typedef enum
{
  BENCH_SEED_MLP,    /* of PyTorch's manual on graphs: two wide layers with dropout, SGD, TF32 */
  BENCH_SMALL_MLP50, /* what keeps a host busy: fifty layers of 64 on batches of 64, Adam */
  BENCH_DIGITS,      /* of examples/c/digits.c: two convolutions, Adam */
} BenchNetwork;

typedef struct _BenchTraining BenchTraining;

/* @autocast: what products and convolutions compute in, or NONE; with float16 the loss is scaled.
 * @captured: steps will be part of a graph. */
BenchTraining *bench_training_new (BenchNetwork network, GTorchDType autocast, gboolean captured,
                                   GTorchDevice *device, GError **error);
void bench_training_free (BenchTraining *self);
/* The step of the optimizer, to a loss of a batch that is always the same. */
gboolean bench_training_step (BenchTraining *self, GError **error);
gboolean bench_training_zero_grad (BenchTraining *self, GError **error);
/* Without dropout. */
GTorchTensor *bench_training_infer (BenchTraining *self, GError **error);
GTorchTensor *bench_training_get_input (BenchTraining *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchTraining, bench_training_free)
