/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Reductions. The order in which elements are combined depends only on their number, never on the number of
 * threads or on the processor: an inner reduction has a fixed number of lanes, long ones are divided into
 * blocks of a fixed size, and lanes and blocks are combined pairwise. */

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

#define GTORCH_REDUCE_BLOCK      8192 /* elements of one output that are reduced at once */
#define GTORCH_REDUCE_ROWS       512  /* rows that are reduced to one row at once */
#define GTORCH_REDUCE_LANE_BYTES 256
#define GTORCH_REDUCE_SHORT      16 /* fewer elements are not worth using lanes */

typedef struct
{
  void (*init) (void *acc, gint64 n);
  /* acc[0] becomes the reduction of n contiguous elements. */
  void (*inner) (const void *x, gint64 n, void *acc);
  /* acc[c] accumulates x[r * stride + c] for n_rows rows r. */
  void (*outer) (const void *x, gint64 stride, gint64 n_rows, gint64 n_columns, void *acc);
  void (*combine) (void *acc, const void *other, gint64 n);
  /* n_reduced elements have gone into each acc. */
  void (*finish) (void *acc, gint64 n, gint64 n_reduced);
} GTorchReduceLoop;

/* Returns the loops of a reduction in a compute dtype. */
const GTorchReduceLoop *gtorch_cpu_reduce_loop (const GTorchOpClass *op, guint dtype);

/* Reduces the dimensions in mask of input into output, which is contiguous and has the remaining
 * dimensions. Computes in dtype. */
gboolean gtorch_cpu_reduce_run (const GTorchReduceLoop *loop, guint dtype, const GTorchImpl *input,
                                guint64 mask, GTorchImpl *output, GError **error);

G_END_DECLS
