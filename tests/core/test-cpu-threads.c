/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Loops that are divided among threads. `test-cpu-threads ROUNDS` tries that many divisions, and lets
 * several threads call for as long. */

#include "config.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtorch/cpu/gtorch-cpu-threads.h>
#include <gtorch/gtorch.h>

#define LIMIT 60 /* a limit in seconds for anything that has to happen */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static guint n_rounds = 300;
#else
static guint n_rounds = 2000;
#endif

static void
set_threads (guint n)
{
  g_autoptr (GError) error = NULL;

  gtorch_set_num_threads (n, &error);
  g_assert_no_error (error);
}

/* --- division of loops --- */

typedef struct
{
  gint64 n, grain;
  guint8 *seen; /* one for each item */
  gint n_calls; /* this and the following are accessed atomically */
  gint64 n_items;
  gint is_short;
  gint is_outside;
} Loop;

static void
see (gint64 begin, gint64 end, gpointer user_data)
{
  Loop *loop = user_data;
  gint64 i;

  g_atomic_int_inc (&loop->n_calls);
  __atomic_fetch_add (&loop->n_items, end - begin, __ATOMIC_RELAXED);
  if (begin < 0 || end > loop->n || end < begin)
    g_atomic_int_set (&loop->is_outside, TRUE);
  else if (loop->seen != NULL)
    for (i = begin; i < end; i++)
      loop->seen[i]++; /* a race, if two threads had the item */
  /* Long ranges, and the one before the last, end at whole vectors, and may be shorter for that. */
  if (end - begin < MIN (loop->grain, loop->n) - (end - begin > 800 ? 2 * 63 : 0))
    g_atomic_int_set (&loop->is_short, TRUE);
}

static void
run_loop (gint64 n, gint64 grain, gboolean look)
{
  g_autofree guint8 *seen = look ? g_malloc0 (n + 1) : NULL;
  Loop loop = { .n = n, .grain = grain, .seen = seen };
  gint64 i;

  gtorch_parallel_for (n, grain, see, &loop);
  g_assert_false (loop.is_outside);
  g_assert_cmpint (loop.n_items, ==, n);
  g_assert_cmpint (loop.n_calls, >=, 1);
  if (n < 2 * grain)
    g_assert_cmpint (loop.n_calls, ==, 1);
  g_assert_false (loop.is_short);
  for (i = 0; look && i < n; i++)
    if (seen[i] != 1)
      g_error ("%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", grain %" G_GINT64_FORMAT ": %d times",
               i, n, grain, seen[i]);
}

static gint64
some_number (GRand *rand, guint n_bits)
{
  guint64 number = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);

  return number >> (64 - g_rand_int_range (rand, 1, n_bits + 1));
}

static void
each_item_is_done_once (void)
{
  static const gint64 edges[] = {
    0, 1, 2, 3, 63, 64, 65, 127, 128, 4095, 4096, 4097, 65535, 65536
  };
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  guint threads, i, k;

  for (threads = 1; threads <= 8; threads++)
    {
      set_threads (threads);
      for (i = 0; i < G_N_ELEMENTS (edges); i++)
        for (k = 0; k < G_N_ELEMENTS (edges); k++)
          run_loop (edges[i], edges[k], TRUE);
      for (i = 0; i < n_rounds; i++)
        run_loop (some_number (rand, 14), some_number (rand, 14), TRUE);
    }
}

static void
numbers_may_be_large (void)
{
  static const gint64 sizes[] = { G_MAXINT64, G_MAXINT64 - 1, G_MAXINT64 / 2, (gint64) 1 << 62,
                                  ((gint64) 1 << 40) + 7 };
  guint i, k, threads;

  for (threads = 1; threads <= 8; threads++)
    for (i = 0; i < G_N_ELEMENTS (sizes); i++)
      {
        set_threads (threads);
        for (k = 0; k < G_N_ELEMENTS (sizes); k++)
          {
            run_loop (sizes[i], 1, FALSE);
            run_loop (sizes[i], sizes[k] / 3, FALSE);
          }
      }
  set_threads (GTORCH_MAX_THREADS);
  run_loop (5, 1, TRUE);
}

/* --- nested loops --- */

typedef struct
{
  gint n_inner, n_wrong; /* accessed atomically */
} Nest;

static void
be_inside (gint64 begin, gint64 end, gpointer user_data)
{
  *(GThread **) user_data = begin == 0 && end == 1000 ? g_thread_self () : NULL;
}

static void
nest (gint64 begin, gint64 end, gpointer user_data)
{
  Nest *self = user_data;
  GThread *thread = NULL;

  if (!gtorch_cpu_threads_is_inside ())
    g_atomic_int_inc (&self->n_wrong);
  gtorch_parallel_for (1000, 1, be_inside, &thread);
  if (thread != g_thread_self () || !gtorch_cpu_threads_is_inside ())
    g_atomic_int_inc (&self->n_wrong);
  g_atomic_int_inc (&self->n_inner);
}

static void
inner_loops_stay_in_their_thread (void)
{
  Nest self = { 0 };

  set_threads (4);
  g_assert_false (gtorch_cpu_threads_is_inside ());
  gtorch_parallel_for (64, 1, nest, &self);
  g_assert_false (gtorch_cpu_threads_is_inside ());
  g_assert_cmpint (self.n_inner, >=, 4);
  g_assert_cmpint (self.n_wrong, ==, 0);
}

/* A loop of one range does not count as a loop: a loop inside it may have helpers. */
static void
outer (gint64 begin, gint64 end, gpointer user_data)
{
  g_assert_false (gtorch_cpu_threads_is_inside ());
  run_loop (1000, 1, TRUE);
}

static void
a_loop_in_a_single_range_may_have_helpers (void)
{
  set_threads (4);
  gtorch_parallel_for (1, 1, outer, NULL);
}

/* --- participating threads --- */

typedef struct
{
  gint n_wanted, n_there, is_open; /* accessed atomically */
  gint n_expected_niceness, n_wrong;
  gint64 deadline;
} Meeting;

static gint
get_niceness (void)
{
  return getpriority (PRIO_PROCESS, syscall (SYS_gettid));
}

/* Each thread has one range and waits in it until all have arrived, or the gate is opened. */
static void
meet (gint64 begin, gint64 end, gpointer user_data)
{
  Meeting *self = user_data;

  if (get_niceness () != self->n_expected_niceness)
    g_atomic_int_inc (&self->n_wrong);
  if (g_atomic_int_add (&self->n_there, 1) + 1 == self->n_wanted)
    g_atomic_int_set (&self->is_open, TRUE);
  while (!g_atomic_int_get (&self->is_open) && g_get_monotonic_time () < self->deadline)
    g_usleep (100);
}

static void
assert_all_meet (guint n, gint niceness)
{
  Meeting self = { .n_wanted = n,
                   .n_expected_niceness = niceness,
                   .deadline = g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC };

  set_threads (n);
  gtorch_parallel_for (n, 1, meet, &self);
  g_assert_true (self.is_open);
  g_assert_cmpint (self.n_wrong, ==, 0);
}

static void
all_threads_take_part (void)
{
  guint n;

  for (n = 2; n <= 8; n++)
    assert_all_meet (n, get_niceness ());
  assert_all_meet (100, get_niceness ());
  assert_all_meet (2, get_niceness ());
}

static gpointer
be_nice (gpointer data)
{
  gint niceness = GPOINTER_TO_INT (data);

  if (setpriority (PRIO_PROCESS, syscall (SYS_gettid), niceness) == 0)
    {
      gtorch_cpu_threads_set_niceness (niceness);
      assert_all_meet (3, niceness);
    }
  return NULL;
}

static void
helpers_are_as_nice_as_their_caller (void)
{
  if (get_niceness () != 0)
    {
      g_test_skip ("the program itself is nice");
      return;
    }
  g_thread_join (g_thread_new ("nice", be_nice, GINT_TO_POINTER (7)));
  assert_all_meet (3, 0);
  g_thread_join (g_thread_new ("nice", be_nice, GINT_TO_POINTER (7)));
  g_thread_join (g_thread_new ("nice", be_nice, GINT_TO_POINTER (19)));
}

/* --- several callers --- */

static gpointer
hold_meeting (gpointer data)
{
  Meeting *self = data;

  gtorch_parallel_for (self->n_wanted, 1, meet, self);
  return NULL;
}

static void
await (gint *count, gint n)
{
  gint64 deadline = g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC;

  while (g_atomic_int_get (count) < n && g_get_monotonic_time () < deadline)
    g_usleep (100);
  g_assert_cmpint (g_atomic_int_get (count), >=, n);
}

/* This is the case of a machine that is too busy to run any of them. */
static void
loops_do_not_wait_for_absent_helpers (void)
{
  Meeting self = { .n_wanted = 5,
                   .n_expected_niceness = get_niceness (),
                   .deadline = g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC };
  GThread *thread;
  guint i;

  set_threads (4);
  thread = g_thread_new ("hold", hold_meeting, &self);
  await (&self.n_there, 4);
  for (i = 0; i < 100; i++)
    run_loop (1000 + i, 1, TRUE);
  g_assert_false (g_atomic_int_get (&self.is_open));
  g_atomic_int_set (&self.is_open, TRUE);
  g_thread_join (thread);
  g_assert_cmpint (self.n_there, ==, 4);
}

/* There are more callers than slots for jobs. */
static void
any_number_of_callers_make_progress (void)
{
  Meeting all[40];
  GThread *threads[G_N_ELEMENTS (all)];
  guint i;

  set_threads (2);
  for (i = 0; i < G_N_ELEMENTS (all); i++)
    {
      all[i] = (Meeting){ .n_wanted = 3,
                          .n_expected_niceness = get_niceness (),
                          .deadline = g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC };
      threads[i] = g_thread_new ("hold", hold_meeting, &all[i]);
    }
  for (i = 0; i < G_N_ELEMENTS (all); i++)
    await (&all[i].n_there, 1);
  for (i = 0; i < 100; i++)
    run_loop (1000 + i, 1, TRUE);
  for (i = 0; i < G_N_ELEMENTS (all); i++)
    g_atomic_int_set (&all[i].is_open, TRUE);
  for (i = 0; i < G_N_ELEMENTS (all); i++)
    g_thread_join (threads[i]);
}

static gint n_running; /* accessed atomically */

static gpointer
call_often (gpointer data)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (GPOINTER_TO_UINT (data));
  guint i;

  for (i = 0; i < n_rounds; i++)
    run_loop (some_number (rand, 12), some_number (rand, 6), TRUE);
  g_atomic_int_add (&n_running, -1);
  return NULL;
}

/* The number of threads changes meanwhile. */
static void
callers_do_not_disturb_each_other (void)
{
  GThread *threads[6];
  guint i, n = 1;

  g_atomic_int_set (&n_running, G_N_ELEMENTS (threads));
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("call", call_often, GUINT_TO_POINTER (i));
  while (g_atomic_int_get (&n_running) > 0)
    {
      set_threads (1 + n++ % 8);
      g_usleep (200);
    }
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

/* A loop sees what a thread wrote before it, and the code after the loop sees what the loop wrote. */
typedef struct
{
  gint64 *from, *to;
} Copy;

static void
copy_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Copy *copy = user_data;

  for (; begin < end; begin++)
    copy->to[begin] = copy->from[begin] + 1;
}

static void
loops_order_memory_accesses (void)
{
  gint64 a[257] = { 0 }, b[257];
  guint i, k;

  set_threads (4);
  for (i = 0; i < n_rounds; i++)
    {
      Copy there = { a, b }, back = { b, a };

      gtorch_parallel_for (257, 1, copy_items, &there);
      gtorch_parallel_for (257, 1, copy_items, &back);
    }
  for (k = 0; k < 257; k++)
    g_assert_cmpint (a[k], ==, 2 * n_rounds);
}

/* --- helpers as the system sees them --- */

/* Reads a file of /proc for each helper. */
static GPtrArray *
read_helpers (const gchar *name)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/task", 0, NULL);
  const gchar *task;

  while (dir != NULL && (task = g_dir_read_name (dir)) != NULL)
    {
      g_autofree gchar *comm = g_build_filename ("/proc/self/task", task, "comm", NULL);
      g_autofree gchar *path = g_build_filename ("/proc/self/task", task, name, NULL);
      g_autofree gchar *who = NULL;
      gchar *text;

      if (g_file_get_contents (comm, &who, NULL, NULL) && strcmp (who, "gtorch-pool\n") == 0
          && g_file_get_contents (path, &text, NULL, NULL))
        g_ptr_array_add (texts, text);
    }
  return g_steal_pointer (&texts);
}

static void
helpers_block_signals (void)
{
  static const gint signals[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM, SIGPROF };
  g_autoptr (GPtrArray) texts = NULL;
  guint i, k;

  assert_all_meet (3, get_niceness ());
  texts = read_helpers ("status");
  if (texts->len == 0)
    {
      g_test_skip ("/proc does not tell");
      return;
    }
  g_assert_cmpuint (texts->len, >=, 2);
  for (i = 0; i < texts->len; i++)
    {
      const gchar *line = strstr (texts->pdata[i], "SigBlk:");
      guint64 mask;

      g_assert_nonnull (line);
      mask = g_ascii_strtoull (line + strlen ("SigBlk:"), NULL, 16);
      for (k = 0; k < G_N_ELEMENTS (signals); k++)
        g_assert_true (mask >> (signals[k] - 1) & 1);
    }
}

static gboolean
all_sleep (void)
{
  g_autoptr (GPtrArray) texts = read_helpers ("stat");
  guint i;

  for (i = 0; i < texts->len; i++)
    if (strstr (texts->pdata[i], "(gtorch-pool) S") == NULL)
      return FALSE;
  return TRUE;
}

/* The first number is the time on a processor, in nanoseconds. */
static void
helpers_without_work_do_not_run (void)
{
  gint64 deadline = g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC;
  g_autoptr (GPtrArray) before = NULL;
  g_autoptr (GPtrArray) after = NULL;
  guint i;

  assert_all_meet (4, get_niceness ());
  while (!all_sleep () && g_get_monotonic_time () < deadline)
    g_usleep (1000);
  g_assert_true (all_sleep ());
  before = read_helpers ("schedstat");
  g_usleep (100000);
  after = read_helpers ("schedstat");
  if (before->len == 0)
    {
      g_test_skip ("/proc does not tell");
      return;
    }
  g_assert_cmpuint (before->len, ==, after->len);
  for (i = 0; i < before->len; i++)
    g_assert_cmpuint (g_ascii_strtoull (before->pdata[i], NULL, 10), ==,
                      g_ascii_strtoull (after->pdata[i], NULL, 10));
}

static gint64
cpu_time_us (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
}

/* All helpers fall asleep once the policy changes. */
static void
helpers_spin_if_the_policy_says_so (void)
{
  const gint64 deadline = g_get_monotonic_time () + LIMIT * G_USEC_PER_SEC;
  GTorchDevice *cpu = gtorch_device_cpu ();
  guint n = gtorch_get_num_threads ();
  gint64 begin;

  if (gtorch_cpu_count ("/") < 2)
    {
      g_test_skip ("there is one processor only, on which nobody spins");
      return;
    }
  gtorch_device_set_wait_policy (cpu, GTORCH_WAIT_POLICY_SPIN);
  assert_all_meet (2, get_niceness ());
  begin = cpu_time_us ();
  while (cpu_time_us () - begin < 20000 && g_get_monotonic_time () < deadline)
    g_usleep (1000);
  g_assert_cmpint (cpu_time_us () - begin, >=, 20000);
  gtorch_device_set_wait_policy (cpu, GTORCH_WAIT_POLICY_SLEEP);
  while (!all_sleep () && g_get_monotonic_time () < deadline)
    g_usleep (1000);
  g_assert_true (all_sleep ());
  assert_all_meet (2, get_niceness ());
  gtorch_device_set_wait_policy (cpu, GTORCH_WAIT_POLICY_ADAPTIVE);
  set_threads (n);
}

/* --- child processes --- */

static gpointer
fork_beside_callers (gpointer data)
{
  guint i;

  for (i = 0; i < 8; i++)
    {
      pid_t child = fork ();
      int status = 0;

      g_assert_cmpint (child, >=, 0);
      if (child == 0)
        {
          alarm (LIMIT);
          run_loop (1000, 1, TRUE);
          assert_all_meet (3, get_niceness ());
          _exit (0);
        }
      g_assert_cmpint (waitpid (child, &status, 0), ==, child);
      g_assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
    }
  return NULL;
}

static void
children_have_helpers_of_their_own (void)
{
#ifdef __SANITIZE_THREAD__
  g_test_skip ("ThreadSanitizer starts no threads in a child of several");
#else
  GThread *threads[3];
  guint i, rounds = n_rounds;

  assert_all_meet (3, get_niceness ());
  g_atomic_int_set (&n_running, G_N_ELEMENTS (threads));
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("call", call_often, GUINT_TO_POINTER (i));
  fork_beside_callers (NULL);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  n_rounds = rounds;
  assert_all_meet (3, get_niceness ());
#endif
}

/* --- number of threads --- */

static void
put (const gchar *root, const gchar *name, const gchar *text)
{
  g_autofree gchar *path = g_build_filename (root, name, NULL);
  g_autofree gchar *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
remove_all (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree gchar *path = g_build_filename (folder, name, NULL);

      remove_all (path);
    }
  g_assert_cmpint (g_remove (folder), ==, 0);
}

typedef struct
{
  const gchar *groups;
  struct
  {
    const gchar *name, *text;
  } files[4];
  guint limit; /* 0 if there is none */
} Quota;

static void
quotas_limit_the_number (void)
{
  static const Quota quotas[] = {
    { NULL, { { NULL } }, 0 },
    { "0::/\n", { { NULL } }, 0 },
    { "0::/\n", { { "cpu.max", "100000 100000\n" } }, 1 },
    { "0::/\n", { { "cpu.max", "max 100000\n" } }, 0 },
    { "0::/\n", { { "cpu.max", "100\n" } }, 0 },
    { "0::/\n", { { "cpu.max", "" } }, 0 },
    { "0::/\n", { { "cpu.max", "5000 100000\n" } }, 1 },
    { "0::/a/b\n", { { "a/b/cpu.max", "max 100000\n" }, { "a/cpu.max", "90000 100000\n" } }, 1 },
    { "0::/a/b\n", { { "a/cpu.max", "max 100000\n" }, { "a/b/cpu.max", "1 100000\n" } }, 1 },
    { "0::/not/shown\n", { { "cpu.max", "100000 100000\n" } }, 1 },
    { "0::/a\n", { { "b/cpu.max", "1 100000\n" } }, 0 },
    { "3:cpu,cpuacct:/a\n",
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } },
      1 },
    { "3:cpu:/a\n",
      { { "cpu/a/cpu.cfs_quota_us", "-1\n" }, { "cpu/a/cpu.cfs_period_us", "100000\n" } },
      0 },
    { "3:cpuset:/a\n1:memory:/a\n",
      { { "cpuset/a/cpu.cfs_quota_us", "50000\n" }, { "cpuset/a/cpu.cfs_period_us", "100000\n" } },
      0 },
    { "nothing\nof:this\n::\n", { { NULL } }, 0 },
  };
  guint i, k, all;

  all = gtorch_cpu_count ("/nowhere");
  g_assert_cmpuint (all, >=, 1);
  g_assert_cmpuint (gtorch_cpu_count ("/"), >=, 1);
  g_assert_cmpuint (gtorch_cpu_count ("/"), <=, all);
  for (i = 0; i < G_N_ELEMENTS (quotas); i++)
    {
      g_autofree gchar *root = g_dir_make_tmp ("gtorch-XXXXXX", NULL);

      g_assert_nonnull (root);
      if (quotas[i].groups != NULL)
        put (root, "proc/self/cgroup", quotas[i].groups);
      for (k = 0; k < G_N_ELEMENTS (quotas[i].files) && quotas[i].files[k].name != NULL; k++)
        {
          g_autofree gchar *name =
              g_build_filename ("sys/fs/cgroup", quotas[i].files[k].name, NULL);

          put (root, name, quotas[i].files[k].text);
        }
      g_assert_cmpuint (gtorch_cpu_count (root), ==,
                        quotas[i].limit > 0 ? MIN (all, quotas[i].limit) : all);
      remove_all (root);
    }
}

static void
environment_sets_the_number (void)
{
  static const struct
  {
    const gchar *own, *openmp;
    guint n; /* 0: the number without a quota */
  } cases[] = {
    { "3", NULL, 3 },         { "3", "5", 3 },     { NULL, "5", 5 },
    { NULL, "5,2", 5 },       { "0", NULL, 0 },    { "00", "6", 6 },
    { "-2", "", 0 },          { "many", "x", 0 },  { "4x", NULL, 0 },
    { "65536", NULL, 65536 }, { "65537", "2", 2 }, { "99999999999999999999", NULL, 0 },
  };
  g_autofree gchar *own = g_strdup (g_getenv ("GTORCH_NUM_THREADS"));
  g_autofree gchar *openmp = g_strdup (g_getenv ("OMP_NUM_THREADS"));
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_unsetenv ("GTORCH_NUM_THREADS");
      g_unsetenv ("OMP_NUM_THREADS");
      if (cases[i].own != NULL)
        g_setenv ("GTORCH_NUM_THREADS", cases[i].own, TRUE);
      if (cases[i].openmp != NULL)
        g_setenv ("OMP_NUM_THREADS", cases[i].openmp, TRUE);
      if (cases[i].own != NULL && (cases[i].n == 0 || cases[i].openmp != NULL)
          && !g_str_equal (cases[i].own, "3"))
        g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "*GTORCH_NUM_THREADS*65536*");
      g_assert_cmpuint (gtorch_cpu_default_threads (), ==,
                        cases[i].n > 0 ? cases[i].n : gtorch_cpu_count ("/"));
      g_test_assert_expected_messages ();
    }
  g_unsetenv ("GTORCH_NUM_THREADS");
  g_unsetenv ("OMP_NUM_THREADS");
  if (own != NULL)
    g_setenv ("GTORCH_NUM_THREADS", own, TRUE);
  if (openmp != NULL)
    g_setenv ("OMP_NUM_THREADS", openmp, TRUE);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (argc > 1)
    n_rounds = atoi (argv[1]);

#define TEST(name) g_test_add_func ("/GTorch/cpu-threads/" #name, name)
  TEST (environment_sets_the_number);
  TEST (quotas_limit_the_number);
  TEST (each_item_is_done_once);
  TEST (numbers_may_be_large);
  TEST (inner_loops_stay_in_their_thread);
  TEST (a_loop_in_a_single_range_may_have_helpers);
  TEST (all_threads_take_part);
  TEST (helpers_are_as_nice_as_their_caller);
  TEST (loops_do_not_wait_for_absent_helpers);
  TEST (any_number_of_callers_make_progress);
  TEST (callers_do_not_disturb_each_other);
  TEST (loops_order_memory_accesses);
  TEST (helpers_block_signals);
  TEST (helpers_without_work_do_not_run);
  TEST (helpers_spin_if_the_policy_says_so);
  TEST (children_have_helpers_of_their_own);
  return g_test_run ();
}
