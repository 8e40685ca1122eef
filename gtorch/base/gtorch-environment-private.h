/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Whether the process has rights that whoever started it lacks: it is setuid, setgid, has capabilities of its
 * file, or a security module says so. */
gboolean gtorch_is_privileged (void);

/* The value of an environment variable; NULL if there is none, and in a privileged process. */
const gchar *gtorch_getenv (const gchar *name);
/* Whether there is one that counts for nothing, because the process is privileged. */
gboolean gtorch_env_is_ignored (const gchar *name);

/* dlopen (): in a privileged process only of full paths, and of names that the system's loader looks for. A
 * failure is to be read with gtorch_library_error (). */
gpointer gtorch_library_open (const gchar *path, int flags);
const gchar *gtorch_library_error (void);

G_END_DECLS
