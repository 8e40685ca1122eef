/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The properties of GPUs, and the choice of one. */

#include "config.h"

#include <gtorch/cuda/driver/gtorch-cuda-facts-private.h>

#include "cuda-test.h"

/* Runs the case once more in a process with these settings. Returns TRUE in that process. */
static gboolean
in_process (const gchar *settings, const gchar *visible)
{
  g_autofree gchar *former = g_strdup (g_getenv ("GTORCH_FAKE_CUDA"));

  if (g_test_subprocess ())
    return TRUE;
  g_setenv ("GTORCH_FAKE_CUDA", settings, TRUE);
  if (visible != NULL)
    g_setenv ("CUDA_VISIBLE_DEVICES", visible, TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_setenv ("GTORCH_FAKE_CUDA", former, TRUE);
  g_unsetenv ("CUDA_VISIBLE_DEVICES");
  g_test_trap_assert_passed ();
  return FALSE;
}

static void
a_gpu_describes_itself (void)
{
  gint major, minor, p_major, p_minor;
  guint n, threads, warp;
  guint64 total, shared, l2;
  gboolean integrated;
  g_autofree gchar *pci = NULL, *uuid = NULL, *driver = NULL, *name = NULL;

  gtorch_device_get_capability (gpu (1), &major, &minor);
  gtorch_device_get_capability (gpu (1), NULL, NULL);
  g_assert_cmpint (major, ==, 9);
  g_assert_cmpint (minor, ==, 0);
  g_object_get (gpu (1), "name", &name, "compute-major", &p_major, "compute-minor", &p_minor,
                "total-memory", &total, "n-multiprocessors", &n, "threads-per-multiprocessor",
                &threads, "warp-size", &warp, "max-shared-memory", &shared, "l2-size", &l2,
                "pci-id", &pci, "uuid", &uuid, "integrated", &integrated, "driver-version", &driver,
                NULL);
  g_assert_cmpstr (name, ==, "Fake 1");
  g_assert_cmpint (p_major, ==, 9);
  g_assert_cmpint (p_minor, ==, 0);
  g_assert_cmpuint (total, ==, G_GUINT64_CONSTANT (1) << 30);
  g_assert_cmpuint (n, ==, 4);
  g_assert_cmpuint (threads, ==, 2048);
  g_assert_cmpuint (warp, ==, 32);
  g_assert_cmpuint (shared, ==, 227 << 10);
  g_assert_cmpuint (l2, ==, 4 << 20);
  g_assert_cmpstr (pci, ==, "0000:02:00.0");
  g_assert_cmpstr (uuid, ==, "GPU-fafafafa-fafa-fafa-fafa-fafafafafa01");
  g_assert_false (integrated);
  g_assert_cmpstr (driver, ==, "13.0");
  g_assert_cmpuint (fake_cuda_get_calls ("cuDevicePrimaryCtxRetain"), ==, 0);
}

static void
the_first_gpu_is_the_default (void)
{
  g_assert_true (gtorch_device_get_default () == gpu (0));
  g_assert_true (gtorch_get_default_device () == gtorch_device_cpu ());
  g_assert_cmpuint (fake_cuda_get_calls ("cuDevicePrimaryCtxRetain"), ==, 0);
}

static void
a_prohibited_gpu_is_not_the_default (void)
{
  if (!in_process ("devices=2,mode=2", NULL))
    return;
  g_assert_true (gtorch_device_get_default () == gtorch_device_cpu ());
  g_assert_true (gtorch_device_manager_is_available (gtorch_device_manager_get_default ()));
}

static void
without_a_gpu_the_cpu_is_the_default (void)
{
  if (!in_process ("devices=0", NULL))
    return;
  g_assert_true (gtorch_device_get_default () == gtorch_device_cpu ());
}

static void
architectures_cover_what_they_can_run_on (void)
{
  static const struct
  {
    const gchar *arch;
    gint major, minor;
    gboolean covered;
  } cases[] = {
    { "sm_80", 8, 0, TRUE },          { "sm_80", 8, 9, TRUE },
    { "sm_80", 7, 5, FALSE },         { "sm_80", 9, 0, FALSE },
    { "sm_86", 8, 0, FALSE },         { "sm_90a", 9, 0, TRUE },
    { "sm_90a", 9, 1, FALSE },        { "sm_100f", 10, 3, TRUE },
    { "sm_100f", 11, 0, FALSE },      { "compute_120", 12, 0, TRUE },
    { "compute_120", 13, 1, TRUE },   { "compute_120", 10, 0, FALSE },
    { "compute_90a", 10, 0, FALSE },  { "compute_100f", 10, 3, TRUE },
    { "compute_100f", 12, 0, FALSE },
  };
  const gchar *none[] = { NULL };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const gchar *archs[] = { "sm_50", cases[i].arch, NULL };

      if (gtorch_archs_cover (archs, cases[i].major, cases[i].minor) != cases[i].covered)
        g_error ("%s and %d.%d", cases[i].arch, cases[i].major, cases[i].minor);
    }
  g_assert_false (gtorch_archs_cover (none, 9, 0));
}

static gboolean
parse (const gchar *options, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) args = g_strsplit (options, " ", -1);

  g_option_context_add_group (context, gtorch_get_option_group ());
  return g_option_context_parse_strv (context, &args, error);
}

static void
options_choose_the_device (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (parse ("program", &error));
  g_assert_true (gtorch_get_default_device () == gpu (0));
  g_assert_true (parse ("program --device=cuda:1", &error));
  g_assert_true (gtorch_get_default_device () == gpu (1));
  g_assert_true (parse ("program", &error)); /* does not change the current setting */
  g_assert_true (gtorch_get_default_device () == gpu (1));
  g_assert_true (parse ("program --disable-cuda --device=cuda:1", &error));
  g_assert_true (gtorch_get_default_device () == gtorch_device_cpu ());
  g_assert_true (parse ("program --device=1 --device=0", &error));
  g_assert_true (gtorch_get_default_device () == gpu (0));
  g_assert_no_error (error);
  g_assert_false (parse ("program --device=cuda:2", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_true (gtorch_get_default_device () == gpu (0));
  gtorch_set_default_device (NULL);
}

static void
disabled_cuda_is_left_alone (void)
{
  if (!in_process ("devices=2", NULL))
    return;
  g_assert_true (parse ("program --disable-cuda --device=cuda", NULL));
  g_assert_cmpuint (fake_cuda_get_calls (NULL), ==, 0);
}

static void
the_environment_hides_devices (void)
{
  if (!in_process ("devices=4", "2, GPU-fafafafa-fafa-fafa-fafa-fafafafafa00,9,1"))
    return;
  g_assert_cmpuint (gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ()),
                    ==, 2);
  g_assert_cmpstr (gtorch_device_get_name (gpu (0)), ==, "Fake 2");
  g_assert_cmpstr (gtorch_device_get_name (gpu (1)), ==, "Fake 0");
  g_assert_cmpuint (gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ()),
                    ==, 2);
}

static void
the_environment_can_hide_all (void)
{
  g_autoptr (GError) error = NULL;

  if (!in_process ("devices=4", ""))
    return;
  g_assert_false (gtorch_device_manager_is_available (gtorch_device_manager_get_default ()));
  g_assert_null (gtorch_device_new_from_string ("cuda", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_nonnull (strstr (error->message, "CUDA_ERROR_NO_DEVICE"));
}

static void
libraries_say_their_versions_or_packages (void)
{
  g_auto (GStrv) names = gtorch_get_cuda_libraries ();
  g_autofree gchar *driver = gtorch_get_build_info ("cuda-driver");
  g_autofree gchar *cublas = NULL, *cudnn = NULL, *none = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpstr (driver, ==, "13.0");
  g_assert_true (g_strv_contains ((const gchar *const *) names, "cublasLt"));
  g_assert_true (g_strv_contains ((const gchar *const *) names, "cudnn"));
  cublas = gtorch_get_cuda_library_version ("cublasLt", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (cublas, ==, "13.1.2");
  none = gtorch_get_cuda_library_version ("abacus", &error);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_clear_error (&error);
  cudnn = gtorch_get_cuda_library_version ("cudnn", &error);
  if (cudnn != NULL)
    {
      g_test_message ("cuDNN %s is installed here", cudnn);
      return;
    }
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_nonnull (strstr (error->message, "libcudnn.so.9"));
  g_assert_nonnull (strstr (error->message, "nvidia-cudnn-cu13"));
}

static void
the_driver_reports_free_memory (void)
{
  guint64 available = 0, less = 0, total = 0;
  g_autoptr (GError) error = NULL;
  GTorchImpl *x;

  gtorch_device_get_memory_info (gpu (1), &available, &total, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (total, ==, gtorch_device_get_total_memory (gpu (1)));
  g_assert_cmpuint (available, ==, total);
  x = ramp_1d (gpu (1), GTORCH_DTYPE_FLOAT32, 100);
  g_assert_true (gtorch_device_get_memory_info (gpu (1), &less, NULL, &error));
  g_assert_cmpuint (less, ==, total - gtorch_device_get_memory_reserved (gpu (1)));
  gtorch_impl_unref (x);
  g_assert_true (gtorch_device_get_memory_info (gpu (1), NULL, NULL, &error));

  fake_cuda_fail ("cuMemGetInfo", 1, CUDA_ERROR_INVALID_VALUE);
  g_assert_false (gtorch_device_get_memory_info (gpu (1), &available, &total, &error));
  g_assert_true (fake_cuda_clear_faults ());
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_cmpuint (available, ==, total);
}

static void
tensors_know_the_index_of_their_gpu (void)
{
  g_autoptr (GTorchTensor) there = gtorch_tensor_wrap (ramp_1d (gpu (1), GTORCH_DTYPE_FLOAT32, 3));
  g_autoptr (GTorchTensor) here = gtorch_ones (GTORCH_SHAPE (3), 0, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchDeviceGuard) guard = gtorch_device_guard_new (gpu (1), NULL);

  g_assert_cmpint (gtorch_tensor_get_device_index (there), ==, 1);
  g_assert_cmpint (gtorch_tensor_get_device_index (here), ==, -1);
  g_assert_true (gtorch_device_resolve (gtorch_device_cuda (-1, NULL)) == gpu (1));
}

static void
a_gpu_can_be_initialised_early (void)
{
  g_autoptr (GError) error = NULL;

  if (!in_process ("devices=1", NULL))
    return;
  fake_cuda_fail ("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_OUT_OF_MEMORY);
  g_assert_false (gtorch_init (&error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  g_assert_true (fake_cuda_clear_faults ());
  fake_cuda_reset_calls ();
  g_assert_true (gtorch_init (&error));
  g_assert_true (gtorch_init (&error));
  g_assert_cmpuint (fake_cuda_get_calls ("cuDevicePrimaryCtxRetain"), ==, 1);
}

static void
nothing_is_initialised_without_a_gpu (void)
{
  if (!in_process ("devices=0", NULL))
    return;
  g_assert_true (gtorch_init (NULL));
}

#define TEST(name) g_test_add_func ("/GTorchCudaDevice/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (a_gpu_describes_itself);
  TEST (the_first_gpu_is_the_default);
  TEST (a_prohibited_gpu_is_not_the_default);
  TEST (without_a_gpu_the_cpu_is_the_default);
  TEST (architectures_cover_what_they_can_run_on);
  TEST (options_choose_the_device);
  TEST (disabled_cuda_is_left_alone);
  TEST (the_environment_hides_devices);
  TEST (the_environment_can_hide_all);
  TEST (libraries_say_their_versions_or_packages);
  TEST (a_gpu_can_be_initialised_early);
  TEST (nothing_is_initialised_without_a_gpu);
  TEST (the_driver_reports_free_memory);
  TEST (tensors_know_the_index_of_their_gpu);
  return g_test_run ();
}
