/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What ends at once: reads that are cancelled, and files that cannot be made. */

#include "config.h"

#include <glib/gstdio.h>
#include <string.h>

#include "tests/plot/picture.h"

#define SIDE  3000
#define TURNS 20 /* of the main loop, without waiting */

static void
on_line (GObject *object, GAsyncResult *result, gpointer data)
{
  gtorch_plot_line_set_values_finish (GTORCH_PLOT_LINE (object), result, data);
}

static void
on_histogram (GObject *object, GAsyncResult *result, gpointer data)
{
  gtorch_plot_histogram_set_values_finish (GTORCH_PLOT_HISTOGRAM (object), result, data);
}

static void
on_image (GObject *object, GAsyncResult *result, gpointer data)
{
  gtorch_plot_image_set_pixels_finish (GTORCH_PLOT_IMAGE (object), result, data);
}

/* The threads have a tenth of a second of work and more, and the turns take less than a millisecond. */
static void
test_cancelled_reads_end_at_once (void)
{
  g_autoptr (GTorchPlotLine) line = gtorch_plot_line_new (NULL);
  g_autoptr (GTorchPlotHistogram) histogram = gtorch_plot_histogram_new (NULL);
  g_autoptr (GTorchPlotImage) image = gtorch_plot_image_new ();

  for (guint i = 0; i < 3; i++)
    {
      const gint64 n = (gint64) SIDE * SIDE, shape[] = { SIDE, SIDE };
      GTorchTensor *numbers = i < 2 ? gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL)
                                    : gtorch_zeros (shape, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GError) error = NULL;

      if (i == 0)
        gtorch_plot_line_set_values_async (line, numbers, numbers, cancellable, on_line, &error);
      else if (i == 1)
        gtorch_plot_histogram_set_values_async (histogram, numbers, 50, cancellable, on_histogram,
                                                &error);
      else
        gtorch_plot_image_set_pixels_async (image, numbers, cancellable, on_image, &error);
      g_object_add_weak_pointer (G_OBJECT (numbers), (gpointer *) &numbers);
      gtorch_tensor_unref (numbers);
      for (guint turn = 0; turn < TURNS; turn++)
        g_main_context_iteration (NULL, FALSE);
      g_assert_no_error (error);
      g_cancellable_cancel (cancellable);
      for (guint turn = 0; turn < TURNS && error == NULL; turn++)
        g_main_context_iteration (NULL, FALSE);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      while (numbers != NULL) /* the thread gives it back */
        g_main_context_iteration (NULL, TRUE);
    }
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 0);
  g_assert_cmpuint (gtorch_plot_histogram_get_n_bins (histogram), ==, 0);
  g_assert_cmpuint (gtorch_plot_image_get_width (image), ==, 0);
}

/* An item may go while its thread reads. */
static void
test_item_is_kept_until_its_read_has_ended (void)
{
  const gint64 n = 100000;
  g_autoptr (GTorchTensor) numbers = gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  GTorchPlotLine *line = gtorch_plot_line_new (NULL);

  gtorch_plot_line_set_values_async (line, NULL, numbers, NULL, NULL, NULL);
  g_object_add_weak_pointer (G_OBJECT (line), (gpointer *) &line);
  g_object_unref (line);
  g_assert_nonnull (line);
  while (line != NULL)
    g_main_context_iteration (NULL, TRUE);
}

static void
on_saved (GObject *object, GAsyncResult *result, gpointer data)
{
  g_assert_false (gtorch_plot_figure_save_finish (GTORCH_PLOT_FIGURE (object), result, data));
}

/* The figure is too large to be drawn, which would be the error after drawing. */
static void
test_place_of_a_file_is_looked_at_first (void)
{
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-plot-XXXXXX", NULL);
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  g_autofree gchar *plain = g_build_filename (folder, "plain", NULL);
  g_autofree gchar *inner = g_build_filename (folder, "a.png", NULL);
  const gchar *const parts[] = { "nowhere/a.png", "plain/a.png", "a.png" };
  const gint codes[] = { G_IO_ERROR_NOT_FOUND, G_IO_ERROR_NOT_DIRECTORY, G_IO_ERROR_IS_DIRECTORY };

  g_assert_true (g_file_set_contents (plain, "", 0, NULL));
  g_assert_cmpint (g_mkdir (inner, 0700), ==, 0);
  g_assert_true (gtorch_plot_figure_set_size (figure, 14400, 14400, NULL)
                 && gtorch_plot_figure_set_resolution (figure, 2400, NULL));
  for (guint i = 0; i < 2 * G_N_ELEMENTS (parts); i++)
    {
      g_autoptr (GFile) file = g_file_new_build_filename (folder, parts[i / 2], NULL);
      g_autoptr (GError) error = NULL;

      if (i % 2 == 0)
        g_assert_false (gtorch_plot_figure_save (figure, file, NULL, &error));
      else
        gtorch_plot_figure_save_async (figure, file, NULL, on_saved, &error);
      while (error == NULL)
        g_main_context_iteration (NULL, TRUE);
      g_assert_error (error, G_IO_ERROR, codes[i / 2]);
      if (i / 2 == 2)
        g_assert_true (g_str_has_prefix (error->message, "plot_figure_save: “/")
                       && g_str_has_suffix (error->message, "a.png”: it is a folder"));
    }
  g_assert_cmpint (g_rmdir (inner), ==, 0);
  g_assert_cmpint (g_remove (plain), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchPlot/cancelled_reads_end_at_once", test_cancelled_reads_end_at_once);
  g_test_add_func ("/GTorchPlot/item_is_kept_until_its_read_has_ended",
                   test_item_is_kept_until_its_read_has_ended);
  g_test_add_func ("/GTorchPlot/Figure/place_of_a_file_is_looked_at_first",
                   test_place_of_a_file_is_looked_at_first);
  return g_test_run ();
}
