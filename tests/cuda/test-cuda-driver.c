/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Drivers that are missing, too old, without devices or incomplete: each causes an error that says so.
 * Each case runs in its own process, since a process looks for the driver once. */

#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cuda-test.h"

/* Prints the message for the first device, which must not exist. */
static void
print_reason (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_device_manager_is_available (gtorch_device_manager_get_default ()));
  g_assert_null (gtorch_device_cuda (0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_printerr ("%s\n", error->message);
}

/* Runs the case once more in a process with these settings. Returns TRUE in that process. */
static gboolean
in_process (const gchar *driver, const gchar *settings)
{
  g_autofree gchar *former = g_strdup (g_getenv ("GTORCH_CUDA_DRIVER"));
  g_autofree gchar *former_settings = g_strdup (g_getenv ("GTORCH_FAKE_CUDA"));

  if (g_test_subprocess ())
    return TRUE;
  if (driver != NULL)
    g_setenv ("GTORCH_CUDA_DRIVER", driver, TRUE);
  g_setenv ("GTORCH_FAKE_CUDA", settings, TRUE);
  g_test_trap_subprocess (NULL, 0, 0);
  if (driver != NULL)
    g_setenv ("GTORCH_CUDA_DRIVER", former, TRUE);
  g_setenv ("GTORCH_FAKE_CUDA", former_settings, TRUE);
  return FALSE;
}

static void
a_missing_library_is_named (void)
{
  if (in_process ("/nowhere/libcuda.so.1", ""))
    {
      print_reason ();
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*was not found*/nowhere/libcuda.so.1*");
}

static void
an_old_library_is_named (void)
{
  if (in_process ("libm.so.6", ""))
    {
      print_reason ();
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*libm.so.6 is older than CUDA 12*");
}

static void
an_old_driver_says_its_version (void)
{
  if (in_process (NULL, "version=11080"))
    {
      print_reason ();
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*the driver is for CUDA 11.8, at least 12.0 is needed*");
}

static void
a_missing_device_is_reported (void)
{
  if (in_process (NULL, "devices=0"))
    {
      print_reason ();
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)*");
}

static void
an_incomplete_driver_cannot_begin (void)
{
  if (in_process (NULL, "hide=cuInit"))
    {
      print_reason ();
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*has no cuInit*");
}

static void
a_missing_function_is_an_error (void)
{
  if (in_process (NULL, "hide=cuMemCreate"))
    {
      const gint64 shape[] = { 4 };
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_op_empty (shape, 1, GTORCH_DTYPE_FLOAT32, gpu (0), &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_printerr ("%s\n", error->message);
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*cuMemCreate: operation not supported*");
}

/* Parameters of kernels are passed by pointers where the driver does not report their sizes. */
static void
a_driver_that_tells_no_sizes_launches (void)
{
  if (in_process (NULL, "hide=cuFuncGetParamInfo"))
    {
      g_autoptr (GTorchImpl) a = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 1000);
      g_autoptr (GTorchImpl) sum = gtorch_op_add (a, a, 1, NULL);
      g_autoptr (GTorchImpl) before = gtorch_op_to_device (a, gtorch_device_cpu (), FALSE, NULL);
      g_autoptr (GTorchImpl) after = gtorch_op_to_device (sum, gtorch_device_cpu (), FALSE, NULL);
      const gfloat *x = gtorch_impl_data (before), *y = gtorch_impl_data (after);

      g_assert_cmpfloat (x[7], !=, 0);
      g_assert_cmpfloat (y[7], ==, 2 * x[7]);
      g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), >, 0);
      return;
    }
  g_test_trap_assert_passed ();
}

static void
indices_of_devices_are_checked (void)
{
  if (in_process (NULL, "devices=3"))
    {
      g_autoptr (GError) error = NULL;
      g_autofree gchar *name = gtorch_device_to_string (gpu (2));

      g_assert_cmpstr (name, ==, "cuda:2");
      g_assert_cmpstr (gtorch_device_get_name (gpu (2)), ==, "Fake 2");
      g_assert_cmpuint (fake_cuda_get_calls ("cuDevicePrimaryCtxRetain"), ==, 0);
      g_assert_null (gtorch_device_cuda (3, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
      g_printerr ("%s\n", error->message);
      return;
    }
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*the numbers of cuda devices end at 2*");
}

/* Forks a child that uses a GPU. Returns 0 if it can, 1 if it gets the error for a forked process. */
static gint
use_in_child (void)
{
  pid_t child = fork ();
  gint status;

  if (child == 0)
    {
      const gint64 shape[] = { 100 };
      GError *error = NULL;
      GTorchDevice *device = gtorch_device_cuda (0, &error);
      GTorchImpl *x =
          device != NULL ? gtorch_op_ones (shape, 1, GTORCH_DTYPE_FLOAT32, device, &error) : NULL;

      _exit (x != NULL ? 0 : g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED) ? 1 : 2);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  return WEXITSTATUS (status);
}

static void
counting_harms_no_child (void)
{
  GTorchDeviceManager *manager;

  if (!in_process (NULL, "devices=2"))
    {
      g_test_trap_assert_passed ();
      return;
    }
  manager = gtorch_device_manager_get_default ();
  g_assert_true (gtorch_device_manager_is_available (manager));
  g_assert_cmpuint (gtorch_device_manager_get_device_count (manager), ==, 2);
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (manager)), ==, 3);
  g_assert_cmpuint (fake_cuda_get_calls ("cuInit"), ==, 0);
  g_assert_cmpint (use_in_child (), ==, 0);
  gpu (0); /* this initialises CUDA */
  g_assert_cmpint (use_in_child (), ==, 1);
  g_assert_true (gtorch_device_manager_is_available (manager));
}

static void
visible_devices_are_counted_alike (void)
{
  static const struct
  {
    const gchar *visible;
    guint n;
  } cases[] = {
    { "", 0 },
    { "1", 1 },
    { "0,1,2,3", 3 },
    { " 2 ,0", 2 },
    { "0,-1,1", 1 },
    { "1,1", 0 },
    { "GPU-fafafafa-fafa-fafa-fafa-fafafafafa02", 1 },
    { "GPU-0", 0 },
    { "0,x", 1 },
    { NULL, 3 },
  };
  g_autofree gchar *former = g_strdup (g_getenv ("GTORCH_FAKE_CUDA"));
  guint i;

  g_setenv ("GTORCH_FAKE_CUDA", "devices=3", TRUE);
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      if (cases[i].visible != NULL)
        g_setenv ("CUDA_VISIBLE_DEVICES", cases[i].visible, TRUE);
      else
        g_unsetenv ("CUDA_VISIBLE_DEVICES");
      g_setenv ("GTORCH_TEST_N_DEVICES", (gchar[]){ '0' + cases[i].n, 0 }, TRUE);
      g_test_trap_subprocess ("/GTorchCudaDriver/visible_devices/subprocess/count", 0,
                              G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
    }
  g_unsetenv ("CUDA_VISIBLE_DEVICES");
  g_setenv ("GTORCH_FAKE_CUDA", former, TRUE);
}

static void
count_before_and_after (void)
{
  GTorchDeviceManager *manager = gtorch_device_manager_get_default ();
  guint n = g_ascii_strtoull (g_getenv ("GTORCH_TEST_N_DEVICES"), NULL, 10);

  g_assert_cmpuint (gtorch_device_manager_get_device_count (manager), ==, n);
  gtorch_device_cuda (0, NULL);
  g_assert_cmpuint (gtorch_device_manager_get_device_count (manager), ==, n);
}

static void
note_change (GListModel *list, guint position, guint n_removed, guint n_added, GString *text)
{
  g_string_append_printf (text, "%u-%u+%u ", position, n_removed, n_added);
}

static void
changed_numbers_of_devices_are_notified (void)
{
  GListModel *list;
  g_autoptr (GString) text = NULL;
  g_autoptr (GError) error = NULL;

  if (!in_process (NULL, "devices=2,nvml-devices=3"))
    {
      g_test_trap_assert_passed ();
      return;
    }
  text = g_string_new (NULL);
  list = G_LIST_MODEL (gtorch_device_manager_get_default ());
  g_signal_connect (list, "items-changed", G_CALLBACK (note_change), text);
  g_assert_cmpuint (g_list_model_get_n_items (list), ==, 4);
  g_assert_null (gtorch_device_cuda (2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_nonnull (strstr (error->message, "cuda:2"));
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpstr (text->str, ==, "3-1+0 ");
  g_assert_cmpuint (g_list_model_get_n_items (list), ==, 3);
}

static void
parts_of_gpus_are_counted_by_the_driver (void)
{
  if (!in_process (NULL, "devices=1,mig=1,nvml-devices=2"))
    {
      g_test_trap_assert_passed ();
      return;
    }
  g_assert_cmpuint (gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ()),
                    ==, 1);
  g_assert_cmpuint (fake_cuda_get_calls ("cuInit"), ==, 1);
}

static void
no_signal_is_emitted_without_a_change (void)
{
  GListModel *list;
  g_autoptr (GString) text = NULL;

  if (!in_process (NULL, "devices=2"))
    {
      g_test_trap_assert_passed ();
      return;
    }
  text = g_string_new (NULL);
  list = G_LIST_MODEL (gtorch_device_manager_get_default ());
  g_signal_connect (list, "items-changed", G_CALLBACK (note_change), text);
  gpu (1);
  g_assert_false (g_main_context_iteration (NULL, FALSE));
  g_assert_cmpstr (text->str, ==, "");
}

static void
the_environment_makes_launches_wait (void)
{
  static const struct
  {
    const gchar *own, *cuda;
    gboolean waits;
  } cases[] = {
    { NULL, NULL, FALSE }, { NULL, "1", TRUE }, { NULL, "0", FALSE },
    { "0", "1", FALSE },   { "1", NULL, TRUE },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_unsetenv ("GTORCH_LAUNCH_BLOCKING");
      g_unsetenv ("CUDA_LAUNCH_BLOCKING");
      if (cases[i].own != NULL)
        g_setenv ("GTORCH_LAUNCH_BLOCKING", cases[i].own, TRUE);
      if (cases[i].cuda != NULL)
        g_setenv ("CUDA_LAUNCH_BLOCKING", cases[i].cuda, TRUE);
      g_test_trap_subprocess (cases[i].waits ? "/GTorchCudaDriver/launches/subprocess/wait"
                                             : "/GTorchCudaDriver/launches/subprocess/go_on",
                              0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
    }
  g_unsetenv ("GTORCH_LAUNCH_BLOCKING");
}

/* The work is delayed, so that it is done only if the call waits. */
static void
check_blocking (gboolean waits)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 1000);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;

  g_assert_cmpint (gtorch_get_launch_blocking (), ==, waits);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cuda_set_seed (7);
  if (!waits)
    fake_cuda_hold (TRUE);
  y = gtorch_op_add (x, x, 1, NULL);
  g_assert_cmpint (fake_cuda_get_pending () > 0, ==, !waits);
  fake_cuda_hold (FALSE);

  gtorch_set_launch_blocking (!waits);
  if (waits)
    fake_cuda_hold (TRUE);
  z = gtorch_op_mul (x, x, NULL);
  g_assert_cmpint (fake_cuda_get_pending () > 0, ==, waits);
  fake_cuda_hold (FALSE);
}

static void
launches_wait (void)
{
  check_blocking (TRUE);
}

static void
launches_go_on (void)
{
  check_blocking (FALSE);
}

/* The error is that of the call that caused it, not of a later one. */
static void
a_launch_that_is_waited_for_reports_its_own_error (void)
{
  if (in_process (NULL, "devices=1,seed=5"))
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 1000);
      g_autoptr (GTorchImpl) y = NULL;
      g_autoptr (GError) error = NULL;

      gtorch_set_launch_blocking (TRUE);
      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
      fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
      y = gtorch_op_mul (x, x, &error);
      g_assert_null (y);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
      g_assert_nonnull (strstr (error->message, "in mul"));
      return;
    }
  g_test_trap_assert_passed ();
}

static void
a_forked_child_gets_an_error (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  g_autofree gdouble *values = NULL;
  gint status;
  pid_t child = fork ();

  if (child == 0)
    {
      GError *error = NULL;
      const gint64 shape[] = { 1 << 20 }, little[] = { 8 };
      guint n_calls = fake_cuda_get_calls ("cuMemsetD8Async");
      gint failed = 0;

      /* drivers take such work in a child */
      failed |=
          gtorch_op_zeros (little, 1, GTORCH_DTYPE_FLOAT32, gtorch_impl_device (x), &error) != NULL
          || !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED)
          || fake_cuda_get_calls ("cuMemsetD8Async") != n_calls;
      g_clear_error (&error);
      failed |= gtorch_device_check (gtorch_impl_device (x), NULL);
      failed |= gtorch_op_add (x, x, 1, &error) != NULL
                || !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED);
      g_clear_error (&error);
      failed |=
          gtorch_op_empty (shape, 1, GTORCH_DTYPE_FLOAT64, gtorch_impl_device (x), &error) != NULL
          || !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED);
      g_clear_error (&error);
      failed |= gtorch_impl_to_host ("read", x, &error) != NULL
                || !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED);
      g_clear_error (&error);
      failed |= gtorch_device_synchronize (gtorch_impl_device (x), NULL, &error)
                || !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED);
      gtorch_manual_seed (3);
      _exit (failed);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
  values = read_doubles (x); /* the parent is not affected */
  g_assert_cmpfloat (values[7], ==, 7);
}

#define TEST(name) g_test_add_func ("/GTorchCudaDriver/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (a_missing_library_is_named);
  TEST (an_old_library_is_named);
  TEST (an_old_driver_says_its_version);
  TEST (a_missing_device_is_reported);
  TEST (an_incomplete_driver_cannot_begin);
  TEST (a_missing_function_is_an_error);
  TEST (a_driver_that_tells_no_sizes_launches);
  TEST (indices_of_devices_are_checked);
  TEST (a_forked_child_gets_an_error);
  TEST (counting_harms_no_child);
  TEST (visible_devices_are_counted_alike);
  g_test_add_func ("/GTorchCudaDriver/visible_devices/subprocess/count", count_before_and_after);
  TEST (changed_numbers_of_devices_are_notified);
  TEST (no_signal_is_emitted_without_a_change);
  TEST (parts_of_gpus_are_counted_by_the_driver);
  TEST (the_environment_makes_launches_wait);
  g_test_add_func ("/GTorchCudaDriver/launches/subprocess/wait", launches_wait);
  g_test_add_func ("/GTorchCudaDriver/launches/subprocess/go_on", launches_go_on);
  TEST (a_launch_that_is_waited_for_reports_its_own_error);
  return g_test_run ();
}
