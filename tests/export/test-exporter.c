/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Programs on a session bus of the test's own: what they show, what they refuse, and that they go. */

#include "config.h"

#include <gtorch/export/gtorch-exporter-private.h>
#include <gtorch/gtorch.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tests/export/export-test.h>
#include <tests/sanitizer.h>
#include <tests/train/train-test.h>

/* Elements of a tensor whose statistics take a while. */
#ifdef __SANITIZE_THREAD__
#define N_MANY 50000
#else
#define N_MANY 1000000
#endif

static const gchar *program;

/* The programs on the bus. */
static GStrv
list_programs (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) answer =
      g_dbus_connection_call_sync (bus, "org.freedesktop.DBus", "/", "org.freedesktop.DBus",
                                   "ListNames", NULL, G_VARIANT_TYPE ("(as)"),
                                   G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
  g_autoptr (GStrvBuilder) found = g_strv_builder_new ();
  g_autofree const gchar **names = NULL;
  guint i;

  g_assert_no_error (error);
  g_variant_get (answer, "(^a&s)", &names);
  for (i = 0; names[i] != NULL; i++)
    if (g_str_has_prefix (names[i], NAME "."))
      g_strv_builder_add (found, names[i]);
  return g_strv_builder_end (found);
}

static void
wait_for_programs (guint n)
{
  gint64 end = g_get_monotonic_time () + LIMIT;

  for (;;)
    {
      g_auto (GStrv) names = list_programs ();

      if (g_strv_length (names) == n)
        return;
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      g_usleep (5000);
    }
}

/* A parameter with these values. */
static void
add_parameter (GTorchModule *module, const gchar *name, const gdouble *values, gint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor =
      gtorch_tensor_new_from_doubles (values, (gsize) n, &n, 1, GTORCH_DTYPE_FLOAT64, NULL, &error);
  g_autoptr (GTorchParameter) parameter = gtorch_parameter_new (tensor, TRUE, &error);

  g_assert_true (gtorch_module_register_parameter (module, name, parameter, &error));
  g_assert_no_error (error);
}

static GVariant *
get_statistics (GTorchExporter *exporter, const gchar *module, const gchar *parameter, guint bins)
{
  g_autoptr (GVariant) answer =
      ask (exporter, "GetParameterStatistics", g_variant_new ("(ssu)", module, parameter, bins));

  return g_variant_get_child_value (answer, 0);
}

static void
assert_text (GVariant *value, const gchar *expected)
{
  g_autofree gchar *text = g_variant_print (value, FALSE);

  g_assert_cmpstr (text, ==, expected);
}

static gdouble
number (GVariant *dictionary, const gchar *key)
{
  gdouble value = NAN;

  g_assert_true (g_variant_lookup (dictionary, key, "d", &value));
  return value;
}

static void
assert_counts (GVariant *statistics, const guint64 *expected, gsize n)
{
  g_autoptr (GVariant) counts =
      g_variant_lookup_value (statistics, "counts", G_VARIANT_TYPE ("at"));
  const guint64 *found;
  gsize length;

  g_assert_nonnull (counts);
  found = g_variant_get_fixed_array (counts, &length, sizeof (guint64));
  g_assert_cmpmem (found, length * sizeof (guint64), expected, n * sizeof (guint64));
}

/* --- cases --- */

static void
a_program_is_on_the_bus_from_start_to_stop (void)
{
  g_autoptr (GTorchExporter) exporter = gtorch_exporter_new ("test");
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = NULL;
  g_autofree gchar *name = NULL;

  wait_for_programs (0);
  g_assert_false (gtorch_exporter_is_active (exporter));
  g_assert_null (gtorch_exporter_dup_bus_name (exporter));
  g_assert_true (gtorch_exporter_start (exporter, NULL, &error));
  g_assert_true (gtorch_exporter_is_active (exporter));
  name = gtorch_exporter_dup_bus_name (exporter);
  names = list_programs ();
  g_assert_cmpstrv (names, ((const gchar *const[]){ name, NULL }));

  g_assert_false (gtorch_exporter_start (exporter, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "exporter_start: it is started already");
  g_clear_error (&error);

  gtorch_exporter_stop (exporter);
  gtorch_exporter_stop (exporter);
  g_assert_false (gtorch_exporter_is_active (exporter));
  wait_for_programs (0);
  g_assert_true (gtorch_exporter_start (exporter, NULL, &error));
  wait_for_programs (1);
  g_assert_true (gtorch_log_close (GTORCH_LOG (exporter), &error));
  wait_for_programs (0);
  g_assert_false (gtorch_exporter_start (exporter, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "exporter_start: the GTorchExporter is closed");
}

static void
several_exporters_go_with_their_last_reference (void)
{
  GTorchExporter *first = started ("first"), *second = started ("second");

  wait_for_programs (2);
  g_object_unref (first);
  wait_for_programs (1);
  g_object_unref (second);
  wait_for_programs (0);
}

static void
on_started (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_exporter_start_finish (GTORCH_EXPORTER (source), result, &error));
  g_assert_no_error (error);
  *(gboolean *) data = TRUE;
}

static void
on_failed (GObject *source, GAsyncResult *result, gpointer data)
{
  g_assert_false (gtorch_exporter_start_finish (GTORCH_EXPORTER (source), result, data));
}

static void
it_starts_asynchronously (void)
{
  g_autoptr (GTorchExporter) exporter = gtorch_exporter_new (NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  gboolean done = FALSE;

  gtorch_exporter_start_async (exporter, NULL, on_started, &done);
  g_assert_false (done);
  while (!done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (gtorch_exporter_is_active (exporter));
  gtorch_exporter_start_async (exporter, NULL, on_failed, &error);
  while (error == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_exporter_stop (exporter);
  g_cancellable_cancel (cancellable);
  gtorch_exporter_start_async (exporter, cancellable, on_failed, &error);
  while (error == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_false (gtorch_exporter_start (exporter, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
an_empty_name_is_refused (void)
{
  g_autoptr (GTorchExporter) exporter = gtorch_exporter_new ("");
  g_autoptr (GError) error = NULL, later = NULL;

  g_assert_false (gtorch_exporter_start (exporter, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "exporter_start: the name is empty");
  gtorch_exporter_start_async (exporter, NULL, on_failed, &later);
  while (later == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (later, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (later->message, ==, "exporter_start: the name is empty");
  g_assert_false (gtorch_exporter_is_active (exporter));
}

static void
without_a_bus_there_is_an_error (void)
{
  g_autoptr (GTorchExporter) exporter = gtorch_exporter_new ("test");
  g_autofree gchar *former = g_strdup (g_getenv ("DBUS_SESSION_BUS_ADDRESS"));
  g_autoptr (GError) error = NULL;

  g_setenv ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus", TRUE);
  g_assert_false (gtorch_exporter_start (exporter, NULL, &error));
  g_setenv ("DBUS_SESSION_BUS_ADDRESS", former, TRUE);
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, "exporter_start: "));
  g_clear_error (&error);
  g_assert_true (gtorch_exporter_start (exporter, NULL, &error));
}

static void
it_has_the_properties_of_the_program (void)
{
  g_autoptr (GTorchExporter) exporter = started ("a name");
  g_autoptr (GTorchExporter) unnamed = started (NULL);
  g_autofree gchar *name = gtorch_exporter_dup_bus_name (exporter);
  g_autofree gchar *own_name = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) answer =
      g_dbus_connection_call_sync (bus, name, PATH, "org.freedesktop.DBus.Properties", "GetAll",
                                   g_variant_new ("(s)", NAME), G_VARIANT_TYPE ("(a{sv})"),
                                   G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
  g_autoptr (GVariant) properties = NULL;
  const gchar *text;
  guint pid;
  gint64 time;

  g_assert_no_error (error);
  properties = g_variant_get_child_value (answer, 0);
  g_assert_true (g_variant_lookup (properties, "Name", "&s", &text));
  g_assert_cmpstr (text, ==, "a name");
  g_assert_true (g_variant_lookup (properties, "Version", "&s", &text));
  g_assert_cmpstr (text, ==, GTORCH_VERSION);
  g_assert_true (g_variant_lookup (properties, "Pid", "u", &pid));
  g_assert_cmpuint (pid, ==, getpid ());
  g_assert_true (g_variant_lookup (properties, "Started", "x", &time));
  g_assert_cmpint (ABS (time - g_get_real_time ()), <, LIMIT);
  g_object_get (unnamed, "name", &own_name, NULL);
  g_assert_cmpstr (own_name, ==, "test-exporter");
}

static void
devices_and_streams_are_listed (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GError) error = NULL;
  const gint64 n = 1 << 20;
  g_autoptr (GTorchTensor) tensor =
      gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);
  GTorchStream *stream = gtorch_stream_new (gtorch_device_cpu (), 0, &error);
  g_autoptr (GVariant) devices = ask (exporter, "ListDevices", NULL);
  g_autoptr (GVariant) statistics =
      ask (exporter, "GetAllocatorStatistics", g_variant_new ("(s)", "cpu"));
  g_autoptr (GVariant) with = ask (exporter, "ListStreams", NULL);
  g_autoptr (GVariant) without = NULL, list = NULL, cpu = NULL, table = NULL, streams = NULL,
                       one = NULL;
  guint64 allocated = 0, all = 0, submitted = 1, completed = 1;
  const gchar *id;

  list = g_variant_get_child_value (devices, 0);
  cpu = g_variant_get_child_value (list, 0);
  g_assert_true (g_variant_lookup (cpu, "device", "&s", &id));
  g_assert_cmpstr (id, ==, "cpu");
  g_assert_true (g_variant_lookup (cpu, "allocated", "t", &allocated));
  g_assert_cmpuint (allocated, >=, 4 << 20);
  table = g_variant_get_child_value (statistics, 0);
  g_assert_true (g_variant_lookup (table, "allocated_bytes.all.current", "t", &all));
  g_assert_cmpuint (all, >=, 4 << 20);

  streams = g_variant_get_child_value (with, 0);
  one = g_variant_get_child_value (streams, 0); /* the latest one */
  g_assert_true (g_variant_lookup (one, "device", "&s", &id));
  g_assert_cmpstr (id, ==, "cpu");
  g_assert_true (g_variant_lookup (one, "submitted", "t", &submitted));
  g_assert_true (g_variant_lookup (one, "completed", "t", &completed));
  g_assert_cmpuint (submitted, ==, completed);
  g_object_unref (stream);
  without = ask (exporter, "ListStreams", NULL);
  g_variant_unref (list);
  list = g_variant_get_child_value (without, 0);
  g_assert_cmpuint (g_variant_n_children (list), ==, g_variant_n_children (streams) - 1);
}

static void
parameters_have_statistics (void)
{
  static const gdouble values[] = { -1, 0, 0.5, 1, 3, NAN, INFINITY };
  static const guint64 of_values[] = { 1, 2, 1, 1 };
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchTensor) parameter = NULL, twice = NULL, sum = NULL;
  g_autoptr (GVariant) before = NULL, after = NULL, gradient = NULL;
  g_autoptr (GError) error = NULL;
  guint64 n;

  add_parameter (module, "weight", values, G_N_ELEMENTS (values));
  g_assert_true (gtorch_exporter_add_module (exporter, "net", module, &error));
  before = get_statistics (exporter, "net", "weight", 4);
  g_assert_null (g_variant_lookup_value (before, "gradient", NULL));
  g_assert_true (g_variant_lookup (before, "n-values", "t", &n));
  g_assert_cmpuint (n, ==, 7);
  g_assert_true (g_variant_lookup (before, "non-finite", "t", &n));
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpfloat (number (before, "minimum"), ==, -1);
  g_assert_cmpfloat (number (before, "maximum"), ==, 3);
  g_assert_cmpfloat_with_epsilon (number (before, "mean"), 0.7, 1e-12);
  g_assert_cmpfloat_with_epsilon (number (before, "norm"), sqrt (11.25), 1e-12);
  g_assert_cmpfloat_with_epsilon (number (before, "standard-deviation"), sqrt (1.76), 1e-12);
  assert_counts (before, of_values, 4);

  parameters = gtorch_module_get_parameters (module, TRUE);
  parameter = g_list_model_get_item (parameters, 0);
  twice = gtorch_tensor_mul_scalar (parameter, 2, &error);
  sum = gtorch_tensor_sum (twice, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  after = get_statistics (exporter, "net", "weight", 4);
  g_assert_true (g_variant_lookup (after, "gradient", "@a{sv}", &gradient));
  g_assert_cmpfloat (number (gradient, "minimum"), ==, 2);
  g_assert_cmpfloat (number (gradient, "mean"), ==, 2);
  g_assert_cmpfloat (number (gradient, "standard-deviation"), ==, 0);
  assert_counts (gradient, (const guint64[]){ 7, 0, 0, 0 }, 4); /* all in the first bin */
}

static void
parameters_of_any_size_have_statistics (void)
{
  static const gdouble rows[][2] = {
    { 1e308, -1e308 }, { 1e200, -1e200 }, { 1e-200, -1e-200 }, { 1e-310, -1e-310 }
  };
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GVariant) of_equal = NULL;

  add_parameter (module, "equal", (const gdouble[]){ 1.5e308, 1.5e308, 1.5e308 }, 3);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      const gchar name[] = { 'a' + i, '\0' };

      add_parameter (module, name, rows[i], 2);
    }
  g_assert_true (gtorch_exporter_add_module (exporter, "net", module, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      const gchar name[] = { 'a' + i, '\0' };
      const gdouble largest = rows[i][0];
      g_autoptr (GVariant) found = get_statistics (exporter, "net", name, 3);

      assert_counts (found, (const guint64[]){ 1, 0, 1 }, 3);
      g_assert_cmpfloat (number (found, "mean"), ==, 0);
      g_assert_cmpfloat_with_epsilon (number (found, "standard-deviation") / largest, 1, 1e-12);
      g_assert_cmpfloat_with_epsilon (number (found, "norm") / largest, G_SQRT2, 1e-12);
    }
  of_equal = get_statistics (exporter, "net", "equal", 3);
  g_assert_cmpfloat (number (of_equal, "mean"), ==, 1.5e308);
  g_assert_cmpfloat (number (of_equal, "standard-deviation"), ==, 0);
}

static void
parameters_that_are_not_contiguous_or_empty_have_statistics (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GTorchTensor) matrix = NULL, transposed = NULL, nothing = NULL, whole = NULL;
  g_autoptr (GTorchParameter) first = NULL, second = NULL, third = NULL;
  g_autoptr (GVariant) of_first = NULL, of_second = NULL, of_third = NULL;
  g_autoptr (GError) error = NULL;
  const gint64 zero = 0;
  guint64 n;

  matrix = gtorch_arange (0, 3000000, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  whole = gtorch_tensor_reshape (matrix, GTORCH_SHAPE (1500, 2000), &error);
  transposed = gtorch_tensor_transpose (whole, 0, 1, &error);
  nothing = gtorch_zeros (&zero, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  first = gtorch_parameter_new (transposed, TRUE, &error);
  second = gtorch_parameter_new (nothing, TRUE, &error);
  third = gtorch_parameter_new (whole, TRUE, &error);
  g_assert_true (gtorch_module_register_parameter (module, "transposed", first, &error)
                 && gtorch_module_register_parameter (module, "nothing", second, &error)
                 && gtorch_module_register_parameter (module, "whole", third, &error)
                 && gtorch_exporter_add_module (exporter, "net", module, &error));
  g_assert_no_error (error);
  of_first = get_statistics (exporter, "net", "transposed", 3);
  of_second = get_statistics (exporter, "net", "nothing", 3);
  of_third = get_statistics (exporter, "net", "whole", 3);
  g_assert_cmpfloat (number (of_first, "mean"), ==, 1499999.5);
  g_assert_cmpfloat (number (of_third, "mean"), ==, 1499999.5);
  assert_counts (of_first, (const guint64[]){ 1000000, 1000000, 1000000 }, 3);
  assert_counts (of_third, (const guint64[]){ 1000000, 1000000, 1000000 }, 3);
  g_assert_true (g_variant_lookup (of_second, "n-values", "t", &n));
  g_assert_cmpuint (n, ==, 0);
  g_assert_null (g_variant_lookup_value (of_second, "minimum", NULL));
}

static void
modules_go_and_are_replaced (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  GTorchModule *module = test_model (0);
  g_autoptr (GTorchModule) other = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GVariant) answer = NULL, list = NULL, parameters = NULL;
  g_autoptr (GError) error = NULL;
  gpointer gone = module;
  const gchar *name, *dtype, *device;
  gboolean requires_grad;
  guint n;

  g_object_add_weak_pointer (G_OBJECT (module), &gone);
  g_assert_true (gtorch_exporter_add_module (exporter, "net", module, &error));
  g_assert_true (gtorch_exporter_add_module (exporter, "again", module, &error));
  answer = ask (exporter, "ListModules", NULL);
  assert_text (answer, "([('net', 4), ('again', 4)],)");
  parameters = ask (exporter, "ListParameters", g_variant_new ("(suu)", "net", 2, 1));
  g_variant_get (parameters, "(u@a(saxssb))", &n, &list);
  g_assert_cmpuint (n, ==, 4);
  g_assert_cmpuint (g_variant_n_children (list), ==, 1);
  g_variant_get_child (list, 0, "(&s@ax&s&sb)", &name, NULL, &dtype, &device, &requires_grad);
  g_assert_cmpstr (name, ==, "3.weight");
  g_assert_cmpstr (dtype, ==, "float32");
  g_assert_cmpstr (device, ==, "cpu");
  g_assert_true (requires_grad);

  g_assert_true (gtorch_exporter_add_module (exporter, "again", other, &error));
  g_object_unref (module);
  g_assert_null (gone); /* the exporter does not keep it */
  g_clear_pointer (&answer, g_variant_unref);
  answer = ask (exporter, "ListModules", NULL);
  assert_text (answer, "([('again', 0)],)");
  assert_refused (exporter, "ListParameters", g_variant_new ("(suu)", "net", 0, 1),
                  G_DBUS_ERROR_INVALID_ARGS, "ListParameters: there is no module “net”");
  g_assert_true (gtorch_exporter_remove_module (exporter, "again"));
  g_assert_false (gtorch_exporter_remove_module (exporter, "again"));
  g_assert_false (gtorch_exporter_add_module (exporter, "\xff", other, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
many_parameters_come_in_parts (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GError) error = NULL;
  const gdouble value = 1;
  const guint n_all = is_slowed () ? 10500 : 25000;
  guint i, n, seen = 0;

  for (i = 0; i < n_all; i++)
    {
      g_autofree gchar *name = g_strdup_printf ("p%05u", i);

      add_parameter (module, name, &value, 1);
    }
  g_assert_true (gtorch_exporter_add_module (exporter, "many", module, &error));
  while (seen < n_all)
    {
      g_autoptr (GVariant) answer =
          ask (exporter, "ListParameters", g_variant_new ("(suu)", "many", seen, 10000));
      g_autoptr (GVariant) list = NULL;
      g_autofree gchar *expected = g_strdup_printf ("p%05u", seen);
      const gchar *name;

      g_variant_get (answer, "(u@a(saxssb))", &n, &list);
      g_assert_cmpuint (n, ==, n_all);
      g_assert_cmpuint (g_variant_n_children (list), ==, MIN (n_all - seen, 10000));
      g_variant_get_child (list, 0, "(&saxssb)", &name, NULL, NULL, NULL, NULL);
      g_assert_cmpstr (name, ==, expected);
      seen += g_variant_n_children (list);
    }
}

static void
scalars_are_kept_and_thinned_out (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GVariant) list = NULL, answer = NULL, values = NULL, beyond = NULL;
  g_autoptr (GError) error = NULL;
  guint64 total;
  guint generation, i;
  gint64 step;
  gdouble value;

  for (i = 0; i < 65536 + 10; i++)
    g_assert_true (gtorch_exporter_add_scalar (exporter, "loss", i / 2.0, i, &error));
  g_assert_true (gtorch_exporter_add_scalar (exporter, "other", NAN, -5, &error));
  list = ask (exporter, "ListScalars", NULL);
  assert_text (list, "([('loss', 32778, 65545, 32772.5), ('other', 1, -5, nan)],)");
  answer = ask (exporter, "GetScalarValues", g_variant_new ("(stu)", "loss", 32766, 3));
  g_variant_get (answer, "(ut@a(xxd))", &generation, &total, &values);
  g_assert_cmpuint (generation, ==, 1);
  g_assert_cmpuint (total, ==, 32778);
  g_assert_cmpuint (g_variant_n_children (values), ==, 3);
  g_variant_get_child (values, 1, "(xxd)", &step, NULL, &value);
  g_assert_cmpint (step, ==, 65535);
  g_assert_cmpfloat (value, ==, 65535 / 2.0);
  beyond = ask (exporter, "GetScalarValues", g_variant_new ("(stu)", "loss", G_MAXUINT64, 100000));
  assert_text (beyond, "(1, 32778, [])");

  g_assert_false (gtorch_exporter_add_scalar (exporter, "\xfe", 1, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  for (i = 2; i < 1000; i++)
    {
      g_autofree gchar *name = g_strdup_printf ("%u", i);

      g_assert_true (gtorch_exporter_add_scalar (exporter, name, 1, 1, &error));
    }
  g_assert_false (gtorch_exporter_add_scalar (exporter, "more", 1, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "exporter_add_scalar: “more” would be one more than the 1000 scalars that an "
                   "exporter can have");
  g_clear_error (&error);
  g_assert_true (gtorch_exporter_add_scalar (exporter, "loss", 1, 1, &error));
}

static void
nonsense_from_the_bus_gets_errors (void)
{
  static const struct
  {
    const gchar *method, *arguments;
    gint code;
    const gchar *message;
  } cases[] = {
    { "Abacus", "()", G_DBUS_ERROR_UNKNOWN_METHOD, NULL },
    { "ListDevices", "(1,)", G_DBUS_ERROR_INVALID_ARGS, NULL },
    { "ListParameters", "('net',)", G_DBUS_ERROR_INVALID_ARGS, NULL },
    { "ListParameters", "('net', uint32 0, uint32 0)", G_DBUS_ERROR_INVALID_ARGS,
      "ListParameters: n is 0, it must be from 1 to 10000" },
    { "ListParameters", "('net', uint32 0, uint32 4294967295)", G_DBUS_ERROR_INVALID_ARGS,
      "ListParameters: n is 4294967295, it must be from 1 to 10000" },
    { "ListParameters", "('', uint32 0, uint32 1)", G_DBUS_ERROR_INVALID_ARGS,
      "ListParameters: there is no module “”" },
    { "GetParameterStatistics", "('net', 'bias', uint32 0)", G_DBUS_ERROR_INVALID_ARGS,
      "GetParameterStatistics: bins is 0, it must be from 1 to 1000" },
    { "GetParameterStatistics", "('net', 'bias', uint32 5)", G_DBUS_ERROR_INVALID_ARGS,
      "GetParameterStatistics: the module “net” has no parameter “bias”" },
    { "GetParameterStatistics", "('ten', 'bias', uint32 5)", G_DBUS_ERROR_INVALID_ARGS,
      "GetParameterStatistics: there is no module “ten”" },
    { "GetScalarValues", "('x', uint64 0, uint32 1)", G_DBUS_ERROR_INVALID_ARGS,
      "GetScalarValues: there is no scalar “x”" },
    { "GetScalarValues", "('x', uint64 0, uint32 0)", G_DBUS_ERROR_INVALID_ARGS,
      "GetScalarValues: n is 0, it must be from 1 to 100000" },
    { "GetAllocatorStatistics", "('cuda:9',)", G_DBUS_ERROR_INVALID_ARGS,
      "GetAllocatorStatistics: the program uses no device “cuda:9”" },
    { "GetMemoryBlocks", "('cpu', uint32 0)", G_DBUS_ERROR_INVALID_ARGS,
      "GetMemoryBlocks: max_blocks is 0, it must be from 1 to 1000000" },
    { "GetMemoryBlocks", "('cpu', uint32 10)", G_DBUS_ERROR_NOT_SUPPORTED,
      "GetMemoryBlocks: the allocator of cpu keeps no list of its blocks" },
    { "StartProfile", "(0.0,)", G_DBUS_ERROR_INVALID_ARGS,
      "StartProfile: seconds is 0, it must be from 0.1 to 60" },
    { "StartProfile", "(61.0,)", G_DBUS_ERROR_INVALID_ARGS,
      "StartProfile: seconds is 61, it must be from 0.1 to 60" },
    { "StartProfile", "('long',)", G_DBUS_ERROR_INVALID_ARGS, NULL },
    { "StopProfile", "()", G_DBUS_ERROR_FAILED, "StopProfile: no profile is being recorded" },
    { "GetProfile", "()", G_DBUS_ERROR_NOT_SUPPORTED,
      "GetProfile: the program has given no profile" },
  };
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_relu_new ());
  g_autofree gchar *name = gtorch_exporter_dup_bus_name (exporter);
  g_autoptr (GVariant) answer = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  g_assert_true (gtorch_exporter_add_module (exporter, "net", module, &error));
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_refused (exporter, cases[i].method, g_variant_new_parsed (cases[i].arguments),
                    cases[i].code, cases[i].message);
  answer = g_dbus_connection_call_sync (bus, name, PATH, "org.freedesktop.DBus.Properties", "Set",
                                        g_variant_new ("(ssv)", NAME, "Name",
                                                       g_variant_new_string ("x")),
                                        NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
  g_assert_null (answer);
  g_assert_nonnull (error);
  answer = ask (exporter, "ListModules", NULL); /* it still answers */
}

static gboolean
is_there (GWeakRef *reference)
{
  g_autoptr (GObject) object = g_weak_ref_get (reference);

  return object != NULL;
}

/* In a program that runs no main loop, too. */
static void
the_connection_ends_with_the_export (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  const gint64 end = g_get_monotonic_time () + LIMIT;
  GWeakRef connection;

  g_weak_ref_init (&connection, gtorch_exporter_get_export (exporter)->bus);
  g_variant_unref (ask (exporter, "ListModules", NULL));
  gtorch_exporter_stop (exporter);
  while (is_there (&connection)) /* its own thread has it for a moment */
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      g_usleep (1000);
    }
  g_weak_ref_clear (&connection);
}

static void
assert_no_trace (GTorchExporter *exporter, const gchar *text, const gchar *message)
{
  g_autofree gchar *expected = g_strconcat ("exporter_set_profile: ", message, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_exporter_set_profile (exporter, text, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==, expected);
}

static void
a_profile_is_handed_on (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GVariant) answer = NULL;
  g_autoptr (GVariant) after = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *big = g_strnfill (32 * 1024 * 1024 + 1, ' ');

  g_assert_true (gtorch_exporter_set_profile (exporter, "[]", &error));
  answer = ask (exporter, "GetProfile", NULL);
  assert_text (answer, "('[]',)");
  g_assert_false (gtorch_exporter_set_profile (exporter, "\xff", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "exporter_set_profile: the text has 1 bytes, it must be UTF-8 of at most "
                   "33554432");
  g_clear_error (&error);
  g_assert_false (gtorch_exporter_set_profile (exporter, big, &error));
  g_clear_error (&error);
  g_assert_false (gtorch_exporter_set_profile (exporter, "not json", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  assert_no_trace (exporter, "{}",
                   "the text is an object without that list, it must be a trace: a list of events, "
                   "or an object with the list as “traceEvents”");
  assert_no_trace (exporter, "5",
                   "the text is a number, it must be a trace: a list of events, or an object with "
                   "the list as “traceEvents”");
  assert_no_trace (exporter, "[{}, 1]", "event 1 of the trace is a number, it must be an object");
  assert_no_trace (exporter, "{\"traceEvents\": [[]]}",
                   "event 0 of the trace is an array, it must be an object");
  after = ask (exporter, "GetProfile", NULL);
  assert_text (after, "('[]',)");
  g_assert_true (gtorch_exporter_set_profile (exporter, "{\"traceEvents\": [{}]}", &error));
  g_assert_false (gtorch_exporter_add_scalar (exporter, "", 1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "exporter_add_scalar: the name is empty");
  g_clear_error (&error);
  g_assert_true (gtorch_exporter_set_profile (exporter, NULL, &error));
  assert_refused (exporter, "GetProfile", NULL, G_DBUS_ERROR_NOT_SUPPORTED, NULL);
}

typedef struct
{
  guint n_answered, n_refused;
} Flood;

static void
on_flooded (GObject *source, GAsyncResult *result, gpointer data)
{
  Flood *flood = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) answer =
      g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);

  if (answer == NULL)
    {
      g_assert_error (error, G_DBUS_ERROR, G_DBUS_ERROR_LIMITS_EXCEEDED);
      flood->n_refused++;
    }
  flood->n_answered++;
}

static void
many_calls_at_once_are_answered_or_refused (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchParameter) parameter = NULL;
  g_autofree gchar *name = gtorch_exporter_dup_bus_name (exporter);
  g_autoptr (GError) error = NULL;
  const gint64 n = N_MANY;
  Flood flood = { 0, 0 };
  guint i;

  tensor = gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  parameter = gtorch_parameter_new (tensor, TRUE, &error);
  g_assert_true (gtorch_module_register_parameter (module, "w", parameter, &error)
                 && gtorch_exporter_add_module (exporter, "net", module, &error));
  for (i = 0; i < 200; i++)
    g_dbus_connection_call (bus, name, PATH, NAME, "GetParameterStatistics",
                            g_variant_new ("(ssu)", "net", "w", 10), NULL, G_DBUS_CALL_FLAGS_NONE,
                            G_MAXINT, NULL, on_flooded, &flood);
  while (flood.n_answered < 200)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (flood.n_refused, <, 200);
}

static void
a_stop_ends_what_is_computed (void)
{
  GTorchExporter *exporter = started ("test");
  g_autoptr (GTorchModule) module = test_model (0);
  g_autofree gchar *name = gtorch_exporter_dup_bus_name (exporter);
  guint i;

  g_assert_true (gtorch_exporter_add_module (exporter, "net", module, NULL));
  for (i = 0; i < 50; i++)
    g_dbus_connection_call (bus, name, PATH, NAME, "GetParameterStatistics",
                            g_variant_new ("(ssu)", "net", "0.weight", 10), NULL,
                            G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL, NULL);
  g_dbus_connection_flush_sync (bus, NULL, NULL);
  g_object_unref (exporter);
  wait_for_programs (0);
}

static void
a_trainer_shows_its_module_and_losses (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchTrainer) trainer = test_trainer (0, FALSE, 3);
  g_autoptr (GVariant) scalars = NULL, modules = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;

  g_object_set (trainer, "log-every", (gint64) 1, NULL);
  g_assert_true (gtorch_exporter_add_trainer (exporter, "classifier", trainer, &error));
  test_run (trainer);
  scalars = ask (exporter, "ListScalars", NULL);
  text = g_variant_print (scalars, FALSE);
  g_assert_nonnull (strstr (text, "('train/loss', 15, 15, "));
  modules = ask (exporter, "ListModules", NULL);
  assert_text (modules, "([('classifier', 4)],)");
}

/* --- other processes --- */

/* What this program does when it is started by a test; never returns. */
static void
be_child (const gchar *what)
{
  g_autoptr (GTorchTrainer) trainer = NULL;

  if (strcmp (what, "trainer") == 0)
    {
      trainer = test_trainer (0, FALSE, 2);
      test_run (trainer);
    }
  else
    started ("child");
  if (strcmp (what, "fork") == 0 && fork () == 0)
    {
      g_assert_true (write (STDOUT_FILENO, "", 1) == 1);
      close (
          STDIN_FILENO); /* whoever waits for the end of the test's output does not wait for this */
      close (STDOUT_FILENO);
      close (STDERR_FILENO);
      sleep (60);
      _exit (0);
    }
  if (strcmp (what, "fork") != 0)
    g_assert_true (write (STDOUT_FILENO, "", 1) == 1);
  for (;;)
    pause ();
}

static GPid
start_child (const gchar *what, gboolean is_default)
{
  gchar *argv[] = { (gchar *) program, (gchar *) "--child", (gchar *) what, NULL };
  g_auto (GStrv) environment = g_get_environ ();
  g_autoptr (GError) error = NULL;
  gint out;
  GPid pid;
  gchar byte;

  environment = g_environ_setenv (environment, "GTORCH_EXPORT", is_default ? "1" : "0", TRUE);
  g_assert_true (g_spawn_async_with_pipes (NULL, argv, environment, G_SPAWN_DO_NOT_REAP_CHILD, NULL,
                                           NULL, &pid, NULL, &out, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpint (read (out, &byte, 1), ==, 1); /* it has begun */
  close (out);
  return pid;
}

static void
end_child (GPid pid)
{
  gint status;

  kill (pid, SIGKILL);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
}

static void
the_end_of_a_program_removes_it (void)
{
  GPid pid = start_child ("plain", FALSE);

  wait_for_programs (1);
  end_child (pid);
  wait_for_programs (0);
}

static void
a_forked_child_does_not_keep_it (void)
{
  GPid pid = start_child ("fork", FALSE);

  wait_for_programs (1);
  end_child (pid);
  wait_for_programs (0); /* long before the child of the child ends */
}

static void
the_environment_exports_a_program_and_its_trainers (void)
{
  GPid pid = start_child ("trainer", TRUE);
  g_autoptr (GVariant) answer = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = NULL;
  g_autofree gchar *text = NULL;

  wait_for_programs (1);
  names = list_programs ();
  answer = g_dbus_connection_call_sync (bus, names[0], PATH, NAME, "ListModules", NULL, NULL,
                                        G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
  g_assert_no_error (error);
  text = g_variant_print (answer, FALSE);
  g_assert_cmpstr (text, ==, "([('model', 4)],)");
  end_child (pid);
  wait_for_programs (0);
  g_assert_null (gtorch_exporter_get_default ()); /* not in this process */
}

#define TEST(name) g_test_add_func ("/GTorchExporter/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  program = argv[0];
  if (argc == 3 && strcmp (argv[1], "--child") == 0)
    be_child (argv[2]);
  g_test_init (&argc, &argv, NULL);
  if (!test_bus_up ())
    return 0;
  TEST (a_program_is_on_the_bus_from_start_to_stop);
  TEST (several_exporters_go_with_their_last_reference);
  TEST (it_starts_asynchronously);
  TEST (an_empty_name_is_refused);
  TEST (without_a_bus_there_is_an_error);
  TEST (it_has_the_properties_of_the_program);
  TEST (devices_and_streams_are_listed);
  TEST (parameters_have_statistics);
  TEST (parameters_of_any_size_have_statistics);
  TEST (parameters_that_are_not_contiguous_or_empty_have_statistics);
  TEST (modules_go_and_are_replaced);
  TEST (many_parameters_come_in_parts);
  TEST (scalars_are_kept_and_thinned_out);
  TEST (nonsense_from_the_bus_gets_errors);
  TEST (a_profile_is_handed_on);
  TEST (the_connection_ends_with_the_export);
  TEST (many_calls_at_once_are_answered_or_refused);
  TEST (a_stop_ends_what_is_computed);
  TEST (a_trainer_shows_its_module_and_losses);
  TEST (the_end_of_a_program_removes_it);
  TEST (a_forked_child_does_not_keep_it);
  TEST (the_environment_exports_a_program_and_its_trainers);
  result = g_test_run ();
  test_bus_down ();
  return result;
}
