/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Stack traces: a recorded site has the frames that the unwinder of the system finds. */

#include "config.h"

#include <execinfo.h>
#include <gtorch/base/gtorch-check-private.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

gint main (gint argc, gchar **argv);

static __thread guint n_compared;

static G_GNUC_NO_INLINE void
compare (void)
{
  gpointer expected[GTORCH_SITE_FRAMES + 1];
  gint i, n, more;
  GTorchSite site;

  n = backtrace (expected, G_N_ELEMENTS (expected));
  memset (&site, 0xff, sizeof site);
  gtorch_site_take (&site);
  g_assert_nonnull (site.frames[0]);    /* another call site in this function */
  more = expected[1] != site.frames[1]; /* sanitizers wrap backtrace () in their own function */
  n = MIN (n - more, GTORCH_SITE_FRAMES);
  for (i = 1; i < n; i++)
    g_assert_true (site.frames[i] == expected[i + more]);
  if (n < GTORCH_SITE_FRAMES)
    g_assert_null (site.frames[n]);
  n_compared++;
}

static G_GNUC_NO_INLINE void
at_depth (guint depth)
{
  if (depth > 0)
    at_depth (depth - 1);
  else
    compare ();
  n_compared++; /* prevents a tail call */
}

static void
any_depth (void)
{
  guint i;

  for (i = 0; i < 100; i++)
    at_depth (i % 30);
}

/* Uses a different amount of the stack each time. */
static G_GNUC_NO_INLINE void
with_room (gsize size, guint depth)
{
  volatile gchar *room = g_alloca (size);

  room[0] = room[size - 1] = 1;
  if (depth > 0)
    with_room (size * 7 % 1000 + 1, depth - 1);
  else
    at_depth (size % 3);
  room[0]++;
}

static void
any_size (void)
{
  guint i;

  for (i = 0; i < 300; i++)
    with_room (i * 37 % 3000 + 1, i % 4);
}

static gint
compare_numbers (gconstpointer a, gconstpointer b)
{
  compare ();
  return *(const gint *) a - *(const gint *) b;
}

static void
through_other_libraries (void)
{
  gint numbers[20];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (numbers); i++)
    numbers[i] = i * 7 % 20;
  qsort (numbers, G_N_ELEMENTS (numbers), sizeof numbers[0], compare_numbers);
}

static gpointer
all (gpointer data)
{
  guint i;

  for (i = 0; i < 3; i++)
    {
      any_size ();
      through_other_libraries ();
      any_depth ();
    }
  return NULL;
}

static void
in_threads (void)
{
  GThread *threads[3];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("test", all, NULL);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

static void
in_order (void)
{
  all (NULL);
}

#ifndef __SANITIZE_THREAD__
static ucontext_t outside, inside;

static void
run_inside (void)
{
  guint i;

  for (i = 0; i < 20; i++)
    {
      at_depth (i % 7);
      swapcontext (&inside, &outside);
    }
}

/* Coroutines run on such a stack. */
static void
on_a_stack_of_its_own (void)
{
  gsize size = 1 << 18;
  gpointer stack = g_malloc (size);
  guint i;

  g_assert_cmpint (getcontext (&inside), ==, 0);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  makecontext (&inside, run_inside, 0);
  for (i = 0; i < 20; i++)
    {
      swapcontext (&outside, &inside);
      at_depth (i % 5);
    }
  swapcontext (&outside, &inside); /* runs to its end */
  g_free (stack);
}

static gsize room_inside;

static void
run_with_room (void)
{
  with_room (room_inside, 0);
}

/* Where the stack of the program has no limit, everything above the former end of the heap may count as
 * part of it. Facts learned about a function that has used much stack must not be applied where there is
 * less. */
static void
on_a_stack_without_limit (void)
{
  const gsize size = 1 << 16, beyond = 1 << 20;
  struct rlimit former, none;
  guint i;

  g_assert_cmpint (getrlimit (RLIMIT_STACK, &former), ==, 0);
  if (!g_test_subprocess ())
    {
      none = (struct rlimit){ former.rlim_max, former.rlim_max };
      if (former.rlim_max != RLIM_INFINITY)
        {
          g_test_skip ("the stack cannot be without a limit");
          return;
        }
      g_assert_cmpint (setrlimit (RLIMIT_STACK, &none), ==, 0);
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_assert_cmpint (setrlimit (RLIMIT_STACK, &former), ==, 0);
      g_test_trap_assert_passed ();
      return;
    }
  for (i = 0; i < 10; i++)
    with_room (beyond / 2, 0);
  g_assert_cmpint (getcontext (&inside), ==, 0);
  inside.uc_stack.ss_sp = mmap ((gchar *) sbrk (0) + (1 << 30), beyond, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  g_assert_true (inside.uc_stack.ss_sp != MAP_FAILED);
  g_assert_cmpint (mprotect (inside.uc_stack.ss_sp, size, PROT_READ | PROT_WRITE), ==, 0);
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  room_inside = 100;
  makecontext (&inside, run_with_room, 0);
  swapcontext (&outside, &inside);
  munmap (inside.uc_stack.ss_sp, beyond);
}
#endif

static void
names_are_resolved (void)
{
  g_autofree gchar *text = NULL;
  GTorchSite site;
  guint i;

  for (i = 0; i < 2; i++)
    {
      gtorch_site_take (&site);
      g_free (text);
      text = gtorch_site_to_string (&site);
      g_assert_nonnull (strstr (text, "test-site+0x"));
    }
}

/* Code that is generated at run time is in no file. */
static void
unknown_code_is_left_out (void)
{
  g_autofree gchar *text = NULL;
  g_autofree gchar *none = NULL;
  GTorchSite site;
  guint i;

  for (i = 0; i < 10; i++)
    site.frames[i] = GSIZE_TO_POINTER (16 + i);
  site.frames[i++] = (gpointer) unknown_code_is_left_out;
  site.frames[i++] = GSIZE_TO_POINTER (16);
  site.frames[i++] = (gpointer) main;
  site.frames[i] = NULL;
  text = gtorch_site_to_string (&site);
  g_test_message ("%s", text);
  g_assert_true (g_pattern_match_simple ("*test-site+0x*, *test-site+0x*", text));
  g_assert_null (strstr (text, ", ,"));
  g_assert_false (g_str_has_prefix (text, ","));

  site.frames[10] = NULL;
  none = gtorch_site_to_string (&site);
  g_assert_cmpstr (none, ==, "?");
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchSite/in_order", in_order);
  g_test_add_func ("/GTorchSite/in_threads", in_threads);
#ifndef __SANITIZE_THREAD__
  g_test_add_func ("/GTorchSite/on_a_stack_of_its_own", on_a_stack_of_its_own);
  g_test_add_func ("/GTorchSite/on_a_stack_without_limit", on_a_stack_without_limit);
#endif
  g_test_add_func ("/GTorchSite/names_are_resolved", names_are_resolved);
  g_test_add_func ("/GTorchSite/unknown_code_is_left_out", unknown_code_is_left_out);
  return g_test_run ();
}
