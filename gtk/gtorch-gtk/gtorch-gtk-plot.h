/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtk/gtk.h>

#include <gtorch-plot/gtorch-plot.h>

G_BEGIN_DECLS

#define GTORCH_GTK_TYPE_PLOT (gtorch_gtk_plot_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGtkPlot, gtorch_gtk_plot, GTORCH_GTK, PLOT, GtkWidget)

GTORCH_AVAILABLE_IN_0_1
GtkWidget *gtorch_gtk_plot_new (GTorchPlotFigure *figure) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_gtk_plot_get_figure (GTorchGtkPlot *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_plot_set_figure (GTorchGtkPlot *self, GTorchPlotFigure *figure);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_plot_append (GTorchGtkPlot *self, const gchar *label, gdouble x, gdouble y);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_plot_follow_trainer (GTorchGtkPlot *self, GTorchTrainer *trainer);

G_END_DECLS
