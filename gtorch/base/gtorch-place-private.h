/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-place.h>

G_BEGIN_DECLS

/* What the function of gtorch_set_place_func () tells now; NULL if there is none, if it may not be called in
 * this thread, or if it knows nothing. No lock may be held, since it may wait for a thread that runs code of
 * its language. */
gchar *gtorch_place_take (void);
/* The first line. */
gchar *gtorch_place_dup_first (const gchar *place);

G_END_DECLS
