/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gint gtorch_forward_ad_enter_dual_level (GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_forward_ad_exit_dual_level (GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_forward_ad_has_dual_level (void);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_forward_ad_make_dual (GTorchTensor *primal, GTorchTensor *tangent,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_forward_ad_unpack_dual (GTorchTensor *dual, GTorchTensor **tangent,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
