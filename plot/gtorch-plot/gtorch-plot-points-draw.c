/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A line is drawn with at most four points for each column of half a unit: the first, the least, the
 * greatest and the last one of those that follow each other in the column. A picture of a million
 * points then takes as long as one of a few thousand, and looks the same. Blocks of points that lie in one
 * column give theirs without a look at the others. Where there are more than 20,000 dots, they are
 * small squares, of which there is one for each unit of the plane. */

#include "config.h"

#include <math.h>

#include "gtorch-plot-points-private.h"

typedef GTorchPlotPoint Point;

/* What gtorch_plot_canvas_x () and its like compute, for many numbers. */
typedef struct
{
  gdouble unit, low, start, scale;
  gboolean is_log;
} Map;

/* start, size: of the axis on the canvas, from its low end to its high one. */
static Map
map_axis (const GTorchPlotAxis *axis, gdouble start, gdouble size)
{
  const gdouble unit = axis->is_log ? 1 : gtorch_plot_find_unit (axis->low, axis->high);
  const gdouble low = axis->is_log ? axis->log_low : axis->low * unit,
                high = axis->is_log ? axis->log_high : axis->high * unit;

  return (Map){ unit, axis->is_inverted ? high : low, start,
                size / (axis->is_inverted ? low - high : high - low), axis->is_log };
}

static Map
map_x (const GTorchPlotCanvas *canvas)
{
  return map_axis (&canvas->x_axis, canvas->x, canvas->width);
}

static Map
map_y (const GTorchPlotCanvas *canvas)
{
  return map_axis (&canvas->y_axis, canvas->y + canvas->height, -canvas->height);
}

/* NaN or infinite if there is no such place. */
static inline gdouble
map_place (const Map *map, gdouble value)
{
  const gdouble number = map->is_log ? (value > 0 ? log10 (value) : NAN) : value * map->unit;
  const gdouble place = map->start + (number - map->low) * map->scale;

  return fabs (value) <= G_MAXDOUBLE ? CLAMP (place, -1e6, 1e6)
                                     : NAN; /* cairo's numbers end at 8e6 */
}

/* What follows each other in one column. */
typedef struct
{
  gint column;
  guint n;
  Point first, low, high, last;
  gboolean low_is_first;
} Run;

/* A line while it is drawn. Pieces of some points are drawn one by one: cairo takes much longer for a
 * path that covers itself many times. */
typedef struct
{
  cairo_t *cr;
  Run run;
  guint n_points; /* since the last gap */
  guint n_piece;  /* since the last piece */
  guint n_drawn;
  guint n_alone; /* points between gaps */
  Point last;
  gboolean is_whole;
} Pen;

#define PIECE     48
#define MANY_DOTS 20000
#define LONG      24.0

static void
pen_go (Pen *pen, const Point *point)
{
  if (pen->n_points == 0)
    cairo_move_to (pen->cr, point->x, point->y);
  else
    cairo_line_to (pen->cr, point->x, point->y);
  pen->n_points++;
  pen->n_piece++;
  pen->n_drawn++;
  if (fabs (point->x - pen->last.x) + fabs (point->y - pen->last.y) > LONG)
    pen->n_piece = PIECE;
  pen->last = *point;
  if (pen->n_piece < PIECE || pen->is_whole)
    return;
  if (pen->n_drawn > MANY_DOTS) /* of so many nobody sees the steps */
    cairo_set_antialias (pen->cr, CAIRO_ANTIALIAS_NONE);
  cairo_stroke (pen->cr);
  cairo_move_to (pen->cr, point->x, point->y);
  pen->n_piece = 0;
}

static void
pen_end_run (Pen *pen)
{
  Run *run = &pen->run;

  if (run->n == 0)
    return;
  pen_go (pen, &run->first);
  if (run->n > 2)
    {
      const Point *earlier = run->low_is_first ? &run->low : &run->high;
      const Point *later = run->low_is_first ? &run->high : &run->low;

      if (earlier->y != run->first.y)
        pen_go (pen, earlier);
      if (later->y != earlier->y)
        pen_go (pen, later);
    }
  if (run->n > 1)
    pen_go (pen, &run->last);
  run->n = 0;
}

static void
pen_add (Pen *pen, Point place)
{
  const gint column = (gint) floor (2 * place.x);
  Run *run = &pen->run;

  if (run->n > 0 && column != run->column)
    pen_end_run (pen);
  if (run->n == 0)
    {
      run->column = column;
      run->first = run->low = run->high = place;
      run->low_is_first = TRUE;
    }
  else if (place.y < run->low.y)
    {
      run->low = place;
      run->low_is_first = FALSE;
    }
  else if (place.y > run->high.y)
    {
      run->high = place;
      run->low_is_first = TRUE;
    }
  run->last = place;
  run->n++;
}

static void
pen_lift (Pen *pen)
{
  pen_end_run (pen);
  pen->n_alone += pen->n_points == 1;
  pen->n_points = 0;
}

/* Takes a block that lies in one column; otherwise returns FALSE. */
static gboolean
pen_add_block (Pen *pen, const GTorchPlotPoint *points, const GTorchPlotBlock *block,
               const Map *x_map, const Map *y_map)
{
  const guint corners[] = { 0, MIN (block->low, block->high), MAX (block->low, block->high),
                            GTORCH_PLOT_BLOCK - 1 };
  const gdouble last = map_place (x_map, points[GTORCH_PLOT_BLOCK - 1].x);

  if (!block->is_regular || (x_map->is_log && block->ranges.all.x_low <= 0)
      || (y_map->is_log && block->ranges.all.y_low <= 0)
      || floor (2 * map_place (x_map, points[0].x)) != floor (2 * last))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (corners); i++)
    {
      const Point *point = &points[corners[i]];

      pen_add (pen, (Point){ map_place (x_map, point->x), map_place (y_map, point->y) });
    }
  return TRUE;
}

static gboolean
is_drawn (const GTorchPlotPoints *self, guint i, const Map *x_map, const Map *y_map)
{
  const Point *point;

  if (i >= gtorch_plot_points_count (self))
    return FALSE;
  point = gtorch_plot_points_get (self, i);
  return !isnan (map_place (x_map, point->x)) && !isnan (map_place (y_map, point->y));
}

/* Dots at all points, or at those without neighbours alone. */
static void
draw_dots (const GTorchPlotPoints *self, const GTorchPlotCanvas *canvas, gdouble radius,
           guint n_dots, gboolean is_alone)
{
  const Map x_map = map_x (canvas), y_map = map_y (canvas);
  const gint columns = (gint) MIN (canvas->width + 2, 10000),
             rows = (gint) MIN (canvas->height + 2, 10000);
  const gboolean is_many = n_dots > MANY_DOTS;
  g_autofree guint8 *taken = is_many ? g_malloc0 ((gsize) columns * rows) : NULL;
  guint n = 0;

  for (guint i = 0; i < gtorch_plot_points_count (self); i++)
    {
      const Point *point = gtorch_plot_points_get (self, i);
      const gdouble x = map_place (&x_map, point->x), y = map_place (&y_map, point->y);
      const gdouble column = x - canvas->x, row = y - canvas->y;

      if (!(column >= -radius && column < columns && row >= -radius && row < rows))
        continue;
      if (is_alone
          && ((i > 0 && is_drawn (self, i - 1, &x_map, &y_map))
              || is_drawn (self, i + 1, &x_map, &y_map)))
        continue;
      if (is_many)
        {
          guint8 *place = taken + (gsize) MAX (row, 0) * columns + (gsize) MAX (column, 0);

          if (*place)
            continue;
          *place = 1;
          cairo_rectangle (canvas->cr, floor (x) - 1, floor (y) - 1, 2, 2);
        }
      else
        {
          cairo_new_sub_path (canvas->cr);
          cairo_arc (canvas->cr, x, y, radius, 0, 2 * G_PI);
        }
      if (++n % PIECE == 0)
        cairo_fill (canvas->cr);
    }
  cairo_fill (canvas->cr);
}

void
gtorch_plot_points_draw_dots (const GTorchPlotPoints *self, const GTorchPlotCanvas *canvas,
                              gdouble radius)
{
  draw_dots (self, canvas, radius, gtorch_plot_points_count (self), FALSE);
}

void
gtorch_plot_points_draw_line (const GTorchPlotPoints *self, const GTorchPlotCanvas *canvas,
                              const GTorchPlotStroke *stroke)
{
  const Map x_map = map_x (canvas), y_map = map_y (canvas);
  const guint n = gtorch_plot_points_count (self);
  cairo_t *cr = canvas->cr;
  Pen pen = { cr };

  cairo_save (cr);
  cairo_set_line_width (cr, stroke->width);
  cairo_set_line_join (cr, n > 8 * canvas->width ? CAIRO_LINE_JOIN_BEVEL : CAIRO_LINE_JOIN_ROUND);
  pen.is_whole = stroke->dashes != NULL;
  if (pen.is_whole)
    cairo_set_dash (cr, stroke->dashes, 2, 0);
  cairo_set_line_cap (cr, pen.is_whole ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
  for (guint i = 0; i < n;)
    {
      const Point *point = gtorch_plot_points_get (self, i);
      const GTorchPlotBlock *block = gtorch_plot_points_get_block (self, i);
      Point place;

      if (block != NULL && pen_add_block (&pen, point, block, &x_map, &y_map))
        {
          i += GTORCH_PLOT_BLOCK;
          continue;
        }
      place = (Point){ map_place (&x_map, point->x), map_place (&y_map, point->y) };
      if (!isnan (place.x) && !isnan (place.y))
        pen_add (&pen, place);
      else
        pen_lift (&pen);
      i++;
    }
  pen_lift (&pen);
  cairo_stroke (cr);
  cairo_restore (cr);
  if (pen.n_alone > 0)
    draw_dots (self, canvas, stroke->radius, pen.n_alone, TRUE);
}
