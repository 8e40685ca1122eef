/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_AVERAGED_MODEL (gtorch_averaged_model_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAveragedModel, gtorch_averaged_model, GTORCH, AVERAGED_MODEL,
                      GTorchModule)

/**
 * GTorchAverageFunc:
 * @self: the averaged model
 * @averaged: the average so far
 * @current: the tensor of the model
 * @n_averaged: the number of tensors in the average, one int64
 * @user_data: the user data of the function
 * @error: return location for an error, with which the update fails
 *
 * A function that computes an average. The grad mode is off meanwhile.
 *
 * Returns: (transfer full): the new average, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchAverageFunc) (GTorchAveragedModel *self, GTorchTensor *averaged,
                                            GTorchTensor *current, GTorchTensor *n_averaged,
                                            gpointer user_data, GError **error);

/**
 * GTorchMultiAverageFunc:
 * @self: the averaged model
 * @averaged: (array length=n_tensors): the averages so far
 * @n_tensors: the length of @averaged
 * @current: (array length=n_current): the tensors of the model
 * @n_current: the length of @current, which is that of @averaged
 * @n_averaged: the number of tensors in each average, one int64
 * @user_data: the user data of the function
 * @error: return location for an error, with which the update fails
 *
 * A function that changes averages in place. They have one device and dtype. The grad mode is off meanwhile.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchMultiAverageFunc) (GTorchAveragedModel *self, GTorchTensor **averaged,
                                            gsize n_tensors, GTorchTensor **current,
                                            gsize n_current, GTorchTensor *n_averaged,
                                            gpointer user_data, GError **error);

/**
 * GTorchBatchFunc:
 * @user_data: the user data of the function
 * @error: return location for an error
 *
 * A function that gives the batches of data, one at each call.
 *
 * Returns: (transfer full) (nullable): the next batch, %NULL at the end, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchBatchFunc) (gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchAveragedModel *gtorch_averaged_model_new (GTorchModule *model, GTorchDevice *device,
                                                gboolean use_buffers,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchAveragedModel *gtorch_averaged_model_new_from_copy (GTorchModule *copy, GTorchDevice *device,
                                                          gboolean use_buffers,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_averaged_model_set_avg_fn (GTorchAveragedModel *self, GTorchAverageFunc avg_fn,
                                       gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
void gtorch_averaged_model_set_multi_avg_fn (GTorchAveragedModel *self,
                                             GTorchMultiAverageFunc multi_avg_fn,
                                             gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_averaged_model_update_parameters (GTorchAveragedModel *self, GTorchModule *model,
                                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_update_bn (GTorchModule *model, GTorchDevice *device, GTorchBatchFunc next,
                           gpointer user_data, GError **error);

G_END_DECLS
