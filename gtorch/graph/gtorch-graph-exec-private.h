/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-capture-private.h>
#include <gtorch/dispatch/gtorch-saved-call-private.h>

G_BEGIN_DECLS

/* What graphs are made of; between the files that make and use them. */

typedef struct
{
  gint ref_count;
  GTorchSavedCall *call; /* or */
  GTorchGraphExec
      *child; /* another graph, replayed in the capture, or a branch of this one, which has … */
  GTorchImpl *predicate; /* one bool: it is done only where this is true */
  guint random; /* the place of its first random call among those of the graph, if it has any */
} GTorchGraphNode;

/* What each replay asks for comes first: the driver leaves little of it in the caches. */
struct _GTorchGraphExec
{
  gint ref_count;
  guint number; /* in the order of the captures that share the pool */
  guint n_random;
  const GTorchGraphBackend *backend; /* NULL: the calls are run */
  gpointer native;                   /* the backend's */
  GTorchPool *pool;
  GPtrArray *pools;   /* NULL: that one; or all that are computed in, by their numbers, borrowed */
  GPtrArray *written; /* storages from outside that it writes to; borrowed from the nodes */
  GPtrArray *read;    /* … that it reads */
  GTorchDevice *device;
  GPtrArray *nodes;
  guint n_foreign;                                  /* nodes that only the device knows */
  gboolean is_prepared, has_children, has_operands; /* the last: written and read are known */
  GTorchPool *scratch;                              /* more memory of its own, or NULL */
  GTorchNote *notes;                                /* of observers */
};

GTorchGraphNode *gtorch_graph_node_new (void);
void gtorch_graph_node_unref (gpointer node);
GTorchGraphExec *gtorch_graph_exec_new (GTorchDevice *device, GTorchPool *pool);

/* The pools in which a prepared graph computes. */
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

/* For captures of a backend: the call, the random one of this number; all of the graph once more, between
 * enter and leave of the capture. */
gboolean gtorch_graph_launch_call (GTorchStream *stream, const GTorchOpCall *call, guint random,
                                   GError **error);
gboolean gtorch_graph_exec_launch (GTorchGraphExec *exec, gpointer capture, GTorchStream *stream,
                                   guint random, GError **error);
/* Does it, or a graph in it, compute there? */
gboolean gtorch_graph_exec_uses_pool (GTorchGraphExec *exec, GTorchPool *pool);

G_END_DECLS
