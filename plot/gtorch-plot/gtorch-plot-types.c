/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-plot-types.h"

G_DEFINE_ENUM_TYPE (GTorchPlotScheme, gtorch_plot_scheme,
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_SCHEME_LIGHT, "light"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_SCHEME_DARK, "dark"))

G_DEFINE_ENUM_TYPE (GTorchPlotScale, gtorch_plot_scale,
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_SCALE_LINEAR, "linear"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_SCALE_LOG, "log"))

G_DEFINE_ENUM_TYPE (GTorchPlotStyle, gtorch_plot_style,
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_STYLE_LINE, "line"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_STYLE_POINTS, "points"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_STYLE_BOTH, "both"))

G_DEFINE_ENUM_TYPE (GTorchPlotColormap, gtorch_plot_colormap,
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_COLORMAP_VIRIDIS, "viridis"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_COLORMAP_MAGMA, "magma"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_COLORMAP_GRAY, "gray"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_COLORMAP_INK, "ink"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_COLORMAP_BLUES, "blues"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_COLORMAP_COOL_WARM, "cool-warm"))

G_DEFINE_ENUM_TYPE (GTorchPlotFormat, gtorch_plot_format,
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_FORMAT_PNG, "png"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_FORMAT_SVG, "svg"),
                    G_DEFINE_ENUM_VALUE (GTORCH_PLOT_FORMAT_PDF, "pdf"))
