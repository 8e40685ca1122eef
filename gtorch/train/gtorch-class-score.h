/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-metric.h>

G_BEGIN_DECLS

/**
 * GTorchScoreAverage:
 * @GTORCH_SCORE_AVERAGE_NONE: no average: a number for each class
 * @GTORCH_SCORE_AVERAGE_MICRO: of all predictions, whatever their class
 * @GTORCH_SCORE_AVERAGE_MACRO: of the classes that occur, each with the same weight
 * @GTORCH_SCORE_AVERAGE_WEIGHTED: of the classes, weighted by the number of their targets
 *
 * What the average of a score is taken of.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_SCORE_AVERAGE_NONE,
  GTORCH_SCORE_AVERAGE_MICRO,
  GTORCH_SCORE_AVERAGE_MACRO,
  GTORCH_SCORE_AVERAGE_WEIGHTED,
} GTorchScoreAverage;

#define GTORCH_TYPE_SCORE_AVERAGE   (gtorch_score_average_get_type ())
#define GTORCH_TYPE_CLASS_SCORE     (gtorch_class_score_get_type ())
#define GTORCH_TYPE_PRECISION_SCORE (gtorch_precision_score_get_type ())
#define GTORCH_TYPE_RECALL_SCORE    (gtorch_recall_score_get_type ())
#define GTORCH_TYPE_F1_SCORE        (gtorch_f1_score_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_score_average_get_type (void) G_GNUC_CONST;

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchClassScore, gtorch_class_score, GTORCH, CLASS_SCORE, GTorchMetric)

/**
 * GTorchClassScoreClass:
 * @parent_class: the parent class
 *
 * The class of [class@ClassScore].
 *
 * Since: 0.1
 */
struct _GTorchClassScoreClass
{
  GTorchMetricClass parent_class;

  /*< private >*/
  gpointer score;
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPrecisionScore, gtorch_precision_score, GTORCH, PRECISION_SCORE,
                      GTorchClassScore)
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchRecallScore, gtorch_recall_score, GTORCH, RECALL_SCORE,
                      GTorchClassScore)
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchF1Score, gtorch_f1_score, GTORCH, F1_SCORE, GTorchClassScore)

GTORCH_AVAILABLE_IN_0_1
GTorchPrecisionScore *gtorch_precision_score_new (gint64 num_classes, GTorchScoreAverage average,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchRecallScore *gtorch_recall_score_new (gint64 num_classes, GTorchScoreAverage average,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchF1Score *gtorch_f1_score_new (gint64 num_classes, GTorchScoreAverage average,
                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
