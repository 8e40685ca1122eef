/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* A program that starts itself by mpirun, with several ranks. */

#include <gtorch/gtorch.h>

static GTorchProcessGroup *group;
static gint rank, size;

static inline GTorchTensor *
numbers (gint64 n, GTorchDType dtype, gdouble first)
{
  g_autofree gdouble *values = g_new (gdouble, MAX (n, 1));
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor;
  gint64 i;

  for (i = 0; i < n; i++)
    values[i] = first + i;
  tensor = gtorch_tensor_new_from_doubles (values, n, GTORCH_SHAPE (n), dtype, NULL, &error);
  g_assert_no_error (error);
  return tensor;
}

static inline void
assert_done (GTorchWork *work)
{
  g_autoptr (GTorchWork) owned = work;
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (work);
  g_assert_true (gtorch_work_wait (work, -1, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_work_is_completed (work) && gtorch_work_is_success (work));
}

static inline void
assert_variant (GVariant *value, const gchar *text)
{
  g_autoptr (GVariant) owned = value;
  g_autofree gchar *found = NULL;

  g_assert_nonnull (value);
  found = g_variant_print (value, FALSE);
  g_assert_cmpstr (found, ==, text);
}

static inline void
on_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static inline GAsyncResult *
wait_for (GAsyncResult **result)
{
  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return *result;
}

/* MPI's libraries are not made for the sanitizers: they keep memory, and their threads are not seen. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CAN_CALL_MPI FALSE
#else
#define CAN_CALL_MPI gtorch_process_group_is_available ("mpi", NULL)
#endif

/* The status; -1: cannot be run. The program is called with the mode, and the folder if there is one. */
static inline gint
run_ranks_as (const gchar *program, const gchar *mode, const gchar *folder)
{
  g_autofree gchar *mpirun = g_find_program_in_path ("mpirun");
  const gchar *const argv[] = { mpirun,
                                "-n",
                                "3",
                                "--oversubscribe",
                                "--allow-run-as-root",
                                "--mca",
                                "btl",
                                "self,vader,tcp",
                                "--mca",
                                "btl_vader_single_copy_mechanism",
                                "none",
                                program,
                                mode,
                                folder,
                                NULL };
  g_autoptr (GSubprocessLauncher) launcher =
      g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *output = NULL;

  if (mpirun == NULL || !CAN_CALL_MPI)
    return -1;
  g_subprocess_launcher_setenv (launcher, "OMPI_MCA_rmaps_base_oversubscribe", "1", TRUE);
  g_subprocess_launcher_setenv (launcher, "PMIX_MCA_gds", "hash", TRUE);
  process = g_subprocess_launcher_spawnv (launcher, argv, &error);
  g_assert_no_error (error);
  g_assert_true (g_subprocess_communicate_utf8 (process, NULL, NULL, &output, NULL, &error));
  g_print ("# %s\n", output);
  return g_subprocess_get_if_exited (process) ? g_subprocess_get_exit_status (process) : 1;
}

static inline void
expect_ranks (const gchar *program, const gchar *mode, const gchar *folder)
{
  const gint status = run_ranks_as (program, mode, folder);

  if (status < 0)
    g_test_skip ("mpirun, or the module for MPI, is not installed, or a sanitizer is at work");
  else
    g_assert_cmpint (status, ==, 0);
}

static inline void
ranks_agree (gconstpointer program)
{
  expect_ranks (program, "--rank", NULL);
}

static inline void
find_group (void)
{
  g_autoptr (GError) error = NULL;

  group = gtorch_process_group_new ("mpi", NULL, -1, -1, 60, NULL, &error);
  g_assert_no_error (error);
  rank = gtorch_process_group_get_rank (group);
  size = gtorch_process_group_get_size (group);
}
