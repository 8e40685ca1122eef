/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradient of a product: for each element the product of all others, which is right for zeros, too. */

#include "config.h"

#include "gtorch-ops-private.h"

gboolean
gtorch_shape_prod_others (GTorchOpCall *call, GError **error)
{
  guint64 mask;

  return gtorch_normalize_dims (call->op->name, call->attrs[0].list.data, call->attrs[0].list.n,
                                call->inputs[0]->n_dims, &mask, error)
         && gtorch_shape_same (call, error);
}
