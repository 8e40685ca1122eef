/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* GTORCH_CHECK=replay: the first replays of a graph are repeated without it, on copies, and compared. */
#define GTORCH_N_COMPARED 3

typedef struct _GTorchGraphCompare GTorchGraphCompare;

/* Among the calls: as many of those behind it as it says are made only where its input, one bool, is true. */
extern const GTorchOpClass gtorch_graph_branch;

/* calls: of GTorchSavedCall, in their order. Before the replay, which comes next. */
GTorchGraphCompare *gtorch_graph_compare_begin (GPtrArray *calls, GTorchStream *stream,
                                                GError **error);
/* After it; frees the compare. FALSE names the first operation that gave something else. */
gboolean gtorch_graph_compare_end (GTorchGraphCompare *compare, GError **error);
void gtorch_graph_compare_free (GTorchGraphCompare *compare);

G_END_DECLS
