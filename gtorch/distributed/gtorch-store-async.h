/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-store.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
void gtorch_store_set_async (GTorchStore *self, const gchar *key, GBytes *value,
                             GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_set_finish (GTorchStore *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_get_async (GTorchStore *self, const gchar *key, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_store_get_finish (GTorchStore *self, GAsyncResult *result,
                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_add_async (GTorchStore *self, const gchar *key, gint64 amount,
                             GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_add_finish (GTorchStore *self, GAsyncResult *result, gint64 *sum,
                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_wait_async (GTorchStore *self, const gchar *const *keys, gdouble timeout,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_wait_finish (GTorchStore *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_append_async (GTorchStore *self, const gchar *key, GBytes *value,
                                GCancellable *cancellable, GAsyncReadyCallback callback,
                                gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_append_finish (GTorchStore *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_compare_set_async (GTorchStore *self, const gchar *key, GBytes *expected,
                                     GBytes *desired, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_store_compare_set_finish (GTorchStore *self, GAsyncResult *result,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_check_async (GTorchStore *self, const gchar *const *keys,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_check_finish (GTorchStore *self, GAsyncResult *result, gboolean *are_there,
                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_delete_key_async (GTorchStore *self, const gchar *key, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_delete_key_finish (GTorchStore *self, GAsyncResult *result,
                                         gboolean *was_there, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_store_count_keys_async (GTorchStore *self, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_count_keys_finish (GTorchStore *self, GAsyncResult *result, gint64 *n_keys,
                                         GError **error);

G_END_DECLS
