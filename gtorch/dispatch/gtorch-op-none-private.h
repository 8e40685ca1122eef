/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-none-private.h>

G_BEGIN_DECLS

/* Sets an INVALID error which says that an argument of the operation is the constant for no number, and has
 * no default. */
void gtorch_op_refuse_none (guint op, const gchar *name, GError **error);

G_END_DECLS
