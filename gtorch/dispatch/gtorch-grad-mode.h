/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_grad_enabled (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_set_grad_enabled (gboolean enabled);

/**
 * GTorchGradGuard:
 *
 * Turns the recording of gradients off or on for its lifetime.
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@GradGuard.end]. Guards nest, may end in any order, and each belongs to the thread that created
 * it.
 *
 * ```c
 * {
 *   g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
 *   y = gtorch_module_forward (model, x, &error);
 * }
 * ```
 *
 * Since: 0.1
 */
typedef struct _GTorchGradGuard GTorchGradGuard;

#define GTORCH_TYPE_GRAD_GUARD (gtorch_grad_guard_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_grad_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchGradGuard *gtorch_no_grad (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGradGuard *gtorch_enable_grad (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGradGuard *gtorch_inference_mode (gboolean enabled) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_inference_mode_enabled (void);
GTORCH_AVAILABLE_IN_0_1
void gtorch_grad_guard_end (GTorchGradGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchGradGuard *gtorch_grad_guard_ref (GTorchGradGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_grad_guard_unref (GTorchGradGuard *guard);

_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchGradGuard, gtorch_grad_guard_unref)

G_END_DECLS
