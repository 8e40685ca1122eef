/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What fails once, and nothing after it. */
typedef struct
{
  const gchar *name;
  void (*begin) (guint nth); /* the nth from now on */
  gboolean (*end) (void);    /* has it? */
  gboolean (*can) (void);    /* NULL: always */
  gboolean is_memory;        /* and the error says so */
  gboolean is_lost;          /* the device, with all that is on it */
} Fault;

extern const Fault faults[];
extern const guint n_faults;

gboolean fault_can (const Fault *fault);

G_END_DECLS
