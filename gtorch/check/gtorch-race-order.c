/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The order of queues, as the stream checker knows it: vector clocks, and the points that are kept with
 * marks, timelines and pools. */

#include "config.h"

#include "check/gtorch-race-order-private.h"

#include <string.h>

#include "base/gtorch-fork-private.h"
#include "check/gtorch-checks-private.h"

GMutex gtorch_race_lock;
GTORCH_FORK_LOCK (gtorch_race_lock);
GTorchRaceQueue *gtorch_race_queues[GTORCH_RACE_MAX_QUEUES];
guint gtorch_race_n_queues;
gboolean gtorch_race_has_left_out;
static guint last_found;

/* --- queues --- */

static GTorchRaceQueue *
find_queue (gpointer key)
{
  guint i;

  if (gtorch_race_n_queues > 0 && gtorch_race_queues[last_found]->key == key)
    return gtorch_race_queues[last_found];
  for (i = 0; i < gtorch_race_n_queues; i++)
    if (gtorch_race_queues[i]->key == key)
      {
        last_found = i;
        return gtorch_race_queues[i];
      }
  gtorch_race_has_left_out = gtorch_race_n_queues == GTORCH_RACE_MAX_QUEUES;
  if (gtorch_race_has_left_out)
    return NULL;
  gtorch_race_queues[gtorch_race_n_queues] = g_new0 (GTorchRaceQueue, 1);
  gtorch_race_queues[gtorch_race_n_queues]->index = gtorch_race_n_queues;
  gtorch_race_queues[gtorch_race_n_queues]->key = key;
  return gtorch_race_queues[gtorch_race_n_queues++];
}

GTorchRaceQueue *
gtorch_race_stream_queue (GTorchStream *stream, GTorchDevice *device)
{
  GTorchRaceQueue *queue;

  if (stream == NULL)
    stream = gtorch_device_get_default_stream (device);
  queue = find_queue (gtorch_stream_get_queue (stream));
  if (queue != NULL)
    {
      queue->device = device;
      queue->stream = stream;
      queue->is_default = stream->is_default;
    }
  return queue;
}

GTorchRaceOrder *
gtorch_race_order_of (GTorchRaceQueue *queue)
{
  GTorchRaceOrder *order =
      g_malloc (sizeof (GTorchRaceOrder) + gtorch_race_n_queues * sizeof (order->clock[0]));

  order->n = gtorch_race_n_queues;
  memcpy (order->clock, queue->clock, gtorch_race_n_queues * sizeof (order->clock[0]));
  order->clock[queue->index] = queue->submitted;
  return order;
}

void
gtorch_race_raise_clock (GTorchRaceQueue *queue, const GTorchRaceOrder *order)
{
  guint i;

  for (i = 0; i < order->n; i++)
    queue->clock[i] = MAX (queue->clock[i], order->clock[i]);
}

GTorchRaceOrder *
gtorch_race_order_copy (const GTorchRaceOrder *order)
{
  return order != NULL ? g_memdup2 (order, sizeof *order + order->n * sizeof order->clock[0])
                       : NULL;
}

void
gtorch_race_reached (const GTorchRaceOrder *order)
{
  guint i;

  for (i = 0; order != NULL && i < order->n; i++)
    gtorch_race_queues[i]->done = MAX (gtorch_race_queues[i]->done, order->clock[i]);
}

/* --- points that are kept --- */

/* The note that holds a point. */
typedef struct
{
  GTorchNote note;
  GTorchRaceOrder *order; /* may be NULL */
} Point;

static void
point_free (GTorchNote *note)
{
  g_free (((Point *) note)->order);
  g_free (note);
}

const GTorchRaceOrder *
gtorch_race_get_point (GTorchNote *const *notes)
{
  const Point *point = (const Point *) gtorch_note_find (notes, &gtorch_race_observer);

  return point != NULL ? point->order : NULL;
}

void
gtorch_race_set_point (GTorchNote **notes, GTorchRaceOrder *order)
{
  Point *point = (Point *) gtorch_note_find (notes, &gtorch_race_observer);

  if (point == NULL && order == NULL)
    return;
  if (point == NULL)
    {
      point = g_new0 (Point, 1);
      point->note.owner = &gtorch_race_observer;
      point->note.free = point_free;
      gtorch_note_add (notes, &point->note);
    }
  g_free (point->order);
  point->order = order;
}

/* Returns what comes before everything that is submitted to any queue of the device from now on. */
static GTorchRaceOrder *
order_of_device (const GTorchDevice *device)
{
  GTorchRaceOrder *order =
      g_malloc0 (sizeof *order + gtorch_race_n_queues * sizeof order->clock[0]);
  guint i, j;

  order->n = gtorch_race_n_queues;
  for (i = 0; i < gtorch_race_n_queues; i++)
    {
      if (gtorch_race_queues[i]->device != device)
        continue;
      for (j = 0; j < gtorch_race_n_queues; j++)
        order->clock[j] = MAX (order->clock[j], gtorch_race_queues[i]->clock[j]);
      order->clock[i] = MAX (order->clock[i], gtorch_race_queues[i]->submitted);
    }
  return order;
}

/* Whether it is the timeline of copies of pinned memory, which is nobody's queue. */
static gboolean
is_of_copies (const GTorchDevice *device, gpointer key)
{
  return gtorch_device_is_host (device) && key != device && gtorch_timeline_is_of_copies (key);
}

GTorchRaceOrder *
gtorch_race_order_of_key (const GTorchDevice *device, gpointer key)
{
  GTorchRaceQueue *queue;

  if (key == NULL)
    return NULL;
  if (key == GTORCH_ALL_QUEUES)
    return order_of_device (device);
  if (is_of_copies (device, key))
    return gtorch_race_order_copy (gtorch_race_get_point (&((GTorchTimeline *) key)->notes));
  queue = find_queue (key);
  return queue != NULL ? gtorch_race_order_of (queue) : NULL;
}

void
gtorch_race_wait_for (GTorchStream *stream, const GTorchRaceOrder *order)
{
  GTorchRaceQueue *queue = order != NULL ? gtorch_race_stream_queue (stream, stream->device) : NULL;

  if (queue != NULL)
    gtorch_race_raise_clock (queue, order);
}
