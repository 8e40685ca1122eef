/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-mean-metric.h"

#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-metric-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchMeanMetric:
 *
 * The mean of numbers, such as losses.
 *
 * [method@Metric.update] takes a tensor whose elements are all counted, and in place of targets weights of
 * the elements, whose shape can be broadcast to theirs. The states are `sum` and `weight`, float64; the
 * result is one float64, NaN before the first batch.
 *
 * ```c
 * gtorch_metric_update (GTORCH_METRIC (mean), losses, NULL, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchMeanMetric
{
  GTorchMetric parent_instance;
};

G_DEFINE_TYPE (GTorchMeanMetric, gtorch_mean_metric, GTORCH_TYPE_METRIC)

static gboolean
gtorch_mean_metric_update (GTorchMetric *metric, GTorchTensor *output, GTorchTensor *target,
                           GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *values = gtorch_tensor_unwrap (output), *weights;
  GTorchDevice *device = gtorch_impl_device (values);

  if (target != NULL
      && !gtorch_metric_check_devices ("mean", values, gtorch_tensor_unwrap (target), error))
    return FALSE;
  values = OP (to_dtype, values, GTORCH_DTYPE_FLOAT64);
  if (target != NULL)
    {
      weights = OP (to_dtype, gtorch_tensor_unwrap (target), GTORCH_DTYPE_FLOAT64);
      weights = OP (expand_as, weights, values);
      values = OP (mul, values, weights);
      weights = OP (sum, weights, NULL, 0, FALSE, GTORCH_DTYPE_NONE);
    }
  else
    weights = f.failed ? NULL : gtorch_formula_number (&f, values->numel);
  values = OP (sum, values, NULL, 0, FALSE, GTORCH_DTYPE_NONE);
  return !f.failed && gtorch_metric_accumulate (metric, "sum", device, values, error)
         && gtorch_metric_accumulate (metric, "weight", device, weights, error);
}

static GTorchTensor *
gtorch_mean_metric_compute (GTorchMetric *metric, GError **error)
{
  GTorchTensor *sum = gtorch_metric_get_state (metric, "sum", error);
  GTorchTensor *weight = gtorch_metric_get_state (metric, "weight", error);

  return gtorch_tensor_wrap (
      gtorch_op_div (gtorch_tensor_unwrap (sum), gtorch_tensor_unwrap (weight), error));
}

static void
gtorch_mean_metric_class_init (GTorchMeanMetricClass *klass)
{
  GTORCH_METRIC_CLASS (klass)->update = gtorch_mean_metric_update;
  GTORCH_METRIC_CLASS (klass)->compute = gtorch_mean_metric_compute;
}

static void
gtorch_mean_metric_init (GTorchMeanMetric *self)
{
  gtorch_metric_add_zero (GTORCH_METRIC (self), "sum", GTORCH_DTYPE_FLOAT64);
  gtorch_metric_add_zero (GTORCH_METRIC (self), "weight", GTORCH_DTYPE_FLOAT64);
}

/**
 * gtorch_mean_metric_new:
 *
 * Creates a mean.
 *
 * Returns: (transfer full): the metric
 *
 * Since: 0.1
 */
GTorchMeanMetric *
gtorch_mean_metric_new (void)
{
  return g_object_new (GTORCH_TYPE_MEAN_METRIC, NULL);
}
