/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_export_sysprof (GTorchProfiler *self, GFile *file,
                                         GCancellable *cancellable, GError **error);

G_END_DECLS
