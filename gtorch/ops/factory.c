/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

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

/* Checks that the output's dtype can represent attribute i. */
static gboolean
takes_number (GTorchOpCall *call, guint i, GError **error)
{
  return gtorch_call_check_value (call, i, call->outputs[0]->dtype, error);
}

/* Chooses int64 for integers if no dtype is given. */
static gint64
dtype_for (gint64 dtype, const GTorchAttr *number)
{
  return dtype == GTORCH_DTYPE_NONE && number->number.is_int ? GTORCH_DTYPE_INT64 : dtype;
}

gboolean
gtorch_shape_full_like (GTorchOpCall *call, GError **error)
{
  return like (call, call->attrs[1].i, error) && takes_number (call, 0, error);
}

gboolean
gtorch_shape_fill (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_same (call, error) && takes_number (call, 0, error);
}

gboolean
gtorch_shape_full (GTorchOpCall *call, GError **error)
{
  return new_output (call, dtype_for (call->attrs[2].i, &call->attrs[1]), call->attrs[0].list.data,
                     call->attrs[0].list.n, error)
         && takes_number (call, 1, error);
}

gboolean
gtorch_shape_factory_new (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[1].i;

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : call->inputs[0]->dtype,
                     call->attrs[0].list.data, call->attrs[0].list.n, error);
}

gboolean
gtorch_shape_new_full (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[2].i;

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : call->inputs[0]->dtype,
                     call->attrs[0].list.data, call->attrs[0].list.n, error)
         && takes_number (call, 1, error);
}

gboolean
gtorch_shape_scalar_tensor (GTorchOpCall *call, GError **error)
{
  return new_output (call, dtype_for (call->attrs[1].i, &call->attrs[0]), NULL, 0, error)
         && takes_number (call, 0, error);
}

gboolean
gtorch_cpu_empty (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return TRUE;
}

typedef struct
{
  GTorchCast cast;
  gconstpointer value;
} Fill;

static void
run_fill (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Fill *fill = user_data;

  fill->cast (data[0], strides[0], fill->value, 0, n);
}

typedef struct
{
  char *data;
  gsize size;
  guint64 value[2];
} Pattern;

#define FILL_PATTERN(T)                                                 \
  {                                                                     \
    T *data = (T *) p->data;                                            \
    const T value = *(const T *) (const void *) p->value;               \
                                                                        \
    _Pragma ("omp simd") for (i = begin; i < end; i++) data[i] = value; \
  }

static void
fill_pattern (gint64 begin, gint64 end, gpointer user_data)
{
  const Pattern *p = user_data;
  gint64 i;

  if (p->value[0] == 0 && p->value[1] == 0)
    memset (p->data + (gsize) begin * p->size, 0, (gsize) (end - begin) * p->size);
  else
    switch (p->size)
      {
      case 1:
        FILL_PATTERN (guint8)
        break;
      case 2:
        FILL_PATTERN (guint16)
        break;
      case 4:
        FILL_PATTERN (guint32)
        break;
      case 8:
        FILL_PATTERN (guint64)
        break;
      default:
        for (i = begin; i < end; i++)
          memcpy (p->data + (gsize) i * 16, p->value, 16);
      }
}

static gboolean
fill_with (GTorchOpCall *call, guint dtype, gconstpointer value)
{
  GTorchImpl *output = call->outputs[0];
  Fill what = { gtorch_cpu_cast (output->dtype, dtype), value };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  if (output->is_contiguous)
    {
      Pattern pattern = { gtorch_impl_data (output), gtorch_dtype_size (output->dtype) };

      what.cast ((char *) pattern.value, 0, value, 0, 1);
      gtorch_parallel_for (output->numel, GTORCH_CPU_GRAIN, fill_pattern, &pattern);
      return TRUE;
    }
  gtorch_iter_init (&iter, &output, 1, output->shape, output->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, run_fill, &what);
  return TRUE;
}

static gboolean
fill (GTorchOpCall *call, gdouble value)
{
  return fill_with (call, GTORCH_DTYPE_FLOAT64, &value);
}

static gboolean
fill_number (GTorchOpCall *call, const GTorchAttr *attr)
{
  if (gtorch_dtype_kind (call->outputs[0]->dtype) == GTORCH_KIND_INT)
    return fill_with (call, GTORCH_DTYPE_INT64, &attr->number.i);
  return fill_with (call, GTORCH_DTYPE_FLOAT64, &attr->number.d);
}

gboolean
gtorch_cpu_scalar_tensor (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill_number (call, &call->attrs[0]);
}

gboolean
gtorch_cpu_new_full (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill_number (call, &call->attrs[1]);
}

gboolean
gtorch_cpu_zeros (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill (call, 0);
}

gboolean
gtorch_cpu_ones (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill (call, 1);
}

gboolean
gtorch_cpu_full (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill_number (call, &call->attrs[1]);
}

gboolean
gtorch_cpu_full_like (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill_number (call, &call->attrs[0]);
}

gboolean
gtorch_cpu_fill (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill_number (call, &call->attrs[0]);
}

typedef struct
{
  GTorchImpl *output;
  GTorchCast cast;
  gdouble start, step;
} Progression;

static void
progression_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Progression *p = user_data;
  gint64 size = gtorch_dtype_size (p->output->dtype);
  gdouble values[256];
  gint64 i, n;

  for (; begin < end; begin += n)
    {
      n = MIN (end - begin, (gint64) G_N_ELEMENTS (values));
      for (i = 0; i < n; i++)
        values[i] = p->start + (gdouble) (begin + i) * p->step;
      p->cast ((char *) gtorch_impl_data (p->output) + begin * size, size, (const char *) values, 8,
               n);
    }
}

/* Fills the output with start + i * step, computed in double and then converted. */
static void
progression (GTorchImpl *output, gdouble start, gdouble step)
{
  Progression p = { output, gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_FLOAT64), start, step };

  if (output->numel > 0)
    gtorch_parallel_for (output->numel, GTORCH_CPU_GRAIN, progression_part, &p);
}

typedef struct
{
  GTorchImpl *output;
  GTorchCast cast;
  gint64 start, step;
} Integers;

static void
integers_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Integers *p = user_data;
  gint64 size = gtorch_dtype_size (p->output->dtype);
  gint64 values[256];
  gint64 i, n;

  for (; begin < end; begin += n)
    {
      n = MIN (end - begin, (gint64) G_N_ELEMENTS (values));
      for (i = 0; i < n; i++)
        values[i] = p->start + (begin + i) * p->step;
      p->cast ((char *) gtorch_impl_data (p->output) + begin * size, size, (const char *) values, 8,
               n);
    }
}

/* Returns the number of integers from start to before end, or -1 if step does not lead from start to end. */
static gint64
count_integers (gint64 start, gint64 end, gint64 step)
{
  const guint64 distance = step > 0 ? (guint64) end - start : (guint64) start - end;

  if (start == end)
    return 0;
  if ((step > 0) != (start < end) || step == 0)
    return -1;
  return (gint64) MIN ((distance - 1) / (step > 0 ? (guint64) step : 0 - (guint64) step) + 1,
                       G_MAXINT64);
}

/* Checks that the dtype can represent both ends, and so all numbers in between. Dtypes of 8 bytes need
 * no check: for int64, count_integers () has found the range valid. */
static gboolean
check_ends (GTorchOpCall *call, gdouble first, gdouble last, GError **error)
{
  const guint dtype = call->outputs[0]->dtype;
  const gdouble *bad = !gtorch_dtype_has (dtype, first)  ? &first
                       : !gtorch_dtype_has (dtype, last) ? &last
                                                         : NULL;

  if (bad == NULL || gtorch_dtype_size (dtype) == 8)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("%.17g is among the numbers, which is no %s"), *bad,
                     gtorch_dtype_get_name (dtype));
  return FALSE;
}

gboolean
gtorch_shape_arange (GTorchOpCall *call, GError **error)
{
  gdouble start = call->attrs[0].d, end = call->attrs[1].d, step = call->attrs[2].d;
  gdouble count = ceil ((end - start) / step);
  gboolean is_whole = gtorch_call_has_ints (call, 3);
  gint64 n = is_whole ? count_integers (call->attrs[0].number.i, call->attrs[1].number.i,
                                        call->attrs[2].number.i)
                      : 0;

  if (!(step != 0) || !isfinite (count) || count < 0 || count >= 0x1p62 || n < 0)
    {
      if (is_whole)
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("there is no finite way from %" G_GINT64_FORMAT
                              " to %" G_GINT64_FORMAT " in steps of %" G_GINT64_FORMAT),
                           call->attrs[0].number.i, call->attrs[1].number.i,
                           call->attrs[2].number.i);
      else
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("there is no finite way from %g to %g in steps of %g"), start, end,
                           step);
      return FALSE;
    }
  if (!is_whole)
    n = (gint64) count;
  return new_output (call,
                     is_whole ? dtype_for (call->attrs[3].i, &call->attrs[0]) : call->attrs[3].i,
                     &n, 1, error)
         && (n == 0 || check_ends (call, start, start + (gdouble) (n - 1) * step, error));
}

gboolean
gtorch_cpu_arange (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  Integers p = { output, gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_INT64),
                 call->attrs[0].number.i, call->attrs[2].number.i };

  if (!gtorch_call_has_ints (call, 3))
    progression (output, call->attrs[0].d, call->attrs[2].d);
  else if (output->numel > 0)
    gtorch_parallel_for (output->numel, GTORCH_CPU_GRAIN, integers_part, &p);
  return TRUE;
}

gboolean
gtorch_shape_linspace (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[3].i, &call->attrs[2].i, 1, error)
         && gtorch_call_check_double (call, 0, call->outputs[0]->dtype, error)
         && gtorch_call_check_double (call, 1, call->outputs[0]->dtype, error);
}

gboolean
gtorch_cpu_linspace (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gdouble start = call->attrs[0].d, end = call->attrs[1].d;

  progression (output, start,
               output->numel > 1 ? (end - start) / (gdouble) (output->numel - 1) : 0);
  if (output->numel > 1) /* the last element is exact, without rounding errors */
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
gtorch_cpu_eye (GTorchOpCall *call, GTorchQueue *queue, GError **error)
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

gboolean
gtorch_shape_logspace (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[4].i, &call->attrs[2].i, 1, error);
}

gboolean
gtorch_cpu_logspace (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gdouble start = call->attrs[0].d, end = call->attrs[1].d, base = call->attrs[3].d;
  gdouble step = output->numel > 1 ? (end - start) / (gdouble) (output->numel - 1) : 0;
  GTorchCast cast = gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_FLOAT64);
  gint64 size = gtorch_dtype_size (output->dtype), i;

  for (i = 0; i < output->numel; i++)
    {
      gdouble value =
          pow (base, i + 1 == output->numel && i > 0 ? end : start + (gdouble) i * step);

      cast ((char *) gtorch_impl_data (output) + i * size, 0, (const char *) &value, 0, 1);
    }
  return TRUE;
}

/* Finds the columns [begin, end) of a row that belong to the triangle. */
static void
triangle_row (GTorchOpCall *call, gint64 row, gint64 *begin, gint64 *end)
{
  gint64 columns = call->attrs[1].i, offset = call->attrs[2].i;
  gint64 diagonal = offset > columns - row ? columns : MAX (row + offset, -1);

  *begin = call->op->id == GTORCH_OP_TRIL_INDICES ? 0 : MAX (diagonal, 0);
  *end = call->op->id == GTORCH_OP_TRIL_INDICES ? MIN (diagonal + 1, columns) : columns;
}

gboolean
gtorch_shape_triangle_indices (GTorchOpCall *call, GError **error)
{
  const gint64 matrix[] = { call->attrs[0].i, call->attrs[1].i };
  gint64 shape[] = { 2, 0 };
  gint64 row, begin, end;

  if (!gtorch_shape_check (call->op->name, matrix, 2, GTORCH_DTYPE_INT64, error))
    return FALSE;
  if (MAX (matrix[0], matrix[1]) > G_MAXINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("a matrix of shape %s is too large"),
                         gtorch_shape_str (matrix, 2));
      return FALSE;
    }
  for (row = 0; row < matrix[0]; row++)
    {
      triangle_row (call, row, &begin, &end);
      shape[1] += MAX (end - begin, 0);
    }
  return gtorch_shape_check (call->op->name, shape, 2, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, 2, error);
}

gboolean
gtorch_cpu_triangle_indices (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 *rows = gtorch_impl_data (output), *columns = rows + output->shape[1];
  gint64 row, column, end;

  for (row = 0; row < call->attrs[0].i; row++)
    for (triangle_row (call, row, &column, &end); column < end; column++)
      {
        *rows++ = row;
        *columns++ = column;
      }
  return TRUE;
}
