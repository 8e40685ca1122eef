/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The session bus. The exporter has a connection of its own, so that programs may have several exporters, and
 * that the end of the bus does not end the program. Calls are answered by a thread of its own, whether or not
 * the program runs a main loop, and whatever keeps that busy. Statistics of tensors, which take long, are
 * computed by another thread, one after the other.
 *
 * A child of fork () has the connection's file, but no thread: it closes the file, or the bus would not
 * notice the end of its parent. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#include "export/gtorch-exporter-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-text-private.h"
#include "gtorch-exporter-interface.h"

#define MAX_WAITING 64 /* statistics */
#define MAX_BINS    1000
#define MAX_CLOSING 1000 /* ms */

/* --- forks --- */

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GPtrArray *started; /* GTorchExport; NULL: none yet */

static int
get_fd (GDBusConnection *bus)
{
  GIOStream *stream = g_dbus_connection_get_stream (bus);

  if (!G_IS_SOCKET_CONNECTION (stream))
    return -1;
  return g_socket_get_fd (g_socket_connection_get_socket (G_SOCKET_CONNECTION (stream)));
}

static void
close_in_child (void)
{
  guint i;

  for (i = 0; started != NULL && i < started->len; i++)
    {
      GTorchExport *self = started->pdata[i];
      int fd = get_fd (self->bus);

      if (fd >= 0)
        close (fd);
      self->is_child = TRUE; /* nothing else of the connection is ever touched here */
    }
}
GTORCH_FORK_CHILD (close_in_child);

/* --- statistics --- */

typedef struct
{
  GTorchExport *export; /* owned reference */
  GTorchExportWork func;
  gpointer data;
} Work;

static void
do_work (gpointer data, gpointer user_data)
{
  Work *work = data;

  work->func (work->export, work->data);
  gtorch_export_unref (work->export);
  g_free (work);
}

gboolean
gtorch_export_push (GTorchExport *self, GTorchExportWork func, gpointer data)
{
  gboolean has_pool;
  Work *work;

  g_mutex_lock (&self->lock);
  has_pool = self->pool != NULL; /* a stop takes it away first */
  if (has_pool)
    {
      work = g_new (Work, 1);
      *work = (Work){ gtorch_export_ref (self), func, data };
      g_thread_pool_push (self->pool, work, NULL);
    }
  g_mutex_unlock (&self->lock);
  return has_pool;
}

typedef struct
{
  GDBusMethodInvocation *invocation;
  GTorchImpl *impl;
  guint n_bins;
} Job;

/* Replies with the tuple, or with the error, which becomes one of the bus. */
static void
reply (GDBusMethodInvocation *invocation, GVariant *tuple, GError *error)
{
  if (tuple != NULL)
    {
      g_dbus_method_invocation_return_value (invocation, tuple);
      return;
    }
  if (error->domain == G_DBUS_ERROR)
    g_dbus_method_invocation_return_gerror (invocation, error);
  else
    g_dbus_method_invocation_return_error_literal (invocation, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
                                                   error->message);
  g_error_free (error);
}

static void
compute (GTorchExport *self, gpointer data)
{
  Job *job = data;
  GError *error = NULL;
  GVariant *statistics =
      gtorch_export_compute_statistics (job->impl, job->n_bins, &self->is_stopped, &error);

  g_atomic_int_add (&self->n_waiting, -1);
  reply (job->invocation, statistics != NULL ? g_variant_new ("(@a{sv})", statistics) : NULL,
         error);
  gtorch_impl_unref (job->impl);
  g_free (job);
}

static void
get_statistics (GTorchExport *self, GDBusMethodInvocation *invocation, const gchar *module,
                const gchar *parameter, guint n_bins)
{
  GError *error = NULL;
  GTorchImpl *impl = NULL;
  Job *job;

  if (n_bins < 1 || n_bins > MAX_BINS)
    g_set_error (&error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
                 _ ("%s: %s is %u, it must be from 1 to %u"), "GetParameterStatistics", "bins",
                 n_bins, MAX_BINS);
  else if (g_atomic_int_get (&self->n_waiting) >= MAX_WAITING)
    g_set_error (&error, G_DBUS_ERROR, G_DBUS_ERROR_LIMITS_EXCEEDED,
                 _ ("%s: %d calls wait already"), "GetParameterStatistics", MAX_WAITING);
  else
    impl = gtorch_export_find_parameter (self, module, parameter, &error);
  if (impl == NULL)
    {
      reply (invocation, NULL, error);
      return;
    }
  job = g_new (Job, 1);
  *job = (Job){ invocation, impl, n_bins };
  g_atomic_int_inc (&self->n_waiting);
  if (gtorch_export_push (self, compute, job))
    return;
  g_atomic_int_add (&self->n_waiting, -1);
  g_set_error (&error, G_DBUS_ERROR, G_DBUS_ERROR_FAILED, _ ("%s: the export has ended"),
               "GetParameterStatistics");
  reply (invocation, NULL, error);
  gtorch_impl_unref (impl);
  g_free (job);
}

/* --- calls --- */

static GVariant *
get_profile (GTorchExport *self, GError **error)
{
  GVariant *tuple = NULL;

  g_mutex_lock (&self->lock);
  if (self->profiling.text != NULL || self->profile != NULL)
    tuple =
        g_variant_new ("(s)", self->profiling.text != NULL ? self->profiling.text : self->profile);
  g_mutex_unlock (&self->lock);
  if (tuple == NULL)
    g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_NOT_SUPPORTED,
                 _ ("%s: the program has given no profile"), "GetProfile");
  return tuple;
}

/* The arguments have the types of the interface: GIO has checked them. */
static void
called (GDBusConnection *bus, const gchar *sender, const gchar *path, const gchar *interface,
        const gchar *method, GVariant *arguments, GDBusMethodInvocation *invocation, gpointer data)
{
  GTorchExport *self = data;
  const gchar *name = NULL, *parameter = NULL;
  GError *error = NULL;
  GVariant *tuple = NULL;
  gdouble seconds = 0;
  guint64 start = 0;
  guint first = 0, n = 0;

  if (strcmp (method, "ListDevices") == 0)
    tuple = gtorch_export_list_devices ();
  else if (strcmp (method, "ListStreams") == 0)
    tuple = gtorch_export_list_streams ();
  else if (strcmp (method, "ListModules") == 0)
    tuple = gtorch_export_list_modules (self);
  else if (strcmp (method, "ListScalars") == 0)
    tuple = gtorch_export_list_scalars (self);
  else if (strcmp (method, "GetProfile") == 0)
    tuple = get_profile (self, &error);
  else if (strcmp (method, "GetProfileState") == 0)
    tuple = gtorch_export_get_profile_state (self);
  else if (strcmp (method, "StartProfile") == 0)
    {
      g_variant_get (arguments, "(d)", &seconds);
      gtorch_export_start_profile (self, invocation, seconds);
      return;
    }
  else if (strcmp (method, "StopProfile") == 0)
    {
      gtorch_export_stop_profile (self, invocation);
      return;
    }
  else if (strcmp (method, "GetAllocatorStatistics") == 0)
    {
      g_variant_get (arguments, "(&s)", &name);
      tuple = gtorch_export_get_allocator_statistics (name, &error);
    }
  else if (strcmp (method, "GetMemoryBlocks") == 0)
    {
      g_variant_get (arguments, "(&su)", &name, &n);
      tuple = gtorch_export_get_memory_blocks (name, n, &error);
    }
  else if (strcmp (method, "ListParameters") == 0)
    {
      g_variant_get (arguments, "(&suu)", &name, &first, &n);
      tuple = gtorch_export_list_parameters (self, name, first, n, &error);
    }
  else if (strcmp (method, "GetScalarValues") == 0)
    {
      g_variant_get (arguments, "(&stu)", &name, &start, &n);
      tuple = gtorch_export_get_scalar_values (self, name, start, n, &error);
    }
  else
    {
      g_assert (strcmp (method, "GetParameterStatistics") == 0);
      g_variant_get (arguments, "(&s&su)", &name, &parameter, &n);
      get_statistics (self, invocation, name, parameter, n);
      return;
    }
  reply (invocation, tuple, error);
}

static GVariant *
read_property (GDBusConnection *bus, const gchar *sender, const gchar *path, const gchar *interface,
               const gchar *property, GError **error, gpointer data)
{
  GTorchExport *self = data;

  if (strcmp (property, "Name") == 0)
    return g_variant_new_string (self->program);
  if (strcmp (property, "Pid") == 0)
    return g_variant_new_uint32 ((guint32) getpid ());
  if (strcmp (property, "Version") == 0)
    return g_variant_new_string (GTORCH_VERSION);
  return g_variant_new_int64 (self->started);
}

static const GDBusInterfaceVTable functions = { called, read_property, NULL, { 0 } };

/* --- starting and stopping --- */

/* The thread has references of its own: stopping takes the context away from the export. */
typedef struct
{
  GTorchExport *export;
  GMainContext *context;
} Answering;

static gpointer
answer (gpointer data)
{
  Answering *self = data;

  g_main_context_push_thread_default (self->context);
  while (!g_atomic_int_get (&self->export->is_stopped))
    g_main_context_iteration (self->context, TRUE);
  g_main_context_pop_thread_default (self->context);
  g_main_context_unref (self->context);
  gtorch_export_unref (self->export);
  g_free (self);
  return NULL;
}

static GDBusConnection *
open_bus (GCancellable *cancellable, GError **error)
{
  g_autofree gchar *address =
      g_dbus_address_get_for_bus_sync (G_BUS_TYPE_SESSION, cancellable, error);

  if (address == NULL)
    return NULL;
  return g_dbus_connection_new_for_address_sync (
      address,
      G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT
          | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
      NULL, cancellable, error);
}

/* org.gtorch.Program1.c1_42 for the connection :1.42: no other one has it. */
static gchar *
make_name (GDBusConnection *bus)
{
  gchar *name =
      g_strdup_printf (GTORCH_EXPORT_INTERFACE ".c%s", g_dbus_connection_get_unique_name (bus) + 1);
  gchar *end = name + strlen (GTORCH_EXPORT_INTERFACE ".c");

  for (; *end != '\0'; end++)
    if (!g_ascii_isalnum (*end))
      *end = '_';
  return name;
}

static gboolean
own_name (GDBusConnection *bus, const gchar *name, GCancellable *cancellable, GError **error)
{
  g_autoptr (GVariant) answer =
      g_dbus_connection_call_sync (bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                   "org.freedesktop.DBus", "RequestName",
                                   g_variant_new ("(su)", name, 4 /* do not queue */),
                                   G_VARIANT_TYPE ("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, cancellable,
                                   error);
  guint result;

  if (answer == NULL)
    return FALSE;
  g_variant_get (answer, "(u)", &result);
  if (result == 1)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("the bus refused the name %s (%u)"),
               name, result);
  return FALSE;
}

static void
on_closed (GDBusConnection *bus, gboolean is_lost, GError *error, gpointer data)
{
  GTorchExport *self = data;

  g_atomic_int_set (&self->is_closed, TRUE);
}

static gboolean
on_limit (gpointer data)
{
  *(gboolean *) data = TRUE;
  return G_SOURCE_REMOVE;
}

/* Closes the bus, which lives until it has told of that in the context that it was made in. Of the program's
 * contexts nobody knows whether they run: this one, where no thread answers any more, does until then. */
static void
close_bus (GTorchExport *self, GDBusConnection *bus, GMainContext *context)
{
  g_autoptr (GSource) limit = g_timeout_source_new (MAX_CLOSING);
  gboolean is_over = FALSE;

  g_dbus_connection_close_sync (bus, NULL, NULL);
  g_source_set_callback (limit, on_limit, &is_over, NULL);
  g_source_attach (limit, context);
  while (!is_over && !g_atomic_int_get (&self->is_closed))
    g_main_context_iteration (context, TRUE);
  g_source_destroy (limit);
  g_signal_handlers_disconnect_by_data (bus, self);
}

/* Connects, with the object registered for the context. Not under a lock: this waits for the bus. */
static GDBusConnection *
connect_to_bus (GTorchExport *self, GMainContext *context, guint *registration, gchar **name,
                GCancellable *cancellable, GError **error)
{
  g_autoptr (GDBusConnection) bus = NULL;

  g_main_context_push_thread_default (context);
  bus = open_bus (cancellable, error);
  if (bus == NULL)
    {
      g_main_context_pop_thread_default (context);
      return NULL;
    }
  g_atomic_int_set (&self->is_closed, FALSE);
  g_signal_connect (bus, "closed", G_CALLBACK (on_closed), self);
  *registration =
      g_dbus_connection_register_object (bus, GTORCH_EXPORT_PATH,
                                         (GDBusInterfaceInfo *) &org_gtorch_program1_interface,
                                         &functions, gtorch_export_ref (self),
                                         (GDestroyNotify) gtorch_export_unref, error);
  g_main_context_pop_thread_default (context);
  if (*registration == 0)
    {
      gtorch_export_unref (self);
      close_bus (self, bus, context);
      return NULL;
    }
  *name = make_name (bus);
  if (own_name (bus, *name, cancellable, error))
    return g_steal_pointer (&bus);
  g_dbus_connection_unregister_object (bus, *registration);
  close_bus (self, bus, context);
  g_clear_pointer (name, g_free);
  return NULL;
}

static gboolean
begin (GTorchExport *self, GError **error)
{
  gboolean is_free;

  g_mutex_lock (&self->lock);
  is_free = self->bus == NULL && !self->is_starting && !self->is_child;
  if (is_free)
    self->is_starting = TRUE;
  g_mutex_unlock (&self->lock);
  if (!is_free)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("exporter_start: it is started already"));
  return is_free;
}

gboolean
gtorch_export_start (GTorchExport *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GMainContext) context = NULL;
  GDBusConnection *bus;
  Answering *answering;
  gchar *name = NULL;
  guint registration = 0;

  if (!begin (self, error))
    return FALSE;
  context = g_main_context_new ();
  bus = connect_to_bus (self, context, &registration, &name, cancellable, error);
  if (bus == NULL)
    g_prefix_error (error, "exporter_start: ");
  g_mutex_lock (&lock);
  g_mutex_lock (&self->lock);
  self->is_starting = FALSE;
  if (bus != NULL)
    {
      self->bus = bus;
      self->registration = registration;
      self->bus_name = name;
      self->context = g_steal_pointer (&context);
      g_atomic_int_set (&self->is_stopped, FALSE);
      self->pool = g_thread_pool_new (do_work, NULL, 1, FALSE, NULL);
      answering = g_new (Answering, 1);
      *answering = (Answering){ gtorch_export_ref (self), g_main_context_ref (self->context) };
      self->thread = g_thread_new ("gtorch-export", answer, answering);
      if (started == NULL)
        started = g_ptr_array_new ();
      g_ptr_array_add (started, self);
    }
  g_mutex_unlock (&self->lock);
  g_mutex_unlock (&lock);
  return bus != NULL;
}

void
gtorch_export_stop (GTorchExport *self)
{
  GDBusConnection *bus;
  GMainContext *context;
  GThreadPool *pool;
  GThread *thread;
  guint registration;

  g_mutex_lock (&lock);
  g_mutex_lock (&self->lock);
  if (self->is_child || self->bus == NULL)
    {
      g_mutex_unlock (&self->lock);
      g_mutex_unlock (&lock);
      return;
    }
  g_ptr_array_remove_fast (started, self);
  bus = g_steal_pointer (&self->bus);
  context = g_steal_pointer (&self->context);
  pool = g_steal_pointer (&self->pool);
  thread = g_steal_pointer (&self->thread);
  registration = self->registration;
  g_clear_pointer (&self->bus_name, g_free);
  g_atomic_int_set (&self->is_stopped, TRUE);
  g_mutex_unlock (&self->lock);
  g_mutex_unlock (&lock);

  g_dbus_connection_unregister_object (bus, registration);
  g_main_context_wakeup (context);
  g_thread_join (thread);
  gtorch_export_end_profile (self);
  g_thread_pool_free (pool, FALSE, FALSE); /* what waits ends at once, with an error */
  close_bus (self, bus, context);
  g_object_unref (bus);
  g_main_context_unref (context);
}
