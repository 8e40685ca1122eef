/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A driver without NVIDIA's other libraries. This program is not linked with any library of
 * tests/fake-cuda, since the loader would then search that folder. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

static gboolean
in_process (void)
{
  if (g_test_subprocess ())
    return TRUE;
  g_setenv ("GTORCH_CUDA_LIBRARY_PATH", "/nowhere", TRUE);
  g_setenv ("GTORCH_FAKE_CUDA", "devices=2", TRUE);
  g_unsetenv ("LD_LIBRARY_PATH");
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
  return FALSE;
}

static gboolean
is_installed (const gchar *name)
{
  g_autofree gchar *version = gtorch_get_cuda_library_version (name, NULL);

  if (version == NULL)
    return FALSE;
  g_test_message ("%s %s is installed here", name, version);
  return TRUE;
}

static void
a_monitor_names_the_library (void)
{
  g_autoptr (GTorchDeviceMonitor) monitor = NULL;
  g_autoptr (GError) error = NULL;
  GTorchDevice *device;

  if (!in_process () || is_installed ("nvml"))
    return;
  device = gtorch_device_cuda (0, &error);
  g_assert_no_error (error);
  monitor = gtorch_device_monitor_new (device, &error);
  g_assert_null (monitor);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_nonnull (
      strstr (error->message, "libnvidia-ml.so.1, for monitoring of GPUs, was not found"));
  g_assert_nonnull (strstr (error->message, "libnvidia-ml1"));
}

static void
the_driver_counts_devices_then (void)
{
  if (!in_process () || is_installed ("nvml"))
    return;
  g_assert_cmpuint (gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ()),
                    ==, 2);
}

static void
a_product_names_the_library (void)
{
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;

  if (!in_process () || is_installed ("cublasLt"))
    return;
  x = gtorch_ones (GTORCH_SHAPE (64, 64), GTORCH_DTYPE_FLOAT32, gtorch_device_cuda (0, NULL),
                   &error);
  g_assert_no_error (error);
  y = gtorch_tensor_matmul (x, x, &error);
  g_assert_null (y);
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, "matmul: "));
  g_assert_nonnull (strstr (error->message, "libcublasLt.so.13"));
  g_assert_nonnull (strstr (error->message, "nvidia-cublas"));
}

#define TEST(name) g_test_add_func ("/GTorchCudaMissing/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (a_monitor_names_the_library);
  TEST (the_driver_counts_devices_then);
  TEST (a_product_names_the_library);
  return g_test_run ();
}
