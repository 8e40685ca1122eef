/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which parameters are gathered ahead of time, so that the exchange goes on while another module computes. A
 * call of the outermost module is a pass. What was called after a module in the pass before is gathered when
 * it begins; the backward pass goes the other way. All ranks call the same modules, so that they come to the
 * same decisions. What was gathered for nothing is dropped when the pass ends: the parts may change then. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-module-shards-private.h"

typedef struct
{
  guint depth;
  gpointer root; /* who is the outermost; only compared */
  GTorchModuleShards *last;
  GPtrArray *ahead; /* GTorchModuleShards, gathered in this pass */
} Pass;

/* In place of a variable of threads, whose static memory is scarce. */
static GPrivate this_pass;

void
gtorch_shards_order_clear (GTorchModuleShards *self)
{
  g_weak_ref_clear (&self->next);
  g_weak_ref_clear (&self->before);
  g_clear_pointer (&self->ahead[0], g_ptr_array_unref);
  g_clear_pointer (&self->ahead[1], g_ptr_array_unref);
}

/* Begins to gather what has not been gathered yet. */
static gboolean
gather_ahead (GTorchModuleShards *other, GError **error)
{
  Pass *pass = g_private_get (&this_pass);

  if (other->whole != NULL || other->all != NULL || other->depth > 0)
    return TRUE;
  if (!gtorch_shards_start (other, error))
    return FALSE;
  other->is_ahead = TRUE;
  if (pass != NULL)
    g_ptr_array_add (pass->ahead, g_object_ref (other));
  return TRUE;
}

static gboolean
gather_list (const GPtrArray *list, gboolean is_backward, GError **error)
{
  guint i;

  for (i = 0; i < list->len; i++)
    {
      g_autoptr (GTorchModuleShards) other = g_weak_ref_get (list->pdata[i]);

      if (other != NULL && (!is_backward || g_atomic_int_get (&other->n_saved) > 0)
          && !gather_ahead (other, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_shards_enter (GTorchModuleShards *self, GError **error)
{
  g_autoptr (GTorchModuleShards) next = NULL;
  Pass *pass = g_private_get (&this_pass);

  if (pass == NULL)
    {
      pass = g_new0 (Pass, 1);
      g_private_set (&this_pass, pass);
      pass->root = self;
      pass->ahead = g_ptr_array_new_with_free_func (g_object_unref);
    }
  pass->depth++;
  self->is_ahead = FALSE;
  if (self->next_in == pass->root) /* otherwise something else comes: it may be called by itself */
    next = g_weak_ref_get (&self->next);
  if (pass->last != NULL && pass->last != self)
    {
      g_weak_ref_set (&pass->last->next, self);
      pass->last->next_in = pass->root;
    }
  g_weak_ref_set (&self->before, pass->last != self ? pass->last : NULL);
  g_set_object (&pass->last, self);
  if (self->ahead[0] != NULL)
    return gather_list (self->ahead[0], FALSE, error);
  return next == NULL || gather_ahead (next, error);
}

void
gtorch_shards_leave (GTorchModuleShards *self)
{
  Pass *pass = g_private_get (&this_pass);
  guint i;

  if (pass == NULL || --pass->depth > 0)
    return;
  for (i = 0; i < pass->ahead->len; i++)
    {
      GTorchModuleShards *other = pass->ahead->pdata[i];

      if (other->is_ahead)
        gtorch_shards_drop (other);
    }
  g_ptr_array_unref (pass->ahead);
  g_clear_object (&pass->last);
  g_private_set (&this_pass, NULL);
  g_free (pass);
}

gboolean
gtorch_shards_look_back (GTorchModuleShards *self, GError **error)
{
  g_autoptr (GTorchModuleShards) before = NULL;

  if (self->ahead[1] != NULL)
    return gather_list (self->ahead[1], TRUE, error);
  before = g_weak_ref_get (&self->before);
  return before == NULL || g_atomic_int_get (&before->n_saved) == 0 || gather_ahead (before, error);
}

static void
weak_free (gpointer data)
{
  g_weak_ref_clear (data);
  g_free (data);
}

static gboolean
set_ahead (GTorchModuleShards *self, guint which, GTorchModuleShards **others, gsize n,
           GError **error)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (weak_free);
  gsize i;

  for (i = 0; i < n; i++)
    {
      GWeakRef *ref;

      if (!GTORCH_IS_MODULE_SHARDS (others[i]) || others[i] == self)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("module_shards: element %zu of what is gathered ahead of time is not "
                          "another object with parts of parameters"),
                       i);
          return FALSE;
        }
      ref = g_new0 (GWeakRef, 1);
      g_weak_ref_init (ref, others[i]);
      g_ptr_array_add (list, ref);
    }
  g_clear_pointer (&self->ahead[which], g_ptr_array_unref);
  self->ahead[which] = g_steal_pointer (&list);
  return TRUE;
}

/**
 * gtorch_module_shards_set_forward_prefetch:
 * @self: parts of parameters
 * @others: (array length=n_others): what is gathered when a call of the module begins
 * @n_others: the number of @others; 0 for none
 * @error: return location for an error
 *
 * Sets whose parameters are gathered ahead of time in the forward pass, while this module computes. Without a
 * call of this it is what was called next in the forward pass before. What is not called in the same pass is
 * gathered for nothing. All ranks set the same.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if @self is among @others
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_set_forward_prefetch (GTorchModuleShards *self, GTorchModuleShards **others,
                                           gsize n_others, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self) && (others != NULL || n_others == 0), FALSE);
  return set_ahead (self, 0, others, n_others, error);
}

/**
 * gtorch_module_shards_set_backward_prefetch:
 * @self: parts of parameters
 * @others: (array length=n_others): what is gathered when the backward pass comes to the module
 * @n_others: the number of @others; 0 for none
 * @error: return location for an error
 *
 * Sets whose parameters are gathered ahead of time in the backward pass, while the gradients of this module
 * are computed. Without a call of this it is what was called before it. Of @others, those are gathered whose
 * parameters the backward pass needs. All ranks set the same.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if @self is among @others
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_set_backward_prefetch (GTorchModuleShards *self, GTorchModuleShards **others,
                                            gsize n_others, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self) && (others != NULL || n_others == 0), FALSE);
  return set_ahead (self, 1, others, n_others, error);
}
