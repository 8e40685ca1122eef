/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Allocations that fail on demand: device memory (gtorch_device_alloc (), gtorch_pool_alloc ()) and
 * scratch memory (gtorch_scratch_new ()). The linker wraps the library's functions (--wrap), so that the
 * library has no code for it. Small allocations come from GLib, which aborts the program, and are not
 * affected. */

/* Lets the nth allocation from now on fail, in any thread; later ones succeed. 0: none fails. */
void fail_memory_at (guint nth);
/* Ends the faults. Returns TRUE if an allocation has failed. */
gboolean fail_memory_stop (void);
/* Returns the number of allocations since fail_memory_at (), including failed ones. */
guint fail_memory_count (void);
/* Lets all allocations fail that are larger; 0: none. */
void fail_memory_above (gsize n_bytes);

G_END_DECLS
