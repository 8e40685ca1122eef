/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-mean-squared-error.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-field-private.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-metric-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchMeanSquaredError:
 *
 * The mean of the squared differences of outputs and targets, of the same shape, or its root.
 *
 * The states are `sum` and `total`; the result is one float64, NaN before the first batch.
 *
 * ```c
 * g_autoptr (GTorchMeanSquaredError) rmse = gtorch_mean_squared_error_new (FALSE);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchMeanSquaredError
{
  GTorchMetric parent_instance;
  gboolean squared;
};

G_DEFINE_TYPE (GTorchMeanSquaredError, gtorch_mean_squared_error, GTORCH_TYPE_METRIC)

static const GTorchField fields[] = {
  /**
   * GTorchMeanSquaredError:squared:
   *
   * Whether the result is the mean of the squares, and not its root.
   *
   * Since: 0.1
   */
  { "squared", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMeanSquaredError, squared), TRUE, NULL,
    GTORCH_FIELD_FIXED },
};

static gboolean
gtorch_mean_squared_error_update (GTorchMetric *metric, GTorchTensor *output, GTorchTensor *target,
                                  GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *values = gtorch_tensor_unwrap (output), *others, *total;
  GTorchDevice *device = gtorch_impl_device (values);

  if (!gtorch_metric_check_target ("mean_squared_error", target, error))
    return FALSE;
  others = gtorch_tensor_unwrap (target);
  if (!gtorch_metric_check_devices ("mean_squared_error", values, others, error))
    return FALSE;
  if (!gtorch_impl_same_shape (values, others))
    {
      g_autofree gchar *shape = g_strdup (gtorch_impl_shape_str (values));

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("mean_squared_error: outputs of shape %s and targets of shape %s must have "
                      "one "
                      "shape"),
                   shape, gtorch_impl_shape_str (others));
      return FALSE;
    }
  total = gtorch_formula_number (&f, values->numel);
  values = OP (to_dtype, values, GTORCH_DTYPE_FLOAT64);
  others = OP (to_dtype, others, GTORCH_DTYPE_FLOAT64);
  values = OP (sub, values, others, 1);
  values = OP (square, values);
  values = OP (sum, values, NULL, 0, FALSE, GTORCH_DTYPE_NONE);
  return !f.failed && gtorch_metric_accumulate (metric, "sum", device, values, error)
         && gtorch_metric_accumulate (metric, "total", device, total, error);
}

static GTorchTensor *
gtorch_mean_squared_error_compute (GTorchMetric *metric, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchTensor *sum = gtorch_metric_get_state (metric, "sum", error);
  GTorchTensor *total = gtorch_metric_get_state (metric, "total", error);
  GTorchImpl *mean = OP (div, gtorch_tensor_unwrap (sum), gtorch_tensor_unwrap (total));

  if (!GTORCH_MEAN_SQUARED_ERROR (metric)->squared)
    mean = OP (sqrt, mean);
  return gtorch_tensor_wrap (gtorch_formula_take (&f, mean));
}

static void
gtorch_mean_squared_error_class_init (GTorchMeanSquaredErrorClass *klass)
{
  GTORCH_METRIC_CLASS (klass)->update = gtorch_mean_squared_error_update;
  GTORCH_METRIC_CLASS (klass)->compute = gtorch_mean_squared_error_compute;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_mean_squared_error_init (GTorchMeanSquaredError *self)
{
  gtorch_metric_add_zero (GTORCH_METRIC (self), "sum", GTORCH_DTYPE_FLOAT64);
  gtorch_metric_add_zero (GTORCH_METRIC (self), "total", GTORCH_DTYPE_FLOAT64);
}

/**
 * gtorch_mean_squared_error_new:
 * @squared: whether the result is the mean of the squares, and not its root
 *
 * Creates a mean squared error.
 *
 * Returns: (transfer full): the metric
 *
 * Since: 0.1
 */
GTorchMeanSquaredError *
gtorch_mean_squared_error_new (gboolean squared)
{
  return g_object_new (GTORCH_TYPE_MEAN_SQUARED_ERROR, "squared", squared, NULL);
}
