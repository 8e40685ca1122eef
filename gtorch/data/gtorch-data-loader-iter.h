/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-data-loader.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DATA_LOADER_ITER (gtorch_data_loader_iter_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDataLoaderIter, gtorch_data_loader_iter, GTORCH, DATA_LOADER_ITER,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchDataLoader *gtorch_data_loader_iter_get_loader (GTorchDataLoaderIter *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_data_loader_iter_get_epoch (GTorchDataLoaderIter *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_data_loader_iter_get_position (GTorchDataLoaderIter *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_data_loader_iter_get_length (GTorchDataLoaderIter *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_data_loader_iter_get_progress (GTorchDataLoaderIter *self);
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_data_loader_iter_next (GTorchDataLoaderIter *self, GCancellable *cancellable,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_data_loader_iter_next_value (GTorchDataLoaderIter *self,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_data_loader_iter_next_async (GTorchDataLoaderIter *self, GCancellable *cancellable,
                                         GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_data_loader_iter_next_finish (GTorchDataLoaderIter *self, GAsyncResult *result,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_data_loader_iter_close (GTorchDataLoaderIter *self);

G_END_DECLS
