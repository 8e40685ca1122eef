/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The computations of a gradient scaler, on the lists of gradients of optimizers. */

#include "config.h"

#include "optim/gtorch-grad-scaler-private.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "tensor/gtorch-impl-overlap-private.h"

GTorchImpl *
gtorch_amp_unscale (GTorchImpl *const *grads, guint n_grads, GTorchImpl *scale, GError **error)
{
  g_autoptr (GTorchImpl) found = NULL;
  guint i, step;

  for (i = 0; i < n_grads; i++)
    if (grads[i]->dtype == GTORCH_DTYPE_FLOAT16)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                     _ ("unscale: a gradient of shape %s is of float16, which has no room for "
                        "unscaled gradients: keep parameters in float32"),
                     gtorch_impl_shape_str (grads[i]));
        return NULL;
      }
  found = gtorch_op_full (NULL, 0, 0, GTORCH_DTYPE_FLOAT32, scale->storage->device, error);
  if (found == NULL)
    return NULL;
  step = gtorch_impl_are_apart (grads, n_grads) ? n_grads : 1;
  for (i = 0; i < n_grads; i += step)
    if (!gtorch_op_amp_unscale_inplace (found, scale, grads + i, step, error))
      return NULL;
  return g_steal_pointer (&found);
}
