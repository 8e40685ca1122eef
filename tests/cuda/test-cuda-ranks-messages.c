/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Messages between ranks that are threads of one process, and graphs that have collectives of such ranks, on
 * the fake driver and the fake NCCL: also while calls of the driver wait for all GPUs (“stall=1”). */

#include "config.h"

#include "cuda-ranks.h"

typedef GTorchTensor *(*Function) (GTorchTensor *tensor, GError **error);

static void
wait_for (GTorchWork *work, GError *error)
{
  g_autoptr (GTorchWork) owned = work;
  g_autoptr (GError) local = NULL;

  g_assert_no_error (error);
  g_assert_true (gtorch_work_wait (work, -1, NULL, &local));
  g_assert_no_error (local);
}

static GTorchTensor *
number (gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      gtorch_full (GTORCH_SHAPE (5), value, GTORCH_DTYPE_FLOAT32, gpu (self->rank), &error);

  g_assert_no_error (error);
  return tensor;
}

static void
assert_number (GTorchTensor *tensor, gdouble expected)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) sum =
      gtorch_tensor_sum (tensor, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gdouble value;

  g_assert_no_error (error);
  value = gtorch_tensor_item_double (sum, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (value, 5 * expected, 1e-4);
}

/* The first call of a function loads its kernel. Each rank calls another one. */
static void
call (const Function *functions, guint n, guint i)
{
  g_autoptr (GTorchTensor) x = number (0.5), y = NULL;
  g_autoptr (GError) error = NULL;

  y = functions[(i + 3 * (guint) self->rank) % n](x, &error);
  g_assert_no_error (error);
}

static gint
next (gint step)
{
  return (self->rank + step + self->size) % self->size;
}

/* --- messages --- */

/* Both ranks connect with their first message, for which they wait for each other: all pairs do so in one
 * order. */
static void
connect_ranks (void)
{
  g_autoptr (GTorchTensor) x = number (0);
  g_autoptr (GError) error = NULL;
  gint low, high;

  g_assert_true (gtorch_process_group_bind_device (self->group, gpu (self->rank), NULL, &error));
  g_assert_no_error (error);
  for (low = 0; low < self->size; low++)
    for (high = low + 1; high < self->size; high++)
      if (self->rank == low)
        wait_for (gtorch_process_group_send (self->group, x, high, 0, &error), error);
      else if (self->rank == high)
        wait_for (gtorch_process_group_recv (self->group, x, low, 0, &error), error);
}

static void
kernels_are_loaded_while_messages_are_awaited (void)
{
  static const Function functions[] = {
    gtorch_tensor_tan,  gtorch_tensor_atan, gtorch_tensor_sinh,  gtorch_tensor_cosh,
    gtorch_tensor_ceil, gtorch_tensor_log,  gtorch_tensor_log10, gtorch_tensor_erfc,
  };
  guint i;

  connect_ranks ();
  for (i = 0; i < 2 * G_N_ELEMENTS (functions); i++)
    {
      g_autoptr (GTorchTensor) x = number (10 * i + self->rank), y = number (-1);
      g_autoptr (GTorchWork) received = NULL, sent = NULL;
      g_autoptr (GError) error = NULL;

      received = gtorch_process_group_recv (self->group, y, next (-1), 0, &error);
      g_assert_no_error (error);
      call (functions, G_N_ELEMENTS (functions), i);
      sent = gtorch_process_group_send (self->group, x, next (1), 0, &error);
      g_assert_no_error (error);
      call (functions, G_N_ELEMENTS (functions), i + 1);
      wait_for (g_steal_pointer (&received), NULL);
      wait_for (g_steal_pointer (&sent), NULL);
      assert_number (y, 10 * i + next (-1));
    }
}

static void
kernels_are_loaded_while_batches_are_awaited (void)
{
  static const Function functions[] = {
    gtorch_tensor_asinh, gtorch_tensor_acosh, gtorch_tensor_expm1,      gtorch_tensor_log1p,
    gtorch_tensor_trunc, gtorch_tensor_round, gtorch_tensor_reciprocal, gtorch_tensor_sigmoid,
  };
  guint i;

  for (i = 0; i < 2 * G_N_ELEMENTS (functions); i++)
    {
      g_autoptr (GTorchTensor) x = number (10 * i + self->rank), y = number (-1), z = number (1);
      g_autoptr (GTorchWork) received = NULL, sent = NULL;
      g_autoptr (GError) error = NULL;

      g_assert_true (gtorch_process_group_begin_batch (self->group, &error));
      sent = gtorch_process_group_send (self->group, x, next (1), 0, &error);
      g_assert_no_error (error);
      received = gtorch_process_group_recv (self->group, y, next (-1), 0, &error);
      g_assert_no_error (error);
      g_assert_true (gtorch_process_group_end_batch (self->group, &error));
      g_assert_no_error (error);
      call (functions, G_N_ELEMENTS (functions), i);
      /* a collective comes after the messages on the same communicator */
      if (i % 3 == 0)
        wait_for (gtorch_process_group_all_reduce (self->group, z, GTORCH_REDUCE_OP_SUM, &error),
                  error);
      wait_for (g_steal_pointer (&received), NULL);
      wait_for (g_steal_pointer (&sent), NULL);
      assert_number (y, 10 * i + next (-1));
      assert_number (z, i % 3 == 0 ? self->size : 1);
    }
}

/* Each waits for what it sends before anybody receives. */
static void
what_is_sent_first_is_kept (void)
{
  g_autoptr (GTorchTensor) x = number (self->rank), y = number (-1), z = number (-1);
  g_autoptr (GError) error = NULL;

  connect_ranks ();
  wait_for (gtorch_process_group_send (self->group, x, next (1), 0, &error), error);
  g_assert_nonnull (gtorch_tensor_fill_inplace (x, 100 + self->rank, &error));
  wait_for (gtorch_process_group_send (self->group, x, next (1), 0, &error), error);
  g_assert_nonnull (gtorch_tensor_fill_inplace (x, 1000, &error));
  wait_for (gtorch_process_group_recv (self->group, y, next (-1), 0, &error), error);
  wait_for (gtorch_process_group_recv (self->group, z, next (-1), 0, &error), error);
  assert_number (y, next (-1));
  assert_number (z, 100 + next (-1));
}

/* Rank 1 sends when the others have come to a collective, and rank 0 comes to it when it has received: only
 * rank 0 can end that. Rank 1 then waits for rank 2, which waits for the next collective. */
static void
who_waits_for_each_other_goes_on (void)
{
  g_autoptr (GTorchTensor) x = number (self->rank + 1), y = number (-1);
  g_autoptr (GTorchWork) sum = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  connect_ranks ();
  for (i = 0; i < 5; i++)
    {
      if (self->rank == 0)
        wait_for (gtorch_process_group_recv (self->group, y, 1, 0, &error), error);
      sum = gtorch_process_group_all_reduce (self->group, x, GTORCH_REDUCE_OP_AVG, &error);
      g_assert_no_error (error);
      if (self->rank == 1)
        {
          g_autoptr (GTorchTensor) z = number (7 + i);

          wait_for (gtorch_process_group_send (self->group, z, 0, 0, &error), error);
        }
      wait_for (g_steal_pointer (&sum), NULL);
      assert_number (x, (self->size + 1) / 2.0);
      if (self->rank == 0)
        assert_number (y, 7 + i);
    }
  for (i = 0; i < 5; i++)
    {
      if (self->rank == 1)
        wait_for (gtorch_process_group_recv (self->group, y, 2, 0, &error), error);
      sum = gtorch_process_group_all_reduce (self->group, x, GTORCH_REDUCE_OP_AVG, &error);
      g_assert_no_error (error);
      if (self->rank == 2)
        {
          g_autoptr (GTorchTensor) z = number (7 - i);

          wait_for (gtorch_process_group_send (self->group, z, 1, 0, &error), error);
        }
      wait_for (g_steal_pointer (&sum), NULL);
      if (self->rank == 1)
        assert_number (y, 7 - i);
    }
}

static void
a_rank_that_does_not_send_is_named (void)
{
  g_autoptr (GTorchTensor) x = number (1);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;

  connect_ranks ();
  g_assert_true (gtorch_process_group_set_timeout (self->group, 2, NULL));
  if (self->rank == 1)
    {
      g_usleep (4 * G_USEC_PER_SEC);
      return;
    }
  work = gtorch_process_group_recv (self->group, x, 1, 0, &error);
  g_assert_no_error (error);
  g_cancellable_cancel (cancellable);
  g_assert_false (gtorch_work_wait (work, -1, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_false (gtorch_work_wait (work, 0.1, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_nonnull (strstr (error->message, "is not over after 0.1 seconds"));
  g_clear_error (&error);
  g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_nonnull (strstr (error->message, "rank 1 has not come to send it"));
}

/* --- graphs --- */

static GMutex capturing;

static gboolean
reduce (GTorchStream *stream, gpointer tensor, GError **error)
{
  g_autoptr (GTorchWork) work =
      gtorch_process_group_all_reduce (self->group, tensor, GTORCH_REDUCE_OP_AVG, error);

  return work != NULL && gtorch_work_wait (work, -1, NULL, error);
}

static GTorchCUDAGraph *
capture (GTorchTensor *x, GTorchStream *stream)
{
  GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;

  g_mutex_lock (&capturing);
  g_assert_true (gtorch_cuda_graph_capture (graph, stream, NULL, reduce, x, &error));
  g_assert_no_error (error);
  g_mutex_unlock (&capturing);
  return graph;
}

static void
kernels_are_loaded_while_graphs_wait (void)
{
  static const Function functions[] = {
    gtorch_tensor_asin,  gtorch_tensor_acos,   gtorch_tensor_atanh, gtorch_tensor_exp2,
    gtorch_tensor_rsqrt, gtorch_tensor_square, gtorch_tensor_sign,  gtorch_tensor_frac,
  };
  g_autoptr (GTorchTensor) x = number (0), own = number (0);
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  stream = gtorch_stream_new (gpu (self->rank), 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_process_group_bind_device (self->group, gpu (self->rank), NULL, &error));
  g_assert_no_error (error);
  graph = capture (x, stream);
  wait_for (gtorch_process_group_all_reduce (self->group, own, GTORCH_REDUCE_OP_AVG, &error),
            error);
  for (i = 0; i < 2 * G_N_ELEMENTS (functions); i++)
    {
      g_assert_nonnull (gtorch_tensor_fill_inplace (x, i + self->rank, &error));
      g_assert_true (gtorch_device_synchronize (gpu (self->rank), NULL, &error));
      call (functions, G_N_ELEMENTS (functions), i);
      g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, &error));
      g_assert_no_error (error);
      call (functions, G_N_ELEMENTS (functions), i + 1);
      g_assert_true (gtorch_stream_synchronize (stream, NULL, &error));
      assert_number (x, i + (self->size - 1) / 2.0);
    }
}

static void
a_rank_that_does_not_launch_its_graph_is_named (void)
{
  g_autoptr (GTorchTensor) x = number (1);
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GError) error = NULL;

  stream = gtorch_stream_new (gpu (self->rank), 0, &error);
  g_assert_true (gtorch_process_group_bind_device (self->group, gpu (self->rank), NULL, &error));
  g_assert_no_error (error);
  graph = capture (x, stream);
  wait_for (gtorch_process_group_all_reduce (self->group, x, GTORCH_REDUCE_OP_SUM, &error), error);
  g_assert_true (gtorch_process_group_set_timeout (self->group, 1, NULL));
  if (self->rank == 1)
    {
      g_usleep (3 * G_USEC_PER_SEC);
      return;
    }
  g_assert_false (gtorch_cuda_graph_replay_on (graph, stream, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_cmpint (strncmp (error->message, "graph: rank ", 12), ==, 0);
  g_assert_nonnull (strstr (error->message, "waited 1 seconds for the other ranks to launch the "
                                            "collectives of the graph; not there: 1"));
}

/* --- running them --- */

static const RankCase cases[] = {
  { "kernels_are_loaded_while_messages_are_awaited", 4,
    kernels_are_loaded_while_messages_are_awaited },
  { "kernels_are_loaded_while_batches_are_awaited", 4,
    kernels_are_loaded_while_batches_are_awaited },
  { "what_is_sent_first_is_kept", 3, what_is_sent_first_is_kept },
  { "who_waits_for_each_other_goes_on", 3, who_waits_for_each_other_goes_on },
  { "a_rank_that_does_not_send_is_named", 2, a_rank_that_does_not_send_is_named },
  { "kernels_are_loaded_while_graphs_wait", 4, kernels_are_loaded_while_graphs_wait },
  { "a_rank_that_does_not_launch_its_graph_is_named", 3,
    a_rank_that_does_not_launch_its_graph_is_named },
};

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (300);
  add_cases (cases, G_N_ELEMENTS (cases));
  return g_test_run ();
}
