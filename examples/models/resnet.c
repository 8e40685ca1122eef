/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* ResNet-18 and ResNet-50, trained on handwritten digits: the program resnet.py in C. With the same options
 * it draws the same random numbers and ends with the same line. */

#include <gtorch/gtorch.h>
#include <stdlib.h>

#define N 1797

static gint seed = 1, n_steps = 100, depth = 18, width = 64, batch = 32, size = 64;
static gboolean channels_last, with_graph;
static gchar *data_path = DATA_FILE, *amp;

static GOptionEntry entries[] = {
  { "data", 0, 0, G_OPTION_ARG_FILENAME, &data_path, "The digits, digits.csv.gz", "FILE" },
  { "steps", 0, 0, G_OPTION_ARG_INT, &n_steps, "How many batches to train on", "N" },
  { "seed", 0, 0, G_OPTION_ARG_INT, &seed, "Where random numbers start", "N" },
  { "depth", 0, 0, G_OPTION_ARG_INT, &depth, "How many layers: 18 or 50", "N" },
  { "width", 0, 0, G_OPTION_ARG_INT, &width, "Channels of the first stage", "N" },
  { "batch", 0, 0, G_OPTION_ARG_INT, &batch, "Images in a batch", "N" },
  { "size", 0, 0, G_OPTION_ARG_INT, &size, "Height and width of an image", "N" },
  { "channels-last", 0, 0, G_OPTION_ARG_NONE, &channels_last, "Keep the channels innermost", NULL },
  { "amp", 0, 0, G_OPTION_ARG_STRING, &amp, "Train in mixed precision", "float16|bfloat16" },
  { "graph", 0, 0, G_OPTION_ARG_NONE, &with_graph, "Capture a step and replay it", NULL },
  { NULL },
};

/* --- layers --- */

static GTorchModule *
make_conv (gint64 inputs, gint64 outputs, gint64 kernel, gint64 stride, GError **error)
{
  return gtorch_module_new (GTORCH_TYPE_CONV2D, error, "in-channels", inputs, "out-channels",
                            outputs, "kernel-size", GTORCH_SIZE (kernel), "stride",
                            GTORCH_SIZE (stride), "padding", GTORCH_SIZE (kernel / 2), "has-bias",
                            FALSE, NULL);
}

static GTorchModule *
make_norm (gint64 channels, GError **error)
{
  return GTORCH_MODULE (gtorch_batch_norm2d_new (channels, error));
}

/* Registers a layer, whose reference it takes, and returns it. */
static GTorchModule *
add (GTorchModule *module, const gchar *name, GTorchModule *layer, GError **error)
{
  g_autoptr (GTorchModule) owned = layer;

  return layer != NULL && gtorch_module_register_module (module, name, layer, error) ? layer : NULL;
}

/* A convolution and the batch norm of its result. */
static GTorchTensor *
convolve (GTorchModule *conv, GTorchModule *norm, GTorchTensor *x, gboolean with_relu,
          GError **error)
{
  g_autoptr (GTorchTensor) inner = gtorch_module_forward (conv, x, error);
  g_autoptr (GTorchTensor) y = inner != NULL ? gtorch_module_forward (norm, inner, error) : NULL;

  if (y == NULL)
    return NULL;
  return with_relu ? gtorch_tensor_relu (y, error) : g_steal_pointer (&y);
}

/* --- blocks: two convolutions of 3 x 3, or one between two of 1 x 1, added to their input --- */

#define EXAMPLE_TYPE_BLOCK (example_block_get_type ())
G_DECLARE_FINAL_TYPE (ExampleBlock, example_block, EXAMPLE, BLOCK, GTorchModule)

struct _ExampleBlock
{
  GTorchModule parent_instance;
  GTorchModule *conv[3], *norm[3]; /* borrowed: they were registered */
  guint n_convs;
  GTorchModule *shortcut_conv, *shortcut_norm; /* or NULL */
};

G_DEFINE_TYPE (ExampleBlock, example_block, GTORCH_TYPE_MODULE)

static GTorchTensor *
example_block_forward (GTorchModule *module, GTorchTensor *x, GError **error)
{
  ExampleBlock *self = EXAMPLE_BLOCK (module);
  g_autoptr (GTorchTensor) y = g_object_ref (x);
  g_autoptr (GTorchTensor) shortcut = NULL, sum = NULL;

  for (guint i = 0; i < self->n_convs; i++)
    {
      GTorchTensor *next = convolve (self->conv[i], self->norm[i], y, i + 1 < self->n_convs, error);

      g_object_unref (y);
      y = next;
      if (y == NULL)
        return NULL;
    }
  shortcut = self->shortcut_conv != NULL
                 ? convolve (self->shortcut_conv, self->shortcut_norm, x, FALSE, error)
                 : g_object_ref (x);
  sum = shortcut != NULL ? gtorch_tensor_add (y, shortcut, 1, error) : NULL;
  return sum != NULL ? gtorch_tensor_relu (sum, error) : NULL;
}

static void
example_block_class_init (ExampleBlockClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = example_block_forward;
}

static void
example_block_init (ExampleBlock *self)
{
}

static GTorchModule *
make_block (gint64 inputs, gint64 channels, gint64 stride, GError **error)
{
  g_autoptr (ExampleBlock) self = g_object_new (EXAMPLE_TYPE_BLOCK, NULL);
  GTorchModule *module = GTORCH_MODULE (self);
  const gint64 outputs = depth == 18 ? channels : 4 * channels;
  g_autoptr (GTorchTensor) weight = NULL;

  self->n_convs = depth == 18 ? 2 : 3;
  for (guint i = 0; i < self->n_convs; i++)
    {
      gboolean is_middle = depth == 18 || i == 1;
      gint64 to = i + 1 == self->n_convs ? outputs : channels;
      g_autofree gchar *conv = g_strdup_printf ("conv%u", i + 1);
      g_autofree gchar *norm = g_strdup_printf ("bn%u", i + 1);

      self->conv[i] = add (module, conv,
                           make_conv (i == 0 ? inputs : channels, to, is_middle ? 3 : 1,
                                      i == (depth == 18 ? 0 : 1) ? stride : 1, error),
                           error);
      self->norm[i] =
          self->conv[i] != NULL ? add (module, norm, make_norm (to, error), error) : NULL;
      if (self->norm[i] == NULL)
        return NULL;
    }
  weight = gtorch_module_get_tensor (self->norm[self->n_convs - 1], "weight", error);
  /* so that a block begins as its shortcut alone */
  if (weight == NULL || !gtorch_init_zeros (weight, error))
    return NULL;
  if (stride != 1 || inputs != outputs)
    {
      GTorchModule *shortcut =
          add (module, "downsample", GTORCH_MODULE (gtorch_sequential_new ()), error);

      self->shortcut_conv =
          shortcut != NULL
              ? add (shortcut, "0", make_conv (inputs, outputs, 1, stride, error), error)
              : NULL;
      self->shortcut_norm = self->shortcut_conv != NULL
                                ? add (shortcut, "1", make_norm (outputs, error), error)
                                : NULL;
      if (self->shortcut_norm == NULL)
        return NULL;
    }
  return GTORCH_MODULE (g_steal_pointer (&self));
}

/* --- the model --- */

#define EXAMPLE_TYPE_NET (example_net_get_type ())
G_DECLARE_FINAL_TYPE (ExampleNet, example_net, EXAMPLE, NET, GTorchModule)

struct _ExampleNet
{
  GTorchModule parent_instance;
  GTorchModule *conv, *norm, *stages[4], *last;
};

G_DEFINE_TYPE (ExampleNet, example_net, GTORCH_TYPE_MODULE)

static GTorchTensor *
pool (GTorchTensor *x, GError **error)
{
  return gtorch_tensor_max_pool2d (x, GTORCH_SHAPE (3), GTORCH_SHAPE (2), GTORCH_SHAPE (1),
                                   GTORCH_SHAPE (1), FALSE, error);
}

static GTorchTensor *
example_net_forward (GTorchModule *module, GTorchTensor *x, GError **error)
{
  ExampleNet *self = EXAMPLE_NET (module);
  g_autoptr (GTorchTensor) y = convolve (self->conv, self->norm, x, TRUE, error);
  g_autoptr (GTorchTensor) pooled = y != NULL ? pool (y, error) : NULL;
  g_autoptr (GTorchTensor) mean = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (self->stages) && pooled != NULL; i++)
    {
      GTorchTensor *next = gtorch_module_forward (self->stages[i], pooled, error);

      g_object_unref (pooled);
      pooled = next;
    }
  if (pooled != NULL)
    mean = gtorch_tensor_mean (pooled, GTORCH_SHAPE (2, 3), FALSE, GTORCH_DTYPE_NONE, error);
  return mean != NULL ? gtorch_module_forward (self->last, mean, error) : NULL;
}

static void
example_net_class_init (ExampleNetClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = example_net_forward;
}

static void
example_net_init (ExampleNet *self)
{
}

static GTorchModule *
make_net (gint64 classes, GError **error)
{
  static const guint n_blocks[2][4] = { { 2, 2, 2, 2 }, { 3, 4, 6, 3 } };
  g_autoptr (ExampleNet) self = g_object_new (EXAMPLE_TYPE_NET, NULL);
  GTorchModule *module = GTORCH_MODULE (self);
  gint64 inputs = width;

  self->conv = add (module, "conv1", make_conv (3, width, 7, 2, error), error);
  self->norm = self->conv != NULL ? add (module, "bn1", make_norm (width, error), error) : NULL;
  if (self->norm == NULL)
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (self->stages); i++)
    {
      g_autofree gchar *name = g_strdup_printf ("layer%u", i + 1);
      GTorchModule *stage = GTORCH_MODULE (gtorch_sequential_new ());

      self->stages[i] = add (module, name, stage, error);
      if (self->stages[i] == NULL)
        return NULL;
      for (guint j = 0; j < n_blocks[depth == 50][i]; j++)
        {
          g_autoptr (GTorchModule) block =
              make_block (inputs, (gint64) width << i, i > 0 && j == 0 ? 2 : 1, error);

          if (block == NULL || !gtorch_sequential_append (GTORCH_SEQUENTIAL (stage), block, error))
            return NULL;
          inputs = ((gint64) width << i) * (depth == 18 ? 1 : 4);
        }
    }
  self->last =
      add (module, "fc", GTORCH_MODULE (gtorch_linear_new (inputs, classes, error)), error);
  return self->last != NULL ? GTORCH_MODULE (g_steal_pointer (&self)) : NULL;
}

/* --- data --- */

/* Returns images [1797, 3, size, size] around 0 and labels [1797], on the CPU. */
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
  g_autoptr (GTorchTensor) small = NULL, large = NULL;

  for (gint i = 0; i < N; i++)
    {
      g_autofree gchar *line =
          lines ? g_data_input_stream_read_line (lines, NULL, NULL, error) : NULL;
      gchar *next = line;

      if (line == NULL)
        return FALSE;
      for (gint j = 0; j < 64; j++, next++)
        pixels[i * 64 + j] = g_ascii_strtoll (next, &next, 10) / 16.0f - 0.5f;
      digits[i] = g_ascii_strtoll (next, NULL, 10);
    }
  small = gtorch_tensor_new_from_floats (pixels, N * 64, GTORCH_SHAPE (N, 1, 8, 8),
                                         GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), error);
  large = small ? gtorch_interpolate (small, GTORCH_SHAPE (size, size), GTORCH_NONE_DOUBLE,
                                      GTORCH_RESAMPLING_BILINEAR, FALSE, FALSE, FALSE,
                                      GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, error)
                : NULL;
  *images = large ? gtorch_tensor_expand (large, GTORCH_SHAPE (-1, 3, -1, -1), error) : NULL;
  *labels = gtorch_tensor_new_from_ints (digits, N, GTORCH_SHAPE (N), GTORCH_DTYPE_INT64,
                                         gtorch_device_cpu (), error);
  return *images != NULL && *labels != NULL;
}

static GTorchTensor *
pick (GTorchTensor *labels, gboolean held, GError **error)
{
  g_autofree gint64 *places = g_new (gint64, N);
  gint64 n = 0;

  for (gint64 i = 0; i < N; i++)
    if ((i % 5 == 0) == held)
      places[n++] = i;
  return gtorch_tensor_new_from_ints (places, n, GTORCH_SHAPE (n), GTORCH_DTYPE_INT64,
                                      gtorch_device_cpu (), error);
}

/* --- training --- */

typedef struct
{
  GTorchModule *model;
  GTorchTensor *x, *t; /* each batch is copied to these */
  GTorchOptimizer *optimizer;
  GTorchGradScaler *scaler;
  GTorchDType dtype; /* of mixed precision, or NONE */
  GTorchCUDAGraph *graph;
  GTorchStream *side; /* on which steps run before the capture */
  GTorchTensor *loss;
  gint done;
} Training;

static void
training_clear (Training *self)
{
  g_clear_object (&self->model);
  g_clear_object (&self->x);
  g_clear_object (&self->t);
  g_clear_object (&self->optimizer);
  g_clear_object (&self->scaler);
  g_clear_object (&self->graph);
  g_clear_object (&self->side);
  g_clear_object (&self->loss);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Training, training_clear)

static gboolean
training_init (Training *self, GError **error)
{
  GTorchDevice *device = gtorch_get_default_device ();
  GTorchMemoryFormat format =
      channels_last ? GTORCH_MEMORY_FORMAT_CHANNELS_LAST : GTORCH_MEMORY_FORMAT_CONTIGUOUS;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchTensor) zeros = NULL;
  g_autoptr (GTorchParamGroup) group = NULL;

  self->dtype = g_strcmp0 (amp, "float16") == 0    ? GTORCH_DTYPE_FLOAT16
                : g_strcmp0 (amp, "bfloat16") == 0 ? GTORCH_DTYPE_BFLOAT16
                                                   : GTORCH_DTYPE_NONE;
  self->model = make_net (10, error);
  zeros = gtorch_zeros (GTORCH_SHAPE (batch, 3, size, size), GTORCH_DTYPE_FLOAT32, NULL, error);
  if (self->model == NULL || zeros == NULL
      || !gtorch_module_to_memory_format (self->model, format, error))
    return FALSE;
  self->x = gtorch_tensor_to_memory_format (zeros, format, error);
  self->t = gtorch_zeros (GTORCH_SHAPE (batch), GTORCH_DTYPE_INT64, NULL, error);
  parameters = gtorch_module_get_parameters (self->model, TRUE);
  self->optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (parameters, 0.05, 0.9, error));
  if (self->x == NULL || self->t == NULL || self->optimizer == NULL)
    return FALSE;
  group = g_list_model_get_item (gtorch_optimizer_get_param_groups (self->optimizer), 0);
  gtorch_param_group_set_weight_decay (group, 1e-4);
  self->scaler = gtorch_grad_scaler_new ();
  g_object_set (self->scaler, "enabled", self->dtype == GTORCH_DTYPE_FLOAT16, NULL);
  if (with_graph)
    {
      self->graph = gtorch_cuda_graph_new ();
      self->side = gtorch_stream_new (device, 0, error);
    }
  return !with_graph || self->side != NULL;
}

/* Computes the loss of the batch, the gradients and the optimizer's step. */
static gboolean
training_compute (Training *self, GError **error)
{
  GTorchDeviceType type = gtorch_device_get_device_type (gtorch_get_default_device ());
  g_autoptr (GTorchAutocastGuard) guard =
      gtorch_autocast_guard_new (type, self->dtype, self->dtype != GTORCH_DTYPE_NONE, TRUE, error);
  g_autoptr (GTorchTensor) scores =
      guard != NULL ? gtorch_module_forward (self->model, self->x, error) : NULL;
  g_autoptr (GTorchTensor) loss =
      scores != NULL ? gtorch_tensor_cross_entropy (scores, self->t, NULL, GTORCH_REDUCTION_MEAN,
                                                    -100, 0, error)
                     : NULL;
  g_autoptr (GTorchTensor) scaled = NULL;

  g_clear_pointer (&guard, gtorch_autocast_guard_unref);
  scaled = loss != NULL ? gtorch_grad_scaler_scale (self->scaler, loss, error) : NULL;
  if (scaled == NULL || !gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, error)
      || !gtorch_grad_scaler_step (self->scaler, self->optimizer, error)
      || !gtorch_grad_scaler_update (self->scaler, NULL, error))
    return FALSE;
  g_clear_object (&self->loss);
  self->loss = gtorch_tensor_detach (loss, error);
  return self->loss != NULL;
}

static gboolean
training_capture (Training *self, GError **error)
{
  g_autoptr (GTorchGraphCapture) capture =
      gtorch_graph_capture_new (self->graph, self->side, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL,
                                error);

  return capture != NULL && training_compute (self, error)
         && gtorch_graph_capture_end (capture, error);
}

/* Three steps run on a stream of their own, the fourth is captured, and all from then on are replays. */
static gboolean
training_step (Training *self, GTorchTensor *images, GTorchTensor *labels, GError **error)
{
  GTorchStream *current = gtorch_stream_get_current (gtorch_get_default_device ());

  self->done++;
  if (gtorch_tensor_copy_inplace (self->x, images, TRUE, error) == NULL
      || gtorch_tensor_copy_inplace (self->t, labels, TRUE, error) == NULL)
    return FALSE;
  if (self->graph != NULL && self->done > 4)
    return gtorch_cuda_graph_replay (self->graph, error);
  if (!gtorch_optimizer_zero_grad (self->optimizer, TRUE, error))
    return FALSE;
  if (self->graph == NULL)
    return training_compute (self, error);
  if (self->done == 4)
    return training_capture (self, error) && gtorch_cuda_graph_replay (self->graph, error);
  if (!gtorch_stream_wait_stream (self->side, current, error))
    return FALSE;
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (self->side);

    if (!training_compute (self, error))
      return FALSE;
  }
  return gtorch_stream_wait_stream (current, self->side, error);
}

/* Returns how many images of the last part are read right, or -1. */
static gint64
count_right (GTorchModule *model, GTorchTensor *images, GTorchTensor *labels, GTorchTensor *places,
             GError **error)
{
  GTorchDevice *device = gtorch_get_default_device ();
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  const gint64 n = gtorch_tensor_get_numel (places);
  gint64 n_right = 0;

  gtorch_module_eval (model);
  for (gint64 start = 0; start < n; start += batch)
    {
      g_autoptr (GTorchTensor) index =
          gtorch_tensor_slice (places, 0, start, MIN (start + batch, n), 1, error);
      g_autoptr (GTorchTensor) x = gtorch_tensor_index_select (images, 0, index, error);
      g_autoptr (GTorchTensor) t = gtorch_tensor_index_select (labels, 0, index, error);
      g_autoptr (GTorchTensor) there = x ? gtorch_tensor_to_device (x, device, FALSE, error) : NULL;
      g_autoptr (GTorchTensor) scores = there ? gtorch_module_forward (model, there, error) : NULL;
      g_autoptr (GTorchTensor) read =
          scores ? gtorch_tensor_argmax (scores, GTORCH_SHAPE (1), FALSE, error) : NULL;
      gsize n_read = 0;
      g_autofree gint64 *digits = read ? gtorch_tensor_to_ints (read, &n_read, error) : NULL;
      g_autofree gint64 *right = t ? gtorch_tensor_to_ints (t, &n_read, error) : NULL;

      if (digits == NULL || right == NULL)
        return -1;
      for (gsize i = 0; i < n_read; i++)
        n_right += digits[i] == right[i];
    }
  return n_right;
}

static gboolean
run (GError **error)
{
  g_autoptr (GTorchTensor) images = NULL, labels = NULL, rest = NULL, held = NULL;
  g_auto (Training) training = { NULL };
  gint64 n_rest, n_right, start;

  gtorch_manual_seed (seed);
  if (!load_digits (&images, &labels, error) || (rest = pick (labels, FALSE, error)) == NULL
      || (held = pick (labels, TRUE, error)) == NULL || !training_init (&training, error))
    return FALSE;
  n_rest = gtorch_tensor_get_numel (rest);
  start = g_get_monotonic_time ();
  for (gint step = 1; step <= n_steps; step++)
    {
      g_autoptr (GTorchTensor) drawn =
          gtorch_randint (0, n_rest, GTORCH_SHAPE (batch), GTORCH_DTYPE_INT64, gtorch_device_cpu (),
                          NULL, error);
      g_autoptr (GTorchTensor) index =
          drawn ? gtorch_tensor_index_select (rest, 0, drawn, error) : NULL;
      g_autoptr (GTorchTensor) x =
          index ? gtorch_tensor_index_select (images, 0, index, error) : NULL;
      g_autoptr (GTorchTensor) t = x ? gtorch_tensor_index_select (labels, 0, index, error) : NULL;

      if (t == NULL || !training_step (&training, x, t, error))
        return FALSE;
      if (step % 10 == 0 || step == n_steps)
        g_print ("step %d of %d: loss %.4f\n", step, n_steps,
                 gtorch_tensor_item_double (training.loss, error));
    }
  g_print ("%.1f images/s\n", n_steps * batch * 1e6 / (g_get_monotonic_time () - start));
  n_right = count_right (training.model, images, labels, held, error);
  if (n_right < 0)
    return FALSE;
  g_print ("resnet: loss %.6f, accuracy %.2f %%\n",
           gtorch_tensor_item_double (training.loss, error),
           100.0 * n_right / gtorch_tensor_get_numel (held));
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GOptionContext) context =
      g_option_context_new ("- train a residual network on digits");
  g_autoptr (GError) error = NULL;

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_group (context, gtorch_get_option_group ());
  if (g_option_context_parse (context, &argc, &argv, &error))
    {
      GTorchDevice *device = gtorch_get_default_device ();
      g_autofree gchar *name = gtorch_device_to_string (device);

      if (argc > 1)
        g_set_error (&error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "unexpected argument “%s”",
                     argv[1]);
      else if ((depth != 18 && depth != 50) || width < 1 || batch < 2 || size < 8 || n_steps < 1)
        g_set_error (&error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                     "depth %d must be 18 or 50, width %d and steps %d at least 1, batch %d 2, "
                     "size %d 8",
                     depth, width, n_steps, batch, size);
      else if (amp != NULL && !g_str_equal (amp, "float16") && !g_str_equal (amp, "bfloat16"))
        g_set_error (&error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                     "amp “%s” must be float16 or bfloat16", amp);
      else
        {
          g_print ("resnet: ResNet-%d on %s, %s\n", depth, name, gtorch_device_get_name (device));
          if (run (&error))
            return 0;
        }
    }
  g_printerr ("resnet: %s\n", error->message);
  return 1;
}
