/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gathering and scattering by indices within images: the second derivative of max_pool2d, and its
 * gradient. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-ops-private.h"

static gboolean
check (GTorchOpCall *call, const gint64 *big, guint n_dims, GError **error)
{
  const GTorchImpl *indices = call->inputs[1];

  call->compute = call->inputs[0]->dtype;
  if (n_dims < 3 || n_dims != indices->n_dims
      || memcmp (big, indices->shape, (n_dims - 2) * sizeof (gint64)) != 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("indices of shape %s do not belong to images of shape %s"),
                         gtorch_impl_shape_str (indices), gtorch_shape_str (big, n_dims));
      return FALSE;
    }
  return gtorch_call_check_dtype (call, call->compute, error);
}

gboolean
gtorch_shape_max_pool2d_place (GTorchOpCall *call, GError **error)
{
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;

  if (!check (call, shape, n_dims, error)
      || !gtorch_shape_check (call->op->name, shape, n_dims, call->compute, error))
    return FALSE;
  if (!gtorch_impl_same_shape (call->inputs[0], call->inputs[1]))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("%s elements and %s indices: the shapes must be equal"),
                         gtorch_impl_shape_str (call->inputs[0]),
                         gtorch_impl_shape_str (call->inputs[1]));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, call->compute, shape, n_dims, error);
}

gboolean
gtorch_shape_max_pool2d_take (GTorchOpCall *call, GError **error)
{
  return check (call, call->inputs[0]->shape, call->inputs[0]->n_dims, error)
         && gtorch_call_set_output (call, 0, call->compute, call->inputs[1]->shape,
                                    call->inputs[1]->n_dims, error);
}
