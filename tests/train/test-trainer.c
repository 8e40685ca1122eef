/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The trainer: runs in threads and main loops, beside a loop that is written by hand. */

#include "config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>

#include "train-test.h"

#define STEPS ((N_SAMPLES + BATCH - 1) / BATCH) /* of an epoch */

/* --- by hand --- */

static void
train_by_hand (GTorchModule *model, gint64 n_epochs, gint64 accumulate, gdouble clip_norm)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoader) loader = test_loader (FALSE);
  g_autoptr (GTorchOptimizer) optimizer = test_optimizer (model);
  g_autoptr (GTorchLoss) criterion = GTORCH_LOSS (gtorch_cross_entropy_loss_new ());

  for (gint64 epoch = 0; epoch < n_epochs; epoch++)
    {
      g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
      GTorchSample *batch;
      gint64 n = 0, n_before = 0; /* the batches of this step, and of those before it */

      while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL || n > 0)
        {
          if (batch != NULL)
            {
              g_autoptr (GTorchSample) here =
                  gtorch_sample_to_device (batch, test_device (), FALSE, &error);
              GTorchTensor *x = gtorch_sample_get_tensor (gtorch_sample_get_child (here, 0, NULL));
              GTorchTensor *y = gtorch_sample_get_tensor (gtorch_sample_get_child (here, 1, NULL));
              g_autoptr (GTorchTensor) output = gtorch_module_forward (model, x, &error);
              g_autoptr (GTorchTensor) loss = gtorch_loss_forward (criterion, output, y, &error);
              const gint64 n_of_step = MIN (accumulate, STEPS - n_before);
              g_autoptr (GTorchTensor) share = gtorch_tensor_div_scalar (loss, n_of_step, &error);

              g_assert_true (gtorch_tensor_backward (share, NULL, FALSE, FALSE, &error));
              gtorch_sample_unref (batch);
              if (++n < accumulate)
                continue;
            }
          n_before += n;
          n = 0;
          if (clip_norm > 0)
            {
              g_autoptr (GListModel) list = gtorch_module_get_parameters (model, TRUE);
              g_autoptr (GPtrArray) params = g_ptr_array_new_with_free_func (g_object_unref);
              g_autoptr (GTorchTensor) norm = NULL;

              for (guint i = 0; i < g_list_model_get_n_items (list); i++)
                g_ptr_array_add (params, g_list_model_get_item (list, i));
              norm = gtorch_clip_grad_norm ((GTorchTensor **) params->pdata, params->len, clip_norm,
                                            2, FALSE, &error);
            }
          g_assert_true (gtorch_optimizer_step (optimizer, &error));
          g_assert_true (gtorch_optimizer_zero_grad (optimizer, TRUE, &error));
        }
      g_assert_no_error (error);
    }
}

static void
a_run_gives_the_bits_of_a_loop (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 3);
  g_autoptr (GTorchModule) model = test_model (0);

  test_run (trainer);
  train_by_hand (model, 3, 1, 0);
  test_assert_same_weights (gtorch_trainer_get_module (trainer), model);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 3 * STEPS);
  g_assert_cmpint (gtorch_trainer_get_epoch (trainer), ==, 3);
  g_assert_cmpfloat (gtorch_trainer_get_progress (trainer), ==, 1);
}

static void
accumulation_and_clipping_are_those_of_a_loop (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 2);
  g_autoptr (GTorchModule) model = test_model (0);

  g_object_set (trainer, "accumulate-steps", (gint64) 2, "clip-norm", 0.1, NULL);
  test_run (trainer);
  train_by_hand (model, 2, 2, 0.1);
  test_assert_same_weights (gtorch_trainer_get_module (trainer), model);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 2 * ((STEPS + 1) / 2));
}

static void
a_run_trains_what_was_evaluated (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 1);
  GTorchModule *model = gtorch_trainer_get_module (trainer);
  g_autoptr (GListModel) modules = gtorch_module_get_modules (model);
  g_autoptr (GTorchModule) last = NULL;
  const guint n = g_list_model_get_n_items (modules);

  g_assert_cmpuint (n, >, 1);
  last = g_list_model_get_item (modules, n - 1);
  gtorch_module_eval (model);
  test_run (trainer);
  g_assert_true (gtorch_module_get_training (model));
  g_assert_true (gtorch_module_get_training (last));

  /* In a module that trains, one inside it may be frozen. */
  gtorch_module_eval (last);
  g_object_set (trainer, "n-epochs", (gint64) 2, NULL);
  test_run (trainer);
  g_assert_true (gtorch_module_get_training (model));
  g_assert_false (gtorch_module_get_training (last));
}

/* --- in the background --- */

typedef struct
{
  GThread *thread;
  gint64 step, epoch;
  gdouble first, last, epoch_loss;
  guint n_failed, n_notified;
} Heard;

static void
on_step (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  Heard *heard = data;

  g_assert_true (g_thread_self () == heard->thread);
  g_assert_cmpint (step, ==, ++heard->step);
  if (step == 1)
    heard->first = loss;
  heard->last = loss;
}

static void
on_epoch (GTorchTrainer *trainer, gint64 epoch, gdouble loss, gpointer data)
{
  Heard *heard = data;

  g_assert_true (g_thread_self () == heard->thread);
  g_assert_cmpint (epoch, ==, ++heard->epoch);
  g_assert_cmpint (heard->step, ==, epoch * STEPS);
  heard->epoch_loss = loss;
}

static void
on_failed (GTorchTrainer *trainer, GError *error, gpointer data)
{
  Heard *heard = data;

  g_assert_nonnull (error);
  heard->n_failed++;
}

static void
on_notify (GObject *trainer, GParamSpec *spec, gpointer data)
{
  Heard *heard = data;

  g_assert_true (g_thread_self () == heard->thread);
  heard->n_notified++;
}

static void
listen (GTorchTrainer *trainer, Heard *heard)
{
  *heard = (Heard){ .thread = g_thread_self () };
  g_signal_connect (trainer, "step-done", G_CALLBACK (on_step), heard);
  g_signal_connect (trainer, "epoch-done", G_CALLBACK (on_epoch), heard);
  g_signal_connect (trainer, "failed", G_CALLBACK (on_failed), heard);
  g_signal_connect (trainer, "notify::step", G_CALLBACK (on_notify), heard);
}

static void
check_background (gboolean threaded)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 20);
  g_autoptr (GTorchModule) model = test_model (0);
  g_autoptr (GError) error = NULL;
  Heard heard;

  listen (trainer, &heard);
  g_object_set (trainer, "threaded", threaded, NULL);
  error = test_run_async (trainer, NULL);
  g_assert_no_error (error);
  g_assert_cmpint (heard.step, ==, 20 * STEPS);
  g_assert_cmpint (heard.epoch, ==, 20);
  g_assert_cmpuint (heard.n_failed, ==, 0);
  g_assert_cmpuint (heard.n_notified, >, 0);
  g_assert_cmpfloat (heard.last, <, heard.first / 2);
  g_assert_cmpfloat (heard.last, ==, gtorch_trainer_get_loss (trainer));
  g_assert_cmpfloat (gtorch_trainer_get_throughput (trainer), >, 0);
  train_by_hand (model, 20, 1, 0);
  test_assert_same_weights (gtorch_trainer_get_module (trainer), model);
}

static void
a_thread_tells_the_main_context (void)
{
  check_background (TRUE);
}

static void
a_main_context_can_do_the_work (void)
{
  check_background (FALSE);
}

static void
mixed_precision_learns (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 20);
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  Heard heard;

  listen (trainer, &heard);
  g_object_set (trainer, "autocast", GTORCH_DTYPE_BFLOAT16, "scaler", scaler, "clip-norm", 1.0,
                NULL);
  test_run (trainer);
  g_assert_cmpfloat (heard.last, <, heard.first / 2);
}

/* --- ends --- */

static void
stop_at_seven (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  if (step == 7)
    gtorch_trainer_stop (trainer);
}

static void
a_run_goes_on_where_the_last_one_was_stopped (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0.2, TRUE, 3);
  g_autoptr (GTorchTrainer) unbroken = test_trainer (0.2, TRUE, 3);

  test_run (unbroken);
  gtorch_manual_seed (11);
  g_signal_connect (trainer, "step-done", G_CALLBACK (stop_at_seven), NULL);
  test_run (trainer);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 7);
  test_run (trainer);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 3 * STEPS);
  g_assert_cmpint (gtorch_trainer_get_epoch (trainer), ==, 3);
  test_assert_same_weights (gtorch_trainer_get_module (trainer),
                            gtorch_trainer_get_module (unbroken));
}

typedef struct
{
  gint64 at, last; /* the step to end at, and the last that was told */
  GCancellable *cancellable;
  gboolean is_nested;
} Ending;

static void
end_at (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  Ending *ending = data;

  ending->last = step;
  if (ending->is_nested) /* the main loop goes on meanwhile, as it does below a dialog */
    for (guint i = 0; i < 20; i++)
      g_main_context_iteration (NULL, FALSE);
  if (step < ending->at)
    return;
  if (ending->cancellable != NULL)
    g_cancellable_cancel (ending->cancellable);
  else
    gtorch_trainer_stop (trainer);
}

static void
check_end (guint mode, gboolean is_cancelled, gint64 max_ahead, gboolean is_nested)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 200);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  Ending ending = { 7, 0, is_cancelled ? cancellable : NULL, is_nested };

  g_signal_connect (trainer, "step-done", G_CALLBACK (end_at), &ending);
  g_object_set (trainer, "threaded", mode == 1, "max-ahead", max_ahead, NULL);
  if (mode == 0)
    gtorch_trainer_run (trainer, cancellable, &error);
  else
    error = test_run_async (trainer, cancellable);
  if (is_cancelled)
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  else
    g_assert_no_error (error);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), >=, 7);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), <=, 7 + max_ahead);
}

static void
a_handler_ends_the_run_with_its_step (void)
{
  for (guint mode = 0; mode < 3; mode++)
    for (guint cancelled = 0; cancelled < 2; cancelled++)
      {
        check_end (mode, cancelled, 0, FALSE);
        check_end (mode, cancelled, 0, TRUE);
        check_end (mode, cancelled, 2, FALSE);
      }
}

/* Fails the run at a step or an epoch, and twice: the first error counts. */
static void
fail_at (GTorchTrainer *trainer, gint64 number, gdouble loss, gpointer data)
{
  const gint64 *at = data;
  g_autoptr (GError) first = g_error_new (G_FILE_ERROR, G_FILE_ERROR_NOSPC, "at %d", (gint) number);
  g_autoptr (GError) second = g_error_new (G_FILE_ERROR, G_FILE_ERROR_IO, "the second one");

  if (number != *at)
    return;
  g_assert_true (gtorch_trainer_fail (trainer, first));
  g_assert_false (gtorch_trainer_fail (trainer, second));
}

static void
note_failure (GTorchTrainer *trainer, const GError *error, gpointer data)
{
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
  g_assert_false (gtorch_trainer_fail (trainer, error));
  *(guint *) data += 1;
}

/* Returns how many files were in the folder, which goes. */
static guint
empty_folder (const gchar *path)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  const gchar *name;
  guint n = 0;

  for (; (name = g_dir_read_name (folder)) != NULL; n++)
    {
      g_autofree gchar *file = g_build_filename (path, name, NULL);

      g_assert_cmpint (g_remove (file), ==, 0);
    }
  return n;
}

static GError *
run_in_mode (GTorchTrainer *trainer, guint mode)
{
  GError *error = NULL;

  g_object_set (trainer, "threaded", mode == 1, NULL);
  if (mode > 0)
    return test_run_async (trainer, NULL);
  g_assert_cmpint (gtorch_trainer_run (trainer, NULL, &error), ==, error == NULL);
  return error;
}

static void
check_failure (guint mode, const gchar *signal, gint64 at, gint64 step)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 3);
  g_autofree gchar *message = g_strdup_printf ("at %d", (gint) at);
  g_autofree gchar *path = g_dir_make_tmp ("gtorch-fail-XXXXXX", NULL);
  g_autoptr (GFile) folder = g_file_new_for_path (path);
  g_autoptr (GError) error = NULL;
  guint n_failed = 0;
  gulong handler;

  g_object_set (trainer, "checkpoint-folder", folder, "checkpoint-every", (gint64) 1000, NULL);
  handler = g_signal_connect (trainer, signal, G_CALLBACK (fail_at), &at);
  g_signal_connect (trainer, "failed", G_CALLBACK (note_failure), &n_failed);
  error = run_in_mode (trainer, mode);
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
  g_assert_cmpstr (error->message, ==, message);
  g_assert_cmpint (n_failed, ==, 1);
  g_assert_false (gtorch_trainer_is_running (trainer));
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, step);
  if (step < 3 * STEPS) /* otherwise all was done before the handler was called */
    g_assert_cmpint (empty_folder (path), ==, 0); /* no checkpoint was written */
  g_clear_error (&error);
  g_signal_handler_disconnect (trainer, handler);
  error = run_in_mode (trainer, mode); /* the next run goes on */
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 3 * STEPS);
  g_assert_cmpint (empty_folder (path), >, 0);
  g_assert_cmpint (g_rmdir (path), ==, 0);
}

static void
a_handler_fails_the_run_with_its_error (void)
{
  for (guint mode = 0; mode < 3; mode++)
    {
      check_failure (mode, "step-done", 7, 7);
      check_failure (mode, "epoch-done", 2, 2 * STEPS);
      check_failure (mode, "step-done", 3 * STEPS, 3 * STEPS); /* the last step */
      check_failure (mode, "epoch-done", 3, 3 * STEPS);        /* the last signal */
    }
}

static gpointer
fail_in_thread (gpointer data)
{
  g_autoptr (GError) error = g_error_new (G_FILE_ERROR, G_FILE_ERROR_NOSPC, "elsewhere");

  while (!gtorch_trainer_is_running (data))
    g_thread_yield ();
  g_assert_true (gtorch_trainer_fail (data, error));
  return NULL;
}

static void
any_thread_fails_the_run (void)
{
  for (guint mode = 0; mode < 3; mode++)
    {
      g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 100000);
      g_autoptr (GError) error = NULL;
      GThread *thread = g_thread_new ("fail", fail_in_thread, trainer);

      error = run_in_mode (trainer, mode);
      g_thread_join (thread);
      g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
      g_assert_cmpint (gtorch_trainer_get_epoch (trainer), <, 100000);
    }
}

static void
without_a_run_nothing_fails (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 1);
  g_autoptr (GError) error = g_error_new (G_FILE_ERROR, G_FILE_ERROR_NOSPC, "too early");

  g_assert_false (gtorch_trainer_fail (trainer, error));
  test_run (trainer);
  g_assert_false (gtorch_trainer_fail (trainer, error));
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, STEPS);
}

static void
a_handler_ends_the_run_with_its_epoch (void)
{
  for (guint mode = 0; mode < 3; mode++)
    {
      g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 50);
      g_autoptr (GError) error = NULL;
      Ending ending = { 2 };

      g_signal_connect (trainer, "epoch-done", G_CALLBACK (end_at), &ending);
      g_object_set (trainer, "threaded", mode == 1, NULL);
      if (mode == 0)
        gtorch_trainer_run (trainer, NULL, &error);
      else
        error = test_run_async (trainer, NULL);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_trainer_get_epoch (trainer), ==, 2);
      g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 2 * STEPS);
    }
}

static void
max_steps_ends_a_run (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 100);

  g_object_set (trainer, "max-steps", (gint64) 8, NULL);
  test_run (trainer);
  g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, 8);
  g_assert_cmpfloat (gtorch_trainer_get_progress (trainer), ==, 1);
}

static GTorchTensor *
fail_at_three (GTorchTrainer *trainer, GTorchSample *batch, gpointer data, GError **error)
{
  guint *n = data;

  if (++*n < 3)
    {
      GTorchTensor *x = gtorch_sample_get_tensor (gtorch_sample_get_child (batch, 0, NULL));
      g_autoptr (GTorchTensor) output =
          gtorch_module_forward (gtorch_trainer_get_module (trainer), x, error);

      return gtorch_tensor_mean (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
    }
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "the function does not want to");
  return NULL;
}

static void
the_error_of_a_function_ends_the_run (void)
{
  for (guint mode = 0; mode < 3; mode++)
    {
      g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 3);
      g_autoptr (GError) error = NULL;
      guint n = 0;
      Heard heard;

      listen (trainer, &heard);
      gtorch_trainer_set_training_step (trainer, fail_at_three, &n, NULL);
      g_object_set (trainer, "threaded", mode == 1, NULL);
      if (mode == 0)
        g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
      else
        error = test_run_async (trainer, NULL);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
      g_assert_cmpstr (error->message, ==, "the function does not want to");
      g_assert_cmpuint (heard.n_failed, ==, 1);
      g_assert_false (gtorch_trainer_is_running (trainer));
    }
}

static GTorchTensor *
give_many (GTorchTrainer *trainer, GTorchSample *batch, gpointer data, GError **error)
{
  GTorchTensor *x = gtorch_sample_get_tensor (gtorch_sample_get_child (batch, 0, NULL));

  return gtorch_module_forward (gtorch_trainer_get_module (trainer), x, error);
}

static void
a_loss_of_several_numbers_is_refused (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 3);
  g_autoptr (GError) error = NULL;

  gtorch_trainer_set_training_step (trainer, give_many, NULL, NULL);
  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "training_step: the loss has the shape [16, 3], and must be one number");
}

static void
settings_are_checked (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 0);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "trainer: n_epochs is 0, it must be at least 1");
  g_clear_error (&error);
  g_object_set (trainer, "n-epochs", (gint64) 1, "patience", (gint64) 1, NULL);
  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_cmpstr (error->message, ==,
                   "trainer: patience is set, and there is no validation_loader");
  g_clear_error (&error);
  g_object_set (trainer, "patience", (gint64) 0, "evaluate-every", (gint64) 2, NULL);
  g_assert_false (gtorch_trainer_check (trainer, &error));
  g_assert_cmpstr (error->message, ==,
                   "trainer: evaluate_every is set, and there is no validation_loader");
  g_clear_error (&error);
  g_object_set (trainer, "evaluate-every", (gint64) 0, "monitor", "accuracy", NULL);
  g_assert_false (gtorch_trainer_check (trainer, &error));
  g_assert_cmpstr (error->message, ==,
                   "trainer: monitor is set, and there is no validation_loader");
  g_clear_error (&error);
  g_object_set (trainer, "monitor", NULL, "clip-norm", -1.0, NULL);
  g_assert_false (gtorch_trainer_check (trainer, &error));
  g_assert_cmpstr (error->message, ==,
                   "trainer: clip_norm is -1, it must be a number that is not below 0");
  g_clear_error (&error);
  g_object_set (trainer, "clip-norm", 0.0, "checkpoint-every", (gint64) 2, NULL);
  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "trainer: checkpoint_every is set, and there is no checkpoint_folder");
  g_clear_error (&error);
  g_object_set (trainer, "checkpoint-every", (gint64) 0, "keep-checkpoints", (gint64) 2, NULL);
  g_assert_false (gtorch_trainer_check (trainer, &error));
  g_assert_cmpstr (error->message, ==,
                   "trainer: keep_checkpoints is set, and there is no checkpoint_folder");
  g_clear_error (&error);
  g_object_set (trainer, "keep-checkpoints", (gint64) 0, "max-ahead", (gint64) -1, NULL);
  g_assert_false (gtorch_trainer_check (trainer, &error));
  g_assert_cmpstr (error->message, ==, "trainer: max_ahead is -1, it must be at least 0");
}

static void
a_second_run_is_refused (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 1000);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  TestEnd end = { FALSE, NULL };

  gtorch_trainer_run_async (trainer, cancellable, test_on_end, &end);
  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "trainer_run: a run of this trainer goes on");
  g_cancellable_cancel (cancellable);
  while (!end.is_done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (end.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&end.error);
}

/* --- cancelling --- */

static gboolean
cancel (gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
  return G_SOURCE_REMOVE;
}

/* Returns how many ended before they were cancelled. */
static guint
cancel_often (guint n, gboolean threaded)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, TRUE, 1);
  g_autoptr (GTorchDataLoader) validation = test_loader (FALSE);
  g_autoptr (GRand) random = g_rand_new_with_seed (5);
  guint n_ended = 0;

  g_object_set (trainer, "threaded", threaded, "validation-loader", validation, "evaluate-every",
                (gint64) 3, NULL);
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GSource) source = g_timeout_source_new (0);
      g_autoptr (GError) error = NULL;

      g_object_set (trainer, "n-epochs", gtorch_trainer_get_epoch (trainer) + 2, NULL);
      g_source_set_ready_time (source,
                               g_get_monotonic_time () + g_rand_int_range (random, 0, 3000));
      g_source_set_callback (source, cancel, cancellable, NULL);
      g_source_attach (source, NULL);
      error = test_run_async (trainer, cancellable);
      if (error == NULL)
        n_ended++;
      else
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_source_destroy (source);
    }
  return n_ended;
}

static void
a_thousand_runs_are_cancelled (void)
{
  const guint n = test_often (500);
  guint n_ended = cancel_often (n, TRUE);

  n_ended += cancel_often (n, FALSE);
  g_test_message ("%u of %u ended before they were cancelled", n_ended, 2 * n);
  g_assert_cmpuint (n_ended, <, 2 * n);
}

/* --- evaluations --- */

static void
on_evaluated (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  guint *n = data;

  ++*n;
  g_assert_cmpfloat (loss, ==, gtorch_trainer_get_result (trainer, "loss", NULL));
}

static void
evaluations_have_results (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0.5, FALSE, 40);
  g_autoptr (GTorchDataLoader) validation = test_loader (FALSE);
  g_autoptr (GTorchMetric) accuracy = GTORCH_METRIC (gtorch_accuracy_new (1));
  g_autoptr (GTorchMetric) matrix = GTORCH_METRIC (gtorch_confusion_matrix_new (N_CLASSES));
  g_autoptr (GTorchModule) drop = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = NULL;
  guint n = 0;

  g_object_set (trainer, "validation-loader", validation, "monitor", "accuracy", "monitor-mode",
                GTORCH_PLATEAU_MODE_MAX, NULL);
  g_assert_true (gtorch_trainer_add_metric (trainer, "accuracy", accuracy, &error));
  g_assert_true (gtorch_trainer_add_metric (trainer, "matrix", matrix, &error));
  g_assert_false (gtorch_trainer_add_metric (trainer, "matrix", matrix, &error));
  g_assert_cmpstr (error->message, ==, "add_metric: the trainer has a metric “matrix” already");
  g_clear_error (&error);
  drop = gtorch_module_get_module (gtorch_trainer_get_module (trainer), "2", &error);
  g_signal_connect (trainer, "evaluated", G_CALLBACK (on_evaluated), &n);
  error = test_run_async (trainer, NULL);
  g_assert_no_error (error);
  g_assert_cmpuint (n, ==, 40);
  names = gtorch_trainer_get_result_names (trainer);
  g_assert_cmpstrv (names, ((const gchar *const[]){ "loss", "accuracy", NULL }));
  g_assert_cmpfloat (gtorch_trainer_get_result (trainer, "accuracy", &error), >, 0.9);
  g_assert_cmpfloat (gtorch_trainer_get_best (trainer), >=,
                     gtorch_trainer_get_result (trainer, "accuracy", &error));
  g_assert_true (gtorch_module_get_training (drop)); /* again */
  g_assert_cmpfloat (gtorch_trainer_get_result (trainer, "none", &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
}

static void
training_ends_when_nothing_improves (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 1000);
  g_autoptr (GTorchDataLoader) validation = test_loader (FALSE);

  /* no result is better by so much */
  g_object_set (trainer, "validation-loader", validation, "patience", (gint64) 3, "min-delta", 1e6,
                NULL);
  test_run (trainer);
  g_assert_cmpint (gtorch_trainer_get_epoch (trainer), ==, 4);
}

static void
an_unknown_result_is_refused (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 2);
  g_autoptr (GTorchDataLoader) validation = test_loader (FALSE);
  g_autoptr (GError) error = NULL;

  g_object_set (trainer, "validation-loader", validation, "monitor", "f1", NULL);
  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==,
                   "trainer: evaluations have no result “f1” to monitor: there are loss");
}

static void
schedules_change_the_learning_rate (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 2);
  g_autoptr (GTorchDataLoader) validation = test_loader (FALSE);
  GTorchOptimizer *optimizer = gtorch_trainer_get_optimizer (trainer);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLRScheduler) by_step =
      GTORCH_LR_SCHEDULER (gtorch_exponential_lr_new (optimizer, 0.5, &error));
  g_autoptr (GTorchLRScheduler) plateau = GTORCH_LR_SCHEDULER (
      gtorch_reduce_lr_on_plateau_new (optimizer, GTORCH_PLATEAU_MODE_MIN, 0.1, 0, &error));

  g_assert_false (
      gtorch_trainer_add_scheduler (trainer, plateau, GTORCH_TRAINER_INTERVAL_STEP, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (
      gtorch_trainer_add_scheduler (trainer, by_step, GTORCH_TRAINER_INTERVAL_EPOCH, &error));
  g_assert_true (
      gtorch_trainer_add_scheduler (trainer, plateau, GTORCH_TRAINER_INTERVAL_EVALUATION, &error));
  g_object_set (trainer, "validation-loader", validation, NULL);
  test_run (trainer);
  g_assert_cmpfloat_with_epsilon (gtorch_optimizer_get_learning_rate (optimizer), 0.01 * 0.25,
                                  1e-9);
  g_assert_cmpint (gtorch_lr_scheduler_get_last_epoch (plateau), ==, 2);
}

/* --- the main loop --- */

typedef struct
{
  gint64 last, longest;
} Gap;

static gboolean
on_tick (gpointer data)
{
  Gap *gap = data;
  const gint64 now = g_get_monotonic_time ();

  if (gap->last != 0)
    gap->longest = MAX (gap->longest, now - gap->last);
  gap->last = now;
  return G_SOURCE_CONTINUE;
}

/* Counted, not judged: a busy machine has gaps of its own. */
static void
the_main_loop_goes_on (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, TRUE, 200);
  g_autoptr (GError) error = NULL;
  Gap gap = { 0, 0 };
  Heard heard;
  guint source;

  listen (trainer, &heard);
  source = g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, on_tick, &gap, NULL);
  error = test_run_async (trainer, NULL);
  g_source_remove (source);
  g_assert_no_error (error);
  g_test_message ("%" G_GINT64_FORMAT " steps, %.0f samples/s, longest gap %.2f ms", heard.step,
                  gtorch_trainer_get_throughput (trainer), gap.longest / 1000.0);
  g_assert_cmpint (heard.step, ==, 200 * STEPS);
}

/* A run of nothing is an error, also if the loader does not know that it is empty. */

#define TYPE_EMPTY (empty_get_type ())
G_DECLARE_FINAL_TYPE (Empty, empty, TEST, EMPTY, GTorchIterableDataset)
#define TYPE_EMPTY_SOURCE (empty_source_get_type ())
G_DECLARE_FINAL_TYPE (EmptySource, empty_source, TEST, EMPTY_SOURCE, GTorchSampleSource)

struct _Empty
{
  GTorchIterableDataset parent_instance;
};

struct _EmptySource
{
  GTorchSampleSource parent_instance;
};

G_DEFINE_TYPE (Empty, empty, GTORCH_TYPE_ITERABLE_DATASET)
G_DEFINE_TYPE (EmptySource, empty_source, GTORCH_TYPE_SAMPLE_SOURCE)

static GTorchSample *
empty_source_next (GTorchSampleSource *source, GCancellable *cancellable, GError **error)
{
  return NULL;
}

static void
empty_source_class_init (EmptySourceClass *klass)
{
  GTORCH_SAMPLE_SOURCE_CLASS (klass)->next = empty_source_next;
}

static void
empty_source_init (EmptySource *self)
{
}

static GTorchSampleSource *
empty_iterate (GTorchIterableDataset *dataset, guint worker, guint n_workers, GError **error)
{
  return g_object_new (TYPE_EMPTY_SOURCE, NULL);
}

static void
empty_class_init (EmptyClass *klass)
{
  GTORCH_ITERABLE_DATASET_CLASS (klass)->iterate = empty_iterate;
}

static void
empty_init (Empty *self)
{
}

/* A loader without batches, which knows that or does not. */
static GTorchDataLoader *
empty_loader (gboolean is_known)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataset) unknown = g_object_new (TYPE_EMPTY, NULL);
  g_autoptr (GTorchTensor) none =
      gtorch_zeros (GTORCH_SHAPE (0, N_INPUTS), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchDataset) known = GTORCH_DATASET (gtorch_tensor_dataset_new (&none, 1, &error));

  g_assert_no_error (error);
  return gtorch_data_loader_new (is_known ? known : unknown, BATCH, FALSE);
}

static void
assert_run_fails (GTorchTrainer *trainer, const gchar *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, message);
}

static void
loaders_without_batches_are_refused (void)
{
  for (guint is_known = 0; is_known < 2; is_known++)
    {
      g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 2);
      g_autoptr (GTorchDataLoader) loader = empty_loader (is_known);
      g_autoptr (GTorchTrainer) other = NULL;
      g_autoptr (GTorchModule) loss = NULL;

      g_object_set (trainer, "validation-loader", loader, NULL);
      assert_run_fails (trainer, "trainer: the validation_loader has no batches");
      g_assert_cmpint (gtorch_trainer_get_step (trainer), ==, is_known ? 0 : STEPS);
      g_object_get (trainer, "loss-module", &loss, NULL);
      other = gtorch_trainer_new (gtorch_trainer_get_module (trainer), loader, loss,
                                  gtorch_trainer_get_optimizer (trainer));
      assert_run_fails (other, "trainer: the loader has no batches");
      g_assert_cmpint (gtorch_trainer_get_epoch (other), ==, 0);
    }
}

static void
metrics_need_a_validation_loader (void)
{
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 2);
  g_autoptr (GTorchMetric) accuracy = GTORCH_METRIC (gtorch_accuracy_new (1));
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_trainer_add_metric (trainer, "accuracy", accuracy, &error));
  assert_run_fails (trainer,
                    "trainer: there is a metric, “accuracy”, and no validation_loader whose "
                    "batches it is of");
}

#define ADD(fact) g_test_add_func ("/GTorch/Trainer/" #fact, fact)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_run_gives_the_bits_of_a_loop);
  ADD (loaders_without_batches_are_refused);
  ADD (metrics_need_a_validation_loader);
  ADD (accumulation_and_clipping_are_those_of_a_loop);
  ADD (a_run_trains_what_was_evaluated);
  ADD (a_thread_tells_the_main_context);
  ADD (a_main_context_can_do_the_work);
  ADD (mixed_precision_learns);
  ADD (a_run_goes_on_where_the_last_one_was_stopped);
  ADD (a_handler_ends_the_run_with_its_step);
  ADD (a_handler_ends_the_run_with_its_epoch);
  ADD (a_handler_fails_the_run_with_its_error);
  ADD (any_thread_fails_the_run);
  ADD (without_a_run_nothing_fails);
  ADD (max_steps_ends_a_run);
  ADD (the_error_of_a_function_ends_the_run);
  ADD (a_loss_of_several_numbers_is_refused);
  ADD (settings_are_checked);
  ADD (a_second_run_is_refused);
  ADD (a_thousand_runs_are_cancelled);
  ADD (evaluations_have_results);
  ADD (training_ends_when_nothing_improves);
  ADD (an_unknown_result_is_refused);
  ADD (schedules_change_the_learning_rate);
  ADD (the_main_loop_goes_on);
  return g_test_run ();
}
