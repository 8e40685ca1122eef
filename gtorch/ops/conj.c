/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-ops-private.h"

/* A real tensor is its own conjugate, so the result is a view of it. */
gboolean
gtorch_shape_conj (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  if (gtorch_dtype_kind (self->dtype) != GTORCH_KIND_COMPLEX)
    {
      call->outputs[0] = gtorch_impl_alias (self);
      call->is_view = TRUE;
      return TRUE;
    }
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}
