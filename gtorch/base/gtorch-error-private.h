/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-error.h>

G_BEGIN_DECLS

/* Makes the message of an error from inside of `op` begin with its name instead of the part's. */
void gtorch_error_set_op (GError **error, const gchar *op);
/* Puts the name in front of OUT_OF_MEMORY and of a nameless SHAPE: what allocates does not know for which
 * operation it does. */
void gtorch_error_name_op (GError **error, const gchar *op);

G_END_DECLS
