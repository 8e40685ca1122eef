/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients of views: a tensor of zeros of the input's shape, in which the gradient is written to the same
 * view. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "ops/gtorch-op-parts-private.h"

/* Returns a view of the output, made by the shape function of the forward operation. */
static GTorchImpl *
view_of_output (GTorchOpCall *call, guint op, gboolean (*shape) (GTorchOpCall *, GError **),
                const GTorchAttr *attrs, GError **error)
{
  GTorchOpCall view = {
    .op = &gtorch_ops[op],
    .inputs = &call->outputs[0],
    .n_inputs = 1,
    .attrs = attrs,
    .n_outputs = 1,
    .device = call->device,
  };

  return shape (&view, error) ? view.outputs[0] : NULL;
}

static gboolean
fill (GTorchOpCall *call, GTorchImpl *view)
{
  GTorchImpl *source = call->inputs[0];

  memset (gtorch_impl_data (call->outputs[0]), 0, gtorch_impl_n_bytes (call->outputs[0]));
  if (view == NULL)
    return FALSE;
  gtorch_cpu_copy (view, source);
  gtorch_impl_unref (view);
  return TRUE;
}

gboolean
gtorch_cpu_select_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill (call, view_of_output (call, GTORCH_OP_SELECT, gtorch_shape_select, call->attrs + 1,
                                     error));
}

gboolean
gtorch_cpu_slice_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill (call,
               view_of_output (call, GTORCH_OP_SLICE, gtorch_shape_slice, call->attrs + 1, error));
}

gboolean
gtorch_cpu_diagonal_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return fill (call, view_of_output (call, GTORCH_OP_DIAGONAL, gtorch_shape_diagonal,
                                     call->attrs + 1, error));
}

gboolean
gtorch_cpu_unfold_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_autoptr (GTorchImpl) view =
      view_of_output (call, GTORCH_OP_UNFOLD, gtorch_shape_unfold, call->attrs + 1, error);

  memset (gtorch_impl_data (call->outputs[0]), 0, gtorch_impl_n_bytes (call->outputs[0]));
  return view != NULL && gtorch_unfold_add_windows (call, queue, view, error);
}

gboolean
gtorch_cpu_strided_view_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *source = call->inputs[0], *output = call->outputs[0];
  const gint64 *stride = call->attrs[1].list.data, *base = call->attrs[3].list.data;
  gint64 offset = call->attrs[2].i, base_offset = call->attrs[4].i;
  gint64 n = MAX (gtorch_strides_extent (offset, source->shape, stride, source->n_dims),
                  gtorch_strides_extent (base_offset, output->shape, base, output->n_dims));
  gint64 size = gtorch_dtype_size (output->dtype), i, at, rest;
  g_autoptr (GTorchImpl) row = gtorch_impl_new (call->device, output->dtype, &n, 1, error);
  g_autoptr (GTorchImpl) plain = gtorch_cpu_contiguous (source, output->dtype, error);
  g_autoptr (GTorchImpl) shown = NULL;
  GTorchAdd add = gtorch_cpu_add (output->dtype);
  guint d;

  if (row == NULL || plain == NULL)
    return FALSE;
  memset (gtorch_impl_data (row), 0, gtorch_impl_n_bytes (row));
  if (!gtorch_strides_overlap (source->shape, stride, source->n_dims))
    {
      g_autoptr (GTorchImpl) place =
          gtorch_impl_new_view (row, offset, source->shape, stride, source->n_dims);

      gtorch_cpu_copy (place, plain);
    }
  else
    for (i = 0; i < plain->numel; i++)
      {
        for (d = plain->n_dims, at = offset, rest = i; d-- > 0; rest /= plain->shape[d])
          at += rest % plain->shape[d] * stride[d];
        add ((char *) gtorch_impl_data (row) + at * size, 0,
             (char *) gtorch_impl_data (plain) + i * size, 0, 1);
      }
  shown = gtorch_impl_new_view (row, base_offset, output->shape, base, output->n_dims);
  gtorch_cpu_copy (output, shown);
  return TRUE;
}
