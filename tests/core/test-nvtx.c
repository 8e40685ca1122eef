/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Ranges that a tool is told of. NVTX_TOOL in the environment is the path of one. */

#include <gtorch/gtorch.h>

#include <dlfcn.h>
#include <string.h>

#define PATH "NVTX_INJECTION64_PATH"

static void
events_reach_the_tool (void)
{
  const gchar *tool = g_getenv ("NVTX_TOOL");
  const gchar *(*get_log) (void) = NULL;
  gpointer library;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      return;
    }
  g_setenv (PATH, tool, TRUE);
  g_assert_true (gtorch_nvtx_is_traced ());
  gtorch_nvtx_mark ("here");
  g_assert_cmpint (gtorch_nvtx_range_push ("outer"), ==, 0);
  g_assert_cmpint (gtorch_nvtx_range_push ("inner"), ==, 1);
  g_assert_cmpint (gtorch_nvtx_range_pop (), ==, 1);
  g_assert_cmpint (gtorch_nvtx_range_pop (), ==, 0);
  gtorch_nvtx_range_end (gtorch_nvtx_range_start ("apart"));
  library = dlopen (tool, RTLD_LAZY);
  g_assert_nonnull (library);
  *(gpointer *) &get_log = dlsym (library, "nvtx_tool_get_log");
  g_assert_cmpstr (get_log (), ==,
                   "mark(here) push(outer) push(inner) pop() pop() start(apart) end(the range) ");
}

/* The tool; the log is emptied. */
static gchar *
take_log (void)
{
  const gchar *(*get_log) (void) = NULL;
  static gsize n_taken;
  gpointer library = dlopen (g_getenv ("NVTX_TOOL"), RTLD_LAZY);
  const gchar *all;

  g_assert_nonnull (library);
  *(gpointer *) &get_log = dlsym (library, "nvtx_tool_get_log");
  all = get_log () + n_taken;
  n_taken += strlen (all);
  return g_strdup (all);
}

static void
operations_are_ranges (void)
{
  const gint64 shape[] = { 2, 3 };
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchTensor) row = NULL;
  g_autofree gchar *none = NULL;
  g_autofree gchar *names = NULL;
  g_autofree gchar *sizes = NULL;
  g_autofree gchar *backward = NULL;
  g_autofree gchar *after = NULL;
  g_autoptr (GTorchProfileRange) range = NULL;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      return;
    }
  g_setenv (PATH, g_getenv ("NVTX_TOOL"), TRUE);
  g_assert_false (gtorch_is_emit_nvtx_enabled ());
  x = gtorch_ones (shape, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  row = gtorch_ones (shape + 1, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_assert_true (gtorch_nvtx_is_traced ());
  none = take_log ();
  g_assert_cmpstr (none, ==, "");
  gtorch_set_emit_nvtx (TRUE, FALSE);
  g_assert_true (gtorch_is_emit_nvtx_enabled ());
  gtorch_nvtx_range_push ("outer");
  y = gtorch_tensor_mul (x, row, NULL);
  g_assert_nonnull (gtorch_tensor_exp_inplace (y, NULL));
  gtorch_nvtx_range_pop ();
  names = take_log ();
  g_assert_cmpstr (names, ==, "push(outer) push(mul) pop() push(exp_) pop() pop() ");
  gtorch_set_emit_nvtx (TRUE, TRUE);
  g_clear_pointer (&y, gtorch_tensor_unref);
  y = gtorch_tensor_add (x, row, 1, NULL);
  z = gtorch_cat ((GTorchTensor *[]){ x, y }, 2, 0, NULL);
  g_assert_nonnull (z);
  sizes = take_log ();
  g_assert_cmpstr (sizes, ==,
                   "push(add, sizes = [[2, 3], [3], []]) pop() "
                   "push(cat, sizes = [[[2, 3], [2, 3]], []]) pop() ");
  gtorch_set_emit_nvtx (TRUE, FALSE);
  gtorch_tensor_set_requires_grad (row, TRUE, NULL);
  g_clear_pointer (&z, gtorch_tensor_unref);
  range = gtorch_profile_range_new ("part");
  z = gtorch_tensor_sum (row, NULL, 0, FALSE, 0, NULL);
  g_assert_true (gtorch_tensor_backward (z, NULL, FALSE, FALSE, NULL));
  gtorch_profile_range_end (range);
  backward = take_log ();
  g_test_message ("%s", backward);
  g_assert_true (g_str_has_prefix (backward, "push(part) push(sum) pop() "));
  g_assert_nonnull (strstr (backward, "push(backward of sum, stashed seq = "));
  g_assert_true (g_str_has_suffix (backward, "pop() pop() "));
  gtorch_set_emit_nvtx (FALSE, FALSE);
  g_assert_false (gtorch_is_emit_nvtx_enabled ());
  g_clear_pointer (&z, gtorch_tensor_unref);
  z = gtorch_tensor_add (x, row, 1, NULL);
  after = take_log ();
  g_assert_cmpstr (after, ==, "");
}

static gpointer
end_range (gpointer range)
{
  gtorch_profile_range_end (range);
  return NULL;
}

static void
composites_and_nodes_have_sizes (void)
{
  const gint64 shape[] = { 2, 3 };
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autofree gchar *composite = NULL;
  g_autofree gchar *backward = NULL;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      return;
    }
  g_setenv (PATH, g_getenv ("NVTX_TOOL"), TRUE);
  x = gtorch_ones (shape, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_assert_true (gtorch_nvtx_is_traced ());
  g_free (take_log ());
  gtorch_set_emit_nvtx (TRUE, TRUE);
  y = gtorch_stack ((GTorchTensor *[]){ x, x }, 2, 0, NULL);
  composite = take_log ();
  g_assert_true (g_str_has_prefix (composite, "push(stack, sizes = [[[2, 3], [2, 3]], []]) push("));
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  z = gtorch_tensor_exp (x, NULL);
  g_free (take_log ());
  g_assert_true (gtorch_tensor_backward (z, x, FALSE, FALSE, NULL));
  backward = take_log ();
  g_assert_nonnull (strstr (backward, ", sizes = [[2, 3]]) "));
  gtorch_set_emit_nvtx (FALSE, FALSE);
}

/* The tool ends the innermost range of a thread only. */
static void
ranges_end_in_their_threads (void)
{
  g_autofree gchar *overlapping = NULL;
  g_autofree gchar *given = NULL;
  g_autofree gchar *after = NULL;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      return;
    }
  g_setenv (PATH, g_getenv ("NVTX_TOOL"), TRUE);
  g_assert_true (gtorch_nvtx_is_traced ());
  gtorch_set_emit_nvtx (TRUE, FALSE);
  {
    g_autoptr (GTorchProfileRange) a = gtorch_profile_range_new ("a");
    g_autoptr (GTorchProfileRange) b = gtorch_profile_range_new ("b");

    gtorch_profile_range_end (a);
    g_free (take_log ());
    gtorch_profile_range_end (b);
    overlapping = take_log ();
  }
  g_assert_cmpstr (overlapping, ==, "pop() pop() ");
  {
    g_autoptr (GTorchProfileRange) a = gtorch_profile_range_new ("a");
    g_autoptr (GTorchProfileRange) b = gtorch_profile_range_new ("b");

    g_free (take_log ());
    g_thread_join (g_thread_new ("other", end_range, b));
    given = take_log ();
    gtorch_profile_range_end (a);
    after = take_log ();
  }
  g_assert_cmpstr (given, ==, "");
  g_assert_cmpstr (after, ==, "pop() pop() ");
  gtorch_set_emit_nvtx (FALSE, FALSE);
}

static void
assert_silent (void)
{
  g_assert_false (gtorch_nvtx_is_traced ());
  gtorch_nvtx_mark ("here");
  g_assert_cmpint (gtorch_nvtx_range_push ("outer"), ==, -2);
  g_assert_cmpint (gtorch_nvtx_range_pop (), ==, -2);
  g_assert_cmpuint (gtorch_nvtx_range_start ("apart"), ==, 0);
  gtorch_nvtx_range_end (0);
  gtorch_set_emit_nvtx (TRUE, TRUE);
  g_assert_true (gtorch_is_emit_nvtx_enabled ());
  gtorch_tensor_unref (gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL));
  gtorch_set_emit_nvtx (FALSE, FALSE);
}

static void
without_a_tool_nothing_happens (void)
{
  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      return;
    }
  g_unsetenv (PATH);
  assert_silent ();
}

static void
a_missing_tool_is_warned_about (void)
{
  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, 0);
      g_test_trap_assert_passed ();
      g_test_trap_assert_stderr ("*the tool /nowhere/tool.so of " PATH " cannot be loaded: *");
      return;
    }
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR);
  g_setenv (PATH, "/nowhere/tool.so", TRUE);
  assert_silent ();
}

static void
a_tool_may_refuse (void)
{
  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, 0);
      g_test_trap_assert_passed ();
      g_test_trap_assert_stderr ("*does not take part*");
      return;
    }
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR);
  g_setenv ("NVTX_TOOL_REFUSES", "1", TRUE);
  g_setenv (PATH, g_getenv ("NVTX_TOOL"), TRUE);
  assert_silent ();
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Nvtx/events_reach_the_tool", events_reach_the_tool);
  g_test_add_func ("/GTorch/Nvtx/operations_are_ranges", operations_are_ranges);
  g_test_add_func ("/GTorch/Nvtx/composites_and_nodes_have_sizes", composites_and_nodes_have_sizes);
  g_test_add_func ("/GTorch/Nvtx/ranges_end_in_their_threads", ranges_end_in_their_threads);
  g_test_add_func ("/GTorch/Nvtx/without_a_tool_nothing_happens", without_a_tool_nothing_happens);
  g_test_add_func ("/GTorch/Nvtx/a_missing_tool_is_warned_about", a_missing_tool_is_warned_about);
  g_test_add_func ("/GTorch/Nvtx/a_tool_may_refuse", a_tool_may_refuse);
  return g_test_run ();
}
