/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-perplexity.h"

#include "base/gtorch-error-private.h"
#include "base/gtorch-field-private.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-metric-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchPerplexity:
 *
 * The exponential of the mean cross-entropy: among how many equally probable words a language model
 * hesitates.
 *
 * Outputs are logits of shape [batch, words, …], targets words of shape [batch, …], as for
 * [method@Tensor.cross_entropy]. The states are `sum` and `total`; the result is one float64, NaN before
 * the first batch.
 *
 * ```c
 * gtorch_metric_update (GTORCH_METRIC (perplexity), logits, next_words, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchPerplexity
{
  GTorchMetric parent_instance;
  gint64 ignore_index;
};

G_DEFINE_TYPE (GTorchPerplexity, gtorch_perplexity, GTORCH_TYPE_METRIC)

static const GTorchField fields[] = {
  /**
   * GTorchPerplexity:ignore-index:
   *
   * A target that is not counted, such as that of padding.
   *
   * Since: 0.1
   */
  { "ignore-index", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchPerplexity, ignore_index), -100, NULL,
    GTORCH_FIELD_FIXED },
};

static gboolean
gtorch_perplexity_update (GTorchMetric *metric, GTorchTensor *output, GTorchTensor *target,
                          GError **error)
{
  const gint64 ignore_index = GTORCH_PERPLEXITY (metric)->ignore_index;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_auto (GTorchClasses) classes = { NULL };
  GTorchImpl *loss, *total;
  GTorchDevice *device;

  if (!gtorch_metric_check_target ("perplexity", target, error)
      || !gtorch_classes_find (&classes, "perplexity", gtorch_tensor_unwrap (output),
                               gtorch_tensor_unwrap (target), 0, 1, ignore_index, error))
    return FALSE;
  device = gtorch_impl_device (classes.target);
  loss = OP (cross_entropy, gtorch_tensor_unwrap (output), gtorch_tensor_unwrap (target), NULL,
             GTORCH_REDUCTION_SUM, ignore_index, 0);
  loss = OP (to_dtype, loss, GTORCH_DTYPE_FLOAT64);
  total = OP (sum, classes.counted, NULL, 0, FALSE, GTORCH_DTYPE_INT64);
  if (!f.failed && gtorch_metric_accumulate (metric, "sum", device, loss, error)
      && gtorch_metric_accumulate (metric, "total", device, total, error))
    return TRUE;
  gtorch_error_set_op (error, "perplexity");
  return FALSE;
}

static GTorchTensor *
gtorch_perplexity_compute (GTorchMetric *metric, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchTensor *sum = gtorch_metric_get_state (metric, "sum", error);
  GTorchTensor *total = gtorch_metric_get_state (metric, "total", error);
  GTorchImpl *mean = OP (div, gtorch_tensor_unwrap (sum), gtorch_tensor_unwrap (total));

  return gtorch_tensor_wrap (gtorch_formula_take (&f, OP (exp, mean)));
}

static void
gtorch_perplexity_class_init (GTorchPerplexityClass *klass)
{
  GTORCH_METRIC_CLASS (klass)->update = gtorch_perplexity_update;
  GTORCH_METRIC_CLASS (klass)->compute = gtorch_perplexity_compute;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_perplexity_init (GTorchPerplexity *self)
{
  gtorch_metric_add_zero (GTORCH_METRIC (self), "sum", GTORCH_DTYPE_FLOAT64);
  gtorch_metric_add_zero (GTORCH_METRIC (self), "total", GTORCH_DTYPE_INT64);
}

/**
 * gtorch_perplexity_new:
 *
 * Creates a perplexity.
 *
 * Returns: (transfer full): the metric
 *
 * Since: 0.1
 */
GTorchPerplexity *
gtorch_perplexity_new (void)
{
  return g_object_new (GTORCH_TYPE_PERPLEXITY, NULL);
}
