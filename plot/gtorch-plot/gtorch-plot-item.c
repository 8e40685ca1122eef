/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-plot-private.h"

/**
 * GTorchPlotItem:
 *
 * Something that is drawn on axes: a [class@Line], a [class@Histogram] or an [class@Image].
 *
 * An item is on one [class@Axes] at a time. When it changes, its figure emits [signal@Figure::changed].
 *
 * Since: 0.1
 */

enum
{
  PROP_LABEL = 1,
  PROP_COLOR,
  PROP_VISIBLE,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_ABSTRACT_TYPE (GTorchPlotItem, gtorch_plot_item, G_TYPE_OBJECT)

void
gtorch_plot_item_changed (GTorchPlotItem *self)
{
  if (self->axes != NULL)
    gtorch_plot_axes_changed (self->axes);
}

void
gtorch_plot_item_set_source (GTorchPlotItem *self, const GTorchPlotCanvas *canvas, gdouble alpha)
{
  GTorchPlotColor color;

  if (!gtorch_plot_color_parse (self->color, &color))
    color = canvas->theme->series[self->place % canvas->theme->n_series];
  gtorch_plot_set_source (canvas->cr, &color, alpha);
}

GTorchPlotItem *
gtorch_plot_item_copy (GTorchPlotItem *self)
{
  GTorchPlotItemClass *klass = GTORCH_PLOT_ITEM_GET_CLASS (self);
  GTorchPlotItem *copy = g_object_new (klass->copy_type, NULL);

  copy->label = g_strdup (self->label);
  copy->color = g_strdup (self->color);
  copy->is_visible = self->is_visible;
  klass->copy (self, copy);
  return copy;
}

static void
gtorch_plot_item_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchPlotItem *self = GTORCH_PLOT_ITEM (object);

  if (id == PROP_LABEL)
    g_value_set_string (value, self->label);
  else if (id == PROP_COLOR)
    g_value_set_string (value, self->color);
  else if (id == PROP_VISIBLE)
    g_value_set_boolean (value, self->is_visible);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_plot_item_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GTorchPlotItem *self = GTORCH_PLOT_ITEM (object);
  g_autoptr (GError) error = NULL;

  if (id == PROP_LABEL)
    gtorch_plot_item_set_label (self, g_value_get_string (value));
  else if (id == PROP_COLOR)
    {
      if (!gtorch_plot_item_set_color (self, g_value_get_string (value), &error))
        g_warning ("%s", error->message);
    }
  else if (id == PROP_VISIBLE)
    gtorch_plot_item_set_visible (self, g_value_get_boolean (value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_plot_item_finalize (GObject *object)
{
  GTorchPlotItem *self = GTORCH_PLOT_ITEM (object);

  g_free (self->label);
  g_free (self->color);
  G_OBJECT_CLASS (gtorch_plot_item_parent_class)->finalize (object);
}

static void
gtorch_plot_item_class_init (GTorchPlotItemClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_plot_item_get_property;
  object_class->set_property = gtorch_plot_item_set_property;
  object_class->finalize = gtorch_plot_item_finalize;
  /**
   * GTorchPlotItem:label:
   *
   * The name of the item in the legend. Without one it is not there.
   *
   * Since: 0.1
   */
  props[PROP_LABEL] = g_param_spec_string ("label", NULL, NULL, NULL, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotItem:color:
   *
   * The colour, `#rrggbb`. Without one, it is by the item's place among those of its axes.
   *
   * Since: 0.1
   */
  props[PROP_COLOR] = g_param_spec_string ("color", NULL, NULL, NULL, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotItem:visible:
   *
   * Whether the item is drawn, and counts for the limits of its axes.
   *
   * Since: 0.1
   */
  props[PROP_VISIBLE] = g_param_spec_boolean ("visible", NULL, NULL, TRUE, GTORCH_PLOT_PARAM_FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_plot_item_init (GTorchPlotItem *self)
{
  self->is_visible = TRUE;
}

/**
 * gtorch_plot_item_get_label: (get-property label)
 * @self: an item
 *
 * Gets the name in the legend.
 *
 * Returns: (transfer none) (nullable): the name, or %NULL if the item is not in the legend
 *
 * Since: 0.1
 */
const gchar *
gtorch_plot_item_get_label (GTorchPlotItem *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_ITEM (self), NULL);
  return self->label;
}

/**
 * gtorch_plot_item_set_label: (set-property label)
 * @self: an item
 * @label: (nullable): the name in the legend, or %NULL
 *
 * Sets the name in the legend.
 *
 * Since: 0.1
 */
void
gtorch_plot_item_set_label (GTorchPlotItem *self, const gchar *label)
{
  g_return_if_fail (GTORCH_PLOT_IS_ITEM (self));
  if (g_strcmp0 (self->label, label) == 0)
    return;
  g_free (self->label);
  self->label = g_strdup (label);
  gtorch_plot_item_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LABEL]);
}

/**
 * gtorch_plot_item_get_color: (get-property color)
 * @self: an item
 *
 * Gets the colour that was set.
 *
 * Returns: (transfer none) (nullable): the colour, `#rrggbb`, or %NULL if it is by the item's place
 *
 * Since: 0.1
 */
const gchar *
gtorch_plot_item_get_color (GTorchPlotItem *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_ITEM (self), NULL);
  return self->color;
}

/**
 * gtorch_plot_item_set_color: (set-property color)
 * @self: an item
 * @color: (nullable): the colour, `#rrggbb`, or %NULL for one by the item's place
 * @error: return location for an error
 *
 * Sets the colour.
 *
 * Returns: %TRUE on success, or %FALSE with %GTORCH_ERROR_INVALID if the text is no colour
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_item_set_color (GTorchPlotItem *self, const gchar *color, GError **error)
{
  GTorchPlotColor parsed;

  g_return_val_if_fail (GTORCH_PLOT_IS_ITEM (self), FALSE);
  if (color != NULL && !gtorch_plot_color_parse (color, &parsed))
    {
      g_autofree gchar *valid = g_utf8_make_valid (color, -1);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_item_set_color: “%s” is no colour of the form #rrggbb"), valid);
      return FALSE;
    }
  if (g_strcmp0 (self->color, color) == 0)
    return TRUE;
  g_free (self->color);
  self->color = g_strdup (color);
  gtorch_plot_item_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_COLOR]);
  return TRUE;
}

/**
 * gtorch_plot_item_get_visible: (get-property visible)
 * @self: an item
 *
 * Tells whether the item is drawn.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_item_get_visible (GTorchPlotItem *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_ITEM (self), FALSE);
  return self->is_visible;
}

/**
 * gtorch_plot_item_set_visible: (set-property visible)
 * @self: an item
 * @visible: whether the item is drawn
 *
 * Shows or hides the item.
 *
 * Since: 0.1
 */
void
gtorch_plot_item_set_visible (GTorchPlotItem *self, gboolean visible)
{
  g_return_if_fail (GTORCH_PLOT_IS_ITEM (self));
  if (self->is_visible == !!visible)
    return;
  self->is_visible = !!visible;
  gtorch_plot_item_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_VISIBLE]);
}
