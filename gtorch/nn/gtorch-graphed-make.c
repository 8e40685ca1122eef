/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The capture of a sequence of callables, in one mode or in both. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-references-private.h"
#include "nn/gtorch-graphed-module-private.h"
#include "nn/gtorch-module-private.h"

static GTorchDevice *
device_of (GTorchGraphedModule *self)
{
  GTorchDevice *device = NULL;
  GTorchGraphedBelow below;
  guint i;

  if (self->samples->len > 0)
    return gtorch_impl_device (self->samples->pdata[0]);
  gtorch_graphed_below_init (&below, self);
  for (i = 0; i < below.members->len && device == NULL; i++)
    if (below.members->pdata[i] != NULL)
      device = gtorch_impl_device (below.members->pdata[i]);
  gtorch_graphed_below_clear (&below);
  return device != NULL ? device : gtorch_device_or_current (NULL);
}

static gboolean
check_callables (GTorchGraphedModule **callables, gsize n, GTorchMemoryPool *pool, GError **error)
{
  GTorchDevice *device = device_of (callables[0]);
  gboolean success = TRUE;
  gsize i, j;

  for (i = 0; success && i < n; i++)
    {
      GTorchGraphedModule *self = callables[i];
      GTorchGraphedBelow below;

      if (self->module == NULL && self->func == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: it wraps neither a module nor a function"),
                       gtorch_graphed_module_name (self));
          return FALSE;
        }
      gtorch_graphed_below_init (&below, self);
      success = gtorch_graphed_check_hooks (self, &below, error);
      gtorch_graphed_below_clear (&below);
      for (j = 0; success && j <= self->samples->len; j++)
        {
          GTorchImpl *sample = j < self->samples->len ? self->samples->pdata[j] : NULL;
          GTorchDevice *other;

          if (sample != NULL && sample->storage == NULL)
            {
              g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                           _ ("%s: sample %zu is not a tensor or was released"),
                           gtorch_graphed_module_name (self), j);
              success = FALSE;
              continue;
            }
          other = sample != NULL ? gtorch_impl_device (sample) : device_of (self);
          if (other == device)
            continue;
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                       _ ("%s: it is on %s, the first of the callables on %s"),
                       gtorch_graphed_module_name (self), gtorch_device_name (other),
                       gtorch_device_name (device));
          success = FALSE;
        }
      for (j = 0; success && j < i; j++)
        if (callables[j] == self)
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("%s: %zu and %zu are the same: each is captured once"),
                         gtorch_graphed_module_name (self), j, i);
            success = FALSE;
          }
    }
  if (success && pool != NULL && gtorch_memory_pool_get_device (pool) != device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("%s: the pool is memory of another device"),
                   gtorch_graphed_module_name (callables[0]));
      success = FALSE;
    }
  return success;
}

static void
switch_mode (GTorchModule *module, const gchar *path, gpointer user_data)
{
  g_atomic_int_xor (&gtorch_module_get_private (module)->training, TRUE);
}

/* Captures all callables in their present mode. */
static gboolean
capture_mode (GTorchGraphedModule **callables, gsize n, GTorchMemoryPool *pool,
              GTorchGraphedMode *modes, GError **error)
{
  g_autofree GTorchGraphedSpec *specs = g_new0 (GTorchGraphedSpec, n);
  g_autofree GTorchGraphed **graphed = g_new0 (GTorchGraphed *, n);
  gsize i;

  for (i = 0; i < n; i++)
    {
      GTorchGraphedModule *self = callables[i];

      specs[i] = (GTorchGraphedSpec){
        .name = gtorch_graphed_module_name (self),
        .call = self->module != NULL ? gtorch_graphed_call_module : gtorch_graphed_call_func,
        .data = self,
        .samples = (GTorchImpl *const *) self->samples->pdata,
        .n_samples = self->samples->len,
        .module = self->module,
        .n_warmups = self->n_warmups,
        .allow_unused = self->allow_unused,
      };
    }
  if (!gtorch_graphed_capture (specs, n, device_of (callables[0]), pool, graphed, error))
    return FALSE;
  for (i = 0; i < n; i++)
    {
      GTorchGraphedBelow below;

      gtorch_graphed_below_init (&below, callables[i]);
      modes[i] = (GTorchGraphedMode){ graphed[i], g_array_ref (below.training) };
      gtorch_graphed_below_clear (&below);
    }
  return TRUE;
}

static void
clear_modes (GTorchGraphedMode *modes, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    {
      g_clear_pointer (&modes[i].graphed, gtorch_graphed_unref);
      g_clear_pointer (&modes[i].training, g_array_unref);
    }
}

static void
switch_modes (GTorchGraphedModule **callables, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    gtorch_module_visit (callables[i]->module, TRUE, switch_mode, NULL);
  g_atomic_int_inc (&gtorch_module_changes);
}

static gpointer
ref_storage (GTorchImpl *impl)
{
  GTorchStorage *storage = impl != NULL ? impl->storage : NULL;

  return storage != NULL ? gtorch_storage_ref (storage) : NULL;
}

static void
unref_storage (gpointer storage)
{
  if (storage != NULL)
    gtorch_storage_unref (storage);
}

/* The placeholders of the old capture become the samples of another one, so that the old capture can be
 * freed. */
static void
take_capture (GTorchGraphedModule *self, GTorchGraphedMode *first, GTorchGraphedMode *second)
{
  GTorchGraphed *graphed = first->graphed;
  GTorchGraphedBelow below;
  guint i;

  gtorch_graphed_module_drop_modes (self);
  self->modes[self->n_modes++] = *first;
  if (second != NULL)
    self->modes[self->n_modes++] = *second;
  for (i = 0; i < graphed->n_inputs; i++)
    {
      GTorchImpl *sample = gtorch_impl_alias (graphed->inputs[i]);

      if (graphed->wants[i])
        gtorch_autograd_ensure (sample)->requires_grad = TRUE;
      gtorch_impl_unref (self->samples->pdata[i]);
      self->samples->pdata[i] = sample;
    }
  gtorch_graphed_below_init (&below, self);
  gtorch_references_lock ();
  self->members = g_ptr_array_ref (below.members);
  gtorch_references_unlock ();
  self->storages = g_ptr_array_new_with_free_func (unref_storage);
  for (i = 0; i < self->members->len; i++)
    g_ptr_array_add (self->storages, ref_storage (self->members->pdata[i]));
  gtorch_graphed_below_clear (&below);
  /* makes the next call check the members */
  self->seen_changes = g_atomic_int_get (&gtorch_module_changes) - 1;
  g_object_notify (G_OBJECT (self), "is-captured");
}

/**
 * gtorch_make_graphed_callables:
 * @callables: (array length=n_callables): the callables to capture, in the order in which they will be
 *   called
 * @n_callables: the length of @callables
 * @pool: (nullable): memory to share with other graphs, or %NULL for its own
 * @error: return location for an error
 *
 * Captures modules and functions: warms them up on a side stream, captures their forward passes in the
 * given order, and their backward passes in the reverse order. All share one memory pool, so that they
 * must run in that order, though some may be skipped. Earlier captures are replaced.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if a callable cannot be captured, with
 *   %GTORCH_ERROR_AUTOGRAD if an input or parameter has no effect or a history begins outside, with
 *   %GTORCH_ERROR_NOT_SUPPORTED for hooks, or with the error of an operation. Nothing has changed then
 *
 * Since: 0.1
 */
gboolean
gtorch_make_graphed_callables (GTorchGraphedModule **callables, gsize n_callables,
                               GTorchMemoryPool *pool, GError **error)
{
  g_autofree GTorchGraphedModule **both = NULL;
  g_autofree GTorchGraphedMode *modes = NULL;
  g_autofree GTorchGraphedMode *others = NULL;
  gsize n_both = 0, i;

  g_return_val_if_fail (callables != NULL || n_callables == 0, FALSE);
  g_return_val_if_fail (pool == NULL || GTORCH_IS_MEMORY_POOL (pool), FALSE);
  for (i = 0; i < n_callables; i++)
    if (!GTORCH_IS_GRAPHED_MODULE (callables[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("make_graphed_callables: callable %zu is no graphed module"), i);
        return FALSE;
      }
  if (n_callables == 0)
    return TRUE;
  if (!check_callables (callables, n_callables, pool, error))
    return FALSE;

  modes = g_new0 (GTorchGraphedMode, n_callables);
  others = g_new0 (GTorchGraphedMode, n_callables);
  both = g_new0 (GTorchGraphedModule *, n_callables);
  for (i = 0; i < n_callables; i++)
    if (callables[i]->both_modes && callables[i]->module != NULL)
      both[n_both++] = callables[i];
  if (!capture_mode (callables, n_callables, pool, modes, error))
    return FALSE;
  if (n_both > 0)
    {
      gboolean success;

      switch_modes (both, n_both);
      success = capture_mode (both, n_both, NULL, others, error);
      switch_modes (both, n_both);
      if (!success)
        {
          clear_modes (modes, n_callables);
          return FALSE;
        }
    }
  n_both = 0;
  for (i = 0; i < n_callables; i++)
    take_capture (callables[i], &modes[i],
                  callables[i]->both_modes && callables[i]->module != NULL ? &others[n_both++]
                                                                           : NULL);
  return TRUE;
}
