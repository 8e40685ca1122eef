/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients of views: a tensor of zeros of the input's shape, in which the gradient is written to the same
 * view. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_shape_view_backward (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *size = &call->attrs[0];

  return gtorch_call_set_output (call, 0, call->inputs[0]->dtype, size->list.data, size->list.n,
                                 error);
}

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

/* Windows may overlap, so the gradient is added for one position within all windows at a time. */
gboolean
gtorch_cpu_unfold_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_autoptr (GTorchImpl) view =
      view_of_output (call, GTORCH_OP_UNFOLD, gtorch_shape_unfold, call->attrs + 1, error);
  GTorchImpl *source = call->inputs[0];
  guint last;
  gint64 i;

  memset (gtorch_impl_data (call->outputs[0]), 0, gtorch_impl_n_bytes (call->outputs[0]));
  if (view == NULL)
    return FALSE;
  last = view->n_dims - 1;
  for (i = 0; i < view->shape[last]; i++)
    {
      g_autoptr (GTorchImpl) to =
          gtorch_impl_new_view (view, view->offset + i * view->strides[last], view->shape,
                                view->strides, last);
      g_autoptr (GTorchImpl) from =
          gtorch_impl_new_view (source, source->offset + i * source->strides[last], source->shape,
                                source->strides, last);
      GTorchImpl *inputs[] = { to, from };
      const GTorchAttr attrs[] = { { .d = 1.0 } };
      GTorchOpCall add = {
        .op = &gtorch_ops[GTORCH_OP_ADD],
        .inputs = inputs,
        .n_inputs = 2,
        .attrs = attrs,
        .outputs = { to },
        .n_outputs = 1,
        .compute = to->dtype,
      };

      if (!gtorch_cpu_pointwise (&add, NULL, error))
        return FALSE;
    }
  return TRUE;
}
