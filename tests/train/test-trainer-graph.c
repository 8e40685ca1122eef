/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The trainer with a graph: it gives the bits of a run without one. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "train-test.h"

/* The losses of the steps of a run. */
typedef struct
{
  gint64 n;
  gdouble first, last;
} Losses;

static void
on_step (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  Losses *losses = data;

  if (losses->n++ == 0)
    losses->first = loss;
  losses->last = loss;
}

typedef enum
{
  OF_ADAM,
  OF_SGD,
  OF_RMSPROP
} Kind;

/* The sum of the losses of a batch has gradients that overflow by a scale of 2^126. */
static GTorchTrainer *
scaled_trainer (Kind kind, gint64 accumulate, gdouble scale, gdouble clip)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoader) loader = test_loader (FALSE);
  g_autoptr (GTorchModule) model = test_model (0);
  g_autoptr (GListModel) params = gtorch_module_get_parameters (model, TRUE);
  g_autoptr (GTorchOptimizer) optimizer =
      kind == OF_ADAM  ? GTORCH_OPTIMIZER (gtorch_adam_new (params, 0.01, &error))
      : kind == OF_SGD ? GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.003, 0.9, &error))
                       : GTORCH_OPTIMIZER (gtorch_rmsprop_new (params, 0.003, &error));
  g_autoptr (GTorchModule) loss = GTORCH_MODULE (gtorch_cross_entropy_loss_new ());
  GTorchTrainer *trainer;

  g_assert_no_error (error);
  g_object_set (loss, "reduction", GTORCH_REDUCTION_SUM, NULL);
  gtorch_optimizer_set_capturable (optimizer, TRUE);
  trainer = gtorch_trainer_new (model, loader, loss, optimizer);
  g_object_set (trainer, "n-epochs", (gint64) 6, "accumulate-steps", accumulate, "clip-norm", clip,
                NULL);
  if (scale > 0)
    {
      g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();

      g_object_set (scaler, "scale-factor", scale, "growth-interval", 1, NULL);
      g_object_set (trainer, "scaler", scaler, NULL);
    }
  return trainer;
}

static gdouble
scale_of (GTorchTrainer *trainer)
{
  g_autoptr (GTorchGradScaler) scaler = NULL;

  g_object_get (trainer, "scaler", &scaler, NULL);
  return scaler != NULL ? gtorch_grad_scaler_get_scale (scaler, NULL) : 0;
}

/* How many steps Adam has made. */
static gint64
count_steps (GTorchTrainer *trainer)
{
  GTorchOptimizer *optimizer = gtorch_trainer_get_optimizer (trainer);
  g_autoptr (GListModel) params =
      gtorch_module_get_parameters (gtorch_trainer_get_module (trainer), TRUE);
  g_autoptr (GTorchTensor) first = g_list_model_get_item (params, 0);

  return (gint64) test_element (gtorch_optimizer_get_state (optimizer, first, "step"), 0);
}

/* Compares a run with a graph with one without it. */
static void
compare_with_graph (Kind kind, gint64 accumulate, gdouble scale, gdouble clip)
{
  g_autoptr (GTorchTrainer) trainer = scaled_trainer (kind, accumulate, scale, clip);
  g_autoptr (GTorchTrainer) other = scaled_trainer (kind, accumulate, scale, clip);
  Losses losses = { 0 }, others = { 0 };

  g_object_set (trainer, "graph", TRUE, NULL);
  g_signal_connect (trainer, "step-done", G_CALLBACK (on_step), &losses);
  g_signal_connect (other, "step-done", G_CALLBACK (on_step), &others);
  test_run (trainer);
  test_run (other);
  test_assert_same_weights (gtorch_trainer_get_module (trainer), gtorch_trainer_get_module (other));
  g_assert_cmpint (losses.n, ==, others.n);
  g_assert_cmpfloat (losses.first, ==, others.first);
  g_assert_cmpfloat (losses.last, ==, others.last);
  g_assert_cmpfloat (losses.last, <, losses.first);
  g_assert_cmpfloat (scale_of (trainer), ==, scale_of (other));
  if (scale > 1024 && kind == OF_ADAM) /* the scale grows with each step, and then is too large */
    g_assert_cmpint (count_steps (trainer), <, gtorch_trainer_get_step (trainer) - 4);
  else if (scale == 1024)
    g_assert_cmpfloat (scale_of (trainer), >, scale);
}

static void
a_graph_computes_the_same (void)
{
  if (!test_can_capture ())
    return;
  compare_with_graph (OF_ADAM, 1, 0, 0);
  compare_with_graph (OF_RMSPROP, 1, 0, 0.5);
}

static void
a_graph_accumulates_gradients (void)
{
  if (!test_can_capture ())
    return;
  compare_with_graph (OF_ADAM, 2, 0, 0);
  compare_with_graph (OF_SGD, 3, 0, 0.5);
}

/* With the large scale some steps overflow, replayed ones too. */
static void
a_graph_scales_losses (void)
{
  if (!test_can_capture ())
    return;
  compare_with_graph (OF_ADAM, 1, 1024, 0);
  compare_with_graph (OF_ADAM, 1, 0x1p126, 0.5);
  compare_with_graph (OF_RMSPROP, 1, 0x1p126, 0);
  compare_with_graph (OF_SGD, 2, 1024, 0.5);
  compare_with_graph (OF_ADAM, 2, 0x1p126, 0);
  compare_with_graph (OF_RMSPROP, 3, 0x1p126, 0.5);
}

/* Replays go on in the memory of the gradients, whatever a handler does with them between two steps. */
static void
drop_gradients (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_optimizer_zero_grad (gtorch_trainer_get_optimizer (trainer), TRUE, &error));
}

static void
a_graph_that_accumulates_keeps_its_gradients (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 6);
  g_autoptr (GTorchTrainer) other = test_trainer (0, FALSE, 6);

  if (!test_can_capture ())
    return;
  g_object_set (trainer, "graph", TRUE, "accumulate-steps", (gint64) 2, NULL);
  g_object_set (other, "accumulate-steps", (gint64) 2, NULL);
  gtorch_optimizer_set_capturable (gtorch_trainer_get_optimizer (other), TRUE);
  g_signal_connect (trainer, "step-done", G_CALLBACK (drop_gradients), NULL);
  test_run (trainer);
  test_run (other);
  test_assert_same_weights (gtorch_trainer_get_module (trainer), gtorch_trainer_get_module (other));
}

#define ADD(fact) g_test_add_func ("/GTorch/Trainer/" #fact, fact)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_graph_computes_the_same);
  ADD (a_graph_accumulates_gradients);
  ADD (a_graph_scales_losses);
  ADD (a_graph_that_accumulates_keeps_its_gradients);
  return g_test_run ();
}
