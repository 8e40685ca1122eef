/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_METRIC (gtorch_metric_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchMetric, gtorch_metric, GTORCH, METRIC, GObject)

/**
 * GTorchMetricClass:
 * @parent_class: the parent class
 *
 * The virtual functions of a metric. Gradients are not recorded in them.
 *
 * Since: 0.1
 */
struct _GTorchMetricClass
{
  GObjectClass parent_class;

  /**
   * GTorchMetricClass::update:
   * @self: a metric
   * @output: what a model gave for a batch
   * @target: (nullable): what it should have given
   * @error: return location for an error
   *
   * Adds a batch to the states of the metric.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*update) (GTorchMetric *self, GTorchTensor *output, GTorchTensor *target,
                      GError **error);
  /**
   * GTorchMetricClass::compute:
   * @self: a metric
   * @error: return location for an error
   *
   * Computes the metric from its states.
   *
   * Returns: (transfer full): the metric, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchTensor *(*compute) (GTorchMetric *self, GError **error);
  /**
   * GTorchMetricClass::reset:
   * @self: a metric
   * @error: return location for an error
   *
   * Gives the states their initial values.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*reset) (GTorchMetric *self, GError **error);

  /*< private >*/
  gpointer padding[5];
};

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_metric_update (GTorchMetric *self, GTorchTensor *output, GTorchTensor *target,
                               GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_metric_compute (GTorchMetric *self, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_metric_compute_value (GTorchMetric *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_metric_reset (GTorchMetric *self, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_metric_add_state (GTorchMetric *self, const gchar *name, GTorchTensor *initial,
                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_metric_get_state_names (GTorchMetric *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_metric_get_state (GTorchMetric *self, const gchar *name, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_metric_set_state (GTorchMetric *self, const gchar *name, GTorchTensor *value,
                                  GError **error);

G_END_DECLS
