/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Profiles that monitors ask for. The profiler starts, and its profile is written, in the thread
 * that computes statistics, since both may take long; the thread that answers looks every few
 * milliseconds whether the time is over, or the records are many. A profile does not end while a
 * graph is being captured: the devices are waited for. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "export/gtorch-exporter-private.h"
#include "profiler/gtorch-profile-buffer-private.h"
#include "profiler/gtorch-profile-list-private.h"
#include "stream/gtorch-stream-private.h"

#define LEAST_SECONDS 0.1
#define MOST_SECONDS  60.0
#define LOOK_INTERVAL 20 /* ms */
/* Of records of the host; the text has up to eight times as many. */
#define MOST_RECORDS (GTORCH_EXPORT_MAX_PROFILE / 8)

static const gchar *const states[] = {
  [GTORCH_EXPORT_PROFILE_NONE] = "none",
  [GTORCH_EXPORT_PROFILE_BEGINS] = "recording",
  [GTORCH_EXPORT_PROFILE_RECORDS] = "recording",
  [GTORCH_EXPORT_PROFILE_ENDS] = "writing",
};

void
gtorch_export_profile_clear (GTorchExportProfile *self)
{
  g_clear_object (&self->profiler);
  g_clear_pointer (&self->waiting, g_ptr_array_unref);
  g_clear_pointer (&self->text, g_free);
  g_clear_pointer (&self->note, g_free);
}

/* --- the end --- */

/* Answers those that have stopped it. */
static void
tell (GPtrArray *waiting, const gchar *failure, gsize length)
{
  for (guint i = 0; waiting != NULL && i < waiting->len; i++)
    if (failure != NULL)
      g_dbus_method_invocation_return_error_literal (waiting->pdata[i], G_DBUS_ERROR,
                                                     G_DBUS_ERROR_FAILED, failure);
    else
      g_dbus_method_invocation_return_value (waiting->pdata[i],
                                             g_variant_new ("(t)", (guint64) length));
}

/* In the thread of statistics. */
static void
write_profile (GTorchExport *self, gpointer data)
{
  g_autoptr (GTorchProfiler) profiler = data;
  g_autoptr (GPtrArray) waiting = NULL;
  g_autoptr (GError) error = NULL;
  GTorchExportProfile *profile = &self->profiling;
  gchar *text = NULL;
  gsize length = 0;

  if (gtorch_profiler_stop (profiler, &error))
    text = gtorch_profiler_dup_chrome_trace (profiler, GTORCH_EXPORT_MAX_PROFILE, &length, &error);
  g_mutex_lock (&self->lock);
  profile->state = GTORCH_EXPORT_PROFILE_NONE;
  profile->number++;
  waiting = g_steal_pointer (&profile->waiting);
  g_free (profile->text);
  profile->text = text;
  if (error != NULL)
    {
      g_free (profile->note);
      profile->note = g_strdup (error->message);
    }
  g_mutex_unlock (&self->lock);
  tell (waiting, error != NULL ? error->message : NULL, length);
}

static void
note_capture (GTorchStream *stream, gpointer data)
{
  if (__atomic_load_n (&stream->capture, __ATOMIC_RELAXED) != NULL)
    *(gboolean *) data = TRUE;
}

static gboolean
is_capturing (void)
{
  gboolean result = FALSE;

  gtorch_streams_foreach (note_capture, &result);
  return result;
}

/* Begins to end the profile if it is time; returns FALSE then, or if somebody else has. With the lock. */
static GTorchProfiler *
take_due (GTorchExport *self)
{
  GTorchExportProfile *profile = &self->profiling;
  const gsize n_bytes = gtorch_profile_buffers_count_bytes ();

  if (n_bytes <= MOST_RECORDS && g_get_monotonic_time () < profile->until)
    return NULL;
  if (n_bytes > MOST_RECORDS && profile->waiting == NULL)
    {
      g_free (profile->note);
      profile->note =
          g_strdup_printf (_ ("ended after %.2f seconds, with as much as a profile may have"),
                           (g_get_monotonic_time () - profile->begun) / (gdouble) G_USEC_PER_SEC);
    }
  profile->state = GTORCH_EXPORT_PROFILE_ENDS;
  return g_steal_pointer (&profile->profiler);
}

/* In the thread that answers. */
static gboolean
look (gpointer data)
{
  GTorchExport *self = data;
  GTorchProfiler *profiler = NULL;
  gboolean is_recording;

  if (is_capturing ())
    return G_SOURCE_CONTINUE;
  g_mutex_lock (&self->lock);
  is_recording = self->profiling.state == GTORCH_EXPORT_PROFILE_RECORDS;
  if (is_recording)
    profiler = take_due (self);
  g_mutex_unlock (&self->lock);
  if (profiler == NULL)
    return is_recording;
  if (!gtorch_export_push (self, write_profile, profiler))
    g_object_unref (profiler); /* the export ends, and with it the recording */
  return G_SOURCE_REMOVE;
}

/* --- the beginning --- */

/* With the lock. */
static void
watch (GTorchExport *self)
{
  g_autoptr (GSource) source = g_timeout_source_new (LOOK_INTERVAL);

  g_source_set_static_name (source, "[GTorch] profile of a monitor");
  g_source_set_callback (source, look, gtorch_export_ref (self),
                         (GDestroyNotify) gtorch_export_unref);
  g_source_attach (source, self->context);
}

typedef struct
{
  GDBusMethodInvocation *invocation;
  gint64 length; /* us */
} Beginning;

/* In the thread of statistics. */
static void
begin (GTorchExport *self, gpointer data)
{
  g_autofree Beginning *beginning = data;
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  g_autoptr (GPtrArray) waiting = NULL;
  GTorchExportProfile *profile = &self->profiling;
  g_autoptr (GError) error = NULL;

  gtorch_profiler_start (profiler, &error);
  g_mutex_lock (&self->lock);
  if (error == NULL && self->context == NULL)
    g_set_error_literal (&error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("the export has ended"));
  if (error == NULL)
    {
      profile->state = GTORCH_EXPORT_PROFILE_RECORDS;
      profile->profiler = g_steal_pointer (&profiler);
      profile->begun = g_get_monotonic_time ();
      profile->until = profile->waiting == NULL ? profile->begun + beginning->length : 0;
      g_clear_pointer (&profile->note, g_free);
      watch (self);
    }
  else
    {
      profile->state = GTORCH_EXPORT_PROFILE_NONE;
      waiting = g_steal_pointer (&profile->waiting);
    }
  g_mutex_unlock (&self->lock);
  if (error == NULL)
    g_dbus_method_invocation_return_value (beginning->invocation, NULL);
  else
    g_dbus_method_invocation_return_error (beginning->invocation, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
                                           "StartProfile: %s", error->message);
  tell (waiting, error != NULL ? error->message : NULL, 0);
}

/* --- calls --- */

static gboolean
check_start (GTorchExport *self, gdouble seconds, GError **error)
{
  gboolean is_free;

  if (!(seconds >= LEAST_SECONDS && seconds <= MOST_SECONDS))
    {
      g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
                   _ ("%s: seconds is %g, it must be from %g to %g"), "StartProfile", seconds,
                   LEAST_SECONDS, MOST_SECONDS);
      return FALSE;
    }
  if (g_atomic_int_get (&self->refuses_profiles))
    {
      g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_ACCESS_DENIED,
                   _ ("%s: the program does not allow it"), "StartProfile");
      return FALSE;
    }
  g_mutex_lock (&self->lock);
  is_free = self->profiling.state == GTORCH_EXPORT_PROFILE_NONE;
  if (is_free)
    self->profiling.state = GTORCH_EXPORT_PROFILE_BEGINS;
  g_mutex_unlock (&self->lock);
  if (!is_free)
    g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_LIMITS_EXCEEDED,
                 _ ("%s: a profile is being recorded already"), "StartProfile");
  return is_free;
}

void
gtorch_export_start_profile (GTorchExport *self, GDBusMethodInvocation *invocation, gdouble seconds)
{
  g_autoptr (GError) error = NULL;
  Beginning *beginning;

  if (!check_start (self, seconds, &error))
    {
      g_dbus_method_invocation_return_gerror (invocation, error);
      return;
    }
  beginning = g_new (Beginning, 1);
  *beginning = (Beginning){ invocation, (gint64) (seconds * G_USEC_PER_SEC) };
  if (gtorch_export_push (self, begin, beginning))
    return;
  g_free (beginning);
  g_mutex_lock (&self->lock);
  self->profiling.state = GTORCH_EXPORT_PROFILE_NONE;
  g_mutex_unlock (&self->lock);
  g_dbus_method_invocation_return_error (invocation, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
                                         _ ("%s: the export has ended"), "StartProfile");
}

void
gtorch_export_stop_profile (GTorchExport *self, GDBusMethodInvocation *invocation)
{
  GTorchExportProfile *profile = &self->profiling;
  gboolean is_recording;

  g_mutex_lock (&self->lock);
  is_recording = profile->state != GTORCH_EXPORT_PROFILE_NONE;
  if (is_recording)
    {
      if (profile->waiting == NULL)
        profile->waiting = g_ptr_array_new ();
      g_ptr_array_add (profile->waiting, invocation);
      profile->until = 0;
    }
  g_mutex_unlock (&self->lock);
  if (!is_recording)
    g_dbus_method_invocation_return_error (invocation, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
                                           _ ("%s: no profile is being recorded"), "StopProfile");
}

GVariant *
gtorch_export_get_profile_state (GTorchExport *self)
{
  GTorchExportProfile *profile = &self->profiling;
  GVariant *tuple;
  gdouble seconds = 0;

  g_mutex_lock (&self->lock);
  if (profile->state == GTORCH_EXPORT_PROFILE_RECORDS)
    seconds = (g_get_monotonic_time () - profile->begun) / (gdouble) G_USEC_PER_SEC;
  tuple = g_variant_new ("(suds)", states[profile->state], profile->number, seconds,
                         profile->note != NULL ? profile->note : "");
  g_mutex_unlock (&self->lock);
  return tuple;
}

/* What records is dropped; those that wait for it are told. */
void
gtorch_export_end_profile (GTorchExport *self)
{
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GPtrArray) waiting = NULL;

  g_mutex_lock (&self->lock);
  if (self->profiling.state == GTORCH_EXPORT_PROFILE_RECORDS)
    {
      self->profiling.state = GTORCH_EXPORT_PROFILE_NONE;
      profiler = g_steal_pointer (&self->profiling.profiler);
      waiting = g_steal_pointer (&self->profiling.waiting);
    }
  g_mutex_unlock (&self->lock);
  tell (waiting, _ ("the export has ended"), 0);
}
