/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"

static gboolean
dim_before (const gint64 *a, const gint64 *b, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    {
      gint64 x = ABS (a[i]), y = ABS (b[i]);

      if (x != y && x != 0 && y != 0)
        return x < y;
    }
  return FALSE;
}

void
gtorch_iter_init_raw (GTorchIter *iter, char *const *data, const gint64 *const *strides,
                      const gsize *sizes, guint n_operands, const gint64 *shape, guint n_dims)
{
  guint i, j, k, n = 0;

  iter->n_operands = n_operands;
  iter->any_order = FALSE;
  iter->numel = 1;
  for (k = 0; k < n_operands; k++)
    iter->data[k] = data[k];

  for (i = n_dims; i-- > 0;)
    {
      gint64 step[GTORCH_ITER_MAX_OPERANDS];

      iter->numel *= shape[i];
      if (shape[i] == 1)
        continue;
      for (k = 0; k < n_operands; k++)
        step[k] = strides[k][i] * (gint64) sizes[k];
      for (j = n; j > 0 && dim_before (step, iter->strides[j - 1], n_operands); j--)
        {
          memcpy (iter->strides[j], iter->strides[j - 1], n_operands * sizeof (gint64));
          iter->shape[j] = iter->shape[j - 1];
        }
      memcpy (iter->strides[j], step, n_operands * sizeof (gint64));
      iter->shape[j] = shape[i];
      n++;
    }

  /* merge adjacent dimensions */
  for (i = 1, j = 0; i < n; i++)
    {
      gboolean merge = TRUE;

      for (k = 0; k < n_operands && merge; k++)
        merge = iter->strides[i][k] == iter->strides[j][k] * iter->shape[j];
      if (merge)
        iter->shape[j] *= iter->shape[i];
      else if (++j != i)
        {
          memcpy (iter->strides[j], iter->strides[i], n_operands * sizeof (gint64));
          iter->shape[j] = iter->shape[i];
        }
    }
  iter->n_dims = n == 0 ? 1 : j + 1;
  if (n == 0)
    {
      iter->shape[0] = iter->numel;
      memset (iter->strides[0], 0, n_operands * sizeof (gint64));
    }
}

void
gtorch_iter_init (GTorchIter *iter, GTorchImpl *const *operands, guint n_operands,
                  const gint64 *shape, guint n_dims)
{
  gint64 strides[GTORCH_ITER_MAX_OPERANDS][GTORCH_MAX_DIMS];
  const gint64 *rows[GTORCH_ITER_MAX_OPERANDS];
  char *data[GTORCH_ITER_MAX_OPERANDS];
  gsize sizes[GTORCH_ITER_MAX_OPERANDS];
  guint i, k;

  for (k = 0; k < n_operands; k++)
    {
      const GTorchImpl *operand = operands[k];
      guint lead = n_dims - operand->n_dims;

      for (i = 0; i < n_dims; i++)
        strides[k][i] = i < lead || operand->shape[i - lead] == 1 ? 0 : operand->strides[i - lead];
      rows[k] = strides[k];
      data[k] = gtorch_impl_data (operand);
      sizes[k] = gtorch_dtype_size (operand->dtype);
    }
  gtorch_iter_init_raw (iter, data, rows, sizes, n_operands, shape, n_dims);
}

#define SHORT 16  /* elements of an innermost dimension that calls are too expensive for */
#define BLOCK 256 /* of its lines are processed together, column by column */

/* Processes complete innermost lines column by column and returns how many. There are at most n elements. */
static gint64
run_columns (const GTorchIter *iter, char *const *data, gint64 n_lines, gint64 n,
             GTorchIterFunc func, gpointer user_data)
{
  char *column[GTORCH_ITER_MAX_OPERANDS];
  gint64 j;
  guint k;

  n_lines = MIN (MIN (n_lines, BLOCK), n / iter->shape[0]);
  if (n_lines <= iter->shape[0])
    return 0;
  for (j = 0; j < iter->shape[0]; j++)
    {
      for (k = 0; k < iter->n_operands; k++)
        column[k] = data[k] + j * iter->strides[0][k];
      func (column, iter->strides[1], n_lines, user_data);
    }
  return n_lines;
}

void
gtorch_iter_range (const GTorchIter *iter, gint64 begin, gint64 end, GTorchIterFunc func,
                   gpointer user_data)
{
  gint64 index[GTORCH_MAX_DIMS];
  char *data[GTORCH_ITER_MAX_OPERANDS];
  const gboolean in_columns = iter->any_order && iter->n_dims > 1 && iter->shape[0] < SHORT;
  gint64 rest = begin;
  guint i, k;

  if (begin >= end)
    return;
  if (begin == 0 && end <= iter->shape[0])
    {
      func (iter->data, iter->strides[0], end, user_data);
      return;
    }
  for (k = 0; k < iter->n_operands; k++)
    data[k] = iter->data[k];
  for (i = 0; i < iter->n_dims; i++)
    {
      index[i] = rest % iter->shape[i];
      rest /= iter->shape[i];
      for (k = 0; k < iter->n_operands; k++)
        data[k] += index[i] * iter->strides[i][k];
    }

  for (;;)
    {
      gint64 lines = 0;

      if (in_columns && index[0] == 0)
        lines = run_columns (iter, data, iter->shape[1] - index[1], end - begin, func, user_data);
      if (lines > 0)
        begin += lines * iter->shape[0];
      else
        {
          gint64 n = MIN (iter->shape[0] - index[0], end - begin);

          func (data, iter->strides[0], n, user_data);
          begin += n;
          for (k = 0; k < iter->n_operands; k++)
            data[k] -= index[0] * iter->strides[0][k];
          index[0] = 0;
          lines = 1;
        }
      if (begin >= end)
        return;
      for (i = 1; i < iter->n_dims; i++, lines = 1)
        {
          for (k = 0; k < iter->n_operands; k++)
            data[k] += lines * iter->strides[i][k];
          if ((index[i] += lines) < iter->shape[i])
            break;
          for (k = 0; k < iter->n_operands; k++)
            data[k] -= iter->shape[i] * iter->strides[i][k];
          index[i] = 0;
        }
    }
}

typedef struct
{
  const GTorchIter *iter;
  GTorchIterFunc func;
  gpointer user_data;
} Run;

static void
run_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Run *run = user_data;

  gtorch_iter_range (run->iter, begin, end, run->func, run->user_data);
}

void
gtorch_iter_run (const GTorchIter *iter, gint64 grain, GTorchIterFunc func, gpointer user_data)
{
  if (iter->numel < 2 * grain)
    gtorch_iter_range (iter, 0, iter->numel, func, user_data);
  else
    {
      Run run = { iter, func, user_data };

      gtorch_parallel_for (iter->numel, grain, run_part, &run);
    }
}
