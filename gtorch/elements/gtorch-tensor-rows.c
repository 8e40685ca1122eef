/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the brackets and the foreach of Vala call: parts by items of several types, and one row after
 * another. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "tensor/gtorch-hold-private.h"
#include "gtorch-tensor-ops.h"
#include "elements/gtorch-tensor-create.h"
#include "elements/gtorch-tensor-index-private.h"
#include "elements/gtorch-tensor-index.h"
#include "elements/gtorch-tensor-rows.h"

/* --- items --- */

typedef struct
{
  gint64 items[GTORCH_INDEX_LIMIT * GTORCH_INDEX_ITEM];
  gsize n;
  GTorchTensor *tensors[GTORCH_INDEX_LIMIT];
  gsize n_tensors;
  const GValue *last; /* the value that is to be written */
} Items;

static gboolean
whole_number (const GValue *value, gint64 *number)
{
  GValue converted = G_VALUE_INIT;

  if (G_VALUE_HOLDS_UINT64 (value) && g_value_get_uint64 (value) > G_MAXINT64)
    return FALSE;
  if (G_VALUE_HOLDS_BOOLEAN (value) || G_VALUE_HOLDS_DOUBLE (value) || G_VALUE_HOLDS_FLOAT (value)
      || !g_value_type_transformable (G_VALUE_TYPE (value), G_TYPE_INT64))
    return FALSE;
  g_value_init (&converted, G_TYPE_INT64);
  if (!g_value_transform (value, &converted))
    return FALSE;
  *number = g_value_get_int64 (&converted);
  return TRUE;
}

static gboolean
items_add (Items *self, guint position, const GValue *value, GError **error)
{
  gint64 *item = self->items + self->n;
  gint64 number;

  if (G_VALUE_HOLDS_STRING (value) && g_value_get_string (value) != NULL)
    return gtorch_index_parse (g_value_get_string (value), self->items, &self->n, error);
  if (self->n == G_N_ELEMENTS (self->items))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, _ ("index: more than %d items"),
                   GTORCH_INDEX_LIMIT);
      return FALSE;
    }
  item[0] = GTORCH_INDEX_INT;
  item[1] = item[2] = item[3] = 0;
  if (whole_number (value, &number))
    item[1] = number;
  else if (G_VALUE_HOLDS_BOOLEAN (value))
    {
      item[0] = GTORCH_INDEX_BOOL;
      item[1] = g_value_get_boolean (value);
    }
  else if (G_VALUE_HOLDS (value, GTORCH_TYPE_TENSOR) && g_value_get_object (value) != NULL)
    {
      item[0] = GTORCH_INDEX_TENSOR;
      item[1] = self->n_tensors;
      self->tensors[self->n_tensors++] = g_value_get_object (value);
    }
  else
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("index: item %u is a %s, not an integer, a text, a boolean or a tensor"),
                   position, G_VALUE_TYPE_NAME (value));
      return FALSE;
    }
  self->n += GTORCH_INDEX_ITEM;
  return TRUE;
}

/* Reads the arguments up to NULL; if the last one is a value, it is no item. */
static gboolean
items_read (Items *self, gboolean has_value, va_list args, GError **error)
{
  const GValue *value, *next = va_arg (args, const GValue *);
  guint position;

  self->n = self->n_tensors = 0;
  self->last = NULL;
  for (position = 0; next != NULL; position++)
    {
      value = next;
      next = va_arg (args, const GValue *);
      if (has_value && next == NULL)
        self->last = value;
      else if (!items_add (self, position, value, error))
        return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_tensor_get_at: (skip)
 * @self: a tensor
 * @error: return location for an error
 * @...: pointers to [struct@GObject.Value]s, and %NULL: integers, texts as for [method@Tensor.get],
 *   booleans, and tensors of indices or booleans
 *
 * Selects a part of a tensor by one item for each dimension. Vala calls it for brackets:
 *
 * ```vala
 * var corner = x[0, "1:", mask];
 * ```
 *
 * Without tensors among the items, the result is a view.
 *
 * Returns: (transfer full): the part, or %NULL with @error set: %GTORCH_ERROR_INDEX for an index that is
 *   out of range or too many items, %GTORCH_ERROR_INVALID for an item of another type
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_get_at (GTorchTensor *self, GError **error, ...)
{
  GTORCH_HOLD_TENSOR (self);
  gboolean read;
  Items items;
  va_list args;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);

  va_start (args, error);
  read = items_read (&items, FALSE, args, error);
  va_end (args);
  return read ? gtorch_tensor_index (self, items.items, items.n, items.tensors, items.n_tensors,
                                     error)
              : NULL;
}

/* Returns what is to be written as a tensor, on the device of the other one. */
static GTorchTensor *
written (GTorchTensor *self, const GValue *value, GError **error)
{
  GTorchDevice *device = gtorch_tensor_get_device (self);
  GValue converted = G_VALUE_INIT;
  gint64 number;

  if (value != NULL && G_VALUE_HOLDS (value, GTORCH_TYPE_TENSOR)
      && g_value_get_object (value) != NULL)
    return g_value_dup_object (value);
  if (value != NULL && whole_number (value, &number))
    return gtorch_full_int (NULL, 0, number, GTORCH_DTYPE_INT64, device, error);
  if (value != NULL && G_VALUE_HOLDS_BOOLEAN (value))
    return gtorch_full_int (NULL, 0, g_value_get_boolean (value), GTORCH_DTYPE_BOOL, device, error);
  if (value != NULL && (G_VALUE_HOLDS_DOUBLE (value) || G_VALUE_HOLDS_FLOAT (value)))
    {
      g_value_init (&converted, G_TYPE_DOUBLE);
      g_value_transform (value, &converted);
      return gtorch_full (NULL, 0, g_value_get_double (&converted), GTORCH_DTYPE_FLOAT64, device,
                          error);
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("index: a %s cannot be written, only a tensor, a number or a boolean"),
               value != NULL ? G_VALUE_TYPE_NAME (value) : "NULL");
  return NULL;
}

/**
 * gtorch_tensor_set_at: (skip)
 * @self: a tensor
 * @error: return location for an error
 * @...: the items, as for gtorch_tensor_get_at (), the value, which is a tensor, a number or a boolean,
 *   and %NULL
 *
 * Writes to a part of a tensor. The value is broadcast, and converted to the dtype of @self. Vala calls
 * it for brackets:
 *
 * ```vala
 * x[0, 1] = 5;
 * x["1:"] = y;
 * ```
 *
 * Returns: (transfer none): @self, or %NULL with @error set as by gtorch_tensor_get_at ()
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_set_at (GTorchTensor *self, GError **error, ...)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTorchTensor) value = NULL;
  gboolean read;
  Items items;
  va_list args;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);

  va_start (args, error);
  read = items_read (&items, TRUE, args, error);
  va_end (args);
  if (!read || (value = written (self, items.last, error)) == NULL)
    return NULL;
  return gtorch_tensor_index_put_inplace (self, items.items, items.n, items.tensors,
                                          items.n_tensors, value, FALSE, error);
}

/* --- rows --- */

/**
 * GTorchTensorIter:
 *
 * Gives the parts of a tensor along its first dimension, one after another. Vala uses it for loops:
 *
 * ```vala
 * foreach (var row in x)
 *     print ("%s\n", row.to_string ());
 * ```
 *
 * One thread at a time may use an iterator.
 *
 * Since: 0.1
 */

struct _GTorchTensorIter
{
  GTorchTensor *tensor;
  gint64 next;
};

G_DEFINE_BOXED_TYPE (GTorchTensorIter, gtorch_tensor_iter, gtorch_tensor_iter_ref,
                     gtorch_tensor_iter_unref)

/**
 * gtorch_tensor_iter_new: (constructor)
 * @tensor: a tensor with at least one dimension
 *
 * Creates an iterator that begins at the first row.
 *
 * Returns: (transfer full): the iterator
 *
 * Since: 0.1
 */
GTorchTensorIter *
gtorch_tensor_iter_new (GTorchTensor *tensor)
{
  GTorchTensorIter *self;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), NULL);

  self = g_atomic_rc_box_new0 (GTorchTensorIter);
  self->tensor = g_object_ref (tensor);
  return self;
}

/**
 * gtorch_tensor_iter_next_value:
 * @self: an iterator
 * @error: return location for an error
 *
 * Gives the next row, a view without the first dimension.
 *
 * Returns: (transfer full) (nullable): the row, %NULL without an error after the last one, or %NULL with
 *   @error set: %GTORCH_ERROR_INDEX if the tensor has no dimensions
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_iter_next_value (GTorchTensorIter *self, GError **error)
{
  g_return_val_if_fail (self != NULL, NULL);

  if (gtorch_tensor_get_n_dims (self->tensor) > 0)
    {
      gint64 size = gtorch_tensor_get_size (self->tensor, 0, error);

      if (size < 0 || self->next >= size)
        return NULL;
    }
  return gtorch_tensor_select (self->tensor, 0, self->next++, error);
}

/**
 * gtorch_tensor_iter_ref:
 * @self: an iterator
 *
 * Acquires a reference.
 *
 * Returns: (transfer full): @self
 *
 * Since: 0.1
 */
GTorchTensorIter *
gtorch_tensor_iter_ref (GTorchTensorIter *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return g_atomic_rc_box_acquire (self);
}

static void
iter_clear (gpointer self)
{
  g_object_unref (((GTorchTensorIter *) self)->tensor);
}

/**
 * gtorch_tensor_iter_unref:
 * @self: an iterator
 *
 * Releases a reference.
 *
 * Since: 0.1
 */
void
gtorch_tensor_iter_unref (GTorchTensorIter *self)
{
  g_return_if_fail (self != NULL);
  g_atomic_rc_box_release_full (self, iter_clear);
}
