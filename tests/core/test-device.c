/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/memory/gtorch-storage-private.h>
#include <gtorch/device/gtorch-device-sample-private.h>
#include <gtorch/gtorch.h>

static void
names_find_devices (void)
{
  static const gchar *const good[] = { "cpu", "cpu:0" };
  g_autofree gchar *string = gtorch_device_to_string (gtorch_device_cpu ());
  guint i;

  for (i = 0; i < G_N_ELEMENTS (good); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchDevice) device = gtorch_device_new_from_string (good[i], &error);

      g_assert_no_error (error);
      g_assert_true (gtorch_device_equal (device, gtorch_device_cpu ()));
    }
  g_assert_cmpstr (string, ==, "cpu");
  {
    g_autoptr (GTorchDevice) bare = g_object_new (GTORCH_TYPE_DEVICE, NULL);

    g_assert_true (bare == gtorch_device_cpu ());
  }
  g_assert_cmpint (gtorch_device_get_device_type (gtorch_device_cpu ()), ==,
                   GTORCH_DEVICE_TYPE_CPU);
  g_assert_cmpint (gtorch_device_get_index (gtorch_device_cpu ()), ==, 0);
  g_assert_nonnull (gtorch_device_get_name (gtorch_device_cpu ()));
  g_assert_cmpuint (strlen (gtorch_device_get_name (gtorch_device_cpu ())), >, 0);
}

static void
wrong_names_are_errors (void)
{
  static const gchar *const bad[] = { "",        "gpu",   "cpu:1",         "cpu:",
                                      "cpu:-1",  "cpux",  "cuda:x",        "cuda:-1",
                                      "cuda:1 ", "CUDA ", "99999999999999" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_device_new_from_string (bad[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
      g_assert_nonnull (strstr (error->message, bad[i]));
    }
}

static void
missing_cuda_is_explained (void)
{
  static const gchar *const names[] = { "cuda", "cuda:1", "0" };
  GTorchDeviceManager *manager = gtorch_device_manager_get_default ();
  g_autoptr (GError) error = NULL;
  guint i;

  if (gtorch_device_manager_is_available (manager))
    {
      g_test_skip ("there is a GPU");
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_assert_null (gtorch_device_new_from_string (names[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
      g_assert_nonnull (strstr (error->message, "CUDA"));
      g_clear_error (&error);
    }
  g_assert_null (gtorch_device_cuda (-7, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
}

static void
manager_lists_the_devices (void)
{
  GListModel *list = G_LIST_MODEL (gtorch_device_manager_get_default ());
  guint n = gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ());
  g_autoptr (GTorchDevice) first = g_list_model_get_item (list, 0);

  g_assert_true (g_list_model_get_item_type (list) == GTORCH_TYPE_DEVICE);
  g_assert_cmpuint (g_list_model_get_n_items (list), ==, n + 1);
  g_assert_true (first == gtorch_device_cpu ());
  g_assert_null (g_list_model_get_item (list, n + 1));
}

static GTorchDevice *
current (void)
{
  return gtorch_device_get_current (GTORCH_DEVICE_TYPE_CPU, NULL);
}

static gpointer
get_current (gpointer data)
{
  return current ();
}

static void
current_and_default_device_are_the_cpu_initially (void)
{
  g_assert_true (current () == gtorch_device_cpu ());
  g_assert_true (gtorch_get_default_device () == gtorch_device_cpu ());
  {
    g_autoptr (GTorchDeviceGuard) guard = gtorch_device_guard_new (gtorch_device_cpu (), NULL);

    g_assert_true (current () == gtorch_device_cpu ());
    gtorch_device_guard_end (guard);
  }
  g_assert_true (g_thread_join (g_thread_new ("other", get_current, NULL)) == gtorch_device_cpu ());
  gtorch_set_default_device (NULL);
  g_assert_true (gtorch_get_default_device () == gtorch_device_cpu ());
}

static void
the_cpu_describes_itself (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  gint major = -1, minor = -1;
  guint n, threads, warp;
  guint64 total, shared, l2, available, all;
  gboolean integrated;
  g_autofree gchar *pci = NULL, *uuid = NULL, *driver = NULL;

  gtorch_device_get_capability (cpu, &major, &minor);
  g_assert_cmpint (major, ==, 0);
  g_assert_cmpint (minor, ==, 0);
  g_object_get (cpu, "total-memory", &total, "n-multiprocessors", &n, "threads-per-multiprocessor",
                &threads, "warp-size", &warp, "max-shared-memory", &shared, "l2-size", &l2,
                "pci-id", &pci, "uuid", &uuid, "integrated", &integrated, "driver-version", &driver,
                NULL);
  g_assert_cmpuint (total, ==, gtorch_device_get_total_memory (cpu));
  g_assert_cmpuint (total, >, 1 << 20);
  g_assert_true (gtorch_device_get_memory_info (cpu, &available, &all, NULL));
  g_assert_cmpuint (all, ==, total);
  g_assert_cmpuint (available, >, 0);
  g_assert_cmpuint (available, <=, total);
  g_assert_cmpuint (n, ==, g_get_num_processors ());
  g_assert_cmpuint (threads, ==, 1);
  g_assert_cmpuint (warp, ==, 1);
  g_assert_cmpuint (shared, ==, 0);
  g_assert_cmpuint (l2, ==, gtorch_device_get_l2_size (cpu));
  g_assert_null (pci);
  g_assert_null (uuid);
  g_assert_true (integrated);
  g_assert_null (driver);
}

static void
the_build_describes_itself (void)
{
  g_auto (GStrv) keys = gtorch_get_build_keys ();
  g_auto (GStrv) archs = gtorch_get_arch_list ();
  g_autofree gchar *version = gtorch_get_build_info ("version");
  g_autofree gchar *listed = gtorch_get_build_info ("cuda-archs");
  g_autofree gchar *joined = g_strjoinv (" ", archs);
  guint i;

  g_assert_cmpstr (version, ==, GTORCH_VERSION);
  g_assert_cmpstr (listed, ==, joined);
  g_assert_cmpuint (g_strv_length (keys), >=, 9);
  for (i = 0; keys[i] != NULL; i++)
    {
      g_autofree gchar *value = gtorch_get_build_info (keys[i]);

      g_assert_nonnull (value);
      if (!g_str_has_prefix (keys[i], "cuda"))
        g_assert_cmpstr (value, !=, "");
    }
  for (i = 0; archs[i] != NULL; i++)
    g_assert_true (g_str_has_prefix (archs[i], "sm_") || g_str_has_prefix (archs[i], "compute_"));
  g_assert_null (gtorch_get_build_info ("abacus"));
}

static gboolean
parse (const gchar *option, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) args = g_new0 (gchar *, 3);

  args[0] = g_strdup ("program");
  args[1] = g_strdup (option);
  g_option_context_add_group (context, gtorch_get_option_group ());
  return g_option_context_parse_strv (context, &args, error);
}

static void
options_set_the_device (void)
{
  g_autoptr (GError) error = NULL;
  guint n_threads = gtorch_get_num_threads ();

  g_assert_true (parse ("--device=cpu", &error));
  g_assert_true (parse ("--disable-cuda", &error));
  g_assert_no_error (error);
  g_assert_false (parse ("--device=abacus", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_clear_error (&error);
  g_assert_true (parse ("--threads=1", &error));
  g_assert_cmpuint (gtorch_get_num_threads (), ==, 1);
  g_assert_false (parse ("--threads=0", &error));
  g_assert_nonnull (error);
  g_assert_true (gtorch_set_num_threads (n_threads, NULL));
}

static void
count (guint *n)
{
  (*n)++;
}

static void
other_arguments_are_kept (void)
{
  const gchar *arguments[] = { "--device=cpu", "a",    "-x", "--help", "--device", "cpu",
                               "--other=1",    "-5.0", "--", "b",      "--device", NULL };
  const gchar *none[] = { NULL };
  const gchar *wrong[] = { "--device=abacus", NULL };
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) rest = gtorch_parse_options (arguments, &error);
  g_auto (GStrv) nothing = NULL;
  g_autofree gchar *text = NULL;

  g_assert_no_error (error);
  text = g_strjoinv (" ", rest);
  g_assert_cmpstr (text, ==, "a -x --help --other=1 -5.0 -- b --device");
  nothing = gtorch_parse_options (none, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (nothing), ==, 0);
  g_assert_null (gtorch_parse_options (wrong, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
}

static void
applications_take_the_options (void)
{
  g_autoptr (GApplication) app = g_application_new (NULL, G_APPLICATION_NON_UNIQUE);
  gchar *arguments[] = { (gchar *) "program", (gchar *) "--disable-cuda", NULL };
  guint n_times = 0;

  gtorch_add_options (app);
  g_signal_connect_swapped (app, "activate", G_CALLBACK (count), &n_times);
  g_assert_cmpint (g_application_run (app, 2, arguments), ==, 0);
  g_assert_cmpuint (n_times, ==, 1);
  g_assert_true (gtorch_get_default_device () == gtorch_device_cpu ());
}

static void
number_of_threads_is_checked (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_set_num_threads (0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_set_num_threads (G_MININT, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpuint (gtorch_get_num_threads (), >=, 1);
}

static GTorchStorage *
alloc (gsize n_bytes)
{
  g_autoptr (GError) error = NULL;
  GTorchStorage *storage = gtorch_storage_new (gtorch_device_cpu (), n_bytes, &error);

  g_assert_no_error (error);
  g_assert_cmpuint ((guintptr) storage->data % 64, ==, 0);
  g_assert_cmpuint (storage->n_bytes, ==, n_bytes);
  if (n_bytes > 0)
    {
      ((guint8 *) storage->data)[0] = 1;
      ((guint8 *) storage->data)[n_bytes - 1] = 2;
    }
  return storage;
}

static void
memory_of_every_size_is_aligned_and_counted (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  guint64 before = gtorch_device_get_memory_allocated (cpu);
  GTorchStorage *storages[2000];
  gsize sum = 0;
  guint i, round;

  for (round = 0; round < 3; round++)
    {
      for (i = 0, sum = 0; i < G_N_ELEMENTS (storages); i++)
        {
          gsize n = i < 1200 ? i : (gsize) i * (i % 97) * 11;

          storages[i] = alloc (n);
          memset (storages[i]->data, (int) i, n);
          sum += n;
        }
      g_assert_cmpuint (gtorch_device_get_memory_allocated (cpu) - before, >=, sum);
      g_assert_cmpuint (gtorch_device_get_memory_allocated (cpu) - before, <, sum + sum / 3);
      for (i = 0; i < G_N_ELEMENTS (storages); i++)
        {
          gsize n = storages[i]->n_bytes;

          if (n > 0)
            {
              g_assert_cmpuint (((guint8 *) storages[i]->data)[0], ==, (guint8) i);
              g_assert_cmpuint (((guint8 *) storages[i]->data)[n - 1], ==, (guint8) i);
            }
          gtorch_storage_unref (storages[i]);
        }
      g_assert_cmpuint (gtorch_device_get_memory_allocated (cpu), ==, before);
    }
}

static void
large_memory_is_cached_and_freed (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  const gsize size = 64 << 20;
  guint64 reserved;
  GTorchStorage *storage;
  gpointer data;

  gtorch_device_empty_cache (cpu);
  gtorch_device_reset_peak_memory (cpu);
  reserved = gtorch_device_get_memory_reserved (cpu);
  storage = alloc (size);
  data = storage->data;
  gtorch_storage_unref (storage);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (cpu), >=, size);
  g_assert_cmpuint (gtorch_device_get_peak_memory_reserved (cpu), >=, reserved + size);
  storage = alloc (size - 1000000);
#ifndef __SANITIZE_ADDRESS__
  g_assert_true (storage->data == data); /* the same pages are reused */
#else
  g_assert_nonnull (data);
#endif
  g_assert_cmpuint (gtorch_device_get_memory_reserved (cpu), >=, reserved + size - 1000000);
  gtorch_storage_unref (storage);
  gtorch_device_empty_cache (cpu);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (cpu), <=, reserved);
  gtorch_device_reset_peak_memory (cpu);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (cpu), <, size);
}

static void
excessive_allocations_are_errors (void)
{
  static const gsize sizes[] = { (gsize) 1 << 50, G_MAXSIZE, G_MAXSIZE - 63, G_MAXSSIZE };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree gchar *number = g_format_size_full (sizes[i], G_FORMAT_SIZE_IEC_UNITS);

      g_assert_null (gtorch_storage_new (gtorch_device_cpu (), sizes[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
      g_assert_nonnull (strstr (error->message, number));
    }
  g_assert_cmpuint (gtorch_device_get_total_memory (gtorch_device_cpu ()), >, 1 << 20);
}

/* Allocates all of the memory in parts: the limit applies to the sum. */
static void
sum_of_allocations_is_bounded (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  gsize part = gtorch_device_get_total_memory (cpu) / 10 * 3;
  g_autoptr (GError) error = NULL;
  GTorchStorage *storages[8] = { NULL };
  guint i;

  if (part > G_GUINT64_CONSTANT (1) << 45)
    {
      g_test_skip ("this much address space may not be had");
      return;
    }
  for (i = 0; i < 8; i++)
    if ((storages[i] = gtorch_storage_new (cpu, part, &error)) == NULL)
      break;
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpuint (i, ==, 3);
  while (i-- > 0)
    gtorch_storage_unref (storages[i]);
}

static void
on_pressure (GTorchDevice *device, guint64 n_bytes, gpointer data)
{
  GTorchStorage **garbage = data;

  g_assert_cmpuint (n_bytes, >, 0);
  g_clear_pointer (garbage, gtorch_storage_unref);
}

static void
pressure_lets_programs_drop_memory (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  guint64 threshold = gtorch_device_get_pressure_threshold (cpu);
  GTorchStorage *garbage = alloc (30 << 20), *storage;
  gulong id = g_signal_connect (cpu, "memory-pressure", G_CALLBACK (on_pressure), &garbage);

  gtorch_device_set_pressure_threshold (cpu, 10 << 20);
  storage = alloc (5 << 20);
  g_assert_nonnull (garbage);
  gtorch_storage_unref (storage);
  storage = alloc (20 << 20);
  g_assert_null (garbage);
  gtorch_storage_unref (storage);
  g_signal_handler_disconnect (cpu, id);
  gtorch_device_set_pressure_threshold (cpu, threshold);
}

static GMutex queue_lock;

static void
push (GQueue *queue, GTorchStorage *storage)
{
  g_mutex_lock (&queue_lock);
  g_queue_push_tail (queue, storage);
  g_mutex_unlock (&queue_lock);
}

static GTorchStorage *
pop (GQueue *queue)
{
  GTorchStorage *storage;

  g_mutex_lock (&queue_lock);
  storage = g_queue_pop_head (queue);
  g_mutex_unlock (&queue_lock);
  return storage;
}

static gpointer
churn (gpointer data)
{
  GQueue *queue = data;
  GTorchStorage *kept[64] = { NULL };
  guint i;

  for (i = 0; i < 20000; i++)
    {
      GTorchStorage **slot = &kept[(i * 7) % 64];

      if (*slot != NULL && i % 5 == 0)
        push (queue, g_steal_pointer (slot));
      g_clear_pointer (slot, gtorch_storage_unref);
      *slot = alloc ((i * 31) % 5000 + (i % 1000 == 0) * 2000000);
      if (i % 5 == 1)
        {
          GTorchStorage *other = pop (queue);

          g_clear_pointer (&other, gtorch_storage_unref);
        }
    }
  for (i = 0; i < 64; i++)
    g_clear_pointer (&kept[i], gtorch_storage_unref);
  return NULL;
}

static void
threads_free_what_others_allocated (void)
{
  guint64 before = gtorch_device_get_memory_allocated (gtorch_device_cpu ());
  g_autoptr (GQueue) queue = g_queue_new ();
  GThread *threads[4];
  GTorchStorage *rest;
  guint i;

  for (i = 0; i < 4; i++)
    threads[i] = g_thread_new ("churn", churn, queue);
  for (i = 0; i < 4; i++)
    g_thread_join (threads[i]);
  while ((rest = pop (queue)) != NULL)
    gtorch_storage_unref (rest);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gtorch_device_cpu ()), ==, before);
}

static void
small_blocks_are_fast (void)
{
  gint64 begin, best = G_MAXINT64;
  guint i, round;

  for (round = 0; round < 5; round++)
    {
      begin = g_get_monotonic_time ();
      for (i = 0; i < 1000000; i++)
        gtorch_storage_unref (gtorch_storage_new (gtorch_device_cpu (), 256, NULL));
      best = MIN (best, g_get_monotonic_time () - begin);
    }
  g_test_minimized_result (best / 1000.0, "alloc and free of 256 bytes: %.1f ns", best / 1000.0);
}

static void
precision_is_kept_and_notified (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  GTorchPrecision matmul, conv;
  guint n = 0;
  gulong id = g_signal_connect_swapped (cpu, "notify::matmul-precision", G_CALLBACK (count), &n);

  g_assert_cmpint (gtorch_device_get_matmul_precision (cpu), ==, GTORCH_PRECISION_IEEE);
  g_assert_cmpint (gtorch_device_get_conv_precision (cpu), ==, GTORCH_PRECISION_IEEE);
  gtorch_device_set_matmul_precision (cpu, GTORCH_PRECISION_TF32);
  gtorch_device_set_matmul_precision (cpu, GTORCH_PRECISION_TF32);
  g_assert_cmpuint (n, ==, 1);
  g_object_get (cpu, "matmul-precision", &matmul, "conv-precision", &conv, NULL);
  g_assert_cmpint (matmul, ==, GTORCH_PRECISION_TF32);
  g_assert_cmpint (conv, ==, GTORCH_PRECISION_IEEE);
  g_object_set (cpu, "matmul-precision", GTORCH_PRECISION_IEEE, "conv-precision",
                GTORCH_PRECISION_TF32, NULL);
  g_assert_cmpint (gtorch_device_get_matmul_precision (cpu), ==, GTORCH_PRECISION_IEEE);
  g_assert_cmpint (gtorch_device_get_conv_precision (cpu), ==, GTORCH_PRECISION_TF32);
  g_assert_cmpuint (n, ==, 2);

  g_test_expect_message ("GTorch", G_LOG_LEVEL_CRITICAL, "*set_conv_precision*precision*");
  gtorch_device_set_conv_precision (cpu, 7);
  g_test_assert_expected_messages ();
  g_assert_cmpint (gtorch_device_get_conv_precision (cpu), ==, GTORCH_PRECISION_TF32);
  gtorch_device_set_conv_precision (cpu, GTORCH_PRECISION_IEEE);
  g_signal_handler_disconnect (cpu, id);
}

static void
choices_are_kept_and_notified (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  gboolean benchmark, deterministic;
  guint n = 0, m = 0;
  gulong ids[] = {
    g_signal_connect_swapped (cpu, "notify::benchmark", G_CALLBACK (count), &n),
    g_signal_connect_swapped (cpu, "notify::deterministic", G_CALLBACK (count), &m),
  };

  g_assert_false (gtorch_device_get_benchmark (cpu));
  g_assert_false (gtorch_device_get_deterministic (cpu));
  gtorch_device_set_benchmark (cpu, 2);
  gtorch_device_set_benchmark (cpu, TRUE);
  g_assert_cmpuint (n, ==, 1);
  g_object_get (cpu, "benchmark", &benchmark, "deterministic", &deterministic, NULL);
  g_assert_cmpint (benchmark, ==, TRUE);
  g_assert_false (deterministic);
  g_object_set (cpu, "benchmark", FALSE, "deterministic", TRUE, NULL);
  g_assert_false (gtorch_device_get_benchmark (cpu));
  g_assert_true (gtorch_device_get_deterministic (cpu));
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpuint (m, ==, 1);
  gtorch_device_set_deterministic (cpu, FALSE);
  g_signal_handler_disconnect (cpu, ids[0]);
  g_signal_handler_disconnect (cpu, ids[1]);
}

#define TEST(name) g_test_add_func ("/GTorch/device/" #name, name)

static void
never_asked (GObject *object, GTorchDeviceSample *sample, const GError *error)
{
  g_assert_not_reached ();
}

/* AddressSanitizer sees whether the pending answer is dropped before its context. */
static void
pending_answers_are_dropped_before_their_context (void)
{
  GMainContext *context = g_main_context_new ();
  g_autoptr (GObject) object = g_object_new (G_TYPE_OBJECT, NULL);
  GTorchWatch *watch =
      gtorch_watch_new (gtorch_device_cpu (), 1000, TRUE, context, object, never_asked);
  gint64 limit = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;

  while (!g_main_context_pending (context))
    {
      g_assert_cmpint (g_get_monotonic_time (), <, limit);
      g_thread_yield ();
    }
  g_main_context_unref (context);
  gtorch_watch_stop (watch);
  g_assert_cmpuint (object->ref_count, ==, 1);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (names_find_devices);
  TEST (wrong_names_are_errors);
  TEST (missing_cuda_is_explained);
  TEST (manager_lists_the_devices);
  TEST (current_and_default_device_are_the_cpu_initially);
  TEST (the_cpu_describes_itself);
  TEST (the_build_describes_itself);
  TEST (options_set_the_device);
  TEST (other_arguments_are_kept);
  TEST (applications_take_the_options);
  TEST (number_of_threads_is_checked);
  TEST (memory_of_every_size_is_aligned_and_counted);
  TEST (large_memory_is_cached_and_freed);
  TEST (excessive_allocations_are_errors);
  TEST (sum_of_allocations_is_bounded);
  TEST (pressure_lets_programs_drop_memory);
  TEST (precision_is_kept_and_notified);
  TEST (choices_are_kept_and_notified);
  TEST (threads_free_what_others_allocated);
  TEST (pending_answers_are_dropped_before_their_context);
  if (g_test_perf ())
    TEST (small_blocks_are_fast);
  return g_test_run ();
}
