/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Marks for Sysprof while the program runs under it, with or without a profiler: sysprof-cli --use-trace-fd
 * passes the file to write to in SYSPROF_TRACE_FD. */

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-observer-private.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-op-private.h"
#include "memory/gtorch-allocator.h"
#include "profiler/gtorch-sysprof-private.h"

#define RANK       900                             /* beside other observers, and within them */
#define COUNT_EACH (G_GINT64_CONSTANT (1000000))   /* nanoseconds between numbers of memory */
#define FLUSH_EACH (G_GINT64_CONSTANT (500000000)) /* and between writes to the file */

/* A range of the program, which any thread may end. */
typedef struct
{
  guint64 id;
  gint64 start;
  gchar *name;
  gchar group[24]; /* of the thread that has begun it */
} Range;

/* What a thread has begun and not ended. */
typedef struct
{
  gchar ops[24], ranges[24], waits[24]; /* groups */
  GArray *open;                         /* gint64: the starts of calls and replays */
  guint n_waits;
  gint64 wait_start;
} Thread;

static GMutex lock; /* protects the capturer, both times and the ranges */
static GTorchCapturer capturer;
static pid_t process;
static gint64 counted, flushed;
static GHashTable *open_ranges; /* id -> Range */

static void
range_free (gpointer data)
{
  Range *self = data;

  g_free (self->name);
  g_free (self);
}

static void
thread_free (gpointer data)
{
  Thread *self = data;

  g_array_unref (self->open);
  g_free (self);
}

static GPrivate threads = G_PRIVATE_INIT (thread_free);

static Thread *
this_thread (void)
{
  Thread *self = g_private_get (&threads);
  const guint64 id = syscall (SYS_gettid);
  gchar name[16] = "";

  if (self != NULL)
    return self;
  self = g_new0 (Thread, 1);
  prctl (PR_GET_NAME, name);
  g_snprintf (self->ops, sizeof self->ops, "ops: %.5s %" G_GUINT64_FORMAT, name, id);
  g_snprintf (self->ranges, sizeof self->ranges, "ranges: %.5s %" G_GUINT64_FORMAT, name, id);
  g_snprintf (self->waits, sizeof self->waits, "waits: %.5s %" G_GUINT64_FORMAT, name, id);
  self->open = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_private_set (&threads, self);
  return self;
}

static void
flush (gint64 now)
{
  if (now - flushed < FLUSH_EACH)
    return;
  sysprof_capture_writer_flush (capturer.writer);
  flushed = now;
}

/* The child of a fork would write to the file of its parent. */
static gboolean
is_child (void)
{
  return getpid () != process;
}

static void
mark (gint64 start, gint64 end, const gchar *group, const gchar *name, const gchar *message,
      GTorchDevice *device)
{
  GTorchAllocator *allocator = device != NULL ? gtorch_device_get_allocator (device) : NULL;

  if (is_child ())
    return;
  g_mutex_lock (&lock);
  gtorch_capturer_mark (&capturer, start, end, group, name, message);
  if (allocator != NULL && end - counted >= COUNT_EACH)
    {
      gtorch_capturer_count (&capturer, end, device, gtorch_allocator_get_allocated (allocator),
                             gtorch_allocator_get_reserved (allocator));
      counted = end;
    }
  flush (end);
  g_mutex_unlock (&lock);
}

static void
begin (GArray *open)
{
  const gint64 now = gtorch_profile_now ();

  g_array_append_val (open, now);
}

/* Returns FALSE if nothing is open: it began before this was turned on. */
static gboolean
end (GArray *open, gint64 *start)
{
  if (open->len == 0)
    return FALSE;
  *start = g_array_index (open, gint64, open->len - 1);
  g_array_set_size (open, open->len - 1);
  return TRUE;
}

/* --- events --- */

static gboolean
note_call_begin (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  begin (this_thread ()->open);
  return TRUE;
}

static void
note_call_end (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  Thread *self = this_thread ();
  gint64 start;

  if (end (self->open, &start))
    mark (start, gtorch_profile_now (), self->ops, call->op->name,
          gtorch_device_name (call->device), call->device);
}

static gboolean
note_replay_begin (GTorchReplay *replay, GError **error)
{
  begin (this_thread ()->open);
  return TRUE;
}

static gboolean
note_replay_end (GTorchReplay *replay, gboolean result, GError **error)
{
  Thread *self = this_thread ();
  gint64 start;

  if (end (self->open, &start))
    mark (start, gtorch_profile_now (), self->ops, "replay of a graph", "", NULL);
  return TRUE;
}

static void
note_block_begin (GTorchDevice *device)
{
  Thread *self = this_thread ();

  if (self->n_waits++ == 0)
    self->wait_start = gtorch_profile_now ();
}

static void
note_block_end (GTorchDevice *device)
{
  Thread *self = this_thread ();

  if (self->n_waits == 0 || --self->n_waits > 0)
    return;
  mark (self->wait_start, gtorch_profile_now (), self->waits, "wait", gtorch_device_name (device),
        NULL);
}

static const GTorchObserver observer = {
  .rank = RANK,
  .call_begin = note_call_begin,
  .call_end = note_call_end,
  .replay_begin = note_replay_begin,
  .replay_end = note_replay_end,
  .host_block_begin = note_block_begin,
  .host_block_end = note_block_end,
};

static void
note_range_begin (guint64 id, const gchar *name)
{
  Range *range = g_new (Range, 1);

  *range = (Range){ .id = id, .start = gtorch_profile_now (), .name = g_strdup (name) };
  memcpy (range->group, this_thread ()->ranges, sizeof range->group);
  g_mutex_lock (&lock);
  g_hash_table_replace (open_ranges, &range->id, range);
  g_mutex_unlock (&lock);
}

static void
note_range_end (guint64 id)
{
  Range *range = NULL;

  g_mutex_lock (&lock);
  g_hash_table_steal_extended (open_ranges, &id, NULL, (gpointer *) &range);
  g_mutex_unlock (&lock);
  if (range == NULL)
    return;
  mark (range->start, gtorch_profile_now (), range->group, range->name, "", NULL);
  range_free (range);
}

/* The timeline of devices, which only a profiler knows. */
static void
note_trace (GTorchProfiler *profiler, GTorchTrace *trace)
{
  const GTorchRecord *records;
  guint i, n;

  if (is_child ())
    return;
  records = gtorch_trace_get_records (trace, &n);
  g_mutex_lock (&lock);
  for (i = 0; i < n; i++)
    if (gtorch_record_is_of_device (&records[i]))
      gtorch_capturer_add (&capturer, trace, &records[i]);
  flush (gtorch_profile_now ());
  g_mutex_unlock (&lock);
}

static const GTorchProfileSink sink = { .trace = note_trace,
                                        .range_begin = note_range_begin,
                                        .range_end = note_range_end };

static void
flush_at_exit (void)
{
  if (is_child ())
    return;
  g_mutex_lock (&lock);
  sysprof_capture_writer_flush (capturer.writer);
  g_mutex_unlock (&lock);
}

static void __attribute__ ((constructor)) begin_under_sysprof (void)
{
  SysprofCaptureWriter *writer;

  if (gtorch_getenv ("SYSPROF_TRACE_FD") == NULL)
    return;
  writer = sysprof_capture_writer_new_from_env (0);
  if (writer == NULL)
    return;
  process = getpid ();
  gtorch_capturer_init (&capturer, writer);
  open_ranges = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, range_free);
  gtorch_observer_add (&observer);
  gtorch_profile_sink_add (&sink);
  atexit (flush_at_exit);
}
