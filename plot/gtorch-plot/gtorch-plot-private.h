/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <cairo.h>
#include <gio/gio.h>
#include <pango/pangocairo.h>

#include <gtorch-plot/gtorch-plot.h>

#include "base/gtorch-task-private.h"

G_BEGIN_DECLS

#define GTORCH_PLOT_PARAM_FLAGS \
  (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY)

/* --- colours --- */

typedef struct
{
  gdouble red, green, blue;
} GTorchPlotColor;

typedef struct
{
  GTorchPlotColor ground, text, muted, grid, spine;
  const GTorchPlotColor *series;
  guint n_series;
} GTorchPlotTheme;

const GTorchPlotTheme *gtorch_plot_theme_get (GTorchPlotScheme scheme);
/* "#rrggbb" */
gboolean gtorch_plot_color_parse (const gchar *text, GTorchPlotColor *color);
/* position from 0 to 1 */
GTorchPlotColor gtorch_plot_colormap_look_up (GTorchPlotColormap colormap, gdouble position);
/* How light a colour looks, from 0 to 1. */
gdouble gtorch_plot_color_lightness (const GTorchPlotColor *color);
void gtorch_plot_set_source (cairo_t *cr, const GTorchPlotColor *color, gdouble alpha);

/* --- ticks --- */

typedef struct
{
  gdouble low, high; /* low < high, finite; positive if log */
  gboolean is_log, is_inverted;
  gboolean is_whole;         /* only whole numbers have ticks */
  gdouble log_low, log_high; /* if log */
} GTorchPlotAxis;

typedef struct
{
  gdouble value;
  gchar *label; /* NULL: a small tick without one */
} GTorchPlotTick;

/* The power of two by which numbers are multiplied before one is subtracted from another: the differences of
 * numbers near the ends of doubles are infinite, and those near 0 have no digits. */
static inline gdouble
gtorch_plot_find_unit (gdouble low, gdouble high)
{
  const gdouble largest = MAX (ABS (low), ABS (high));

  return largest > 1e300 ? 0x1p-10 : largest < 1e-280 ? 0x1p200 : 1;
}

/* Where a number is: 0 at low, 1 at high, and beyond them outside. */
static inline gdouble
gtorch_plot_find_part (gdouble value, gdouble low, gdouble high)
{
  const gdouble unit = gtorch_plot_find_unit (low, high);

  return (value * unit - low * unit) / (high * unit - low * unit);
}

/* The same on an axis; NaN if it has no place. */
gdouble gtorch_plot_axis_place (const GTorchPlotAxis *axis, gdouble value);
/* Returns ticks in growing order, with at most about n of them labelled. */
GArray *gtorch_plot_ticks_new (const GTorchPlotAxis *axis, gdouble n);
gchar *gtorch_plot_format_number (gdouble value);
/* All digits of a whole number. */
gchar *gtorch_plot_format_count (gdouble value);

/* --- drawing --- */

typedef struct
{
  cairo_t *cr;
  const GTorchPlotTheme *theme;
  gdouble x, y, width, height; /* of the place between the axes */
  GTorchPlotAxis x_axis, y_axis;
} GTorchPlotCanvas;

typedef enum
{
  GTORCH_PLOT_START = 0,
  GTORCH_PLOT_MIDDLE = 1,
  GTORCH_PLOT_END = 2,
} GTorchPlotAlign;

/* The middle of a pixel of a screen, where a thin line is sharp. */
gdouble gtorch_plot_sharp (gdouble place);
gdouble gtorch_plot_canvas_x (const GTorchPlotCanvas *canvas, gdouble value);
gdouble gtorch_plot_canvas_y (const GTorchPlotCanvas *canvas, gdouble value);

void gtorch_plot_text_measure (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold,
                               gdouble *width, gdouble *height);
/* The height of all lines but the first one; 0 if there is none, or no text. */
gdouble gtorch_plot_text_measure_rest (cairo_t *cr, const gchar *text, gdouble size,
                                       gboolean is_bold);
/* Places a side or the middle of the text at x, and of its height at y. angle: in radians, around that
 * place. */
void gtorch_plot_text_draw (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold,
                            gdouble x, gdouble y, GTorchPlotAlign across, GTorchPlotAlign down,
                            gdouble angle);

/* The same; a text that is longer than limit ends with an ellipsis. */
void gtorch_plot_text_draw_within (cairo_t *cr, const gchar *text, gdouble size, gboolean is_bold,
                                   gdouble limit, gdouble x, gdouble y, GTorchPlotAlign across,
                                   GTorchPlotAlign down, gdouble angle);

/* --- items --- */

/* The least and the greatest numbers; low > high: there are none. */
typedef struct
{
  gdouble x_low, x_high, y_low, y_high;
} GTorchPlotRange;

#define GTORCH_PLOT_RANGE_EMPTY \
  ((GTorchPlotRange){ G_MAXDOUBLE, -G_MAXDOUBLE, G_MAXDOUBLE, -G_MAXDOUBLE })

struct _GTorchPlotItem
{
  GObject parent_instance;
  GTorchPlotAxes *axes; /* not owned */
  gchar *label;
  gchar *color; /* NULL: by place */
  gboolean is_visible;
  guint place;                /* among the items that take colours, while they are drawn */
  guint serial, taken_serial; /* of reads: begun, and the last one whose result was taken */
};

struct _GTorchPlotItemClass
{
  GObjectClass parent_class;
  gboolean takes_color; /* and is in the legend */
  GType copy_type;
  /* Gives an item of the copy type what this one is drawn by. Both may then be drawn, each in its thread. */
  void (*copy) (GTorchPlotItem *self, GTorchPlotItem *copy);
  /* The range of what is drawn on axes with these scales. */
  void (*add_range) (GTorchPlotItem *self, gboolean x_log, gboolean y_log, GTorchPlotRange *range);
  void (*draw) (GTorchPlotItem *self, const GTorchPlotCanvas *canvas);
  void (*draw_sample) (GTorchPlotItem *self, const GTorchPlotCanvas *canvas, gdouble x, gdouble y,
                       gdouble width, gdouble height);
  /* How much of a rectangle of the canvas is taken; for the place of the legend. */
  gdouble (*count_in) (GTorchPlotItem *self, const GTorchPlotCanvas *canvas, gdouble x, gdouble y,
                       gdouble width, gdouble height);
};

#define GTORCH_PLOT_ITEM_GET_CLASS(object) \
  (G_TYPE_INSTANCE_GET_CLASS ((object), GTORCH_PLOT_TYPE_ITEM, GTorchPlotItemClass))

void gtorch_plot_item_changed (GTorchPlotItem *self);
GTorchPlotItem *gtorch_plot_item_copy (GTorchPlotItem *self);
void gtorch_plot_item_set_source (GTorchPlotItem *self, const GTorchPlotCanvas *canvas,
                                  gdouble alpha);

void gtorch_plot_axes_changed (GTorchPlotAxes *self);
GTorchPlotAxes *gtorch_plot_axes_new (GTorchPlotFigure *figure);
GTorchPlotAxes *gtorch_plot_axes_copy (GTorchPlotAxes *self, GTorchPlotFigure *figure);
/* The figure is gone. */
void gtorch_plot_axes_leave (GTorchPlotAxes *self);
void gtorch_plot_figure_changed (GTorchPlotFigure *self);
/* What is drawn of a figure as it is now. The items share their numbers with it, which nobody changes. */
GTorchPlotFigure *gtorch_plot_figure_copy (GTorchPlotFigure *self);
/* Drawing the figure ends between two items when it is cancelled. */
void gtorch_plot_figure_set_cancellable (GTorchPlotFigure *self, GCancellable *cancellable);
gboolean gtorch_plot_figure_is_cancelled (GTorchPlotFigure *self);

/* What stands around the place between the axes. */
typedef struct
{
  gdouble left, right, top, bottom;
} GTorchPlotMargins;

typedef struct _GTorchPlotLayout GTorchPlotLayout;

/* Looks at the axes for a cell of a size. Free with gtorch_plot_layout_free (). */
GTorchPlotLayout *gtorch_plot_layout_new (GTorchPlotAxes *axes, cairo_t *cr,
                                          const GTorchPlotTheme *theme, gdouble width,
                                          gdouble height);
void gtorch_plot_layout_free (GTorchPlotLayout *layout);
const GTorchPlotMargins *gtorch_plot_layout_get_margins (const GTorchPlotLayout *layout);
void gtorch_plot_layout_draw (GTorchPlotLayout *layout, gdouble x, gdouble y, gdouble width,
                              gdouble height, const GTorchPlotMargins *margins);

/* The columns of cells, or the rows. */
typedef struct
{
  guint n;
  const GArray *ratios;
  gdouble begin, size, gap;
  gdouble *before, *after; /* margins of each: its axes are in line */
  gdouble *begins, *sizes;
} GTorchPlotTrack;

#define GTORCH_PLOT_MAX_PLACES 1024 /* rows or columns of a figure */

void gtorch_plot_track_init (GTorchPlotTrack *track, guint n, const GArray *ratios, gdouble begin,
                             gdouble size, gdouble gap);
void gtorch_plot_track_divide (GTorchPlotTrack *track);
void gtorch_plot_track_clear (GTorchPlotTrack *track);
gboolean gtorch_plot_ratios_set (GArray *ratios, const gchar *op, const gdouble *values,
                                 gsize n_values, GError **error);

struct _GTorchPlotAxes
{
  GObject parent_instance;
  GTorchPlotFigure *figure; /* not owned */
  GListStore *items;
  gchar *title, *x_label, *y_label;
  gint x_scale, y_scale;                /* of GTorchPlotScale */
  gdouble x_low, x_high, y_low, y_high; /* NaN: by the data */
  gboolean show_legend, show_grid, show_ticks, equal_units;
};

/* Which the axes own. */
GTorchPlotItem *gtorch_plot_axes_get_item (GTorchPlotAxes *self, guint i);
/* Draws the legend in the corner where it covers least. */
void gtorch_plot_legend_draw (GTorchPlotAxes *axes, const GTorchPlotCanvas *canvas);

/* Finds the first pixel whose number is negative or not finite. */
gboolean gtorch_plot_image_find_bad (GTorchPlotImage *self, guint *row, guint *column,
                                     gdouble *number);
/* What an image has that its axes are drawn by. */
gboolean gtorch_plot_image_has_extent (GTorchPlotImage *self);
gboolean gtorch_plot_image_has_scale (GTorchPlotImage *self, gdouble *low, gdouble *high);

/* Tells whether it has two dimensions, and as many rows and columns as there are names, if there are
 * any. */
gboolean gtorch_plot_check_matrix (const gchar *op, GTorchTensor *matrix,
                                   const gchar *const *row_names, const gchar *const *column_names,
                                   GError **error);

/* --- reading tensors --- */

#define GTORCH_PLOT_MAX_TENSORS 2

typedef struct _GTorchPlotRead GTorchPlotRead;

struct _GTorchPlotRead
{
  gdouble *values[GTORCH_PLOT_MAX_TENSORS]; /* NULL: no such tensor */
  gsize n_values[GTORCH_PLOT_MAX_TENSORS];
  guint parameter;                 /* the caller's */
  gsize height, width, n_channels; /* the caller's */
  gboolean is_last;                /* the caller's: the channels are the last dimension */
  gdouble unit;                    /* the caller's */
  gint colormap;                   /* the caller's */
  gdouble minimum, maximum;        /* the caller's */
  void (*prepare) (
      GTorchPlotRead *read); /* the caller's: makes the result of the values, maybe in a thread */
  gpointer result;
  GDestroyNotify free_result; /* of what is not taken */
};

/* Quickly: in the main loop. */
typedef void (*GTorchPlotTake) (GTorchPlotItem *item, GTorchPlotRead *read);

gchar *gtorch_plot_shape_text (GTorchTensor *tensor);
gboolean gtorch_plot_check_dtype (const gchar *op, const gchar *what, GTorchTensor *tensor,
                                  GError **error);
/* Takes read, whose parameters the caller has set, reads the tensors and calls take. */
gboolean gtorch_plot_read_now (GTorchPlotItem *item, const gchar *op, GTorchTensor **tensors,
                               GTorchPlotRead read, GTorchPlotTake take, GError **error);
void gtorch_plot_read_later (GTorchPlotItem *item, const gchar *op, GTorchTensor **tensors,
                             GTorchPlotRead read, GTorchPlotTake take, GTask *task);

G_END_DECLS
