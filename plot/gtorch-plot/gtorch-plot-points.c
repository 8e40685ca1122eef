/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The points of a line. Of each BLOCK points that follow each other it is known where the least and
 * the greatest one is, so that a line of millions of points is drawn, and its range found, without a
 * look at each of them. Blocks are made as points come. Points that several lines have, as a figure and
 * what is drawn of it in another thread, are only read: who changes them gets a copy. */

#include "config.h"

#include <math.h>

#include "gtorch-plot-points-private.h"

GTorchPlotPoints *
gtorch_plot_points_new (void)
{
  GTorchPlotPoints *self = g_new0 (GTorchPlotPoints, 1);

  g_atomic_ref_count_init (&self->ref_count);
  self->array = g_array_new (FALSE, FALSE, sizeof (GTorchPlotPoint));
  self->blocks = g_array_new (FALSE, FALSE, sizeof (GTorchPlotBlock));
  return self;
}

GTorchPlotPoints *
gtorch_plot_points_ref (GTorchPlotPoints *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
gtorch_plot_points_unref (GTorchPlotPoints *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  g_array_unref (self->array);
  g_array_unref (self->blocks);
  g_free (self);
}

void
gtorch_plot_points_make_own (GTorchPlotPoints **place)
{
  GTorchPlotPoints *former = *place;

  if (g_atomic_ref_count_compare (&former->ref_count, 1))
    return;
  *place = gtorch_plot_points_new ();
  (*place)->start = former->start;
  g_array_append_vals ((*place)->array, former->array->data, former->array->len);
  g_array_append_vals ((*place)->blocks, former->blocks->data, former->blocks->len);
  gtorch_plot_points_unref (former);
}

/* --- ranges --- */

static void
widen (gdouble *low, gdouble *high, gdouble value)
{
  *low = MIN (*low, value);
  *high = MAX (*high, value);
}

void
gtorch_plot_ranges_add_point (GTorchPlotRanges *self, const GTorchPlotPoint *point)
{
  if (!isfinite (point->x) || !isfinite (point->y))
    return;
  widen (&self->all.x_low, &self->all.x_high, point->x);
  widen (&self->all.y_low, &self->all.y_high, point->y);
  if (point->x > 0)
    widen (&self->positive.x_low, &self->positive.x_high, point->x);
  if (point->y > 0)
    widen (&self->positive.y_low, &self->positive.y_high, point->y);
}

static void
add_range (GTorchPlotRange *self, const GTorchPlotRange *other)
{
  self->x_low = MIN (self->x_low, other->x_low);
  self->x_high = MAX (self->x_high, other->x_high);
  self->y_low = MIN (self->y_low, other->y_low);
  self->y_high = MAX (self->y_high, other->y_high);
}

void
gtorch_plot_points_find_ranges (const GTorchPlotPoints *self, GTorchPlotRanges *ranges)
{
  const guint n = gtorch_plot_points_count (self);

  *ranges = (GTorchPlotRanges){ GTORCH_PLOT_RANGE_EMPTY, GTORCH_PLOT_RANGE_EMPTY };
  for (guint i = 0; i < n;)
    {
      const GTorchPlotBlock *block = gtorch_plot_points_get_block (self, i);

      if (block != NULL)
        {
          add_range (&ranges->all, &block->ranges.all);
          add_range (&ranges->positive, &block->ranges.positive);
          i += GTORCH_PLOT_BLOCK;
        }
      else
        gtorch_plot_ranges_add_point (ranges, gtorch_plot_points_get (self, i++));
    }
}

/* --- changes --- */

static void
make_block (GTorchPlotPoints *self, guint start)
{
  const GTorchPlotPoint *points = &g_array_index (self->array, GTorchPlotPoint, start);
  GTorchPlotBlock block = { { GTORCH_PLOT_RANGE_EMPTY, GTORCH_PLOT_RANGE_EMPTY }, 0, 0, TRUE };
  gboolean rises = TRUE, falls = TRUE;

  for (guint i = 0; i < GTORCH_PLOT_BLOCK; i++)
    {
      const GTorchPlotPoint *point = &points[i];

      gtorch_plot_ranges_add_point (&block.ranges, point);
      block.is_regular &= isfinite (point->x) && isfinite (point->y);
      if (i > 0)
        {
          rises &= point->x >= points[i - 1].x;
          falls &= point->x <= points[i - 1].x;
        }
      if (point->y < points[block.low].y)
        block.low = i;
      if (point->y > points[block.high].y)
        block.high = i;
    }
  block.is_regular &= rises || falls;
  g_array_append_val (self->blocks, block);
}

static void
make_blocks (GTorchPlotPoints *self)
{
  while ((self->blocks->len + 1) * GTORCH_PLOT_BLOCK <= self->array->len)
    make_block (self, self->blocks->len * GTORCH_PLOT_BLOCK);
}

void
gtorch_plot_points_set (GTorchPlotPoints *self, const gdouble *x, const gdouble *y, gsize n)
{
  g_array_set_size (self->blocks, 0);
  g_array_set_size (self->array, n);
  self->start = 0;
  for (gsize i = 0; i < n; i++)
    g_array_index (self->array, GTorchPlotPoint, i) =
        (GTorchPlotPoint){ x != NULL ? x[i] : i, y[i] };
  make_blocks (self);
}

void
gtorch_plot_points_append (GTorchPlotPoints *self, const GTorchPlotPoint *point)
{
  g_array_append_vals (self->array, point, 1);
  make_blocks (self);
}

/* Their memory is given back when as many have gone as there are left. */
void
gtorch_plot_points_keep_last (GTorchPlotPoints *self, guint n)
{
  guint n_blocks;

  if (gtorch_plot_points_count (self) <= n)
    return;
  self->start = self->array->len - n;
  if (self->start < self->array->len / 2)
    return;
  n_blocks = MIN (self->start / GTORCH_PLOT_BLOCK, self->blocks->len);
  if (n_blocks == 0)
    return;
  g_array_remove_range (self->array, 0, n_blocks * GTORCH_PLOT_BLOCK);
  g_array_remove_range (self->blocks, 0, n_blocks);
  self->start -= n_blocks * GTORCH_PLOT_BLOCK;
}
