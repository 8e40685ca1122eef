/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tests whether views of one storage, or any tensors, share elements. */

#include "config.h"

#include <string.h>

#include "base/gtorch-dtype-private.h"
#include "tensor/gtorch-impl-overlap-private.h"

typedef struct
{
  guint n_dims;
  gint64 strides[GTORCH_MAX_DIMS]; /* positive, in descending order */
  gint64 shape[GTORCH_MAX_DIMS];
  /* distance from the first element of these dimensions to the last */
  gint64 reach[GTORCH_MAX_DIMS + 1];
} Layout;

static gboolean
lay_out (const GTorchImpl *impl, Layout *layout)
{
  guint i, j;

  *layout = (Layout){ 0 };
  for (i = 0; i < impl->n_dims; i++)
    {
      if (impl->shape[i] == 1 || impl->strides[i] == 0)
        continue;
      if (impl->strides[i] < 0)
        return FALSE;
      for (j = layout->n_dims++; j > 0 && layout->strides[j - 1] < impl->strides[i]; j--)
        {
          layout->strides[j] = layout->strides[j - 1];
          layout->shape[j] = layout->shape[j - 1];
        }
      layout->strides[j] = impl->strides[i];
      layout->shape[j] = impl->shape[i];
    }
  return TRUE;
}

/* Adds a dimension of size 1 for each stride that only the other layout has. */
static gboolean
complete (Layout *layout, const Layout *other)
{
  Layout whole = { 0 };
  guint i = 0, j = 0;

  while (i < layout->n_dims || j < other->n_dims)
    {
      gint64 mine = i < layout->n_dims ? layout->strides[i] : 0;
      gint64 theirs = j < other->n_dims ? other->strides[j] : 0;

      if (whole.n_dims == GTORCH_MAX_DIMS)
        return FALSE;
      whole.strides[whole.n_dims] = MAX (mine, theirs);
      whole.shape[whole.n_dims++] = mine >= theirs ? layout->shape[i] : 1;
      i += mine >= theirs;
      j += theirs >= mine;
    }
  for (i = whole.n_dims; i-- > 0;)
    {
      whole.reach[i] = whole.reach[i + 1] + whole.strides[i] * (whole.shape[i] - 1);
      if (whole.reach[i + 1] >= whole.strides[i])
        return FALSE; /* self-interleaved, or another order of rows */
    }
  *layout = whole;
  return TRUE;
}

/* Both have the same strides and b starts `distance` elements behind a. Index i of the outermost
 * dimension of a and j of b's can meet only if (i - j) * stride is near the distance: for few
 * differences. */
static gboolean
grids_meet (const Layout *a, const Layout *b, guint dim, gint64 distance)
{
  gint64 stride, k;

  if (distance > a->reach[dim] || -distance > b->reach[dim])
    return FALSE;
  if (dim == a->n_dims)
    return TRUE; /* distance is 0 */
  stride = a->strides[dim];
  k = (distance - a->reach[dim + 1]) / stride;
  for (k = MAX (k - 1, 1 - b->shape[dim]); k < a->shape[dim]; k++)
    {
      if (distance - k * stride < -b->reach[dim + 1])
        return FALSE;
      if (grids_meet (a, b, dim + 1, distance - k * stride))
        return TRUE;
    }
  return FALSE;
}

/* Returns FALSE if certainly no element of one is an element of the other: x[::2] and x[1::2], columns. */
static gboolean
elements_meet (const GTorchImpl *a, const GTorchImpl *b)
{
  Layout layouts[2], other;
  gint64 common = 0;
  guint i, j;

  if (gtorch_dtype_size (a->dtype) != gtorch_dtype_size (b->dtype) || !lay_out (a, &layouts[0])
      || !lay_out (b, &layouts[1]))
    return TRUE;
  for (i = 0; i < 2; i++)
    for (j = 0; j < layouts[i].n_dims; j++)
      {
        gint64 x = layouts[i].strides[j];

        while (x != 0)
          {
            gint64 rest = common % x;

            common = x;
            x = rest;
          }
      }
  if (common > 1 && (b->offset - a->offset) % common != 0)
    return FALSE;
  other = layouts[0];
  if (!complete (&layouts[0], &layouts[1]) || !complete (&layouts[1], &other))
    return TRUE;
  return grids_meet (&layouts[0], &layouts[1], 0, b->offset - a->offset);
}

gboolean
gtorch_impl_is_same_place (const GTorchImpl *a, const GTorchImpl *b)
{
  return a == b
         || (a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype
             && gtorch_impl_same_shape (a, b)
             && memcmp (a->strides, b->strides, a->n_dims * sizeof (gint64)) == 0);
}

gboolean
gtorch_impl_overlaps (const GTorchImpl *a, const GTorchImpl *b)
{
  gint64 low[2], high[2];
  const GTorchImpl *impls[2] = { a, b };
  guint i, j;

  if (a->storage != b->storage || a->numel == 0 || b->numel == 0
      || gtorch_impl_is_same_place (a, b))
    return FALSE;
  for (i = 0; i < 2; i++)
    {
      low[i] = high[i] = 0;
      for (j = 0; j < impls[i]->n_dims; j++)
        {
          gint64 reach = (impls[i]->shape[j] - 1) * impls[i]->strides[j];

          *(reach < 0 ? &low[i] : &high[i]) += reach;
        }
      low[i] = (impls[i]->offset + low[i]) * (gint64) gtorch_dtype_size (impls[i]->dtype);
      high[i] = (impls[i]->offset + high[i] + 1) * (gint64) gtorch_dtype_size (impls[i]->dtype);
    }
  return low[0] < high[1] && low[1] < high[0] && elements_meet (a, b);
}

/* --- many tensors --- */

typedef struct
{
  const char *begin, *end;
} Range;

static Range
range_of (const GTorchImpl *impl)
{
  gint64 size = gtorch_dtype_size (impl->dtype), low = 0, high = 0;
  const char *data = gtorch_impl_data (impl);
  guint i;

  for (i = 0; i < impl->n_dims; i++)
    {
      gint64 reach = (impl->shape[i] - 1) * impl->strides[i];

      *(reach < 0 ? &low : &high) += reach;
    }
  return (Range){ data + low * size, data + (high + (impl->numel > 0)) * size };
}

static gint
by_address (gconstpointer a, gconstpointer b)
{
  const Range *x = a, *y = b;

  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

gboolean
gtorch_impl_are_apart (GTorchImpl *const *impls, guint n)
{
  g_autofree Range *ranges = g_new (Range, n);
  guint i, n_ranges = 0;

  for (i = 0; i < n; i++)
    if (impls[i]->storage == NULL)
      return FALSE; /* the operation reports the fault */
    else if (impls[i]->numel > 0)
      ranges[n_ranges++] = range_of (impls[i]);
  if (n_ranges > 1)
    qsort (ranges, n_ranges, sizeof (Range), by_address);
  for (i = 1; i < n_ranges; i++)
    if (ranges[i].begin < ranges[i - 1].end)
      return FALSE;
  return TRUE;
}
