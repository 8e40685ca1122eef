/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_LEAKY_RELU (gtorch_leaky_relu_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchLeakyReLU, gtorch_leaky_relu, GTORCH, LEAKY_RELU, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchLeakyReLU *gtorch_leaky_relu_new (gdouble negative_slope) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
