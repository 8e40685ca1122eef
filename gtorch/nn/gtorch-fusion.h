/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_fuse_conv_bn_weights (GTorchTensor *conv_w, GTorchTensor *conv_b,
                                      GTorchTensor *bn_rm, GTorchTensor *bn_rv, gdouble bn_eps,
                                      GTorchTensor *bn_w, GTorchTensor *bn_b, gboolean transpose,
                                      GTorchParameter **weight, GTorchParameter **bias,
                                      GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_fuse_linear_bn_weights (GTorchTensor *linear_w, GTorchTensor *linear_b,
                                        GTorchTensor *bn_rm, GTorchTensor *bn_rv, gdouble bn_eps,
                                        GTorchTensor *bn_w, GTorchTensor *bn_b,
                                        GTorchParameter **weight, GTorchParameter **bias,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_fuse_conv_bn_eval (GTorchModule *conv, GTorchModule *bn, gboolean transpose,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_fuse_linear_bn_eval (GTorchModule *linear, GTorchModule *bn,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
