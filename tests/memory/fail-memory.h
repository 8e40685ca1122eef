/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Memory that cannot be had. What devices give (gtorch_device_alloc (), gtorch_pool_alloc ()) and working
 * memory (gtorch_scratch_new ()) fail on demand. The linker puts other functions in front of the library's
 * (--wrap), so that the library has no trace of it. Small things come from GLib, which ends the program,
 * and are not meant. */

/* The nth from now on fails, in whichever thread, those after it do not; 0: none does. */
void fail_memory_at (guint nth);
/* Has it? None will from now on. */
gboolean fail_memory_stop (void);
/* How many there were since fail_memory_at (), those that failed, too. */
guint fail_memory_count (void);
/* All that are larger fail; 0: none does for that. */
void fail_memory_above (gsize n_bytes);

G_END_DECLS
