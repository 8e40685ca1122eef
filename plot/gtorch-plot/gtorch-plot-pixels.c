/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pixels are made of the numbers of a tensor at once, or in a thread, and not changed again. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "gtorch-plot-pixels-private.h"

#define MAX_WARPED 8192
#define MAX_NAMED  4096 /* pixels whose numbers are written on them */

GTorchPlotPixels *
gtorch_plot_pixels_new (guint height, guint width)
{
  GTorchPlotPixels *self = g_new0 (GTorchPlotPixels, 1);

  g_atomic_ref_count_init (&self->ref_count);
  self->height = height;
  self->width = width;
  self->low = G_MAXDOUBLE;
  self->high = -G_MAXDOUBLE;
  return self;
}

GTorchPlotPixels *
gtorch_plot_pixels_ref (GTorchPlotPixels *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
gtorch_plot_pixels_unref (GTorchPlotPixels *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  g_free (self->numbers);
  g_clear_pointer (&self->surface, cairo_surface_destroy);
  g_free (self);
}

GTorchPlotMapping
gtorch_plot_pixels_map (const GTorchPlotPixels *self, gint colormap, gdouble minimum,
                        gdouble maximum)
{
  GTorchPlotMapping mapping = { colormap, isnan (minimum) ? self->low : minimum,
                                isnan (maximum) ? self->high : maximum, FALSE };

  if (self->numbers == NULL || !isfinite (mapping.low) || !isfinite (mapping.high)
      || mapping.low > mapping.high)
    return mapping;
  if (mapping.low == mapping.high)
    {
      const gdouble half = MAX (0.5, 1e-6 * fabs (mapping.low));

      mapping.low = MAX (mapping.low - half, -G_MAXDOUBLE);
      mapping.high = MIN (mapping.high + half, G_MAXDOUBLE);
    }
  mapping.is_valid = mapping.low < mapping.high;
  return mapping;
}

cairo_surface_t *
gtorch_plot_pixels_paint (const GTorchPlotPixels *self, const GTorchPlotMapping *mapping)
{
  cairo_surface_t *surface =
      cairo_image_surface_create (CAIRO_FORMAT_ARGB32, self->width, self->height);
  const gint stride = cairo_image_surface_get_stride (surface);
  guint8 *pixels = cairo_image_surface_get_data (surface);
  guint32 colors[1024];

  if (pixels == NULL)
    return surface;
  for (guint i = 0; i < G_N_ELEMENTS (colors); i++)
    {
      const GTorchPlotColor c =
          gtorch_plot_colormap_look_up ((GTorchPlotColormap) mapping->colormap,
                                        i / (G_N_ELEMENTS (colors) - 1.0));

      colors[i] = 0xff000000u | (guint32) lround (255 * c.red) << 16
                  | (guint32) lround (255 * c.green) << 8 | (guint32) lround (255 * c.blue);
    }
  for (guint i = 0; i < self->height; i++)
    for (guint j = 0; j < self->width; j++)
      {
        const gdouble number = self->numbers[(gsize) i * self->width + j];
        const gdouble part = gtorch_plot_find_part (number, mapping->low, mapping->high);
        guint32 color = 0;

        if (mapping->is_valid && !isnan (number))
          color = colors[(guint) (CLAMP (part, 0, 1) * (G_N_ELEMENTS (colors) - 1) + 0.5)];
        memcpy (pixels + (gsize) i * stride + 4 * (gsize) j, &color, 4);
      }
  cairo_surface_mark_dirty (surface);
  return surface;
}

cairo_surface_t *
gtorch_plot_surface_share (cairo_surface_t *surface)
{
  static const cairo_user_data_key_t key;
  guint8 *pixels = cairo_image_surface_get_data (surface);
  cairo_surface_t *other;

  if (pixels == NULL)
    return cairo_surface_reference (surface);
  other = cairo_image_surface_create_for_data (pixels, cairo_image_surface_get_format (surface),
                                               cairo_image_surface_get_width (surface),
                                               cairo_image_surface_get_height (surface),
                                               cairo_image_surface_get_stride (surface));
  if (cairo_surface_set_user_data (other, &key, cairo_surface_reference (surface),
                                   (cairo_destroy_func_t) cairo_surface_destroy)
      != CAIRO_STATUS_SUCCESS)
    cairo_surface_destroy (surface);
  return other;
}

static guint
to_byte (gdouble value)
{
  return value > 0 ? (guint) (MIN (value, 255) + 0.5) : 0; /* NaN: 0 */
}

static cairo_surface_t *
paint_colors (const GTorchPlotRead *read)
{
  const gsize n = read->height * read->width, step = read->is_last ? read->n_channels : 1;
  const gsize next = read->is_last ? 1 : n;
  cairo_surface_t *surface =
      cairo_image_surface_create (CAIRO_FORMAT_ARGB32, read->width, read->height);
  const gint stride = cairo_image_surface_get_stride (surface);
  guint8 *pixels = cairo_image_surface_get_data (surface);

  for (gsize i = 0; pixels != NULL && i < n; i++)
    {
      const gdouble *from = read->values[0] + i * step;
      guint alpha = read->n_channels == 4 ? to_byte (read->unit * from[3 * next]) : 255;
      guint32 color = alpha << 24;

      for (guint c = 0; c < 3; c++)
        color |= (to_byte (read->unit * from[c * next]) * alpha + 127) / 255 << (16 - 8 * c);
      if (isnan (from[0]) || isnan (from[next]) || isnan (from[2 * next]))
        color = 0;
      memcpy (pixels + i / read->width * stride + i % read->width * 4, &color, 4);
    }
  cairo_surface_mark_dirty (surface);
  return surface;
}

void
gtorch_plot_pixels_prepare (GTorchPlotRead *read)
{
  const gsize n = read->height * read->width;
  GTorchPlotPixels *self = gtorch_plot_pixels_new (read->height, read->width);

  if (read->n_channels == 1 && n > 0)
    {
      self->numbers = g_steal_pointer (&read->values[0]);
      for (gsize i = 0; i < n; i++)
        if (isfinite (self->numbers[i]))
          {
            self->low = MIN (self->low, self->numbers[i]);
            self->high = MAX (self->high, self->numbers[i]);
          }
      self->mapping = gtorch_plot_pixels_map (self, read->colormap, read->minimum, read->maximum);
      self->surface = gtorch_plot_pixels_paint (self, &self->mapping);
    }
  else if (n > 0)
    self->surface = paint_colors (read);
  read->result = self;
  read->free_result = (GDestroyNotify) gtorch_plot_pixels_unref;
}

cairo_surface_t *
gtorch_plot_surface_enlarge (cairo_surface_t *surface, guint factor)
{
  const gint width = cairo_image_surface_get_width (surface);
  const gint height = cairo_image_surface_get_height (surface);
  cairo_surface_t *larger =
      cairo_image_surface_create (CAIRO_FORMAT_ARGB32, width * factor, height * factor);
  cairo_t *cr = cairo_create (larger);

  cairo_scale (cr, factor, factor);
  cairo_set_source_surface (cr, surface, 0, 0);
  cairo_pattern_set_filter (cairo_get_source (cr), CAIRO_FILTER_NEAREST);
  cairo_paint (cr);
  cairo_destroy (cr);
  return larger;
}

/* Which pixel is at a part, from 0 to 1, of an axis; -1: none. */
static gint
find_pixel (const GTorchPlotAxis *axis, gdouble part, gdouble first, gdouble last, guint n)
{
  const gdouble way = axis->is_inverted ? 1 - part : part;
  const gdouble value = axis->is_log
                            ? pow (10, axis->log_low + way * (axis->log_high - axis->log_low))
                            : axis->low * (1 - way) + axis->high * way;
  const gdouble place = gtorch_plot_find_part (value, first, last) * n;

  return place >= 0 && place < n ? (gint) place : -1;
}

void
gtorch_plot_surface_draw_warped (cairo_surface_t *surface, const GTorchPlotCanvas *canvas,
                                 const gdouble *extent)
{
  const gint width = cairo_image_surface_get_width (surface);
  const gint height = cairo_image_surface_get_height (surface);
  const gint columns = (gint) CLAMP (2 * canvas->width, 1, MAX_WARPED);
  const gint rows = (gint) CLAMP (2 * canvas->height, 1, MAX_WARPED);
  cairo_surface_t *warped = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, columns, rows);
  const guint8 *from = cairo_image_surface_get_data (surface);
  guint8 *to = cairo_image_surface_get_data (warped);
  const gsize from_stride = cairo_image_surface_get_stride (surface);
  const gsize to_stride = cairo_image_surface_get_stride (warped);
  g_autofree gint *sources = g_new (gint, columns);

  for (gint j = 0; j < columns; j++)
    sources[j] = find_pixel (&canvas->x_axis, (j + 0.5) / columns, extent[0], extent[1], width);
  for (gint i = 0; from != NULL && to != NULL && i < rows; i++)
    {
      const gint row =
          find_pixel (&canvas->y_axis, 1 - (i + 0.5) / rows, extent[2], extent[3], height);

      for (gint j = 0; row >= 0 && j < columns; j++)
        if (sources[j] >= 0)
          memcpy (to + i * to_stride + 4 * (gsize) j, from + row * from_stride + 4 * sources[j], 4);
    }
  cairo_surface_mark_dirty (warped);
  if (to != NULL) /* one that could not be made would break the context */
    {
      cairo_save (canvas->cr);
      cairo_translate (canvas->cr, canvas->x, canvas->y);
      cairo_scale (canvas->cr, canvas->width / columns, canvas->height / rows);
      cairo_set_source_surface (canvas->cr, warped, 0, 0);
      cairo_paint (canvas->cr);
      cairo_restore (canvas->cr);
    }
  cairo_surface_destroy (warped);
}

/* Whole numbers have all their digits, unless these would be too small to be read. Returns the size
 * of the texts, or 0 if nobody could read them. */
static gdouble
format_values (const GTorchPlotPixels *self, const GTorchPlotCanvas *canvas, gdouble cell_width,
               gdouble cell_height, gboolean is_short, GPtrArray *texts)
{
  gdouble size, widest = 0;

  g_ptr_array_set_size (texts, 0);
  for (guint i = 0; i < self->width * self->height; i++)
    {
      const gdouble number = self->numbers[i];
      gchar *text = !is_short && number == round (number) && fabs (number) < 1e15
                        ? gtorch_plot_format_count (number)
                        : gtorch_plot_format_number (number);
      gdouble w, h;

      gtorch_plot_text_measure (canvas->cr, text, 10, FALSE, &w, &h);
      widest = MAX (widest, w / 10);
      g_ptr_array_add (texts, text);
    }
  size = MIN (MIN (14, cell_height * 0.5), 0.84 * cell_width / MAX (widest, 0.1));
  return size < 4.5 ? 0 : size;
}

void
gtorch_plot_pixels_draw_values (const GTorchPlotPixels *self, const GTorchPlotMapping *mapping,
                                const GTorchPlotCanvas *canvas, gdouble x, gdouble y, gdouble width,
                                gdouble height)
{
  const GTorchPlotColor dark = { 0.1, 0.1, 0.1 }, light = { 1, 1, 1 };
  const guint n_columns = self->width;
  const gdouble cell_width = width / n_columns, cell_height = height / self->height;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  gdouble size;

  if (self->numbers == NULL || (gsize) n_columns * self->height > MAX_NAMED)
    return;
  size = format_values (self, canvas, cell_width, cell_height, FALSE, texts);
  if (size == 0)
    size = format_values (self, canvas, cell_width, cell_height, TRUE, texts);
  for (guint i = 0; size > 0 && i < texts->len; i++)
    {
      const gdouble number = self->numbers[i];
      GTorchPlotColor color = canvas->theme->ground;

      if (mapping->is_valid && !isnan (number))
        color = gtorch_plot_colormap_look_up ((GTorchPlotColormap) mapping->colormap,
                                              gtorch_plot_find_part (number, mapping->low,
                                                                     mapping->high));
      gtorch_plot_set_source (canvas->cr,
                              gtorch_plot_color_lightness (&color) > 0.55 ? &dark : &light, 1);
      gtorch_plot_text_draw (canvas->cr, texts->pdata[i], size, FALSE,
                             x + (i % n_columns + 0.5) * cell_width,
                             y + (i / n_columns + 0.5) * cell_height, GTORCH_PLOT_MIDDLE,
                             GTORCH_PLOT_MIDDLE, 0);
    }
}
