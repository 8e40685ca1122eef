/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_to_device_async (GTorchTensor *self, GTorchDevice *device,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_to_device_finish (GTorchTensor *self, GAsyncResult *result,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_copy_inplace_async (GTorchTensor *self, GTorchTensor *src,
                                       GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_copy_inplace_finish (GTorchTensor *self, GAsyncResult *result,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_item_double_async (GTorchTensor *self, GCancellable *cancellable,
                                      GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_tensor_item_double_finish (GTorchTensor *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_item_int_async (GTorchTensor *self, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tensor_item_int_finish (GTorchTensor *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_get_bytes_async (GTorchTensor *self, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_tensor_get_bytes_finish (GTorchTensor *self, GAsyncResult *result,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_to_doubles_async (GTorchTensor *self, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_tensor_to_doubles_finish (GTorchTensor *self, GAsyncResult *result, gsize *n_values,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_to_ints_async (GTorchTensor *self, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gint64 *gtorch_tensor_to_ints_finish (GTorchTensor *self, GAsyncResult *result, gsize *n_values,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
