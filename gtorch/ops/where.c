/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

gboolean
gtorch_shape_where (GTorchOpCall *call, GError **error)
{
  GTorchImpl *condition = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims, dtype;

  if (condition->dtype != GTORCH_DTYPE_BOOL && condition->dtype != GTORCH_DTYPE_UINT8)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("the condition must be bool, it is %s"),
                         gtorch_dtype_get_name (condition->dtype));
      return FALSE;
    }
  dtype = gtorch_call_common_dtype (call, 1, 2);
  call->compute = dtype;
  return gtorch_call_check_scalar (call, 1, dtype, error)
         && gtorch_call_check_scalar (call, 2, dtype, error)
         && gtorch_broadcast_shapes ("where", call->inputs[1]->shape, call->inputs[1]->n_dims,
                                     call->inputs[2]->shape, call->inputs[2]->n_dims, shape,
                                     &n_dims, error)
         && gtorch_broadcast_shapes ("where", condition->shape, condition->n_dims, shape, n_dims,
                                     shape, &n_dims, error)
         && gtorch_shape_check ("where", shape, n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
}
