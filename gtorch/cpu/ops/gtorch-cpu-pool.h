/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>
#include <gtorch/ops/gtorch-op-parts-private.h>

G_BEGIN_DECLS

/* GCC vectorises at -O3 only; Clang does at -O2, and lacks the attribute. */
#ifdef __clang__
#define GTORCH_VECTORIZED
#else
#define GTORCH_VECTORIZED __attribute__ ((optimize ("O3")))
#endif

/* Pooling of contiguous images. */
typedef struct
{
  GTorchWindows windows;
  guint dtype;
  const char *x;
  char *y;
  gint64 *indices;
  gint failed; /* the allocation of a row of places has failed; atomic */
} GTorchCpuPool;

/* Computes, for images from begin up to end, the maximum of each window and its place in
 * the image: that of the last NaN, or of the first of the largest elements. */
void gtorch_cpu_max_images (gint64 begin, gint64 end, gpointer pool);
/* Computes the maxima only, of rows of results of all images from begin up to end. Windows are not
 * adaptive. */
void gtorch_cpu_max_values (gint64 begin, gint64 end, gpointer pool);

/* Replaces each of n elements of `best` by that of x, whose elements are `step` apart, if that is greater or
 * NaN; or by the greater one of a pair of adjacent elements. */
#define GTORCH_POOL_MAX(type)                                              \
  GTORCH_ISA_DECLARE (void, gtorch_pool_max_##type,                        \
                      (const void *x, gint64 step, gint64 n, void *best)); \
  GTORCH_ISA_DECLARE (void, gtorch_pool_max_pairs_##type, (const void *x, gint64 n, void *best))
GTORCH_POOL_MAX (f32);
GTORCH_POOL_MAX (f64);
GTORCH_POOL_MAX (i32);
GTORCH_POOL_MAX (i64);
#undef GTORCH_POOL_MAX

G_END_DECLS
