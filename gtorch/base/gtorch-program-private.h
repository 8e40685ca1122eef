/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What reports, profiles and monitors call the program. */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The name that the program has given itself (g_set_prgname ()), or its file's; that of the script where it
 * is only the name of an interpreter of Python or JavaScript. In valid UTF-8. */
gchar *gtorch_program_dup_name (void);

/* The script or module that an interpreter with these arguments runs, without folders; NULL if it is none of
 * those interpreters, or runs something else. */
gchar *gtorch_program_find_script (const gchar *const *arguments);

G_END_DECLS
