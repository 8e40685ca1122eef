/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "tests/plot/picture.h"

/* --- lines --- */

static void
test_line_goes_through_its_points (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) y = TENSOR (0, 1);
  g_auto (Picture) picture = { NULL };
  cairo_rectangle_int_t place;

  g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, &error));
  g_assert_no_error (error);
  picture = draw (figure, 300, 200);
  g_assert_true (find_color (&picture, FIRST, &place));
  /* from the left below to the right above, over nearly all of the picture */
  g_assert_cmpint (place.width, >, 220);
  g_assert_cmpint (place.height, >, 130);
  for (gint x = place.x + 10; x < place.x + place.width - 10; x += 20)
    {
      const gint y_there = place.y + place.height - (x - place.x) * place.height / place.width;
      gboolean is_there = FALSE;

      for (gint dy = -4; dy <= 4; dy++)
        is_there |= (picture.pixels[(y_there + dy) * 300 + x] & 0xffffff) != GROUND;
      g_assert_true (is_there);
    }
}

static void
test_nan_and_infinity_are_gaps (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = axes_of (figure);
  g_autoptr (GTorchTensor) y = TENSOR (1, 1, 1, NAN, INFINITY, -INFINITY, 1, 1, 1);
  g_auto (Picture) picture = { NULL };
  guint n_gaps = 0;
  cairo_rectangle_int_t place;

  gtorch_plot_axes_set_show_grid (axes, FALSE);
  g_assert_nonnull (gtorch_plot_axes_add_line (axes, NULL, y, NULL, NULL));
  picture = draw (figure, 400, 200);
  g_assert_true (find_color (&picture, FIRST, &place));
  for (gint x = place.x; x < place.x + place.width; x++)
    {
      gboolean is_there = FALSE;

      for (gint row = place.y; row < place.y + place.height; row++)
        is_there |= (picture.pixels[row * 400 + x] & 0xffffff) != GROUND;
      n_gaps += !is_there;
    }
  /* four of eight intervals, less the ends of the lines */
  g_assert_cmpuint (n_gaps, >, place.width / 2 - 10);
  g_assert_cmpuint (n_gaps, <, place.width / 2 + 10);
}

static void
test_million_points_keep_their_peaks (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) y =
      gtorch_zeros (GTORCH_SHAPE (1000000), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchTensor) peak = gtorch_tensor_narrow (y, 0, 654321, 1, &error);
  g_auto (Picture) picture = { NULL };
  cairo_rectangle_int_t place;
  gint64 start;

  g_assert_no_error (error);
  g_assert_nonnull (gtorch_tensor_fill_inplace (peak, 1, &error));
  g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, &error));
  picture = draw (figure, 600, 300);
  picture_clear (&picture);
  start = g_get_monotonic_time ();
  picture = draw (figure, 600, 300);
  g_test_message ("a million points take %.1f ms", (g_get_monotonic_time () - start) / 1000.0);
  g_assert_true (find_color (&picture, FIRST, &place));
  g_assert_cmpint (place.height, >, 200);
}

static void
test_points_are_appended_and_limited (void)
{
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new ("loss");
  gdouble x, y;

  for (guint i = 0; i < 10; i++)
    gtorch_plot_line_append (line, i, i * i);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 10);
  gtorch_plot_line_set_max_points (line, 3);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 3);
  gtorch_plot_line_append (line, 10, 100);
  g_assert_true (gtorch_plot_line_get_point (line, 0, &x, &y));
  g_assert_cmpfloat (x, ==, 8);
  g_assert_true (gtorch_plot_line_get_point (line, 2, &x, &y));
  g_assert_cmpfloat (y, ==, 100);
  g_assert_false (gtorch_plot_line_get_point (line, 3, &x, &y));
  g_assert_true (isnan (x) && isnan (y));
  gtorch_plot_line_clear (line);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 0);
}

static void
test_any_dtype_and_strides_are_read (void)
{
  g_autoptr (GError) error = NULL;
  const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16, GTORCH_DTYPE_INT8,
                                 GTORCH_DTYPE_INT64, GTORCH_DTYPE_BOOL };
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  gdouble x, y;

  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++)
    {
      g_autoptr (GTorchTensor) numbers = TENSOR (0, 5, 1, 5, 0, 5);
      g_autoptr (GTorchTensor) pairs = gtorch_tensor_reshape (numbers, GTORCH_SHAPE (3, 2), &error);
      g_autoptr (GTorchTensor) strided = gtorch_tensor_select (pairs, 1, 0, &error);
      g_autoptr (GTorchTensor) converted = gtorch_tensor_to_dtype (strided, dtypes[i], &error);

      g_assert_no_error (error);
      g_assert_true (gtorch_plot_line_set_values (line, NULL, converted, &error));
      g_assert_true (gtorch_plot_line_set_values (line, NULL, strided, &error));
      g_assert_true (gtorch_plot_line_get_point (line, 1, &x, &y));
      g_assert_cmpfloat (x, ==, 1);
      g_assert_cmpfloat (y, ==, 1);
    }
}

static void
test_bad_lines_are_refused (void)
{
  static const struct
  {
    gint64 x, y, y2;
    GTorchDType dtype;
    gint code;
    const gchar *message;
  } bad[] = {
    { -1, 2, 3, GTORCH_DTYPE_FLOAT32, GTORCH_ERROR_SHAPE,
      "plot_line_set_values: y has the shape [2, 3], not one dimension" },
    { 4, 5, 0, GTORCH_DTYPE_FLOAT32, GTORCH_ERROR_SHAPE,
      "plot_line_set_values: x has the shape [4] and y the shape [5], which must be the same" },
    { -1, 5, 0, GTORCH_DTYPE_COMPLEX64, GTORCH_ERROR_DTYPE,
      "plot_line_set_values: y is of complex64, and complex numbers have no place on an axis" },
  };
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);

  gtorch_plot_line_append (line, 1, 2);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      const gint64 shape[] = { bad[i].y, bad[i].y2 };
      g_autoptr (GTorchTensor) x =
          bad[i].x >= 0 ? gtorch_zeros (&bad[i].x, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL) : NULL;
      g_autoptr (GTorchTensor) y =
          gtorch_zeros (shape, bad[i].y2 > 0 ? 2 : 1, bad[i].dtype, NULL, NULL);

      g_assert_false (gtorch_plot_line_set_values (line, x, y, &error));
      g_assert_error (error, GTORCH_ERROR, bad[i].code);
      g_assert_cmpstr (error->message, ==, bad[i].message);
      g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 1);
    }
}

static void
test_released_tensor_is_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  g_autoptr (GTorchTensor) y = TENSOR (1, 2);

  gtorch_tensor_release (y);
  g_assert_false (gtorch_plot_line_set_values (line, NULL, y, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_assert_true (g_str_has_prefix (error->message, "plot_line_set_values: "));
}

/* --- asynchronous reads --- */

static void
on_line (GObject *object, GAsyncResult *result, gpointer data)
{
  GError **error = data;

  if (gtorch_plot_line_set_values_finish (GTORCH_PLOT_LINE (object), result, error))
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "done");
}

static void
wait_for (GError **error)
{
  const gint64 end = g_get_monotonic_time () + 20 * G_TIME_SPAN_SECOND;

  while (*error == NULL && g_get_monotonic_time () < end)
    g_main_context_iteration (NULL, FALSE);
  g_assert_nonnull (*error);
}

static void
test_async_read_sets_the_points (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  g_autoptr (GTorchTensor) y = TENSOR (3, 4, 5);
  gdouble px, py;

  gtorch_plot_line_set_values_async (line, y, y, NULL, on_line, &error);
  wait_for (&error);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
  g_assert_true (gtorch_plot_line_get_point (line, 2, &px, &py));
  g_assert_cmpfloat (px, ==, 5);
  g_assert_cmpfloat (py, ==, 5);
}

static void
test_async_read_is_cancelled_and_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  g_autoptr (GTorchTensor) y = TENSOR (3, 4, 5);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_unsqueeze (y, 0, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  gtorch_plot_line_set_values_async (line, NULL, y, cancellable, on_line, &error);
  g_cancellable_cancel (cancellable);
  wait_for (&error);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  gtorch_plot_line_set_values_async (line, NULL, matrix, NULL, on_line, &error);
  wait_for (&error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 0);
}

static void
test_later_read_counts (void)
{
  g_autoptr (GError) first = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  g_autoptr (GTorchTensor) three = TENSOR (3, 4, 5);
  g_autoptr (GTorchTensor) two = TENSOR (1, 2);

  gtorch_plot_line_set_values_async (line, NULL, three, NULL, on_line, &first);
  g_assert_true (gtorch_plot_line_set_values (line, NULL, two, &error));
  wait_for (&first);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 2);
}

/* --- histograms --- */

static void
test_histogram_counts (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotHistogram) histogram = gtorch_plot_histogram_new (NULL);
  g_autoptr (GTorchTensor) values = TENSOR (0, 0.5, 1, 1.5, 2, 4, NAN, INFINITY);
  gdouble low, high;

  g_assert_true (gtorch_plot_histogram_set_values (histogram, values, 4, &error));
  g_assert_cmpuint (gtorch_plot_histogram_get_n_bins (histogram), ==, 4);
  g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 0), ==, 2);
  g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 1), ==, 2);
  g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 2), ==, 1);
  g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 3), ==, 1);
  g_assert_true (isnan (gtorch_plot_histogram_get_count (histogram, 4)));
  g_assert_cmpuint (gtorch_plot_histogram_get_n_ignored (histogram), ==, 2);
  gtorch_plot_histogram_get_bounds (histogram, &low, &high);
  g_assert_cmpfloat (low, ==, 0);
  g_assert_cmpfloat (high, ==, 4);
}

static void
test_histogram_takes_odd_numbers (void)
{
  static const gdouble rows[][3] = {
    { 7, 7, 7 },
    { NAN, NAN, NAN },
    { -G_MAXDOUBLE, 0, G_MAXDOUBLE },
    { G_MAXDOUBLE, G_MAXDOUBLE, G_MAXDOUBLE },
    { G_MINDOUBLE, 0, -G_MINDOUBLE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_autoptr (GTorchTensor) values = tensor (rows[i], 3);
      GTorchPlotHistogram *histogram =
          gtorch_plot_axes_add_histogram (axes_of (figure), values, 0, NULL, &error);
      gdouble sum = 0;

      g_assert_no_error (error);
      for (guint bin = 0; bin < gtorch_plot_histogram_get_n_bins (histogram); bin++)
        sum += gtorch_plot_histogram_get_count (histogram, bin);
      g_assert_cmpfloat (sum + gtorch_plot_histogram_get_n_ignored (histogram), ==, 3);
      for (guint scale = 0; scale < 4; scale++)
        {
          g_auto (Picture) picture = { NULL };

          gtorch_plot_axes_set_x_scale (axes_of (figure), (GTorchPlotScale) (scale % 2), NULL);
          gtorch_plot_axes_set_y_scale (axes_of (figure), (GTorchPlotScale) (scale / 2), NULL);
          picture = draw (figure, 200, 150);
        }
    }
}

static void
test_bad_histograms_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotHistogram) histogram = gtorch_plot_histogram_new (NULL);
  g_autoptr (GTorchTensor) values = TENSOR (1, 2);
  const gdouble counts[] = { 1, NAN };

  g_assert_false (gtorch_plot_histogram_set_values (histogram, values, 1000000, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "plot_histogram_set_values: 1000000 bins are more than 100000");
  g_clear_error (&error);
  g_assert_false (gtorch_plot_histogram_set_counts (histogram, 2, 1, counts, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_plot_histogram_set_counts (histogram, 0, 1, counts, 2, &error));
  g_assert_cmpstr (error->message, ==,
                   "plot_histogram_set_counts: count 1 is nan, and not a finite number");
  g_assert_true (gtorch_plot_histogram_set_counts (histogram, 0, 1, counts, 1, NULL));
  g_assert_cmpuint (gtorch_plot_histogram_get_n_bins (histogram), ==, 1);
}

/* --- images --- */

static void
test_colors_of_pixels_are_drawn (void)
{
  static const gint64 shapes[][3] = { { 3, 2, 2 }, { 2, 2, 3 } };

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (guint is_float = 0; is_float < 2; is_float++)
      {
        /* red, green; blue, white */
        static const gdouble first[] = { 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1 };
        static const gdouble last[] = { 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1 };
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchPlotFigure) figure = NULL;
        g_autoptr (GTorchTensor) ones =
            gtorch_tensor_new_from_doubles (i == 0 ? first : last, 12, shapes[i], 3,
                                            GTORCH_DTYPE_FLOAT32, NULL, &error);
        g_autoptr (GTorchTensor) bytes = gtorch_tensor_mul_scalar (ones, 255, &error);
        g_autoptr (GTorchTensor) pixels =
            is_float ? g_object_ref (ones)
                     : gtorch_tensor_to_dtype (bytes, GTORCH_DTYPE_UINT8, &error);
        g_auto (Picture) picture = { NULL };
        cairo_rectangle_int_t red, green, blue;

        g_assert_no_error (error);
        figure = gtorch_plot_image (pixels, &error);
        g_assert_no_error (error);
        picture = draw (figure, 300, 200);
        g_assert_true (find_color (&picture, 0xff0000, &red));
        g_assert_true (find_color (&picture, 0x00ff00, &green));
        g_assert_true (find_color (&picture, 0x0000ff, &blue));
        g_assert_cmpint (ABS (red.width - red.height), <=, 2); /* pixels are squares */
        g_assert_cmpint (red.x, <, green.x);                   /* the first row is above */
        g_assert_cmpint (red.y, <, blue.y);
      }
}

static void
test_numbers_become_colors_of_the_map (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = NULL;
  g_autoptr (GTorchTensor) row = TENSOR (-3, NAN, 5, INFINITY);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (row, GTORCH_SHAPE (2, 2), &error);
  g_autoptr (GTorchPlotImage) image = NULL;
  g_auto (Picture) picture = { NULL };
  gdouble low, high;

  figure = gtorch_plot_image (matrix, &error);
  g_assert_no_error (error);
  image = g_list_model_get_item (gtorch_plot_axes_get_items (axes_of (figure)), 0);
  gtorch_plot_image_get_range (image, &low, &high);
  g_assert_cmpfloat (low, ==, -3);
  g_assert_cmpfloat (high, ==, 5);
  picture = draw (figure, 300, 200);
  g_assert_cmpuint (count_color (&picture, 0x440154), >, 1000); /* the first one of viridis */
  g_assert_cmpuint (count_color (&picture, 0xfde725), >, 2000); /* the last one, of infinity, too */
}

static void
test_empty_and_odd_images (void)
{
  static const gint64 shapes[][3] = { { 0, 5, -1 }, { 5, 0, -1 }, { 3, 0, 4 },
                                      { 1, 1, -1 }, { 1, 3, 3 },  { 4, 1, 1 } };

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) pixels =
          gtorch_zeros (shapes[i], shapes[i][2] < 0 ? 2 : 3, GTORCH_DTYPE_FLOAT32, NULL, &error);
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_image (pixels, &error);
      g_auto (Picture) picture = { NULL };

      g_assert_no_error (error);
      picture = draw (figure, 100, 100);
    }
}

static void
test_bad_images_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) pixels =
      gtorch_zeros (GTORCH_SHAPE (2, 3, 5), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchTensor) wide =
      gtorch_zeros (GTORCH_SHAPE (1, 40000), GTORCH_DTYPE_UINT8, NULL, &error);
  g_autoptr (GTorchPlotImage) image = gtorch_plot_image_new ();

  g_assert_null (gtorch_plot_image (pixels, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "plot_image_set_pixels: the shape [2, 3, 5] is not [height, width], [1, 3 or 4, "
                   "height, width] or "
                   "[height, width, 3 or 4]");
  g_clear_error (&error);
  g_assert_false (gtorch_plot_image_set_pixels (image, wide, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_false (gtorch_plot_image_set_extent (image, 0, 1, 1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
test_lines_want_as_many_labels (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) y = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, &error);
  GTorchTensor *lines[] = { y, y };
  const gchar *const labels[] = { "a", NULL };

  g_assert_null (gtorch_plot_lines (lines, 2, labels, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "plot_lines: the number of labels is 1, and that of lines 2");
}

static void
test_confusion_matrix_wants_as_many_names (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) counts =
      gtorch_ones (GTORCH_SHAPE (3, 3), GTORCH_DTYPE_INT64, NULL, &error);
  g_autoptr (GTorchTensor) oblong =
      gtorch_ones (GTORCH_SHAPE (3, 2), GTORCH_DTYPE_INT64, NULL, &error);
  const gchar *const names[] = { "a", "ö", NULL };
  const gchar *const three[] = { "a", "ö", "\xff", NULL };
  g_autoptr (GTorchPlotFigure) figure = NULL;
  g_auto (Picture) picture = { NULL };

  g_assert_null (gtorch_plot_confusion_matrix (counts, names, &error));
  g_assert_cmpstr (error->message, ==,
                   "plot_confusion_matrix: the number of names is 2, and that of rows 3");
  g_clear_error (&error);
  g_assert_null (gtorch_plot_confusion_matrix (oblong, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  figure = gtorch_plot_confusion_matrix (counts, three, &error); /* which is no UTF-8, but drawn */
  g_assert_no_error (error);
  picture = draw (figure, 300, 300);
  g_assert_cmpuint (count_color (&picture, 0x08306b), >, 5000); /* the last one of the blues */
}

static void
test_attention_has_axes_for_each_head (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) weights =
      gtorch_ones (GTORCH_SHAPE (5, 2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchTensor) flat =
      gtorch_ones (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_attention (weights, NULL, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_plot_figure_get_n_rows (figure), ==, 2);
  g_assert_cmpuint (gtorch_plot_figure_get_n_columns (figure), ==, 3);
  g_assert_null (gtorch_plot_attention (flat, NULL, NULL, &error));
  g_assert_cmpstr (error->message, ==,
                   "plot_attention: the shape [5] is neither [queries, keys] nor [heads, queries, "
                   "keys]");
}

/* --- axes --- */

static void
test_numbers_of_any_size_are_drawn (void)
{
  static const gdouble rows[][2] = {
    { 0, 0 },
    { 1e300, -1e300 },
    { -G_MAXDOUBLE, G_MAXDOUBLE },
    { 1e-320, 2e-320 },
    { 1e9, 1e9 + 1e-6 },
    { -1e-9, 1e-9 },
    { 123456789, 987654321 },
    { -5, -4 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    for (guint scale = 0; scale < 4; scale++)
      {
        g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
        GTorchPlotAxes *axes = axes_of (figure);
        g_autoptr (GTorchTensor) y = tensor (rows[i], 2);
        g_auto (Picture) picture = { NULL };

        gtorch_plot_axes_set_x_scale (axes, (GTorchPlotScale) (scale % 2), NULL);
        gtorch_plot_axes_set_y_scale (axes, (GTorchPlotScale) (scale / 2), NULL);
        g_assert_nonnull (gtorch_plot_axes_add_line (axes, y, y, "line", NULL));
        picture = draw (figure, 300, 200);
        g_assert_cmpuint (count_color (&picture, GROUND), >, 20000);
      }
}

static void
test_limits_are_kept_or_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = axes_of (figure);
  g_autoptr (GTorchTensor) y = TENSOR (0, 1);
  g_auto (Picture) picture = { NULL };
  cairo_rectangle_int_t place;
  gdouble low, high;

  g_assert_nonnull (gtorch_plot_axes_add_line (axes, NULL, y, NULL, NULL));
  g_assert_true (gtorch_plot_axes_set_y_limits (axes, 0, 10, &error));
  picture = draw (figure, 300, 200);
  g_assert_true (find_color (&picture, FIRST, &place));
  g_assert_cmpint (place.height, <, 30);
  g_assert_false (gtorch_plot_axes_set_y_limits (axes, 3, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "plot_axes_set_y_limits: from 3 to 2: both must be finite, or NaN for those of "
                   "the data, and "
                   "the first one less");
  gtorch_plot_axes_get_y_limits (axes, &low, &high);
  g_assert_cmpfloat (low, ==, 0);
  g_assert_cmpfloat (high, ==, 10);
}

static void
test_item_is_on_one_axes (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = axes_of (figure),
                 *other = gtorch_plot_figure_get_axes (figure, 1, 2, NULL);
  g_autoptr (GTorchPlotItem) item = GTORCH_PLOT_ITEM (gtorch_plot_line_new (NULL));

  g_assert_true (gtorch_plot_axes_add (axes, item, &error));
  g_assert_false (gtorch_plot_axes_add (other, item, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_false (gtorch_plot_axes_remove (other, item));
  g_assert_true (gtorch_plot_axes_remove (axes, item));
  g_assert_true (gtorch_plot_axes_add (other, item, NULL));
  gtorch_plot_axes_clear (other);
  g_assert_true (gtorch_plot_axes_add (axes, item, NULL));
  g_clear_object (&figure);
  gtorch_plot_line_append (GTORCH_PLOT_LINE (item), 0, 0); /* there is nobody to tell */
}

static void
count_up (guint *n)
{
  ++*n;
}

static void
test_changes_are_told (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = axes_of (figure);
  g_autoptr (GTorchTensor) y = TENSOR (0, 1);
  GTorchPlotLine *line = gtorch_plot_axes_add_line (axes, NULL, y, NULL, NULL);
  guint n = 0;

  g_signal_connect_swapped (figure, "changed", G_CALLBACK (count_up), &n);
  gtorch_plot_line_append (line, 2, 2);
  g_assert_cmpuint (n, ==, 1);
  gtorch_plot_axes_set_title (axes, "a");
  gtorch_plot_axes_set_title (axes, "a");
  g_assert_cmpuint (n, ==, 2);
  gtorch_plot_item_set_visible (GTORCH_PLOT_ITEM (line), FALSE);
  g_assert_cmpuint (n, ==, 3);
  gtorch_plot_figure_set_scheme (figure, GTORCH_PLOT_SCHEME_DARK);
  g_assert_cmpuint (n, ==, 4);
}

static void
test_colors_are_parsed_or_refused (void)
{
  static const gchar *const bad[] = { "", "#", "red", "#12345", "#1234567", "#12345g", "123456" };
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) y = TENSOR (0, 1);
  GTorchPlotLine *line = gtorch_plot_axes_add_line (axes_of (figure), NULL, y, "a", NULL);
  GTorchPlotItem *item = GTORCH_PLOT_ITEM (line);
  g_auto (Picture) picture = { NULL };

  g_assert_true (gtorch_plot_item_set_color (item, "#a0B0c0", NULL));
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_plot_item_set_color (item, bad[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
    }
  picture = draw (figure, 300, 200);
  g_assert_cmpuint (count_color (&picture, 0xa0b0c0), >, 20);
  g_assert_cmpuint (count_color (&picture, FIRST), ==, 0);
}

static void
test_tiny_figures_are_drawn (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) y = TENSOR (0, 1);

  g_assert_nonnull (
      gtorch_plot_axes_add_line (axes_of (figure), NULL, y, "a long name of a line", NULL));
  gtorch_plot_figure_get_axes (figure, 40, 40, NULL);
  for (gint size = 1; size < 60; size += 7)
    {
      g_auto (Picture) picture = draw (figure, size, size);

      g_assert_nonnull (picture.surface);
    }
}

/* --- files --- */

static void
test_figure_is_saved_by_name (void)
{
  static const struct
  {
    const gchar *name, *begin;
  } files[] = { { "a.png", "\x89PNG" }, { "a.SVG", "<?xml" }, { "a.pdf", "%PDF" } };
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) y = TENSOR (0, 1);
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-plot-XXXXXX", NULL);

  g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GFile) file = g_file_new_build_filename (folder, files[i].name, NULL);
      g_autofree gchar *contents = NULL;
      gsize length;

      g_assert_true (gtorch_plot_figure_save (figure, file, NULL, &error));
      g_assert_no_error (error);
      g_assert_true (g_file_load_contents (file, NULL, &contents, &length, NULL, &error));
      g_assert_cmpmem (contents, strlen (files[i].begin), files[i].begin, strlen (files[i].begin));
      if (i == 1) /* the line, by its colour */
        g_assert_nonnull (strstr (contents, "rgb(0%,44.705882%,69.803922%)"));
      g_assert_true (g_file_delete (file, NULL, NULL));
    }
  g_rmdir (folder);
}

static void
test_bad_files_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GFile) gif = g_file_new_for_path ("a.gif");
  g_autoptr (GFile) nowhere = g_file_new_for_path ("/proc/nowhere/a.png");

  g_assert_false (gtorch_plot_figure_save (figure, gif, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "plot_figure_save: the name “a.gif” ends neither with .png nor with .svg or "
                   ".pdf");
  g_clear_error (&error);
  g_assert_false (gtorch_plot_figure_save (figure, nowhere, NULL, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  g_assert_false (gtorch_plot_figure_set_size (figure, 0, 20, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_plot_figure_set_resolution (figure, NAN, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_plot_figure_get_axes (figure, -1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);
  g_assert_true (gtorch_plot_figure_set_size (figure, 14400, 14400, NULL)
                 && gtorch_plot_figure_set_resolution (figure, 2400, NULL));
  g_assert_null (gtorch_plot_figure_to_bytes (figure, GTORCH_PLOT_FORMAT_PNG, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
}

static void
on_saved (GObject *object, GAsyncResult *result, gpointer data)
{
  GError **error = data;

  if (gtorch_plot_figure_save_finish (GTORCH_PLOT_FIGURE (object), result, error))
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "done");
}

static void
test_figure_is_saved_asynchronously (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-plot-XXXXXX", NULL);
  g_autoptr (GFile) file = g_file_new_build_filename (folder, "a.png", NULL);

  gtorch_plot_figure_save_async (figure, file, NULL, on_saved, &error);
  wait_for (&error);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
  g_assert_true (g_file_delete (file, NULL, NULL));
  g_rmdir (folder);
}

static gboolean
cancel (gpointer data)
{
  g_cancellable_cancel (data);
  return G_SOURCE_REMOVE;
}

/* Which would take many seconds to its end. */
static void
test_saving_is_cancelled_at_once (void)
{
  static const gchar *const names[] = { "a.png", "a.svg", "a.pdf" };
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = gtorch_plot_figure_get_axes (figure, 0, 0, NULL);
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-plot-XXXXXX", NULL);
  const guint n = 100000;
  g_autofree gdouble *x = g_new (gdouble, n);
  g_autofree gdouble *y = g_new (gdouble, n);

  for (guint i = 0; i < n; i++)
    {
      x[i] = i;
      y[i] = i % 997 * (i % 31);
    }
  for (guint i = 0; i < 40; i++)
    {
      g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);

      g_assert_true (gtorch_plot_line_set_points (line, x, n, y, n, NULL));
      g_assert_true (gtorch_plot_axes_add (axes, GTORCH_PLOT_ITEM (line), NULL));
    }
  g_assert_true (gtorch_plot_figure_set_size (figure, 3000, 3000, NULL)
                 && gtorch_plot_figure_set_resolution (figure, 300, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GFile) file = g_file_new_build_filename (folder, names[i], NULL);
      gint64 start;

      gtorch_plot_figure_save_async (figure, file, cancellable, on_saved, &error);
      start = g_get_monotonic_time ();
      g_timeout_add (20, cancel, cancellable);
      wait_for (&error);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_assert_cmpint (g_get_monotonic_time () - start, <, 2 * G_USEC_PER_SEC);
      g_assert_false (g_file_query_exists (file, NULL));
    }
  g_rmdir (folder);
}

/* Two images beside and below each other, each of which fills its axes. */
static void
test_axes_are_as_large_as_their_ratios (void)
{
  const gdouble two_to_one[] = { 2, 1 };
  const gchar *const colors[] = { "#ff0000", "#00ff00", "#0000ff" };
  const guint places[][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 } };
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  cairo_rectangle_int_t found[3];
  gsize n_ratios;

  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    {
      GTorchPlotAxes *axes = gtorch_plot_figure_get_axes (figure, places[i][0], places[i][1], NULL);
      g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);

      gtorch_plot_axes_set_show_ticks (axes, FALSE);
      g_assert_true (gtorch_plot_line_set_width (line, 6, NULL));
      g_assert_true (gtorch_plot_line_set_points (line, (const gdouble[]){ 0, 1, 1 }, 3,
                                                  (const gdouble[]){ 0, 0, 1 }, 3, NULL));
      g_assert_true (gtorch_plot_item_set_color (GTORCH_PLOT_ITEM (line), colors[i], NULL));
      g_assert_true (gtorch_plot_axes_add (axes, GTORCH_PLOT_ITEM (line), NULL));
    }
  g_assert_true (gtorch_plot_figure_set_width_ratios (figure, two_to_one, 2, NULL));
  g_assert_true (gtorch_plot_figure_set_height_ratios (figure, two_to_one, 2, NULL));
  {
    g_auto (Picture) picture = draw (figure, 900, 900);

    for (guint i = 0; i < 3; i++)
      g_assert_true (find_color (&picture,
                                 i == 0   ? 0xff0000
                                 : i == 1 ? 0x00ff00
                                          : 0x0000ff,
                                 &found[i]));
  }
  g_assert_cmpfloat_with_epsilon ((gdouble) found[0].width / found[1].width, 2, 0.05);
  g_assert_cmpfloat_with_epsilon ((gdouble) found[0].height / found[2].height, 2, 0.05);
  g_assert_cmpint (ABS (found[0].width - found[2].width), <=, 1);
  g_assert_cmpint (ABS (found[0].height - found[1].height), <=, 1);
  g_assert_cmpfloat (gtorch_plot_figure_get_width_ratios (figure, &n_ratios)[0], ==, 2);
  g_assert_cmpuint (n_ratios, ==, 2);
  g_assert_true (gtorch_plot_figure_set_height_ratios (figure, NULL, 0, NULL));
  gtorch_plot_figure_get_height_ratios (figure, &n_ratios);
  g_assert_cmpuint (n_ratios, ==, 0);
}

static void
test_bad_ratios_are_refused (void)
{
  const gdouble bad[] = { 1, 0 };
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GError) error = NULL;
  gsize n_ratios;

  g_assert_false (gtorch_plot_figure_set_width_ratios (figure, bad, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "plot_figure_set_width_ratios: ratio 1 is 0: all must be from 0.001 to 1000");
  gtorch_plot_figure_get_width_ratios (figure, &n_ratios);
  g_assert_cmpuint (n_ratios, ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchPlot/Line/goes_through_its_points", test_line_goes_through_its_points);
  g_test_add_func ("/GTorchPlot/Line/nan_and_infinity_are_gaps", test_nan_and_infinity_are_gaps);
  g_test_add_func ("/GTorchPlot/Line/million_points_keep_their_peaks",
                   test_million_points_keep_their_peaks);
  g_test_add_func ("/GTorchPlot/Line/points_are_appended_and_limited",
                   test_points_are_appended_and_limited);
  g_test_add_func ("/GTorchPlot/Line/any_dtype_and_strides_are_read",
                   test_any_dtype_and_strides_are_read);
  g_test_add_func ("/GTorchPlot/Line/bad_lines_are_refused", test_bad_lines_are_refused);
  g_test_add_func ("/GTorchPlot/Line/released_tensor_is_refused", test_released_tensor_is_refused);
  g_test_add_func ("/GTorchPlot/Line/async_read_sets_the_points", test_async_read_sets_the_points);
  g_test_add_func ("/GTorchPlot/Line/async_read_is_cancelled_and_refused",
                   test_async_read_is_cancelled_and_refused);
  g_test_add_func ("/GTorchPlot/Line/later_read_counts", test_later_read_counts);
  g_test_add_func ("/GTorchPlot/Histogram/counts", test_histogram_counts);
  g_test_add_func ("/GTorchPlot/Histogram/takes_odd_numbers", test_histogram_takes_odd_numbers);
  g_test_add_func ("/GTorchPlot/Histogram/bad_ones_are_refused", test_bad_histograms_are_refused);
  g_test_add_func ("/GTorchPlot/Image/colors_of_pixels_are_drawn", test_colors_of_pixels_are_drawn);
  g_test_add_func ("/GTorchPlot/Image/numbers_become_colors_of_the_map",
                   test_numbers_become_colors_of_the_map);
  g_test_add_func ("/GTorchPlot/Image/empty_and_odd_ones", test_empty_and_odd_images);
  g_test_add_func ("/GTorchPlot/Image/bad_ones_are_refused", test_bad_images_are_refused);
  g_test_add_func ("/GTorchPlot/lines_want_as_many_labels", test_lines_want_as_many_labels);
  g_test_add_func ("/GTorchPlot/confusion_matrix_wants_as_many_names",
                   test_confusion_matrix_wants_as_many_names);
  g_test_add_func ("/GTorchPlot/attention_has_axes_for_each_head",
                   test_attention_has_axes_for_each_head);
  g_test_add_func ("/GTorchPlot/Axes/numbers_of_any_size_are_drawn",
                   test_numbers_of_any_size_are_drawn);
  g_test_add_func ("/GTorchPlot/Axes/limits_are_kept_or_refused", test_limits_are_kept_or_refused);
  g_test_add_func ("/GTorchPlot/Axes/item_is_on_one", test_item_is_on_one_axes);
  g_test_add_func ("/GTorchPlot/Figure/changes_are_told", test_changes_are_told);
  g_test_add_func ("/GTorchPlot/Figure/colors_are_parsed_or_refused",
                   test_colors_are_parsed_or_refused);
  g_test_add_func ("/GTorchPlot/Figure/tiny_ones_are_drawn", test_tiny_figures_are_drawn);
  g_test_add_func ("/GTorchPlot/Figure/axes_are_as_large_as_their_ratios",
                   test_axes_are_as_large_as_their_ratios);
  g_test_add_func ("/GTorchPlot/Figure/bad_ratios_are_refused", test_bad_ratios_are_refused);
  g_test_add_func ("/GTorchPlot/Figure/is_saved_by_name", test_figure_is_saved_by_name);
  g_test_add_func ("/GTorchPlot/Figure/bad_files_are_refused", test_bad_files_are_refused);
  g_test_add_func ("/GTorchPlot/Figure/is_saved_asynchronously",
                   test_figure_is_saved_asynchronously);
  g_test_add_func ("/GTorchPlot/Figure/saving_is_cancelled_at_once",
                   test_saving_is_cancelled_at_once);
  return g_test_run ();
}
