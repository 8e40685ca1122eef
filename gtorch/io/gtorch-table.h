/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TABLE (gtorch_table_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTable, gtorch_table, GTORCH, TABLE, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_table_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_table_add (GTorchTable *self, const gchar *name, GTorchTensor *tensor,
                           GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_table_get_length (GTorchTable *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_table_get_name (GTorchTable *self, guint index);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_table_get_tensor (GTorchTable *self, guint index);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_table_contains (GTorchTable *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_table_lookup (GTorchTable *self, const gchar *name, GError **error);
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_table_to_hash_table (GTorchTable *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
