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

/* What graphs read: it is filled at once, also while the current stream captures, so that a replay does not
 * fill it again. */

/* As `like`, or one float64 on the device. */
GTorchTensor *gtorch_optim_new_filled (GTorchTensor *like, GTorchDevice *device, gdouble value,
                                       GError **error);
gboolean gtorch_optim_fill (GTorchTensor *tensor, gdouble value, GError **error);

/* The learning rate as one float64 in memory of the device; it follows the property. Borrowed. */
GTorchTensor *gtorch_param_group_get_cell (GTorchParamGroup *self, GTorchDevice *device,
                                           GError **error);
/* From now on changes of what the graph has no cell for are warned about. */
void gtorch_param_group_note_capture (GTorchParamGroup *self);

/* Whether steps read the learning rate of the group from memory: *cell is set then. */
gboolean gtorch_optimizer_find_cell (GTorchOptimizer *self, GTorchParamGroup *group,
                                     GTorchTensor *param, GTorchImpl **cell, GError **error);
/* For setters: warns if a graph has captured the former value. */
void gtorch_optimizer_changed (GTorchOptimizer *self, GParamSpec *pspec);

G_END_DECLS
