/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-stand-ins-private.h"

#include "autograd/gtorch-surroundings-private.h"

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

/* --- for checkpoints --- */

static gpointer
take (void)
{
  GHashTable *stand_ins = g_private_get (&current);

  return stand_ins != NULL ? g_hash_table_ref (stand_ins) : NULL;
}

static void
drop (gpointer taken)
{
  g_hash_table_unref (taken);
}

static gboolean
enter (gpointer taken, gpointer *former, GError **error)
{
  *former = gtorch_stand_ins_set (taken);
  return TRUE;
}

static void
leave (gpointer taken, gpointer former)
{
  gtorch_stand_ins_set (former);
}

static const GTorchSurroundingsClass surroundings = { take, drop, enter, leave };

static void __attribute__ ((constructor)) add_surroundings (void)
{
  gtorch_surroundings_add (&surroundings);
}
