/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

/* clang-format off */
/* Written by reference.py beside this file, with PyTorch 2.11. */
static const struct
{
  const gchar *name;
  const gchar *text;
  const gchar *shape;
  gdouble output;
  gdouble gradient;
} reference[] = {
  { "identity", "Identity()", "[2, 3]", 2.5708037522309235, 2.952904133177273 },
  { "relu", "ReLU()", "[2, 3]", 1.2740398363141574, 1.465104771294623 },
  { "sigmoid", "Sigmoid()", "[2, 3]", 0.48608066372016745, 0.6316689637400599 },
  { "tanh", "Tanh()", "[2, 3]", 2.059406230263779, 1.6836642639623047 },
  { "silu", "SiLU()", "[2, 3]", 1.2856014394765432, 1.45431209359351 },
  { "gelu", "GELU(approximate='none')", "[2, 3]", 1.2857192264324957, 1.4400375234751923 },
  { "gelu_tanh", "GELU(approximate='tanh')", "[2, 3]", 1.2857166832639162, 1.4400417340493274 },
  { "leaky_relu", "LeakyReLU(negative_slope=0.2)", "[2, 3]", 1.5333926194975107, 1.762664643671153 },
  { "softmax", "Softmax(dim=1)", "[2, 3]", 0.22329868824097487, 0.5878978047301948 },
  { "log_softmax", "LogSoftmax(dim=0)", "[2, 3]", 2.765451591438419, 2.97100384621406 },
  { "flatten", "Flatten(start_dim=1, end_dim=-1)", "[2, 12]", 10.58493669414348, 12.286713423569037 },
  { "linear", "Linear(in_features=3, out_features=4, bias=True)", "[2, 4]", 3.9190213749235356, 2.001517423468486 },
  { "linear_without_bias", "Linear(in_features=3, out_features=4, bias=False)", "[2, 5, 4]", 1.683099690067594, 2.098481198923505 },
  { "conv2d", "Conv2d(2, 3, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))", "[2, 3, 5, 4]", 131.31071195464088, 58.87849112904159 },
  { "conv2d_full", "Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2, bias=False)", "[1, 6, 3, 5]", -3.4853441765824527, -1.3156003634911966 },
  { "max_pool2d", "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)", "[1, 2, 2, 3]", 0.0578551487227609, -0.48248237935439875 },
  { "max_pool2d_full", "MaxPool2d(kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=1, ceil_mode=True)", "[1, 2, 3, 6]", 2.0558981493842543, 0.8465575161646619 },
  { "avg_pool2d", "AvgPool2d(kernel_size=2, stride=2, padding=0)", "[1, 2, 2, 3]", 0.33897728673362615, -0.12305646423330019 },
  { "adaptive_avg_pool2d", "AdaptiveAvgPool2d(output_size=(2, 3))", "[1, 2, 2, 3]", 0.6081629930505665, 0.49021438843719295 },
  { "batch_norm1d", "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)", "[4, 3]", 5.522113211660767, 0.14118463885150595 },
  { "batch_norm2d", "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)", "[2, 3, 2, 2]", 11.91021185507045, 1.8621784531603534 },
  { "layer_norm", "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True)", "[2, 3, 4]", 11.485912203816701, 0.36185498081821965 },
};
/* clang-format on */

/* The same, made by a constructor or by properties; and a shape to feed it with. */
static gpointer
layer_new (const gchar *name, gint64 *shape, gsize *n_dims)
{
#define LAYER(layer_name, layer, ...)        \
  if (g_str_equal (name, layer_name))        \
    {                                        \
      const gint64 dims[] = { __VA_ARGS__ }; \
                                             \
      *n_dims = G_N_ELEMENTS (dims);         \
      memcpy (shape, dims, sizeof (dims));   \
      return layer;                          \
    }
  LAYER ("identity", gtorch_identity_new (), 2, 3)
  LAYER ("relu", gtorch_relu_new (), 2, 3)
  LAYER ("sigmoid", gtorch_sigmoid_new (), 2, 3)
  LAYER ("tanh", gtorch_tanh_new (), 2, 3)
  LAYER ("silu", gtorch_silu_new (), 2, 3)
  LAYER ("gelu", gtorch_gelu_new (FALSE), 2, 3)
  LAYER ("gelu_tanh", g_object_new (GTORCH_TYPE_GELU, "tanh-approximation", TRUE, NULL), 2, 3)
  LAYER ("leaky_relu", gtorch_leaky_relu_new (0.2), 2, 3)
  LAYER ("softmax", gtorch_softmax_new (1), 2, 3)
  LAYER ("log_softmax", gtorch_log_softmax_new (0), 2, 3)
  LAYER ("flatten", gtorch_flatten_new (1, -1), 2, 3, 4)
  LAYER ("linear", gtorch_linear_new (3, 4, TRUE, NULL), 2, 3)
  LAYER ("linear_without_bias",
         g_object_new (GTORCH_TYPE_LINEAR, "in-features", (gint64) 3, "out-features", (gint64) 4,
                       "has-bias", FALSE, NULL),
         2, 5, 3)
  LAYER ("conv2d", gtorch_conv2d_new (2, 3, 3, 1, 1, TRUE, NULL), 2, 2, 5, 4)
  LAYER ("conv2d_full",
         g_object_new (GTORCH_TYPE_CONV2D, "in-channels", (gint64) 4, "out-channels", (gint64) 6,
                       "kernel-size", (gint64) 3, "kernel-width", (gint64) 2, "stride", (gint64) 2,
                       "stride-width", (gint64) 1, "padding", (gint64) 1, "padding-width",
                       (gint64) 0, "dilation", (gint64) 1, "dilation-width", (gint64) 2, "groups",
                       (gint64) 2, "has-bias", FALSE, NULL),
         1, 4, 6, 7)
  LAYER ("max_pool2d", gtorch_max_pool2d_new (2, -1, 0, NULL), 1, 2, 4, 6)
  LAYER ("max_pool2d_full",
         g_object_new (GTORCH_TYPE_MAX_POOL2D, "kernel-size", (gint64) 3, "kernel-width",
                       (gint64) 2, "stride", (gint64) 2, "stride-width", (gint64) 1, "padding",
                       (gint64) 1, "padding-width", (gint64) 0, "ceil-mode", TRUE, NULL),
         1, 2, 5, 7)
  LAYER ("avg_pool2d", gtorch_avg_pool2d_new (2, 2, 0, NULL), 1, 2, 4, 6)
  LAYER ("adaptive_avg_pool2d",
         g_object_new (GTORCH_TYPE_ADAPTIVE_AVG_POOL2D, "output-size", (gint64) 2, "output-width",
                       (gint64) 3, NULL),
         1, 2, 5, 7)
  LAYER ("batch_norm1d", gtorch_batch_norm1d_new (3, NULL), 4, 3)
  LAYER ("batch_norm2d", gtorch_batch_norm2d_new (3, NULL), 2, 3, 2, 2)
  LAYER ("layer_norm", gtorch_layer_norm_new (GTORCH_SHAPE (3, 4), 1e-5, TRUE, TRUE, NULL), 2, 3, 4)
#undef LAYER
  g_assert_not_reached ();
}

static GTorchTensor *
waves (const gint64 *shape, gsize n_dims)
{
  gint64 n = 1;
  g_autofree gdouble *values = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = sin ((gdouble) i + 1);
  return gtorch_tensor_new_from_doubles (values, n, shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL,
                                         NULL);
}

/* The sum of the elements, element j times cos (j). */
static GTorchTensor *
weigh (GTorchTensor *tensor)
{
  gint64 n = gtorch_tensor_get_numel (tensor);
  g_autoptr (GTorchTensor) flat = gtorch_tensor_reshape (tensor, &n, 1, NULL);
  g_autoptr (GTorchTensor) numbers =
      gtorch_arange (0, (gdouble) n, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) weights = gtorch_tensor_cos (numbers, NULL);
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (flat, weights, NULL);

  return gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
}

static gdouble
weighed (GTorchTensor *tensor)
{
  g_autoptr (GTorchTensor) sum = weigh (tensor);

  return gtorch_tensor_item_double (sum, NULL);
}

static void
make_waves (GTorchModule *module)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  g_assert_true (gtorch_module_to (module, NULL, GTORCH_DTYPE_FLOAT64, NULL));
  for (guint i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
      gsize n_dims;
      const gint64 *shape = gtorch_tensor_get_shape (parameter, &n_dims);
      g_autoptr (GTorchTensor) values = waves (shape, n_dims);

      g_assert_true (gtorch_tensor_copy_inplace (parameter, values, FALSE, NULL));
    }
}

static gchar *
shape_of (GTorchTensor *tensor)
{
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (tensor, &n_dims);
  GString *text = g_string_new ("[");

  for (gsize i = 0; i < n_dims; i++)
    g_string_append_printf (text, "%s%d", i > 0 ? ", " : "", (gint) shape[i]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

static void
layers_are_pytorchs (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (reference); i++)
    {
      gint64 dims[8];
      gsize n_dims;
      g_autoptr (GTorchModule) layer = layer_new (reference[i].name, dims, &n_dims);
      g_autoptr (GTorchTensor) x = waves (dims, n_dims);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) sum = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GError) error = NULL;
      g_autofree gchar *text = gtorch_module_to_string (layer);
      g_autofree gchar *shape = NULL;

      g_test_message ("%s", reference[i].name);
      make_waves (layer);
      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      y = gtorch_module_forward (layer, x, &error);
      g_assert_no_error (error);
      shape = shape_of (y);
      sum = weigh (y);
      gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
      g_assert_no_error (error);
      grad = gtorch_tensor_get_grad (x);
      g_assert_cmpstr (text, ==, reference[i].text);
      g_assert_cmpstr (shape, ==, reference[i].shape);
      g_assert_cmpfloat_with_epsilon (weighed (y), reference[i].output, 1e-11);
      g_assert_cmpfloat_with_epsilon (weighed (grad), reference[i].gradient, 1e-11);
    }
}

static void
batch_norm_keeps_running_stats (void)
{
  const gdouble means[] = { 0.07101445601454656, -0.025436585517601633, -0.03776153229428246 };
  const gdouble vars[] = { 0.878601689952561, 0.9201247542600153, 0.9069053224034904 };
  g_autoptr (GTorchModule) norm = GTORCH_MODULE (gtorch_batch_norm2d_new (3, NULL));
  g_autoptr (GTorchTensor) a = waves (GTORCH_SHAPE (2, 3, 2, 2));
  g_autoptr (GTorchTensor) b = waves (GTORCH_SHAPE (4, 3, 2, 2));
  g_autoptr (GTorchTensor) ya = NULL;
  g_autoptr (GTorchTensor) yb = NULL;
  g_autoptr (GTorchTensor) yc = NULL;
  g_autofree gdouble *mean = NULL;
  g_autofree gdouble *var = NULL;
  gsize n;

  g_assert_true (gtorch_module_to (norm, NULL, GTORCH_DTYPE_FLOAT64, NULL));
  ya = gtorch_module_forward (norm, a, NULL);
  yb = gtorch_module_forward (norm, b, NULL);
  mean = gtorch_tensor_to_doubles (gtorch_module_get_buffer (norm, "running_mean", NULL), &n, NULL);
  var = gtorch_tensor_to_doubles (gtorch_module_get_buffer (norm, "running_var", NULL), &n, NULL);
  for (guint i = 0; i < 3; i++)
    {
      g_assert_cmpfloat_with_epsilon (mean[i], means[i], 1e-12);
      g_assert_cmpfloat_with_epsilon (var[i], vars[i], 1e-12);
    }
  g_assert_cmpint (gtorch_tensor_item_int (gtorch_module_get_buffer (norm, "num_batches_tracked",
                                                                     NULL),
                                           NULL),
                   ==, 2);
  gtorch_module_eval (norm);
  yc = gtorch_module_forward (norm, a, NULL);
  g_assert_cmpfloat_with_epsilon (weighed (yc), 10.954062664823452, 1e-11);
  g_assert_cmpint (gtorch_tensor_item_int (gtorch_module_get_buffer (norm, "num_batches_tracked",
                                                                     NULL),
                                           NULL),
                   ==, 2);
}

static void
batch_norm_names_the_wrong_shape (void)
{
  g_autoptr (GTorchModule) norm = GTORCH_MODULE (gtorch_batch_norm2d_new (3, NULL));
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (2, 4, 2, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_module_forward (norm, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "BatchNorm2d: shape [2, 4, 2, 2] is not [N, C, H, W] with 3 channels");
}

static void
dropout_acts_in_training_only (void)
{
  g_autoptr (GTorchModule) dropout = GTORCH_MODULE (gtorch_dropout_new (0.25, NULL));
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (10000), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autofree gdouble *values = NULL;
  guint n_zeros = 0;
  gsize n;

  gtorch_manual_seed (7);
  y = gtorch_module_forward (dropout, x, NULL);
  values = gtorch_tensor_to_doubles (y, &n, NULL);
  for (gsize i = 0; i < n; i++)
    {
      g_assert_true (values[i] == 0 || fabs (values[i] - 4.0 / 3.0) < 1e-12);
      n_zeros += values[i] == 0;
    }
  g_assert_cmpuint (n_zeros, >, 2300); /* 4.6 standard deviations */
  g_assert_cmpuint (n_zeros, <, 2700);
  gtorch_module_eval (dropout);
  z = gtorch_module_forward (dropout, x, NULL);
  g_clear_pointer (&values, g_free);
  values = gtorch_tensor_to_doubles (z, &n, NULL);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, 1);
}

static void
embedding_looks_up_and_keeps_padding (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) embedding = GTORCH_MODULE (gtorch_embedding_new (5, 3, 1, &error));
  const gint64 indices[] = { 4, 1, 1, 0 };
  g_autoptr (GTorchTensor) input =
      gtorch_tensor_new_from_ints (indices, 4, GTORCH_SHAPE (2, 2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) output = gtorch_module_forward (embedding, input, &error);
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autofree gchar *shape = NULL;
  g_autofree gchar *text = gtorch_module_to_string (embedding);
  g_autofree gdouble *values = NULL;
  gsize n;

  g_assert_no_error (error);
  shape = shape_of (output);
  g_assert_cmpstr (shape, ==, "[2, 2, 3]");
  g_assert_cmpstr (text, ==, "Embedding(5, 3, padding_idx=1)");
  values = gtorch_tensor_to_doubles (output, &n, NULL);
  g_assert_cmpfloat (values[3], ==, 0);
  g_assert_cmpfloat (values[0], !=, 0);
  sum = gtorch_tensor_sum (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  grad = gtorch_tensor_get_grad (
      GTORCH_TENSOR (gtorch_module_get_parameter (embedding, "weight", NULL)));
  g_clear_pointer (&values, g_free);
  values = gtorch_tensor_to_doubles (grad, &n, NULL);
  g_assert_cmpfloat (values[0], ==, 1);
  g_assert_cmpfloat (values[3], ==, 0);
  g_assert_cmpfloat (values[6], ==, 0);
  g_assert_cmpfloat (values[12], ==, 1);

  g_assert_null (gtorch_embedding_new (5, 3, 5, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "Embedding: padding_idx 5 is out of range for 5 embeddings");
}

static void
bad_arguments_are_errors (void)
{
  g_autoptr (GError) error = NULL;

#define REFUSED(call, text)                                   \
  g_assert_null (call);                                       \
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID); \
  g_assert_cmpstr (error->message, ==, text);                 \
  g_clear_error (&error)
  REFUSED (gtorch_linear_new (-3, 4, TRUE, &error),
           "Linear: in_features must be at least 1, it is -3");
  REFUSED (gtorch_linear_new (3, 0, TRUE, &error),
           "Linear: out_features must be at least 1, it is 0");
  REFUSED (gtorch_conv2d_new (1, 2, 0, 1, 0, TRUE, &error),
           "Conv2d: kernel_size must be at least 1, it is 0");
  REFUSED (gtorch_conv2d_new (1, 2, 3, 0, 0, TRUE, &error),
           "Conv2d: stride must be at least 1, it is 0");
  REFUSED (gtorch_conv2d_new (1, 2, 3, 1, -2, TRUE, &error),
           "Conv2d: padding must be at least 0, it is -2");
  REFUSED (gtorch_max_pool2d_new (2, 0, 0, &error),
           "MaxPool2d: stride must be at least 1, it is 0");
  REFUSED (gtorch_dropout_new (1.5, &error), "dropout: p must be between 0 and 1, it is 1.5");
  REFUSED (gtorch_dropout_new (NAN, &error), "dropout: p must be between 0 and 1, it is nan");
  REFUSED (gtorch_layer_norm_new (NULL, 0, 1e-5, TRUE, TRUE, &error),
           "LayerNorm: normalized_shape must have 1 to 16 dimensions, it has 0");
  REFUSED (gtorch_batch_norm1d_new (0, &error),
           "BatchNorm1d: num_features must be at least 1, it is 0");
#undef REFUSED
  g_assert_null (gtorch_linear_new (G_MAXINT64 / 4, 1000, TRUE, &error));
  g_assert_nonnull (error);
}

static void
bad_properties_are_errors_at_the_first_use (void)
{
  g_autoptr (GTorchModule) conv =
      g_object_new (GTORCH_TYPE_CONV2D, "in-channels", (gint64) 3, "out-channels", (gint64) 4,
                    "kernel-size", (gint64) 1, "groups", (gint64) 2, NULL);
  g_autoptr (GTorchModule) linear = g_object_new (GTORCH_TYPE_LINEAR, NULL);
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (1, 3, 2, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 2; i++)
    {
      g_assert_null (gtorch_module_forward (conv, x, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==,
                       "Conv2d: 3 and 4 channels cannot be divided into 2 groups");
      g_clear_error (&error);
    }
  g_assert_false (gtorch_module_to (linear, NULL, GTORCH_DTYPE_FLOAT64, &error));
  g_assert_cmpstr (error->message, ==, "Linear: in_features must be at least 1, it is 0");
}

static void
wrong_inputs_are_errors (void)
{
  g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (3, 4, TRUE, NULL));
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 5), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_module_forward (linear, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "linear: "));
}

/* Each of many small images becomes a larger one. */
static void
pooling_may_enlarge (void)
{
  const gdouble images = 100;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) numbers =
      gtorch_arange (0, images, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchTensor) x = gtorch_tensor_reshape (numbers, GTORCH_SHAPE (50, 2, 1, 1), &error);
  g_autoptr (GTorchTensor) adaptive =
      gtorch_tensor_adaptive_avg_pool2d (x, GTORCH_SHAPE (3, 3), &error);
  g_autoptr (GTorchTensor) expected = gtorch_tensor_expand (x, GTORCH_SHAPE (50, 2, 3, 3), &error);
  g_autoptr (GTorchTensor) padded = NULL;
  g_autoptr (GTorchTensor) same = NULL;
  g_autoptr (GTorchTensor) sum = NULL;

  g_assert_no_error (error);
  same = gtorch_tensor_eq (adaptive, expected, &error);
  sum = gtorch_tensor_sum (same, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_cmpint (gtorch_tensor_item_int (sum, &error), ==, 900);

  padded = gtorch_tensor_avg_pool2d (x, GTORCH_SHAPE (2, 2), GTORCH_SHAPE (1, 1),
                                     GTORCH_SHAPE (1, 1), FALSE, TRUE, 0, &error);
  g_assert_no_error (error);
  g_clear_object (&sum);
  sum = gtorch_tensor_sum (padded, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  /* four windows of which each has the image in a quarter of it */
  g_assert_cmpfloat (gtorch_tensor_item_double (sum, &error), ==, images * (images - 1) / 2);
  g_assert_no_error (error);
}

static void
properties_show_what_was_given (void)
{
  g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (3, 4, FALSE, NULL));
  g_autoptr (GTorchModule) pool = GTORCH_MODULE (gtorch_max_pool2d_new (2, -1, 0, NULL));
  g_autoptr (GTorchParameter) weight = NULL;
  g_autoptr (GTorchParameter) bias = NULL;
  gint64 in_features, out_features, stride;
  gboolean has_bias;

  g_object_get (linear, "in-features", &in_features, "out-features", &out_features, "has-bias",
                &has_bias, "weight", &weight, "bias", &bias, NULL);
  g_object_get (pool, "stride-width", &stride, NULL);
  g_assert_cmpint (in_features, ==, 3);
  g_assert_cmpint (out_features, ==, 4);
  g_assert_false (has_bias);
  g_assert_true (weight == gtorch_module_get_parameter (linear, "weight", NULL));
  g_assert_null (bias);
  g_assert_cmpint (stride, ==, 2);
}

static void
the_seed_decides_the_weights (void)
{
  gdouble sums[2];

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchModule) conv = NULL;

      gtorch_manual_seed (5);
      conv = GTORCH_MODULE (gtorch_conv2d_new (3, 8, 3, 1, 1, TRUE, NULL));
      g_assert_true (gtorch_module_to (conv, NULL, GTORCH_DTYPE_FLOAT64, NULL));
      sums[i] = weighed (GTORCH_TENSOR (gtorch_module_get_parameter (conv, "weight", NULL)));
    }
  g_assert_cmpfloat (sums[0], ==, sums[1]);
}

#define ADD(name) g_test_add_func ("/GTorch/Layers/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (layers_are_pytorchs);
  ADD (batch_norm_keeps_running_stats);
  ADD (batch_norm_names_the_wrong_shape);
  ADD (dropout_acts_in_training_only);
  ADD (embedding_looks_up_and_keeps_padding);
  ADD (bad_arguments_are_errors);
  ADD (bad_properties_are_errors_at_the_first_use);
  ADD (wrong_inputs_are_errors);
  ADD (pooling_may_enlarge);
  ADD (properties_show_what_was_given);
  ADD (the_seed_decides_the_weights);
  return g_test_run ();
}
