/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Axes are drawn in two steps. The first one looks at the items, finds limits and ticks, and measures
 * the texts around the place between the axes. The figure then gives the axes of a column the same
 * margins at the sides, and those of a row the same ones above and below, and the second step draws. */

#include "config.h"

#include <math.h>

#include "gtorch-plot-private.h"

#define TICK_SIZE   10.0
#define LABEL_SIZE  11.0
#define TICK_LENGTH 4.0
#define BAR_GAP     10.0
#define BAR_WIDTH   11.0
#define SMALLEST    4.0
#define NAMES       0.3       /* of a side, for names of rows or columns */
#define REST        0.2       /* of a side, for the lines of a text but the first one */
#define LEAST       0x1p-1074 /* the least positive number */

struct _GTorchPlotLayout
{
  GTorchPlotAxes *axes;
  GTorchPlotCanvas canvas;
  GTorchPlotMargins margins;
  GTorchPlotImage *named; /* an image that names rows or columns, not owned */
  GTorchPlotImage *bar;   /* an image that has a bar of colours, not owned */
  GTorchPlotAxis bar_axis;
  gboolean is_equal, has_axes, is_slanted;
  gdouble title_size, names_width;            /* of the columns' names */
  gdouble title_rest, x_rest, y_rest;         /* see measure_rest () */
  gdouble row_limit, column_limit;            /* for the names of rows and columns */
  gdouble left, top, cell_width, cell_height; /* of the whole, when it is drawn */
};

gdouble
gtorch_plot_sharp (gdouble place)
{
  return floor (place) + 0.5;
}

gdouble
gtorch_plot_canvas_x (const GTorchPlotCanvas *canvas, gdouble value)
{
  const gdouble place = gtorch_plot_axis_place (&canvas->x_axis, value);

  return canvas->x + canvas->width * (isnan (place) ? place : CLAMP (place, -1000, 1000));
}

gdouble
gtorch_plot_canvas_y (const GTorchPlotCanvas *canvas, gdouble value)
{
  const gdouble place = gtorch_plot_axis_place (&canvas->y_axis, value);

  return canvas->y + canvas->height * (1 - (isnan (place) ? place : CLAMP (place, -1000, 1000)));
}

/* --- limits --- */

static gdouble
bounded (gdouble value)
{
  return CLAMP (value, -G_MAXDOUBLE, G_MAXDOUBLE);
}

/* low and high: those of the data. fixed_…: those that were set, or NaN; positive if the axis is logarithmic.
 * pad_…: parts of the whole to add. */
static void
set_limits (GTorchPlotAxis *axis, gdouble low, gdouble high, gdouble fixed_low, gdouble fixed_high,
            gdouble pad_low, gdouble pad_high)
{
  if (low > high)
    {
      low = axis->is_log ? 0.1 : 0;
      high = axis->is_log ? 10 : 1;
    }
  if (axis->is_log)
    {
      const gdouble size = low < high ? log10 (high) - log10 (low) : 1;

      low = MAX (low / pow (10, size * pad_low), LEAST);
      high = bounded (high * pow (10, size * pad_high));
      if (low >= high)
        {
          low = MAX (low / 2, LEAST);
          high = bounded (low * 4);
        }
    }
  else if (low < high)
    {
      const gdouble unit = gtorch_plot_find_unit (low, high);
      const gdouble size = high * unit - low * unit;

      low = bounded (low - size * pad_low / unit);
      high = bounded (high + size * pad_high / unit);
    }
  else
    {
      const gdouble half = low == 0 ? 0.5 : MAX (0.05 * fabs (low), G_MINDOUBLE);

      low = bounded (low - half);
      high = bounded (high + half);
    }
  axis->low = isnan (fixed_low) ? low : fixed_low;
  axis->high = isnan (fixed_high) ? high : fixed_high;
  if (!(axis->low < axis->high))
    { /* the one that was set is beyond all data */
      if (isnan (fixed_high))
        axis->high =
            bounded (axis->is_log ? axis->low * 10 : axis->low + MAX (1, fabs (axis->low)));
      else
        axis->low =
            bounded (axis->is_log ? axis->high / 10 : axis->high - MAX (1, fabs (axis->high)));
    }
  if (!(axis->low < axis->high)) /* at the end of all numbers */
    {
      if (axis->high > 0)
        axis->low = axis->high / 2;
      else
        axis->high = axis->low / 2;
    }
  if (axis->low <= 0 && axis->is_log)
    axis->low = LEAST;
  if (axis->is_log)
    {
      axis->log_low = log10 (axis->low);
      axis->log_high = log10 (axis->high);
    }
}

static void
look_at_items (GTorchPlotLayout *self)
{
  GTorchPlotAxes *axes = self->axes;
  const guint n = g_list_model_get_n_items (G_LIST_MODEL (axes->items));
  const gboolean x_log = axes->x_scale == GTORCH_PLOT_SCALE_LOG;
  const gboolean y_log = axes->y_scale == GTORCH_PLOT_SCALE_LOG;
  GTorchPlotRange range = GTORCH_PLOT_RANGE_EMPTY;
  gboolean has_images = FALSE, has_bars = FALSE;
  guint place = 0;

  self->is_equal = axes->equal_units;
  for (guint i = 0; i < n; i++)
    {
      GTorchPlotItem *item = gtorch_plot_axes_get_item (axes, i);
      GTorchPlotItemClass *klass = GTORCH_PLOT_ITEM_GET_CLASS (item);

      item->place = place;
      place += klass->takes_color;
      if (!item->is_visible || klass->add_range == NULL)
        continue;
      klass->add_range (item, x_log, y_log, &range);
      has_bars |= GTORCH_PLOT_IS_HISTOGRAM (item);
      if (GTORCH_PLOT_IS_IMAGE (item))
        {
          GTorchPlotImage *image = GTORCH_PLOT_IMAGE (item);

          has_images = TRUE;
          if (!gtorch_plot_image_has_extent (image))
            {
              self->is_equal = TRUE;
              self->canvas.y_axis.is_inverted = TRUE;
              self->canvas.x_axis.is_whole = self->canvas.y_axis.is_whole = TRUE;
              if (gtorch_plot_image_get_row_names (image) != NULL
                  || gtorch_plot_image_get_column_names (image) != NULL)
                self->named = image;
            }
          if (gtorch_plot_image_has_scale (image, &self->bar_axis.low, &self->bar_axis.high))
            self->bar = image;
        }
    }
  self->canvas.x_axis.is_log = x_log;
  self->canvas.y_axis.is_log = y_log;
  set_limits (&self->canvas.x_axis, range.x_low, range.x_high, axes->x_low, axes->x_high,
              has_images ? 0 : 0.02, has_images ? 0 : 0.02);
  set_limits (&self->canvas.y_axis, range.y_low, range.y_high, axes->y_low, axes->y_high,
              has_images || (has_bars && range.y_low >= 0) ? 0 : 0.05, has_images ? 0 : 0.05);
  if (x_log || y_log)
    self->is_equal = FALSE;
}

/* --- ticks --- */

/* A name has one line. */
static gchar *
without_breaks (const gchar *name)
{
  g_autofree gchar *valid = g_utf8_make_valid (name, -1);
  GString *text = g_string_new (NULL);

  for (const gchar *at = valid; *at != '\0'; at = g_utf8_next_char (at))
    {
      const gunichar c = g_utf8_get_char (at);
      const GUnicodeBreakType kind = g_unichar_break_type (c);

      g_string_append_unichar (text, kind == G_UNICODE_BREAK_MANDATORY
                                             || kind == G_UNICODE_BREAK_CARRIAGE_RETURN
                                             || kind == G_UNICODE_BREAK_LINE_FEED
                                             || kind == G_UNICODE_BREAK_NEXT_LINE
                                         ? ' '
                                         : c);
    }
  return g_string_free (text, FALSE);
}

static GArray *
name_ticks (const gchar *const *names, guint n, guint every)
{
  GArray *ticks = g_array_new (FALSE, FALSE, sizeof (GTorchPlotTick));

  for (guint i = 0; i < n && names[i] != NULL; i += every)
    {
      GTorchPlotTick tick = { i, without_breaks (names[i]) };

      g_array_append_val (ticks, tick);
    }
  return ticks;
}

static void
ticks_free (GArray *ticks)
{
  for (guint i = 0; i < ticks->len; i++)
    g_clear_pointer (&g_array_index (ticks, GTorchPlotTick, i).label, g_free);
  g_array_set_clear_func (ticks, NULL);
  g_array_unref (ticks);
}

typedef GArray Ticks;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Ticks, ticks_free)

static void
measure_ticks (GTorchPlotLayout *self, const GArray *ticks, gdouble limit, gdouble *widest,
               gdouble *total)
{
  *widest = *total = 0;
  for (guint i = 0; i < ticks->len; i++)
    {
      const gchar *label = g_array_index (ticks, GTorchPlotTick, i).label;
      gdouble width, height;

      if (label == NULL)
        continue;
      gtorch_plot_text_measure (self->canvas.cr, label, TICK_SIZE, FALSE, &width, &height);
      width = MIN (width, limit);
      *widest = MAX (*widest, width);
      *total += width + 12;
    }
}

/* One tick tells no scale: looks for two or three, if there is room for them. */
static GArray *
more_ticks (GTorchPlotLayout *self, const GTorchPlotAxis *axis, GArray *ticks, gdouble n,
            gdouble room, gboolean is_x)
{
  for (guint i = 0; i < 3 && ticks->len < 2; i++)
    {
      GArray *others = gtorch_plot_ticks_new (axis, n *= 1.5);
      gdouble widest, total;

      measure_ticks (self, others, G_MAXDOUBLE, &widest, &total);
      if ((is_x ? total : 1.8 * TICK_SIZE * others->len) <= room)
        {
          GArray *former = ticks;

          ticks = others;
          others = former;
        }
      ticks_free (others);
    }
  return ticks;
}

static GArray *
make_y_ticks (GTorchPlotLayout *self, gdouble height)
{
  const gchar *const *names =
      self->named != NULL ? gtorch_plot_image_get_row_names (self->named) : NULL;
  guint n;

  if (names == NULL)
    return more_ticks (self, &self->canvas.y_axis,
                       gtorch_plot_ticks_new (&self->canvas.y_axis, MAX (2, height / 38)),
                       MAX (2, height / 38), height, FALSE);
  n = gtorch_plot_image_get_height (self->named);
  return name_ticks (names, n, MAX (1, (guint) ceil (n * 12.0 / MAX (height, 1))));
}

static GArray *
make_x_ticks (GTorchPlotLayout *self, gdouble width)
{
  const gchar *const *names =
      self->named != NULL ? gtorch_plot_image_get_column_names (self->named) : NULL;
  gdouble n = MAX (2, width / 60), widest, total;
  GArray *ticks = NULL;

  if (names != NULL)
    {
      const guint n_names = gtorch_plot_image_get_width (self->named);

      return name_ticks (names, n_names, MAX (1, (guint) ceil (n_names * 12.0 / MAX (width, 1))));
    }
  for (guint i = 0; i < 6; i++, n *= 0.7)
    {
      g_clear_pointer (&ticks, ticks_free);
      ticks = gtorch_plot_ticks_new (&self->canvas.x_axis, n);
      measure_ticks (self, ticks, G_MAXDOUBLE, &widest, &total);
      if (total <= width)
        break;
    }
  return more_ticks (self, &self->canvas.x_axis, ticks, n, width, TRUE);
}

/* --- margins --- */

static void
measure_names (GTorchPlotLayout *self, const GArray *ticks, gdouble width)
{
  gdouble total;

  measure_ticks (self, ticks, self->column_limit, &self->names_width, &total);
  self->is_slanted = self->named != NULL && gtorch_plot_image_get_column_names (self->named) != NULL
                     && self->names_width + 6 > width / MAX (1, ticks->len);
}

/* What the lines of a text but the first one take, of a side: the text is cut after a part of it. */
static gdouble
measure_rest (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold, gdouble side)
{
  return MIN (gtorch_plot_text_measure_rest (cr, text, size, is_bold), REST * side);
}

static void
measure_texts (GTorchPlotLayout *self, gdouble width, gdouble height)
{
  GTorchPlotAxes *axes = self->axes;
  cairo_t *cr = self->canvas.cr;

  self->title_size = CLAMP (height / 12, 9, 12.5);
  self->title_rest = measure_rest (cr, axes->title, self->title_size, TRUE, height);
  self->x_rest = measure_rest (cr, axes->x_label, LABEL_SIZE, FALSE, height);
  self->y_rest = measure_rest (cr, axes->y_label, LABEL_SIZE, FALSE, width);
}

GTorchPlotLayout *
gtorch_plot_layout_new (GTorchPlotAxes *axes, cairo_t *cr, const GTorchPlotTheme *theme,
                        gdouble width, gdouble height)
{
  GTorchPlotLayout *self = g_new0 (GTorchPlotLayout, 1);
  GTorchPlotMargins *margins = &self->margins;

  self->axes = g_object_ref (axes);
  self->canvas.cr = cr;
  self->canvas.theme = theme;
  look_at_items (self);
  self->has_axes = axes->show_ticks;
  self->row_limit = self->column_limit = G_MAXINT / PANGO_SCALE;
  if (self->named != NULL && gtorch_plot_image_get_row_names (self->named) != NULL)
    self->row_limit = MAX (NAMES * width, 2 * TICK_SIZE);
  if (self->named != NULL && gtorch_plot_image_get_column_names (self->named) != NULL)
    self->column_limit = MAX (NAMES * height / M_SQRT1_2, 2 * TICK_SIZE);
  measure_texts (self, width, height);
  *margins = (GTorchPlotMargins){ 2, 2, 2, 2 };
  if (axes->title != NULL)
    margins->top += 1.7 * self->title_size + self->title_rest;
  if (self->has_axes)
    {
      g_autoptr (Ticks) y_ticks = make_y_ticks (self, height - 50);
      g_autoptr (Ticks) x_ticks = make_x_ticks (self, width - 60);
      gdouble widest, total;

      measure_ticks (self, y_ticks, self->row_limit, &widest, &total);
      margins->left += widest + TICK_LENGTH + 4;
      margins->top += 4;
      measure_names (self, x_ticks, width - margins->left - 10);
      margins->bottom +=
          TICK_LENGTH + (self->is_slanted ? 0.72 * self->names_width + 12 : 1.7 * TICK_SIZE);
      margins->right += self->is_slanted ? 6 : 0.5 * MIN (self->names_width, 40);
    }
  if (axes->y_label != NULL)
    margins->left += 1.6 * LABEL_SIZE + self->y_rest;
  if (axes->x_label != NULL)
    margins->bottom += 1.6 * LABEL_SIZE + self->x_rest;
  if (self->bar != NULL)
    {
      g_autoptr (Ticks) ticks = gtorch_plot_ticks_new (&self->bar_axis, MAX (2, height / 45));
      gdouble widest, total;

      measure_ticks (self, ticks, G_MAXDOUBLE, &widest, &total);
      margins->right += BAR_GAP + BAR_WIDTH + TICK_LENGTH + 4 + widest;
    }
  return self;
}

void
gtorch_plot_layout_free (GTorchPlotLayout *self)
{
  g_object_unref (self->axes);
  g_free (self);
}

const GTorchPlotMargins *
gtorch_plot_layout_get_margins (const GTorchPlotLayout *self)
{
  return &self->margins;
}

/* --- drawing --- */

static void
stroke (const GTorchPlotCanvas *canvas, const GTorchPlotColor *color, gdouble x0, gdouble y0,
        gdouble x1, gdouble y1)
{
  gtorch_plot_set_source (canvas->cr, color, 1);
  cairo_set_line_width (canvas->cr, 1);
  cairo_move_to (canvas->cr, x0, y0);
  cairo_line_to (canvas->cr, x1, y1);
  cairo_stroke (canvas->cr);
}

static void
draw_grid (GTorchPlotLayout *self, const GArray *x_ticks, const GArray *y_ticks)
{
  const GTorchPlotCanvas *c = &self->canvas;

  for (guint i = 0; i < x_ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (x_ticks, GTorchPlotTick, i);
      const gdouble x = gtorch_plot_sharp (gtorch_plot_canvas_x (c, tick->value));

      if (tick->label != NULL)
        stroke (c, &c->theme->grid, x, c->y, x, c->y + c->height);
    }
  for (guint i = 0; i < y_ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (y_ticks, GTorchPlotTick, i);
      const gdouble y = gtorch_plot_sharp (gtorch_plot_canvas_y (c, tick->value));

      if (tick->label != NULL)
        stroke (c, &c->theme->grid, c->x, y, c->x + c->width, y);
    }
}

static void
draw_x_ticks (GTorchPlotLayout *self, const GArray *ticks)
{
  const GTorchPlotCanvas *c = &self->canvas;
  const gdouble bottom = c->y + c->height;

  for (guint i = 0; i < ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (ticks, GTorchPlotTick, i);
      const gdouble x = gtorch_plot_canvas_x (c, tick->value);

      stroke (c, &c->theme->spine, gtorch_plot_sharp (x), bottom, gtorch_plot_sharp (x),
              bottom + (tick->label != NULL ? TICK_LENGTH : TICK_LENGTH / 2));
      if (tick->label == NULL)
        continue;
      gtorch_plot_set_source (c->cr, &c->theme->muted, 1);
      if (self->is_slanted)
        gtorch_plot_text_draw_within (c->cr, tick->label, TICK_SIZE, FALSE,
                                      MIN (self->column_limit, (x - self->left) / M_SQRT1_2), x + 2,
                                      bottom + TICK_LENGTH + 3, GTORCH_PLOT_END, GTORCH_PLOT_MIDDLE,
                                      -G_PI / 4);
      else
        gtorch_plot_text_draw (c->cr, tick->label, TICK_SIZE, FALSE, x, bottom + TICK_LENGTH + 1,
                               GTORCH_PLOT_MIDDLE, GTORCH_PLOT_START, 0);
    }
}

static void
draw_y_ticks (GTorchPlotLayout *self, const GArray *ticks)
{
  const GTorchPlotCanvas *c = &self->canvas;

  for (guint i = 0; i < ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (ticks, GTorchPlotTick, i);
      const gdouble y = gtorch_plot_canvas_y (c, tick->value);

      stroke (c, &c->theme->spine, c->x - (tick->label != NULL ? TICK_LENGTH : TICK_LENGTH / 2),
              gtorch_plot_sharp (y), c->x, gtorch_plot_sharp (y));
      if (tick->label == NULL)
        continue;
      gtorch_plot_set_source (c->cr, &c->theme->muted, 1);
      gtorch_plot_text_draw_within (c->cr, tick->label, TICK_SIZE, FALSE, self->row_limit,
                                    c->x - TICK_LENGTH - 3, y, GTORCH_PLOT_END, GTORCH_PLOT_MIDDLE,
                                    0);
    }
}

static void
draw_bar (GTorchPlotLayout *self)
{
  const GTorchPlotCanvas *c = &self->canvas;
  const GTorchPlotColormap colormap = gtorch_plot_image_get_colormap (self->bar);
  const gdouble x = c->x + c->width + BAR_GAP;
  g_autoptr (Ticks) ticks = gtorch_plot_ticks_new (&self->bar_axis, MAX (2, c->height / 45));
  cairo_pattern_t *pattern = cairo_pattern_create_linear (0, c->y + c->height, 0, c->y);

  for (guint i = 0; i <= 32; i++)
    {
      const GTorchPlotColor color = gtorch_plot_colormap_look_up (colormap, i / 32.0);

      cairo_pattern_add_color_stop_rgb (pattern, i / 32.0, color.red, color.green, color.blue);
    }
  cairo_rectangle (c->cr, x, c->y, BAR_WIDTH, c->height);
  cairo_set_source (c->cr, pattern);
  cairo_fill (c->cr);
  cairo_pattern_destroy (pattern);
  for (guint i = 0; i < ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (ticks, GTorchPlotTick, i);
      const gdouble y =
          c->y + c->height * (1 - gtorch_plot_axis_place (&self->bar_axis, tick->value));

      if (tick->label == NULL)
        continue;
      stroke (c, &c->theme->spine, x + BAR_WIDTH, gtorch_plot_sharp (y),
              x + BAR_WIDTH + TICK_LENGTH, gtorch_plot_sharp (y));
      gtorch_plot_set_source (c->cr, &c->theme->muted, 1);
      gtorch_plot_text_draw (c->cr, tick->label, TICK_SIZE, FALSE, x + BAR_WIDTH + TICK_LENGTH + 3,
                             y, GTORCH_PLOT_START, GTORCH_PLOT_MIDDLE, 0);
    }
}

/* --- all --- */

static void
draw_items (GTorchPlotLayout *self)
{
  const GTorchPlotCanvas *c = &self->canvas;

  cairo_save (c->cr);
  cairo_rectangle (c->cr, c->x - 1, c->y - 1, c->width + 2, c->height + 2);
  cairo_clip (c->cr);
  for (guint i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (self->axes->items)); i++)
    {
      GTorchPlotItem *item = gtorch_plot_axes_get_item (self->axes, i);
      GTorchPlotItemClass *klass = GTORCH_PLOT_ITEM_GET_CLASS (item);

      if (self->axes->figure != NULL && gtorch_plot_figure_is_cancelled (self->axes->figure))
        break;
      if (item->is_visible && klass->draw != NULL)
        klass->draw (item, c);
      cairo_new_path (c->cr);
    }
  cairo_restore (c->cr);
}

/* Draws a text whose middle is as near to a place as the ends of the whole allow. is_upright: along
 * the left side. rest: what its lines but the first one have room for. */
static void
draw_label (GTorchPlotLayout *self, const gchar *text, gdouble size, gboolean is_bold,
            gdouble middle, gdouble other, GTorchPlotAlign down, gboolean is_upright, gdouble rest)
{
  cairo_t *cr = self->canvas.cr;
  const gdouble start = is_upright ? self->top : self->left;
  const gdouble limit =
      is_upright ? self->canvas.y + self->canvas.height - self->top : self->cell_width;
  const gdouble cut = gtorch_plot_text_measure_rest (cr, text, size, is_bold) - rest;
  gdouble width, height;

  gtorch_plot_text_measure (cr, text, size, is_bold, &width, &height);
  width = MIN (width, limit);
  middle = CLAMP (middle, start + width / 2, start + limit - width / 2);
  cairo_save (cr);
  if (cut > 0)
    { /* the first lines are seen */
      height -= cut;
      if (down == GTORCH_PLOT_END)
        other -= height;
      down = GTORCH_PLOT_START;
      if (is_upright)
        cairo_rectangle (cr, other, start, height, limit);
      else
        cairo_rectangle (cr, start, other, limit, height);
      cairo_clip (cr);
    }
  gtorch_plot_text_draw_within (cr, text, size, is_bold, limit, is_upright ? other : middle,
                                is_upright ? middle : other, GTORCH_PLOT_MIDDLE, down,
                                is_upright ? -G_PI / 2 : 0);
  cairo_restore (cr);
}

static void
draw_texts (GTorchPlotLayout *self, gdouble left, gdouble bottom)
{
  const GTorchPlotCanvas *c = &self->canvas;

  gtorch_plot_set_source (c->cr, &c->theme->text, 1);
  if (self->axes->title != NULL)
    draw_label (self, self->axes->title, self->title_size, TRUE, c->x + c->width / 2,
                c->y - (self->has_axes ? 5 : 2), GTORCH_PLOT_END, FALSE, self->title_rest);
  if (self->axes->x_label != NULL)
    draw_label (self, self->axes->x_label, LABEL_SIZE, FALSE, c->x + c->width / 2, bottom,
                GTORCH_PLOT_END, FALSE, self->x_rest);
  if (self->axes->y_label != NULL)
    draw_label (self, self->axes->y_label, LABEL_SIZE, FALSE, c->y + c->height / 2, left,
                GTORCH_PLOT_START, TRUE, self->y_rest);
}

/* Makes units of both axes equally long by making the place smaller. */
static void
make_equal (GTorchPlotCanvas *c)
{
  const GTorchPlotAxis *x = &c->x_axis, *y = &c->y_axis;
  const gdouble scale = gtorch_plot_find_unit (MAX (fabs (x->low), fabs (x->high)),
                                               MAX (fabs (y->low), fabs (y->high)));
  const gdouble x_range = x->high * scale - x->low * scale;
  const gdouble y_range = y->high * scale - y->low * scale;
  const gdouble unit = MIN (c->width / x_range, c->height / y_range);

  if (!isfinite (unit) || !(unit > 0))
    return;
  c->x += (c->width - unit * x_range) / 2;
  c->y += (c->height - unit * y_range) / 2;
  c->width = MAX (unit * x_range, 0.5);
  c->height = MAX (unit * y_range, 0.5);
}

void
gtorch_plot_layout_draw (GTorchPlotLayout *self, gdouble x, gdouble y, gdouble width,
                         gdouble height, const GTorchPlotMargins *margins)
{
  GTorchPlotCanvas *c = &self->canvas;
  g_autoptr (Ticks) x_ticks = NULL;
  g_autoptr (Ticks) y_ticks = NULL;

  self->left = x;
  self->top = y;
  self->cell_width = width;
  self->cell_height = height;
  c->x = x + margins->left;
  c->y = y + margins->top;
  c->width = width - margins->left - margins->right;
  c->height = height - margins->top - margins->bottom;
  if (c->width < SMALLEST || c->height < SMALLEST)
    return;
  if (self->is_equal)
    make_equal (c);
  x_ticks = make_x_ticks (self, c->width);
  y_ticks = make_y_ticks (self, c->height);
  if (self->has_axes && self->axes->show_grid && self->named == NULL)
    draw_grid (self, x_ticks, y_ticks);
  draw_items (self);
  if (self->has_axes)
    {
      stroke (c, &c->theme->spine, gtorch_plot_sharp (c->x), c->y, gtorch_plot_sharp (c->x),
              c->y + c->height);
      stroke (c, &c->theme->spine, c->x, gtorch_plot_sharp (c->y + c->height), c->x + c->width,
              gtorch_plot_sharp (c->y + c->height));
      draw_x_ticks (self, x_ticks);
      draw_y_ticks (self, y_ticks);
    }
  if (self->bar != NULL)
    draw_bar (self);
  draw_texts (self, c->x - self->margins.left + 2, c->y + c->height + self->margins.bottom - 2);
  if (self->axes->show_legend)
    gtorch_plot_legend_draw (self->axes, c);
}
