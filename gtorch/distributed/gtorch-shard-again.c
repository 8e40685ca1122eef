/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which modules are called in a thread, and have whole parameters meanwhile. The second call of a checkpoint
 * within such calls finds their parameters whole again: they are gathered for it, and the backward pass that
 * makes it keeps them, as it needs them next. */

#include "config.h"

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-surroundings-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "distributed/gtorch-module-shards-private.h"

/* Of GTorchModuleShards, the outermost first. No __thread variable, since their memory is scarce. */
static GPrivate these;

void
gtorch_shards_push (GTorchModuleShards *self)
{
  GPtrArray *called = g_private_get (&these);

  if (called == NULL)
    {
      called = g_ptr_array_new_with_free_func (g_object_unref);
      g_private_set (&these, called);
    }
  g_ptr_array_add (called, g_object_ref (self));
}

void
gtorch_shards_pop (GTorchModuleShards *self)
{
  GPtrArray *called = g_private_get (&these);
  guint i;

  if (called == NULL)
    return; /* the call began in another thread */
  for (i = called->len; i-- > 0;)
    if (called->pdata[i] == self)
      {
        g_ptr_array_remove_index (called, i);
        break;
      }
  if (called->len > 0)
    return;
  g_private_set (&these, NULL);
  g_ptr_array_unref (called);
}

static void
end_pass (gpointer data)
{
  g_autoptr (GTorchModuleShards) self = data;

  self->is_kept = FALSE;
  if (!self->reshard_after_backward || self->depth > 0 || self->is_open)
    return;
  gtorch_shards_drop (self);
  g_clear_object (&self->piece);
}

gboolean
gtorch_shards_keep (GTorchModuleShards *self)
{
  GTorchPass *pass = gtorch_engine_get_pass ();

  if (pass == NULL || self->fulls == NULL
      || !gtorch_tensor_get_requires_grad (self->fulls->pdata[0]))
    return FALSE;
  if (!self->is_kept)
    gtorch_pass_at_end (pass, end_pass, g_object_ref (self));
  self->is_kept = TRUE;
  return TRUE;
}

/* --- for checkpoints --- */

static gpointer
take (void)
{
  const GPtrArray *called = g_private_get (&these);
  GPtrArray *taken;
  guint i;

  if (called == NULL)
    return NULL;
  taken = g_ptr_array_new_full (called->len, g_object_unref);
  for (i = 0; i < called->len; i++)
    g_ptr_array_add (taken, g_object_ref (called->pdata[i]));
  return taken;
}

static void
drop (gpointer taken)
{
  g_ptr_array_unref (taken);
}

/* Ends the first n. */
static void
end_some (GPtrArray *taken, guint n)
{
  while (n-- > 0)
    gtorch_shards_end_again (taken->pdata[n]);
}

static gboolean
enter (gpointer taken, gpointer *former, GError **error)
{
  GPtrArray *called = taken;
  guint i;

  for (i = 0; i < called->len; i++)
    if (!gtorch_shards_begin_again (called->pdata[i], error))
      {
        end_some (called, i);
        return FALSE;
      }
  return TRUE;
}

static void
leave (gpointer taken, gpointer former)
{
  end_some (taken, ((GPtrArray *) taken)->len);
}

static const GTorchSurroundingsClass surroundings = { take, drop, enter, leave };

static void __attribute__ ((constructor)) add_surroundings (void)
{
  gtorch_surroundings_add (&surroundings);
}
