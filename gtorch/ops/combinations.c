/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tuples of the elements of one tensor or of several. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-text-private.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

GTorchImpl *
gtorch_op_cartesian_prod (GTorchImpl *const *tensors, gsize n, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GPtrArray) grids = NULL;
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  gsize i;

  for (i = 0; i < n; i++)
    if (tensors[i]->n_dims != 1)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("cartesian_prod: tensor %u of shape %s must have one dimension"), (guint) i,
                     gtorch_impl_shape_str (tensors[i]));
        return NULL;
      }
  if (n == 1)
    return gtorch_impl_itself (tensors[0], error);
  grids = gtorch_op_meshgrid (tensors, n, TRUE, error);
  if (grids == NULL)
    return NULL;
  for (i = 0; i < n; i++)
    {
      GTorchImpl *row = gtorch_op_reshape (grids->pdata[i], &all, 1, error);

      if (row == NULL)
        return NULL;
      g_ptr_array_add (rows, row);
    }
  return gtorch_op_stack ((GTorchImpl **) rows->pdata, n, 1, error);
}

/* Counts the ways to choose r of n in order; with repetition these are as many as those to choose r of n +
 * r - 1. Returns -1 if the r times as many positions do not fit into memory. */
static gint64
count_choices (gint64 n, gint64 r, gboolean with_replacement)
{
  gint64 count = 1, i;

  if (with_replacement && n > 0 && __builtin_add_overflow (n, r - 1, &n))
    return -1;
  if (r > n)
    return 0;
  if (r > n - r)
    {
      /* each factor (n - k + i) / i is at least 2, or there is one factor for each of n - r */
      for (i = 1; i <= n - r; i++)
        if (__builtin_mul_overflow (count, r + i, &count))
          return -1;
        else
          count /= i;
      return count;
    }
  for (i = 1; i <= r; i++)
    if (__builtin_mul_overflow (count, n - r + i, &count))
      return -1;
    else
      count /= i;
  return count;
}

/* For each of the choices of some elements, the last one of them, and the number of the choice of one element
 * fewer that it continues. */
typedef struct
{
  GTorchImpl *last, *parent;
} Level;

/* Continues each choice with each element that may follow: those up to n, which come in the order of the
 * choices. A choice whose last element is l has n - step - l of them, so that their numbers end before the
 * sum of these, and the next element is as far from n as the number is from there. */
static gboolean
extend (const Level *before, Level *level, gint64 n, gint64 count, gint64 step, GError **error)
{
  GTorchDevice *device = gtorch_impl_device (before->last);
  g_autoptr (GTorchImpl) most = gtorch_impl_new_int (n - step);
  g_autoptr (GTorchImpl) bound = gtorch_impl_new_int (n);
  g_autoptr (GTorchImpl) lengths = gtorch_op_sub (most, before->last, 1, error);
  g_autoptr (GTorchImpl) ends =
      lengths != NULL ? gtorch_op_cumsum (lengths, 0, GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) numbers =
      ends != NULL ? gtorch_op_arange (0, count, 1, GTORCH_DTYPE_INT64, device, error) : NULL;
  g_autoptr (GTorchImpl) parent =
      numbers != NULL ? gtorch_op_search_places (ends, numbers, TRUE, error) : NULL;
  g_autoptr (GTorchImpl) end =
      parent != NULL ? gtorch_op_index_select (ends, 0, parent, error) : NULL;
  g_autoptr (GTorchImpl) distance = end != NULL ? gtorch_op_sub (numbers, end, 1, error) : NULL;

  level->last = distance != NULL ? gtorch_op_add (distance, bound, 1, error) : NULL;
  if (level->last != NULL)
    level->parent = g_steal_pointer (&parent);
  return level->last != NULL;
}

static gboolean
write_column (GTorchImpl *table, gint64 i, GTorchImpl *values, GTorchImpl *place, GError **error)
{
  g_autoptr (GTorchImpl) column = gtorch_op_select (table, 1, i, error);
  g_autoptr (GTorchImpl) chosen = NULL;

  if (column != NULL)
    chosen =
        place == NULL ? gtorch_impl_ref (values) : gtorch_op_index_select (values, 0, place, error);
  return chosen != NULL && gtorch_op_copy_inplace (column, chosen, FALSE, error);
}

/* Follows the choices back from the last level to the first, and writes the positions of each to a row. */
static gboolean
follow_back (const Level *levels, GTorchImpl *table, GError **error)
{
  g_autoptr (GTorchImpl) place = NULL;
  gint64 i;

  for (i = table->shape[1] - 1; i > 0; i--)
    {
      GTorchImpl *parent;

      if (!write_column (table, i, levels[i].last, place, error))
        return FALSE;
      parent = place == NULL ? gtorch_impl_ref (levels[i].parent)
                             : gtorch_op_index_select (levels[i].parent, 0, place, error);
      g_clear_pointer (&place, gtorch_impl_unref);
      place = parent;
      if (place == NULL)
        return FALSE;
    }
  return write_column (table, 0, levels[0].last, place, error);
}

/* Writes the positions of all choices of n elements to the table, at least two rows. They are computed on
 * the device: what is copied there from the host cannot be captured. Choices that cannot be continued,
 * because too few elements follow, are left out, so that no level has more of them than the last. */
static gboolean
write_choices (GTorchImpl *table, gint64 n, gboolean with_replacement, GError **error)
{
  const gint64 r = table->shape[1], step = with_replacement ? 0 : 1;
  g_autofree Level *levels = gtorch_scratch_new0 (r, sizeof (Level), error);
  gboolean ok = levels != NULL;
  gint64 i;

  if (ok)
    levels[0].last = gtorch_op_arange (0, n - (r - 1) * step, 1, GTORCH_DTYPE_INT64,
                                       gtorch_impl_device (table), error);
  ok = ok && levels[0].last != NULL;
  for (i = 1; ok && i < r; i++)
    {
      const gint64 from = n - (r - 1 - i) * step;

      ok = extend (&levels[i - 1], &levels[i], from, count_choices (from, i + 1, with_replacement),
                   step, error);
    }
  ok = ok && follow_back (levels, table, error);
  for (i = 0; levels != NULL && i < r; i++)
    {
      g_clear_pointer (&levels[i].last, gtorch_impl_unref);
      g_clear_pointer (&levels[i].parent, gtorch_impl_unref);
    }
  return ok;
}

/* The only choice: all elements, or one of them r times. */
static GTorchImpl *
only_choice (GTorchImpl *self, gint64 r, GError **error)
{
  g_autoptr (GTorchImpl) row = gtorch_op_expand (self, &r, 1, error);
  g_autoptr (GTorchImpl) table = row != NULL ? gtorch_op_unsqueeze (row, 0, error) : NULL;

  return table != NULL ? gtorch_op_clone (table, error) : NULL;
}

GTorchImpl *
gtorch_op_combinations (GTorchImpl *self, gint64 r, gboolean with_replacement, GError **error)
{
  g_autoptr (GTorchImpl) table = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) chosen = NULL;
  gint64 count, numel;

  if (self->n_dims != 1 || r < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("combinations: %" PRId64
                      " elements of shape %s: there must be one dimension, and no negative number"),
                   r, gtorch_impl_shape_str (self));
      return NULL;
    }
  if (self->storage == NULL)
    return gtorch_op_view_as_is (self, error); /* fails with the right error */
  if (r == 0)
    return gtorch_op_new_empty (self, (const gint64[]){ 0 }, 1, GTORCH_DTYPE_NONE, error);
  count = count_choices (self->numel, r, with_replacement);
  if (count < 0 || __builtin_mul_overflow (count, r, &numel))
    numel = G_MAXINT64;
  if (!gtorch_shape_check ("combinations", &numel, 1, GTORCH_DTYPE_INT64, error))
    return NULL;
  if (count == 1)
    return only_choice (self, r, error);
  table = gtorch_op_new_empty (self, (const gint64[]){ count, r }, 2, GTORCH_DTYPE_INT64, error);
  if (table == NULL || (count > 0 && !write_choices (table, self->numel, with_replacement, error)))
    return NULL;
  index = gtorch_op_view (table, (const gint64[]){ -1 }, 1, error);
  chosen = index != NULL ? gtorch_op_index_select (self, 0, index, error) : NULL;
  return chosen != NULL ? gtorch_op_view (chosen, (const gint64[]){ count, r }, 2, error) : NULL;
}
