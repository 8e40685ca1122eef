/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-none.h>

G_BEGIN_DECLS

/* Does the argument, or the property, say that there is no number? */
static inline gboolean
gtorch_is_none_double (gdouble value)
{
  return value == GTORCH_NONE_DOUBLE;
}

G_END_DECLS
