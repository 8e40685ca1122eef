/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* How much the row of a step may have; the generator checks it. */
#define GTORCH_STEP_MAX_NUMBERS 12 /* arguments of a step */
#define GTORCH_STEP_MAX_STATES  3  /* state tensors with the parameter's shape */
#define GTORCH_STEP_MAX_ONCE    16 /* numbers that are computed once for all elements */
