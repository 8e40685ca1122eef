/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The programs that export themselves on the session bus: those with a name below org.gtorch.Program1.
 * Everything is asked for asynchronously, since a program may be stopped; what it does not answer stays as
 * it was. What answers may be any program: its answers are checked for their types, and nothing else. */

#include "config.h"

#include <string.h>

#include "gtorch-top-private.h"

#define PREFIX "org.gtorch.Program1."
#define PATH   "/org/gtorch/Program1"
#define NAME   "org.gtorch.Program1"

#define TIMEOUT      2000 /* ms */
#define MAX_PROGRAMS 256

struct _TopPrograms
{
  GDBusConnection *bus;
  GCancellable *cancellable;
  GPtrArray *list; /* TopProgram */
  guint subscription;
  guint n_pending; /* calls */
};

/* A call, whose program may be gone when the answer comes. */
typedef struct
{
  TopPrograms *programs; /* valid unless the call was cancelled */
  gchar *bus_name;
  gchar kind;
} Call;

static void
top_program_free (gpointer data)
{
  TopProgram *self = data;

  g_free (self->bus_name);
  g_free (self->name);
  g_free (self->version);
  g_clear_pointer (&self->devices, g_variant_unref);
  g_clear_pointer (&self->streams, g_variant_unref);
  g_clear_pointer (&self->scalars, g_variant_unref);
  g_free (self);
}

static TopProgram *
find (TopPrograms *self, const gchar *bus_name)
{
  guint i;

  for (i = 0; i < self->list->len; i++)
    if (strcmp (((TopProgram *) self->list->pdata[i])->bus_name, bus_name) == 0)
      return self->list->pdata[i];
  return NULL;
}

static void
take_properties (TopProgram *program, GVariant *properties)
{
  g_free (program->name);
  g_free (program->version);
  program->name = program->version = NULL;
  g_variant_lookup (properties, "Name", "s", &program->name);
  g_variant_lookup (properties, "Version", "s", &program->version);
  g_variant_lookup (properties, "Pid", "u", &program->pid);
}

static void
take (TopProgram *program, gchar kind, GVariant *answer)
{
  g_autoptr (GVariant) value = g_variant_get_child_value (answer, 0);
  GVariant **slot = kind == 'd'   ? &program->devices
                    : kind == 's' ? &program->streams
                                  : &program->scalars;

  if (kind == 'p')
    take_properties (program, value);
  else if (kind == 'm')
    program->n_modules = g_variant_n_children (value);
  else
    {
      g_clear_pointer (slot, g_variant_unref);
      *slot = g_steal_pointer (&value);
    }
}

static void
answered (GObject *source, GAsyncResult *result, gpointer data)
{
  Call *call = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) answer =
      g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  TopProgram *program;

  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    {
      call->programs->n_pending--;
      program = find (call->programs, call->bus_name);
      if (program != NULL && answer != NULL)
        take (program, call->kind, answer);
      if (program != NULL && call->kind == 'm')
        program->is_asked = FALSE;
    }
  g_free (call->bus_name);
  g_free (call);
}

static void
ask (TopPrograms *self, TopProgram *program, gchar kind, const gchar *interface,
     const gchar *method, GVariant *arguments, const gchar *type)
{
  Call *call = g_new0 (Call, 1);

  call->programs = self;
  call->bus_name = g_strdup (program->bus_name);
  call->kind = kind;
  self->n_pending++;
  g_dbus_connection_call (self->bus, program->bus_name, PATH, interface, method, arguments,
                          G_VARIANT_TYPE (type), G_DBUS_CALL_FLAGS_NO_AUTO_START, TIMEOUT,
                          self->cancellable, answered, call);
}

static void
ask_program (TopPrograms *self, TopProgram *program)
{
  if (program->is_asked)
    return;
  program->is_asked = TRUE;
  if (program->pid == 0)
    ask (self, program, 'p', "org.freedesktop.DBus.Properties", "GetAll",
         g_variant_new ("(s)", NAME), "(a{sv})");
  ask (self, program, 'd', NAME, "ListDevices", NULL, "(aa{sv})");
  ask (self, program, 's', NAME, "ListStreams", NULL, "(aa{sv})");
  ask (self, program, 'l', NAME, "ListScalars", NULL, "(a(stxd))");
  ask (self, program, 'm', NAME, "ListModules", NULL, "(a(su))");
}

static void
add (TopPrograms *self, const gchar *bus_name)
{
  TopProgram *program;

  if (find (self, bus_name) != NULL || self->list->len >= MAX_PROGRAMS)
    return;
  program = g_new0 (TopProgram, 1);
  program->bus_name = g_strdup (bus_name);
  g_ptr_array_add (self->list, program);
  ask_program (self, program);
}

static void
owner_changed (GDBusConnection *bus, const gchar *sender, const gchar *path, const gchar *interface,
               const gchar *signal, GVariant *arguments, gpointer data)
{
  TopPrograms *self = data;
  const gchar *name, *owner;
  TopProgram *program;

  if (!g_variant_is_of_type (arguments, G_VARIANT_TYPE ("(sss)")))
    return;
  g_variant_get (arguments, "(&s&s&s)", &name, NULL, &owner);
  program = find (self, name);
  if (program != NULL)
    g_ptr_array_remove (self->list, program);
  if (owner[0] != '\0')
    add (self, name);
}

static void
listed (GObject *source, GAsyncResult *result, gpointer data)
{
  TopPrograms *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) answer =
      g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  g_autofree const gchar **names = NULL;
  guint i;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  self->n_pending--;
  if (answer != NULL)
    g_variant_get (answer, "(^a&s)", &names);
  for (i = 0; names != NULL && names[i] != NULL; i++)
    if (g_str_has_prefix (names[i], PREFIX))
      add (self, names[i]);
}

TopPrograms *
top_programs_new (void)
{
  GDBusConnection *bus = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, NULL);
  TopPrograms *self;

  if (bus == NULL)
    return NULL;
  g_dbus_connection_set_exit_on_close (bus, FALSE);
  self = g_new0 (TopPrograms, 1);
  self->bus = bus;
  self->cancellable = g_cancellable_new ();
  self->list = g_ptr_array_new_with_free_func (top_program_free);
  self->subscription =
      g_dbus_connection_signal_subscribe (bus, "org.freedesktop.DBus", "org.freedesktop.DBus",
                                          "NameOwnerChanged", "/org/freedesktop/DBus", NAME,
                                          G_DBUS_SIGNAL_FLAGS_MATCH_ARG0_NAMESPACE, owner_changed,
                                          self, NULL);
  self->n_pending++;
  g_dbus_connection_call (bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                          "org.freedesktop.DBus", "ListNames", NULL, G_VARIANT_TYPE ("(as)"),
                          G_DBUS_CALL_FLAGS_NONE, TIMEOUT, self->cancellable, listed, self);
  return self;
}

void
top_programs_free (TopPrograms *self)
{
  g_cancellable_cancel (self->cancellable);
  g_dbus_connection_signal_unsubscribe (self->bus, self->subscription);
  g_ptr_array_unref (self->list);
  g_object_unref (self->cancellable);
  g_object_unref (self->bus);
  g_free (self);
}

void
top_programs_ask (TopPrograms *self)
{
  guint i;

  for (i = 0; i < self->list->len; i++)
    ask_program (self, self->list->pdata[i]);
}

gboolean
top_programs_are_waiting (TopPrograms *self)
{
  return self->n_pending > 0;
}

GPtrArray *
top_programs_get_list (TopPrograms *self)
{
  return self->list;
}
