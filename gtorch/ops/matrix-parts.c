/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Triangles, diagonals and one-hot rows. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_shape_triangle (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  if (self->n_dims >= 2)
    return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shape %s has fewer than two dimensions"),
                     gtorch_impl_shape_str (self));
  return FALSE;
}

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
gtorch_shape_diag_embed (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS + 1];
  gint64 offset = call->attrs[0].i, size;
  guint dim1, dim2, i, n = 0;

  if (self->n_dims == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("a dimension is needed"));
      return FALSE;
    }
  if (!gtorch_normalize_dim (call->op->name, call->attrs[1].i, self->n_dims + 1, &dim1, error)
      || !gtorch_normalize_dim (call->op->name, call->attrs[2].i, self->n_dims + 1, &dim2, error))
    return FALSE;
  if (dim1 == dim2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("dim1 and dim2 are both dimension %u"), dim1);
      return FALSE;
    }
  if (offset == G_MININT64
      || __builtin_add_overflow (self->shape[self->n_dims - 1], ABS (offset), &size))
    size = G_MAXINT64; /* refused by gtorch_shape_check () */
  for (i = 0; i <= self->n_dims; i++)
    shape[i] = i == dim1 || i == dim2 ? size : self->shape[n++];
  return gtorch_shape_check (call->op->name, shape, self->n_dims + 1, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, self->n_dims + 1, error);
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

GTorchImpl *
gtorch_op_diag (GTorchImpl *self, gint64 diagonal, GError **error)
{
  g_autoptr (GTorchImpl) view = NULL;

  if (self->n_dims == 1)
    return gtorch_op_diag_embed (self, diagonal, -2, -1, error);
  if (self->n_dims == 2)
    {
      view = gtorch_op_diagonal (self, diagonal, 0, 1, error);
      return view != NULL ? gtorch_op_clone (view, error) : NULL;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("diag: shape %s has not one or two dimensions"), gtorch_impl_shape_str (self));
  return NULL;
}

GTorchImpl *
gtorch_composite_trace (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) diagonal = NULL;

  if (self->n_dims != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("trace: self must have 2 dimensions, its shape is %s"),
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  diagonal = gtorch_op_diagonal (self, 0, 0, 1, error);
  return diagonal != NULL ? gtorch_op_sum (diagonal, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error)
                          : NULL;
}

/* --- one_hot --- */

gboolean
gtorch_shape_one_hot (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS + 1];
  gint64 n = call->attrs[0].i, i;

  if (!gtorch_index_check_dtype (call, 0, error))
    return FALSE;
  if (n == -1 && self->numel > 0 && call->device->type == GTORCH_DEVICE_TYPE_CUDA)
    {
      gint64 bounds[2];

      if (!gtorch_cuda_bounds (call, self, bounds, error))
        return FALSE;
      n = bounds[0];
    }
  else if (n == -1 && self->numel > 0)
    {
      g_autoptr (GTorchImpl) plain = gtorch_cpu_contiguous (self, GTORCH_DTYPE_INT64, error);

      if (plain == NULL)
        return FALSE;
      for (i = 0; i < plain->numel; i++)
        n = MAX (n, ((gint64 *) gtorch_impl_data (plain))[i]);
      n = n < G_MAXINT64 ? n + 1 : n;
    }
  if (n <= 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%" G_GINT64_FORMAT " classes for indices of shape %s are too few"),
                         call->attrs[0].i, gtorch_impl_shape_str (self));
      return FALSE;
    }
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[self->n_dims] = n;
  return gtorch_shape_check (call->op->name, shape, self->n_dims + 1, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, self->n_dims + 1, error);
}

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
