/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-store.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TCP_STORE (gtorch_tcp_store_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTcpStore, gtorch_tcp_store, GTORCH, TCP_STORE, GTorchStore)

GTORCH_AVAILABLE_IN_0_1
GTorchTcpStore *gtorch_tcp_store_new (const gchar *host, guint port, gint world_size,
                                      gboolean is_server, gdouble timeout,
                                      gboolean wait_for_workers, const gchar *token,
                                      GCancellable *cancellable,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tcp_store_create_async (const gchar *host, guint port, gint world_size,
                                    gboolean is_server, gdouble timeout, gboolean wait_for_workers,
                                    const gchar *token, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTcpStore *gtorch_tcp_store_create_finish (GAsyncResult *result,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_tcp_store_get_host (GTorchTcpStore *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_tcp_store_get_port (GTorchTcpStore *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tcp_store_get_is_server (GTorchTcpStore *self);

G_END_DECLS
