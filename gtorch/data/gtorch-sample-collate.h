/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-sample.h>

G_BEGIN_DECLS

/**
 * GTorchSampleMapFunc:
 * @tensor: a tensor of the sample
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Returns what takes the place of a tensor.
 *
 * Returns: (transfer full): a tensor, which may be @tensor with a reference of its own, or %NULL with
 *   @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchSampleMapFunc) (GTorchTensor *tensor, gpointer user_data,
                                              GError **error);

/**
 * GTorchSampleAllocFunc:
 * @dtype: the dtype
 * @shape: (array length=n_dims): the shape
 * @n_dims: the length of @shape
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Returns the tensor that a part of a batch is written to, for instance in memory that another process
 * sees.
 *
 * Returns: (transfer full): a contiguous tensor of that dtype and shape on the CPU, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchSampleAllocFunc) (GTorchDType dtype, const gint64 *shape,
                                                gsize n_dims, gpointer user_data, GError **error);

/**
 * GTorchCollateFunc:
 * @samples: (array length=n_samples): the samples of a batch
 * @n_samples: the length of @samples, at least 1
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Makes a batch of samples. With workers it is called in their threads, several at a time.
 *
 * Returns: (transfer full): the batch, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchSample *(*GTorchCollateFunc) (GTorchSample **samples, gsize n_samples,
                                            gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_collate (GTorchSample **samples, gsize n_samples,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_collate_with (GTorchSample **samples, gsize n_samples,
                                          GTorchSampleAllocFunc alloc, gpointer user_data,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_sample_get_tensors (GTorchSample *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_map_tensors (GTorchSample *self, GTorchSampleMapFunc func,
                                         gpointer user_data,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_to_device (GTorchSample *self, GTorchDevice *device,
                                       gboolean non_blocking,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_pin (GTorchSample *self, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_sample_get_n_bytes (GTorchSample *self);

G_END_DECLS
