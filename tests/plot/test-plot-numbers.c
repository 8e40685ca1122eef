/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Numbers near the ends of doubles, and near each other. Ticks are compiled in: pictures have no texts. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "tests/plot/picture.h"

#include "gtorch-plot/gtorch-plot-private.h"

static gboolean
has_line_at (const Picture *picture, gint x, gint y)
{
  for (gint dy = -4; dy <= 4; dy++)
    if ((picture->pixels[(y + dy) * picture->width + x] & 0xffffff) != GROUND)
      return TRUE;
  return FALSE;
}

static void
test_lines_between_any_two_numbers_are_straight (void)
{
  static const gdouble rows[][2] = {
    { 1e308, -1e308 },
    { G_MAXDOUBLE, -G_MAXDOUBLE },
    { 1.7e308, 1.6e308 },
    { 0x1p-1074, 0 },
    { 1e-310, -1e-310 },
    { 1e300, 0 },
    { 1e-290, 0 },
    { 1, -1 },
    { 1796043811, 1796043809 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_autoptr (GTorchTensor) y = tensor (rows[i], 2);
      g_auto (Picture) picture = { NULL };
      cairo_rectangle_int_t place;

      gtorch_plot_axes_set_show_grid (axes_of (figure), FALSE);
      g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, NULL));
      picture = draw (figure, 400, 300);
      g_assert_true (find_color (&picture, FIRST, &place));
      g_test_message ("%g to %g: %d by %d", rows[i][0], rows[i][1], place.width, place.height);
      g_assert_cmpint (place.width, >, 240);
      g_assert_cmpint (place.height, >, 200);
      for (gint x = 20; x < place.width - 10; x += 20)
        g_assert_true (
            has_line_at (&picture, place.x + x, place.y + x * place.height / place.width));
    }
}

/* On a logarithmic axis, from the least positive number on. */
static void
test_all_decades_have_a_place (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchTensor) y = TENSOR (0x1p-1074, G_MAXDOUBLE);
  g_auto (Picture) picture = { NULL };
  cairo_rectangle_int_t place;

  g_assert_true (gtorch_plot_axes_set_y_scale (axes_of (figure), GTORCH_PLOT_SCALE_LOG, NULL));
  g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, NULL));
  picture = draw (figure, 400, 300);
  g_assert_true (find_color (&picture, FIRST, &place));
  g_assert_cmpint (place.width, >, 240);
  g_assert_cmpint (place.height, >, 200);
}

static void
test_histograms_of_any_numbers (void)
{
  static const gdouble rows[][2] = { { 1e308, -1e308 }, { 0x1p-1074, 0 }, { 1e300, 0 } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GTorchPlotHistogram) histogram = gtorch_plot_histogram_new (NULL);
      g_autoptr (GTorchTensor) values = tensor (rows[i], 2);

      g_assert_true (gtorch_plot_histogram_set_values (histogram, values, 3, NULL));
      g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 0), ==, 1);
      g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 1), ==, 0);
      g_assert_cmpfloat (gtorch_plot_histogram_get_count (histogram, 2), ==, 1);
    }
}

/* --- ticks --- */

static void
assert_ticks (gdouble low, gdouble high, gboolean is_log, const gchar *expected)
{
  const GTorchPlotAxis axis = { low, high, .is_log = is_log, .log_low = is_log ? log10 (low) : 0,
                                .log_high = is_log ? log10 (high) : 0 };
  g_autoptr (GArray) ticks = gtorch_plot_ticks_new (&axis, 5);
  GString *text = g_string_new (NULL);

  g_assert_cmpuint (ticks->len, <, 300);
  for (guint i = 0; i < ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (ticks, GTorchPlotTick, i);
      const gdouble place = gtorch_plot_axis_place (&axis, tick->value);

      g_assert_true (isfinite (tick->value) && place >= -1e-6 && place <= 1 + 1e-6);
      if (tick->label != NULL)
        g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "", tick->label);
    }
  g_assert_cmpstr (text->str, ==, expected);
  g_string_free (text, TRUE);
}

static void
test_ticks_of_any_axis_have_numbers (void)
{
  assert_ticks (0, 10, FALSE, "0 2 4 6 8 10");
  assert_ticks (0, 1e308, FALSE, "0 2×10³⁰⁷ 4×10³⁰⁷ 6×10³⁰⁷ 8×10³⁰⁷ 10³⁰⁸");
  assert_ticks (0, 1.2e8, FALSE, "0 5×10⁷ 10⁸");
  assert_ticks (0, 1.5e8, FALSE, "0 5×10⁷ 10⁸ 1.5×10⁸");
  assert_ticks (-1e308, 1e308, FALSE, "−10³⁰⁸ −5×10³⁰⁷ 0 5×10³⁰⁷ 10³⁰⁸");
  assert_ticks (-G_MAXDOUBLE, G_MAXDOUBLE, FALSE, "−10³⁰⁸ 0 10³⁰⁸");
  assert_ticks (0, 0x1p-1074, FALSE, "0 5×10⁻³²⁴");
  assert_ticks (0x1p-1074, 0x1p-1073, FALSE, "4.9×10⁻³²⁴ 9.9×10⁻³²⁴");
  assert_ticks (0, 2e-310, FALSE, "0 0.5×10⁻³¹⁰ 1.0×10⁻³¹⁰ 1.5×10⁻³¹⁰ 2.0×10⁻³¹⁰");
  assert_ticks (0x1p-1074, 1e308, TRUE, "10⁻¹⁹⁷ 10⁻⁷⁰ 10⁵⁷ 10¹⁸⁴");
}

static guint
count_labels (const GTorchPlotAxis *axis, gdouble n)
{
  g_autoptr (GArray) ticks = gtorch_plot_ticks_new (axis, n);
  guint n_labels = 0;

  g_assert_cmpuint (ticks->len, <, 600);
  for (guint i = 0; i < ticks->len; i++)
    {
      const GTorchPlotTick *tick = &g_array_index (ticks, GTorchPlotTick, i);

      g_assert_true (isfinite (tick->value));
      n_labels += tick->label != NULL;
    }
  return n_labels;
}

static void
test_every_axis_has_a_number (void)
{
  static const gdouble counts[] = { 2, 5, 20, 300 };

  for (gint exponent = -323; exponent <= 308; exponent++)
    for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
      {
        const gdouble power = pow (10, exponent), small = power / 1e3;
        const GTorchPlotAxis axes[] = { { 0, power },
                                        { -power, power },
                                        { power - small, power },
                                        { -power, 1 },
                                        { nextafter (power, 0), power } };

        for (guint j = 0; j < G_N_ELEMENTS (axes); j++)
          if (axes[j].low < axes[j].high)
            g_assert_cmpuint (count_labels (&axes[j], counts[i]), >, 0);
        if (power > 1)
          {
            const GTorchPlotAxis axis = { 1 / power, power, .is_log = TRUE, .log_low = -exponent,
                                          .log_high = exponent };

            g_assert_cmpuint (count_labels (&axis, counts[i]), >, 0);
          }
      }
}

static void
test_numbers_are_not_ten_times_a_power (void)
{
  static const struct
  {
    gdouble number;
    const gchar *text;
  } rows[] = { { 1e-20, "10⁻²⁰" },      { (gfloat) 1e-20, "10⁻²⁰" },
               { -9.99e-21, "−10⁻²⁰" }, { 9.94e-21, "9.9×10⁻²¹" },
               { 1e308, "10³⁰⁸" },      { -1.5e7, "−1.5×10⁷" },
               { 0.0009999, "10⁻³" },   { 1e7, "10⁷" } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree gchar *text = gtorch_plot_format_number (rows[i].number);

      g_assert_cmpstr (text, ==, rows[i].text);
    }
}

/* --- images --- */

static GTorchPlotImage *
add_row (GTorchPlotFigure *figure, const gdouble *numbers, guint n)
{
  const gint64 shape[] = { 1, n };
  g_autoptr (GTorchTensor) row =
      gtorch_tensor_new_from_doubles (numbers, n, shape, 2, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  GTorchPlotImage *image = gtorch_plot_axes_add_image (axes_of (figure), row, NULL);

  g_assert_nonnull (image);
  gtorch_plot_image_set_colormap (image, GTORCH_PLOT_COLORMAP_GRAY);
  return image;
}

/* Black at the least one, gray in the middle, white at the greatest one. */
static void
test_pixels_of_any_numbers_have_colors (void)
{
  static const gdouble rows[][3] = { { 1796043809, 1796043810, 1796043811 },
                                     { -1e300, 0, 1e300 },
                                     { -G_MAXDOUBLE, 0, G_MAXDOUBLE },
                                     { 0, 0x1p-1073, 0x1p-1072 } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_auto (Picture) picture = { NULL };

      add_row (figure, rows[i], 3);
      gtorch_plot_axes_set_show_ticks (axes_of (figure), FALSE);
      picture = draw (figure, 320, 160);
      g_assert_cmphex (picture.pixels[80 * 320 + 60] & 0xffffff, ==, 0x000000);
      g_assert_cmphex (picture.pixels[80 * 320 + 160] & 0xff, >, 0x7c);
      g_assert_cmphex (picture.pixels[80 * 320 + 160] & 0xff, <, 0x83);
      g_assert_cmphex (picture.pixels[80 * 320 + 260] & 0xffffff, ==, 0xffffff);
    }
}

static void
test_equal_pixels_of_any_size_have_a_color (void)
{
  static const gdouble numbers[] = { 0, 1e20, 1e300, G_MAXDOUBLE };

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_auto (Picture) picture = { NULL };

      gtorch_plot_image_set_colormap (add_row (figure, &numbers[i], 1),
                                      GTORCH_PLOT_COLORMAP_VIRIDIS);
      picture = draw (figure, 200, 200);
      g_assert_cmphex (picture.pixels[100 * 200 + 100] & 0xffffff, !=, GROUND);
    }
}

/* The first one of 2000 pixels is wider than the axis by far. */
static void
test_images_beyond_the_axis_keep_their_place (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autofree gdouble *numbers = g_new (gdouble, 2000);
  GTorchPlotImage *image;
  g_auto (Picture) picture = { NULL };

  for (guint i = 0; i < 2000; i++)
    numbers[i] = i == 0 ? 1 : 0;
  image = add_row (figure, numbers, 2000);
  gtorch_plot_image_set_colormap (image, GTORCH_PLOT_COLORMAP_BLUES);
  g_assert_true (gtorch_plot_image_set_extent (image, 0, 1e300, 0, 1, NULL)
                 && gtorch_plot_axes_set_x_limits (axes_of (figure), 0, 1, NULL));
  picture = draw (figure, 300, 200);
  g_assert_cmpuint (count_color (&picture, 0x08306b), >, 200 * 100);
}

/* draw () looks at the state of the context. */
static void
test_context_of_the_caller_stays_whole (void)
{
  static const gdouble sizes[] = { 1e-300, 1e-3, 5, 1e6, 1e7, 1e9, 1e300, INFINITY, NAN, -1 };
  static const gdouble extents[] = { 1e-300, 1e-9, 1e-3, 1, 1e9, 1e300 };
  static const gdouble numbers[] = { 1, 2, 3 };

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_RGB24, 60, 60);
      cairo_t *cr = cairo_create (surface);

      add_row (figure, numbers, 3);
      gtorch_plot_figure_draw (figure, cr, sizes[i], sizes[i]);
      gtorch_plot_figure_draw (figure, cr, 50, sizes[i]);
      gtorch_plot_figure_draw_over (figure, cr, sizes[i], 50, GTORCH_PLOT_SCHEME_DARK);
      g_assert_cmpint (cairo_status (cr), ==, CAIRO_STATUS_SUCCESS);
      cairo_destroy (cr);
      cairo_surface_destroy (surface);
    }
  for (guint i = 0; i < G_N_ELEMENTS (extents); i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_autoptr (GTorchTensor) y = TENSOR (0, 1);
      g_auto (Picture) picture = { NULL };
      GTorchPlotImage *image = add_row (figure, numbers, 3);

      g_assert_true (gtorch_plot_image_set_extent (image, 0, extents[i], 0, extents[i], NULL));
      g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, NULL));
      picture = draw (figure, 200, 200);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchPlot/Line/any_two_numbers_are_straight",
                   test_lines_between_any_two_numbers_are_straight);
  g_test_add_func ("/GTorchPlot/Axes/all_decades_have_a_place", test_all_decades_have_a_place);
  g_test_add_func ("/GTorchPlot/Histogram/any_numbers", test_histograms_of_any_numbers);
  g_test_add_func ("/GTorchPlot/Axes/ticks_have_numbers", test_ticks_of_any_axis_have_numbers);
  g_test_add_func ("/GTorchPlot/Axes/every_one_has_a_number", test_every_axis_has_a_number);
  g_test_add_func ("/GTorchPlot/numbers_are_not_ten_times_a_power",
                   test_numbers_are_not_ten_times_a_power);
  g_test_add_func ("/GTorchPlot/Image/any_numbers_have_colors",
                   test_pixels_of_any_numbers_have_colors);
  g_test_add_func ("/GTorchPlot/Image/equal_numbers_have_a_color",
                   test_equal_pixels_of_any_size_have_a_color);
  g_test_add_func ("/GTorchPlot/Image/beyond_the_axis_keeps_its_place",
                   test_images_beyond_the_axis_keep_their_place);
  g_test_add_func ("/GTorchPlot/Figure/context_stays_whole",
                   test_context_of_the_caller_stays_whole);
  return g_test_run ();
}
