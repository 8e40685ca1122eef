/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reports the progress of work in another thread in the main context of the caller. */

#include "config.h"

#include "io/gtorch-safetensors-private.h"

struct _GTorchProgress
{
  gint ref_count;
  GFileProgressCallback func;
  gpointer data;
  GDestroyNotify destroy;
  GMainContext *context;
  GThread *thread;     /* the owner of the context */
  gboolean is_stopped; /* accessed atomically */
};

typedef struct
{
  GTorchProgress *progress;
  goffset current, total;
} Report;

GTorchProgress *
gtorch_progress_new (GFileProgressCallback func, gpointer data, GDestroyNotify destroy)
{
  GTorchProgress *self = g_new (GTorchProgress, 1);

  *self = (GTorchProgress){
    1, func, data, destroy, g_main_context_ref_thread_default (), g_thread_self (), FALSE
  };
  return self;
}

/* Not g_main_context_invoke (): that acquires the context, and runs the function in this thread, if no
 * thread iterates it. */
static void
attach (GTorchProgress *self, GSourceFunc func, gpointer data, GDestroyNotify notify)
{
  /* the attached source may run, and drop the owner's references, before this function returns */
  g_autoptr (GMainContext) context = g_main_context_ref (self->context);
  g_autoptr (GSource) source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_static_name (source, "[GTorch] progress");
  g_source_set_callback (source, func, data, notify);
  g_source_attach (source, context);
}

static gboolean
destroy_data (gpointer data)
{
  GTorchProgress *self = data;

  if (self->destroy != NULL)
    self->destroy (self->data);
  g_main_context_unref (self->context);
  g_free (self);
  return G_SOURCE_REMOVE;
}

void
gtorch_progress_unref (gpointer progress)
{
  GTorchProgress *self = progress;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (g_thread_self () == self->thread || g_main_context_is_owner (self->context))
    destroy_data (self);
  else
    attach (self, destroy_data, self, NULL);
}

void
gtorch_progress_stop (GTorchProgress *self)
{
  g_atomic_int_set (&self->is_stopped, TRUE);
}

static gboolean
deliver (gpointer data)
{
  Report *report = data;

  if (!g_atomic_int_get (&report->progress->is_stopped))
    report->progress->func (report->current, report->total, report->progress->data);
  return G_SOURCE_REMOVE;
}

static void
report_free (gpointer data)
{
  Report *report = data;

  gtorch_progress_unref (report->progress);
  g_free (report);
}

void
gtorch_progress_report (goffset current, goffset total, gpointer progress)
{
  GTorchProgress *self = progress;
  Report *report;

  if (self->func == NULL || g_atomic_int_get (&self->is_stopped))
    return;
  report = g_new (Report, 1);
  *report = (Report){ self, current, total };
  g_atomic_int_inc (&self->ref_count);
  attach (self, deliver, report, report_free);
}
