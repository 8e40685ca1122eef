/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calling the function that a program has given to a step. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "optim/gtorch-optimizer-private.h"

GTorchTensor *
gtorch_optimizer_call_closure (GTorchOptimizer *self, GTorchOptimizerClosure closure,
                               gpointer user_data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  GError *failure = NULL;
  GTorchTensor *loss = closure (user_data, &failure);

  if (loss != NULL && failure == NULL
      && gtorch_callback_check ("step", N_ ("the closure"), &loss, GTORCH_TYPE_TENSOR, &failure))
    return loss;
  g_clear_object (&loss);
  if (failure != NULL)
    g_propagate_error (error, failure);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("step: the closure for %s failed without saying why"),
                 G_OBJECT_TYPE_NAME (self));
  return NULL;
}
