/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Learns to read handwritten digits, saves and reloads the network, and draws the misread digits. */

#include <gtorch/gtorch.h>
#ifdef HAS_PLOT
#include <gtorch-plot/gtorch-plot.h>
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N     1797
#define BATCH 64

static gint seed = 1, epochs = 20;
static gchar *data_path = DATA_FILE, *output = "digits.png";

static GOptionEntry entries[] = {
  { "data", 0, 0, G_OPTION_ARG_FILENAME, &data_path, "The digits, digits.csv.gz", "FILE" },
  { "seed", 0, 0, G_OPTION_ARG_INT, &seed, "Where random numbers start", "N" },
  { "epochs", 0, 0, G_OPTION_ARG_INT, &epochs, "How often all digits are seen", "N" },
  { "output", 0, 0, G_OPTION_ARG_FILENAME, &output, "The picture to draw", "FILE" },
  { NULL },
};

/* Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797]. */
static gboolean
load_digits (GTorchTensor **images, GTorchTensor **labels, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (data_path);
  g_autoptr (GInputStream) packed = G_INPUT_STREAM (g_file_read (file, NULL, error));
  g_autoptr (GConverter) gunzip =
      G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP));
  g_autoptr (GInputStream) plain = packed ? g_converter_input_stream_new (packed, gunzip) : NULL;
  g_autoptr (GDataInputStream) lines = plain ? g_data_input_stream_new (plain) : NULL;
  g_autofree gfloat *pixels = g_new (gfloat, N * 64);
  g_autofree gint64 *digits = g_new (gint64, N);

  for (gint i = 0; i < N; i++)
    {
      g_autofree gchar *line =
          lines ? g_data_input_stream_read_line (lines, NULL, NULL, error) : NULL;
      gchar *next = line;

      if (line == NULL)
        return FALSE;
      for (gint j = 0; j < 64; j++, next++)
        pixels[i * 64 + j] = g_ascii_strtoll (next, &next, 10) / 16.0f;
      digits[i] = g_ascii_strtoll (next, NULL, 10);
    }
  *images = gtorch_tensor_new_from_floats (pixels, N * 64, GTORCH_SHAPE (N, 1, 8, 8),
                                           GTORCH_DTYPE_FLOAT32, NULL, error);
  *labels =
      gtorch_tensor_new_from_ints (digits, N, GTORCH_SHAPE (N), GTORCH_DTYPE_INT64, NULL, error);
  return *images != NULL && *labels != NULL;
}

static GTorchModule *
make_model (GError **error)
{
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_CONV2D, error, "in-channels", (gint64) 1,
                                      "out-channels", (gint64) 16, "kernel-size", GTORCH_SIZE (3),
                                      "padding", GTORCH_SIZE (1), NULL)),
    GTORCH_MODULE (gtorch_relu_new ()),
    GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_CONV2D, error, "in-channels", (gint64) 16,
                                      "out-channels", (gint64) 32, "kernel-size", GTORCH_SIZE (3),
                                      "padding", GTORCH_SIZE (1), NULL)),
    GTORCH_MODULE (gtorch_relu_new ()),
    GTORCH_MODULE (gtorch_max_pool2d_new (GTORCH_SHAPE (2), error)),
    GTORCH_MODULE (gtorch_flatten_new ()),
    GTORCH_MODULE (gtorch_dropout_new (0.25, error)),
    GTORCH_MODULE (gtorch_linear_new (512, 10, error)),
  };
  GTorchSequential *model =
      gtorch_sequential_new_from_modules (layers, G_N_ELEMENTS (layers), error);

  for (guint i = 0; i < G_N_ELEMENTS (layers); i++)
    g_clear_object (&layers[i]);
  return GTORCH_MODULE (model);
}

/* Returns the digits that the model reads, without recording gradients. */
static gint64 *
read_digits (GTorchModule *model, GTorchTensor *images, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchTensor) scores = gtorch_module_forward (model, images, error);
  g_autoptr (GTorchTensor) best =
      scores ? gtorch_tensor_argmax (scores, GTORCH_SHAPE (1), FALSE, error) : NULL;
  gsize n;

  return best ? gtorch_tensor_to_ints (best, &n, error) : NULL;
}

static gboolean
train (GTorchModule *model, GTorchTensor *images, GTorchTensor *labels, GArray *losses,
       GError **error)
{
  g_autoptr (GListModel) params = gtorch_module_get_parameters (model, TRUE);
  g_autoptr (GTorchOptimizer) adam = GTORCH_OPTIMIZER (gtorch_adam_new (params, 2e-3, error));
  gint64 n = gtorch_tensor_get_numel (labels);
  gboolean in_place = isatty (STDOUT_FILENO);

  for (gint epoch = 0; epoch < epochs; epoch++)
    {
      g_autoptr (GTorchTensor) order = gtorch_randperm (n, GTORCH_DTYPE_INT64, NULL, NULL, error);
      gdouble total = 0;

      for (gint64 start = 0; start < n; start += BATCH)
        {
          g_autoptr (GTorchTensor) index =
              gtorch_tensor_slice (order, 0, start, MIN (start + BATCH, n), 1, error);
          g_autoptr (GTorchTensor) x = gtorch_tensor_index_select (images, 0, index, error);
          g_autoptr (GTorchTensor) y = gtorch_tensor_index_select (labels, 0, index, error);
          g_autoptr (GTorchTensor) scores = x ? gtorch_module_forward (model, x, error) : NULL;
          g_autoptr (GTorchTensor) loss =
              scores && y ? gtorch_tensor_cross_entropy (scores, y, NULL, GTORCH_REDUCTION_MEAN,
                                                         -100, 0, error)
                          : NULL;

          if (loss == NULL || !gtorch_optimizer_zero_grad (adam, TRUE, error)
              || !gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error)
              || !gtorch_optimizer_step (adam, error))
            return FALSE;
          total += gtorch_tensor_item_double (loss, error) * MIN (BATCH, n - start);
        }
      total /= n;
      g_array_append_val (losses, total);
      g_print ("%sepoch %2d of %d: loss %.4f%s", in_place ? "\r" : "", epoch + 1, epochs, total,
               in_place ? "" : "\n");
    }
  if (in_place)
    g_print ("\n");
  return TRUE;
}

#ifdef HAS_PLOT
/* Draws digits with their labels and what was read. */
static gboolean
draw_digits (GTorchTensor *images, const gint64 *index, gint64 n, const gchar *const *titles,
             GError **error)
{
  g_autoptr (GTorchTensor) where =
      gtorch_tensor_new_from_ints (index, n, &n, 1, GTORCH_DTYPE_INT64, NULL, error);
  g_autoptr (GTorchTensor) ink =
      where != NULL ? gtorch_tensor_index_select (images, 0, where, error) : NULL;
  g_autoptr (GTorchTensor) light = ink != NULL ? gtorch_tensor_neg (ink, error) : NULL;
  g_autoptr (GTorchTensor) shown =
      light != NULL ? gtorch_tensor_add_scalar (light, 1, 1, error) : NULL;
  g_autoptr (GTorchPlotFigure) figure =
      shown != NULL ? gtorch_plot_images (shown, 4, titles, error) : NULL;
  g_autoptr (GFile) file = g_file_new_for_path (output);

  return figure != NULL && gtorch_plot_figure_save (figure, file, NULL, error);
}

static gboolean
draw_losses (GArray *losses, GError **error)
{
  const gint64 n = losses->len;
  g_autoptr (GTorchTensor) curve =
      gtorch_tensor_new_from_doubles ((gdouble *) losses->data, n, &n, 1, GTORCH_DTYPE_FLOAT64,
                                      NULL, error);
  g_autoptr (GTorchPlotFigure) figure = gtorch_plot_figure_new ();
  GTorchPlotAxes *axes = gtorch_plot_figure_get_axes (figure, 0, 0, error);
  const gchar *dot = strrchr (output, '.');
  g_autofree gchar *stem = dot != NULL ? g_strndup (output, dot - output) : g_strdup (output);
  g_autofree gchar *path = g_strconcat (stem, "-losses", dot, NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);

  if (curve == NULL || axes == NULL
      || gtorch_plot_axes_add_line (axes, NULL, curve, "training", error) == NULL)
    return FALSE;
  gtorch_plot_axes_set_x_label (axes, "epoch");
  gtorch_plot_axes_set_y_label (axes, "loss");
  return gtorch_plot_axes_set_y_scale (axes, GTORCH_PLOT_SCALE_LOG, error)
         && gtorch_plot_figure_save (figure, file, NULL, error);
}

/* Draws the digits that were misread, and beside that picture one of the losses. */
static gboolean
draw (GArray *losses, GTorchTensor *images, const gint64 *labels, const gint64 *read, gint64 n,
      GError **error)
{
  gint64 index[16], n_misread = 0;
  g_auto (GStrv) titles = g_new0 (gchar *, G_N_ELEMENTS (index) + 1);

  for (gint64 i = 0; i < n && n_misread < (gint64) G_N_ELEMENTS (index); i++)
    if (read[i] != labels[i])
      {
        titles[n_misread] = g_strdup_printf ("%d read as %d", (gint) labels[i], (gint) read[i]);
        index[n_misread++] = i;
      }
  return (n_misread == 0
          || draw_digits (images, index, n_misread, (const gchar *const *) titles, error))
         && draw_losses (losses, error);
}
#else
static gboolean
draw (GArray *losses, GTorchTensor *images, const gint64 *labels, const gint64 *read, gint64 n,
      GError **error)
{
  g_print ("digits: draws no pictures: it was built without gtorch-plot\n");
  return TRUE;
}
#endif

static gboolean
run (GError **error)
{
  g_autoptr (GTorchTensor) images = NULL, labels = NULL;
  g_autoptr (GArray) losses = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_autoptr (GFile) file = g_file_new_for_path ("digits.safetensors");
  g_autoptr (GTorchModule) model = NULL, again = NULL;
  g_autofree gint64 *read = NULL, *read_again = NULL, *right = NULL;
  g_autofree gchar *weights = NULL, *checksum = NULL;
  gint64 held[N], rest[N], n_held = 0, n_rest = 0, n_right = 0;
  gsize length;

  gtorch_manual_seed (seed);
  if (!load_digits (&images, &labels, error) || (model = make_model (error)) == NULL)
    return FALSE;
  for (gint64 i = 0; i < N; i++)
    if (i % 5 == 0)
      held[n_held++] = i;
    else
      rest[n_rest++] = i;

  g_autoptr (GTorchTensor) held_index =
      gtorch_tensor_new_from_ints (held, n_held, &n_held, 1, GTORCH_DTYPE_INT64, NULL, error);
  g_autoptr (GTorchTensor) rest_index =
      gtorch_tensor_new_from_ints (rest, n_rest, &n_rest, 1, GTORCH_DTYPE_INT64, NULL, error);
  g_autoptr (GTorchTensor) train_images = gtorch_tensor_index_select (images, 0, rest_index, error);
  g_autoptr (GTorchTensor) train_labels = gtorch_tensor_index_select (labels, 0, rest_index, error);
  g_autoptr (GTorchTensor) test_images = gtorch_tensor_index_select (images, 0, held_index, error);
  g_autoptr (GTorchTensor) test_labels = gtorch_tensor_index_select (labels, 0, held_index, error);

  if (!train (model, train_images, train_labels, losses, error))
    return FALSE;
  gtorch_module_eval (model);
  read = read_digits (model, test_images, error);

  /* The parameters go through a file into a new model, which must read the same digits. */
  g_autoptr (GHashTable) state = gtorch_module_state_dict (model);

  if (read == NULL || !gtorch_safetensors_save_file (state, NULL, file, NULL, NULL, NULL, error)
      || (again = make_model (error)) == NULL)
    return FALSE;
  g_autoptr (GHashTable) loaded =
      gtorch_safetensors_load_file (file, FALSE, NULL, NULL, NULL, NULL, NULL, error);

  if (loaded == NULL || !gtorch_module_load_state_dict (again, loaded, TRUE, error))
    return FALSE;
  gtorch_module_eval (again);
  read_again = read_digits (again, test_images, error);
  right = gtorch_tensor_to_ints (test_labels, &length, error);
  if (read_again == NULL || right == NULL
      || !g_file_load_contents (file, NULL, &weights, &length, NULL, error))
    return FALSE;
  for (gint64 i = 0; i < n_held; i++)
    {
      n_right += read[i] == right[i];
      if (read[i] != read_again[i])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                       "the reloaded model reads digit %d otherwise", (gint) i);
          return FALSE;
        }
    }
  if (!draw (losses, test_images, right, read, n_held, error))
    return FALSE;
  checksum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (guchar *) weights, length);
  g_print ("digits: accuracy %.2f %%, loss %.6f, weights %.16s\n", 100.0 * n_right / n_held,
           g_array_index (losses, gdouble, losses->len - 1), checksum);
  return TRUE;
}

/* Prints the GPU that computes, or why none does. */
static void
print_device (void)
{
  GTorchDevice *device = gtorch_get_default_device ();
  g_autofree char *name = gtorch_device_to_string (device);
  g_autofree char *reason = gtorch_device_manager_dup_reason (gtorch_device_manager_get_default ());

  g_print ("digits: on %s, %s%s%s\n", name, gtorch_device_get_name (device),
           reason ? "; no GPU: " : "", reason ? reason : "");
}

int
main (int argc, char *argv[])
{
  g_autoptr (GOptionContext) context = g_option_context_new ("- learn to read digits");
  g_autoptr (GError) error = NULL;

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_group (context, gtorch_get_option_group ());
  if (g_option_context_parse (context, &argc, &argv, &error) && argc > 1)
    g_set_error (&error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "unexpected argument “%s”",
                 argv[1]);
  if (error == NULL)
    {
      print_device ();
      if (run (&error))
        return 0;
    }
  g_printerr ("digits: %s\n", error ? error->message : "the data are too short");
  return 1;
}
