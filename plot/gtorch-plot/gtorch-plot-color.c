/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The colours of lines are those of Okabe and Ito, which people with any of the usual colour vision
 * deficiencies tell apart, in an order in which neighbours differ in lightness; on a dark ground their
 * dark ones are lighter. Maps of colours are lines between a few colours: viridis and magma (matplotlib),
 * the others from ColorBrewer. */

#include "config.h"

#include <math.h>

#include "gtorch-plot-private.h"

#define RGB(number)                                                                        \
  {                                                                                        \
    ((number) >> 16 & 255) / 255.0, ((number) >> 8 & 255) / 255.0, ((number) &255) / 255.0 \
  }

static const GTorchPlotColor light_series[] = {
  RGB (0x0072b2), RGB (0xd55e00), RGB (0x009e73), RGB (0xcc79a7),
  RGB (0xe69f00), RGB (0x56b4e9), RGB (0x4d4d4d),
};
static const GTorchPlotColor dark_series[] = {
  RGB (0x56b4e9), RGB (0xf0803c), RGB (0x2fc79a), RGB (0xe39bc4),
  RGB (0xf0c040), RGB (0x8fa8ff), RGB (0xd0d0d0),
};

static const GTorchPlotTheme themes[] = {
  [GTORCH_PLOT_SCHEME_LIGHT] = {
    .ground = RGB (0xffffff), .text = RGB (0x24292f), .muted = RGB (0x5d6672),
    .grid = RGB (0xe6e8eb), .spine = RGB (0xa4abb4),
    .series = light_series, .n_series = G_N_ELEMENTS (light_series),
  },
  [GTORCH_PLOT_SCHEME_DARK] = {
    .ground = RGB (0x1e1e1e), .text = RGB (0xf2f2f2), .muted = RGB (0xacb2bb),
    .grid = RGB (0x383b40), .spine = RGB (0x72787f),
    .series = dark_series, .n_series = G_N_ELEMENTS (dark_series),
  },
};

static const GTorchPlotColor viridis[] = {
  RGB (0x440154), RGB (0x482878), RGB (0x3e4989), RGB (0x31688e), RGB (0x26828e),
  RGB (0x1f9e89), RGB (0x35b779), RGB (0x6ece58), RGB (0xb5de2b), RGB (0xfde725),
};
static const GTorchPlotColor magma[] = {
  RGB (0x000004), RGB (0x180f3d), RGB (0x440f76), RGB (0x721f81), RGB (0x9e2f7f),
  RGB (0xcd4071), RGB (0xf1605d), RGB (0xfd9668), RGB (0xfeca8d), RGB (0xfcfdbf),
};
static const GTorchPlotColor gray[] = { RGB (0x000000), RGB (0xffffff) };
static const GTorchPlotColor ink[] = { RGB (0xffffff), RGB (0x000000) };
static const GTorchPlotColor blues[] = {
  RGB (0xf7fbff), RGB (0xdeebf7), RGB (0xc6dbef), RGB (0x9ecae1), RGB (0x6baed6),
  RGB (0x4292c6), RGB (0x2171b5), RGB (0x08519c), RGB (0x08306b),
};
static const GTorchPlotColor cool_warm[] = {
  RGB (0x053061), RGB (0x2166ac), RGB (0x4393c3), RGB (0x92c5de), RGB (0xd1e5f0), RGB (0xf7f7f7),
  RGB (0xfddbc7), RGB (0xf4a582), RGB (0xd6604d), RGB (0xb2182b), RGB (0x67001f),
};

#define MAP(colors)               \
  {                               \
    colors, G_N_ELEMENTS (colors) \
  }

static const struct
{
  const GTorchPlotColor *colors;
  guint n_colors;
} maps[] = {
  [GTORCH_PLOT_COLORMAP_VIRIDIS] = MAP (viridis),
  [GTORCH_PLOT_COLORMAP_MAGMA] = MAP (magma),
  [GTORCH_PLOT_COLORMAP_GRAY] = MAP (gray),
  [GTORCH_PLOT_COLORMAP_INK] = MAP (ink),
  [GTORCH_PLOT_COLORMAP_BLUES] = MAP (blues),
  [GTORCH_PLOT_COLORMAP_COOL_WARM] = MAP (cool_warm),
};

const GTorchPlotTheme *
gtorch_plot_theme_get (GTorchPlotScheme scheme)
{
  return &themes[scheme == GTORCH_PLOT_SCHEME_DARK ? scheme : GTORCH_PLOT_SCHEME_LIGHT];
}

gboolean
gtorch_plot_color_parse (const gchar *text, GTorchPlotColor *color)
{
  guint number = 0;

  if (text == NULL || text[0] != '#')
    return FALSE;
  for (guint i = 1; i < 7; i++)
    {
      if (!g_ascii_isxdigit (text[i]))
        return FALSE;
      number = number << 4 | g_ascii_xdigit_value (text[i]);
    }
  *color = (GTorchPlotColor) RGB (number);
  return text[7] == '\0';
}

GTorchPlotColor
gtorch_plot_colormap_look_up (GTorchPlotColormap colormap, gdouble position)
{
  const GTorchPlotColor *a;
  gdouble place, part;
  guint i;

  if ((guint) colormap >= G_N_ELEMENTS (maps))
    colormap = GTORCH_PLOT_COLORMAP_VIRIDIS;
  place = CLAMP (position, 0, 1) * (maps[colormap].n_colors - 1);
  i = MIN ((guint) place, maps[colormap].n_colors - 2);
  part = place - i;
  a = &maps[colormap].colors[i];
  return (GTorchPlotColor){
    a[0].red + part * (a[1].red - a[0].red),
    a[0].green + part * (a[1].green - a[0].green),
    a[0].blue + part * (a[1].blue - a[0].blue),
  };
}

/**
 * gtorch_plot_colormap_get_color:
 * @colormap: a map of colours
 * @position: a place in it, from 0 to 1; outside, it is the nearer end
 * @red: (out): red, from 0 to 1
 * @green: (out): green, from 0 to 1
 * @blue: (out): blue, from 0 to 1
 *
 * Gets a colour of a map.
 *
 * Since: 0.1
 */
void
gtorch_plot_colormap_get_color (GTorchPlotColormap colormap, gdouble position, gdouble *red,
                                gdouble *green, gdouble *blue)
{
  const GTorchPlotColor color =
      gtorch_plot_colormap_look_up (colormap, isnan (position) ? 0 : position);

  g_return_if_fail (red != NULL && green != NULL && blue != NULL);
  *red = color.red;
  *green = color.green;
  *blue = color.blue;
}

gdouble
gtorch_plot_color_lightness (const GTorchPlotColor *color)
{
  return 0.299 * color->red + 0.587 * color->green + 0.114 * color->blue;
}

void
gtorch_plot_set_source (cairo_t *cr, const GTorchPlotColor *color, gdouble alpha)
{
  cairo_set_source_rgba (cr, color->red, color->green, color->blue, alpha);
}
