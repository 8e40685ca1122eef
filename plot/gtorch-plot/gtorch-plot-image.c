/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gtorch-plot-private.h"

/**
 * GTorchPlotImage:
 *
 * A picture, or a matrix whose numbers are shown as colours.
 *
 * A tensor of shape `[height, width]` or `[1, height, width]` has one number for each pixel, which
 * becomes a colour by [property@Image:colormap] and the range ([method@Image.set_range]). One of shape
 * `[3, height, width]`, `[4, height, width]`, `[height, width, 3]` or `[height, width, 4]` has colours,
 * red, green, blue and perhaps alpha: from 0 to 1 if it is of a floating-point type or bool, otherwise
 * from 0 to 255. What may be both, such as `[3, 8, 3]`, has its channels first.
 *
 * The first row is at the top. NaN is left out.
 *
 * Since: 0.1
 */

#define MAX_SIDE  32767 /* cairo's */
#define MAX_NAMED 4096

struct _GTorchPlotImageClass
{
  GTorchPlotItemClass parent_class;
};

struct _GTorchPlotImage
{
  GTorchPlotItem parent_instance;
  guint height, width;
  gfloat *numbers;          /* one for each pixel, or NULL: there are colours */
  cairo_surface_t *surface; /* NULL: to be made of the numbers */
  gdouble low, high;        /* the least and the greatest finite number; low > high: none */
  gdouble minimum, maximum; /* NaN: those */
  gint colormap;            /* of GTorchPlotColormap */
  gboolean show_values, show_scale, has_extent;
  gdouble left, right, bottom, top;
  gchar **row_names, **column_names;
};

enum
{
  PROP_COLORMAP = 1,
  PROP_SHOW_VALUES,
  PROP_SHOW_SCALE,
  PROP_ROW_NAMES,
  PROP_COLUMN_NAMES,
  PROP_WIDTH,
  PROP_HEIGHT,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchPlotImage, gtorch_plot_image, GTORCH_PLOT_TYPE_ITEM)

gboolean
gtorch_plot_image_has_extent (GTorchPlotImage *self)
{
  return self->has_extent;
}

static gboolean
find_range (GTorchPlotImage *self, gdouble *low, gdouble *high)
{
  *low = isnan (self->minimum) ? self->low : self->minimum;
  *high = isnan (self->maximum) ? self->high : self->maximum;
  if (self->numbers == NULL || !isfinite (*low) || !isfinite (*high) || *low > *high)
    return FALSE;
  if (*low == *high)
    {
      *low -= 0.5;
      *high += 0.5;
    }
  return *low < *high;
}

gboolean
gtorch_plot_image_has_scale (GTorchPlotImage *self, gdouble *low, gdouble *high)
{
  return self->show_scale && find_range (self, low, high);
}

static void
gtorch_plot_image_add_range (GTorchPlotItem *item, gboolean x_log, gboolean y_log,
                             GTorchPlotRange *range)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item);

  if (self->width == 0 || self->height == 0)
    return;
  range->x_low = MIN (range->x_low, self->left);
  range->x_high = MAX (range->x_high, self->right);
  range->y_low = MIN (range->y_low, MIN (self->bottom, self->top));
  range->y_high = MAX (range->y_high, MAX (self->bottom, self->top));
}

/* --- drawing --- */

static cairo_surface_t *
paint_numbers (GTorchPlotImage *self)
{
  cairo_surface_t *surface =
      cairo_image_surface_create (CAIRO_FORMAT_ARGB32, self->width, self->height);
  const gint stride = cairo_image_surface_get_stride (surface);
  guint8 *pixels = cairo_image_surface_get_data (surface);
  guint32 colors[1024];
  gdouble low, high;
  const gboolean has_range = find_range (self, &low, &high);

  if (pixels == NULL)
    return surface;
  for (guint i = 0; i < G_N_ELEMENTS (colors); i++)
    {
      const GTorchPlotColor c = gtorch_plot_colormap_look_up ((GTorchPlotColormap) self->colormap,
                                                              i / (G_N_ELEMENTS (colors) - 1.0));

      colors[i] = 0xff000000u | (guint32) lround (255 * c.red) << 16
                  | (guint32) lround (255 * c.green) << 8 | (guint32) lround (255 * c.blue);
    }
  for (guint i = 0; i < self->height; i++)
    for (guint j = 0; j < self->width; j++)
      {
        const gdouble number = self->numbers[(gsize) i * self->width + j];
        const gdouble part = (0.5 * number - 0.5 * low) / (0.5 * high - 0.5 * low);
        guint32 color = 0;

        if (has_range && !isnan (number))
          color = colors[(guint) (CLAMP (part, 0, 1) * (G_N_ELEMENTS (colors) - 1) + 0.5)];
        memcpy (pixels + (gsize) i * stride + 4 * (gsize) j, &color, 4);
      }
  cairo_surface_mark_dirty (surface);
  return surface;
}

/* Makes the pixels of a small image larger for files of vectors, whose readers would blur them. */
static cairo_surface_t *
enlarge (cairo_surface_t *surface, guint width, guint height, guint factor)
{
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

static gboolean
is_vector (cairo_t *cr)
{
  const cairo_surface_type_t type = cairo_surface_get_type (cairo_get_group_target (cr));

  return type == CAIRO_SURFACE_TYPE_SVG || type == CAIRO_SURFACE_TYPE_PDF
         || type == CAIRO_SURFACE_TYPE_PS;
}

static void
draw_values (GTorchPlotImage *self, const GTorchPlotCanvas *canvas, gdouble x, gdouble y,
             gdouble width, gdouble height)
{
  const GTorchPlotColor dark = { 0.1, 0.1, 0.1 }, light = { 1, 1, 1 };
  const gdouble cell_width = width / self->width, cell_height = height / self->height;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  gdouble low, high, size = MIN (14, cell_height * 0.5), widest = 0;
  const gboolean has_range = find_range (self, &low, &high);

  if (self->numbers == NULL || (gsize) self->width * self->height > MAX_NAMED)
    return;
  for (guint i = 0; i < self->width * self->height; i++)
    {
      gchar *text = gtorch_plot_format_number (self->numbers[i]);
      gdouble w, h;

      gtorch_plot_text_measure (canvas->cr, text, 10, FALSE, &w, &h);
      widest = MAX (widest, w / 10);
      g_ptr_array_add (texts, text);
    }
  size = MIN (size, 0.84 * cell_width / MAX (widest, 0.1));
  if (size < 4.5) /* nobody could read it */
    return;
  for (guint i = 0; i < texts->len; i++)
    {
      const gdouble number = self->numbers[i];
      GTorchPlotColor color = canvas->theme->ground;

      if (has_range && !isnan (number))
        color = gtorch_plot_colormap_look_up ((GTorchPlotColormap) self->colormap,
                                              (number - low) / (high - low));
      gtorch_plot_set_source (canvas->cr,
                              gtorch_plot_color_lightness (&color) > 0.55 ? &dark : &light, 1);
      gtorch_plot_text_draw (canvas->cr, texts->pdata[i], size, FALSE,
                             x + (i % self->width + 0.5) * cell_width,
                             y + (i / self->width + 0.5) * cell_height, GTORCH_PLOT_MIDDLE,
                             GTORCH_PLOT_MIDDLE, 0);
    }
}

static void
gtorch_plot_image_draw (GTorchPlotItem *item, const GTorchPlotCanvas *canvas)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item);
  const gdouble x = gtorch_plot_canvas_x (canvas, self->left);
  const gdouble y = gtorch_plot_canvas_y (canvas, self->top);
  const gdouble width = gtorch_plot_canvas_x (canvas, self->right) - x;
  const gdouble height = gtorch_plot_canvas_y (canvas, self->bottom) - y;
  cairo_t *cr = canvas->cr;
  guint factor = 1;
  cairo_surface_t *surface;

  if (self->width == 0 || self->height == 0 || !isfinite (width) || !isfinite (height) || width == 0
      || height == 0)
    return;
  if (self->surface == NULL)
    self->surface = paint_numbers (self);
  if (is_vector (cr) && MAX (self->width, self->height) < 256)
    factor = 1 + 512 / MAX (self->width, self->height);
  surface = factor > 1 ? enlarge (self->surface, self->width, self->height, factor)
                       : cairo_surface_reference (self->surface);
  cairo_save (cr);
  cairo_translate (cr, x, y);
  cairo_scale (cr, width / self->width / factor, height / self->height / factor);
  cairo_set_source_surface (cr, surface, 0, 0);
  cairo_pattern_set_filter (cairo_get_source (cr),
                            width >= self->width ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
  cairo_paint (cr);
  cairo_restore (cr);
  cairo_surface_destroy (surface);
  if (self->show_values)
    draw_values (self, canvas, x, y, width, height);
}

/* --- class --- */

static void
gtorch_plot_image_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (object);

  switch (id)
    {
    case PROP_COLORMAP:
      g_value_set_enum (value, self->colormap);
      break;
    case PROP_SHOW_VALUES:
      g_value_set_boolean (value, self->show_values);
      break;
    case PROP_SHOW_SCALE:
      g_value_set_boolean (value, self->show_scale);
      break;
    case PROP_ROW_NAMES:
      g_value_set_boxed (value, self->row_names);
      break;
    case PROP_COLUMN_NAMES:
      g_value_set_boxed (value, self->column_names);
      break;
    case PROP_WIDTH:
      g_value_set_uint (value, self->width);
      break;
    case PROP_HEIGHT:
      g_value_set_uint (value, self->height);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
gtorch_plot_image_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (object);

  switch (id)
    {
    case PROP_COLORMAP:
      gtorch_plot_image_set_colormap (self, g_value_get_enum (value));
      break;
    case PROP_SHOW_VALUES:
      gtorch_plot_image_set_show_values (self, g_value_get_boolean (value));
      break;
    case PROP_SHOW_SCALE:
      gtorch_plot_image_set_show_scale (self, g_value_get_boolean (value));
      break;
    case PROP_ROW_NAMES:
      gtorch_plot_image_set_row_names (self, g_value_get_boxed (value));
      break;
    case PROP_COLUMN_NAMES:
      gtorch_plot_image_set_column_names (self, g_value_get_boxed (value));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
gtorch_plot_image_finalize (GObject *object)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (object);

  g_free (self->numbers);
  g_clear_pointer (&self->surface, cairo_surface_destroy);
  g_strfreev (self->row_names);
  g_strfreev (self->column_names);
  G_OBJECT_CLASS (gtorch_plot_image_parent_class)->finalize (object);
}

static void
gtorch_plot_image_class_init (GTorchPlotImageClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GTorchPlotItemClass *item_class = (GTorchPlotItemClass *) klass;

  object_class->get_property = gtorch_plot_image_get_property;
  object_class->set_property = gtorch_plot_image_set_property;
  object_class->finalize = gtorch_plot_image_finalize;
  item_class->add_range = gtorch_plot_image_add_range;
  item_class->draw = gtorch_plot_image_draw;
  /**
   * GTorchPlotImage:colormap:
   *
   * Which colours stand for numbers.
   *
   * Since: 0.1
   */
  props[PROP_COLORMAP] = g_param_spec_enum ("colormap", NULL, NULL, GTORCH_PLOT_TYPE_COLORMAP,
                                            GTORCH_PLOT_COLORMAP_VIRIDIS, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotImage:show-values:
   *
   * Whether the numbers are written on the pixels, where they are large enough for that. Of more than
   * 4096 pixels none is.
   *
   * Since: 0.1
   */
  props[PROP_SHOW_VALUES] =
      g_param_spec_boolean ("show-values", NULL, NULL, FALSE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotImage:show-scale:
   *
   * Whether a bar beside the image tells which colours stand for which numbers.
   *
   * Since: 0.1
   */
  props[PROP_SHOW_SCALE] =
      g_param_spec_boolean ("show-scale", NULL, NULL, FALSE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotImage:row-names:
   *
   * The names of the rows, which the vertical axis has in place of numbers.
   *
   * Since: 0.1
   */
  props[PROP_ROW_NAMES] =
      g_param_spec_boxed ("row-names", NULL, NULL, G_TYPE_STRV, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotImage:column-names:
   *
   * The names of the columns, which the horizontal axis has in place of numbers.
   *
   * Since: 0.1
   */
  props[PROP_COLUMN_NAMES] =
      g_param_spec_boxed ("column-names", NULL, NULL, G_TYPE_STRV, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotImage:width:
   *
   * The number of columns.
   *
   * Since: 0.1
   */
  props[PROP_WIDTH] = g_param_spec_uint ("width", NULL, NULL, 0, G_MAXUINT, 0,
                                         G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchPlotImage:height:
   *
   * The number of rows.
   *
   * Since: 0.1
   */
  props[PROP_HEIGHT] = g_param_spec_uint ("height", NULL, NULL, 0, G_MAXUINT, 0,
                                          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_plot_image_init (GTorchPlotImage *self)
{
  self->minimum = self->maximum = NAN;
  self->low = G_MAXDOUBLE;
  self->high = -G_MAXDOUBLE;
  self->right = self->bottom = -0.5;
  self->left = self->top = -0.5;
}

/**
 * gtorch_plot_image_new:
 *
 * Creates an image without pixels.
 *
 * Returns: (transfer full): a new image
 *
 * Since: 0.1
 */
GTorchPlotImage *
gtorch_plot_image_new (void)
{
  return g_object_new (GTORCH_PLOT_TYPE_IMAGE, NULL);
}

/* --- pixels --- */

#define SET_PIXELS "plot_image_set_pixels"

static gboolean
check_pixels (GTorchTensor *pixels, GTorchPlotRead *read, GError **error)
{
  g_autofree gchar *text = gtorch_plot_shape_text (pixels);
  const GTorchDType dtype = gtorch_tensor_get_dtype (pixels);
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (pixels, &n_dims);
  gint64 height = 0, width = 0, n_channels = 0;

  if (!gtorch_plot_check_dtype (SET_PIXELS, "the image", pixels, error))
    return FALSE;
  if (n_dims == 2)
    {
      n_channels = 1;
      height = shape[0];
      width = shape[1];
    }
  else if (n_dims == 3 && (shape[0] == 1 || shape[0] == 3 || shape[0] == 4))
    {
      n_channels = shape[0];
      height = shape[1];
      width = shape[2];
    }
  else if (n_dims == 3 && (shape[2] == 3 || shape[2] == 4))
    {
      n_channels = shape[2];
      height = shape[0];
      width = shape[1];
      read->is_last = TRUE;
    }
  if (n_channels == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the shape %s is not [height, width], [1, 3 or 4, height, width] or "
                    "[height, width, 3 or 4]"),
                 SET_PIXELS, text);
  else if (height > MAX_SIDE || width > MAX_SIDE)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: an image of the shape %s has a side of more than %d pixels"), SET_PIXELS,
                 text, MAX_SIDE);
  else
    {
      read->height = height;
      read->width = width;
      read->n_channels = n_channels;
      read->unit = gtorch_dtype_is_floating_point (dtype) || dtype == GTORCH_DTYPE_BOOL ? 255 : 1;
      return TRUE;
    }
  return FALSE;
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

static void
take_pixels (GTorchPlotItem *item, GTorchPlotRead *read)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item);
  const gsize n = read->height * read->width;

  self->height = read->height;
  self->width = read->width;
  g_clear_pointer (&self->numbers, g_free);
  g_clear_pointer (&self->surface, cairo_surface_destroy);
  self->low = G_MAXDOUBLE;
  self->high = -G_MAXDOUBLE;
  if (read->n_channels == 1 && n > 0)
    {
      self->numbers = g_new (gfloat, n);
      for (gsize i = 0; i < n; i++)
        {
          const gdouble value = read->values[0][i];

          self->numbers[i] = (gfloat) value;
          if (isfinite (self->numbers[i]))
            {
              self->low = MIN (self->low, value);
              self->high = MAX (self->high, value);
            }
        }
    }
  else if (n > 0)
    self->surface = paint_colors (read);
  if (!self->has_extent)
    {
      self->right = read->width - 0.5;
      self->bottom = read->height - 0.5;
    }
  gtorch_plot_item_changed (item);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_WIDTH]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_HEIGHT]);
}

/**
 * gtorch_plot_image_set_pixels:
 * @self: an image
 * @pixels: the pixels, of one of the shapes that [class@Image] names
 * @error: return location for an error
 *
 * Sets the pixels.
 *
 * The tensor may be of any dtype that is not complex, on any device, and empty. Waits until it is
 * computed; [method@Image.set_pixels_async] does not.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_DTYPE or an error of reading
 *   ([method@GTorch.Tensor.to_doubles]), and the former pixels
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_set_pixels (GTorchPlotImage *self, GTorchTensor *pixels, GError **error)
{
  GTorchTensor *tensors[] = { pixels, NULL };
  GTorchPlotRead read = { { NULL } };

  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (pixels), FALSE);
  return check_pixels (pixels, &read, error)
         && gtorch_plot_read_now (&self->parent_instance, SET_PIXELS, tensors, read, take_pixels,
                                  error);
}

/**
 * gtorch_plot_image_set_pixels_async:
 * @self: an image
 * @pixels: the pixels, of one of the shapes that [class@Image] names
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the image has the pixels
 * @user_data: data for @callback
 *
 * Sets the pixels without blocking the main loop. Of two such calls, the later one counts.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_pixels_async (GTorchPlotImage *self, GTorchTensor *pixels,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
  GTorchTensor *tensors[] = { pixels, NULL };
  GTorchPlotRead read = { { NULL } };
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  g_return_if_fail (GTORCH_IS_TENSOR (pixels));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (self, gtorch_plot_image_set_pixels_async, cancellable, callback, user_data);
  if (!check_pixels (pixels, &read, &error))
    g_task_return_error (task, error);
  else
    gtorch_plot_read_later (&self->parent_instance, SET_PIXELS, tensors, read, take_pixels, task);
}

/**
 * gtorch_plot_image_set_pixels_finish:
 * @self: an image
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Image.set_pixels_async].
 *
 * Returns: %TRUE on success; %FALSE with an error of [method@Image.set_pixels] or %G_IO_ERROR_CANCELLED
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_set_pixels_finish (GTorchPlotImage *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_plot_image_set_pixels_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_plot_image_get_width: (get-property width)
 * @self: an image
 *
 * Gets the number of columns.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_plot_image_get_width (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), 0);
  return self->width;
}

/**
 * gtorch_plot_image_get_height: (get-property height)
 * @self: an image
 *
 * Gets the number of rows.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_plot_image_get_height (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), 0);
  return self->height;
}

/* --- settings --- */

static void
setting_changed (GTorchPlotImage *self, guint id)
{
  if (self->numbers != NULL)
    g_clear_pointer (&self->surface, cairo_surface_destroy);
  gtorch_plot_item_changed (&self->parent_instance);
  if (id != 0)
    g_object_notify_by_pspec (G_OBJECT (self), props[id]);
}

/**
 * gtorch_plot_image_get_colormap: (get-property colormap)
 * @self: an image
 *
 * Gets which colours stand for numbers.
 *
 * Returns: the map
 *
 * Since: 0.1
 */
GTorchPlotColormap
gtorch_plot_image_get_colormap (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), GTORCH_PLOT_COLORMAP_VIRIDIS);
  return (GTorchPlotColormap) self->colormap;
}

/**
 * gtorch_plot_image_set_colormap: (set-property colormap)
 * @self: an image
 * @colormap: the map
 *
 * Sets which colours stand for numbers.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_colormap (GTorchPlotImage *self, GTorchPlotColormap colormap)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  g_return_if_fail (colormap >= GTORCH_PLOT_COLORMAP_VIRIDIS
                    && colormap <= GTORCH_PLOT_COLORMAP_COOL_WARM);
  if (self->colormap == (gint) colormap)
    return;
  self->colormap = colormap;
  setting_changed (self, PROP_COLORMAP);
}

/**
 * gtorch_plot_image_get_range:
 * @self: an image
 * @minimum: (out): the number of the first colour of the map
 * @maximum: (out): the number of the last one
 *
 * Gets the range of numbers that the colours stand for. Of an image without finite numbers, both are NaN
 * unless they were set.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_get_range (GTorchPlotImage *self, gdouble *minimum, gdouble *maximum)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  g_return_if_fail (minimum != NULL && maximum != NULL);
  *minimum = isnan (self->minimum) && self->low <= self->high ? self->low : self->minimum;
  *maximum = isnan (self->maximum) && self->low <= self->high ? self->high : self->maximum;
}

/**
 * gtorch_plot_image_set_range:
 * @self: an image
 * @minimum: the number of the first colour of the map, or NaN for the least number
 * @maximum: the number of the last one, or NaN for the greatest number
 *
 * Sets the range of numbers that the colours stand for. Numbers outside have the colour of the nearer
 * end.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_range (GTorchPlotImage *self, gdouble minimum, gdouble maximum)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  self->minimum = minimum;
  self->maximum = maximum;
  setting_changed (self, 0);
}

/**
 * gtorch_plot_image_set_extent:
 * @self: an image
 * @left: where the first column begins
 * @right: where the last column ends, more than @left
 * @bottom: where the last row ends
 * @top: where the first row begins, more than @bottom
 * @error: return location for an error
 *
 * Places the image on its axes, for example below the points of a [class@Line].
 *
 * Without this, a pixel is as wide as high, the middle of the first one is at (0, 0), and the vertical
 * axis grows downwards.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if a number is not finite or the ends are
 *   not in order
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_set_extent (GTorchPlotImage *self, gdouble left, gdouble right, gdouble bottom,
                              gdouble top, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  if (!isfinite (left) || !isfinite (right) || !isfinite (bottom) || !isfinite (top)
      || !(left < right) || !(bottom < top))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_image_set_extent: from %g to %g and from %g to %g: all must be finite, "
                      "and "
                      "the first of two less"),
                   left, right, bottom, top);
      return FALSE;
    }
  self->has_extent = TRUE;
  self->left = left;
  self->right = right;
  self->bottom = bottom;
  self->top = top;
  setting_changed (self, 0);
  return TRUE;
}

/**
 * gtorch_plot_image_get_show_values: (get-property show-values)
 * @self: an image
 *
 * Tells whether the numbers are written on the pixels.
 *
 * Returns: %TRUE if they are
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_get_show_values (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  return self->show_values;
}

/**
 * gtorch_plot_image_set_show_values: (set-property show-values)
 * @self: an image
 * @show_values: whether the numbers are written on the pixels
 *
 * Shows or hides the numbers on the pixels.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_show_values (GTorchPlotImage *self, gboolean show_values)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  if (self->show_values == !!show_values)
    return;
  self->show_values = !!show_values;
  setting_changed (self, PROP_SHOW_VALUES);
}

/**
 * gtorch_plot_image_get_show_scale: (get-property show-scale)
 * @self: an image
 *
 * Tells whether a bar beside the image explains its colours.
 *
 * Returns: %TRUE if there is one
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_get_show_scale (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  return self->show_scale;
}

/**
 * gtorch_plot_image_set_show_scale: (set-property show-scale)
 * @self: an image
 * @show_scale: whether a bar beside the image explains its colours
 *
 * Shows or hides the bar of colours.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_show_scale (GTorchPlotImage *self, gboolean show_scale)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  if (self->show_scale == !!show_scale)
    return;
  self->show_scale = !!show_scale;
  setting_changed (self, PROP_SHOW_SCALE);
}

static void
set_names (GTorchPlotImage *self, gchar ***place, const gchar *const *names, guint id)
{
  if (*place == NULL ? names == NULL
                     : names != NULL && g_strv_equal ((const gchar *const *) *place, names))
    return;
  g_strfreev (*place);
  *place = g_strdupv ((gchar **) names);
  setting_changed (self, id);
}

/**
 * gtorch_plot_image_get_row_names: (get-property row-names)
 * @self: an image
 *
 * Gets the names of the rows.
 *
 * Returns: (transfer none) (nullable) (array zero-terminated=1): the names, or %NULL
 *
 * Since: 0.1
 */
const gchar *const *
gtorch_plot_image_get_row_names (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), NULL);
  return (const gchar *const *) self->row_names;
}

/**
 * gtorch_plot_image_set_row_names: (set-property row-names)
 * @self: an image
 * @names: (nullable) (array zero-terminated=1): the names, or %NULL
 *
 * Sets the names of the rows. Rows without one have none.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_row_names (GTorchPlotImage *self, const gchar *const *names)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  set_names (self, &self->row_names, names, PROP_ROW_NAMES);
}

/**
 * gtorch_plot_image_get_column_names: (get-property column-names)
 * @self: an image
 *
 * Gets the names of the columns.
 *
 * Returns: (transfer none) (nullable) (array zero-terminated=1): the names, or %NULL
 *
 * Since: 0.1
 */
const gchar *const *
gtorch_plot_image_get_column_names (GTorchPlotImage *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), NULL);
  return (const gchar *const *) self->column_names;
}

/**
 * gtorch_plot_image_set_column_names: (set-property column-names)
 * @self: an image
 * @names: (nullable) (array zero-terminated=1): the names, or %NULL
 *
 * Sets the names of the columns. Columns without one have none.
 *
 * Since: 0.1
 */
void
gtorch_plot_image_set_column_names (GTorchPlotImage *self, const gchar *const *names)
{
  g_return_if_fail (GTORCH_PLOT_IS_IMAGE (self));
  set_names (self, &self->column_names, names, PROP_COLUMN_NAMES);
}
