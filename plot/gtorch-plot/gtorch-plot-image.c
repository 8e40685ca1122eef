/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-plot-pixels-private.h"

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

#define MAX_SIDE   32767 /* cairo's */
#define LEAST_SIDE 1e-3  /* of what is drawn; cairo's matrices have no inverse at some point */
#define FAR_AWAY   900.0 /* below what gtorch_plot_canvas_x () and its like return at most */

struct _GTorchPlotImageClass
{
  GTorchPlotItemClass parent_class;
};

struct _GTorchPlotImage
{
  GTorchPlotItem parent_instance;
  GTorchPlotPixels *pixels;
  cairo_surface_t *surface; /* NULL: to be made of the numbers */
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

gboolean
gtorch_plot_image_find_bad (GTorchPlotImage *self, guint *row, guint *column, gdouble *number)
{
  const GTorchPlotPixels *pixels = self->pixels;

  for (gsize i = 0; pixels->numbers != NULL && i < (gsize) pixels->width * pixels->height; i++)
    if (!(pixels->numbers[i] >= 0 && isfinite (pixels->numbers[i])))
      {
        *row = i / pixels->width;
        *column = i % pixels->width;
        *number = pixels->numbers[i];
        return TRUE;
      }
  return FALSE;
}

static GTorchPlotMapping
find_mapping (GTorchPlotImage *self)
{
  return gtorch_plot_pixels_map (self->pixels, self->colormap, self->minimum, self->maximum);
}

gboolean
gtorch_plot_image_has_scale (GTorchPlotImage *self, gdouble *low, gdouble *high)
{
  const GTorchPlotMapping mapping = find_mapping (self);

  if (!self->show_scale || !mapping.is_valid)
    return FALSE;
  *low = mapping.low;
  *high = mapping.high;
  return TRUE;
}

/* From the beginning of the first pixel of an axis to the end of the last one, where a logarithmic axis has a
 * place for them: pixels that begin at 0 or before have none. */
static gboolean
find_ends (gdouble first, gdouble last, guint n, gboolean is_log, gdouble *low, gdouble *high)
{
  *low = MIN (first, last);
  *high = MAX (first, last);
  if (is_log && *low <= 0)
    {
      const gdouble size = *high / n - *low / n;

      *low += size * (floor (-*low / size) + 1);
      return *low<*high && * low> 0;
    }
  return TRUE;
}

static void
gtorch_plot_image_add_range (GTorchPlotItem *item, gboolean x_log, gboolean y_log,
                             GTorchPlotRange *range)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item);
  const guint width = self->pixels->width, height = self->pixels->height;
  gdouble x_low, x_high, y_low, y_high;

  if (width == 0 || height == 0
      || !find_ends (self->left, self->right, width, x_log, &x_low, &x_high)
      || !find_ends (self->bottom, self->top, height, y_log, &y_low, &y_high))
    return;
  range->x_low = MIN (range->x_low, x_low);
  range->x_high = MAX (range->x_high, x_high);
  range->y_low = MIN (range->y_low, y_low);
  range->y_high = MAX (range->y_high, y_high);
}

/* --- drawing --- */

static gboolean
is_vector (cairo_t *cr)
{
  const cairo_surface_type_t type = cairo_surface_get_type (cairo_get_group_target (cr));

  return type == CAIRO_SURFACE_TYPE_SVG || type == CAIRO_SURFACE_TYPE_PDF
         || type == CAIRO_SURFACE_TYPE_PS;
}

/* Whether an end is so far outside of the axis that its place is not known. */
static gboolean
is_far (const GTorchPlotAxis *axis, gdouble first, gdouble last)
{
  return fabs (gtorch_plot_axis_place (axis, first)) > FAR_AWAY
         || fabs (gtorch_plot_axis_place (axis, last)) > FAR_AWAY;
}

static void
gtorch_plot_image_draw (GTorchPlotItem *item, const GTorchPlotCanvas *canvas)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item);
  const guint n_columns = self->pixels->width, n_rows = self->pixels->height;
  const gdouble x = gtorch_plot_canvas_x (canvas, self->left);
  const gdouble y = gtorch_plot_canvas_y (canvas, self->top);
  const gdouble width = gtorch_plot_canvas_x (canvas, self->right) - x;
  const gdouble height = gtorch_plot_canvas_y (canvas, self->bottom) - y;
  cairo_t *cr = canvas->cr;
  guint factor = 1;
  cairo_surface_t *surface;

  if (n_columns == 0 || n_rows == 0)
    return;
  if (self->surface == NULL)
    {
      const GTorchPlotMapping mapping = find_mapping (self);

      self->surface = gtorch_plot_pixels_paint (self->pixels, &mapping);
    }
  if (cairo_surface_status (self->surface) != CAIRO_STATUS_SUCCESS)
    return; /* it would break the context */
  if (canvas->x_axis.is_log || canvas->y_axis.is_log
      || is_far (&canvas->x_axis, self->left, self->right)
      || is_far (&canvas->y_axis, self->top, self->bottom))
    {
      const gdouble extent[] = { self->left, self->right, self->top, self->bottom };

      gtorch_plot_surface_draw_warped (self->surface, canvas, extent);
      return;
    }
  if (!(fabs (width) >= LEAST_SIDE && fabs (height) >= LEAST_SIDE))
    return;
  if (is_vector (cr) && MAX (n_columns, n_rows) < 256)
    factor = 1 + 512 / MAX (n_columns, n_rows);
  surface = factor > 1 ? gtorch_plot_surface_enlarge (self->surface, factor)
                       : cairo_surface_reference (self->surface);
  cairo_save (cr);
  cairo_translate (cr, x, y);
  cairo_scale (cr, width / n_columns / factor, height / n_rows / factor);
  cairo_set_source_surface (cr, surface, 0, 0);
  cairo_pattern_set_filter (cairo_get_source (cr),
                            width >= n_columns ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
  cairo_paint (cr);
  cairo_restore (cr);
  cairo_surface_destroy (surface);
  if (self->show_values)
    {
      const GTorchPlotMapping mapping = find_mapping (self);

      gtorch_plot_pixels_draw_values (self->pixels, &mapping, canvas, x, y, width, height);
    }
}

static void
gtorch_plot_image_copy (GTorchPlotItem *item, GTorchPlotItem *copy)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item), *other = GTORCH_PLOT_IMAGE (copy);

  gtorch_plot_pixels_unref (other->pixels);
  other->pixels = gtorch_plot_pixels_ref (self->pixels);
  other->surface = self->surface != NULL ? gtorch_plot_surface_share (self->surface) : NULL;
  other->minimum = self->minimum;
  other->maximum = self->maximum;
  other->colormap = self->colormap;
  other->show_values = self->show_values;
  other->show_scale = self->show_scale;
  other->has_extent = self->has_extent;
  other->left = self->left;
  other->right = self->right;
  other->bottom = self->bottom;
  other->top = self->top;
  other->row_names = g_strdupv (self->row_names);
  other->column_names = g_strdupv (self->column_names);
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
      g_value_set_uint (value, self->pixels->width);
      break;
    case PROP_HEIGHT:
      g_value_set_uint (value, self->pixels->height);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
gtorch_plot_image_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (object);
  g_autoptr (GError) error = NULL;

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
      gtorch_plot_image_set_row_names (self, g_value_get_boxed (value), &error);
      break;
    case PROP_COLUMN_NAMES:
      gtorch_plot_image_set_column_names (self, g_value_get_boxed (value), &error);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
  if (error != NULL)
    g_warning ("%s", error->message);
}

static void
gtorch_plot_image_finalize (GObject *object)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (object);

  gtorch_plot_pixels_unref (self->pixels);
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
  item_class->copy_type = GTORCH_PLOT_TYPE_IMAGE;
  item_class->copy = gtorch_plot_image_copy;
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
  self->pixels = gtorch_plot_pixels_new (0, 0);
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
check_names (const gchar *op, const gchar *what, gchar **names, gsize n, GError **error)
{
  const guint n_names = names != NULL ? g_strv_length (names) : 0;

  if (names == NULL || n == 0 || n_names == n)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the number of names is %u, and that of %s %zu"), op, n_names, _ (what), n);
  return FALSE;
}

static gboolean
check_pixels (GTorchPlotImage *self, GTorchTensor *pixels, GTorchPlotRead *read, GError **error)
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
      read->colormap = self->colormap;
      read->minimum = self->minimum;
      read->maximum = self->maximum;
      read->prepare = gtorch_plot_pixels_prepare;
      return check_names (SET_PIXELS, N_ ("rows"), self->row_names, height, error)
             && check_names (SET_PIXELS, N_ ("columns"), self->column_names, width, error);
    }
  return FALSE;
}

static void
take_pixels (GTorchPlotItem *item, GTorchPlotRead *read)
{
  GTorchPlotImage *self = GTORCH_PLOT_IMAGE (item);
  GTorchPlotPixels *pixels = g_steal_pointer (&read->result);
  GTorchPlotMapping mapping;

  gtorch_plot_pixels_unref (self->pixels);
  self->pixels = pixels;
  mapping = find_mapping (self);
  g_clear_pointer (&self->surface, cairo_surface_destroy);
  if (pixels->surface != NULL
      && (pixels->numbers == NULL
          || (pixels->mapping.colormap == mapping.colormap && pixels->mapping.low == mapping.low
              && pixels->mapping.high == mapping.high)))
    self->surface = gtorch_plot_surface_share (pixels->surface);
  if (!self->has_extent)
    {
      self->right = pixels->width - 0.5;
      self->bottom = pixels->height - 0.5;
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
 * computed; [method@Image.set_pixels_async] does not. If rows or columns have names, there must be as many as
 * before.
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
  return check_pixels (self, pixels, &read, error)
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
 * Sets the pixels without blocking the main loop: the numbers are read and become colours in a
 * thread, so until then the tensor is not to be changed. Of two such calls, the later one counts.
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
  if (!check_pixels (self, pixels, &read, &error))
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
  return self->pixels->width;
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
  return self->pixels->height;
}

/* --- settings --- */

static void
setting_changed (GTorchPlotImage *self, guint id)
{
  if (self->pixels->numbers != NULL)
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
  *minimum = self->minimum;
  *maximum = self->maximum;
  if (isnan (self->minimum) && self->pixels->low <= self->pixels->high)
    *minimum = self->pixels->low;
  if (isnan (self->maximum) && self->pixels->low <= self->pixels->high)
    *maximum = self->pixels->high;
}

/**
 * gtorch_plot_image_set_range:
 * @self: an image
 * @minimum: the number of the first colour of the map, or NaN for the least number
 * @maximum: the number of the last one, not less than @minimum, or NaN for the greatest number
 * @error: return location for an error
 *
 * Sets the range of numbers that the colours stand for. Numbers outside have the colour of the nearer
 * end.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if a number is infinite, or @minimum
 *   greater than @maximum
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_set_range (GTorchPlotImage *self, gdouble minimum, gdouble maximum,
                             GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  if (isinf (minimum) || isinf (maximum) || minimum > maximum)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_image_set_range: from %g to %g: both must be finite, or NaN for those "
                      "of the data, and "
                      "the first one not greater"),
                   minimum, maximum);
      return FALSE;
    }
  self->minimum = minimum;
  self->maximum = maximum;
  setting_changed (self, 0);
  return TRUE;
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
 * gtorch_plot_image_set_row_names:
 * @self: an image
 * @names: (nullable) (array zero-terminated=1): the names, or %NULL
 * @error: return location for an error
 *
 * Sets the names of the rows. There must be as many as rows, if the image has pixels.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE, and the former names
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_set_row_names (GTorchPlotImage *self, const gchar *const *names, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  if (!check_names ("plot_image_set_row_names", N_ ("rows"), (gchar **) names, self->pixels->height,
                    error))
    return FALSE;
  set_names (self, &self->row_names, names, PROP_ROW_NAMES);
  return TRUE;
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
 * gtorch_plot_image_set_column_names:
 * @self: an image
 * @names: (nullable) (array zero-terminated=1): the names, or %NULL
 * @error: return location for an error
 *
 * Sets the names of the columns. There must be as many as columns, if the image has pixels.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE, and the former names
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_image_set_column_names (GTorchPlotImage *self, const gchar *const *names,
                                    GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_IMAGE (self), FALSE);
  if (!check_names ("plot_image_set_column_names", N_ ("columns"), (gchar **) names,
                    self->pixels->width, error))
    return FALSE;
  set_names (self, &self->column_names, names, PROP_COLUMN_NAMES);
  return TRUE;
}
