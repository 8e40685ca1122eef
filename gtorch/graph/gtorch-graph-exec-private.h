/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-capture-private.h>
#include <gtorch/dispatch/gtorch-saved-call-private.h>

G_BEGIN_DECLS

/* The contents of graphs, shared by the files that create and use them. */

typedef struct
{
  gint ref_count;
  GTorchSavedCall *call;  /* a call, or NULL if child is set */
  GTorchGraphExec *child; /* another graph that was replayed in the capture, or a branch */
  GTorchImpl *predicate;  /* of a branch: one bool, which says whether to execute it */
  guint random;           /* index of its first random call within the graph, if it has any */
} GTorchGraphNode;

/* The memory of a graph on another device than its own. */
typedef struct
{
  GTorchPool *pool; /* owned */
  guint capture;    /* number of the capture that promised its results there */
} GTorchGraphPart;

/* An executable graph. The members that each replay needs come first, since the driver evicts most of the
 * caches. */
struct _GTorchGraphExec
{
  gint ref_count;
  guint number;  /* order of capture among graphs of the pool */
  guint capture; /* number of the capture that promised its results, or 0 */
  guint n_random;
  const GTorchGraphBackend *backend; /* NULL: the calls are run one by one */
  gpointer native;                   /* graph of the backend */
  GTorchPool *pool;
  GPtrArray *pools;     /* NULL: only `pool`; else all pools used, by id, borrowed */
  GPtrArray *written;   /* storages from outside that it writes to; borrowed from nodes */
  GPtrArray *read;      /* storages from outside that it reads; borrowed from nodes */
  GPtrArray *peers;     /* other devices that take part or have some of these, but for the host */
  GPtrArray *needed;    /* of GTorchImpl, borrowed from nodes: what other captures compute for it */
  GTorchDevice *device; /* on which it is replayed */
  GArray *parts;        /* GTorchGraphPart: of other devices, whose streams took part; NULL: none */
  GPtrArray *nodes;
  const GTorchLaunchParties *party_class;           /* of the parties; or NULL */
  GPtrArray *parties;                               /* in their order; or NULL */
  guint n_foreign;                                  /* nodes that cannot be launched once more */
  gboolean is_prepared, has_children, has_operands; /* has_operands: written and read are set */
  GTorchPool *scratch;                              /* additional memory of this graph, or NULL */
  GTorchNote *notes;                                /* notes of observers */
};

GTorchGraphNode *gtorch_graph_node_new (void);
void gtorch_graph_node_unref (gpointer node);
GTorchGraphExec *gtorch_graph_exec_new (GTorchDevice *device, GTorchPool *pool);
/* Notes, before the capture ends, that streams of the pool's device take part. */
void gtorch_graph_exec_add_part (GTorchGraphExec *exec, GTorchPool *pool, guint capture);
/* Fails if operations of the graph are on several devices, which what is named cannot be done to. */
gboolean gtorch_graph_exec_check_whole (GTorchGraphExec *exec, const gchar *what, GError **error);

/* Returns the graph's memory on the i-th other device, or NULL if there are fewer. */
static inline const GTorchGraphPart *
gtorch_graph_exec_nth_part (const GTorchGraphExec *exec, guint i)
{
  return exec->parts != NULL && i < exec->parts->len
             ? &g_array_index (exec->parts, GTorchGraphPart, i)
             : NULL;
}

/* The number of pools that a prepared graph uses. */
static inline guint
gtorch_graph_exec_n_pools (const GTorchGraphExec *exec)
{
  return exec->pools != NULL ? exec->pools->len : 1;
}

static inline GTorchPool *
gtorch_graph_exec_nth_pool (const GTorchGraphExec *exec, guint i)
{
  return exec->pools != NULL ? exec->pools->pdata[i] : exec->pool;
}

static inline gboolean
gtorch_graph_node_is_random (const GTorchGraphNode *node)
{
  return (node->call->call.op->flags & GTORCH_OP_FLAG_RANDOM) != 0;
}

/* For captures of a backend, between enter and leave: launch one call, where `random` is its index among
 * the random calls, or all calls of a graph once more. */
gboolean gtorch_graph_launch_call (GTorchStream *stream, const GTorchOpCall *call, guint random,
                                   GError **error);
gboolean gtorch_graph_exec_launch (GTorchGraphExec *exec, gpointer capture, GTorchStream *stream,
                                   guint random, GError **error);
/* Returns whether the graph, or one of its child graphs, uses the pool. */
gboolean gtorch_graph_exec_uses_pool (GTorchGraphExec *exec, GTorchPool *pool);

G_END_DECLS
