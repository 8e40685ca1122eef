/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints: runs that go on from them compute the bits of runs that never ended. */

#include "config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>

#include "train-test.h"

static GFile *
make_folder (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *path = g_dir_make_tmp ("gtorch-train-XXXXXX", &error);

  g_assert_no_error (error);
  return g_file_new_for_path (path);
}

static guint
empty_folder (GFile *folder)
{
  g_autoptr (GFileEnumerator) files =
      g_file_enumerate_children (folder, G_FILE_ATTRIBUTE_STANDARD_NAME, G_FILE_QUERY_INFO_NONE,
                                 NULL, NULL);
  GFile *child;
  guint n = 0;

  while (g_file_enumerator_iterate (files, NULL, &child, NULL, NULL) && child != NULL)
    {
      g_file_delete (child, NULL, NULL);
      n++;
    }
  g_file_delete (folder, NULL, NULL);
  return n;
}

/* A trainer with everything that has a state. */
static GTorchTrainer *
make_trainer (GFile *folder, gint64 accumulate)
{
  GTorchTrainer *trainer = test_trainer (0.3, TRUE, 4);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoader) validation = test_loader (FALSE);
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_autoptr (GTorchLRScheduler) schedule = GTORCH_LR_SCHEDULER (
      gtorch_exponential_lr_new (gtorch_trainer_get_optimizer (trainer), 0.97, &error));

  g_assert_no_error (error);
  g_object_set (trainer, "checkpoint-folder", folder, "checkpoint-every", (gint64) 3,
                "validation-loader", validation, "scaler", scaler, "accumulate-steps", accumulate,
                NULL);
  g_assert_true (
      gtorch_trainer_add_scheduler (trainer, schedule, GTORCH_TRAINER_INTERVAL_STEP, &error));
  return trainer;
}

typedef struct
{
  GArray *losses, *epochs;
} Losses;

static void
on_loss (GTorchTrainer *trainer, gint64 step, gdouble loss, gpointer data)
{
  g_array_append_val ((GArray *) data, loss);
}

static void
check_resumed (gint64 accumulate, gboolean threaded)
{
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GTorchTrainer) unbroken = make_trainer (folder, accumulate);
  g_autoptr (GArray) losses = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_autoptr (GArray) means = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autofree gchar *path = g_file_get_path (folder);
  g_autoptr (GDir) dir = NULL;
  g_autoptr (GError) error = NULL;
  const gchar *name;
  gdouble best;

  g_signal_connect (unbroken, "step-done", G_CALLBACK (on_loss), losses);
  g_signal_connect (unbroken, "epoch-done", G_CALLBACK (on_loss), means);
  test_run (unbroken);
  best = gtorch_trainer_get_best (unbroken);
  dir = g_dir_open (path, 0, &error);
  while ((name = g_dir_read_name (dir)) != NULL)
    g_ptr_array_add (names, g_strdup (name));
  g_assert_cmpuint (names->len, >, 3);
  for (guint i = 0; i < names->len; i++)
    {
      g_autoptr (GFile) file = g_file_get_child (folder, names->pdata[i]);
      g_autoptr (GTorchTrainer) trainer = make_trainer (folder, accumulate);
      g_autoptr (GArray) rest = g_array_new (FALSE, FALSE, sizeof (gdouble));
      g_autoptr (GArray) rest_means = g_array_new (FALSE, FALSE, sizeof (gdouble));
      gint64 first;

      g_object_set (trainer, "checkpoint-folder", NULL, "checkpoint-every", (gint64) 0, "threaded",
                    threaded, NULL);
      gtorch_manual_seed (99); /* what follows comes from the checkpoint */
      g_assert_true (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
      g_assert_no_error (error);
      first = gtorch_trainer_get_step (trainer);
      g_assert_cmpint (first, >, 0);
      g_signal_connect (trainer, "step-done", G_CALLBACK (on_loss), rest);
      g_signal_connect (trainer, "epoch-done", G_CALLBACK (on_loss), rest_means);
      error = test_run_async (trainer, NULL);
      g_assert_no_error (error);
      g_assert_cmpuint (rest->len, ==, losses->len - first);
      g_assert_cmpmem (rest->data, rest->len * sizeof (gdouble),
                       &g_array_index (losses, gdouble, first), rest->len * sizeof (gdouble));
      g_assert_cmpmem (rest_means->data, rest_means->len * sizeof (gdouble),
                       &g_array_index (means, gdouble, means->len - rest_means->len),
                       rest_means->len * sizeof (gdouble));
      g_assert_cmpfloat (gtorch_trainer_get_best (trainer), ==, best);
      test_assert_same_weights (gtorch_trainer_get_module (trainer),
                                gtorch_trainer_get_module (unbroken));
    }
  empty_folder (folder);
}

static void
a_resumed_run_gives_the_bits_of_an_unbroken_one (void)
{
  check_resumed (1, TRUE);
}

static void
so_does_one_that_accumulates_in_a_main_context (void)
{
  check_resumed (2, FALSE);
}

static void
the_last_checkpoints_are_kept (void)
{
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GTorchTrainer) trainer = make_trainer (folder, 1);
  g_autoptr (GTorchTrainer) next = make_trainer (folder, 1);
  g_autoptr (GError) error = NULL;
  gboolean found = TRUE;

  g_object_set (trainer, "keep-checkpoints", (gint64) 2, "save-best", TRUE, NULL);
  g_assert_true (gtorch_trainer_resume (trainer, &found, NULL, &error));
  g_assert_false (found);
  test_run (trainer);
  g_assert_true (gtorch_trainer_resume (next, &found, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (found);
  g_assert_cmpint (gtorch_trainer_get_step (next), ==, gtorch_trainer_get_step (trainer));
  g_assert_cmpuint (empty_folder (folder), ==, 3); /* two, and the best */
}

/* Which are neither deleted nor counted. */
static void
files_that_are_no_checkpoints_of_this_run_are_kept (void)
{
  static const gchar *const names[] = {
    "step-1.safetensors",
    "step-00000000001.safetensors",
    "step-.safetensors",
    "step-best.safetensors",
    "step--000000001.safetensors",
    "step-+000000001.safetensors",
    "step-0000000001.safetensors~",
    "step-0000000001b.safetensors",
    "step- 000000001.safetensors",
    "my-step-0000000001.safetensors",
    "step-9999999999.safetensors",
  };
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GTorchTrainer) trainer = make_trainer (folder, 1);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GFile) file = g_file_get_child (folder, names[i]);

      g_assert_true (g_file_replace_contents (file, "own", 3, NULL, FALSE, G_FILE_CREATE_NONE, NULL,
                                              NULL, &error));
    }
  g_object_set (trainer, "keep-checkpoints", (gint64) 2, NULL);
  test_run (trainer);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GFile) file = g_file_get_child (folder, names[i]);

      g_assert_true (g_file_query_exists (file, NULL));
    }
  g_assert_cmpuint (empty_folder (folder), ==, G_N_ELEMENTS (names) + 2);
}

static void
what_is_no_checkpoint_changes_nothing (void)
{
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GFile) file = g_file_get_child (folder, "x.safetensors");
  g_autoptr (GTorchTrainer) trainer = make_trainer (folder, 1);
  g_autoptr (GHashTable) table = gtorch_module_state_dict (gtorch_trainer_get_module (trainer));
  g_autoptr (GTorchModule) model = test_model (0.3);
  g_autoptr (GTorchModule) other = GTORCH_MODULE (gtorch_linear_new (2, 2, NULL));
  g_autoptr (GTorchOptimizer) optimizer = test_optimizer (other);
  g_autoptr (GTorchDataLoader) loader = test_loader (FALSE);
  g_autoptr (GTorchTrainer) small = gtorch_trainer_new (other, loader, NULL, optimizer);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;
  g_autofree gchar *path = g_file_get_path (file);

  g_assert_true (gtorch_safetensors_save_file (table, NULL, file, NULL, NULL, NULL, &error));
  g_assert_false (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  message =
      g_strdup_printf ("load_checkpoint: %s is no checkpoint of a trainer: it has no counters",
                       path);
  g_assert_cmpstr (error->message, ==, message);
  g_clear_error (&error);
  g_assert_true (gtorch_trainer_save_checkpoint (small, file, NULL, &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  test_assert_same_weights (gtorch_trainer_get_module (trainer), model);
  g_assert_true (g_file_replace_contents (file, "nothing", 7, NULL, FALSE, G_FILE_CREATE_NONE, NULL,
                                          NULL, &error));
  g_assert_false (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  g_assert_false (gtorch_trainer_resume (small, NULL, NULL, &error));
  g_assert_cmpstr (error->message, ==, "resume: there is no checkpoint_folder");
  empty_folder (folder);
}

/* --- without blocking --- */

static void
on_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static GAsyncResult *
wait_for (GAsyncResult **result)
{
  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return *result;
}

static void
a_main_loop_waits_for_checkpoints (void)
{
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GFile) file = g_file_get_child (folder, "mine.safetensors");
  g_autoptr (GTorchTrainer) trainer = make_trainer (folder, 1);
  g_autoptr (GTorchTrainer) other = make_trainer (folder, 1);
  g_autoptr (GTorchTrainer) third = make_trainer (folder, 1);
  g_autoptr (GAsyncResult) none = NULL, saved = NULL, loaded = NULL, resumed = NULL;
  g_autoptr (GError) error = NULL;
  gboolean found = TRUE;

  gtorch_trainer_resume_async (trainer, G_PRIORITY_DEFAULT, NULL, on_result, &none);
  g_assert_true (gtorch_trainer_resume_finish (trainer, wait_for (&none), &found, &error));
  g_assert_no_error (error);
  g_assert_false (found);
  test_run (trainer);
  gtorch_trainer_save_checkpoint_async (trainer, file, G_PRIORITY_DEFAULT, NULL, on_result, &saved);
  g_assert_false (gtorch_trainer_run (trainer, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "trainer_run: save_checkpoint_async () of this trainer has not ended");
  g_clear_error (&error);
  g_assert_false (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (gtorch_trainer_save_checkpoint_finish (trainer, wait_for (&saved), &error));
  g_assert_no_error (error);
  gtorch_trainer_load_checkpoint_async (other, file, G_PRIORITY_DEFAULT, NULL, on_result, &loaded);
  g_assert_cmpint (gtorch_trainer_get_step (other), ==, 0);
  g_assert_true (gtorch_trainer_load_checkpoint_finish (other, wait_for (&loaded), &error));
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_trainer_get_step (other), ==, gtorch_trainer_get_step (trainer));
  test_assert_same_weights (gtorch_trainer_get_module (other), gtorch_trainer_get_module (trainer));
  gtorch_trainer_resume_async (third, G_PRIORITY_DEFAULT, NULL, on_result, &resumed);
  g_assert_true (gtorch_trainer_resume_finish (third, wait_for (&resumed), &found, &error));
  g_assert_true (found);
  test_assert_same_weights (gtorch_trainer_get_module (third), gtorch_trainer_get_module (trainer));
  g_assert_false (gtorch_trainer_resume_finish (third, loaded, &found, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  test_run (third); /* nothing is under way any longer */
  empty_folder (folder);
}

static void
a_checkpoint_that_is_cancelled_changes_nothing (void)
{
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GFile) file = g_file_get_child (folder, "mine.safetensors");
  g_autoptr (GFile) nowhere = g_file_get_child (file, "x.safetensors");
  g_autoptr (GTorchTrainer) trainer = make_trainer (folder, 1);
  g_autoptr (GTorchTrainer) other = make_trainer (folder, 1);
  g_autoptr (GTorchModule) model = test_model (0.3);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) saved = NULL, loaded = NULL, missing = NULL, lost = NULL, never = NULL;
  g_autoptr (GError) error = NULL;

  test_run (trainer);
  g_assert_true (gtorch_trainer_save_checkpoint (trainer, file, NULL, &error));
  gtorch_trainer_load_checkpoint_async (other, file, G_PRIORITY_DEFAULT, cancellable, on_result,
                                        &loaded);
  g_cancellable_cancel (cancellable);
  g_assert_false (gtorch_trainer_load_checkpoint_finish (other, wait_for (&loaded), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_cmpint (gtorch_trainer_get_step (other), ==, 0);
  test_assert_same_weights (gtorch_trainer_get_module (other), model);
  gtorch_trainer_save_checkpoint_async (other, file, G_PRIORITY_DEFAULT, cancellable, on_result,
                                        &saved);
  g_assert_false (gtorch_trainer_save_checkpoint_finish (other, wait_for (&saved), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  gtorch_trainer_resume_async (other, G_PRIORITY_DEFAULT, cancellable, on_result, &never);
  g_assert_false (gtorch_trainer_resume_finish (other, wait_for (&never), NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  /* what cannot be read or written */
  gtorch_trainer_load_checkpoint_async (other, nowhere, G_PRIORITY_DEFAULT, NULL, on_result,
                                        &missing);
  g_assert_false (gtorch_trainer_load_checkpoint_finish (other, wait_for (&missing), &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  gtorch_trainer_save_checkpoint_async (other, nowhere, G_PRIORITY_DEFAULT, NULL, on_result, &lost);
  g_assert_false (gtorch_trainer_save_checkpoint_finish (other, wait_for (&lost), &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  g_assert_true (gtorch_trainer_load_checkpoint (other, file, NULL, &error));
  g_assert_cmpint (gtorch_trainer_get_step (other), ==, gtorch_trainer_get_step (trainer));
  empty_folder (folder);
}

/* --- what is the program's own --- */

static GBytes *
give_number (GTorchTrainer *trainer, gpointer data, GError **error)
{
  const gint *number = data;

  if (*number >= 0)
    return g_bytes_new (number, sizeof *number);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "there is no number");
  return NULL;
}

static gboolean
take_number (GTorchTrainer *trainer, GBytes *state, gpointer data, GError **error)
{
  gsize n;
  const gint *number = g_bytes_get_data (state, &n);

  g_assert_cmpuint (n, ==, sizeof *number);
  if (*number != 13)
    {
      *(gint *) data = *number;
      return TRUE;
    }
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not this one");
  return FALSE;
}

static void
checkpoints_have_what_the_program_gives (void)
{
  g_autoptr (GFile) folder = make_folder ();
  g_autoptr (GFile) file = g_file_get_child (folder, "mine.safetensors");
  g_autoptr (GTorchTrainer) trainer = make_trainer (folder, 1);
  g_autoptr (GTorchTrainer) plain = make_trainer (folder, 1);
  g_autoptr (GError) error = NULL;
  gint number = 7;

  gtorch_trainer_set_save_function (trainer, give_number, &number, NULL);
  gtorch_trainer_set_load_function (trainer, take_number, &number, NULL);
  g_assert_true (gtorch_trainer_save_checkpoint (trainer, file, NULL, &error));
  number = 8;
  g_assert_true (gtorch_trainer_load_checkpoint (plain, file, NULL, &error));
  g_assert_true (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpint (number, ==, 7);
  number = -1;
  g_assert_false (gtorch_trainer_save_checkpoint (trainer, file, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  number = 13;
  g_assert_true (gtorch_trainer_save_checkpoint (trainer, file, NULL, &error));
  number = 9;
  g_assert_false (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  g_assert_cmpint (number, ==, 9);
  g_assert_true (gtorch_trainer_save_checkpoint (plain, file, NULL, &error));
  g_assert_true (gtorch_trainer_load_checkpoint (trainer, file, NULL, &error)); /* has none */
  g_assert_cmpint (number, ==, 9);
  empty_folder (folder);
}

#define ADD(fact) g_test_add_func ("/GTorch/Trainer/" #fact, fact)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_resumed_run_gives_the_bits_of_an_unbroken_one);
  ADD (so_does_one_that_accumulates_in_a_main_context);
  ADD (the_last_checkpoints_are_kept);
  ADD (files_that_are_no_checkpoints_of_this_run_are_kept);
  ADD (what_is_no_checkpoint_changes_nothing);
  ADD (a_main_loop_waits_for_checkpoints);
  ADD (a_checkpoint_that_is_cancelled_changes_nothing);
  ADD (checkpoints_have_what_the_program_gives);
  return g_test_run ();
}
