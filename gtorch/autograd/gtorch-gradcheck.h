/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-function.h>

G_BEGIN_DECLS

/**
 * GTorchGradcheckFunc:
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @user_data: the user data of the function
 * @error: return location for an error
 *
 * A function whose gradients are checked. It must be deterministic.
 *
 * Returns: (transfer full): the result for @inputs, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchGradcheckFunc) (GTorchTensor **inputs, gsize n_inputs,
                                              gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gradcheck (GTorchGradcheckFunc func, gpointer user_data, GTorchTensor **inputs,
                           gsize n_inputs, gdouble eps, gdouble atol, gdouble rtol, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gradgradcheck (GTorchGradcheckFunc func, gpointer user_data, GTorchTensor **inputs,
                               gsize n_inputs, gdouble eps, gdouble atol, gdouble rtol,
                               GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gradcheck_function (GTorchFunction *function, GTorchTensor **inputs, gsize n_inputs,
                                    gdouble eps, gdouble atol, gdouble rtol, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gradgradcheck_function (GTorchFunction *function, GTorchTensor **inputs,
                                        gsize n_inputs, gdouble eps, gdouble atol, gdouble rtol,
                                        GError **error);

G_END_DECLS
