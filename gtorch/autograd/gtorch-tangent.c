/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tangents of tensors: who has which, and where their elements are.
 *
 * A tangent has the strides of its tensor, and a view of a tensor has the same view of the tangent. So an
 * operation in place writes to the elements of the tangent, and whatever shares memory with its tensor shares
 * the change. A view that was made before its base got a tangent makes its own when it is asked for it.
 *
 * A result that depends on a tangent and for which its operation has no derivative has a tangent without a
 * value: what asks for the value gets an error. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-fork-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"

static GMutex tangents_lock; /* protects the list and the values */
static GTorchTangent *tangents;
static GHashTable *refusals; /* of tangents whose value is refused: the message */
GTORCH_FORK_LOCK (tangents_lock);

GTorchTangent *
gtorch_tangent_ref (GTorchTangent *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_tangent_unref (GTorchTangent *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_lock (&tangents_lock);
  if (self->former != NULL)
    self->former->next = self->next;
  else if (tangents == self)
    tangents = self->next;
  if (self->next != NULL)
    self->next->former = self->former;
  if (refusals != NULL)
    g_hash_table_remove (refusals, self);
  g_mutex_unlock (&tangents_lock);
  g_clear_pointer (&self->value, gtorch_impl_unref);
  g_free (self);
}

void
gtorch_tangents_end (void)
{
  g_autoptr (GPtrArray) values = g_ptr_array_new ();
  guint i;

  g_mutex_lock (&tangents_lock);
  while (tangents != NULL)
    {
      GTorchTangent *next = tangents->next;

      g_ptr_array_add (values, tangents->value);
      __atomic_store_n (&tangents->value, NULL, __ATOMIC_RELEASE);
      tangents->next = tangents->former = NULL;
      tangents = next;
    }
  if (refusals != NULL)
    g_hash_table_remove_all (refusals);
  g_mutex_unlock (&tangents_lock);
  for (i = 0; i < values->len; i++)
    gtorch_impl_unref (values->pdata[i]);
}

void
gtorch_tangent_attach (GTorchImpl *impl, GTorchTangent *tangent)
{
  GTorchTangent *former;
  GTorchAutograd *autograd;

  if (tangent == NULL)
    return;
  autograd = gtorch_autograd_ensure (impl);
  former = autograd->tangent;
  autograd->tangent = gtorch_tangent_ref (tangent);
  gtorch_tangent_unref (former);
}

void
gtorch_tangent_set (GTorchImpl *impl, GTorchImpl *value)
{
  GTorchTangent *self = g_new0 (GTorchTangent, 1);

  self->ref_count = 1;
  self->value = gtorch_impl_ref (value);
  g_mutex_lock (&tangents_lock);
  self->next = tangents;
  if (tangents != NULL)
    tangents->former = self;
  tangents = self;
  g_mutex_unlock (&tangents_lock);
  gtorch_tangent_attach (impl, self);
  gtorch_tangent_unref (self);
}

void
gtorch_tangent_refuse (GTorchImpl *impl, const gchar *message)
{
  g_autoptr (GTorchImpl) nothing = gtorch_impl_new_number (0);

  gtorch_tangent_set (impl, nothing);
  g_mutex_lock (&tangents_lock);
  if (refusals == NULL)
    refusals = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_hash_table_insert (refusals, impl->autograd->tangent, g_strdup (message));
  g_mutex_unlock (&tangents_lock);
}

/* Sets the error, and returns TRUE, if the value of the tangent is refused. */
static gboolean
is_refused (GTorchTangent *tangent, GError **error)
{
  const gchar *message;

  g_mutex_lock (&tangents_lock);
  message = refusals != NULL ? g_hash_table_lookup (refusals, tangent) : NULL;
  if (message != NULL)
    g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, message);
  g_mutex_unlock (&tangents_lock);
  return message != NULL;
}

static GTorchImpl *
dup_own (const GTorchImpl *impl)
{
  GTorchImpl *value = NULL;

  if (impl->autograd == NULL || impl->autograd->tangent == NULL)
    return NULL;
  g_mutex_lock (&tangents_lock);
  if (impl->autograd->tangent->value != NULL)
    value = gtorch_impl_ref (impl->autograd->tangent->value);
  g_mutex_unlock (&tangents_lock);
  return value;
}

static GTorchImpl *
base_of (const GTorchImpl *impl)
{
  GTorchImpl *base = impl->autograd != NULL ? impl->autograd->base : NULL;

  return base != NULL && base->storage == impl->storage && !impl->autograd->is_primal ? base : NULL;
}

/* Gives a view the part of its base's tangent. */
static gboolean
look_at_base (GTorchImpl *view, const GTorchImpl *base, GTorchImpl *whole, GError **error)
{
  g_autoptr (GTorchImpl) part = NULL;

  if (view->dtype != base->dtype)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("a view of dtype %s has no tangent beside that of its base, of dtype %s: "
                      "make the view after the base got its tangent"),
                   gtorch_dtype_get_name (view->dtype), gtorch_dtype_get_name (base->dtype));
      return FALSE;
    }
  part = gtorch_op_strided_view (whole, view->shape, view->n_dims, view->strides, view->n_dims,
                                 whole->offset + view->offset - base->offset, whole->strides,
                                 whole->n_dims, whole->offset, error);
  if (part == NULL)
    return FALSE;
  gtorch_tangent_set (view, part);
  return TRUE;
}

gboolean
gtorch_tangent_of (GTorchImpl *impl, GTorchTangent **tangent, GError **error)
{
  g_autoptr (GTorchImpl) own = dup_own (impl);
  GTorchImpl *base = own == NULL ? base_of (impl) : NULL;
  g_autoptr (GTorchImpl) whole = base != NULL ? dup_own (base) : NULL;
  GTorchChange off;
  gboolean success = TRUE;

  *tangent = NULL;
  if (own == NULL && whole == NULL)
    return TRUE;
  if (own == NULL && is_refused (base->autograd->tangent, NULL))
    gtorch_tangent_attach (impl, base->autograd->tangent);
  else if (own == NULL)
    {
      gtorch_change_begin (&off);
      gtorch_change_byte (&off, &gtorch_thread.no_forward, TRUE);
      success = look_at_base (impl, base, whole, error);
      gtorch_change_end (&off);
    }
  if (success)
    *tangent = gtorch_tangent_ref (impl->autograd->tangent);
  return success;
}

gboolean
gtorch_tangent_get (GTorchImpl *impl, GTorchImpl **value, GError **error)
{
  GTorchTangent *tangent;

  *value = NULL;
  if (!gtorch_tangent_of (impl, &tangent, error))
    return FALSE;
  if (tangent != NULL && is_refused (tangent, error))
    {
      gtorch_tangent_unref (tangent);
      return FALSE;
    }
  if (tangent != NULL)
    *value = dup_own (impl);
  gtorch_tangent_unref (tangent);
  return TRUE;
}

gboolean
gtorch_tangent_copy (GTorchImpl *impl, GTorchImpl *other, GError **error)
{
  g_autoptr (GTorchImpl) value = NULL;
  g_autoptr (GTorchImpl) copy = NULL;
  GTorchChange off;

  if (!gtorch_tangent_get (other, &value, error))
    return FALSE;
  if (value == NULL)
    return TRUE;
  gtorch_change_begin (&off);
  gtorch_change_byte (&off, &gtorch_thread.no_forward, TRUE);
  copy = gtorch_op_clone (value, error);
  gtorch_change_end (&off);
  if (copy == NULL)
    return FALSE;
  gtorch_tangent_set (impl, copy);
  return TRUE;
}

gboolean
gtorch_tangents_exist (GTorchImpl *const *inputs, guint n_inputs)
{
  guint i;

  for (i = 0; i < n_inputs; i++)
    if (inputs[i] != NULL && gtorch_impl_has_tangent (inputs[i]))
      return TRUE;
  return FALSE;
}

/* --- elements --- */

static gboolean
has_strides_of (const GTorchImpl *value, const GTorchImpl *impl)
{
  guint i;

  if (value->is_contiguous && impl->is_contiguous)
    return TRUE;
  for (i = 0; i < impl->n_dims; i++)
    if (impl->shape[i] > 1 && value->strides[i] != impl->strides[i])
      return FALSE;
  return TRUE;
}

GTorchImpl *
gtorch_tangent_lay_out (GTorchImpl *value, const GTorchImpl *impl, GError **error)
{
  const gint64 start = 0;
  gint64 size = 1;
  gboolean is_plain = impl->is_contiguous || gtorch_impl_overlaps_itself (impl);
  g_autoptr (GTorchImpl) memory = NULL;
  g_autoptr (GTorchImpl) placed = NULL;
  guint i;

  if (has_strides_of (value, impl))
    return gtorch_impl_ref (value);
  for (i = 0; i < impl->n_dims; i++)
    {
      is_plain = is_plain || impl->strides[i] < 0;
      size += (impl->shape[i] - 1) * impl->strides[i];
    }
  if (is_plain)
    return gtorch_op_contiguous (value, error);
  memory = gtorch_op_zeros (&size, 1, impl->dtype, impl->device, error);
  placed = memory != NULL
               ? gtorch_op_strided_view (memory, impl->shape, impl->n_dims, impl->strides,
                                         impl->n_dims, start, memory->strides, 1, start, error)
               : NULL;
  return placed != NULL && gtorch_op_copy_inplace (placed, value, FALSE, error)
             ? g_steal_pointer (&placed)
             : NULL;
}

/* Gives the base of a tensor a tangent of zeros, of which the tensor sees its part. */
static gboolean
fill_base (GTorchImpl *base, GError **error)
{
  g_autoptr (GTorchImpl) zeros =
      gtorch_op_zeros (base->shape, base->n_dims, base->dtype, base->device, error);
  g_autoptr (GTorchImpl) placed =
      zeros != NULL ? gtorch_tangent_lay_out (zeros, base, error) : NULL;

  if (placed == NULL)
    return FALSE;
  gtorch_tangent_set (base, placed);
  return TRUE;
}

gboolean
gtorch_tangent_write (GTorchImpl *impl, GTorchImpl *value, GError **error)
{
  g_autoptr (GTorchImpl) own = NULL;
  g_autoptr (GTorchImpl) placed = NULL;
  GTorchImpl *base = base_of (impl);

  if (!gtorch_tangent_get (impl, &own, error))
    return FALSE;
  if (own == NULL && value == NULL)
    return TRUE;
  if (own == NULL && base != NULL)
    {
      if (!fill_base (base, error) || !gtorch_tangent_get (impl, &own, error))
        return FALSE;
    }
  if (own != NULL)
    return value != NULL ? gtorch_op_copy_inplace (own, value, FALSE, error)
                         : gtorch_op_zero_inplace (own, error);
  if (impl->is_silent_view && g_atomic_int_get (&impl->storage->ref_count) > 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("a view of shape %s that was made with no_grad gets no tangent: its base "
                      "could not get its part of it"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  placed = gtorch_tangent_lay_out (value, impl, error);
  if (placed == NULL)
    return FALSE;
  gtorch_tangent_set (impl, placed);
  return TRUE;
}
