/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Calls of the CUDA driver that fail on demand, if the program runs on the fake driver. A program that is
 * built for any device cannot be linked with that driver, and finds its functions in the library that
 * GTORCH_CUDA_DRIVER names. */

gboolean fail_driver_can (void);
/* Lets the nth call from now on, of any function, return the result without doing anything; later calls
 * work. */
void fail_driver_at (guint nth, gint result);
/* Ends the faults and repairs the devices. Returns TRUE if a call has failed. */
gboolean fail_driver_stop (void);
/* Returns TRUE if the driver is running the program's CPU code for an operation that it has no kernel
 * for. */
gboolean fail_driver_is_computing (void);

G_END_DECLS
