/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pictures by one call. What they make are figures like any other. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-plot-private.h"

#define MAX_CELLS 1024

static guint
count_names (const gchar *const *names)
{
  return names != NULL ? g_strv_length ((gchar **) names) : 0;
}

gboolean
gtorch_plot_check_matrix (const gchar *op, GTorchTensor *matrix, const gchar *const *row_names,
                          const gchar *const *column_names, GError **error)
{
  g_autofree gchar *text = gtorch_plot_shape_text (matrix);
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (matrix, &n_dims);

  if (n_dims != 2)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the shape %s has not two dimensions"), op, text);
  else if (row_names != NULL && count_names (row_names) != shape[0])
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the number of names is %u, and that of rows %" PRId64), op,
                 count_names (row_names), shape[0]);
  else if (column_names != NULL && count_names (column_names) != shape[1])
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the number of names is %u, and that of columns %" PRId64), op,
                 count_names (column_names), shape[1]);
  else
    return TRUE;
  return FALSE;
}

static GTorchPlotAxes *
first_axes (GTorchPlotFigure *figure)
{
  return gtorch_plot_figure_get_axes (figure, 0, 0, NULL);
}

/**
 * gtorch_plot_lines:
 * @tensors: (array length=n_tensors): the vertical places of each line, one dimension
 * @n_tensors: the number of lines
 * @labels: (nullable) (array zero-terminated=1): the name of each line
 * @error: return location for an error
 *
 * Draws lines over 0, 1, 2 and so on. Waits until the tensors are computed.
 *
 * Returns: (transfer full): a new figure, or %NULL with %GTORCH_ERROR_SHAPE if there are not as many
 *   labels as lines, or with an error of [method@Line.set_values]
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_lines (GTorchTensor **tensors, gsize n_tensors, const gchar *const *labels,
                   GError **error)
{
  g_autoptr (GTorchPlotFigure) figure = NULL;

  g_return_val_if_fail (n_tensors == 0 || tensors != NULL, NULL);
  if (labels != NULL && count_names (labels) != n_tensors)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("plot_lines: the number of labels is %u, and that of lines %zu"),
                   count_names (labels), n_tensors);
      return NULL;
    }
  figure = gtorch_plot_figure_new ();
  first_axes (figure);
  for (gsize i = 0; i < n_tensors; i++)
    {
      g_return_val_if_fail (GTORCH_IS_TENSOR (tensors[i]), NULL);
      if (gtorch_plot_axes_add_line (first_axes (figure), NULL, tensors[i],
                                     labels != NULL ? labels[i] : NULL, error)
          == NULL)
        return NULL;
    }
  return g_steal_pointer (&figure);
}

/**
 * gtorch_plot_histogram:
 * @values: the numbers, in any shape
 * @n_bins: the number of bins, or 0 for one that follows from the number of values
 * @error: return location for an error
 *
 * Draws a histogram. Waits until the tensor is computed.
 *
 * Returns: (transfer full): a new figure, or %NULL with an error of [method@Histogram.set_values]
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_histogram (GTorchTensor *values, guint n_bins, GError **error)
{
  g_autoptr (GTorchPlotFigure) figure = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (values), NULL);
  figure = gtorch_plot_figure_new ();
  if (gtorch_plot_axes_add_histogram (first_axes (figure), values, n_bins, NULL, error) == NULL)
    return NULL;
  return g_steal_pointer (&figure);
}

/**
 * gtorch_plot_image:
 * @pixels: the pixels, of one of the shapes that [class@Image] names
 * @error: return location for an error
 *
 * Draws an image, beside a bar of its colours if it has one number for each pixel. Waits until the
 * tensor is computed.
 *
 * Returns: (transfer full): a new figure, or %NULL with an error of [method@Image.set_pixels]
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_image (GTorchTensor *pixels, GError **error)
{
  g_autoptr (GTorchPlotFigure) figure = NULL;
  GTorchPlotImage *image;

  g_return_val_if_fail (GTORCH_IS_TENSOR (pixels), NULL);
  figure = gtorch_plot_figure_new ();
  image = gtorch_plot_axes_add_image (first_axes (figure), pixels, error);
  if (image == NULL)
    return NULL;
  gtorch_plot_image_set_show_scale (image, TRUE); /* if there is one number for each pixel */
  return g_steal_pointer (&figure);
}

static gboolean
add_cell (GTorchPlotFigure *figure, GTorchTensor *images, gint64 index, guint n_columns,
          const gchar *title, GTorchPlotColormap colormap, GError **error)
{
  g_autoptr (GTorchTensor) pixels = gtorch_tensor_select (images, 0, index, error);
  GTorchPlotAxes *axes =
      gtorch_plot_figure_get_axes (figure, index / n_columns, index % n_columns, error);
  GTorchPlotImage *image;

  if (pixels == NULL || axes == NULL)
    return FALSE;
  image = gtorch_plot_axes_add_image (axes, pixels, error);
  if (image == NULL)
    return FALSE;
  gtorch_plot_image_set_colormap (image, colormap);
  gtorch_plot_axes_set_title (axes, title);
  return TRUE;
}

static gint64
count_cells (const gchar *op, const gchar *what, GTorchTensor *tensor, GError **error)
{
  const gint64 n = gtorch_tensor_get_size (tensor, 0, error);

  if (n <= MAX_CELLS)
    return n;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE, _ ("%s: %" PRId64 " %s are more than %d"),
               op, n, what, MAX_CELLS);
  return -1;
}

/* Makes cells of an image that is as wide as high about as large. */
static void
set_grid_size (GTorchPlotFigure *figure, guint n_rows, guint n_columns, gdouble cell, gdouble title)
{
  gtorch_plot_figure_set_size (figure, CLAMP (n_columns * cell + 20, 200, 2000),
                               CLAMP (n_rows * (cell + title) + 20, 120, 4000), NULL);
}

/**
 * gtorch_plot_images:
 * @images: images, `[n, height, width]`, `[n, 1, 3 or 4, height, width]` or `[n, height, width, 3 or 4]`
 * @n_columns: how many are beside each other, or 0 for about as many as below each other
 * @titles: (nullable) (array zero-terminated=1): the title of each image
 * @error: return location for an error
 *
 * Draws many images, such as a batch, in a grid. Those with one number for each pixel are gray. Waits
 * until the tensor is computed.
 *
 * Returns: (transfer full): a new figure, or %NULL with %GTORCH_ERROR_SHAPE if there are more than 1024
 *   images, or not as many titles as images, or with an error of [method@Image.set_pixels]
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_images (GTorchTensor *images, guint n_columns, const gchar *const *titles,
                    GError **error)
{
  static const gchar op[] = "plot_images";
  g_autoptr (GTorchPlotFigure) figure = NULL;
  g_autofree gchar *text = NULL;
  gint64 n;

  g_return_val_if_fail (GTORCH_IS_TENSOR (images), NULL);
  text = gtorch_plot_shape_text (images);
  if (gtorch_tensor_get_n_dims (images) != 3 && gtorch_tensor_get_n_dims (images) != 4)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the shape %s is not [images, height, width] and has no fourth dimension "
                      "of channels"),
                   op, text);
      return NULL;
    }
  n = count_cells (op, N_ ("images"), images, error);
  if (n < 0)
    return NULL;
  if (titles != NULL && count_names (titles) != n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the number of titles is %u, and that of images %" PRId64), op,
                   count_names (titles), n);
      return NULL;
    }
  n_columns = n_columns > 0 ? MIN (n_columns, MAX_CELLS) : MAX (1, (guint) ceil (sqrt (n)));
  figure = gtorch_plot_figure_new ();
  for (gint64 i = 0; i < n; i++)
    {
      if (!add_cell (figure, images, i, n_columns, titles != NULL ? titles[i] : NULL,
                     GTORCH_PLOT_COLORMAP_GRAY, error))
        return NULL;
      gtorch_plot_axes_set_show_ticks (gtorch_plot_figure_get_axes (figure, i / n_columns,
                                                                    i % n_columns, NULL),
                                       FALSE);
    }
  set_grid_size (figure, (n + n_columns - 1) / n_columns, MIN (n, n_columns), 64,
                 titles != NULL ? 18 : 0);
  return g_steal_pointer (&figure);
}

/**
 * gtorch_plot_confusion_matrix:
 * @counts: how often class `i` was taken for class `j`, `[classes, classes]`, such as the result of a
 *   [class@GTorch.ConfusionMatrix]
 * @class_names: (nullable) (array zero-terminated=1): the names of the classes, or %NULL for numbers
 * @error: return location for an error
 *
 * Draws a confusion matrix with its numbers, or parts of a whole. Waits until the tensor is computed.
 *
 * Returns: (transfer full): a new figure, or %NULL with %GTORCH_ERROR_SHAPE if the matrix is not square
 *   or has not as many rows as there are names, with %GTORCH_ERROR_INVALID if a number is negative
 *   or not finite, or with an error of [method@Image.set_pixels]
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_confusion_matrix (GTorchTensor *counts, const gchar *const *class_names, GError **error)
{
  static const gchar op[] = "plot_confusion_matrix";
  g_autoptr (GTorchPlotFigure) figure = NULL;
  g_auto (GStrv) numbers = NULL;
  GTorchPlotImage *image;
  GTorchPlotAxes *axes;
  const gint64 *shape;
  gdouble number;
  guint row, column;
  gsize n_dims;

  g_return_val_if_fail (GTORCH_IS_TENSOR (counts), NULL);
  if (!gtorch_plot_check_matrix (op, counts, class_names, class_names, error))
    return NULL;
  shape = gtorch_tensor_get_shape (counts, &n_dims);
  if (shape[0] != shape[1] || shape[0] > MAX_CELLS)
    {
      g_autofree gchar *text = gtorch_plot_shape_text (counts);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the shape %s is not [classes, classes] with at most %d classes"), op,
                   text, MAX_CELLS);
      return NULL;
    }
  if (class_names == NULL)
    {
      numbers = g_new0 (gchar *, shape[0] + 1);
      for (gint64 i = 0; i < shape[0]; i++)
        numbers[i] = g_strdup_printf ("%" PRId64, i);
      class_names = (const gchar *const *) numbers;
    }
  figure = gtorch_plot_figure_new ();
  axes = first_axes (figure);
  image = gtorch_plot_axes_add_matrix (axes, counts, class_names, class_names, error);
  if (image == NULL)
    return NULL;
  if (gtorch_plot_image_find_bad (image, &row, &column, &number))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the number %g in row %u and column %u is no count: counts are finite, "
                      "and not negative"),
                   op, number, row, column);
      return NULL;
    }
  gtorch_plot_image_set_range (image, 0, NAN, NULL);
  gtorch_plot_image_set_show_scale (image, TRUE);
  gtorch_plot_axes_set_x_label (axes, _ ("predicted"));
  gtorch_plot_axes_set_y_label (axes, _ ("true"));
  gtorch_plot_figure_set_size (figure, 480, 420, NULL);
  return g_steal_pointer (&figure);
}

/**
 * gtorch_plot_attention:
 * @weights: how much each query attends to each key, `[queries, keys]`, or `[heads, queries, keys]` for a
 *   picture of each head
 * @query_names: (nullable) (array zero-terminated=1): the queries, such as words
 * @key_names: (nullable) (array zero-terminated=1): the keys
 * @error: return location for an error
 *
 * Draws maps of attention, whose colours go from 0 to the greatest weight of all. Waits until the tensor
 * is computed.
 *
 * Returns: (transfer full): a new figure, or %NULL with %GTORCH_ERROR_SHAPE if there are not two or three
 *   dimensions, more than 1024 heads, or not as many names as queries and keys, or with an error of
 *   [method@Image.set_pixels]
 *
 * Since: 0.1
 */
GTorchPlotFigure *
gtorch_plot_attention (GTorchTensor *weights, const gchar *const *query_names,
                       const gchar *const *key_names, GError **error)
{
  static const gchar op[] = "plot_attention";
  g_autoptr (GTorchPlotFigure) figure = NULL;
  g_autoptr (GTorchTensor) heads = NULL;
  gdouble greatest = 0;
  guint n_columns;
  gint64 n;

  g_return_val_if_fail (GTORCH_IS_TENSOR (weights), NULL);
  heads = gtorch_tensor_get_n_dims (weights) == 2 ? gtorch_tensor_unsqueeze (weights, 0, error)
                                                  : g_object_ref (weights);
  if (heads == NULL)
    return NULL;
  if (gtorch_tensor_get_n_dims (heads) != 3)
    {
      g_autofree gchar *text = gtorch_plot_shape_text (weights);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the shape %s is neither [queries, keys] nor [heads, queries, keys]"), op,
                   text);
      return NULL;
    }
  n = count_cells (op, N_ ("heads"), heads, error);
  if (n < 0)
    return NULL;
  figure = gtorch_plot_figure_new ();
  n_columns = MAX (1, (guint) ceil (sqrt (n)));
  for (gint64 i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) map = gtorch_tensor_select (heads, 0, i, error);
      g_autofree gchar *title = n > 1 ? g_strdup_printf (_ ("head %" PRId64), i) : NULL;
      GTorchPlotAxes *axes =
          gtorch_plot_figure_get_axes (figure, i / n_columns, i % n_columns, NULL);
      GTorchPlotImage *image;
      gdouble low, high;

      if (map == NULL || !gtorch_plot_check_matrix (op, map, query_names, key_names, error))
        return NULL;
      image = gtorch_plot_axes_add_matrix (axes, map, query_names, key_names, error);
      if (image == NULL)
        return NULL;
      gtorch_plot_image_set_colormap (image, GTORCH_PLOT_COLORMAP_VIRIDIS);
      gtorch_plot_image_set_show_values (image, FALSE);
      gtorch_plot_image_set_show_scale (image, i % n_columns == n_columns - 1 || i == n - 1);
      gtorch_plot_axes_set_title (axes, title);
      gtorch_plot_image_get_range (image, &low, &high);
      greatest = MAX (greatest, high);
    }
  for (gint64 i = 0; i < n; i++)
    {
      GTorchPlotAxes *axes =
          gtorch_plot_figure_get_axes (figure, i / n_columns, i % n_columns, NULL);
      g_autoptr (GTorchPlotImage) image =
          g_list_model_get_item (gtorch_plot_axes_get_items (axes), 0);

      gtorch_plot_image_set_range (image, 0, greatest > 0 ? greatest : 1, NULL);
    }
  if (n > 1)
    set_grid_size (figure, (n + n_columns - 1) / n_columns, n_columns, 230, 0);
  else
    gtorch_plot_figure_set_size (figure, 480, 420, NULL);
  return g_steal_pointer (&figure);
}
