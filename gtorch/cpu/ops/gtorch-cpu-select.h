/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* Computes to[i] = which[i] ? yes[i] : no[i]; `size` is the size of an element. */
#define GTORCH_SELECT(size)                       \
  GTORCH_ISA_DECLARE (void, gtorch_select_##size, \
                      (void *to, const guint8 *which, const void *yes, const void *no, gint64 n))
GTORCH_SELECT (1);
GTORCH_SELECT (2);
GTORCH_SELECT (4);
GTORCH_SELECT (8);
#undef GTORCH_SELECT

/* Returns the first position of the wanted value or of a NaN; n if there is neither. */
#define GTORCH_FIND(type) \
  GTORCH_ISA_DECLARE (gint64, gtorch_find_##type, (const void *data, gint64 n, const void *wanted))
GTORCH_FIND (f32);
GTORCH_FIND (f64);
GTORCH_FIND (i32);
GTORCH_FIND (i64);
GTORCH_FIND (u8);
#undef GTORCH_FIND

G_END_DECLS
