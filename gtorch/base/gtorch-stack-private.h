/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/* For functions that call the program's, which may call them again: fails if there is little left of the
 * thread's stack. */
gboolean gtorch_stack_check (const gchar *op, GError **error);
gboolean gtorch_stack_is_low (void);

G_END_DECLS
