/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-capture-private.h>
#include <gtorch/dispatch/gtorch-saved-call-private.h>

G_BEGIN_DECLS

/* Reports what would make a graph compute something other than its program. None of these functions is
 * called unless a capture is under way. */

void gtorch_audit_begin (GTorchCapture *capture, GTorchCaptureMode mode);
void gtorch_audit_end (GTorchCapture *capture);
/* Records that the call becomes part of the graph. */
void gtorch_audit_captured (GTorchCapture *capture, const GTorchOpCall *call);
/* Begins and ends a conditional branch: the calls captured in between run only where the predicate, a
 * single bool, is true. */
void gtorch_audit_branch (GTorchCapture *capture, GTorchImpl *predicate);
void gtorch_audit_branch_end (GTorchCapture *capture);
/* Records that another graph, whose calls are unknown, becomes a child of the captured one. */
void gtorch_audit_child (GTorchCapture *capture);
/* Returns all calls of the capture (GTorchSavedCall) if they are to be compared with replays, otherwise
 * NULL. */
GPtrArray *gtorch_audit_take_calls (GTorchCapture *capture);
/* Returns a device other than the captured one on which the capturing thread has called operations, or
 * NULL. */
GTorchDevice *gtorch_audit_get_elsewhere (GTorchCapture *capture);
/* Checks a call that is about to run on a stream (may be NULL) that does not capture. Returns FALSE if this
 * thread captures another stream of the device. */
gboolean gtorch_audit_launch (GTorchStream *stream, const GTorchOpCall *call, GError **error);
/* Warns if `grad`, which is about to be accumulated into, is older than the capture. */
void gtorch_audit_grad (GTorchImpl *grad);
/* If this thread captures, warns that the host work done by a function happens now and in no replay. */
void gtorch_audit_host_work (const gchar *what);
/* Warns that a capture has recorded nothing. */
void gtorch_audit_empty (void);

/* --- graphs that share a pool --- */
/* Assign a graph its number in the order of captures, and withdraw the number once the graph can no longer
 * be replayed. */
void gtorch_graph_exec_take_number (GTorchGraphExec *exec);
void gtorch_graph_exec_drop_number (GTorchGraphExec *exec);
/* Returns whether it is this graph's turn to be replayed. */
gboolean gtorch_graph_exec_check_order (GTorchGraphExec *exec, GError **error);

G_END_DECLS
