/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_LAYER_NORM (gtorch_layer_norm_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchLayerNorm, gtorch_layer_norm, GTORCH, LAYER_NORM, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchLayerNorm *gtorch_layer_norm_new (const gint64 *normalized_shape, gsize n_dims, gdouble eps,
                                        gboolean elementwise_affine, gboolean bias,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
const gint64 *gtorch_layer_norm_get_normalized_shape (GTorchLayerNorm *self, gsize *n_dims);

G_END_DECLS
