/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Groups of GPUs, on the fake driver and the fake NCCL. Each case starts this program again, once for each
 * rank; the ranks find each other by a file. */

#include "config.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <tests/fake-cuda/fake-nccl.h>

#include "nccl-test.h"

/* --- values --- */

static gdouble
expect (GTorchReduceOp op, gint64 i)
{
  gdouble result = number (i, 0);
  gint r;

  for (r = 1; r < size; r++)
    switch (op)
      {
      case GTORCH_REDUCE_OP_PRODUCT:
        result *= number (i, r);
        break;
      case GTORCH_REDUCE_OP_MIN:
        result = MIN (result, number (i, r));
        break;
      case GTORCH_REDUCE_OP_MAX:
        result = MAX (result, number (i, r));
        break;
      default:
        result += number (i, r);
      }
  return op == GTORCH_REDUCE_OP_AVG ? result / size : result;
}

static void
all_dtypes_are_reduced (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16,
                                        GTORCH_DTYPE_INT8,    GTORCH_DTYPE_UINT8,
                                        GTORCH_DTYPE_INT32,   GTORCH_DTYPE_INT64 };
  GTorchReduceOp op;
  guint d, i;

  make_group (60);
  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (op = GTORCH_REDUCE_OP_SUM; op <= GTORCH_REDUCE_OP_MAX; op++)
      {
        g_autoptr (GTorchTensor) tensor = numbers (N, dtypes[d], rank);
        g_autofree gdouble *values = NULL;
        g_autoptr (GError) error = NULL;
        GTorchWork *work;

        if (op == GTORCH_REDUCE_OP_AVG && d > 3)
          continue;
        work = gtorch_process_group_all_reduce (group, tensor, op, &error);
        assert_done (work, &error);
        values = values_of (tensor);
        for (i = 0; i < N; i++)
          g_assert_cmpfloat_with_epsilon (values[i], expect (op, i),
                                          op == GTORCH_REDUCE_OP_AVG ? 0.02 : 1e-9);
      }
}

static void
bools_and_complex_numbers_are_reduced (void)
{
  g_autoptr (GTorchTensor) bools = numbers (N, GTORCH_DTYPE_BOOL, rank);
  g_autoptr (GTorchTensor) complex = numbers (N, GTORCH_DTYPE_COMPLEX64, rank);
  g_autoptr (GTorchTensor) real = NULL;
  g_autofree gdouble *values = NULL, *parts = NULL;
  g_autoptr (GError) error = NULL;
  GTorchWork *work;
  gint i;

  make_group (60);
  work = gtorch_process_group_all_reduce (group, bools, GTORCH_REDUCE_OP_SUM, &error);
  assert_done (work, &error);
  values = values_of (bools);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==, expect (GTORCH_REDUCE_OP_MAX, i) > 0);
  work = gtorch_process_group_all_reduce (group, complex, GTORCH_REDUCE_OP_SUM, &error);
  assert_done (work, &error);
  real = gtorch_tensor_real (complex, &error);
  g_assert_no_error (error);
  parts = values_of (real);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (parts[i], ==, expect (GTORCH_REDUCE_OP_SUM, i));
}

static void
tensors_move (void)
{
  g_autoptr (GTorchTensor) sent = numbers (N, GTORCH_DTYPE_INT16, rank);
  g_autoptr (GTorchTensor) mine = numbers (N, GTORCH_DTYPE_INT16, 3 + rank);
  g_autoptr (GTorchTensor) all = numbers (N * size, GTORCH_DTYPE_INT16, 0);
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) other = g_ptr_array_new_with_free_func (g_object_unref);
  GTorchTensor **tensors, **others;
  g_autoptr (GError) error = NULL;
  gint i, n;

  make_group (60);
  for (i = 0; i < size; i++)
    {
      g_ptr_array_add (list, numbers (N, GTORCH_DTYPE_INT16, 0));
      g_ptr_array_add (other, numbers (N, GTORCH_DTYPE_INT16, 10 * rank + i));
    }
  tensors = (GTorchTensor **) list->pdata;
  others = (GTorchTensor **) other->pdata;
  assert_done (gtorch_process_group_broadcast (group, sent, 1, &error), &error);
  assert_same (sent, N, 1);
  assert_done (gtorch_process_group_all_gather (group, tensors, size, mine, &error), &error);
  for (i = 0; i < size; i++)
    assert_same (tensors[i], N, 3 + i);
  assert_done (gtorch_process_group_all_gather_into_tensor (group, all, mine, &error), &error);
  for (i = 0; i < size; i++)
    {
      g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (all, 0, (gint64) N * i, N, NULL);

      assert_same (part, N, 3 + i);
    }
  n = rank == 1 ? size : 0;
  assert_done (gtorch_process_group_scatter (group, mine, n > 0 ? others : NULL, n, 1, &error),
               &error);
  assert_same (mine, N, 10 + rank);
  assert_done (gtorch_process_group_gather (group, n > 0 ? tensors : NULL, n, mine, 1, &error),
               &error);
  for (i = 0; i < n; i++)
    assert_same (tensors[i], N, 10 + i);
  assert_done (gtorch_process_group_all_to_all (group, tensors, size, others, size, &error),
               &error);
  for (i = 0; i < size; i++)
    assert_same (tensors[i], N, 10 * i + rank);
  assert_done (gtorch_process_group_barrier (group, &error), &error);
}

static void
parts_are_reduced_and_exchanged (void)
{
  g_autoptr (GTorchTensor) all = numbers ((gint64) N * size, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchTensor) part = numbers (N, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchTensor) from = numbers (size * (size + 1) / 2, GTORCH_DTYPE_UINT8, rank);
  g_autoptr (GTorchTensor) to = numbers ((gint64) size * (rank + 1), GTORCH_DTYPE_UINT8, 0);
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (g_object_unref);
  gint64 in[8], out[8];
  g_autofree gdouble *values = NULL, *again = NULL, *moved = NULL;
  g_autoptr (GError) error = NULL;
  gint i, k;

  make_group (60);
  assert_done (gtorch_process_group_reduce_scatter_tensor (group, part, all, GTORCH_REDUCE_OP_SUM,
                                                           &error),
               &error);
  values = values_of (part);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==, expect (GTORCH_REDUCE_OP_SUM, (gint64) N * rank + i));
  for (i = 0; i < size; i++)
    g_ptr_array_add (list, numbers (N, GTORCH_DTYPE_FLOAT32, rank));
  assert_done (gtorch_process_group_reduce_scatter (group, part, (GTorchTensor **) list->pdata,
                                                    size, GTORCH_REDUCE_OP_MAX, &error),
               &error);
  again = values_of (part);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (again[i], ==, expect (GTORCH_REDUCE_OP_MAX, i));
  /* rank r gets r + 1 elements of each */
  for (i = 0; i < size; i++)
    {
      in[i] = i + 1;
      out[i] = rank + 1;
    }
  assert_done (gtorch_process_group_all_to_all_single (group, to, from, out, size, in, size,
                                                       &error),
               &error);
  moved = values_of (to);
  for (i = 0; i < size; i++)
    for (k = 0; k <= rank; k++)
      g_assert_cmpfloat (moved[i * (rank + 1) + k], ==, number (rank * (rank + 1) / 2 + k, i));
}

static void
one_rank_gets_the_sum (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autofree gdouble *values = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  make_group (60);
  assert_done (gtorch_process_group_reduce (group, tensor, 1, GTORCH_REDUCE_OP_SUM, &error),
               &error);
  values = values_of (tensor);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==,
                       rank == 1 ? expect (GTORCH_REDUCE_OP_SUM, i) : number (i, rank));
}

static void
two_ranks_exchange_messages (void)
{
  const gint to = (rank + 1) % size, from = (rank + size - 1) % size;
  g_autoptr (GTorchTensor) mine = numbers (N, GTORCH_DTYPE_BFLOAT16, rank);
  g_autoptr (GTorchTensor) theirs = numbers (N, GTORCH_DTYPE_BFLOAT16, 0);
  g_autoptr (GTorchWork) out = NULL, in = NULL, lone = NULL;
  g_autoptr (GError) error = NULL;

  make_group (60);
  g_assert_true (gtorch_process_group_begin_batch (group, &error));
  g_assert_false (gtorch_process_group_begin_batch (group, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  out = gtorch_process_group_send (group, mine, to, 0, &error);
  g_assert_no_error (error);
  in = gtorch_process_group_recv (group, theirs, from, 0, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_work_wait (in, -1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (gtorch_process_group_end_batch (group, &error));
  g_assert_no_error (error);
  assert_done (g_steal_pointer (&out), NULL);
  assert_done (g_steal_pointer (&in), NULL);
  assert_same (theirs, N, from);
  if (rank > 1)
    return;
  /* without a batch; both send before they receive */
  lone = gtorch_process_group_send (group, mine, 1 - rank, 0, &error);
  g_assert_no_error (error);
  assert_done (gtorch_process_group_recv (group, theirs, 1 - rank, 0, &error), &error);
  assert_done (g_steal_pointer (&lone), NULL);
  assert_same (theirs, N, 1 - rank);
}

static void
several_tensors_go_in_a_batch (void)
{
  g_autoptr (GTorchTensor) a = numbers (N, GTORCH_DTYPE_BFLOAT16, rank);
  g_autoptr (GTorchTensor) b = numbers (3, GTORCH_DTYPE_INT64, rank);
  g_autoptr (GTorchTensor) complex = numbers (N, GTORCH_DTYPE_COMPLEX64, rank);
  GTorchTensor *both[] = { a, b }, *mixed[] = { a, complex };
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;

  make_group (60);
  assert_done (gtorch_process_group_broadcast_coalesced (group, both, 2, size - 1, &error), &error);
  assert_same (a, N, size - 1);
  assert_same (b, 3, size - 1);
  /* within a batch of the program they are part of that */
  g_assert_true (gtorch_process_group_begin_batch (group, &error));
  work = gtorch_process_group_broadcast_coalesced (group, both, 2, 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_process_group_end_batch (group, &error));
  assert_done (g_steal_pointer (&work), &error);
  assert_same (b, 3, size - 1);
  /* NCCL has no product of complex numbers; the first tensor is not reduced by itself */
  g_assert_null (gtorch_process_group_all_reduce_coalesced (group, mixed, 2,
                                                            GTORCH_REDUCE_OP_PRODUCT, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  assert_same (a, N, size - 1);
  assert_done (gtorch_process_group_broadcast_coalesced (group, both, 2, 0, &error), &error);
  assert_same (a, N, size - 1);
}

static void
some_ranks_are_a_group (void)
{
  const gint64 ranks[] = { 2, 0 };
  g_autoptr (GTorchProcessGroup) part = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  GTorchWork *work;

  make_group (60);
  part = gtorch_process_group_new_part (group, ranks, 2, -1, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_process_group_get_rank (part), ==, rank == 2 ? 0 : rank == 0 ? 1 : -1);
  work = gtorch_process_group_broadcast (part, tensor, 0, &error);
  if (rank != 1)
    {
      assert_done (work, &error);
      assert_same (tensor, N, 2);
      return;
    }
  g_assert_null (work);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

/* --- streams, graphs, modules --- */

static void
on_waited (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_work_wait_finish (GTORCH_WORK (source), result, &error));
  g_assert_no_error (error);
  *(gboolean *) data = TRUE;
}

static void
work_is_waited_for_in_each_way (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;
  gboolean is_done = FALSE;
  gint64 started;

  make_group (60);
  assert_done (gtorch_process_group_barrier (group, &error), &error);
  fake_nccl_delay (G_USEC_PER_SEC);
  started = g_get_monotonic_time ();
  work = gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (gtorch_work_get_operation (work), ==, "all_reduce");
  g_assert_cmpuint (gtorch_work_get_sequence (work), ==, 2);
  g_assert_false (gtorch_work_is_completed (work));
  /* the stream waits, the caller does not */
  g_assert_true (gtorch_work_wait (work, -1, NULL, &error));
  g_assert_cmpint (g_get_monotonic_time () - started, <, 900000);
  g_assert_false (gtorch_work_wait (work, 0.05, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_clear_error (&error);
  g_assert_true (gtorch_work_wait (work, 10, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_work_is_completed (work) && gtorch_work_is_success (work));
  g_clear_object (&work);
  work = gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error);
  g_assert_no_error (error);
  gtorch_work_wait_async (work, NULL, on_waited, &is_done);
  while (!is_done)
    g_main_context_iteration (NULL, TRUE);
}

static GTorchWork *captured;

static gboolean
reduce_in_capture (GTorchStream *stream, gpointer tensor, GError **error)
{
  g_clear_object (&captured);
  captured = gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, error);
  return captured != NULL && gtorch_work_wait (captured, -1, NULL, error);
}

static void
graphs_have_collectives (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = NULL;
  g_autofree gdouble *values = NULL;
  guint version;
  g_autoptr (GOutputStream) dot = g_memory_output_stream_new_resizable ();
  g_autoptr (GError) error = NULL;
  gint i;

  make_group (60);
  stream = gtorch_stream_new (gpu (0), 0, &error);
  g_assert_no_error (error);
  /* a first call cannot be captured */
  g_assert_false (
      gtorch_cuda_graph_capture (graph, stream, NULL, reduce_in_capture, tensor, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_clear_error (&error);
  g_clear_object (&graph);
  graph = gtorch_cuda_graph_new ();
  g_assert_true (gtorch_process_group_bind_device (group, gpu (0), NULL, &error));
  g_assert_no_error (error);
  g_assert_true (
      gtorch_cuda_graph_capture (graph, stream, NULL, reduce_in_capture, tensor, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
  version = gtorch_tensor_get_version (tensor);
  for (i = 0; i < 2; i++)
    {
      g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, &error));
      g_assert_no_error (error);
    }
  g_assert_true (gtorch_stream_synchronize (stream, NULL, &error));
  g_assert_cmpuint (gtorch_tensor_get_version (tensor), ==, version + 2);
  values = values_of (tensor);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==, number (i, 1) * size * size);
  g_assert_true (gtorch_cuda_graph_debug_dump (graph, dot, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (g_output_stream_write_all (dot, "", 1, NULL, NULL, NULL));
  g_assert_nonnull (
      strstr (g_memory_output_stream_get_data (G_MEMORY_OUTPUT_STREAM (dot)), "all_reduce"));
  g_assert_true (gtorch_work_is_completed (captured) && gtorch_work_is_success (captured));
  g_clear_object (&captured);
}

static void
modules_train_together (void)
{
  g_autoptr (GTorchModule) net = NULL;
  g_autoptr (GTorchDistributedModule) model = NULL;
  g_autoptr (GTorchTensor) input = NULL, output = NULL, loss = NULL, grad = NULL;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autofree gdouble *values = NULL;
  g_autoptr (GError) error = NULL;

  make_group (60);
  net = GTORCH_MODULE (gtorch_linear_new (3, 1, &error));
  g_assert_true (gtorch_module_to (net, gpu (0), GTORCH_DTYPE_NONE, &error));
  g_assert_no_error (error);
  model = gtorch_distributed_module_new (net, group, 25, TRUE, FALSE, &error);
  g_assert_no_error (error);
  input = numbers (3, GTORCH_DTYPE_FLOAT32, rank);
  output = gtorch_module_forward (GTORCH_MODULE (model), input, &error);
  g_assert_no_error (error);
  loss = gtorch_tensor_sum (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
  parameters = gtorch_module_get_parameters (net, TRUE);
  weight = g_list_model_get_item (parameters, 0);
  grad = gtorch_tensor_get_grad (weight);
  g_assert_nonnull (grad);
  values = values_of (grad);
  g_assert_cmpfloat_with_epsilon (values[0], (size - 1) / 2.0, 1e-6);
  g_assert_cmpfloat_with_epsilon (values[2], (size - 1) / 2.0 + 2, 1e-6);
}

/* --- what is refused --- */

static void
bad_arguments_are_refused (void)
{
  g_autoptr (GTorchTensor) shorts = numbers (N, GTORCH_DTYPE_INT16, 0);
  g_autoptr (GTorchTensor) ints = numbers (N, GTORCH_DTYPE_INT32, 0);
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_process_group_new ("nccl", NULL, rank, size, 5, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_new ("nccl", store, -1, -1, 5, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  make_group (5);
  g_assert_null (gtorch_process_group_all_reduce (group, shorts, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "all_reduce: NCCL has no “sum” of int16");
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_all_reduce (group, ints, GTORCH_REDUCE_OP_BXOR, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_send (group, ints, 1 - rank, 3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  host = gtorch_tensor_to_device (ints, gtorch_device_cpu (), FALSE, &error);
  g_assert_null (gtorch_process_group_broadcast (group, host, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_cmpstr (error->message, ==,
                   "broadcast: a tensor is on cpu; the backend nccl has tensors on GPUs");
  g_clear_error (&error);
  g_assert_false (gtorch_process_group_bind_device (group, gtorch_device_cpu (), NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_clear_error (&error);
  g_cancellable_cancel (cancellable);
  g_assert_false (gtorch_process_group_bind_device (group, gpu (0), cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- faults --- */

static gint n_timeouts, n_failures, lost_rank = -1;

static void
on_timed_out (GTorchProcessGroup *self, GError *error)
{
  n_timeouts++;
}

static void
on_failed (GTorchProcessGroup *self, GError *error)
{
  n_failures++;
}

static void
on_peer_lost (GTorchProcessGroup *self, gint peer)
{
  lost_rank = peer;
}

static void
watch_signals (void)
{
  g_signal_connect (group, "timed-out", G_CALLBACK (on_timed_out), NULL);
  g_signal_connect (group, "failed", G_CALLBACK (on_failed), NULL);
  g_signal_connect (group, "peer-lost", G_CALLBACK (on_peer_lost), NULL);
}

/* Returns when all ranks know that they are connected. */
static void
connect_ranks (void)
{
  g_autoptr (GBytes) empty = g_bytes_new (NULL, 0);
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) keys = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  assert_done (gtorch_process_group_barrier (group, &error), &error);
  for (i = 0; i < size; i++)
    {
      g_autofree gchar *key = g_strdup_printf ("connected-%d", i);

      g_strv_builder_add (builder, key);
    }
  keys = g_strv_builder_end (builder);
  g_assert_true (gtorch_store_set (store, keys[rank], empty, NULL, &error));
  g_assert_true (gtorch_store_wait (store, (const gchar *const *) keys, 20, NULL, &error));
}

/* Waits for the error of an operation, and that the group refuses another one. */
static gchar *
find_error (GTorchWork *work)
{
  g_autoptr (GTorchWork) owned = work;
  g_autoptr (GError) error = NULL, next = NULL;

  g_assert_nonnull (work);
  g_assert_false (gtorch_work_wait (work, 10, NULL, &error));
  g_assert_nonnull (error);
  g_test_message ("%s", error->message);
  g_assert_true (gtorch_work_is_completed (work) && !gtorch_work_is_success (work));
  while (n_failures == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_null (gtorch_process_group_barrier (group, &next));
  g_assert_error (next, error->domain, error->code);
  return g_strdup (error->message);
}

static void
a_dead_rank_is_named (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;
  gint64 started;

  make_group (60);
  watch_signals ();
  connect_ranks ();
  gtorch_process_group_set_timeout (group, 1, NULL);
  if (rank == 1)
    _exit (0);
  started = g_get_monotonic_time ();
  message =
      find_error (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_cmpint (g_get_monotonic_time () - started, <, 8 * G_USEC_PER_SEC);
  if (g_str_has_prefix (message, "all_reduce"))
    g_assert_nonnull (strstr (message, "rank 1 does not answer"));
  else
    g_assert_nonnull (strstr (message, "another rank has failed"));
}

static void
a_rank_that_is_late_is_named (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;

  make_group (60);
  watch_signals ();
  connect_ranks ();
  gtorch_process_group_set_timeout (group, 1, NULL);
  if (rank == 1)
    {
      while (n_failures == 0)
        g_main_context_iteration (NULL, TRUE);
      g_assert_null (gtorch_process_group_barrier (group, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      g_assert_nonnull (strstr (error->message, "rank 0 waited 1 seconds"));
      return;
    }
  message = find_error (gtorch_process_group_broadcast (group, tensor, 0, &error));
  g_assert_cmpstr (message, ==,
                   "broadcast: rank 0 waited 1 seconds for the other ranks in operation 2 of the "
                   "group: rank 1 has begun 1 operations only, the last was “barrier”");
  g_assert_cmpint (n_timeouts, ==, 1);
  g_assert_cmpint (lost_rank, ==, -1);
}

/* Finding a kernel waits for the GPU (“stall=1”), on which a collective waits for the other rank; so does
 * the thread that looks after the collective. */
static void
a_call_of_the_driver_that_waits_ends (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank), result = NULL;
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;
  gint64 start;

  make_group (60);
  watch_signals ();
  connect_ranks ();
  gtorch_process_group_set_timeout (group, 1, NULL);
  if (rank == 1)
    {
      while (n_failures == 0)
        g_main_context_iteration (NULL, TRUE);
      return;
    }
  start = g_get_monotonic_time ();
  work = gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error);
  g_assert_no_error (error);
  result = gtorch_tensor_tanh (tensor, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_work_wait (work, 0, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_true (g_str_has_prefix (error->message, "all_reduce: rank 0 waited 1 seconds"));
  g_assert_cmpint (g_get_monotonic_time () - start, <, 10 * G_USEC_PER_SEC);
}

static void
another_size_is_an_error (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;

  make_group (60);
  watch_signals ();
  connect_ranks ();
  gtorch_process_group_set_timeout (group, 1, NULL);
  if (rank == 1)
    fake_nccl_cut (1);
  message =
      find_error (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_nonnull (strstr (message, "all_reduce"));
}

static void
a_gpu_that_hangs_is_an_error (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;

  make_group (60);
  watch_signals ();
  connect_ranks ();
  gtorch_process_group_set_timeout (group, 1, NULL);
  fake_nccl_hang (1);
  message =
      find_error (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  /* the stream goes on */
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
}

static void
an_error_of_nccl_is_found (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;

  make_group (100);
  watch_signals ();
  connect_ranks ();
  if (rank == 1)
    _exit (0);
  fake_nccl_notice (TRUE);
  message =
      find_error (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_nonnull (strstr (message, "remote process exited"));
  g_assert_cmpint (lost_rank, ==, 1);
}

static void
other_ranks_learn_of_a_failure (void)
{
  GTorchWork *work;
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *message = NULL;

  make_group (100);
  watch_signals ();
  connect_ranks ();
  if (rank == 0)
    {
      fake_nccl_fail ("ncclAllReduce", 1, 3);
      g_assert_null (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
      g_assert_cmpstr (error->message, ==,
                       "rank 0, operation 2 of the group: all_reduce: internal error");
      /* the file must be there until the other one has read it */
      while (n_failures == 0)
        g_main_context_iteration (NULL, TRUE);
      g_usleep (G_USEC_PER_SEC / 2);
      return;
    }
  work = gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error);
  message = work != NULL ? find_error (work) : g_strdup (error->message);
  g_assert_nonnull (strstr (message, "rank 0, operation 2 of the group: all_reduce: internal"));
}

static void
on_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

/* One rank waits, the other in a main loop. */
static GTorchProcessGroup *
shrink (const gint64 *lost, GError **error)
{
  g_autoptr (GAsyncResult) result = NULL;

  if (rank == 0)
    return gtorch_process_group_shrink (group, lost, 1, error);
  gtorch_process_group_shrink_async (group, lost, 1, NULL, on_result, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return gtorch_process_group_shrink_finish (group, result, error);
}

static void
the_others_go_on (void)
{
  const gint64 lost = 1;
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchTensor) again = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchProcessGroup) rest = NULL;
  g_autofree gdouble *values = NULL;
  g_autofree gchar *message = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  make_group (60);
  watch_signals ();
  connect_ranks ();
  gtorch_process_group_set_timeout (group, 1, NULL);
  if (rank == 1)
    _exit (0);
  message =
      find_error (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  rest = shrink (&lost, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_process_group_get_size (rest), ==, size - 1);
  gtorch_process_group_set_timeout (rest, 60, NULL);
  assert_done (gtorch_process_group_all_reduce (rest, again, GTORCH_REDUCE_OP_SUM, &error), &error);
  values = values_of (again);
  for (i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==, number (i, 0) + number (i, 2));
}

static void
ranks_that_do_not_come_are_an_error (void)
{
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;
  gint64 started = g_get_monotonic_time ();

  make_group (0.5);
  if (rank == 1)
    return;
  if (rank == 0)
    g_assert_false (gtorch_process_group_bind_device (group, gpu (0), NULL, &error));
  else
    {
      gtorch_process_group_bind_device_async (group, gpu (0), NULL, on_result, &result);
      while (result == NULL)
        g_main_context_iteration (NULL, TRUE);
      g_assert_false (gtorch_process_group_bind_device_finish (group, result, &error));
    }
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_cmpint (g_get_monotonic_time () - started, <, 8 * G_USEC_PER_SEC);
  g_assert_cmpint (fake_nccl_get_comms (), ==, 0);
}

/* With one rank, so that nobody waits. */
static void
each_call_may_fail (void)
{
  const gchar *const *names = fake_nccl_get_functions ();
  guint i, n_errors = 0;

  for (i = 0; names[i] != NULL; i++)
    {
      g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
      g_autoptr (GTorchTensor) other = numbers (N, GTORCH_DTYPE_FLOAT32, rank);
      g_autoptr (GTorchProcessGroup) lone = NULL;
      g_autoptr (GTorchWork) work = NULL;
      g_autoptr (GError) error = NULL;
      guint k;

      if (g_str_equal (names[i], "ncclGetVersion") || g_str_has_prefix (names[i], "ncclGetErr")
          || g_str_has_prefix (names[i], "ncclGetLast"))
        continue;
      lone = gtorch_process_group_new ("nccl", store, 0, 1, 2, NULL, &error);
      g_assert_no_error (error);
      fake_nccl_fail (names[i], 1, 3);
      for (k = 0; k < 7 && error == NULL; k++)
        {
          g_clear_object (&work);
          work =
              k == 0 ? gtorch_process_group_all_reduce (lone, tensor, GTORCH_REDUCE_OP_SUM, &error)
              : k == 1 ? gtorch_process_group_broadcast (lone, tensor, 0, &error)
              : k == 2 ? gtorch_process_group_reduce (lone, tensor, 0, GTORCH_REDUCE_OP_SUM, &error)
              : k == 3 ? gtorch_process_group_all_gather_into_tensor (lone, tensor, other, &error)
              : k == 4 ? gtorch_process_group_reduce_scatter_tensor (lone, tensor, other,
                                                                     GTORCH_REDUCE_OP_SUM, &error)
              : k == 5 ? gtorch_process_group_all_to_all (lone, &tensor, 1, &other, 1, &error)
                       : gtorch_process_group_all_reduce_premul (lone, tensor, 2, &error);
          g_assert_true ((work == NULL) == (error != NULL));
          if (work != NULL)
            gtorch_work_wait (work, 5, NULL, &error);
        }
      if (error != NULL)
        {
          n_errors++;
          g_test_message ("%s: %s", names[i], error->message);
        }
      g_clear_object (&work);
      g_clear_object (&lone);
      fake_nccl_fail (NULL, 0, 0);
      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
    }
  g_assert_cmpuint (n_errors, >=, 10);
}

static void
ranks_connect_without_a_split (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (N, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GError) error = NULL;

  make_group (60);
  fake_nccl_fail ("ncclCommSplit", 1, 5);
  assert_done (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_MAX, &error),
               &error);
  assert_same (tensor, N, 0);
  g_assert_cmpint (fake_nccl_get_comms (), ==, 1);
}

/* --- running them --- */

static const struct
{
  const gchar *name;
  gint size;
  void (*func) (void);
} cases[] = {
  { "all_dtypes_are_reduced", 3, all_dtypes_are_reduced },
  { "bools_and_complex_numbers_are_reduced", 2, bools_and_complex_numbers_are_reduced },
  { "tensors_move", 3, tensors_move },
  { "parts_are_reduced_and_exchanged", 3, parts_are_reduced_and_exchanged },
  { "one_rank_gets_the_sum", 4, one_rank_gets_the_sum },
  { "two_ranks_exchange_messages", 3, two_ranks_exchange_messages },
  { "several_tensors_go_in_a_batch", 3, several_tensors_go_in_a_batch },
  { "some_ranks_are_a_group", 3, some_ranks_are_a_group },
  { "work_is_waited_for_in_each_way", 2, work_is_waited_for_in_each_way },
  { "graphs_have_collectives", 2, graphs_have_collectives },
  { "modules_train_together", 2, modules_train_together },
  { "bad_arguments_are_refused", 2, bad_arguments_are_refused },
  { "a_dead_rank_is_named", 3, a_dead_rank_is_named },
  { "a_rank_that_is_late_is_named", 2, a_rank_that_is_late_is_named },
  { "a_call_of_the_driver_that_waits_ends", 2, a_call_of_the_driver_that_waits_ends },
  { "another_size_is_an_error", 2, another_size_is_an_error },
  { "a_gpu_that_hangs_is_an_error", 2, a_gpu_that_hangs_is_an_error },
  { "an_error_of_nccl_is_found", 2, an_error_of_nccl_is_found },
  { "other_ranks_learn_of_a_failure", 2, other_ranks_learn_of_a_failure },
  { "the_others_go_on", 3, the_others_go_on },
  { "ranks_that_do_not_come_are_an_error", 2, ranks_that_do_not_come_are_an_error },
  { "each_call_may_fail", 1, each_call_may_fail },
  { "ranks_connect_without_a_split", 2, ranks_connect_without_a_split },
};

static const gchar *program;

static GSubprocess *
start_rank (const gchar *name, gint which, gint n, const gchar *path)
{
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  g_autofree gchar *own = g_strdup_printf ("%d", which), *all = g_strdup_printf ("%d", n);
  g_autoptr (GError) error = NULL;
  GSubprocess *process;

  if (g_str_equal (name, "a_call_of_the_driver_that_waits_ends"))
    g_subprocess_launcher_setenv (launcher, "GTORCH_FAKE_CUDA_MORE", "stall=1", TRUE);
  process =
      g_subprocess_launcher_spawn (launcher, &error, program, "--rank", name, own, all, path, NULL);
  g_assert_no_error (error);
  return process;
}

static void
run_case (gconstpointer data)
{
  const guint which = GPOINTER_TO_UINT (data);
  g_autofree gchar *path = g_build_filename (g_get_tmp_dir (), "gtorch-nccl-XXXXXX", NULL);
  g_autoptr (GPtrArray) processes = g_ptr_array_new_with_free_func (g_object_unref);
  const int fd = g_mkstemp (path);
  gint r;
  guint i;

  close (fd);
  g_unlink (path);
#ifdef __SANITIZE_THREAD__
  g_test_skip ("the fake driver's and NCCL's threads are not seen");
  return;
#endif
  for (r = 0; r < cases[which].size; r++)
    g_ptr_array_add (processes, start_rank (cases[which].name, r, cases[which].size, path));
  for (i = 0; i < processes->len; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_true (g_subprocess_wait (processes->pdata[i], NULL, &error));
      g_assert_no_error (error);
      g_assert_true (g_subprocess_get_if_exited (processes->pdata[i]));
      g_assert_cmpint (g_subprocess_get_exit_status (processes->pdata[i]), ==, 0);
    }
  g_unlink (path);
}

static void
run_rank (gchar **argv)
{
  g_autoptr (GError) error = NULL;
  guint i;

  alarm (120); /* a rank that hangs ends by a signal */
  rank = atoi (argv[3]);
  size = atoi (argv[4]);
  store = GTORCH_STORE (gtorch_file_store_new (argv[5], &error));
  g_assert_no_error (error);
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    if (g_str_equal (cases[i].name, argv[2]))
      cases[i].func ();
  if (group != NULL)
    {
      while (g_main_context_iteration (NULL, FALSE))
        ;
      g_assert_finalize_object (group);
    }
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_object_unref (store);
}

int
main (int argc, char **argv)
{
  guint i;

  if (argc == 6 && g_str_equal (argv[1], "--rank"))
    {
      run_rank (argv);
      return 0;
    }
  g_test_init (&argc, &argv, NULL);
  program = argv[0];
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree gchar *path = g_strconcat ("/GTorch/nccl/", cases[i].name, NULL);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), run_case);
    }
  return g_test_run ();
}
