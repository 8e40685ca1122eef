/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-plot-private.h"

G_BEGIN_DECLS

/* What the colours of a map stand for. */
typedef struct
{
  gint colormap; /* of GTorchPlotColormap */
  gdouble low, high;
  gboolean is_valid; /* otherwise there are no colours */
} GTorchPlotMapping;

/* The pixels of an image. They do not change, so that several images and threads may have them. */
typedef struct
{
  gatomicrefcount ref_count;
  guint height, width;
  gdouble *numbers;          /* one for each pixel, or NULL: there are colours */
  gdouble low, high;         /* the least and the greatest finite number; low > high: none */
  cairo_surface_t *surface;  /* colours, or the numbers as they were painted first; or NULL */
  GTorchPlotMapping mapping; /* of those */
} GTorchPlotPixels;

GTorchPlotPixels *gtorch_plot_pixels_new (guint height, guint width);
GTorchPlotPixels *gtorch_plot_pixels_ref (GTorchPlotPixels *self);
void gtorch_plot_pixels_unref (GTorchPlotPixels *self);
/* Sets the result of a read. Its numbers are painted with the caller's colormap, minimum and maximum. */
void gtorch_plot_pixels_prepare (GTorchPlotRead *read);
/* NaN: the least, or the greatest number */
GTorchPlotMapping gtorch_plot_pixels_map (const GTorchPlotPixels *self, gint colormap,
                                          gdouble minimum, gdouble maximum);
/* Returns a new surface. */
cairo_surface_t *gtorch_plot_pixels_paint (const GTorchPlotPixels *self,
                                           const GTorchPlotMapping *mapping);
/* Writes the numbers on the pixels of a rectangle of the canvas, where they are large enough for that. */
void gtorch_plot_pixels_draw_values (const GTorchPlotPixels *self, const GTorchPlotMapping *mapping,
                                     const GTorchPlotCanvas *canvas, gdouble x, gdouble y,
                                     gdouble width, gdouble height);
/* Another surface with the same pixels, for another thread or owner. */
cairo_surface_t *gtorch_plot_surface_share (cairo_surface_t *surface);
/* Makes pixels larger for files of vectors, whose readers would blur them. */
cairo_surface_t *gtorch_plot_surface_enlarge (cairo_surface_t *surface, guint factor);
/* On a logarithmic axis pixels are of different widths: the place between the axes is filled from
 * them. extent: left, right, top, bottom. */
void gtorch_plot_surface_draw_warped (cairo_surface_t *surface, const GTorchPlotCanvas *canvas,
                                      const gdouble *extent);

G_END_DECLS
