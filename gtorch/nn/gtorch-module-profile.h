/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>
#include <gtorch/profiler/gtorch-profile-range.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchProfileRange *gtorch_module_profile_call (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
