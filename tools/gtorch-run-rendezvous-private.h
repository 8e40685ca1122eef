/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What gtorch-run-rendezvous.c, which has the thread and the store, and gtorch-run-rounds.c, which has
 * the rules of rounds, share. */

#pragma once

#include "gtorch-run-private.h"

G_BEGIN_DECLS

typedef enum
{
  GTORCH_RUN_IDLE,
  GTORCH_RUN_JOINING,
  GTORCH_RUN_MEMBER,
  GTORCH_RUN_DONE, /* the workers of this node have ended */
  GTORCH_RUN_OVER, /* the agent knows the end */
} GTorchRunPhase;

typedef struct
{
  gchar *id;
  gint64 count, time; /* the last value of its counter, and when it was seen first */
} GTorchRunBeat;

struct _GTorchRunRendezvous
{
  const GTorchRunOptions *options;
  GTorchRunEventFunc func;
  gpointer user_data;
  GThread *thread;
  GAsyncQueue *orders;
  GCancellable *cancellable;
  gchar *id, *address, *store_address, *token;
  GTorchTcpStore *tcp_store;
  GTorchStore *store; /* its part for this job */
  gboolean is_host;
  GTorchRunPhase phase;
  guint round, order;
  guint n_seen; /* nodes that have come */
  gint64 since; /* when the last one came */
  gint64 begin; /* of joining */
  gint64 last_beat;
  gint64 n_beats;
  GPtrArray *beats; /* GTorchRunBeat, of the others */
};

typedef enum
{
  GTORCH_RUN_JOIN,
  GTORCH_RUN_FAIL,
  GTORCH_RUN_FINISH,
  GTORCH_RUN_LEAVE,
  GTORCH_RUN_STOP,
} GTorchRunOrderKind;

typedef struct
{
  GTorchRunOrderKind kind;
  gint status;
  gchar *text;
  const gchar *lost; /* the node that is, if another one says so */
} GTorchRunOrder;

/* gtorch-run-rounds.c: looks at the state, and joins a round, or goes on with it. */
gboolean gtorch_run_rounds_look (GTorchRunRendezvous *self, GError **error);
gboolean gtorch_run_rounds_obey (GTorchRunRendezvous *self, const GTorchRunOrder *order,
                                 GError **error);
GTorchRunState *gtorch_run_rounds_read (GTorchRunRendezvous *self, GBytes **bytes, GError **error);
gdouble gtorch_run_seconds_since (gint64 time);

/* gtorch-run-rendezvous.c; tell () takes the state. */
void gtorch_run_rendezvous_tell (GTorchRunRendezvous *self, GTorchRunEventKind kind,
                                 GTorchRunState *state, guint node, gint status, const gchar *text);
void gtorch_run_rendezvous_tell_end (GTorchRunRendezvous *self, gint status, const gchar *text);

G_END_DECLS
