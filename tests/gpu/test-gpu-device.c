/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The properties of real GPUs, monitoring, peer access, and child processes. */

#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gpu-test.h"

/* exit status of a child that was forked after counting; -1: there was none */
static gint child_status = -1;

/* Must run first: this process must not have initialised CUDA. */
static void
count_and_fork (void)
{
  gint status;
  pid_t child;

  if (!gtorch_device_manager_is_available (gtorch_device_manager_get_default ()))
    return;
  child = fork ();
  if (child == 0)
    {
      g_autoptr (GError) error = NULL;
      GTorchDevice *device = gtorch_device_cuda (0, &error);
      g_autoptr (GTorchTensor) x =
          device != NULL ? gtorch_full (GTORCH_SHAPE (5), 2, GTORCH_DTYPE_FLOAT32, device, &error)
                         : NULL;
      g_autoptr (GTorchTensor) sum =
          x != NULL ? gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error) : NULL;

      if (error != NULL)
        g_printerr ("# in the child: %s\n", error->message);
      _exit (sum != NULL && gtorch_tensor_item_double (sum, NULL) == 10 ? 0 : 1);
    }
  if (waitpid (child, &status, 0) == child)
    child_status = WIFEXITED (status) ? WEXITSTATUS (status) : 255;
}

static void
counting_harms_no_child (void)
{
  g_autofree gchar *nvml = gtorch_get_cuda_library_version ("nvml", NULL);

  if (nvml == NULL)
    g_test_skip ("NVIDIA's management library is missing");
  else
    g_assert_cmpint (child_status, ==, 0);
}

static void
a_forked_child_gets_an_error (void)
{
  gint status;
  pid_t child = fork ();

  if (child == 0)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x =
          gtorch_zeros (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT32, gpu, &error);

      if (x == NULL && g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FORKED))
        _exit (0);
      g_printerr ("# the child: %s\n", x != NULL ? "has a tensor" : error->message);
      _exit (1);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
}

static void
a_gpu_describes_itself (void)
{
  gint major, minor;

  gtorch_device_get_capability (gpu, &major, &minor);
  g_assert_cmpint (major, >=, 7);
  g_assert_cmpint (minor, <, 10);
  g_assert_cmpuint (gtorch_device_get_total_memory (gpu), >, 1 << 30);
  g_assert_cmpuint (gtorch_device_get_n_multiprocessors (gpu), >, 1);
  g_assert_cmpuint (gtorch_device_get_threads_per_multiprocessor (gpu), >=, 1024);
  g_assert_cmpuint (gtorch_device_get_warp_size (gpu), ==, 32);
  g_assert_cmpuint (gtorch_device_get_max_shared_memory (gpu), >=, 48 << 10);
  g_assert_cmpuint (gtorch_device_get_l2_size (gpu), >, 1 << 20);
  g_assert_true (g_regex_match_simple ("^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.0$",
                                       gtorch_device_get_pci_id (gpu), G_REGEX_CASELESS, 0));
  g_assert_true (g_regex_match_simple ("^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
                                       gtorch_device_get_uuid (gpu), 0, 0));
  g_assert_nonnull (gtorch_device_get_driver_version (gpu));
  g_assert_true (gtorch_device_get_default () == gpu);
  g_test_message ("%s, %d.%d, %s, %s, CUDA %s", gtorch_device_get_name (gpu), major, minor,
                  gtorch_device_get_pci_id (gpu), gtorch_device_get_uuid (gpu),
                  gtorch_device_get_driver_version (gpu));
}

static void
a_monitor_sees_memory_grow (void)
{
  const guint64 grown = G_GUINT64_CONSTANT (1) << 30;
  g_autoptr (GError) problem = NULL;
  g_autoptr (GTorchDeviceMonitor) monitor = gtorch_device_monitor_new (gpu, &problem);
  g_autoptr (GTorchTensor) x = NULL;
  gint64 end = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;
  guint64 before;

  g_assert_no_error (problem);
  g_assert_true (gtorch_device_monitor_set_interval (monitor, 100, NULL));
  before = gtorch_device_monitor_get_memory_used (monitor);
  g_assert_cmpuint (before, >, 0);
  g_assert_cmpint (gtorch_device_monitor_get_utilization (monitor), <=, 100);
  g_assert_cmpint (gtorch_device_monitor_get_temperature (monitor), <, 120);
  x = TRY (gtorch_zeros (GTORCH_SHAPE (grown), GTORCH_DTYPE_UINT8, gpu, &error));
  while (gtorch_device_monitor_get_memory_used (monitor) < before + grown / 2
         && g_get_monotonic_time () < end)
    {
      g_main_context_iteration (NULL, FALSE);
      g_usleep (1000);
    }
  g_assert_cmpuint (gtorch_device_monitor_get_memory_used (monitor), >=, before + grown / 2);
  g_assert_null (gtorch_device_monitor_get_error (monitor));
  g_test_message ("%d %%, %d degrees, %.1f W, %d and %d MHz, %u processes",
                  gtorch_device_monitor_get_utilization (monitor),
                  gtorch_device_monitor_get_temperature (monitor),
                  gtorch_device_monitor_get_power (monitor),
                  gtorch_device_monitor_get_sm_clock (monitor),
                  gtorch_device_monitor_get_memory_clock (monitor),
                  g_list_model_get_n_items (gtorch_device_monitor_get_processes (monitor)));
}

static void
copies_between_gpus_are_right (void)
{
  g_autoptr (GError) problem = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  GTorchDevice *other;
  guint i;

  if (gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ()) < 2)
    {
      g_test_skip ("only one GPU");
      return;
    }
  other = gtorch_device_cuda (1, &problem);
  g_assert_no_error (problem);
  x = TRY (gtorch_randn (GTORCH_SHAPE (1000, 1003), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) y = on (x, other);
      g_autoptr (GTorchTensor) z = on (y, gpu);
      g_autoptr (GTorchTensor) expected = on (x, gtorch_device_cpu ());
      g_autoptr (GTorchTensor) got = on (z, gtorch_device_cpu ());
      g_autoptr (GBytes) a = gtorch_tensor_get_bytes (expected, NULL);
      g_autoptr (GBytes) b = gtorch_tensor_get_bytes (got, NULL);

      g_assert_true (g_bytes_equal (a, b));
      if (!gtorch_device_can_access_peer (gpu, other))
        return;
      gtorch_device_enable_peer (gpu, other, &problem);
      g_assert_no_error (problem);
      gtorch_device_enable_peer (other, gpu, &problem);
      g_assert_no_error (problem);
    }
}

int
main (int argc, char *argv[])
{
  count_and_fork ();
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (counting_harms_no_child);
  ADD (a_gpu_describes_itself);
  ADD (a_monitor_sees_memory_grow);
  ADD (copies_between_gpus_are_right);
  ADD (a_forked_child_gets_an_error);
  return g_test_run ();
}
