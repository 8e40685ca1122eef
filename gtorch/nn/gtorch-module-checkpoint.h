/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_checkpoint (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                        gboolean use_reentrant, gboolean preserve_rng_state,
                                        gboolean determinism_check, gboolean early_stop,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_checkpoint_sequential (GTorchModule **modules, gsize n_modules, guint segments,
                                            GTorchTensor *input, gboolean use_reentrant,
                                            gboolean preserve_rng_state,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
