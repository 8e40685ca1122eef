/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-item.h>

G_BEGIN_DECLS

#define GTORCH_PLOT_TYPE_AXES (gtorch_plot_axes_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPlotAxes, gtorch_plot_axes, GTORCH_PLOT, AXES, GObject)

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_add (GTorchPlotAxes *self, GTorchPlotItem *item, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_remove (GTorchPlotAxes *self, GTorchPlotItem *item);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_clear (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_plot_axes_get_items (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotLine *gtorch_plot_axes_add_line (GTorchPlotAxes *self, GTorchTensor *x, GTorchTensor *y,
                                           const gchar *label, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotHistogram *gtorch_plot_axes_add_histogram (GTorchPlotAxes *self, GTorchTensor *values,
                                                     guint n_bins, const gchar *label,
                                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotImage *gtorch_plot_axes_add_image (GTorchPlotAxes *self, GTorchTensor *pixels,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotImage *gtorch_plot_axes_add_matrix (GTorchPlotAxes *self, GTorchTensor *matrix,
                                              const gchar *const *row_names,
                                              const gchar *const *column_names, GError **error);

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_plot_axes_get_title (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_title (GTorchPlotAxes *self, const gchar *title);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_plot_axes_get_x_label (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_x_label (GTorchPlotAxes *self, const gchar *label);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_plot_axes_get_y_label (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_y_label (GTorchPlotAxes *self, const gchar *label);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotScale gtorch_plot_axes_get_x_scale (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_set_x_scale (GTorchPlotAxes *self, GTorchPlotScale scale, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotScale gtorch_plot_axes_get_y_scale (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_set_y_scale (GTorchPlotAxes *self, GTorchPlotScale scale, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_get_x_limits (GTorchPlotAxes *self, gdouble *low, gdouble *high);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_set_x_limits (GTorchPlotAxes *self, gdouble low, gdouble high,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_get_y_limits (GTorchPlotAxes *self, gdouble *low, gdouble *high);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_set_y_limits (GTorchPlotAxes *self, gdouble low, gdouble high,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_get_show_legend (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_show_legend (GTorchPlotAxes *self, gboolean show_legend);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_get_show_grid (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_show_grid (GTorchPlotAxes *self, gboolean show_grid);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_get_show_ticks (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_show_ticks (GTorchPlotAxes *self, gboolean show_ticks);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_axes_get_equal_units (GTorchPlotAxes *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_axes_set_equal_units (GTorchPlotAxes *self, gboolean equal_units);

G_END_DECLS
