/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <complex.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-select.h"
#include "gtorch-ops-private.h"

typedef struct
{
  gsize size;
} Where;

#define BLOCK 256 /* elements for which a single number is repeated */

/* Repeats single numbers, whose stride is 0, so that there is a contiguous operand for each part. */
#define SELECT_PARTS(T, SELECT_PART)                                                          \
  {                                                                                           \
    T numbers[2][BLOCK];                                                                      \
    const char *from[2];                                                                      \
    gint64 begin, count;                                                                      \
    guint k;                                                                                  \
                                                                                              \
    for (k = 0; k < 2; k++)                                                                   \
      for (i = 0; strides[2 + k] == 0 && i < MIN (n, BLOCK); i++)                             \
        numbers[k][i] = *(const T *) data[2 + k];                                             \
    for (begin = 0; begin < n; begin += count)                                                \
      {                                                                                       \
        count = MIN (n - begin, BLOCK);                                                       \
        for (k = 0; k < 2; k++)                                                               \
          from[k] = strides[2 + k] == 0 ? (const char *) numbers[k]                           \
                                        : data[2 + k] + begin * (gint64) sizeof (T);          \
        SELECT_PART (data[0] + begin * (gint64) sizeof (T), (const guint8 *) data[1] + begin, \
                     from[0], from[1], count);                                                \
      }                                                                                       \
  }

#define SELECT(T, SELECT_PART)                                                                \
  {                                                                                           \
    const gint64 size = sizeof (T);                                                           \
                                                                                              \
    if (strides[0] == size && strides[1] == 1 && strides[2] == size && strides[3] == size)    \
      SELECT_PART (data[0], (const guint8 *) data[1], data[2], data[3], n);                   \
    else if (strides[0] == size && strides[1] == 1 && (strides[2] == size || strides[2] == 0) \
             && (strides[3] == size || strides[3] == 0))                                      \
      SELECT_PARTS (T, SELECT_PART)                                                           \
    else                                                                                      \
      for (i = 0; i < n; i++)                                                                 \
        *(T *) (data[0] + i * strides[0]) =                                                   \
            *(const T *) (data[data[1][i * strides[1]] ? 2 : 3]                               \
                          + i * strides[data[1][i * strides[1]] ? 2 : 3]);                    \
  }

typedef double _Complex Where16;

static void
select_16 (gpointer to, const guint8 *which, gconstpointer a, gconstpointer b, gint64 n)
{
  gint64 i;

  for (i = 0; i < n; i++)
    ((Where16 *) to)[i] = ((const Where16 *) (which[i] ? a : b))[i];
}

static void
select_elements (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Where *where = user_data;
  gint64 i;

  switch (where->size)
    {
    case 1:
      SELECT (guint8, GTORCH_ISA_CALL (gtorch_select_1))
      break;
    case 2:
      SELECT (guint16, GTORCH_ISA_CALL (gtorch_select_2))
      break;
    case 4:
      SELECT (guint32, GTORCH_ISA_CALL (gtorch_select_4))
      break;
    case 8:
      SELECT (guint64, GTORCH_ISA_CALL (gtorch_select_8))
      break;
    default:
      SELECT (Where16, select_16)
    }
}

gboolean
gtorch_cpu_where (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *operands[] = { output, call->inputs[0], call->inputs[1], call->inputs[2] };
  g_autoptr (GTorchImpl) one = NULL;
  g_autoptr (GTorchImpl) other = NULL;
  Where where = { gtorch_dtype_size (output->dtype) };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  if (operands[2]->dtype != output->dtype)
    {
      if ((one = gtorch_cpu_pack (operands[2], output->dtype, error)) == NULL)
        return FALSE;
      operands[2] = one;
    }
  if (operands[3]->dtype != output->dtype)
    {
      if ((other = gtorch_cpu_pack (operands[3], output->dtype, error)) == NULL)
        return FALSE;
      operands[3] = other;
    }
  gtorch_iter_init (&iter, operands, 4, output->shape, output->n_dims);
  iter.any_order = TRUE;
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, select_elements, &where);
  return TRUE;
}
