/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SOFTMAX (gtorch_softmax_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSoftmax, gtorch_softmax, GTORCH, SOFTMAX, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchSoftmax *gtorch_softmax_new (gint64 dim) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
