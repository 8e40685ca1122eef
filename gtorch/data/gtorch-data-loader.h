/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-fetcher.h>
#include <gtorch/data/gtorch-sampler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DATA_LOADER (gtorch_data_loader_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDataLoader, gtorch_data_loader, GTORCH, DATA_LOADER, GObject)

/**
 * GTorchWorkerInitFunc:
 * @worker: which worker, from 0
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Prepares a worker; called in its thread before it gets its first sample.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchWorkerInitFunc) (guint worker, gpointer user_data, GError **error);

typedef struct _GTorchDataLoaderIter GTorchDataLoaderIter;

GTORCH_AVAILABLE_IN_0_1
GTorchDataLoader *gtorch_data_loader_new (GTorchDataset *dataset, gint64 batch_size,
                                          gboolean shuffle) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_data_loader_set_collate (GTorchDataLoader *self, GTorchCollateFunc func,
                                     gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
void gtorch_data_loader_set_worker_init (GTorchDataLoader *self, GTorchWorkerInitFunc func,
                                         gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_data_loader_check (GTorchDataLoader *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchDataLoaderIter *gtorch_data_loader_iterate (GTorchDataLoader *self,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_data_loader_run_async (GTorchDataLoader *self, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_data_loader_run_finish (GTorchDataLoader *self, GAsyncResult *result,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_data_loader_get_length (GTorchDataLoader *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_data_loader_get_epoch (GTorchDataLoader *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_data_loader_get_position (GTorchDataLoader *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_data_loader_get_progress (GTorchDataLoader *self);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_data_loader_get_state (GTorchDataLoader *self,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_data_loader_set_state (GTorchDataLoader *self, GVariant *state, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_data_loader_close (GTorchDataLoader *self);

G_END_DECLS
