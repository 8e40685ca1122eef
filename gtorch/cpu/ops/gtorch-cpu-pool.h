/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

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

G_END_DECLS
