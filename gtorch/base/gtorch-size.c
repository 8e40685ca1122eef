/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-size.h"

#include <string.h>

/* GTORCH_SIZE () writes one as an array. An allocated one has a bit set in its length, and stands behind its
 * reference count. */
struct _GTorchSize
{
  gint64 length;
  gint64 values[];
};

typedef struct
{
  gint ref_count; /* atomic, by macros: ThreadSanitizer does not see GLib's functions */
  GTorchSize size;
} Allocated;

#define IS_ALLOCATED (G_GINT64_CONSTANT (1) << 62)

static inline gsize
length_of (const GTorchSize *self)
{
  return (gsize) (self->length & ~IS_ALLOCATED);
}

static inline Allocated *
allocated_of (GTorchSize *self)
{
  return (Allocated *) ((char *) self - G_STRUCT_OFFSET (Allocated, size));
}

G_DEFINE_BOXED_TYPE (GTorchSize, gtorch_size, gtorch_size_ref, gtorch_size_unref)

/**
 * gtorch_size_new: (constructor)
 * @values: (array length=n_values): the integers
 * @n_values: how many there are
 *
 * Makes a list of integers.
 *
 * Returns: (transfer full): a new list
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_size_new (const gint64 *values, gsize n_values)
{
  Allocated *self;

  g_return_val_if_fail (values != NULL || n_values == 0, NULL);
  g_return_val_if_fail (n_values <= G_MAXINT32, NULL);
  self = g_malloc (sizeof (Allocated) + n_values * sizeof (gint64));
  self->ref_count = 1;
  self->size.length = (gint64) n_values | IS_ALLOCATED;
  if (n_values > 0)
    memcpy (self->size.values, values, n_values * sizeof (gint64));
  return &self->size;
}

/**
 * gtorch_size_ref: (skip)
 * @self: a list
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self, or a copy of one that is not allocated
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_size_ref (GTorchSize *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (!(self->length & IS_ALLOCATED))
    return gtorch_size_new (self->values, length_of (self));
  g_atomic_int_inc (&allocated_of (self)->ref_count);
  return self;
}

/**
 * gtorch_size_unref: (skip)
 * @self: a list
 *
 * Drops a reference. The last one frees the list.
 *
 * Since: 0.1
 */
void
gtorch_size_unref (GTorchSize *self)
{
  g_return_if_fail (self != NULL);
  if ((self->length & IS_ALLOCATED) && g_atomic_int_dec_and_test (&allocated_of (self)->ref_count))
    g_free (allocated_of (self));
}

/**
 * gtorch_size_get_values:
 * @self: a list
 * @n_values: (out): how many there are
 *
 * Gets the integers.
 *
 * Returns: (array length=n_values) (transfer none): the integers, which live as long as the list
 *
 * Since: 0.1
 */
const gint64 *
gtorch_size_get_values (GTorchSize *self, gsize *n_values)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  *n_values = length_of (self);
  return self->values;
}

/**
 * gtorch_size_get_length:
 * @self: a list
 *
 * Gets how many integers there are.
 *
 * Returns: the number of integers
 *
 * Since: 0.1
 */
gsize
gtorch_size_get_length (GTorchSize *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return length_of (self);
}

/**
 * gtorch_size_equal:
 * @self: a list
 * @other: another list
 *
 * Compares two lists.
 *
 * Returns: whether they have the same integers in the same order
 *
 * Since: 0.1
 */
gboolean
gtorch_size_equal (GTorchSize *self, GTorchSize *other)
{
  g_return_val_if_fail (self != NULL, FALSE);
  g_return_val_if_fail (other != NULL, FALSE);
  return length_of (self) == length_of (other)
         && memcmp (self->values, other->values, length_of (self) * sizeof (gint64)) == 0;
}

/**
 * gtorch_size_to_string:
 * @self: a list
 *
 * Writes the integers as a tuple: `(3, 2)`, `(3,)`.
 *
 * Returns: (transfer full): the text
 *
 * Since: 0.1
 */
gchar *
gtorch_size_to_string (GTorchSize *self)
{
  GString *text;

  g_return_val_if_fail (self != NULL, NULL);
  text = g_string_new ("(");
  for (gsize i = 0; i < length_of (self); i++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "", self->values[i]);
  g_string_append (text, length_of (self) == 1 ? ",)" : ")");
  return g_string_free (text, FALSE);
}
