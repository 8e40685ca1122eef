/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_GRAD_SCALER (gtorch_grad_scaler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGradScaler, gtorch_grad_scaler, GTORCH, GRAD_SCALER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchGradScaler *gtorch_grad_scaler_new (void) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_check (GTorchGradScaler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_grad_scaler_scale (GTorchGradScaler *self, GTorchTensor *outputs,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_grad_scaler_scale_list (GTorchGradScaler *self, GTorchTensor **outputs,
                                          gsize n_outputs,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_unscale (GTorchGradScaler *self, GTorchOptimizer *optimizer,
                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_step (GTorchGradScaler *self, GTorchOptimizer *optimizer,
                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_grad_scaler_step_async (GTorchGradScaler *self, GTorchOptimizer *optimizer,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_step_finish (GTorchGradScaler *self, GAsyncResult *result,
                                         GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_update (GTorchGradScaler *self, GTorchTensor *new_scale,
                                    GError **error);

GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_grad_scaler_get_scale (GTorchGradScaler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_grad_scaler_get_scale_tensor (GTorchGradScaler *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_is_enabled (GTorchGradScaler *self);

GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_grad_scaler_state_dict (GTorchGradScaler *self,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_load_state_dict (GTorchGradScaler *self, GHashTable *state,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_grad_scaler_state_lists (GTorchGradScaler *self, gchar ***names,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_scaler_load_state_lists (GTorchGradScaler *self, const gchar *const *names,
                                              GTorchTensor **tensors, gsize n_tensors,
                                              GError **error);

G_END_DECLS
