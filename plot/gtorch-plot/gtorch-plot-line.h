/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-item.h>

G_BEGIN_DECLS

#define GTORCH_PLOT_TYPE_LINE (gtorch_plot_line_get_type ())

typedef struct _GTorchPlotLineClass GTorchPlotLineClass;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_line_get_type (void) G_GNUC_CONST;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPlotLine, g_object_unref)
#define GTORCH_PLOT_LINE(object) \
  (G_TYPE_CHECK_INSTANCE_CAST ((object), GTORCH_PLOT_TYPE_LINE, GTorchPlotLine))
#define GTORCH_PLOT_IS_LINE(object) (G_TYPE_CHECK_INSTANCE_TYPE ((object), GTORCH_PLOT_TYPE_LINE))

GTORCH_AVAILABLE_IN_0_1
GTorchPlotLine *gtorch_plot_line_new (const gchar *label) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_line_set_values (GTorchPlotLine *self, GTorchTensor *x, GTorchTensor *y,
                                      GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_line_set_values_async (GTorchPlotLine *self, GTorchTensor *x, GTorchTensor *y,
                                        GCancellable *cancellable, GAsyncReadyCallback callback,
                                        gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_line_set_values_finish (GTorchPlotLine *self, GAsyncResult *result,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_line_set_points (GTorchPlotLine *self, const gdouble *x, gsize n_x,
                                      const gdouble *y, gsize n_y, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_line_append (GTorchPlotLine *self, gdouble x, gdouble y);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_line_clear (GTorchPlotLine *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_line_get_n_points (GTorchPlotLine *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_line_get_point (GTorchPlotLine *self, guint index, gdouble *x, gdouble *y);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_line_get_max_points (GTorchPlotLine *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_line_set_max_points (GTorchPlotLine *self, guint max_points);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotStyle gtorch_plot_line_get_style (GTorchPlotLine *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_line_set_style (GTorchPlotLine *self, GTorchPlotStyle style);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_plot_line_get_width (GTorchPlotLine *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_line_set_width (GTorchPlotLine *self, gdouble width, GError **error);

G_END_DECLS
