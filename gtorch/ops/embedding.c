/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <complex.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-index.h"
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
gtorch_cpu_embedding (GTorchOpCall *call, GError **error)
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

#define ADD_ROW(T)              \
  for (c = 0; c < columns; c++) \
    ((T *) to)[c] += ((const T *) from)[c];

gboolean
gtorch_cpu_embedding_backward (GTorchOpCall *call, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = gtorch_dtype_infos[output->dtype].compute;
  gint64 rows = output->shape[0], columns = output->shape[1], i, c;
  gsize row_size = columns * gtorch_dtype_size (dtype);
  g_autoptr (GTorchImpl) upper = gtorch_cpu_pack (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) indices =
      upper != NULL ? gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) sum =
      indices != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  const gint64 *index;

  if (sum == NULL)
    return FALSE;
  index = gtorch_impl_data (indices);
  if (sum->numel > 0)
    memset (gtorch_impl_data (sum), 0, gtorch_impl_n_bytes (sum));
  for (i = 0; i < indices->numel; i++)
    {
      const char *from = (const char *) gtorch_impl_data (upper) + i * row_size;
      char *to = (char *) gtorch_impl_data (sum) + index[i] * row_size;

      if (!check_index (call, index[i], rows, error))
        return FALSE;
      if (index[i] == call->attrs[1].i)
        continue;
      switch (dtype)
        {
        case GTORCH_DTYPE_FLOAT32:
          ADD_ROW (float)
          break;
        case GTORCH_DTYPE_FLOAT64:
          ADD_ROW (double)
          break;
        case GTORCH_DTYPE_COMPLEX64:
          ADD_ROW (float _Complex)
          break;
        case GTORCH_DTYPE_COMPLEX128:
          ADD_ROW (double _Complex)
          break;
        case GTORCH_DTYPE_INT32:
          ADD_ROW (gint32)
          break;
        case GTORCH_DTYPE_INT64:
          ADD_ROW (gint64)
          break;
        default:
          for (c = 0; c < columns; c++)
            to[c] |= from[c];
        }
    }
  gtorch_cpu_unpack (sum, output);
  return TRUE;
}
