/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-adaptive-log-softmax.h>
#include <gtorch/nn/gtorch-layer-private.h>

G_BEGIN_DECLS

struct _GTorchAdaptiveLogSoftmaxWithLoss
{
  GTorchModule parent_instance;

  gint64 in_features, n_classes;
  GTorchSize *cutoffs;
  gdouble div_value;
  gboolean head_bias;
  GTorchDevice *device;
  gint dtype;
};

static inline guint
gtorch_adaptive_count_clusters (GTorchAdaptiveLogSoftmaxWithLoss *self)
{
  return (guint) gtorch_size_get_length (self->cutoffs);
}

/* The class at which cluster i begins; the last one ends at n_classes. */
static inline gint64
gtorch_adaptive_begin_of (GTorchAdaptiveLogSoftmaxWithLoss *self, guint i)
{
  return i < gtorch_adaptive_count_clusters (self) ? gtorch_layer_numbers (self->cutoffs)[i]
                                                   : self->n_classes;
}

/* Computes the log-probabilities of all classes, of examples in the rows of x. */
GTorchImpl *gtorch_adaptive_all_log_probs (GTorchAdaptiveLogSoftmaxWithLoss *self, GTorchImpl *x,
                                           GError **error);
/* Computes the log-probability of each target; x is a matrix. */
GTorchImpl *gtorch_adaptive_target_log_probs (GTorchAdaptiveLogSoftmaxWithLoss *self, GTorchImpl *x,
                                              GTorchImpl *target, GError **error);
/* Finds the most probable class of each row of x. */
GTorchImpl *gtorch_adaptive_predict (GTorchAdaptiveLogSoftmaxWithLoss *self, GTorchImpl *x,
                                     GError **error);

G_END_DECLS
