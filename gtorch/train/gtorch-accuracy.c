/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-accuracy.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-metric-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchAccuracy:
 *
 * The share of predictions that are right, from 0 to 1.
 *
 * Outputs are scores, such as logits, of shape [batch, classes, …] for targets of shape [batch, …], or
 * predicted classes of the shape of the targets. With [property@Accuracy:top-k], a prediction is right if the
 * class is among the best k. The states are `correct` and `total`, int64; the result is one float64, NaN
 * before the first batch.
 *
 * ```c
 * g_autoptr (GTorchAccuracy) top5 = gtorch_accuracy_new (5);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchAccuracy
{
  GTorchMetric parent_instance;
  gint64 top_k, ignore_index;
};

G_DEFINE_TYPE (GTorchAccuracy, gtorch_accuracy, GTORCH_TYPE_METRIC)

static const GTorchField fields[] = {
  /**
   * GTorchAccuracy:top-k:
   *
   * Among how many of the best classes the right one must be.
   *
   * Since: 0.1
   */
  { "top-k", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchAccuracy, top_k), 1, NULL,
    GTORCH_FIELD_FIXED },
  /**
   * GTorchAccuracy:ignore-index:
   *
   * A class whose targets are not counted, or [const@NONE].
   *
   * Since: 0.1
   */
  { "ignore-index", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchAccuracy, ignore_index), GTORCH_NONE,
    NULL, GTORCH_FIELD_FIXED, .is_optional = TRUE },
};

static gboolean
gtorch_accuracy_update (GTorchMetric *metric, GTorchTensor *output, GTorchTensor *target,
                        GError **error)
{
  GTorchAccuracy *self = GTORCH_ACCURACY (metric);
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_auto (GTorchClasses) classes = { NULL };
  GTorchImpl *correct, *total;
  GTorchDevice *device;

  if (self->top_k < 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("accuracy: top_k is %" PRId64 ", it must be at least 1"), self->top_k);
      return FALSE;
    }
  if (!gtorch_metric_check_target ("accuracy", target, error)
      || !gtorch_classes_find (&classes, "accuracy", gtorch_tensor_unwrap (output),
                               gtorch_tensor_unwrap (target), 0, self->top_k, self->ignore_index,
                               error)
      || !gtorch_classes_check (&classes, "accuracy", error))
    return FALSE;
  device = gtorch_impl_device (classes.hits);
  correct = OP (sum, classes.hits, NULL, 0, FALSE, GTORCH_DTYPE_INT64);
  if (classes.counted != NULL)
    total = OP (sum, classes.counted, NULL, 0, FALSE, GTORCH_DTYPE_INT64);
  else
    total = gtorch_formula_keep (&f, gtorch_impl_new_int (classes.hits->numel));
  return !f.failed && gtorch_metric_accumulate (metric, "correct", device, correct, error)
         && gtorch_metric_accumulate (metric, "total", device, total, error);
}

static GTorchTensor *
gtorch_accuracy_compute (GTorchMetric *metric, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchTensor *correct = gtorch_metric_get_state (metric, "correct", error);
  GTorchTensor *total = gtorch_metric_get_state (metric, "total", error);
  GTorchImpl *share = OP (to_dtype, gtorch_tensor_unwrap (correct), GTORCH_DTYPE_FLOAT64);

  share = OP (div, share, gtorch_tensor_unwrap (total));
  return gtorch_tensor_wrap (gtorch_formula_take (&f, share));
}

static void
gtorch_accuracy_class_init (GTorchAccuracyClass *klass)
{
  GTORCH_METRIC_CLASS (klass)->update = gtorch_accuracy_update;
  GTORCH_METRIC_CLASS (klass)->compute = gtorch_accuracy_compute;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_accuracy_init (GTorchAccuracy *self)
{
  gtorch_metric_add_zero (GTORCH_METRIC (self), "correct", GTORCH_DTYPE_INT64);
  gtorch_metric_add_zero (GTORCH_METRIC (self), "total", GTORCH_DTYPE_INT64);
}

/**
 * gtorch_accuracy_new:
 * @top_k: among how many of the best classes the right one must be, 1 for the best
 *
 * Creates an accuracy.
 *
 * Returns: (transfer full): the metric; updates fail with %GTORCH_ERROR_INVALID if @top_k is below 1
 *
 * Since: 0.1
 */
GTorchAccuracy *
gtorch_accuracy_new (gint64 top_k)
{
  return g_object_new (GTORCH_TYPE_ACCURACY, "top-k", top_k, NULL);
}
