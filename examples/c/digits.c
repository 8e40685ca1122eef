/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Learns to read handwritten digits, saves and reloads the network, and draws the misread digits. */

#include <cairo.h>
#include <gtorch/gtorch.h>
#include <math.h>
#include <stdlib.h>
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

/* Draws the loss curve on the left, misread digits on the right: the image, its label and the digit that
 * was read. */
static void
draw (GArray *losses, GTorchTensor *images, const gint64 *labels, const gint64 *read, gint64 n)
{
  cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_RGB24, 640, 320);
  cairo_t *cr = cairo_create (surface);
  g_autofree gdouble *pixels = gtorch_tensor_to_doubles (images, &(gsize){ 0 }, NULL);
  gint place = 0;

  cairo_set_source_rgb (cr, 1, 1, 1);
  cairo_paint (cr);
  cairo_set_source_rgb (cr, 0.1, 0.3, 0.7);
  for (guint i = 0; i < losses->len; i++)
    cairo_line_to (cr, 20 + 280.0 * i / MAX (losses->len - 1, 1),
                   300
                       - 280 * g_array_index (losses, gdouble, i)
                             / g_array_index (losses, gdouble, 0));
  cairo_stroke (cr);
  for (gint64 i = 0; i < n && place < 16; i++)
    if (read[i] != labels[i])
      {
        g_autofree gchar *text =
            g_strdup_printf ("%d read as %d", (gint) labels[i], (gint) read[i]);
        gdouble left = 330 + place % 4 * 76, top = 10 + place / 4 * 76;

        for (gint j = 0; j < 64; j++)
          {
            gdouble grey = 1 - pixels[i * 64 + j];

            cairo_set_source_rgb (cr, grey, grey, grey);
            cairo_rectangle (cr, left + j % 8 * 7, top + j / 8 * 7, 7, 7);
            cairo_fill (cr);
          }
        cairo_set_source_rgb (cr, 0.7, 0.1, 0.1);
        cairo_move_to (cr, left, top + 68);
        cairo_show_text (cr, text);
        place++;
      }
  cairo_surface_write_to_png (surface, output);
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
}

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
  draw (losses, test_images, right, read, n_held);
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
