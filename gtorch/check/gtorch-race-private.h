/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* The checker behind GTORCH_CHECK=streams; see gtorch-race.c. None of these functions is called while it is
 * off. */

/* A point in a queue: all work that was submitted when it was taken. */
typedef struct _GTorchRaceOrder GTorchRaceOrder;
/* What the checker knows of a graph's replays. */
typedef struct _GTorchRaceGraph GTorchRaceGraph;

/* --- work --- */
/* Notes a call before it is launched on the stream (NULL: the default stream). Returns FALSE if it must not
 * be launched. */
gboolean gtorch_race_note_call (GTorchStream *stream, GTorchOpCall *call, GError **error);
/* Notes a copy between devices, on the current streams of both. */
gboolean gtorch_race_note_copy (GTorchImpl *dst, GTorchImpl *src, GError **error);
/* Notes a replay of a graph that uses these external GTorchStorages. The arrays must not change from the
 * first call until gtorch_race_graph_free (). */
gboolean gtorch_race_note_graph (GTorchStream *stream, GTorchRaceGraph **graph, GPtrArray *read,
                                 GPtrArray *written, GError **error);
/* Must be called before the graph's storages are released. */
void gtorch_race_graph_free (GTorchRaceGraph *graph);
/* Notes that the host has waited for what the queue `writer` wrote to the storage. */
void gtorch_race_storage_waited (GTorchStorage *storage, gpointer writer);
/* Notes that a copy to or from the pinned memory of these copies was put into the stream. is_only: no other
 * copy of them is pending. */
void gtorch_race_note_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only);
/* Orders further work on the stream after the copies. */
void gtorch_race_wait_copies (GTorchStream *stream, GTorchTimeline *copies);
/* Notes that the host has waited for the copies. */
void gtorch_race_copies_waited (GTorchTimeline *copies);
/* number of storages with recorded uses */
extern guint gtorch_race_n_records;
void gtorch_race_remove (GTorchStorage *storage);
/* Drops the record of a storage that is about to be freed. This happens even if nothing is checked any
 * more, because the next storage may have the same address. */
static inline void
gtorch_race_forget (GTorchStorage *storage)
{
  if (G_UNLIKELY (__atomic_load_n (&gtorch_race_n_records, __ATOMIC_RELAXED) > 0))
    gtorch_race_remove (storage);
}

/* --- order; queues are identified by gtorch_stream_get_queue () --- */
GTorchRaceOrder *gtorch_race_order_new (gpointer queue);
GTorchRaceOrder *gtorch_race_order_copy (const GTorchRaceOrder *order);
void gtorch_race_order_free (GTorchRaceOrder *order);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchRaceOrder, gtorch_race_order_free)
/* Notes that the host knows the point to be reached. */
void gtorch_race_reached (const GTorchRaceOrder *order);
/* Orders further work on the stream after the point. */
void gtorch_race_wait (GTorchStream *stream, const GTorchRaceOrder *order);

G_END_DECLS
