/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "tensor/gtorch-scope-private.h"
#include "tensor/gtorch-tensor.h"

/**
 * GTorchScope:
 *
 * Releases the tensors that were created in a section of a program, for languages whose garbage collector
 * does not know the memory of a tensor.
 *
 * While a scope is open it remembers every tensor that the thread gets from the library. When it ends,
 * each of them releases its memory as [method@Tensor.release] does, except those that were kept. Tensors
 * that the library itself holds are not affected: parameters, gradients, the states of optimizers and
 * values that a backward pass still needs. Scopes nest; tensors kept by an inner one belong to the outer
 * one.
 *
 * ```c
 * for (guint step = 0; step < n_steps; step++)
 *   {
 *     g_autoptr (GTorchScope) scope = gtorch_scope_new ();
 *
 *     train (model, images, labels);
 *   }
 * ```
 *
 * In JavaScript this is `GTorch.tidy(() => …)`. Tensors that other threads use must be kept.
 *
 * Since: 0.1
 */

struct _GTorchScope
{
  gint ref_count;
  GTorchScope *outer;
  GThread *thread;
  GPtrArray *tensors; /* NULL after the end */
};

G_DEFINE_BOXED_TYPE (GTorchScope, gtorch_scope, gtorch_scope_ref, gtorch_scope_unref)

__thread GTorchScope *gtorch_scope_current;

void
gtorch_scope_add (GTorchTensor *tensor)
{
  g_ptr_array_add (gtorch_scope_current->tensors, g_object_ref (tensor));
}

void
gtorch_scope_exempt (GTorchTensor *tensor)
{
  GTorchScope *scope;
  guint i;

  for (scope = gtorch_scope_current; scope != NULL; scope = scope->outer)
    for (i = scope->tensors != NULL ? scope->tensors->len : 0; i-- > 0;)
      if (scope->tensors->pdata[i] == tensor)
        {
          g_ptr_array_remove_index_fast (scope->tensors, i);
          return;
        }
}

/**
 * gtorch_scope_new: (constructor)
 *
 * Opens a scope in this thread.
 *
 * Returns: (transfer full): the scope, to be ended with [method@Scope.end] or by dropping the last
 *   reference in the same thread
 *
 * Since: 0.1
 */
GTorchScope *
gtorch_scope_new (void)
{
  GTorchScope *self = g_new0 (GTorchScope, 1);

  g_atomic_int_set (&self->ref_count, 1);
  self->thread = g_thread_self ();
  self->tensors = g_ptr_array_new_with_free_func (g_object_unref);
  self->outer = gtorch_scope_current;
  gtorch_scope_current = self;
  return self;
}

/**
 * gtorch_scope_keep:
 * @self: a scope
 * @tensor: a tensor
 *
 * Lets a tensor outlive the scope. A tensor that was not created in it is not affected.
 *
 * Since: 0.1
 */
void
gtorch_scope_keep (GTorchScope *self, GTorchTensor *tensor)
{
  guint i;

  g_return_if_fail (self != NULL);
  g_return_if_fail (GTORCH_IS_TENSOR (tensor));
  g_return_if_fail (self->thread == g_thread_self ());

  if (self->tensors == NULL)
    return;
  /* in reverse order, as results were created last */
  for (i = self->tensors->len; i-- > 0;)
    if (self->tensors->pdata[i] == tensor)
      {
        if (self->outer != NULL && self->outer->tensors != NULL)
          g_ptr_array_add (self->outer->tensors, g_object_ref (tensor));
        g_ptr_array_remove_index_fast (self->tensors, i);
        return;
      }
}

/**
 * gtorch_scope_get_n_tensors:
 * @self: a scope
 *
 * Gets the number of tensors that would be released now.
 *
 * Returns: the number; 0 after the end
 *
 * Since: 0.1
 */
guint
gtorch_scope_get_n_tensors (GTorchScope *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->tensors != NULL ? self->tensors->len : 0;
}

static void
scope_close (GTorchScope *self)
{
  GPtrArray *tensors = g_steal_pointer (&self->tensors);
  guint i;

  gtorch_scope_current = self->outer;
  for (i = 0; i < tensors->len; i++)
    gtorch_tensor_let_go (tensors->pdata[i]);
  g_ptr_array_unref (tensors);
}

/**
 * gtorch_scope_end:
 * @self: a scope
 *
 * Ends a scope, in the thread that opened it, and nested ones that are still open. The second call has no
 * effect.
 *
 * Since: 0.1
 */
void
gtorch_scope_end (GTorchScope *self)
{
  g_return_if_fail (self != NULL);
  g_return_if_fail (self->thread == g_thread_self ());

  while (self->tensors != NULL)
    scope_close (gtorch_scope_current);
}

/**
 * gtorch_scope_ref: (skip)
 * @self: a scope
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 *
 * Since: 0.1
 */
GTorchScope *
gtorch_scope_ref (GTorchScope *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

/**
 * gtorch_scope_unref: (skip)
 * @self: a scope
 *
 * Drops a reference; the scope ends with the last one.
 *
 * Since: 0.1
 */
void
gtorch_scope_unref (GTorchScope *self)
{
  g_return_if_fail (self != NULL);
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (self->tensors != NULL)
    {
      /* A garbage collector may drop it in any thread: outside its own it can only be left open. */
      if (self->thread != g_thread_self ())
        {
          g_atomic_int_set (&self->ref_count, 1);
          g_warning ("GTorchScope: the last reference was dropped in another thread");
          return;
        }
      gtorch_scope_end (self);
    }
  g_free (self);
}
