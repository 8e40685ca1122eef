/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Who does the work of a run: the calling thread, a thread of the run's own, or the main context of the
 * program, a part at a time. A run is a few steps ahead of its device, no more: then it waits, the threads by
 * sleeping, the main context by a source. So it does for the handlers of its signals, which the main context
 * calls itself before the next part. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>

#include "memory/gtorch-guard.h"

typedef struct
{
  GTorchTrainerRun *run;
  GTask *task;
  GThread *thread;
  GMainContext *context;
  GError *error;
} Drive;

/* A part, on the stream of the run. */
static gboolean
advance (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GTorchStreamGuard) guard =
      run->stream != NULL ? gtorch_stream_guard_new (run->stream) : NULL;

  return gtorch_trainer_run_advance (run, error);
}

static gboolean
work (GTorchTrainerRun *run, GError **error)
{
  GTorchTrainerPoint *point;

  while (run->phase != GTORCH_TRAINER_PHASE_DONE)
    {
      while ((point = gtorch_trainer_run_awaited (run)) != NULL)
        if (!gtorch_event_synchronize (point->event, run->cancellable, error)
            || !gtorch_trainer_run_harvest (run, error))
          return FALSE;
      if (!gtorch_trainer_run_harvest (run, error))
        return FALSE;
      gtorch_trainer_delivery_wait (run->delivery, gtorch_trainer_run_ahead (run), run->cancellable,
                                    &run->is_stopped);
      if (!advance (run, error))
        return FALSE;
    }
  return TRUE;
}

/* What the stream still has is waited for: afterwards the program may read everything. */
static void
settle (GTorchTrainerRun *run, GError **error)
{
  GError *local = NULL;

  if (run->stream != NULL && !gtorch_stream_synchronize (run->stream, NULL, &local)
      && *error == NULL)
    *error = g_steal_pointer (&local);
  g_clear_error (&local);
}

/* What has failed, or was cancelled, cannot be failed by the program. */
static void
report (GTorchTrainerRun *run, const GError *error)
{
  if (error != NULL)
    {
      g_mutex_lock (&run->priv->lock);
      run->is_failed = TRUE;
      g_mutex_unlock (&run->priv->lock);
    }
  if (error != NULL && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    gtorch_trainer_delivery_add (run->delivery, GTORCH_TRAINER_FAILED, 0, 0, error);
}

/* Emits what is left. A handler may still fail the run. */
static void
tell_the_end (GTorchTrainerRun *run, GError **error)
{
  GError *late = NULL;

  gtorch_trainer_delivery_flush (run->delivery);
  if (!gtorch_trainer_run_end_telling (run, &late))
    return;
  if (*error == NULL)
    {
      *error = g_steal_pointer (&late);
      report (run, *error);
      gtorch_trainer_delivery_flush (run->delivery);
    }
  g_clear_error (&late);
}

void
gtorch_trainer_run_to_end (GTorchTrainerRun *run, GError **error)
{
  work (run, error);
  settle (run, error);
  gtorch_trainer_run_end (run, error);
  report (run, *error);
  tell_the_end (run, error);
}

/* --- the end, in the main context --- */

static void
drive_free (gpointer data)
{
  Drive *drive = data;

  if (drive->thread != NULL)
    g_thread_join (drive->thread);
  g_clear_pointer (&drive->run, gtorch_trainer_run_free);
  g_clear_object (&drive->task);
  g_clear_error (&drive->error);
  g_main_context_unref (drive->context);
  g_free (drive);
}

static void
finish (Drive *drive)
{
  g_autoptr (GTask) task = g_steal_pointer (&drive->task);

  tell_the_end (drive->run, &drive->error);
  g_clear_pointer (&drive->run, gtorch_trainer_run_free);
  if (drive->error != NULL)
    g_task_return_error (task, g_steal_pointer (&drive->error));
  else
    g_task_return_boolean (task, TRUE);
}

static gboolean
on_end (gpointer data)
{
  Drive *drive = data;

  g_thread_join (g_steal_pointer (&drive->thread)); /* it has nothing left to do */
  finish (drive);
  return G_SOURCE_REMOVE;
}

static void
attach (Drive *drive, GSource *source, GSourceFunc func, GDestroyNotify destroy)
{
  g_source_set_static_name (source, "[GTorch] trainer");
  g_source_set_callback (source, func, drive, destroy);
  g_source_attach (source, drive->context);
  g_source_unref (source);
}

static Drive *
drive_new (GTorchTrainerRun *run, GTask *task)
{
  Drive *drive = g_new0 (Drive, 1);

  drive->run = run;
  drive->task = task;
  drive->context = g_main_context_ref (g_task_get_context (task));
  return drive;
}

/* --- a thread --- */

static gpointer
train (gpointer data)
{
  Drive *drive = data;
  GTorchTrainerRun *run = drive->run;

  work (run, &drive->error);
  settle (run, &drive->error);
  gtorch_trainer_run_end (run, &drive->error);
  report (run, drive->error);
  /* The program gets the end, and drops what is left, in its own context. */
  attach (drive, g_idle_source_new (), on_end, drive_free);
  return NULL;
}

/* The thread is known before it can end. */
static gpointer
begin (gpointer data)
{
  Drive *drive = data;

  g_mutex_lock (&drive->run->priv->lock);
  g_mutex_unlock (&drive->run->priv->lock);
  return train (drive);
}

void
gtorch_trainer_drive_thread (GTorchTrainerRun *run, GTask *task)
{
  Drive *drive = drive_new (run, task);
  GMutex *lock = &run->priv->lock;

  g_mutex_lock (lock);
  drive->thread = g_thread_try_new ("gtorch-trainer", begin, drive, &drive->error);
  g_mutex_unlock (lock);
  if (drive->thread != NULL)
    return;
  gtorch_trainer_run_end (run, &drive->error);
  finish (drive);
  drive_free (drive);
}

/* --- the main context --- */

static gboolean on_part (gpointer data);

static gboolean
on_reached (gpointer data)
{
  attach (data, g_idle_source_new (), on_part, NULL);
  return G_SOURCE_REMOVE;
}

static void
on_settled (GObject *stream, GAsyncResult *result, gpointer data)
{
  Drive *drive = data;
  GError *local = NULL;

  if (stream != NULL && !gtorch_stream_synchronize_finish (GTORCH_STREAM (stream), result, &local)
      && drive->error == NULL)
    drive->error = g_steal_pointer (&local);
  g_clear_error (&local);
  gtorch_trainer_run_end (drive->run, &drive->error);
  report (drive->run, drive->error);
  finish (drive);
  drive_free (drive);
}

/* As settle (), without blocking: a run that was cancelled has steps on its stream yet. */
static void
settle_in_context (Drive *drive)
{
  if (drive->run->stream == NULL)
    {
      on_settled (NULL, NULL, drive);
      return;
    }
  g_main_context_push_thread_default (drive->context);
  gtorch_stream_synchronize_async (drive->run->stream, NULL, on_settled, drive);
  g_main_context_pop_thread_default (drive->context);
}

static gboolean
on_part (gpointer data)
{
  Drive *drive = data;
  GTorchTrainerRun *run = drive->run;
  gboolean done = gtorch_trainer_run_harvest (run, &drive->error);
  GTorchTrainerPoint *point = done ? gtorch_trainer_run_awaited (run) : NULL;

  if (point != NULL)
    {
      if (run->cancellable == NULL
          || !g_cancellable_set_error_if_cancelled (run->cancellable, &drive->error))
        {
          attach (drive, gtorch_event_create_source (point->event, run->cancellable), on_reached,
                  NULL);
          return G_SOURCE_REMOVE;
        }
      done = FALSE;
    }
  if (done)
    gtorch_trainer_delivery_serve (run->delivery);
  done = done && advance (run, &drive->error);
  if (done && run->phase != GTORCH_TRAINER_PHASE_DONE)
    return G_SOURCE_CONTINUE;
  settle_in_context (drive);
  return G_SOURCE_REMOVE;
}

void
gtorch_trainer_drive_context (GTorchTrainerRun *run, GTask *task)
{
  attach (drive_new (run, task), g_idle_source_new (), on_part, NULL);
}
