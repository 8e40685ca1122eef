/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A source whose function is called in its main context after any thread has rung, once for any number of
 * rings before it. It stays until the function returns %G_SOURCE_REMOVE or the source is destroyed. */
GSource *gtorch_bell_new (void);
void gtorch_bell_ring (GSource *bell);

G_END_DECLS
