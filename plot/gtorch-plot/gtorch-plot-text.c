/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Text by Pango, which knows all scripts. Sizes are in units of the cairo context. */

#include "config.h"

#include "gtorch-plot-private.h"

static PangoLayout *
make_layout (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold)
{
  PangoLayout *layout = pango_cairo_create_layout (cr);
  PangoFontDescription *font = pango_font_description_new ();
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);

  pango_font_description_set_family (font, "Cantarell, Noto Sans, DejaVu Sans, Sans");
  pango_font_description_set_absolute_size (font, size * PANGO_SCALE);
  if (is_bold)
    pango_font_description_set_weight (font, PANGO_WEIGHT_BOLD);
  pango_layout_set_font_description (layout, font);
  pango_font_description_free (font);
  pango_layout_set_text (layout, valid, -1);
  return layout;
}

/* What is wider than limit ends with an ellipsis. */
static void
measure (PangoLayout *layout, gdouble limit, gdouble *left, gdouble *width, gdouble *height)
{
  PangoRectangle logical;

  pango_layout_get_extents (layout, NULL, &logical);
  if (logical.width > limit * PANGO_SCALE)
    {
      pango_layout_set_width (layout, (int) (MAX (limit, 1) * PANGO_SCALE));
      pango_layout_set_ellipsize (layout, PANGO_ELLIPSIZE_END);
      pango_layout_get_extents (layout, NULL, &logical);
    }
  *left = (gdouble) logical.x / PANGO_SCALE;
  *width = (gdouble) logical.width / PANGO_SCALE;
  *height = (gdouble) logical.height / PANGO_SCALE;
}

void
gtorch_plot_text_measure (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold,
                          gdouble *width, gdouble *height)
{
  g_autoptr (PangoLayout) layout = make_layout (cr, text, size, is_bold);
  gdouble left;

  measure (layout, G_MAXINT / PANGO_SCALE, &left, width, height);
}

gdouble
gtorch_plot_text_measure_rest (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold)
{
  g_autoptr (PangoLayout) layout = NULL;
  PangoRectangle all, first;

  if (text == NULL)
    return 0;
  layout = make_layout (cr, text, size, is_bold);
  if (pango_layout_get_line_count (layout) < 2)
    return 0;
  pango_layout_get_extents (layout, NULL, &all);
  pango_layout_line_get_extents (pango_layout_get_line_readonly (layout, 0), NULL, &first);
  return (gdouble) (all.height - first.height) / PANGO_SCALE;
}

void
gtorch_plot_text_draw_within (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold,
                              gdouble limit, gdouble x, gdouble y, GTorchPlotAlign across,
                              GTorchPlotAlign down, gdouble angle)
{
  g_autoptr (PangoLayout) layout = make_layout (cr, text, size, is_bold);
  gdouble left, width, height;

  pango_layout_set_alignment (layout,
                              across == GTORCH_PLOT_MIDDLE ? PANGO_ALIGN_CENTER : PANGO_ALIGN_LEFT);
  measure (layout, limit, &left, &width, &height);
  cairo_save (cr);
  cairo_translate (cr, x, y);
  if (angle != 0)
    cairo_rotate (cr, angle);
  cairo_move_to (cr, -0.5 * across * width - left, -0.5 * down * height);
  pango_cairo_show_layout (cr, layout);
  cairo_restore (cr);
  cairo_new_path (cr);
}

void
gtorch_plot_text_draw (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold, gdouble x,
                       gdouble y, GTorchPlotAlign across, GTorchPlotAlign down, gdouble angle)
{
  gtorch_plot_text_draw_within (cr, text, size, is_bold, G_MAXINT / PANGO_SCALE, x, y, across, down,
                                angle);
}
