/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What a program's function gave back: takes local, its error, which is one whatever else there is, and makes
 * one up if it failed without. */
gboolean gtorch_callback_ended (const gchar *op, gboolean success, GError *local, GError **error);

G_END_DECLS
