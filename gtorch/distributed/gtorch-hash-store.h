/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-store.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_HASH_STORE (gtorch_hash_store_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchHashStore, gtorch_hash_store, GTORCH, HASH_STORE, GTorchStore)

GTORCH_AVAILABLE_IN_0_1
GTorchHashStore *gtorch_hash_store_new (void) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
