/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <complex.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-select.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchCast casts[2];
  gsize size;
} Where;

#define SELECT(T, CONTIGUOUS)                                                   \
  {                                                                             \
    if (strides[0] == sizeof (T) && strides[1] == 1 && strides[2] == sizeof (T) \
        && strides[3] == sizeof (T))                                            \
      {                                                                         \
        CONTIGUOUS;                                                             \
      }                                                                         \
    else                                                                        \
      for (i = 0; i < n; i++)                                                   \
        *(T *) (data[0] + i * strides[0]) =                                     \
            *(const T *) (data[data[1][i * strides[1]] ? 2 : 3]                 \
                          + i * strides[data[1][i * strides[1]] ? 2 : 3]);      \
  }

typedef double _Complex Where16;

#define OF_SIZE(size) \
  GTORCH_ISA_CALL (gtorch_select_##size) (data[0], (const guint8 *) data[1], data[2], data[3], n)

static void
select_same (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Where *where = user_data;
  gint64 i;

  switch (where->size)
    {
    case 1:
      SELECT (guint8, OF_SIZE (1))
      break;
    case 2:
      SELECT (guint16, OF_SIZE (2))
      break;
    case 4:
      SELECT (guint32, OF_SIZE (4))
      break;
    case 8:
      SELECT (guint64, OF_SIZE (8))
      break;
    default:
      SELECT (Where16, for (i = 0; i < n; i++) ((Where16 *) data[0])[i] =
                           ((const Where16 *) data[data[1][i] ? 2 : 3])[i])
    }
}

static void
select_cast (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Where *where = user_data;
  gint64 i;

  for (i = 0; i < n; i++)
    {
      guint k = data[1][i * strides[1]] ? 0 : 1;

      where->casts[k](data[0] + i * strides[0], 0, data[2 + k] + i * strides[2 + k], 0, 1);
    }
}

gboolean
gtorch_cpu_where (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *operands[] = { output, call->inputs[0], call->inputs[1], call->inputs[2] };
  Where where = { { NULL }, gtorch_dtype_size (output->dtype) };
  gboolean same = TRUE;
  GTorchIter iter;
  guint k;

  if (output->numel == 0)
    return TRUE;
  for (k = 0; k < 2; k++)
    {
      where.casts[k] = gtorch_cpu_cast (output->dtype, operands[2 + k]->dtype);
      same &= operands[2 + k]->dtype == output->dtype;
    }
  gtorch_iter_init (&iter, operands, 4, output->shape, output->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, same ? select_same : select_cast, &where);
  return TRUE;
}
