/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of a group. The program starts itself by mpirun, with several ranks, all of which run the
 * cases; a rank that fails ends all. Where mpirun is not installed, a group of one process is tested. */

#include "config.h"

#include <glib/gstdio.h>
#include <string.h>

#include "ranks.h"

static void
assert_values (GTorchTensor *tensor, gint64 n, gdouble (*expected) (gint64 i))
{
  g_autoptr (GError) error = NULL;
  gsize n_values;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (tensor, &n_values, &error);
  gint64 i;

  g_assert_no_error (error);
  g_assert_cmpint (n_values, ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, expected (i));
}

#define N 1000

static gdouble
expect_sum (gint64 i)
{
  return size * (size - 1) / 2.0 + size * (gdouble) (i % 7);
}

static gdouble
expect_mean (gint64 i)
{
  return expect_sum (i) / size;
}

static gdouble
expect_max (gint64 i)
{
  return size - 1 + i % 7;
}

static gdouble
expect_min (gint64 i)
{
  return i % 7;
}

static GTorchTensor *
small_numbers (GTorchDType dtype)
{
  g_autoptr (GTorchTensor) all = numbers (N, GTORCH_DTYPE_FLOAT64, 0);
  g_autoptr (GTorchTensor) small = gtorch_tensor_remainder_scalar (all, 7, NULL);
  g_autoptr (GTorchTensor) mine = gtorch_tensor_add_scalar (small, rank, 1, NULL);

  return gtorch_tensor_to_dtype (mine, dtype, NULL);
}

static void
every_dtype_is_reduced (void)
{
  static const struct
  {
    GTorchReduceOp op;
    gdouble (*expected) (gint64 i);
  } cases[] = {
    { GTORCH_REDUCE_OP_SUM, expect_sum },
    { GTORCH_REDUCE_OP_MAX, expect_max },
    { GTORCH_REDUCE_OP_MIN, expect_min },
    { GTORCH_REDUCE_OP_AVG, expect_mean },
  };
  GTorchDType dtype;
  guint i;

  for (dtype = GTORCH_DTYPE_FLOAT32; dtype <= GTORCH_DTYPE_INT64; dtype++)
    for (i = 0; i < G_N_ELEMENTS (cases); i++)
      {
        g_autoptr (GTorchTensor) tensor = small_numbers (dtype);
        g_autoptr (GError) error = NULL;
        GTorchWork *work = gtorch_process_group_all_reduce (group, tensor, cases[i].op, &error);

        if (cases[i].op == GTORCH_REDUCE_OP_AVG && dtype > GTORCH_DTYPE_BFLOAT16)
          {
            g_assert_null (work);
            g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
            continue;
          }
        g_assert_no_error (error);
        g_assert_cmpuint (gtorch_tensor_get_version (tensor), >, 0);
        assert_done (work);
        assert_values (tensor, N, cases[i].expected);
      }
}

static gdouble
expect_product (gint64 i)
{
  gdouble product = 1;
  gint r;

  for (r = 0; r < size; r++)
    product *= 1 + r + i;
  return product;
}

static gdouble
expect_or (gint64 i)
{
  gint64 bits = 0;
  gint r;

  for (r = 0; r < size; r++)
    bits |= 1 + r + i;
  return bits;
}

static void
other_reductions_are_right (void)
{
  g_autoptr (GTorchTensor) product = numbers (5, GTORCH_DTYPE_FLOAT64, 1 + rank);
  g_autoptr (GTorchTensor) bits = numbers (5, GTORCH_DTYPE_INT32, 1 + rank);
  g_autoptr (GTorchTensor) float_bits = numbers (5, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GError) error = NULL;

  assert_done (gtorch_process_group_all_reduce (group, product, GTORCH_REDUCE_OP_PRODUCT, &error));
  assert_values (product, 5, expect_product);
  assert_done (gtorch_process_group_all_reduce (group, bits, GTORCH_REDUCE_OP_BOR, &error));
  assert_values (bits, 5, expect_or);
  g_assert_null (
      gtorch_process_group_all_reduce (group, float_bits, GTORCH_REDUCE_OP_BAND, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_all_reduce (group, bits, (GTorchReduceOp) 99, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static gdouble
expect_last (gint64 i)
{
  return size - 1 + i;
}

static gdouble
expect_mine (gint64 i)
{
  return rank + i;
}

static gdouble
expect_plain_sum (gint64 i)
{
  return size * (size - 1) / 2.0 + size * i;
}

static void
one_rank_sends_or_gets (void)
{
  g_autoptr (GTorchTensor) sent = numbers (9, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchTensor) reduced = numbers (9, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (sent, NULL);
  g_autoptr (GTorchTensor) fixed =
      gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (9), NULL);

  /* the memory of the rank that sends may be read-only */
  assert_done (
      gtorch_process_group_broadcast (group, rank == size - 1 ? fixed : sent, size - 1, NULL));
  assert_values (rank == size - 1 ? fixed : sent, 9, expect_last);
  assert_done (gtorch_process_group_reduce (group, reduced, 0, GTORCH_REDUCE_OP_SUM, NULL));
  assert_values (reduced, 9, rank == 0 ? expect_plain_sum : expect_mine);
}

static gdouble
expect_gathered (gint64 i)
{
  return i / 3 + i % 3;
}

static void
tensors_are_gathered_and_scattered (void)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchTensor) mine = numbers (3, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchTensor) all = numbers (3 * size, GTORCH_DTYPE_FLOAT32, -1);
  g_autoptr (GTorchTensor) part = numbers (3, GTORCH_DTYPE_FLOAT32, -1);
  g_autoptr (GTorchTensor) back = NULL;
  GTorchTensor **list;
  gint i;

  for (i = 0; i < size; i++)
    g_ptr_array_add (parts, numbers (3, GTORCH_DTYPE_FLOAT32, -1));
  list = (GTorchTensor **) parts->pdata;
  assert_done (gtorch_process_group_all_gather_into_tensor (group, all, mine, NULL));
  assert_values (all, 3 * size, expect_gathered);
  assert_done (gtorch_process_group_all_gather (group, list, size, mine, NULL));
  back = gtorch_cat (list, size, 0, NULL);
  assert_values (back, 3 * size, expect_gathered);
  assert_done (gtorch_process_group_gather (group, rank == 0 ? list : NULL, rank == 0 ? size : 0,
                                            mine, 0, NULL));
  assert_done (gtorch_process_group_scatter (group, part, rank == 0 ? list : NULL,
                                             rank == 0 ? size : 0, 0, NULL));
  assert_values (part, 3, expect_mine);
}

static gdouble
expect_scattered_sum (gint64 i)
{
  return size * (size - 1) / 2.0 + size * (3.0 * rank + i);
}

static gdouble
expect_exchanged (gint64 i)
{
  return i / 2 * 100 + 2 * rank + i % 2;
}

static void
parts_are_reduced_and_exchanged (void)
{
  g_autoptr (GTorchTensor) input = numbers (3 * size, GTORCH_DTYPE_FLOAT64, rank);
  g_autoptr (GTorchTensor) output = numbers (3, GTORCH_DTYPE_FLOAT64, 0);
  g_autoptr (GTorchTensor) sent = numbers (2 * size, GTORCH_DTYPE_INT64, 100 * rank);
  g_autoptr (GTorchTensor) got = numbers (2 * size, GTORCH_DTYPE_INT64, 0);
  g_autoptr (GPtrArray) in = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func (g_object_unref);
  gint i;

  assert_done (gtorch_process_group_reduce_scatter_tensor (group, output, input,
                                                           GTORCH_REDUCE_OP_SUM, NULL));
  assert_values (output, 3, expect_scattered_sum);
  assert_done (gtorch_process_group_all_to_all_single (group, got, sent, NULL, 0, NULL, 0, NULL));
  assert_values (got, 2 * size, expect_exchanged);
  /* rank r sends r + 1 elements to each */
  for (i = 0; i < size; i++)
    {
      g_ptr_array_add (in, numbers (rank + 1, GTORCH_DTYPE_FLOAT32, rank));
      g_ptr_array_add (out, numbers (i + 1, GTORCH_DTYPE_FLOAT32, -1));
    }
  assert_done (gtorch_process_group_all_to_all (group, (GTorchTensor **) out->pdata, size,
                                                (GTorchTensor **) in->pdata, size, NULL));
  for (i = 0; i < size; i++)
    g_assert_cmpfloat (gtorch_tensor_item_double (gtorch_tensor_select (out->pdata[i], 0, i, NULL),
                                                  NULL),
                       ==, 2 * i);
}

static gdouble
expect_twice (gint64 i)
{
  return 2 * expect_plain_sum (i);
}

/* The result is used without waiting for the work, and the sum is sent again. */
static void
results_wait_for_their_work (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (200000, GTORCH_DTYPE_FLOAT64, rank);
  g_autoptr (GTorchWork) work =
      gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, NULL);
  g_autoptr (GTorchTensor) twice = gtorch_tensor_mul_scalar (tensor, 2, NULL);

  assert_values (twice, 200000, expect_twice);
  g_assert_cmpstr (gtorch_work_get_operation (work), ==, "all_reduce");
  g_assert_cmpuint (gtorch_work_get_sequence (work), >, 0);
}

static void
ranks_send_and_receive (void)
{
  const gint next = (rank + 1) % size, former = (rank + size - 1) % size;
  g_autoptr (GTorchTensor) sent = numbers (100000, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchTensor) got = numbers (100000, GTORCH_DTYPE_FLOAT32, -1);
  g_autoptr (GTorchWork) send = NULL;
  g_autoptr (GError) error = NULL;

  if (size == 1)
    {
      g_assert_null (gtorch_process_group_send (group, sent, 0, 0, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      return;
    }
  send = gtorch_process_group_send (group, sent, next, 5, &error);
  g_assert_no_error (error);
  assert_done (gtorch_process_group_recv (group, got, former, 5, &error));
  assert_done (g_steal_pointer (&send));
  g_assert_cmpfloat (gtorch_tensor_item_double (gtorch_tensor_select (got, 0, 10, NULL), NULL), ==,
                     former + 10);
}

/* Rank 0 does not know who sends first. */
static void
any_rank_may_send (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (3, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GError) error = NULL;
  guint seen = 0;
  gint i;

  if (rank != 0)
    assert_done (gtorch_process_group_send (group, tensor, 0, 9, &error));
  for (i = 1; rank == 0 && i < size; i++)
    {
      g_autoptr (GTorchWork) work = gtorch_process_group_recv_any (group, tensor, 9, &error);
      gint source;

      g_assert_no_error (error);
      g_assert_true (gtorch_work_wait (work, -1, NULL, &error));
      source = gtorch_work_get_source_rank (work);
      g_assert_cmpint (source, >, 0);
      g_assert_cmpfloat (gtorch_tensor_item_double (gtorch_tensor_select (tensor, 0, 2, NULL),
                                                    NULL),
                         ==, source + 2);
      seen |= 1u << source;
    }
  g_assert_cmpuint (seen, ==, rank == 0 ? (1u << size) - 2 : 0);
  g_assert_null (gtorch_process_group_recv_any (group, tensor, -1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
assert_message_is_refused (GTorchProcessGroup *self, gint64 n, const gchar *text)
{
  g_autoptr (GTorchTensor) tensor = numbers (n, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;

  if (rank == 1)
    assert_done (gtorch_process_group_send (self, tensor, 0, 0, &error));
  if (rank != 0)
    return;
  work = gtorch_process_group_recv (self, tensor, 1, 0, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "recv: rank 0"));
  g_assert_nonnull (strstr (error->message, text));
}

/* One that is too short, and one that is too long. */
static void
messages_of_another_size_are_errors (void)
{
  gint i;

  for (i = 0; size > 1 && i < 2; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchProcessGroup) other =
          gtorch_process_group_new ("mpi", NULL, -1, -1, 60, NULL, &error);

      g_assert_no_error (error);
      assert_message_is_refused (other, i == rank ? 5 : 3,
                                 i == 0 ? "got 12 bytes from rank 1" : "got 20 bytes from rank 1");
      assert_done (gtorch_process_group_barrier (group, &error));
    }
}

#define OTHER "group, rank 0 all_reduce of float32 [3] on cpu with sum"

static void
calls_are_compared (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (3, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchTensor) longer = numbers (4, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchProcessGroup) other = NULL, part = NULL;
  g_autofree gint64 *ranks = g_new0 (gint64, size);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  g_assert_true (gtorch_distributed_set_debug_level (GTORCH_DEBUG_LEVEL_DETAIL, &error));
  other = gtorch_process_group_new ("mpi", NULL, -1, -1, 60, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (gtorch_process_group_get_store (other));
  g_assert_true (gtorch_distributed_set_debug_level (GTORCH_DEBUG_LEVEL_OFF, &error));
  assert_done (gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_MAX, &error));
  work = rank == 1 ? gtorch_process_group_broadcast (other, tensor, 0, &error)
                   : gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, &error);
  if (size > 1)
    {
      g_assert_null (work);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      g_assert_nonnull (
          strstr (error->message, "rank 1 calls broadcast of float32 [3] on cpu from rank 0"));
      g_assert_nonnull (strstr (error->message, OTHER));
      g_clear_error (&error);
    }
  for (i = 0; i < size; i++)
    ranks[i] = size - 1 - i;
  part = gtorch_process_group_new_part (other, ranks, size, 60, &error);
  g_assert_no_error (error);
  assert_done (gtorch_process_group_broadcast (part, tensor, 0, &error));
  g_clear_object (&work);
  work = gtorch_process_group_all_reduce (part, rank == 1 ? longer : tensor, GTORCH_REDUCE_OP_SUM,
                                          &error);
  if (size > 1)
    {
      g_assert_null (work);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      g_assert_nonnull (strstr (error->message, "[4]"));
      g_clear_error (&error);
    }
  g_assert_true (gtorch_process_group_monitored_barrier (other, 60, NULL, &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_process_group_monitored_barrier (group, 60, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_false (gtorch_process_group_monitored_barrier (other, 0, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
}

/* A call that another rank does not come to fails the group, which the program keeps. */
static void
a_call_that_is_compared_may_be_alone (void)
{
  g_autoptr (GTorchTensor) tensor = numbers (3, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchProcessGroup) other = NULL;
  g_autoptr (GError) error = NULL;

  if (size == 1)
    return;
  g_assert_true (gtorch_distributed_set_debug_level (GTORCH_DEBUG_LEVEL_DETAIL, &error));
  other = gtorch_process_group_new ("mpi", NULL, -1, -1, 0.5, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_distributed_set_debug_level (GTORCH_DEBUG_LEVEL_OFF, &error));
  if (rank != 1)
    {
      g_assert_null (gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
      g_clear_error (&error);
      while (g_main_context_iteration (NULL, FALSE))
        ;
      g_assert_null (gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, &error));
      g_assert_nonnull (strstr (error->message, "the group has failed"));
      g_clear_error (&error);
      g_assert_finalize_object (g_steal_pointer (&other));
    }
  assert_done (gtorch_process_group_barrier (group, &error));
}

/* Ranks drop their groups at different times, and make others. */
static void
groups_come_and_go (void)
{
  gint i;

  for (i = 0; i < 20; i++)
    {
      g_autoptr (GTorchTensor) tensor = numbers (3, GTORCH_DTYPE_FLOAT32, rank);
      g_autoptr (GError) error = NULL;
      GTorchProcessGroup *other = gtorch_process_group_new ("mpi", NULL, -1, -1, 60, NULL, &error);

      g_assert_no_error (error);
      if (rank == i % size)
        g_usleep (1000);
      assert_done (gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, &error));
      g_assert_finalize_object (other);
    }
}

static gdouble
expect_two_gathered (gint64 i)
{
  return i / 2 + i % 2 + 10;
}

static void
several_tensors_go_together (void)
{
  g_autoptr (GTorchTensor) a = numbers (9, GTORCH_DTYPE_FLOAT32, rank),
                           b = numbers (4, GTORCH_DTYPE_FLOAT64, rank);
  g_autoptr (GTorchTensor) two = numbers (2, GTORCH_DTYPE_FLOAT32, rank + 10),
                           gathered = numbers (2 * size, GTORCH_DTYPE_FLOAT32, -1),
                           input = numbers (3 * size, GTORCH_DTYPE_FLOAT32, rank),
                           output = numbers (3, GTORCH_DTYPE_FLOAT32, -1);
  g_autoptr (GTorchTensor) strided = NULL, matrix = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a_sent = NULL, b_sent = NULL;
  GTorchTensor *both[] = { a, b }, *bad[2], *sent[2];

  assert_done (
      gtorch_process_group_all_reduce_coalesced (group, both, 2, GTORCH_REDUCE_OP_SUM, &error));
  assert_values (a, 9, expect_plain_sum);
  assert_values (b, 4, expect_plain_sum);
  a_sent = numbers (9, GTORCH_DTYPE_FLOAT32, rank);
  b_sent = numbers (4, GTORCH_DTYPE_INT8, rank);
  sent[0] = a_sent;
  sent[1] = b_sent;
  assert_done (gtorch_process_group_broadcast_coalesced (group, sent, 2, size - 1, &error));
  assert_values (a_sent, 9, expect_last);
  assert_values (b_sent, 4, expect_last);
  g_assert_null (gtorch_process_group_broadcast_coalesced (group, sent, 2, size, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);
  assert_done (gtorch_process_group_all_gather_coalesced (group, &gathered, 1, &two, 1, &error));
  assert_values (gathered, 2 * size, expect_two_gathered);
  assert_done (gtorch_process_group_reduce_scatter_coalesced (group, &output, 1, &input, 1,
                                                              GTORCH_REDUCE_OP_SUM, &error));
  assert_values (output, 3, expect_scattered_sum);
  /* nothing begins if one cannot: no rank waits for the first */
  matrix = gtorch_tensor_reshape (b, GTORCH_SHAPE (2, 2), NULL);
  strided = gtorch_tensor_transpose (matrix, 0, 1, NULL);
  bad[0] = a;
  bad[1] = strided;
  g_assert_null (
      gtorch_process_group_all_reduce_coalesced (group, bad, 2, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (
      gtorch_process_group_all_reduce_coalesced (group, NULL, 0, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_all_gather_coalesced (group, both, 2, &two, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  assert_done (gtorch_process_group_barrier (group, &error));
}

/* Takes the value. */
static GVariant *
own_value (void)
{
  return g_variant_new_take_string (g_strnfill (rank, 'x'));
}

/* A list with the values of all. */
static gchar *
text_of_all (void)
{
  GString *text = g_string_new ("[");
  gint i;

  for (i = 0; i < size; i++)
    {
      g_autofree gchar *xs = g_strnfill (i, 'x');

      g_string_append_printf (text, "%s<'%s'>", i > 0 ? ", " : "", xs);
    }
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

/* --- profiles --- */

static GTorchProfileRow *
find_row (GTorchProfileList *rows, const gchar *key)
{
  guint i;

  for (i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (rows)); i++)
    {
      g_autoptr (GTorchProfileRow) row = g_list_model_get_item (G_LIST_MODEL (rows), i);

      if (g_str_equal (gtorch_profile_row_get_key (row), key))
        return g_steal_pointer (&row);
    }
  return NULL;
}

static void
assert_row (GTorchProfileList *rows, const gchar *key, GTorchProfileKind kind, guint64 count,
            const gchar *shapes)
{
  g_autoptr (GTorchProfileRow) row = find_row (rows, key);

  g_assert_nonnull (row);
  g_assert_cmpint (gtorch_profile_row_get_kind (row), ==, kind);
  g_assert_cmpuint (gtorch_profile_row_get_count (row), ==, count);
  g_assert_cmpstr (gtorch_profile_row_get_input_shapes (row), ==, shapes);
  g_assert_cmpfloat (gtorch_profile_row_get_cpu_time_total (row), >, 0);
  g_assert_true (gtorch_profile_row_get_is_asynchronous (row)
                 == (kind == GTORCH_PROFILE_KIND_TRANSFER));
  if (kind == GTORCH_PROFILE_KIND_TRANSFER) /* beside what the program does */
    g_assert_cmpfloat (gtorch_profile_row_get_self_cpu_time_total (row), ==, 0);
}

static void
operations_are_in_profiles (void)
{
  g_autoptr (GTorchProfiler) profiler =
      g_object_new (GTORCH_TYPE_PROFILER, "record-shapes", TRUE, NULL);
  g_autoptr (GTorchTensor) x = numbers (6, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchTensor) y = numbers (3, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchTensor) all = numbers (3 * size, GTORCH_DTYPE_FLOAT32, 0);
  GTorchTensor *both[] = { x, y };
  g_autoptr (GTorchProfileList) rows = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_profiler_start (profiler, &error);
  g_assert_no_error (error);
  assert_done (gtorch_process_group_all_reduce (group, x, GTORCH_REDUCE_OP_SUM, &error));
  assert_done (gtorch_process_group_all_gather_into_tensor (group, all, y, &error));
  assert_done (
      gtorch_process_group_all_reduce_coalesced (group, both, 2, GTORCH_REDUCE_OP_SUM, &error));
  gtorch_profiler_stop (profiler, &error);
  g_assert_no_error (error);
  rows = gtorch_profiler_key_averages (profiler, TRUE, 0, &error);
  assert_row (rows, "c10d::allreduce_", GTORCH_PROFILE_KIND_OPERATION, 1, "[[6]]");
  assert_row (rows, "mpi:all_reduce", GTORCH_PROFILE_KIND_TRANSFER, 2, "[[6]]");
  {
    g_autofree gchar *shapes = g_strdup_printf ("[[%d], [3]]", 3 * size);

    assert_row (rows, "c10d::_allgather_base_", GTORCH_PROFILE_KIND_OPERATION, 1, shapes);
  }
  assert_row (rows, "mpi:all_gather", GTORCH_PROFILE_KIND_TRANSFER, 1, "[[3]]");
  assert_row (rows, "c10d::allreduce_coalesced_", GTORCH_PROFILE_KIND_OPERATION, 1, "[[6], [3]]");
}

static void
values_are_exchanged (void)
{
  g_autofree gchar *all = text_of_all (), *mine = g_strdup_printf ("%d", rank * 3);
  g_auto (GVariantBuilder) builder = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("av"));
  g_autoptr (GError) error = NULL;
  gint i;

  for (i = 0; i < size; i++)
    g_variant_builder_add (&builder, "v", g_variant_new_int32 (3 * i));
  assert_variant (gtorch_process_group_broadcast_variant (group,
                                                          rank == size - 1 ? g_variant_new_parsed (
                                                              "{'a': <(1, 'b')>}")
                                                                           : NULL,
                                                          size - 1, &error),
                  "{'a': <(1, 'b')>}");
  assert_variant (gtorch_process_group_all_gather_variant (group, own_value (), &error), all);
  assert_variant (gtorch_process_group_gather_variant (group, own_value (), 0, &error),
                  rank == 0 ? all : "[]");
  assert_variant (gtorch_process_group_scatter_variant (group,
                                                        rank == 0 ? g_variant_builder_end (&builder)
                                                                  : NULL,
                                                        0, &error),
                  mine);
  if (size > 1 && rank == 0)
    g_assert_true (
        gtorch_process_group_send_variant (group, g_variant_new_string ("hello"), 1, 2, &error));
  else if (rank == 1)
    assert_variant (gtorch_process_group_recv_variant (group, 0, 2, &error), "'hello'");
  g_assert_no_error (error);
  g_assert_null (gtorch_process_group_broadcast_variant (group, NULL, size, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);
  /* the others are told */
  g_assert_null (gtorch_process_group_broadcast_variant (group, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR,
                  (gint) (rank == 0 ? GTORCH_ERROR_INVALID : GTORCH_ERROR_FAILED));
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_scatter_variant (group, own_value (), 0, &error));
  g_assert_error (error, GTORCH_ERROR,
                  (gint) (rank == 0 ? GTORCH_ERROR_INVALID : GTORCH_ERROR_FAILED));
  g_clear_error (&error);
  g_assert_null (gtorch_process_group_gather_variant (group, own_value (), -1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
}

static void
bad_arguments_are_refused (void)
{
  g_autoptr (GTorchTensor) a = numbers (6, GTORCH_DTYPE_FLOAT32, 0),
                           b = numbers (6, GTORCH_DTYPE_FLOAT64, 0);
  g_autoptr (GTorchTensor) odd = numbers (7 * size + (size > 1), GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (a, GTORCH_SHAPE (2, 3), NULL);
  g_autoptr (GTorchTensor) strided = gtorch_tensor_transpose (matrix, 0, 1, NULL);
  g_autoptr (GTorchTensor) released = numbers (6, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchTensor) many = numbers (6 * size, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GError) twice = NULL;
  const gint64 splits[] = { 1, -1 };

#define REFUSED(call, code)                              \
  G_STMT_START                                           \
  {                                                      \
    g_autoptr (GError) error = NULL;                     \
                                                         \
    g_assert_null (call);                                \
    g_assert_error (error, GTORCH_ERROR, (gint) (code)); \
  }                                                      \
  G_STMT_END

  gtorch_tensor_release (released);
  REFUSED (gtorch_process_group_broadcast (group, a, size, &error), GTORCH_ERROR_INDEX);
  g_assert_true (gtorch_process_group_begin_batch (group, NULL));
  g_assert_false (gtorch_process_group_begin_batch (group, &twice));
  g_assert_error (twice, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (gtorch_process_group_end_batch (group, NULL));
  REFUSED (gtorch_process_group_broadcast (group, a, -1, &error), GTORCH_ERROR_INDEX);
  REFUSED (gtorch_process_group_all_reduce (group, strided, GTORCH_REDUCE_OP_SUM, &error),
           GTORCH_ERROR_INVALID);
  REFUSED (gtorch_process_group_all_reduce (group, released, GTORCH_REDUCE_OP_SUM, &error),
           GTORCH_ERROR_RELEASED);
  REFUSED (gtorch_process_group_all_gather_into_tensor (group, many, b, &error),
           GTORCH_ERROR_DTYPE);
  REFUSED (gtorch_process_group_all_gather_into_tensor (group, odd, a, &error), GTORCH_ERROR_SHAPE);
  REFUSED (gtorch_process_group_all_gather (group, &a, size > 1, many, &error),
           GTORCH_ERROR_INVALID);
  REFUSED (gtorch_process_group_all_gather_into_tensor (group, a, a, &error),
           size > 1 ? GTORCH_ERROR_SHAPE : GTORCH_ERROR_INVALID);
  REFUSED (gtorch_process_group_send (group, a, size + 3, 0, &error), GTORCH_ERROR_INDEX);
  REFUSED (gtorch_process_group_recv (group, a, 0, -1, &error), GTORCH_ERROR_INVALID);
  REFUSED (gtorch_process_group_all_to_all_single (group, many, odd, splits, 2, NULL, 0, &error),
           GTORCH_ERROR_SHAPE);
  REFUSED (gtorch_process_group_new_part (group, &(const gint64){ size }, 1, -1, &error),
           GTORCH_ERROR_INDEX);
  REFUSED (gtorch_process_group_new_part (group, NULL, 0, -1, &error), GTORCH_ERROR_INVALID);
  REFUSED (gtorch_process_group_new ("gloo", NULL, -1, -1, 10, NULL, &error),
           GTORCH_ERROR_NOT_SUPPORTED);
  REFUSED (gtorch_process_group_new ("mpi", NULL, rank + 1, size, 10, NULL, &error),
           GTORCH_ERROR_INVALID);
  REFUSED (gtorch_process_group_new ("mpi", NULL, -1, -1, 0, NULL, &error), GTORCH_ERROR_INVALID);
}

static gdouble
expect_size_of_part (gint64 i)
{
  return (size + 1) / 2;
}

static void
some_ranks_are_a_group (void)
{
  g_autofree gint64 *even = g_new (gint64, size);
  g_autoptr (GTorchProcessGroup) part = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (1, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GError) error = NULL;
  g_autofree gint64 *ranks = NULL;
  gsize n_ranks;
  gint n = 0, i;

  for (i = 0; i < size; i += 2)
    even[n++] = i;
  part = gtorch_process_group_new_part (group, even, n, -1, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_process_group_get_size (part), ==, n);
  ranks = gtorch_process_group_get_ranks (part, &n_ranks);
  g_assert_cmpmem (ranks, n_ranks * sizeof *ranks, even, n * sizeof *even);
  if (rank % 2 == 0)
    {
      g_assert_cmpint (gtorch_process_group_get_rank (part), ==, rank / 2);
      assert_done (gtorch_process_group_all_reduce (part, tensor, GTORCH_REDUCE_OP_SUM, &error));
      assert_values (tensor, 1, expect_size_of_part);
    }
  else
    {
      g_assert_cmpint (gtorch_process_group_get_rank (part), ==, -1);
      g_assert_null (gtorch_process_group_all_reduce (part, tensor, GTORCH_REDUCE_OP_SUM, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
    }
}

static void
a_main_loop_waits_for_work (void)
{
  g_autoptr (GTorchWork) work = gtorch_process_group_barrier (group, NULL);
  g_autoptr (GAsyncResult) result = NULL, late = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_work_wait_async (work, NULL, on_result, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (gtorch_work_wait_finish (work, result, &error));
  gtorch_work_wait_async (work, NULL, on_result, &late);
  while (late == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (gtorch_work_wait_finish (work, late, &error));
  g_assert_no_error (error);
}

static void
on_failed (GTorchProcessGroup *self, GError *error, gpointer data)
{
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  ++*(gint *) data;
}

/* Last but one: rank 0 does not come to the barrier of the others. The group fails, other ones do not. */
static void
a_rank_that_does_not_come_is_an_error (void)
{
  g_autoptr (GTorchProcessGroup) other = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (4, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;
  gint n_failed = 0;

  other = gtorch_process_group_new ("mpi", NULL, -1, -1, 60, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_process_group_set_timeout (other, 0.3, &error));
  if (size == 1)
    return;
  if (rank != 0)
    {
      g_signal_connect (other, "failed", G_CALLBACK (on_failed), &n_failed);
      work = gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, &error);
      g_assert_no_error (error);
      g_assert_false (gtorch_work_wait (work, 0.01, NULL, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
      g_clear_error (&error);
      gtorch_work_wait_async (work, cancellable, on_result, &result);
      g_cancellable_cancel (cancellable);
      while (result == NULL)
        g_main_context_iteration (NULL, TRUE);
      g_assert_false (gtorch_work_wait_finish (work, result, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_clear_error (&error);
      g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
      g_assert_nonnull (strstr (error->message, "one has not begun it"));
      g_assert_true (gtorch_work_is_completed (work) && !gtorch_work_is_success (work));
      g_clear_error (&error);
      while (n_failed == 0)
        g_main_context_iteration (NULL, TRUE);
      g_assert_null (gtorch_process_group_barrier (other, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
      g_clear_error (&error);
      /* what was not computed cannot be read */
      g_assert_cmpfloat (gtorch_tensor_item_double (gtorch_tensor_select (tensor, 0, 0, NULL),
                                                    &error),
                         !=, 0.5);
      g_clear_error (&error);
    }
  /* rank 0 comes when the others have given up */
  assert_done (gtorch_process_group_barrier (group, &error));
}

/* With a store, ranks that are late are named. The store has keys of a former run the second time. */
static void
name_late_ranks (const gchar *folder)
{
  g_autofree gchar *path = g_build_filename (folder, "store", NULL);
  g_autoptr (GTorchFileStore) store = gtorch_file_store_new (path, NULL);
  g_autoptr (GTorchProcessGroup) named = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (4, GTORCH_DTYPE_FLOAT32, rank);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  find_group ();
  named = gtorch_process_group_new ("mpi", GTORCH_STORE (store), -1, -1, 60, NULL, &error);
  g_assert_no_error (error);
  for (i = 0; i < 2; i++)
    assert_done (gtorch_process_group_all_reduce (named, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_true (gtorch_process_group_set_timeout (named, 1, &error));
  if (rank != 2)
    {
      work = gtorch_process_group_all_reduce (named, tensor, GTORCH_REDUCE_OP_SUM, &error);
      g_assert_no_error (error);
      g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
      g_assert_nonnull (strstr (error->message, "waited 1 seconds for the other ranks in operation "
                                                "3 of the group: rank 2 has begun 2 operations "
                                                "only, the last was “all_reduce”"));
      g_clear_error (&error);
    }
  assert_done (gtorch_process_group_barrier (group, &error));
  g_assert_finalize_object (group);
}

static void
late_ranks_are_named (gconstpointer program)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-late-XXXXXX", &error);
  g_autofree gchar *path = NULL;
  gint i;

  g_assert_no_error (error);
  path = g_build_filename (folder, "store", NULL);
  for (i = 0; i < 2; i++)
    expect_ranks (program, "--late", folder);
  g_remove (path);
  g_rmdir (folder);
}

static void
run_cases (void)
{
  every_dtype_is_reduced ();
  other_reductions_are_right ();
  one_rank_sends_or_gets ();
  tensors_are_gathered_and_scattered ();
  parts_are_reduced_and_exchanged ();
  results_wait_for_their_work ();
  ranks_send_and_receive ();
  any_rank_may_send ();
  messages_of_another_size_are_errors ();
  calls_are_compared ();
  a_call_that_is_compared_may_be_alone ();
  groups_come_and_go ();
  several_tensors_go_together ();
  operations_are_in_profiles ();
  values_are_exchanged ();
  bad_arguments_are_refused ();
  some_ranks_are_a_group ();
  a_main_loop_waits_for_work ();
  a_rank_that_does_not_come_is_an_error ();
}

static void
a_single_process_is_a_group (void)
{
  if (!CAN_CALL_MPI)
    {
      g_test_skip ("the module for MPI is not installed, or a sanitizer is at work");
      return;
    }
  find_group ();
  g_assert_cmpint (size, ==, 1);
  run_cases ();
  g_assert_finalize_object (group);
}

static void
backends_tell_why_they_cannot_be_used (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_process_group_is_available ("gloo", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
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
  if (argc > 2 && strcmp (argv[1], "--late") == 0)
    {
      name_late_ranks (argv[2]);
      return 0;
    }
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/GTorch/process-group/late_ranks_are_named", argv[0],
                        late_ranks_are_named);
  g_test_add_func ("/GTorch/process-group/backends_tell_why_they_cannot_be_used",
                   backends_tell_why_they_cannot_be_used);
  g_test_add_data_func ("/GTorch/process-group/ranks_agree", argv[0], ranks_agree);
  g_test_add_func ("/GTorch/process-group/a_single_process_is_a_group",
                   a_single_process_is_a_group);
  return g_test_run ();
}
