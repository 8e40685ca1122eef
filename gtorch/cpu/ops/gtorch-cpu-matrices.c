/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the decompositions of matrices by LAPACK share. */

#include "config.h"

#include "cpu/ops/gtorch-cpu-matrices.h"

#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-threads.h"
#include "cpu/ops/gtorch-cpu-blas.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_cpu_columns_init (GTorchCpuColumns *self, GTorchImpl *like, gint64 rows, gint64 columns,
                         GError **error)
{
  const guint n = like->n_dims;
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];

  memcpy (shape, like->shape, n * sizeof (gint64));
  shape[n - 2] = columns;
  shape[n - 1] = rows;
  self->impl = gtorch_impl_new (gtorch_impl_device (like), like->dtype, shape, n, error);
  if (self->impl == NULL)
    return FALSE;
  memcpy (strides, self->impl->strides, n * sizeof (gint64));
  shape[n - 2] = rows;
  shape[n - 1] = columns;
  strides[n - 2] = self->impl->strides[n - 1];
  strides[n - 1] = self->impl->strides[n - 2];
  self->seen = gtorch_impl_new_view (self->impl, 0, shape, strides, n);
  return TRUE;
}

void
gtorch_cpu_columns_clear (GTorchCpuColumns *self)
{
  g_clear_pointer (&self->seen, gtorch_impl_unref);
  g_clear_pointer (&self->impl, gtorch_impl_unref);
}

static void
run (gint64 begin, gint64 end, gpointer user_data)
{
  GTorchCpuBatch *self = user_data;
  const int before = gtorch_cpu_blas_be_alone ();
  gpointer room = self->room > 0 ? g_try_malloc (self->room) : NULL;

  if (self->room > 0 && room == NULL)
    g_atomic_int_set (&self->has_no_room, 1);
  else
    for (; begin < end; begin++)
      self->one (self, begin, room);
  g_free (room);
  gtorch_cpu_blas_leave_alone (before);
}

gboolean
gtorch_cpu_batch_run (GTorchCpuBatch *self, gint64 n, gdouble operations, GError **error)
{
  if (!gtorch_scratch_check (self->room, 1, error))
    return FALSE;
  gtorch_parallel_for (n, gtorch_cpu_matrix_grain (operations), run, self);
  if (self->has_no_room)
    gtorch_scratch_set_error (self->room, 1, error);
  return !self->has_no_room;
}

/* A float32 may be less than the number that it was made of. */
gint64
gtorch_cpu_work_size (guint dtype, gconstpointer stored)
{
  if (gtorch_dtype_infos[dtype].real == GTORCH_DTYPE_FLOAT32)
    return (gint64) nextafterf (ceilf (*(const gfloat *) stored), INFINITY) + 1;
  return (gint64) ceil (*(const gdouble *) stored);
}
