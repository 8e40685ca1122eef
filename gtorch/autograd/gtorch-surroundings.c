/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "autograd/gtorch-surroundings-private.h"

/* Written while the library is loaded. */
static const GTorchSurroundingsClass *classes[GTORCH_MAX_SURROUNDINGS];
static guint n_classes;

void
gtorch_surroundings_add (const GTorchSurroundingsClass *klass)
{
  g_assert (n_classes < GTORCH_MAX_SURROUNDINGS);
  classes[n_classes++] = klass;
}

void
gtorch_surroundings_take (GTorchSurroundings *self)
{
  guint i;

  for (i = 0; i < n_classes; i++)
    self->taken[i] = classes[i]->take ();
}

void
gtorch_surroundings_clear (GTorchSurroundings *self)
{
  guint i;

  for (i = 0; i < n_classes; i++)
    if (self->taken[i] != NULL)
      classes[i]->drop (g_steal_pointer (&self->taken[i]));
}

/* Leaves the first n kinds. */
static void
leave (const GTorchSurroundings *self, const GTorchFormerSurroundings *former, guint n)
{
  while (n-- > 0)
    if (self->taken[n] != NULL)
      classes[n]->leave (self->taken[n], former->formers[n]);
}

gboolean
gtorch_surroundings_enter (const GTorchSurroundings *self, GTorchFormerSurroundings *former,
                           GError **error)
{
  guint i;

  for (i = 0; i < n_classes; i++)
    {
      former->formers[i] = NULL;
      if (self->taken[i] == NULL || classes[i]->enter (self->taken[i], &former->formers[i], error))
        continue;
      leave (self, former, i);
      return FALSE;
    }
  return TRUE;
}

void
gtorch_surroundings_leave (const GTorchSurroundings *self, const GTorchFormerSurroundings *former)
{
  leave (self, former, n_classes);
}
