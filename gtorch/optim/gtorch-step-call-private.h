/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>
#include <gtorch/optim/gtorch-step-private.h>

G_BEGIN_DECLS

/* The operands of the operation optim_steps, whose row says what they are. */

#define GTORCH_STEP_LR_CELL 1
#define GTORCH_STEP_SKIP    2
#define GTORCH_STEP_OTHERS  3

/* The kinds of operands, in the order of the list. The states that are present follow from
 * GTORCH_STEP_STATES on, in the order of the row. */
enum
{
  GTORCH_STEP_PARAM,
  GTORCH_STEP_GRAD,
  GTORCH_STEP_STATES,
};

static inline const GTorchStep *
gtorch_step_call_row (const GTorchOpCall *call)
{
  return &gtorch_steps[call->attrs[0].i];
}

static inline gboolean
gtorch_step_call_has (const GTorchOpCall *call, guint state)
{
  return (call->attrs[1].i >> state & 1) != 0;
}

static inline guint
gtorch_step_call_n_kinds (const GTorchOpCall *call)
{
  return GTORCH_STEP_STATES + __builtin_popcount ((guint) call->attrs[1].i);
}

static inline guint
gtorch_step_call_n_params (const GTorchOpCall *call)
{
  return (call->n_inputs - GTORCH_STEP_OTHERS + 1) / gtorch_step_call_n_kinds (call);
}

static inline GTorchImpl *
gtorch_step_call_operand (const GTorchOpCall *call, guint n, guint kind, guint i)
{
  guint at = kind * n + i;

  return call->inputs[at == 0 ? 0 : at + GTORCH_STEP_OTHERS - 1];
}

#define GTORCH_STEP_MAX_KINDS (GTORCH_STEP_MAX_STATES + 1) /* includes the count */

/* Finds the kind of each state of the row; 0 if the state is not present. */
void gtorch_step_call_find_kinds (const GTorchOpCall *call, guint *kinds);
/* Returns the kind of the counts, 0 if there are none. */
guint gtorch_step_call_find_count (const GTorchOpCall *call);
/* Copies the numbers of the step and returns how many there are. */
guint gtorch_step_call_get_numbers (const GTorchOpCall *call, gdouble *numbers);

G_END_DECLS
