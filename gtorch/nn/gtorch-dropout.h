/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DROPOUT (gtorch_dropout_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDropout, gtorch_dropout, GTORCH, DROPOUT, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchDropout *gtorch_dropout_new (gdouble p, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
