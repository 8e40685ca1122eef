/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

/**
 * GTorchLineSearch:
 * @GTORCH_LINE_SEARCH_NONE: none: a step has the length of the learning rate
 * @GTORCH_LINE_SEARCH_STRONG_WOLFE: finds a length that fulfils the strong Wolfe conditions
 *
 * How #GTorchLBFGS finds the length of a step.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_LINE_SEARCH_NONE,
  GTORCH_LINE_SEARCH_STRONG_WOLFE,
} GTorchLineSearch;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_line_search_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_LINE_SEARCH (gtorch_line_search_get_type ())

#define GTORCH_TYPE_LBFGS (gtorch_lbfgs_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchLBFGS, gtorch_lbfgs, GTORCH, LBFGS, GTorchOptimizer)

GTORCH_AVAILABLE_IN_0_1
GTorchLBFGS *gtorch_lbfgs_new (GListModel *params, gdouble learning_rate,
                               GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
