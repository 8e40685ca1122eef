/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Filling by a mask, and the positions of elements that are not zero. */

#include "config.h"

#include <complex.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"

typedef struct
{
  char value[16];
  gsize size;
} Fill;

#define FILL(T)                                                                        \
  {                                                                                    \
    T value;                                                                           \
                                                                                       \
    memcpy (&value, fill->value, sizeof (T));                                          \
    if (strides[0] == sizeof (T) && strides[1] == 1 && strides[2] == sizeof (T))       \
      {                                                                                \
        T *o = (T *) data[0];                                                          \
        const guint8 *m = (const guint8 *) data[1];                                    \
        const T *a = (const T *) data[2];                                              \
        _Pragma ("omp simd") for (i = 0; i < n; i++) o[i] = m[i] ? value : a[i];       \
      }                                                                                \
    else                                                                               \
      for (i = 0; i < n; i++)                                                          \
        *(T *) (data[0] + i * strides[0]) =                                            \
            data[1][i * strides[1]] ? value : *(const T *) (data[2] + i * strides[2]); \
  }

static void
fill_masked (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Fill *fill = user_data;
  gint64 i;

  switch (fill->size)
    {
    case 1:
      FILL (guint8)
      break;
    case 2:
      FILL (guint16)
      break;
    case 4:
      FILL (guint32)
      break;
    case 8:
      FILL (guint64)
      break;
    default:
      FILL (double _Complex)
    }
}

gboolean
gtorch_cpu_masked_fill (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0], *value = call->inputs[2];
  GTorchImpl *operands[] = { output, call->inputs[1], call->inputs[0] };
  Fill fill = { .size = gtorch_dtype_size (output->dtype) };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  gtorch_cpu_cast (output->dtype, value->dtype) (fill.value, 0, gtorch_impl_data (value), 0, 1);
  gtorch_iter_init (&iter, operands, 3, output->shape, output->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, fill_masked, &fill);
  return TRUE;
}

/* --- nonzero --- */

/* Counts the elements that are not zero. */
gboolean
gtorch_cpu_query_nonzero (GTorchOpCall *call, gint64 *answers, GError **error)
{
  g_autoptr (GTorchImpl) flags = gtorch_call_read (call, 0, GTORCH_DTYPE_BOOL, error);
  const guint8 *data;
  gint64 i, count = 0;

  if (flags == NULL)
    return FALSE;
  data = gtorch_impl_data (flags);
  for (i = 0; i < flags->numel; i++)
    count += data[i] != 0;
  *answers = count;
  return TRUE;
}

gboolean
gtorch_cpu_nonzero (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) flags = gtorch_cpu_contiguous (self, GTORCH_DTYPE_BOOL, error);
  gint64 *out = gtorch_impl_data (call->outputs[0]);
  gint64 *end = out + call->outputs[0]->numel;
  const guint8 *data;
  gint64 i, rest;
  guint d;

  if (flags == NULL)
    return FALSE;
  data = gtorch_impl_data (flags);
  for (i = 0; i < flags->numel && out < end; i++)
    if (data[i])
      {
        for (d = self->n_dims, rest = i; d-- > 0; rest /= self->shape[d])
          out[d] = rest % self->shape[d];
        out += self->n_dims;
      }
  /* another thread has written to the input in between, so there are fewer than the shape function counted */
  if (out < end)
    memset (out, 0, (end - out) * sizeof (gint64));
  return TRUE;
}
