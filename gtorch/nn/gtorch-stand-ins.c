/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-stand-ins-private.h"

__thread GHashTable *gtorch_stand_ins;

GHashTable *
gtorch_stand_ins_set (GHashTable *stand_ins)
{
  GHashTable *former = gtorch_stand_ins;

  gtorch_stand_ins = stand_ins;
  return former;
}
