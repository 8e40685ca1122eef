/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-fetcher.h>
#include <gtorch/data/gtorch-worker-info.h>

G_BEGIN_DECLS

/* These call the class, and check what it gave. */
gboolean gtorch_fetcher_begin (GTorchFetcher *self, guint worker, guint n_workers, guint64 seed,
                               GCancellable *cancellable, GError **error);
GTorchSample *gtorch_fetcher_fetch (GTorchFetcher *self, guint worker, GTorchSize *indices,
                                    GCancellable *cancellable, GError **error);
/* NULL without an error at the end of the worker's source. */
GTorchSample *gtorch_fetcher_fetch_next (GTorchFetcher *self, guint worker, gint64 n,
                                         gboolean drop_last, GCancellable *cancellable,
                                         GError **error);
void gtorch_fetcher_end (GTorchFetcher *self, guint worker);
/* As end, in the collector of a language perhaps, where none of its functions can be called. */
void gtorch_fetcher_drop (GTorchFetcher *self, guint worker);
/* Whether the samples are read by the threads that call fetch (), and not by other processes. */
gboolean gtorch_fetcher_is_local (GTorchFetcher *self);

GTorchWorkerInfo *gtorch_worker_info_new (guint id, guint num_workers, guint64 seed,
                                          GTorchDataset *dataset);
/* Makes it the one of this thread; NULL for none. Not owned. */
void gtorch_worker_info_set_current (GTorchWorkerInfo *self);

G_END_DECLS
