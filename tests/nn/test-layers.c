/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "members.h"

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

/* Returns the sum of the elements, where element j is multiplied by cos (j). */
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
  mean = gtorch_tensor_to_doubles (test_buffer (norm, "running_mean"), &n, NULL);
  var = gtorch_tensor_to_doubles (test_buffer (norm, "running_var"), &n, NULL);
  for (guint i = 0; i < 3; i++)
    {
      g_assert_cmpfloat_with_epsilon (mean[i], means[i], 1e-12);
      g_assert_cmpfloat_with_epsilon (var[i], vars[i], 1e-12);
    }
  g_assert_cmpint (gtorch_tensor_item_int (test_buffer (norm, "num_batches_tracked"), NULL), ==, 2);
  gtorch_module_eval (norm);
  yc = gtorch_module_forward (norm, a, NULL);
  g_assert_cmpfloat_with_epsilon (weighed (yc), 10.954062664823452, 1e-11);
  g_assert_cmpint (gtorch_tensor_item_int (test_buffer (norm, "num_batches_tracked"), NULL), ==, 2);
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
  g_autoptr (GTorchModule) embedding = GTORCH_MODULE (
      gtorch_module_new (GTORCH_TYPE_EMBEDDING, &error, "num-embeddings", (gint64) 5,
                         "embedding-dim", (gint64) 3, "padding-idx", (gint64) 1, NULL));
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
  grad = gtorch_tensor_get_grad (test_parameter (embedding, "weight"));
  g_clear_pointer (&values, g_free);
  values = gtorch_tensor_to_doubles (grad, &n, NULL);
  g_assert_cmpfloat (values[0], ==, 1);
  g_assert_cmpfloat (values[3], ==, 0);
  g_assert_cmpfloat (values[6], ==, 0);
  g_assert_cmpfloat (values[12], ==, 1);

  g_assert_null (gtorch_module_new (GTORCH_TYPE_EMBEDDING, &error, "num-embeddings", (gint64) 5,
                                    "embedding-dim", (gint64) 3, "padding-idx", (gint64) 5, NULL));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "Embedding: padding_idx 5 is out of range for 5 rows");
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
  REFUSED (gtorch_linear_new (-3, 4, &error), "Linear: in_features must be at least 1, it is -3");
  REFUSED (gtorch_linear_new (3, 0, &error), "Linear: out_features must be at least 1, it is 0");
  REFUSED (gtorch_conv2d_new (1, 2, GTORCH_SHAPE (0), &error),
           "Conv2d: kernel_size must be at least 1, it is 0");
  REFUSED (gtorch_module_new (GTORCH_TYPE_CONV2D, &error, "in-channels", (gint64) 1, "out-channels",
                              (gint64) 2, "kernel-size", GTORCH_SIZE (3), "stride", GTORCH_SIZE (0),
                              NULL),
           "Conv2d: stride must be at least 1, it is 0");
  REFUSED (gtorch_module_new (GTORCH_TYPE_CONV2D, &error, "in-channels", (gint64) 1, "out-channels",
                              (gint64) 2, "kernel-size", GTORCH_SIZE (3), "padding",
                              GTORCH_SIZE (-2), NULL),
           "Conv2d: padding must be at least 0, it is -2");
  REFUSED (gtorch_module_new (GTORCH_TYPE_MAX_POOL2D, &error, "kernel-size", GTORCH_SIZE (2),
                              "stride", GTORCH_SIZE (0), "padding", GTORCH_SIZE (0), NULL),
           "MaxPool2d: stride must be at least 1, it is 0");
  REFUSED (gtorch_dropout_new (1.5, &error), "Dropout: p is 1.5, it must be within [0, 1]");
  REFUSED (gtorch_dropout_new (NAN, &error), "Dropout: p is nan, it must be within [0, 1]");
  REFUSED (gtorch_layer_norm_new (NULL, 0, &error),
           "LayerNorm: normalized_shape must have 1 to 16 dimensions, it has 0");
  REFUSED (gtorch_batch_norm1d_new (0, &error),
           "BatchNorm1d: num_features must be at least 1, it is 0");
#undef REFUSED
  g_assert_null (gtorch_linear_new (G_MAXINT64 / 4, 1000, &error));
  g_assert_nonnull (error);
}

static void
bad_properties_are_errors_at_the_first_use (void)
{
  g_autoptr (GTorchModule) conv =
      g_object_new (GTORCH_TYPE_CONV2D, "in-channels", (gint64) 3, "out-channels", (gint64) 4,
                    "kernel-size", GTORCH_SIZE (1), "groups", (gint64) 2, NULL);
  g_autoptr (GTorchModule) linear = g_object_new (GTORCH_TYPE_LINEAR, NULL);
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (1, 3, 2, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 2; i++)
    {
      g_assert_null (gtorch_module_forward (conv, x, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==,
                       "Conv2d: in_channels must be divisible by groups, 3 is not by 2");
      g_clear_error (&error);
    }
  g_assert_false (gtorch_module_to (linear, NULL, GTORCH_DTYPE_FLOAT64, &error));
  g_assert_cmpstr (error->message, ==, "Linear: in_features must be at least 1, it is 0");
}

static void
wrong_inputs_are_errors (void)
{
  g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (3, 4, NULL));
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 5), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_module_forward (linear, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "linear: "));
}

/* Many small images become larger ones. */
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
                                     GTORCH_SHAPE (1, 1), FALSE, TRUE, GTORCH_NONE, &error);
  g_assert_no_error (error);
  g_clear_object (&sum);
  sum = gtorch_tensor_sum (padded, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  /* four windows, each of which contains the image in one quarter */
  g_assert_cmpfloat (gtorch_tensor_item_double (sum, &error), ==, images * (images - 1) / 2);
  g_assert_no_error (error);
}

static void
properties_show_what_was_given (void)
{
  g_autoptr (GTorchModule) linear =
      GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 3,
                                        "out-features", (gint64) 4, "has-bias", FALSE, NULL));
  g_autoptr (GTorchModule) pool = GTORCH_MODULE (gtorch_max_pool2d_new (GTORCH_SHAPE (2), NULL));
  g_autoptr (GTorchParameter) weight = NULL;
  g_autoptr (GTorchParameter) bias = NULL;
  g_autoptr (GTorchSize) stride = NULL;
  g_autofree gchar *stride_text = NULL;
  gint64 in_features, out_features;
  gboolean has_bias;

  g_object_get (linear, "in-features", &in_features, "out-features", &out_features, "has-bias",
                &has_bias, "weight", &weight, "bias", &bias, NULL);
  g_object_get (pool, "stride", &stride, NULL);
  stride_text = gtorch_size_to_string (stride);
  g_assert_cmpint (in_features, ==, 3);
  g_assert_cmpint (out_features, ==, 4);
  g_assert_false (has_bias);
  g_assert_true (GTORCH_TENSOR (weight) == test_parameter (linear, "weight"));
  g_assert_null (bias);
  g_assert_cmpstr (stride_text, ==, "(2,)");
}

static void
the_seed_decides_the_weights (void)
{
  gdouble sums[2];

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchModule) conv = NULL;

      gtorch_manual_seed (5);
      conv = GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_CONV2D, NULL, "in-channels", (gint64) 3,
                                               "out-channels", (gint64) 8, "kernel-size",
                                               GTORCH_SIZE (3), "padding", GTORCH_SIZE (1), NULL));
      g_assert_true (gtorch_module_to (conv, NULL, GTORCH_DTYPE_FLOAT64, NULL));
      sums[i] = weighed (test_parameter (conv, "weight"));
    }
  g_assert_cmpfloat (sums[0], ==, sums[1]);
}

/* A stride of 2 makes 7 or 8 of 4, one of which the caller chooses. */
static void
transposes_make_the_size_asked_for (void)
{
  g_autoptr (GTorchConvTranspose) layer =
      gtorch_module_new (GTORCH_TYPE_CONV_TRANSPOSE2D, NULL, "in-channels", (gint64) 1,
                         "out-channels", (gint64) 2, "kernel-size", GTORCH_SIZE (3), "stride",
                         GTORCH_SIZE (2), "padding", GTORCH_SIZE (1), "dtype", GTORCH_DTYPE_FLOAT64,
                         NULL);
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (1, 1, 4, 4));
  g_autoptr (GTorchTensor) least = gtorch_module_forward (GTORCH_MODULE (layer), x, NULL);
  g_autoptr (GTorchTensor) same =
      gtorch_conv_transpose_forward_size (layer, x, GTORCH_SHAPE (7, 7), NULL);
  g_autoptr (GTorchTensor) more =
      gtorch_conv_transpose_forward_size (layer, x, GTORCH_SHAPE (1, 2, 7, 8), NULL);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (more, 3, 0, 7, NULL);
  g_autoptr (GTorchTensor) wrong = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpfloat (weighed (same), ==, weighed (least));
  g_assert_cmpfloat_with_epsilon (weighed (part), weighed (least), 1e-12);
  g_assert_cmpint (gtorch_tensor_get_size (more, 3, NULL), ==, 8);
  wrong = gtorch_conv_transpose_forward_size (layer, x, GTORCH_SHAPE (8, 9), &error);
  g_assert_null (wrong);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "ConvTranspose2d: output_size is 9 in dimension 1, it must be from 7 to 8 for "
                   "the "
                   "input [1, 1, 4, 4]");
  g_clear_error (&error);
  wrong = gtorch_conv_transpose_forward_size (layer, x, GTORCH_SHAPE (8, 8, 8), &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "ConvTranspose2d: output_size must have 2 or 4 numbers, it has shape [3] and "
                   "dtype "
                   "int64");
}

#define ADD(name) g_test_add_func ("/GTorch/Layers/" #name, name)

/* Properties take any number; check () and calls refuse those that the constructor does, until another
 * is set. */
static void
later_settings_are_checked (void)
{
  g_autoptr (GTorchModule) dropout = GTORCH_MODULE (gtorch_dropout_new (0.5, NULL));
  g_autoptr (GTorchModule) window = g_object_new (GTORCH_TYPE_HARDTANH, NULL);
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_module_check (dropout, &error));
  g_object_set (dropout, "p", 1.5, NULL);
  g_assert_false (gtorch_module_check (dropout, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "Dropout: p is 1.5, it must be within [0, 1]");
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (dropout, x, &error));
  g_assert_cmpstr (error->message, ==, "Dropout: p is 1.5, it must be within [0, 1]");
  g_clear_error (&error);
  g_object_set (dropout, "p", 0.25, NULL);
  y = gtorch_module_forward (dropout, x, &error);
  g_assert_no_error (error);
  g_assert_nonnull (y);

  g_object_set (window, "min-val", 2.0, NULL);
  g_assert_false (gtorch_module_check (window, &error));
  g_assert_cmpstr (error->message, ==,
                   "Hardtanh: max_val must be greater than min_val, 1 is not greater than 2");
  g_clear_error (&error);
  g_object_set (window, "max-val", 3.0, NULL);
  g_assert_true (gtorch_module_check (window, &error));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
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
  ADD (transposes_make_the_size_asked_for);
  ADD (later_settings_are_checked);
  return g_test_run ();
}
