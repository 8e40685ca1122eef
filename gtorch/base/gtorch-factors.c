/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-factors.h"

#include <string.h>

struct _GTorchFactors
{
  gatomicrefcount ref_count;
  gsize length;
  gdouble values[];
};

G_DEFINE_BOXED_TYPE (GTorchFactors, gtorch_factors, gtorch_factors_ref, gtorch_factors_unref)

/**
 * gtorch_factors_new: (constructor)
 * @values: (array length=n_values): the numbers
 * @n_values: how many there are
 *
 * Makes a list of numbers.
 *
 * ```c
 * g_autoptr (GTorchFactors) factors = gtorch_factors_new ((gdouble[]){ 2, 1.5 }, 2);
 *
 * layer = gtorch_module_new (GTORCH_TYPE_UPSAMPLE, &error, "scale-factor", factors, NULL);
 * ```
 *
 * Returns: (transfer full): a new list
 *
 * Since: 0.1
 */
GTorchFactors *
gtorch_factors_new (const gdouble *values, gsize n_values)
{
  GTorchFactors *self;

  g_return_val_if_fail (values != NULL || n_values == 0, NULL);
  g_return_val_if_fail (n_values <= G_MAXINT32, NULL);
  self = g_malloc (sizeof (GTorchFactors) + n_values * sizeof (gdouble));
  g_atomic_ref_count_init (&self->ref_count);
  self->length = n_values;
  if (n_values > 0)
    memcpy (self->values, values, n_values * sizeof (gdouble));
  return self;
}

/**
 * gtorch_factors_ref: (skip)
 * @self: a list
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 *
 * Since: 0.1
 */
GTorchFactors *
gtorch_factors_ref (GTorchFactors *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

/**
 * gtorch_factors_unref: (skip)
 * @self: a list
 *
 * Drops a reference. The last one frees the list.
 *
 * Since: 0.1
 */
void
gtorch_factors_unref (GTorchFactors *self)
{
  g_return_if_fail (self != NULL);
  if (g_atomic_ref_count_dec (&self->ref_count))
    g_free (self);
}

/**
 * gtorch_factors_get_values:
 * @self: a list
 * @n_values: (out): how many there are
 *
 * Gets the numbers.
 *
 * Returns: (array length=n_values) (transfer none): the numbers, which live as long as the list
 *
 * Since: 0.1
 */
const gdouble *
gtorch_factors_get_values (GTorchFactors *self, gsize *n_values)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  *n_values = self->length;
  return self->values;
}

/**
 * gtorch_factors_get_length:
 * @self: a list
 *
 * Gets how many numbers there are.
 *
 * Returns: the number of numbers
 *
 * Since: 0.1
 */
gsize
gtorch_factors_get_length (GTorchFactors *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->length;
}

/**
 * gtorch_factors_equal:
 * @self: a list
 * @other: another list
 *
 * Compares two lists.
 *
 * Returns: whether they have the same numbers in the same order; no list with a NaN equals another one
 *
 * Since: 0.1
 */
gboolean
gtorch_factors_equal (GTorchFactors *self, GTorchFactors *other)
{
  g_return_val_if_fail (self != NULL, FALSE);
  g_return_val_if_fail (other != NULL, FALSE);
  if (self->length != other->length)
    return FALSE;
  for (gsize i = 0; i < self->length; i++)
    if (self->values[i] != other->values[i])
      return FALSE;
  return TRUE;
}
