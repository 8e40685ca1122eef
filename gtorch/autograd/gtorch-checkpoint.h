/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-function.h>
#include <gtorch/autograd/gtorch-saved-hooks.h>

G_BEGIN_DECLS

/**
 * GTorchCheckpointFunc:
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Computes outputs from inputs; called again with the same inputs in the backward pass, where it must do
 * the same.
 *
 * Returns: (transfer full) (element-type GTorchTensor): the outputs, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchCheckpointFunc) (GTorchTensor **inputs, gsize n_inputs,
                                            gpointer user_data, GError **error);

/**
 * GTorchRecomputeFunc:
 * @inputs: (array length=n_inputs): the inputs, as they were
 * @n_inputs: the length of @inputs
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Computes again what was computed between [func@checkpoint_begin] and the end of its guard.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchRecomputeFunc) (GTorchTensor **inputs, gsize n_inputs, gpointer user_data,
                                         GError **error);

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_checkpoint (GTorchCheckpointFunc func, gpointer user_data, GDestroyNotify destroy,
                              GTorchTensor **inputs, gsize n_inputs, gboolean use_reentrant,
                              gboolean preserve_rng_state, gboolean determinism_check,
                              gboolean early_stop, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSavedTensorsGuard *gtorch_checkpoint_begin (GTorchRecomputeFunc recompute, gpointer user_data,
                                                  GDestroyNotify destroy, GTorchTensor **inputs,
                                                  gsize n_inputs, gboolean preserve_rng_state,
                                                  gboolean determinism_check, gboolean early_stop,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchFunction *gtorch_checkpoint_function_new (GTorchCheckpointFunc func, gpointer user_data,
                                                GDestroyNotify destroy, gboolean preserve_rng_state)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
