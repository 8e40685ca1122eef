/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Ranks that call different things, or send what others do not expect: all of them get an error, and no
 * memory is written that is not theirs. The program starts itself by mpirun, with several ranks. */

#include "config.h"

#include <string.h>

#include "ranks.h"

#define SMALL 10
#define LARGE 100000

static GTorchTensor *
ones (gint64 n)
{
  return gtorch_ones (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static GTorchProcessGroup *
new_group (gdouble timeout)
{
  g_autoptr (GError) error = NULL;
  GTorchProcessGroup *other = gtorch_process_group_new ("mpi", NULL, -1, -1, timeout, NULL, &error);

  g_assert_no_error (error);
  return other;
}

typedef GTorchWork *(*Call) (GTorchProcessGroup *other, gboolean is_odd, GError **error);

static GTorchWork *
reduce_sizes (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor = ones (is_odd ? LARGE : SMALL);

  return gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, error);
}

static GTorchWork *
broadcast_longer (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor = ones (is_odd ? SMALL : LARGE);

  return gtorch_process_group_broadcast (other, tensor, 0, error);
}

static GTorchWork *
broadcast_shorter (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor = ones (is_odd ? LARGE : SMALL);

  return gtorch_process_group_broadcast (other, tensor, 0, error);
}

static GTorchWork *
gather_sizes (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  const gint64 n = is_odd ? LARGE : SMALL;
  g_autoptr (GTorchTensor) tensor = ones (n), all = ones (n * size);

  return gtorch_process_group_all_gather_into_tensor (other, all, tensor, error);
}

static GTorchWork *
scatter_sums (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  const gint64 n = is_odd ? LARGE : SMALL;
  g_autoptr (GTorchTensor) tensor = ones (n), all = ones (n * size);

  return gtorch_process_group_reduce_scatter_tensor (other, tensor, all, GTORCH_REDUCE_OP_SUM,
                                                     error);
}

static GTorchWork *
exchange_sizes (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  const gint64 n = is_odd ? LARGE : SMALL;
  g_autoptr (GTorchTensor) in = ones (n * size), out = ones (n * size);

  return gtorch_process_group_all_to_all_single (other, out, in, NULL, 0, NULL, 0, error);
}

static GTorchWork *
other_dtype (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor =
      numbers (SMALL, is_odd ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32, 0);

  return gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, error);
}

static GTorchWork *
other_reduction (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor = ones (SMALL);

  return gtorch_process_group_all_reduce (other, tensor,
                                          is_odd ? GTORCH_REDUCE_OP_MAX : GTORCH_REDUCE_OP_SUM,
                                          error);
}

static GTorchWork *
other_root (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor = ones (SMALL);

  return gtorch_process_group_broadcast (other, tensor, is_odd, error);
}

static GTorchWork *
other_function (GTorchProcessGroup *other, gboolean is_odd, GError **error)
{
  g_autoptr (GTorchTensor) tensor = ones (SMALL);

  return is_odd ? gtorch_process_group_barrier (other, error)
                : gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, error);
}

/* The calls of rank 1 differ from those of the others. */
static void
calls_that_differ_are_errors (void)
{
  static const struct
  {
    Call call;
    const gchar *text;
  } cases[] = {
    { reduce_sizes, "rank 1 calls all_reduce of float32 [100000] on cpu with sum as call 2 of the "
                    "group, rank 0 all_reduce of float32 [10] on cpu with sum" },
    { broadcast_longer, "rank 1 calls broadcast of float32 [10]" },
    { broadcast_shorter, "rank 1 calls broadcast of float32 [100000]" },
    { gather_sizes, "rank 1 calls all_gather_into_tensor of float32 [100000]" },
    { scatter_sums, "rank 1 calls reduce_scatter_tensor of float32 [100000]" },
    { exchange_sizes, "rank 0 sends 10 elements to rank 1, which expects 100000" },
    { other_dtype, "rank 1 calls all_reduce of float64 [10]" },
    { other_reduction, "rank 1 calls all_reduce of float32 [10] on cpu with max" },
    { other_root, "rank 1 calls broadcast of float32 [10] on cpu from rank 1" },
    { other_function, "rank 1 calls barrier as call 2 of the group, rank 0 all_reduce of" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GTorchProcessGroup) other = new_group (60);
      g_autoptr (GTorchTensor) tensor = ones (SMALL);
      g_autoptr (GTorchWork) work = NULL;
      g_autoptr (GError) error = NULL;

      assert_done (gtorch_process_group_all_reduce (other, tensor, GTORCH_REDUCE_OP_SUM, &error));
      work = cases[i].call (other, rank == 1, &error);
      g_assert_no_error (error);
      g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      if (strstr (error->message, cases[i].text) == NULL)
        g_error ("“%s” is not in “%s”", cases[i].text, error->message);
      assert_done (gtorch_process_group_barrier (group, &error));
    }
}

/* Shapes may differ, if there are as many elements. */
static void
calls_of_as_many_elements_are_alike (void)
{
  const gint64 shape[] = { 2, 3 };
  g_autoptr (GTorchTensor) flat = numbers (6, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchTensor) tensor =
      rank == 1 ? gtorch_tensor_view (flat, shape, 2, NULL) : g_object_ref (flat);
  g_autoptr (GError) error = NULL;

  assert_done (gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_cmpfloat (gtorch_tensor_item_double (gtorch_tensor_select (flat, 0, 5, NULL), &error),
                     ==, 5 * size);
}

static void
messages_of_other_sizes_are_errors (void)
{
  static const gint64 sizes[][2] = { { 12, 10 }, { 2000, 10 }, { LARGE, 10 }, { 10, LARGE } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GTorchProcessGroup) other = new_group (60);
      g_autoptr (GTorchTensor) tensor = ones (sizes[i][rank == 1 ? 0 : 1]);
      g_autofree gchar *text =
          g_strdup_printf ("got %d bytes from rank 1 in message 1, and waited for %d",
                           (gint) sizes[i][0] * 4, (gint) sizes[i][1] * 4);
      g_autoptr (GTorchWork) work = NULL;
      g_autoptr (GError) error = NULL;

      if (rank == 1)
        assert_done (gtorch_process_group_send (other, tensor, 0, 0, &error));
      if (rank == 0)
        {
          work = gtorch_process_group_recv (other, tensor, 1, 0, &error);
          g_assert_no_error (error);
          g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
          if (strstr (error->message, text) == NULL)
            g_error ("“%s” is not in “%s”", text, error->message);
        }
      assert_done (gtorch_process_group_barrier (group, &error));
    }
}

#define N_TAGS 80 /* more than there are threads for them */

/* Those that are received first come last. */
static void
messages_of_other_tags_do_not_wait (void)
{
  g_autoptr (GTorchTensor) late = ones (LARGE), early = ones (LARGE);
  g_autoptr (GTorchWork) waiting = NULL;
  g_autoptr (GError) error = NULL;
  GTorchWork *works[N_TAGS];
  gint tag;

  if (rank == 0)
    {
      waiting = gtorch_process_group_recv (group, late, 1, 4, &error);
      assert_done (gtorch_process_group_recv (group, early, 1, 3, &error));
      assert_done (gtorch_process_group_send (group, early, 1, 5, &error));
      assert_done (g_steal_pointer (&waiting));
    }
  if (rank == 1)
    {
      assert_done (gtorch_process_group_send (group, early, 0, 3, &error));
      assert_done (gtorch_process_group_recv (group, late, 0, 5, &error));
      assert_done (gtorch_process_group_send (group, early, 0, 4, &error));
    }
  for (tag = 0; rank < 2 && tag < N_TAGS; tag++)
    {
      g_autoptr (GTorchTensor) tensor = numbers (4, GTORCH_DTYPE_FLOAT32, rank * tag);

      works[tag] = rank == 0 ? gtorch_process_group_recv (group, tensor, 1, 10 + tag, &error)
                             : gtorch_process_group_send (group, tensor, 0, 10 + tag, &error);
      g_assert_no_error (error);
    }
  for (tag = 0; rank < 2 && tag < N_TAGS; tag++)
    assert_done (works[tag]);
  /* those of one tag keep their order */
  for (tag = 0; rank < 2 && tag < 8; tag++)
    {
      g_autoptr (GTorchTensor) tensor = numbers (1, GTORCH_DTYPE_FLOAT32, rank * tag);

      if (rank == 1)
        assert_done (gtorch_process_group_send (group, tensor, 0, 9, &error));
      else
        {
          assert_done (gtorch_process_group_recv (group, tensor, 1, 9, &error));
          g_assert_cmpfloat (gtorch_tensor_item_double (tensor, &error), ==, tag);
        }
    }
  assert_done (gtorch_process_group_barrier (group, &error));
}

/* By which the ranks agree on whether the others are. */
static void
first_calls_are_compared_always (void)
{
  g_autoptr (GTorchProcessGroup) other = NULL, quiet = NULL;
  g_autoptr (GTorchTensor) tensor = numbers (SMALL, GTORCH_DTYPE_FLOAT32, 0);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  g_assert_true (gtorch_distributed_set_debug_level (GTORCH_DEBUG_LEVEL_OFF, &error));
  other = new_group (60);
  quiet = new_group (60);
  for (i = 0; i < 3; i++)
    assert_done (gtorch_process_group_all_reduce (quiet, tensor, GTORCH_REDUCE_OP_SUM, &error));
  g_assert_cmpfloat (gtorch_tensor_item_double (gtorch_tensor_select (tensor, 0, 2, NULL), &error),
                     ==, 2 * size * size * size);
  work = reduce_sizes (other, rank == 1, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_work_wait (work, -1, NULL, &error));
  g_assert_nonnull (strstr (error->message, "the ranks differ: rank 1 calls all_reduce"));
  g_clear_error (&error);
  assert_done (gtorch_process_group_barrier (group, &error));
}

int
main (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "--rank") == 0)
    {
      find_group ();
      calls_that_differ_are_errors ();
      calls_of_as_many_elements_are_alike ();
      messages_of_other_sizes_are_errors ();
      messages_of_other_tags_do_not_wait ();
      first_calls_are_compared_always ();
      g_assert_finalize_object (group);
      return 0;
    }
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/GTorch/mpi-calls/ranks_agree", argv[0], ranks_agree);
  return g_test_run ();
}
