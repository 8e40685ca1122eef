/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-op-private.h"

gboolean
gtorch_launch (GTorchOpCall *call, GError **error)
{
  return call->op->cpu (call, error);
}
