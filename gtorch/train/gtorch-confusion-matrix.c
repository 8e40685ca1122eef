/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-confusion-matrix.h"

#include "base/gtorch-field-private.h"
#include "base/gtorch-none.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-metric-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchConfusionMatrix:
 *
 * How often each class was taken for each: the element [i, j] is the number of targets of class i that were
 * predicted to be of class j.
 *
 * Outputs and targets are those of [class@Accuracy]. The state `matrix` is the result, int64.
 *
 * ```c
 * g_autoptr (GTorchConfusionMatrix) matrix = gtorch_confusion_matrix_new (10);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchConfusionMatrix
{
  GTorchMetric parent_instance;
  gint64 num_classes, ignore_index;
};

G_DEFINE_TYPE (GTorchConfusionMatrix, gtorch_confusion_matrix, GTORCH_TYPE_METRIC)

static const GTorchField fields[] = {
  /**
   * GTorchConfusionMatrix:num-classes:
   *
   * The number of classes.
   *
   * Since: 0.1
   */
  { "num-classes", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchConfusionMatrix, num_classes), 2, NULL,
    GTORCH_FIELD_FIXED },
  /**
   * GTorchConfusionMatrix:ignore-index:
   *
   * A class whose targets are not counted, or [const@NONE].
   *
   * Since: 0.1
   */
  { "ignore-index", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchConfusionMatrix, ignore_index),
    GTORCH_NONE, NULL, GTORCH_FIELD_FIXED, .is_optional = TRUE },
};

static gboolean
gtorch_confusion_matrix_update (GTorchMetric *metric, GTorchTensor *output, GTorchTensor *target,
                                GError **error)
{
  GTorchConfusionMatrix *self = GTORCH_CONFUSION_MATRIX (metric);
  const gint64 n = self->num_classes, shape[] = { n, n }, flat = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_auto (GTorchClasses) classes = { NULL };
  GTorchImpl *row, *column, *width, *place, *matrix;

  if (!gtorch_metric_check_classes ("confusion_matrix", n, error)
      || !gtorch_metric_check_target ("confusion_matrix", target, error)
      || !gtorch_classes_find (&classes, "confusion_matrix", gtorch_tensor_unwrap (output),
                               gtorch_tensor_unwrap (target), n, 1, self->ignore_index, error)
      || !gtorch_classes_check (&classes, "confusion_matrix", error))
    return FALSE;
  matrix = gtorch_metric_state_on (metric, "matrix", shape, 2, gtorch_impl_device (classes.target),
                                   error);
  if (matrix == NULL)
    return FALSE;
  /* A class that there is not is far below 0 in the sum, too. */
  row = gtorch_formula_keep (&f, gtorch_classes_inside (classes.target, n, error));
  column = f.failed ? NULL
                    : gtorch_formula_keep (&f, gtorch_classes_inside (classes.predicted, n, error));
  width = gtorch_formula_keep (&f, gtorch_impl_new_int (n));
  place = OP (mul, row, width);
  place = OP (add, place, column, 1);
  matrix = OP (reshape, matrix, &flat, 1);
  return !f.failed
         && gtorch_classes_count (matrix, place, classes.counted, NULL, "confusion_matrix", n,
                                  error);
}

static GTorchTensor *
gtorch_confusion_matrix_compute (GTorchMetric *metric, GError **error)
{
  GTorchConfusionMatrix *self = GTORCH_CONFUSION_MATRIX (metric);
  const gint64 n = self->num_classes, shape[] = { n, n };
  GTorchTensor *former = gtorch_metric_get_state (metric, "matrix", error);
  GTorchImpl *matrix;

  if (!gtorch_metric_check_classes ("confusion_matrix", n, error))
    return NULL;
  matrix =
      gtorch_metric_state_on (metric, "matrix", shape, 2, gtorch_tensor_get_device (former), error);
  return matrix != NULL ? gtorch_tensor_wrap (gtorch_op_clone (matrix, error)) : NULL;
}

static void
gtorch_confusion_matrix_class_init (GTorchConfusionMatrixClass *klass)
{
  GTORCH_METRIC_CLASS (klass)->update = gtorch_confusion_matrix_update;
  GTORCH_METRIC_CLASS (klass)->compute = gtorch_confusion_matrix_compute;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_confusion_matrix_init (GTorchConfusionMatrix *self)
{
  gtorch_metric_add_zero (GTORCH_METRIC (self), "matrix", GTORCH_DTYPE_INT64);
}

/**
 * gtorch_confusion_matrix_new:
 * @num_classes: the number of classes
 *
 * Creates a confusion matrix.
 *
 * Returns: (transfer full): the metric; updates fail with %GTORCH_ERROR_INVALID if @num_classes is below 1
 *
 * Since: 0.1
 */
GTorchConfusionMatrix *
gtorch_confusion_matrix_new (gint64 num_classes)
{
  return g_object_new (GTORCH_TYPE_CONFUSION_MATRIX, "num-classes", num_classes, NULL);
}
