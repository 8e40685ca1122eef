/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-item.h>

G_BEGIN_DECLS

#define GTORCH_PLOT_TYPE_IMAGE (gtorch_plot_image_get_type ())

typedef struct _GTorchPlotImageClass GTorchPlotImageClass;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_image_get_type (void) G_GNUC_CONST;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPlotImage, g_object_unref)
#define GTORCH_PLOT_IMAGE(object) \
  (G_TYPE_CHECK_INSTANCE_CAST ((object), GTORCH_PLOT_TYPE_IMAGE, GTorchPlotImage))
#define GTORCH_PLOT_IS_IMAGE(object) (G_TYPE_CHECK_INSTANCE_TYPE ((object), GTORCH_PLOT_TYPE_IMAGE))

GTORCH_AVAILABLE_IN_0_1
GTorchPlotImage *gtorch_plot_image_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_set_pixels (GTorchPlotImage *self, GTorchTensor *pixels, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_image_set_pixels_async (GTorchPlotImage *self, GTorchTensor *pixels,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_set_pixels_finish (GTorchPlotImage *self, GAsyncResult *result,
                                              GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_image_get_width (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_image_get_height (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotColormap gtorch_plot_image_get_colormap (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_image_set_colormap (GTorchPlotImage *self, GTorchPlotColormap colormap);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_image_get_range (GTorchPlotImage *self, gdouble *minimum, gdouble *maximum);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_set_range (GTorchPlotImage *self, gdouble minimum, gdouble maximum,
                                      GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_set_extent (GTorchPlotImage *self, gdouble left, gdouble right,
                                       gdouble bottom, gdouble top, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_get_show_values (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_image_set_show_values (GTorchPlotImage *self, gboolean show_values);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_get_show_scale (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_image_set_show_scale (GTorchPlotImage *self, gboolean show_scale);
GTORCH_AVAILABLE_IN_0_1
const gchar *const *gtorch_plot_image_get_column_names (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_set_column_names (GTorchPlotImage *self, const gchar *const *names,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
const gchar *const *gtorch_plot_image_get_row_names (GTorchPlotImage *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_image_set_row_names (GTorchPlotImage *self, const gchar *const *names,
                                          GError **error);

G_END_DECLS
