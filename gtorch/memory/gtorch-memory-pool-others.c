/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The memory that the graphs of a pool have on other devices, whose streams took part in their captures: a
 * pool on each, which the first pool owns. */

#include "config.h"

#include "memory/gtorch-memory-pool-private.h"

#include "memory/gtorch-memory-source.h"

/* Called with the lock held. */
static GTorchPool *
find_other (const GTorchPool *self, const GTorchDevice *device)
{
  guint i;

  for (i = 0; self->others != NULL && i < self->others->len; i++)
    if (((GTorchPool *) self->others->pdata[i])->device == device)
      return self->others->pdata[i];
  return NULL;
}

GTorchPool *
gtorch_pool_find_on (GTorchPool *self, const GTorchDevice *device)
{
  GTorchPool *result;

  if (self->device == device)
    return self;
  g_mutex_lock (&self->lock);
  result = find_other (self, device);
  g_mutex_unlock (&self->lock);
  return result;
}

GTorchPool *
gtorch_pool_get_on (GTorchPool *self, GTorchDevice *device)
{
  GTorchPool *result = gtorch_pool_find_on (self, device);
  g_autoptr (GTorchPool) made = NULL;

  if (result != NULL)
    return result;
  /* made without this pool's lock, since a pool is added to the list of all with that list's lock held */
  made = gtorch_pool_new (device);
  made->source = self->source != NULL ? g_object_ref (self->source) : NULL;
  g_mutex_lock (&self->lock);
  result = find_other (self, device);
  if (result == NULL)
    {
      if (self->others == NULL)
        self->others = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_pool_unref);
      made->use_on_oom = g_atomic_int_get (&self->use_on_oom);
      result = g_steal_pointer (&made);
      g_ptr_array_add (self->others, result);
    }
  g_mutex_unlock (&self->lock);
  return result;
}

GPtrArray *
gtorch_pool_dup_others (GTorchPool *self)
{
  GPtrArray *result = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_pool_unref);
  guint i;

  g_mutex_lock (&self->lock);
  for (i = 0; self->others != NULL && i < self->others->len; i++)
    g_ptr_array_add (result, gtorch_pool_ref (self->others->pdata[i]));
  g_mutex_unlock (&self->lock);
  return result;
}
