/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "gtorch-plot-private.h"

/**
 * GTorchPlotAxes:
 *
 * A part of a figure with two axes, and the items that are drawn between them.
 *
 * Axes belong to a [class@Figure], which makes them ([method@Figure.get_axes]). Their limits follow the
 * items unless they are set; ticks are at multiples of 1, 2 or 5 times a power of ten. Axes whose image
 * has no extent ([method@Image.set_extent]) grow downwards, and its pixels are as wide as high.
 *
 * ```c
 * axes = gtorch_plot_figure_get_axes (figure, 0, 0, NULL);
 * gtorch_plot_axes_set_x_label (axes, "step");
 * line = gtorch_plot_axes_add_line (axes, NULL, losses, "training", &error);
 * ```
 *
 * Since: 0.1
 */

enum
{
  PROP_TITLE = 1,
  PROP_X_LABEL,
  PROP_Y_LABEL,
  PROP_X_SCALE,
  PROP_Y_SCALE,
  PROP_SHOW_LEGEND,
  PROP_SHOW_GRID,
  PROP_SHOW_TICKS,
  PROP_EQUAL_UNITS,
  PROP_ITEMS,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchPlotAxes, gtorch_plot_axes, G_TYPE_OBJECT)

void
gtorch_plot_axes_changed (GTorchPlotAxes *self)
{
  if (self->figure != NULL)
    gtorch_plot_figure_changed (self->figure);
}

GTorchPlotAxes *
gtorch_plot_axes_new (GTorchPlotFigure *figure)
{
  GTorchPlotAxes *self = g_object_new (GTORCH_PLOT_TYPE_AXES, NULL);

  self->figure = figure;
  return self;
}

GTorchPlotAxes *
gtorch_plot_axes_copy (GTorchPlotAxes *self, GTorchPlotFigure *figure)
{
  GTorchPlotAxes *copy = gtorch_plot_axes_new (figure);

  copy->title = g_strdup (self->title);
  copy->x_label = g_strdup (self->x_label);
  copy->y_label = g_strdup (self->y_label);
  copy->x_scale = self->x_scale;
  copy->y_scale = self->y_scale;
  copy->x_low = self->x_low;
  copy->x_high = self->x_high;
  copy->y_low = self->y_low;
  copy->y_high = self->y_high;
  copy->show_legend = self->show_legend;
  copy->show_grid = self->show_grid;
  copy->show_ticks = self->show_ticks;
  copy->equal_units = self->equal_units;
  for (guint i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (self->items)); i++)
    {
      g_autoptr (GTorchPlotItem) item = g_list_model_get_item (G_LIST_MODEL (self->items), i);
      g_autoptr (GTorchPlotItem) other = gtorch_plot_item_copy (item);

      other->axes = copy;
      g_list_store_append (copy->items, other);
    }
  return copy;
}

void
gtorch_plot_axes_leave (GTorchPlotAxes *self)
{
  self->figure = NULL;
}

/* --- class --- */

static void
gtorch_plot_axes_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchPlotAxes *self = GTORCH_PLOT_AXES (object);

  switch (id)
    {
    case PROP_TITLE:
      g_value_set_string (value, self->title);
      break;
    case PROP_X_LABEL:
      g_value_set_string (value, self->x_label);
      break;
    case PROP_Y_LABEL:
      g_value_set_string (value, self->y_label);
      break;
    case PROP_X_SCALE:
      g_value_set_enum (value, self->x_scale);
      break;
    case PROP_Y_SCALE:
      g_value_set_enum (value, self->y_scale);
      break;
    case PROP_SHOW_LEGEND:
      g_value_set_boolean (value, self->show_legend);
      break;
    case PROP_SHOW_GRID:
      g_value_set_boolean (value, self->show_grid);
      break;
    case PROP_SHOW_TICKS:
      g_value_set_boolean (value, self->show_ticks);
      break;
    case PROP_EQUAL_UNITS:
      g_value_set_boolean (value, self->equal_units);
      break;
    case PROP_ITEMS:
      g_value_set_object (value, self->items);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
gtorch_plot_axes_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GTorchPlotAxes *self = GTORCH_PLOT_AXES (object);
  g_autoptr (GError) error = NULL;

  switch (id)
    {
    case PROP_TITLE:
      gtorch_plot_axes_set_title (self, g_value_get_string (value));
      break;
    case PROP_X_LABEL:
      gtorch_plot_axes_set_x_label (self, g_value_get_string (value));
      break;
    case PROP_Y_LABEL:
      gtorch_plot_axes_set_y_label (self, g_value_get_string (value));
      break;
    case PROP_X_SCALE:
      gtorch_plot_axes_set_x_scale (self, g_value_get_enum (value), &error);
      break;
    case PROP_Y_SCALE:
      gtorch_plot_axes_set_y_scale (self, g_value_get_enum (value), &error);
      break;
    case PROP_SHOW_LEGEND:
      gtorch_plot_axes_set_show_legend (self, g_value_get_boolean (value));
      break;
    case PROP_SHOW_GRID:
      gtorch_plot_axes_set_show_grid (self, g_value_get_boolean (value));
      break;
    case PROP_SHOW_TICKS:
      gtorch_plot_axes_set_show_ticks (self, g_value_get_boolean (value));
      break;
    case PROP_EQUAL_UNITS:
      gtorch_plot_axes_set_equal_units (self, g_value_get_boolean (value));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
  if (error != NULL)
    g_warning ("%s", error->message);
}

static void
forget_items (GTorchPlotAxes *self)
{
  for (guint i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (self->items)); i++)
    {
      g_autoptr (GTorchPlotItem) item = g_list_model_get_item (G_LIST_MODEL (self->items), i);

      item->axes = NULL;
    }
}

static void
gtorch_plot_axes_finalize (GObject *object)
{
  GTorchPlotAxes *self = GTORCH_PLOT_AXES (object);

  forget_items (self);
  g_object_unref (self->items);
  g_free (self->title);
  g_free (self->x_label);
  g_free (self->y_label);
  G_OBJECT_CLASS (gtorch_plot_axes_parent_class)->finalize (object);
}

static void
gtorch_plot_axes_class_init (GTorchPlotAxesClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_plot_axes_get_property;
  object_class->set_property = gtorch_plot_axes_set_property;
  object_class->finalize = gtorch_plot_axes_finalize;
  /**
   * GTorchPlotAxes:title:
   *
   * The title above the axes.
   *
   * Since: 0.1
   */
  props[PROP_TITLE] = g_param_spec_string ("title", NULL, NULL, NULL, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:x-label:
   *
   * The text below the horizontal axis.
   *
   * Since: 0.1
   */
  props[PROP_X_LABEL] = g_param_spec_string ("x-label", NULL, NULL, NULL, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:y-label:
   *
   * The text beside the vertical axis.
   *
   * Since: 0.1
   */
  props[PROP_Y_LABEL] = g_param_spec_string ("y-label", NULL, NULL, NULL, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:x-scale:
   *
   * How numbers become places on the horizontal axis.
   *
   * Since: 0.1
   */
  props[PROP_X_SCALE] = g_param_spec_enum ("x-scale", NULL, NULL, GTORCH_PLOT_TYPE_SCALE,
                                           GTORCH_PLOT_SCALE_LINEAR, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:y-scale:
   *
   * How numbers become places on the vertical axis.
   *
   * Since: 0.1
   */
  props[PROP_Y_SCALE] = g_param_spec_enum ("y-scale", NULL, NULL, GTORCH_PLOT_TYPE_SCALE,
                                           GTORCH_PLOT_SCALE_LINEAR, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:show-legend:
   *
   * Whether there is a legend of the items that have a label, in the corner where they cover least.
   *
   * Since: 0.1
   */
  props[PROP_SHOW_LEGEND] =
      g_param_spec_boolean ("show-legend", NULL, NULL, TRUE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:show-grid:
   *
   * Whether thin lines go through the ticks.
   *
   * Since: 0.1
   */
  props[PROP_SHOW_GRID] =
      g_param_spec_boolean ("show-grid", NULL, NULL, TRUE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:show-ticks:
   *
   * Whether there are axes with ticks and numbers.
   *
   * Since: 0.1
   */
  props[PROP_SHOW_TICKS] =
      g_param_spec_boolean ("show-ticks", NULL, NULL, TRUE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:equal-units:
   *
   * Whether a unit is as long on both axes, if these are linear.
   *
   * Since: 0.1
   */
  props[PROP_EQUAL_UNITS] =
      g_param_spec_boolean ("equal-units", NULL, NULL, FALSE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotAxes:items:
   *
   * The items, the lowest first.
   *
   * Since: 0.1
   */
  props[PROP_ITEMS] = g_param_spec_object ("items", NULL, NULL, G_TYPE_LIST_MODEL,
                                           G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_plot_axes_init (GTorchPlotAxes *self)
{
  self->items = g_list_store_new (GTORCH_PLOT_TYPE_ITEM);
  self->x_low = self->x_high = self->y_low = self->y_high = NAN;
  self->show_legend = self->show_grid = self->show_ticks = TRUE;
}

/* --- items --- */

/**
 * gtorch_plot_axes_add:
 * @self: axes
 * @item: an item that is on no other axes
 * @error: return location for an error
 *
 * Adds an item, which is drawn over those that are there.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the item is on axes already
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_add (GTorchPlotAxes *self, GTorchPlotItem *item, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  g_return_val_if_fail (GTORCH_PLOT_IS_ITEM (item), FALSE);
  if (item->axes != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_axes_add: the %s is on axes already, and can be on one only"),
                   G_OBJECT_TYPE_NAME (item));
      return FALSE;
    }
  item->axes = self;
  g_list_store_append (self->items, item);
  gtorch_plot_axes_changed (self);
  return TRUE;
}

/**
 * gtorch_plot_axes_remove:
 * @self: axes
 * @item: an item
 *
 * Removes an item.
 *
 * Returns: %TRUE if it was there
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_remove (GTorchPlotAxes *self, GTorchPlotItem *item)
{
  guint position;

  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  g_return_val_if_fail (GTORCH_PLOT_IS_ITEM (item), FALSE);
  if (!g_list_store_find (self->items, item, &position))
    return FALSE;
  item->axes = NULL;
  g_list_store_remove (self->items, position);
  gtorch_plot_axes_changed (self);
  return TRUE;
}

/**
 * gtorch_plot_axes_clear:
 * @self: axes
 *
 * Removes all items.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_clear (GTorchPlotAxes *self)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  forget_items (self);
  g_list_store_remove_all (self->items);
  gtorch_plot_axes_changed (self);
}

/**
 * gtorch_plot_axes_get_items: (get-property items)
 * @self: axes
 *
 * Gets the items, the lowest first. The list follows changes.
 *
 * Returns: (transfer none): a list of [class@Item]
 *
 * Since: 0.1
 */
GListModel *
gtorch_plot_axes_get_items (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  return G_LIST_MODEL (self->items);
}

GTorchPlotItem *
gtorch_plot_axes_get_item (GTorchPlotAxes *self, guint i)
{
  g_autoptr (GTorchPlotItem) item = g_list_model_get_item (G_LIST_MODEL (self->items), i);

  return item;
}

/* Takes an item, which the axes keep if it has got its numbers. */
static gpointer
add_new (GTorchPlotAxes *self, gpointer item, gboolean has_numbers)
{
  if (has_numbers)
    gtorch_plot_axes_add (self, item, NULL);
  g_object_unref (item);
  return has_numbers ? item : NULL;
}

/**
 * gtorch_plot_axes_add_line:
 * @self: axes
 * @x: (nullable): the horizontal places, one dimension, or %NULL for 0, 1, 2 and so on
 * @y: the vertical places, as many
 * @label: (nullable): the name in the legend
 * @error: return location for an error
 *
 * Adds a line. Waits until the tensors are computed; [method@Line.set_values_async] does not.
 *
 * Returns: (transfer none): the line, which belongs to the axes, or %NULL with an error of
 *   [method@Line.set_values]
 *
 * Since: 0.1
 */
GTorchPlotLine *
gtorch_plot_axes_add_line (GTorchPlotAxes *self, GTorchTensor *x, GTorchTensor *y,
                           const gchar *label, GError **error)
{
  GTorchPlotLine *line;

  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  g_return_val_if_fail (x == NULL || GTORCH_IS_TENSOR (x), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (y), NULL);
  line = gtorch_plot_line_new (label);
  return add_new (self, line, gtorch_plot_line_set_values (line, x, y, error));
}

/**
 * gtorch_plot_axes_add_histogram:
 * @self: axes
 * @values: the numbers, in any shape
 * @n_bins: the number of bins, or 0 for one that follows from the number of values
 * @label: (nullable): the name in the legend
 * @error: return location for an error
 *
 * Adds a histogram. Waits until the tensor is computed; [method@Histogram.set_values_async] does not.
 *
 * Returns: (transfer none): the histogram, which belongs to the axes, or %NULL with an error of
 *   [method@Histogram.set_values]
 *
 * Since: 0.1
 */
GTorchPlotHistogram *
gtorch_plot_axes_add_histogram (GTorchPlotAxes *self, GTorchTensor *values, guint n_bins,
                                const gchar *label, GError **error)
{
  GTorchPlotHistogram *histogram;

  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (values), NULL);
  histogram = gtorch_plot_histogram_new (label);
  return add_new (self, histogram,
                  gtorch_plot_histogram_set_values (histogram, values, n_bins, error));
}

/**
 * gtorch_plot_axes_add_image:
 * @self: axes
 * @pixels: the pixels, of one of the shapes that [class@Image] names
 * @error: return location for an error
 *
 * Adds an image. Waits until the tensor is computed; [method@Image.set_pixels_async] does not.
 *
 * Returns: (transfer none): the image, which belongs to the axes, or %NULL with an error of
 *   [method@Image.set_pixels]
 *
 * Since: 0.1
 */
GTorchPlotImage *
gtorch_plot_axes_add_image (GTorchPlotAxes *self, GTorchTensor *pixels, GError **error)
{
  GTorchPlotImage *image;

  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (pixels), NULL);
  image = gtorch_plot_image_new ();
  return add_new (self, image, gtorch_plot_image_set_pixels (image, pixels, error));
}

/**
 * gtorch_plot_axes_add_matrix:
 * @self: axes
 * @matrix: the numbers, of shape `[rows, columns]`
 * @row_names: (nullable) (array zero-terminated=1): the names of the rows
 * @column_names: (nullable) (array zero-terminated=1): the names of the columns
 * @error: return location for an error
 *
 * Adds a matrix: an image whose numbers are written in its cells. Waits until the tensor is computed.
 *
 * Returns: (transfer none): the image, which belongs to the axes, or %NULL with %GTORCH_ERROR_SHAPE if
 *   there are not two dimensions or not as many names as rows and columns, or with an error of
 *   [method@Image.set_pixels]
 *
 * Since: 0.1
 */
GTorchPlotImage *
gtorch_plot_axes_add_matrix (GTorchPlotAxes *self, GTorchTensor *matrix,
                             const gchar *const *row_names, const gchar *const *column_names,
                             GError **error)
{
  GTorchPlotImage *image;

  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (matrix), NULL);
  if (!gtorch_plot_check_matrix ("plot_axes_add_matrix", matrix, row_names, column_names, error))
    return NULL;
  image = gtorch_plot_axes_add_image (self, matrix, error);
  if (image == NULL)
    return NULL;
  gtorch_plot_image_set_colormap (image, GTORCH_PLOT_COLORMAP_BLUES);
  gtorch_plot_image_set_row_names (image, row_names, NULL); /* they fit */
  gtorch_plot_image_set_column_names (image, column_names, NULL);
  gtorch_plot_image_set_show_values (image, TRUE);
  return image;
}

/* --- settings --- */

static void
set_text (GTorchPlotAxes *self, gchar **place, const gchar *text, guint id)
{
  if (g_strcmp0 (*place, text) == 0)
    return;
  g_free (*place);
  *place = g_strdup (text);
  gtorch_plot_axes_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[id]);
}

static void
set_number (GTorchPlotAxes *self, gint *place, gint number, guint id)
{
  if (*place == number)
    return;
  *place = number;
  gtorch_plot_axes_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[id]);
}

static gboolean
check_scale (const gchar *op, gint scale, gdouble low, gdouble high, GError **error)
{
  if (scale == GTORCH_PLOT_SCALE_LINEAR
      || (scale == GTORCH_PLOT_SCALE_LOG && !(low <= 0 || high <= 0)))
    return TRUE;
  if (scale != GTORCH_PLOT_SCALE_LOG)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %d is no scale"), op, scale);
      return FALSE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: from %g to %g: the ends of a logarithmic axis must be positive, or NaN for "
                  "those of the data"),
               op, low, high);
  return FALSE;
}

static gboolean
set_limits (GTorchPlotAxes *self, gdouble *low_place, gdouble *high_place, gdouble low,
            gdouble high, gint scale, const gchar *op, GError **error)
{
  if (isinf (low) || isinf (high) || (!isnan (low) && !isnan (high) && !(low < high)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: from %g to %g: both must be finite, or NaN for those of the data, and "
                      "the first "
                      "one less"),
                   op, low, high);
      return FALSE;
    }
  if (!check_scale (op, scale, low, high, error))
    return FALSE;
  *low_place = low;
  *high_place = high;
  gtorch_plot_axes_changed (self);
  return TRUE;
}

/**
 * gtorch_plot_axes_get_title: (get-property title)
 * @self: axes
 *
 * Gets the title above the axes.
 *
 * Returns: (transfer none) (nullable): the text, or %NULL
 *
 * Since: 0.1
 */
const gchar *
gtorch_plot_axes_get_title (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  return self->title;
}

/**
 * gtorch_plot_axes_set_title: (set-property title)
 * @self: axes
 * @title: (nullable): the text, or %NULL
 *
 * Sets the title above the axes.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_title (GTorchPlotAxes *self, const gchar *title)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_text (self, &self->title, title, PROP_TITLE);
}

/**
 * gtorch_plot_axes_get_x_label: (get-property x-label)
 * @self: axes
 *
 * Gets the text below the horizontal axis.
 *
 * Returns: (transfer none) (nullable): the text, or %NULL
 *
 * Since: 0.1
 */
const gchar *
gtorch_plot_axes_get_x_label (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  return self->x_label;
}

/**
 * gtorch_plot_axes_set_x_label: (set-property x-label)
 * @self: axes
 * @label: (nullable): the text, or %NULL
 *
 * Sets the text below the horizontal axis.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_x_label (GTorchPlotAxes *self, const gchar *label)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_text (self, &self->x_label, label, PROP_X_LABEL);
}

/**
 * gtorch_plot_axes_get_y_label: (get-property y-label)
 * @self: axes
 *
 * Gets the text beside the vertical axis.
 *
 * Returns: (transfer none) (nullable): the text, or %NULL
 *
 * Since: 0.1
 */
const gchar *
gtorch_plot_axes_get_y_label (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), NULL);
  return self->y_label;
}

/**
 * gtorch_plot_axes_set_y_label: (set-property y-label)
 * @self: axes
 * @label: (nullable): the text, or %NULL
 *
 * Sets the text beside the vertical axis.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_y_label (GTorchPlotAxes *self, const gchar *label)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_text (self, &self->y_label, label, PROP_Y_LABEL);
}

/**
 * gtorch_plot_axes_get_x_scale: (get-property x-scale)
 * @self: axes
 *
 * Gets the scale of the horizontal axis.
 *
 * Returns: the scale
 *
 * Since: 0.1
 */
GTorchPlotScale
gtorch_plot_axes_get_x_scale (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), GTORCH_PLOT_SCALE_LINEAR);
  return (GTorchPlotScale) self->x_scale;
}

/**
 * gtorch_plot_axes_set_x_scale:
 * @self: axes
 * @scale: the scale
 * @error: return location for an error
 *
 * Sets the scale of the horizontal axis. A logarithmic one has no place for 0 and less: such numbers of the
 * data are not drawn, and such ends of the axis are refused.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID, and the former scale, if an end that was set
 *   ([method@Axes.set_x_limits]) has no place on it
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_set_x_scale (GTorchPlotAxes *self, GTorchPlotScale scale, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  if (!check_scale ("plot_axes_set_x_scale", scale, self->x_low, self->x_high, error))
    return FALSE;
  set_number (self, &self->x_scale, scale, PROP_X_SCALE);
  return TRUE;
}

/**
 * gtorch_plot_axes_get_y_scale: (get-property y-scale)
 * @self: axes
 *
 * Gets the scale of the vertical axis.
 *
 * Returns: the scale
 *
 * Since: 0.1
 */
GTorchPlotScale
gtorch_plot_axes_get_y_scale (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), GTORCH_PLOT_SCALE_LINEAR);
  return (GTorchPlotScale) self->y_scale;
}

/**
 * gtorch_plot_axes_set_y_scale:
 * @self: axes
 * @scale: the scale
 * @error: return location for an error
 *
 * Sets the scale of the vertical axis. A logarithmic one has no place for 0 and less: such numbers of the
 * data are not drawn, and such ends of the axis are refused.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID, and the former scale, if an end that was set
 *   ([method@Axes.set_y_limits]) has no place on it
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_set_y_scale (GTorchPlotAxes *self, GTorchPlotScale scale, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  if (!check_scale ("plot_axes_set_y_scale", scale, self->y_low, self->y_high, error))
    return FALSE;
  set_number (self, &self->y_scale, scale, PROP_Y_SCALE);
  return TRUE;
}

/**
 * gtorch_plot_axes_get_x_limits:
 * @self: axes
 * @low: (out): the lower end, or NaN if it is that of the data
 * @high: (out): the upper end, or NaN if it is that of the data
 *
 * Gets the ends of the horizontal axis that were set.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_get_x_limits (GTorchPlotAxes *self, gdouble *low, gdouble *high)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  g_return_if_fail (low != NULL && high != NULL);
  *low = self->x_low;
  *high = self->x_high;
}

/**
 * gtorch_plot_axes_set_x_limits:
 * @self: axes
 * @low: the lower end, or NaN for that of the data
 * @high: the upper end, or NaN for that of the data
 * @error: return location for an error
 *
 * Sets the ends of the horizontal axis.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if one is infinite, @low is not less than
 *   @high, or one is not positive and the axis logarithmic
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_set_x_limits (GTorchPlotAxes *self, gdouble low, gdouble high, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  return set_limits (self, &self->x_low, &self->x_high, low, high, self->x_scale,
                     "plot_axes_set_x_limits", error);
}

/**
 * gtorch_plot_axes_get_y_limits:
 * @self: axes
 * @low: (out): the lower end, or NaN if it is that of the data
 * @high: (out): the upper end, or NaN if it is that of the data
 *
 * Gets the ends of the vertical axis that were set.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_get_y_limits (GTorchPlotAxes *self, gdouble *low, gdouble *high)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  g_return_if_fail (low != NULL && high != NULL);
  *low = self->y_low;
  *high = self->y_high;
}

/**
 * gtorch_plot_axes_set_y_limits:
 * @self: axes
 * @low: the lower end, or NaN for that of the data
 * @high: the upper end, or NaN for that of the data
 * @error: return location for an error
 *
 * Sets the ends of the vertical axis.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if one is infinite, @low is not less than
 *   @high, or one is not positive and the axis logarithmic
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_set_y_limits (GTorchPlotAxes *self, gdouble low, gdouble high, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  return set_limits (self, &self->y_low, &self->y_high, low, high, self->y_scale,
                     "plot_axes_set_y_limits", error);
}

/**
 * gtorch_plot_axes_get_show_legend: (get-property show-legend)
 * @self: axes
 *
 * Tells whether there is a legend.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_get_show_legend (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  return self->show_legend;
}

/**
 * gtorch_plot_axes_set_show_legend: (set-property show-legend)
 * @self: axes
 * @show_legend: whether there is a legend
 *
 * Shows or hides the legend.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_show_legend (GTorchPlotAxes *self, gboolean show_legend)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_number (self, &self->show_legend, !!show_legend, PROP_SHOW_LEGEND);
}

/**
 * gtorch_plot_axes_get_show_grid: (get-property show-grid)
 * @self: axes
 *
 * Tells whether there are lines through the ticks.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_get_show_grid (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  return self->show_grid;
}

/**
 * gtorch_plot_axes_set_show_grid: (set-property show-grid)
 * @self: axes
 * @show_grid: whether there are lines through the ticks
 *
 * Shows or hides the lines through the ticks.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_show_grid (GTorchPlotAxes *self, gboolean show_grid)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_number (self, &self->show_grid, !!show_grid, PROP_SHOW_GRID);
}

/**
 * gtorch_plot_axes_get_show_ticks: (get-property show-ticks)
 * @self: axes
 *
 * Tells whether there are axes with ticks and numbers.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_get_show_ticks (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  return self->show_ticks;
}

/**
 * gtorch_plot_axes_set_show_ticks: (set-property show-ticks)
 * @self: axes
 * @show_ticks: whether there are axes with ticks and numbers
 *
 * Shows or hides the axes, ticks and numbers.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_show_ticks (GTorchPlotAxes *self, gboolean show_ticks)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_number (self, &self->show_ticks, !!show_ticks, PROP_SHOW_TICKS);
}

/**
 * gtorch_plot_axes_get_equal_units: (get-property equal-units)
 * @self: axes
 *
 * Tells whether a unit is as long on both axes.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_axes_get_equal_units (GTorchPlotAxes *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_AXES (self), FALSE);
  return self->equal_units;
}

/**
 * gtorch_plot_axes_set_equal_units: (set-property equal-units)
 * @self: axes
 * @equal_units: whether a unit is as long on both axes
 *
 * Sets whether a unit is as long on both axes.
 *
 * Since: 0.1
 */
void
gtorch_plot_axes_set_equal_units (GTorchPlotAxes *self, gboolean equal_units)
{
  g_return_if_fail (GTORCH_PLOT_IS_AXES (self));
  set_number (self, &self->equal_units, !!equal_units, PROP_EQUAL_UNITS);
}
