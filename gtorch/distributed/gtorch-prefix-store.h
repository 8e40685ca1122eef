/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-store.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PREFIX_STORE (gtorch_prefix_store_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPrefixStore, gtorch_prefix_store, GTORCH, PREFIX_STORE, GTorchStore)

GTORCH_AVAILABLE_IN_0_1
GTorchPrefixStore *gtorch_prefix_store_new (const gchar *prefix,
                                            GTorchStore *store) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_prefix_store_get_prefix (GTorchPrefixStore *self);
GTORCH_AVAILABLE_IN_0_1
GTorchStore *gtorch_prefix_store_get_store (GTorchPrefixStore *self);

G_END_DECLS
