/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-class-score.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-metric-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchClassScore:
 *
 * What precision, recall and F1 score have in common: how many predictions of each class are right
 * (state `hits`), how many there are (`predicted`), and how many targets (`actual`); all int64.
 *
 * Outputs and targets are those of [class@Accuracy]. A score whose denominator is 0 is 0. The result is
 * float64: one number, or, without an average, one for each class.
 *
 * Since: 0.1
 */

/**
 * GTorchPrecisionScore:
 *
 * Of the predictions of a class, the share that is right.
 *
 * ```c
 * g_autoptr (GTorchPrecisionScore) precision =
 *     gtorch_precision_score_new (10, GTORCH_SCORE_AVERAGE_MACRO, &error);
 * ```
 *
 * Since: 0.1
 */

/**
 * GTorchRecallScore:
 *
 * Of the targets of a class, the share that was found.
 *
 * ```c
 * g_autoptr (GTorchRecallScore) recall =
 *     gtorch_recall_score_new (10, GTORCH_SCORE_AVERAGE_MACRO, &error);
 * ```
 *
 * Since: 0.1
 */

/**
 * GTorchF1Score:
 *
 * The harmonic mean of precision and recall.
 *
 * ```c
 * g_autoptr (GTorchF1Score) f1 =
 *     gtorch_f1_score_new (10, GTORCH_SCORE_AVERAGE_WEIGHTED, &error);
 * ```
 *
 * Since: 0.1
 */

typedef struct
{
  gint64 num_classes, ignore_index;
  gint average;
} GTorchClassScorePrivate;

/* Which of the counts a score is divided by. */
typedef enum
{
  BY_PREDICTED = 1 << 0,
  BY_ACTUAL = 1 << 1,
} By;

struct _GTorchPrecisionScore
{
  GTorchClassScore parent_instance;
};

struct _GTorchRecallScore
{
  GTorchClassScore parent_instance;
};

struct _GTorchF1Score
{
  GTorchClassScore parent_instance;
};

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchClassScore, gtorch_class_score, GTORCH_TYPE_METRIC)
G_DEFINE_TYPE (GTorchPrecisionScore, gtorch_precision_score, GTORCH_TYPE_CLASS_SCORE)
G_DEFINE_TYPE (GTorchRecallScore, gtorch_recall_score, GTORCH_TYPE_CLASS_SCORE)
G_DEFINE_TYPE (GTorchF1Score, gtorch_f1_score, GTORCH_TYPE_CLASS_SCORE)

#define PRIVATE(self) \
  ((GTorchClassScorePrivate *) gtorch_class_score_get_instance_private (GTORCH_CLASS_SCORE (self)))

GType
gtorch_score_average_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_SCORE_AVERAGE_NONE, "GTORCH_SCORE_AVERAGE_NONE", "none" },
        { GTORCH_SCORE_AVERAGE_MICRO, "GTORCH_SCORE_AVERAGE_MICRO", "micro" },
        { GTORCH_SCORE_AVERAGE_MACRO, "GTORCH_SCORE_AVERAGE_MACRO", "macro" },
        { GTORCH_SCORE_AVERAGE_WEIGHTED, "GTORCH_SCORE_AVERAGE_WEIGHTED", "weighted" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchScoreAverage", values));
    }
  return type;
}

static const gchar *
name_of (gpointer self)
{
  const guint by = GPOINTER_TO_UINT (GTORCH_CLASS_SCORE_GET_CLASS (self)->score);

  return by == BY_PREDICTED ? "precision" : by == BY_ACTUAL ? "recall" : "f1_score";
}

static gboolean
gtorch_class_score_update (GTorchMetric *metric, GTorchTensor *output, GTorchTensor *target,
                           GError **error)
{
  const GTorchClassScorePrivate *priv = PRIVATE (metric);
  const gchar *op = name_of (metric);
  const gint64 n = priv->num_classes;
  g_auto (GTorchClasses) classes = { NULL };
  g_autoptr (GTorchImpl) predicted = NULL;
  g_autoptr (GTorchImpl) actual = NULL;
  GTorchDevice *device;
  GTorchImpl *states[3];
  static const gchar *const names[] = { "hits", "predicted", "actual" };

  if (!gtorch_metric_check_classes (op, n, error) || !gtorch_metric_check_target (op, target, error)
      || !gtorch_classes_find (&classes, op, gtorch_tensor_unwrap (output),
                               gtorch_tensor_unwrap (target), n, 1, priv->ignore_index, error)
      || !gtorch_classes_check (&classes, op, error))
    return FALSE;
  device = gtorch_impl_device (classes.target);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if ((states[i] = gtorch_metric_state_on (metric, names[i], &n, 1, device, error)) == NULL)
      return FALSE;
  predicted = gtorch_classes_inside (classes.predicted, n, error);
  actual = predicted != NULL ? gtorch_classes_inside (classes.target, n, error) : NULL;
  /* The two that can fail come first; where both classes are the same, they are inside. */
  return actual != NULL
         && gtorch_classes_count (states[1], predicted, classes.counted, NULL, op, n, error)
         && gtorch_classes_count (states[2], actual, classes.counted, NULL, op, n, error)
         && gtorch_classes_count (states[0], actual, classes.counted, classes.hits, op, n, error);
}

static GTorchTensor *
gtorch_class_score_compute (GTorchMetric *metric, GError **error)
{
  const GTorchClassScorePrivate *priv = PRIVATE (metric);
  const guint by = GPOINTER_TO_UINT (GTORCH_CLASS_SCORE_GET_CLASS (metric)->score);
  const gint64 n = priv->num_classes;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  static const gchar *const names[] = { "hits", "predicted", "actual" };
  GTorchImpl *counts[3], *divisor, *score, *zero, *one, *occurs, *weight;

  if (!gtorch_metric_check_classes (name_of (metric), n, error))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      GTorchTensor *former = gtorch_metric_get_state (metric, names[i], error);
      GTorchImpl *state = gtorch_metric_state_on (metric, names[i], &n, 1,
                                                  gtorch_tensor_get_device (former), error);

      if (state == NULL)
        return NULL;
      counts[i] = OP (to_dtype, state, GTORCH_DTYPE_FLOAT64);
      if (priv->average == GTORCH_SCORE_AVERAGE_MICRO)
        counts[i] = OP (sum, counts[i], NULL, 0, FALSE, GTORCH_DTYPE_NONE);
    }
  if (by == (BY_PREDICTED | BY_ACTUAL))
    {
      divisor = OP (add, counts[1], counts[2], 1);
      score = OP (add, counts[0], counts[0], 1);
    }
  else
    {
      divisor = counts[by == BY_PREDICTED ? 1 : 2];
      score = counts[0];
    }
  /* 0 for a divisor of 0 */
  one = gtorch_formula_number (&f, 1);
  divisor = OP (maximum, divisor, one);
  score = OP (div, score, divisor);
  if (priv->average == GTORCH_SCORE_AVERAGE_NONE || priv->average == GTORCH_SCORE_AVERAGE_MICRO)
    return gtorch_tensor_wrap (gtorch_formula_take (&f, score));
  if (priv->average == GTORCH_SCORE_AVERAGE_WEIGHTED)
    weight = counts[2];
  else
    {
      zero = gtorch_formula_number (&f, 0);
      occurs = OP (add, counts[1], counts[2], 1);
      occurs = OP (gt, occurs, zero);
      weight = OP (to_dtype, occurs, GTORCH_DTYPE_FLOAT64);
    }
  score = OP (mul, score, weight);
  score = OP (sum, score, NULL, 0, FALSE, GTORCH_DTYPE_NONE);
  weight = OP (sum, weight, NULL, 0, FALSE, GTORCH_DTYPE_NONE);
  weight = OP (maximum, weight, one);
  return gtorch_tensor_wrap (gtorch_formula_take (&f, OP (div, score, weight)));
}

static void
get_setting (gpointer object, const GTorchField *field, GValue *value)
{
  if (field->kind == GTORCH_FIELD_ENUM)
    g_value_set_enum (value, PRIVATE (object)->average);
  else
    g_value_set_int64 (value, G_STRUCT_MEMBER (gint64, PRIVATE (object), field->offset));
}

static gboolean
set_setting (gpointer object, const GTorchField *field, const GValue *value)
{
  if (field->kind == GTORCH_FIELD_ENUM)
    PRIVATE (object)->average = g_value_get_enum (value);
  else
    G_STRUCT_MEMBER (gint64, PRIVATE (object), field->offset) = g_value_get_int64 (value);
  return FALSE; /* they are fixed */
}

#define SETTING(member)                                                                     \
  .offset = G_STRUCT_OFFSET (GTorchClassScorePrivate, member), .flags = GTORCH_FIELD_FIXED, \
  .get_value = get_setting, .set_value = set_setting

static const GTorchField fields[] = {
  /**
   * GTorchClassScore:num-classes:
   *
   * The number of classes.
   *
   * Since: 0.1
   */
  { "num-classes", GTORCH_FIELD_INT64, .value = 2, SETTING (num_classes) },
  /**
   * GTorchClassScore:ignore-index:
   *
   * A class whose targets are not counted, or [const@NONE].
   *
   * Since: 0.1
   */
  { "ignore-index", GTORCH_FIELD_INT64, .value = GTORCH_NONE, .is_optional = TRUE,
    SETTING (ignore_index) },
  /**
   * GTorchClassScore:average:
   *
   * What the average is taken of.
   *
   * Since: 0.1
   */
  { "average", GTORCH_FIELD_ENUM, .value = GTORCH_SCORE_AVERAGE_MACRO,
    .type = gtorch_score_average_get_type, SETTING (average) },
};

static void
gtorch_class_score_class_init (GTorchClassScoreClass *klass)
{
  GTORCH_METRIC_CLASS (klass)->update = gtorch_class_score_update;
  GTORCH_METRIC_CLASS (klass)->compute = gtorch_class_score_compute;
  klass->score = GUINT_TO_POINTER (BY_PREDICTED | BY_ACTUAL);
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_class_score_init (GTorchClassScore *self)
{
  gtorch_metric_add_zero (GTORCH_METRIC (self), "hits", GTORCH_DTYPE_INT64);
  gtorch_metric_add_zero (GTORCH_METRIC (self), "predicted", GTORCH_DTYPE_INT64);
  gtorch_metric_add_zero (GTORCH_METRIC (self), "actual", GTORCH_DTYPE_INT64);
}

static void
gtorch_precision_score_class_init (GTorchPrecisionScoreClass *klass)
{
  GTORCH_CLASS_SCORE_CLASS (klass)->score = GUINT_TO_POINTER (BY_PREDICTED);
}

static void
gtorch_precision_score_init (GTorchPrecisionScore *self)
{
}

static void
gtorch_recall_score_class_init (GTorchRecallScoreClass *klass)
{
  GTORCH_CLASS_SCORE_CLASS (klass)->score = GUINT_TO_POINTER (BY_ACTUAL);
}

static void
gtorch_recall_score_init (GTorchRecallScore *self)
{
}

static void
gtorch_f1_score_class_init (GTorchF1ScoreClass *klass)
{
}

static void
gtorch_f1_score_init (GTorchF1Score *self)
{
}

static gpointer
make (GType type, gint64 num_classes, GTorchScoreAverage average, GError **error)
{
  if ((gint) average < GTORCH_SCORE_AVERAGE_NONE || average > GTORCH_SCORE_AVERAGE_WEIGHTED)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("class_score: there is no average %d"), average);
      return NULL;
    }
  if (!gtorch_metric_check_classes ("class_score", num_classes, error))
    return NULL;
  return g_object_new (type, "num-classes", num_classes, "average", average, NULL);
}

/**
 * gtorch_precision_score_new:
 * @num_classes: the number of classes
 * @average: what the average is taken of
 * @error: return location for an error
 *
 * Creates a precision.
 *
 * Returns: (transfer full): the metric, or %NULL with %GTORCH_ERROR_INVALID if @num_classes is below 1 or
 *   there is no such average
 *
 * Since: 0.1
 */
GTorchPrecisionScore *
gtorch_precision_score_new (gint64 num_classes, GTorchScoreAverage average, GError **error)
{
  return make (GTORCH_TYPE_PRECISION_SCORE, num_classes, average, error);
}

/**
 * gtorch_recall_score_new:
 * @num_classes: the number of classes
 * @average: what the average is taken of
 * @error: return location for an error
 *
 * Creates a recall.
 *
 * Returns: (transfer full): the metric, or %NULL with %GTORCH_ERROR_INVALID if @num_classes is below 1 or
 *   there is no such average
 *
 * Since: 0.1
 */
GTorchRecallScore *
gtorch_recall_score_new (gint64 num_classes, GTorchScoreAverage average, GError **error)
{
  return make (GTORCH_TYPE_RECALL_SCORE, num_classes, average, error);
}

/**
 * gtorch_f1_score_new:
 * @num_classes: the number of classes
 * @average: what the average is taken of
 * @error: return location for an error
 *
 * Creates an F1 score.
 *
 * Returns: (transfer full): the metric, or %NULL with %GTORCH_ERROR_INVALID if @num_classes is below 1 or
 *   there is no such average
 *
 * Since: 0.1
 */
GTorchF1Score *
gtorch_f1_score_new (gint64 num_classes, GTorchScoreAverage average, GError **error)
{
  return make (GTORCH_TYPE_F1_SCORE, num_classes, average, error);
}
