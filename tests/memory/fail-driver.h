/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Calls of the CUDA driver that fail on demand, where the program runs on the driver of the tests. A program
 * that is built for any device cannot be linked with that driver, and finds its functions in the library
 * that GTORCH_CUDA_DRIVER names. */

gboolean fail_driver_can (void);
/* The nth call from now on, of whatever function, does nothing and gives the result; those after it work. */
void fail_driver_at (guint nth, gint result);
/* Has it? None will from now on, and no device counts as lost any more. */
gboolean fail_driver_stop (void);
/* Is the driver busy with an operation that it has no kernel for, by the program's code for the CPU? */
gboolean fail_driver_is_computing (void);

G_END_DECLS
