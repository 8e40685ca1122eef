/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* A small classifier, its data and its trainer. */

#include <string.h>

#include "test-device.h"

#define N_SAMPLES 70
#define N_INPUTS  6
#define N_CLASSES 3
#define BATCH     16

static inline GTorchDataLoader *
test_loader (gboolean shuffle)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (7);
  g_autoptr (GTorchTensor) x =
      gtorch_randn (GTORCH_SHAPE (N_SAMPLES, N_INPUTS), GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (),
                    generator, &error);
  g_autoptr (GTorchTensor) head = gtorch_tensor_narrow (x, 1, 0, N_CLASSES, &error);
  const gint64 dim = 1;
  g_autoptr (GTorchTensor) y = gtorch_tensor_argmax (head, &dim, 1, FALSE, &error);
  GTorchTensor *tensors[] = { x, y };
  g_autoptr (GTorchDataset) dataset =
      GTORCH_DATASET (gtorch_tensor_dataset_new (tensors, 2, &error));

  g_assert_no_error (error);
  return gtorch_data_loader_new (dataset, BATCH, shuffle);
}

/* The same weights each time. With dropout the order of the random numbers counts. */
static inline GTorchModule *
test_model (gdouble dropout)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) first = NULL;
  g_autoptr (GTorchModule) act = NULL;
  g_autoptr (GTorchModule) drop = NULL;
  g_autoptr (GTorchModule) last = NULL;
  GTorchSequential *model = gtorch_sequential_new ();

  gtorch_manual_seed (3);
  first = GTORCH_MODULE (gtorch_linear_new (N_INPUTS, 12, &error));
  act = GTORCH_MODULE (gtorch_relu_new ());
  drop = gtorch_module_new (GTORCH_TYPE_DROPOUT, &error, "p", dropout, NULL);
  last = GTORCH_MODULE (gtorch_linear_new (12, N_CLASSES, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_sequential_append (model, first, &error)
                 && gtorch_sequential_append (model, act, &error)
                 && gtorch_sequential_append (model, drop, &error)
                 && gtorch_sequential_append (model, last, &error));
  return GTORCH_MODULE (model);
}

static inline GTorchOptimizer *
test_optimizer (GTorchModule *model)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GListModel) params = gtorch_module_get_parameters (model, TRUE);
  GTorchOptimizer *optimizer = GTORCH_OPTIMIZER (gtorch_adam_new (params, 0.01, &error));

  g_assert_no_error (error);
  return optimizer;
}

static inline GTorchTrainer *
test_trainer (gdouble dropout, gboolean shuffle, gint64 n_epochs)
{
  g_autoptr (GTorchDataLoader) loader = test_loader (shuffle);
  g_autoptr (GTorchModule) model = test_model (dropout);
  g_autoptr (GTorchOptimizer) optimizer = test_optimizer (model);
  g_autoptr (GTorchModule) loss = GTORCH_MODULE (gtorch_cross_entropy_loss_new ());
  GTorchTrainer *trainer = gtorch_trainer_new (model, loader, loss, optimizer);

  gtorch_manual_seed (11);
  g_object_set (trainer, "n-epochs", n_epochs, NULL);
  return trainer;
}

/* All parameters as bytes. */
static inline GBytes *
test_weights (GTorchModule *model)
{
  g_autoptr (GListModel) params = gtorch_module_get_parameters (model, TRUE);
  GByteArray *all = g_byte_array_new ();

  for (guint i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, i);
      gsize n_bytes;
      g_autofree gpointer elements = test_dup_elements (param, &n_bytes);

      g_byte_array_append (all, elements, n_bytes);
    }
  return g_byte_array_free_to_bytes (all);
}

#define test_assert_same_weights(a, b)                    \
  G_STMT_START                                            \
  {                                                       \
    g_autoptr (GBytes) weights_a = test_weights (a);      \
    g_autoptr (GBytes) weights_b = test_weights (b);      \
                                                          \
    g_assert_true (g_bytes_equal (weights_a, weights_b)); \
  }                                                       \
  G_STMT_END

static inline void
test_run (GTorchTrainer *trainer)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_no_error (error);
}

typedef struct
{
  gboolean is_done;
  GError *error;
} TestEnd;

static inline void
test_on_end (GObject *source, GAsyncResult *result, gpointer data)
{
  TestEnd *end = data;

  gtorch_trainer_run_finish (GTORCH_TRAINER (source), result, &end->error);
  end->is_done = TRUE;
}

/* Runs in the background; returns the error. */
static inline GError *
test_run_async (GTorchTrainer *trainer, GCancellable *cancellable)
{
  TestEnd end = { FALSE, NULL };

  gtorch_trainer_run_async (trainer, cancellable, test_on_end, &end);
  while (!end.is_done)
    g_main_context_iteration (NULL, TRUE);
  return end.error;
}
