/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* What the stream checker knows of the order of queues; see gtorch-race.c. */

#define GTORCH_RACE_MAX_QUEUES 256

typedef struct
{
  guint index;
  gpointer key;
  GTorchDevice *device;
  gpointer stream; /* most recent stream of the queue; for messages only, may be freed */
  gboolean is_default;
  guint64 submitted, done;
  guint64 clock[GTORCH_RACE_MAX_QUEUES];
} GTorchRaceQueue;

/* A point in the order of the queues: for each queue, how much of its work comes before. */
typedef struct _GTorchRaceOrder GTorchRaceOrder;
struct _GTorchRaceOrder
{
  guint n;
  guint64 clock[];
};

extern GMutex gtorch_race_lock; /* must be held for everything of the checker */
extern GTorchRaceQueue *gtorch_race_queues[GTORCH_RACE_MAX_QUEUES];
extern guint gtorch_race_n_queues;
/* Queues were left out because there are too many. */
extern gboolean gtorch_race_has_left_out;

/* Returns the queue of the stream (NULL: the device's default one); NULL if it is left out. */
GTorchRaceQueue *gtorch_race_stream_queue (GTorchStream *stream, GTorchDevice *device);
/* Returns what comes before everything that is submitted to the queue from now on. */
GTorchRaceOrder *gtorch_race_order_of (GTorchRaceQueue *queue);
/* The same of the queue in a mark or in another event; NULL if nothing is known. */
GTorchRaceOrder *gtorch_race_order_of_key (const GTorchDevice *device, gpointer key);
GTorchRaceOrder *gtorch_race_order_copy (const GTorchRaceOrder *order); /* may be NULL */
/* Orders further work of the queue, or of the stream, after the point. */
void gtorch_race_raise_clock (GTorchRaceQueue *queue, const GTorchRaceOrder *order);
void gtorch_race_wait_for (GTorchStream *stream, const GTorchRaceOrder *order); /* may be NULL */
/* Notes that the host knows the point (may be NULL) to be reached. */
void gtorch_race_reached (const GTorchRaceOrder *order);

/* The point that is kept with a mark, with the timeline of copies, or with a pool: the mark itself, the end
 * of the copies, or that of the last replay in the pool. NULL if there is none. */
const GTorchRaceOrder *gtorch_race_get_point (GTorchNote *const *notes);
/* Takes ownership of the order, which may be NULL. */
void gtorch_race_set_point (GTorchNote **notes, GTorchRaceOrder *order);

G_END_DECLS
