/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "dispatch/gtorch-op-private.h"

G_BEGIN_DECLS

/* Returns line i of the dimensions before the last `n_own`. */
static inline gpointer
gtorch_cpu_line (const GTorchImpl *impl, guint n_own, gint64 i)
{
  gint64 offset = 0;
  guint d;

  for (d = impl->n_dims - n_own; d-- > 0; i /= impl->shape[d])
    offset += i % impl->shape[d] * impl->strides[d];
  return (char *) gtorch_impl_data (impl) + offset * (gint64) gtorch_dtype_size (impl->dtype);
}

/* Returns how many lines there are. */
static inline gint64
gtorch_cpu_count_lines (const GTorchImpl *impl, guint n_own)
{
  gint64 n = 1;
  guint d;

  for (d = 0; d + n_own < impl->n_dims; d++)
    n *= impl->shape[d];
  return n;
}

/* Returns how many matrices are worth a thread, of which each takes so many operations. */
static inline gint64
gtorch_cpu_matrix_grain (gdouble work)
{
  return (gint64) CLAMP (65536 / MAX (work, 1), 1, 65536);
}

/* Matrices as LAPACK has them, column by column, in memory of one call. */
typedef struct
{
  GTorchImpl *impl; /* [..., columns, rows] */
  GTorchImpl *seen; /* the same memory as [..., rows, columns] */
} GTorchCpuColumns;

/* Sets it to matrices without values, one for each matrix of `like`. */
gboolean gtorch_cpu_columns_init (GTorchCpuColumns *self, GTorchImpl *like, gint64 rows,
                                  gint64 columns, GError **error);
void gtorch_cpu_columns_clear (GTorchCpuColumns *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchCpuColumns, gtorch_cpu_columns_clear)

/* Work on the matrices of a batch, distributed to threads. Each thread has `room` bytes of its own. */
typedef struct _GTorchCpuBatch GTorchCpuBatch;

struct _GTorchCpuBatch
{
  void (*one) (const GTorchCpuBatch *self, gint64 i, gpointer room);
  gconstpointer data;
  gint64 room;
  gint has_no_room;
};

/* Calls one () for 0 to n - 1. `operations` is how many one call takes. */
gboolean gtorch_cpu_batch_run (GTorchCpuBatch *self, gint64 n, gdouble operations, GError **error);

/* Returns the number of elements that a query of LAPACK has stored, which are of the dtype. */
gint64 gtorch_cpu_work_size (guint dtype, gconstpointer stored);

G_END_DECLS
