/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-plot-private.h"

G_BEGIN_DECLS

#define GTORCH_PLOT_BLOCK 64

typedef struct
{
  gdouble x, y;
} GTorchPlotPoint;

/* Of all numbers; of those with positive x or y. */
typedef struct
{
  GTorchPlotRange all, positive;
} GTorchPlotRanges;

typedef struct
{
  GTorchPlotRanges ranges;
  guint low, high;     /* the first points with the least and the greatest y */
  gboolean is_regular; /* all are finite, and x does not turn */
} GTorchPlotBlock;

typedef struct
{
  gatomicrefcount ref_count;
  GArray *array;  /* of GTorchPlotPoint */
  guint start;    /* those before have been taken away */
  GArray *blocks; /* of GTorchPlotBlock, from the beginning of the array */
} GTorchPlotPoints;

GTorchPlotPoints *gtorch_plot_points_new (void);
GTorchPlotPoints *gtorch_plot_points_ref (GTorchPlotPoints *self);
void gtorch_plot_points_unref (GTorchPlotPoints *self);
/* Before a change: the place gets a copy if others have the points, too. */
void gtorch_plot_points_make_own (GTorchPlotPoints **place);
/* x NULL: 0, 1, 2 and so on */
void gtorch_plot_points_set (GTorchPlotPoints *self, const gdouble *x, const gdouble *y, gsize n);
void gtorch_plot_points_append (GTorchPlotPoints *self, const GTorchPlotPoint *point);
void gtorch_plot_points_keep_last (GTorchPlotPoints *self, guint n);
void gtorch_plot_points_find_ranges (const GTorchPlotPoints *self, GTorchPlotRanges *ranges);
void gtorch_plot_ranges_add_point (GTorchPlotRanges *self, const GTorchPlotPoint *point);

static inline guint
gtorch_plot_points_count (const GTorchPlotPoints *self)
{
  return self->array->len - self->start;
}

static inline const GTorchPlotPoint *
gtorch_plot_points_get (const GTorchPlotPoints *self, guint i)
{
  return &g_array_index (self->array, GTorchPlotPoint, self->start + i);
}

/* NULL if no block begins with this point. */
static inline const GTorchPlotBlock *
gtorch_plot_points_get_block (const GTorchPlotPoints *self, guint i)
{
  const guint place = self->start + i, block = place / GTORCH_PLOT_BLOCK;

  return place % GTORCH_PLOT_BLOCK == 0 && block < self->blocks->len
             ? &g_array_index (self->blocks, GTorchPlotBlock, block)
             : NULL;
}

/* How a line is drawn. */
typedef struct
{
  gdouble width, radius;
  const gdouble *dashes; /* two, or NULL */
} GTorchPlotStroke;

/* Draw with the source of the canvas. */
void gtorch_plot_points_draw_line (const GTorchPlotPoints *self, const GTorchPlotCanvas *canvas,
                                   const GTorchPlotStroke *stroke);
void gtorch_plot_points_draw_dots (const GTorchPlotPoints *self, const GTorchPlotCanvas *canvas,
                                   gdouble radius);

G_END_DECLS
