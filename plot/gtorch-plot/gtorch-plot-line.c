/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-plot-points-private.h"

/**
 * GTorchPlotLine:
 *
 * A line through points, or dots at them.
 *
 * The numbers come from tensors ([method@Line.set_values]), or one point after the other
 * ([method@Line.append]), as of a loss during training. Where a number is NaN or infinite, or not
 * positive on a logarithmic axis, the line has a gap. A point between gaps is a dot.
 *
 * A million points whose x grows are drawn in some milliseconds.
 *
 * Since: 0.1
 */

struct _GTorchPlotLineClass
{
  GTorchPlotItemClass parent_class;
};

struct _GTorchPlotLine
{
  GTorchPlotItem parent_instance;
  GTorchPlotPoints *points;
  guint max_points;
  gint style; /* of GTorchPlotStyle */
  gdouble width;
  gboolean has_range;
  GTorchPlotRanges ranges;
};

enum
{
  PROP_MAX_POINTS = 1,
  PROP_N_POINTS,
  PROP_STYLE,
  PROP_WIDTH,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchPlotLine, gtorch_plot_line, GTORCH_PLOT_TYPE_ITEM)

/* --- range --- */

static void
widen (gdouble *low, gdouble *high, gdouble value)
{
  *low = MIN (*low, value);
  *high = MAX (*high, value);
}

static void
gtorch_plot_line_add_range (GTorchPlotItem *item, gboolean x_log, gboolean y_log,
                            GTorchPlotRange *range)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (item);
  const GTorchPlotRange *x, *y;

  if (!self->has_range)
    {
      gtorch_plot_points_find_ranges (self->points, &self->ranges);
      self->has_range = TRUE;
    }
  x = x_log ? &self->ranges.positive : &self->ranges.all;
  y = y_log ? &self->ranges.positive : &self->ranges.all;
  if (x->x_low > x->x_high || y->y_low > y->y_high)
    return;
  widen (&range->x_low, &range->x_high, x->x_low);
  widen (&range->x_low, &range->x_high, x->x_high);
  widen (&range->y_low, &range->y_high, y->y_low);
  widen (&range->y_low, &range->y_high, y->y_high);
}

/* --- drawing --- */

/* By place: beyond the colours of the theme, lines with these are dashed. */
static const gdouble *
find_dashes (GTorchPlotLine *self, const GTorchPlotCanvas *canvas)
{
  static const gdouble dashes[][2] = { { 7, 3 }, { 2, 3 }, { 12, 4 } };
  const guint round = self->parent_instance.place / canvas->theme->n_series;

  return round == 0 || self->parent_instance.color != NULL
             ? NULL
             : dashes[(round - 1) % G_N_ELEMENTS (dashes)];
}

static gdouble
dot_radius (GTorchPlotLine *self)
{
  return MAX (1.25, 1.4 * self->width);
}

static void
gtorch_plot_line_draw (GTorchPlotItem *item, const GTorchPlotCanvas *canvas)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (item);

  gtorch_plot_item_set_source (item, canvas, 1);
  if (self->style != GTORCH_PLOT_STYLE_POINTS)
    {
      const GTorchPlotStroke stroke = { self->width, dot_radius (self),
                                        find_dashes (self, canvas) };

      gtorch_plot_points_draw_line (self->points, canvas, &stroke);
    }
  if (self->style != GTORCH_PLOT_STYLE_LINE)
    gtorch_plot_points_draw_dots (self->points, canvas, dot_radius (self));
}

static void
gtorch_plot_line_draw_sample (GTorchPlotItem *item, const GTorchPlotCanvas *canvas, gdouble x,
                              gdouble y, gdouble width, gdouble height)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (item);
  const gdouble *dashes = find_dashes (self, canvas);
  cairo_t *cr = canvas->cr;

  gtorch_plot_item_set_source (item, canvas, 1);
  if (self->style != GTORCH_PLOT_STYLE_POINTS)
    {
      cairo_save (cr);
      cairo_move_to (cr, x, y + height / 2);
      cairo_rel_line_to (cr, width, 0);
      cairo_set_line_width (cr, MAX (self->width, 1.5));
      if (dashes != NULL)
        cairo_set_dash (cr, dashes, 2, 0);
      cairo_stroke (cr);
      cairo_restore (cr);
    }
  if (self->style != GTORCH_PLOT_STYLE_LINE)
    {
      cairo_arc (cr, x + width / 2, y + height / 2, dot_radius (self), 0, 2 * G_PI);
      cairo_fill (cr);
    }
}

/* The part of some of the points. */
static gdouble
gtorch_plot_line_count_in (GTorchPlotItem *item, const GTorchPlotCanvas *canvas, gdouble x,
                           gdouble y, gdouble width, gdouble height)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (item);
  const guint n_points = gtorch_plot_points_count (self->points), step = MAX (1, n_points / 500);
  guint n = 0, n_in = 0;

  for (guint i = 0; i < n_points; i += step, n++)
    {
      const GTorchPlotPoint *point = gtorch_plot_points_get (self->points, i);
      const gdouble px = gtorch_plot_canvas_x (canvas, point->x) - x;
      const gdouble py = gtorch_plot_canvas_y (canvas, point->y) - y;

      n_in += px >= 0 && px <= width && py >= 0 && py <= height;
    }
  return n > 0 ? (gdouble) n_in / n : 0;
}

static void
gtorch_plot_line_copy (GTorchPlotItem *item, GTorchPlotItem *copy)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (item), *other = GTORCH_PLOT_LINE (copy);

  gtorch_plot_points_unref (other->points);
  other->points = gtorch_plot_points_ref (self->points);
  other->style = self->style;
  other->width = self->width;
}

/* --- class --- */

static void
gtorch_plot_line_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (object);

  if (id == PROP_MAX_POINTS)
    g_value_set_uint (value, self->max_points);
  else if (id == PROP_N_POINTS)
    g_value_set_uint (value, gtorch_plot_points_count (self->points));
  else if (id == PROP_STYLE)
    g_value_set_enum (value, self->style);
  else if (id == PROP_WIDTH)
    g_value_set_double (value, self->width);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_plot_line_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GTorchPlotLine *self = GTORCH_PLOT_LINE (object);
  g_autoptr (GError) error = NULL;

  if (id == PROP_MAX_POINTS)
    gtorch_plot_line_set_max_points (self, g_value_get_uint (value));
  else if (id == PROP_STYLE)
    gtorch_plot_line_set_style (self, g_value_get_enum (value));
  else if (id == PROP_WIDTH)
    gtorch_plot_line_set_width (self, g_value_get_double (value), &error);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  if (error != NULL)
    g_warning ("%s", error->message);
}

static void
gtorch_plot_line_finalize (GObject *object)
{
  gtorch_plot_points_unref (GTORCH_PLOT_LINE (object)->points);
  G_OBJECT_CLASS (gtorch_plot_line_parent_class)->finalize (object);
}

static void
gtorch_plot_line_class_init (GTorchPlotLineClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GTorchPlotItemClass *item_class = (GTorchPlotItemClass *) klass;

  object_class->get_property = gtorch_plot_line_get_property;
  object_class->set_property = gtorch_plot_line_set_property;
  object_class->finalize = gtorch_plot_line_finalize;
  item_class->takes_color = TRUE;
  item_class->copy_type = GTORCH_PLOT_TYPE_LINE;
  item_class->copy = gtorch_plot_line_copy;
  item_class->add_range = gtorch_plot_line_add_range;
  item_class->draw = gtorch_plot_line_draw;
  item_class->draw_sample = gtorch_plot_line_draw_sample;
  item_class->count_in = gtorch_plot_line_count_in;
  /**
   * GTorchPlotLine:max-points:
   *
   * How many of the last points are kept; 0: all.
   *
   * Since: 0.1
   */
  props[PROP_MAX_POINTS] =
      g_param_spec_uint ("max-points", NULL, NULL, 0, G_MAXUINT, 0, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotLine:n-points:
   *
   * The number of points.
   *
   * Since: 0.1
   */
  props[PROP_N_POINTS] = g_param_spec_uint ("n-points", NULL, NULL, 0, G_MAXUINT, 0,
                                            G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchPlotLine:style:
   *
   * How the points are drawn.
   *
   * Since: 0.1
   */
  props[PROP_STYLE] = g_param_spec_enum ("style", NULL, NULL, GTORCH_PLOT_TYPE_STYLE,
                                         GTORCH_PLOT_STYLE_LINE, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotLine:width:
   *
   * The width of the line, from 0.1 to 100 points. Dots grow with it.
   *
   * Since: 0.1
   */
  props[PROP_WIDTH] =
      g_param_spec_double ("width", NULL, NULL, 0.1, 100, 1.6, GTORCH_PLOT_PARAM_FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_plot_line_init (GTorchPlotLine *self)
{
  self->points = gtorch_plot_points_new ();
  self->width = 1.6;
}

/**
 * gtorch_plot_line_new:
 * @label: (nullable): the name in the legend
 *
 * Creates a line without points.
 *
 * Returns: (transfer full): a new line
 *
 * Since: 0.1
 */
GTorchPlotLine *
gtorch_plot_line_new (const gchar *label)
{
  return g_object_new (GTORCH_PLOT_TYPE_LINE, "label", label, NULL);
}

/* --- points --- */

static void
points_changed (GTorchPlotLine *self)
{
  if (self->max_points > 0 && gtorch_plot_points_count (self->points) > self->max_points)
    {
      gtorch_plot_points_make_own (&self->points);
      gtorch_plot_points_keep_last (self->points, self->max_points);
      self->has_range = FALSE;
    }
  gtorch_plot_item_changed (&self->parent_instance);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_N_POINTS]);
}

static void
take_points (GTorchPlotLine *self, GTorchPlotPoints *points)
{
  gtorch_plot_points_unref (self->points);
  self->points = points;
  self->has_range = FALSE;
  points_changed (self);
}

/* Maybe in a thread. */
static void
prepare_values (GTorchPlotRead *read)
{
  read->result = gtorch_plot_points_new ();
  read->free_result = (GDestroyNotify) gtorch_plot_points_unref;
  gtorch_plot_points_set (read->result, read->values[0], read->values[1], read->n_values[1]);
}

static void
take_values (GTorchPlotItem *item, GTorchPlotRead *read)
{
  take_points (GTORCH_PLOT_LINE (item), g_steal_pointer (&read->result));
}

#define SET_VALUES "plot_line_set_values"

static gboolean
check_values (GTorchTensor *x, GTorchTensor *y, GError **error)
{
  g_autofree gchar *x_shape = x != NULL ? gtorch_plot_shape_text (x) : NULL;
  g_autofree gchar *y_shape = gtorch_plot_shape_text (y);

  if ((x != NULL && !gtorch_plot_check_dtype (SET_VALUES, "x", x, error))
      || !gtorch_plot_check_dtype (SET_VALUES, "y", y, error))
    return FALSE;
  if (gtorch_tensor_get_n_dims (y) != 1)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: y has the shape %s, not one dimension"), SET_VALUES, y_shape);
  else if (x != NULL && g_strcmp0 (x_shape, y_shape) != 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: x has the shape %s and y the shape %s, which must be the same"),
                 SET_VALUES, x_shape, y_shape);
  else if (gtorch_tensor_get_numel (y) > G_MAXINT)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: y has %" PRId64 " elements, and a line at most %d points"), SET_VALUES,
                 gtorch_tensor_get_numel (y), G_MAXINT);
  else
    return TRUE;
  return FALSE;
}

/**
 * gtorch_plot_line_set_values:
 * @self: a line
 * @x: (nullable): the horizontal places, one dimension, or %NULL for 0, 1, 2 and so on
 * @y: the vertical places, as many
 * @error: return location for an error
 *
 * Replaces all points.
 *
 * The tensors may be of any dtype that is not complex, on any device. Waits until they are computed;
 * [method@Line.set_values_async] does not.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_DTYPE or an error of reading
 *   ([method@GTorch.Tensor.to_doubles]), and the former points
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_line_set_values (GTorchPlotLine *self, GTorchTensor *x, GTorchTensor *y, GError **error)
{
  GTorchTensor *tensors[] = { x, y };

  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), FALSE);
  g_return_val_if_fail (x == NULL || GTORCH_IS_TENSOR (x), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (y), FALSE);
  return check_values (x, y, error)
         && gtorch_plot_read_now (&self->parent_instance, SET_VALUES, tensors,
                                  (GTorchPlotRead){ .prepare = prepare_values }, take_values,
                                  error);
}

/**
 * gtorch_plot_line_set_values_async:
 * @self: a line
 * @x: (nullable): the horizontal places, one dimension, or %NULL for 0, 1, 2 and so on
 * @y: the vertical places, as many
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the line has the points
 * @user_data: data for @callback
 *
 * Replaces all points without blocking the main loop: the numbers are read in a thread, so until
 * then the tensors are not to be changed. Of two such calls, the later one counts.
 *
 * Since: 0.1
 */
void
gtorch_plot_line_set_values_async (GTorchPlotLine *self, GTorchTensor *x, GTorchTensor *y,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
  GTorchTensor *tensors[] = { x, y };
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_PLOT_IS_LINE (self));
  g_return_if_fail (x == NULL || GTORCH_IS_TENSOR (x));
  g_return_if_fail (GTORCH_IS_TENSOR (y));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (self, gtorch_plot_line_set_values_async, cancellable, callback, user_data);
  if (!check_values (x, y, &error))
    g_task_return_error (task, error);
  else
    gtorch_plot_read_later (&self->parent_instance, SET_VALUES, tensors,
                            (GTorchPlotRead){ .prepare = prepare_values }, take_values, task);
}

/**
 * gtorch_plot_line_set_values_finish:
 * @self: a line
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Line.set_values_async].
 *
 * Returns: %TRUE on success; %FALSE with an error of [method@Line.set_values] or %G_IO_ERROR_CANCELLED
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_line_set_values_finish (GTorchPlotLine *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_plot_line_set_values_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_plot_line_set_points:
 * @self: a line
 * @x: (array length=n_x): the horizontal places
 * @n_x: how many they are
 * @y: (array length=n_y): the vertical places, as many
 * @n_y: how many they are
 * @error: return location for an error
 *
 * Replaces all points by numbers that are no tensors.
 *
 * ```c
 * const gdouble x[] = { 0, 1, 2 }, y[] = { 0, 1, 4 };
 *
 * if (!gtorch_plot_line_set_points (line, x, G_N_ELEMENTS (x), y, G_N_ELEMENTS (y), &error))
 *   return FALSE;
 * ```
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE if there are not as many of both, or more than
 *   2147483647, and the former points
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_line_set_points (GTorchPlotLine *self, const gdouble *x, gsize n_x, const gdouble *y,
                             gsize n_y, GError **error)
{
  GTorchPlotPoints *points;

  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), FALSE);
  g_return_val_if_fail (n_x == 0 || x != NULL, FALSE);
  g_return_val_if_fail (n_y == 0 || y != NULL, FALSE);
  if (n_x != n_y || n_x > G_MAXINT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("plot_line_set_points: x has %zu numbers and y %zu: both must have as many, "
                      "at most %d"),
                   n_x, n_y, G_MAXINT);
      return FALSE;
    }
  self->parent_instance.taken_serial = ++self->parent_instance.serial;
  points = gtorch_plot_points_new ();
  gtorch_plot_points_set (points, x, y, n_x);
  take_points (self, points);
  return TRUE;
}

/**
 * gtorch_plot_line_append:
 * @self: a line
 * @x: the horizontal place
 * @y: the vertical place; NaN makes a gap
 *
 * Adds a point at the end. The figure is drawn later, once for many points.
 *
 * ```c
 * gtorch_plot_line_append (line, step, loss);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_plot_line_append (GTorchPlotLine *self, gdouble x, gdouble y)
{
  const GTorchPlotPoint point = { x, y };

  g_return_if_fail (GTORCH_PLOT_IS_LINE (self));
  g_return_if_fail (gtorch_plot_points_count (self->points) < G_MAXINT);
  gtorch_plot_points_make_own (&self->points);
  gtorch_plot_points_append (self->points, &point);
  if (self->has_range)
    gtorch_plot_ranges_add_point (&self->ranges, &point);
  points_changed (self);
}

/**
 * gtorch_plot_line_clear:
 * @self: a line
 *
 * Removes all points.
 *
 * Since: 0.1
 */
void
gtorch_plot_line_clear (GTorchPlotLine *self)
{
  gtorch_plot_line_set_points (self, NULL, 0, NULL, 0, NULL);
}

/**
 * gtorch_plot_line_get_n_points: (get-property n-points)
 * @self: a line
 *
 * Gets the number of points.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_plot_line_get_n_points (GTorchPlotLine *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), 0);
  return gtorch_plot_points_count (self->points);
}

/**
 * gtorch_plot_line_get_point:
 * @self: a line
 * @index: which point, from 0
 * @x: (out): the horizontal place
 * @y: (out): the vertical place
 *
 * Gets a point.
 *
 * Returns: %TRUE if there is such a point; otherwise @x and @y are NaN
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_line_get_point (GTorchPlotLine *self, guint index, gdouble *x, gdouble *y)
{
  GTorchPlotPoint point = { NAN, NAN };
  gboolean is_there;

  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), FALSE);
  g_return_val_if_fail (x != NULL && y != NULL, FALSE);
  is_there = index < gtorch_plot_points_count (self->points);
  if (is_there)
    point = *gtorch_plot_points_get (self->points, index);
  *x = point.x;
  *y = point.y;
  return is_there;
}

/* --- settings --- */

/**
 * gtorch_plot_line_get_max_points: (get-property max-points)
 * @self: a line
 *
 * Gets how many of the last points are kept.
 *
 * Returns: the number; 0: all are
 *
 * Since: 0.1
 */
guint
gtorch_plot_line_get_max_points (GTorchPlotLine *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), 0);
  return self->max_points;
}

/**
 * gtorch_plot_line_set_max_points: (set-property max-points)
 * @self: a line
 * @max_points: how many of the last points are kept; 0: all
 *
 * Limits the points, for a line that moves on.
 *
 * Since: 0.1
 */
void
gtorch_plot_line_set_max_points (GTorchPlotLine *self, guint max_points)
{
  g_return_if_fail (GTORCH_PLOT_IS_LINE (self));
  if (self->max_points == max_points)
    return;
  self->max_points = max_points;
  points_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MAX_POINTS]);
}

/**
 * gtorch_plot_line_get_style: (get-property style)
 * @self: a line
 *
 * Gets how the points are drawn.
 *
 * Returns: the style
 *
 * Since: 0.1
 */
GTorchPlotStyle
gtorch_plot_line_get_style (GTorchPlotLine *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), GTORCH_PLOT_STYLE_LINE);
  return (GTorchPlotStyle) self->style;
}

/**
 * gtorch_plot_line_set_style: (set-property style)
 * @self: a line
 * @style: the style
 *
 * Sets how the points are drawn.
 *
 * Since: 0.1
 */
void
gtorch_plot_line_set_style (GTorchPlotLine *self, GTorchPlotStyle style)
{
  g_return_if_fail (GTORCH_PLOT_IS_LINE (self));
  g_return_if_fail (style >= GTORCH_PLOT_STYLE_LINE && style <= GTORCH_PLOT_STYLE_BOTH);
  if (self->style == (gint) style)
    return;
  self->style = style;
  gtorch_plot_item_changed (&self->parent_instance);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_STYLE]);
}

/**
 * gtorch_plot_line_get_width: (get-property width)
 * @self: a line
 *
 * Gets the width of the line.
 *
 * Returns: the width in points
 *
 * Since: 0.1
 */
gdouble
gtorch_plot_line_get_width (GTorchPlotLine *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), 0);
  return self->width;
}

/**
 * gtorch_plot_line_set_width: (set-property width)
 * @self: a line
 * @width: the width, from 0.1 to 100 points
 * @error: return location for an error
 *
 * Sets the width of the line. Dots grow with it.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if there is no such width
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_line_set_width (GTorchPlotLine *self, gdouble width, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_LINE (self), FALSE);
  if (!(width >= 0.1 && width <= 100))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_line_set_width: %g is not from 0.1 to 100 points"), width);
      return FALSE;
    }
  if (self->width == width)
    return TRUE;
  self->width = width;
  gtorch_plot_item_changed (&self->parent_instance);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_WIDTH]);
  return TRUE;
}
