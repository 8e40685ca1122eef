/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Joining and reordering. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "ops/gtorch-op-parts-private.h"

/* A concatenation of several small tensors or one large one of the same dtype, copied as bytes. */
typedef struct
{
  GTorchOpCall *call;
  gint64 row;          /* bytes of the output per outer position */
  const gint64 *parts; /* for each input, its bytes within a row */
} Rows;

#define INTERLEAVE(n)                                                \
  {                                                                  \
    const char *from = gtorch_impl_data (rows->call->inputs[k]);     \
                                                                     \
    for (i = begin; i < end; i++)                                    \
      memcpy (to + i * row, from + i * n, n); /* may be unaligned */ \
  }

/* Copies one input for many outer positions at once if its part of a row is a single element. */
static gboolean
interleave (const Rows *rows, guint k, char *to, gint64 begin, gint64 end)
{
  const gint64 row = rows->row;
  gint64 i;

  switch (rows->parts[k])
    {
    case 1:
      INTERLEAVE (1)
      return TRUE;
    case 2:
      INTERLEAVE (2)
      return TRUE;
    case 4:
      INTERLEAVE (4)
      return TRUE;
    case 8:
      INTERLEAVE (8)
      return TRUE;
    default:
      return FALSE;
    }
}

#define INTERLEAVED_ROWS 512

static void
copy_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const Rows *rows = user_data;
  char *out = gtorch_impl_data (rows->call->outputs[0]);
  gint64 stop, i;
  guint k;

  for (; begin < end; begin = stop)
    {
      char *to = out;

      stop = MIN (begin + (rows->row <= 256 ? INTERLEAVED_ROWS : 1), end);
      for (k = 0; k < rows->call->n_inputs; to += rows->parts[k++])
        {
          const char *from;

          if (rows->parts[k] == 0 || interleave (rows, k, to, begin, stop))
            continue;
          from = gtorch_impl_data (rows->call->inputs[k]);
          for (i = begin; i < stop; i++)
            memcpy (to + i * rows->row, from + i * rows->parts[k], rows->parts[k]);
        }
    }
}

gboolean
gtorch_cpu_cat (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autofree gint64 *parts = gtorch_scratch_new (call->n_inputs, sizeof (gint64), error);
  gint64 size = gtorch_dtype_size (output->dtype), outer = 1, inner = 1, start = 0;
  gboolean plain = TRUE;
  guint dim, i, k;

  if (parts == NULL)
    return FALSE;
  if (output->numel == 0)
    return TRUE;
  gtorch_normalize_dim (call->op->name, call->attrs[0].i, output->n_dims, &dim, NULL);
  for (i = 0; i < dim; i++)
    outer *= output->shape[i];
  for (i = dim + 1; i < output->n_dims; i++)
    inner *= output->shape[i];
  for (k = 0; k < call->n_inputs; k++)
    {
      const GTorchImpl *input = call->inputs[k];

      plain &= input->is_contiguous && input->dtype == output->dtype;
      parts[k] = input->numel == 0 ? 0 : input->shape[dim] * inner * size;
    }
  if (plain && (outer > 1 || output->numel < GTORCH_CPU_GRAIN))
    {
      Rows rows = { call, output->shape[dim] * inner * size, parts };

      gtorch_parallel_for (outer, MAX (GTORCH_CPU_GRAIN * size / rows.row, 1), copy_rows, &rows);
      return TRUE;
    }
  for (k = 0; k < call->n_inputs; k++)
    if (parts[k] != 0)
      {
        GTorchImpl *input = call->inputs[k];
        g_autoptr (GTorchImpl) part =
            gtorch_impl_new_view (output, output->offset + start * output->strides[dim],
                                  input->shape, output->strides, output->n_dims);

        gtorch_cpu_copy (part, input);
        start += input->shape[dim];
      }
  return TRUE;
}

/* --- reordering --- */

gboolean
gtorch_cpu_flip (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_autoptr (GTorchImpl) mirrored = NULL;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  mirrored = gtorch_flip_view (call);
  gtorch_cpu_copy (call->outputs[0], mirrored);
  return TRUE;
}
