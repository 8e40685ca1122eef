/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

static gboolean
check_index (GTorchOpCall *call, gint64 index, gint64 rows, GError **error)
{
  if (G_LIKELY (index >= 0 && index < rows))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                     _ ("index %" PRId64 " is out of range for %" PRId64 " rows"), index, rows);
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
