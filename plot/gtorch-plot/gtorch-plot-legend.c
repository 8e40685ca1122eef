/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The legend. Its rows are as high as their labels have lines; if there is no room for all items, the last
 * row tells how many there are besides. */

#include "config.h"

#include <math.h>

#include "gtorch-plot-private.h"

#define TEXT_SIZE 10.5
#define ROW       (1.5 * TEXT_SIZE)
#define SAMPLE    20
#define PAD       6
#define INSET     8
#define PART      0.6 /* of the width of the axes, at most */

typedef struct
{
  GTorchPlotItem *item;
  gdouble rest, height; /* of the label's lines but the first one; of the row */
} Row;

static gdouble
count_in (GTorchPlotAxes *axes, const GTorchPlotCanvas *canvas, gdouble x, gdouble y, gdouble width,
          gdouble height)
{
  gdouble sum = 0;

  for (guint i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (axes->items)); i++)
    {
      GTorchPlotItem *item = gtorch_plot_axes_get_item (axes, i);
      GTorchPlotItemClass *klass = GTORCH_PLOT_ITEM_GET_CLASS (item);

      if (item->is_visible && klass->count_in != NULL)
        sum += klass->count_in (item, canvas, x, y, width, height);
    }
  return sum;
}

/* The items that have a label, and the width of the widest one. */
static GArray *
find_rows (GTorchPlotAxes *axes, const GTorchPlotCanvas *canvas, gdouble *width)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));

  *width = 0;
  for (guint i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (axes->items)); i++)
    {
      GTorchPlotItem *item = gtorch_plot_axes_get_item (axes, i);
      Row row = { item };
      gdouble w, h;

      if (!item->is_visible || item->label == NULL
          || GTORCH_PLOT_ITEM_GET_CLASS (item)->draw_sample == NULL)
        continue;
      gtorch_plot_text_measure (canvas->cr, item->label, TEXT_SIZE, FALSE, &w, &h);
      *width = MAX (*width, w);
      row.rest = gtorch_plot_text_measure_rest (canvas->cr, item->label, TEXT_SIZE, FALSE);
      row.height = ROW + row.rest;
      g_array_append_val (rows, row);
    }
  return rows;
}

/* How many rows fit, the last of which may stand for all that follow; the last lines of a single one may be
 * missing. */
static guint
fit_rows (GArray *rows, gdouble room, gdouble *height)
{
  guint n = 0;

  *height = 0;
  if (room < ROW)
    return 0;
  while (n < rows->len && *height + g_array_index (rows, Row, n).height <= room)
    *height += g_array_index (rows, Row, n++).height;
  if (n == 0 && rows->len == 1)
    {
      *height = room;
      return 1;
    }
  if (n < rows->len && *height + ROW <= room)
    {
      g_array_index (rows, Row, n++).height = ROW;
      *height += ROW;
    }
  return n;
}

static gchar *
name_others (const GArray *rows, guint n)
{
  return g_strdup_printf ("… (+%u)", rows->len - n + 1);
}

static void
draw_frame (const GTorchPlotCanvas *c, gdouble x, gdouble y, gdouble width, gdouble height)
{
  cairo_rectangle (c->cr, gtorch_plot_sharp (x), gtorch_plot_sharp (y), floor (width),
                   floor (height));
  gtorch_plot_set_source (c->cr, &c->theme->ground, 0.82);
  cairo_fill_preserve (c->cr);
  gtorch_plot_set_source (c->cr, &c->theme->grid, 1);
  cairo_set_line_width (c->cr, 1);
  cairo_stroke (c->cr);
}

static void
draw_rows (const GTorchPlotCanvas *c, const GArray *rows, guint n, gdouble x, gdouble top,
           gdouble limit)
{
  for (guint i = 0; i < n; i++)
    {
      const Row *row = &g_array_index (rows, Row, i);
      const gboolean is_last = i + 1 == n && n < rows->len;
      const gdouble text_height = is_last ? ROW : ROW + row->rest;
      g_autofree gchar *last = name_others (rows, n);

      if (!is_last)
        GTORCH_PLOT_ITEM_GET_CLASS (row->item)->draw_sample (row->item, c, x + PAD, top + 2, SAMPLE,
                                                             ROW - 4);
      gtorch_plot_set_source (c->cr, &c->theme->text, 1);
      gtorch_plot_text_draw_within (c->cr, is_last ? last : row->item->label, TEXT_SIZE, FALSE,
                                    limit, x + 2 * PAD + SAMPLE, top + text_height / 2,
                                    GTORCH_PLOT_START, GTORCH_PLOT_MIDDLE, 0);
      top += row->height;
    }
}

void
gtorch_plot_legend_draw (GTorchPlotAxes *axes, const GTorchPlotCanvas *c)
{
  const gdouble limit = MAX (PART * c->width - SAMPLE - 3 * PAD, 2 * TEXT_SIZE);
  gdouble width, height, x = 0, y = 0, best = G_MAXDOUBLE;
  g_autoptr (GArray) rows = find_rows (axes, c, &width);
  const guint n = fit_rows (rows, c->height - 2 * INSET - 2 * PAD, &height);

  if (n == 0)
    return;
  if (n < rows->len)
    {
      g_autofree gchar *last = name_others (rows, n);
      gdouble w, h;

      gtorch_plot_text_measure (c->cr, last, TEXT_SIZE, FALSE, &w, &h);
      width = MAX (width, w);
    }
  width = MIN (width, limit) + SAMPLE + 3 * PAD;
  height += 2 * PAD - 3;
  for (guint corner = 0; corner < 4; corner++)
    {
      const gdouble left = corner % 2 == 0 ? c->x + c->width - width - INSET : c->x + INSET;
      const gdouble top = corner < 2 ? c->y + INSET : c->y + c->height - height - INSET;
      const gdouble taken = count_in (axes, c, left, top, width, height);

      if (taken < best - 1e-9)
        {
          best = taken;
          x = left;
          y = top;
        }
    }
  draw_frame (c, x, y, width, height);
  cairo_save (c->cr);
  if (g_array_index (rows, Row, 0).height > height)
    {
      cairo_rectangle (c->cr, x, y, width, height);
      cairo_clip (c->cr);
    }
  draw_rows (c, rows, n, x, y + PAD - 1.5, limit);
  cairo_restore (c->cr);
}
