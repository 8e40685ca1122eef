/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <math.h>

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/base/gtorch-range-private.h>
#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

/* The learning rate of a group that names none. */
#define GTORCH_DEFAULT_LEARNING_RATE 1e-3

/* Returns all parameters, in the order of the groups; new references. */
GPtrArray *gtorch_optimizer_dup_params (GTorchOptimizer *self);

/* The state of an optimizer: GTorchTensor -> (name -> GTorchTensor). */
GHashTable *gtorch_optimizer_states_new (void);
void gtorch_optimizer_states_put (GHashTable *all, GTorchTensor *param, const gchar *name,
                                  GTorchTensor *value);
/* Returns the states of an optimizer; gtorch_optimizer_take_states () replaces them. */
GHashTable *gtorch_optimizer_get_states (GTorchOptimizer *self);
void gtorch_optimizer_take_states (GTorchOptimizer *self, GHashTable *states);

/* Some parameters of a group, of one device and dtype, all of which have gradients. */
typedef struct
{
  GTorchParamGroup *group;
  GTorchTensor *const *params, *const *grads;
  guint n;
  GTorchImpl *cell; /* the learning rate in device memory; NULL: that of the group */
  GTorchImpl *skip; /* a float32: if it is not 0, nothing is changed; or NULL */
} GTorchOptimStep;

/* The virtual function of a class that updates all parameters at once. */
typedef gboolean (*GTorchOptimStepParams) (GTorchOptimizer *self, const GTorchOptimStep *step,
                                           GError **error);
/* The virtual function of a class that checks whether its settings allow a step. */
typedef gboolean (*GTorchOptimCheck) (GTorchOptimizer *self, GError **error);

/* The virtual function of a class whose steps need a closure: makes a step, and returns the first loss. */
typedef GTorchTensor *(*GTorchOptimStepClosure) (GTorchOptimizer *self,
                                                 GTorchOptimizerClosure closure, gpointer user_data,
                                                 GError **error);
/* Calls the closure with the grad mode on. */
GTorchTensor *gtorch_optimizer_call_closure (GTorchOptimizer *self, GTorchOptimizerClosure closure,
                                             gpointer user_data, GError **error);

/* For constructors of classes that are no rows: takes an optimizer, and returns it with one group of
 * parameters; NULL if its settings do not allow a step. */
gpointer gtorch_optimizer_start (gpointer self, const gchar *who, GListModel *params,
                                 gdouble learning_rate, gdouble weight_decay, GError **error);
/* Fails where steps are to be captured, for a class whose steps cannot be. */
gboolean gtorch_optimizer_check_plain (GTorchOptimizer *self, const gchar *who, GError **error);

/* The step_param of such a class; a subclass that overrides it gets its parameters one by one. */
gboolean gtorch_optimizer_step_one (GTorchOptimizer *self, GTorchParamGroup *group,
                                    GTorchTensor *param, GTorchTensor *grad, GError **error);

/* Returns TRUE if there is a step_params, and no subclass overrides step_param. */
gboolean gtorch_optimizer_is_fused (GTorchOptimizer *self);
/* Makes a step that changes nothing if `skip`, a zero-dimensional float32, is not 0; the host does not
 * wait for it. */
gboolean gtorch_optimizer_step_unless (GTorchOptimizer *self, GTorchImpl *skip, GError **error);

/* Returns the state of the parameter, creating it filled with the value: like the parameter or, for a
 * number, one float64. Borrowed. */
GTorchTensor *gtorch_optim_ensure_state (GTorchOptimizer *self, GTorchTensor *param,
                                         const gchar *name, gboolean is_number, gdouble value,
                                         GError **error);
/* The operands are all parameters, then all gradients, then each kind of state. */
typedef gboolean (*GTorchOptimFunc) (const GTorchOptimStep *step, GTorchImpl *const *operands,
                                     guint n, guint kinds, gpointer data, GError **error);
/* Calls func with all operands, or, if parameters overlap, with those of one parameter at a time. */
gboolean gtorch_optim_run (const GTorchOptimStep *step, GTorchImpl *const *operands, guint kinds,
                           GTorchOptimFunc func, gpointer data, GError **error);

/* Steps that several processes share (distributed/gtorch-sharded-optimizer.c). */
typedef struct
{
  /* Whether this process updates the parameter, and has its state. */
  gboolean (*owns) (gpointer data, GTorchOptimizer *self, GTorchTensor *param);
  /* Called after a step, in which parameters of this process were updated. */
  gboolean (*end) (gpointer data, GTorchOptimizer *self, GError **error);
} GTorchOptimizerShare;

typedef struct
{
  const GTorchOptimizerShare *share; /* or NULL */
  gpointer data;
  GDestroyNotify destroy;
} GTorchOptimizerShared;

GTorchOptimizerShared *gtorch_optimizer_get_shared (GTorchOptimizer *self);
/* Takes the data. Returns FALSE if there is a share already. */
gboolean gtorch_optimizer_set_share (GTorchOptimizer *self, const GTorchOptimizerShare *share,
                                     gpointer data, GDestroyNotify destroy);
/* TRUE without a share. */
gboolean gtorch_optimizer_owns (GTorchOptimizer *self, GTorchTensor *param);
gboolean gtorch_optimizer_end_shared (GTorchOptimizer *self, GError **error);

/* Creates memory that graphs read: it is filled immediately, even if the current stream captures, so that
 * a replay does not fill it again. */

/* Creates a tensor like `like`, or one float64 on the device. */
GTorchTensor *gtorch_optim_new_filled (GTorchTensor *like, GTorchDevice *device, gdouble value,
                                       GError **error);
gboolean gtorch_optim_fill (GTorchTensor *tensor, gdouble value, GError **error);

/* Returns the learning rate as one float64 in device memory; it follows the property. Borrowed. */
GTorchTensor *gtorch_param_group_get_cell (GTorchParamGroup *self, GTorchDevice *device,
                                           GError **error);
/* From now on, changes of settings that the graph does not read from memory cause a warning. */
void gtorch_param_group_note_capture (GTorchParamGroup *self);

/* Returns whether steps read the learning rate of the group from memory, and then sets *cell. */
gboolean gtorch_optimizer_find_cell (GTorchOptimizer *self, GTorchParamGroup *group,
                                     GTorchTensor *param, GTorchImpl **cell, GError **error);

G_END_DECLS
