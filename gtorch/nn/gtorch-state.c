/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Loading a state: first all of it is checked and converted, which may fail, and then it is copied to its
 * targets, which may not. */

#include "config.h"

#include "nn/gtorch-state-private.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-dtype-private.h"
#include "gtorch-ops-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "tensor/gtorch-tensor-private.h"
#include "base/gtorch-range-private.h"
#include "nn/gtorch-module-private.h"
#include "tensor/gtorch-uninitialized-private.h"

struct _GTorchStateWrites
{
  GPtrArray *targets, *values; /* of GTorchImpl */
  GHashTable *storages;        /* of the targets */
};

const gchar *
gtorch_impl_write_obstacle (const GTorchImpl *impl)
{
  if (impl->storage == NULL)
    return gtorch_impl_loss (impl);
  if (gtorch_storage_is_read_only (impl->storage))
    return _ ("is read-only");
  if (gtorch_impl_overlaps_itself (impl))
    return _ ("has several elements in one memory location");
  return NULL;
}

gboolean
gtorch_dtype_loses_imaginary (guint from, guint to)
{
  return gtorch_dtype_is_complex (from) && !gtorch_dtype_is_complex (to);
}

static gboolean
zero_all (GPtrArray *impls, GError **error)
{
  guint i;

  for (i = 0; i < impls->len; i++)
    {
      GTorchImpl *impl = impls->pdata[i];
      const gchar *obstacle = gtorch_impl_write_obstacle (impl);

      if (obstacle == NULL)
        continue;
      g_set_error (error, GTORCH_ERROR,
                   impl->storage == NULL ? GTORCH_ERROR_RELEASED : GTORCH_ERROR_INVALID,
                   _ ("zero_grad: the gradient of shape %s %s"), gtorch_impl_shape_str (impl),
                   obstacle);
      return FALSE;
    }
  for (i = 0; i < impls->len; i++)
    if (!gtorch_op_zero_inplace (impls->pdata[i], error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_zero_grads (GPtrArray *tensors, gboolean set_to_none, GError **error)
{
  g_autoptr (GPtrArray) impls = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) zeroed = g_ptr_array_new ();
  guint i;

  for (i = 0; i < tensors->len; i++)
    {
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (tensors->pdata[i]);

      if (grad == NULL)
        continue;
      if (!set_to_none && gtorch_impl_requires_grad (gtorch_tensor_unwrap (grad)))
        {
          if (!gtorch_grad_set_zero (gtorch_tensor_unwrap (tensors->pdata[i]), error))
            return FALSE;
        }
      else if (!set_to_none)
        {
          g_ptr_array_add (impls, gtorch_impl_ref (gtorch_tensor_unwrap (grad)));
          g_ptr_array_add (zeroed, tensors->pdata[i]);
        }
      else if (!gtorch_tensor_set_grad (tensors->pdata[i], NULL, error))
        return FALSE;
    }
  if (!zero_all (impls, error))
    return FALSE;
  for (i = 0; i < zeroed->len; i++)
    gtorch_grad_notify (gtorch_tensor_unwrap (zeroed->pdata[i]));
  return TRUE;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

static gchar *
join_names (GPtrArray *names)
{
  GString *text = g_string_new (NULL);
  guint i;

  for (i = 0; i < names->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", gtorch_name_str (names->pdata[i]));
  return g_string_free (text, FALSE);
}

gchar *
gtorch_state_describe_names (GPtrArray *missing, GPtrArray *unexpected)
{
  g_autofree gchar *lacking = NULL;
  g_autofree gchar *other = NULL;
  g_autofree gchar *names = NULL;

  if (missing->len > 0)
    {
      names = join_names (missing);
      lacking = g_strdup_printf (_ ("missing: %s"), names);
      g_clear_pointer (&names, g_free);
    }
  if (unexpected->len == 0)
    return g_steal_pointer (&lacking);
  g_ptr_array_sort (unexpected, compare_names);
  names = join_names (unexpected);
  other = g_strdup_printf (_ ("unexpected: %s"), names);
  return lacking != NULL ? g_strdup_printf ("%s; %s", lacking, other) : g_steal_pointer (&other);
}

gboolean
gtorch_state_check_names (const gchar *who, GPtrArray *missing, GPtrArray *unexpected,
                          GError **error)
{
  g_autofree gchar *text = gtorch_state_describe_names (missing, unexpected);

  if (text != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, "%s: %s", who, text);
  return text == NULL;
}

gboolean
gtorch_state_check_keys (const gchar *who, GHashTable *state, const gchar *const *names,
                         guint n_names, GError **error)
{
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) missing = g_ptr_array_new ();
  g_autoptr (GPtrArray) unexpected = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer key;
  guint i;

  for (i = 0; i < n_names; i++)
    {
      g_hash_table_add (known, (gpointer) names[i]);
      if (!g_hash_table_contains (state, names[i]))
        g_ptr_array_add (missing, (gpointer) names[i]);
    }
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (!g_hash_table_contains (known, key))
      g_ptr_array_add (unexpected, key);
  return gtorch_state_check_names (who, missing, unexpected, error);
}

static gchar *
describe_range (gdouble low, gdouble high, gboolean is_whole)
{
  if (!is_whole)
    return gtorch_range_describe (low, high, FALSE);
  return high < G_MAXDOUBLE ? g_strdup_printf (_ ("a whole number within [%g, %g]"), low, high)
                            : g_strdup_printf (_ ("a whole number of at least %g"), low);
}

gboolean
gtorch_state_get_number (const gchar *who, const gchar *name, GTorchTensor *value, gdouble low,
                         gdouble high, gboolean is_whole, gdouble *number, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (value);
  GError *failure = NULL;
  gdouble x;

  if (impl->storage == NULL || impl->numel != 1 || gtorch_dtype_is_complex (impl->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "%s: “%s” %s", who,
                   gtorch_name_str (name),
                   impl->storage == NULL ? _ ("was released") : _ ("is not one number"));
      return FALSE;
    }
  x = gtorch_tensor_item_double (value, &failure);
  if (failure != NULL)
    {
      g_propagate_prefixed_error (error, failure, "%s: %s: ", who, gtorch_name_str (name));
      return FALSE;
    }
  if (!(x >= low && x <= high) || (is_whole && x != floor (x)))
    {
      g_autofree gchar *rule = describe_range (low, high, is_whole);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("%s: “%s” is %g, it must be %s"),
                   who, gtorch_name_str (name), x, rule);
      return FALSE;
    }
  if (number != NULL)
    *number = x;
  return TRUE;
}

GTorchStateWrites *
gtorch_state_writes_new (void)
{
  GTorchStateWrites *self = g_new (GTorchStateWrites, 1);

  self->targets = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->values = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->storages = g_hash_table_new (NULL, NULL);
  return self;
}

void
gtorch_state_writes_free (GTorchStateWrites *self)
{
  g_ptr_array_unref (self->targets);
  g_ptr_array_unref (self->values);
  g_hash_table_unref (self->storages);
  g_free (self);
}

gboolean
gtorch_state_writes_add (GTorchStateWrites *self, GTorchImpl *target, GTorchImpl *value,
                         const gchar *who, const gchar *name, GError **error)
{
  const gchar *obstacle = gtorch_impl_write_obstacle (target);
  GTorchImpl *converted;

  /* the caller may have checked; another thread may have released it since */
  if (obstacle != NULL)
    {
      g_set_error (error, GTORCH_ERROR,
                   target->storage == NULL ? GTORCH_ERROR_RELEASED : GTORCH_ERROR_INVALID,
                   _ ("%s: %s: a tensor of shape %s %s"), who, gtorch_name_str (name),
                   gtorch_impl_shape_str (target), obstacle);
      return FALSE;
    }
  g_assert (gtorch_impl_same_shape (target, value));
  converted = gtorch_impl_to (value, gtorch_impl_device (target), target->dtype, error);
  if (converted == NULL)
    {
      g_prefix_error (error, "%s: %s: ", who, gtorch_name_str (name));
      return FALSE;
    }
  g_ptr_array_add (self->targets, gtorch_impl_ref (target));
  g_ptr_array_add (self->values, converted);
  g_hash_table_add (self->storages, target->storage);
  return TRUE;
}

gboolean
gtorch_state_writes_run (GTorchStateWrites *self, GError **error)
{
  guint i;

  /* Values that share memory with a target are copied first, since targets are written one after the
   * other: two parameters may exchange their values. */
  for (i = 0; i < self->values->len; i++)
    {
      GTorchImpl *value = self->values->pdata[i], *copy;

      if (!g_hash_table_contains (self->storages, value->storage))
        continue;
      copy = gtorch_op_clone (value, error);
      if (copy == NULL)
        return FALSE;
      self->values->pdata[i] = copy;
      gtorch_impl_unref (value);
    }
  for (i = 0; i < self->values->len; i++)
    if (!gtorch_op_copy_inplace (self->targets->pdata[i], self->values->pdata[i], FALSE, error))
      return FALSE;
  return TRUE;
}
