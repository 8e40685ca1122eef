/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_nvtx_is_traced (void);
GTORCH_AVAILABLE_IN_0_1
void gtorch_nvtx_mark (const gchar *message);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_nvtx_range_push (const gchar *message);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_nvtx_range_pop (void);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_nvtx_range_start (const gchar *message);
GTORCH_AVAILABLE_IN_0_1
void gtorch_nvtx_range_end (guint64 range_id);

G_END_DECLS
