/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/dispatch/gtorch-saved-call-private.h>

G_BEGIN_DECLS

/* GTORCH_CHECK=replay: the first replays of a graph are repeated on copies, call by call, and the results
 * compared. */
#define GTORCH_N_COMPARED 3

typedef struct _GTorchGraphCompare GTorchGraphCompare;

/* A pseudo-call that marks a branch: the following calls, as many as its attribute says, run only where its
 * input, a single bool, is true. */
extern const GTorchOpClass gtorch_graph_branch;

/* Prepares to compare the next replay. calls: GTorchSavedCall, in call order. */
GTorchGraphCompare *gtorch_graph_compare_begin (GPtrArray *calls, GTorchStream *stream,
                                                GError **error);
/* Compares after the replay and frees the comparison. Returns FALSE with an error that names the first
 * operation whose result differs. */
gboolean gtorch_graph_compare_end (GTorchGraphCompare *compare, GError **error);
void gtorch_graph_compare_free (GTorchGraphCompare *compare);

G_END_DECLS
