/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-gtk-private.h"

/**
 * GTorchGtkPlot:
 *
 * A widget that shows a [class@GTorchPlot.Figure], and follows its changes.
 *
 * The figure fills the widget, whatever its own size is, and has light text where the style is dark. Any
 * number of changes between two frames costs one drawing.
 *
 * ```c
 * plot = gtorch_gtk_plot_new (NULL);
 * gtorch_gtk_plot_follow_trainer (GTORCH_GTK_PLOT (plot), trainer);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchGtkPlot
{
  GtkWidget parent_instance;
  GTorchPlotFigure *figure;
  GPtrArray *trainers; /* of GWeakRef: those that are followed, in the order of the calls */
};

enum
{
  PROP_FIGURE = 1,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchGtkPlot, gtorch_gtk_plot, GTK_TYPE_WIDGET)

/* Newer versions of GTK tell the colour of text without a style context. */
static gboolean
has_light_text (GtkWidget *widget)
{
  GdkRGBA color;

  G_GNUC_BEGIN_IGNORE_DEPRECATIONS
  gtk_style_context_get_color (gtk_widget_get_style_context (widget), &color);
  G_GNUC_END_IGNORE_DEPRECATIONS
  return 0.299 * color.red + 0.587 * color.green + 0.114 * color.blue > 0.5;
}

static void
gtorch_gtk_plot_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  GTorchGtkPlot *self = GTORCH_GTK_PLOT (widget);
  const gint width = gtk_widget_get_width (widget), height = gtk_widget_get_height (widget);
  const graphene_rect_t bounds = GRAPHENE_RECT_INIT (0, 0, width, height);
  cairo_t *cr;

  if (self->figure == NULL || width < 1 || height < 1)
    return;
  cr = gtk_snapshot_append_cairo (snapshot, &bounds);
  gtorch_plot_figure_draw_over (self->figure, cr, width, height,
                                has_light_text (widget) ? GTORCH_PLOT_SCHEME_DARK
                                                        : GTORCH_PLOT_SCHEME_LIGHT);
  cairo_destroy (cr);
}

static void
gtorch_gtk_plot_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                         int *natural, int *minimum_baseline, int *natural_baseline)
{
  GTorchGtkPlot *self = GTORCH_GTK_PLOT (widget);
  gdouble width = 360, height = 240;

  if (self->figure != NULL)
    gtorch_plot_figure_get_size (self->figure, &width, &height);
  *minimum = orientation == GTK_ORIENTATION_HORIZONTAL ? 120 : 80;
  *natural = MAX (*minimum, (int) (orientation == GTK_ORIENTATION_HORIZONTAL ? width : height));
}

static void
gtorch_gtk_plot_css_changed (GtkWidget *widget, GtkCssStyleChange *change)
{
  GTK_WIDGET_CLASS (gtorch_gtk_plot_parent_class)->css_changed (widget, change);
  gtk_widget_queue_draw (widget);
}

static void
figure_changed (GTorchGtkPlot *self)
{
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
describe (GTorchGtkPlot *self)
{
  const gchar *title = self->figure != NULL ? gtorch_plot_figure_get_title (self->figure) : NULL;

  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  title != NULL ? title : _ ("Plot"), -1);
}

static void
gtorch_gtk_plot_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  if (id == PROP_FIGURE)
    g_value_set_object (value, GTORCH_GTK_PLOT (object)->figure);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_plot_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  if (id == PROP_FIGURE)
    gtorch_gtk_plot_set_figure (GTORCH_GTK_PLOT (object), g_value_get_object (value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_plot_dispose (GObject *object)
{
  GTorchGtkPlot *self = GTORCH_GTK_PLOT (object);

  if (self->figure != NULL)
    g_signal_handlers_disconnect_by_data (self->figure, self);
  g_clear_object (&self->figure);
  G_OBJECT_CLASS (gtorch_gtk_plot_parent_class)->dispose (object);
}

static void
gtorch_gtk_plot_finalize (GObject *object)
{
  g_ptr_array_unref (GTORCH_GTK_PLOT (object)->trainers);
  G_OBJECT_CLASS (gtorch_gtk_plot_parent_class)->finalize (object);
}

static void
weak_ref_free (gpointer data)
{
  g_weak_ref_clear (data);
  g_free (data);
}

static void
gtorch_gtk_plot_class_init (GTorchGtkPlotClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = gtorch_gtk_plot_get_property;
  object_class->set_property = gtorch_gtk_plot_set_property;
  object_class->dispose = gtorch_gtk_plot_dispose;
  object_class->finalize = gtorch_gtk_plot_finalize;
  widget_class->snapshot = gtorch_gtk_plot_snapshot;
  widget_class->measure = gtorch_gtk_plot_measure;
  widget_class->css_changed = gtorch_gtk_plot_css_changed;
  /**
   * GTorchGtkPlot:figure:
   *
   * The figure that is shown.
   *
   * Since: 0.1
   */
  props[PROP_FIGURE] =
      g_param_spec_object ("figure", NULL, NULL, GTORCH_PLOT_TYPE_FIGURE, GTORCH_GTK_PARAM_FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
  gtk_widget_class_set_css_name (widget_class, "plot");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
}

static void
gtorch_gtk_plot_init (GTorchGtkPlot *self)
{
  self->trainers = g_ptr_array_new_with_free_func (weak_ref_free);
  gtk_widget_set_overflow (GTK_WIDGET (self), GTK_OVERFLOW_HIDDEN);
  describe (self);
}

/**
 * gtorch_gtk_plot_new:
 * @figure: (nullable): the figure, or %NULL
 *
 * Creates a widget that shows a figure.
 *
 * Returns: (transfer floating): a new widget
 *
 * Since: 0.1
 */
GtkWidget *
gtorch_gtk_plot_new (GTorchPlotFigure *figure)
{
  g_return_val_if_fail (figure == NULL || GTORCH_PLOT_IS_FIGURE (figure), NULL);
  return g_object_new (GTORCH_GTK_TYPE_PLOT, "figure", figure, NULL);
}

/**
 * gtorch_gtk_plot_get_figure: (get-property figure)
 * @self: a plot
 *
 * Gets the figure that is shown.
 *
 * Returns: (transfer none) (nullable): the figure, or %NULL
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_gtk_plot_get_figure (GTorchGtkPlot *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PLOT (self), NULL);
  return self->figure;
}

/**
 * gtorch_gtk_plot_set_figure: (set-property figure)
 * @self: a plot
 * @figure: (nullable): the figure, or %NULL
 *
 * Sets the figure that is shown.
 *
 * Since: 0.1
 */
void
gtorch_gtk_plot_set_figure (GTorchGtkPlot *self, GTorchPlotFigure *figure)
{
  g_return_if_fail (GTORCH_GTK_IS_PLOT (self));
  g_return_if_fail (figure == NULL || GTORCH_PLOT_IS_FIGURE (figure));
  if (self->figure == figure)
    return;
  if (self->figure != NULL)
    g_signal_handlers_disconnect_by_data (self->figure, self);
  g_set_object (&self->figure, figure);
  if (figure != NULL)
    {
      g_signal_connect_swapped (figure, "changed", G_CALLBACK (figure_changed), self);
      g_signal_connect_swapped (figure, "notify::title", G_CALLBACK (describe), self);
    }
  describe (self);
  gtk_widget_queue_resize (GTK_WIDGET (self));
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_FIGURE]);
}

static GTorchPlotAxes *
first_axes (GTorchGtkPlot *self)
{
  if (self->figure == NULL)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();

      gtorch_gtk_plot_set_figure (self, figure);
    }
  return gtorch_plot_figure_get_axes (self->figure, 0, 0, NULL);
}

/**
 * gtorch_gtk_plot_append:
 * @self: a plot
 * @label: the name of a line
 * @x: the horizontal place
 * @y: the vertical place; NaN makes a gap
 *
 * Adds a point to the line of that name on the first axes. Figure, axes and line are made if they are
 * not there.
 *
 * Since: 0.1
 */
void
gtorch_gtk_plot_append (GTorchGtkPlot *self, const gchar *label, gdouble x, gdouble y)
{
  g_autoptr (GTorchPlotLine) line = NULL;
  GTorchPlotAxes *axes;
  GListModel *items;

  g_return_if_fail (GTORCH_GTK_IS_PLOT (self));
  g_return_if_fail (label != NULL);
  axes = first_axes (self);
  items = gtorch_plot_axes_get_items (axes);
  for (guint i = 0; line == NULL && i < g_list_model_get_n_items (items); i++)
    {
      g_autoptr (GTorchPlotItem) item = g_list_model_get_item (items, i);

      if (GTORCH_PLOT_IS_LINE (item) && g_strcmp0 (gtorch_plot_item_get_label (item), label) == 0)
        line = GTORCH_PLOT_LINE (g_steal_pointer (&item));
    }
  if (line == NULL)
    {
      line = gtorch_plot_line_new (label);
      gtorch_plot_axes_add (axes, GTORCH_PLOT_ITEM (line), NULL);
    }
  gtorch_plot_line_append (line, x, y);
}

/* From 1; 0: it is not followed. */
static guint
find_trainer (GTorchGtkPlot *self, GTorchTrainer *trainer)
{
  for (guint i = 0; i < self->trainers->len; i++)
    {
      g_autoptr (GTorchTrainer) followed = g_weak_ref_get (self->trainers->pdata[i]);

      if (followed == trainer)
        return i + 1;
    }
  return 0;
}

static void
append_of (GTorchGtkPlot *self, GTorchTrainer *trainer, const gchar *name, gint64 step,
           gdouble loss)
{
  const guint number = find_trainer (self, trainer);
  g_autofree gchar *label = number > 1 ? g_strdup_printf ("%s %u", name, number) : g_strdup (name);

  gtorch_gtk_plot_append (self, label, step, loss);
}

static void
step_done (GTorchTrainer *trainer, gint64 step, gdouble loss, GTorchGtkPlot *self)
{
  append_of (self, trainer, _ ("training"), step, loss);
}

static void
evaluated (GTorchTrainer *trainer, gint64 step, gdouble loss, GTorchGtkPlot *self)
{
  append_of (self, trainer, _ ("validation"), step, loss);
}

/**
 * gtorch_gtk_plot_follow_trainer:
 * @self: a plot
 * @trainer: a trainer, whose signals are emitted in the main context of GTK
 *
 * Adds the loss of each step and of each evaluation of the trainer's runs, from now on, as two lines on
 * the first axes, `training` and `validation`. Another trainer has lines of its own, `training 2` and
 * `validation 2`, and so on; one that is followed already is not followed twice. The plot does not
 * keep the trainer. Runs wait for it as for any handler of the signals, unless
 * [property@GTorch.Trainer:max-ahead] lets them be ahead of it.
 *
 * Since: 0.1
 */
void
gtorch_gtk_plot_follow_trainer (GTorchGtkPlot *self, GTorchTrainer *trainer)
{
  GTorchPlotAxes *axes;
  GWeakRef *followed;

  g_return_if_fail (GTORCH_GTK_IS_PLOT (self));
  g_return_if_fail (GTORCH_IS_TRAINER (trainer));
  if (find_trainer (self, trainer) > 0)
    return;
  followed = g_new (GWeakRef, 1);
  g_weak_ref_init (followed, trainer);
  g_ptr_array_add (self->trainers, followed);
  axes = first_axes (self);
  if (gtorch_plot_axes_get_x_label (axes) == NULL)
    gtorch_plot_axes_set_x_label (axes, _ ("step"));
  if (gtorch_plot_axes_get_y_label (axes) == NULL)
    gtorch_plot_axes_set_y_label (axes, _ ("loss"));
  g_signal_connect_object (trainer, "step-done", G_CALLBACK (step_done), self, 0);
  g_signal_connect_object (trainer, "evaluated", G_CALLBACK (evaluated), self, 0);
}
