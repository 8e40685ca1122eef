/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How ranks compare what they are about to do. The ranks are threads that share a store; no engine is
 * there. */

#include "config.h"

#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-agreement-private.h"
#include "distributed/gtorch-debug-level.h"
#include "distributed/gtorch-hash-store.h"

#define SIZE 3

typedef struct
{
  GTorchStore *store;
  gint rank;
  void (*run) (GTorchAgreement *agreement, gint rank);
} Rank;

static gpointer
run_rank (gpointer data)
{
  const Rank *self = data;
  g_autoptr (GError) error = NULL;
  GTorchAgreement *agreement = gtorch_agreement_new (self->store, self->rank, SIZE, NULL, &error);

  g_assert_no_error (error);
  self->run (agreement, self->rank);
  gtorch_agreement_free (agreement);
  return NULL;
}

static gint64
run_ranks (void (*run) (GTorchAgreement *agreement, gint rank))
{
  g_autoptr (GTorchStore) store = GTORCH_STORE (gtorch_hash_store_new ());
  GThread *threads[SIZE];
  Rank ranks[SIZE];
  gint64 n_keys;
  gint i;

  for (i = 0; i < SIZE; i++)
    {
      ranks[i] = (Rank){ store, i, run };
      threads[i] = g_thread_new ("rank", run_rank, &ranks[i]);
    }
  for (i = 0; i < SIZE; i++)
    g_thread_join (threads[i]);
  g_assert_true (gtorch_store_count_keys (store, &n_keys, NULL, NULL));
  return n_keys;
}

static GTorchCollective *
make_call (GTorchCollectiveKind kind, const gchar *name, gint64 n, GTorchDType dtype)
{
  GTorchCollective *call = gtorch_collective_new (kind, name);
  GTorchImpl *impl = gtorch_impl_new (gtorch_device_cpu (), dtype, &n, 1, NULL);

  call->dtype = dtype;
  g_ptr_array_add (kind == GTORCH_COLLECTIVE_SEND ? call->inputs : call->outputs, impl);
  return call;
}

#define ALL_REDUCE GTORCH_COLLECTIVE_ALL_REDUCE, "all_reduce"
#define BROADCAST  GTORCH_COLLECTIVE_BROADCAST, "broadcast"

/* Every rank gets the message, or none. */
static void
check (GTorchAgreement *agreement, GTorchCollective *call, guint64 sequence, const gchar *message)
{
  g_autoptr (GTorchCollective) owned = call;
  g_autoptr (GError) error = NULL;
  gboolean is_lost = TRUE;
  const gboolean result = gtorch_agreement_check (agreement, call, sequence, 30, &is_lost, &error);

  if (message == NULL)
    {
      g_assert_no_error (error);
      g_assert_true (result);
      return;
    }
  g_assert_false (result);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, message);
  g_assert_false (is_lost);
}

static void
agree (GTorchAgreement *agreement, gint rank)
{
  guint64 i;

  for (i = 1; i <= 50; i++)
    check (agreement, make_call (ALL_REDUCE, 3, GTORCH_DTYPE_FLOAT32), i, NULL);
}

static void
equal_calls_go_on_and_leave_no_keys (void)
{
  /* a counter for each rank, and the keys of the last meeting */
  g_assert_cmpint (run_ranks (agree), ==, SIZE + 3);
}

static void
differ (GTorchAgreement *agreement, gint rank)
{
  GTorchCollective *call;

  check (agreement,
         rank == 1 ? make_call (BROADCAST, 3, GTORCH_DTYPE_FLOAT32)
                   : make_call (ALL_REDUCE, 3, GTORCH_DTYPE_FLOAT32),
         7,
         rank == 1 ? "broadcast: the ranks differ: rank 1 calls broadcast of float32 [3] on cpu "
                     "from rank 0 as "
                     "call 7 of the group, rank 0 all_reduce of float32 [3] on cpu with sum"
                   : "all_reduce: the ranks differ: rank 1 calls broadcast of float32 [3] on cpu "
                     "from rank 0 as "
                     "call 7 of the group, rank 0 all_reduce of float32 [3] on cpu with sum");
  check (agreement, make_call (ALL_REDUCE, rank == 2 ? 4 : 3, GTORCH_DTYPE_FLOAT32), 8,
         "all_reduce: the ranks differ: rank 2 calls all_reduce of float32 [4] on cpu with sum as "
         "call 8 of the "
         "group, rank 0 all_reduce of float32 [3] on cpu with sum");
  check (agreement,
         make_call (ALL_REDUCE, 3, rank == 2 ? GTORCH_DTYPE_INT32 : GTORCH_DTYPE_FLOAT32), 9,
         "all_reduce: the ranks differ: rank 2 calls all_reduce of int32 [3] on cpu with sum as "
         "call 9 of the "
         "group, rank 0 all_reduce of float32 [3] on cpu with sum");
  call = make_call (ALL_REDUCE, 3, GTORCH_DTYPE_FLOAT32);
  call->op = rank == 1 ? GTORCH_REDUCE_OP_MAX : GTORCH_REDUCE_OP_SUM;
  check (agreement, call, 10,
         "all_reduce: the ranks differ: rank 1 calls all_reduce of float32 [3] on cpu with max as "
         "call 10 of the "
         "group, rank 0 all_reduce of float32 [3] on cpu with sum");
  call = make_call (BROADCAST, 3, GTORCH_DTYPE_FLOAT32);
  call->root = rank == 1;
  check (agreement, call, 11,
         "broadcast: the ranks differ: rank 1 calls broadcast of float32 [3] on cpu from rank 1 as "
         "call 11 of the "
         "group, rank 0 broadcast of float32 [3] on cpu from rank 0");
  /* the ranks still agree on what comes next */
  check (agreement, make_call (ALL_REDUCE, 3, GTORCH_DTYPE_FLOAT32), 12, NULL);
}

static void
calls_that_differ_are_named_on_every_rank (void)
{
  run_ranks (differ);
}

static void
exchange (GTorchAgreement *agreement, gint rank)
{
  GTorchCollective *call =
      make_call (GTORCH_COLLECTIVE_ALL_TO_ALL, "all_to_all", 3, GTORCH_DTYPE_FLOAT32);

  call->in_counts = g_new0 (gint64, SIZE);
  call->out_counts = g_new0 (gint64, SIZE);
  call->in_counts[0] = rank;
  if (rank == 0)
    call->out_counts[1] = 1, call->out_counts[2] = 3;
  check (agreement, call, 1,
         "all_to_all: in call 1 of the group rank 2 sends 2 elements to rank 0, which expects 3");
}

static void
parts_that_do_not_fit_are_named (void)
{
  run_ranks (exchange);
}

/* Rank 2 comes when the others have given up: it gets the same error, and begins nothing. */
static void
come_late (GTorchAgreement *agreement, gint rank)
{
  static gint n_failed;
  g_autoptr (GTorchCollective) call = make_call (ALL_REDUCE, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GError) error = NULL;
  gboolean is_lost = FALSE;

  if (rank == 2)
    while (g_atomic_int_get (&n_failed) < SIZE - 1)
      g_usleep (1000);
  g_assert_false (gtorch_agreement_check (agreement, call, 4, 0.05, &is_lost, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_cmpstr (error->message, ==,
                   "all_reduce: rank 2 has not come to call 4 of the group after 0.05 seconds");
  g_assert_true (is_lost);
  g_atomic_int_inc (&n_failed);
}

static void
a_rank_that_does_not_come_is_named (void)
{
  run_ranks (come_late);
}

static void
stay_away (GTorchAgreement *agreement, gint rank)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_agreement_meet (agreement, "monitored_barrier", 30, NULL, &error));
  g_assert_no_error (error);
  if (rank != 0)
    return;
  g_assert_false (gtorch_agreement_meet (agreement, "monitored_barrier", 0.02, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_cmpstr (error->message, ==,
                   "monitored_barrier: ranks 1, 2 have not come to monitored_barrier of the group "
                   "after 0.02 seconds");
}

static void
several_missing_ranks_are_named (void)
{
  run_ranks (stay_away);
}

/* Whoever comes first goes on. */
static void
send (GTorchAgreement *agreement, gint rank)
{
  g_autoptr (GTorchCollective) same = NULL, other = NULL;
  g_autoptr (GError) error = NULL;
  gboolean is_lost;

  if (rank == 2)
    return;
  same = make_call (rank == 0 ? GTORCH_COLLECTIVE_SEND : GTORCH_COLLECTIVE_RECEIVE,
                    rank == 0 ? "send" : "recv", 3, GTORCH_DTYPE_FLOAT32);
  other = make_call (rank == 0 ? GTORCH_COLLECTIVE_SEND : GTORCH_COLLECTIVE_RECEIVE,
                     rank == 0 ? "send" : "recv", 3 + rank, GTORCH_DTYPE_FLOAT32);
  same->root = other->root = 1 - rank;
  g_assert_true (gtorch_agreement_check (agreement, same, 1, 30, &is_lost, &error));
  if (!gtorch_agreement_check (agreement, other, 2, 30, &is_lost, &error))
    {
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      g_assert_true (is_lost);
      g_assert_true (
          g_str_has_suffix (error->message,
                            ": rank 0 sends 3 elements of float32 to rank 1 with the tag 0, which "
                            "receives 4 elements of float32"));
    }
  g_clear_error (&error);
  g_assert_true (gtorch_agreement_check (agreement, same, 3, 30, &is_lost, &error));
  g_assert_no_error (error);
}

static void
messages_are_compared_by_who_comes_last (void)
{
  /* the keys of messages are gone */
  g_assert_cmpint (run_ranks (send), ==, SIZE);
}

static void
levels_are_set (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gtorch_distributed_get_debug_level (), ==, GTORCH_DEBUG_LEVEL_INFO);
  g_assert_true (gtorch_distributed_set_debug_level (GTORCH_DEBUG_LEVEL_DETAIL, &error));
  g_assert_cmpint (gtorch_distributed_get_debug_level (), ==, GTORCH_DEBUG_LEVEL_DETAIL);
  g_assert_false (gtorch_distributed_set_debug_level ((GTorchDebugLevel) 7, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpint (gtorch_distributed_get_debug_level (), ==, GTORCH_DEBUG_LEVEL_DETAIL);
}

#define ADD(name) g_test_add_func ("/GTorch/agreement/" #name, name)

int
main (int argc, char **argv)
{
  g_unsetenv ("GTORCH_DISTRIBUTED_DEBUG");
  g_setenv ("TORCH_DISTRIBUTED_DEBUG", "INFO", TRUE);
  g_test_init (&argc, &argv, NULL);
  ADD (levels_are_set);
  ADD (equal_calls_go_on_and_leave_no_keys);
  ADD (calls_that_differ_are_named_on_every_rank);
  ADD (parts_that_do_not_fit_are_named);
  ADD (a_rank_that_does_not_come_is_named);
  ADD (several_missing_ranks_are_named);
  ADD (messages_are_compared_by_who_comes_last);
  return g_test_run ();
}
