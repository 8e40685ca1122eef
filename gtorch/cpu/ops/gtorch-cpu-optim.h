/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>
#include <gtorch/optim/gtorch-step-limits-private.h>

G_BEGIN_DECLS

/* A step of one parameter. The operands of its loop are the parameter, the gradient, and all states of the
 * parameter's shape that the step can have; states that are absent from this step are not touched. */
typedef struct
{
  guint dtype;
  guint states; /* bit i: state i is present */
  gdouble once[GTORCH_STEP_MAX_ONCE];
} GTorchStepRun;

typedef struct
{
  /* Computes `once`. t is the number of this step, first tells whether it is the first; only what the step
   * counts is given. kept: what the row keeps for the parameter, as it was after the step before. */
  void (*prepare) (const gdouble *numbers, gdouble t, gboolean first, const gdouble *kept,
                   gdouble *once);
  /* Computes what is kept after the step; NULL if nothing is. */
  void (*keep) (const gdouble *numbers, gdouble t, gboolean first, gdouble *kept);
  void (*run) (char *const *data, const gint64 *strides, gint64 n, gpointer run);
} GTorchStepLoop;

/* Computes the step of n contiguous elements of the dtype that is computed in. */
typedef void (*GTorchStepBody) (char *const *data, gint64 n, const GTorchStepRun *run);

/* Runs the body for the run's dtype. Elements of 16 bits and those of other strides go through small buffers,
 * block by block, so that no loops are needed for them. */
void gtorch_step_run (char *const *data, const gint64 *strides, gint64 n, const GTorchStepRun *run,
                      guint n_operands, GTorchStepBody f32, GTorchStepBody f64);

/* Indexed in the order of gtorch_steps; generated from the optimizer rows. */
GTORCH_ISA_DECLARE (extern const GTorchStepLoop, gtorch_step_loops, []);

/* The unscaling of a gradient. */
typedef struct
{
  guint dtype;
  gfloat factor;
  gint found; /* becomes 1, atomically, if an element is not finite */
} GTorchUnscaleStep;

GTORCH_ISA_DECLARE (void, gtorch_unscale_loop,
                    (char *const *data, const gint64 *strides, gint64 n, gpointer step));

/* A change of many tensors in place. */
typedef struct
{
  guint dtype;
  gdouble number; /* the factor, or the limit */
} GTorchForeachStep;

GTORCH_ISA_DECLARE (void, gtorch_foreach_mul_loop,
                    (char *const *data, const gint64 *strides, gint64 n, gpointer step));
GTORCH_ISA_DECLARE (void, gtorch_foreach_clamp_loop,
                    (char *const *data, const gint64 *strides, gint64 n, gpointer step));

/* Returns the sum of the powers of n contiguous elements, or the extreme one for an infinite degree. */
GTORCH_ISA_DECLARE (gdouble, gtorch_norm_loop,
                    (gconstpointer x, gint64 n, guint dtype, gdouble ord));

G_END_DECLS
