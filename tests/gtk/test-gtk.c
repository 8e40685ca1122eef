/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Widgets on a display; run-on-screen.py makes one. Argument: a folder for pictures. */

#include "config.h"

#include <math.h>
#include <string.h>

#include <gtorch-gtk/gtorch-gtk.h>

static const gchar *folder;

/* Runs the main loop until a condition holds, for 20 seconds at most. */
#define WAIT_UNTIL(condition)                                              \
  G_STMT_START                                                             \
  {                                                                        \
    const gint64 end_ = g_get_monotonic_time () + 20 * G_TIME_SPAN_SECOND; \
                                                                           \
    while (!(condition) && g_get_monotonic_time () < end_)                 \
      g_main_context_iteration (NULL, FALSE);                              \
    g_assert_true (condition);                                             \
  }                                                                        \
  G_STMT_END

static GTorchTensor *
ramp (const gint64 *shape, gsize n_dims, GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  gint64 n = 1;
  g_autoptr (GTorchTensor) numbers = NULL;
  GTorchTensor *shaped;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  numbers = gtorch_arange (0, n, 1, dtype, NULL, &error);
  shaped = gtorch_tensor_reshape (numbers, shape, n_dims, &error);
  g_assert_no_error (error);
  return shaped;
}

static void
read_pixel (GdkTexture *texture, gint x, gint y, guint8 *rgba)
{
  const gint width = gdk_texture_get_width (texture);
  g_autofree guint8 *data = g_malloc (4 * width * gdk_texture_get_height (texture));
  const guint8 *pixel = data + 4 * (y * width + x);

  gdk_texture_download (texture, data, 4 * width);
  rgba[0] = pixel[2];
  rgba[1] = pixel[1];
  rgba[2] = pixel[0];
  rgba[3] = pixel[3];
}

/* --- paintable --- */

static void
test_bytes_on_the_cpu_are_not_copied (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor = ramp (GTORCH_SHAPE (2, 5, 3), GTORCH_DTYPE_UINT8);
  g_autoptr (GTorchGtkTensorPaintable) paintable = gtorch_gtk_tensor_paintable_new ();
  GTorchTensor *kept;
  guint8 rgba[4];

  g_assert_true (gtorch_gtk_tensor_paintable_set_tensor (paintable, tensor, &error));
  g_assert_true (gtorch_gtk_tensor_paintable_is_loading (paintable));
  g_assert_cmpint (gdk_paintable_get_intrinsic_width (GDK_PAINTABLE (paintable)), ==, 5);
  g_assert_cmpint (gdk_paintable_get_intrinsic_height (GDK_PAINTABLE (paintable)), ==, 2);
  WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
  read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 1, 1, rgba);
  g_assert_cmpint (rgba[0], ==, 18);
  g_assert_cmpint (rgba[2], ==, 20);
  kept = gtorch_tensor_fill_inplace (tensor, 7, &error);
  g_assert_true (kept == tensor);
  read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 1, 1, rgba);
  g_assert_cmpint (rgba[0], ==, 7); /* the same memory */
}

static void
test_colors_of_all_layouts (void)
{
  static const gint64 shapes[][3] = { { 3, 2, 2 }, { 2, 2, 4 }, { 4, 2, 2 }, { 1, 2, 2 } };

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (guint is_float = 0; is_float < 2; is_float++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) tensor =
            gtorch_ones (shapes[i], 3, is_float ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_UINT8, NULL,
                         &error);
        g_autoptr (GTorchTensor) scaled =
            gtorch_tensor_mul_scalar (tensor, is_float ? 0.6 : 153, &error);
        g_autoptr (GTorchTensor) bytes =
            gtorch_tensor_to_dtype (scaled, is_float ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_UINT8,
                                    &error);
        g_autoptr (GTorchGtkTensorPaintable) paintable = gtorch_gtk_tensor_paintable_new ();
        guint8 rgba[4];

        g_assert_no_error (error);
        g_assert_true (gtorch_gtk_tensor_paintable_set_tensor (paintable, bytes, &error));
        WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
        g_assert_no_error ((GError *) gtorch_gtk_tensor_paintable_get_error (paintable));
        read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 1, 1, rgba);
        if (i == 1 || i == 2) /* with alpha, which the download multiplies */
          g_assert_cmpint (rgba[3], ==, 153);
        else
          g_assert_cmpint (rgba[0], ==, 153);
      }
}

static void
test_bad_tensors_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGtkTensorPaintable) paintable = gtorch_gtk_tensor_paintable_new ();
  g_autoptr (GTorchTensor) good = ramp (GTORCH_SHAPE (4, 4), GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) bad = ramp (GTORCH_SHAPE (2, 5, 6), GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) complex_one =
      gtorch_zeros (GTORCH_SHAPE (2, 2), GTORCH_DTYPE_COMPLEX64, NULL, NULL);

  g_assert_true (gtorch_gtk_tensor_paintable_set_tensor (paintable, good, &error));
  g_assert_false (gtorch_gtk_tensor_paintable_set_tensor (paintable, bad, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "gtk_tensor_paintable_set_tensor: the shape [2, "
                                                   "5, 6] is not [height, width]"));
  g_clear_error (&error);
  g_assert_false (gtorch_gtk_tensor_paintable_set_tensor (paintable, complex_one, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_true (gtorch_gtk_tensor_paintable_get_tensor (paintable) == good);
  WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
  gtorch_tensor_release (good);
  gtorch_gtk_tensor_paintable_update (paintable);
  WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
  g_assert_true (g_error_matches (gtorch_gtk_tensor_paintable_get_error (paintable), GTORCH_ERROR,
                                  GTORCH_ERROR_RELEASED));
  g_assert_nonnull (gtorch_gtk_tensor_paintable_get_texture (paintable)); /* the former one */
}

/* Weights around 0 are black and white without a range of their own. */
static void
test_range_fits_the_numbers (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) pixels =
      gtorch_tensor_new_from_doubles ((const gdouble[]){ -0.1, 0.1, NAN, 0 }, 4,
                                      GTORCH_SHAPE (2, 2), GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchGtkTensorPaintable) paintable = gtorch_gtk_tensor_paintable_new ();
  guint8 rgba[4];

  g_assert_no_error (error);
  g_assert_true (gtorch_gtk_tensor_paintable_set_tensor (paintable, pixels, &error));
  gtorch_gtk_tensor_paintable_set_fit_range (paintable, TRUE);
  WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
  read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 0, 0, rgba);
  g_assert_cmpint (rgba[0], ==, 0);
  read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 1, 0, rgba);
  g_assert_cmpint (rgba[0], ==, 255);
  read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 1, 1, rgba);
  g_assert_cmpint (rgba[0], ==, 128);
  g_assert_true (gtorch_gtk_tensor_paintable_set_range (paintable, NAN, 0, &error));
  WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
  read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), 1, 1, rgba);
  g_assert_cmpint (rgba[0], ==, 255);
  g_assert_false (gtorch_gtk_tensor_paintable_set_range (paintable, 2, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

/* Black, gray and white. */
static void
test_range_fits_numbers_of_any_size (void)
{
  static const gdouble rows[][3] = { { -1e308, 0, 1e308 },
                                     { 1796043809, 1796043810, 1796043811 },
                                     { 0, 0x1p-1073, 0x1p-1072 } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GTorchTensor) pixels =
          gtorch_tensor_new_from_doubles (rows[i], 3, GTORCH_SHAPE (1, 3), GTORCH_DTYPE_FLOAT64,
                                          NULL, NULL);
      g_autoptr (GTorchGtkTensorPaintable) paintable = gtorch_gtk_tensor_paintable_new ();

      g_assert_true (gtorch_gtk_tensor_paintable_set_tensor (paintable, pixels, NULL));
      gtorch_gtk_tensor_paintable_set_fit_range (paintable, TRUE);
      WAIT_UNTIL (!gtorch_gtk_tensor_paintable_is_loading (paintable));
      for (gint x = 0; x < 3; x++)
        {
          guint8 rgba[4];

          read_pixel (gtorch_gtk_tensor_paintable_get_texture (paintable), x, 0, rgba);
          g_assert_cmpint (rgba[0], ==, x == 0 ? 0 : x == 1 ? 128 : 255);
        }
    }
}

static void
test_paintable_ends_while_it_reads (void)
{
  g_autoptr (GTorchTensor) tensor = ramp (GTORCH_SHAPE (64, 64), GTORCH_DTYPE_FLOAT32);
  GTorchGtkTensorPaintable *paintable = gtorch_gtk_tensor_paintable_new ();

  g_assert_true (gtorch_gtk_tensor_paintable_set_tensor (paintable, tensor, NULL));
  gtorch_gtk_tensor_paintable_update (paintable);
  g_object_add_weak_pointer (G_OBJECT (paintable), (gpointer *) &paintable);
  g_object_unref (paintable);
  WAIT_UNTIL (paintable == NULL);
}

/* --- windows --- */

static GtkWidget *
show (GtkWidget *child)
{
  GtkWidget *window = gtk_window_new ();

  gtk_window_set_default_size (GTK_WINDOW (window), 480, 320);
  gtk_window_set_child (GTK_WINDOW (window), child);
  gtk_window_present (GTK_WINDOW (window));
  WAIT_UNTIL (gtk_widget_get_mapped (child) && gtk_widget_get_width (child) > 0);
  return window;
}

static GdkTexture *
take_picture (GtkWidget *window, const gchar *name)
{
  g_autoptr (GdkPaintable) paintable = gtk_widget_paintable_new (window);
  g_autoptr (GskRenderNode) node = NULL;
  g_autofree gchar *path = folder != NULL ? g_strdup_printf ("%s/%s.png", folder, name) : NULL;
  GtkSnapshot *snapshot = gtk_snapshot_new ();
  GdkTexture *texture;

  for (guint i = 0; i < 20; i++)
    {
      g_main_context_iteration (NULL, FALSE);
      g_usleep (2000);
    }
  gdk_paintable_snapshot (paintable, snapshot, gtk_widget_get_width (window),
                          gtk_widget_get_height (window));
  node = gtk_snapshot_free_to_node (snapshot);
  texture = gsk_renderer_render_texture (gtk_native_get_renderer (GTK_NATIVE (window)), node, NULL);
  if (path != NULL)
    g_assert_true (gdk_texture_save_to_png (texture, path));
  return texture;
}

static guint
count_color (GdkTexture *texture, guint32 color)
{
  const gint width = gdk_texture_get_width (texture), height = gdk_texture_get_height (texture);
  g_autofree guint32 *data = g_malloc (4 * width * height);
  guint n = 0;

  gdk_texture_download (texture, (guchar *) data, 4 * width);
  for (gint i = 0; i < width * height; i++)
    n += (data[i] & 0xffffff) == color;
  return n;
}

static void
test_plot_follows_its_figure_and_the_style (void)
{
  GtkWidget *plot = gtorch_gtk_plot_new (NULL), *window;
  g_autoptr (GdkTexture) empty = NULL;
  g_autoptr (GdkTexture) light = NULL;
  g_autoptr (GdkTexture) dark = NULL;

  gtk_widget_set_size_request (plot, 400, 300);
  window = show (plot);
  empty = take_picture (window, "plot-empty");
  g_assert_cmpuint (count_color (empty, 0x0072b2), ==, 0);
  for (guint i = 0; i < 50; i++)
    gtorch_gtk_plot_append (GTORCH_GTK_PLOT (plot), "loss", i, exp (-0.1 * i));
  light = take_picture (window, "plot");
  g_assert_cmpuint (count_color (light, 0x0072b2), >, 100);
  g_object_set (gtk_settings_get_default (), "gtk-application-prefer-dark-theme", TRUE, NULL);
  dark = take_picture (window, "plot-dark");
  g_object_set (gtk_settings_get_default (), "gtk-application-prefer-dark-theme", FALSE, NULL);
  g_assert_cmpuint (count_color (dark, 0x0072b2), ==, 0);
  g_assert_cmpuint (count_color (dark, 0x56b4e9), >, 100);
  gtk_window_destroy (GTK_WINDOW (window));
}

static GTorchModule *
make_model (void)
{
  g_autoptr (GError) error = NULL;
  GTorchSequential *model = gtorch_sequential_new ();
  g_autoptr (GTorchModule) first = GTORCH_MODULE (gtorch_linear_new (6, 12, &error));
  g_autoptr (GTorchModule) last = GTORCH_MODULE (gtorch_linear_new (12, 3, &error));

  g_assert_true (gtorch_sequential_append (model, first, &error)
                 && gtorch_sequential_append (model, last, &error));
  return GTORCH_MODULE (model);
}

static gboolean
has_norms (GListModel *rows)
{
  for (guint i = 0; i < g_list_model_get_n_items (rows); i++)
    {
      g_autoptr (GTorchGtkParameterRow) row = g_list_model_get_item (rows, i);

      if (isnan (gtorch_gtk_parameter_row_get_norm (row)))
        return FALSE;
    }
  return TRUE;
}

static void
test_parameters_are_listed_with_norms (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) model = make_model ();
  g_autoptr (GTorchModule) more = GTORCH_MODULE (gtorch_linear_new (3, 3, &error));
  GtkWidget *list = gtorch_gtk_parameter_list_new (model), *window = show (list);
  GListModel *rows = gtorch_gtk_parameter_list_get_rows (GTORCH_GTK_PARAMETER_LIST (list));
  g_autoptr (GTorchGtkParameterRow) bias = NULL;
  g_autoptr (GdkTexture) picture = NULL;

  g_assert_cmpuint (g_list_model_get_n_items (rows), ==, 4);
  WAIT_UNTIL (has_norms (rows));
  bias = g_list_model_get_item (rows, 3);
  g_assert_cmpstr (gtorch_gtk_parameter_row_get_name (bias), ==, "1.bias");
  g_assert_cmpstr (gtorch_gtk_parameter_row_get_shape (bias), ==, "3");
  g_assert_cmpstr (gtorch_gtk_parameter_row_get_dtype (bias), ==, "float32");
  g_assert_cmpint (gtorch_gtk_parameter_row_get_n_elements (bias), ==, 3);
  {
    g_autoptr (GTorchTensor) data =
        gtorch_tensor_detach (GTORCH_TENSOR (gtorch_gtk_parameter_row_get_parameter (bias)),
                              &error);

    g_assert_nonnull (gtorch_tensor_fill_inplace (data, 2, &error));
  }
  gtorch_gtk_parameter_list_update (GTORCH_GTK_PARAMETER_LIST (list));
  WAIT_UNTIL (fabs (gtorch_gtk_parameter_row_get_norm (bias) - sqrt (12)) < 1e-5);
  g_assert_true (gtorch_sequential_append (GTORCH_SEQUENTIAL (model), more, &error));
  WAIT_UNTIL (g_list_model_get_n_items (rows) == 6 && has_norms (rows));
  picture = take_picture (window, "parameters");
  gtk_window_destroy (GTK_WINDOW (window));
}

static void
assert_rows (GListModel *rows, const gchar *wanted)
{
  g_autoptr (GString) found = g_string_new (NULL);

  for (guint i = 0; i < g_list_model_get_n_items (rows); i++)
    {
      g_autoptr (GTorchGtkParameterRow) row = g_list_model_get_item (rows, i);

      g_string_append_printf (found, "%s%s %s", i > 0 ? ", " : "",
                              gtorch_gtk_parameter_row_get_name (row),
                              gtorch_gtk_parameter_row_get_shape (row));
    }
  g_assert_cmpstr (found->str, ==, wanted);
}

static void
test_rows_follow_the_module (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) first = GTORCH_MODULE (gtorch_linear_new (3, 2, &error));
  g_autoptr (GTorchModule) other = GTORCH_MODULE (gtorch_linear_new (9, 3, &error));
  g_autoptr (GTorchModule) model = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GTorchTensor) zeros =
      gtorch_zeros (GTORCH_SHAPE (5, 3), GTORCH_DTYPE_NONE, NULL, &error);
  g_autoptr (GTorchParameter) weight = gtorch_parameter_new (zeros, TRUE, &error);
  GtkWidget *list, *window;
  GListModel *rows;

  g_assert_true (gtorch_sequential_append (GTORCH_SEQUENTIAL (model), first, &error));
  list = gtorch_gtk_parameter_list_new (model);
  window = show (list);
  rows = gtorch_gtk_parameter_list_get_rows (GTORCH_GTK_PARAMETER_LIST (list));
  WAIT_UNTIL (has_norms (rows));
  assert_rows (rows, "0.weight 2 × 3, 0.bias 2");

  g_assert_true (gtorch_module_register_parameter (first, "weight", weight, &error));
  gtorch_gtk_parameter_list_update (GTORCH_GTK_PARAMETER_LIST (list));
  assert_rows (rows, "0.weight 5 × 3, 0.bias 2");

  g_assert_true (gtorch_sequential_insert (GTORCH_SEQUENTIAL (model), 0, other, &error));
  WAIT_UNTIL (g_list_model_get_n_items (rows) == 4 && has_norms (rows));
  assert_rows (rows, "0.weight 3 × 9, 0.bias 3, 1.weight 5 × 3, 1.bias 2");

  g_assert_true (gtorch_sequential_remove (GTORCH_SEQUENTIAL (model), 0, &error));
  WAIT_UNTIL (g_list_model_get_n_items (rows) == 2 && has_norms (rows));
  assert_rows (rows, "0.weight 5 × 3, 0.bias 2");
  gtk_window_destroy (GTK_WINDOW (window));
}

static void
test_panel_shows_the_cpu (void)
{
  GtkWidget *panel = gtorch_gtk_device_panel_new (gtorch_device_cpu ()), *window = show (panel);
  g_autoptr (GdkTexture) picture = take_picture (window, "device");

  WAIT_UNTIL (gtorch_gtk_device_panel_get_monitor (GTORCH_GTK_DEVICE_PANEL (panel)) != NULL);
  g_assert_cmpuint (gtorch_gtk_device_panel_get_interval (GTORCH_GTK_DEVICE_PANEL (panel)), ==,
                    1000);
  gtorch_gtk_device_panel_set_device (GTORCH_GTK_DEVICE_PANEL (panel), NULL);
  gtk_window_destroy (GTK_WINDOW (window));
}

/* Of which each target is a class, if that is less than 4, and each sample a multiple of random numbers. */
static GTorchTrainer *
make_trainer_of (gint64 n_epochs, gdouble factor, gint64 class)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) numbers =
      gtorch_randn (GTORCH_SHAPE (64, 6), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error);
  g_autoptr (GTorchTensor) x = gtorch_tensor_mul_scalar (numbers, factor, &error);
  g_autoptr (GTorchTensor) y =
      gtorch_full_int (GTORCH_SHAPE (64), class, GTORCH_DTYPE_INT64, NULL, &error);
  GTorchTensor *tensors[] = { x, y };
  g_autoptr (GTorchDataset) data = GTORCH_DATASET (gtorch_tensor_dataset_new (tensors, 2, &error));
  g_autoptr (GTorchDataLoader) loader = gtorch_data_loader_new (data, 16, FALSE);
  g_autoptr (GTorchModule) model = make_model ();
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (model, TRUE);
  g_autoptr (GTorchOptimizer) optimizer =
      GTORCH_OPTIMIZER (gtorch_adam_new (parameters, 0.01, &error));
  g_autoptr (GTorchModule) loss = GTORCH_MODULE (gtorch_cross_entropy_loss_new ());
  GTorchTrainer *trainer = gtorch_trainer_new (model, loader, loss, optimizer);

  g_assert_no_error (error);
  g_object_set (trainer, "n-epochs", n_epochs, NULL);
  return trainer;
}

static GTorchTrainer *
make_trainer (gint64 n_epochs)
{
  return make_trainer_of (n_epochs, 1, 0);
}

static void
on_ran (GObject *object, GAsyncResult *result, gpointer data)
{
  GError **error = data;

  if (gtorch_gtk_trainer_progress_run_finish (GTORCH_GTK_TRAINER_PROGRESS (object), result, error))
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "done");
}

static GtkWidget *
find_button (GtkWidget *widget)
{
  if (GTK_IS_BUTTON (widget))
    return widget;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = find_button (child);

      if (found != NULL)
        return found;
    }
  return NULL;
}

static void
test_run_is_shown_to_its_end (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTrainer) trainer = make_trainer (5);
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6), *window;
  GtkWidget *plot = gtorch_gtk_plot_new (NULL),
            *progress = gtorch_gtk_trainer_progress_new (trainer);
  g_autoptr (GTorchPlotLine) line = NULL;
  g_autoptr (GdkTexture) picture = NULL;

  gtk_widget_set_vexpand (plot, TRUE);
  gtk_box_append (GTK_BOX (box), plot);
  gtk_box_append (GTK_BOX (box), progress);
  gtorch_gtk_plot_follow_trainer (GTORCH_GTK_PLOT (plot), trainer);
  window = show (box);
  g_assert_false (gtk_widget_get_sensitive (find_button (progress)));
  gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran, &error);
  WAIT_UNTIL (error != NULL);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
  line = g_list_model_get_item (gtorch_plot_axes_get_items (
                                    gtorch_plot_figure_get_axes (gtorch_gtk_plot_get_figure (
                                                                     GTORCH_GTK_PLOT (plot)),
                                                                 0, 0, NULL)),
                                0);
  g_assert_cmpuint (gtorch_plot_line_get_n_points (line), ==, 20);
  WAIT_UNTIL (!gtorch_gtk_trainer_progress_is_running (GTORCH_GTK_TRAINER_PROGRESS (progress)));
  picture = take_picture (window, "training");
  gtk_window_destroy (GTK_WINDOW (window));
}

static guint
count_points (GtkWidget *plot, guint i, const gchar *label)
{
  GTorchPlotFigure *figure = gtorch_gtk_plot_get_figure (GTORCH_GTK_PLOT (plot));
  GListModel *items = gtorch_plot_axes_get_items (gtorch_plot_figure_get_axes (figure, 0, 0, NULL));
  g_autoptr (GTorchPlotLine) line = g_list_model_get_item (items, i);

  g_assert_cmpstr (gtorch_plot_item_get_label (GTORCH_PLOT_ITEM (line)), ==, label);
  return gtorch_plot_line_get_n_points (line);
}

static void
test_trainers_have_lines_of_their_own (void)
{
  g_autoptr (GtkWidget) plot = g_object_ref_sink (gtorch_gtk_plot_new (NULL));

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTrainer) trainer = make_trainer (5);

      gtorch_gtk_plot_follow_trainer (GTORCH_GTK_PLOT (plot), trainer);
      gtorch_gtk_plot_follow_trainer (GTORCH_GTK_PLOT (plot), trainer);
      g_assert_true (gtorch_trainer_run (trainer, NULL, NULL));
      g_assert_cmpuint (count_points (plot, i, i == 0 ? "training" : "training 2"), ==, 20);
      g_assert_cmpuint (count_points (plot, 0, "training"), ==, 20);
    }
}

static void
test_button_cancels_the_run (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTrainer) trainer = make_trainer (100000);
  GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);
  GtkWidget *button = find_button (progress);

  gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran, &error);
  WAIT_UNTIL (gtk_widget_get_sensitive (button) && gtorch_trainer_get_step (trainer) > 3);
  g_signal_emit_by_name (button, "clicked");
  WAIT_UNTIL (error != NULL);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  WAIT_UNTIL (!gtk_widget_get_sensitive (button));
  gtk_window_destroy (GTK_WINDOW (window));
}

/* The line below the bar. */
static const gchar *
read_line (GtkWidget *progress)
{
  GtkWidget *box = gtk_widget_get_first_child (progress);

  return gtk_label_get_text (GTK_LABEL (gtk_widget_get_last_child (box)));
}

static void
on_trained (GObject *object, GAsyncResult *result, gpointer data)
{
  GError **error = data;

  if (gtorch_trainer_run_finish (GTORCH_TRAINER (object), result, error))
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "done");
}

/* Which has no cancellable, one of the program, or the widget's. */
static void
test_button_ends_a_run_of_the_program (void)
{
  g_autoptr (GTorchTrainer) trainer = make_trainer (1000000);
  GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);
  GtkWidget *button = find_button (progress);

  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GCancellable) own = g_cancellable_new ();
      GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (progress);
      const gint64 step = gtorch_trainer_get_step (trainer);

      if (i == 3) /* otherwise the one of the run before stays, which is cancelled */
        gtorch_gtk_trainer_progress_set_cancellable (self, NULL);
      gtorch_trainer_run_async (trainer,
                                i == 3   ? gtorch_gtk_trainer_progress_get_cancellable (self)
                                : i == 1 ? own
                                         : NULL,
                                on_trained, &error);
      WAIT_UNTIL (gtk_widget_get_sensitive (button)
                  && gtorch_trainer_get_step (trainer) > step + 3);
      g_assert_null (strstr (read_line (progress), "ancel"));
      g_signal_emit_by_name (button, "clicked");
      g_assert_false (gtk_widget_get_sensitive (button));
      WAIT_UNTIL (error != NULL);
      if (i == 3)
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      else
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
      WAIT_UNTIL (g_str_has_suffix (read_line (progress), "  ·  cancelled"));
    }
  gtk_window_destroy (GTK_WINDOW (window));
}

/* The widget's run goes on behind another trainer, or none; another run of the widget may be shown then. */
static void
test_button_ends_a_run_that_is_not_shown (void)
{
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GError) other_error = NULL;
      g_autoptr (GTorchTrainer) trainer = make_trainer (1000000);
      g_autoptr (GTorchTrainer) other = make_trainer (1000000);
      GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);
      GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (progress);
      GtkWidget *button = find_button (progress);

      gtorch_gtk_trainer_progress_run_async (self, on_ran, &error);
      WAIT_UNTIL (gtorch_trainer_get_step (trainer) > 3);
      gtorch_gtk_trainer_progress_set_trainer (self, i == 0 ? NULL : other);
      g_assert_false (gtorch_gtk_trainer_progress_is_running (self));
      g_assert_true (gtk_widget_get_sensitive (button));
      g_assert_cmpstr (read_line (progress), ==,
                       i == 0 ? "the run of another trainer goes on"
                              : "Not started  ·  the run of another trainer goes on");
      if (i == 2)
        {
          gtorch_gtk_trainer_progress_run_async (self, on_ran, &other_error);
          WAIT_UNTIL (gtorch_trainer_get_step (other) > 3);
          g_signal_emit_by_name (button, "clicked");
          WAIT_UNTIL (other_error != NULL);
          g_assert_error (other_error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
          g_assert_true (gtorch_trainer_is_running (trainer));
          g_assert_true (gtk_widget_get_sensitive (button));
        }
      g_signal_emit_by_name (button, "clicked");
      g_assert_false (gtk_widget_get_sensitive (button));
      g_assert_nonnull (strstr (read_line (progress), "cancelling the run of another trainer…"));
      WAIT_UNTIL (error != NULL);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_assert_null (strstr (read_line (progress), "another trainer"));
      gtk_window_destroy (GTK_WINDOW (window));
    }
}

/* After another cancellable was set, and after another trainer was shown for a while. */
static void
test_button_ends_a_run_that_was_not_shown (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTrainer) trainer = make_trainer (1000000);
  GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);
  GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (progress);
  GtkWidget *button = find_button (progress);

  gtorch_gtk_trainer_progress_run_async (self, on_ran, &error);
  WAIT_UNTIL (gtorch_trainer_get_step (trainer) > 3);
  gtorch_gtk_trainer_progress_set_trainer (self, NULL);
  gtorch_gtk_trainer_progress_set_cancellable (self, NULL);
  gtorch_gtk_trainer_progress_set_trainer (self, trainer);
  g_assert_true (gtk_widget_get_sensitive (button));
  g_assert_null (strstr (read_line (progress), "another trainer"));
  g_signal_emit_by_name (button, "clicked");
  WAIT_UNTIL (error != NULL);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_true (g_str_has_suffix (read_line (progress), "  ·  cancelled"));
  gtk_window_destroy (GTK_WINDOW (window));
}

/* Of the widget, and of the program. A run to the end tells nothing. */
static void
test_line_tells_that_a_run_was_stopped (void)
{
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTrainer) trainer = make_trainer (i < 2 ? 1000000 : 3);
      GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);

      if (i == 1)
        gtorch_trainer_run_async (trainer, NULL, on_trained, &error);
      else
        gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran,
                                               &error);
      WAIT_UNTIL (gtorch_trainer_get_step (trainer) > 3 && find_button (progress) != NULL
                  && (i == 2 || gtk_widget_get_sensitive (find_button (progress))));
      if (i < 2)
        gtorch_trainer_stop (trainer);
      WAIT_UNTIL (error != NULL);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
      WAIT_UNTIL (!gtk_widget_get_sensitive (find_button (progress)));
      g_assert_true (g_str_has_suffix (read_line (progress), "  ·  stopped") == (i < 2));
      gtorch_gtk_trainer_progress_set_trainer (GTORCH_GTK_TRAINER_PROGRESS (progress), NULL);
      g_assert_cmpstr (read_line (progress), ==, "");
      gtk_window_destroy (GTK_WINDOW (window));
    }
}

static void
test_line_tells_what_went_wrong (void)
{
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTrainer) trainer = make_trainer_of (2, 1, 99);
      GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);

      if (i == 0)
        gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran,
                                               &error);
      else
        gtorch_trainer_run_async (trainer, NULL, on_trained, &error);
      WAIT_UNTIL (error != NULL);
      WAIT_UNTIL (!gtorch_gtk_trainer_progress_is_running (GTORCH_GTK_TRAINER_PROGRESS (progress)));
      g_assert_nonnull (strstr (read_line (progress), "  ·  failed: "));
      g_assert_nonnull (strstr (read_line (progress), error->message));
      g_assert_true (g_str_has_prefix (read_line (progress), "Epoch 0, step 0"));
      gtk_window_destroy (GTK_WINDOW (window));
    }
}

static void
test_line_shows_a_loss_that_is_no_number (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTrainer) trainer = make_trainer_of (3, NAN, 0);
  GtkWidget *progress = gtorch_gtk_trainer_progress_new (trainer), *window = show (progress);

  g_assert_cmpstr (read_line (progress), ==, "Not started");
  gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran, &error);
  WAIT_UNTIL (error != NULL);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
  WAIT_UNTIL (!gtorch_gtk_trainer_progress_is_running (GTORCH_GTK_TRAINER_PROGRESS (progress)));
  g_assert_nonnull (strstr (read_line (progress), "  ·  loss NaN"));
  g_assert_null (strstr (read_line (progress), "failed"));
  gtk_window_destroy (GTK_WINDOW (window));
}

static void
test_progress_may_be_disposed_during_a_run (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTrainer) trainer = make_trainer (1000000);
  g_autoptr (GtkWidget) progress = g_object_ref_sink (gtorch_gtk_trainer_progress_new (trainer));

  gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran, &error);
  WAIT_UNTIL (gtorch_trainer_get_step (trainer) > 0);
  g_object_run_dispose (G_OBJECT (progress));
  gtorch_trainer_stop (trainer);
  WAIT_UNTIL (error != NULL);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
}

static void
test_progress_without_a_trainer_refuses_a_run (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GtkWidget) progress = g_object_ref_sink (gtorch_gtk_trainer_progress_new (NULL));

  gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_ran, &error);
  WAIT_UNTIL (error != NULL);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "gtk_trainer_progress_run: there is no trainer");
}

static void
test_builder_knows_the_types (void)
{
  static const gchar ui[] =
      "<interface><object class='GtkBox' id='box'>"
      "<child><object class='GTorchGtkPlot' id='plot'/></child>"
      "<child><object class='GTorchGtkParameterList'>"
      "<property name='interval'>500</property></object></child>"
      "<child><object class='GTorchGtkDevicePanel'/></child>"
      "<child><object class='GTorchGtkTrainerProgress'/></child>"
      "<child><object class='GtkPicture'><property name='paintable'>"
      "<object class='GTorchGtkTensorPaintable'><property name='colormap'>magma</property>"
      "</object></property></object></child></object></interface>";
  g_autoptr (GError) error = NULL;
  g_autoptr (GtkBuilder) builder = gtk_builder_new ();

  gtorch_gtk_init ();
  g_assert_true (gtk_builder_add_from_string (builder, ui, -1, &error));
  g_assert_no_error (error);
  g_assert_true (GTORCH_GTK_IS_PLOT (gtk_builder_get_object (builder, "plot")));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!gtk_init_check ())
    {
      g_print ("1..0 # SKIP no display\n");
      return 0;
    }
  folder = argc > 1 ? argv[1] : NULL;
  g_test_add_func ("/GTorchGtk/TensorPaintable/bytes_on_the_cpu_are_not_copied",
                   test_bytes_on_the_cpu_are_not_copied);
  g_test_add_func ("/GTorchGtk/TensorPaintable/colors_of_all_layouts", test_colors_of_all_layouts);
  g_test_add_func ("/GTorchGtk/TensorPaintable/range_fits_the_numbers",
                   test_range_fits_the_numbers);
  g_test_add_func ("/GTorchGtk/TensorPaintable/range_fits_numbers_of_any_size",
                   test_range_fits_numbers_of_any_size);
  g_test_add_func ("/GTorchGtk/TensorPaintable/bad_tensors_are_refused",
                   test_bad_tensors_are_refused);
  g_test_add_func ("/GTorchGtk/TensorPaintable/ends_while_it_reads",
                   test_paintable_ends_while_it_reads);
  g_test_add_func ("/GTorchGtk/Plot/follows_its_figure_and_the_style",
                   test_plot_follows_its_figure_and_the_style);
  g_test_add_func ("/GTorchGtk/Plot/trainers_have_lines_of_their_own",
                   test_trainers_have_lines_of_their_own);
  g_test_add_func ("/GTorchGtk/ParameterList/rows_follow_the_module", test_rows_follow_the_module);
  g_test_add_func ("/GTorchGtk/ParameterList/lists_with_norms",
                   test_parameters_are_listed_with_norms);
  g_test_add_func ("/GTorchGtk/DevicePanel/shows_the_cpu", test_panel_shows_the_cpu);
  g_test_add_func ("/GTorchGtk/TrainerProgress/shows_a_run_to_its_end",
                   test_run_is_shown_to_its_end);
  g_test_add_func ("/GTorchGtk/TrainerProgress/button_cancels_the_run",
                   test_button_cancels_the_run);
  g_test_add_func ("/GTorchGtk/TrainerProgress/may_be_disposed_during_a_run",
                   test_progress_may_be_disposed_during_a_run);
  g_test_add_func ("/GTorchGtk/TrainerProgress/ends_a_run_of_the_program",
                   test_button_ends_a_run_of_the_program);
  g_test_add_func ("/GTorchGtk/TrainerProgress/ends_a_run_that_is_not_shown",
                   test_button_ends_a_run_that_is_not_shown);
  g_test_add_func ("/GTorchGtk/TrainerProgress/ends_a_run_that_was_not_shown",
                   test_button_ends_a_run_that_was_not_shown);
  g_test_add_func ("/GTorchGtk/TrainerProgress/tells_that_a_run_was_stopped",
                   test_line_tells_that_a_run_was_stopped);
  g_test_add_func ("/GTorchGtk/TrainerProgress/tells_what_went_wrong",
                   test_line_tells_what_went_wrong);
  g_test_add_func ("/GTorchGtk/TrainerProgress/shows_a_loss_that_is_no_number",
                   test_line_shows_a_loss_that_is_no_number);
  g_test_add_func ("/GTorchGtk/TrainerProgress/refuses_without_a_trainer",
                   test_progress_without_a_trainer_refuses_a_run);
  g_test_add_func ("/GTorchGtk/builder_knows_the_types", test_builder_knows_the_types);
  return g_test_run ();
}
