/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-cuda-graph.h>
#include <gtorch/stream/gtorch-capturing-private.h>
#include <gtorch/memory/gtorch-guard.h>
#include <gtorch/memory/gtorch-memory-pool-private.h>

G_BEGIN_DECLS

/* Nodes of a captured graph that the library did not launch. */
typedef struct
{
  guint n;
  GString *names; /* names of all these nodes */
  gchar *user;    /* name of one that uses memory the graph does not keep, or NULL */
  guint64 address;
  gboolean is_lost; /* whether that memory belongs to no tensor */
} GTorchForeignNodes;

/* Returns whether the graph keeps the memory at the address. */
typedef gboolean (*GTorchGraphKeeps) (guint64 address, gpointer data);

/* The functions of a device that captures what is launched on its queues. Calls are launched while their
 * stream captures; the counter of a random call is then its index among the random calls of the graph. */
typedef struct _GTorchGraphBackend
{
  /* Begins a capture of the stream; memory that it allocates comes from the pool. */
  gpointer (*begin) (GTorchStream *stream, GTorchPool *pool, GTorchCaptureMode mode,
                     GError **error);
  /* Records the fence after what the stream has captured so far. */
  gboolean (*record) (gpointer capture, GTorchStream *stream, GTorchFence *fence, GError **error);
  /* Makes the stream, which may be one of another device, wait for the fence, and take part in the capture
   * if it does not yet; memory that it allocates meanwhile comes from the pool, one of its device. */
  gboolean (*join) (gpointer capture, GTorchStream *stream, GTorchPool *pool, GTorchFence *fence,
                    GError **error);
  /* Called before and after the library launches something on the stream. */
  void (*enter) (gpointer capture, GTorchStream *stream);
  void (*leave) (gpointer capture, GTorchStream *stream);
  /* Begins a branch: what the stream, and streams that join it, capture up to end_branch is executed in a
   * replay only if the predicate, one bool on the device, is true at that point. Both functions are called
   * between enter and leave. */
  gboolean (*begin_branch) (gpointer capture, GTorchStream *stream, GTorchImpl *predicate,
                            GError **error);
  /* Ends the branch: what the stream captures is unconditional again, and streams that joined in the branch
   * leave the capture. The branch ends even on failure. */
  gboolean (*end_branch) (gpointer capture, GTorchStream *stream, GError **error);
  /* Takes the capture and ends it, even on failure; NULL with an error. */
  gpointer (*end) (gpointer capture, GError **error);

  /* Looks for nodes of a newly captured graph that the library did not launch; called once. Memory of the
   * pool, and of those that the same graphs have on other devices, counts as kept by the graph. */
  gboolean (*audit) (gpointer graph, GTorchPool *pool, GTorchGraphKeeps keeps, gpointer data,
                     GTorchForeignNodes *found, GError **error);
  gboolean (*prepare) (gpointer graph, GError **error);
  /* Makes the stream, on which the next replay runs, wait for the last replay in the pool. */
  gboolean (*follow) (GTorchPool *pool, GTorchStream *stream, GError **error);
  /* Replays the graph. numbers: seed and counter of each random call. Called with the pool's run_lock
   * held. */
  gboolean (*replay) (gpointer graph, GTorchStream *stream, const guint64 *numbers, GError **error);
  /* Records that replays on the stream write to the storage, which does not belong to a pool. */
  void (*note_write) (GTorchStorage *storage, GTorchStream *stream);
  /* Takes the graph, and calls func as soon as the device does not use the graph any more. */
  void (*free) (gpointer graph, GDestroyNotify func, gpointer data);
} GTorchGraphBackend;

GTorchGraphExec *gtorch_graph_exec_ref (GTorchGraphExec *exec);
void gtorch_graph_exec_unref (GTorchGraphExec *exec);
guint gtorch_graph_exec_get_n_nodes (GTorchGraphExec *exec);
/* Prepares the graph for replays. */
gboolean gtorch_graph_exec_prepare (GTorchGraphExec *exec, GError **error);
/* Checks the nodes of a newly captured graph that the library did not launch. The graph, or an input in
 * `inputs` (a table of tensors), should keep the memory that they use; memory that belongs to no tensor is
 * an error unless is_relaxed is set. *notes: set to a warning for the program, if there is one. */
gboolean gtorch_graph_exec_audit (GTorchGraphExec *exec, GHashTable *inputs, gboolean is_relaxed,
                                  gchar **notes, GError **error);
/* Assign a graph its number in the order of captures, and withdraw the number once the graph can no longer
 * be replayed. */
void gtorch_graph_exec_take_number (GTorchGraphExec *exec);
void gtorch_graph_exec_drop_number (GTorchGraphExec *exec);
/* Returns whether it is this graph's turn to be replayed, among those that share the pool. */
gboolean gtorch_graph_exec_check_order (GTorchGraphExec *exec, GError **error);
/* Returns the number of nodes that the library did not launch. */
guint gtorch_graph_exec_get_n_foreign (GTorchGraphExec *exec);
/* Replays a prepared graph. */
gboolean gtorch_graph_exec_replay (GTorchGraphExec *exec, GTorchStream *stream, GError **error);
/* Returns a copy of the graph that uses `to` instead of `from`, which has the same geometry. */
GTorchGraphExec *gtorch_graph_exec_rebind (GTorchGraphExec *exec, GTorchImpl *from, GTorchImpl *to,
                                           GError **error);
void gtorch_graph_exec_write_dot (GTorchGraphExec *exec, GString *text);

/* Ends the capture and discards it; for guards. */
void gtorch_cuda_graph_abandon (GTorchCUDAGraph *self);
/* Returns a new reference to the executable graph, or NULL with an error if there is none. */
GTorchGraphExec *gtorch_cuda_graph_ref_exec (GTorchCUDAGraph *self, GError **error);
/* Replaces the executable graph and takes `exec` in any case. Returns FALSE with an error if `former` is
 * not the present one. */
gboolean gtorch_cuda_graph_take_exec (GTorchCUDAGraph *self, GTorchGraphExec *former,
                                      GTorchGraphExec *exec, GError **error);
/* Returns the inputs: a table of tensors by name. */
GHashTable *gtorch_cuda_graph_get_table (GTorchCUDAGraph *self);
/* Disables the check of the replay order in the pool, for callers that know which memory is overwritten. */
void gtorch_cuda_graph_set_unordered (GTorchCUDAGraph *self);

/* --- captures in progress ---
 *
 * Locks are taken in this order: `launch_lock` of a capture, its `lock`, the lock of one device, that of the
 * queue which begins or stops to take part (never those of two devices at once), and that of a pool. Replays
 * take `run_lock` of the graph's pools, on whatever devices these are, in the order of their ids, and then
 * the lock of one device, but no lock of a capture. */
GTorchCapture *gtorch_capture_begin (gpointer graph, GTorchStream *stream, GTorchPool *pool,
                                     GTorchCaptureMode mode, GError **error);
/* Ends the capture in any case. Returns NULL with an error if a stream did not join, or if the graph cannot
 * be replayed. *warning: set to a warning that the caller should print when it holds no lock. With warning
 * NULL the graph is discarded and NULL returned. */
GTorchGraphExec *gtorch_capture_end (GTorchCapture *capture, gchar **warning, GError **error);
gpointer gtorch_capture_get_graph (GTorchCapture *capture);
GTorchStream *gtorch_capture_get_stream (GTorchCapture *capture);
GThread *gtorch_capture_get_thread (GTorchCapture *capture);
gboolean gtorch_capture_is_relaxed (GTorchCapture *capture);

/* An alias function for saved calls: operands in the pool keep only their memory alive. */
GTorchImpl *gtorch_capture_alias_operand (GTorchImpl *impl, gpointer data);
gboolean gtorch_capture_add_child (GTorchCapture *capture, GTorchStream *stream,
                                   GTorchGraphExec *child, GError **error);
/* Begins a branch: nodes that are added from now on are executed only if the predicate, a tensor of one
 * element, is true. */
gboolean gtorch_capture_begin_branch (GTorchCapture *capture, GTorchStream *stream,
                                      GTorchImpl *predicate, GError **error);
/* Ends the innermost branch. If this returns FALSE, the capture fails as well. */
gboolean gtorch_capture_end_branch (GTorchCapture *capture, GTorchStream *stream, GError **error);
gboolean gtorch_capture_has_branch (GTorchCapture *capture);

G_END_DECLS
