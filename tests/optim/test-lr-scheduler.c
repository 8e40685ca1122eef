/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Schedules in C: their changes and their timing, also in graphs. tests/bindings/test_optim.py compares
 * their values with PyTorch's formulas. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

static GTorchOptimizer *
optimizer_new (GTorchTensor **param)
{
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchTensor) tensor = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) grad = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;
  GTorchOptimizer *optimizer;

  g_assert_true (gtorch_tensor_set_requires_grad (tensor, TRUE, NULL));
  g_assert_true (gtorch_tensor_set_grad (tensor, grad, NULL));
  g_list_store_append (params, tensor);
  optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (G_LIST_MODEL (params), 0.5, 0, &error));
  g_assert_no_error (error);
  if (param != NULL)
    *param = g_steal_pointer (&tensor);
  return optimizer;
}

static gdouble
rate_of (GTorchLRScheduler *schedule)
{
  gsize n;
  g_autofree gdouble *last = gtorch_lr_scheduler_get_last_lr (schedule, &n);

  return last[0];
}

static void
goes_to_an_epoch (void)
{
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLRScheduler) schedule =
      GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 2, 0.25, &error));

  g_assert_no_error (error);
  g_assert_true (gtorch_lr_scheduler_step_to (schedule, 5, &error));
  g_assert_cmpfloat (rate_of (schedule), ==, 0.03125);
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 5);
  g_assert_true (gtorch_lr_scheduler_step (schedule, &error));
  g_assert_cmpfloat (rate_of (schedule), ==, 0.0078125);
  g_assert_true (gtorch_lr_scheduler_step_to (schedule, 1, &error));
  g_assert_cmpfloat (rate_of (schedule), ==, 0.5);
  g_assert_true (gtorch_lr_scheduler_step_to (schedule, 3.5, &error));
  g_assert_cmpfloat (rate_of (schedule), ==, 0.125);
  g_assert_true (gtorch_lr_scheduler_step (schedule, &error)); /* to 4.5 */
  g_assert_cmpfloat (rate_of (schedule), ==, 0.03125);
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 4);
}

static void
refuses_epochs (void)
{
  static const gdouble wrong[] = { -1, NAN, INFINITY, 1e300 };
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLRScheduler) schedule =
      GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 2, 0.25, NULL));
  g_autoptr (GTorchLRScheduler) plateau =
      g_object_new (GTORCH_TYPE_REDUCE_LR_ON_PLATEAU, "optimizer", optimizer, NULL);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_assert_false (gtorch_lr_scheduler_step_to (schedule, wrong[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_clear_error (&error);
    }
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 0);
  g_assert_false (gtorch_lr_scheduler_step_to (plateau, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "lr_scheduler: GTorchReduceLROnPlateau takes no epoch: its rates do not follow "
                   "from it");
}

static void
each_step_begins_an_epoch (void)
{
  static const gdouble rates[] = { 0.5, 0.5, 0.125, 0.125, 0.03125 };
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLRScheduler) schedule =
      GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 2, 0.25, &error));
  guint i;

  g_assert_no_error (error);
  g_assert_true (gtorch_lr_scheduler_get_optimizer (schedule) == optimizer);
  for (i = 0; i < G_N_ELEMENTS (rates); i++)
    {
      g_autofree gdouble *last = NULL;
      gsize n;

      last = gtorch_lr_scheduler_get_last_lr (schedule, &n);
      g_assert_cmpuint (n, ==, 1);
      g_assert_cmpfloat (last[0], ==, rates[i]);
      g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, rates[i]);
      g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, i);
      gtorch_lr_scheduler_step (schedule, &error);
      g_assert_no_error (error);
    }
}

static void
replays_follow_a_schedule (void)
{
  g_autoptr (GTorchTensor) param = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GTorchOptimizer) captured = optimizer_new (&param);
  g_autoptr (GTorchOptimizer) eager = optimizer_new (&other);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLRScheduler) first =
      GTORCH_LR_SCHEDULER (gtorch_exponential_lr_new (captured, 0.5, &error));
  g_autoptr (GTorchLRScheduler) second =
      GTORCH_LR_SCHEDULER (gtorch_exponential_lr_new (eager, 0.5, &error));
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;
  guint i, j;

  gtorch_optimizer_set_capturable (captured, TRUE);
  capture = gtorch_graph_capture_new (graph, NULL, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  gtorch_optimizer_step (captured, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_graph_capture_end (capture, &error));
  gtorch_graph_capture_unref (capture);
  for (i = 0; i < 6; i++)
    {
      g_assert_true (gtorch_cuda_graph_replay (graph, &error));
      g_assert_true (gtorch_optimizer_step (eager, &error));
      for (j = 0; j < 3; j++)
        g_assert_cmpfloat (test_element (param, j), ==, test_element (other, j));
      g_assert_true (gtorch_lr_scheduler_step (first, &error));
      g_assert_true (gtorch_lr_scheduler_step (second, &error));
    }
  /* 1 - 0.5 * (1 + 1/2 + … + 1/32) */
  g_assert_cmpfloat (test_element (param, 0), ==, 0.015625);
}

static void
wrong_settings_are_errors (void)
{
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GTorchLRScheduler) schedule = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_step_lr_new (optimizer, 0, 0.1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "steplr: step_size is 0, it must be finite and at least 1");
  g_clear_error (&error);
  schedule = g_object_new (GTORCH_TYPE_EXPONENTIAL_LR, "gamma", 0.5, NULL);
  g_assert_false (gtorch_lr_scheduler_step (schedule, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "lr_scheduler: GTorchExponentialLR has no optimizer");
}

static void
a_learning_rate_that_is_not_finite_changes_nothing (void)
{
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GTorchLRScheduler) schedule =
      GTORCH_LR_SCHEDULER (gtorch_exponential_lr_new (optimizer, 1e308, NULL));
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_lr_scheduler_step (schedule, &error));
  g_assert_false (gtorch_lr_scheduler_step (schedule, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "lr_scheduler: GTorchExponentialLR gives inf for epoch 2, a learning rate must "
                   "be finite");
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 1);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.5 * 1e308);
}

static void
an_invalid_state_changes_nothing (void)
{
  static const gchar *const names[] = { "last_epoch", "base_lrs", "step_size", "nonsense" };
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GTorchLRScheduler) schedule =
      GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 2, 0.25, NULL));
  const gdouble values[] = { -3.5, 7 };
  g_autoptr (GTorchTensor) wrong =
      gtorch_tensor_new_from_doubles (values, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT64,
                                      gtorch_device_cpu (), NULL);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GHashTable) dict = gtorch_lr_scheduler_state_dict (schedule);
      g_autoptr (GError) error = NULL;
      gint64 step_size;

      g_hash_table_insert (dict, g_strdup (names[i]), g_object_ref (wrong));
      g_assert_false (gtorch_lr_scheduler_load_state_dict (schedule, dict, &error));
      if (strcmp (names[i], "nonsense") == 0)
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
      else
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_nonnull (strstr (error->message, names[i]));
      g_object_get (schedule, "step-size", &step_size, NULL);
      g_assert_cmpint (step_size, ==, 2);
      g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 0);
    }
}

static gboolean
halve (GTorchLRScheduler *scheduler, gint64 n, guint group, gdouble *factor, gpointer data,
       GError **error)
{
  guint *n_calls = data;

  ++*n_calls;
  *factor = 0.5;
  if (n < 2)
    return TRUE;
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, "no such epoch");
  return FALSE;
}

static void
count_frees (gpointer data)
{
  *(guint *) data += 100;
}

static void
functions_compute_factors (void)
{
  guint n_calls = 0;
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GError) error = NULL;
  GTorchLRScheduler *schedule = GTORCH_LR_SCHEDULER (
      gtorch_multiplicative_lr_new (optimizer, halve, &n_calls, count_frees, &error));

  g_assert_no_error (error);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.5);
  g_assert_true (gtorch_lr_scheduler_step (schedule, &error));
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.25);
  g_assert_false (gtorch_lr_scheduler_step (schedule, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 1);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.25);
  g_clear_error (&error);
  gtorch_multiplicative_lr_set_lr_lambda (GTORCH_MULTIPLICATIVE_LR (schedule), halve, &n_calls,
                                          NULL);
  g_assert_cmpuint (n_calls, ==, 102);
  g_object_unref (schedule);
  g_assert_cmpuint (n_calls, ==, 102);
}

static void
a_plateau_needs_a_metric (void)
{
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchReduceLROnPlateau) schedule =
      gtorch_reduce_lr_on_plateau_new (optimizer, GTORCH_PLATEAU_MODE_MIN, 0.5, 0, &error);

  g_assert_no_error (error);
  g_assert_false (gtorch_lr_scheduler_step (GTORCH_LR_SCHEDULER (schedule), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "reducelronplateau: a step needs a metric: use step_metric");
  g_clear_error (&error);
  g_assert_true (gtorch_reduce_lr_on_plateau_step_metric (schedule, 1, &error));
  g_assert_true (gtorch_reduce_lr_on_plateau_step_metric (schedule, 1, &error));
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.25);
  g_object_set (schedule, "factor", 1.0, NULL);
  g_assert_false (gtorch_reduce_lr_on_plateau_step_metric (schedule, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "reducelronplateau: factor is 1, it must be below 1");
}

static void
schedules_follow_one_another (void)
{
  static const gdouble rates[] = { 0.5, 0.25, 0.5, 0.5, 0.25 };
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GListStore) list = g_list_store_new (GTORCH_TYPE_LR_SCHEDULER);
  g_autoptr (GTorchExponentialLR) first = gtorch_exponential_lr_new (optimizer, 0.5, NULL);
  g_autoptr (GTorchStepLR) second = gtorch_step_lr_new (optimizer, 2, 0.5, NULL);
  g_autoptr (GTorchSequentialLR) schedule = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  g_list_store_append (list, first);
  g_assert_null (
      gtorch_sequential_lr_new (optimizer, G_LIST_MODEL (list), GTORCH_SIZE (2), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "sequentiallr: there are 1 schedules and 1 milestones, there must be one "
                   "schedule more");
  g_clear_error (&error);
  g_list_store_append (list, second);
  schedule = gtorch_sequential_lr_new (optimizer, G_LIST_MODEL (list), GTORCH_SIZE (2), &error);
  g_assert_no_error (error);
  for (i = 0; i < G_N_ELEMENTS (rates); i++)
    {
      g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, rates[i]);
      g_assert_true (gtorch_lr_scheduler_step (GTORCH_LR_SCHEDULER (schedule), &error));
    }
}

/* --- schedules that are constructed from properties --- */

static GTorchLRScheduler *
from_properties (GType type, GTorchOptimizer *optimizer)
{
  g_autoptr (GListStore) list = NULL;
  guint i;

  if (type == GTORCH_TYPE_STEP_LR)
    return g_object_new (type, "optimizer", optimizer, "step-size", G_GINT64_CONSTANT (2), "gamma",
                         0.25, NULL);
  list = g_list_store_new (GTORCH_TYPE_LR_SCHEDULER);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchLRScheduler) part = from_properties (GTORCH_TYPE_STEP_LR, optimizer);

      g_list_store_append (list, part);
    }
  if (type == GTORCH_TYPE_CHAINED_SCHEDULER)
    return g_object_new (type, "optimizer", optimizer, "schedulers", list, NULL);
  return g_object_new (type, "optimizer", optimizer, "schedulers", list, "milestones",
                       GTORCH_SIZE (3), NULL);
}

static void
count_steps (GTorchLRScheduler *schedule, gint64 epoch, guint *n)
{
  (*n)++;
}

static void
schedules_from_properties_begin_at_epoch_0 (void)
{
  const GType types[] = { GTORCH_TYPE_STEP_LR, GTORCH_TYPE_SEQUENTIAL_LR,
                          GTORCH_TYPE_CHAINED_SCHEDULER };
  static const gdouble rates[][6] = { { 0.5, 0.5, 0.125, 0.125, 0.03125, 0.03125 },
                                      { 0.5, 0.5, 0.125, 0.5, 0.5, 0.125 },
                                      { 0.5, 0.5, 0.03125, 0.03125, 0.001953125, 0.001953125 } };
  guint i, k, initial;

  for (i = 0; i < G_N_ELEMENTS (types); i++)
    for (initial = 0; initial < 2; initial++)
      {
        g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
        g_autoptr (GTorchLRScheduler) schedule = from_properties (types[i], optimizer);
        g_autoptr (GError) error = NULL;
        guint n_steps = 0;

        g_signal_connect (schedule, "stepped", G_CALLBACK (count_steps), &n_steps);
        g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, -1);
        for (k = 0; k < 2 * initial; k++) /* the second does nothing */
          {
            g_assert_true (gtorch_lr_scheduler_initial_step (schedule, &error));
            g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, 0);
            g_assert_cmpuint (n_steps, ==, 1);
          }
        for (k = 1; k < G_N_ELEMENTS (rates[i]); k++)
          {
            g_assert_true (gtorch_lr_scheduler_step (schedule, &error));
            g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (schedule), ==, k);
            g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, rates[i][k]);
          }
        g_assert_cmpuint (n_steps, ==, G_N_ELEMENTS (rates[i]));
      }
}

static void
loaded_schedules_go_on (void)
{
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GTorchLRScheduler) first = from_properties (GTORCH_TYPE_STEP_LR, optimizer);
  g_autoptr (GTorchLRScheduler) second = from_properties (GTORCH_TYPE_STEP_LR, optimizer);
  g_autoptr (GHashTable) dict = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    g_assert_true (gtorch_lr_scheduler_step (first, NULL));
  dict = gtorch_lr_scheduler_state_dict (first);
  g_assert_true (gtorch_lr_scheduler_load_state_dict (second, dict, NULL));
  g_assert_true (gtorch_lr_scheduler_step (second, NULL));
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (second), ==, 4);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.03125);
}

/* Rates of all groups are properties, too; without them no step is made. */
static void
cycles_are_made_from_properties (void)
{
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new (NULL);
  g_autoptr (GTorchLRScheduler) once =
      g_object_new (GTORCH_TYPE_ONE_CYCLE_LR, "optimizer", optimizer, "total-steps", (gint64) 10,
                    "max-lr", 0.5, "div-factor", 4.0, NULL);
  g_autoptr (GTorchLRScheduler) often =
      g_object_new (GTORCH_TYPE_CYCLIC_LR, "optimizer", optimizer, "base-lr", 0.25, NULL);
  g_autoptr (GError) error = NULL;
  gdouble momentum;

  g_assert_true (gtorch_lr_scheduler_initial_step (once, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.125);
  g_object_get (optimizer, "momentum", &momentum, NULL);
  g_assert_cmpfloat (momentum, ==, 0.95);
  g_assert_false (gtorch_lr_scheduler_initial_step (often, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "cycliclr: max_lrs is missing");
  g_clear_error (&error);
  g_object_set (often, "max-lr", NAN, NULL);
  g_assert_false (gtorch_lr_scheduler_step (often, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_object_set (often, "max-lr", 1.0, "step-size-up", 1.0, NULL);
  g_assert_true (gtorch_lr_scheduler_step (often, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), >, 0.25);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchLRScheduler/" #name, name)
  ADD (each_step_begins_an_epoch);
  ADD (goes_to_an_epoch);
  ADD (refuses_epochs);
  ADD (replays_follow_a_schedule);
  ADD (wrong_settings_are_errors);
  ADD (a_learning_rate_that_is_not_finite_changes_nothing);
  ADD (an_invalid_state_changes_nothing);
  ADD (functions_compute_factors);
  ADD (a_plateau_needs_a_metric);
  ADD (schedules_follow_one_another);
  ADD (schedules_from_properties_begin_at_epoch_0);
  ADD (loaded_schedules_go_on);
  ADD (cycles_are_made_from_properties);
  return g_test_run ();
}
