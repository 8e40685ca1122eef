/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "export/gtorch-exporter.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-json-private.h"
#include "base/gtorch-program-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "export/gtorch-exporter-private.h"
#include "train/gtorch-log-private.h"
#include "train/gtorch-trainer-parts.h"

/**
 * GTorchExporter:
 *
 * Shows on the session bus what the program does: the memory of its tensors, its streams, the parameters of
 * its modules, and numbers such as the loss.
 *
 * `gtorch-top` and GTorch Monitor read it. Nothing is exported until [method@Exporter.start], and
 * nobody can change anything in the program. Every program of the same user can read what is
 * exported, and record a profile of it unless [property@Exporter:allow-profiles] is off.
 *
 * An exporter is a [class@Log], so a trainer's numbers are shown by [method@Trainer.add_log], and those of a
 * loop of one's own by [method@Exporter.add_scalar]. It answers in a thread of its own, and needs no main
 * loop. All of its functions may be called from any thread.
 *
 * ```c
 * exporter = gtorch_exporter_new ("digits");
 * if (!gtorch_exporter_start (exporter, NULL, &error)
 *     || !gtorch_exporter_add_module (exporter, "model", model, &error))
 *   g_warning ("%s", error->message);
 * ```
 *
 * With `GTORCH_EXPORT=1` in the environment a program is exported without a change of it, with the modules
 * and numbers of its trainers; see [func@Exporter.get_default].
 *
 * Since: 0.1
 */
struct _GTorchExporter
{
  GTorchLog parent_instance;
  gchar *name; /* until constructed () */
  GTorchExport *export;
};

G_DEFINE_TYPE (GTorchExporter, gtorch_exporter, GTORCH_TYPE_LOG)

/* --- what is exported --- */

static void
scalar_free (gpointer data)
{
  GTorchExportedScalar *self = data;

  g_free (self->name);
  g_array_unref (self->values);
  g_free (self);
}

GTorchExport *
gtorch_export_ref (GTorchExport *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_export_unref (GTorchExport *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_fork_remove_lock (&self->lock);
  g_mutex_clear (&self->lock);
  g_ptr_array_unref (self->modules);
  g_hash_table_unref (self->scalars_by_name);
  g_ptr_array_unref (self->scalars);
  gtorch_export_profile_clear (&self->profiling);
  g_free (self->profile);
  g_free (self->program);
  g_free (self);
}

static GTorchExport *
gtorch_export_new (const gchar *name)
{
  GTorchExport *self = g_new0 (GTorchExport, 1);

  self->ref_count = 1;
  self->program = name != NULL ? g_utf8_make_valid (name, -1) : gtorch_program_dup_name ();
  self->started = g_get_real_time ();
  self->modules = g_ptr_array_new_with_free_func (gtorch_exported_module_unref);
  self->scalars = g_ptr_array_new_with_free_func (scalar_free);
  self->scalars_by_name = g_hash_table_new (g_str_hash, g_str_equal);
  g_mutex_init (&self->lock);
  gtorch_fork_add_lock (&self->lock);
  return self;
}

/* Adds a value; with the lock held. Of too many values every second one goes. */
static gboolean
add_value (GTorchExport *self, const gchar *name, GTorchExportedValue value, GError **error)
{
  GTorchExportedScalar *scalar = g_hash_table_lookup (self->scalars_by_name, name);
  guint i;

  if (scalar == NULL && self->scalars->len == GTORCH_EXPORT_MAX_SCALARS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("exporter_add_scalar: “%s” would be one more than the %d scalars that an "
                      "exporter can have"),
                   gtorch_name_str (name), GTORCH_EXPORT_MAX_SCALARS);
      return FALSE;
    }
  if (scalar == NULL)
    {
      scalar = g_new0 (GTorchExportedScalar, 1);
      scalar->name = g_strdup (name);
      scalar->values = g_array_new (FALSE, FALSE, sizeof (GTorchExportedValue));
      g_ptr_array_add (self->scalars, scalar);
      g_hash_table_insert (self->scalars_by_name, scalar->name, scalar);
    }
  if (scalar->values->len == GTORCH_EXPORT_MAX_VALUES)
    {
      for (i = 0; i < GTORCH_EXPORT_MAX_VALUES / 2; i++)
        g_array_index (scalar->values, GTorchExportedValue, i) =
            g_array_index (scalar->values, GTorchExportedValue, 2 * i + 1);
      g_array_set_size (scalar->values, GTORCH_EXPORT_MAX_VALUES / 2);
      scalar->generation++;
    }
  g_array_append_val (scalar->values, value);
  return TRUE;
}

static gboolean
check_name (const gchar *who, const gchar *name, GError **error)
{
  if (!gtorch_name_check (who, name, error))
    return FALSE;
  if (name[0] != '\0')
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the name is empty"), who);
  return FALSE;
}

/* --- a log --- */

static gboolean
gtorch_exporter_write (GTorchLog *log, gint64 step, const gchar *const *names,
                       const gdouble *values, gsize n_values, GError **error)
{
  GTorchExport *self = GTORCH_EXPORTER (log)->export;
  const gint64 time = g_get_real_time ();
  gboolean result = TRUE;
  gsize i;

  for (i = 0; i < n_values; i++)
    if (!check_name ("exporter_add_scalar", names[i], error))
      return FALSE;
  g_mutex_lock (&self->lock);
  for (i = 0; result && i < n_values; i++)
    result = add_value (self, names[i], (GTorchExportedValue){ step, time, values[i] }, error);
  g_mutex_unlock (&self->lock);
  return result;
}

static gboolean
gtorch_exporter_close (GTorchLog *log, GError **error)
{
  gtorch_export_stop (GTORCH_EXPORTER (log)->export);
  return TRUE;
}

/* --- the object --- */

GTorchExport *
gtorch_exporter_get_export (GTorchExporter *self)
{
  return self->export;
}

static const gchar *
gtorch_exporter_get_name (GTorchExporter *self)
{
  return self->export != NULL ? self->export->program : self->name;
}

static void
gtorch_exporter_set_name (GTorchExporter *self, const gchar *name)
{
  g_free (self->name);
  self->name = g_strdup (name);
}

static gboolean
gtorch_exporter_get_allow_profiles (GTorchExporter *self)
{
  return !g_atomic_int_get (&self->export->refuses_profiles);
}

static void
gtorch_exporter_set_allow_profiles (GTorchExporter *self, gboolean allow)
{
  if (g_atomic_int_exchange (&self->export->refuses_profiles, !allow) != !allow)
    g_object_notify (G_OBJECT (self), "allow-profiles");
}

typedef GTorchExporter Self;

static const GTorchField fields[] = {
  /**
   * GTorchExporter:name:
   *
   * The name that monitors show; by default that of the program, or of its script.
   *
   * Since: 0.1
   */
  { "name", GTORCH_PROPERTY_STRING (gtorch_exporter_get_name, gtorch_exporter_set_name),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchExporter:allow-profiles:
   *
   * Whether monitors may record a profile of the program, of a minute at most.
   *
   * Since: 0.1
   */
  { "allow-profiles",
    GTORCH_PROPERTY_BOOL (gtorch_exporter_get_allow_profiles, gtorch_exporter_set_allow_profiles),
    .value = TRUE },
};

static void
gtorch_exporter_constructed (GObject *object)
{
  GTorchExporter *self = GTORCH_EXPORTER (object);

  G_OBJECT_CLASS (gtorch_exporter_parent_class)->constructed (object);
  self->export = gtorch_export_new (self->name);
}

static void
gtorch_exporter_finalize (GObject *object)
{
  GTorchExporter *self = GTORCH_EXPORTER (object);

  gtorch_export_stop (self->export);
  gtorch_export_unref (self->export);
  g_free (self->name);
  G_OBJECT_CLASS (gtorch_exporter_parent_class)->finalize (object);
}

static void
gtorch_exporter_class_init (GTorchExporterClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GTorchLogClass *log_class = GTORCH_LOG_CLASS (klass);

  object_class->constructed = gtorch_exporter_constructed;
  object_class->finalize = gtorch_exporter_finalize;
  log_class->write = gtorch_exporter_write;
  log_class->close = gtorch_exporter_close;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_exporter_init (GTorchExporter *self)
{
}

/**
 * gtorch_exporter_new:
 * @name: (nullable): the name that monitors show; %NULL for that of the program
 *
 * Creates an exporter, which exports nothing yet.
 *
 * Returns: (transfer full): the exporter; drop it to end the export
 *
 * Since: 0.1
 */
GTorchExporter *
gtorch_exporter_new (const gchar *name)
{
  return g_object_new (GTORCH_TYPE_EXPORTER, "name", name, NULL);
}

/* The name of new (), which has no errors. */
static gboolean
check_start (GTorchExporter *self, GError **error)
{
  if (!check_name ("exporter_start", self->export->program, error)
      || !gtorch_log_lock (GTORCH_LOG (self), "exporter_start", error))
    return FALSE;
  gtorch_log_unlock (GTORCH_LOG (self));
  return TRUE;
}

/**
 * gtorch_exporter_start:
 * @self: an exporter
 * @cancellable: (nullable): stops the waiting for the bus
 * @error: return location for an error
 *
 * Connects to the session bus and exports the program there.
 *
 * Waits for the bus, for a millisecond or so if it runs; [method@Exporter.start_async] does not.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if it is started already or has an empty name, or with
 *   the error of the bus, such as that there is none
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_start (GTorchExporter *self, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !check_start (self, error))
    return FALSE;
  return gtorch_export_start (self->export, cancellable, error);
}

static void
start_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;

  if (gtorch_export_start (data, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_exporter_start_async:
 * @self: an exporter
 * @cancellable: (nullable): stops the waiting for the bus
 * @callback: (nullable) (scope async) (closure user_data): called when the program is exported
 * @user_data: passed to @callback
 *
 * Connects to the session bus and exports the program there, without blocking the main loop.
 *
 * Since: 0.1
 */
void
gtorch_exporter_start_async (GTorchExporter *self, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_EXPORTER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_exporter_start_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  if (!check_start (self, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  g_task_set_task_data (task, gtorch_export_ref (self->export),
                        (GDestroyNotify) gtorch_export_unref);
  g_task_run_in_thread (task, start_in_thread);
}

/**
 * gtorch_exporter_start_finish:
 * @self: the exporter
 * @result: the result that the callback was given
 * @error: return location for an error
 *
 * Finishes [method@Exporter.start_async].
 *
 * Returns: %TRUE; %FALSE with the errors of [method@Exporter.start]
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_start_finish (GTorchExporter *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_exporter_start_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_exporter_stop:
 * @self: an exporter
 *
 * Ends the export, if it was started. What was added stays, and is exported by the next
 * [method@Exporter.start].
 *
 * Since: 0.1
 */
void
gtorch_exporter_stop (GTorchExporter *self)
{
  g_return_if_fail (GTORCH_IS_EXPORTER (self));
  gtorch_export_stop (self->export);
}

/**
 * gtorch_exporter_is_active:
 * @self: an exporter
 *
 * Tells whether the program is exported: it was started, and the bus is still there.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_is_active (GTorchExporter *self)
{
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_mutex_lock (&self->export->lock);
  result = self->export->bus != NULL && !self->export->is_child
           && !g_dbus_connection_is_closed (self->export->bus);
  g_mutex_unlock (&self->export->lock);
  return result;
}

/**
 * gtorch_exporter_dup_bus_name:
 * @self: an exporter
 *
 * Gets the name that the program has on the bus. It has the interface `org.gtorch.Program1` at the object
 * `/org/gtorch/Program1`.
 *
 * Returns: (transfer full) (nullable): the name; %NULL if the exporter is not started
 *
 * Since: 0.1
 */
gchar *
gtorch_exporter_dup_bus_name (GTorchExporter *self)
{
  gchar *name;

  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), NULL);
  g_mutex_lock (&self->export->lock);
  name = self->export->is_child ? NULL : g_strdup (self->export->bus_name);
  g_mutex_unlock (&self->export->lock);
  return name;
}

/* --- adding --- */

static gint
find_module (GTorchExport *self, const gchar *name)
{
  guint i;

  for (i = 0; i < self->modules->len; i++)
    if (strcmp (((GTorchExportedModule *) self->modules->pdata[i])->name, name) == 0)
      return (gint) i;
  return -1;
}

/**
 * gtorch_exporter_add_module:
 * @self: an exporter
 * @name: the name that monitors show
 * @module: a module
 * @error: return location for an error
 *
 * Shows the parameters that a module has now, with the values that they and their gradients have when a
 * monitor asks.
 *
 * The exporter keeps neither the module nor, once it is gone, its parameters. If parameters are added to the
 * module, add it again: a module of the same name takes the former one's place.
 *
 * Values are read in another thread while the program may be changing them.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the name is not UTF-8, or there are 1000 modules
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_add_module (GTorchExporter *self, const gchar *name, GTorchModule *module,
                            GError **error)
{
  GTorchExportedModule *entry, *former = NULL;
  GTorchExport *export;
  gboolean has_room;
  gint place;

  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);
  if (!check_name ("exporter_add_module", name, error))
    return FALSE;
  export = self->export;
  entry = gtorch_exported_module_new (name, module);
  g_mutex_lock (&export->lock);
  place = find_module (export, name);
  has_room = place >= 0 || export->modules->len < GTORCH_EXPORT_MAX_MODULES;
  if (place >= 0)
    {
      former = export->modules->pdata[place];
      export->modules->pdata[place] = gtorch_exported_module_ref (entry);
    }
  else if (has_room)
    g_ptr_array_add (export->modules, gtorch_exported_module_ref (entry));
  g_mutex_unlock (&export->lock);
  g_clear_pointer (&former, gtorch_exported_module_unref);
  gtorch_exported_module_unref (entry);
  if (!has_room)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("exporter_add_module: “%s” would be one more than the %d modules that an "
                    "exporter can have"),
                 gtorch_name_str (name), GTORCH_EXPORT_MAX_MODULES);
  return has_room;
}

/**
 * gtorch_exporter_remove_module:
 * @self: an exporter
 * @name: the name with which the module was added
 *
 * Shows a module no longer.
 *
 * Returns: %TRUE if there was a module of this name
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_remove_module (GTorchExporter *self, const gchar *name)
{
  GTorchExportedModule *module = NULL;
  gint place;

  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_mutex_lock (&self->export->lock);
  place = find_module (self->export, name);
  if (place >= 0)
    module = g_ptr_array_steal_index (self->export->modules, (guint) place);
  g_mutex_unlock (&self->export->lock);
  g_clear_pointer (&module, gtorch_exported_module_unref);
  return place >= 0;
}

/**
 * gtorch_exporter_add_scalar:
 * @self: an exporter
 * @name: the name of the curve, such as `train/loss`
 * @value: the value
 * @step: the step that the value belongs to
 * @error: return location for an error
 *
 * Adds a value to a curve that monitors show.
 *
 * An exporter keeps 65536 values of a curve; of more, every second one is dropped. It can have 1000 curves.
 *
 * ```c
 * gtorch_exporter_add_scalar (exporter, "train/loss", gtorch_tensor_item_double (loss, NULL), step, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the name is not UTF-8, or there are too many curves
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_add_scalar (GTorchExporter *self, const gchar *name, gdouble value, gint64 step,
                            GError **error)
{
  const gchar *const names[] = { name, NULL };

  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return gtorch_log_write (GTORCH_LOG (self), step, names, &value, 1, error);
}

/**
 * gtorch_exporter_add_trainer:
 * @self: an exporter
 * @name: the name of the trainer's module
 * @trainer: a trainer
 * @error: return location for an error
 *
 * Shows the module of a trainer, and the numbers that it logs.
 *
 * Returns: %TRUE; %FALSE with the errors of [method@Trainer.check], [method@Exporter.add_module] and
 *   [method@Trainer.add_log]
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_add_trainer (GTorchExporter *self, const gchar *name, GTorchTrainer *trainer,
                             GError **error)
{
  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TRAINER (trainer), FALSE);
  return gtorch_trainer_check (trainer, error)
         && gtorch_exporter_add_module (self, name, gtorch_trainer_get_module (trainer), error)
         && gtorch_trainer_add_log (trainer, GTORCH_LOG (self), error);
}

static gboolean
check_trace (const GTorchJsonNode *root, GError **error)
{
  const GTorchJsonNode *events =
      root->kind == GTORCH_JSON_ARRAY ? root : gtorch_json_lookup (root, "traceEvents");
  guint i = 0;

  if (events == NULL || events->kind != GTORCH_JSON_ARRAY)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("exporter_set_profile: the text is %s, it must be a trace: a list of events, "
                      "or "
                      "an object with the list as “traceEvents”"),
                   root->kind == GTORCH_JSON_OBJECT ? _ ("an object without that list")
                                                    : gtorch_json_kind_name (root));
      return FALSE;
    }
  for (const GTorchJsonNode *event = events->first; event != NULL; event = event->next, i++)
    if (event->kind != GTORCH_JSON_OBJECT)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                     _ ("exporter_set_profile: event %u of the trace is %s, it must be an object"),
                     i, gtorch_json_kind_name (event));
        return FALSE;
      }
  return TRUE;
}

/**
 * gtorch_exporter_set_profile:
 * @self: an exporter
 * @json: (nullable): a trace in Chrome's format: an object in JSON with a list `traceEvents` of objects, or
 *   only the list; %NULL for none
 * @error: return location for an error
 *
 * Gives monitors a profile of the program, which they show when they are asked to. It takes the
 * place of one that a monitor has recorded, and such a one takes its place.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the text is not UTF-8 or longer than 32 MiB, or with
 *   %GTORCH_ERROR_FORMAT if it is not JSON, or no trace
 *
 * Since: 0.1
 */
gboolean
gtorch_exporter_set_profile (GTorchExporter *self, const gchar *json, GError **error)
{
  gchar *former;
  gsize length;

  g_return_val_if_fail (GTORCH_IS_EXPORTER (self), FALSE);
  length = json != NULL ? strlen (json) : 0;
  if (length > GTORCH_EXPORT_MAX_PROFILE || !g_utf8_validate (json != NULL ? json : "", -1, NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("exporter_set_profile: the text has %zu bytes, it must be UTF-8 of at most "
                      "%d"),
                   length, GTORCH_EXPORT_MAX_PROFILE);
      return FALSE;
    }
  if (json != NULL)
    {
      g_autoptr (GTorchJson) parsed =
          gtorch_json_parse ("exporter_set_profile", json, length, error);

      if (parsed == NULL || !check_trace (gtorch_json_get_root (parsed), error))
        return FALSE;
    }
  g_mutex_lock (&self->export->lock);
  former = self->export->profile;
  self->export->profile = g_strdup (json);
  g_clear_pointer (&self->export->profiling.text, g_free);
  g_mutex_unlock (&self->export->lock);
  g_free (former);
  return TRUE;
}
