/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Texts that are long, or have many lines. */

#include "config.h"

#include <math.h>

#include "tests/plot/picture.h"

#define TEXT 0x24292f
#define GRID 0xe6e8eb

static void
assert_empty_border (const Picture *picture)
{
  for (gint i = 0; i < picture->height; i++)
    for (gint j = 0; j < picture->width; j++)
      if (i < 4 || i >= picture->height - 4 || j < 4 || j >= picture->width - 4)
        g_assert_cmphex (picture->pixels[i * picture->width + j] & 0xffffff, ==, GROUND);
}

static gchar *
make_lines (guint n)
{
  GString *text = g_string_new ("W");

  for (guint i = 1; i < n; i++)
    g_string_append (text, "\nW");
  return g_string_free (text, FALSE);
}

static void
test_long_texts_end_in_the_picture (void)
{
  for (guint i = 0; i < 3; i++)
    {
      g_autofree gchar *text = i == 0 ? g_strnfill (300, 'W') : make_lines (i == 1 ? 4 : 300);
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_autoptr (GTorchTensor) y = TENSOR (0, 1);
      g_auto (Picture) picture = { NULL };

      gtorch_plot_figure_set_title (figure, text);
      gtorch_plot_axes_set_title (axes_of (figure), text);
      gtorch_plot_axes_set_x_label (axes_of (figure), text);
      gtorch_plot_axes_set_y_label (axes_of (figure), text);
      g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, text, NULL));
      picture = draw (figure, 400, 400);
      if (i < 2)
        assert_empty_border (&picture);
      g_assert_cmpuint (count_color (&picture, TEXT), >, 10);
    }
}

/* Without a title and labels only the legend has the colour of texts, and without a grid only its frame has
 * that one's. */
static void
test_frame_of_the_legend_is_around_all_lines (void)
{
  static const guint rows[][3] = { { 1, 1, 1 },   { 4, 0, 0 },   { 2, 1, 3 },
                                   { 300, 0, 0 }, { 300, 2, 1 }, { 3, 200, 1 } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_autoptr (GTorchTensor) y = TENSOR (0, 1);
      g_auto (Picture) picture = { NULL };
      cairo_rectangle_int_t frame = { 0 }, text = { 0 };

      gtorch_plot_axes_set_show_grid (axes_of (figure), FALSE);
      for (guint line = 0; line < 3; line++)
        if (rows[i][line] > 0)
          {
            g_autofree gchar *label = make_lines (rows[i][line]);

            g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, label, NULL));
          }
      picture = draw (figure, 400, 300);
      g_assert_true (find_color (&picture, GRID, &frame));
      if (!find_color (&picture, TEXT, &text)) /* "… (+3)" has thin strokes */
        {
          g_assert_cmpuint (rows[i][0], ==, 300);
          g_assert_cmpuint (i, ==, 4);
          continue;
        }
      g_assert_cmpint (text.x, >, frame.x);
      g_assert_cmpint (text.y, >, frame.y);
      g_assert_cmpint (text.x + text.width, <, frame.x + frame.width);
      g_assert_cmpint (text.y + text.height, <=, frame.y + frame.height);
      g_assert_cmpint (frame.height, <, 300);
      if (i == 1)
        g_assert_cmpint (text.height, >, 36);
    }
}

/* The second line of a label or title takes room from the axes, and none of the others. */
static void
test_second_lines_have_room (void)
{
  static const gchar *const texts[] = { "W", "W\nW" };
  gint heights[2];

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_autoptr (GTorchTensor) y = TENSOR (0, 1);
      g_auto (Picture) picture = { NULL };
      cairo_rectangle_int_t place;

      gtorch_plot_figure_set_title (figure, texts[i]);
      gtorch_plot_axes_set_title (axes_of (figure), texts[i]);
      gtorch_plot_axes_set_x_label (axes_of (figure), texts[i]);
      g_assert_nonnull (gtorch_plot_axes_add_line (axes_of (figure), NULL, y, NULL, NULL));
      picture = draw (figure, 400, 300);
      g_assert_true (find_color (&picture, FIRST, &place));
      heights[i] = place.height;
    }
  g_assert_cmpint (heights[1], <, heights[0] - 30);
}

static void
test_names_have_one_line (void)
{
  const gchar *const plain[] = { "a b", "c d", NULL }, *const broken[] = { "a\nb", "c\r\nd", NULL };
  const gchar *const *names[] = { plain, broken };
  cairo_rectangle_int_t places[2];

  for (guint i = 0; i < 2; i++)
    {
      const gint64 shape[] = { 2, 2 };
      g_autoptr (GTorchTensor) counts = gtorch_zeros (shape, 2, GTORCH_DTYPE_INT64, NULL, NULL);
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_auto (Picture) picture = { NULL };

      g_assert_nonnull (
          gtorch_plot_axes_add_matrix (axes_of (figure), counts, names[i], names[i], NULL));
      picture = draw (figure, 300, 300);
      g_assert_true (find_color (&picture, 0x5d6672, &places[i]));
    }
  g_assert_cmpint (ABS (places[0].height - places[1].height), <, 6);
}

/* --- limits --- */

#define RULE ": the ends of a logarithmic axis must be positive, or NaN for those of the data"

static void
test_logarithmic_axes_have_positive_ends (void)
{
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = axes_of (figure);
  g_autoptr (GError) error = NULL;
  gdouble low, high;

  g_assert_true (gtorch_plot_axes_set_y_scale (axes, GTORCH_PLOT_SCALE_LOG, NULL));
  g_assert_false (gtorch_plot_axes_set_y_limits (axes, 0, 5, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "plot_axes_set_y_limits: from 0 to 5" RULE);
  g_clear_error (&error);
  g_assert_false (gtorch_plot_axes_set_y_limits (axes, NAN, -1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_plot_axes_get_y_limits (axes, &low, &high);
  g_assert_true (isnan (low) && isnan (high));
  g_assert_true (gtorch_plot_axes_set_y_limits (axes, 1e-3, NAN, NULL));

  g_assert_true (gtorch_plot_axes_set_x_limits (axes, -5, -1, NULL));
  g_assert_false (gtorch_plot_axes_set_x_scale (axes, GTORCH_PLOT_SCALE_LOG, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "plot_axes_set_x_scale: from -5 to -1" RULE);
  g_assert_cmpint (gtorch_plot_axes_get_x_scale (axes), ==, GTORCH_PLOT_SCALE_LINEAR);
  g_test_expect_message ("GTorchPlot", G_LOG_LEVEL_WARNING,
                         "plot_axes_set_x_scale: from -5 to -1*");
  g_object_set (axes, "x-scale", GTORCH_PLOT_SCALE_LOG, NULL);
  g_test_assert_expected_messages ();
  g_assert_true (gtorch_plot_axes_set_x_limits (axes, NAN, NAN, NULL)
                 && gtorch_plot_axes_set_x_scale (axes, GTORCH_PLOT_SCALE_LOG, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchPlot/Axes/long_texts_end_in_the_picture",
                   test_long_texts_end_in_the_picture);
  g_test_add_func ("/GTorchPlot/Axes/frame_of_the_legend_is_around_all_lines",
                   test_frame_of_the_legend_is_around_all_lines);
  g_test_add_func ("/GTorchPlot/Axes/second_lines_have_room", test_second_lines_have_room);
  g_test_add_func ("/GTorchPlot/Axes/names_have_one_line", test_names_have_one_line);
  g_test_add_func ("/GTorchPlot/Axes/logarithmic_ones_have_positive_ends",
                   test_logarithmic_axes_have_positive_ends);
  return g_test_run ();
}
