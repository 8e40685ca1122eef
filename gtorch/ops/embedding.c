/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

static gboolean
check (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *indices = call->inputs[1];

  call->compute = call->inputs[0]->dtype;
  if (gtorch_dtype_kind (indices->dtype) == GTORCH_KIND_INT)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("indices must be integers, they are %s"),
                     gtorch_dtype_get_name (indices->dtype));
  return FALSE;
}

gboolean
gtorch_shape_embedding (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *weight = call->inputs[0], *indices = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS + 1];

  if (!check (call, error))
    return FALSE;
  if (weight->n_dims != 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the weight must have 2 dimensions, its shape is %s"),
                         gtorch_impl_shape_str (weight));
      return FALSE;
    }
  memcpy (shape, indices->shape, indices->n_dims * sizeof (gint64));
  shape[indices->n_dims] = weight->shape[1];
  return gtorch_shape_check (call->op->name, shape, indices->n_dims + 1, weight->dtype, error)
         && gtorch_call_set_output (call, 0, weight->dtype, shape, indices->n_dims + 1, error);
}

gboolean
gtorch_shape_embedding_backward (GTorchOpCall *call, GError **error)
{
  const gint64 *size = call->attrs[0].list.data;
  const GTorchImpl *upper = call->inputs[0], *indices = call->inputs[1];

  if (!check (call, error))
    return FALSE;
  if (call->attrs[0].list.n != 2 || upper->n_dims != indices->n_dims + 1
      || upper->shape[indices->n_dims] != size[1])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient %s does not belong to a weight of shape %s"),
                         gtorch_impl_shape_str (upper),
                         gtorch_shape_str (size, call->attrs[0].list.n));
      return FALSE;
    }
  return gtorch_shape_check (call->op->name, size, 2, upper->dtype, error)
         && gtorch_call_set_output (call, 0, upper->dtype, size, 2, error);
}

static gboolean
check_index (GTorchOpCall *call, gint64 index, gint64 rows, GError **error)
{
  if (G_LIKELY (index >= 0 && index < rows))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                     _ ("index %" G_GINT64_FORMAT " is out of range for %" G_GINT64_FORMAT " rows"),
                     index, rows);
  return FALSE;
}

gboolean
gtorch_cpu_embedding (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 rows = call->inputs[0]->shape[0], i;
  gsize row_size = call->inputs[0]->shape[1] * gtorch_dtype_size (output->dtype);
  g_autoptr (GTorchImpl) weight = gtorch_cpu_pack (call->inputs[0], output->dtype, error);
  g_autoptr (GTorchImpl) indices =
      weight != NULL ? gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error) : NULL;
  const gint64 *index;

  if (indices == NULL)
    return FALSE;
  index = gtorch_impl_data (indices);
  for (i = 0; i < indices->numel; i++)
    {
      if (!check_index (call, index[i], rows, error))
        return FALSE;
      if (row_size > 0)
        memcpy ((char *) gtorch_impl_data (output) + i * row_size,
                (const char *) gtorch_impl_data (weight) + index[i] * row_size, row_size);
    }
  return TRUE;
}

gboolean
gtorch_cpu_embedding_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = output->dtype;
  gint64 rows = output->shape[0], columns = output->shape[1], i;
  gint64 row_size = columns * (gint64) gtorch_dtype_size (dtype);
  g_autoptr (GTorchImpl) upper = gtorch_cpu_pack (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) indices =
      upper != NULL ? gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) sum =
      indices != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  GTorchBlocks blocks = { .indexed = sum,
                          .n_pre = 1,
                          .inner = columns,
                          .extent = MAX (rows - 1, 0) * row_size,
                          .unit = row_size,
                          .n_inner_dims = 1,
                          .inner_shape = { columns },
                          .inner_strides = { 1 },
                          .size = gtorch_dtype_size (dtype),
                          .inner_contiguous = TRUE };

  if (sum == NULL)
    return FALSE;
  blocks.offsets = gtorch_impl_data (indices);
  blocks.n_index = indices->numel;
  for (i = 0; i < blocks.n_index; i++)
    {
      const gint64 index = blocks.offsets[i];

      if (!check_index (call, index, rows, error))
        return FALSE;
      blocks.offsets[i] = index == call->attrs[1].i ? -1 : index * row_size;
    }
  if (sum->numel > 0)
    memset (gtorch_impl_data (sum), 0, gtorch_impl_n_bytes (sum));
  if (!gtorch_blocks_run (&blocks, gtorch_impl_data (upper), GTORCH_BLOCKS_ADD, NULL, error))
    return FALSE;
  gtorch_cpu_unpack (sum, output);
  return TRUE;
}
