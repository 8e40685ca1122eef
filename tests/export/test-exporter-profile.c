/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Profiles of programs that monitors record. */

#include "config.h"

#include <tests/export/export-test.h>

/* Waits until so many recordings have ended; returns the note of the last one. */
static gchar *
until_recorded (GTorchExporter *exporter, guint n)
{
  const gint64 end = g_get_monotonic_time () + LIMIT;

  for (;;)
    {
      g_autoptr (GVariant) answer = ask (exporter, "GetProfileState", NULL);
      const gchar *state, *note;
      gdouble seconds;
      guint number;

      g_variant_get (answer, "(&sud&s)", &state, &number, &seconds, &note);
      if (number == n)
        {
          g_assert_cmpstr (state, ==, "none");
          return g_strdup (note);
        }
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      g_usleep (5000);
    }
}

static void
compute (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, NULL);

  g_assert_nonnull (y);
}

static gchar *
get_profile (GTorchExporter *exporter)
{
  g_autoptr (GVariant) answer = ask (exporter, "GetProfile", NULL);
  gchar *text;

  g_variant_get (answer, "(s)", &text);
  return text;
}

static void
a_monitor_records_a_profile (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GVariant) answer = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *note = NULL;
  g_autofree gchar *text = NULL;
  g_autofree gchar *last = NULL;
  guint64 size;

  assert_refused (exporter, "StopProfile", NULL, G_DBUS_ERROR_FAILED,
                  "StopProfile: no profile is being recorded");
  g_variant_unref (ask (exporter, "StartProfile", g_variant_new ("(d)", 60.0)));
  compute ();
  assert_refused (exporter, "StartProfile", g_variant_new ("(d)", 1.0),
                  G_DBUS_ERROR_LIMITS_EXCEEDED,
                  "StartProfile: a profile is being recorded already");
  answer = ask (exporter, "StopProfile", NULL);
  g_variant_get (answer, "(t)", &size);
  note = until_recorded (exporter, 1);
  g_assert_cmpstr (note, ==, "");
  text = get_profile (exporter);
  g_assert_cmpuint (strlen (text), ==, size);
  g_assert_nonnull (strstr (text, "\"cat\": \"cpu_op\", \"name\": \"mul\""));

  g_variant_unref (ask (exporter, "StartProfile", g_variant_new ("(d)", 0.1)));
  g_free (until_recorded (exporter, 2)); /* it ends by itself */
  last = get_profile (exporter);
  g_assert_null (strstr (last, "\"mul\""));
  g_assert_true (gtorch_exporter_set_profile (exporter, "[]", &error));
  g_free (last);
  last = get_profile (exporter);
  g_assert_cmpstr (last, ==, "[]");
}

static void
one_profile_at_a_time_is_recorded (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_profiler_start (profiler, &error));
  assert_refused (exporter, "StartProfile", g_variant_new ("(d)", 60.0), G_DBUS_ERROR_FAILED,
                  "StartProfile: profiler_start: another profiler is recording, and there can be "
                  "one at a "
                  "time in a process: stop that one, or drop it");
  g_assert_true (gtorch_profiler_stop (profiler, &error));
  g_variant_unref (ask (exporter, "StartProfile", g_variant_new ("(d)", 60.0)));
  g_assert_false (gtorch_profiler_start (profiler, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_exporter_stop (exporter); /* ends the recording */
  g_assert_true (gtorch_profiler_start (profiler, &error));
  g_assert_true (gtorch_profiler_stop (profiler, &error));
  g_assert_true (gtorch_exporter_start (exporter, NULL, &error));
  assert_refused (exporter, "GetProfile", NULL, G_DBUS_ERROR_NOT_SUPPORTED, NULL);
  g_object_set (exporter, "allow-profiles", FALSE, NULL);
  assert_refused (exporter, "StartProfile", g_variant_new ("(d)", 1.0), G_DBUS_ERROR_ACCESS_DENIED,
                  "StartProfile: the program does not allow it");
}

/* Computes until the recording has as much as there may be. */
static void
a_long_profile_ends_early (void)
{
  g_autoptr (GTorchExporter) exporter = started ("test");
  const gint64 end = g_get_monotonic_time () + LIMIT;
  g_autofree gchar *note = NULL;
  g_autofree gchar *text = NULL;
  const gchar *state = "recording";

  g_variant_unref (ask (exporter, "StartProfile", g_variant_new ("(d)", 60.0)));
  while (strcmp (state, "recording") == 0)
    {
      g_autoptr (GVariant) answer = NULL;

      for (guint i = 0; i < 1000; i++)
        compute ();
      answer = ask (exporter, "GetProfileState", NULL);
      g_variant_get_child (answer, 0, "&s", &state);
      state = g_intern_string (state);
      g_assert_cmpint (g_get_monotonic_time (), <, end);
    }
  note = until_recorded (exporter, 1);
  g_assert_true (g_str_has_prefix (note, "ended after "));
  g_assert_true (g_str_has_suffix (note, " seconds, with as much as a profile may have"));
  text = get_profile (exporter);
  g_assert_cmpuint (strlen (text), <=, 32 * 1024 * 1024);
}

#define TEST(name) g_test_add_func ("/GTorch/Exporter/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  if (!test_bus_up ())
    return 0;
  TEST (a_monitor_records_a_profile);
  TEST (one_profile_at_a_time_is_recorded);
  TEST (a_long_profile_ends_early);
  result = g_test_run ();
  test_bus_down ();
  return result;
}
