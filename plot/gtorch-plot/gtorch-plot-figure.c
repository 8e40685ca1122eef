/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "gtorch-plot-private.h"

/**
 * GTorchPlotFigure:
 *
 * A picture of tensors: a grid of [class@Axes] below a title.
 *
 * Functions such as [func@lines] make one by a call. It is drawn with any cairo context, on the screen,
 * for example by the widget of gtorch-gtk, or into a file ([method@Figure.save]). Drawing reads no
 * tensors: items keep their numbers in the memory of the host.
 *
 * ```c
 * g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
 * GTorchPlotAxes *axes = gtorch_plot_figure_get_axes (figure, 0, 0, NULL);
 *
 * if (gtorch_plot_axes_add_line (axes, NULL, losses, "training", &error) == NULL
 *     || !gtorch_plot_figure_save (figure, file, NULL, &error))
 *   return FALSE;
 * ```
 *
 * A figure and what is in it belong to one thread.
 *
 * Since: 0.1
 */

#define MAX_POINTS 14400 /* the largest page of PDF */
#define MAX_DRAWN  1e6
#define TITLE_SIZE 15.0
#define MARGIN     10.0
#define GAP        12.0

struct _GTorchPlotFigure
{
  GObject parent_instance;
  GPtrArray *cells; /* of Cell */
  guint n_rows, n_columns;
  GArray *width_ratios, *height_ratios; /* of gdouble; those of further columns and rows are 1 */
  gchar *title;
  gdouble width, height, resolution;
  gint scheme;               /* of GTorchPlotScheme */
  GCancellable *cancellable; /* ends drawing between two items, of a copy; or NULL */
};

typedef struct
{
  guint row, column;
  GTorchPlotAxes *axes;
} Cell;

enum
{
  PROP_TITLE = 1,
  PROP_SCHEME,
  PROP_WIDTH,
  PROP_HEIGHT,
  PROP_RESOLUTION,
  PROP_N_ROWS,
  PROP_N_COLUMNS,
  N_PROPS
};

enum
{
  SIGNAL_CHANGED,
  N_SIGNALS
};

static GParamSpec *props[N_PROPS];
static guint signals[N_SIGNALS];

G_DEFINE_TYPE (GTorchPlotFigure, gtorch_plot_figure, G_TYPE_OBJECT)

void
gtorch_plot_figure_changed (GTorchPlotFigure *self)
{
  g_signal_emit (self, signals[SIGNAL_CHANGED], 0);
}

static void
cell_free (gpointer data)
{
  Cell *cell = data;

  gtorch_plot_axes_leave (cell->axes);
  g_object_unref (cell->axes);
  g_free (cell);
}

static void
gtorch_plot_figure_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchPlotFigure *self = GTORCH_PLOT_FIGURE (object);

  switch (id)
    {
    case PROP_TITLE:
      g_value_set_string (value, self->title);
      break;
    case PROP_SCHEME:
      g_value_set_enum (value, self->scheme);
      break;
    case PROP_WIDTH:
      g_value_set_double (value, self->width);
      break;
    case PROP_HEIGHT:
      g_value_set_double (value, self->height);
      break;
    case PROP_RESOLUTION:
      g_value_set_double (value, self->resolution);
      break;
    case PROP_N_ROWS:
      g_value_set_uint (value, self->n_rows);
      break;
    case PROP_N_COLUMNS:
      g_value_set_uint (value, self->n_columns);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
gtorch_plot_figure_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GTorchPlotFigure *self = GTORCH_PLOT_FIGURE (object);
  g_autoptr (GError) error = NULL;

  switch (id)
    {
    case PROP_TITLE:
      gtorch_plot_figure_set_title (self, g_value_get_string (value));
      break;
    case PROP_SCHEME:
      gtorch_plot_figure_set_scheme (self, g_value_get_enum (value));
      break;
    case PROP_WIDTH:
      gtorch_plot_figure_set_size (self, g_value_get_double (value), self->height, &error);
      break;
    case PROP_HEIGHT:
      gtorch_plot_figure_set_size (self, self->width, g_value_get_double (value), &error);
      break;
    case PROP_RESOLUTION:
      gtorch_plot_figure_set_resolution (self, g_value_get_double (value), &error);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
  if (error != NULL)
    g_warning ("%s", error->message);
}

static void
gtorch_plot_figure_finalize (GObject *object)
{
  GTorchPlotFigure *self = GTORCH_PLOT_FIGURE (object);

  g_ptr_array_unref (self->cells);
  g_array_unref (self->width_ratios);
  g_array_unref (self->height_ratios);
  g_free (self->title);
  g_clear_object (&self->cancellable);
  G_OBJECT_CLASS (gtorch_plot_figure_parent_class)->finalize (object);
}

static void
gtorch_plot_figure_class_init (GTorchPlotFigureClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_plot_figure_get_property;
  object_class->set_property = gtorch_plot_figure_set_property;
  object_class->finalize = gtorch_plot_figure_finalize;
  /**
   * GTorchPlotFigure:title:
   *
   * The title above all axes.
   *
   * Since: 0.1
   */
  props[PROP_TITLE] = g_param_spec_string ("title", NULL, NULL, NULL, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotFigure:scheme:
   *
   * The colours.
   *
   * Since: 0.1
   */
  props[PROP_SCHEME] = g_param_spec_enum ("scheme", NULL, NULL, GTORCH_PLOT_TYPE_SCHEME,
                                          GTORCH_PLOT_SCHEME_LIGHT, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotFigure:width:
   *
   * The width in files, in points (1/72 inch).
   *
   * Since: 0.1
   */
  props[PROP_WIDTH] =
      g_param_spec_double ("width", NULL, NULL, 1, MAX_POINTS, 560, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotFigure:height:
   *
   * The height in files, in points (1/72 inch).
   *
   * Since: 0.1
   */
  props[PROP_HEIGHT] =
      g_param_spec_double ("height", NULL, NULL, 1, MAX_POINTS, 350, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotFigure:resolution:
   *
   * The pixels in an inch of PNG files. Thin lines are sharpest at multiples of 72.
   *
   * Since: 0.1
   */
  props[PROP_RESOLUTION] =
      g_param_spec_double ("resolution", NULL, NULL, 1, 2400, 144, GTORCH_PLOT_PARAM_FLAGS);
  /**
   * GTorchPlotFigure:n-rows:
   *
   * The number of rows of axes.
   *
   * Since: 0.1
   */
  props[PROP_N_ROWS] = g_param_spec_uint ("n-rows", NULL, NULL, 0, G_MAXUINT, 0,
                                          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchPlotFigure:n-columns:
   *
   * The number of columns of axes.
   *
   * Since: 0.1
   */
  props[PROP_N_COLUMNS] = g_param_spec_uint ("n-columns", NULL, NULL, 0, G_MAXUINT, 0,
                                             G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
  /**
   * GTorchPlotFigure::changed:
   * @self: a figure
   *
   * Emitted when the picture has changed: at once, for each point that is added, too. What draws it does
   * so later, once for many changes.
   *
   * Since: 0.1
   */
  signals[SIGNAL_CHANGED] = g_signal_new ("changed", GTORCH_PLOT_TYPE_FIGURE, G_SIGNAL_RUN_LAST, 0,
                                          NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
gtorch_plot_figure_init (GTorchPlotFigure *self)
{
  self->cells = g_ptr_array_new_with_free_func (cell_free);
  self->width_ratios = g_array_new (FALSE, FALSE, sizeof (gdouble));
  self->height_ratios = g_array_new (FALSE, FALSE, sizeof (gdouble));
  self->width = 560;
  self->height = 350;
  self->resolution = 144;
}

/**
 * gtorch_plot_figure_new:
 *
 * Creates a figure without axes.
 *
 * Returns: (transfer full): a new figure
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_figure_new (void)
{
  return g_object_new (GTORCH_PLOT_TYPE_FIGURE, NULL);
}

/**
 * gtorch_plot_figure_get_axes:
 * @self: a figure
 * @row: the row, from 0 to 1023
 * @column: the column, from 0 to 1023
 * @error: return location for an error
 *
 * Gets the axes at a place of the grid, and makes them and the place if they are not there.
 *
 * Returns: (transfer none): the axes, which belong to the figure, or %NULL with %GTORCH_ERROR_INDEX if
 *   there is no such place
 *
 * Since: 0.1
 */
GTorchPlotAxes *
gtorch_plot_figure_get_axes (GTorchPlotFigure *self, gint row, gint column, GError **error)
{
  GObject *object = (GObject *) self;
  Cell *cell;

  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), NULL);
  if (row < 0 || row >= GTORCH_PLOT_MAX_PLACES || column < 0 || column >= GTORCH_PLOT_MAX_PLACES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("plot_figure_get_axes: there is no row %d and column %d: both are from 0 to "
                      "%d"),
                   row, column, GTORCH_PLOT_MAX_PLACES - 1);
      return NULL;
    }
  for (guint i = 0; i < self->cells->len; i++)
    {
      cell = self->cells->pdata[i];
      if (cell->row == (guint) row && cell->column == (guint) column)
        return cell->axes;
    }
  cell = g_new (Cell, 1);
  *cell = (Cell){ row, column, gtorch_plot_axes_new (self) };
  g_ptr_array_add (self->cells, cell);
  g_object_freeze_notify (object);
  if ((guint) row >= self->n_rows)
    {
      self->n_rows = row + 1;
      g_object_notify_by_pspec (object, props[PROP_N_ROWS]);
    }
  if ((guint) column >= self->n_columns)
    {
      self->n_columns = column + 1;
      g_object_notify_by_pspec (object, props[PROP_N_COLUMNS]);
    }
  g_object_thaw_notify (object);
  gtorch_plot_figure_changed (self);
  return cell->axes;
}

/**
 * gtorch_plot_figure_get_n_rows: (get-property n-rows)
 * @self: a figure
 *
 * Gets the number of rows of axes.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_plot_figure_get_n_rows (GTorchPlotFigure *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), 0);
  return self->n_rows;
}

/**
 * gtorch_plot_figure_get_n_columns: (get-property n-columns)
 * @self: a figure
 *
 * Gets the number of columns of axes.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_plot_figure_get_n_columns (GTorchPlotFigure *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), 0);
  return self->n_columns;
}

/* --- settings --- */

/**
 * gtorch_plot_figure_get_title: (get-property title)
 * @self: a figure
 *
 * Gets the title above all axes.
 *
 * Returns: (transfer none) (nullable): the title, or %NULL
 *
 * Since: 0.1
 */
const gchar *
gtorch_plot_figure_get_title (GTorchPlotFigure *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), NULL);
  return self->title;
}

/**
 * gtorch_plot_figure_set_title: (set-property title)
 * @self: a figure
 * @title: (nullable): the title, or %NULL
 *
 * Sets the title above all axes.
 *
 * Since: 0.1
 */
void
gtorch_plot_figure_set_title (GTorchPlotFigure *self, const gchar *title)
{
  g_return_if_fail (GTORCH_PLOT_IS_FIGURE (self));
  if (g_strcmp0 (self->title, title) == 0)
    return;
  g_free (self->title);
  self->title = g_strdup (title);
  gtorch_plot_figure_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TITLE]);
}

/**
 * gtorch_plot_figure_get_size:
 * @self: a figure
 * @width: (out): the width in points
 * @height: (out): the height in points
 *
 * Gets the size in files.
 *
 * Since: 0.1
 */
void
gtorch_plot_figure_get_size (GTorchPlotFigure *self, gdouble *width, gdouble *height)
{
  g_return_if_fail (GTORCH_PLOT_IS_FIGURE (self));
  g_return_if_fail (width != NULL && height != NULL);
  *width = self->width;
  *height = self->height;
}

/**
 * gtorch_plot_figure_set_size:
 * @self: a figure
 * @width: the width in points (1/72 inch)
 * @height: the height in points
 * @error: return location for an error
 *
 * Sets the size in files. Texts keep theirs.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if a side is not from 1 to 14400
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_figure_set_size (GTorchPlotFigure *self, gdouble width, gdouble height, GError **error)
{
  gdouble former_width, former_height;

  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), FALSE);
  former_width = self->width;
  former_height = self->height;
  if (!(width >= 1 && width <= MAX_POINTS && height >= 1 && height <= MAX_POINTS))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_figure_set_size: %g by %g: both must be from 1 to %d points"), width,
                   height, MAX_POINTS);
      return FALSE;
    }
  self->width = width;
  self->height = height;
  gtorch_plot_figure_changed (self);
  if (former_width != width)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_WIDTH]);
  if (former_height != height)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_HEIGHT]);
  return TRUE;
}

static const gdouble *
get_ratios (const GArray *ratios, gsize *n_ratios)
{
  *n_ratios = ratios->len;
  return (const gdouble *) (gpointer) ratios->data;
}

/**
 * gtorch_plot_figure_get_width_ratios:
 * @self: a figure
 * @n_ratios: (out): the number of ratios
 *
 * Gets how wide the columns of axes are.
 *
 * Returns: (array length=n_ratios) (transfer none): what [method@Figure.set_width_ratios] was given
 *
 * Since: 0.1
 */
const gdouble *
gtorch_plot_figure_get_width_ratios (GTorchPlotFigure *self, gsize *n_ratios)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), NULL);
  g_return_val_if_fail (n_ratios != NULL, NULL);
  return get_ratios (self->width_ratios, n_ratios);
}

/**
 * gtorch_plot_figure_set_width_ratios:
 * @self: a figure
 * @ratios: (array length=n_ratios): how wide the columns are beside each other, from 0.001 to 1000
 * @n_ratios: the number of ratios, or 0 for columns that are equally wide
 * @error: return location for an error
 *
 * Sets how wide the columns of axes are, without their margins: after 2 and 1 the first is twice as wide
 * as the second. The ratio of columns that have none is 1.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if there is no such ratio
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_figure_set_width_ratios (GTorchPlotFigure *self, const gdouble *ratios, gsize n_ratios,
                                     GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), FALSE);
  g_return_val_if_fail (ratios != NULL || n_ratios == 0, FALSE);
  if (!gtorch_plot_ratios_set (self->width_ratios, "plot_figure_set_width_ratios", ratios, n_ratios,
                               error))
    return FALSE;
  gtorch_plot_figure_changed (self);
  return TRUE;
}

/**
 * gtorch_plot_figure_get_height_ratios:
 * @self: a figure
 * @n_ratios: (out): the number of ratios
 *
 * Gets how high the rows of axes are.
 *
 * Returns: (array length=n_ratios) (transfer none): what [method@Figure.set_height_ratios] was given
 *
 * Since: 0.1
 */
const gdouble *
gtorch_plot_figure_get_height_ratios (GTorchPlotFigure *self, gsize *n_ratios)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), NULL);
  g_return_val_if_fail (n_ratios != NULL, NULL);
  return get_ratios (self->height_ratios, n_ratios);
}

/**
 * gtorch_plot_figure_set_height_ratios:
 * @self: a figure
 * @ratios: (array length=n_ratios): how high the rows are beside each other, from 0.001 to 1000
 * @n_ratios: the number of ratios, or 0 for rows that are equally high
 * @error: return location for an error
 *
 * Sets how high the rows of axes are, without their margins, as [method@Figure.set_width_ratios] does it
 * for columns.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if there is no such ratio
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_figure_set_height_ratios (GTorchPlotFigure *self, const gdouble *ratios, gsize n_ratios,
                                      GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), FALSE);
  g_return_val_if_fail (ratios != NULL || n_ratios == 0, FALSE);
  if (!gtorch_plot_ratios_set (self->height_ratios, "plot_figure_set_height_ratios", ratios,
                               n_ratios, error))
    return FALSE;
  gtorch_plot_figure_changed (self);
  return TRUE;
}

/**
 * gtorch_plot_figure_get_resolution: (get-property resolution)
 * @self: a figure
 *
 * Gets the resolution of PNG files.
 *
 * Returns: the pixels in an inch
 *
 * Since: 0.1
 */
gdouble
gtorch_plot_figure_get_resolution (GTorchPlotFigure *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), 0);
  return self->resolution;
}

/**
 * gtorch_plot_figure_set_resolution:
 * @self: a figure
 * @resolution: the pixels in an inch, from 1 to 2400
 * @error: return location for an error
 *
 * Sets the resolution of PNG files.
 *
 * Returns: %TRUE on success, or %FALSE with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_figure_set_resolution (GTorchPlotFigure *self, gdouble resolution, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), FALSE);
  if (!(resolution >= 1 && resolution <= 2400))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_figure_set_resolution: %g pixels in an inch are not from 1 to 2400"),
                   resolution);
      return FALSE;
    }
  if (self->resolution == resolution)
    return TRUE;
  self->resolution = resolution;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_RESOLUTION]);
  return TRUE;
}

/**
 * gtorch_plot_figure_get_scheme: (get-property scheme)
 * @self: a figure
 *
 * Gets the colours.
 *
 * Returns: the scheme
 *
 * Since: 0.1
 */
GTorchPlotScheme
gtorch_plot_figure_get_scheme (GTorchPlotFigure *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), GTORCH_PLOT_SCHEME_LIGHT);
  return (GTorchPlotScheme) self->scheme;
}

/**
 * gtorch_plot_figure_set_scheme: (set-property scheme)
 * @self: a figure
 * @scheme: the scheme
 *
 * Sets the colours.
 *
 * Since: 0.1
 */
void
gtorch_plot_figure_set_scheme (GTorchPlotFigure *self, GTorchPlotScheme scheme)
{
  g_return_if_fail (GTORCH_PLOT_IS_FIGURE (self));
  g_return_if_fail (scheme == GTORCH_PLOT_SCHEME_LIGHT || scheme == GTORCH_PLOT_SCHEME_DARK);
  if (self->scheme == (gint) scheme)
    return;
  self->scheme = scheme;
  gtorch_plot_figure_changed (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SCHEME]);
}

/* --- drawing --- */

static void
layout_cells (GTorchPlotFigure *self, cairo_t *cr, const GTorchPlotTheme *theme,
              GTorchPlotTrack *columns, GTorchPlotTrack *rows, GTorchPlotLayout **layouts)
{
  gtorch_plot_track_divide (columns);
  gtorch_plot_track_divide (rows);
  for (guint i = 0; i < self->cells->len; i++)
    {
      const Cell *cell = self->cells->pdata[i];
      const GTorchPlotMargins *needed;

      g_clear_pointer (&layouts[i], gtorch_plot_layout_free);
      layouts[i] = gtorch_plot_layout_new (cell->axes, cr, theme, columns->sizes[cell->column],
                                           rows->sizes[cell->row]);
      needed = gtorch_plot_layout_get_margins (layouts[i]);
      columns->before[cell->column] = MAX (columns->before[cell->column], needed->left);
      columns->after[cell->column] = MAX (columns->after[cell->column], needed->right);
      rows->before[cell->row] = MAX (rows->before[cell->row], needed->top);
      rows->after[cell->row] = MAX (rows->after[cell->row], needed->bottom);
    }
  gtorch_plot_track_divide (columns);
  gtorch_plot_track_divide (rows);
}

/* All axes of a column have the same margins at their sides, and all of a row above and below, so that they
 * are in line, and as large as their ratios say. Ticks follow from sizes, and margins from ticks. */
static void
draw_cells (GTorchPlotFigure *self, cairo_t *cr, const GTorchPlotTheme *theme, gdouble top,
            gdouble width, gdouble height)
{
  const gdouble gap = MIN (GAP, 0.1 * width / MAX (1, self->n_columns));
  g_autofree GTorchPlotLayout **layouts = g_new0 (GTorchPlotLayout *, self->cells->len);
  GTorchPlotTrack columns, rows;

  gtorch_plot_track_init (&columns, self->n_columns, self->width_ratios, MARGIN, width - 2 * MARGIN,
                          gap);
  gtorch_plot_track_init (&rows, self->n_rows, self->height_ratios, top, height - top - MARGIN,
                          gap);
  layout_cells (self, cr, theme, &columns, &rows, layouts);
  if (self->cells->len > 1)
    layout_cells (self, cr, theme, &columns, &rows, layouts);
  for (guint i = 0; i < self->cells->len; i++)
    {
      const Cell *cell = self->cells->pdata[i];
      const GTorchPlotMargins margins = { columns.before[cell->column], columns.after[cell->column],
                                          rows.before[cell->row], rows.after[cell->row] };

      cairo_save (cr);
      gtorch_plot_layout_draw (layouts[i], columns.begins[cell->column], rows.begins[cell->row],
                               columns.sizes[cell->column], rows.sizes[cell->row], &margins);
      cairo_restore (cr);
      gtorch_plot_layout_free (layouts[i]);
    }
  gtorch_plot_track_clear (&columns);
  gtorch_plot_track_clear (&rows);
}

/* cairo's own numbers end at 8e6, and a matrix that has no inverse would break the caller's context. */
static gboolean
can_draw (gdouble width, gdouble height)
{
  return width > 0 && height > 0 && width <= MAX_DRAWN && height <= MAX_DRAWN;
}

/**
 * gtorch_plot_figure_draw_over:
 * @self: a figure
 * @cr: a cairo context
 * @width: the width
 * @height: the height
 * @scheme: the colours, in place of the figure's own ones
 *
 * Draws the figure like [method@Figure.draw], but without a ground, over what is there.
 *
 * Since: 0.1
 */
void
gtorch_plot_figure_draw_over (GTorchPlotFigure *self, cairo_t *cr, gdouble width, gdouble height,
                              GTorchPlotScheme scheme)
{
  const GTorchPlotTheme *theme = gtorch_plot_theme_get (scheme);
  gdouble top = MARGIN;

  g_return_if_fail (GTORCH_PLOT_IS_FIGURE (self));
  g_return_if_fail (cr != NULL);
  if (!can_draw (width, height))
    return;
  cairo_save (cr);
  cairo_rectangle (cr, 0, 0, width, height);
  cairo_clip (cr);
  cairo_new_path (cr);
  if (self->title != NULL)
    {
      const gdouble rest =
          MIN (gtorch_plot_text_measure_rest (cr, self->title, TITLE_SIZE, TRUE), 0.2 * height);

      cairo_save (cr);
      cairo_rectangle (cr, 0, 0, width, top + 1.6 * TITLE_SIZE + rest);
      cairo_clip (cr);
      gtorch_plot_set_source (cr, &theme->text, 1);
      gtorch_plot_text_draw_within (cr, self->title, TITLE_SIZE, TRUE, width - 2 * MARGIN,
                                    width / 2, MARGIN - 2, GTORCH_PLOT_MIDDLE, GTORCH_PLOT_START,
                                    0);
      cairo_restore (cr);
      top += 1.6 * TITLE_SIZE + rest;
    }
  if (self->cells->len > 0)
    draw_cells (self, cr, theme, top, width, height);
  cairo_restore (cr);
}

/**
 * gtorch_plot_figure_draw:
 * @self: a figure
 * @cr: a cairo context
 * @width: the width, in units of the context
 * @height: the height
 *
 * Draws the figure into a rectangle whose upper left corner is at (0, 0). Texts and lines keep their
 * sizes, whatever that of the rectangle is. In a rectangle whose sides are not more than 0 and at most a
 * million units there is nothing.
 *
 * Since: 0.1
 */
void
gtorch_plot_figure_draw (GTorchPlotFigure *self, cairo_t *cr, gdouble width, gdouble height)
{
  g_return_if_fail (GTORCH_PLOT_IS_FIGURE (self));
  g_return_if_fail (cr != NULL);
  if (!can_draw (width, height))
    return;
  cairo_save (cr);
  gtorch_plot_set_source (cr, &gtorch_plot_theme_get ((GTorchPlotScheme) self->scheme)->ground, 1);
  cairo_rectangle (cr, 0, 0, width, height);
  cairo_fill (cr);
  cairo_restore (cr);
  gtorch_plot_figure_draw_over (self, cr, width, height, (GTorchPlotScheme) self->scheme);
}

GTorchPlotFigure *
gtorch_plot_figure_copy (GTorchPlotFigure *self)
{
  GTorchPlotFigure *copy = gtorch_plot_figure_new ();

  copy->title = g_strdup (self->title);
  copy->width = self->width;
  copy->height = self->height;
  copy->resolution = self->resolution;
  copy->scheme = self->scheme;
  copy->n_rows = self->n_rows;
  copy->n_columns = self->n_columns;
  g_array_append_vals (copy->width_ratios, self->width_ratios->data, self->width_ratios->len);
  g_array_append_vals (copy->height_ratios, self->height_ratios->data, self->height_ratios->len);
  for (guint i = 0; i < self->cells->len; i++)
    {
      const Cell *cell = self->cells->pdata[i];
      Cell *other = g_new (Cell, 1);

      *other = (Cell){ cell->row, cell->column, gtorch_plot_axes_copy (cell->axes, copy) };
      g_ptr_array_add (copy->cells, other);
    }
  return copy;
}

void
gtorch_plot_figure_set_cancellable (GTorchPlotFigure *self, GCancellable *cancellable)
{
  g_set_object (&self->cancellable, cancellable);
}

gboolean
gtorch_plot_figure_is_cancelled (GTorchPlotFigure *self)
{
  return g_cancellable_is_cancelled (self->cancellable);
}
