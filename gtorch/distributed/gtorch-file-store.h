/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-store.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FILE_STORE (gtorch_file_store_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchFileStore, gtorch_file_store, GTORCH, FILE_STORE, GTorchStore)

GTORCH_AVAILABLE_IN_0_1
GTorchFileStore *gtorch_file_store_new (const gchar *path,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_file_store_get_path (GTorchFileStore *self);

G_END_DECLS
