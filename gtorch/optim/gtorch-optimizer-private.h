/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-impl-private.h>
#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

/* All parameters, in the order of the groups; new references. */
GPtrArray *gtorch_optimizer_dup_params (GTorchOptimizer *self);

/* Whether all that a step changes are parameters and what set_state () was given. */
gboolean gtorch_optimizer_is_maskable (GTorchOptimizer *self);
/* A step that leaves a parameter and its state as they are where `skip`, a bool without dimensions on the
 * device of the parameter, is true: nobody waits for it to be known. One of `skips` is of each device. */
gboolean gtorch_optimizer_step_unless (GTorchOptimizer *self, GTorchImpl *const *skips,
                                       guint n_skips, GError **error);

G_END_DECLS
