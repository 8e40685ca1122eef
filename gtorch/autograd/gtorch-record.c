/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-autograd-private.h"

void
gtorch_autograd_free (GTorchImpl *impl)
{
}

gboolean
gtorch_autograd_wanted (GTorchImpl *const *inputs, guint n_inputs)
{
  return FALSE;
}

gboolean
gtorch_autograd_check_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                                GError **error)
{
  return TRUE;
}

gboolean
gtorch_autograd_record (GTorchOpCall *call, GError **error)
{
  return TRUE;
}
