/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/export/gtorch-exporter.h>
#include <gtorch/profiler/gtorch-profiler.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

#define GTORCH_EXPORT_INTERFACE "org.gtorch.Program1"
#define GTORCH_EXPORT_PATH      "/org/gtorch/Program1"

/* So that what a program adds without end does not fill the memory. */
#define GTORCH_EXPORT_MAX_SCALARS 1000
#define GTORCH_EXPORT_MAX_VALUES  65536 /* of a scalar; an even number */
#define GTORCH_EXPORT_MAX_MODULES 1000
#define GTORCH_EXPORT_MAX_PROFILE (32 * 1024 * 1024) /* bytes */

typedef struct
{
  gchar *name;
  GTorchImpl *impl;
} GTorchExportedParameter;

/* The parameters of a module, without the module, which may go at any time: a reference to it that the thread
 * of the bus dropped last would end it there. They go with the module. */
typedef struct
{
  gint ref_count;
  gchar *name;
  gconstpointer module; /* to compare */
  GMutex lock;
  GArray *parameters; /* GTorchExportedParameter; NULL: the module is gone */
} GTorchExportedModule;

typedef struct
{
  gint64 step, time;
  gdouble value;
} GTorchExportedValue;

typedef struct
{
  gchar *name;
  GArray *values; /* GTorchExportedValue */
  guint generation;
} GTorchExportedScalar;

typedef enum
{
  GTORCH_EXPORT_PROFILE_NONE, /* none is recorded */
  GTORCH_EXPORT_PROFILE_BEGINS,
  GTORCH_EXPORT_PROFILE_RECORDS,
  GTORCH_EXPORT_PROFILE_ENDS, /* its text is made */
} GTorchExportProfileState;

/* A profile that a monitor has asked for (gtorch-exporter-profile.c). */
typedef struct
{
  GTorchExportProfileState state;
  GTorchProfiler *profiler; /* while it records */
  gint64 begun, until;
  GPtrArray *waiting; /* GDBusMethodInvocation of those that have stopped it; NULL: none */
  guint number;       /* how many have ended */
  gchar *text;        /* of the last one */
  gchar *note;        /* what is to be told of the last one; NULL: nothing */
} GTorchExportProfile;

/* What is exported. The exporter has a reference, and so do the thread that answers and the work that it has
 * given away, which therefore never have the exporter. */
typedef struct
{
  gint ref_count;
  gchar *program;
  gint64 started; /* us since 1970 */

  GMutex lock;        /* of what follows */
  GPtrArray *modules; /* GTorchExportedModule */
  GPtrArray *scalars; /* GTorchExportedScalar */
  GHashTable *scalars_by_name;
  gchar *profile; /* that the program has given */
  GTorchExportProfile profiling;

  /* --- gtorch-exporter-bus.c --- */
  gboolean is_starting;
  GDBusConnection *bus; /* NULL: not started */
  gchar *bus_name;
  GMainContext *context; /* in which calls are answered */
  GThread *thread;
  GThreadPool *pool; /* computes statistics */
  guint registration;
  gint is_stopped;       /* atomic */
  gint is_closed;        /* the bus, and its signal was emitted; atomic */
  gint n_waiting;        /* statistics that wait; atomic */
  gint refuses_profiles; /* atomic */
  gboolean is_child;     /* this process is a child, in which there is no thread */
} GTorchExport;

GTorchExport *gtorch_export_ref (GTorchExport *self);
void gtorch_export_unref (GTorchExport *self);
GTorchExport *gtorch_exporter_get_export (GTorchExporter *self);

/* --- the bus (gtorch-exporter-bus.c) --- */
gboolean gtorch_export_start (GTorchExport *self, GCancellable *cancellable, GError **error);
void gtorch_export_stop (GTorchExport *self);
/* Lets the thread that computes call the function, behind what waits already; FALSE: the export has ended. */
typedef void (*GTorchExportWork) (GTorchExport *self, gpointer data);
gboolean gtorch_export_push (GTorchExport *self, GTorchExportWork func, gpointer data);

/* --- profiles that monitors ask for (gtorch-exporter-profile.c); the first two answer --- */
void gtorch_export_start_profile (GTorchExport *self, GDBusMethodInvocation *invocation,
                                  gdouble seconds);
void gtorch_export_stop_profile (GTorchExport *self, GDBusMethodInvocation *invocation);
GVariant *gtorch_export_get_profile_state (GTorchExport *self);
void gtorch_export_end_profile (GTorchExport *self);
void gtorch_export_profile_clear (GTorchExportProfile *self);

/* --- answers (gtorch-exporter-answers.c): each a tuple, NULL with an error of G_DBUS_ERROR --- */
GVariant *gtorch_export_list_devices (void);
GVariant *gtorch_export_get_allocator_statistics (const gchar *device, GError **error);
GVariant *gtorch_export_get_memory_blocks (const gchar *device, guint max_blocks, GError **error);
GVariant *gtorch_export_list_streams (void);
GVariant *gtorch_export_list_modules (GTorchExport *self);
GVariant *gtorch_export_list_parameters (GTorchExport *self, const gchar *module, guint first,
                                         guint n, GError **error);
GVariant *gtorch_export_list_scalars (GTorchExport *self);
GVariant *gtorch_export_get_scalar_values (GTorchExport *self, const gchar *name, guint64 first,
                                           guint n, GError **error);
/* Returns the parameter; a new reference. */
GTorchImpl *gtorch_export_find_parameter (GTorchExport *self, const gchar *module,
                                          const gchar *parameter, GError **error);

/* --- numbers of tensors (gtorch-exporter-statistics.c) --- */
/* A dictionary of the values of the tensor and of its gradient. Takes time; gives up if *is_stopped. */
GVariant *gtorch_export_compute_statistics (GTorchImpl *impl, guint n_bins, const gint *is_stopped,
                                            GError **error);

/* --- modules (gtorch-exporter-module.c) --- */
GTorchExportedModule *gtorch_exported_module_new (const gchar *name, GTorchModule *module);
GTorchExportedModule *gtorch_exported_module_ref (GTorchExportedModule *self);
void gtorch_exported_module_unref (gpointer self);

G_END_DECLS
