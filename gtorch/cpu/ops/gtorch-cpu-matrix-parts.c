/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Triangles, diagonals and one-hot rows. */

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"

typedef struct
{
  char *data; /* contiguous */
  gint64 rows, columns, diagonal;
  gsize size;
  gboolean lower;
} Triangle;

static void
clear_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const Triangle *t = user_data;
  gint64 i;

  for (i = begin; i < end; i++)
    {
      gint64 row = i % t->rows;
      /* `at` is the first column right of the diagonal (lower), or the diagonal itself. */
      gint64 at = CLAMP (t->diagonal, -t->rows - 1, t->columns + 1) + row + (t->lower ? 1 : 0);
      char *line = t->data + (gsize) (i * t->columns) * t->size;

      at = CLAMP (at, 0, t->columns);
      if (t->lower)
        memset (line + (gsize) at * t->size, 0, (gsize) (t->columns - at) * t->size);
      else
        memset (line, 0, (gsize) at * t->size);
    }
}

gboolean
gtorch_cpu_triangle (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) plain = NULL;
  guint n = output->n_dims;
  Triangle triangle = {
    .rows = output->shape[n - 2],
    .columns = output->shape[n - 1],
    .diagonal = call->attrs[0].i,
    .size = gtorch_dtype_size (output->dtype),
    .lower = call->op->id == GTORCH_OP_TRIL,
  };

  if (output->numel == 0)
    return TRUE;
  plain = output->is_contiguous
              ? gtorch_impl_ref (output)
              : gtorch_impl_new (call->device, output->dtype, output->shape, n, error);
  if (plain == NULL)
    return FALSE;
  if (plain != output || !call->in_place)
    gtorch_cpu_copy (plain, call->inputs[0]);
  triangle.data = gtorch_impl_data (plain);
  gtorch_parallel_for (output->numel / triangle.columns,
                       MAX (GTORCH_CPU_GRAIN / triangle.columns, 1), clear_rows, &triangle);
  if (plain != output)
    gtorch_cpu_copy (output, plain);
  return TRUE;
}

gboolean
gtorch_cpu_diag_embed (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  GTorchOpCall diagonal = {
    .op = &gtorch_ops[GTORCH_OP_DIAGONAL],
    .inputs = &output,
    .n_inputs = 1,
    .attrs = call->attrs,
    .n_outputs = 1,
    .device = call->device,
  };

  memset (gtorch_impl_data (output), 0, gtorch_impl_n_bytes (output));
  if (!gtorch_shape_diagonal (&diagonal, error))
    return FALSE;
  gtorch_cpu_copy (diagonal.outputs[0], call->inputs[0]);
  gtorch_impl_unref (diagonal.outputs[0]);
  return TRUE;
}

/* --- one_hot --- */

gboolean
gtorch_cpu_one_hot (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 n = output->shape[output->n_dims - 1], i;
  g_autoptr (GTorchImpl) index =
      gtorch_cpu_indices (call, call->inputs[0], n, output->n_dims - 1, error);
  gint64 *data = gtorch_impl_data (output);

  if (index == NULL)
    return FALSE;
  memset (data, 0, gtorch_impl_n_bytes (output));
  for (i = 0; i < index->numel; i++)
    data[i * n + ((gint64 *) gtorch_impl_data (index))[i]] = 1;
  return TRUE;
}
