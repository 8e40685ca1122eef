/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

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

gboolean
gtorch_cpu_arange (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  Integers p = { output, gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_INT64),
                 call->attrs[0].number.i, call->attrs[2].number.i };

  if (!gtorch_call_has_ints (call, 3))
    progression (output, gtorch_progression_number (call, 0), gtorch_progression_number (call, 2));
  else if (output->numel > 0)
    gtorch_parallel_for (output->numel, GTORCH_CPU_GRAIN, integers_part, &p);
  return TRUE;
}

gboolean
gtorch_cpu_linspace (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gdouble start = gtorch_progression_number (call, 0), end = gtorch_progression_number (call, 1);

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
gtorch_cpu_logspace (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gdouble start = gtorch_progression_number (call, 0), end = gtorch_progression_number (call, 1);
  gdouble base = call->attrs[3].d;
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

gboolean
gtorch_cpu_triangle_indices (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 *rows = gtorch_impl_data (output), *columns = rows + output->shape[1];
  gint64 row, column, end;

  for (row = 0; row < call->attrs[0].i; row++)
    for (gtorch_triangle_row (call, row, &column, &end); column < end; column++)
      {
        *rows++ = row;
        *columns++ = column;
      }
  return TRUE;
}
