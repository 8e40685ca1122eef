/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "members.h"
#include "test-device.h"

typedef struct
{
  gdouble mean, std, low, high;
} Moments;

static Moments
moments_of (GTorchTensor *tensor)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  Moments result = { 0, 0, values[0], values[0] };

  for (gsize i = 0; i < n; i++)
    {
      result.mean += values[i] / (gdouble) n;
      result.low = MIN (result.low, values[i]);
      result.high = MAX (result.high, values[i]);
    }
  for (gsize i = 0; i < n; i++)
    result.std += (values[i] - result.mean) * (values[i] - result.mean) / (gdouble) n;
  result.std = sqrt (result.std);
  return result;
}

static GTorchTensor *
weight_new (void)
{
  /* fan_in 100 * 9, fan_out 40 * 9 */
  return gtorch_zeros (GTORCH_SHAPE (40, 100, 3, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

/* 36,000 numbers: the standard error of the deviation is 0.4 %, that of the mean std / 190. */
static void
assert_spread (GTorchTensor *weight, gdouble std, gboolean uniform)
{
  Moments moments = moments_of (weight);

  g_assert_cmpfloat (fabs (moments.mean), <, 5 * std / 190);
  g_assert_cmpfloat (fabs (moments.std / std - 1), <, 0.02);
  if (uniform)
    {
      g_assert_cmpfloat (moments.high, <=, std * sqrt (3));
      g_assert_cmpfloat (moments.high, >, std * sqrt (3) * 0.999);
      g_assert_cmpfloat (moments.low, >=, -std * sqrt (3));
    }
  else
    g_assert_cmpfloat (moments.high, >, std * 3);
}

static void
spreads_follow_the_fans (void)
{
  g_autoptr (GTorchTensor) w = weight_new ();
  gint64 fan_in, fan_out;

  gtorch_manual_seed (3);
  g_assert_true (gtorch_init_calculate_fan (w, &fan_in, &fan_out, NULL));
  g_assert_cmpint (fan_in, ==, 900);
  g_assert_cmpint (fan_out, ==, 360);
  g_assert_true (gtorch_init_xavier_uniform (w, 2, NULL, NULL));
  assert_spread (w, 2 * sqrt (2.0 / 1260), TRUE);
  g_assert_true (gtorch_init_xavier_normal (w, 1, NULL, NULL));
  assert_spread (w, sqrt (2.0 / 1260), FALSE);
  g_assert_true (gtorch_init_kaiming_uniform (w, 0, GTORCH_FAN_MODE_OUT, GTORCH_NONLINEARITY_RELU,
                                              NULL, NULL));
  assert_spread (w, sqrt (2.0 / 360), TRUE);
  g_assert_true (gtorch_init_kaiming_normal (w, 0.5, GTORCH_FAN_MODE_IN,
                                             GTORCH_NONLINEARITY_LEAKY_RELU, NULL, NULL));
  assert_spread (w, sqrt (2.0 / 1.25 / 900), FALSE);
  g_assert_true (gtorch_init_normal (w, 0, 3, NULL, NULL));
  assert_spread (w, 3, FALSE);
  g_assert_true (gtorch_init_uniform (w, -2, 2, NULL, NULL));
  assert_spread (w, 2 / sqrt (3), TRUE);
}

static void
layers_begin_as_pytorchs (void)
{
  g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (900, 200, NULL));
  GTorchTensor *weight = test_parameter (linear, "weight");
  GTorchTensor *bias = test_parameter (linear, "bias");
  Moments moments = moments_of (bias);

  /* U (-1 / sqrt (900), 1 / sqrt (900)) */
  assert_spread (weight, 1 / 30.0 / sqrt (3), TRUE);
  g_assert_cmpfloat (moments.high, <=, 1 / 30.0);
  g_assert_cmpfloat (moments.high, >, 0.9 / 30.0);
  g_assert_cmpfloat (moments.low, <, -0.9 / 30.0);
}

static void
constants_fill_leaves_that_require_grad (void)
{
  g_autoptr (GTorchTensor) w = weight_new ();
  g_autoptr (GError) error = NULL;

  gtorch_tensor_set_requires_grad (w, TRUE, NULL);
  g_assert_true (gtorch_init_ones (w, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (moments_of (w).low, ==, 1);
  g_assert_true (gtorch_init_zeros (w, NULL));
  g_assert_cmpfloat (moments_of (w).high, ==, 0);
  g_assert_true (gtorch_init_constant (w, 0.25, NULL));
  g_assert_cmpfloat (moments_of (w).low, ==, 0.25);
  g_assert_true (gtorch_tensor_get_requires_grad (w));
  g_assert_true (gtorch_tensor_is_leaf (w));
}

static void
gains_are_pytorchs (void)
{
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_LINEAR, 0), ==, 1);
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_SIGMOID, 0), ==, 1);
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_TANH, 0), ==, 5.0 / 3);
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_RELU, 0), ==, sqrt (2));
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_LEAKY_RELU, 0.2), ==,
                     sqrt (2 / (1 + 0.2 * 0.2)));
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_SELU, 0), ==, 0.75);
}

static void
vectors_have_no_fan (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) integers =
      gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_init_xavier_normal (x, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "init: fans need at least 2 dimensions, the shape is [3]");
  g_clear_error (&error);
  g_assert_false (gtorch_init_normal (integers, 0, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
}

static void
generators_can_be_given (void)
{
  g_autoptr (GTorchGenerator) first = gtorch_generator_new_with_seed (9);
  g_autoptr (GTorchGenerator) second = gtorch_generator_new_with_seed (9);
  g_autoptr (GTorchTensor) a = weight_new ();
  g_autoptr (GTorchTensor) b = weight_new ();

  g_assert_true (gtorch_init_normal (a, 0, 1, first, NULL));
  g_assert_true (gtorch_init_normal (b, 0, 1, second, NULL));
  g_assert_cmpfloat (moments_of (a).mean, ==, moments_of (b).mean);
}

static GTorchTensor *
zeros_of (const gint64 *shape, gsize n_dims)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_zeros (shape, n_dims, GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

/* Returns the greatest distance of the product with its transpose from a multiple of the identity. */
static gdouble
distance (GTorchTensor *weight, gboolean of_rows, gdouble square)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_flatten (weight, 1, -1, &error);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (matrix, 0, 1, &error);
  g_autoptr (GTorchTensor) product = of_rows ? gtorch_tensor_matmul (matrix, turned, &error)
                                             : gtorch_tensor_matmul (turned, matrix, &error);
  gint64 n = gtorch_tensor_get_size (product, 0, &error);
  gdouble most = 0;

  g_assert_no_error (error);
  for (gint64 i = 0; i < n * n; i++)
    most = MAX (most, fabs (test_element (product, i) - (i % (n + 1) == 0 ? square : 0)));
  return most;
}

static void
orthogonal_weights_are_orthogonal (void)
{
  static const gint64 shapes[][3] = { { 5, 3, 1 }, { 3, 5, 1 }, { 4, 2, 2 } };
  g_autoptr (GTorchTensor) vector = zeros_of (GTORCH_SHAPE (3));
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    {
      g_autoptr (GTorchTensor) weight = zeros_of (shapes[i], 3);

      g_assert_true (gtorch_init_orthogonal (weight, 2, NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpfloat (distance (weight, i > 0, 4), <, 1e-5);
    }
  g_assert_false (gtorch_init_orthogonal (vector, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "init_orthogonal: shape [3] must have 2 dimensions or more");
}

static void
truncated_numbers_are_within_bounds (void)
{
  static const gdouble cases[][5] = { /* mean, std, a, b, the mean of the part */
                                      { 0, 1, -2, 2, 0 },
                                      { 1, 2, 0, 1.5, 0.776 },
                                      { 0, 1, 8, 9, 8.121 },
                                      { 0, 1, -9, -8, -8.121 }
  };
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GTorchTensor) tensor = zeros_of (GTORCH_SHAPE (20000));
      const gdouble *one = cases[i];
      g_autofree gdouble *values = NULL;
      gdouble sum = 0;
      gsize n;

      g_assert_true (
          gtorch_init_trunc_normal (tensor, one[0], one[1], one[2], one[3], NULL, &error));
      g_assert_no_error (error);
      values = gtorch_tensor_to_doubles (tensor, &n, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (n, ==, 20000);
      for (gsize k = 0; k < n; k++)
        {
          g_assert_true (values[k] >= one[2] && values[k] <= one[3]);
          sum += values[k];
        }
      g_assert_cmpfloat (fabs (sum / 20000 - one[4]), <, 0.03);
    }
  {
    g_autoptr (GTorchTensor) tensor = zeros_of (GTORCH_SHAPE (2));

    g_assert_false (gtorch_init_trunc_normal (tensor, 0, 0, -1, 1, NULL, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  }
}

static void
sparse_columns_have_zeros (void)
{
  g_autoptr (GTorchTensor) matrix = zeros_of (GTORCH_SHAPE (10, 4));
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_init_sparse (matrix, 0.25, 1, NULL, &error));
  for (gint64 column = 0; column < 4; column++)
    {
      guint n = 0;

      for (gint64 row = 0; row < 10; row++)
        n += test_element (matrix, row * 4 + column) == 0;
      g_assert_cmpuint (n, ==, 3);
    }
  g_assert_false (gtorch_init_sparse (matrix, 1.5, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
inputs_are_passed_on (void)
{
  g_autoptr (GTorchTensor) matrix = zeros_of (GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) kernel = zeros_of (GTORCH_SHAPE (4, 3, 3));
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_init_eye (matrix, &error));
  for (gint64 i = 0; i < 6; i++)
    g_assert_cmpfloat (test_element (matrix, i), ==, i == 0 || i == 4);
  g_assert_true (gtorch_init_dirac (kernel, 2, &error));
  for (gint64 i = 0; i < 36; i++) /* [0, 0, 1], [1, 1, 1], [2, 0, 1], [3, 1, 1] */
    g_assert_cmpfloat (test_element (kernel, i), ==, i == 1 || i == 13 || i == 19 || i == 31);
  g_assert_false (gtorch_init_dirac (kernel, 3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_init_dirac (matrix, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

static void
layers_begin_again (void)
{
  g_autoptr (GTorchBatchNorm1d) norm = gtorch_batch_norm1d_new (3, NULL);
  g_autoptr (GTorchReLU) relu = gtorch_relu_new ();
  g_autoptr (GTorchLinear) linear = gtorch_linear_new (4, 4, NULL);
  g_autoptr (GTorchLSTM) lstm = gtorch_lstm_layer_new (2, 4, NULL);
  g_autoptr (GTorchTensor) mean = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GError) error = NULL;

  g_object_get (norm, "running-mean", &mean, NULL);
  g_assert_true (gtorch_init_ones (mean, &error));
  g_assert_true (gtorch_module_reset_parameters (GTORCH_MODULE (norm), &error));
  g_assert_cmpfloat (test_element (mean, 0), ==, 0);
  g_object_get (linear, "weight", &weight, NULL);
  g_assert_true (gtorch_init_constant (weight, 9, &error));
  g_assert_true (gtorch_module_reset_parameters (GTORCH_MODULE (linear), &error));
  g_assert_cmpfloat (fabs (test_element (weight, 0)), <=, 0.5);
  other =
      GTORCH_TENSOR (gtorch_module_get_parameter (GTORCH_MODULE (lstm), "weight_hh_l0", &error));
  g_assert_true (gtorch_init_constant (other, 9, &error));
  g_assert_true (gtorch_module_reset_parameters (GTORCH_MODULE (lstm), &error));
  g_assert_cmpfloat (fabs (test_element (other, 3)), <=, 0.5);
  g_assert_no_error (error);
  g_assert_false (gtorch_module_can_reset_parameters (GTORCH_MODULE (relu)));
  g_assert_false (gtorch_module_reset_parameters (GTORCH_MODULE (relu), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static void
embeddings_take_a_matrix (void)
{
  g_autoptr (GTorchTensor) rows = zeros_of (GTORCH_SHAPE (3, 2));
  g_autoptr (GTorchTensor) vector = zeros_of (GTORCH_SHAPE (3));
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchEmbedding) layer = NULL;
  g_autoptr (GTorchEmbeddingBag) bag = NULL;
  g_autoptr (GTorchEmbedding) refused = NULL;
  g_autoptr (GError) error = NULL;

  layer = gtorch_embedding_new_from_pretrained (rows, TRUE, &error);
  bag = gtorch_embedding_bag_new_from_pretrained (rows, FALSE, &error);
  g_assert_no_error (error);
  g_object_get (layer, "weight", &weight, NULL);
  g_assert_false (gtorch_tensor_get_requires_grad (weight));
  g_assert_true (gtorch_init_constant (rows, 7, &error));
  g_assert_cmpfloat (test_element (weight, 5), ==, 7);
  refused = gtorch_embedding_new_from_pretrained (vector, TRUE, &error);
  g_assert_null (refused);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

#define ADD(name) g_test_add_func ("/GTorch/Init/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (spreads_follow_the_fans);
  ADD (layers_begin_as_pytorchs);
  ADD (constants_fill_leaves_that_require_grad);
  ADD (gains_are_pytorchs);
  ADD (vectors_have_no_fan);
  ADD (generators_can_be_given);
  ADD (orthogonal_weights_are_orthogonal);
  ADD (truncated_numbers_are_within_bounds);
  ADD (sparse_columns_have_zeros);
  ADD (inputs_are_passed_on);
  ADD (layers_begin_again);
  ADD (embeddings_take_a_matrix);
  return g_test_run ();
}
