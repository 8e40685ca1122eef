/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-threads.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Iterates over several operands that are broadcast to one shape. Dimensions are sorted by stride and
 * merged where possible, so that the inner loop is as long as the layout allows. Dimension 0 is the
 * innermost. */

#define GTORCH_ITER_MAX_OPERANDS 8
#define GTORCH_CPU_GRAIN         32768 /* elements; fewer are not worth a second thread */

typedef struct _GTorchIter
{
  guint n_operands;
  guint n_dims;
  gint64 numel;
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 strides[GTORCH_MAX_DIMS][GTORCH_ITER_MAX_OPERANDS]; /* in bytes */
  char *data[GTORCH_ITER_MAX_OPERANDS];
  gboolean any_order; /* set by a caller that does not need the order: see gtorch_iter_range () */
} GTorchIter;

/* Processes n elements. data and strides (in bytes) have one item per operand. */
typedef void (*GTorchIterFunc) (char *const *data, const gint64 *strides, gint64 n,
                                gpointer user_data);

/* Operands must be broadcastable to shape. */
void gtorch_iter_init (GTorchIter *iter, GTorchImpl *const *operands, guint n_operands,
                       const gint64 *shape, guint n_dims);
/* Does what gtorch_iter_init () does for raw strides, counted in elements of `sizes` bytes:
 * strides[operand][dim], in the shape's order. */
void gtorch_iter_init_raw (GTorchIter *iter, char *const *data, const gint64 *const *strides,
                           const gsize *sizes, guint n_operands, const gint64 *shape, guint n_dims);
/* Calls func for all elements, from several threads if there are at least 2 grain of them. */
void gtorch_iter_run (const GTorchIter *iter, gint64 grain, GTorchIterFunc func,
                      gpointer user_data);
/* Calls func over the elements [begin, end) in the iterator's order, in this thread. If any order will do and
 * the innermost dimension is short, func gets parts of the next one instead. */
void gtorch_iter_range (const GTorchIter *iter, gint64 begin, gint64 end, GTorchIterFunc func,
                        gpointer user_data);

/* Copies src, broadcast and converted, to the elements of dst. */
void gtorch_cpu_copy (GTorchImpl *dst, GTorchImpl *src);

G_END_DECLS
