/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Exporters on a session bus of the test's own, which test_bus_up () starts. */

#include <gtorch/gtorch.h>
#include <string.h>

#define NAME  "org.gtorch.Program1"
#define PATH  "/org/gtorch/Program1"
#define LIMIT (30 * G_USEC_PER_SEC)

static GTestDBus *daemon_;
static GDBusConnection *bus;

/* Calls a method; the answer, or NULL with the error. */
static inline GVariant *
call (GTorchExporter *exporter, const gchar *method, GVariant *arguments, GError **error)
{
  g_autofree gchar *name = gtorch_exporter_dup_bus_name (exporter);

  return g_dbus_connection_call_sync (bus, name, PATH, NAME, method, arguments, NULL,
                                      G_DBUS_CALL_FLAGS_NONE, -1, NULL, error);
}

static inline GVariant *
ask (GTorchExporter *exporter, const gchar *method, GVariant *arguments)
{
  g_autoptr (GError) error = NULL;
  GVariant *answer = call (exporter, method, arguments, &error);

  g_assert_no_error (error);
  return answer;
}

static inline void
assert_refused (GTorchExporter *exporter, const gchar *method, GVariant *arguments, gint code,
                const gchar *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) answer = call (exporter, method, arguments, &error);

  g_assert_null (answer);
  g_assert_error (error, G_DBUS_ERROR, code);
  g_dbus_error_strip_remote_error (error);
  if (message != NULL)
    g_assert_cmpstr (error->message, ==, message);
}

static inline GTorchExporter *
started (const gchar *name)
{
  g_autoptr (GError) error = NULL;
  GTorchExporter *exporter = gtorch_exporter_new (name);

  g_assert_true (gtorch_exporter_start (exporter, NULL, &error));
  g_assert_no_error (error);
  return exporter;
}

/* FALSE: it is not installed, and the test is skipped. */
static inline gboolean
test_bus_up (void)
{
  g_autofree gchar *program = g_find_program_in_path ("dbus-daemon");

  g_unsetenv ("GTORCH_EXPORT");
  if (program == NULL)
    {
      g_print ("1..0 # SKIP dbus-daemon is not installed\n");
      return FALSE;
    }
  daemon_ = g_test_dbus_new (G_TEST_DBUS_NONE);
  g_test_dbus_up (daemon_);
  bus =
      g_dbus_connection_new_for_address_sync (g_test_dbus_get_bus_address (daemon_),
                                              G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT
                                                  | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                              NULL, NULL, NULL);
  g_assert_nonnull (bus);
  return TRUE;
}

static inline void
test_bus_down (void)
{
  g_dbus_connection_close_sync (bus, NULL, NULL);
  g_object_unref (bus);
  g_test_dbus_down (daemon_);
  g_object_unref (daemon_);
}
