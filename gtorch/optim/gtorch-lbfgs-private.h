/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lbfgs.h>
#include <gtorch/optim/gtorch-optimizer-private.h>

G_BEGIN_DECLS

struct _GTorchLBFGS
{
  GTorchOptimizer parent_instance;
  gint64 max_iter, max_eval, history_size;
  gdouble tolerance_grad, tolerance_change;
  gint line_search_fn;
  gboolean maximize;
};

/* The virtual function step_closure of the class. */
GTorchTensor *gtorch_lbfgs_step_closure (GTorchOptimizer *optimizer, GTorchOptimizerClosure closure,
                                         gpointer user_data, GError **error);

/* --- line search --- */

/* A point on a line: the step length, and the loss, its gradient and its slope along the line there. */
typedef struct
{
  gdouble t, loss, slope;
  GTorchImpl *grad;
} GTorchLinePoint;

static inline void
gtorch_line_point_clear (GTorchLinePoint *self)
{
  g_clear_pointer (&self->grad, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchLinePoint, gtorch_line_point_clear)

/* Computes the other members of the point from its step length. */
typedef gboolean (*GTorchLineFunc) (gpointer data, GTorchLinePoint *point, GError **error);

/* Searches from `start`, whose step length is 0, for a point that fulfils the strong Wolfe conditions, first
 * at the step length of `found`, which gets the best point. `longest` is the greatest element of the
 * direction. Adds to *n_evals. */
gboolean gtorch_strong_wolfe (GTorchLineFunc func, gpointer data, const GTorchLinePoint *start,
                              gdouble longest, gint64 max_iter, GTorchLinePoint *found,
                              gint64 *n_evals, GError **error);

G_END_DECLS
