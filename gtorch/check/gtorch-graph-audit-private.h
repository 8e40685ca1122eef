/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-capture-private.h>

G_BEGIN_DECLS

/* Finds what would make a graph compute something else than its program. Nothing of this is called while
 * nothing is captured. */

void gtorch_audit_begin (GTorchCapture *capture, GTorchCaptureMode mode);
void gtorch_audit_end (GTorchCapture *capture);
/* The call becomes part of the graph. */
void gtorch_audit_captured (GTorchCapture *capture, const GTorchOpCall *call);
/* What is captured between them is done only where the predicate, one bool, is true. */
void gtorch_audit_branch (GTorchCapture *capture, GTorchImpl *predicate);
void gtorch_audit_branch_end (GTorchCapture *capture);
/* Another graph becomes part of it, whose calls are not known. */
void gtorch_audit_child (GTorchCapture *capture);
/* All calls of the capture, of GTorchSavedCall, if they are to be compared with replays; else NULL. */
GPtrArray *gtorch_audit_take_calls (GTorchCapture *capture);
/* The device, not the captured one, that the capturing thread has called operations on; or NULL. */
GTorchDevice *gtorch_audit_get_elsewhere (GTorchCapture *capture);
/* The call is about to run on a stream (may be NULL) that does not capture: FALSE if this thread captures
 * another one of the device. */
gboolean gtorch_audit_launch (GTorchStream *stream, const GTorchOpCall *call, GError **error);
/* Warns if `grad`, to which a gradient is about to be added, is older than the capture. */
void gtorch_audit_grad (GTorchImpl *grad);
/* Warns that what a function does happens now and in no replay, if this thread captures. */
void gtorch_audit_host_work (const gchar *what);
/* Warns that a capture has recorded nothing. */
void gtorch_audit_empty (void);

/* --- graphs that share a pool --- */
/* Gives a graph its number in the order of captures; takes it back when nobody can replay it any more. */
void gtorch_graph_exec_take_number (GTorchGraphExec *exec);
void gtorch_graph_exec_drop_number (GTorchGraphExec *exec);
/* Is it the turn of this graph? */
gboolean gtorch_graph_exec_check_order (GTorchGraphExec *exec, GError **error);

G_END_DECLS
