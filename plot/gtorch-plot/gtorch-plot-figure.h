/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <cairo.h>
#include <gio/gio.h>

#include <gtorch-plot/gtorch-plot-types.h>

G_BEGIN_DECLS

#define GTORCH_PLOT_TYPE_FIGURE (gtorch_plot_figure_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPlotFigure, gtorch_plot_figure, GTORCH_PLOT, FIGURE, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_figure_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotAxes *gtorch_plot_figure_get_axes (GTorchPlotFigure *self, gint row, gint column,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_figure_get_n_rows (GTorchPlotFigure *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_figure_get_n_columns (GTorchPlotFigure *self);

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_plot_figure_get_title (GTorchPlotFigure *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_figure_set_title (GTorchPlotFigure *self, const gchar *title);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_figure_get_size (GTorchPlotFigure *self, gdouble *width, gdouble *height);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_figure_set_size (GTorchPlotFigure *self, gdouble width, gdouble height,
                                      GError **error);
GTORCH_AVAILABLE_IN_0_1
const gdouble *gtorch_plot_figure_get_width_ratios (GTorchPlotFigure *self, gsize *n_ratios);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_figure_set_width_ratios (GTorchPlotFigure *self, const gdouble *ratios,
                                              gsize n_ratios, GError **error);
GTORCH_AVAILABLE_IN_0_1
const gdouble *gtorch_plot_figure_get_height_ratios (GTorchPlotFigure *self, gsize *n_ratios);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_figure_set_height_ratios (GTorchPlotFigure *self, const gdouble *ratios,
                                               gsize n_ratios, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_plot_figure_get_resolution (GTorchPlotFigure *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_figure_set_resolution (GTorchPlotFigure *self, gdouble resolution,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotScheme gtorch_plot_figure_get_scheme (GTorchPlotFigure *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_figure_set_scheme (GTorchPlotFigure *self, GTorchPlotScheme scheme);

GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_figure_draw (GTorchPlotFigure *self, cairo_t *cr, gdouble width, gdouble height);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_figure_draw_over (GTorchPlotFigure *self, cairo_t *cr, gdouble width,
                                   gdouble height, GTorchPlotScheme scheme);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_plot_figure_to_bytes (GTorchPlotFigure *self, GTorchPlotFormat format,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_figure_save (GTorchPlotFigure *self, GFile *file, GCancellable *cancellable,
                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_figure_save_async (GTorchPlotFigure *self, GFile *file, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_figure_save_finish (GTorchPlotFigure *self, GAsyncResult *result,
                                         GError **error);

G_END_DECLS
