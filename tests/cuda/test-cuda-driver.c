/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Drivers that are not there, too old, without devices or incomplete: each time an error that says so, in a
 * process of its own, since a process looks for the driver once. */

#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cuda-test.h"

/* The message for the first device, which there must not be. */
static void
print_reason (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_device_manager_is_available (gtorch_device_manager_get_default ()));
  g_assert_null (gtorch_device_cuda (0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_printerr ("%s\n", error->message);
}

/* Runs the case once more, in a process with the settings; TRUE in the new one. */
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
no_device_is_said (void)
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
  g_test_trap_assert_stderr ("*cuInit: operation not supported*");
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

static void
numbers_of_devices_end (void)
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
      const gint64 shape[] = { 1 << 20 };
      gint failed = 0;

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
      _exit (failed);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
  values = read_doubles (x); /* the parent goes on */
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
  TEST (no_device_is_said);
  TEST (an_incomplete_driver_cannot_begin);
  TEST (a_missing_function_is_an_error);
  TEST (numbers_of_devices_end);
  TEST (a_forked_child_gets_an_error);
  return g_test_run ();
}
