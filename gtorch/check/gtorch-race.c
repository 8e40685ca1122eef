/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Finds work on two streams that uses the same memory without being ordered.
 *
 * Each queue counts its work and has a vector clock: for every other queue, the number up to which that
 * queue's work is known to come before whatever is submitted to this queue next. An event takes a copy of
 * the clock of the queue it is recorded on, including that queue's own count; a queue that waits for the
 * event raises its own clock to the copy. Work that any thread of the host has waited for, in any way,
 * counts as done for all threads, since synchronisation between the program's threads is not visible here.
 * Nothing depends on what happens to be done: a missing order is reported even in a run in which the timing
 * was lucky.
 *
 * Each storage has a list of who used which part of it. A new use must come after all earlier ones that
 * touch the same elements, unless both only read. A use is dropped once a newer one covers it, that is if
 * every later use that must come after it must come after the newer one anyway. The CPU's default stream
 * works in the calling thread and waits for the writers of its operands, as the launcher does.
 *
 * A graph has one record of its replays for all that it reads and writes, and each of those storages refers
 * to the graph. Conversely, the graph knows the last work of each queue that no replay may overlap. So a
 * replay looks at single storages only if there is something to report. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "check/gtorch-checks-private.h"
#include "check/gtorch-race-order-private.h"
#include "check/gtorch-race-use-private.h"
#include "dispatch/gtorch-op-private.h"
#include "graph/gtorch-graph-exec-private.h"

struct _GTorchRaceGraph
{
  GTorchNote note;
  GPtrArray *read, *written;           /* the graph's */
  GPtrArray *host_read, *host_written; /* those of `read` and `written` in host memory */
  GPtrArray *others;                   /* graphs whose replays must not overlap this graph's */
  GArray *replays;                     /* GTorchRaceUse: last replay of each queue */
  /* by queue: number of its last other work that no replay may overlap */
  guint64 met[GTORCH_RACE_MAX_QUEUES];
};

/* Both are protected by the lock. */
static gboolean has_said_so; /* a warning has said that queues were left out */
static GArray *pending;      /* Pending: uses of the work that is being noted */

/* --- marks --- */

static void
note_mark (GTorchMark *mark)
{
  g_mutex_lock (&gtorch_race_lock);
  gtorch_race_set_point (&mark->notes, gtorch_race_order_of_key (mark->device, mark->queue));
  g_mutex_unlock (&gtorch_race_lock);
}

static void
note_waited (GTorchMark *mark)
{
  if (gtorch_thread.worker != NULL)
    return;
  g_mutex_lock (&gtorch_race_lock);
  gtorch_race_reached (gtorch_race_get_point (&mark->notes));
  g_mutex_unlock (&gtorch_race_lock);
}

static void
note_wait (GTorchStream *stream, GTorchMark *mark)
{
  g_mutex_lock (&gtorch_race_lock);
  gtorch_race_wait_for (stream, gtorch_race_get_point (&mark->notes));
  g_mutex_unlock (&gtorch_race_lock);
}

static void
note_join (GTorchStream *stream, gpointer key)
{
  g_autofree GTorchRaceOrder *order = NULL;

  g_mutex_lock (&gtorch_race_lock);
  order = gtorch_race_order_of_key (stream->device, key);
  gtorch_race_wait_for (stream, order);
  g_mutex_unlock (&gtorch_race_lock);
}

/* --- copies of pinned memory --- */

static void
note_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only)
{
  const GTorchRaceOrder *former;
  GTorchRaceOrder *order;
  GTorchRaceQueue *queue;
  guint i;

  g_mutex_lock (&gtorch_race_lock);
  former = gtorch_race_get_point (&copies->notes);
  queue = gtorch_race_stream_queue (stream, stream->device);
  order = queue != NULL ? gtorch_race_order_of (queue) : NULL;
  for (i = 0; order != NULL && former != NULL && !is_only && i < former->n; i++)
    order->clock[i] = MAX (order->clock[i], former->clock[i]);
  gtorch_race_set_point (&copies->notes, order);
  g_mutex_unlock (&gtorch_race_lock);
}

static gboolean
is_before (const GTorchRaceUse *use, const GTorchRaceQueue *queue)
{
  return use->queue == queue->index || use->number <= gtorch_race_queues[use->queue]->done
         || use->number <= queue->clock[use->queue];
}

/* --- uses of storages --- */

static void
forget (GTorchStorage *storage)
{
  if (__atomic_load_n (&gtorch_race_n_records, __ATOMIC_RELAXED) == 0)
    return;
  g_mutex_lock (&gtorch_race_lock);
  gtorch_race_record_remove (storage);
  g_mutex_unlock (&gtorch_race_lock);
}

static void
waited_for_uses (const GTorchRaceUse *uses, guint n, gpointer writer)
{
  guint i;

  for (i = 0; i < n; i++)
    if (gtorch_race_queues[uses[i].queue]->key == writer)
      gtorch_race_reached (uses[i].order);
}

static void
waited_for (GTorchStorage *storage, gpointer writer)
{
  GTorchRaceRecord *record = writer != NULL ? gtorch_race_record_find (storage) : NULL;
  guint i;

  if (record == NULL)
    return;
  waited_for_uses (record->uses, record->n_uses, writer);
  for (i = 0; i < record->n_members; i++)
    if (record->members[i].is_written)
      {
        GArray *replays = record->members[i].graph->replays;

        waited_for_uses ((const GTorchRaceUse *) replays->data, replays->len, writer);
      }
}

/* For pinned memory: orders the queue's work, or the host before it, after the copies. */
static gboolean
follow_copies (GTorchRaceQueue *queue, GTorchStorage *storage)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);
  const GTorchRaceOrder *order;

  if (writer == NULL || !gtorch_timeline_is_of_copies (writer))
    return FALSE;
  order = gtorch_race_get_point (&writer->notes);
  if (queue != NULL && order != NULL)
    gtorch_race_raise_clock (queue, order);
  return TRUE;
}

/* For host memory: notes that the host waits for the storage's writer before the work. */
static void
follow_host (GTorchRaceQueue *queue, GTorchStorage *storage)
{
  GTorchStream *stream = gtorch_current_stream (storage->device);
  GTorchRaceQueue *own;

  if (!gtorch_device_is_host (storage->device) || follow_copies (queue, storage))
    return;
  if (stream != NULL && stream->timeline != NULL) /* the host also waits for its current stream */
    {
      own = gtorch_race_stream_queue (stream, storage->device);
      if (own != NULL)
        {
          g_autofree GTorchRaceOrder *order = gtorch_race_order_of (own);

          gtorch_race_reached (order);
        }
    }
  waited_for (storage, __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE));
}

static void
note_storage_waited (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq)
{
  GTorchPool *pool = gtorch_pool_of (storage);
  guint64 pool_seq = 0;
  gboolean is_replayed;

  if (gtorch_thread.worker != NULL)
    return;
  is_replayed = pool != NULL && gtorch_pool_get_writer (pool, &pool_seq) == writer;
  g_mutex_lock (&gtorch_race_lock);
  if (gtorch_timeline_is_of_copies (writer))
    gtorch_race_reached (gtorch_race_get_point (&writer->notes));
  else
    waited_for (storage, writer);
  if (is_replayed && pool_seq <= seq)
    gtorch_race_reached (gtorch_race_get_point (&pool->notes));
  g_mutex_unlock (&gtorch_race_lock);
}

static gchar *
describe (const GTorchRaceUse *use)
{
  const GTorchRaceQueue *queue = gtorch_race_queues[use->queue];
  g_autofree gchar *shape = gtorch_race_use_get_shape (use);
  g_autofree gchar *stream =
      queue->is_default
          ? g_strdup_printf (_ ("the default stream of %s"), gtorch_device_name (queue->device))
          : g_strdup_printf (_ ("stream %p of %s"), queue->stream,
                             gtorch_device_name (queue->device));

  return g_strdup_printf (use->is_write ? _ ("%s%s on %s, which writes to it as shape %s")
                                        : _ ("%s%s on %s, which reads it as shape %s"),
                          use->call->what, use->call->in_place ? "_" : "", stream, shape);
}

/* Two uses without an order. */
typedef struct
{
  gchar *former, *use; /* NULL: no race was found */
  GTorchSite former_site, use_site;
} Race;

/* Returns the message. Must be called without the checker's lock: resolving call sites takes the dynamic
 * loader's lock, which a thread that loads or unloads a library may hold while it works with tensors. */
static gchar *
race_steal_message (Race *race)
{
  g_autofree gchar *former = g_steal_pointer (&race->former);
  g_autofree gchar *use = g_steal_pointer (&race->use);
  g_autofree gchar *former_site = gtorch_site_to_string (&race->former_site);
  g_autofree gchar *use_site = gtorch_site_to_string (&race->use_site);

  return g_strdup_printf (_ ("streams: two streams use one tensor in no defined order: %s, and %s: "
                             "let the second stream wait for the first (called by %s; and by %s)"),
                          former, use, former_site, use_site);
}

/* Records the first race for the message. Unless races are fatal, the uses then count as ordered, so that
 * each race is reported once. */
static G_GNUC_NO_INLINE void
report (const GTorchRaceUse *former, const GTorchRaceUse *use, GTorchRaceQueue *queue, Race *race)
{
  if (race->former == NULL)
    {
      race->former = describe (former);
      race->use = describe (use);
      race->former_site = former->call->site;
      race->use_site = use->call->site;
    }
  if (!gtorch_is_checking (GTORCH_CHECK_STREAMS_FATAL))
    queue->clock[former->queue] = MAX (queue->clock[former->queue], former->number);
}

/* Fills `race` if the use is not ordered after an earlier one. */
static void
check (GTorchRaceRecord *record, const GTorchRaceUse *use, GTorchRaceQueue *queue, Race *race)
{
  guint i, j;

  for (i = 0; i < record->n_members; i++)
    {
      const GTorchRaceMember *member = &record->members[i];
      GArray *replays = member->graph->replays;

      for (j = 0; (use->is_write || member->is_written) && j < replays->len; j++)
        {
          GTorchRaceUse former = g_array_index (replays, GTorchRaceUse, j);

          if (is_before (&former, queue))
            continue;
          former.is_write = member->is_written;
          former.part.high = record->storage->n_bytes;
          report (&former, use, queue, race);
        }
    }
  for (i = 0; i < record->n_uses; i++)
    {
      const GTorchRaceUse *former = &record->uses[i];

      if ((use->is_write || former->is_write) && !is_before (former, queue)
          && gtorch_race_parts_meet (&use->part, &former->part))
        report (former, use, queue, race);
    }
}

/* Takes ownership of the use. */
static void
add_use (GTorchRaceRecord *record, const GTorchRaceUse *use, GTorchRaceQueue *queue)
{
  guint i = 0;

  while (i < record->n_uses)
    {
      const GTorchRaceUse *former = &record->uses[i];

      if (former->number <= gtorch_race_queues[former->queue]->done
          || (is_before (former, queue) && gtorch_race_use_covers (use, former)))
        gtorch_race_record_remove_use (record, i);
      else
        i++;
    }
  gtorch_race_record_append (record, use);
  for (i = 0; i < record->n_members; i++)
    if (use->is_write || record->members[i].is_written)
      record->members[i].graph->met[use->queue] = use->number;
}

/* --- work --- */

typedef struct
{
  GTorchRaceRecord *record;
  GTorchRaceQueue *queue;
  GTorchRaceUse use;
} Pending;

static void
begin (void)
{
  g_mutex_lock (&gtorch_race_lock);
  if (pending == NULL)
    pending = g_array_new (FALSE, FALSE, sizeof (Pending));
}

static void
add_pending (GTorchRaceQueue *queue, GTorchImpl *impl, gboolean is_write, GTorchRaceCall *call)
{
  Pending *next;

  if (queue == NULL || impl->is_number || impl->numel == 0)
    return;
  g_array_set_size (pending, pending->len + 1);
  next = &g_array_index (pending, Pending, pending->len - 1);
  next->record = gtorch_race_record_get (impl->storage);
  next->queue = queue;
  gtorch_race_use_init (&next->use, call, impl->storage, impl, is_write);
  next->use.queue = queue->index;
}

/* Returns the order to keep with a write, which only CPU queues need: the host waits for single writes of
 * theirs. */
static GTorchRaceOrder *
order_of_write (GTorchRaceQueue *queue)
{
  return gtorch_device_is_host (queue->device) && queue->key != queue->device
             ? gtorch_race_order_of (queue)
             : NULL;
}

static gboolean
is_refused (const Race *race)
{
  return race->former != NULL && gtorch_is_checking (GTORCH_CHECK_STREAMS_FATAL);
}

/* Reports a race, if any, and clears it. Unlocks the lock, which the caller holds. */
static gboolean
finish (Race *race, GError **error)
{
  g_autofree gchar *text = NULL;
  const gboolean says_so = gtorch_race_has_left_out && !has_said_so;

  has_said_so |= says_so;
  g_mutex_unlock (&gtorch_race_lock);
  if (G_UNLIKELY (says_so))
    g_warning ("streams: more than %u are in use at once: the others are not checked",
               GTORCH_RACE_MAX_QUEUES);
  if (G_LIKELY (race->former == NULL))
    return TRUE;
  text = race_steal_message (race);
  if (!gtorch_is_checking (GTORCH_CHECK_STREAMS_FATAL))
    {
      g_warning ("%s", text);
      return TRUE;
    }
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, text);
  return FALSE;
}

/* Checks all pending uses, then adds them as one piece of work of each queue. Unlocks the lock, which the
 * caller holds. */
static gboolean
note_pending (GTorchRaceCall *call, GError **error)
{
  Race race = { NULL };
  guint i, j;

  for (i = 0; i < pending->len; i++)
    {
      Pending *next = &g_array_index (pending, Pending, i);

      check (next->record, &next->use, next->queue, &race);
    }
  for (i = 0; i < pending->len; i++)
    {
      Pending *next = &g_array_index (pending, Pending, i);

      if (is_refused (&race))
        {
          gtorch_race_use_clear (&next->use);
          continue;
        }
      for (j = 0; j < i && g_array_index (pending, Pending, j).queue != next->queue; j++)
        continue;
      if (j == i)
        next->queue->submitted++;
      next->use.number = next->queue->submitted;
      if (next->use.is_write)
        next->use.order = order_of_write (next->queue);
      add_use (next->record, &next->use, next->queue);
    }
  for (i = 0; i < pending->len; i++)
    {
      GTorchRaceQueue *queue = g_array_index (pending, Pending, i).queue;

      if (queue->key == queue->device) /* runs in the calling thread */
        queue->done = queue->submitted;
    }
  g_array_set_size (pending, 0);
  gtorch_race_call_unref (call);
  return finish (&race, error);
}

static gboolean
note_call (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  GTorchRaceCall *noted;
  GTorchSite site;
  GTorchRaceQueue *queue;
  guint i, j;

  if (gtorch_thread.worker != NULL || (call->op->flags & GTORCH_OP_FLAG_UNSET) != 0
      || (stream != NULL && gtorch_stream_is_capturing (stream)))
    return TRUE;
  gtorch_site_take (&site);
  if (stream == NULL)
    stream = gtorch_device_get_default_stream (call->device);

  begin ();
  noted = gtorch_race_call_new (call->op->name, call->in_place, &site);
  queue = gtorch_race_stream_queue (stream, call->device);
  for (i = 0; gtorch_call_takes_values (call) && i < call->n_inputs; i++)
    {
      GTorchImpl *input = call->inputs[i];

      if (input == NULL)
        continue;
      if (input->storage->device != call->device) /* the launcher copies it to the device */
        {
          follow_host (queue, input->storage);
          continue;
        }
      if (queue != NULL && queue->key == call->device)
        follow_host (queue, input->storage);
      else
        follow_copies (queue, input->storage);
      for (j = 0; j < call->n_outputs && call->outputs[j] != input; j++)
        continue;
      add_pending (queue, input, j < call->n_outputs || gtorch_call_writes (call, i), noted);
    }
  for (i = 0; i < call->n_outputs; i++)
    {
      GTorchImpl *output = call->outputs[i];

      for (j = 0; j < call->n_inputs && call->inputs[j] != output; j++)
        continue;
      if (output != NULL && j == call->n_inputs)
        add_pending (queue, output, TRUE, noted);
    }
  return note_pending (noted, error);
}

static gboolean
note_copy (GTorchImpl *dst, GTorchImpl *src, GError **error)
{
  GTorchImpl *sides[2] = { dst, src };
  GTorchRaceQueue *found[2] = { NULL, NULL };
  GTorchStream *streams[2];
  GTorchRaceCall *noted;
  GTorchSite site;
  guint i;

  if (gtorch_thread.worker != NULL)
    return TRUE;
  for (i = 0; i < 2; i++)
    {
      streams[i] = gtorch_current_stream (sides[i]->storage->device);
      if (streams[i] == NULL)
        streams[i] = gtorch_device_get_default_stream (sides[i]->storage->device);
      if (gtorch_stream_is_capturing (streams[i]))
        return TRUE;
    }
  gtorch_site_take (&site);

  begin ();
  noted = gtorch_race_call_new ("copy", FALSE, &site);
  for (i = 0; i < 2; i++)
    /* for the CPU's side the host waits */
    if (!gtorch_device_is_host (sides[i]->storage->device))
      {
        found[i] = gtorch_race_stream_queue (streams[i], sides[i]->storage->device);
        follow_host (found[i], sides[1 - i]->storage);
        add_pending (found[i], sides[i], i == 0, noted);
      }
  if (found[0] != NULL && found[1] != NULL && found[0] != found[1])
    { /* each queue waits for the other */
      g_autofree GTorchRaceOrder *of_dst = gtorch_race_order_of (found[0]);
      g_autofree GTorchRaceOrder *of_src = gtorch_race_order_of (found[1]);

      gtorch_race_raise_clock (found[1], of_dst);
      of_src->clock[found[1]->index]++;
      gtorch_race_raise_clock (found[0], of_src);
    }
  return note_pending (noted, error);
}

/* --- graphs --- */

static void
clear_use (gpointer use)
{
  gtorch_race_use_clear (use);
}

/* Notes that replays of the two graphs must not overlap. */
static void
set_apart (GTorchRaceGraph *graph, GTorchRaceGraph *other)
{
  guint i;

  for (i = graph->others->len; i > 0; i--)
    if (graph->others->pdata[i - 1] == other)
      return;
  g_ptr_array_add (graph->others, other);
  g_ptr_array_add (other->others, graph);
  for (i = 0; i < other->replays->len; i++)
    {
      const GTorchRaceUse *replay = &g_array_index (other->replays, GTorchRaceUse, i);

      graph->met[replay->queue] = MAX (graph->met[replay->queue], replay->number);
    }
}

static void
join (GTorchRaceGraph *graph, GTorchStorage *storage, gboolean is_written)
{
  GTorchRaceRecord *record = gtorch_race_record_get (storage);
  GTorchRaceMember *member = gtorch_race_record_join (record, graph);
  guint i;

  member->is_written |= is_written;
  for (i = 0; i < record->n_uses; i++)
    {
      const GTorchRaceUse *use = &record->uses[i];

      if (is_written || use->is_write)
        graph->met[use->queue] = MAX (graph->met[use->queue], use->number);
    }
  for (i = 0; i < record->n_members; i++)
    if (record->members[i].graph != graph && (is_written || record->members[i].is_written))
      set_apart (graph, record->members[i].graph);
  if (gtorch_device_is_host (storage->device))
    g_ptr_array_add (is_written ? graph->host_written : graph->host_read, storage);
}

static void graph_free (GTorchNote *note);

static GTorchRaceGraph *
graph_new (GPtrArray *read, GPtrArray *written)
{
  GTorchRaceGraph *graph = g_new0 (GTorchRaceGraph, 1);
  guint i;

  graph->note.owner = &gtorch_race_observer;
  graph->note.free = graph_free;

  graph->read = read;
  graph->written = written;
  graph->host_read = g_ptr_array_new ();
  graph->host_written = g_ptr_array_new ();
  graph->others = g_ptr_array_new ();
  graph->replays = g_array_new (FALSE, FALSE, sizeof (GTorchRaceUse));
  g_array_set_clear_func (graph->replays, clear_use);
  for (i = 0; i < read->len; i++)
    join (graph, read->pdata[i], FALSE);
  for (i = 0; i < written->len; i++)
    join (graph, written->pdata[i], TRUE);
  return graph;
}

/* Replaces the graph in the storage's record by its replays that may still be running. */
static void
leave (GTorchRaceGraph *graph, GTorchStorage *storage)
{
  GTorchRaceRecord *record = gtorch_race_record_find (storage);
  GTorchRaceMember member = { NULL };
  guint i;

  for (i = 0; record != NULL && i < record->n_members; i++)
    if (record->members[i].graph == graph)
      member = record->members[i];
  if (member.graph == NULL)
    return;
  gtorch_race_record_leave (record, graph);
  for (i = 0; i < graph->replays->len; i++)
    {
      const GTorchRaceUse *replay = &g_array_index (graph->replays, GTorchRaceUse, i);
      GTorchRaceUse use;

      if (replay->number <= gtorch_race_queues[replay->queue]->done)
        continue;
      gtorch_race_use_init (&use, replay->call, storage, NULL, member.is_written);
      use.queue = replay->queue;
      use.number = replay->number;
      use.order = gtorch_race_order_copy (replay->order);
      gtorch_race_record_append (record, &use);
    }
}

/* Happens before the graph's storages are released. */
static void
graph_free (GTorchNote *note)
{
  GTorchRaceGraph *graph = (GTorchRaceGraph *) note;
  guint i;

  g_mutex_lock (&gtorch_race_lock);
  for (i = 0; i < graph->read->len; i++)
    leave (graph, graph->read->pdata[i]);
  for (i = 0; i < graph->written->len; i++)
    leave (graph, graph->written->pdata[i]);
  for (i = 0; i < graph->others->len; i++)
    g_ptr_array_remove_fast (((GTorchRaceGraph *) graph->others->pdata[i])->others, graph);
  g_array_unref (graph->replays);
  g_mutex_unlock (&gtorch_race_lock);
  g_ptr_array_unref (graph->others);
  g_ptr_array_unref (graph->host_read);
  g_ptr_array_unref (graph->host_written);
  g_free (graph);
}

/* Returns whether a replay on this queue cannot overlap with anything. */
static gboolean
is_apart (const GTorchRaceGraph *graph, const GTorchRaceQueue *queue)
{
  guint i;

  for (i = 0; i < gtorch_race_n_queues; i++)
    if (graph->met[i] > queue->clock[i] && graph->met[i] > gtorch_race_queues[i]->done
        && i != queue->index)
      return FALSE;
  for (i = 0; graph->written->len > 0 && i < graph->replays->len; i++)
    if (!is_before (&g_array_index (graph->replays, GTorchRaceUse, i), queue))
      return FALSE;
  return TRUE;
}

static G_GNUC_NO_INLINE void
check_storages (GPtrArray *storages, gboolean is_write, GTorchRaceQueue *queue,
                GTorchRaceCall *call, Race *race)
{
  guint i;

  for (i = 0; i < storages->len; i++)
    {
      GTorchStorage *storage = storages->pdata[i];
      GTorchRaceUse use;

      gtorch_race_use_init (&use, call, storage, NULL, is_write);
      use.queue = queue->index;
      check (gtorch_race_record_get (storage), &use, queue, race);
      gtorch_race_use_clear (&use);
    }
}

static void
add_replay (GTorchRaceGraph *graph, GTorchRaceQueue *queue, GTorchRaceCall *call)
{
  GTorchRaceUse use = { .call = call, .queue = queue->index, .n_dims = GTORCH_RACE_ALL };
  guint i;

  use.number = ++queue->submitted;
  if (graph->written->len > 0)
    use.order = order_of_write (queue);
  call->n_uses++;
  for (i = graph->replays->len; i > 0; i--)
    if (is_before (&g_array_index (graph->replays, GTorchRaceUse, i - 1), queue))
      g_array_remove_index_fast (graph->replays, i - 1);
  g_array_append_val (graph->replays, use);
  for (i = 0; i < graph->others->len; i++)
    ((GTorchRaceGraph *) graph->others->pdata[i])->met[use.queue] = use.number;
  if (queue->key == queue->device)
    queue->done = queue->submitted;
}

/* Notes that the replay comes after the former ones in its pools. */
static void
follow_replays (const GTorchGraphExec *exec, GTorchStream *stream)
{
  guint i;

  for (i = 0; i < gtorch_graph_exec_n_pools (exec); i++)
    {
      GTorchPool *pool = gtorch_graph_exec_nth_pool (exec, i);
      g_autofree GTorchRaceOrder *order =
          exec->native != NULL
              ? gtorch_race_order_of_key (exec->device, g_atomic_pointer_get (&pool->queue))
              : gtorch_race_order_copy (gtorch_race_get_point (&pool->notes));

      gtorch_race_wait_for (stream, order);
    }
}

/* Notes that the replay is the last one in its pools. queue: NULL if it is over already. */
static void
lead_replays (const GTorchGraphExec *exec, GTorchRaceQueue *queue)
{
  guint i;

  for (i = 0; exec->native == NULL && i < gtorch_graph_exec_n_pools (exec); i++)
    gtorch_race_set_point (&gtorch_graph_exec_nth_pool (exec, i)->notes,
                           queue != NULL ? gtorch_race_order_of (queue) : NULL);
}

static gboolean
note_replay (GTorchReplay *replay, GError **error)
{
  GTorchGraphExec *exec = replay->exec;
  GTorchStream *stream = replay->stream;
  Race race = { NULL };
  GTorchRaceGraph *graph;
  GTorchRaceCall *call;
  GTorchSite site;
  GTorchRaceQueue *queue;
  guint i;

  gtorch_site_take (&site);
  begin ();
  follow_replays (exec, stream);
  graph = (GTorchRaceGraph *) gtorch_note_find (&exec->notes, &gtorch_race_observer);
  if (graph == NULL)
    {
      graph = graph_new (exec->read, exec->written);
      gtorch_note_add (&exec->notes, &graph->note);
    }
  queue = gtorch_race_stream_queue (stream, stream->device);
  for (i = 0; i < graph->host_read->len; i++)
    if (queue != NULL && queue->key == stream->device)
      follow_host (queue, graph->host_read->pdata[i]);
    else
      follow_copies (queue, graph->host_read->pdata[i]);
  for (i = 0; i < graph->host_written->len; i++)
    follow_copies (queue, graph->host_written->pdata[i]);
  if (queue == NULL)
    return finish (&race, error);

  call = gtorch_race_call_new ("graph", FALSE, &site);
  if (!is_apart (graph, queue))
    {
      check_storages (exec->read, FALSE, queue, call, &race);
      check_storages (exec->written, TRUE, queue, call, &race);
    }
  if (!is_refused (&race))
    {
      add_replay (graph, queue, call);
      if (stream->timeline != NULL)
        lead_replays (exec, queue);
    }
  gtorch_race_call_unref (call);
  return finish (&race, error);
}

/* The CPU's default stream replays at once. */
static gboolean
note_replayed (GTorchReplay *replay, gboolean result, GError **error)
{
  if (result && replay->stream->timeline == NULL)
    {
      g_mutex_lock (&gtorch_race_lock);
      lead_replays (replay->exec, NULL);
      g_mutex_unlock (&gtorch_race_lock);
    }
  return TRUE;
}

const GTorchObserver gtorch_race_observer = {
  .rank = GTORCH_RANK_RACE,
  .call_begin = note_call,
  .copy = note_copy,
  .replay_begin = note_replay,
  .replay_end = note_replayed,
  .record = note_mark,
  .wait = note_wait,
  .join = note_join,
  .host_wait = note_mark,
  .host_waited = note_waited,
  .storage_waited = note_storage_waited,
  .host_copy = note_host_copy,
};

const GTorchObserver gtorch_race_records_observer = {
  .rank = GTORCH_RANK_RACE,
  .storage_free = forget,
};
