/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_lines (GTorchTensor **tensors, gsize n_tensors,
                                     const gchar *const *labels,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_histogram (GTorchTensor *values, guint n_bins,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_image (GTorchTensor *pixels,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_images (GTorchTensor *images, guint n_columns,
                                      const gchar *const *titles,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_confusion_matrix (GTorchTensor *counts,
                                                const gchar *const *class_names,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPlotFigure *gtorch_plot_attention (GTorchTensor *weights, const gchar *const *query_names,
                                         const gchar *const *key_names,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
