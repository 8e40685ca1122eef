/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients of views: a tensor of zeros of the input's shape, in which the gradient is written to the same
 * view. */

#include "config.h"

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_shape_view_backward (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *size = &call->attrs[0];

  return gtorch_call_set_output (call, 0, call->inputs[0]->dtype, size->list.data, size->list.n,
                                 error);
}

gboolean
gtorch_unfold_add_windows (GTorchOpCall *call, GTorchQueue *queue, GTorchImpl *view, GError **error)
{
  GTorchImpl *source = call->inputs[0];
  const guint last = view->n_dims - 1;
  gint64 i;

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
        .in_place = TRUE,
        .device = call->device,
        .compute = to->dtype,
      };

      if (!gtorch_call_run (&add, queue, error))
        return FALSE;
    }
  return TRUE;
}
