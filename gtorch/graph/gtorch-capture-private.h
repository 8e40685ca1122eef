/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-cuda-graph.h>
#include <gtorch/stream/gtorch-capturing-private.h>
#include <gtorch/memory/gtorch-guard.h>
#include <gtorch/memory/gtorch-memory-pool-private.h>

G_BEGIN_DECLS

/* What was captured without the library's doing. */
typedef struct
{
  guint n;
  GString *names; /* of all of them */
  gchar *user;    /* the name of one that uses memory that the graph does not keep, or NULL */
  guint64 address;
  gboolean is_lost; /* … and that belongs to nobody */
} GTorchForeignNodes;

/* Does the graph keep the memory at the address? */
typedef gboolean (*GTorchGraphKeeps) (guint64 address, gpointer data);

/* A device that captures what is launched on its queues. Calls are launched while their stream captures; the
 * counter of those that draw random numbers is then their place among them. */
typedef struct _GTorchGraphBackend
{
  /* The stream captures from now on, into memory of the pool. */
  gpointer (*begin) (GTorchStream *stream, GTorchPool *pool, GTorchCaptureMode mode,
                     GError **error);
  /* Puts the fence behind what the stream has captured. */
  gboolean (*record) (gpointer capture, GTorchStream *stream, GTorchFence *fence, GError **error);
  /* The stream takes part from now on, if it does not yet, and comes after the fence. */
  gboolean (*join) (gpointer capture, GTorchStream *stream, GTorchFence *fence, GError **error);
  /* Around what the library launches on the stream. */
  void (*enter) (gpointer capture, GTorchStream *stream);
  void (*leave) (gpointer capture, GTorchStream *stream);
  /* What the stream captures from now on, and streams that join, is done only where the predicate, one bool
   * on the device, is true when a replay comes here. Both are called between enter and leave. */
  gboolean (*begin_branch) (gpointer capture, GTorchStream *stream, GTorchImpl *predicate,
                            GError **error);
  /* The stream captures again what is always done; those that have joined meanwhile do not take part any
   * more. It is over in any case. */
  gboolean (*end_branch) (gpointer capture, GTorchStream *stream, GError **error);
  /* Takes the capture and ends it in any case; NULL with an error. */
  gpointer (*end) (gpointer capture, GError **error);

  /* Looks, once, for what else is in a graph that was captured just now. Memory of the pool is its own. */
  gboolean (*audit) (gpointer graph, GTorchPool *pool, GTorchGraphKeeps keeps, gpointer data,
                     GTorchForeignNodes *found, GError **error);
  gboolean (*prepare) (gpointer graph, GError **error);
  /* The stream comes after the last replay in the pool, and has the next one. */
  gboolean (*follow) (GTorchPool *pool, GTorchStream *stream, GError **error);
  /* numbers: seed and counter of each random call. With the pool locked. */
  gboolean (*replay) (gpointer graph, GTorchStream *stream, const guint64 *numbers, GError **error);
  /* Notes that replays on the stream write to the storage, which is not of a pool. */
  void (*note_write) (GTorchStorage *storage, GTorchStream *stream);
  /* Takes the graph, and calls func as soon as the device does not use it any more. */
  void (*free) (gpointer graph, GDestroyNotify func, gpointer data);
} GTorchGraphBackend;

GTorchGraphExec *gtorch_graph_exec_ref (GTorchGraphExec *exec);
void gtorch_graph_exec_unref (GTorchGraphExec *exec);
guint gtorch_graph_exec_get_n_nodes (GTorchGraphExec *exec);
/* Makes what a replay starts with. */
gboolean gtorch_graph_exec_prepare (GTorchGraphExec *exec, GError **error);
/* For a capture that has just ended: looks at what the library has not captured, whose memory must be kept
 * by the graph (inputs: of tensors that it keeps) or at least by somebody; is_relaxed: … or is not asked for.
 * notes: is set if the program should be told something. */
gboolean gtorch_graph_exec_audit (GTorchGraphExec *exec, GHashTable *inputs, gboolean is_relaxed,
                                  gchar **notes, GError **error);
/* Assign a graph its number in the order of captures, and withdraw the number once the graph can no longer
 * be replayed. */
void gtorch_graph_exec_take_number (GTorchGraphExec *exec);
void gtorch_graph_exec_drop_number (GTorchGraphExec *exec);
/* Returns whether it is this graph's turn to be replayed, among those that share the pool. */
gboolean gtorch_graph_exec_check_order (GTorchGraphExec *exec, GError **error);
/* How many nodes the library has not captured. */
guint gtorch_graph_exec_get_n_foreign (GTorchGraphExec *exec);
/* After gtorch_graph_exec_prepare(). */
gboolean gtorch_graph_exec_replay (GTorchGraphExec *exec, GTorchStream *stream, GError **error);
/* A graph like it that has `to`, which has the same geometry, in place of `from`. */
GTorchGraphExec *gtorch_graph_exec_rebind (GTorchGraphExec *exec, GTorchImpl *from, GTorchImpl *to,
                                           GError **error);
void gtorch_graph_exec_write_dot (GTorchGraphExec *exec, GString *text);

/* For guards: ends the capture without keeping it. */
void gtorch_cuda_graph_abandon (GTorchCUDAGraph *self);
/* What it replays, with a reference; NULL with an error if there is nothing. */
GTorchGraphExec *gtorch_cuda_graph_ref_exec (GTorchCUDAGraph *self, GError **error);
/* Takes another one in its place, in any case. FALSE with an error if it is not the one that is replayed. */
gboolean gtorch_cuda_graph_take_exec (GTorchCUDAGraph *self, GTorchGraphExec *former,
                                      GTorchGraphExec *exec, GError **error);
/* The inputs by name; of tensors. */
GHashTable *gtorch_cuda_graph_get_table (GTorchCUDAGraph *self);
/* Who replays it knows which memory is overwritten: the order in the pool is not checked. */
void gtorch_cuda_graph_set_unordered (GTorchCUDAGraph *self);

/* --- a capture under way --- */
GTorchCapture *gtorch_capture_begin (gpointer graph, GTorchStream *stream, GTorchPool *pool,
                                     GTorchCaptureMode mode, GError **error);
/* Ends it in any case; NULL with an error if streams had not joined, or if the graph is not what may be
 * replayed. warning: is set if the program should be told something once no lock is held; NULL: nobody wants
 * the graph, and there is none. */
GTorchGraphExec *gtorch_capture_end (GTorchCapture *capture, gchar **warning, GError **error);
gpointer gtorch_capture_get_graph (GTorchCapture *capture);
GTorchStream *gtorch_capture_get_stream (GTorchCapture *capture);
GThread *gtorch_capture_get_thread (GTorchCapture *capture);
gboolean gtorch_capture_is_relaxed (GTorchCapture *capture);

/* For saved calls: operands in the pool are remembered by their memory alone. */
GTorchImpl *gtorch_capture_alias_operand (GTorchImpl *impl, gpointer data);
gboolean gtorch_capture_add_child (GTorchCapture *capture, GTorchStream *stream,
                                   GTorchGraphExec *child, GError **error);
/* Nodes that are added from now on are done only where the tensor of one element is true. */
gboolean gtorch_capture_begin_branch (GTorchCapture *capture, GTorchStream *stream,
                                      GTorchImpl *predicate, GError **error);
/* Ends the last branch that began; FALSE spoils the capture. */
gboolean gtorch_capture_end_branch (GTorchCapture *capture, GTorchStream *stream, GError **error);
gboolean gtorch_capture_has_branch (GTorchCapture *capture);

G_END_DECLS
