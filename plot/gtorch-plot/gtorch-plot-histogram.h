/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-item.h>

G_BEGIN_DECLS

#define GTORCH_PLOT_TYPE_HISTOGRAM (gtorch_plot_histogram_get_type ())

typedef struct _GTorchPlotHistogramClass GTorchPlotHistogramClass;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_histogram_get_type (void) G_GNUC_CONST;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPlotHistogram, g_object_unref)
#define GTORCH_PLOT_HISTOGRAM(object) \
  (G_TYPE_CHECK_INSTANCE_CAST ((object), GTORCH_PLOT_TYPE_HISTOGRAM, GTorchPlotHistogram))
#define GTORCH_PLOT_IS_HISTOGRAM(object) \
  (G_TYPE_CHECK_INSTANCE_TYPE ((object), GTORCH_PLOT_TYPE_HISTOGRAM))

GTORCH_AVAILABLE_IN_0_1
GTorchPlotHistogram *gtorch_plot_histogram_new (const gchar *label) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_histogram_set_values (GTorchPlotHistogram *self, GTorchTensor *values,
                                           guint n_bins, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_histogram_set_values_async (GTorchPlotHistogram *self, GTorchTensor *values,
                                             guint n_bins, GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_histogram_set_values_finish (GTorchPlotHistogram *self, GAsyncResult *result,
                                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_histogram_set_counts (GTorchPlotHistogram *self, gdouble low, gdouble high,
                                           const gdouble *counts, gsize n_counts, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_plot_histogram_get_n_bins (GTorchPlotHistogram *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_plot_histogram_get_count (GTorchPlotHistogram *self, guint bin);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_histogram_get_bounds (GTorchPlotHistogram *self, gdouble *low, gdouble *high);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_plot_histogram_get_n_ignored (GTorchPlotHistogram *self);

G_END_DECLS
