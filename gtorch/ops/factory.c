/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"

static gboolean
new_output (GTorchOpCall *call, gint64 dtype, const gint64 *shape, gsize n_dims, GError **error)
{
  if (dtype == GTORCH_DTYPE_NONE)
    dtype = gtorch_get_default_dtype ();
  if (dtype < 0 || dtype >= GTORCH_N_DTYPES)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%" G_GINT64_FORMAT " is not a dtype"),
                         dtype);
      return FALSE;
    }
  return gtorch_call_check_dtype (call, dtype, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
}

gboolean
gtorch_shape_factory (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[1].i, call->attrs[0].list.data, call->attrs[0].list.n,
                     error);
}

static gboolean
like (GTorchOpCall *call, gint64 dtype, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : self->dtype, self->shape,
                     self->n_dims, error);
}

gboolean
gtorch_shape_factory_like (GTorchOpCall *call, GError **error)
{
  return like (call, call->attrs[0].i, error);
}

gboolean
gtorch_shape_full_like (GTorchOpCall *call, GError **error)
{
  return like (call, call->attrs[1].i, error);
}

gboolean
gtorch_shape_full (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[2].i, call->attrs[0].list.data, call->attrs[0].list.n,
                     error);
}

gboolean
gtorch_cpu_empty (GTorchOpCall *call, GError **error)
{
  return TRUE;
}

typedef struct
{
  GTorchCast cast;
  gdouble value;
} Fill;

static void
run_fill (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Fill *fill = user_data;

  fill->cast (data[0], strides[0], (const char *) &fill->value, 0, n);
}

static gboolean
fill (GTorchOpCall *call, gdouble value)
{
  GTorchImpl *output = call->outputs[0];
  Fill what = { gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_FLOAT64), value };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  gtorch_iter_init (&iter, &output, 1, output->shape, output->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, run_fill, &what);
  return TRUE;
}

gboolean
gtorch_cpu_zeros (GTorchOpCall *call, GError **error)
{
  return fill (call, 0);
}

gboolean
gtorch_cpu_ones (GTorchOpCall *call, GError **error)
{
  return fill (call, 1);
}

gboolean
gtorch_cpu_full (GTorchOpCall *call, GError **error)
{
  return fill (call, call->attrs[1].d);
}

gboolean
gtorch_cpu_full_like (GTorchOpCall *call, GError **error)
{
  return fill (call, call->attrs[0].d);
}

gboolean
gtorch_cpu_fill (GTorchOpCall *call, GError **error)
{
  return fill (call, call->attrs[0].d);
}

/* start + i * step, element by element in double and then converted. */
static void
progression (GTorchImpl *output, gdouble start, gdouble step)
{
  GTorchCast cast = gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_FLOAT64);
  char *data = gtorch_impl_data (output);
  gsize size = gtorch_dtype_size (output->dtype);
  gint64 i;

  for (i = 0; i < output->numel; i++)
    {
      gdouble value = start + (gdouble) i * step;

      cast (data + (gsize) i * size, size, (const char *) &value, 8, 1);
    }
}

gboolean
gtorch_shape_arange (GTorchOpCall *call, GError **error)
{
  gdouble start = call->attrs[0].d, end = call->attrs[1].d, step = call->attrs[2].d;
  gdouble count = ceil ((end - start) / step);
  gint64 n;

  if (!(step != 0) || !isfinite (count) || count < 0 || count >= 0x1p62)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("there is no finite way from %g to %g in steps of %g"), start, end,
                         step);
      return FALSE;
    }
  n = (gint64) count;
  return new_output (call, call->attrs[3].i, &n, 1, error);
}

gboolean
gtorch_cpu_arange (GTorchOpCall *call, GError **error)
{
  progression (call->outputs[0], call->attrs[0].d, call->attrs[2].d);
  return TRUE;
}

gboolean
gtorch_shape_linspace (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[3].i, &call->attrs[2].i, 1, error);
}

gboolean
gtorch_cpu_linspace (GTorchOpCall *call, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gdouble start = call->attrs[0].d, end = call->attrs[1].d;

  progression (output, start,
               output->numel > 1 ? (end - start) / (gdouble) (output->numel - 1) : 0);
  if (output->numel > 1) /* exactly, not by rounding */
    gtorch_cpu_cast (output->dtype,
                     GTORCH_DTYPE_FLOAT64) ((char *) gtorch_impl_data (output)
                                                + (output->numel - 1)
                                                      * (gint64) gtorch_dtype_size (output->dtype),
                                            0, (const char *) &end, 0, 1);
  return TRUE;
}

gboolean
gtorch_shape_eye (GTorchOpCall *call, GError **error)
{
  const gint64 shape[] = { call->attrs[0].i,
                           call->attrs[1].i == -1 ? call->attrs[0].i : call->attrs[1].i };

  return new_output (call, call->attrs[2].i, shape, 2, error);
}

gboolean
gtorch_cpu_eye (GTorchOpCall *call, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const guint8 one = 1;
  gint64 n = MIN (output->shape[0], output->shape[1]);

  fill (call, 0);
  gtorch_cpu_cast (output->dtype,
                   GTORCH_DTYPE_BOOL) (gtorch_impl_data (output),
                                       (output->shape[1] + 1)
                                           * (gint64) gtorch_dtype_size (output->dtype),
                                       (const char *) &one, 0, n);
  return TRUE;
}
