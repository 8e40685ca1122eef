/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Who is told of finished traces, and of ranges of the program as they come. */

#include "config.h"

#include "profiler/gtorch-profile-buffer-private.h"

#include "base/gtorch-fork-private.h"

static GMutex lock;
GTORCH_FORK_LOCK (lock);

#define MAX_SINKS 4

static const GTorchProfileSink *sinks[MAX_SINKS]; /* atomic */
gint gtorch_n_range_sinks;                        /* atomic */

void
gtorch_profile_sink_add (const GTorchProfileSink *sink)
{
  guint i;

  g_mutex_lock (&lock);
  for (i = 0; i < MAX_SINKS && sinks[i] != sink && sinks[i] != NULL; i++)
    ;
  g_assert (i < MAX_SINKS);
  if (sinks[i] == NULL && (sink->range_begin != NULL || sink->range_end != NULL))
    g_atomic_int_inc (&gtorch_n_range_sinks);
  g_atomic_pointer_set (&sinks[i], sink);
  g_mutex_unlock (&lock);
}

void
gtorch_profile_sink_remove (const GTorchProfileSink *sink)
{
  guint i;

  g_mutex_lock (&lock);
  for (i = 0; i < MAX_SINKS; i++)
    if (sinks[i] == sink)
      {
        g_atomic_pointer_set (&sinks[i], NULL);
        if (sink->range_begin != NULL || sink->range_end != NULL)
          g_atomic_int_add (&gtorch_n_range_sinks, -1);
      }
  g_mutex_unlock (&lock);
}

void
gtorch_profile_sinks_tell_trace (GTorchProfiler *profiler, GTorchTrace *trace)
{
  guint i;

  for (i = 0; i < MAX_SINKS; i++)
    {
      const GTorchProfileSink *sink = g_atomic_pointer_get (&sinks[i]);

      if (sink != NULL && sink->trace != NULL)
        sink->trace (profiler, trace);
    }
}

void
gtorch_profile_sinks_tell_begin (guint64 id, const gchar *name)
{
  guint i;

  for (i = 0; i < MAX_SINKS; i++)
    {
      const GTorchProfileSink *sink = g_atomic_pointer_get (&sinks[i]);

      if (sink != NULL && sink->range_begin != NULL)
        sink->range_begin (id, name);
    }
}

void
gtorch_profile_sinks_tell_end (guint64 id)
{
  guint i;

  for (i = 0; i < MAX_SINKS; i++)
    {
      const GTorchProfileSink *sink = g_atomic_pointer_get (&sinks[i]);

      if (sink != NULL && sink->range_end != NULL)
        sink->range_end (id);
    }
}
