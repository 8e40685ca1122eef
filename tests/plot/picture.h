/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Figures are drawn, and the pixels of their colours counted. */

#pragma once

#include <gtorch-plot/gtorch-plot.h>

typedef struct
{
  cairo_surface_t *surface;
  guint32 *pixels;
  gint width, height;
} Picture;

static inline Picture
draw (GTorchPlotFigure *figure, gint width, gint height)
{
  Picture picture = { cairo_image_surface_create (CAIRO_FORMAT_RGB24, width, height), NULL, width,
                      height };
  cairo_t *cr = cairo_create (picture.surface);

  gtorch_plot_figure_draw (figure, cr, width, height);
  g_assert_cmpint (cairo_status (cr), ==, CAIRO_STATUS_SUCCESS);
  cairo_destroy (cr);
  cairo_surface_flush (picture.surface);
  picture.pixels = (guint32 *) (gpointer) cairo_image_surface_get_data (picture.surface);
  return picture;
}

static inline void
picture_clear (Picture *picture)
{
  cairo_surface_destroy (picture->surface);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Picture, picture_clear)

static inline guint
count_color (const Picture *picture, guint32 color)
{
  guint n = 0;

  for (gint i = 0; i < picture->width * picture->height; i++)
    n += (picture->pixels[i] & 0xffffff) == color;
  return n;
}

/* The rectangle around all pixels of a colour; FALSE: there are none. */
static inline gboolean
find_color (const Picture *picture, guint32 color, cairo_rectangle_int_t *found)
{
  gint left = picture->width, right = -1, top = picture->height, bottom = -1;

  for (gint y = 0; y < picture->height; y++)
    for (gint x = 0; x < picture->width; x++)
      if ((picture->pixels[y * picture->width + x] & 0xffffff) == color)
        {
          left = MIN (left, x);
          right = MAX (right, x);
          top = MIN (top, y);
          bottom = MAX (bottom, y);
        }
  *found = (cairo_rectangle_int_t){ left, top, right - left + 1, bottom - top + 1 };
  return right >= 0;
}

#define GROUND 0xffffff
#define FIRST  0x0072b2
#define SECOND 0xd55e00

static inline GTorchTensor *
tensor (const gdouble *values, gsize n)
{
  g_autoptr (GError) error = NULL;
  const gint64 shape[] = { n };
  GTorchTensor *made =
      gtorch_tensor_new_from_doubles (values, n, shape, 1, GTORCH_DTYPE_FLOAT64, NULL, &error);

  g_assert_no_error (error);
  return made;
}

#define TENSOR(...)                         \
  tensor ((const gdouble[]){ __VA_ARGS__ }, \
          sizeof ((const gdouble[]){ __VA_ARGS__ }) / sizeof (gdouble))

static inline GTorchPlotAxes *
axes_of (GTorchPlotFigure *figure)
{
  g_autoptr (GError) error = NULL;
  GTorchPlotAxes *axes = gtorch_plot_figure_get_axes (figure, 0, 0, &error);

  g_assert_no_error (error);
  return axes;
}
