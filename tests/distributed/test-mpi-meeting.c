/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Groups of MPI that cannot be made, since ranks do not come or differ. The program starts itself by mpirun,
 * with three ranks; a rank that fails ends all. */

#include "config.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

#define SHORT 0.5
#define LONG  60.0
#define BOUND \
  20.0 /* seconds, on a machine that is busy; without a limit it would be LONG, or no end */

static const gint64 all[] = { 0, 1, 2 }, two[] = { 0, 1 };

static void
assert_works (GTorchProcessGroup *made, gint n)
{
  g_autoptr (GTorchTensor) tensor = numbers (1, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gtorch_process_group_get_size (made), ==, n);
  assert_done (gtorch_process_group_all_reduce (made, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_cmpfloat (gtorch_tensor_item_double (tensor, &error), ==, n);
}

static void
part_works (const gint64 *ranks, gsize n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchProcessGroup) part =
      gtorch_process_group_new_part (group, ranks, n, LONG, &error);

  g_assert_no_error (error);
  if (gtorch_process_group_get_rank (part) >= 0)
    assert_works (part, (gint) n);
}

static void
assert_refused (GTorchProcessGroup *made, GError **error, GQuark domain, gint code,
                const gchar *text)
{
  g_assert_null (made);
  g_assert_error (*error, domain, code);
  if (strstr ((*error)->message, text) == NULL)
    g_error ("no “%s” in “%s”", text, (*error)->message);
  g_clear_error (error);
}

static void
part_times_out (const gint64 *ranks, gsize n, gdouble timeout, const gchar *text)
{
  const gint64 begin = g_get_monotonic_time ();
  g_autoptr (GError) error = NULL;

  assert_refused (gtorch_process_group_new_part (group, ranks, n, timeout, &error), &error,
                  G_IO_ERROR, G_IO_ERROR_TIMED_OUT, text);
  g_assert_cmpfloat ((g_get_monotonic_time () - begin) / 1e6, <, BOUND);
}

static void
part_differs (const gint64 *ranks, gsize n, const gchar *text)
{
  const gint64 begin = g_get_monotonic_time ();
  g_autoptr (GError) error = NULL;

  assert_refused (gtorch_process_group_new_part (group, ranks, n, LONG, &error), &error,
                  GTORCH_ERROR, GTORCH_ERROR_FAILED, text);
  g_assert_cmpfloat ((g_get_monotonic_time () - begin) / 1e6, <, BOUND);
}

static void
all_are_here (void)
{
  assert_done (gtorch_process_group_barrier (group, NULL));
}

static void
who_is_missing_is_named (void)
{
  const gchar *const text = "process_group_new_part: rank 2 has not come to make the group of "
                            "[0, 1, 2] after 0.5 seconds";

  all_are_here ();
  if (rank != 2)
    part_times_out (all, 3, SHORT, text);
  all_are_here ();
  /* the late one does not wait */
  if (rank == 2)
    part_times_out (all, 3, LONG, text);
  part_works (two, 2);
  part_works (all, 3);
}

static void
the_rank_that_decides_may_be_missing (void)
{
  all_are_here ();
  if (rank != 0)
    part_times_out (all, 3, SHORT, "rank 0 has not come to make the group of [0, 1, 2]");
  all_are_here ();
  if (rank == 0)
    part_times_out (all, 3, LONG, "after 0.5 seconds");
  all_are_here ();
  part_works (all, 3);
}

/* Who has waited the shortest ends it for all. */
static void
timeouts_may_differ (void)
{
  all_are_here ();
  if (rank == 1)
    part_times_out (all, 3, SHORT, "rank 2 has not come");
  else if (rank == 0)
    part_times_out (all, 3, LONG, "rank 2 has not come to make the group of [0, 1, 2] after 0.5");
  all_are_here ();
  if (rank == 2)
    part_times_out (all, 3, LONG, "rank 2 has not come");
  part_works (all, 3);
}

static void
lists_are_compared (void)
{
  static const gint64 turned[] = { 1, 0 };

  if (rank == 2)
    part_works (two, 2); /* has no part in it */
  else
    part_differs (rank == 1 ? turned : two, 2,
                  "the ranks differ: rank 1 makes a group of [1, 0], rank 0 of [0, 1]");
  part_works (all, 3);
  /* rank 2, which is not in the list of rank 0, is told, too */
  part_differs (all, rank == 0 ? 2 : 3, "of [0, 1, 2], rank 0 of [0, 1]");
  part_works (two, 2);
}

/* Ranks that have made another number of parts. */
static void
numbers_are_compared (void)
{
  static const gint64 own[] = { 1 }, others[] = { 0, 2 };

  /* rank 1 is ahead: it makes the next one with them */
  if (rank == 1)
    part_works (own, 1);
  else
    part_differs (all, 3, "the ranks differ: rank 1 makes group ");
  part_works (all, 3);
  /* and behind */
  if (rank != 1)
    part_works (others, 2);
  all_are_here ();
  part_differs (all, 3, "the ranks differ: rank 1 makes group ");
  if (rank == 1)
    part_works (own, 1);
  part_works (all, 3);
}

static gpointer
cancel_later (gpointer cancellable)
{
  g_usleep (100000);
  g_cancellable_cancel (cancellable);
  return NULL;
}

static void
others_learn_that_one_has_cancelled (gint who)
{
  g_autofree gchar *text = g_strdup_printf ("rank %d has cancelled", who);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  if (rank == who)
    {
      g_autoptr (GThread) thread =
          g_thread_new ("cancel", cancel_later, g_object_ref (cancellable));

      gtorch_process_group_new_part_async (group, all, 3, LONG, cancellable, on_result, &result);
      assert_refused (gtorch_process_group_new_part_finish (group, wait_for (&result), &error),
                      &error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "");
      g_thread_join (g_steal_pointer (&thread));
      g_object_unref (cancellable);
      /* what follows waits for the thread of the call */
      g_clear_object (&result);
      gtorch_process_group_all_gather_variant_async (group, g_variant_new_int32 (1), NULL,
                                                     on_result, &result);
      g_variant_unref (
          gtorch_process_group_all_gather_variant_finish (group, wait_for (&result), &error));
    }
  else
    {
      if (rank != 2)
        part_differs (all, 3, text);
      g_variant_unref (
          gtorch_process_group_all_gather_variant (group, g_variant_new_int32 (1), &error));
    }
  g_assert_no_error (error);
  if (rank == 2)
    part_differs (all, 3, text);
  part_works (all, 3);
}

static void
groups_of_all_wait_no_longer (void)
{
  g_autoptr (GTorchProcessGroup) made = NULL;
  g_autoptr (GError) error = NULL;

  all_are_here ();
  if (rank == 2)
    all_are_here ();
  assert_refused (gtorch_process_group_new ("mpi", NULL, -1, -1, rank == 2 ? LONG : SHORT, NULL,
                                            &error),
                  &error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                  "process_group: rank 2 has not come to make the group of [0, 1, 2]");
  if (rank != 2)
    all_are_here ();
  made = gtorch_process_group_new ("mpi", NULL, -1, -1, LONG, NULL, &error);
  g_assert_no_error (error);
  assert_works (made, 3);
}

/* Two at a time, which the ranks begin in different orders. */
static void
threads_make_groups (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchProcessGroup) other =
      gtorch_process_group_new ("mpi", NULL, -1, -1, LONG, NULL, &error);
  gint i;

  g_assert_no_error (error);
  for (i = 0; i < 30; i++)
    {
      GTorchProcessGroup *const groups[] = { group, other };
      GAsyncResult *results[2] = { NULL, NULL };
      gint k;

      for (k = 0; k < 2; k++)
        gtorch_process_group_new_part_async (groups[(rank + k) % 2], all, 3, LONG, NULL, on_result,
                                             &results[(rank + k) % 2]);
      for (k = 0; k < 2; k++)
        {
          g_autoptr (GTorchProcessGroup) part =
              gtorch_process_group_new_part_finish (groups[k], wait_for (&results[k]), &error);

          g_assert_no_error (error);
          assert_works (part, 3);
          g_object_unref (results[k]);
        }
    }
}

static void
run_cases (void)
{
  find_group ();
  who_is_missing_is_named ();
  the_rank_that_decides_may_be_missing ();
  timeouts_may_differ ();
  lists_are_compared ();
  numbers_are_compared ();
  others_learn_that_one_has_cancelled (0);
  others_learn_that_one_has_cancelled (1);
  groups_of_all_wait_no_longer ();
  threads_make_groups ();
  g_assert_finalize_object (group);
}

/* The last rank ends, which within MPI waits for the others. */
static void
go_on_without_the_last (void)
{
  find_group ();
  all_are_here ();
  if (rank != 2)
    {
      part_times_out (all, 3, SHORT, "rank 2 has not come");
      part_works (two, 2);
    }
  g_assert_finalize_object (group);
}

static gchar *
trace_of (const gchar *folder, gint i)
{
  g_autofree gchar *name = g_strdup_printf ("rank-%d-has-given-up", i);

  return g_build_filename (folder, name, NULL);
}

/* The last rank starts MPI when the others have given up waiting for that. */
static void
start_late (const gchar *folder)
{
  const gint own = atoi (g_getenv ("OMPI_COMM_WORLD_RANK"));
  const gint64 begin = g_get_monotonic_time ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  gint i;

  if (own == 2)
    for (i = 0; i < 2; i++)
      {
        g_autofree gchar *trace = trace_of (folder, i);

        while (!g_file_test (trace, G_FILE_TEST_EXISTS))
          {
            g_assert_cmpfloat ((g_get_monotonic_time () - begin) / 1e6, <, LONG);
            g_usleep (10000);
          }
      }
  else
    {
      g_autofree gchar *trace = trace_of (folder, own);
      g_autoptr (GThread) thread = NULL;

      assert_refused (gtorch_process_group_new ("mpi", NULL, -1, -1, SHORT, NULL, &error), &error,
                      G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                      "process_group: MPI has waited 0.5 seconds for all processes");
      thread = g_thread_new ("cancel", cancel_later, cancellable);
      assert_refused (gtorch_process_group_new ("mpi", NULL, -1, -1, LONG, cancellable, &error),
                      &error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "");
      g_thread_join (g_steal_pointer (&thread));
      g_assert_cmpfloat ((g_get_monotonic_time () - begin) / 1e6, <, BOUND);
      g_assert_true (g_file_set_contents (trace, "", 0, &error));
    }
  find_group ();
  assert_works (group, 3);
  g_assert_finalize_object (group);
}

static void
a_rank_that_has_ended_does_not_come (gconstpointer program)
{
  expect_ranks (program, "--ends", NULL);
}

static void
mpi_starts_within_the_timeout (gconstpointer program)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-meeting-XXXXXX", &error);
  gint i;

  g_assert_no_error (error);
  expect_ranks (program, "--late", folder);
  for (i = 0; i < 2; i++)
    {
      g_autofree gchar *trace = trace_of (folder, i);

      g_remove (trace);
    }
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  const gchar *const mode = argc > 1 ? argv[1] : "";

  if (strcmp (mode, "--rank") == 0)
    run_cases ();
  else if (strcmp (mode, "--ends") == 0)
    go_on_without_the_last ();
  else if (strcmp (mode, "--late") == 0 && argc == 3)
    start_late (argv[2]);
  else
    {
      g_test_init (&argc, &argv, NULL);
      g_test_add_data_func ("/GTorch/mpi-meeting/ranks_that_do_not_come_or_differ_are_told",
                            argv[0], ranks_agree);
      g_test_add_data_func ("/GTorch/mpi-meeting/a_rank_that_has_ended_does_not_come", argv[0],
                            a_rank_that_has_ended_does_not_come);
      g_test_add_data_func ("/GTorch/mpi-meeting/mpi_starts_within_the_timeout", argv[0],
                            mpi_starts_within_the_timeout);
      return g_test_run ();
    }
  return 0;
}
