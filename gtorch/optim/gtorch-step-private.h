/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer-private.h>
#include <gtorch/optim/gtorch-setting-private.h>
#include <gtorch/optim/gtorch-step-limits-private.h>

G_BEGIN_DECLS

/* Optimizers that are rows of steps.toml. The tables are generated; gtorch-step.c and, for the operation,
 * gtorch-step-call.c use them. */

typedef struct
{
  const gchar *name;
  gboolean is_count;
  gboolean is_number; /* a float64 number, as the count is; otherwise like the parameter */
} GTorchStepState;

/* A formula. `numbers` are its arguments, the learning rate first; booleans are 0 or 1. */
typedef struct
{
  const gchar *name; /* as in the names of kernels: adam */
  const GTorchStepState *states;
  guint n_states;
  guint n_numbers;
  guint always; /* bit mask of the states that every parameter has once it was stepped */
  gboolean counts_if_needed; /* the count is kept only if the host does not know the first step */
  guint (*get_states) (const gdouble *numbers);               /* bit mask of the required states */
  gdouble (*get_begin) (const gdouble *numbers, guint state); /* the initial value of a state */
} GTorchStep;

extern const GTorchStep gtorch_steps[];
extern const guint gtorch_n_steps;

/* The parts of a class other than its formula. */
typedef struct
{
  GTorchSettings settings;
  guint step;
  gboolean becomes_capturable; /* by the first step that is captured */
} GTorchStepClass;

void gtorch_step_class_init (GTorchOptimizerClass *klass, const GTorchStepClass *row);
/* Creates an optimizer with one group and properties, names and values up to NULL. Returns NULL if its
 * settings do not allow a step. */
gpointer gtorch_step_new (GType type, GListModel *params, gdouble learning_rate,
                          gdouble weight_decay, GError **error, ...) G_GNUC_NULL_TERMINATED;
/* Returns the formula of an optimizer whose steps are those of a row, or NULL. */
const GTorchStep *gtorch_step_find (GTorchOptimizer *self);
/* Returns TRUE if a capture makes the optimizer capturable, as its like in PyTorch needs no setting. */
gboolean gtorch_step_becomes_capturable (GTorchOptimizer *self);
/* Returns the initial value of a state in a group; 0 if the optimizer is no row, or has no such state. */
gdouble gtorch_step_get_begin (GTorchOptimizer *self, GTorchParamGroup *group, const gchar *name);

G_END_DECLS
