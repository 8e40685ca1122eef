/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* The checker of GTORCH_CHECK=streams; see gtorch-race.c. Nothing of this is called while it is off. */

/* What is done once a queue has come as far as it is filled now. */
typedef struct _GTorchRaceOrder GTorchRaceOrder;
/* What is known of a graph's replays. */
typedef struct _GTorchRaceGraph GTorchRaceGraph;

/* --- work --- */
/* Before the call is launched on the stream (NULL: the default one). FALSE if it must not be. */
gboolean gtorch_race_note_call (GTorchStream *stream, GTorchOpCall *call, GError **error);
/* A copy between devices, in the current streams of both. */
gboolean gtorch_race_note_copy (GTorchImpl *dst, GTorchImpl *src, GError **error);
/* A graph with these GTorchStorages from outside. The arrays must not change while the graph is known, which
 * it is from the first time until it is freed. */
gboolean gtorch_race_note_graph (GTorchStream *stream, GTorchRaceGraph **graph, GPtrArray *read,
                                 GPtrArray *written, GError **error);
/* Before the storages are given up. */
void gtorch_race_graph_free (GTorchRaceGraph *graph);
/* The host has waited for what the queue `writer` wrote to the storage. */
void gtorch_race_storage_waited (GTorchStorage *storage, gpointer writer);
/* A copy to or from the pinned memory of these copies was put into the stream, the only one that is not done
 * yet, or one more. */
void gtorch_race_note_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only);
/* Further work on the stream comes after them. */
void gtorch_race_wait_copies (GTorchStream *stream, GTorchTimeline *copies);
/* The host has waited for them. */
void gtorch_race_copies_waited (GTorchTimeline *copies);
/* How many storages have uses that are remembered. */
extern guint gtorch_race_n_records;
void gtorch_race_remove (GTorchStorage *storage);
/* The storage is about to be freed. What is remembered goes also if nothing is checked any more: the next one
 * may have the same address. */
static inline void
gtorch_race_forget (GTorchStorage *storage)
{
  if (G_UNLIKELY (__atomic_load_n (&gtorch_race_n_records, __ATOMIC_RELAXED) > 0))
    gtorch_race_remove (storage);
}

/* --- order; a queue is known by what gtorch_stream_get_queue() gives --- */
GTorchRaceOrder *gtorch_race_order_new (gpointer queue);
GTorchRaceOrder *gtorch_race_order_copy (const GTorchRaceOrder *order);
void gtorch_race_order_free (GTorchRaceOrder *order);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchRaceOrder, gtorch_race_order_free)
/* The host knows that it is done. */
void gtorch_race_reached (const GTorchRaceOrder *order);
/* Further work on the stream comes after it. */
void gtorch_race_wait (GTorchStream *stream, const GTorchRaceOrder *order);

G_END_DECLS
