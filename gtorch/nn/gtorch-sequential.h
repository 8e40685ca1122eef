/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SEQUENTIAL (gtorch_sequential_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSequential, gtorch_sequential, GTORCH, SEQUENTIAL, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchSequential *gtorch_sequential_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSequential *gtorch_sequential_new_from_modules (GTorchModule **modules, gsize n_modules,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sequential_append (GTorchSequential *self, GTorchModule *module, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sequential_insert (GTorchSequential *self, gint position, GTorchModule *module,
                                   GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sequential_remove (GTorchSequential *self, gint position, GError **error);

G_END_DECLS
