/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

#define GTORCH_DISTANCES_WIDTH 32 /* other rows that are processed together */

/* Computes the distances by the norm of degree p of one row of `depth` elements from GTORCH_DISTANCES_WIDTH
 * others. Element d of the other row j is others[d * GTORCH_DISTANCES_WIDTH + j]. */
#define GTORCH_DISTANCES_ARGS(T) \
  (const T *x, const T *others, gint64 depth, gdouble p, T *distances)
GTORCH_ISA_DECLARE (void, gtorch_distances_f32, GTORCH_DISTANCES_ARGS (gfloat));
GTORCH_ISA_DECLARE (void, gtorch_distances_f64, GTORCH_DISTANCES_ARGS (gdouble));
#undef GTORCH_DISTANCES_ARGS

G_END_DECLS
