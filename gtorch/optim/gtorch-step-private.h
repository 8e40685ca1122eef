/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-field-private.h>
#include <gtorch/optim/gtorch-optimizer-private.h>

G_BEGIN_DECLS

/* Optimizers that are rows of steps.toml. The tables are generated; what is done with them is in
 * gtorch-step.c
 * and, for the operation, in ops/optim.c. */

typedef struct
{
  const gchar *name;
  gboolean is_count; /* a float64 number; else like the parameter */
} GTorchStepState;

/* A formula. `numbers` are its arguments, the learning rate first; truth values are 0 or 1. */
typedef struct
{
  const gchar *name; /* as in the names of kernels: adam */
  const GTorchStepState *states;
  guint n_states;
  guint n_numbers;
  guint always; /* bits of the states that every parameter has once it was stepped */
  gboolean
      counts_if_needed; /* the count is kept only where the host does not know the first step */
  guint (*get_states) (const gdouble *numbers);               /* bits of those that are wanted */
  gdouble (*get_begin) (const gdouble *numbers, guint state); /* what a state is filled with */
} GTorchStep;

extern const GTorchStep gtorch_steps[];

/* A number of a class: a property of the optimizer, or a setting of its groups. */
typedef struct
{
  const gchar *name;
  GTorchFieldKind kind;
  gssize offset; /* in the instance; -1: of the group */
  gdouble least, most;
  gdouble below; /* also as a float32; infinite: no such bound */
} GTorchStepNumber;

typedef struct
{
  const gchar *name;  /* of the truth value that is true only under a condition */
  const gchar *needs; /* the condition, as in the row */
  guint number;
  gboolean (*holds) (const gdouble *numbers);
} GTorchStepRule;

/* What a class has beside its formula. */
typedef struct
{
  const gchar *who; /* in messages */
  guint step;
  const GTorchStepNumber *numbers;
  const GTorchStepRule *rules;
  guint n_rules;
  gdouble weight_decay; /* of a group, by default */
} GTorchStepClass;

void gtorch_step_class_init (GTorchOptimizerClass *klass, const GTorchStepClass *row);
/* An optimizer with one group and properties, names and values up to NULL; NULL if its settings are not such
 * that a step can be made. */
gpointer gtorch_step_new (GType type, GListModel *params, gdouble learning_rate,
                          gdouble weight_decay, GError **error, ...) G_GNUC_NULL_TERMINATED;
/* The formula of an optimizer whose steps are those of a row; NULL. */
const GTorchStep *gtorch_step_find (GTorchOptimizer *self);
/* What a state begins with; 0 if the optimizer is no row, or has no such state. */
gdouble gtorch_step_get_begin (GTorchOptimizer *self, const gchar *name);

G_END_DECLS
