/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-loss.h>

G_BEGIN_DECLS

/**
 * GTorchDistanceFunc:
 * @x1: a tensor
 * @x2: a tensor of the same number of dimensions
 * @user_data: the user data of the function
 * @error: return location for an error
 *
 * A function that measures how far the examples of a tensor are from those of another one.
 *
 * Returns: (transfer full): the distances, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchDistanceFunc) (GTorchTensor *x1, GTorchTensor *x2, gpointer user_data,
                                             GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_triplet_margin_with_distance_loss (
    GTorchTensor *anchor, GTorchTensor *positive, GTorchTensor *negative,
    GTorchDistanceFunc distance_function, gpointer user_data, gdouble margin, gboolean swap,
    GTorchReduction reduction, GError **error) G_GNUC_WARN_UNUSED_RESULT;

#define GTORCH_TYPE_TRIPLET_MARGIN_WITH_DISTANCE_LOSS \
  (gtorch_triplet_margin_with_distance_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTripletMarginWithDistanceLoss, gtorch_triplet_margin_with_distance_loss,
                      GTORCH, TRIPLET_MARGIN_WITH_DISTANCE_LOSS, GTorchLoss)

GTORCH_AVAILABLE_IN_0_1
GTorchTripletMarginWithDistanceLoss *
gtorch_triplet_margin_with_distance_loss_new (GTorchModule *distance_module,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_triplet_margin_with_distance_loss_forward (
    GTorchTripletMarginWithDistanceLoss *self, GTorchTensor *anchor, GTorchTensor *positive,
    GTorchTensor *negative, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
