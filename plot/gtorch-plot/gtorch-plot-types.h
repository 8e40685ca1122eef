/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

G_BEGIN_DECLS

/* Every public typedef lives here, so that no two headers need each other. */
typedef struct _GTorchPlotAxes GTorchPlotAxes;
typedef struct _GTorchPlotFigure GTorchPlotFigure;
typedef struct _GTorchPlotHistogram GTorchPlotHistogram;
typedef struct _GTorchPlotImage GTorchPlotImage;
typedef struct _GTorchPlotItem GTorchPlotItem;
typedef struct _GTorchPlotLine GTorchPlotLine;

/**
 * GTorchPlotScheme:
 * @GTORCH_PLOT_SCHEME_LIGHT: dark text on white
 * @GTORCH_PLOT_SCHEME_DARK: light text on a dark ground
 *
 * The colours of a figure. In both, people with a colour vision deficiency can tell lines apart.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PLOT_SCHEME_LIGHT,
  GTORCH_PLOT_SCHEME_DARK,
} GTorchPlotScheme;

/**
 * GTorchPlotScale:
 * @GTORCH_PLOT_SCALE_LINEAR: equal steps are equally far apart
 * @GTORCH_PLOT_SCALE_LOG: equal factors are equally far apart; numbers that are not positive are gaps
 *
 * How numbers become places on an axis.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PLOT_SCALE_LINEAR,
  GTORCH_PLOT_SCALE_LOG,
} GTorchPlotScale;

/**
 * GTorchPlotStyle:
 * @GTORCH_PLOT_STYLE_LINE: a line through the points
 * @GTORCH_PLOT_STYLE_POINTS: a dot at each point
 * @GTORCH_PLOT_STYLE_BOTH: a line with dots
 *
 * How the points of a line are drawn.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PLOT_STYLE_LINE,
  GTORCH_PLOT_STYLE_POINTS,
  GTORCH_PLOT_STYLE_BOTH,
} GTorchPlotStyle;

/**
 * GTorchPlotColormap:
 * @GTORCH_PLOT_COLORMAP_VIRIDIS: from dark blue over green to yellow
 * @GTORCH_PLOT_COLORMAP_MAGMA: from black over red to light yellow
 * @GTORCH_PLOT_COLORMAP_GRAY: from black to white
 * @GTORCH_PLOT_COLORMAP_INK: from white to black
 * @GTORCH_PLOT_COLORMAP_BLUES: from white to dark blue
 * @GTORCH_PLOT_COLORMAP_COOL_WARM: from blue over white to red, for numbers around a middle
 *
 * Which colours stand for numbers. Their lightness grows or falls steadily, but for the last one.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PLOT_COLORMAP_VIRIDIS,
  GTORCH_PLOT_COLORMAP_MAGMA,
  GTORCH_PLOT_COLORMAP_GRAY,
  GTORCH_PLOT_COLORMAP_INK,
  GTORCH_PLOT_COLORMAP_BLUES,
  GTORCH_PLOT_COLORMAP_COOL_WARM,
} GTorchPlotColormap;

/**
 * GTorchPlotFormat:
 * @GTORCH_PLOT_FORMAT_PNG: pixels
 * @GTORCH_PLOT_FORMAT_SVG: vectors, for pages of the web
 * @GTORCH_PLOT_FORMAT_PDF: vectors, for print
 *
 * A format of files.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PLOT_FORMAT_PNG,
  GTORCH_PLOT_FORMAT_SVG,
  GTORCH_PLOT_FORMAT_PDF,
} GTorchPlotFormat;

#define GTORCH_PLOT_TYPE_SCHEME   (gtorch_plot_scheme_get_type ())
#define GTORCH_PLOT_TYPE_SCALE    (gtorch_plot_scale_get_type ())
#define GTORCH_PLOT_TYPE_STYLE    (gtorch_plot_style_get_type ())
#define GTORCH_PLOT_TYPE_COLORMAP (gtorch_plot_colormap_get_type ())
#define GTORCH_PLOT_TYPE_FORMAT   (gtorch_plot_format_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_scheme_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_scale_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_style_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_colormap_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_format_get_type (void) G_GNUC_CONST;

GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_colormap_get_color (GTorchPlotColormap colormap, gdouble position, gdouble *red,
                                     gdouble *green, gdouble *blue);

G_END_DECLS
