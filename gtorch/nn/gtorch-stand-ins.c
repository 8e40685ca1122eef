/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-stand-ins-private.h"

gint gtorch_n_stand_ins;
static GPrivate current; /* of the thread, not owned; __thread memory is scarce */

GTorchTensor *
gtorch_stand_in_find (GTorchTensor *tensor)
{
  GHashTable *stand_ins = g_private_get (&current);
  gpointer other;

  if (stand_ins == NULL || tensor == NULL)
    return tensor;
  other = g_hash_table_lookup (stand_ins, tensor);
  return other != NULL ? (GTorchTensor *) other : tensor;
}

GHashTable *
gtorch_stand_ins_set (GHashTable *stand_ins)
{
  GHashTable *former = g_private_get (&current);

  g_private_set (&current, stand_ins);
  g_atomic_int_add (&gtorch_n_stand_ins, (stand_ins != NULL) - (former != NULL));
  return former;
}
