/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-environment-private.h>

G_BEGIN_DECLS

/* Returns how many processors the process may use: those in its affinity mask, or fewer if its control
 * group has a quota. root is the root of the file system. */
guint gtorch_cpu_count (const gchar *root);
/* Returns gtorch_cpu_count (), or the number that the environment asks for. */
guint gtorch_cpu_default_threads (void);

G_END_DECLS
