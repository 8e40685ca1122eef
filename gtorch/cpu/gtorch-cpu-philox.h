/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>
#include <gtorch/device/gtorch-philox-private.h>

G_BEGIN_DECLS

/* The loops of the distributions that gtorch-philox-private.h describes. */

#define GTORCH_PHILOX_CHUNK \
  1024 /* elements that are generated together; chunks begin at multiples of it */

/* Computes the words of the chunk that begins with block `block`: 4 n_blocks of them. */
GTORCH_ISA_DECLARE (void, gtorch_philox_words,
                    (guint64 seed, guint64 counter, guint64 block, guint n_blocks, guint32 *words));
/* Convert the words of a whole chunk to uniform numbers in [0, 1) with `bits` bits, to normal and to
 * exponential numbers. */
GTORCH_ISA_DECLARE (void, gtorch_philox_uniform_f32,
                    (const guint32 *words, guint bits, gfloat *result));
GTORCH_ISA_DECLARE (void, gtorch_philox_uniform_f64, (const guint32 *words, gdouble *result));
GTORCH_ISA_DECLARE (void, gtorch_philox_normal_f32, (const guint32 *words, gfloat *result));
GTORCH_ISA_DECLARE (void, gtorch_philox_exponential_f32, (const guint32 *words, gfloat *result));
/* Return the end of the numbers below `high` (anything less is still less after rounding to the dtype) and
 * the least number above 0. In ops/gtorch-cpu-random.c. */
gfloat gtorch_random_end (guint dtype, gdouble high);
gdouble gtorch_random_least (guint dtype);
/* y = y * scale + shift */
GTORCH_ISA_DECLARE (void, gtorch_philox_affine_f32, (gfloat * values, gfloat scale, gfloat shift));

G_END_DECLS
