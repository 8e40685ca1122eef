/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists of hooks. A running hook may add or remove hooks, or drop the tensor that it belongs to, so a copy
 * of the list is run. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-references-private.h"

typedef struct
{
  gint ref_count;
  guint64 id;
  guint index; /* the output it belongs to; for one of a node, whether it runs after its backward */
  GTorchHookFunc func;
  GTorchAccumulatedFunc accumulated;
  GTorchNodeHookFunc of_node;
  gpointer user_data;
  GDestroyNotify destroy;
  GPtrArray *list; /* the list that contains it */
} Hook;

static GMutex lock; /* protects all lists, `hooks` and `last_id` */
GTORCH_FORK_LOCK (lock);
static GHashTable *hooks; /* id -> Hook */
static guint64 last_id;

static void
hook_unref (Hook *hook)
{
  if (!g_atomic_int_dec_and_test (&hook->ref_count))
    return;
  if (hook->destroy != NULL)
    hook->destroy (hook->user_data);
  g_free (hook);
  gtorch_references_count_data (-1);
}

static Hook *
hook_new (guint index, gpointer user_data, GDestroyNotify destroy)
{
  Hook *hook = g_new0 (Hook, 1);

  gtorch_references_count_data (1);
  hook->ref_count = 1;
  hook->index = index;
  hook->user_data = user_data;
  hook->destroy = destroy;
  return hook;
}

static guint64
append (GPtrArray **list, Hook *hook)
{
  guint64 id;

  g_mutex_lock (&lock);
  if (*list == NULL)
    g_atomic_pointer_set (list, g_ptr_array_new ());
  if (hooks == NULL)
    hooks = g_hash_table_new (g_int64_hash, g_int64_equal);
  id = hook->id = ++last_id;
  hook->list = *list;
  g_ptr_array_add (*list, hook);
  g_hash_table_insert (hooks, &hook->id, hook);
  g_mutex_unlock (&lock);
  return id;
}

guint64
gtorch_hooks_add (GPtrArray **list, guint index, GTorchHookFunc func,
                  GTorchAccumulatedFunc accumulated, gpointer user_data, GDestroyNotify destroy)
{
  Hook *hook = hook_new (index, user_data, destroy);

  hook->func = func;
  hook->accumulated = accumulated;
  return append (list, hook);
}

guint64
gtorch_hooks_add_of_node (GPtrArray **list, gboolean is_after, GTorchNodeHookFunc func,
                          gpointer user_data, GDestroyNotify destroy)
{
  Hook *hook = hook_new (is_after, user_data, destroy);

  hook->of_node = func;
  return append (list, hook);
}

gboolean
gtorch_hooks_remove (guint64 id)
{
  Hook *hook;

  g_mutex_lock (&lock);
  hook = hooks != NULL ? g_hash_table_lookup (hooks, &id) : NULL;
  if (hook != NULL)
    {
      g_hash_table_remove (hooks, &id);
      g_ptr_array_remove (hook->list, hook);
    }
  g_mutex_unlock (&lock);
  if (hook == NULL)
    return FALSE;
  hook_unref (hook);
  return TRUE;
}

void
gtorch_hooks_free (GPtrArray *list)
{
  guint i;

  g_mutex_lock (&lock);
  for (i = 0; i < list->len; i++)
    g_hash_table_remove (hooks, &((Hook *) list->pdata[i])->id);
  g_mutex_unlock (&lock);
  for (i = 0; i < list->len; i++)
    hook_unref (list->pdata[i]);
  g_ptr_array_unref (list);
}

static GPtrArray *
copy (GPtrArray **list)
{
  GPtrArray *result;
  guint i;

  if (G_LIKELY (g_atomic_pointer_get (list) == NULL))
    return NULL;
  g_mutex_lock (&lock);
  result = g_ptr_array_new_full ((*list)->len, (GDestroyNotify) hook_unref);
  for (i = 0; i < (*list)->len; i++)
    {
      Hook *hook = (*list)->pdata[i];

      g_atomic_int_inc (&hook->ref_count);
      g_ptr_array_add (result, hook);
    }
  g_mutex_unlock (&lock);
  return result;
}

gboolean
gtorch_hooks_run (GPtrArray **list, guint index, GTorchImpl **grad, GError **error)
{
  g_autoptr (GPtrArray) running = copy (list);
  guint i;

  for (i = 0; running != NULL && *grad != NULL && i < running->len; i++)
    {
      Hook *hook = running->pdata[i];
      GTorchImpl *changed = NULL;

      if (hook->func == NULL || hook->index != index)
        continue;
      if (!hook->func (*grad, hook->user_data, &changed, error))
        return FALSE;
      if (changed == NULL)
        continue;
      if (!gtorch_impl_same_shape (changed, *grad) || changed->dtype != (*grad)->dtype
          || gtorch_impl_device (changed) != gtorch_impl_device (*grad) || changed->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("backward: a hook changed a gradient of dtype %s and shape %s into one "
                          "of dtype %s and shape %s: dtype, shape and device must stay"),
                       gtorch_dtype_get_name ((*grad)->dtype), gtorch_impl_shape_str (*grad),
                       gtorch_dtype_get_name (changed->dtype), gtorch_impl_shape_str (changed));
          gtorch_impl_unref (changed);
          return FALSE;
        }
      gtorch_impl_unref (*grad);
      *grad = changed;
    }
  return TRUE;
}

gboolean
gtorch_hooks_run_accumulated (GPtrArray **list, GTorchImpl *leaf, GError **error)
{
  g_autoptr (GPtrArray) running = copy (list);
  guint i;

  for (i = 0; running != NULL && i < running->len; i++)
    {
      Hook *hook = running->pdata[i];

      if (hook->accumulated != NULL && !hook->accumulated (leaf, hook->user_data, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_hooks_run_of_node (GPtrArray **list, gboolean is_after, GTorchNode *node, GTorchImpl **grads,
                          guint n_grads, GTorchImpl *const *of_outputs, guint n_of_outputs,
                          GError **error)
{
  g_autoptr (GPtrArray) running = copy (list);
  guint i;

  for (i = 0; running != NULL && i < running->len; i++)
    {
      Hook *hook = running->pdata[i];

      if (hook->of_node != NULL && hook->index == (guint) is_after
          && !hook->of_node (node, grads, n_grads, of_outputs, n_of_outputs, hook->user_data,
                             error))
        return FALSE;
    }
  return TRUE;
}

void
gtorch_hooks_add_references (GPtrArray *list, GTorchReferences *references)
{
  guint i;

  g_mutex_lock (&lock);
  for (i = 0; i < list->len; i++)
    {
      Hook *hook = list->pdata[i];

      if (g_atomic_int_get (&hook->ref_count) != 1) /* it is running */
        continue;
      if (hook->of_node != NULL)
        gtorch_node_hook_add_references (hook->user_data, references);
      else
        gtorch_tensor_hook_add_references (hook->user_data, references);
    }
  g_mutex_unlock (&lock);
}
