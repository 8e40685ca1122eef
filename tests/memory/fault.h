/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A fault that happens once. */
typedef struct
{
  const gchar *name;
  void (*begin) (guint nth); /* arms the fault for the nth operation from now on */
  gboolean (*end) (void);    /* disarms it; returns TRUE if it happened */
  gboolean (*can) (void);    /* whether it is possible; NULL: always */
  gboolean is_memory;        /* the error reports a lack of memory */
  gboolean is_lost;          /* the device is lost, with all that is on it */
} Fault;

extern const Fault faults[];
extern const guint n_faults;

gboolean fault_can (const Fault *fault);

G_END_DECLS
