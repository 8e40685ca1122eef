/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-plot-private.h"

/**
 * GTorchPlotHistogram:
 *
 * Bars that show how often numbers lie in ranges of equal width (bins).
 *
 * Several histograms on the same axes shine through each other. NaN and infinite numbers are in no bin;
 * [method@Histogram.get_n_ignored] tells how many there were.
 *
 * Since: 0.1
 */

#define MAX_BINS 100000

struct _GTorchPlotHistogramClass
{
  GTorchPlotItemClass parent_class;
};

struct _GTorchPlotHistogram
{
  GTorchPlotItem parent_instance;
  gdouble low, high; /* of all bins together */
  GArray *counts;    /* of gdouble */
  guint64 n_ignored;
};

enum
{
  PROP_N_BINS = 1,
  PROP_N_IGNORED,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchPlotHistogram, gtorch_plot_histogram, GTORCH_PLOT_TYPE_ITEM)

static gdouble
edge (GTorchPlotHistogram *self, guint i)
{
  const gdouble part = (gdouble) i / self->counts->len;

  return self->low * (1 - part) + self->high * part;
}

static void
gtorch_plot_histogram_add_range (GTorchPlotItem *item, gboolean x_log, gboolean y_log,
                                 GTorchPlotRange *range)
{
  GTorchPlotHistogram *self = GTORCH_PLOT_HISTOGRAM (item);
  gdouble least = y_log ? G_MAXDOUBLE : 0;

  for (guint i = 0; i < self->counts->len; i++)
    {
      const gdouble count = g_array_index (self->counts, gdouble, i), left = edge (self, i);

      if (y_log && count > 0)
        least = MIN (least, 0.5 * count);
      if (!y_log || count > 0)
        range->y_high = MAX (range->y_high, count);
      if (!x_log || left > 0)
        range->x_low = MIN (range->x_low, left);
    }
  if (self->counts->len == 0)
    return;
  range->y_low = MIN (range->y_low, least);
  if (!x_log || self->high > 0)
    range->x_high = MAX (range->x_high, self->high);
}

/* The bars as one path, without lines between them. */
static void
gtorch_plot_histogram_draw (GTorchPlotItem *item, const GTorchPlotCanvas *canvas)
{
  GTorchPlotHistogram *self = GTORCH_PLOT_HISTOGRAM (item);
  const gdouble bottom = canvas->y + canvas->height;
  const gdouble start = canvas->y_axis.is_log ? bottom : gtorch_plot_canvas_y (canvas, 0);
  const guint n = self->counts->len;
  cairo_t *cr = canvas->cr;
  gboolean is_begun = FALSE;

  for (guint i = 0; i < n; i++)
    {
      const gdouble count = g_array_index (self->counts, gdouble, i);
      gdouble left = gtorch_plot_canvas_x (canvas, edge (self, i));
      gdouble right = gtorch_plot_canvas_x (canvas, edge (self, i + 1));
      gdouble top = gtorch_plot_canvas_y (canvas, count);

      if (!isfinite (right))
        continue;
      if (!isfinite (left)) /* on a logarithmic axis, the bin around 0 */
        left = canvas->x;
      if (!isfinite (top))
        top = start;
      if (!is_begun)
        cairo_move_to (cr, left, start);
      cairo_line_to (cr, left, top);
      cairo_line_to (cr, right, top);
      is_begun = TRUE;
      if (i + 1 == n)
        cairo_line_to (cr, right, start);
    }
  if (!is_begun)
    return;
  gtorch_plot_item_set_source (item, canvas, 0.4);
  cairo_fill_preserve (cr);
  gtorch_plot_item_set_source (item, canvas, 1);
  cairo_set_line_width (cr, 1.2);
  cairo_set_line_join (cr, CAIRO_LINE_JOIN_ROUND);
  cairo_stroke (cr);
}

static void
gtorch_plot_histogram_draw_sample (GTorchPlotItem *item, const GTorchPlotCanvas *canvas, gdouble x,
                                   gdouble y, gdouble width, gdouble height)
{
  cairo_rectangle (canvas->cr, x, y + height * 0.15, width, height * 0.7);
  gtorch_plot_item_set_source (item, canvas, 0.4);
  cairo_fill_preserve (canvas->cr);
  gtorch_plot_item_set_source (item, canvas, 1);
  cairo_set_line_width (canvas->cr, 1.2);
  cairo_stroke (canvas->cr);
}

static gdouble
gtorch_plot_histogram_count_in (GTorchPlotItem *item, const GTorchPlotCanvas *canvas, gdouble x,
                                gdouble y, gdouble width, gdouble height)
{
  GTorchPlotHistogram *self = GTORCH_PLOT_HISTOGRAM (item);
  gdouble n = 0;

  for (guint i = 0; i < self->counts->len; i++)
    {
      const gdouble count = g_array_index (self->counts, gdouble, i);
      const gdouble middle = 0.5
                             * (gtorch_plot_canvas_x (canvas, edge (self, i))
                                + gtorch_plot_canvas_x (canvas, edge (self, i + 1)));

      /* a bar reaches from its top down */
      if (count > 0 && middle >= x && middle <= x + width
          && gtorch_plot_canvas_y (canvas, count) <= y + height)
        n++;
    }
  return self->counts->len > 0 ? n / self->counts->len : 0;
}

static void
gtorch_plot_histogram_copy (GTorchPlotItem *item, GTorchPlotItem *copy)
{
  GTorchPlotHistogram *self = GTORCH_PLOT_HISTOGRAM (item), *other = GTORCH_PLOT_HISTOGRAM (copy);

  other->low = self->low;
  other->high = self->high;
  g_array_append_vals (other->counts, self->counts->data, self->counts->len);
}

/* --- class --- */

static void
gtorch_plot_histogram_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchPlotHistogram *self = GTORCH_PLOT_HISTOGRAM (object);

  if (id == PROP_N_BINS)
    g_value_set_uint (value, self->counts->len);
  else if (id == PROP_N_IGNORED)
    g_value_set_uint64 (value, self->n_ignored);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_plot_histogram_finalize (GObject *object)
{
  g_array_unref (GTORCH_PLOT_HISTOGRAM (object)->counts);
  G_OBJECT_CLASS (gtorch_plot_histogram_parent_class)->finalize (object);
}

static void
gtorch_plot_histogram_class_init (GTorchPlotHistogramClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GTorchPlotItemClass *item_class = (GTorchPlotItemClass *) klass;

  object_class->get_property = gtorch_plot_histogram_get_property;
  object_class->finalize = gtorch_plot_histogram_finalize;
  item_class->takes_color = TRUE;
  item_class->copy_type = GTORCH_PLOT_TYPE_HISTOGRAM;
  item_class->copy = gtorch_plot_histogram_copy;
  item_class->add_range = gtorch_plot_histogram_add_range;
  item_class->draw = gtorch_plot_histogram_draw;
  item_class->draw_sample = gtorch_plot_histogram_draw_sample;
  item_class->count_in = gtorch_plot_histogram_count_in;
  /**
   * GTorchPlotHistogram:n-bins:
   *
   * The number of bins.
   *
   * Since: 0.1
   */
  props[PROP_N_BINS] = g_param_spec_uint ("n-bins", NULL, NULL, 0, G_MAXUINT, 0,
                                          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchPlotHistogram:n-ignored:
   *
   * How many numbers were NaN or infinite, and are in no bin.
   *
   * Since: 0.1
   */
  props[PROP_N_IGNORED] = g_param_spec_uint64 ("n-ignored", NULL, NULL, 0, G_MAXUINT64, 0,
                                               G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_plot_histogram_init (GTorchPlotHistogram *self)
{
  self->counts = g_array_new (FALSE, TRUE, sizeof (gdouble));
  self->high = 1;
}

/**
 * gtorch_plot_histogram_new:
 * @label: (nullable): the name in the legend
 *
 * Creates a histogram without bins.
 *
 * Returns: (transfer full): a new histogram
 *
 * Since: 0.1
 */
GTorchPlotHistogram *
gtorch_plot_histogram_new (const gchar *label)
{
  return g_object_new (GTORCH_PLOT_TYPE_HISTOGRAM, "label", label, NULL);
}

/* --- counting --- */

static void
counts_changed (GTorchPlotHistogram *self)
{
  GObject *object = G_OBJECT (self);

  gtorch_plot_item_changed (&self->parent_instance);
  g_object_notify_by_pspec (object, props[PROP_N_BINS]);
  g_object_notify_by_pspec (object, props[PROP_N_IGNORED]);
}

typedef struct
{
  gdouble low, high;
  GArray *counts;
  guint64 n_ignored;
} Counts;

static void
counts_free (gpointer data)
{
  Counts *counts = data;

  g_array_unref (counts->counts);
  g_free (counts);
}

/* Maybe in a thread. The number of bins is by Rice's rule, 2 n^(1/3), if it is left to us. */
static void
prepare_values (GTorchPlotRead *read)
{
  Counts *counts = g_new0 (Counts, 1);
  const gdouble *values = read->values[0];
  gdouble low = G_MAXDOUBLE, high = -G_MAXDOUBLE, unit, scale;
  gsize n = 0;
  guint n_bins;

  for (gsize i = 0; i < read->n_values[0]; i++)
    if (isfinite (values[i]))
      {
        low = MIN (low, values[i]);
        high = MAX (high, values[i]);
        n++;
      }
  counts->n_ignored = read->n_values[0] - n;
  n_bins = read->parameter > 0 ? read->parameter : (guint) CLAMP (ceil (2 * cbrt (n)), 1, 200);
  counts->counts = g_array_new (FALSE, TRUE, sizeof (gdouble));
  if (n > 0)
    {
      if (low == high)
        {
          const gdouble half = MAX (0.5, 1e-6 * fabs (low));

          low = MAX (low - half, -G_MAXDOUBLE);
          high = MIN (high + half, G_MAXDOUBLE);
        }
      unit = gtorch_plot_find_unit (low, high);
      counts->low = low;
      counts->high = high;
      g_array_set_size (counts->counts, n_bins);
      scale = n_bins / (high * unit - low * unit);
      for (gsize i = 0; i < read->n_values[0]; i++)
        if (isfinite (values[i]))
          {
            const gdouble place = (values[i] * unit - low * unit) * scale;

            g_array_index (counts->counts, gdouble, MIN ((guint) place, n_bins - 1))++;
          }
    }
  read->result = counts;
  read->free_result = counts_free;
}

static void
take_values (GTorchPlotItem *item, GTorchPlotRead *read)
{
  GTorchPlotHistogram *self = GTORCH_PLOT_HISTOGRAM (item);
  const Counts *counts = read->result;

  if (counts->counts->len > 0)
    {
      self->low = counts->low;
      self->high = counts->high;
    }
  self->n_ignored = counts->n_ignored;
  g_array_unref (self->counts);
  self->counts = g_array_ref (counts->counts);
  counts_changed (self);
}

#define SET_VALUES "plot_histogram_set_values"

static gboolean
check_values (GTorchTensor *values, guint n_bins, GError **error)
{
  if (!gtorch_plot_check_dtype (SET_VALUES, "values", values, error))
    return FALSE;
  if (n_bins <= MAX_BINS)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %u bins are more than %d"),
               SET_VALUES, n_bins, MAX_BINS);
  return FALSE;
}

/**
 * gtorch_plot_histogram_set_values:
 * @self: a histogram
 * @values: the numbers, in any shape
 * @n_bins: the number of bins, at most 100,000, or 0 for one that follows from the number of values
 * @error: return location for an error
 *
 * Counts numbers, from the least to the greatest one, in place of the former ones.
 *
 * The tensor may be of any dtype that is not complex, on any device. Waits until it is computed;
 * [method@Histogram.set_values_async] does not.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_DTYPE, %GTORCH_ERROR_INVALID or an error of
 *   reading ([method@GTorch.Tensor.to_doubles]), and the former counts
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_histogram_set_values (GTorchPlotHistogram *self, GTorchTensor *values, guint n_bins,
                                  GError **error)
{
  GTorchTensor *tensors[] = { values, NULL };

  g_return_val_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (values), FALSE);
  return check_values (values, n_bins, error)
         && gtorch_plot_read_now (&self->parent_instance, SET_VALUES, tensors,
                                  (GTorchPlotRead){ .parameter = n_bins,
                                                    .prepare = prepare_values },
                                  take_values, error);
}

/**
 * gtorch_plot_histogram_set_values_async:
 * @self: a histogram
 * @values: the numbers, in any shape
 * @n_bins: the number of bins, at most 100,000, or 0 for one that follows from the number of values
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the numbers are counted
 * @user_data: data for @callback
 *
 * Counts numbers, in place of the former ones, without blocking the main loop. Of two such calls, the
 * later one counts.
 *
 * Since: 0.1
 */
void
gtorch_plot_histogram_set_values_async (GTorchPlotHistogram *self, GTorchTensor *values,
                                        guint n_bins, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data)
{
  GTorchTensor *tensors[] = { values, NULL };
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self));
  g_return_if_fail (GTORCH_IS_TENSOR (values));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_plot_histogram_set_values_async, cancellable, callback,
                          user_data);
  if (!check_values (values, n_bins, &error))
    g_task_return_error (task, error);
  else
    gtorch_plot_read_later (&self->parent_instance, SET_VALUES, tensors,
                            (GTorchPlotRead){ .parameter = n_bins, .prepare = prepare_values },
                            take_values, task);
}

/**
 * gtorch_plot_histogram_set_values_finish:
 * @self: a histogram
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Histogram.set_values_async].
 *
 * Returns: %TRUE on success; %FALSE with an error of [method@Histogram.set_values] or
 *   %G_IO_ERROR_CANCELLED
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_histogram_set_values_finish (GTorchPlotHistogram *self, GAsyncResult *result,
                                         GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_plot_histogram_set_values_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_plot_histogram_set_counts:
 * @self: a histogram
 * @low: where the first bin begins
 * @high: where the last bin ends, more than @low
 * @counts: (array length=n_counts): the height of each bin
 * @n_counts: the number of bins
 * @error: return location for an error
 *
 * Sets counts that were made elsewhere, for example in another process.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the ends or a count are not finite, if
 *   @low is not less than @high, or if there are more than 100,000 bins
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_histogram_set_counts (GTorchPlotHistogram *self, gdouble low, gdouble high,
                                  const gdouble *counts, gsize n_counts, GError **error)
{
  static const gchar op[] = "plot_histogram_set_counts";

  g_return_val_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self), FALSE);
  g_return_val_if_fail (n_counts == 0 || counts != NULL, FALSE);
  if (!isfinite (low) || !isfinite (high) || !(low < high))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: bins from %g to %g: both must be finite, and the first one less"), op,
                   low, high);
      return FALSE;
    }
  if (n_counts > MAX_BINS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %zu bins are more than %d"),
                   op, n_counts, MAX_BINS);
      return FALSE;
    }
  for (gsize i = 0; i < n_counts; i++)
    if (!isfinite (counts[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: count %zu is %g, and not a finite number"), op, i, counts[i]);
        return FALSE;
      }
  self->parent_instance.taken_serial = ++self->parent_instance.serial;
  self->low = low;
  self->high = high;
  self->n_ignored = 0;
  g_array_set_size (self->counts, 0);
  g_array_append_vals (self->counts, counts, n_counts);
  counts_changed (self);
  return TRUE;
}

/**
 * gtorch_plot_histogram_get_n_bins: (get-property n-bins)
 * @self: a histogram
 *
 * Gets the number of bins.
 *
 * Returns: the number; 0 if there are no values
 *
 * Since: 0.1
 */
guint
gtorch_plot_histogram_get_n_bins (GTorchPlotHistogram *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self), 0);
  return self->counts->len;
}

/**
 * gtorch_plot_histogram_get_count:
 * @self: a histogram
 * @bin: which bin, from 0
 *
 * Gets how many numbers are in a bin. A number on an edge is in the bin behind it, the greatest one in
 * the last.
 *
 * Returns: the count; NaN if there is no such bin
 *
 * Since: 0.1
 */
gdouble
gtorch_plot_histogram_get_count (GTorchPlotHistogram *self, guint bin)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self), NAN);
  return bin < self->counts->len ? g_array_index (self->counts, gdouble, bin) : NAN;
}

/**
 * gtorch_plot_histogram_get_bounds:
 * @self: a histogram
 * @low: (out): where the first bin begins
 * @high: (out): where the last bin ends
 *
 * Gets the ends of all bins together.
 *
 * Since: 0.1
 */
void
gtorch_plot_histogram_get_bounds (GTorchPlotHistogram *self, gdouble *low, gdouble *high)
{
  g_return_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self));
  g_return_if_fail (low != NULL && high != NULL);
  *low = self->low;
  *high = self->high;
}

/**
 * gtorch_plot_histogram_get_n_ignored: (get-property n-ignored)
 * @self: a histogram
 *
 * Gets how many numbers were NaN or infinite, and are in no bin.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint64
gtorch_plot_histogram_get_n_ignored (GTorchPlotHistogram *self)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_HISTOGRAM (self), 0);
  return self->n_ignored;
}
