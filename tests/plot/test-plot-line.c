/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "tests/plot/picture.h"

#define N 100000

static void
test_arrays_have_lengths_of_their_own (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  const gdouble x[] = { 1, 2, 3 }, y[] = { 10, 20, 30 };
  gdouble px, py;

  g_assert_true (gtorch_plot_line_set_points (line, x, 3, y, 3, &error));
  g_assert_false (gtorch_plot_line_set_points (line, x, 1, y, 3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "plot_line_set_points: x has 1 numbers and y 3: both must have as many, at most "
                   "2147483647");
  g_clear_error (&error);
  g_assert_false (gtorch_plot_line_set_points (line, x, 3, y, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 3);
  g_assert_true (gtorch_plot_line_get_point (line, 2, &px, &py));
  g_assert_cmpfloat (px, ==, 3);
  g_assert_cmpfloat (py, ==, 30);
}

/* A figure of a line through N points, before which there were others. */
static GTorchPlotFigure *
make_curve (guint n_before, GTorchPlotScale scale)
{
  GTorchPlotFigure *figure = gtorch_plot_figure_new ();
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  g_autofree gdouble *x = g_new (gdouble, N + n_before);
  g_autofree gdouble *y = g_new (gdouble, N + n_before);

  for (guint i = 0; i < N + n_before; i++)
    {
      const gint place = (gint) i - (gint) n_before;

      x[i] = place + 1;
      y[i] = place % 20011 == 5 ? NAN : 2 + sin (place / 3000.0) + (place * 7919 % 101) / 300.0;
    }
  g_assert_true (gtorch_plot_axes_add (axes_of (figure), GTORCH_PLOT_ITEM (line), NULL));
  gtorch_plot_axes_set_x_scale (axes_of (figure), scale, NULL);
  gtorch_plot_axes_set_y_scale (axes_of (figure), scale, NULL);
  gtorch_plot_line_set_max_points (line, N);
  /* half at once, half one by one */
  g_assert_true (
      gtorch_plot_line_set_points (line, x, N / 2 + n_before, y, N / 2 + n_before, NULL));
  for (guint i = N / 2 + n_before; i < N + n_before; i++)
    gtorch_plot_line_append (line, x[i], y[i]);
  while (gtorch_plot_line_get_n_points (line) > N)
    gtorch_plot_line_set_max_points (line, N);
  return figure;
}

/* The blocks begin elsewhere, and the picture is the same. */
static void
test_blocks_do_not_show (void)
{
  for (guint scale = 0; scale < 2; scale++)
    {
      g_autoptr (GTorchPlotFigure) figure = make_curve (0, (GTorchPlotScale) scale);
      g_autoptr (GTorchPlotFigure) other = make_curve (37, (GTorchPlotScale) scale);
      g_autoptr (GTorchPlotFigure) moved = make_curve (N + 1, (GTorchPlotScale) scale);
      g_auto (Picture) picture = draw (figure, 400, 300);
      g_auto (Picture) second = draw (other, 400, 300);
      g_auto (Picture) third = draw (moved, 400, 300);

      g_assert_cmpuint (count_color (&picture, FIRST), >, 2000);
      g_assert_cmpmem (picture.pixels, 400 * 300 * 4, second.pixels, 400 * 300 * 4);
      g_assert_cmpmem (picture.pixels, 400 * 300 * 4, third.pixels, 400 * 300 * 4);
    }
}

static void
test_points_without_neighbours_are_dots (void)
{
  g_autoptr (GTorchTensor) one = TENSOR (1.5);
  g_autoptr (GTorchTensor) gaps = TENSOR (1, NAN, 2, NAN, 3, 4);

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
      g_auto (Picture) picture = { NULL };

      g_assert_nonnull (
          gtorch_plot_axes_add_line (axes_of (figure), NULL, i == 0 ? one : gaps, NULL, NULL));
      gtorch_plot_axes_set_y_limits (axes_of (figure), 0, 3.5, NULL);
      picture = draw (figure, 300, 200);
      /* a dot has some 12 whole pixels; the line from 3 to 4 leaves the picture */
      g_assert_cmpuint (count_color (&picture, FIRST), >=, i == 0 ? 8 : 24);
    }
}

static void
on_saved (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_plot_figure_save_finish (GTORCH_PLOT_FIGURE (object), result, &error));
  g_assert_no_error (error);
  *(gboolean *) data = TRUE;
}

/* Drawn in a thread, while the figure changes and is drawn, too. */
static void
test_figure_is_saved_as_it_was (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchPlotFigure) figure = make_curve (0, GTORCH_PLOT_SCALE_LINEAR);
  g_autoptr (GListModel) items = g_object_ref (gtorch_plot_axes_get_items (axes_of (figure)));
  g_autoptr (GTorchPlotLine) line = g_list_model_get_item (items, 0);
  g_autoptr (GTorchTensor) pixels =
      gtorch_ones (GTORCH_SHAPE (30, 30), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-plot-XXXXXX", NULL);
  g_autoptr (GFile) file = g_file_new_build_filename (folder, "a.png", NULL);
  g_autoptr (GBytes) before = NULL;
  g_autoptr (GBytes) saved = NULL;
  gboolean is_saved = FALSE;

  gtorch_plot_axes_set_title (axes_of (figure), "title");
  gtorch_plot_axes_add_image (gtorch_plot_figure_get_axes (figure, 0, 1, NULL), pixels, &error);
  g_assert_no_error (error);
  before = gtorch_plot_figure_to_bytes (figure, GTORCH_PLOT_FORMAT_PNG, &error);
  gtorch_plot_figure_save_async (figure, file, NULL, on_saved, &is_saved);
  for (guint i = 0; i < 20; i++)
    {
      g_auto (Picture) picture = { NULL };

      gtorch_plot_line_append (line, 2 * N + i, 3);
      picture = draw (figure, 200, 100);
    }
  gtorch_plot_axes_set_title (axes_of (figure), "another");
  while (!is_saved)
    g_main_context_iteration (NULL, TRUE);
  saved = g_file_load_bytes (file, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (g_bytes_equal (before, saved));
  g_assert_true (g_file_delete (file, NULL, NULL));
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchPlot/Line/arrays_have_lengths_of_their_own",
                   test_arrays_have_lengths_of_their_own);
  g_test_add_func ("/GTorchPlot/Line/blocks_do_not_show", test_blocks_do_not_show);
  g_test_add_func ("/GTorchPlot/Line/points_without_neighbours_are_dots",
                   test_points_without_neighbours_are_dots);
  g_test_add_func ("/GTorchPlot/Figure/is_saved_as_it_was", test_figure_is_saved_as_it_was);
  return g_test_run ();
}
