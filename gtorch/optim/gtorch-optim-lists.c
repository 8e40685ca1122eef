/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Steps over many parameters in one operation. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "tensor/gtorch-impl-overlap-private.h"
#include "tensor/gtorch-tensor-private.h"

gboolean
gtorch_optim_run (const GTorchOptimStep *step, GTorchImpl *const *operands, guint kinds,
                  GTorchOptimFunc func, gpointer data, GError **error)
{
  g_autofree GTorchImpl **one = NULL;
  guint i, kind;

  if (gtorch_impl_are_apart (operands, step->n))
    return func (step, operands, step->n, kinds, data, error);
  one = g_new (GTorchImpl *, kinds);
  for (i = 0; i < step->n; i++)
    {
      for (kind = 0; kind < kinds; kind++)
        one[kind] = operands[kind * step->n + i];
      if (!func (step, one, 1, kinds, data, error))
        return FALSE;
    }
  return TRUE;
}

GTorchTensor *
gtorch_optim_ensure_state (GTorchOptimizer *self, GTorchTensor *param, const gchar *name,
                           gboolean is_number, gdouble value, GError **error)
{
  GTorchTensor *state = gtorch_optimizer_get_state (self, param, name);
  g_autoptr (GTorchTensor) made = NULL;

  if (state != NULL)
    return state;
  made = gtorch_optim_new_filled (is_number ? NULL : param, gtorch_tensor_get_device (param), value,
                                  error);
  if (made == NULL)
    return NULL;
  gtorch_optimizer_set_state (self, param, name, made);
  return gtorch_optimizer_get_state (self, param, name);
}
