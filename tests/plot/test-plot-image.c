/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "tests/plot/picture.h"

#define BLUE 0x08306b /* the last one of the blues */

static GTorchTensor *
matrix (const gdouble *values, gint64 rows, gint64 columns)
{
  g_autoptr (GError) error = NULL;
  const gint64 shape[] = { rows, columns };
  GTorchTensor *made = gtorch_tensor_new_from_doubles (values, rows * columns, shape, 2,
                                                       GTORCH_DTYPE_FLOAT64, NULL, &error);

  g_assert_no_error (error);
  return made;
}

static void
test_odd_ranges_are_refused (void)
{
  static const gdouble ranges[][2] = { { -INFINITY, INFINITY }, { 5, 1 }, { NAN, INFINITY } };
  g_autoptr (GTorchPlotImage) image = gtorch_plot_image_new ();
  gdouble low, high;

  g_assert_true (gtorch_plot_image_set_range (image, 2, 2, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (ranges); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_plot_image_set_range (image, ranges[i][0], ranges[i][1], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "plot_image_set_range: from "));
    }
  gtorch_plot_image_get_range (image, &low, &high);
  g_assert_cmpfloat (low, ==, 2);
  g_assert_cmpfloat (high, ==, 2);
  g_assert_true (gtorch_plot_image_set_range (image, NAN, 7, NULL));
}

static void
test_names_are_as_many_as_rows (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotImage) image = gtorch_plot_image_new ();
  g_autoptr (GTorchTensor) pixels = matrix ((const gdouble[]){ 1, 2, 3, 4, 5, 6 }, 2, 3);
  g_autoptr (GTorchTensor) other = gtorch_tensor_t (pixels, &error);
  const gchar *const two[] = { "a", "b", NULL };

  g_assert_true (gtorch_plot_image_set_row_names (image, two, &error));
  g_assert_false (gtorch_plot_image_set_pixels (image, other, &error));
  g_assert_cmpstr (error->message, ==,
                   "plot_image_set_pixels: the number of names is 2, and that of rows 3");
  g_clear_error (&error);
  g_assert_true (gtorch_plot_image_set_pixels (image, pixels, &error));
  g_assert_false (gtorch_plot_image_set_column_names (image, two, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "plot_image_set_column_names: the number of names is 2, and that of columns 3");
  g_assert_null (gtorch_plot_image_get_column_names (image));
  g_assert_true (gtorch_plot_image_set_row_names (image, NULL, NULL));
  g_assert_true (gtorch_plot_image_set_pixels (image, other, NULL));
}

/* Nine columns from 1 to 10; the first one is 0.3 of the axis. */
static void
test_pixels_are_on_a_logarithmic_axis (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) pixels = matrix ((const gdouble[]){ 1, 0, 0, 0, 0, 0, 0, 0, 0 }, 1, 9);
  GTorchPlotImage *image = gtorch_plot_axes_add_image (axes_of (figure), pixels, NULL);
  g_auto (Picture) picture = { NULL };
  cairo_rectangle_int_t all, first;

  gtorch_plot_image_set_colormap (image, GTORCH_PLOT_COLORMAP_BLUES);
  g_assert_true (gtorch_plot_image_set_extent (image, 1, 10, 0, 1, NULL));
  gtorch_plot_axes_set_x_scale (axes_of (figure), GTORCH_PLOT_SCALE_LOG, NULL);
  picture = draw (figure, 400, 300);
  g_assert_true (find_color (&picture, BLUE, &first));
  g_assert_true (find_color (&picture, 0xf7fbff, &all));
  g_assert_cmpfloat_with_epsilon (first.width / (gdouble) (first.width + all.width), log10 (2),
                                  0.02);
}

static void
test_counts_have_all_digits (void)
{
  GBytes *files[2];

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) counts = matrix ((const gdouble[]){ 123456789 + i, 0, 0, 1 }, 2, 2);
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_confusion_matrix (counts, NULL, NULL);
      GTorchPlotAxes *axes = axes_of (figure);
      g_autoptr (GTorchPlotImage) image =
          g_list_model_get_item (gtorch_plot_axes_get_items (axes), 0);

      gtorch_plot_image_set_show_scale (image, FALSE);
      gtorch_plot_image_set_range (image, 0, 1, NULL);
      files[i] = gtorch_plot_figure_to_bytes (figure, GTORCH_PLOT_FORMAT_PNG, NULL);
    }
  g_assert_false (g_bytes_equal (files[0], files[1]));
  g_bytes_unref (files[0]);
  g_bytes_unref (files[1]);
}

static void
test_what_is_no_count_is_refused (void)
{
  static const gdouble bad[] = { -3, NAN, INFINITY };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) counts = matrix ((const gdouble[]){ 1, 2, bad[i], 4 }, 2, 2);

      g_assert_null (gtorch_plot_confusion_matrix (counts, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "in row 1 and column 0 is no count"));
    }
}

static void
test_long_names_leave_room (void)
{
  const gchar *const names[] = { "a name of twenty let",
                                 "a name that is much longer than all of the room there is for it",
                                 NULL };
  g_autoptr (GTorchTensor) counts = matrix ((const gdouble[]){ 9, 9, 9, 9 }, 2, 2);
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_confusion_matrix (counts, names, NULL);
  g_auto (Picture) picture = draw (figure, 480, 420);
  cairo_rectangle_int_t place;

  g_assert_true (find_color (&picture, BLUE, &place));
  g_assert_cmpint (place.height, >, 150);
}

/* 0, 1 and 2 at both sides: six glyphs. */
static void
test_rows_have_whole_numbers (void)
{
  g_autoptr (GTorchTensor) pixels = matrix ((const gdouble[]){ 1, 2, 3, 4, 5, 6, 7, 8, 9 }, 3, 3);
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GBytes) svg = NULL;
  g_autofree gchar *text = NULL;
  guint n = 0;

  g_assert_nonnull (gtorch_plot_axes_add_image (axes_of (figure), pixels, NULL));
  svg = gtorch_plot_figure_to_bytes (figure, GTORCH_PLOT_FORMAT_SVG, NULL);
  text = g_strndup (g_bytes_get_data (svg, NULL), g_bytes_get_size (svg));
  for (const gchar *at = text; (at = strstr (at, "<use xlink:href=\"#glyph")) != NULL; at++)
    n++;
  g_assert_cmpuint (n, ==, 6);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchPlot/Image/odd_ranges_are_refused", test_odd_ranges_are_refused);
  g_test_add_func ("/GTorchPlot/Image/names_are_as_many_as_rows", test_names_are_as_many_as_rows);
  g_test_add_func ("/GTorchPlot/Image/pixels_are_on_a_logarithmic_axis",
                   test_pixels_are_on_a_logarithmic_axis);
  g_test_add_func ("/GTorchPlot/Image/counts_have_all_digits", test_counts_have_all_digits);
  g_test_add_func ("/GTorchPlot/Image/what_is_no_count_is_refused",
                   test_what_is_no_count_is_refused);
  g_test_add_func ("/GTorchPlot/Image/long_names_leave_room", test_long_names_leave_room);
  g_test_add_func ("/GTorchPlot/Image/rows_have_whole_numbers", test_rows_have_whole_numbers);
  return g_test_run ();
}
