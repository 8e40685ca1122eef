/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Progress of work in another thread, told in the main context of whoever began it. */

#include "config.h"

#include "gtorch-safetensors-private.h"

struct _GTorchProgress
{
  gint ref_count;
  GFileProgressCallback func;
  gpointer data;
  GDestroyNotify destroy;
  GMainContext *context;
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

  *self = (GTorchProgress){ 1, func, data, destroy, g_main_context_ref_thread_default () };
  return self;
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

  if (g_atomic_int_dec_and_test (&self->ref_count))
    g_main_context_invoke (self->context, destroy_data, self);
}

static gboolean
deliver (gpointer data)
{
  Report *report = data;

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

  if (self->func == NULL)
    return;
  report = g_new (Report, 1);
  *report = (Report){ self, current, total };
  g_atomic_int_inc (&self->ref_count);
  g_main_context_invoke_full (self->context, G_PRIORITY_DEFAULT, deliver, report, report_free);
}
