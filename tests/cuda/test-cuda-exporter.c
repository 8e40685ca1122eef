/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Exporters of programs that use GPUs, on the fake driver: blocks of memory, streams, and statistics of
 * tensors there. tests/export has the rest. */

#include "config.h"

#include <stdlib.h>

#include "cuda-test.h"

static GVariant *
ask (GTorchExporter *exporter, const gchar *method, GVariant *arguments)
{
  g_autofree gchar *name = gtorch_exporter_dup_bus_name (exporter);
  g_autoptr (GDBusConnection) bus = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, NULL);
  g_autoptr (GError) error = NULL;
  GVariant *answer;

  g_dbus_connection_set_exit_on_close (bus, FALSE);
  answer =
      g_dbus_connection_call_sync (bus, name, "/org/gtorch/Program1", "org.gtorch.Program1", method,
                                   arguments, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
  g_assert_no_error (error);
  return answer;
}

static GTorchExporter *
started (void)
{
  g_autoptr (GError) error = NULL;
  GTorchExporter *exporter = gtorch_exporter_new ("test");

  g_assert_true (gtorch_exporter_start (exporter, NULL, &error));
  return exporter;
}

/* The bytes that tensors have by the blocks. */
static guint64
count_used (GTorchExporter *exporter, guint64 *total)
{
  g_autoptr (GVariant) answer =
      ask (exporter, "GetMemoryBlocks", g_variant_new ("(su)", "cuda:0", 100000));
  g_autoptr (GVariantIter) segments = NULL;
  GVariantIter *blocks;
  guint64 size, block_size, used = 0, sum;
  gboolean is_complete;
  guint8 state;

  *total = 0;
  g_variant_get (answer, "(ba(ttsta(tty)))", &is_complete, &segments);
  g_assert_true (is_complete);
  while (g_variant_iter_loop (segments, "(ttsta(tty))", NULL, &size, NULL, NULL, &blocks))
    {
      sum = 0;
      while (g_variant_iter_next (blocks, "(tty)", &block_size, NULL, &state))
        {
          sum += block_size;
          used += state == 2 ? block_size : 0;
          g_assert_cmpuint (state, <=, 2);
        }
      g_assert_cmpuint (sum, ==, size);
      *total += size;
    }
  return used;
}

static void
blocks_are_those_of_tensors (void)
{
  g_autoptr (GTorchExporter) exporter = started ();
  GTorchImpl *small = bytes (1000), *large = bytes (5 * MIB);
  g_autoptr (GVariant) first = NULL;
  guint64 total, with = count_used (exporter, &total), reserved = total, without;
  gboolean is_complete;

  g_assert_cmpuint (with, ==, (guint64) gpu_stat (0, "allocated_bytes.all.current"));
  g_assert_cmpuint (total, ==, (guint64) gpu_stat (0, "reserved_bytes.all.current"));
  gtorch_impl_unref (large);
  without = count_used (exporter, &total);
  g_assert_cmpuint (with - without, >=, (guint64) 5 * MIB);
  g_assert_cmpuint (total, <=, reserved);
  first = ask (exporter, "GetMemoryBlocks", g_variant_new ("(su)", "cuda:0", 1));
  g_variant_get (first, "(b@a(ttsta(tty)))", &is_complete, NULL);
  g_assert_false (is_complete);
  gtorch_impl_unref (small);
}

static void
streams_of_gpus_are_listed (void)
{
  g_autoptr (GTorchExporter) exporter = started ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (1), -1, &error);
  g_autoptr (GVariant) answer = ask (exporter, "ListStreams", NULL);
  g_autoptr (GVariant) list = g_variant_get_child_value (answer, 0);
  g_autoptr (GVariant) latest = g_variant_get_child_value (list, 0);
  g_autoptr (GVariant) devices = ask (exporter, "ListDevices", NULL);
  g_autofree gchar *text = g_variant_print (devices, FALSE);
  const gchar *device;
  gint priority;

  g_assert_true (g_variant_lookup (latest, "device", "&s", &device));
  g_assert_cmpstr (device, ==, "cuda:1");
  g_assert_true (g_variant_lookup (latest, "priority", "i", &priority));
  g_assert_cmpint (priority, ==, gtorch_stream_get_priority (stream));
  g_assert_nonnull (strstr (text, "'cuda:1'"));
}

static void
tensors_on_gpus_have_statistics (void)
{
  g_autoptr (GTorchExporter) exporter = started ();
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_sequential_new ());
  const gdouble values[] = { 1, 2, 3, 4 };
  const gint64 n = 4;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor =
      gtorch_tensor_new_from_doubles (values, 4, &n, 1, GTORCH_DTYPE_FLOAT32, gpu (0), &error);
  g_autoptr (GTorchParameter) parameter = gtorch_parameter_new (tensor, TRUE, &error);
  g_autoptr (GVariant) answer = NULL, statistics = NULL;
  gdouble mean = 0;

  g_assert_true (gtorch_module_register_parameter (module, "w", parameter, &error)
                 && gtorch_exporter_add_module (exporter, "net", module, &error));
  answer = ask (exporter, "GetParameterStatistics", g_variant_new ("(ssu)", "net", "w", 2));
  statistics = g_variant_get_child_value (answer, 0);
  g_assert_true (g_variant_lookup (statistics, "mean", "d", &mean));
  g_assert_cmpfloat (mean, ==, 2.5);
}

#define TEST(name) g_test_add_func ("/GTorchExporter/gpu/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_autofree gchar *daemon_program = NULL;
  GTestDBus *daemon;
  gint result;

#ifdef __SANITIZE_THREAD__
  g_print ("1..0 # SKIP GLib's threads of the bus are not seen\n");
  return 0;
#endif
  g_test_init (&argc, &argv, NULL);
  daemon_program = g_find_program_in_path ("dbus-daemon");
  if (daemon_program == NULL)
    {
      g_print ("1..0 # SKIP dbus-daemon is not installed\n");
      return 0;
    }
  daemon = g_test_dbus_new (G_TEST_DBUS_NONE);
  g_test_dbus_up (daemon);
  TEST (blocks_are_those_of_tensors);
  TEST (streams_of_gpus_are_listed);
  TEST (tensors_on_gpus_have_statistics);
  result = g_test_run ();
  g_test_dbus_down (daemon);
  g_object_unref (daemon);
  return result;
}
