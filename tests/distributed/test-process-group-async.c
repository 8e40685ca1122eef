/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Asynchronous functions of a group. The program starts itself by mpirun, with several ranks, all of which
 * run the cases; a rank that fails ends all. */

#include "config.h"

#include <string.h>

#include "ranks.h"

/* Calls that were begun behind each other give what those that block would. */
static void
a_main_loop_waits_for_values (void)
{
  g_autoptr (GAsyncResult) broadcast = NULL, gathered = NULL, all = NULL, scattered = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (1, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *mine = g_strdup_printf ("%d", rank);
  g_auto (GVariantBuilder) builder = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("av"));
  g_autoptr (GVariant) values = NULL, found = NULL;
  gint i;

  for (i = 0; i < size; i++)
    g_variant_builder_add (&builder, "v", g_variant_new_int64 (i));
  values = g_variant_ref_sink (g_variant_builder_end (&builder));
  gtorch_process_group_broadcast_variant_async (group,
                                                rank == 0 ? g_variant_new_string ("all") : NULL, 0,
                                                NULL, on_result, &broadcast);
  gtorch_process_group_all_gather_variant_async (group, g_variant_new_int64 (rank), NULL, on_result,
                                                 &all);
  gtorch_process_group_gather_variant_async (group, g_variant_new_int64 (rank), 0, NULL, on_result,
                                             &gathered);
  gtorch_process_group_scatter_variant_async (group, rank == 0 ? values : NULL, 0, NULL, on_result,
                                              &scattered);
  g_assert_null (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "of the group has not ended"));
  g_clear_error (&error);
  assert_variant (gtorch_process_group_scatter_variant_finish (group, wait_for (&scattered),
                                                               &error),
                  mine);
  assert_variant (gtorch_process_group_broadcast_variant_finish (group, wait_for (&broadcast),
                                                                 &error),
                  "'all'");
  found = gtorch_process_group_all_gather_variant_finish (group, wait_for (&all), &error);
  g_assert_true (g_variant_equal (found, values));
  g_clear_pointer (&found, g_variant_unref);
  found = gtorch_process_group_gather_variant_finish (group, wait_for (&gathered), &error);
  g_assert_cmpuint (g_variant_n_children (found), ==, rank == 0 ? size : 0);
  g_assert_no_error (error);
  g_assert_null (gtorch_process_group_gather_variant_finish (group, all, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  /* the errors of the call */
  g_clear_object (&all);
  gtorch_process_group_gather_variant_async (group, g_variant_new_int64 (rank), -1, NULL, on_result,
                                             &all);
  g_assert_null (gtorch_process_group_gather_variant_finish (group, wait_for (&all), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  /* nothing is under way any longer */
  g_clear_error (&error);
  assert_done (gtorch_process_group_barrier (group, &error));
}

/* While a receiver waits, everything else goes on. */
static void
a_main_loop_waits_for_messages (void)
{
  g_autoptr (GAsyncResult) first = NULL, second = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (1, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GError) error = NULL;

  if (size == 1)
    return;
  if (rank == 1)
    {
      gtorch_process_group_recv_variant_async (group, 0, 3, NULL, on_result, &first);
      gtorch_process_group_recv_variant_async (group, 0, 3, NULL, on_result, &second);
      g_assert_null (gtorch_process_group_recv (group, tensor, 0, 3, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_clear_error (&error);
    }
  assert_done (gtorch_process_group_barrier (group, &error));
  if (rank == 0)
    {
      gtorch_process_group_send_variant_async (group, g_variant_new_string ("a"), 1, 3, NULL,
                                               on_result, &first);
      gtorch_process_group_send_variant_async (group, g_variant_new_string ("b"), 1, 3, NULL,
                                               on_result, &second);
      g_assert_true (gtorch_process_group_send_variant_finish (group, wait_for (&second), &error));
      g_assert_true (gtorch_process_group_send_variant_finish (group, wait_for (&first), &error));
    }
  else if (rank == 1)
    {
      assert_variant (gtorch_process_group_recv_variant_finish (group, wait_for (&second), &error),
                      "'b'");
      assert_variant (gtorch_process_group_recv_variant_finish (group, wait_for (&first), &error),
                      "'a'");
    }
  g_assert_no_error (error);
}

/* The wait ends; what the ranks exchange is carried out, and what comes behind it gets its own value. */
static void
cancelling_ends_the_wait_for_a_value (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GAsyncResult) first = NULL, second = NULL, never = NULL;
  g_autoptr (GError) error = NULL;

  /* one that is cancelled before it begins is carried out, too, and errors name it */
  g_cancellable_cancel (cancelled);
  gtorch_process_group_broadcast_variant_async (group,
                                                rank == 0 ? g_variant_new_string ("w") : NULL, 0,
                                                cancelled, on_result, &never);
  if (size > 1 && rank == 1)
    {
      g_assert_null (gtorch_process_group_broadcast_variant (group, NULL, 0, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "gtorch_process_group_broadcast_variant_async ()"));
      g_clear_error (&error);
    }
  g_assert_null (gtorch_process_group_broadcast_variant_finish (group, wait_for (&never), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  if (rank == 0)
    {
      if (size > 1) /* the others have cancelled theirs by now */
        assert_variant (gtorch_process_group_recv_variant (group, 1, 4, &error), "true");
      gtorch_process_group_broadcast_variant_async (group, g_variant_new_string ("x"), 0, NULL,
                                                    on_result, &first);
      assert_variant (gtorch_process_group_broadcast_variant_finish (group, wait_for (&first),
                                                                     &error),
                      "'x'");
      assert_variant (gtorch_process_group_broadcast_variant (group, g_variant_new_string ("y"), 0,
                                                              &error),
                      "'y'");
      g_assert_no_error (error);
      return;
    }
  gtorch_process_group_broadcast_variant_async (group, NULL, 0, cancellable, on_result, &first);
  gtorch_process_group_broadcast_variant_async (group, NULL, 0, NULL, on_result, &second);
  g_cancellable_cancel (cancellable);
  g_assert_null (gtorch_process_group_broadcast_variant_finish (group, wait_for (&first), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_true (rank != 1 || second == NULL);
  if (rank == 1)
    g_assert_true (
        gtorch_process_group_send_variant (group, g_variant_new_boolean (TRUE), 0, 4, &error));
  assert_variant (gtorch_process_group_broadcast_variant_finish (group, wait_for (&second), &error),
                  "'y'");
  g_assert_no_error (error);
}

static void
a_main_loop_waits_for_groups (void)
{
  g_autofree gint64 *ranks = g_new (gint64, size);
  g_autoptr (GAsyncResult) made = NULL, bound = NULL, met = NULL, shrunk = NULL, wrong = NULL;
  g_autoptr (GTorchProcessGroup) part = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (1, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GError) error = NULL;
  gint i;

  for (i = 0; i < size; i++)
    ranks[i] = size - 1 - i;
  gtorch_process_group_new_part_async (group, ranks, size, -1, NULL, on_result, &made);
  gtorch_process_group_bind_device_async (group, gtorch_device_cpu (), NULL, on_result, &bound);
  gtorch_process_group_monitored_barrier_async (group, 5, NULL, on_result, &met);
  gtorch_process_group_shrink_async (group, ranks, 1, NULL, on_result, &shrunk);
  part = gtorch_process_group_new_part_finish (group, wait_for (&made), &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_process_group_get_rank (part), ==, size - 1 - rank);
  g_assert_true (gtorch_process_group_bind_device_finish (group, wait_for (&bound), &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_process_group_monitored_barrier_finish (group, wait_for (&met), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED); /* there is no store */
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_shrink_finish (group, wait_for (&shrunk), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  gtorch_process_group_new_part_async (group, NULL, 0, -1, NULL, on_result, &wrong);
  g_assert_null (gtorch_process_group_new_part_finish (group, wait_for (&wrong), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  assert_done (gtorch_process_group_all_reduce (part, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_cmpfloat (gtorch_tensor_item_double (tensor, &error), ==, size);
}

static void
run_cases (void)
{
  a_main_loop_waits_for_values ();
  a_main_loop_waits_for_messages ();
  cancelling_ends_the_wait_for_a_value ();
  a_main_loop_waits_for_groups ();
}

static void
a_single_process_waits_for_itself (void)
{
  if (!CAN_CALL_MPI)
    {
      g_test_skip ("the module for MPI is not installed, or a sanitizer is at work");
      return;
    }
  g_assert_false (gtorch_process_group_is_launched ());
  find_group ();
  g_assert_cmpint (size, ==, 1);
  /* nor do processes that this one starts take themselves for ranks */
  g_assert_false (gtorch_process_group_is_launched ());
  g_assert_null (g_getenv ("OMPI_COMM_WORLD_SIZE"));
  run_cases ();
  g_assert_finalize_object (group);
}

int
main (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "--rank") == 0)
    {
      find_group ();
      run_cases ();
      g_assert_finalize_object (group);
      return 0;
    }
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/GTorch/process-group/ranks_wait_in_main_loops", argv[0], ranks_agree);
  g_test_add_func ("/GTorch/process-group/a_single_process_waits_for_itself",
                   a_single_process_waits_for_itself);
  return g_test_run ();
}
