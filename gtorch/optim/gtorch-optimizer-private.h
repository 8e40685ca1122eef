/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <math.h>

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/base/gtorch-range-private.h>
#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

/* Of a group that is made without one. */
#define GTORCH_DEFAULT_LEARNING_RATE 1e-3

/* All parameters, in the order of the groups; new references. */
GPtrArray *gtorch_optimizer_dup_params (GTorchOptimizer *self);

/* What is remembered: GTorchTensor -> (name -> GTorchTensor). */
GHashTable *gtorch_optimizer_states_new (void);
void gtorch_optimizer_states_put (GHashTable *all, GTorchTensor *param, const gchar *name,
                                  GTorchTensor *value);
/* That of an optimizer; taking gives it another. */
GHashTable *gtorch_optimizer_get_states (GTorchOptimizer *self);
void gtorch_optimizer_take_states (GTorchOptimizer *self, GHashTable *states);

/* Some parameters of a group, of one device and dtype, all of which have gradients. */
typedef struct
{
  GTorchParamGroup *group;
  GTorchTensor *const *params, *const *grads;
  guint n;
  GTorchImpl *cell; /* the learning rate in memory of the device; NULL: that of the group */
  GTorchImpl *skip; /* a float32: where it is not 0 nothing is to be changed; or NULL */
} GTorchOptimStep;

/* The step_params of a class changes all of them at once. */
typedef gboolean (*GTorchOptimStepParams) (GTorchOptimizer *self, const GTorchOptimStep *step,
                                           GError **error);
/* The check of a class: are its settings such that a step can be made? */
typedef gboolean (*GTorchOptimCheck) (GTorchOptimizer *self, GError **error);
gboolean gtorch_param_group_check (GTorchParamGroup *self, GError **error);
/* Of settings: any number is kept, and gtorch_optimizer_check() says what is wrong with it. */
#define GTORCH_SETTING_FLAGS \
  (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY | G_PARAM_LAX_VALIDATION)

/* The step_param of such a class; a subclass that overrides it gets its parameters one by one. */
gboolean gtorch_optimizer_step_one (GTorchOptimizer *self, GTorchParamGroup *group,
                                    GTorchTensor *param, GTorchTensor *grad, GError **error);

/* Whether there is a step_params, and nobody has overridden step_param. */
gboolean gtorch_optimizer_is_fused (GTorchOptimizer *self);
/* A step that changes nothing where `skip`, a float32 without dimensions, is not 0: nobody waits for it to be
 * known. */
gboolean gtorch_optimizer_step_unless (GTorchOptimizer *self, GTorchImpl *skip, GError **error);

/* No two of them have memory in common. */
gboolean gtorch_optim_are_apart (GTorchImpl *const *impls, guint n);
/* What is remembered of the parameter, at first filled with the value: like it or, a number, one float64.
 * Borrowed. */
GTorchTensor *gtorch_optim_ensure_state (GTorchOptimizer *self, GTorchTensor *param,
                                         const gchar *name, gboolean is_number, gdouble value,
                                         GError **error);
/* Operands: all parameters, then all gradients, then each kind of state. */
typedef gboolean (*GTorchOptimFunc) (const GTorchOptimStep *step, GTorchImpl *const *operands,
                                     guint n, guint kinds, gpointer data, GError **error);
/* Calls func with all operands, or with those of one parameter after the other where parameters have memory
 * in common. */
gboolean gtorch_optim_run (const GTorchOptimStep *step, GTorchImpl *const *operands, guint kinds,
                           GTorchOptimFunc func, gpointer data, GError **error);

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

G_END_DECLS
